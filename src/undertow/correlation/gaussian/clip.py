r"""Clipped releases: which pairs of secrets a promise covers, and what others cost.

Moving the target from x to x' moves the conditional law of the unknown records by
:math:`c_u (x - x')`; after clipping to an interval of width M, record u moves by at
most :math:`\min(M, |c_u| |x - x'|)`. Coupling the two laws by this shift bounds the
leakage for *any* pair of secrets (theory page "Gaussian clipping"). What two clipped
records really leak, in closed form, shows where the promise stops to hold.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, log_ndtr

from undertow._validate import check_count, check_finite, check_index, check_positive
from undertow.correlation.gaussian.block import (
    ExchangeableGaussian,
    exchangeable_factor,
)
from undertow.correlation.gaussian.law import GaussianModel, searched_factor
from undertow.correlation.gaussian.method import gaussian_factor
from undertow.correlation.gaussian.model import LimitedGaussian
from undertow.correlation.gaussian.shift import MAX_BLOCK, Saturation, ShiftFactor
from undertow.correlation.group import general_leakage
from undertow.correlation.level import check_level
from undertow.correlation.query import Scope
from undertow.correlation.result import Leakage, adversary_witness
from undertow.errors import ModelError, ScopeWarning
from undertow.numeric.array import Array
from undertow.numeric.exact import exact, round_up_decimal
from undertow.numeric.rounding import inflate

Interval = tuple[float, float]

_THEOREM = "coupling by partial shifts (theory: Gaussian clipping)"
_MECHANISMS = "Laplace noise on l1-Lipschitz queries of clipped records"
# Sums of products over releases.
_MARGIN = 1e-13


@dataclass(frozen=True, slots=True)
class ClippedRelease:
    """A Lipschitz query of clipped records with Laplace noise.

    Parameters
    ----------
    epsilon : float
        Its DP level; the noise scale is the clipped sensitivity over it.
    clip : pair of float
        Interval each record is clipped to.

    Examples
    --------
    >>> ClippedRelease(1.0, (60, 80)).width
    20.0
    """

    epsilon: float
    clip: Interval

    def __post_init__(self) -> None:
        check_level(self.epsilon)
        low, high = (check_finite(end, "clip") for end in self.clip)
        if not low < high:
            raise ValueError(
                f"clip must be (low, high) with low < high, got {self.clip}."
            )

    @property
    def width(self) -> float:
        """Width of the clip interval, M."""
        return float(self.clip[1]) - float(self.clip[0])


def clip_records(records: ArrayLike, clip: Interval) -> Array:
    """Return `records` with every value moved into the interval.

    Raises
    ------
    ValueError
        If the interval is empty, or a record is not a number.

    Examples
    --------
    >>> clip_records([-1.0, 0.5, 9.0], (0, 1)).tolist()
    [0.0, 0.5, 1.0]
    """
    low, high = (check_finite(end, "clip") for end in clip)
    if not low < high:
        raise ValueError(f"clip must be (low, high) with low < high, got {clip}.")
    values = np.array(records, dtype=float)
    if np.any(np.isnan(values)):
        raise ValueError("records must be numbers, got nan; leave missing records out.")
    return np.asarray(np.clip(values, low, high))


def pair_leakage(
    model: GaussianModel | LimitedGaussian,
    release: ClippedRelease,
    *,
    pair: tuple[float, float],
) -> Leakage:
    r"""Bound the leakage of one pair of secrets, inside the clip interval or not.

    .. math:: \frac{\varepsilon}{M} \max_{K, i} \Bigl( |c_I(x) - c_I(x')| +
              \sum_u \min(M, |c_u|\,|x - x'|) \Bigr)

    Parameters
    ----------
    model : GaussianModel or LimitedGaussian
        How the records depend.
    release : ClippedRelease
        DP level and clip interval.
    pair : pair of float
        Two values of the target; any real numbers.

    Notes
    -----
    Proved on the theory page "Gaussian clipping". Never above m times epsilon.

    Examples
    --------
    >>> from undertow.correlation.gaussian import Gaussian
    >>> iq = Gaussian([[225.0, 101.25], [101.25, 225.0]], mean=[100.0, 100.0])
    >>> release = ClippedRelease(1.0, (40, 160))
    >>> round(pair_leakage(iq, release, pair=(160, 40)).value, 9)
    1.45
    >>> round(pair_leakage(iq, release, pair=(1000, -800)).value, 9)
    2.0
    """
    x, y = check_finite(pair[0], "pair"), check_finite(pair[1], "pair")
    if x == y:
        raise ValueError(f"pair must be two different values, got {x} twice.")
    gap = abs(x - y)
    low, high = release.clip
    own = abs(min(max(x, low), high) - min(max(y, low), high))
    found = _saturated(model, (release,), gap=gap, own=(own,))
    # Pairs between the two are closer, and clipping is monotone: they leak no more.
    scope = Scope.inside(min(x, y), max(x, y))
    return _leakage(found, model, (release,), scope=scope, pair=(x, y))


def scope_leakage(
    model: GaussianModel | LimitedGaussian,
    releases: Sequence[ClippedRelease],
    *,
    scope: Scope,
) -> Leakage:
    r"""Bound what several clipped releases leak together, for the secrets asked.

    .. math:: \max_{K, i} \sum_j \frac{\varepsilon_j}{M_j} \Bigl( \min(M_j, g) +
              \sum_u \min(M_j, |c_u| g) \Bigr)

    where g is the widest gap of the scope.

    Parameters
    ----------
    model : GaussianModel or LimitedGaussian
        How the records depend.
    releases : sequence of ClippedRelease
        With independent noise; clip intervals may differ.
    scope : Scope
        The pairs of secrets to cover.

    Warns
    -----
    ScopeWarning
        If the scope leaves a clip interval: the bound is then above h times epsilon.

    Notes
    -----
    Proved on the theory page "Gaussian clipping". Multiplying the summed DP levels by
    the factor h is valid only for gaps of at most the narrowest interval; for the whole
    real line every record saturates and the general bound is all there is, and is
    reached.

    Examples
    --------
    >>> from undertow.correlation.gaussian import Gaussian
    >>> model = Gaussian.limited(0.275, 3)
    >>> release = ClippedRelease(1.0, (60, 80))
    >>> round(scope_leakage(model, [release], scope=Scope.inside(60, 80)).value, 9)
    1.55
    """
    listed = tuple(releases)
    if not listed:
        raise ValueError("releases must have at least one release, got none.")
    if any(_leaves(scope, release) for release in listed):
        warnings.warn(
            f"the scope ({scope.summary}) leaves a clip interval; secrets there leak "
            "more than those inside, and the bound covers them.",
            ScopeWarning,
            stacklevel=2,
        )
    if scope.is_every_pair:
        return general_leakage(_total(listed), model.largest_group)
    own = tuple(_own(scope, release) for release in listed)
    found = _saturated(model, listed, gap=scope.gap, own=own)
    return _leakage(found, model, listed, scope=scope)


def _total(releases: tuple[ClippedRelease, ...]) -> float:
    """Return the sum of the DP levels, read as decimals and rounded up."""
    return round_up_decimal(sum(exact(release.epsilon) for release in releases))


def _leaves(scope: Scope, release: ClippedRelease) -> bool:
    if scope.gap > release.width * (1 + 1e-12):
        return True
    if scope.interval is None:
        return False
    low, high = scope.interval
    return low < release.clip[0] or high > release.clip[1]


def _own(scope: Scope, release: ClippedRelease) -> float:
    """Return the most that the clipped target itself moves."""
    if scope.interval is None:
        return min(release.width, scope.gap)
    low = max(scope.interval[0], release.clip[0])
    return max(0.0, min(scope.interval[1], release.clip[1]) - low)


def _saturated(
    model: GaussianModel | LimitedGaussian,
    releases: tuple[ClippedRelease, ...],
    *,
    gap: float,
    own: tuple[float, ...],
) -> ShiftFactor:
    pieces = tuple((r.epsilon * (gap / r.width), float(r.epsilon)) for r in releases)
    mine = sum(r.epsilon * (o / r.width) for r, o in zip(releases, own, strict=True))
    if not all(np.isfinite(slope) for slope, _ in pieces):
        every = mine + (model.largest_group - 1) * _total(releases)
        return ShiftFactor(every, None, reason="every record may saturate")
    saturation = Saturation(pieces, mine)
    if isinstance(model, ExchangeableGaussian):
        return exchangeable_factor(model, saturation=saturation)
    if isinstance(model, GaussianModel) and model.largest_group <= MAX_BLOCK:
        return searched_factor(model, saturation=saturation)
    return _shared_out(model, saturation)


def _shared_out(
    model: GaussianModel | LimitedGaussian, saturation: Saturation
) -> ShiftFactor:
    """Bound the saturated sum from the plain factor alone.

    At most m - 1 shifts have a sum of at most h - 1, and the saturation is concave, so
    equal shares are the worst case (Jensen).
    """
    if isinstance(model, LimitedGaussian):
        limits = model.limits()
        value = gaussian_factor(
            limits.group, limits.correlation, sd_ratio=limits.sd_ratio
        )
        plain = ShiftFactor(value, None, reason="the correlations are limited")
    else:
        plain = model.structured()
    others = model.largest_group - 1
    if not others:
        return ShiftFactor(saturation.own, plain.adversary, reason=plain.reason)
    share = np.array([(plain.value - 1) / others])
    value = saturation.own + others * float(saturation(share)[0])
    return ShiftFactor(value, plain.adversary, reason=plain.reason)


def _leakage(
    found: ShiftFactor,
    model: GaussianModel | LimitedGaussian,
    releases: tuple[ClippedRelease, ...],
    *,
    scope: Scope,
    pair: tuple[float, float] | None = None,
) -> Leakage:
    total = general_leakage(_total(releases), model.largest_group).value
    witness = None
    if found.adversary is not None:
        witness = adversary_witness(found.adversary, pair=pair)
    return Leakage(
        min(inflate(found.value, _MARGIN), total),
        _THEOREM,
        checked=(found.reason,) if found.reason else (),
        unchecked=model.assumptions().unchecked,
        witness=witness,
        method="coupling",
        model=model.summary,
        mechanisms=_MECHANISMS,
        scope=scope,
    )


# What two clipped Gaussian records really leak: closed forms without a bound.
#
# These are lower bounds on the leakage (attained by some output), the mirror image of
# the guarantees in :mod:`undertow.correlation.gaussian.clip`: they show what a promise
# must at least be, and where it stops to hold.

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


# The law of Gaussian plus Laplace noise, in logarithms that do not overflow.


def gaussian_laplace_log_density(
    output: ArrayLike, *, mean: float = 0.0, variance: float, scale: float
) -> Array:
    r"""Return the log density of :math:`N(\mu, v) + \mathrm{Lap}(b)`.

    With :math:`z = s - \mu`, :math:`\sigma = \sqrt v`:

    .. math::
        \ln f(s) = \frac{v}{2b^2} - \ln 2b + \ln\Bigl(
            e^{-z/b}\,\Phi(z/\sigma - \sigma/b) + e^{z/b}\,\Phi(-z/\sigma - \sigma/b)
        \Bigr)

    Parameters
    ----------
    output : array_like
        Points s.
    mean, variance : float
        Of the Gaussian part; a variance of zero leaves the Laplace law.
    scale : float
        Of the Laplace part, b.

    Notes
    -----
    Its slope is below 1/b in absolute value and tends to it in both tails. Two such
    laws of equal variance whose means are d apart therefore have the largest log-ratio
    d/b, reached in the limit: the reason why the unclipped Laplace mechanism on
    Gaussian data has an exact leakage (theory page "Gaussian leakage").

    Examples
    --------
    >>> float(gaussian_laplace_log_density(0.0, variance=0.0, scale=0.5))
    0.0
    """
    mean, scale = check_finite(mean, "mean"), check_positive(scale, "scale")
    if not check_finite(variance, "variance") >= 0:
        raise ModelError(f"variance must be non-negative, got {variance}.")
    z = np.asarray(output, dtype=float) - mean
    if variance == 0:
        return np.asarray(-(np.abs(z) / scale) - math.log(2 * scale) + 0.0)
    sd = math.sqrt(variance)
    sides = _side(z, sd, scale), _side(-z, sd, scale)
    return np.asarray(np.logaddexp(*sides) - math.log(2 * scale))


def _side(z: Array, sd: float, b: float) -> Array:
    """Return v/2b^2 - z/b + ln Phi(z/sd - sd/b), large terms cancelled by hand."""
    x = z / sd - sd / b
    near = -((z / sd) ** 2) / 2 + np.log(erfcx(-np.minimum(x, 0.0) / math.sqrt(2)) / 2)
    far = (sd * (sd / b) / 2 - z) / b + log_ndtr(x)
    return np.asarray(np.where(x < 0, near, far))
