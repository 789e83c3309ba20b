"""Sentences of the agent in the language of the desktop app.

The agent speaks English: to the log, to the command line, and to this app over the loopback API.
What it says often is listed in ``ui/agent_sentences.py`` as it says it, with the places where a
value stands; such a sentence is recognised, translated and given its values back. Anything else is
shown as it came. In English only remedies that name a command of the terminal change, where this
app has a way of its own. A test compares the list with what the agent can say.
"""

from __future__ import annotations

import re
from functools import lru_cache

from PySide6.QtCore import QCoreApplication, QLocale

from ui.agent_sentences import ON_THE_DESKTOP, SENTENCES

translate = QCoreApplication.translate

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_BETWEEN = re.compile(r"(?<=[.!?]) (?=[A-Z'])")


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(sentence))), sentence)
        # exact ones go first, and of the others those that say the most themselves
        for sentence in sorted(SENTENCES, key=lambda s: (s.count("{"), -len(s)))
    )


def said(text: str) -> str:
    """``text`` in the person's language as far as it is known, sentence by sentence.

    What can be done in this app is not said as a command of the terminal.
    """
    whole = _one(text)
    if whole is not None:
        return whole
    return " ".join(_one(part) or part for part in _BETWEEN.split(text))


def _one(sentence: str) -> str | None:
    for pattern, template in _patterns():
        if found := pattern.fullmatch(sentence):
            values = found.groupdict()
            if "when" in values:
                values["when"] = _when(values["when"])
            translated = translate("Agent", ON_THE_DESKTOP.get(template, template))
            return sentence if translated == template else translated.format(**values)
    return None


def _when(text: str) -> str:
    """``14:30``, ``tomorrow 14:30``, ``Monday 14:30`` or a date."""
    day, _, clock = text.rpartition(" ")
    if not day:
        return text
    if day == "tomorrow":
        return translate("Agent", "tomorrow {clock}").format(clock=clock)
    if day in _DAYS:
        name = QLocale().standaloneDayName(_DAYS.index(day) + 1)
        return translate("Agent", "{day} {clock}").format(day=name, clock=clock)
    return text
