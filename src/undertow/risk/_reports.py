"""The reports of a local protocol in a list, where they are few, and their law."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import NotApplicable
from undertow.mechanisms.local import (
    GeneralizedResponse,
    LocalHashing,
    SubsetSelection,
    UnaryEncoding,
)
from undertow.mechanisms.local.base import LocalProtocol

__all__ = ["list_reports", "tabulate"]

Floats = NDArray[np.float64]

_BITS = 12
_REPORTS = 100_000
_CELLS = 20_000_000
_WORD = 32
_SLACK = 1e-9  # of logarithms of counts
_WAY_OUT = (
    "use advantage(), which needs no table, OptimalGuess, which reads one report at a "
    "time, or estimate_advantage with a ProtocolSampler"
)


def tabulate(protocol: LocalProtocol) -> Floats:
    """Return the law of the report for each category: shape (categories, reports).

    Raises
    ------
    NotApplicable
        If the reports are too many, real numbers, or drawn with a hash.

    Notes
    -----
    From the rational probabilities of the protocol: every entry is correctly rounded.

    Examples
    --------
    >>> tabulate(GeneralizedResponse(3, 1)).round(4)[0].tolist()
    [0.5761, 0.2119, 0.2119]
    """
    supports = protocol.support(list_reports(protocol))
    if isinstance(protocol, UnaryEncoding):
        chances = _unary_chances(protocol)
        own = supports.astype(np.intp)
        others = own.sum(axis=1, keepdims=True) - own
        return np.ascontiguousarray(chances[own, others].T)
    held, missed = protocol.keep, protocol.noise
    if isinstance(protocol, SubsetSelection):
        rest, size = protocol.categories - 1, protocol.subset
        held = protocol.keep / math.comb(rest, size - 1)
        missed = (1 - protocol.keep) / max(1, math.comb(rest, size))
    return np.where(supports.T, float(held), float(missed))


def list_reports(protocol: LocalProtocol) -> NDArray[Any]:
    """Return every report once, in the order of the columns of the table.

    Parameters
    ----------
    protocol : LocalProtocol
        Randomised response: the categories. Bits: by number, the first category
        lowest. Sets: in lexical order.

    Raises
    ------
    NotApplicable
        If the reports are too many, real numbers, or drawn with a hash.

    Examples
    --------
    >>> from undertow.mechanisms.local import SymmetricUnary
    >>> list_reports(SymmetricUnary(2, 1)).tolist()
    [[0], [1], [2], [3]]
    """
    m = protocol.categories
    if isinstance(protocol, GeneralizedResponse):
        _require_few(protocol, math.log10(m))
        return np.arange(m, dtype=np.int64)
    if isinstance(protocol, UnaryEncoding):
        _require_few(protocol, m * math.log10(2), limit=2**_BITS)
        return np.arange(2**m, dtype="<u4")[:, None]
    if isinstance(protocol, SubsetSelection):
        _require_few(protocol, _log10_binomial(m, protocol.subset))
        sets = itertools.combinations(range(m), protocol.subset)
        return _packed(list(sets), m)
    raise NotApplicable(
        f"the reports of a protocol must have a list for a table, got {protocol!r}: "
        f"{_reason(protocol)}; {_WAY_OUT}."
    )


def _reason(protocol: LocalProtocol) -> str:
    if isinstance(protocol, LocalHashing):
        return "a report names a hash function, whose law the family of hashes decides"
    if protocol.measure != "counting":
        return "its reports are real numbers"
    return "it is of an unknown kind"


def _unary_chances(protocol: UnaryEncoding) -> Floats:
    """Return the probability of a report by the true bit and the number of others."""
    p, q, others = protocol.keep, protocol.noise, protocol.categories - 1
    return np.array(
        [
            [float(own * q**k * (1 - q) ** (others - k)) for k in range(others + 1)]
            for own in (1 - p, p)
        ]
    )


def _packed(sets: list[tuple[int, ...]], categories: int) -> NDArray[Any]:
    """Pack sets of categories into rows of words."""
    words = np.zeros((len(sets), -(-categories // _WORD)), dtype="<u4")
    members = np.array(sets, dtype=np.int64)
    rows = np.arange(len(sets))
    for column in members.T:
        words[rows, column // _WORD] |= np.uint32(1) << (column % _WORD).astype("<u4")
    return words


def _log10_binomial(size: int, chosen: int) -> float:
    logs = (math.lgamma(k + 1) for k in (size, chosen, size - chosen))
    whole, *parts = logs
    return (whole - sum(parts)) / math.log(10)


def _require_few(
    protocol: LocalProtocol, digits: float, *, limit: int = _REPORTS
) -> None:
    """Refuse too many reports, given the decimal log of their number."""
    cells = digits + math.log10(protocol.categories)
    if digits > math.log10(limit) + _SLACK or cells > math.log10(_CELLS) + _SLACK:
        raise NotApplicable(
            f"a table of reports must have at most {limit} columns and {_CELLS} cells, "
            f"got {protocol!r} with about 10^{digits:.1f} reports; {_WAY_OUT}."
        )
