"""Talking to a program with limits on its time and on what it writes.

A program that is slow gets smaller batches, so that its time limit is about single runs
and not about how many of them were asked for at once.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from typing import IO

from undertow.errors import AuditError

__all__ = ["MOST", "OutOfTimeError", "Pace", "exchange"]

MOST = 1 << 28
"""Most bytes that are read from a program in one batch."""

_PIECE = 1 << 16
# What is kept of the error output: its end.
_TAIL = 1 << 14
# Seconds for the threads to end after the program has.
_GRACE = 1.0
# A part of a batch takes about so many seconds, or this share of the time limit; it has
# at most so many times the runs of the one before.
_PART, _SHARE, _GROWTH = 2.0, 0.25, 8


def exchange(
    process: subprocess.Popen[bytes], text: bytes, *, time_limit: float
) -> tuple[bytes, bytes]:
    """Write to a program and return what it wrote; end its group if a limit is passed.

    Parameters
    ----------
    process : subprocess.Popen
        With three pipes, the leader of a session of its own.
    text : bytes
        For its standard input.
    time_limit : float
        Seconds until both of its outputs are closed and it has ended.

    Returns
    -------
    tuple of bytes
        Its output, and the end of its error output.

    Raises
    ------
    subprocess.TimeoutExpired
        If it takes longer.
    OverflowError
        If it writes more than `MOST` bytes.
    """
    end = time.monotonic() + time_limit
    out = _Drain(process.stdout, process, most=MOST)
    err = _Drain(process.stderr, process, most=None)
    writer = threading.Thread(target=_write, args=(process.stdin, text), daemon=True)
    threads = (out, err, writer)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(0.0, end - time.monotonic()))
            if thread.is_alive():
                raise subprocess.TimeoutExpired(process.args, time_limit)
        process.wait(max(0.0, end - time.monotonic()) + 1e-3)
    except BaseException:
        _end(process)
        raise
    finally:
        _close(process, threads)
    if out.passed:
        raise OverflowError
    return b"".join(out.pieces), b"".join(err.pieces)[-_TAIL:]


class OutOfTimeError(AuditError):
    """A program was ended by the time limit; the runs before that count."""


class Pace:
    """How many runs a program is given at once, by how long it took before.

    Parameters
    ----------
    time_limit : float
        Seconds after which the program is ended.
    most : int
        Most runs at once.

    Examples
    --------
    >>> pace = Pace(60.0, 10_000)
    >>> sizes = [pace.size]
    >>> for _ in range(3):
    ...     pace.took(pace.size, 0.03 + 0.01 * pace.size)
    ...     sizes.append(pace.size)
    >>> sizes
    [1, 8, 64, 191]
    """

    def __init__(self, time_limit: float, most: int) -> None:
        self.size, self.most = 1, most
        self._goal = min(_PART, _SHARE * time_limit)

    def took(self, runs: int, seconds: float) -> None:
        """Adapt to the seconds that so many runs took."""
        fits = int(self._goal * runs / max(seconds, 1e-9))
        if runs == self.size or fits < runs:
            self.size = max(1, min(fits, _GROWTH * runs, self.most))


class _Drain(threading.Thread):
    """Reads a pipe to its end; keeps the beginning or, without a limit, the end."""

    def __init__(
        self,
        pipe: IO[bytes] | None,
        process: subprocess.Popen[bytes],
        *,
        most: int | None,
    ) -> None:
        super().__init__(daemon=True)
        self.pipe, self.process, self.most = pipe, process, most
        self.pieces: list[bytes] = []
        self.passed = False

    def run(self) -> None:
        """Read until the program closes the pipe or passes the limit."""
        assert self.pipe is not None
        held = 0
        while piece := os.read(self.pipe.fileno(), _PIECE):
            self.pieces.append(piece)
            held += len(piece)
            if self.most is None:
                while held - len(self.pieces[0]) >= _TAIL:
                    held -= len(self.pieces.pop(0))
            elif held > self.most:
                self.passed = True
                self.pieces.clear()
                _kill(self.process)
                return


def _write(pipe: IO[bytes], text: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # it reads no further
        pipe.write(text)
        pipe.close()


def _end(process: subprocess.Popen[bytes]) -> None:
    _kill(process)
    process.wait()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End the process group that was started here, and nothing else."""
    with contextlib.suppress(ProcessLookupError):  # it ended by itself
        os.killpg(process.pid, signal.SIGKILL)


def _close(
    process: subprocess.Popen[bytes], threads: tuple[threading.Thread, ...]
) -> None:
    """Close the pipes if nothing reads or writes them any more."""
    for thread in threads:
        if thread.ident is not None:  # it was started
            thread.join(_GRACE)
    if any(thread.is_alive() for thread in threads):
        return  # a stranger outside of the group holds a pipe open
    for pipe in (process.stdin, process.stdout, process.stderr):
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):
            pipe.close()
