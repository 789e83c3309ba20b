"""From a row of logits to a token. Pure: the same row, parameters and position, the same token.

Random numbers are counter-based (Philox, Salmon et al. 2011), keyed by (seed, position): what a
request draws does not depend on what it is batched with, nor on how often it was interrupted.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from fleetapp.errors import BadRequest, FleetError
from fleetapp.types import SamplingParams

Logits = npt.NDArray[np.float32]
Weights = npt.NDArray[np.float32]

_MASK64: Final = (1 << 64) - 1
_BLOCK: Final = 256
_COLDEST: Final = 1e-6
_LIGHTEST: Final = (1e-2, 1e-4, 0.0)


def sample(logits: Logits, params: SamplingParams, position: int) -> int:
    """Choose the token for a position.

    Args:
        logits: ``[vocab]``; minus infinity forbids a token.
        params: ``temperature == 0`` takes the best token, the lowest id among equals. Otherwise
            temperature, then top-k, then top-p (over what top-k left), then one draw.
        position: index the token will have in its sequence; the counter of the generator.

    Raises:
        FleetError: a logit is NaN, or none is finite: there is nothing to choose from.
        BadRequest: sampling without a seed.
    """
    best = int(logits.argmax())  # the first of equal maxima; a NaN wins over everything
    top = float(logits[best])
    if not np.isfinite(top):
        raise FleetError(
            f"The model computed no usable numbers for position {position} (best logit: {top}).",
            remedy="Ask again; if it comes back, use --precision exact.",
        )
    if params.temperature == 0.0 or params.top_k == 1:
        return best
    if params.seed is None:
        raise BadRequest("Sampling needs a seed.")
    ids = _top_k(logits, params.top_k)
    # Subtracting first: the heaviest weight is 1, whatever the temperature.
    kept = (logits if ids is None else logits[ids]) - np.float32(top)
    weights = np.exp(kept / np.float32(max(params.temperature, _COLDEST)))
    if params.top_p < 1.0:
        nucleus = _nucleus(weights, params.top_p)
        weights = weights[nucleus]
        ids = nucleus if ids is None else ids[nucleus]
    chosen = _draw(weights, uniform(params.seed, position))
    return chosen if ids is None else int(ids[chosen])


def uniform(seed: int, position: int, draw: int = 0) -> float:
    """The ``draw``-th number in [0, 1) that belongs to a position of a request."""
    key = np.array([seed & _MASK64, position & _MASK64], dtype=np.uint64)
    raw = np.random.Philox(key=key, counter=draw).random_raw()
    return float(int(raw) >> 11) * 2.0**-53


def _top_k(logits: Logits, k: int) -> npt.NDArray[np.intp] | None:
    """Ids of the k largest, ties by lowest id, ascending; None if everything is kept."""
    if k <= 0 or k >= logits.size:
        return None
    candidates = np.arange(logits.size)
    if k <= logits.size // _BLOCK:
        # At least k logits are no smaller than the k-th largest block maximum.
        maxima = np.maximum.reduceat(logits, np.arange(0, logits.size, _BLOCK))
        border = np.partition(maxima, maxima.size - k)[maxima.size - k]
        candidates = np.flatnonzero(logits >= border)
    order = np.argsort(-logits[candidates], kind="stable")[:k]
    return np.sort(candidates[order])


def _nucleus(weights: Weights, p: float) -> npt.NDArray[np.intp]:
    """Indices of the fewest heaviest weights whose sum reaches ``p`` of the whole, ascending.

    Holtzman et al. 2020. At least one; ties go to the lowest index.
    """
    needed = p * float(weights.sum(dtype=np.float64))
    for lightest in _LIGHTEST:  # the heaviest is 1; sorting all of a vocabulary costs milliseconds
        heavy = np.flatnonzero(weights >= lightest)
        order = np.argsort(-weights[heavy], kind="stable")
        mass = np.cumsum(weights[heavy[order]], dtype=np.float64)
        if mass[-1] >= needed:
            break
    count = int(np.searchsorted(mass, needed, side="left")) + 1
    return np.sort(heavy[order[:count]])


def _draw(weights: Weights, u: float) -> int:
    """The index that ``u`` in [0, 1) falls on when the weights are laid end to end."""
    whole = weights.size - weights.size % _BLOCK
    sums = weights[:whole].reshape(-1, _BLOCK).sum(axis=1, dtype=np.float64)
    blocks = np.cumsum(np.append(sums, weights[whole:].sum(dtype=np.float64)))
    block, target = _fall(blocks, u * float(blocks[-1]))
    start = block * _BLOCK
    within = np.cumsum(weights[start : start + _BLOCK], dtype=np.float64)
    return start + _fall(within, target)[0]


def _fall(cumulative: npt.NDArray[np.float64], target: float) -> tuple[int, float]:
    """First index whose cumulative weight is over the target, and what is left of the target.

    A target that rounding pushed to the end falls on the last index that has any weight.
    """
    target = min(target, float(np.nextafter(cumulative[-1], 0.0)))
    index = int(np.searchsorted(cumulative, target, side="right"))
    return index, target - (float(cumulative[index - 1]) if index else 0.0)
