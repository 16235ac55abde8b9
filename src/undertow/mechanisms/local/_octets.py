r"""Exact bits of one rate, eight at a time, straight into octets.

The same inversion as :func:`undertow.mechanisms.noise.lanes.sample_lanes`, for many
octets: what one word does not settle is written as eight ones, which are rare, so that
few octets are looked at twice.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.noise.bits import BitSource
from undertow.mechanisms.noise.inversion import Table, compile_table, resolve
from undertow.mechanisms.noise.lanes import Lanes

__all__ = ["OctetLaw", "fill_octets", "octet_law"]

Octets = NDArray[np.uint8]
OctetLaw = tuple[Table, Octets]
"""The table of eight bits, and the octet of each word, 255 if it is not settled."""

_ONES = 255
# Marks looked at together.
_GROUP = 4


@lru_cache(maxsize=64)
def octet_law(rate: Fraction, width: int) -> OctetLaw:
    """Prepare eight independent bits of a rate for words of `width` bits."""
    table = compile_table(Lanes(rate), width)
    # As an octet the mark of an unsettled word, -1, is 255.
    return table, table.first.astype(np.uint8)


def fill_octets(octets: Octets, rate: Fraction, *, bits: BitSource) -> None:
    """Overwrite octets, a multiple of four, with exact bits of a rate up to one half.

    Notes
    -----
    The outcome is the one whose interval holds a uniform number, of which one word is
    read, or as many as settle it.
    """
    table, first = octet_law(rate, bits.width)
    words = bits.words(octets.size)
    # Every word is a number into the table: nothing is clipped.
    first.take(words, out=octets, mode="clip")
    marked = _places(octets == _ONES)
    open_ = marked[table.first.take(words[marked]) < 0]
    pairs = words[open_].astype(np.int64) << bits.width
    pairs |= bits.words(open_.size)
    octets[open_] = _settle(table, pairs, bits)


def _places(marks: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return where the rare marks are, looking at four at a time."""
    groups = (marks.view(np.uint32) != 0).nonzero()[0]
    group, lane = marks.reshape(-1, _GROUP)[groups].nonzero()
    return np.asarray(groups[group] * _GROUP + lane)


def _settle(table: Table, pairs: NDArray[np.int64], bits: BitSource) -> Octets:
    """Return the outcomes of numbers of which two words are known."""
    found = np.searchsorted(table.starts, pairs, side="right") - 1
    for rest in (pairs >= table.ends[found]).nonzero()[0]:
        prefix = int(pairs[rest])
        found[rest] = resolve(table.law, prefix, length=2 * bits.width, bits=bits)
    return found.astype(np.uint8)
