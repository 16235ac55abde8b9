r"""The Gaussian privacy curve, both ways, to full precision and rounded safely.

A mechanism is :math:`\mu`-GDP when its outputs on neighbours are no easier to tell
apart than :math:`N(0, 1)` and :math:`N(\mu, 1)`. With
:math:`x = \varepsilon/\mu - \mu/2` the curve

.. math:: \delta(\varepsilon; \mu) = \Phi(-\varepsilon/\mu + \mu/2)
          - e^{\varepsilon} \Phi(-\varepsilon/\mu - \mu/2)

is :math:`\varphi(x) \, [m(x) - m(x + \mu)]` with the Mills ratio
:math:`m = (1 - \Phi)/\varphi`: the factor :math:`e^{\varepsilon}` disappears, and
nothing overflows. For small :math:`\mu` the two ratios agree in most digits; then their
difference is taken from an integral with a positive integrand,
:math:`\int_0^\infty e^{-xs - s^2/2} (1 - e^{-\mu s}) \, ds`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from scipy.special import erfcx, ndtr

from undertow._validate import check_non_negative
from undertow.numeric.exact import round_up
from undertow.numeric.quadrature import unit_rule
from undertow.numeric.rounding import nudge_up
from undertow.numeric.search import greatest_float, least_float

# The error of the computed log(delta), relative to 1 + |log(delta)|, stays below 1e-15
# in comparison with 80-digit arithmetic; upper bounds are raised by sixteen times that.
_MARGIN = 2.0**-46
_HALF_LOG_TWO_PI = math.log(2.0 * math.pi) / 2.0
_NODES = 64
# Below this 1 - e^{-mu s} is mu s to all digits, and is scaled from here.
_SMALL_MU = 2.0**-100
# Where x squared overflows, log(delta) is below minus half of the largest float.
_LEAST_LOG = -math.nextafter(math.inf, 0.0) / 2.0


def gdp_log_delta(mu: float, epsilon: float) -> float:
    r"""Bound the logarithm of the Gaussian privacy curve from above.

    Parameters
    ----------
    mu : float
        GDP parameter, in :math:`[0, \infty]`.
    epsilon : float
        In :math:`[0, \infty]`.

    Returns
    -------
    float
        At least :math:`\ln \delta(\varepsilon; \mu)`, and above it by at most
        :math:`2 \cdot 10^{-14} (1 + |\ln \delta|)`; ``-inf`` if delta is 0.

    Notes
    -----
    Equation 2.1 of [1]_ with :math:`\mu = \Delta/\sigma` (also Theorem 8 of [2]_). At
    :math:`\mu = \infty` nothing is promised and delta is 1 for every epsilon.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] B. Balle and Y.-X. Wang, *Improving the Gaussian Mechanism for Differential
       Privacy: Analytical Calibration and Optimal Denoising*, ICML 2018.

    Examples
    --------
    >>> round(gdp_log_delta(0.1, 30.0), 6)
    -44999.630372
    """
    mu, epsilon = check_non_negative(mu, "mu"), check_non_negative(epsilon, "epsilon")
    if mu == math.inf:
        return 0.0
    if mu == 0 or epsilon == math.inf:
        return -math.inf
    nearest = _log_delta(mu, epsilon)
    if nearest == -math.inf:
        return _LEAST_LOG
    return min(0.0, nearest + _MARGIN * (1.0 - nearest))


def gdp_delta(mu: float, epsilon: float) -> float:
    r"""Bound delta of a :math:`\mu`-GDP mechanism at `epsilon`, rounded up.

    Parameters
    ----------
    mu : float
        GDP parameter, in :math:`[0, \infty]`.
    epsilon : float
        In :math:`[0, \infty]`.

    Returns
    -------
    float
        The least delta, up to a relative excess below :math:`2 \cdot 10^{-11}` for
        :math:`\delta \ge 10^{-300}`; exactly the curve of Gaussian noise, and valid for
        every :math:`\mu`-GDP mechanism, at all epsilon at once.

    Notes
    -----
    Equation 2.1 of Guerra-Balboa (2026). A value that underflows is returned as the
    least positive float, never as 0.

    Examples
    --------
    >>> round(gdp_delta(1.0, 1.0), 12)
    0.126936737507
    """
    log_delta = gdp_log_delta(mu, epsilon)
    return 0.0 if log_delta == -math.inf else _exp_up(log_delta)


def gdp_epsilon(
    mu: float, delta: float | None = None, *, log_delta: float | None = None
) -> float:
    r"""Return the least epsilon at which a :math:`\mu`-GDP mechanism has `delta`.

    Parameters
    ----------
    mu : float
        GDP parameter, in :math:`[0, \infty]`.
    delta : float, optional
        In :math:`(0, 1)`.
    log_delta : float, optional
        Its logarithm instead, for values a float cannot hold.

    Returns
    -------
    float
        An epsilon whose recomputed delta is at most the requested one; 0 if the curve
        starts below it, ``inf`` for an infinite `mu`.

    Notes
    -----
    Inverse of Equation 2.1 of Guerra-Balboa (2026). Bisection down to neighbouring
    floats, on the rounded-up curve.

    Examples
    --------
    >>> round(gdp_epsilon(1.0, 1e-5), 12)
    4.377178095681
    """
    mu, fits = check_non_negative(mu, "mu"), _target(delta, log_delta)
    if mu == math.inf:
        return math.inf
    if fits(mu, 0.0):
        return 0.0
    return least_float(lambda epsilon: fits(mu, epsilon), low=0.0, high=math.inf)


def gdp_mu(
    epsilon: float, delta: float | None = None, *, log_delta: float | None = None
) -> float:
    r"""Return the largest mu whose Gaussian curve lies below `delta` at `epsilon`.

    Parameters
    ----------
    epsilon : float
        In :math:`[0, \infty]`.
    delta : float, optional
        In :math:`(0, 1)`.
    log_delta : float, optional
        Its logarithm instead, for values a float cannot hold.

    Returns
    -------
    float
        The lower end of the bracket: its recomputed delta is at most the requested one.

    Notes
    -----
    A calibration of Gaussian noise, **not** a conversion: an arbitrary
    :math:`(\varepsilon, \delta)` guarantee with :math:`\delta > 0` implies no finite
    mu, because its trade-off function starts at :math:`1 - \delta` and that of every
    finite mu at 1.

    Examples
    --------
    >>> round(gdp_mu(1.0, 1e-5), 12)
    0.268051123211
    """
    epsilon, fits = check_non_negative(epsilon, "epsilon"), _target(delta, log_delta)
    if epsilon == math.inf:
        return math.inf
    # There x <= -40, so that the computed delta is 1.
    high = 2.0 * math.sqrt(epsilon) + 100.0
    return greatest_float(lambda mu: fits(mu, epsilon), low=0.0, high=high)


def gaussian_sigma(
    sensitivity: float,
    epsilon: float,
    *,
    delta: float | None = None,
    log_delta: float | None = None,
) -> float:
    r"""Return the least Gaussian noise that gives :math:`(\varepsilon, \delta)`-DP.

    Parameters
    ----------
    sensitivity : float
        Largest Euclidean change of the answer between neighbours; finite.
    epsilon : float
        In :math:`[0, \infty]`.
    delta : float, optional
        In :math:`(0, 1)`.
    log_delta : float, optional
        Its logarithm instead.

    Returns
    -------
    float
        A standard deviation, rounded up so that the recomputed delta is at most the
        requested one; 0 for a sensitivity of 0.

    Notes
    -----
    Proposition 2.12 with Equation 2.1 of Guerra-Balboa (2026); Balle and Wang (2018).

    Examples
    --------
    >>> round(gaussian_sigma(1.0, 1.0, delta=1e-5), 11)
    3.73063163482
    """
    sensitivity = check_non_negative(sensitivity, "sensitivity")
    if sensitivity == math.inf:
        raise ValueError("sensitivity must be finite, got inf; bound it by clipping.")
    fits = _target(delta, log_delta)
    mu = gdp_mu(epsilon, delta, log_delta=log_delta)
    if sensitivity == 0 or mu == math.inf:
        return 0.0
    sigma = round_up(Fraction(sensitivity) / Fraction(mu))
    while not fits(sensitivity / sigma, epsilon):
        sigma = nudge_up(sigma)
    return sigma


def _target(
    delta: float | None, log_delta: float | None
) -> Callable[[float, float], bool]:
    """Return the test of whether a (mu, epsilon) stays within the requested delta."""
    if (delta is None) == (log_delta is None):
        raise ValueError(
            "exactly one of delta and log_delta must be given, "
            f"got delta={delta} and log_delta={log_delta}."
        )
    if delta is not None:
        if not 0 < delta < 1:
            raise ValueError(f"delta must lie strictly between 0 and 1, got {delta}.")
        return lambda mu, epsilon: gdp_delta(mu, epsilon) <= delta
    assert log_delta is not None
    if not -math.inf < log_delta < 0:
        raise ValueError(f"log_delta must be negative and finite, got {log_delta}.")
    return lambda mu, epsilon: gdp_log_delta(mu, epsilon) <= log_delta


def _exp_up(log_delta: float) -> float:
    return min(1.0, nudge_up(math.exp(log_delta)))


def _log_delta(mu: float, epsilon: float) -> float:
    """Return log(delta) to nearest, for finite positive mu and finite epsilon."""
    x = _standardised(mu, epsilon)
    if x == math.inf:
        return -math.inf
    scale = 0.0
    if mu < _SMALL_MU:
        scale, mu = math.log(mu) - math.log(_SMALL_MU), _SMALL_MU
    if mu < 0.5 * max(1.0, x):
        gap = _mills_gap_by_quadrature(x, mu)
    elif x >= 0:
        gap = _mills(x) - _mills(x + mu)
    else:
        # delta is not small here; its complement is a sum of two positive terms.
        density = math.exp(-x * x / 2.0 - _HALF_LOG_TWO_PI)
        return math.log1p(-(float(ndtr(x)) + density * _mills(x + mu)))
    if gap == 0:
        return -math.inf
    return -x * x / 2.0 - _HALF_LOG_TWO_PI + math.log(gap) + scale


def _standardised(mu: float, epsilon: float) -> float:
    # Exactly, because epsilon/mu and mu/2 may agree in most of their digits.
    try:
        return float(Fraction(epsilon) / Fraction(mu) - Fraction(mu) / 2)
    except OverflowError:
        return math.inf


def _mills(x: float) -> float:
    return math.sqrt(math.pi / 2.0) * float(erfcx(x / math.sqrt(2.0)))


def _mills_gap_by_quadrature(x: float, mu: float) -> float:
    """Return m(x) - m(x + mu) for mu below half of max(1, x)."""
    nodes, weights = unit_rule(_NODES)
    unit = 1.0 / max(1.0, x)
    slope = x * unit
    # The exponent reaches -40 at the end of the range; what is left is below 1e-16.
    length = 80.0 / (slope + math.sqrt(slope * slope + 80.0 * unit * unit))
    u = length * nodes
    decay = np.exp(-slope * u - (unit * u) ** 2 / 2.0)
    integrand = decay * -np.expm1(-mu * unit * u)
    return unit * length * float(weights @ integrand)
