"""Policy templates and the page are in step with the schema, and Windows could read them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from fleetapp.settings import SCHEMA, Settings
from fleetapp.settings.publish import published
from fleetapp.settings.resolve import Layer, resolve
from fleetapp.settings.templates import CULTURES, adml, admx, explanation

ROOT = Path(__file__).parents[3]
NS = "{http://schemas.microsoft.com/GroupPolicy/2006/07/PolicyDefinitions}"
TEMPLATE = ET.fromstring(admx())
WORDS = {language: ET.fromstring(adml(language)) for language in CULTURES.values()}


@pytest.mark.parametrize("path", sorted(published(ROOT)), ids=lambda p: str(p.relative_to(ROOT)))
def test_what_lies_in_the_checkout_is_what_the_schema_says(path: Path) -> None:
    assert path.read_bytes() == published(ROOT)[path], "run: python -m fleetapp.settings.publish"


def policies() -> list[ET.Element]:
    return TEMPLATE.findall(f"{NS}policies/{NS}policy")


def element(policy: ET.Element) -> ET.Element | None:
    elements = policy.find(f"{NS}elements")
    return None if elements is None else elements[0]


def test_each_setting_has_one_policy_for_computers_and_users() -> None:
    assert [p.get("name") for p in policies()] == list(SCHEMA)
    for policy in policies():
        assert policy.get("class") == "Both"
        assert policy.get("key") == r"Software\Policies\fleetapp"
    categories = {c.get("name") for c in TEMPLATE.iter(f"{NS}category")}
    refs = {c.get("ref") for c in TEMPLATE.iter(f"{NS}parentCategory")}
    assert refs <= categories


def test_the_key_is_the_one_that_the_agent_reads() -> None:
    code = (ROOT / "fleetapp/platform/windows.py").read_text()
    assert r'POLICY_KEY = r"Software\Policies\fleetapp"' in code


@pytest.mark.parametrize("language", WORDS)
def test_every_reference_has_its_words_and_no_word_is_left_over(language: str) -> None:
    words = WORDS[language]
    strings = [s.get("id") for s in words.iter(f"{NS}string")]
    shown = [p.get("id") for p in words.iter(f"{NS}presentation")]
    assert len(set(strings)) == len(strings)
    asked = re.findall(r"\$\((string|presentation)\.(\w+)\)", admx())
    assert {name for kind, name in asked if kind == "string"} == set(strings)
    assert {name for kind, name in asked if kind == "presentation"} == set(shown)
    for string in words.iter(f"{NS}string"):
        assert (string.text or "").strip()


@pytest.mark.parametrize("language", WORDS)
def test_controls_fit_the_elements_they_set(language: str) -> None:
    shown = {p.get("id"): p[0] for p in WORDS[language].iter(f"{NS}presentation")}
    fits = {"decimal": "decimalTextBox", "enum": "dropdownList", "text": "textBox"}
    for policy in policies():
        found = element(policy)
        if found is None:
            assert policy.get("name") not in shown
            continue
        control = shown[policy.get("name")]
        assert control.tag == NS + fits[found.tag.removeprefix(NS)]
        assert control.get("refId") == found.get("id") == policy.get("name")


def values(language: str) -> Mapping[str, object]:
    """What group policy would write if somebody switched every policy on and chose nothing."""
    written: dict[str, object] = {}
    shown = {p.get("id"): p[0] for p in WORDS[language].iter(f"{NS}presentation")}
    for policy in policies():
        name = str(policy.get("name"))
        found = element(policy)
        if found is None:
            kind = "enabledValue" if SCHEMA[name].default else "disabledValue"
            decimal = policy.find(f"{NS}{kind}/{NS}decimal")
            assert decimal is not None
            written[str(policy.get("valueName"))] = int(str(decimal.get("value")))
        elif found.tag == f"{NS}decimal":
            value = int(str(shown[name].get("defaultValue")))
            assert int(str(found.get("minValue"))) <= value <= int(str(found.get("maxValue")))
            assert int(str(found.get("maxValue"))) < 2**32
            written[str(found.get("valueName"))] = value
        elif found.tag == f"{NS}enum":
            item = found[int(str(shown[name].get("defaultItem")))]
            written[str(found.get("valueName"))] = item.findtext(f"{NS}value/{NS}string")
        else:
            default = shown[name].findtext(f"{NS}defaultValue")
            written[str(found.get("valueName"))] = default or ""
    return written


@pytest.mark.parametrize("language", WORDS)
def test_every_policy_switched_on_as_it_is_gives_the_defaults_locked(language: str) -> None:
    settings = resolve([Layer("machine policy", "HKLM", values(language))])
    assert settings == Settings()
    assert all(row.locked for row in settings.explain())


def test_limits_of_numbers_are_those_of_the_schema() -> None:
    for policy in policies():
        found, kind = element(policy), SCHEMA[str(policy.get("name"))].kind
        if found is not None and found.tag == f"{NS}decimal":
            assert (found.get("minValue"), found.get("maxValue")) == (
                str(kind.minimum),
                str(kind.maximum),
            )


def test_an_explanation_has_what_an_administrator_needs() -> None:
    said = explanation(SCHEMA["schedule_hours"])
    for part in ("Default: all day.", "Empty: all day.", "18:00-08:00", "schedule_hours", "lock"):
        assert part in said
    assert "Vorgabe: 5 min." in explanation(SCHEMA["idle_minutes"], "de")
    assert "0: sofort." in explanation(SCHEMA["idle_minutes"], "de")


def test_the_json_policy_of_the_page_is_one() -> None:
    page = (ROOT / "docs/settings.md").read_text("utf-8")
    found = re.search(r"```json\n(.*?)```", page, re.DOTALL)
    assert found is not None
    settings = resolve([Layer("machine policy", "the page", json.loads(found[1]))])
    assert settings.origin("schedule_days").locked
