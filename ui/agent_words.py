"""Sentences of the agent in the language of the desktop app.

The agent speaks English: to the log, to the command line, and to this app over the loopback API.
What it says often is listed here as it says it, with the places where a value stands; such a
sentence is recognised, translated and given its values back. Anything else is shown as it came. In
English nothing changes at all. A test compares the list with what the agent can say.
"""

from __future__ import annotations

import re
from functools import lru_cache

from PySide6.QtCore import QCoreApplication, QLocale

translate = QCoreApplication.translate


def QT_TRANSLATE_NOOP(_context: str, text: str) -> str:  # noqa: N802 - the name lupdate looks for
    """Mark ``text`` for translation; PySide6 has the same, typed as object."""
    return text


REASONS: tuple[str, ...] = (
    # why this PC works for the fleet or not: fleetapp/contribution/rules.py
    QT_TRANSLATE_NOOP("Agent", "This PC works for the fleet when it is asked to."),
    QT_TRANSLATE_NOOP("Agent", "Finishing running answers, then pausing."),
    QT_TRANSLATE_NOOP("Agent", "Finishing running answers, then pausing until {when}."),
    QT_TRANSLATE_NOOP("Agent", "Contributing is switched off by {where}."),
    QT_TRANSLATE_NOOP("Agent", "This PC does not contribute."),
    QT_TRANSLATE_NOOP("Agent", "No device of this PC is lent to the fleet."),
    QT_TRANSLATE_NOOP("Agent", "Paused until you resume."),
    QT_TRANSLATE_NOOP("Agent", "Paused until {when}."),
    QT_TRANSLATE_NOOP("Agent", "This PC goes to sleep."),
    QT_TRANSLATE_NOOP("Agent", "Paused by the schedule."),
    QT_TRANSLATE_NOOP("Agent", "Paused by the schedule until {when}."),
    QT_TRANSLATE_NOOP("Agent", "Paused on battery."),
    QT_TRANSLATE_NOOP("Agent", "Paused while this PC saves power."),
    QT_TRANSLATE_NOOP("Agent", "Paused below {floor}% of charge."),
    QT_TRANSLATE_NOOP("Agent", "Paused on a metered network."),
    QT_TRANSLATE_NOOP("Agent", "Paused while a program fills the screen."),
    QT_TRANSLATE_NOOP("Agent", "Paused while an exclusive program runs."),
    QT_TRANSLATE_NOOP("Agent", "Paused while {program} runs."),
    QT_TRANSLATE_NOOP("Agent", "Paused because the processor is hot."),
    QT_TRANSLATE_NOOP("Agent", "Paused because memory is short."),
    QT_TRANSLATE_NOOP("Agent", "Paused because the disk is nearly full."),
    QT_TRANSLATE_NOOP(
        "Agent", "Paused while other programs use more than {limit}% of the processor."
    ),
    QT_TRANSLATE_NOOP("Agent", "Paused while somebody uses this PC."),
)

STATES: tuple[str, ...] = (
    # fleetapp/agent
    QT_TRANSLATE_NOOP("Agent", "This PC is changing its role in the fleet."),
    QT_TRANSLATE_NOOP("Agent", "This PC belongs to no fleet yet."),
    QT_TRANSLATE_NOOP("Agent", "This PC belongs to no fleet."),
    QT_TRANSLATE_NOOP("Agent", "Holds layers {layers} of {model}."),
    QT_TRANSLATE_NOOP("Agent", "Connected; waiting for work."),
    QT_TRANSLATE_NOOP("Agent", "Looking for the coordinator."),
    QT_TRANSLATE_NOOP("Agent", "The connection to the coordinator ended."),
    QT_TRANSLATE_NOOP("Agent", "The coordinator has gone silent."),
    QT_TRANSLATE_NOOP("Agent", "The coordinator is not reachable now."),
    QT_TRANSLATE_NOOP("Agent", "The coordinator cannot be reached: {why}."),
    QT_TRANSLATE_NOOP("Agent", "Joining took too long."),
    QT_TRANSLATE_NOOP("Agent", "Try again, or ask the admin to approve."),
)

