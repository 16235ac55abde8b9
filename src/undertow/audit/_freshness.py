"""Whether a subject draws anew: batches that repeat each other are no evidence."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.audit.events import output_labels
from undertow.errors import AuditError

__all__ = ["Freshness", "order_entropy", "probe"]

Draw = Callable[[int, int, np.random.Generator], NDArray[Any]]
"""From an input, a size and a generator to outputs."""

# Two independent batches agree so well with probability at most exp(-60), hence any
# two of a million with probability below 1e-13.
_REPETITION = 60.0
_LONGEST = 2048
# Digests that are kept.
_KEPT = 200_000
# Runs of each of two batches at the start; 256 coins are beyond chance. The other
# number keeps their streams apart from those of the audit.
_PROBES = 256
_PROBE = 0x70726F6265


def order_entropy(outputs: Any) -> float:
    r"""Return :math:`m H` of m outputs, with H the entropy of their frequencies.

    Independent runs of any one law repeat the outputs in this order with probability at
    most :math:`e^{-mH}`: Proposition 6 of the page *Event audits*.

    Examples
    --------
    >>> round(order_entropy(np.array([0, 1, 0, 1])), 6)
    2.772589
    """
    labels = outputs if isinstance(outputs, list) else output_labels(outputs)
    counts = np.array(list(Counter(labels).values()))
    return float(-(counts * np.log(counts / max(1, counts.sum()))).sum())


class Freshness:
    """Remembers how the batches of each input began, and refuses a repetition.

    Parameters
    ----------
    name : str
        Of the subject, for the message.

    Notes
    -----
    Compared are the first 2048, 1024, ... outputs, as far as their order is beyond
    chance. A program that seeds itself with a constant, or with a clock that has not
    moved on, is found; other dependence is not.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._seen: set[tuple[int, bytes]] = set()

    def check(self, given: int, outputs: NDArray[Any]) -> None:
        """Remember a batch of one input, or raise if it has been there before."""
        marks = {(given, mark) for mark in _beginnings(outputs)}
        if marks & self._seen:
            raise AuditError(
                f"{self.name} must draw anew in every batch, got the same outputs in "
                "the same order; do not seed it with a constant or with the time."
            )
        if len(self._seen) < _KEPT:
            self._seen |= marks


def probe(draw: Draw, given: int, *, trials: int, name: str) -> None:
    """Draw two batches of equal size and refuse a subject that repeats the first.

    They have seeds of their own and enter no count. A program with a constant seed may
    draw otherwise in batches of other sizes; of one size it repeats itself exactly.
    """
    guard = Freshness(name)
    for word in range(2):
        rng = np.random.default_rng(np.random.SeedSequence((_PROBE, word, _PROBE)))
        guard.check(given, draw(given, min(_PROBES, trials), rng))


def _beginnings(outputs: NDArray[Any]) -> list[bytes]:
    keys, marks = _keys(outputs[:_LONGEST]), []
    size = 1 << max(0, len(keys).bit_length() - 1)
    while size > 1 and order_entropy(keys[:size]) > _REPETITION:
        digest = hashlib.sha256(b"\0".join(keys[:size])).digest()
        marks.append(size.to_bytes(2, "big") + digest[:14])
        size //= 2
    return marks


def _keys(outputs: NDArray[Any]) -> list[bytes]:
    """Return some bytes for each output, equal for equal outputs of one type."""
    if outputs.dtype.kind == "O":
        return [repr(item).encode(errors="replace") for item in outputs.tolist()]
    return [np.ascontiguousarray(row).tobytes() for row in outputs]
