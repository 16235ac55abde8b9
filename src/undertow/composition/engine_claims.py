"""From long lists of claims to the few different ones, without a loop over releases.

A *claim* is a column (view, unit, setting) with a loss; a release has one or more. Two
releases with the same claims are of one *kind*: everything after this module works on
kinds and their multiplicities, so a million releases cost one pass over integers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.composition.engine_encode import Codes, encode
from undertow.errors import MismatchError
from undertow.privacy.loss import Loss
from undertow.spaces.change import Column

__all__ = ["ClaimTable", "Kinds", "list_claims", "read_claims"]

Integers = NDArray[np.int64]
Item = TypeVar("Item")


@dataclass(frozen=True)
class Kinds:
    """Different releases, each a list of claims, end to end.

    Parameters
    ----------
    columns, losses : ndarray of int
        The claims of all kinds, kind after kind.
    offsets : ndarray of int
        Where each kind starts, and the end.
    """

    columns: Integers
    losses: Integers
    offsets: Integers

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def claims(self, kind: int) -> list[tuple[int, int]]:
        """Return the claims of one kind, as (column, loss) positions."""
        here = slice(self.offsets[kind], self.offsets[kind + 1])
        pairs = zip(
            self.columns[here].tolist(), self.losses[here].tolist(), strict=True
        )
        return list(pairs)

    def lengths(self) -> Integers:
        """Return the number of claims of each kind."""
        return np.diff(self.offsets)

    def keep(self, mask: NDArray[np.bool_]) -> Kinds:
        """Return the kinds with the claims marked in `mask` only."""
        kept = np.concatenate([[0], np.cumsum(mask)])
        return Kinds(self.columns[mask], self.losses[mask], kept[self.offsets])


@dataclass(frozen=True)
class ClaimTable:
    """Claims in integers, and the kinds of releases they make up.

    Kinds are worked out when they are first asked for: where every claim is a release
    of its own, the sums need the claims only.

    Parameters
    ----------
    columns : tuple of Column
        Those in use, each once.
    losses : tuple of Loss
        Those in use, each once.
    column_of, loss_of : ndarray of int
        The column and the loss of each claim.
    release_of : ndarray of int or None
        The release of each claim; None: every claim is one.
    """

    columns: tuple[Column, ...]
    losses: tuple[Loss, ...]
    column_of: Codes
    loss_of: Codes
    release_of: Integers | None = None

    @property
    def kinds(self) -> Kinds:
        """The different releases."""
        return self._compressed[0]

    @property
    def counts(self) -> Integers:
        """How many releases are of each kind."""
        return self._compressed[1]

    @property
    def kind_of(self) -> Integers:
        """The kind of each release."""
        return self._compressed[2]

    @property
    def releases(self) -> int:
        """The number of releases."""
        return len(self.kind_of)

    @cached_property
    def _compressed(self) -> tuple[Kinds, Integers, Integers]:
        width = max(len(self.losses), 1)
        key = self.column_of.astype(np.int64) * width + self.loss_of
        if self.release_of is None:
            flat, lengths, counts, kind_of = _single(key)
        else:
            flat, lengths, counts, kind_of = _grouped(key, self.release_of)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return Kinds(*np.divmod(flat, width), offsets), counts, kind_of


def read_claims(
    columns: Sequence[Column],
    losses: Sequence[Loss],
    *,
    column_codes: ArrayLike,
    loss_codes: ArrayLike,
    release_codes: ArrayLike | None = None,
) -> ClaimTable:
    """Check coded claims and keep the columns and losses they use.

    Parameters
    ----------
    columns, losses : sequence
        What the codes stand for.
    column_codes, loss_codes : array_like of int
        One entry per claim.
    release_codes : array_like of int, optional
        The release each claim belongs to, numbered 0, 1, ... without gaps; by default
        every claim is a release of its own.

    Raises
    ------
    MismatchError
        If the arrays differ in length, a code has no meaning, or a release has no
        claim.
    """
    given = _codes(column_codes, "column_codes", len(columns))
    paid = _codes(loss_codes, "loss_codes", len(losses))
    if len(given) != len(paid):
        raise MismatchError(
            "column_codes and loss_codes must have one entry per claim, "
            f"got {len(given)} and {len(paid)}."
        )
    used_columns, column_of = _used(given, columns)
    used_losses, loss_of = _used(paid, losses)
    releases = None
    if release_codes is not None:
        releases = _releases(release_codes, len(column_of))
    return ClaimTable(used_columns, used_losses, column_of, loss_of, releases)


def list_claims(
    columns: Sequence[Column],
    losses: Sequence[Loss],
    *,
    releases: ArrayLike | None = None,
) -> ClaimTable:
    """Compress claims given one by one; `columns` and `losses` are equally long."""
    used_columns, column_of = encode(columns)
    used_losses, loss_of = encode(losses)
    release_of = None if releases is None else _releases(releases, len(column_of))
    return ClaimTable(
        tuple(used_columns), tuple(used_losses), column_of, loss_of, release_of
    )


def _codes(values: ArrayLike, name: str, size: int) -> Integers:
    codes: NDArray[Any] = np.asarray(values)
    if codes.ndim != 1 or (codes.size and codes.dtype.kind not in "iu"):
        raise MismatchError(f"{name} must be a vector of integers, got {codes.dtype}.")
    if codes.size and not 0 <= codes.min() <= codes.max() < size:
        raise MismatchError(f"{name} must lie in 0..{size - 1}, got another code.")
    return codes.astype(np.int64, copy=False)


def _releases(values: ArrayLike, claims: int) -> Integers:
    codes = _codes(values, "release_codes", max(claims, 1))
    if len(codes) != claims:
        raise MismatchError(
            f"release_codes must have one entry per claim, got {len(codes)} for "
            f"{claims} claims."
        )
    if claims and np.bincount(codes).min() == 0:
        raise MismatchError("release_codes must be numbered without gaps, got a gap.")
    return codes.astype(np.int64)


def _used(codes: Integers, items: Sequence[Item]) -> tuple[tuple[Item, ...], Codes]:
    """Return the items in use, and the codes that number them, copied."""
    present = np.bincount(codes, minlength=len(items)) > 0
    if present.all():
        return tuple(items), codes.astype(np.int32)
    position = np.cumsum(present) - 1
    kept = np.flatnonzero(present).tolist()
    return tuple(items[j] for j in kept), position[codes].astype(np.int32)


Grouped = tuple[Integers, Integers, Integers, Integers]
"""Claims of the kinds end to end, their lengths, multiplicities, kind of release."""


def _single(key: Integers) -> Grouped:
    span = int(key.max()) + 1 if len(key) else 0
    if span <= 4 * len(key):  # a table of all keys is cheaper than a sort
        counts = np.bincount(key, minlength=span)
        present = counts > 0
        kind_of = (np.cumsum(present) - 1)[key]
        different, counts = np.flatnonzero(present), counts[present]
    else:
        different, kind_of, counts = np.unique(
            key, return_inverse=True, return_counts=True
        )
    return different, np.ones(len(different), np.int64), counts, kind_of.reshape(-1)


def _grouped(key: Integers, release_of: Integers) -> Grouped:
    order = np.lexsort((key, release_of))
    key, release_of = key[order], release_of[order]
    # A claim given twice counts once: all claims of a release hold at the same time.
    fresh = np.ones(len(key), dtype=bool)
    fresh[1:] = (key[1:] != key[:-1]) | (release_of[1:] != release_of[:-1])
    key, release_of = key[fresh], release_of[fresh]
    lengths = np.bincount(release_of)
    starts = np.cumsum(lengths) - lengths
    flat: list[Integers] = []
    sizes: list[Integers] = []
    counts: list[Integers] = []
    kind_of = np.empty(len(lengths), dtype=np.int64)
    for length in np.unique(lengths):
        members = np.flatnonzero(lengths == length)
        block = key[starts[members][:, None] + np.arange(length)]
        different, inverse, number = np.unique(
            block, axis=0, return_inverse=True, return_counts=True
        )
        kind_of[members] = inverse.reshape(-1) + sum(map(len, sizes))
        flat.append(different.reshape(-1))
        sizes.append(np.full(len(different), length))
        counts.append(number)
    nothing = [np.empty(0, dtype=np.int64)]
    joined = [np.concatenate(part or nothing) for part in (flat, sizes, counts)]
    return joined[0], joined[1], joined[2], kind_of
