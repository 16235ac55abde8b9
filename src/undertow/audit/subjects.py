"""What is audited: anything that can be run on one of several inputs.

A subject draws outputs for an input given by its number.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from undertow import _version
from undertow._validate import check_count, check_index
from undertow.audit.outputs import read_outputs, shortened
from undertow.errors import AuditError
from undertow.mechanisms.base import ChoiceMechanism, Mechanism
from undertow.mechanisms.local.base import LocalProtocol
from undertow.mechanisms.noise.simulated import SimulatedSource

__all__ = [
    "MechanismSubject",
    "ProtocolSubject",
    "Subject",
    "draws_apart",
    "is_seeded",
    "read_inputs",
    "require_pace",
]

Outputs = NDArray[Any]
Floats = NDArray[np.float64]


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
