r"""The tilted law of a composed privacy loss, and the certified answers it gives."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erfcx

from undertow.errors import SearchError
from undertow.privacy._pld_grid import FloatArray, gaussian_cumulant

__all__ = ["TiltedLaw", "smallest_epsilon"]

_UNIT = 2.0**-53
_UNDERFLOW = 1e-290
# Deviations of a Gaussian loss at which its tail has no mass in floats.
_FAR = 1e100


@dataclass(frozen=True, slots=True)
class TiltedLaw:
    """The composed loss near one tilt, with its certified errors.

    Attributes
    ----------
    losses, weights : ndarray
        Nodes of the window and the tilted law of the gridded parts there.
    log_mass : float
        Cumulant of the discretised parts at the tilt.
    error, slack : float
        Largest absolute error of a weight; relative error of everything.
    below, above : float
        Tilted mass of losses below the window; mass of losses above it.
    """

    mu: float
    infinity: float
    tilt: float
    losses: FloatArray
    weights: FloatArray
    log_mass: float
    error: float
    slack: float
    below: float
    above: float

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at `epsilon`. O(window)."""
        payoff = _payoff(epsilon - self.losses, self.mu, self.tilt)
        inside = float((self.weights * payoff).sum() + self.error * payoff.sum())
        inside += self.below / (1 + self.tilt)  # no payoff exceeds 1 / (1 + t)
        gauss = gaussian_cumulant(self.mu, self.tilt)
        size = abs(self.log_mass) + gauss + self.tilt * epsilon + self.losses.size
        # 1000 covers the exponents of the payoffs that do not underflow, and
        # _UNDERFLOW those that do.
        slack = self.slack + 16 * _UNIT * (1000 + size)
        logarithm = math.log(inside + _UNDERFLOW) + self.log_mass + gauss
        finite = math.exp(min(logarithm - self.tilt * epsilon + slack, 0.0))
        total = (finite + self.above + self.infinity) * (1 + 8 * _UNIT)
        return min(1.0, max(total, sys.float_info.min))


def smallest_epsilon(
    law: TiltedLaw, delta: float, *, guess: float, most: float
) -> float:
    """Return an epsilon whose certified delta is at most `delta`, nearly the least.

    About ten evaluations of :meth:`TiltedLaw.delta`; `most` is an epsilon known to be
    enough, or infinite.
    """

    def excess(epsilon: float) -> float:
        found = law.delta(epsilon)
        distance = math.log(found) - math.log(delta)
        # Logarithms of neighbouring floats may coincide; the sign must not.
        return min(distance, 0.0) if found <= delta else max(distance, _UNIT)

    if excess(0.0) <= 0:
        return 0.0
    high = _enough(excess, min(guess, most), law.tilt, most)
    if high is None:
        raise SearchError(
            f"delta must be above the rounding error of this composition, got {delta}; "
            "give a larger delta or compose fewer parts at a time."
        )
    at_high = excess(high)
    if at_high > 0:
        return most
    low = max(high + 1.2 * at_high / law.tilt - 1e-3 * high, 0.0)
    if (at_low := excess(low)) <= 0:
        low, at_low = 0.0, excess(0.0)
    return _regula_falsi(excess, (low, at_low), (high, at_high))


def _enough(
    excess: Callable[[float], float], start: float, tilt: float, most: float
) -> float | None:
    """Walk up until the excess is not positive, or to `most`."""
    epsilon = start
    for _ in range(64):
        if epsilon >= most:
            return most
        if (value := excess(epsilon)) <= 0:
            return epsilon
        epsilon = min(epsilon + (1 + value) / tilt, most)
    return None


def _regula_falsi(
    excess: Callable[[float], float],
    low: tuple[float, float],
    high: tuple[float, float],
) -> float:
    """Close in on the root (Illinois rule); the end returned has excess at most 0."""
    (a, at_a), (b, at_b) = low, high
    for _ in range(80):
        if b - a <= 1e-11 * b or at_b == 0:
            break
        middle = b - at_b * (b - a) / (at_b - at_a)
        # A point a hair above the chord's root makes the upper end move too.
        middle = min(max(middle + 2e-12 * b, a + 1e-12 * b), b - 1e-12 * b)
        value = excess(middle)
        if value <= 0:
            b, at_b, at_a = middle, value, at_a / 2
        else:
            a, at_a, at_b = middle, value, at_b / 2
    return b


def _payoff(gap: FloatArray, mu: float, tilt: float) -> FloatArray:
    r"""Bound :math:`e^{t g - K(t)} \delta_\mu(g)` from above, for each gap g.

    Here :math:`\delta_\mu(g) = E[(1 - e^{g - Z})_+]` over the Gaussian loss Z with
    cumulant K; the product lies in [0, 1/(1 + t)]. With
    :math:`a = \mu/2 - |g|/\mu` and the scaled complementary error function,

    .. math:: \delta_\mu(|g|) = \tfrac12 e^{-a^2/2}
       (\mathrm{erfcx}(-a/\sqrt2) - \mathrm{erfcx}((\mu - a)/\sqrt2)),

    and :math:`\delta_\mu(-g) = 1 - e^{-g} + e^{-g} \delta_\mu(g)`.
    """
    below = np.minimum(gap, 0.0)
    if mu == 0:
        return -np.exp(tilt * below) * np.expm1(below)
    # Far beyond the Gaussian loss its share is 0, and no square may leave the floats.
    size = np.minimum(np.abs(gap), mu * _FAR)
    exponent = tilt * gap - gaussian_cumulant(mu, tilt)
    a = mu / 2 - size / mu
    capped = np.minimum(a, 7.0)  # beyond, delta exceeds 1 - 1e-11 and 1 is used
    first = erfcx(capped / -math.sqrt(2))
    second = erfcx((mu - capped) / math.sqrt(2))
    gauss = (first - second + 256 * _UNIT * (first + second)) / 2
    gauss = np.where(a > 7.0, 1.0, gauss)
    inner = np.where(a > 7.0, 0.0, a * a / 2)
    # The tail loses digits to its square; what is lost without a tail does not.
    plain = 8 * _UNIT * (np.abs(exponent) + size)
    square = 8 * _UNIT * (mu / 2 + size / mu) ** 2
    value = gauss * np.exp(exponent + below - inner) * (1 + plain + square)
    # Above zero the second term vanishes, and its factor may pass the floats.
    rest = np.exp(np.where(gap < 0, exponent, 0.0)) * np.expm1(below)
    value -= rest * (1 + plain)
    return value
