r"""Exact inversion: the outcome whose probability interval holds a uniform number.

A uniform real :math:`U` on [0, 1) is read word by word. After L bits it is known to lie
in an interval of length :math:`2^{-L}`; as soon as that interval lies between two
enclosed boundaries of the law the outcome is settled, otherwise another word is read.
The first word is looked up in a table, the second compared in machine integers, all
further ones in Python integers: three speeds of one and the same function of U.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.noise.bits import BitSource
from undertow.mechanisms.noise.law import Law

__all__ = ["Table", "compile_table", "resolve", "sample_outcomes"]

_UNDECIDED = -1
# Precision beyond the bits read: changes how soon an outcome is settled, never which.
_GUARD = 8
_MOST_OUTCOMES = 1 << 15


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A law made ready for words of one width.

    Parameters
    ----------
    law : Law
        The law.
    outcomes : int
        Outcomes 0 to ``outcomes - 1`` can be settled by the first two words.
    first : ndarray of int16
        Outcome for each first word, or -1.
    starts, ends : ndarray of int64
        A pair of words read as one number w settles outcome i if
        ``starts[i] <= w < ends[i]``.
    """

    law: Law
    outcomes: int
    first: NDArray[np.int16]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]


@lru_cache(maxsize=64)
def compile_table(law: Law, width: int) -> Table:
    """Build the table of `law` for words of `width` bits."""
    precision = 2 * width + _GUARD
    lower, upper = law.boundaries(precision)
    if len(lower) > _MOST_OUTCOMES:
        raise ValueError(
            f"law must have at most {_MOST_OUTCOMES} outcomes above the table's "
            f"resolution, got {len(lower)}; use wider steps."
        )
    starts, ends = _settled(lower, upper, precision - 2 * width)
    one_starts, one_ends = _settled(lower, upper, precision - width)
    every_word = np.arange(1 << width, dtype=np.int64)
    first = _locate(one_starts, one_ends, every_word).astype(np.int16)
    return Table(law, len(lower) - 1, first, starts, ends)


def _settled(
    lower: list[int], upper: list[int], shift: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return where each outcome's settled words start and end."""
    starts = [-(-value >> shift) for value in upper]
    ends = [value >> shift for value in lower[1:]]
    return np.array(starts, np.int64), np.array([*ends, 0], np.int64)


def _locate(
    starts: NDArray[np.int64], ends: NDArray[np.int64], words: NDArray[np.int64]
) -> NDArray[np.int64]:
    outcome = np.searchsorted(starts, words, side="right") - 1
    return np.where(words < ends[outcome], outcome, _UNDECIDED)


def sample_outcomes(
    table: Table, count: int, *, bits: BitSource
) -> tuple[NDArray[np.int16], dict[int, int]]:
    """Draw outcomes of the table's law.

    Returns
    -------
    outcomes : ndarray of int16
        The outcomes; 0 at the positions of `far`.
    far : dict
        Position and outcome of those too large for the table.
    """
    words = bits.words(count)
    outcomes = table.first.take(words)
    open_ = np.flatnonzero(outcomes < 0)
    if not open_.size:
        return outcomes, {}
    pairs = words[open_].astype(np.int64) << bits.width
    pairs |= bits.words(open_.size)
    outcomes[open_] = found = _locate(table.starts, table.ends, pairs)
    far = {}
    for rest in np.flatnonzero(found < 0):
        at, prefix = int(open_[rest]), int(pairs[rest])
        outcome = resolve(table.law, prefix, length=2 * bits.width, bits=bits)
        outcomes[at] = outcome if outcome < table.outcomes else 0
        if outcome >= table.outcomes:
            far[at] = outcome
    return outcomes, far


def resolve(law: Law, prefix: int, *, length: int, bits: BitSource) -> int:
    r"""Settle the outcome of a uniform number whose first bits are known.

    Parameters
    ----------
    law : Law
        The law to invert.
    prefix : int
        The first `length` bits of the number.
    length : int
        How many bits are known; the source is asked for more as long as they do not
        settle the outcome.
    bits : BitSource
        Where further words come from.

    Returns
    -------
    int
        The outcome i with :math:`F_i \le U < F_{i+1}`.
    """
    while True:
        lower, upper = law.boundaries(length + _GUARD)
        outcome = bisect_right(upper, prefix << _GUARD) - 1
        if outcome + 1 < len(lower) and (prefix + 1) << _GUARD <= lower[outcome + 1]:
            return outcome
        prefix = (prefix << bits.width) | int(bits.words(1)[0])
        length += bits.width
