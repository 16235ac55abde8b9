"""What the bounds share: hypotheses, arguments, inverses, and trade-off functions.

A trade-off function is used through its tangents, as every slope gives a valid bound
(:func:`gain`, :func:`capacity`), or through lines and points below it and the corners
they leave (:func:`envelope`, :func:`points_below`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Protocol, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from undertow._validate import check_count, check_probability
from undertow.errors import AssumptionError, InfeasibleTarget
from undertow.numeric.array import Floats, read_law
from undertow.numeric.rounding import DOZENS, inflate
from undertow.numeric.search import bisect, golden_section, greatest_float
from undertow.privacy import (
    Approx,
    ApproxTradeOff,
    Bound,
    Calibration,
    GaussianTradeOff,
    LaplaceTradeOff,
    Loss,
    Pure,
    TradeOff,
    round_up,
)

Guarantee = Loss | TradeOff


class _HasPmf(Protocol):
    @property
    def pmf(self) -> Floats: ...


PriorLike = ArrayLike | _HasPmf

BARE = (
    "the records are independent",
    "the guarantee is for replacing one record by another",
)
"""Hypotheses of every bound on the advantage."""

BLIND = (*BARE, "the attacker knows nothing of the target beyond the output")
"""Hypotheses of the bounds that knowledge of the target breaks."""

LARGEST = 700.0
"""A privacy parameter past which e^epsilon is not formed."""

_TOLERANCE = 1e-9


def advantage(
    value: float,
    theorem: str,
    *,
    checked: tuple[str, ...] = (),
    unchecked: tuple[str, ...] = BARE,
    tight: bool | None = None,
) -> Bound:
    """Return a bound on the advantage with its hypotheses."""
    return Bound(value, theorem, unchecked, checked, "advantage", tight=tight)


def capped(value: float, ceiling: float) -> float:
    """Raise a value by the margin, up to a ceiling that holds in any case."""
    return min(ceiling, inflate(value, DOZENS))


def disagreement(collision: float) -> float:
    """Return 1 - kappa, rounded up: the chance that two draws differ."""
    return round_up(1 - Fraction(check_probability(collision, "collision")))


def uniform_disagreement(size: int) -> float:
    """Return 1 - 1/m, rounded up."""
    return round_up(Fraction(size - 1, size))


def law(prior: PriorLike) -> Floats:
    """Read a prior: an object with a ``pmf``, or the probabilities themselves.

    What is missing from 1, at most 1e-9, is shared out in proportion.
    """
    return read_law(getattr(prior, "pmf", prior), "prior", tolerance=_TOLERANCE)


def read_size(size: SupportsIndex) -> int:
    """Read a number of records that a float can hold."""
    m = check_count(size, "size")
    if m > 10**300:
        raise ValueError(
            "size must be at most 10^300, got more; use the prior-free cap."
        )
    return m


def parameters(loss: Loss) -> tuple[float, float]:
    """Return epsilon and delta of a pure or approximate guarantee."""
    if isinstance(loss, Pure):
        return loss.epsilon, 0.0
    if isinstance(loss, Approx):
        return loss.epsilon, loss.delta
    raise AssumptionError(
        f"loss must be Pure or Approx, got {loss}; use the trade-off bounds for GDP, "
        "or convert it (undertow.privacy.convert)."
    )


def check_target(target: float) -> float:
    """Return a target advantage in (0, 1]."""
    value = check_probability(target, "target")
    if value == 0:
        raise ValueError(
            "target must be positive, got 0; only a constant output has no advantage."
        )
    return value


def calibrated_epsilon(
    target: float,
    bound: Callable[[float], Bound],
    *,
    ceiling: float,
    parameter: str = "epsilon",
) -> Calibration:
    """Return the largest parameter at which a growing bound stays within the target.

    Infinite where the target is not below `ceiling`, which no attack exceeds. The bound
    is evaluated at the value returned, so that no rounding can break the promise.
    """
    target = check_target(target)
    if target >= ceiling:
        method = "the target is never binding: no attack has a larger advantage"
        return Calibration(parameter, math.inf, bound(math.inf), method)
    least = bound(0.0)
    if least.value > target:
        raise InfeasibleTarget(
            f"target must be greater than {least.value:.6g}, what {least.theorem} "
            f"gives at {parameter} 0, got {target}; lower delta.",
            least=least.value,
        )
    value = greatest_float(
        lambda level: bound(level).value <= target, low=0.0, high=LARGEST
    )
    return Calibration(parameter, value, bound(value), "bisection over the floats")


# Trade-off functions through their tangents: every slope gives a valid bound.
#
# If a mechanism is :math:`f`-DP, it is :math:`(\varepsilon, \delta(\varepsilon))`-DP
# for every :math:`\varepsilon \ge 0`, with :math:`\delta(\varepsilon) = \sup_\alpha 1 -
# f(\alpha) - e^\varepsilon \alpha`. The gain :math:`g(\alpha) = 1 - f(\alpha) - \alpha`
# is the lower envelope of its tangents
#
# .. math:: \delta(\varepsilon) + (e^\varepsilon - 1)\alpha, \qquad
#           e^{-\varepsilon}\delta'(\varepsilon) + (1 - e^{-\varepsilon})(1 - \alpha)
#
# with :math:`\delta'` the curve of the inverse function. Each is an upper bound
# whatever slope is chosen, so that a search which stops early costs sharpness, never
# safety, and no difference of nearly equal numbers is formed.

_STEPS = 90


def gain(f: TradeOff, *, low: float, high: float) -> float:
    """Bound the largest gain ``1 - f(alpha) - alpha`` on an interval, rounded up."""
    return min(f.total_variation(), rising_gain(f, high), falling_gain(f, low))


def rising_gain(f: TradeOff, level: float) -> float:
    """Bound the gain on ``[0, level]`` by tangents that do not fall."""

    def tangent(epsilon: float) -> float:
        return f.delta(epsilon) + math.expm1(epsilon) * level

    reach = min(LARGEST, math.log1p(1.0 / level)) if level > 1e-300 else LARGEST
    return _least(tangent, _slopes(f, level, sign=1.0), reach=reach)


def falling_gain(f: TradeOff, level: float) -> float:
    """Bound the gain on ``[level, 1]`` by tangents that do not rise."""
    other = f.inverse()

    def tangent(epsilon: float) -> float:
        decay = math.exp(-epsilon)
        return other.delta(epsilon) * decay - math.expm1(-epsilon) * (1.0 - level)

    return _least(tangent, _slopes(f, level, sign=-1.0), reach=LARGEST)


def capacity(f: TradeOff, size: int) -> float:
    r"""Bound :math:`\sum_x \Pr[\Theta_x \mid x] - \Pr[\Theta_x]` over attack regions.

    Lemma 5.14 of the thesis at every point of the curve, the least value taken; with
    :math:`f(q) = (m-1)q` it is :math:`(m-1)(1 - mq)`.
    """

    def lemma(epsilon: float) -> float:
        decay = math.exp(-epsilon)
        top = -math.expm1(-epsilon) + f.delta(epsilon) * size * decay
        return top / (1.0 + (size - 1) * decay)

    slopes = _corners(f) if isinstance(f, ApproxTradeOff) else None
    return (size - 1) * min(1.0, _least(lemma, slopes, reach=LARGEST))


def least_along(value: Callable[[float], float], *, reach: float) -> float:
    """Return the least value seen by a golden-section search on ``[0, reach]``."""
    inner = golden_section(value, 0.0, reach, rounds=_STEPS)
    return min(value(0.0), value(reach), inner.least)


def _least(
    value: Callable[[float], float], slopes: tuple[float, ...] | None, *, reach: float
) -> float:
    if slopes is None:
        best = least_along(value, reach=reach)
    else:
        best = min(value(slope) for slope in slopes)
    return min(1.0, inflate(best, DOZENS))


def _slopes(f: TradeOff, level: float, *, sign: float) -> tuple[float, ...] | None:
    """Return the logarithm of the slope at a level where it is known, else None."""
    if isinstance(f, ApproxTradeOff):
        return _corners(f)
    if isinstance(f, GaussianTradeOff):
        mu = f._parameters()["mu"]
        slope = _gaussian_slope(mu, level)
    elif isinstance(f, LaplaceTradeOff):
        mu = f._parameters()["mu"]
        slope = -mu - 2.0 * math.log(2.0 * level) if level > 0 else mu
        slope = max(-mu, min(mu, slope))
    else:
        return None
    return (min(LARGEST, max(0.0, sign * slope)),)


def _gaussian_slope(mu: float, level: float) -> float:
    if mu == 0:
        return 0.0
    if mu == math.inf or level == 1:
        return -math.inf
    return mu * -float(ndtri(level)) - mu * mu / 2.0


def _corners(f: ApproxTradeOff) -> tuple[float, ...]:
    # The last is the level piece, where the function has reached 0.
    return (0.0, min(LARGEST, f._parameters()["epsilon"]), LARGEST)


# Lines and points below a trade-off function, and the corners they leave.

LOWERED = 1e-12
"""Taken off every line: far above the rounding of corners and of their sums."""

_TAIL = 1e-15


def envelope(heights: Floats, slopes: Floats) -> tuple[Floats, Floats]:
    """Return the corners on [0, 1] of the greatest of the lines height - slope x."""
    order = np.lexsort((heights, slopes))[::-1]
    kept: list[int] = []
    starts: list[float] = []
    for line in order.tolist():
        start = 0.0
        while kept:
            top = kept[-1]
            gap = float(slopes[top] - slopes[line])
            rise = float(heights[top] - heights[line])
            # Of parallel lines the higher came first.
            start = rise / gap if gap > 0 else math.inf
            if start > starts[-1]:
                break
            kept.pop()
            starts.pop()
            start = 0.0
        if start < 1.0:
            kept.append(line)
            starts.append(start)
    alphas = np.append(starts, 1.0)
    lines = np.array(kept)
    # Each corner at the lower of its two lines, so that no chord rises above a line.
    after = heights[lines] - slopes[lines] * alphas[:-1]
    before = heights[lines] - slopes[lines] * alphas[1:]
    betas = np.append(after, 0.0)
    betas[1:] = np.minimum(betas[1:], before)
    betas[-1] = 0.0
    return alphas, np.maximum(0.0, betas)


def even_levels(count: int) -> Floats:
    """Return type I errors, evenly in the middle and by ratio towards both ends.

    Neighbouring distances differ by a bounded factor, so that a prolonged chord does
    not magnify rounding.
    """
    logit = np.linspace(-28.0, 28.0, 20_001)
    dense = 1.0 / (1.0 + np.exp(-logit))
    scale = logit / 112.0 + dense / 2.0
    inner = np.interp(np.linspace(scale[0], scale[-1], count), scale, dense)
    return np.concatenate([[0.0], inner, [1.0]])


def points_below(alphas: Floats, betas: Floats) -> tuple[Floats, Floats]:
    """Return points below every convex function through the given ones."""
    slopes = np.diff(betas) / np.diff(alphas)
    # On each interval the prolonged chords of its two neighbours; the greater is below.
    left = np.concatenate([[math.inf], slopes[:-1]])
    right = np.concatenate([slopes[1:], [0.0]])
    base = alphas[:-1]
    width = np.diff(alphas)
    last_height = np.append(betas[1:-1], 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # betas + left s = next - right (width - s)
        meet = (last_height - right * width - betas[:-1]) / (left - right)
    meet = np.clip(np.where(np.isfinite(meet), meet, 0.0), 0.0, width)
    meet[0] = 0.0
    drop = np.where(np.isfinite(left), left, 0.0) * meet
    along_left = np.where(np.isfinite(left), betas[:-1] + drop, -math.inf)
    along_right = last_height - right * (width - meet)
    height = np.maximum(0.0, np.maximum(along_left, along_right))
    x = np.concatenate([base + meet, alphas])
    y = np.concatenate([height, np.append(betas[:-1], 0.0)])
    return x, y


def reach_of(delta: Callable[[float], float]) -> float:
    """Return an epsilon past which delta falls by less than the tail mass."""
    floor = delta(LARGEST) + _TAIL
    return bisect(lambda e: delta(e) <= floor, inside=LARGEST, outside=0.0, rounds=24)
