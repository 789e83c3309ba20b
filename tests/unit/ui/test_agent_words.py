"""What the agent says in English is said in German where it is known, and else left alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QLocale
from PySide6.QtWidgets import QApplication

from fleetapp.contribution.rules import decide
from fleetapp.errors import FleetError
from fleetapp.types import ContributionReason, Phase
from tests.unit.contribution.test_rules import EXAMPLES, pc
from ui import agent_sentences, agent_words
from ui.agent_sentences import ON_THE_DESKTOP
from ui.language import Language

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def german(qapp: QApplication) -> Iterator[None]:
    language = Language(qapp)
    language.use("de", QLocale("de_DE"))
    yield
    language.drop()
    QLocale.setDefault(QLocale.c())


@cache
def spoken() -> str:
    """Every literal of the headless package on a line of its own, values shown as ``{}``."""
    return "\n".join({t for f in (ROOT / "fleetapp").rglob("*.py") for t in literals(f)})


def literals(file: Path) -> Iterator[str]:
    inside = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node not in inside:
                yield node.value
        elif isinstance(node, ast.JoinedStr):
            inside.update(node.values)
            yield "".join(
                str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values
            )


@pytest.mark.parametrize(
    "sentence", [*agent_sentences.STATES, *agent_sentences.ERRORS, *agent_sentences.CHECKS[:-1]]
)
def test_every_listed_sentence_is_one_the_agent_can_say(sentence: str) -> None:
    assert re.sub(r"\{\w+\}", "{}", sentence) in spoken()


def test_every_phase_before_a_shard_is_ready_is_listed() -> None:
    said = {f"{phase.capitalize()} {{model}}." for phase in get_args(Phase)}
    others = {"Ready {model}.", "Linked {model}.", "Failed {model}."}
    assert said - others == set(agent_sentences.PHASES)


def remedies(cls: type[FleetError] = FleetError) -> set[str]:
    below = (remedies(sub) for sub in cls.__subclasses__() if sub.__module__ == "fleetapp.errors")
    return {cls.default_remedy}.union(*below) - {""}


def test_every_remedy_that_a_class_of_error_has_is_listed() -> None:
    known = {*agent_sentences.REMEDIES, *ON_THE_DESKTOP}
    assert remedies() <= known
    assert set(agent_sentences.REMEDIES) <= remedies()


def test_the_examples_cover_every_reason() -> None:
    seen = {reason for reason, _ in EXAMPLES} | {"draining"}
    assert seen >= set(get_args(ContributionReason)) - {"exclusive_app", "user_active"}


@pytest.mark.parametrize(("reason", "circumstances"), EXAMPLES)
def test_why_a_pc_contributes_or_not_is_said_in_german(
    reason: ContributionReason, circumstances: dict[str, Any], german: None
) -> None:
    sentence = decide(pc(**circumstances)).decision.sentence
    said = agent_words.said(sentence)
    assert said != sentence, reason
    assert re.findall(r"\d+", said) == re.findall(r"\d+", sentence)
    assert "{" not in said


@pytest.mark.parametrize(
    ("english", "said"),
    [
        ("Paused until 14:30.", "Pause bis 14:30."),
        ("Paused until tomorrow 08:00.", "Pause bis morgen 08:00."),
        ("Paused until Monday 08:00.", "Pause bis Montag 08:00."),
        ("Paused until 2026-04-01.", "Pause bis 2026-04-01."),
        ("Paused until you resume.", "Pause, bis Sie fortsetzen."),
        ("Paused while zoom.exe runs.", "Pause, solange zoom.exe läuft."),
        (
            "This join code has expired. Ask the admin for a new one.",
            "Dieser Beitrittscode ist abgelaufen. Bitten Sie den Administrator um einen neuen.",
        ),
        (
            "Something new happened. Try again in a moment.",
            "Something new happened. Versuchen Sie es gleich noch einmal.",
        ),
        ("", ""),
    ],
)
def test_known_sentences_are_translated_one_by_one(english: str, said: str, german: None) -> None:
    assert agent_words.said(english) == said


@given(st.text(max_size=300))
def test_without_a_translation_nothing_changes(text: str) -> None:
    assert agent_words.said(text) == text


@pytest.mark.parametrize("sentence", agent_sentences.ON_THE_DESKTOP)
def test_whoever_sits_at_the_desktop_app_is_told_of_no_command(sentence: str) -> None:
    assert re.sub(r"\{\w+\}", "{}", sentence) in spoken()
    said = agent_words.said(re.sub(r"\{\w+\}", "a model", sentence))
    assert "fleetapp " not in said
    assert "{" not in said


NO_OTHER_WAY = (
    "To end the fleet, ",  # a coordinator leaves in the terminal only
    "'fleetapp fleet move-coordinator' ",  # the office is given in the terminal only
    "Look at 'fleetapp fleet nodes' in a moment; ",
    "{}{}\nFleet: {}\n",  # in a recovery file
    "Give the file that 'fleetapp fleet recovery export' ",  # likewise
    "Restore it from a backup, or use the recovery file ",  # which is used in the terminal only
    "No model is being served; start one with ",  # of /healthz, for programs
)


def test_no_command_is_named_where_the_app_has_a_way_of_its_own() -> None:
    folders = ("agent", "engine", "fleet", "hub", "models")
    files = [f for name in folders for f in (ROOT / "fleetapp" / name).rglob("*.py")]
    # the doctor's remedies are shown by the doctor, those of the first run have none
    files = [f for f in files if "checks" not in f.parts and f.name != "bundle.py"]
    command = re.compile(r"\bfleetapp (agent|fleet|keys|model|serve|settings)\b")
    named = {t for f in files for t in literals(f) if command.search(t)}
    assert len(named) > 10
    for text in named:
        if not text.startswith(NO_OTHER_WAY):
            assert not command.search(agent_words.said(text.replace("{}", "a model"))), text


@given(
    st.sampled_from([s for s in agent_sentences.SENTENCES if s not in ON_THE_DESKTOP]),
    st.text("{}%&ab", min_size=1),
)
def test_values_may_hold_anything(sentence: str, value: str) -> None:
    filled = re.sub(r"\{\w+\}", lambda _: value, sentence)
    assert agent_words.said(filled) == filled
