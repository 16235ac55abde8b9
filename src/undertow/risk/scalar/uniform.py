r"""A noisy number and a uniform prior: closed forms, and records that are real numbers.

Exact success, nothing known: the best guess is the nearest answer, so only neighbouring
answers meet; with gaps :math:`\Delta_j` the advantage is
:math:`\frac1m\sum_j t(\Delta_j)`, where t is the total variation of two answers that
far apart.

A record that is a real number, uniform on an interval, is guessed to within a distance:
the best window for an output is found in closed form, and the integral over outputs is
enclosed.

References
----------
.. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
   Correlated Data*, PhD thesis, KIT, 2026.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, erfinv

from undertow._validate import (
    check_count,
    check_finite,
    check_non_negative,
    check_positive,
)
from undertow.errors import ModelError, NotApplicable
from undertow.numeric.array import Floats
from undertow.numeric.rounding import CLOSED_FORM, UNIT, inflate
from undertow.results import Bound, Calibration, Witness
from undertow.risk.bounds._parts import BLIND, check_target, uniform_disagreement
from undertow.risk.finite import Risk
from undertow.risk.number import ScalarLaw
from undertow.risk.scalar.engine import REACH, TAIL

# The target is lowered by this share, which covers the margin of the closed form.
_SLACK = 4 * CLOSED_FORM
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
    share = min(goal * (1 - _SLACK) * size / (size - 1), 1 - UNIT)
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
    share = min(goal * (1 - _SLACK) * size / (size - 1), 1 - UNIT)
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
    return min(inflate(value, CLOSED_FORM), uniform_disagreement(size))


def _settle(value: float, factor: float, holds: Callable[[float], bool]) -> float:
    """Move to the private side until the closed form agrees, as evaluated."""
    while not holds(value):
        value *= factor
    return value


def _calibration(name: str, value: float, risk: float, method: str) -> Calibration:
    achieves = Bound(risk, "thesis, Examples 5.7 and 5.8", _HYPOTHESES, (), "advantage")
    return Calibration(name, value, achieves, method)


# A record that is a real number: the advantage of guessing it to within a distance.
#
# With a uniform prior on [low, high] and noise of density f, a guess that counts on the
# window [c, d] gains
#
# .. math:: V(\theta) = \frac1R \int_c^d (f(\theta - x) - p(\theta))\, dx, \qquad
#    p(\theta) = \frac1R \int f(\theta - x)\, dx .
#
# The best window for a given output is found in closed form, and the integral over
# outputs is enclosed: :math:`|V''|` has a bound B for all windows, so trapezoids plus
# :math:`B h^3/12` lie above and midpoints less :math:`B h^3/24` below.


_FIRST = 1 << 10
_POINTS = 1 << 21
_WIDEST = 1e9
_UNCHECKED = ("the target is independent of the other records", "the prior is public")


@dataclass(frozen=True, slots=True, init=False)
class ContinuousPrior:
    """A uniform law of a real record.

    Build it with :meth:`uniform`.

    Examples
    --------
    >>> ContinuousPrior.uniform(0, 2).width
    2.0
    """

    low: float
    high: float

    @classmethod
    def uniform(cls, low: float, high: float) -> ContinuousPrior:
        """Return the uniform law between two numbers."""
        ends = check_finite(low, "low"), check_finite(high, "high")
        if not ends[0] < ends[1] or not math.isfinite(ends[1] - ends[0]):
            raise ValueError(f"low must be below high, got {low} and {high}.")
        prior = object.__new__(cls)
        object.__setattr__(prior, "low", ends[0])
        object.__setattr__(prior, "high", ends[1])
        return prior

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.high - self.low


def continuous_advantage(
    mechanism: Any,
    prior: ContinuousPrior,
    *,
    eta: float,
    known: bool = False,
    tolerance: float = 1e-7,
) -> Risk:
    r"""Enclose the advantage of guessing a real record to within `eta`.

    Parameters
    ----------
    mechanism : LaplaceMechanism or GaussianMechanism
        Noise on the record itself, or on a sum with it.
    prior : ContinuousPrior
        The law of the record; guesses lie in its interval.
    eta : float
        Distance at which a guess still counts.
    known : bool, optional
        Whether the attacker is told the record and asks if it took part; `eta` must
        then be below half the width, so that every record can be denied.
    tolerance : float, optional
        Gap between the two sides to aim at.

    Returns
    -------
    Risk
        The upper side; what it can exceed the exact value by is in
        ``witness.details["gap"]``, and it is not marked tight where that is more than
        twice the tolerance. With `eta` 0 and nothing known it is exactly 0, since no
        guess hits a record that has no atoms.

    Raises
    ------
    NotApplicable
        If the noise is clamped or truncated, a known record cannot be denied, or the
        interval is wider than 1e9 scales of the noise.

    Notes
    -----
    Theorem 5.3 of [1]_ with a density. The source says that the advantage of exact
    guessing is zero for continuous records; with a record that is known it is not. The
    best guess is not the output moved into the interval: near the middle it can pay to
    cut one side off. Proofs on the page *Risk of a noisy number*. Restricting guesses
    to a grid would give a lower value, a maximum of simulated averages one that is
    too high; neither is done.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> unit = ContinuousPrior.uniform(0, 1)
    >>> round(continuous_advantage(LaplaceMechanism(1), unit, eta=0.1).value, 5)
    0.07613
    >>> continuous_advantage(LaplaceMechanism(1), unit, eta=0).value
    0.0
    """
    wanted = check_positive(tolerance, "tolerance")
    reach = check_non_negative(eta, "eta")
    law = _read_law(mechanism)
    if known and not reach < prior.width / 2:
        raise NotApplicable(
            f"eta must be below half the width {prior.width:g} for a known record, got "
            f"{eta}; otherwise some records are hit by every guess."
        )
    if not known and (reach == 0 or reach >= prior.width):
        return _risk(0.0, 0.0, _reason(reach), prior=prior, eta=eta)
    if not prior.width / law.scale <= _WIDEST:
        raise NotApplicable(
            f"the prior must be at most {_WIDEST:g} scales of the noise wide, got "
            f"{prior.width / law.scale:g}; such noise hides nothing."
        )
    window = _Window(law, prior.width / law.scale, reach / law.scale, known)
    lower, upper = _enclose(window, wanted)
    upper = min(upper, law.variation(prior.width) + CLOSED_FORM, 1.0)
    gap = max(0.0, upper - max(0.0, lower))
    found = _risk(upper, gap, "the best window for each output", prior=prior, eta=eta)
    return replace(found, tight=gap <= 2 * wanted)


def _reason(eta: float) -> str:
    if eta == 0:
        return "none: no guess hits a record without atoms exactly"
    return "none: every guess is right, whatever the output"


def _risk(
    value: float, gap: float, attack: str, *, prior: ContinuousPrior, eta: float
) -> Risk:
    return Risk(
        value,
        "thesis, Theorem 5.3",
        _UNCHECKED,
        (f"two-sided sums: an attack attains this value less {gap:.1e}",),
        witness=Witness("adversary", attack, {"gap": gap}),
        tight=True,
        threat=f"guess within {eta:g} in [{prior.low:g}, {prior.high:g}], uniform",
    )


def _read_law(mechanism: Any) -> ScalarLaw:
    law = ScalarLaw.of(mechanism)
    if law.kind != "plain":
        way = "clamping only lowers the risk, so the plain value bounds it"
        if law.kind == "truncated":
            way = "truncated noise may tell more, so put the records on a grid"
        raise NotApplicable(
            "mechanism must be plain noise for a continuous record, got "
            f"{law.kind} noise; {way}."
        )
    return law


@dataclass(frozen=True, slots=True)
class _Window:
    """The best window for each output; lengths in units of the scale, low end at 0."""

    law: ScalarLaw
    width: float
    eta: float
    known: bool

    @property
    def steepest(self) -> float:
        r"""A bound on :math:`|V''|`: two window ends and two ends of the prior."""
        slope = 0.5 if self.law.family == "laplace" else _phi(np.asarray(1.0)).item()
        share = 1.0 if self.known else min(1.0, 2 * self.eta / self.width)
        return 2 * slope * (1 + share) / self.width

    def best(self, theta: Floats) -> Floats:
        """Return the largest gain for each output."""
        mean = (self.law.cdf(theta) - self.law.cdf(theta - self.width)) / self.width
        level = self._level(mean)
        if self.known:
            return self._gain(theta, mean, theta - level, theta + level)
        least, most = self.eta, min(self.width, 2 * self.eta)
        stop = np.clip(theta + level, least, most)
        start = np.clip(theta - level, self.width - most, self.width - least)
        gains = [
            self._gain(theta, mean, 0.0 * theta, stop),
            self._gain(theta, mean, 0.0 * theta, 0.0 * theta + least),
            self._gain(theta, mean, start, 0.0 * theta + self.width),
            self._gain(
                theta, mean, 0.0 * theta + self.width - least, 0.0 * theta + self.width
            ),
        ]
        if self.width > 2 * self.eta:
            centre = np.clip(theta, self.eta, self.width - self.eta)
            inner = self._gain(theta, mean, centre - self.eta, centre + self.eta)
            gains.append(inner)
        else:
            gains.append(np.zeros_like(theta))
        return np.asarray(np.max(gains, axis=0))

    def _gain(self, theta: Floats, mean: Floats, start: Floats, stop: Floats) -> Floats:
        c, d = np.clip(start, 0.0, self.width), np.clip(stop, 0.0, self.width)
        mass = self.law.cdf(theta - c) - self.law.cdf(theta - d)
        return np.asarray((mass - (d - c) * mean) / self.width)

    def _level(self, mean: Floats) -> Floats:
        """Return the distance at which the density of the noise falls to `mean`."""
        with np.errstate(divide="ignore"):
            if self.law.family == "laplace":
                return np.maximum(0.0, -np.log(2 * mean))
            drop = -2 * np.log(mean * math.sqrt(2 * math.pi))
            return np.asarray(np.sqrt(np.maximum(0.0, drop)))


def _phi(z: Floats) -> Floats:
    return np.asarray(np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi))


def _enclose(window: _Window, tolerance: float) -> tuple[float, float]:
    """Enclose the integral over outputs by doubling the number of cells."""
    laplace = window.law.family == "laplace"
    side = 0.0 if laplace else REACH
    length, count = window.width + 2 * side, _FIRST
    # Beyond the interval Laplace gains decay alike, with integral 1.
    ends = np.array([0.0, window.width])
    rays = float(window.best(ends).sum()) if laplace else 0.0
    outside = 0.0 if laplace else TAIL
    while True:
        step = length / count
        places = -side + step * np.arange(2 * count + 1) / 2
        heights = window.best(places)
        bend = window.steepest * step**2 * length
        above = (
            step * float(heights[::2].sum() - (heights[0] + heights[-1]) / 2)
            + bend / 12
        )
        below = step * float(heights[1::2].sum()) - bend / 24
        if above - below <= tolerance or 4 * count > _POINTS:
            break
        count *= 2
    # Differences of the law are off by some units, divided by the width of the prior.
    margin = CLOSED_FORM + outside + 16 * UNIT * (length + 2) / window.width
    return rays + below - margin, rays + above + margin
