"""What is audited: anything that can be run on one of several inputs.

Mechanisms and local protocols, Python functions with a time limit, and mechanisms of
other libraries; what tells two subjects apart, and which may be copied.
"""

from __future__ import annotations

import copy
import functools
import hashlib
import inspect
import json
import signal
import threading
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import metadata
from types import CodeType, FrameType
from typing import Any, Protocol, SupportsIndex, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from undertow import _version
from undertow._validate import check_count, check_index, check_positive
from undertow.audit._outcome import Raised, read_outcomes, read_outputs, shortened
from undertow.errors import AuditError
from undertow.mechanisms.base import Mechanism
from undertow.mechanisms.law import Law
from undertow.mechanisms.local.base import LocalProtocol
from undertow.numeric.array import Floats

Outputs = NDArray[Any]


@runtime_checkable
class Subject(Protocol):
    """What an audit runs.

    Notes
    -----
    Two further attributes may say otherwise than true. `seeded`: all randomness comes
    from the `rng` given to `sample`, so that a run can be repeated. `forkable`: copies
    in several processes draw independently, so that workers and checkpoints may be
    used.
    """

    name: str
    version: str

    @property
    def inputs(self) -> Sequence[Any]:
        """The inputs, in the order of their numbers."""

    def sample(self, value: int, size: int, *, rng: np.random.Generator) -> Any:
        """Draw `size` outputs for the input number `value`."""


class LawSubject:
    """A law of this package on several inputs: a mechanism or a local protocol.

    Parameters
    ----------
    law : Law
        Run with seeded randomness.
    inputs : sequence, optional
        What it is given: for a mechanism the answers of the query on each of the
        neighbouring inputs, as numbers, vectors, scores or categories. By default all
        inputs of a law that lists them, such as the categories of a local protocol.

    Notes
    -----
    What is drawn is what would be released, lattice included. The likelihood is that
    of the continuous law, which serves to choose events and never to certify.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> subject = LawSubject(LaplaceMechanism(1), [0.0, 1.0])
    >>> subject.sample(0, 4, rng=np.random.default_rng(1)).shape
    (4,)
    """

    seeded = True
    forkable = True
    version = _version.__version__
    inputs: Sequence[Any]

    def __init__(
        self, law: Law, inputs: Sequence[Any] | None = None, *, named: str = "inputs"
    ) -> None:
        listed = (
            law.listed_inputs if inputs is None else read_inputs(inputs, name=named)
        )
        if listed is None:
            raise TypeError(
                f"{named} must be given for {law!r}, which can be given anything."
            )
        self.law, self.inputs, self.name = law, listed, repr(law)

    def sample(self, value: int, size: int, *, rng: np.random.Generator) -> Outputs:
        """Draw outputs for the input of that number."""
        given = self.inputs[check_index(value, "value", size=len(self.inputs))]
        count = check_count(size, "size", minimum=0)
        return read_outputs(
            self.law.simulate(given, count, rng=rng), count, name=self.name
        )

    def log_likelihood(self, outputs: Any, pair: tuple[int, int]) -> Floats:
        """Return the log density under both inputs of a pair: (outputs, 2)."""
        return self.law.log_densities(outputs, [self.inputs[given] for given in pair])


class ProtocolSubject(LawSubject):
    """A local protocol of this package, on its categories.

    Parameters
    ----------
    protocol : LocalProtocol
        Run with seeded randomness.

    Examples
    --------
    >>> from undertow.mechanisms.local import GeneralizedResponse
    >>> subject = ProtocolSubject(GeneralizedResponse(3, 1))
    >>> subject.sample(2, 5, rng=np.random.default_rng(1)).shape
    (5,)
    """

    def __init__(self, protocol: LocalProtocol) -> None:
        super().__init__(protocol)
        self.protocol = protocol


class MechanismSubject(LawSubject):
    """A mechanism of this package, on several true answers.

    Parameters
    ----------
    mechanism : Mechanism
        Run with seeded randomness.
    answers : sequence
        What the query answers on each of the neighbouring inputs: numbers, vectors,
        scores or categories, as the mechanism takes them.
    """

    def __init__(self, mechanism: Mechanism, answers: Sequence[Any]) -> None:
        super().__init__(mechanism, answers, named="answers")
        self.mechanism = mechanism


def is_seeded(subject: Subject) -> bool:
    """Return whether a seed repeats the runs of a subject."""
    return bool(getattr(subject, "seeded", True))


def draws_apart(subject: Subject) -> bool:
    """Return whether copies of a subject in several processes draw independently."""
    return bool(getattr(subject, "forkable", True))


def require_pace(subject: Any, size: int) -> None:
    """Let a subject refuse batches of so many runs, before any of them is made."""
    if hasattr(subject, "require_pace"):
        subject.require_pace(size)


