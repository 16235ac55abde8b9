"""From long lists of claims to the few different ones, without a loop over releases.

A *claim* is a column (view, unit, setting) with a loss; a release has one or more. Two
releases with the same claims are of one *kind*: everything after this module works on
kinds and their multiplicities, so a million releases cost one pass over integers.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import MismatchError
from undertow.privacy.loss import Loss
from undertow.spaces.change import Column

__all__ = ["ClaimTable", "Kinds", "encode", "read_claims"]

Integers = NDArray[np.int64]
Item = TypeVar("Item", bound=Hashable)


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
    """Releases, compressed to the kinds of them.

    Parameters
    ----------
    columns : tuple of Column
        Those in use, each once.
    losses : tuple of Loss
        Those in use, each once.
    kinds : Kinds
        The different releases.
    counts : ndarray of int
        How many releases are of each kind.
    kind_of : ndarray of int
        The kind of each release.
    """

    columns: tuple[Column, ...]
    losses: tuple[Loss, ...]
    kinds: Kinds
    counts: Integers
    kind_of: Integers

    @property
    def releases(self) -> int:
        """The number of releases."""
        return len(self.kind_of)


def encode(items: Sequence[Item]) -> tuple[list[Item], Integers]:
    """Return the different items in order of appearance, and a code for each item.

    Objects met before are recognised by identity, so that equal items are hashed in
    full only when they are different objects.

    Examples
    --------
    >>> encode("abca")[0], encode("abca")[1].tolist()
    (['a', 'b', 'c'], [0, 1, 2, 0])
    """
    by_identity: dict[int, int] = {}
    by_value: dict[Item, int] = {}
    codes = np.empty(len(items), dtype=np.int64)
    for at, item in enumerate(items):
        code = by_identity.get(id(item))
        if code is None:
            code = by_value.setdefault(item, len(by_value))
            by_identity[id(item)] = code
        codes[at] = code
    return list(by_value), codes


def read_claims(
    columns: Sequence[Column],
    losses: Sequence[Loss],
    *,
    column_codes: ArrayLike,
    loss_codes: ArrayLike,
    release_codes: ArrayLike | None = None,
) -> ClaimTable:
    """Compress coded claims to kinds of releases.

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
    column_of = _codes(column_codes, "column_codes", len(columns))
    loss_of = _codes(loss_codes, "loss_codes", len(losses))
    if len(column_of) != len(loss_of):
        raise MismatchError(
            "column_codes and loss_codes must have one entry per claim, "
            f"got {len(column_of)} and {len(loss_of)}."
        )
    used_columns, column_of = _used(column_of, len(columns))
    used_losses, loss_of = _used(loss_of, len(losses))
    key = column_of * max(len(used_losses), 1) + loss_of
    kept_columns = tuple(columns[j] for j in used_columns)
    kept_losses = tuple(losses[j] for j in used_losses)
    if release_codes is None:
        flat, lengths, counts, kind_of = _single(key)
    else:
        releases = _releases(release_codes, len(key))
        flat, lengths, counts, kind_of = _grouped(key, releases)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    kinds = Kinds(*np.divmod(flat, max(len(used_losses), 1)), offsets)
    return ClaimTable(kept_columns, kept_losses, kinds, counts, kind_of)


def _codes(values: ArrayLike, name: str, size: int) -> Integers:
    codes: NDArray[Any] = np.asarray(values)
    if codes.ndim != 1 or (codes.size and codes.dtype.kind not in "iu"):
        raise MismatchError(f"{name} must be a vector of integers, got {codes.dtype}.")
    if codes.size and not 0 <= codes.min() <= codes.max() < size:
        raise MismatchError(f"{name} must lie in 0..{size - 1}, got another code.")
    return codes.astype(np.int64)


def _releases(values: ArrayLike, claims: int) -> Integers:
    codes = _codes(values, "release_codes", max(claims, 1))
    if len(codes) != claims:
        raise MismatchError(
            f"release_codes must have one entry per claim, got {len(codes)} for "
            f"{claims} claims."
        )
    if claims and np.bincount(codes).min() == 0:
        raise MismatchError("release_codes must be numbered without gaps, got a gap.")
    return codes


def _used(codes: Integers, size: int) -> tuple[list[int], Integers]:
    present = np.bincount(codes, minlength=size) > 0
    position = np.cumsum(present) - 1
    return np.flatnonzero(present).tolist(), position[codes]


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