PHASES: tuple[str, ...] = (
    # of the first shard: fleetapp/agent/agent.py
    QT_TRANSLATE_NOOP("Agent", "Waiting {model}."),
    QT_TRANSLATE_NOOP("Agent", "Downloading {model}."),
    QT_TRANSLATE_NOOP("Agent", "Verifying {model}."),
    QT_TRANSLATE_NOOP("Agent", "Compiling {model}."),
    QT_TRANSLATE_NOOP("Agent", "Loading {model}."),
    QT_TRANSLATE_NOOP("Agent", "Ready {model}."),
)

ERRORS: tuple[str, ...] = (
    # joining: fleetapp/fleet, fleetapp/hub, fleetapp/agent
    QT_TRANSLATE_NOOP("Agent", "The hub does not know this join code."),
    QT_TRANSLATE_NOOP("Agent", "This join code has expired."),
    QT_TRANSLATE_NOOP("Agent", "This join code was revoked."),
    QT_TRANSLATE_NOOP("Agent", "This join code has been used as often as it may be."),
    QT_TRANSLATE_NOOP("Agent", "Too many wrong join codes came from this address."),
    QT_TRANSLATE_NOOP("Agent", "This is far too long to be a join code."),
    QT_TRANSLATE_NOOP("Agent", "The join code is mistyped: its check character does not match."),
    QT_TRANSLATE_NOOP("Agent", "The join code is mistyped."),
    QT_TRANSLATE_NOOP("Agent", "A join code begins with {prefix}-, and this does not."),
    QT_TRANSLATE_NOOP("Agent", "A join code never contains {letter}."),
    QT_TRANSLATE_NOOP(
        "Agent", "The join code has {found} characters after {prefix}-, but {needed} are needed."
    ),
    QT_TRANSLATE_NOOP("Agent", "The admin declined to let this PC into the fleet."),
    QT_TRANSLATE_NOOP("Agent", "Ask the admin for another join code."),
    QT_TRANSLATE_NOOP(
        "Agent", "The hub that answered belongs to another fleet than the join code."
    ),
    QT_TRANSLATE_NOOP(
        "Agent", "Check the hub's address, or ask the admin for a code of that fleet."
    ),
    QT_TRANSLATE_NOOP("Agent", "'{text}' is not an address of the form host:port."),
    QT_TRANSLATE_NOOP(
        "Agent", "Give the coordinator's address with its control port, e.g. 192.0.2.7:8485."
    ),
    QT_TRANSLATE_NOOP("Agent", "A fleet's name has 1 to 64 printable characters."),
    QT_TRANSLATE_NOOP("Agent", "This PC already belongs to the fleet '{fleet}'."),
    QT_TRANSLATE_NOOP("Agent", "Leave it first with 'fleetapp fleet leave'."),
    QT_TRANSLATE_NOOP("Agent", "This PC is not the coordinator of its fleet."),
    QT_TRANSLATE_NOOP("Agent", "Do this on the coordinator."),
    QT_TRANSLATE_NOOP("Agent", "Pausing is switched off by {where}."),
    QT_TRANSLATE_NOOP("Agent", "The setting {name} is managed by {where} and cannot be changed."),
    QT_TRANSLATE_NOOP("Agent", "Port {port} on {host} is used by another program."),
    QT_TRANSLATE_NOOP(
        "Agent",
        "Stop that program, or choose another port with the setting {setting} "
        "(0 takes any free one).",
    ),
    # answering: fleetapp/hub, fleetapp/api
    QT_TRANSLATE_NOOP("Agent", "No model is being served."),
    QT_TRANSLATE_NOOP("Agent", "Start one with 'fleetapp serve MODEL' on the coordinator."),
    QT_TRANSLATE_NOOP("Agent", "There is no model '{model}' here."),
    QT_TRANSLATE_NOOP("Agent", "The coordinator is shutting down."),
    QT_TRANSLATE_NOOP("Agent", "Ask again when it is back, or another PC coordinates."),
    QT_TRANSLATE_NOOP("Agent", "This PC belongs to no fleet, so nothing can answer."),
    QT_TRANSLATE_NOOP("Agent", "Check that it runs; this PC reconnects by itself."),
    QT_TRANSLATE_NOOP("Agent", "{count} requests are waiting already."),
    QT_TRANSLATE_NOOP("Agent", "Try again later, or add PCs to the fleet."),
    QT_TRANSLATE_NOOP("Agent", "The shard did not load in time and was stopped."),
    QT_TRANSLATE_NOOP("Agent", "{name} left the fleet while it held a stage."),
    QT_TRANSLATE_NOOP("Agent", "{name} stopped contributing."),
    QT_TRANSLATE_NOOP("Agent", "See with 'fleetapp fleet' which PCs are there, and ask again."),
    QT_TRANSLATE_NOOP("Agent", "The coordinator has gone while it was answering."),
    QT_TRANSLATE_NOOP("Agent", "Ask again; this PC reconnects by itself."),
    QT_TRANSLATE_NOOP(
        "Agent", "{what} needs {needed} on the disk of {path}, which has {free} free."
    ),
    QT_TRANSLATE_NOOP("Agent", "Try again in a moment."),
)

