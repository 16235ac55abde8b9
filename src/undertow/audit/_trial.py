"""The trials of a local audit: draw values, collect reports, count what they show.

How a report is read without a table of all values, and trials of uniform, of given and
of paired values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count
from undertow.audit._outcome import require_exact, require_unmasked
from undertow.audit.record import Freshness, RecordedSubject, probe
from undertow.audit.runner import Counts
from undertow.audit.subject import (
    LawSubject,
    check_copies,
    require_pace,
    subject_identity,
)
from undertow.errors import AuditError, MismatchError
from undertow.mechanisms.local import (
    GeneralizedResponse,
    LocalHashing,
    LocalProtocol,
    SubsetSelection,
    SummationHistogram,
    UnaryEncoding,
    hash_bucket,
)
from undertow.mechanisms.local._bitset import bits_at, count_bits, read_words
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.numeric.array import Bools, Ints

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
        if isinstance(subject, LawSubject) and isinstance(subject.law, LocalProtocol):
            subject = subject.law  # draws for all values at once
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
        self.reader: Reader = reader_of(self.protocol, self.categories, labels)
        if self.reader.categories != self.categories:
            raise MismatchError(
                f"reader must have the {self.categories} values of the subject, got "
                f"{self.reader.categories}."
            )

    @property
    def protocol(self) -> Any:
        """The protocol by which reports are read; a subject without one stands here."""
        if self.reader_given is not None:
            return self.reader_given
        return getattr(self.subject, "protocol", self.subject)

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
        words = "" if reader is None else f"{type(reader).__qualname__} {reader!r}"
        if not self.grouped:
            words += f" {self.name} of {self.categories}"
        return f"{subject_identity(self.subject)} {words}"

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


# The certifying trials of pairs, in which the simple attack is counted as well.

# Cells of a support table that a trial may cost on average.
_CELLS_EACH = 16


@dataclass(frozen=True, slots=True)
class PairTrials:
    """Uniform targets, each with another uniform value.

    Counts ``pooled`` by cell on all trials, and ``attack_hits`` of the simple attack on
    the first ``attack_trials`` of them: on all where a report tells the size of its
    support by itself, else on as many as tables of 16 cells a trial pay for.
    """

    source: Source

    def __call__(self, size: int, rng: np.random.Generator) -> Counts:
        """Run so many trials."""
        m, reader = self.source.categories, self.source.reader
        targets = rng.integers(m, size=size)
        reports = self.source.draw(targets, rng=rng)
        others = (targets + rng.integers(1, m, size=size)) % m
        cells = reader.cells(reports, targets, others)
        share = self._attacked(size)
        hits = reader.hits(reports[:share], targets[:share], rng=rng)
        return {
            "trials": np.array([size]),
            "pooled": np.bincount(cells, minlength=len(CELLS)),
            "attack_trials": np.array([share]),
            "attack_hits": np.array([np.count_nonzero(hits)]),
        }

    def _attacked(self, size: int) -> int:
        """Return on how many reports the attack is run."""
        protocol = getattr(self.source.reader, "protocol", None)
        sized = UnaryEncoding | SubsetSelection | SummationHistogram
        if protocol is None or isinstance(protocol, sized):
            return size
        return min(size, max(1, size * _CELLS_EACH // self.source.categories))


# How a report is read: which values it supports, without a table of all of them.
#
# An audit of a local protocol needs two things from a report: whether the simple attack
# names the truth, and how the report stands to two given values. Both need the support
# of one or two values only, and its size.

CELLS = ("neither", "second", "first", "both")
"""How a report stands to two values, by number: which of them it supports."""


# Cells of a support table held at a time.
_CELLS = 1 << 22


class Reader(Protocol):
    """What the audit reads from reports."""

    categories: int

    def cells(self, reports: Any, first: Ints, second: Ints) -> Ints:
        """Return the number into `CELLS` of each report for a pair of values."""

    def hits(self, reports: Any, truths: Ints, *, rng: np.random.Generator) -> Bools:
        """Draw whether the simple attack names the truth of each report."""


class _SupportReader:
    """Any protocol with a support table; a block of the table at a time."""

    def __init__(self, protocol: Any) -> None:
        self.protocol, self.categories = protocol, int(protocol.categories)

    def supports(self, reports: Any, values: Ints) -> Bools:
        parts = [
            self._table(reports[at])[np.arange(at.stop - at.start), values[at]]
            for at in self._blocks(len(values))
        ]
        return np.concatenate([np.zeros(0, dtype=bool), *parts])

    def sizes(self, reports: Any) -> Ints:
        parts = [
            self._table(reports[at]).sum(axis=1, dtype=np.int64)
            for at in self._blocks(len(reports))
        ]
        return np.concatenate([np.zeros(0, dtype=np.int64), *parts])

    def cells(self, reports: Any, first: Ints, second: Ints) -> Ints:
        one, two = self.supports(reports, first), self.supports(reports, second)
        return 2 * one.astype(np.int64) + two

    def hits(self, reports: Any, truths: Ints, *, rng: np.random.Generator) -> Bools:
        own, sizes = self.supports(reports, truths), self.sizes(reports)
        return _guessed(own, sizes, self.categories, rng)

    def _table(self, reports: Any) -> Bools:
        return np.asarray(self.protocol.support(reports), dtype=bool)

    def _blocks(self, count: int) -> list[slice]:
        step = max(1, _CELLS // self.categories)
        return [slice(i, min(i + step, count)) for i in range(0, count, step)]


class _WordReader(_SupportReader):
    """Packed bits: unary encodings and subsets."""

    def supports(self, reports: Any, values: Ints) -> Bools:
        return bits_at(read_words(reports, self.categories), values)

    def sizes(self, reports: Any) -> Ints:
        return count_bits(read_words(reports, self.categories))

    def hits(self, reports: Any, truths: Ints, *, rng: np.random.Generator) -> Bools:
        table = read_words(reports, self.categories)
        own, sizes = bits_at(table, truths), count_bits(table)
        return _guessed(own, sizes, self.categories, rng)


class _HashReader(_SupportReader):
    """Pairs of a seed and a bucket."""

    def supports(self, reports: Any, values: Ints) -> Bools:
        homes = hash_bucket(reports["seed"], values, buckets=self.protocol.buckets)
        return np.asarray(homes == reports["bucket"])


class _VectorReader(_SupportReader):
    """Noisy one-hot vectors: values at or above 1 against values at or below 0."""

    def cells(self, reports: Any, first: Ints, second: Ints) -> Ints:
        rows = np.arange(len(first))
        one, two = reports[rows, first], reports[rows, second]
        forward, back = (one >= 1) & (two <= 0), (two >= 1) & (one <= 0)
        both = (one >= 1) & (two >= 1)
        return np.asarray(2 * forward.astype(np.int64) + back + 3 * both)


class ValueReader:
    """Reports that are values themselves, as in randomised response.

    Values are numbers 0, ..., m - 1, or the labels given; an output that is no value
    supports none.
    """

    def __init__(self, categories: int, labels: Sequence[Any] | None = None) -> None:
        self.categories = categories
        plain = labels is None or list(labels) == list(range(categories))
        self._numbers = None if labels is None or plain else _numbered(labels)

    def cells(self, reports: Any, first: Ints, second: Ints) -> Ints:
        """Return the number into `CELLS` of each report for a pair of values."""
        told = self._read(reports)
        return np.asarray(2 * (told == first).astype(np.int64) + (told == second))

    def hits(self, reports: Any, truths: Ints, *, rng: np.random.Generator) -> Bools:
        """Return which reports are the truth; nothing is drawn."""
        del rng
        return np.asarray(self._read(reports) == truths)

    def _read(self, reports: Any) -> Ints:
        told = np.asarray(reports)
        if self._numbers is not None and told.ndim == 1:
            found = [self._numbers.get(label, -1) for label in told.tolist()]
            return np.array(found, dtype=np.int64)
        if told.ndim != 1 or not _is_whole(told):
            raise MismatchError(
                "outputs must be values, one per trial, got "
                f"{told.dtype} of shape {told.shape}; give the protocol as reader, or "
                "use audit_pair for other outputs."
            )
        if told.dtype.kind == "f":  # beyond the values, whatever it is
            told = np.where(np.abs(told) < self.categories, told, -1.0)
        return told.astype(np.int64)


def _guessed(own: Bools, sizes: Ints, m: int, rng: np.random.Generator) -> Bools:
    """Draw which guesses are right: uniform in the support, or if empty anywhere."""
    u = rng.random(len(own))
    right = own & (u * sizes < 1.0)
    return np.asarray(right | ((sizes == 0) & (u * m < 1.0)))


def _numbered(labels: Sequence[Any]) -> dict[Any, int]:
    try:
        return {label: number for number, label in enumerate(labels)}
    except TypeError:
        raise AuditError(
            "inputs must be hashable to be read as values, got others; give the "
            "protocol as reader, or use audit_pair."
        ) from None


def _is_whole(told: NDArray[Any]) -> bool:
    """Return whether outputs are whole numbers or truth values, as values may be."""
    if told.dtype.kind == "f":
        return bool(np.all(told == np.floor(told)))
    return told.dtype.kind in "biu"


def reader_of(
    subject: Any, categories: int, labels: Sequence[Any] | None = None
) -> Reader:
    """Return how the reports of a protocol, or of a subject without one, are read."""
    if isinstance(subject, UnaryEncoding | SubsetSelection):
        return _WordReader(subject)
    if isinstance(subject, LocalHashing):
        return _HashReader(subject)
    if isinstance(subject, SummationHistogram):
        return _VectorReader(subject)
    if isinstance(subject, GeneralizedResponse):
        return ValueReader(categories)
    if isinstance(subject, LocalProtocol) or hasattr(subject, "support"):
        return _SupportReader(subject)
    return ValueReader(categories, labels)
