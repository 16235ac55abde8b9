"""What is audited: anything that can be run on one of several inputs.

A subject draws outputs for an input given by its number. Everything it returns is
checked here once, so that a crash, a missing value or a stray type ends an audit with
one sentence and never becomes evidence.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from undertow import _version
from undertow._validate import check_count, check_index
from undertow.errors import UndertowError
from undertow.mechanisms.base import ChoiceMechanism, Mechanism
from undertow.mechanisms.local.base import LocalProtocol
from undertow.mechanisms.noise.simulated import SimulatedSource

__all__ = [
    "AuditError",
    "MechanismSubject",
    "ProtocolSubject",
    "Subject",
    "draws_apart",
    "is_seeded",
    "read_inputs",
    "read_outputs",
    "require_exact",
    "shortened",
]

Outputs = NDArray[Any]
Floats = NDArray[np.float64]

# Integers beyond this are kept as labels.
_INT64 = 2**63
_EXACT = 2**53  # whole numbers up to here are floats without rounding
_SHOWN = 80


class AuditError(UndertowError, ValueError):
    """What is audited misbehaved, or cannot be audited as asked."""


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


class ProtocolSubject:
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

    seeded = True
    forkable = True
    version = _version.__version__

    def __init__(self, protocol: LocalProtocol) -> None:
        self.protocol = protocol
        self.name = repr(protocol)
        self.inputs = range(protocol.categories)

    def sample(self, value: int, size: int, *, rng: np.random.Generator) -> Outputs:
        """Draw reports about one category."""
        number = check_index(value, "value", size=len(self.inputs))
        truths = np.full(check_count(size, "size", minimum=0), number)
        reports = self.protocol.sample(truths, source=SimulatedSource(rng)).values
        return np.asarray(reports)

    def log_likelihood(self, outputs: Any, pair: tuple[int, int]) -> Floats:
        """Return the log density under both inputs of a pair: (outputs, 2)."""
        columns = [self.protocol.log_density(outputs, given) for given in pair]
        return np.stack(columns, axis=-1)


class MechanismSubject:
    """A mechanism of this package, on several true answers.

    Parameters
    ----------
    mechanism : Mechanism
        Run with seeded randomness.
    answers : sequence
        What the query answers on each of the neighbouring inputs: numbers, vectors,
        scores or categories, as the mechanism takes them.

    Notes
    -----
    What is drawn is what would be released, lattice included. The likelihood is that
    of the continuous law, which serves to choose events and never to certify.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> subject = MechanismSubject(LaplaceMechanism(1), [0.0, 1.0])
    >>> subject.sample(0, 4, rng=np.random.default_rng(1)).shape
    (4,)
    """

    seeded = True
    forkable = True
    version = _version.__version__

    def __init__(self, mechanism: Mechanism, answers: Sequence[Any]) -> None:
        self.mechanism = mechanism
        self.inputs = read_inputs(answers, name="answers")
        self.name = repr(mechanism)

    def sample(self, value: int, size: int, *, rng: np.random.Generator) -> Outputs:
        """Draw outputs for one answer."""
        given = self.inputs[check_index(value, "value", size=len(self.inputs))]
        count = check_count(size, "size", minimum=0)
        draw = self.mechanism.sample([given] * count, source=SimulatedSource(rng))
        return read_outputs(draw.values, count, name=self.name)

    def log_likelihood(self, outputs: Any, pair: tuple[int, int]) -> Floats:
        """Return the log density under both inputs of a pair: (outputs, 2)."""
        columns = [self._column(outputs, self.inputs[given]) for given in pair]
        return np.stack(columns, axis=-1)

    def _column(self, outputs: Any, given: Any) -> Floats:
        if not isinstance(self.mechanism, ChoiceMechanism):
            return np.asarray(self.mechanism.log_density(outputs, given), dtype=float)
        logs = self.mechanism.log_probabilities(given)
        place = {label: k for k, label in enumerate(self.mechanism.candidates)}
        return np.asarray([logs[place[label]] for label in outputs.tolist()])


def is_seeded(subject: Subject) -> bool:
    """Return whether a seed repeats the runs of a subject."""
    return bool(getattr(subject, "seeded", True))


def draws_apart(subject: Subject) -> bool:
    """Return whether copies of a subject in several processes draw independently."""
    return bool(getattr(subject, "forkable", True))


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


def read_outputs(raw: Any, size: int, *, name: str) -> Outputs:
    """Return outputs as one array of numbers, of vectors, or of hashable labels.

    Parameters
    ----------
    raw : array or sequence
        One output for each run.
    size : int
        Number of runs.
    name : str
        Of the subject, for messages.

    Returns
    -------
    ndarray
        Shape (size,) of numbers or of objects, or (size, k) of numbers.

    Raises
    ------
    AuditError
        If there are more or fewer outputs, one is None or not a number, types are
        mixed, or an output cannot be hashed.

    Examples
    --------
    >>> read_outputs([1, 2.5], 2, name="f")
    array([1. , 2.5])
    >>> read_outputs(["a", None], 2, name="f")
    Traceback (most recent call last):
    undertow.audit.subjects.AuditError: f must return a value every time, got None.
    """
    single = not hasattr(raw, "__len__") or getattr(raw, "ndim", 1) == 0
    if single or isinstance(raw, str | bytes | dict):
        raise AuditError(
            f"{name} must return one output for each of {size} runs, got "
            f"{type(raw).__name__}."
        )
    if len(raw) != size:
        raise AuditError(
            f"{name} must return one output for each of {size} runs, got {len(raw)}."
        )
    whole = isinstance(raw, np.ndarray) and raw.dtype.kind in "biufV"
    array = raw if whole else _gather(list(raw), name)
    if array.dtype.kind == "f" and np.isnan(array).any():
        raise AuditError(f"{name} must return numbers, got nan.")
    if array.ndim > 2:
        raise AuditError(
            f"{name} must return numbers or vectors, got arrays of shape "
            f"{array.shape[1:]}; flatten them."
        )
    return np.asarray(array)


def _gather(items: list[Any], name: str) -> Outputs:
    """Return one array of separate outputs of one type."""
    types = {_kind(item, name) for item in items}
    if types == {"int", "float"}:
        require_exact([i for i in items if isinstance(i, numbers.Integral)], name)
        types = {"float"}
    if len(types) > 1:
        raise AuditError(
            f"{name} must return one type of output, got {' and '.join(sorted(types))}."
        )
    kind = next(iter(types), "float")
    if kind == "vector":
        return _stack(items, name)
    if kind == "float":
        return np.array([_as_float(item, name) for item in items])
    if kind in ("int", "bool") and all(-_INT64 <= int(item) < _INT64 for item in items):
        return np.array(items, dtype=np.bool_ if kind == "bool" else np.int64)
    labels = np.empty(len(items), dtype=np.object_)
    for place, item in enumerate(items):
        labels[place] = item
    return labels


def _as_float(item: Any, name: str) -> float:
    try:
        return float(item)
    except OverflowError:
        raise AuditError(
            f"{name} must return numbers that a float can hold, got a longer one."
        ) from None


def _kind(item: Any, name: str) -> str:
    if item is None:
        raise AuditError(f"{name} must return a value every time, got None.")
    if isinstance(item, bool | np.bool_):
        return "bool"
    if isinstance(item, numbers.Integral):
        return "int"
    if isinstance(item, numbers.Real):
        if math.isnan(item):
            raise AuditError(f"{name} must return numbers, got nan.")
        return "float"
    if isinstance(item, list | tuple | np.ndarray) and _is_numeric(item):
        return "vector"
    if isinstance(item, str):
        return "str"
    if not isinstance(item, Hashable) or not _hashes(item):
        raise AuditError(
            f"{name} must return hashable outputs or vectors of numbers, got "
            f"{type(item).__name__}; return a tuple or a frozenset."
        )
    return type(item).__name__


def _is_numeric(item: Any) -> bool:
    if isinstance(item, np.ndarray) and item.ndim != 1:
        return False
    return all(isinstance(part, numbers.Real | np.bool_) for part in item)


def _hashes(item: Hashable) -> bool:
    try:
        hash(item)
    except TypeError:  # a tuple that holds a list
        return False
    return True


def _stack(items: list[Any], name: str) -> Outputs:
    lengths = sorted({len(item) for item in items})
    if len(lengths) > 1:
        raise AuditError(
            f"{name} must return vectors of one length, got {lengths[0]} and "
            f"{lengths[-1]}; fill them up, or return strings."
        )
    rows = [np.asarray(item) for item in items]
    stacked = np.array(rows)
    if stacked.dtype.kind == "f":
        for row in rows:
            require_exact(row.tolist() if row.dtype.kind in "iu" else [], name)
    return stacked


def require_exact(whole: Iterable[Any], name: str) -> None:
    """Refuse whole numbers that are rounded as floats, where others are floats.

    Whether two outputs are the same would depend on what was drawn beside them.
    """
    if any(abs(int(item)) > _EXACT for item in whole):
        raise AuditError(
            f"{name} must return one type of output where whole numbers are beyond "
            "2^53, got floats beside them; return strings, or floats only."
        )


def shortened(text: str) -> str:
    """Return the first line of a text, cut for a message."""
    line = text.strip().splitlines()[0] if text.strip() else ""
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "..."
