"""What the chat says, in words. Pure but for translation and the locale."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QDateTime, QLocale

from ui.chat.answer import Answer
from ui.chat.safe_text import one_line
from ui.chat.values import Message, Pause, Served, Status
from ui.counts import counts

translate = QCoreApplication.translate


def served_line(served: Served) -> str:
    """Speed and who answered, as far as known."""
    number = QLocale()
    parts = []
    if served.tokens_per_second:
        parts.append(
            translate("Chat", "{n} tokens/s").format(
                n=number.toString(served.tokens_per_second, "f", 1)
            )
        )
    if served.first_token is not None:
        parts.append(
            translate("Chat", "first token after {s} s").format(
                s=number.toString(served.first_token, "f", 2)
            )
        )
    if served.completion_tokens is not None:
        parts.append(counts.tokens(served.completion_tokens))
    if served.devices:
        parts.append(
            translate("Chat", "served by {pcs}").format(
                pcs=", ".join(one_line(name) for name in served.devices)
            )
        )
    return " · ".join(parts)


def pause_line(pause: Pause) -> str:
    """What is known about a pause, and no more."""
    seconds = QLocale().toString(pause.seconds, "f", 1)
    if pause.replaced:
        return translate("Chat", "The fleet replaced a PC; the answer went on after {s} s.").format(
            s=seconds
        )
    return translate("Chat", "The answer paused and went on after {s} s.").format(s=seconds)


def status_line(status: Status) -> str:
    """How an answer ended, where that needs saying."""
    return {
        "length": translate("Chat", "Cut at the chosen length, or because no more fits."),
        "stopped": translate("Chat", "Stopped."),
        "interrupted": translate("Chat", "fleetapp ended while this was being written."),
    }.get(status, "")


def progress_line(answer: Answer, paused: float) -> str:
    """What is happening now, while there is no text to show it."""
    if paused > 0:
        return translate("Chat", "The answer has paused; waiting for the fleet ({s} s).").format(
            s=round(paused)
        )
    match answer.phase:
        case "sent":
            return translate("Chat", "Sent to the fleet…")
        case "queued":
            return translate("Chat", "Waiting: number {n} in the queue.").format(n=answer.place)
        case "reading":
            return translate("Chat", "The fleet is reading…")
        case "answering":
            return translate("Chat", "Writing…")
        case "done":
            return ""


def author(message: Message) -> str:
    """Who says it."""
    if message.role == "user":
        return translate("Chat", "You")
    return one_line(message.model) or translate("Chat", "Assistant")


def moment(seconds: float) -> str:
    """Time today, date and time before."""
    when = QDateTime.fromSecsSinceEpoch(int(seconds))
    locale = QLocale()
    if when.date() == QDateTime.currentDateTime().date():
        return locale.toString(when.time(), QLocale.FormatType.ShortFormat)
    return locale.toString(when, QLocale.FormatType.ShortFormat)


def removal_warning(after: int) -> str:
    """What sending an edited question removes."""
    if after == 0:
        return translate("Chat", "Editing: sending replaces this question.")
    if after == 1:
        return translate("Chat", "Editing: sending replaces this question and removes its answer.")
    return counts.removed(after)
