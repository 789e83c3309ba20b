"""``fleetapp-tray --gallery DIR``: every screen in every state as a picture, without an agent."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

SCHEMES = ("light", "dark", "contrast")


def main(argv: Sequence[str]) -> int:
    """Draw the pictures; the exit code is 1 if something is wrong with them."""
    options = _parser().parse_args(argv)
    # Qt looks at these when it starts
    screen = _screen(options.gallery, options.scale)
    os.environ["QT_QPA_PLATFORM"] = f"offscreen:configfile={screen}"
    os.environ["QT_SCALE_FACTOR"] = str(options.scale)
    os.environ["TZ"] = "UTC"
    if hasattr(time, "tzset"):
        time.tzset()
    from ui.gallery.draw import Gallery  # noqa: PLC0415

    wanted = options.only.split(",") if options.only else []
    gallery = Gallery(options.language, reverse=options.reverse)
    found = [
        line
        for scheme in options.scheme.split(",")
        for line in gallery.show(options.gallery, scheme, wanted, check=options.check)
    ]
    gallery.close()
    screen.unlink()
    for line in sorted(set(found)):
        print(line)  # noqa: T201
    if found:
        return 1
    if not gallery.shown:
        print("There is no such scene.", file=sys.stderr)  # noqa: T201
        return 2
    if not options.check:
        print(f"{gallery.shown} pictures are in {options.gallery}.")  # noqa: T201
    return 0


def _screen(folder: Path, scale: float) -> Path:
    """Describe a screen that has the same room at every scale: 1920 x 1080 of Qt's pixels."""
    screen = {
        "name": "gallery",
        "x": 0,
        "y": 0,
        "width": round(1920 * scale),
        "height": round(1080 * scale),
        "logicalDpi": 96,
        "logicalBaseDpi": 96,
        "dpr": 1,
    }
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "screen.json"
    file.write_text(json.dumps({"screens": [screen]}), encoding="ascii")
    return file


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fleetapp-tray", description=__doc__)
    parser.add_argument("--gallery", type=Path, metavar="DIR", required=True)
    parser.add_argument("--scale", type=float, default=1.0, help="1 to 4; 2 is 200%%")
    parser.add_argument("--language", choices=("en", "de"), default="en")
    parser.add_argument(
        "--scheme", default=",".join(SCHEMES), help="some of light,dark,contrast; all by default"
    )
    parser.add_argument("--only", default="", metavar="NAMES", help="such as chat-answer,pc")
    parser.add_argument("--reverse", action="store_true", help="from right to left")
    parser.add_argument(
        "--check", action="store_true", help="instead, list clipped texts, overlaps, doubled keys"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