def read_inputs(inputs: Iterable[Any], *, name: str = "inputs") -> tuple[Any, ...]:
    """Return the inputs as a tuple of at least two."""
    if isinstance(inputs, str | bytes):
        raise TypeError(f"{name} must be a sequence, got {inputs!r}; list them.")
    listed = tuple(inputs)
    if len(listed) < 2:
        raise ValueError(f"{name} must be at least two, got {len(listed)}.")
    kinds = [_content(value) for value in listed]
    if len(set(kinds)) < len(kinds):
        twice = next(
            v for v, k in zip(listed, kinds, strict=True) if kinds.count(k) > 1
        )
        raise AuditError(
            f"{name} must differ, got {shortened(repr(twice))} twice; nothing tells a "
            "value from itself, so every claim would stand."
        )
    return listed


def _content(value: Any) -> Hashable:
    """Return what tells inputs apart: type and content."""
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.shape, value.tobytes()
    try:
        hash(value)
    except TypeError:  # lists and dictionaries, whose text is complete
        return type(value), repr(value)
    return type(value), value


# Any Python function as the subject of an audit, with a time limit.

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


# Mechanisms of other libraries as subjects: OpenDP, diffprivlib, client functions.
#
# None of these libraries is imported: an object with the method in question is enough.
# Their noise is their own, so an audit of them can be described but not repeated.

# The measure of OpenDP whose loss is an epsilon.
_PURE = "MaxDivergence"


class OpenDPSubject(CallableSubject):
    """A measurement of OpenDP.

    Parameters
    ----------
    measurement : opendp.Measurement
        Called with one input at a time.
    inputs : sequence
        Members of its input domain, every two of them at the distance of the claim.
    time_limit : float, optional
        Seconds that one batch may take; a call takes some 0.1 ms.
    name : str, optional
        For the report.

    Notes
    -----
    OpenDP draws from the operating system, so copies are independent and no seed
    repeats a run. `stated` is the epsilon that a pure measurement states of itself;
    of others the claim is yours to state.
    """

    to_repeat = "run it without, as its noise is its own"

    def __init__(
        self,
        measurement: Any,
        inputs: Sequence[Any],
        *,
        time_limit: float = 600.0,
        name: str = "OpenDP measurement",
    ) -> None:
        if not callable(measurement) or not hasattr(measurement, "map"):
            raise TypeError(
                f"measurement must be one of OpenDP, got {type(measurement).__name__}."
            )
        super().__init__(
            lambda value: measurement(value),
            inputs,
            time_limit=time_limit,
            name=name,
            version=_version_of("opendp"),
        )
        self.measurement = measurement
        self.forkable = False  # a measurement cannot be sent to another process

    def stated(self, distance: Any) -> Any:
        """Return the epsilon of pure DP that the measurement states at a distance.

        Parameters
        ----------
        distance : number
            Of the inputs, in the input metric of the measurement.

        Returns
        -------
        float
            For :meth:`~undertow.audit.claim.Claim.pure`.

        Raises
        ------
        AuditError
            If the measurement states another loss, such as rho of zCDP, which read as
            an epsilon would accuse correct code; or nothing at this distance.
        """
        measure = str(getattr(self.measurement, "output_measure", "unknown"))
        if measure != _PURE:
            raise AuditError(
                f"measurement must state pure DP ({_PURE}), got {measure}; state the "
                "claim yourself, by Claim.approx or Claim.gaussian."
            )
        try:
            return self.measurement.map(distance)
        except Exception as error:  # OpenDP's own class, in several lines
            raise AuditError(
                f"distance must be one that the measurement has a loss for, got "
                f"{distance!r}: {type(error).__name__}: {shortened(str(error))}."
            ) from error


class DiffprivlibSubject(CallableSubject):
    """A mechanism of diffprivlib.

    Parameters
    ----------
    mechanism : object with ``randomise(value)``
        Such as ``diffprivlib.mechanisms.Laplace(epsilon=1, sensitivity=1)``.
    inputs : sequence
        The values, every two of them neighbours.
    time_limit : float, optional
        Seconds that one batch may take.

    Examples
    --------
    >>> import numpy as np
    >>> class Constant:
    ...     def randomise(self, value):
    ...         return 7
    >>> subject = DiffprivlibSubject(Constant(), [0, 1])
    >>> subject.sample(0, 2, rng=np.random.default_rng(1))
    array([7, 7])
    """

    to_repeat = "run it without, as its noise is its own"

    def __init__(
        self, mechanism: Any, inputs: Sequence[Any], *, time_limit: float = 600.0
    ) -> None:
        randomise = getattr(mechanism, "randomise", None)
        if not callable(randomise):
            raise AuditError(
                "mechanism must have a method randomise(value), got "
                f"{type(mechanism).__name__}; use CallableSubject."
            )
        super().__init__(
            lambda value: randomise(value),
            inputs,
            time_limit=time_limit,
            name=f"diffprivlib {type(mechanism).__name__}",
            version=_version_of("diffprivlib"),
        )
        self.mechanism = mechanism


