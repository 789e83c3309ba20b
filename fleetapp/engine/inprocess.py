"""All stages of a model in one process, without links: the yardstick for the ring, and for tests.

Frames go from stage to stage as they would over the wire, but as arrays in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from fleetapp.engine.executor.base import Executor
from fleetapp.engine.sampling import Context, NoGrammars, verify
from fleetapp.engine.worker import Grammars
from fleetapp.errors import BadRequest
from fleetapp.types import SamplingParams
from fleetapp.wire.frames import Segment


@dataclass
class Generated:
    """What one request got.

    Attributes:
        tokens: generated ids, end-of-sequence included if it came.
        times: when each was known, ``time.perf_counter`` seconds.
    """

    tokens: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Prompt:
    """One request of a batch."""

    token_ids: Sequence[int]
    sampling: SamplingParams = field(default_factory=SamplingParams)


class InProcessPipeline:
    """Runs executors one after the other.

    Args:
        executors: stages in order, the first with embeddings, the last with the LM head.
        eos_ids: every id that ends a sequence.
        prefill_chunk: most tokens of one prompt in one frame.
        grammars: makes matchers for prompts that bring a grammar.
    """

    def __init__(
        self,
        executors: Sequence[Executor],
        *,
        eos_ids: Sequence[int] = (),
        prefill_chunk: int = 512,
        grammars: Grammars | None = None,
    ) -> None:
        self.executors = tuple(executors)
        self._eos = frozenset(eos_ids)
        self._chunk = prefill_chunk
        self._grammars = grammars
        self._generation = 0
        if not (executors and executors[0].info.first and executors[-1].info.last):
            raise BadRequest("A pipeline begins with the embeddings and ends with the LM head.")

    def generate(
        self,
        token_ids: Sequence[int],
        max_tokens: int,
        sampling: SamplingParams | None = None,
        *,
        ignore_eos: bool = False,
    ) -> Generated:
        """Prefill, then decode until ``max_tokens`` or an end-of-sequence id."""
        prompt = Prompt(token_ids, sampling or SamplingParams())
        return self.generate_batch([prompt], max_tokens, ignore_eos=ignore_eos)[0]

    def generate_batch(
        self,
        prompts: Sequence[Prompt],
        max_tokens: int,
        *,
        ignore_eos: bool = False,
        on_token: Callable[[int, int], None] | None = None,
    ) -> list[Generated]:
        """Decode all prompts in one running batch; a request that ends leaves it.

        Args:
            prompts: one slot each, prefilled one after the other while the earlier ones decode.
            max_tokens: per request.
            ignore_eos: go on after an end-of-sequence id.
            on_token: told (index of the prompt, token).

        Raises:
            BadRequest: an empty prompt.
            FleetError: as the executors raise.
        """
        if any(not p.token_ids for p in prompts):
            raise BadRequest("A prompt has no tokens.")
        self._generation += 1
        running = [
            _Sequence(slot, self._generation, p, self._context(p)) for slot, p in enumerate(prompts)
        ]
        results = [s.result for s in running]
        for executor in self.executors:
            for sequence in running:
                executor.open(sequence.slot, sequence.generation)
        try:
            while running:
                segments, inputs, asked = self._frame(running)
                logits = self.forward(segments, inputs)
                for sequence, row in zip(asked, logits, strict=True):
                    token = verify(row[None], (), sequence.context, sequence.length)[0].token
                    sequence.accept(token)
                    if on_token is not None:
                        on_token(sequence.slot, token)
                    ended = token in self._eos and not ignore_eos
                    if ended or len(sequence.result.tokens) >= max_tokens:
                        running.remove(sequence)
                        self._close(sequence)
        finally:
            for sequence in running:
                self._close(sequence)
        return results

    def _context(self, prompt: Prompt) -> Context:
        grammar = prompt.sampling.grammar
        matcher = None
        if grammar is not None:
            matcher = NoGrammars() if self._grammars is None else self._grammars(grammar)
        return Context(prompt.sampling, tuple(prompt.token_ids), 0, matcher)

    def forward(
        self, segments: tuple[Segment, ...], inputs: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.float32]:
        """One frame through all stages; see ``Executor.forward``."""
        executors = self.executors
        hidden = executors[0].forward(segments, inputs)
        for executor in executors[1:]:
            hidden = executor.forward(segments, hidden)
        return hidden

    def _frame(
        self, running: list[_Sequence]
    ) -> tuple[tuple[Segment, ...], npt.NDArray[np.int64], list[_Sequence]]:
        """Every decode, and one chunk of the first prompt that is not prefilled yet."""
        segments: list[Segment] = []
        inputs: list[int] = []
        asked: list[_Sequence] = []
        prefilling = False
        for sequence in running:
            if sequence.remaining > 1:
                if prefilling:
                    continue
                prefilling = True
            new = sequence.take(self._chunk)
            whole = sequence.remaining == 0
            past = sequence.length - len(new)
            segments.append(Segment(sequence.slot, sequence.generation, past, len(new), whole))
            inputs.extend(new)
            if whole:
                asked.append(sequence)
        return tuple(segments), np.array(inputs, np.int64), asked

    def _close(self, sequence: _Sequence) -> None:
        for executor in self.executors:
            executor.close(sequence.slot, sequence.generation)


class _Sequence:
    """Tokens not computed yet, and how many are."""

    def __init__(self, slot: int, generation: int, prompt: Prompt, context: Context) -> None:
        self.slot = slot
        self.generation = generation
        self.prompt = prompt
        self.context = context
        self.result = Generated()
        self.length = 0
        self._next = list(prompt.token_ids)

    @property
    def remaining(self) -> int:
        return len(self._next)

    def take(self, most: int) -> list[int]:
        new, self._next = self._next[:most], self._next[most:]
        self.length += len(new)
        return new

    def accept(self, token: int) -> None:
        self.result.tokens.append(token)
        self.result.times.append(time.perf_counter())
        self._next = [token]
