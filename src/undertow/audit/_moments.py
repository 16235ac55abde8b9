r"""Limits of a mean from whole numbers that can be added up over parts.

Scores are rounded down to multiples of :math:`2^{-24}`, so that their sums and sums of
squares are exact in any order and a run can be cut, spread and resumed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from undertow.audit.runner import Counts
from undertow.numeric.rounding import inflate, nudge_down, nudge_up

__all__ = ["Moments", "score_counts"]

_BITS = 24
_UNIT = 1 << _BITS
# Covers the rounding of a width.
_MARGIN = 1e-12


def score_counts(scores: NDArray[np.float64]) -> Counts:
    """Return whole numbers that stand for scores in [-1, 1], their sum and squares.

    Examples
    --------
    >>> counts = score_counts(np.array([0.5, -0.25]))
    >>> Moments.read(counts, trials=2).mean
    0.125
    """
    whole = np.floor(scores * _UNIT).astype(np.int64)
    squares = whole * whole
    # In two words, as a sum of many squares would not fit into one.
    return {
        "scores": np.array([whole.sum()]),
        "squares": np.array([(squares >> _BITS).sum(), (squares % _UNIT).sum()]),
    }


@dataclass(frozen=True, slots=True)
class Moments:
    """How many scores there were, their mean and their variance."""

    trials: int
    mean: float
    variance: float

    @classmethod
    def read(cls, counts: Counts, *, trials: int) -> Moments:
        """Read the sums of :func:`score_counts`, exactly."""
        total = int(counts["scores"][0])
        squares = int(counts["squares"][0]) * _UNIT + int(counts["squares"][1])
        excess = Fraction(trials * squares - total * total, _UNIT * _UNIT)
        variance = excess / (trials * max(1, trials - 1))
        mean = Fraction(total, trials * _UNIT)
        return cls(trials, float(mean), inflate(float(variance), _MARGIN))

    def width(self, span: float, tail: float) -> float:
        r"""Return the one-sided half-width of Maurer and Pontil, rounded up.

        .. math:: \sqrt{\frac{2 \hat V \ln(2/\beta)}{n}} +
           \frac{7 s \ln(2/\beta)}{3 (n - 1)}

        Infinite for a single trial. Rounding the scores widens their span by a unit.
        """
        if self.trials < 2:
            return math.inf
        logs, n = math.log(2.0 / tail), self.trials
        first = math.sqrt(2.0 * self.variance * logs / n)
        wide = span + 1.0 / _UNIT
        return inflate(first + 7.0 * wide * logs / (3.0 * (n - 1)), _MARGIN)

    def lower(self, span: float, tail: float) -> float:
        """Return what the true mean is below with probability `tail` at most."""
        return nudge_down(self.mean - self.width(span, tail), 2)

    def upper(self, span: float, tail: float) -> float:
        """Return the same from above; scores were rounded down by up to a unit."""
        return nudge_up(self.mean + 1.0 / _UNIT + self.width(span, tail), 2)
