"""A registry that is a dictionary: (root, key, name) -> value."""

from __future__ import annotations

from fleetapp.platform.windows_startup import Root


class FakeRegistry:
    """Implements ``fleetapp.platform.windows_startup.Registry``."""

    def __init__(self) -> None:
        self.values: dict[tuple[Root, str, str], object] = {}

    def get(self, root: Root, key: str, name: str) -> object:
        return self.values.get((root, key, name))

    def set(self, key: str, name: str, value: str | bytes) -> None:
        self.values["HKCU", key, name] = value

    def delete(self, key: str, name: str) -> None:
        self.values.pop(("HKCU", key, name), None)
