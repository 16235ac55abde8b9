r"""Exact bits of one rate, 8 to 64 at a time.

A group of n independent bits is, given the number k of its ones, a uniform set of k of
its lanes. One random word of b bits is looked up: of the :math:`2^b` words every set of
k lanes owns

.. math:: c_k = \lfloor 2^b p_k \rfloor, \quad p_k = r^k (1-r)^{n-k}.

If no set owns the word, then with c in all of them owned a set has to be drawn with
what is left of its probability,

.. math:: p'_k = \frac{2^b p_k - c_k}{2^b - c},

which again depends on k alone: so another word is looked up in another table, and after
a few of them, which is rare, the number of ones is drawn by exact inversion and a
uniform set of so many lanes. In all a set has probability
:math:`2^{-b} c_k + (1 - 2^{-b} c)\, p'_k = p_k`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.noise.bits import BitSource, uniform_bits
from undertow.mechanisms.noise.inversion import Table, compile_table, sample_outcomes
from undertow.mechanisms.noise.law import Boundaries

__all__ = ["GroupLaw", "LaneSets", "by_size", "fill_groups", "group_law", "open_share"]

Groups = NDArray[Any]
"""Unsigned integers whose bits are the lanes."""

# Words looked up before the number of ones is drawn.
_TABLES = 3
# Groups looked up at a time, to stay in the cache.
_DRAWN = 1 << 15


@dataclass(frozen=True, slots=True)
class LaneSets:
    """A law of sets of lanes in which those of one size are equally likely.

    Parameters
    ----------
    shares : tuple of int
        Of one set of 0, 1, ... lanes, up to all of them, in units of ``1/whole``.
    whole : int
        The sum over all sets.
    """

    shares: tuple[int, ...]
    whole: int

    @classmethod
    def independent(cls, rate: Fraction, lanes: int) -> LaneSets:
        """Return the law of independent bits of one rate."""
        one, unit = rate.numerator, rate.denominator
        shares = (one**k * (unit - one) ** (lanes - k) for k in range(lanes + 1))
        return cls(tuple(shares), unit**lanes)

    @property
    def lanes(self) -> int:
        """How many lanes there are."""
        return len(self.shares) - 1

    def owned(self, width: int) -> list[int]:
        """Return how many words of `width` bits a set of each size owns."""
        return [(share << width) // self.whole for share in self.shares]

    def left(self, owned: list[int], width: int) -> LaneSets:
        """Return the law of the set given that none owns the word."""
        shares = tuple(
            (share << width) - words * self.whole
            for share, words in zip(self.shares, owned, strict=True)
        )
        return LaneSets(shares, sum(by_size(shares)))

    def boundaries(self, precision: int) -> Boundaries:
        """Enclose the boundaries of the law of the size, rounded down and up."""
        masses, whole = by_size(self.shares), self.whole
        sums = [total << precision for total in accumulate(masses, initial=0)]
        return [s // whole for s in sums], [-(-s // whole) for s in sums]


def by_size(shares: Sequence[int]) -> list[int]:
    """Return the sum over all sets of each size, given the share of one of them."""
    lanes = len(shares) - 1
    return [math.comb(lanes, size) * share for size, share in enumerate(shares)]


@dataclass(frozen=True, slots=True, eq=False)
class GroupLaw:
    """Groups of one rate made ready for words of one width.

    Parameters
    ----------
    tables : tuple of pair
        The owners of words, in order, and how many of the words are owned.
    sizes : Table
        The law of the number of ones of a group that no table settles.
    lanes : int
        Bits of a group.
    """

    tables: tuple[tuple[Groups, int], ...]
    sizes: Table
    lanes: int

    @property
    def dtype(self) -> np.dtype[Any]:
        """The unsigned integers that hold the groups."""
        return self.tables[0][0].dtype


def open_share(rate: Fraction, lanes: int, width: int) -> float:
    """Return how often the first word does not settle a group."""
    owned = LaneSets.independent(rate, lanes).owned(width)
    return 1 - sum(by_size(owned)) / (1 << width)


@lru_cache(maxsize=16)
def group_law(rate: Fraction, lanes: int, width: int) -> GroupLaw:
    """Prepare groups of `lanes` bits of a rate for words of `width` bits."""
    law = LaneSets.independent(rate, lanes)
    tables: list[tuple[Groups, int]] = []
    while len(tables) < _TABLES:
        owned = law.owned(width)
        tables.append(_owners(owned, lanes, width))
        if tables[-1][1] == 1 << width:
            break  # every word is owned, and the number of ones never drawn
        law = law.left(owned, width)
    return GroupLaw(tuple(tables), compile_table(law, width), lanes)


def _owners(owned: list[int], lanes: int, width: int) -> tuple[Groups, int]:
    """List the owner of each word, the empty set where there is none."""
    sets = np.zeros(1, dtype=f"<u{max(1, lanes // 8)}")
    table, start = np.zeros(1 << width, dtype=sets.dtype), 0
    largest = max((size for size, words in enumerate(owned) if words), default=0)
    for size, words in enumerate(owned[: largest + 1]):
        if size:
            sets = _one_more(sets, size, lanes)
        end = start + words * sets.size
        table[start:end] = np.repeat(sets, words)
        start = end
    return table, start


def _one_more(sets: Groups, size: int, lanes: int) -> Groups:
    """List the sets of `size` lanes by number, given those of one lane less."""
    parts = [
        sets[: math.comb(top, size - 1)] | sets.dtype.type(1 << top)
        for top in range(size - 1, lanes)
    ]
    return np.concatenate(parts)


def fill_groups(
    groups: Groups, law: GroupLaw, *, bits: BitSource, add: bool = False
) -> None:
    """Overwrite groups with exact bits, or add these: what was one stays one."""
    found = [np.zeros(0, dtype=np.intp)]
    for start in range(0, groups.size, _DRAWN):
        part = groups[start : start + _DRAWN]
        drawn, open_ = _look_up(law.tables[0], None if add else part, part.size, bits)
        if add:
            part |= drawn
        open_ += start
        found.append(open_)
    where = np.concatenate(found)
    if where.size:
        groups[where] |= _draw_left(law, 1, where.size, bits)


def _look_up(
    table: tuple[Groups, int], out: Groups | None, count: int, bits: BitSource
) -> tuple[Groups, NDArray[np.intp]]:
    """Draw sets, and return where there are none yet."""
    owners, settled = table
    words = bits.words(count)
    # Every word is a number into the table: nothing is wrapped.
    drawn = owners.take(words, out=out, mode="wrap")
    if settled == owners.size:
        return drawn, np.zeros(0, dtype=np.intp)
    return drawn, (words >= np.uint16(settled)).nonzero()[0]


def _draw_left(law: GroupLaw, depth: int, count: int, bits: BitSource) -> Groups:
    """Draw groups that the first tables do not settle."""
    if depth == len(law.tables):
        return _draw_sets(law, count, bits)
    groups, open_ = _look_up(law.tables[depth], None, count, bits)
    if open_.size:
        groups[open_] = _draw_left(law, depth + 1, open_.size, bits)
    return groups


def _draw_sets(law: GroupLaw, count: int, bits: BitSource) -> Groups:
    """Draw the sizes and then uniform sets of lanes, one lane after the other."""
    groups = np.zeros(count, dtype=law.dtype)
    missing, _ = sample_outcomes(law.sizes, count, bits=bits)
    one, length = law.dtype.type(1), law.lanes.bit_length() - 1
    while (pending := missing.nonzero()[0]).size:
        lanes = uniform_bits(bits, pending.size, length=length)
        old = groups[pending]
        new = old | (one << lanes.astype(law.dtype))
        groups[pending] = new
        missing[pending] -= new != old
    return groups
