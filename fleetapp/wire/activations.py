"""Hidden states as they cross a link: views, and the 16-bit types of ``fast``."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fleetapp.wire.frames import Activations, ActivationType, Step

Payload = bytes | bytearray | memoryview

_NUMPY: dict[ActivationType, npt.DTypeLike] = {"f32": "<f4", "f16": "<f2", "bf16": "<u2"}
_QUIET_NAN = np.uint32(0x00400000)


def view(step: Step, payload: Payload) -> Activations:
    """The payload of a step as ``[tokens, hidden]`` in the step's own type, without a copy.

    bfloat16 has no numpy type and comes as its bits in uint16.
    """
    array: Activations = np.frombuffer(payload, dtype=_NUMPY[step.dtype])
    return array.reshape(step.tokens, step.hidden)


def narrow(hidden: npt.NDArray[np.float32], dtype: ActivationType) -> Activations:
    """Round hidden states once for a boundary, to nearest even; ``f32`` is passed on untouched.

    NaN stays NaN, values too large for f16 become infinite as IEEE 754 says.
    """
    if dtype == "f32":
        return hidden
    if dtype == "f16":
        with np.errstate(over="ignore"):
            return hidden.astype(np.float16)
    bits = np.ascontiguousarray(hidden).view(np.uint32)
    rounded = bits + (np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1)))
    # Adding to a NaN's bits could carry it into infinity: keep its top half and make it quiet.
    nan = (bits & np.uint32(0x7FFFFFFF)) > np.uint32(0x7F800000)
    return (np.where(nan, bits | _QUIET_NAN, rounded) >> np.uint32(16)).astype(np.uint16)


def cut(hidden: npt.NDArray[np.float32]) -> Activations:
    """The bfloat16 of values that are one of it already: a view of their upper halves.

    A step of a few tokens is over before rounding has begun: it takes six passes over the values.
    """
    return np.ascontiguousarray(hidden, "<f4").view("<u2")[..., 1::2]


def widen(step: Step, payload: Payload) -> npt.NDArray[np.float32]:
    """Hidden states ``[tokens, hidden]`` in f32; a view of the payload if it is f32 already."""
    return widened(view(step, payload), step.dtype)


def widened(array: Activations, dtype: ActivationType) -> npt.NDArray[np.float32]:
    """Any of the three types in f32, which holds all their values; f32 itself is not copied."""
    if dtype == "bf16":
        whole = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), "<u2")
        whole[..., 1::2] = array
        return whole.view("<f4")
    return array.astype(np.float32, copy=False)
