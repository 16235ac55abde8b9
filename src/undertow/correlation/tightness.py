r"""Laws under which the general bound is reached, though nothing looks correlated.

Two families of laws of two bits, indexed by r: as r grows the Pearson coefficient tends
to 0, while the leakage of an :math:`\varepsilon`-DP mechanism tends to
:math:`2\varepsilon`, all that the general bound allows. A small coefficient is
therefore no protection, and no reason to choose smaller groups.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from undertow._numeric import inflate
from undertow._validate import check_choice, check_positive
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.method import check_level
from undertow.correlation.result import Leakage

__all__ = [
    "FAMILIES",
    "tightness_law",
    "tightness_leakage",
    "tightness_lower_bound",
    "tightness_parameter",
    "tightness_pearson",
]

FAMILIES = ("positive", "sparse")
"""Table 6.1 of the thesis (no zero cell), Table 2 of the master's thesis (one)."""

# Covers the rounding of the logarithms of four sums.
_MARGIN = 1e-13
_SMALLEST = 2.0
_LARGEST = 1e6
_LARGEST_LEVEL = 300.0


def tightness_law(r: float, *, family: str = "positive") -> NDArray[np.float64]:
    r"""Return the law :math:`\Pi_r` of two bits; axis 0 is the first record.

    ===========  =====================  ==========================
    positive     X1 = 0                 X1 = 1
    ===========  =====================  ==========================
    X2 = 0       :math:`1/r^2`          :math:`(r-1)/r^2`
    X2 = 1       :math:`1/r^3`          :math:`(r^3-r^2-1)/r^3`
    ===========  =====================  ==========================

    ===========  =====================  ==========================
    sparse       X1 = 0                 X1 = 1
    ===========  =====================  ==========================
    X2 = 0       :math:`1/r^2`          :math:`1/r - 1/r^2`
    X2 = 1       0                      :math:`(r-1)/r`
    ===========  =====================  ==========================

    Parameters
    ----------
    r : float
        From 2 to a million; whole in the sources, any real number works.
    family : {"positive", "sparse"}
        Table 6.1 of [1]_ or Table 2 of [2]_.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> tightness_law(2).tolist()
    [[0.25, 0.125], [0.25, 0.375]]
    """
    r = _read_r(r)
    if check_choice(family, "family", choices=FAMILIES) == "positive":
        return np.array(
            [[1 / r**2, 1 / r**3], [(r - 1) / r**2, (r**3 - r**2 - 1) / r**3]]
        )
    return np.array([[1 / r**2, 0.0], [(r - 1) / r**2, (r - 1) / r]])


def tightness_pearson(r: float, *, family: str = "positive") -> float:
    r"""Return the Pearson coefficient of :math:`\Pi_r`, which tends to 0 with r.

    .. math:: \frac{r^2 - r - 1}{r^4 \sqrt{p(1-p)\,q(1-q)}},\quad
              p = \frac{1+r}{r^3},\ q = \frac1r \qquad\text{or}\qquad
              \frac{1}{\sqrt{r+1}}

    Examples
    --------
    >>> round(tightness_pearson(10), 6), round(tightness_pearson(8, family="sparse"), 6)
    (0.284429, 0.333333)
    """
    r = _read_r(r)
    if check_choice(family, "family", choices=FAMILIES) == "sparse":
        return 1 / math.sqrt(r + 1)
    p, q = (1 + r) / r**3, 1 / r
    return (r**2 - r - 1) / (r**4 * math.sqrt(p * (1 - p) * q * (1 - q)))


def tightness_lower_bound(
    r: float, epsilon: float, *, family: str = "positive"
) -> float:
    r"""Return what a mechanism that spends all of its level leaks under the law.

    .. math::
       \ln \frac{e^{2\varepsilon}\frac{r}{r+1} + e^{\varepsilon}\frac{1}{r+1}}
       {e^{\varepsilon}\frac{r^2-r}{r^3-r-1} + \frac{r^3-r^2-1}{r^3-r-1}}
       \qquad\text{or}\qquad 2\varepsilon + \ln\frac{r+1}{r+e^{\varepsilon}}

    Parameters
    ----------
    r : float
        From 2 to a million.
    epsilon : float
        Level of a mechanism and an event that lose it at every change: randomized
        response for each record and the output (0, 0), or a noisy sum far below 0.
    family : {"positive", "sparse"}
        As in :func:`tightness_law`.

    Notes
    -----
    Example 6.4 of [1]_, whose limit is printed with factors moved into exponents and
    whose event is printed as {(1, 1)}; both are corrected here. Equation 51 of [2]_.
    The attacker knows nothing and aims at the first record. Both tend to
    :math:`2\varepsilon`.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> round(tightness_lower_bound(10, 1.0), 6)
    1.795535
    >>> round(tightness_lower_bound(10, 1.0, family="sparse"), 6)
    1.854855
    """
    r, t = _read_r(r), check_level(epsilon)
    if check_choice(family, "family", choices=FAMILIES) == "sparse":
        return float(2 * t + math.log1p(r) - np.logaddexp(math.log(r), t))
    above = np.logaddexp(2 * t + math.log(r), t) - math.log1p(r)
    below = np.logaddexp(t + math.log(r**2 - r), math.log(r**3 - r**2 - 1))
    return float(above - below + math.log(r**3 - r - 1))


