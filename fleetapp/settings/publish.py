"""Writes what is made from the schema: ``python -m fleetapp.settings.publish [FOLDER]``.

FOLDER is a checkout; the current folder if left out.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from fleetapp.settings.templates import CULTURES, adml, admx, table

BEGIN, END = "<!-- settings: made by python -m fleetapp.settings.publish -->", "<!-- end -->"
PAGE = "docs/settings.md"


def published(root: Path) -> Mapping[Path, bytes]:
    """Every file below a checkout, with the content that it should have.

    Windows' own tools write templates with a byte order mark and its line ends, and so do these.
    """
    folder = root / "resources" / "policy"
    texts = {folder / "fleetapp.admx": admx()}
    texts |= {
        folder / culture / "fleetapp.adml": adml(language) for culture, language in CULTURES.items()
    }
    files = {path: text.replace("\n", "\r\n").encode("utf-8-sig") for path, text in texts.items()}
    page = root / PAGE
    before, _, rest = page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    files[page] = f"{before}{BEGIN}\n\n{table()}{END}{after}".encode()
    return files


def main() -> None:
    """Write them."""
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path.cwd()
    for path, content in published(root).items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


if __name__ == "__main__":
    main()
