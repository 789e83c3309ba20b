"""What hashing a model again has found."""

from __future__ import annotations

from dataclasses import dataclass

from fleetapp.errors import CorruptModel


@dataclass(frozen=True, slots=True)
class Report:
    """What ``verify`` found; empty tuples mean that all is well."""

    model_id: str
    damaged: tuple[str, ...]
    """Files of the imported model: it must be imported again."""
    stages: int
    dropped_stages: tuple[str, ...]
    """Layers of damaged stages; they are removed and made again when needed."""
    max_difference: float | None = None
    """Of logits between the whole and its halves, if that was asked for."""

    @property
    def ok(self) -> bool:
        """Nothing is damaged."""
        return not self.damaged and not self.dropped_stages

    def require_intact(self) -> None:
        """Raise CorruptModel if files of the model are damaged."""
        if self.damaged:
            raise CorruptModel(
                f"{len(self.damaged)} files of '{self.model_id}' are damaged: "
                f"{', '.join(self.damaged)}.",
                remedy=f"Run 'fleetapp model remove {self.model_id}' and get it again.",
            )

    def __str__(self) -> str:
        if self.damaged:
            return f"{self.model_id} is damaged."
        text = f"{self.model_id} is intact, {self.stages} stages checked."
        if self.dropped_stages:
            text += f" Damaged and dropped: layers {', '.join(self.dropped_stages)}."
        if self.max_difference is not None:
            text += f" Whole and halves differ by {self.max_difference:.2g} in their logits."
        return text