def tightness_leakage(r: float, epsilon: float, *, family: str = "positive") -> Leakage:
    r"""Return the exact leakage of the noisy sum of the two bits.

    For the sparse family it is :math:`\varepsilon + \ln\frac{1+re^{\varepsilon}}{1+r}`.

    Parameters
    ----------
    r : float
        From 2 to a million.
    epsilon : float
        The sum has Laplace, or two-sided geometric, noise of scale 1/epsilon.
    family : {"positive", "sparse"}
        As in :func:`tightness_law`.

    Notes
    -----
    The ratio of two Laplace mixtures is greatest at one of the possible sums, so twelve
    ratios, one for each target, ordered pair of values and sum 0, 1 or 2, and the
    informed attacker's :math:`\varepsilon` are the supremum; raised by 1e-13.

    Examples
    --------
    >>> round(tightness_leakage(10, 1.0, family="sparse").value, 9)
    1.940817239
    """
    law, t = tightness_law(r, family=family), check_level(epsilon)
    best, target, pair, output = t, 0, (0, 1), 0
    for axis, y in product((0, 1), (0, 1, 2)):
        logs = [_log_density(np.moveaxis(law, axis, 0)[x], x, y, t) for x in (0, 1)]
        for x in (0, 1):
            if logs[x] - logs[1 - x] > best:
                best = logs[x] - logs[1 - x]
                target, pair, output = axis, (x, 1 - x), y
    return Leakage(
        inflate(best, _MARGIN),
        "Theorem 4.3 (tightness)" if family == "sparse" else "Example 6.4 (tightness)",
        checked=("the law is that of the family",),
        witness=adversary_witness(Adversary(target), pair=pair, output=output),
        tight=True,
        method="closed form",
        model=f"two bits of the {family} family with r = {r:g}",
        mechanisms="Laplace noise of scale 1/epsilon on the sum",
    )


def tightness_parameter(pearson: float, epsilon: float, *, slack: float) -> int:
    r"""Return an r with a Pearson coefficient and a distance to twice the level.

    .. math:: r = \left\lceil \max\left\{\hat\rho^{-2} - 1,\
              \frac{e^{\varepsilon} - e^{\delta}}{e^{\delta} - 1},\ 2
              \right\} \right\rceil

    Parameters
    ----------
    pearson : float
        The coefficient of the sparse family is at most this; positive.
    epsilon : float
        DP level; non-negative and finite.
    slack : float
        The lower bound is at least ``2 epsilon - slack``; positive.

    Notes
    -----
    Theorem 4.3 of Lange (2024), made constructive: solve both conditions for r.

    Examples
    --------
    >>> tightness_parameter(0.1, 1.0, slack=0.01)
    170
    """
    rho, delta = check_positive(pearson, "pearson"), check_positive(slack, "slack")
    t = check_level(epsilon)
    if t > _LARGEST_LEVEL:
        raise ValueError(f"epsilon must be at most {_LARGEST_LEVEL:g}, got {epsilon}.")
    needed = math.expm1(t - delta) / -math.expm1(-delta)
    found = max(1 / rho / rho - 1, needed, _SMALLEST)
    if found == math.inf:
        raise ValueError(
            "pearson and slack must be reached by a finite r, got "
            f"{pearson} and {slack}."
        )
    return math.ceil(found)


def _log_density(row: NDArray[np.float64], x: int, y: int, t: float) -> float:
    """Return the log density at y, but for its constant, given this record's value."""
    distances = np.abs(y - x - np.arange(2))
    return float(logsumexp(-t * distances, b=row) - math.log(row.sum()))


def _read_r(r: float) -> float:
    number = check_positive(r, "r")
    if not _SMALLEST <= number <= _LARGEST:
        raise ValueError(f"r must be between 2 and {_LARGEST:g}, got {r}.")
    return number
