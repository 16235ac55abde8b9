"""The claims of a plan in integers, without a loop over releases.

A *claim* is a column (view, unit, setting) with a loss; a release has one or more. Two
releases with the same claims are of one *kind*: everything after this module works on
kinds and their multiplicities, so a million releases cost one pass over integers.

Claims come as long lists, whose objects are recognised by their identity, or one
release at a time into a book, which keeps each different column and loss once. What
the claims cost per step is added up column by column, exactly.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Hashable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import islice
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.composition.release import Claim, Release
from undertow.errors import MismatchError
from undertow.numeric.array import Ints
from undertow.numeric.exact import Exact
from undertow.privacy.loss import Loss
from undertow.spaces.base import View
from undertow.spaces.change import Column
from undertow.spaces.influence._column import movable_form

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

    columns: Ints
    losses: Ints
    offsets: Ints

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def claims(self, kind: int) -> list[tuple[int, int]]:
        """Return the claims of one kind, as (column, loss) positions."""
        here = slice(self.offsets[kind], self.offsets[kind + 1])
        pairs = zip(
            self.columns[here].tolist(), self.losses[here].tolist(), strict=True
        )
        return list(pairs)

    def lengths(self) -> Ints:
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
    release_of: Ints | None = None

    @property
    def kinds(self) -> Kinds:
        """The different releases."""
        return self._compressed[0]

    @property
    def counts(self) -> Ints:
        """How many releases are of each kind."""
        return self._compressed[1]

    @property
    def kind_of(self) -> Ints:
        """The kind of each release."""
        return self._compressed[2]

    @property
    def releases(self) -> int:
        """The number of releases."""
        return len(self.kind_of)

    @cached_property
    def _compressed(self) -> tuple[Kinds, Ints, Ints]:
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


def _codes(values: ArrayLike, name: str, size: int) -> Ints:
    codes: NDArray[Any] = np.asarray(values)
    if codes.ndim != 1 or (codes.size and codes.dtype.kind not in "iu"):
        raise MismatchError(f"{name} must be a vector of integers, got {codes.dtype}.")
    if codes.size and not 0 <= codes.min() <= codes.max() < size:
        raise MismatchError(f"{name} must lie in 0..{size - 1}, got another code.")
    return codes.astype(np.int64, copy=False)


def _releases(values: ArrayLike, claims: int) -> Ints:
    codes = _codes(values, "release_codes", max(claims, 1))
    if len(codes) != claims:
        raise MismatchError(
            f"release_codes must have one entry per claim, got {len(codes)} for "
            f"{claims} claims."
        )
    if claims and np.bincount(codes).min() == 0:
        raise MismatchError("release_codes must be numbered without gaps, got a gap.")
    return codes.astype(np.int64)


def _used(codes: Ints, items: Sequence[Item]) -> tuple[tuple[Item, ...], Codes]:
    """Return the items in use, and the codes that number them, copied."""
    present = np.bincount(codes, minlength=len(items)) > 0
    if present.all():
        return tuple(items), codes.astype(np.int32)
    position = np.cumsum(present) - 1
    kept = np.flatnonzero(present).tolist()
    return tuple(items[j] for j in kept), position[codes].astype(np.int32)


Grouped = tuple[Ints, Ints, Ints, Ints]
"""Claims of the kinds end to end, their lengths, multiplicities, kind of release."""


def _single(key: Ints) -> Grouped:
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


def _grouped(key: Ints, release_of: Ints) -> Grouped:
    order = np.lexsort((key, release_of))
    key, release_of = key[order], release_of[order]
    # A claim given twice counts once: all claims of a release hold at the same time.
    fresh = np.ones(len(key), dtype=bool)
    fresh[1:] = (key[1:] != key[:-1]) | (release_of[1:] != release_of[:-1])
    key, release_of = key[fresh], release_of[fresh]
    lengths = np.bincount(release_of)
    starts = np.cumsum(lengths) - lengths
    flat: list[Ints] = []
    sizes: list[Ints] = []
    counts: list[Ints] = []
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


# The claims of a plan in columns, written as releases come in.
#
# A plan of a hundred thousand releases has few different views, units and losses. The
# book keeps each of them once and two integers per claim, so that composing does not
# walk over the releases again.

_MOST_ALIKE = 2


class ClaimBook:
    """Columns and losses of a growing list of releases, each kept once.

    Attributes
    ----------
    columns : list of Column
        The different ones, in order of appearance.
    losses : list of Loss
        The different ones, in order of appearance.
    representatives : list of Release
        Up to two releases of each combination of columns, single times and windows of
        one length counting as one: enough to see which kinds of view, units and
        settings occur, and which occur more than once.
    continuous : bool
        Whether a claim is about continuous noise.

    Notes
    -----
    Objects met before are recognised by identity, which spares hashing; they are kept
    alive here, so that no other object can take over an identity.
    """

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.losses: list[Loss] = []
        self.representatives: list[Release] = []
        self._column_codes, self._loss_codes = array("i"), array("i")
        self._owners = array("q")
        self._releases = 0
        self.continuous = False
        self._seen_columns: dict[tuple[int, int, str], int] = {}
        self._seen_losses: dict[int, int] = {}
        self._equal_columns: dict[Column, int] = {}
        self._equal_losses: dict[Loss, int] = {}
        self._shapes: dict[Hashable, int] = {}
        self._shape_of = array("q")
        self._views: set[int] = set()
        self._alike: dict[tuple[int, ...], int] = {}
        self._alive: list[object] = []

    def copy(self) -> Self:
        """Return a book that grows on its own."""
        other = type(self)()
        for name, value in vars(self).items():
            kept = value if isinstance(value, int) else copy(value)
            setattr(other, name, kept)
        return other

    def has_seen(self, view: View) -> bool:
        """Return whether a release entered before has this very view."""
        return id(view) in self._views

    def enter(self, release: Release) -> None:
        """Write down the claims of one more release."""
        written = [self._column(release.view, claim) for claim in release.claims]
        for code, claim in zip(written, release.claims, strict=True):
            self._column_codes.append(code)
            self._loss_codes.append(self._loss(claim.loss))
            self.continuous = self.continuous or claim.loss.continuous
            self._owners.append(self._releases)
        self._releases += 1
        key = tuple([self._shape_of[code] for code in written])
        alike = self._alike.get(key, 0)
        if alike < _MOST_ALIKE:
            self._alike[key] = alike + 1
            self.representatives.append(release)

    def column_codes(self) -> NDArray[np.int64]:
        """Return the column of each claim."""
        return np.array(self._column_codes, dtype=np.int64)

    def loss_codes(self) -> NDArray[np.int64]:
        """Return the loss of each claim."""
        return np.array(self._loss_codes, dtype=np.int64)

    def table(self) -> ClaimTable:
        """Return the claims entered so far."""
        return ClaimTable(
            tuple(self.columns),
            tuple(self.losses),
            np.array(self._column_codes, dtype=np.int32),
            np.array(self._loss_codes, dtype=np.int32),
            self.release_codes(),
        )

    def shape_codes(self) -> NDArray[np.int64]:
        """Return a number for each column, the same if only the starts differ."""
        return np.array(self._shape_of, dtype=np.int64)

    def release_codes(self) -> NDArray[np.int64] | None:
        """Return the release of each claim; None where each has one claim."""
        if len(self._owners) == self._releases:
            return None
        return np.array(self._owners, dtype=np.int64)

    def _column(self, view: View, claim: Claim) -> int:
        key = (id(view), id(claim.unit), claim.setting)
        code = self._seen_columns.get(key)
        if code is None:
            column = Column(view, claim.unit, claim.setting)
            code = self._equal_columns.setdefault(column, len(self.columns))
            if code == len(self.columns):
                self.columns.append(column)
                self._shape_of.append(self._shape(column))
            self._seen_columns[key] = code
            self._views.add(id(view))
            self._alive += [view, claim.unit]
        return code

    def _shape(self, column: Column) -> int:
        form = movable_form(column.view)
        key: Hashable = column
        if form is not None:
            key = (form, column.unit, column.setting)
        return self._shapes.setdefault(key, len(self._shapes))

    def _loss(self, loss: Loss) -> int:
        code = self._seen_losses.get(id(loss))
        if code is None:
            code = self._equal_losses.setdefault(loss, len(self.losses))
            if code == len(self.losses):
                self.losses.append(loss)
            self._seen_losses[id(loss)] = code
            self._alive.append(loss)
        return code


class Snapshot(Sequence[Release]):
    """The releases that a list held at one moment; the list may only grow.

    Parameters
    ----------
    releases : list of Release
        Not copied.
    """

    def __init__(self, releases: list[Release]) -> None:
        self._releases, self._count = releases, len(releases)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Release: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Release]: ...

    def __getitem__(self, at: int | slice) -> Release | Sequence[Release]:
        if isinstance(at, slice):
            return self._releases[: self._count][at]
        return self._releases[range(self._count)[at]]

    def __iter__(self) -> Iterator[Release]:
        return islice(self._releases, self._count)


# Exact sums of rates over very many claims, column by column.

WORD = 2**62
"""Integers below it may be added and subtracted in machine words."""

# Claims looked at in one go: few enough for their rates to stay in the cache.
_BLOCK = 2**15


@dataclass(frozen=True, slots=True)
class ColumnSums:
    """The sum of the rates of each column, over one denominator.

    Parameters
    ----------
    numerators : ndarray of int, or list of int
        An array where the sum over all columns is below 2**62.
    infinite : ndarray of bool
        Columns with an infinite rate.
    denominator : int
        Common to all columns.
    """

    numerators: Ints | list[int]
    infinite: NDArray[np.bool_]
    denominator: int

    def merged(self, groups: Ints) -> ColumnSums:
        """Add the columns of each group, numbered without gaps."""
        width = int(groups.max()) + 1
        infinite = np.bincount(groups[self.infinite], minlength=width) > 0
        if isinstance(self.numerators, np.ndarray):
            added = np.zeros(width, dtype=np.int64)
            np.add.at(added, groups, self.numerators)
            return ColumnSums(added, infinite, self.denominator)
        whole = [0] * width
        for group, number in zip(groups.tolist(), self.numerators, strict=True):
            whole[group] += number
        return ColumnSums(whole, infinite, self.denominator)

    def values(self) -> list[Exact]:
        """Return the sums as numbers."""
        return [
            math.inf if lost else Fraction(int(number), self.denominator)
            for number, lost in zip(
                self.numerators, self.infinite.tolist(), strict=True
            )
        ]


def column_sums(
    table: ClaimTable, rates: Sequence[Sequence[Exact]]
) -> list[ColumnSums]:
    """Add up, for each of several lists of rates, the rates of all claims.

    Parameters
    ----------
    table : ClaimTable
        The claims.
    rates : sequence of sequence of Exact
        In each list one rate per loss of the table.

    Returns
    -------
    list of ColumnSums
        One per list, all over the same denominator.
    """
    finite = [[0 if isinstance(r, float) else r for r in each] for each in rates]
    denominator = math.lcm(*{r.denominator for each in finite for r in each})
    found = []
    for each, given in zip(finite, rates, strict=True):
        numbers = [r.numerator * (denominator // r.denominator) for r in each]
        lost = np.array([isinstance(r, float) for r in given], dtype=bool)
        infinite = np.zeros(len(table.columns), dtype=bool)
        if lost.any():
            infinite[table.column_of[lost[table.loss_of]]] = True
        found.append(ColumnSums(_totals(table, numbers), infinite, denominator))
    return found


def _totals(table: ClaimTable, numbers: Sequence[int]) -> Ints | list[int]:
    if max(numbers, default=0) >> _limb(len(table.loss_of)):
        # Several passes: alike releases are worth counting first.
        kinds = table.kinds
        return integer_sums(
            kinds.columns,
            kinds.losses,
            table.counts,
            numbers=numbers,
            width=len(table.columns),
        )
    rates = np.array(numbers, dtype=np.int64)
    totals = np.zeros(len(table.columns), dtype=np.int64)
    for start in range(0, len(table.loss_of), _BLOCK):
        column_of = table.column_of[start : start + _BLOCK].astype(np.intp)
        loss_of = table.loss_of[start : start + _BLOCK].astype(np.intp)
        np.add.at(totals, column_of, rates[loss_of])
    return totals


def integer_sums(
    columns: Ints,
    losses: Ints,
    counts: Ints,
    *,
    numbers: Sequence[int],
    width: int,
) -> Ints | list[int]:
    """Add up, column by column, the numbers of the losses as often as counted.

    Parameters
    ----------
    columns, losses, counts : ndarray of int
        The claims, and how often each of them is made.
    numbers : sequence of int
        One per loss; long ones are added limb by limb, each limb in machine words.
    width : int
        The number of columns.
    """
    limb = _limb(int(counts.sum()))
    parts = max(1, -(-max(numbers, default=0).bit_length() // limb))
    whole: Ints | list[int] = [0] * width
    for part in reversed(range(parts)):
        cut = [(number >> part * limb) & ((1 << limb) - 1) for number in numbers]
        sums = np.zeros(width, dtype=np.int64)
        np.add.at(sums, columns, np.array(cut, dtype=np.int64)[losses] * counts)
        if parts == 1:
            return sums
        low = sums.tolist()
        whole = [(high << limb) + one for high, one in zip(whole, low, strict=True)]
    return whole


def _limb(claims: int) -> int:
    """Return how many bits a number may have to be added so often in a word."""
    return 62 - claims.bit_length()


# From long lists of objects to integers: objects are recognised by their identity.
#
# A list of a hundred thousand claims holds few different objects. Looking at every
# entry in Python costs more than composing them, so the addresses of the objects are
# compared as integers, block by block, with those met before; only objects not met
# before are hashed and compared by value.

Codes = NDArray[np.int32]
"""Positions in a list of different objects, half as wide as an address."""


HashableItem = TypeVar("HashableItem", bound=Hashable)

# Blocks grow, so that few entries are looked up before their object is known.
_FIRST_BLOCK, _LARGEST_BLOCK = 256, 16384
# Places in the table of addresses: few of a thousand objects share one.
_PLACES = 2**16


def encode(items: Sequence[HashableItem]) -> tuple[list[HashableItem], Codes]:
    """Return the different items in order of appearance, and a code for each item.

    Equal items are hashed only when they are different objects.

    Examples
    --------
    >>> encode("abca")[0], encode("abca")[1].tolist()
    (['a', 'b', 'c'], [0, 1, 2, 0])
    """
    if len(items) <= _FIRST_BLOCK:
        different: dict[HashableItem, int] = {}
        walked = [different.setdefault(item, len(different)) for item in items]
        return list(different), np.array(walked, dtype=np.int32)
    held = _held(items if isinstance(items, list) else list(items))
    addresses = _addresses(held)
    book: _AddressBook[HashableItem] = _AddressBook()
    codes = np.empty(len(held), dtype=np.int32)
    for block in _blocks(len(held)):
        codes[block] = book.read(addresses[block], held[block])
    return list(book.by_value), codes


def _held(items: list[HashableItem]) -> NDArray[Any]:
    """Return the objects in an array, which keeps them alive at their addresses."""
    held = np.empty(0, dtype=object)
    # The state of an array of objects is a list; other ways ask each object whether it
    # is a sequence, or go through an iterator.
    state: Any = (1, (len(items),), held.dtype, False, items)
    held.__setstate__(state)
    return held


def _addresses(held: NDArray[Any]) -> Ints:
    """Return the addresses of the objects, read from the array that refers to them."""
    found = np.frombuffer(held, dtype=np.intp).astype(np.int64, copy=False)
    if found[0] == id(held[0]) and found[-1] == id(held[-1]):
        return found
    # An interpreter whose identities are not addresses.
    return np.fromiter(map(id, held), dtype=np.int64, count=len(held))


def _blocks(count: int) -> Iterator[slice]:
    start, size = 0, _FIRST_BLOCK
    while start < count:
        yield slice(start, start + size)
        start, size = start + size, min(2 * size, _LARGEST_BLOCK)


class _AddressBook(Generic[HashableItem]):
    """Objects met before, by address.

    `code_of` knows them all. Two arrays remember one of them for each of few places, to
    find most in one go; whatever is remembered is compared with the address.
    """

    def __init__(self) -> None:
        self.by_value: dict[HashableItem, int] = {}
        self.code_of: dict[int, int] = {}
        self.address_at = np.zeros(_PLACES, dtype=np.int64)  # 0: no object
        self.code_at = np.zeros(_PLACES, dtype=np.int32)

    def read(self, addresses: Ints, held: NDArray[Any]) -> Codes:
        """Return the code of each object, new ones being entered."""
        place = (addresses >> 4) & (_PLACES - 1)
        missed = np.flatnonzero(self.address_at[place] != addresses)
        if len(missed):
            self._enter(addresses[missed], held[missed])
            # What lost its place to another object is looked up one by one.
            missed = np.flatnonzero(self.address_at[place] != addresses)
        codes: Codes = self.code_at[place]
        codes[missed] = [self.code_of[a] for a in addresses[missed].tolist()]
        return codes

    def _enter(self, addresses: Ints, held: NDArray[Any]) -> None:
        met: dict[int, HashableItem]
        met = dict(zip(addresses.tolist(), held.tolist(), strict=True))
        for address in met.keys() & self.code_of.keys():
            del met[address]
        marks, known = list(met), self.by_value
        assert list(map(id, met.values())) == marks, "addresses tell objects apart"
        codes = [known.setdefault(item, len(known)) for item in met.values()]
        self.code_of.update(zip(marks, codes, strict=True))
        entered = np.array(marks, dtype=np.int64)
        place = (entered >> 4) & (_PLACES - 1)
        # Where several share a place, both arrays keep the last of them.
        self.address_at[place], self.code_at[place] = entered, codes
