"""Standard input is read by us alone; whoever else looks finds the null device."""

from __future__ import annotations

import subprocess
import sys

CHILD = """
import os, sys
from fleetapp.platform.stdio import take_stdin
source = take_stdin()
print(source.readline(), os.read(0, 10), flush=True)
print(source.read(), flush=True)
"""


def test_the_pipe_is_ours_and_descriptor_0_is_nothing() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"one\n")
        child.stdin.flush()
        assert child.stdout.readline().strip() == b"b'one\\n' b''"
        child.stdin.close()  # its end is heard
        assert child.stdout.readline().strip() == b"b''"
        assert child.wait(30) == 0
