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
    found = set()
    for file in (ROOT / "fleetapp").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.JoinedStr):
                parts = (str(v.value) if isinstance(v, ast.Constant) else "{}" for v in node.values)
                found.add("".join(parts))
    return "\n".join(found)


@pytest.mark.parametrize(
    "sentence", [*agent_sentences.STATES, *agent_sentences.ERRORS, *agent_sentences.CHECKS[:-1]]
)
def test_every_listed_sentence_is_one_the_agent_can_say(sentence: str) -> None:
    assert re.sub(r"\{\w+\}", "{}", sentence) in spoken()


def test_every_phase_before_a_shard_is_in_use_is_listed() -> None:
    said = {f"{phase.capitalize()} {{model}}." for phase in get_args(Phase)}
    assert said - {"Linked {model}.", "Failed {model}."} == set(agent_sentences.PHASES)


def remedies(cls: type[FleetError] = FleetError) -> set[str]:
    below = (remedies(sub) for sub in cls.__subclasses__() if sub.__module__ == "fleetapp.errors")
    return {cls.default_remedy}.union(*below) - {""}


def test_every_remedy_that_a_class_of_error_has_is_listed() -> None:
    assert remedies() == set(agent_sentences.REMEDIES)


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


@given(st.sampled_from(agent_sentences.SENTENCES), st.text("{}%&ab", min_size=1))
def test_values_may_hold_anything(sentence: str, value: str) -> None:
    filled = re.sub(r"\{\w+\}", lambda _: value, sentence)
    assert agent_words.said(filled) == filled