class ClientSubject(CallableSubject):
    """The client side of a local protocol: a function from a value to a report.

    Parameters
    ----------
    privatise : callable
        Takes one value; such as ``client.privatise`` of pure-ldp, or
        ``functools.partial(GRR_Client, k=k, epsilon=epsilon)`` of multi-freq-ldpy.
    inputs : sequence
        The values that a client may hold.
    library : str, optional
        Name of the installed distribution, for the version in the report.
    time_limit : float, optional
        Seconds that one batch may take.

    Notes
    -----
    Reports that are vectors of bits or pairs of a seed and a bucket are vectors here.
    Bit vectors of up to some thousand different values are compared as wholes; beyond,
    and for hashing, give the audit a score.

    Examples
    --------
    >>> import numpy as np
    >>> one_hot = ClientSubject(lambda value: np.eye(3, dtype=int)[value], [0, 1, 2])
    >>> one_hot.sample(2, 2, rng=np.random.default_rng(1)).tolist()
    [[0, 0, 1], [0, 0, 1]]
    """

    to_repeat = "run it without, as its noise is its own"

    def __init__(
        self,
        privatise: Callable[[Any], Any],
        inputs: Sequence[Any],
        *,
        library: str | None = None,
        time_limit: float = 600.0,
    ) -> None:
        if not callable(privatise):
            raise TypeError(
                f"privatise must be callable, got {type(privatise).__name__}."
            )
        super().__init__(
            lambda value: privatise(value),
            inputs,
            time_limit=time_limit,
            name=getattr(privatise, "__name__", "client"),
            version="" if library is None else _version_of(library),
        )
        self.privatise = privatise


def _version_of(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""


# What a subject is, in words that tell two of them apart.


def subject_identity(subject: Any) -> str:
    """Return what the runs of a subject depend on, as far as it can be told.

    Name and version, every input, the words of a command, the code of a function, and
    the version of this package: a checkpoint of one of them is no other's. Values that
    a function takes from outside of it are not seen; `version` is there to tell them.

    Examples
    --------
    >>> from undertow.audit.subject import ProtocolSubject
    >>> from undertow.mechanisms.local import GeneralizedResponse
    >>> one, two = (ProtocolSubject(GeneralizedResponse(3, e)) for e in (1, 2))
    >>> subject_identity(one) == subject_identity(two)
    False
    """
    parts = [
        _version.__version__,
        str(getattr(subject, "name", type(subject).__name__)),
        str(getattr(subject, "version", "")),
        [_told(value) for value in getattr(subject, "inputs", ())],
        [*getattr(subject, "command", ()), *getattr(subject, "stated_batch", ())],
        code_words(getattr(subject, "function", None)),
    ]
    return json.dumps(parts)


def _told(value: Any) -> str:
    if not isinstance(value, np.ndarray) or value.dtype.hasobject:
        return repr(value)
    held = hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()
    return f"{value.dtype.str} {value.shape} {held}"


def code_words(function: Any) -> list[str]:
    """Return where a function comes from and what it does; nothing for other things."""
    if isinstance(function, functools.partial):
        fixed = [*function.args, *sorted(function.keywords.items())]
        return [*code_words(function.func), *map(repr, fixed)]
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return []
    inner = [item for item in code.co_consts if isinstance(item, CodeType)]
    plain = [repr(c) for c in code.co_consts if not isinstance(c, CodeType | frozenset)]
    words = [str(getattr(function, "__module__", "")), code.co_qualname]
    bytecode = [hashlib.sha256(item.co_code).hexdigest() for item in (code, *inner)]
    return [*words, *bytecode, *plain, *code.co_names]


# Which subjects may run in several processes, and go on from a checkpoint.


def check_copies(
    subject: Any, *, workers: SupportsIndex, checkpoint: Any, name: str | None = None
) -> None:
    """Refuse workers and checkpoints that a subject cannot have.

    Copies of it must draw apart, and for a checkpoint a seed must repeat its runs.
    `to_repeat` of the subject is the way out.
    """
    called = str(subject.name) if name is None else name
    if check_count(workers, "workers") > 1 and not draws_apart(subject):
        raise AuditError(
            f"workers must be 1 for {called}, whose copies may draw the same numbers, "
            f"got {workers}; {_to_repeat(subject)}."
        )
    if checkpoint is not None and not (is_seeded(subject) and draws_apart(subject)):
        raise AuditError(
            f"checkpoint must be None for {called}, which no seed repeats; "
            f"{_to_repeat(subject)}."
        )


def _to_repeat(subject: Any) -> str:
    return str(getattr(subject, "to_repeat", "run it without"))
