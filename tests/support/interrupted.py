"""Functions that stop in the middle, and programs that are killed there."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["Counted", "Script"]


class Counted:
    """A function that counts its calls and may stop at one of them.

    It stops with numbers drawn that are not handed out.
    """

    def __init__(self, function: Callable[..., Any], stop: int | None = None) -> None:
        self.function, self.stop, self.calls = function, stop, 0

    def __call__(self, given: Any, rng: Any) -> Any:
        """Call the function."""
        self.calls += 1
        drawn = self.function(given, rng)
        if self.calls == self.stop:
            raise KeyboardInterrupt
        return drawn


class Script:
    """A program that keeps a checkpoint and prints JSON.

    Its last two arguments are the place of the checkpoint and how long it pauses.
    """

    def __init__(self, folder: Path, text: str, *arguments: str) -> None:
        self.file = folder / "job.py"
        self.file.write_text(text)
        self.arguments = arguments

    def kill(
        self, checkpoint: Path, reached: Callable[[], Any], *, pause: float
    ) -> None:
        """Start it and kill it where it has reached something."""
        process, deadline = self._start(checkpoint, pause), time.monotonic() + 60
        while not reached() and time.monotonic() < deadline:
            time.sleep(0.01)
        process.kill()
        process.communicate()
        assert process.returncode == -signal.SIGKILL

    def finish(self, checkpoint: Path) -> Any:
        """Run it without a pause to its end and return what it printed."""
        printed, _ = self._start(checkpoint, 0).communicate(timeout=60)
        return json.loads(printed)

    def _start(self, checkpoint: Path, pause: float) -> subprocess.Popen[str]:
        own = [*self.arguments, str(checkpoint), str(pause)]
        command = [sys.executable, str(self.file), *own]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
