"""Takes out of a text what must not leave this PC: secrets that lie in the state folder, what looks
like one, and where the user's files are.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Self

from fleetapp import logs
from fleetapp.platform.paths import Paths

STRUCK = logs.STRUCK
_SHORTEST = 12
"""Characters; shorter lines of a secret file would strike out ordinary words."""
_LARGEST = 64 * 1024
_SECRET_FOLDERS = ("identity", "hub", "fleet")
_SECRET_NAMES = re.compile(r"key|secret|pass|code|token", re.IGNORECASE)
_LOOKS_SECRET = re.compile(r"[A-Za-z0-9+/=_-]{12,}")


class Redactor:
    """Applied to everything in a support bundle.

    Args:
        secrets: texts that are struck out wherever they stand.
        folders: path and what is written in its place, the deepest first.
    """

    def __init__(self, secrets: Iterable[str], folders: Iterable[tuple[str, str]]) -> None:
        found = sorted({s for s in secrets if len(s) >= _SHORTEST}, key=len, reverse=True)
        self._secrets = re.compile("|".join(map(re.escape, found))) if found else None
        self._folders = tuple(f for f in folders if len(f[0]) > 1)

    @classmethod
    def of(cls, paths: Paths) -> Self:
        """For the state folder of this user."""
        folders = [(str(paths.home), "<state>")]
        with contextlib.suppress(RuntimeError):
            folders.append((str(Path.home()), "~"))
        return cls(_secrets_in(paths), folders)

    def text(self, text: str) -> str:
        """What is left of it; at most a few thousand characters."""
        if self._secrets is not None:
            text = self._secrets.sub(STRUCK, text)
        for folder, name in self._folders:
            text = text.replace(folder, name)
            if os.sep == "\\":
                text = text.replace(folder.replace("\\", "\\\\"), name)
        return logs.strike(text)

    def value(self, value: Any, *, fields: bool = False) -> Any:
        """The same for every text in something of JSON.

        Args:
            value: of which kind ever.
            fields: strike out fields whose name says prompt, key and the like, as logs have them.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.value(v, fields=fields) for v in value]
        if isinstance(value, dict):
            return {
                self.text(str(k)): STRUCK
                if fields and logs.never_logged(str(k))
                else self.value(v, fields=fields)
                for k, v in value.items()
            }
        return value

    def line(self, line: str) -> str:
        """A line of a log, whichever program wrote it."""
        try:
            found = json.loads(line)
        except ValueError:
            return self.text(line)
        if not isinstance(found, dict):
            return self.text(line)
        return json.dumps(self.value(found, fields=True), ensure_ascii=False)


def _secrets_in(paths: Paths) -> set[str]:
    """Every line and every long text of the files that hold secrets."""
    files = [paths.api_token]
    for folder in _SECRET_FOLDERS:
        files += [f for f in (paths.home / folder).rglob("*") if _SECRET_NAMES.search(f.name)]
    found: set[str] = set()
    for file in files:
        try:
            if not file.is_file() or file.stat().st_size > _LARGEST:
                continue
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        lines = [line.strip() for line in text.splitlines()]
        found.update(line for line in lines if not line.startswith("-----"))
        found.update(_LOOKS_SECRET.findall(text))
    return found
