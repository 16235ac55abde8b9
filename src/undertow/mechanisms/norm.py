"""The least constants between norms, which turn a loss in one into one in another."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from undertow._numeric import nudge_up
from undertow.errors import InfiniteLossError, MismatchError
from undertow.privacy.exact import sqrt_up
from undertow.spaces.base import Metric
from undertow.spaces.metric import (
    AbsoluteDifference,
    DiscreteMetric,
    Euclidean,
    LpNorm,
    Scaled,
)

__all__ = ["norm_factor"]


def norm_factor(metric: Metric, *, p: int, dimension: int) -> Fraction:
    r"""Return the least c with :math:`\|x-y\|_p \le c\,d(x,y)` on real vectors.

    Parameters
    ----------
    metric : Metric
        `AbsoluteDifference` (one coordinate), `LpNorm`, `Euclidean`, or one of them
        scaled.
    p : int
        Order of the norm the mechanism is private in: 1 or 2.
    dimension : int
        Number of coordinates k.

    Raises
    ------
    InfiniteLossError
        For the discrete metric: values one step apart may differ by any amount.
    MismatchError
        For a metric that does not compare vectors of numbers.

    Notes
    -----
    :math:`\|z\|_p \le k^{1/p-1/q}\|z\|_q` for :math:`q \ge p`, with equality at the
    all-ones vector, and :math:`\|z\|_p \le \|z\|_q` for :math:`q \le p`, with equality
    at a unit vector. Irrational factors are rounded up.
    """
    if isinstance(metric, Scaled) and 0 < metric.factor < math.inf:
        return norm_factor(metric.base, p=p, dimension=dimension) / Fraction(
            metric.factor
        )
    if isinstance(metric, DiscreteMetric):
        raise InfiniteLossError(
            "metric must bound how far apart the given values are, got the discrete "
            "metric, under which any two reals are neighbours; clip the values first "
            "and state the loss in AbsoluteDifference or LpNorm.",
            witness=(0, math.inf),
            source="thesis, Remark A.4",
        )
    q = _order(metric, dimension)
    if q <= p or dimension == 1:
        return Fraction(1)
    return _power_up(dimension, 1 / Fraction(p) - (0 if q == math.inf else 1 / q))


def _order(metric: Metric, dimension: int) -> Any:
    if isinstance(metric, LpNorm):
        return metric.p if metric.p == math.inf else Fraction(metric.p)
    if isinstance(metric, Euclidean):
        return Fraction(2)
    if isinstance(metric, AbsoluteDifference) and dimension == 1:
        return Fraction(1)
    raise MismatchError(
        f"metric must compare vectors of {dimension} numbers, got {metric.name}; "
        "use AbsoluteDifference for one coordinate, LpNorm or Euclidean for several."
    )


def _power_up(base: int, exponent: Fraction) -> Fraction:
    if exponent == 1:
        return Fraction(base)
    if exponent == Fraction(1, 2):
        return Fraction(sqrt_up(base))
    return Fraction(nudge_up(float(base) ** float(exponent), 64))
