import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from fleetapp.wire import activations, frames

hidden = arrays(
    np.float32, (3, 4), elements=st.floats(width=32, allow_nan=True, allow_infinity=True)
)


def step(dtype: frames.ActivationType) -> frames.Step:
    return frames.Step(0, 0, (frames.Segment(0, 0, 0, 3, True),), dtype, 4)


@given(hidden)
def test_f32_crosses_bit_for_bit_and_without_a_copy(x) -> None:
    sent = activations.narrow(x, "f32")
    assert sent is x
    back = activations.widen(step("f32"), memoryview(sent).cast("B"))
    assert back.tobytes() == x.tobytes()
    assert np.shares_memory(back, x)


@pytest.mark.parametrize("dtype", ["f16", "bf16"])
@given(x=hidden)
def test_what_was_rounded_once_is_not_rounded_again(dtype: frames.ActivationType, x) -> None:
    once = activations.widen(step(dtype), activations.narrow(x, dtype).tobytes())
    twice = activations.widen(step(dtype), activations.narrow(once, dtype).tobytes())
    assert once.shape == (3, 4)
    assert once.tobytes() == twice.tobytes()
    assert np.array_equal(np.isnan(once), np.isnan(x))


@given(hidden)
def test_bf16_rounds_to_nearest(x) -> None:
    sent = activations.narrow(x, "bf16")
    back = activations.widen(step("bf16"), sent.tobytes())
    finite = np.isfinite(x) & np.isfinite(back)
    error = np.abs(back[finite].astype(np.float64) - x[finite])
    tiny = 2.0**-133  # half the distance of subnormal bf16 numbers, and then some
    assert (error <= np.abs(x[finite].astype(np.float64)) * 2.0**-8 + tiny).all()


@given(hidden)
def test_cutting_what_is_bf16_already_is_rounding_it(x) -> None:
    once = activations.widen(step("bf16"), activations.narrow(x, "bf16").tobytes())
    assert activations.cut(once).tobytes() == activations.narrow(once, "bf16").tobytes()
    assert activations.cut(once[1:]).tobytes() == activations.narrow(once[1:], "bf16").tobytes()


def test_negative_zero_keeps_its_sign() -> None:
    x = np.full((3, 4), -0.0, np.float32)
    for dtype in ("f32", "f16", "bf16"):
        back = activations.widen(step(dtype), activations.narrow(x, dtype).tobytes())
        assert np.signbit(back).all()
