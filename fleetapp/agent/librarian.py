"""The model library of this PC: what is there, what is being got, and what may be asked of it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from fleetapp.types import ModelJob, ModelsView


class ModelCalls(Protocol):
    """What the loopback API may ask. All raise FleetError and bound their own time."""

    async def view(self) -> ModelsView:
        """Library, catalogue and jobs now."""
        ...

    def events(self) -> AsyncIterator[ModelsView]:
        """The view now, and again on every change; closing the iterator ends it."""
        ...

    async def get(self, model: str, name: str, accept_licence: bool) -> ModelJob:
        """Begin to fetch a model of the catalogue, or ``hf:OWNER/REPO[@REVISION][/FILE.gguf]``."""
        ...

    async def import_path(self, path: str, name: str) -> ModelJob:
        """Begin to import a GGUF file or a folder with an OpenVINO IR."""
        ...

    async def verify(self, model: str) -> ModelJob:
        """Begin to hash a model and its stages again."""
        ...

    async def cancel(self, job: str) -> ModelJob:
        """End a job; returns when nothing of it runs any more."""
        ...

    async def remove(self, model: str) -> None:
        """Delete a model and every stage made of it; Busy while it is served or worked on."""
        ...
