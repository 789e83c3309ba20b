"""From what the hub knows to what the planner takes."""

from __future__ import annotations

from typing import Final

from fleetapp.hub.planner.inputs import Model
from fleetapp.models.manifest import ModelManifest
from fleetapp.types import Precision

CACHE_BYTES: Final = {"exact": 4, "fast": 2}
"""Of one number in a cache, at most: f32; 16 bits, or 8 and scales, as the device likes."""
WIRE_BYTES: Final = {"exact": 4, "fast": 2}
"""Of one number between stages."""


def model_of(manifest: ModelManifest, precision: Precision, head_extra: int = 0) -> Model:
    """A model's bytes, by part.

    Args:
        manifest: of the library.
        precision: that it is served with.
        head_extra: bytes of a draft model that the head holds besides.
    """
    arch = manifest.architecture
    numbers = max(2 * h * d for h, d in zip(arch.kv_heads, arch.head_sizes, strict=True))
    return Model(
        model_id=manifest.model_id,
        layer_bytes=manifest.layer_bytes,
        embedding_bytes=manifest.embedding_bytes,
        head_bytes=manifest.head_bytes,
        kv_bytes=numbers * CACHE_BYTES[precision],
        hidden=arch.hidden_size,
        activation_bytes=WIRE_BYTES[precision],
        head_extra=head_extra,
    )
