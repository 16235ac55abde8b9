"""Any Python function as the subject of an audit, with a time limit."""

from __future__ import annotations

import copy
import hashlib
import inspect
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_index, check_positive
from undertow.audit._outcome import Raised
from undertow.audit.outputs import read_outcomes, read_outputs, shortened
from undertow.audit.subjects import read_inputs
from undertow.errors import AuditError

__all__ = ["CallableSubject"]

_CHANGED = (
    "{} must leave its input as it is, got another one after the run; let it work on a "
    "copy."
)
# Seconds of a part of timed runs, below which the next one is longer.
_SHORT = 0.25
# Outputs that no later run can change.
_FIXED = (bool, int, float, complex, str, bytes, type(None), np.generic)
_VALUE_KINDS = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)


class CallableSubject:
    """A function from an input to an output.

    Parameters
    ----------
    function : callable
        ``function(value)``, ``function(value, rng)``, or, if `vectorised`,
        ``function(values)`` or ``function(values, rng)`` from equal inputs, an array if
        they are numbers or arrays, else a list, to as many outputs. A generator is
        given if there is a second required argument or one called ``rng``.
    inputs : sequence
        The inputs, every two of them neighbours.
    time_limit : float, optional
        Seconds that one batch of runs may take.
    vectorised : bool, optional
        Whether the function takes many inputs at once.
    name, version : str, optional
        For the report; by default the function's own name.

    Raises
    ------
    AuditError
        From `sample`: if the function raises, changes its input, returns no value, nan,
        several types or something that cannot be hashed, or passes the time limit. From
        `outcomes`, to which all of these but a changed input and the time limit are
        outcomes: also if a vectorised function raises.

    Notes
    -----
    In the main thread of a Unix process a timer interrupts the function. Elsewhere it
    runs in a thread that is left behind when time is up. Neither can stop compiled code
    that does not return to the interpreter, nor survive a function that ends its
    process (``os._exit``, a crash): run such code as a command. A function
    without a generator cannot be repeated from a seed, and its copies in several
    processes may draw the same numbers: `forkable` is then false. Not checkable: that
    runs are independent of each other.

    Examples
    --------
    >>> def flip(bit, rng):
    ...     return bit if rng.random() < 0.75 else 1 - bit
    >>> subject = CallableSubject(flip, [0, 1])
    >>> subject.name, subject.seeded
    ('flip', True)
    >>> int(subject.sample(1, 1000, rng=np.random.default_rng(1)).sum())
    730
    """

    to_repeat = "give it a function that takes a generator"

    def __init__(
        self,
        function: Callable[..., Any],
        inputs: Sequence[Any],
        *,
        time_limit: float = 60.0,
        vectorised: bool = False,
        name: str | None = None,
        version: str = "",
    ) -> None:
        if not callable(function):
            raise TypeError(
                f"function must be callable, got {type(function).__name__}."
            )
        self.function = function
        self.inputs = read_inputs(inputs)
        self.time_limit = check_positive(time_limit, "time_limit")
        self.vectorised = bool(vectorised)
        own = getattr(function, "__name__", type(function).__name__)
        self.name = str(own) if name is None else name
        self.version = version
        self._generator = _generator_argument(function)
        self.seeded = self.forkable = self._generator is not None

    def sample(
        self, value: int, size: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Run the function `size` times on one input."""
        raw = self._raw(value, size, rng)
        for item in raw if isinstance(raw, list) else ():
            if isinstance(item, Raised):
                raise AuditError(
                    f"{self.name} must not raise, got {item.kind}"
                    f"{': ' + item.said if item.said else ''}."
                )
        return read_outputs(raw, size, name=self.name)

    def outcomes(
        self, value: int, size: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Run the function `size` times; an exception is what a run ended in.

        Of a vectorised function an exception is that of a whole batch, and ends the
        audit.
        """
        return read_outcomes(self._raw(value, size, rng), size, name=self.name)

    def run_timed(
        self, order: Sequence[int], *, rng: np.random.Generator
    ) -> list[tuple[Any, int]]:
        """Run the inputs of these numbers one by one; not of a vectorised function.

        Returns
        -------
        list of pairs
            What each run ended in, an exception too, and its nanoseconds.
        """
        before = [_snapshot(given) for given in self.inputs]
        extra, after = self._generators(rng)
        made: list[tuple[Any, int]] = []
        size = 1

        def part() -> None:
            for number in order[len(made) : len(made) + size]:
                made.append(self._timed(self.inputs[number], after, extra))

        while len(made) < len(order):
            start = time.monotonic()
            _within(self.time_limit, part, self.name)
            size = 2 * size if time.monotonic() - start < _SHORT else max(1, size // 2)
        if before != [_snapshot(given) for given in self.inputs]:
            raise AuditError(_CHANGED.format(self.name))
        return made

    def _timed(
        self, given: Any, after: tuple[Any, ...], extra: dict[str, Any]
    ) -> tuple[Any, int]:
        start = time.perf_counter_ns()
        try:
            output = self.function(given, *after, **extra)
            taken = time.perf_counter_ns() - start
        except (Exception, SystemExit) as error:
            return Raised(error), time.perf_counter_ns() - start
        return _kept(output), taken

    def _raw(self, value: int, size: int, rng: np.random.Generator) -> Any:
        given = self.inputs[check_index(value, "value", size=len(self.inputs))]
        count = check_count(size, "size", minimum=0)
        before = _snapshot(given)
        raw = _within(self.time_limit, lambda: self._run(given, count, rng), self.name)
        if before != _snapshot(given):
            raise AuditError(_CHANGED.format(self.name))
        return raw

    def _generators(
        self, rng: np.random.Generator
    ) -> tuple[dict[str, Any], tuple[Any, ...]]:
        """Return how the function takes its generator: by name, or by place."""
        if self._generator is None:
            return {}, ()
        return ({"rng": rng}, ()) if self._generator == "rng" else ({}, (rng,))

    def _run(self, given: Any, count: int, rng: np.random.Generator) -> Any:
        extra, after = self._generators(rng)
        if not self.vectorised:
            return [self._one(given, after, extra) for _ in range(count)]
        try:
            return self.function(_repeat(given, count), *after, **extra)
        except (Exception, SystemExit) as error:
            said = shortened(str(error))
            raise AuditError(
                f"{self.name} must not raise, got {type(error).__name__}"
                f"{': ' + said if said else ''}."
            ) from error

    def _one(self, given: Any, after: tuple[Any, ...], extra: dict[str, Any]) -> Any:
        try:
            return _kept(self.function(given, *after, **extra))
        except (Exception, SystemExit) as error:
            return Raised(error)


def _kept(output: Any) -> Any:
    """Return an output as it is now: a function may fill one array in every run."""
    if isinstance(output, _FIXED):
        return output
    if isinstance(output, np.ndarray) and not output.dtype.hasobject:
        return output.copy()
    try:
        return copy.deepcopy(output)
    except Exception:  # an open file, a generator: nothing that can be filled
        return output


def _snapshot(given: Any) -> str:
    """Return what an input holds, if it can be changed; a number cannot.

    Tables are looked at as the arrays that they hold, and whatever lists, tuples and
    dictionaries hold one by one, as their own words leave out the middle.
    """
    if isinstance(given, np.ndarray) and not given.dtype.hasobject:
        return f"{given.shape} {hashlib.sha256(given.tobytes()).hexdigest()}"
    if isinstance(given, np.ndarray):
        return f"{given.shape} {given.tolist()!r}"
    if hasattr(given, "to_numpy"):
        return _snapshot(np.asarray(given.to_numpy()))
    if isinstance(given, dict):
        given = [part for item in given.items() for part in item]
    if isinstance(given, list | tuple):
        return repr([_snapshot(part) or repr(part) for part in given])
    return repr(given) if isinstance(given, set | bytearray) else ""


def _repeat(given: Any, count: int) -> Any:
    if isinstance(given, int | float | np.generic | np.ndarray):
        return np.repeat(np.asarray(given)[None], count, axis=0)
    return [given] * count


def _generator_argument(function: Callable[..., Any]) -> str | None:
    """Return the name of the argument that takes a generator; None if there is none."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise AuditError(
            "function must show its arguments, got a built-in one; wrap it: "
            "lambda value: function(value)."
        ) from None
    if any(p.name == "rng" for p in parameters[1:]):
        return "rng"
    required = [
        p
        for p in parameters
        if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    fits = all(p.kind in _VALUE_KINDS for p in required) and parameters
    if not fits or len(required) > 2:
        raise AuditError(
            "function must take a value, or a value and a generator, got "
            f"{len(required)} required arguments; fix the others by functools.partial."
        )
    return required[1].name if len(required) == 2 else None


class _OutOfTime(BaseException):
    """Raised inside a batch; no ordinary handler of the function swallows it."""


def _within(limit: float, run: Callable[[], Any], name: str) -> Any:
    """Return what `run` returns, or end it after `limit` seconds."""
    main = threading.current_thread() is threading.main_thread()
    try:
        if main and hasattr(signal, "setitimer"):
            with _alarm(limit):
                return run()
        return _in_thread(limit, run)
    except _OutOfTime:
        raise AuditError(
            f"{name} must finish a batch within {limit:g} s, got no answer by then; "
            "raise time_limit or lower the number of trials."
        ) from None


@contextmanager
def _alarm(limit: float) -> Iterator[None]:
    def stop(signum: int, frame: FrameType | None) -> None:
        raise _OutOfTime

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, limit)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _in_thread(limit: float, run: Callable[[], Any]) -> Any:
    answers: list[Any] = []
    faults: list[BaseException] = []

    def work() -> None:
        try:
            answers.append(run())
        except BaseException as error:
            faults.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(limit)
    if thread.is_alive():
        raise _OutOfTime
    if faults:
        raise faults[0]
    return answers[0]