REMEDIES: tuple[str, ...] = (
    # what a class of error says by itself: fleetapp/errors.py
    QT_TRANSLATE_NOOP("Agent", "Shorten the prompt or start a new conversation."),
    QT_TRANSLATE_NOOP("Agent", "Send JSON with the header 'Content-Type: application/json'."),
    QT_TRANSLATE_NOOP(
        "Agent", "Send the header 'Authorization: Bearer <key>' with a key of this fleet."
    ),
    QT_TRANSLATE_NOOP("Agent", "Ask the administrator if it has to change."),
    QT_TRANSLATE_NOOP("Agent", "Give a GGUF file or a folder that holds openvino_model.xml."),
    QT_TRANSLATE_NOOP("Agent", "Get the file again; nothing was imported."),
    QT_TRANSLATE_NOOP(
        "Agent", "Free some space or choose another folder; what was fetched so far is kept."
    ),
    QT_TRANSLATE_NOOP(
        "Agent", "Choose a folder that can be written with --state or FLEETAPP_HOME."
    ),
    QT_TRANSLATE_NOOP("Agent", "Start it again; a download goes on where it stopped."),
    QT_TRANSLATE_NOOP("Agent", "The damaged part is dropped and fetched again."),
    QT_TRANSLATE_NOOP("Agent", "Check it character by character or ask the admin for a new one."),
    QT_TRANSLATE_NOOP("Agent", "Ask the admin for a new one."),
    QT_TRANSLATE_NOOP(
        "Agent", "Wait a minute, then try again with the code as the admin shows it."
    ),
    QT_TRANSLATE_NOOP("Agent", "Join the fleet with a join code first."),
    QT_TRANSLATE_NOOP("Agent", "Nothing to do: it is given an identity of its own."),
    QT_TRANSLATE_NOOP("Agent", "Update the older of the two."),
    QT_TRANSLATE_NOOP("Agent", "Ask again; the fleet repairs itself within seconds."),
    QT_TRANSLATE_NOOP("Agent", "Ask again; the runner is started anew."),
    QT_TRANSLATE_NOOP("Agent", "The fleet goes on without this PC; it comes back by itself."),
    QT_TRANSLATE_NOOP("Agent", "Start it with 'fleetapp agent', or try 'fleetapp demo'."),
)

SENTENCES: tuple[str, ...] = (*REASONS, *STATES, *PHASES, *ERRORS, *REMEDIES)

_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_BETWEEN = re.compile(r"(?<=[.!?]) (?=[A-Z'])")


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>.+?)", re.escape(sentence))), sentence)
        for sentence in sorted(SENTENCES, key=lambda s: s.count("{"))  # exact ones go first
    )


def said(text: str) -> str:
    """``text`` in the person's language as far as it is known, sentence by sentence."""
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
            translated = translate("Agent", template)
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
