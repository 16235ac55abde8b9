"""What two clipped Gaussian records really leak: closed forms without a bound.

These are lower bounds on the leakage (attained by some output), the mirror image of the
guarantees in :mod:`undertow.correlation.gaussian.clip`: they show what a promise must
at least be, and where it stops to hold.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr

from undertow._validate import check_count, check_finite, check_index, check_positive
from undertow.correlation.gaussian.law import GaussianModel
from undertow.errors import ModelError

__all__ = ["clipped_log_density", "clipped_output_leakage", "clipped_tail_leakage"]

Array = NDArray[np.float64]
Pair = tuple[float, float]

_REFINEMENTS = 3


@dataclass(frozen=True, slots=True)
class _Release:
    """The Laplace sum of two clipped records, given the target's value."""

    target: float  # clipped value of the target
    mean: float
    sd: float
    low: float
    high: float
    scale: float

    def log_moment(self, t: float) -> float:
        """Return the log moment generating function of the other, clipped record."""
        m, sd, za, zb = self.mean, self.sd, *self._limits()
        inside = t * m + (t * sd) ** 2 / 2
        inside += float(_log_mass(np.array(za - t * sd), np.array(zb - t * sd)))
        ends = t * self.low + log_ndtr(za), t * self.high + log_ndtr(-zb)
        return float(np.logaddexp(np.logaddexp(*ends), inside))

    def log_density(self, output: Array) -> Array:
        b, (za, zb) = self.scale, self._limits()
        y = output - self.target
        parts = [
            log_ndtr(za) - np.abs(y - self.low) / b,
            log_ndtr(-zb) - np.abs(y - self.high) / b,
            self._partial(1 / b, np.full_like(y, self.low), np.minimum(y, self.high))
            - y / b,
            self._partial(-1 / b, np.maximum(y, self.low), np.full_like(y, self.high))
            + y / b,
        ]
        return np.asarray(np.logaddexp.reduce(parts, axis=0) - math.log(2 * b))

    def _partial(self, t: float, low: Array, high: Array) -> Array:
        """Return the log of E[exp(t Z); low < Z < high], -inf where it is empty."""
        m, sd = self.mean, self.sd
        za, zb = (low - m) / sd - t * sd, (high - m) / sd - t * sd
        mass = np.full(low.shape, -math.inf)
        some = zb > za
        mass[some] = _log_mass(za[some], zb[some])
        return np.asarray(t * m + (t * sd) ** 2 / 2 + mass)

    def _limits(self) -> Pair:
        return (self.low - self.mean) / self.sd, (self.high - self.mean) / self.sd


def clipped_tail_leakage(
    model: GaussianModel, epsilon: float, *, clip: Pair, pair: Pair, target: int = 0
) -> float:
    r"""Return the leakage of one pair of secrets in the tails of the output.

    .. math:: \max_{\pm} \bigl|\pm t\,(c_I(x) - c_I(x')) + G(x, \pm t)
              - G(x', \pm t)\bigr|, \qquad t = 1/b,\;
              G(x, t) = \ln E\bigl[e^{t\,c_I(Z)} \mid x\bigr]

    Parameters
    ----------
    model : GaussianModel
        Of two records.
    epsilon : float
        DP level of the Laplace sum of the clipped records.
    clip : pair of float
        Interval I each record is clipped to.
    pair : pair of float
        The two values x, x' of the target; any real numbers.
    target : int
        Which record is aimed at.

    Returns
    -------
    float
        A lower bound on the leakage of the pair, attained as the output goes to plus
        or minus infinity. It is not a guarantee.

    Notes
    -----
    Derived on the theory page "Gaussian clipping".

    Examples
    --------
    >>> from undertow.correlation.gaussian import Gaussian
    >>> iq = Gaussian([[225.0, 101.25], [101.25, 225.0]], mean=[100.0, 100.0])
    >>> leak = clipped_tail_leakage(iq, 1.0, clip=(40, 160), pair=(1000, -800))
    >>> round(leak, 6)
    2.0
    """
    one, other = _releases(model, epsilon, clip, pair, target)
    t = 1 / one.scale
    ends = [
        sign * t * (one.target - other.target)
        + one.log_moment(sign * t)
        - other.log_moment(sign * t)
        for sign in (1, -1)
    ]
    return max(abs(end) for end in ends)


def clipped_log_density(
    model: GaussianModel,
    epsilon: float,
    *,
    clip: Pair,
    secret: float,
    output: ArrayLike,
    target: int = 0,
) -> Array:
    """Return the log density of the noisy clipped sum given the target's value."""
    release, _ = _releases(model, epsilon, clip, (secret, secret), target)
    return release.log_density(np.asarray(output, dtype=float))


def clipped_output_leakage(
    model: GaussianModel,
    epsilon: float,
    *,
    clip: Pair,
    pair: Pair,
    target: int = 0,
    points: int = 4001,
) -> float:
    """Return the largest log-ratio of the two output laws on a refined grid of outputs.

    The ratio is constant beyond the outermost possible answers, so the grid covers it;
    between grid points it may be larger, so the value is a lower bound that converges
    to the leakage of the pair as `points` grows.

    Examples
    --------
    >>> from undertow.correlation.gaussian import Gaussian
    >>> close = Gaussian([[1e-4, 5e-5], [5e-5, 1e-4]], mean=[5.0, 5.0])
    >>> round(clipped_output_leakage(close, 1.0, clip=(0, 10), pair=(0, 20)), 6)
    1.75
    """
    points = check_count(points, "points", minimum=3)
    one, other = _releases(model, epsilon, clip, pair, target)
    ends = sorted((one.target, other.target))
    low, high = ends[0] + one.low, ends[1] + one.high
    best = 0.0
    for _ in range(1 + _REFINEMENTS):
        grid = np.linspace(low, high, points)
        ratio = np.abs(one.log_density(grid) - other.log_density(grid))
        place = int(ratio.argmax())
        best = max(best, float(ratio[place]))
        low, high = grid[max(place - 1, 0)], grid[min(place + 1, points - 1)]
    return best


def _releases(
    model: GaussianModel, epsilon: float, clip: Pair, pair: Pair, target: int
) -> tuple[_Release, _Release]:
    if model.size != 2:
        raise ModelError(
            f"model must have two records for the closed form, got {model.size}; "
            "estimate the leakage by simulation instead."
        )
    target = check_index(target, "target", size=2)
    epsilon = check_positive(epsilon, "epsilon")
    low, high = check_finite(clip[0], "clip"), check_finite(clip[1], "clip")
    if not low < high:
        raise ValueError(f"clip must be (low, high) with low < high, got {clip}.")
    x, y = check_finite(pair[0], "pair"), check_finite(pair[1], "pair")
    laws = [model.given({target: value}) for value in (x, y)]
    scale = (high - low) / epsilon
    first, second = (
        _Release(
            min(max(value, low), high),
            float(law.mean[0]),
            math.sqrt(float(law.covariance[0, 0])),
            low,
            high,
            scale,
        )
        for value, law in zip((x, y), laws, strict=True)
    )
    return first, second


def _log_mass(za: Array, zb: Array) -> Array:
    """Return log(Phi(zb) - Phi(za)) for za < zb, from the tail that keeps digits."""
    flip = za > 0
    low, high = np.where(flip, -zb, za), np.where(flip, -za, zb)
    top, bottom = log_ndtr(high), log_ndtr(low)
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(-np.expm1(bottom - top)))
