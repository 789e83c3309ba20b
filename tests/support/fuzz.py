"""A small fuzzer that keeps inputs which reach new code, and mutates those further.

The loop is that of AFL (Zalewski, "Technical whitepaper for afl-fuzz"), with Python's own line
tracing as its eyes. It sees Python code only: what a C decoder does inside shows by what comes out.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

MAX_INPUT = 4096
SLOW = 2.0
"""Seconds for one input after which it counts as a failure: a peer could hold us up."""
INTERESTING = (b"\0", b"\xff", b"\x7f", b"\x80", b"0", b"-1", b"null", b"true", b"{}", b"[]",
               b"9" * 30, b"1e999", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\xed\xa0\x80", b"[" * 60,
               b'{"a":' * 60, b"\xe2\x80\xae", b"\r\n", b"\n", b"=", b"../",
               b'\\ud800')  # fmt: skip


@dataclass
class Outcome:
    """What a run has done."""

    runs: int = 0
    kept: list[bytes] = field(default_factory=list)
    edges: int = 0
    accepted: int = 0
    """Runs in which nothing was raised."""


class Failed(AssertionError):
    """An input for which the target raised what it must not, or took too long."""


def fuzz(
    target: Callable[[bytes], object],
    seeds: Sequence[bytes],
    allowed: tuple[type[BaseException], ...],
    seconds: float,
    words: Sequence[bytes] = (),
    seed: int = 0,
) -> Outcome:
    """Run ``target`` on ever new inputs.

    Args:
        target: is given an input; may raise ``allowed`` and nothing else.
        seeds: good inputs to begin with.
        allowed: what says that an input is bad.
        seconds: how long; at least every seed is run.
        words: pieces of the input's language, to be put in.
        seed: of the random numbers.

    Raises:
        Failed: with the input, to be made a test of its own.
    """
    rng, outcome, seen = random.Random(seed), Outcome(), _Seen()
    end = time.monotonic() + seconds
    pending = list(seeds)
    while pending or time.monotonic() < end:
        data = pending.pop() if pending else _mutate(rng, outcome.kept, (*INTERESTING, *words))
        fresh, accepted = seen.run(target, data, allowed)
        outcome.runs += 1
        outcome.accepted += accepted
        if fresh or len(outcome.kept) < len(seeds):
            outcome.kept.append(data)
    outcome.edges = len(seen.edges)
    return outcome


class _Seen:
    """Pairs of lines that were executed one after the other, in our own code."""

    def __init__(self) -> None:
        self.edges: set[tuple[CodeType, int, int]] = set()
        self._fresh = False
        self._last: dict[FrameType, int] = {}

    def run(
        self, target: Callable[[bytes], object], data: bytes, allowed: tuple[type, ...]
    ) -> tuple[bool, bool]:
        """(whether it reached something new, whether it was accepted)."""
        self._fresh, accepted = False, True
        before, started = sys.gettrace(), time.monotonic()
        sys.settrace(self._enter)
        try:
            target(data)
        except allowed:
            accepted = False
        except Exception as exc:
            sys.settrace(before)
            raise Failed(f"{type(exc).__name__}: {exc} for the input {data!r}") from exc
        finally:
            sys.settrace(before)
            self._last.clear()
        if time.monotonic() - started > SLOW:
            raise Failed(f"{time.monotonic() - started:.1f} s for the input {data!r}")
        return self._fresh, accepted

    def _enter(self, frame: FrameType, _event: str, _arg: object) -> Any:
        return self._line if "fleetapp" in frame.f_code.co_filename else None

    def _line(self, frame: FrameType, event: str, _arg: object) -> Any:
        if event == "line":
            edge = (frame.f_code, self._last.get(frame, 0), frame.f_lineno)
            self._last[frame] = frame.f_lineno
            if edge not in self.edges:
                self.edges.add(edge)
                self._fresh = True
        return self._line


def _mutate(rng: random.Random, corpus: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """One to six changes to an input that was worth keeping; newer ones are taken more often."""
    data = bytearray(corpus[max(rng.randrange(len(corpus)), rng.randrange(len(corpus)))])
    for _ in range(rng.randint(1, 6)):
        at, upto = sorted((rng.randint(0, len(data)), rng.randint(0, len(data))))
        match rng.randrange(7):
            case 0 if data:
                data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            case 1 if data:
                data[rng.randrange(len(data))] = rng.randrange(256)
            case 2:
                data[at:at] = rng.choice(words)
            case 3:
                del data[at : min(upto, at + 64)]
            case 4:
                data[at:at] = data[at:upto][:256]
            case 5:
                other = rng.choice(corpus)
                cut = rng.randint(0, len(other))
                data[at:upto] = other[cut : cut + rng.randint(0, 128)]
            case _:
                data[at:upto] = rng.choice(words)
    return bytes(data[:MAX_INPUT])
