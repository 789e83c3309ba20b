"""The child process that runs native code on model files: ``python -m fleetapp.models.worker``.

Reads one request line from stdin, writes progress lines and one result or error line to stdout,
and ends when stdin closes, so that it never outlives its parent.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from fleetapp.models.child import Line, Request, answer, emit, leave
from fleetapp.models.progress import Progress
from fleetapp.platform.stdio import end_with_parent, take_stdin
from fleetapp.types import LayerRange


def _progress(progress: Progress) -> None:
    emit(Line(progress=progress))


def _run(request: Request) -> object:
    # Imported here: loading OpenVINO takes a second, and a bad request should not wait for it.
    from fleetapp.models import convert, split, trial  # noqa: PLC0415

    source, target = Path(request.source), Path(request.target)
    if request.job == "convert":
        convert.gguf_to_ir(source, target, _progress)
        return None
    if request.job == "split":
        split.split(source, LayerRange(request.start, request.stop), target)
        return None
    if request.job == "examine":
        return trial.examine(source, target, _progress)
    msg = f"no such job: {request.job}"
    raise ValueError(msg)


def main() -> int:
    """Serve one request; return the exit code."""
    source = take_stdin()
    request = msgspec.json.decode(source.readline(), type=Request)
    end_with_parent(source)
    return answer(lambda: _run(request))


if __name__ == "__main__":
    leave(main())
