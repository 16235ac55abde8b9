"""The trials of a local audit: draw values, collect reports, count what they show."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count
from undertow.audit._copies import check_copies
from undertow.audit._freshness import Freshness, probe
from undertow.audit._identity import subject_identity
from undertow.audit._reading import CELLS, Reader, reader_of
from undertow.audit.outputs import require_exact, require_unmasked
from undertow.audit.recorded import RecordedSubject
from undertow.audit.runner import Counts
from undertow.audit.subjects import ProtocolSubject, require_pace
from undertow.errors import MismatchError
from undertow.mechanisms.local import LocalProtocol
from undertow.mechanisms.noise.simulated import SimulatedSource

__all__ = ["FixedTrials", "Source", "UniformTrials", "ValueTrials"]

Ints = NDArray[np.int64]

# Most trials of a chunk.
_LARGEST = 1 << 16


class Source:
    """Reports of a protocol or of a subject, and how they are read.

    A protocol has ``sample(values, *, source)``; a subject ``inputs`` and
    ``sample(value, size, *, rng)``. The reader is the protocol itself, or the one a
    subject carries as `protocol`, or the one given.
    """

    def __init__(self, subject: Any, reader: Any = None) -> None:
        if not callable(getattr(subject, "sample", None)):
            raise TypeError(
                "subject must have a method sample, got "
                f"{type(subject).__name__}; wrap a function in a subject."
            )
        if isinstance(subject, ProtocolSubject):
            subject = subject.protocol  # draws for all values at once
        self.subject, self.reader_given = subject, reader
        self.fresh = Freshness(self.name)
        self.grouped = hasattr(subject, "inputs")
        labels = subject.inputs if self.grouped else None
        size = subject.categories if labels is None else len(labels)
        self.categories = check_count(size, "categories", minimum=2)
        if reader is not None and not hasattr(reader, "support"):
            raise TypeError(
                f"reader must be a local protocol, got {type(reader).__name__}."
            )
        told = reader if reader is not None else getattr(subject, "protocol", subject)
        self.reader: Reader = reader_of(told, self.categories, labels)
        if self.reader.categories != self.categories:
            raise MismatchError(
                f"reader must have the {self.categories} values of the subject, got "
                f"{self.reader.categories}."
            )

    @property
    def name(self) -> str:
        """How the audit calls the subject; protocols with their parameters."""
        if isinstance(self.subject, LocalProtocol):
            return repr(self.subject)
        return str(getattr(self.subject, "name", type(self.subject).__name__))

    @property
    def identity(self) -> str:
        """What the counts depend on besides the method, the sizes and the seed."""
        reader = self.reader_given
        told = "" if reader is None else f"{type(reader).__qualname__} {reader!r}"
        if not self.grouped:
            told += f" {self.name} of {self.categories}"
        return f"{subject_identity(self.subject)} {told}"

    @property
    def seeded(self) -> bool:
        """Whether a seed repeats the reports."""
        return bool(getattr(self.subject, "seeded", True))

    def check_fresh(self, trials: int) -> None:
        """Refuse a subject that repeats a batch; recorded runs are dealt once."""
        if self.grouped and not isinstance(self.subject, RecordedSubject):
            require_pace(self.subject, min(trials, _LARGEST) // self.categories)
            probe(self._checked, 0, trials=trials, name=self.name)

    def check_copies(self, *, workers: int, checkpoint: Any) -> None:
        """Refuse workers and checkpoints that the subject cannot have."""
        check_copies(
            self.subject, workers=workers, checkpoint=checkpoint, name=self.name
        )

    def draw(self, values: Ints, *, rng: np.random.Generator) -> Any:
        """Return one report per value."""
        if not self.grouped:
            drawn = self.subject.sample(values, source=SimulatedSource(rng))
            return self._counted(getattr(drawn, "values", drawn), len(values))
        order = np.argsort(values, kind="stable")
        numbers, counts = np.unique(values, return_counts=True)
        parts = [
            self._part(int(value), int(count), rng=rng)
            for value, count in zip(numbers, counts, strict=True)
        ]
        stacked = np.concatenate(parts)
        if stacked.dtype.kind == "f":
            for part in parts:
                if part.dtype.kind in "iu":
                    require_exact(part.ravel().tolist(), self.name)
        reports = np.empty_like(stacked)
        reports[order] = stacked
        return reports

    def _part(self, value: int, count: int, *, rng: np.random.Generator) -> Any:
        """Run the subject on one value; refuse reports that were there before."""
        outputs = self._checked(value, count, rng)
        self.fresh.check(value, outputs)
        return outputs

    def _checked(self, value: int, count: int, rng: np.random.Generator) -> Any:
        drawn = self._counted(self.subject.sample(value, count, rng=rng), count)
        return drawn.copy()  # the next value may be written over it

    def _counted(self, drawn: Any, count: int) -> Any:
        require_unmasked(drawn, self.name)
        outputs = np.asarray(drawn)
        if outputs.ndim == 0 or len(outputs) != count:
            raise MismatchError(
                f"{self.name} must return one output per trial, got another number."
            )
        return outputs


@dataclass(frozen=True, slots=True)
class UniformTrials:
    """Uniform targets, each with another uniform value.

    Counts ``successes`` of the simple attack and, of the pairs, ``pooled`` by cell; a
    pilot also ``table`` by role (target, other), cell and value.
    """

    source: Source
    attack: bool = True
    pairs: bool = True
    pilot: bool = False

    @property
    def identity(self) -> str:
        """What the counts depend on besides the sizes and the seed."""
        flags = f"attack {self.attack}, pairs {self.pairs}, pilot {self.pilot}"
        return f"uniform trials of {self.source.identity}, {flags}"

    def __call__(self, size: int, rng: np.random.Generator) -> Counts:
        """Run so many trials."""
        m, reader = self.source.categories, self.source.reader
        targets = rng.integers(m, size=size)
        reports = self.source.draw(targets, rng=rng)
        counts: Counts = {"trials": np.array([size])}
        if self.attack:
            hits = reader.hits(reports, targets, rng=rng)
            counts["successes"] = np.array([np.count_nonzero(hits)])
        if self.pairs:
            others = _others(targets, m, rng)
            cells = reader.cells(reports, targets, others)
            counts["pooled"] = np.bincount(cells, minlength=len(CELLS))
            if self.pilot:
                counts["table"] = _table(cells, targets, others, m)
        return counts


@dataclass(frozen=True, slots=True)
class ValueTrials:
    """One value against uniform others: a fair coin says which of them reports."""

    source: Source
    value: int

    def __call__(self, size: int, rng: np.random.Generator) -> Counts:
        """Run so many trials; count by role of the value and by cell."""
        m = self.source.categories
        values = np.full(size, self.value, dtype=np.int64)
        others = _others(values, m, rng)
        role = rng.integers(2, size=size)
        reports = self.source.draw(np.where(role == 0, values, others), rng=rng)
        cells = self.source.reader.cells(reports, values, others)
        table = np.bincount(role * len(CELLS) + cells, minlength=2 * len(CELLS))
        return {"trials": np.array([size]), "roles": table.reshape(2, len(CELLS))}


@dataclass(frozen=True, slots=True)
class FixedTrials:
    """One value reports; counts how often the attack names the wanted value."""

    source: Source
    value: int
    wanted: int

    def __call__(self, size: int, rng: np.random.Generator) -> Counts:
        """Run so many trials."""
        reports = self.source.draw(np.full(size, self.value, dtype=np.int64), rng=rng)
        wanted = np.full(size, self.wanted, dtype=np.int64)
        hits = self.source.reader.hits(reports, wanted, rng=rng)
        return {"hits": np.array([np.count_nonzero(hits)])}


def _others(values: Ints, m: int, rng: np.random.Generator) -> Ints:
    """Draw values uniform among those that differ from the given ones."""
    shift = rng.integers(1, m, size=len(values))
    return np.asarray((values + shift) % m)


def _table(cells: Ints, targets: Ints, others: Ints, m: int) -> Ints:
    # As seen from the other value, supporting the first is supporting the second.
    mirrored = np.array([0, 2, 1, 3])[cells]
    size = len(CELLS) * m
    rows = [
        np.bincount(seen * m + value, minlength=size).reshape(len(CELLS), m)
        for seen, value in ((cells, targets), (mirrored, others))
    ]
    return np.stack(rows)
