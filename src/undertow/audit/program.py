"""Any program as the subject of an audit: one JSON value per line, in and out."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NoReturn, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_index, check_positive
from undertow.audit._outcome import Raised, read_outcomes, read_outputs, shortened
from undertow.audit.record import Freshness
from undertow.audit.subject import read_inputs
from undertow.errors import AuditError

_BATCH = 10_000
# Runs by which the time of one is measured, and the share of the time limit that a
# batch may take by it.
_FEW, _SAFE = 16, 0.5


class ExitStatusError(AuditError):
    """A program ended with another exit status than 0."""


class CommandSubject:
    """A program that reads inputs and writes outputs, a JSON value on each line.

    Parameters
    ----------
    command : str or sequence of str
        The program and its arguments. A string is split as a shell would, but no shell
        is run: no pipes, variables or wildcards.
    inputs : sequence
        The inputs, every two of them neighbours; each must have a JSON form.
    time_limit : float, optional
        Seconds that one start of the program may take.
    seeded : bool, optional
        Whether the program draws all its randomness from ``UNDERTOW_SEED``.
    batch : int, optional
        Most runs that one start of the program makes. A slow program is given fewer,
        unless it is `seeded`.
    name, version : str, optional
        For the report; by default the name of the program.

    Raises
    ------
    AuditError
        From `sample`: if the program cannot be started, exits with an error, passes the
        time limit, or does not write one JSON value for each line it read; from
        `require_pace`, before any run, if a seeded program is too slow for its batches.

    Notes
    -----
    The program reads one line for each run and must answer each with one line; a list
    of numbers is a vector. It is given one run first, and then as many at once as take
    about two seconds, so that the time limit is about few runs. How runs fall into
    parts then depends on the clock: what is drawn from a seed of the part cannot be
    repeated, so the parts of a seeded program are always of `batch` runs. It runs in a
    process group of its own (Unix), and only that group is ended when time is up.
    ``UNDERTOW_SEED`` in its environment is a new number for each start, drawn from
    `rng` if it is seeded. A program that seeds itself with a constant, or with a clock
    that stands still between two starts, repeats itself, which ends an audit. Output
    beyond 256 MiB of one start ends it too.

    With a `batch` of 1, and where runs are timed, an exit status other than 0 and a run
    beyond the time limit are what that run ended in, an outcome as any other. Of more
    runs at once nobody knows which one it was, so there they end an audit.

    Examples
    --------
    >>> import sys
    >>> code = "import sys; sys.stdout.write(sys.stdin.read())"
    >>> echo = CommandSubject([sys.executable, "-c", code], [0, 1], name="echo")
    >>> echo.sample(1, 3, rng=np.random.default_rng(1))
    array([1, 1, 1])
    """

    forkable = True
    to_repeat = (
        "if it draws all its randomness from UNDERTOW_SEED, say so by seeded=True "
        "(--seeded on the command line)"
    )

    def __init__(
        self,
        command: str | Sequence[str],
        inputs: Sequence[Any],
        *,
        time_limit: float = 60.0,
        seeded: bool = False,
        batch: SupportsIndex = _BATCH,
        name: str | None = None,
        version: str = "",
    ) -> None:
        words = _split(command) if isinstance(command, str) else list(command)
        if not words or not all(isinstance(word, str) for word in words):
            raise ValueError(f"command must name a program, got {command!r}.")
        self.command = tuple(words)
        self.inputs = read_inputs(inputs)
        self.time_limit = check_positive(time_limit, "time_limit")
        self.seeded = bool(seeded)
        self.batch = check_count(batch, "batch")
        self.name = name or Path(words[0]).name
        self.version = version
        self._lines = tuple(_as_line(value) for value in self.inputs)
        self._pace = Pace(self.time_limit, self.batch)
        self._fresh = Freshness(self.name)

    @property
    def stated_batch(self) -> tuple[int, ...]:
        """The batch where it is another than the default; checkpoints depend on it."""
        return () if self.batch == _BATCH else (self.batch,)

    def sample(
        self, value: int, size: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Run the program on `size` lines of one input."""
        values = self._raw(value, size, rng)
        for number, told in enumerate(values, start=1):
            if not _is_output(told):
                self._fail(
                    "write a number, a string or a list of numbers, got another "
                    f"{type(told).__name__} on line {number}; write a string"
                )
        return read_outputs(values, size, name=self.name)

    def outcomes(
        self, value: int, size: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Run the program as `sample` does; any JSON value is an outcome."""
        alone = self.batch == 1
        made = self._raw(value, size, rng, alone=alone)
        return read_outcomes(made, size, name=self.name)

    def run_timed(
        self, order: Sequence[int], *, rng: np.random.Generator
    ) -> list[tuple[Any, int]]:
        """Run the inputs of these numbers one by one, each by a process of its own.

        Returns
        -------
        list of pairs
            What the program wrote, and the nanoseconds from its start to its end.
        """
        made = []
        for number in order:
            seed, start = self._seed(rng), time.perf_counter_ns()
            (ended,) = self._part(self._lines[number], 1, seed=seed, alone=True)
            made.append((ended, time.perf_counter_ns() - start))
        return made

    def require_pace(self, size: int) -> None:
        """Refuse batches of `size` runs that a seeded program cannot make in time.

        Other programs adapt. A few runs are made to measure, which enter no count.
        """
        most = min(size, self.batch)
        if not self.seeded or most <= 1:
            return
        rng, line, few = np.random.default_rng(0), self._lines[0], min(_FEW, most)

        def seconds(runs: int) -> float:
            start = time.monotonic()
            self._communicate(line * runs, seed=self._seed(rng))
            return time.monotonic() - start

        begun = seconds(1)
        if begun * most <= _SAFE * self.time_limit:
            return
        try:
            each = max(0.0, seconds(few) - begun) / (few - 1)
        except OutOfTimeError:
            each = self.time_limit / few
        if begun + each * most <= _SAFE * self.time_limit:
            return
        fits = max(1, int((_SAFE * self.time_limit - begun) / max(each, 1e-9)))
        fits = int(float(f"{fits:.0e}")) if fits >= 10 else fits
        self._fail(
            f"make {most} runs within {self.time_limit:g} s of each start, got about "
            f"{each:.2g} s for one; state a batch of {fits}, which a seed repeats as "
            "well, or a longer time_limit"
        )

    def _raw(
        self, value: int, size: int, rng: np.random.Generator, *, alone: bool = False
    ) -> list[Any]:
        number = check_index(value, "value", size=len(self.inputs))
        left = check_count(size, "size", minimum=0)
        values: list[Any] = []
        while left:
            now = min(left, self.batch if self.seeded else self._pace.size)
            start = time.monotonic()
            text = self._lines[number] * now
            part = self._part(text, now, seed=self._seed(rng), alone=alone)
            self._pace.took(now, time.monotonic() - start)
            if not self.seeded:  # parts of several sizes, which may repeat each other
                self._fresh.check(number, read_outcomes(part, now, name=self.name))
            values += part
            left -= now
        return values

    def _part(self, text: str, runs: int, *, seed: int, alone: bool) -> list[Any]:
        """Return what the runs of one start ended in; a run `alone` in it may fail."""
        try:
            return self._parse(self._communicate(text, seed=seed), runs)
        except (ExitStatusError, OutOfTimeError) as error:
            if not alone:
                raise
            return [Raised(type(error)(str(error).removesuffix(".")))]

    def _seed(self, rng: np.random.Generator) -> int:
        """Return a seed for one start: nobody repeats those of other programs."""
        return int(rng.integers(2**63)) if self.seeded else secrets.randbits(63)

    def _communicate(self, text: str, *, seed: int) -> str:
        process = self._start(seed)
        try:
            out, err = exchange(process, text.encode(), time_limit=self.time_limit)
        except subprocess.TimeoutExpired:
            runs = text.count("\n")
            raise OutOfTimeError(
                f"{self.name} must finish {'a run' if runs == 1 else f'{runs} runs'} "
                f"within {self.time_limit:g} s, got no answer by then; raise time_limit"
                f"{'' if runs == 1 else ' or state a smaller batch'}."
            ) from None
        except OverflowError:
            self._fail(f"write at most {MOST >> 20} MiB in a batch, got more")
        if process.returncode != 0:
            # The last line of a traceback says most.
            said = shortened(err.decode(errors="replace").strip().rsplit("\n", 1)[-1])
            way_out = "" if self.batch == 1 else "; in batches of 1 that is an outcome"
            raise ExitStatusError(
                f"{self.name} must exit with status 0, got {process.returncode}"
                f"{' (' + said + ')' if said else ''}{way_out}."
            )
        try:
            return out.decode()
        except UnicodeDecodeError:
            self._fail("write UTF-8 text, got other bytes")

    def _start(self, seed: int) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                self.command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "UNDERTOW_SEED": str(seed)},
                start_new_session=True,
            )
        except OSError as error:
            self._fail(f"be a program that can be started, got {error.strerror}")

    def _parse(self, written: str, count: int) -> list[Any]:
        # Lines end in a newline alone: JSON may hold other separators as they are.
        lines = written.split("\n")
        if not lines[-1]:
            del lines[-1]
        if len(lines) != count:
            self._fail(f"write one line for each of {count} inputs, got {len(lines)}")
        values = []
        for number, line in enumerate(lines, start=1):
            try:
                values.append(json.loads(line))
            except (ValueError, RecursionError):
                self._fail(
                    f"write one JSON value per line, got {shortened(line)!r} on line "
                    f"{number}"
                )
        return values

    def _fail(self, requirement: str) -> NoReturn:
        raise AuditError(f"{self.name} must {requirement}.")


def _is_output(value: Any) -> bool:
    """Return whether a JSON value can be compared as it is."""
    if isinstance(value, list):
        return all(isinstance(part, int | float) for part in value)
    return not isinstance(value, dict)


def _split(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as error:
        raise ValueError(
            f"command must be split as a shell would, got {command!r} "
            f"({str(error).lower()})."
        ) from None


def _as_line(value: Any) -> str:
    try:
        return json.dumps(value) + "\n"
    except (TypeError, ValueError):
        raise ValueError(
            f"inputs must have a JSON form, got {type(value).__name__}."
        ) from None


# Talking to a program with limits on its time and on what it writes.
#
# A program that is slow gets smaller batches, so that its time limit is about single
# runs and not about how many of them were asked for at once.

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
