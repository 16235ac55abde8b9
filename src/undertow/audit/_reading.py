r"""How a report is read: which values it supports, without a table of all of them.

An audit of a local protocol needs two things from a report: whether the simple attack
names the truth, and how the report stands to two given values. Both need the support
of one or two values only, and its size.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

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

__all__ = ["CELLS", "Reader", "ValueReader", "reader_of"]

CELLS = ("neither", "second", "first", "both")
"""How a report stands to two values, by number: which of them it supports."""

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
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
