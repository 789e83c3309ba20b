"""What a child process has started in turn, so that nothing of it stays behind."""

from __future__ import annotations

import contextlib

import psutil


class Descendants:
    """The processes below one that runs, as they are now. Methods block.

    Args:
        pid: of that process, which is not one of them: its parent has to wait for it.
    """

    def __init__(self, pid: int) -> None:
        self._processes: list[psutil.Process] = []
        with contextlib.suppress(psutil.Error):  # it has ended already
            self._processes = psutil.Process(pid).children(recursive=True)

    def end(self, grace: float) -> None:
        """Wait so many seconds until they have ended by themselves, then kill those that have not.

        A process that got one of their ids since then is left alone.
        """
        _, left = psutil.wait_procs(self._processes, timeout=grace)
        for process in left:
            with contextlib.suppress(psutil.Error):
                process.kill()
        psutil.wait_procs(left, timeout=grace)
