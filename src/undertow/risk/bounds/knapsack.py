r"""The fractional knapsack over pairs of records.

.. math:: \max\Bigl\{\textstyle\sum_{i \ne j} g_{ij}\,\pi_i \pi_j :
   0 \le g_{ij} \le A, \; \sum_{i \ne j} g_{ij} \le \Gamma\Bigr\}

Sauer's Theorems 7 and 8 are this program with two choices of :math:`A` and
:math:`\Gamma`; the program itself is exact, what is not proved is that it bounds the
advantage.

References
----------
.. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*, master's
   thesis, KIT, 2025.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from undertow._numeric import inflate
from undertow._validate import check_non_negative
from undertow.risk.bounds._parts import MARGIN, PriorLike, law

__all__ = ["pair_knapsack"]

_STEPS = 200
_UNIT = 2.0**-53


def pair_knapsack(prior: PriorLike, *, capacity: float, total: float) -> float:
    r"""Return the value of the pair knapsack, rounded up.

    Parameters
    ----------
    prior : Prior or array_like of shape (m,)
        Probabilities of the records, in any order.
    capacity : float
        Largest weight A of one ordered pair; non-negative and finite.
    total : float
        Weight :math:`\Gamma` to be shared by all pairs; non-negative and finite.

    Returns
    -------
    float
        At least the optimum, above it by a relative 1e-12 at most.

    Raises
    ------
    ValueError
        If `capacity` or `total` is negative or infinite.

    Notes
    -----
    By duality the value is :math:`\min_{t \ge 0} t\,\Gamma + A \sum_{i \ne j}
    (\pi_i\pi_j - t)_+`, and every t gives an upper bound. The number and the sum of
    the products above t come from the sorted prior and its partial sums, so that one
    t costs :math:`O(m \log m)` and no pair is listed; t is found by bisection.

    Examples
    --------
    >>> round(pair_knapsack([0.5, 0.3, 0.2], capacity=0.6, total=3.0), 9)
    0.336
    """
    A = _finite(capacity, "capacity")
    room = _finite(total, "total")
    pi = np.sort(law(prior))
    # Sums of the largest entries, which lose no digits.
    sums = np.append(np.cumsum(pi[::-1])[::-1], 0.0)
    low, high = 0.0, float(pi[-1]) * float(pi[-1])
    best = min(_dual(pi, sums, low, A, room), _dual(pi, sums, high, A, room))
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        best = min(best, _dual(pi, sums, middle, A, room))
        count, _ = _above(pi, sums, middle)
        low, high = (middle, high) if A * count > room else (low, middle)
    return inflate(best, MARGIN)


def _dual(
    pi: NDArray[np.float64],
    sums: NDArray[np.float64],
    price: float,
    capacity: float,
    total: float,
) -> float:
    """Return the dual value at a price, an upper bound of the knapsack."""
    count, value = _above(pi, sums, price)
    excess = max(0.0, value - price * count)
    # The difference loses digits of the sum; what it may lose is added back.
    return price * total + capacity * (excess + 2 * len(sums) * _UNIT * value)


def _above(
    pi: NDArray[np.float64], sums: NDArray[np.float64], price: float
) -> tuple[int, float]:
    """Count and add the products of ordered pairs above a price."""
    m = len(pi)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        needed = np.where(pi > 0, price / pi, math.inf)
    first = np.searchsorted(pi, needed, side="right")
    own = np.arange(m) >= first
    count = int(np.sum(m - first) - np.count_nonzero(own))
    rows = pi * sums[first] - np.where(own, pi * pi, 0.0)
    return count, max(0.0, math.fsum(rows.tolist()))


def _finite(value: float, name: str) -> float:
    number = check_non_negative(value, name)
    if number == math.inf:
        raise ValueError(f"{name} must be finite, got inf.")
    return number
