"""``python -m fleetapp.models.leash MODULE ARGUMENTS…``: runs a module, and ends when stdin closes.

For programs of others that do not look after that themselves, pip for example: however its parent
ends, nothing goes on behind the user's back.
"""

from __future__ import annotations

import os
import runpy
import sys
import traceback

from fleetapp.platform.stdio import end_with_parent, take_stdin


def main() -> int:
    """Run the module; return its exit code."""
    end_with_parent(take_stdin())
    module, sys.argv = sys.argv[1], sys.argv[1:]
    try:
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)  # noqa: T201 - what the interpreter does with it
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except Exception:  # noqa: BLE001 - the boundary of a process: the parent reads stderr
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # not sys.exit: the reader thread holds stdin's lock
