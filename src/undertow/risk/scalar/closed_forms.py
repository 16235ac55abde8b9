r"""Closed forms for a noisy number: uniform prior, exact success, nothing known.

The best guess is the nearest answer, so only neighbouring answers meet: with gaps
:math:`\Delta_j` the advantage is :math:`\frac1m\sum_j t(\Delta_j)`, where t is the
total variation of two answers that far apart.

References
----------
.. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, erfinv

from undertow._numeric import inflate
from undertow._validate import check_count, check_non_negative, check_positive
from undertow.errors import ModelError
from undertow.privacy.result import Bound, Calibration
from undertow.risk.bounds._parts import BLIND, check_target, uniform_disagreement

__all__ = [
    "calibrate_gaussian_scale",
    "calibrate_laplace_level",
    "gaussian_advantage",
    "gaussian_pair_advantage",
    "gaussian_placement_advantage",
    "laplace_advantage",
    "laplace_pair_advantage",
    "laplace_placement_advantage",
]

# Covers the rounding of a sum of positive terms, each good to a few ulps.
_MARGIN = 1e-12
_SLACK = 4e-12
_ROOT = math.sqrt(2)
# Smaller targets lose their digits, and so do smaller shares of a scale.
_LEAST = 1e-290
_SMALLEST = 1e-300
_MOST = 10**15
_HYPOTHESES = (*BLIND, "the prior is uniform and only the exact record counts")


def laplace_advantage(answers: ArrayLike, scale: float) -> float:
    r"""Return the advantage against Laplace noise, rounded up.

    .. math:: \frac1m \sum_{j=1}^{m-1} \bigl(1 - e^{-\Delta_j/(2b)}\bigr)

    Parameters
    ----------
    answers : array_like of shape (m,)
        One for each record, in any order; ties count as gaps of 0.
    scale : float
        The b of the noise.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Examples 5.7 and A.20 of [1]_, for a uniform prior, exact success and no knowledge.
    In A.20 the law of an interior cell is printed with a plus between its two
    exponentials; both are subtracted. Other threats: :func:`~undertow.risk.advantage`.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> round(laplace_advantage([0, 0.1, 0.5, 0.55, 1], 0.5), 6)
    0.167197
    """
    gaps, size = _gaps(answers)
    parts = -np.expm1(-_shares(gaps, check_positive(scale, "scale")) / 2)
    return _raised(math.fsum(parts.tolist()) / size, size)


def gaussian_advantage(answers: ArrayLike, sigma: float) -> float:
    r"""Return the advantage against Gaussian noise, rounded up.

    .. math:: \frac1m \sum_{j=1}^{m-1}
       \bigl(2\Phi(\Delta_j/(2\sigma)) - 1\bigr)

    Parameters
    ----------
    answers : array_like of shape (m,)
        One for each record, in any order; ties count as gaps of 0.
    sigma : float
        Standard deviation of the noise.

    Returns
    -------
    float
        Raised by a relative 1e-12.

    Notes
    -----
    Examples 5.8 and A.19 of [1]_, under the same threat as :func:`laplace_advantage`.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> round(gaussian_advantage([k / 10 for k in range(11)], 0.7), 6)
    0.051767
    """
    gaps, size = _gaps(answers)
    parts = erf(_shares(gaps, check_positive(sigma, "sigma")) / (2 * _ROOT))
    return _raised(math.fsum(parts.tolist()) / size, size)


def laplace_pair_advantage(distance: float, scale: float) -> float:
    r"""Return :math:`\frac12(1 - e^{-d/(2b)})`: two equally likely answers, rounded up.

    The same for every threshold below the distance.

    Examples
    --------
    >>> round(laplace_pair_advantage(100, 100), 5)
    0.19673
    """
    return laplace_advantage([0.0, check_non_negative(distance, "distance")], scale)


def gaussian_pair_advantage(distance: float, sigma: float) -> float:
    r"""Return :math:`\Phi(d/(2\sigma)) - \frac12`: two answers alike, rounded up.

    Examples
    --------
    >>> round(gaussian_pair_advantage(1, 1), 6)
    0.191462
    """
    return gaussian_advantage([0.0, check_non_negative(distance, "distance")], sigma)


def laplace_placement_advantage(records: SupportsIndex, epsilon: float) -> float:
    r"""Return the largest advantage over all answers in a range, rounded up.

    .. math:: \frac{m-1}{m}\bigl(1 - e^{-\varepsilon/(2(m-1))}\bigr)

    Parameters
    ----------
    records : int
        The m; at least one.
    epsilon : float
        Range over scale, :math:`\Delta q/b`; in :math:`[0, \infty]`.

    Notes
    -----
    :math:`1 - e^{-t}` is concave, so equal gaps are worst (proved on the page *Risk of
    a noisy number*). Uniform prior, exact success, no knowledge: other threats can have
    far larger risks at the same epsilon.

    Examples
    --------
    >>> round(laplace_placement_advantage(11, 1), 6)
    0.044337
    """
    size = _size(records, minimum=1)
    level = check_non_negative(epsilon, "epsilon")
    if size == 1:
        return 0.0
    return _raised(-math.expm1(-level / (2 * (size - 1))) * (size - 1) / size, size)


def gaussian_placement_advantage(records: SupportsIndex, mu: float) -> float:
    r"""Return the largest advantage over all answers in a range, rounded up.

    .. math:: \frac{m-1}{m}\Bigl(2\Phi\Bigl(\frac{\mu}{2(m-1)}\Bigr) - 1\Bigr)

    Parameters
    ----------
    records : int
        The m; at least one.
    mu : float
        Range over standard deviation, :math:`\Delta q/\sigma`.

    Notes
    -----
    As :func:`laplace_placement_advantage`: :math:`2\Phi(t) - 1` is concave for
    :math:`t \ge 0`.

    Examples
    --------
    >>> round(gaussian_placement_advantage(10, 1), 6)
    0.039874
    """
    size = _size(records, minimum=1)
    ratio = check_non_negative(mu, "mu")
    if size == 1:
        return 0.0
    share = float(erf(ratio / (2 * _ROOT * (size - 1))))
    return _raised(share * (size - 1) / size, size)


def calibrate_laplace_level(target: float, *, records: SupportsIndex) -> Calibration:
    r"""Return the largest epsilon whose advantage is within a target.

    .. math:: \varepsilon = -2(m-1)\ln\Bigl(1 - \frac{\gamma m}{m-1}\Bigr)

    Parameters
    ----------
    target : float
        The advantage :math:`\gamma` allowed, in (0, 1].
    records : int
        The m; at least two.

    Returns
    -------
    Calibration
        Rounded down; infinite if the target is at least :math:`(m-1)/m`. The scale is
        the range of the answers over it.

    Notes
    -----
    Inverse of :func:`laplace_placement_advantage`, so for a uniform prior, exact
    success and no knowledge only. Under another threat the same epsilon may cost more:
    at a target of 0.1 and ten records a two-point prior has 0.327.

    Examples
    --------
    >>> round(calibrate_laplace_level(0.1, records=10).value, 4)
    2.1201
    """
    size, goal = _size(records, minimum=2), _read_target(target)
    ceiling = uniform_disagreement(size)
    if goal >= ceiling:
        return _calibration("epsilon", math.inf, ceiling, "the target is never binding")
    share = min(goal * (1 - _SLACK) * size / (size - 1), 1 - 2.0**-53)
    value = -2 * (size - 1) * math.log1p(-share)
    risk = laplace_placement_advantage
    value = _settle(value, 1 - _SLACK, lambda level: risk(size, level) <= goal)
    return _calibration(
        "epsilon", value, risk(size, value), "closed form, rounded down"
    )


def calibrate_gaussian_scale(
    target: float, *, records: SupportsIndex, sensitivity: float = 1.0
) -> Calibration:
    r"""Return the least standard deviation whose advantage is within a target.

    .. math:: \sigma = \frac{\Delta q}{2(m-1)\,
       \Phi^{-1}\bigl(\frac12(1 + \gamma m/(m-1))\bigr)}

    Parameters
    ----------
    target : float
        The advantage :math:`\gamma` allowed, in (0, 1].
    records : int
        The m; at least two.
    sensitivity : float, optional
        Range :math:`\Delta q` of the answers.

    Returns
    -------
    Calibration
        Rounded up; 0 if the target is at least :math:`(m-1)/m`.

    Notes
    -----
    Inverse of :func:`gaussian_placement_advantage`, with the same hypotheses.

    Examples
    --------
    >>> round(calibrate_gaussian_scale(0.2, records=10).value, 6)
    0.196855
    """
    size, goal = _size(records, minimum=2), _read_target(target)
    reach = check_positive(sensitivity, "sensitivity")
    ceiling = uniform_disagreement(size)
    if goal >= ceiling:
        return _calibration("sigma", 0.0, ceiling, "the target is never binding")
    share = min(goal * (1 - _SLACK) * size / (size - 1), 1 - 2.0**-53)
    value = reach / (2 * (size - 1) * _ROOT * float(erfinv(share)))
    risk = gaussian_placement_advantage
    value = _settle(value, 1 + _SLACK, lambda s: risk(size, reach / s) <= goal)
    return _calibration(
        "sigma", value, risk(size, reach / value), "closed form, rounded up"
    )


def _read_target(target: float) -> float:
    goal = check_target(target)
    if goal < _LEAST:
        raise ValueError(
            f"target must be at least {_LEAST:g}, got {target}; release nothing."
        )
    return goal


def _gaps(answers: ArrayLike) -> tuple[NDArray[np.float64], int]:
    line = np.sort(np.asarray(answers, dtype=np.float64).reshape(-1))
    if line.size == 0 or not np.isfinite(line).all():
        raise ModelError("answers must be finite numbers, at least one.")
    with np.errstate(over="ignore"):
        return np.diff(line), len(line)


def _shares(gaps: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Return gaps over the scale, raised above what underflow may take off."""
    with np.errstate(over="ignore"):
        shares = gaps / scale
    return np.where(gaps > 0, np.maximum(shares, _SMALLEST), 0.0)


def _size(records: SupportsIndex, *, minimum: int) -> int:
    size = check_count(records, "records", minimum=minimum)
    if size > _MOST:
        raise ValueError(f"records must be at most {_MOST:.0e}.")
    return size


def _raised(value: float, size: int) -> float:
    return min(inflate(value, _MARGIN), uniform_disagreement(size))


def _settle(value: float, factor: float, holds: Callable[[float], bool]) -> float:
    """Move to the private side until the closed form agrees, as evaluated."""
    while not holds(value):
        value *= factor
    return value


def _calibration(name: str, value: float, risk: float, method: str) -> Calibration:
    achieves = Bound(risk, "thesis, Examples 5.7 and 5.8", _HYPOTHESES, (), "advantage")
    return Calibration(name, value, achieves, method)
