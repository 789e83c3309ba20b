"""Names that tests of the command line share."""

from collections.abc import Callable

TOKEN = "token-of-the-agent-under-test"

Run = Callable[..., tuple[int, str, str]]
"""A command line in this process: (exit code, stdout, stderr)."""
