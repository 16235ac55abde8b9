"""Noise on whole numbers: how far a unit moves them, and intervals by its exact law.

A unit has at most R rows, in at most G cells, at most r of them in one cell; how far it
can move a table of counts is exact, and not only an upper bound. The intervals of a
number, of a sum of several, of a share and of a published cell are never too narrow.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from undertow.errors import PlanError
from undertow.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    Draw,
    NoiseSource,
    SecureSource,
)
from undertow.numeric.array import Array, Bools
from undertow.numeric.rounding import inflate, log_down
from undertow.numeric.search import bisect_each, greatest_int
from undertow.privacy.loss import ZCDP, Loss, Pure
from undertow.spaces.base import Metric


@dataclass(frozen=True, slots=True)
class ClaimUnit:
    """What one step of the claims of a release is.

    Parameters
    ----------
    step : Metric
        Adding or removing one bounded unit.
    swap : Metric or None
        Replacing what one unit has by something else, where a second claim about it
        is made.
    """

    step: Metric
    swap: Metric | None = None


@dataclass(frozen=True, slots=True)
class Reach:
    r"""Most that adding or removing one unit moves a vector of whole numbers.

    Parameters
    ----------
    total : int
        In :math:`\ell_1`.
    square : int
        In squared :math:`\ell_2`.
    touched : int
        Most cells that move.
    swap_total, swap_square : int
        The same for replacing what a unit has by something else; by default twice and
        four times as much, which always holds.

    Examples
    --------
    >>> Reach(5, 13, 2).times(3)
    Reach(total=15, square=117, touched=2)
    """

    total: int
    square: int
    touched: int
    swap_total: int = field(default=0, repr=False)
    swap_square: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if self.swap_total == 0:
            object.__setattr__(self, "swap_total", 2 * self.total)
            object.__setattr__(self, "swap_square", 4 * self.square)

    def times(self, factor: int) -> Reach:
        """Return the reach where a row counts up to `factor` instead of one."""
        return Reach(
            self.total * factor,
            self.square * factor**2,
            self.touched,
            self.swap_total * factor,
            self.swap_square * factor**2,
        )

    def of_one_sign(self, *, cells: int | None = None, most: int = 1) -> Reach:
        r"""Return the reach of numbers that a unit moves up only.

        Parameters
        ----------
        cells : int, optional
            How many numbers there are, where that is known.
        most : int
            Most that a unit moves one of them.

        Notes
        -----
        For non-negative a and b, :math:`\|a-b\|_2^2 \le \|a\|_2^2 + \|b\|_2^2`
        because their inner product is not negative. No number moves by more than
        `most`, so that m of them move by m times that at most.
        """
        total, square = 2 * self.total, 2 * self.square
        if cells is not None:
            total, square = min(total, cells * most), min(square, cells * most**2)
        return replace(self, swap_total=total, swap_square=square)

    def pure_scale(self, epsilon: Fraction) -> Fraction:
        """Return the scale of Laplace noise that costs `epsilon`."""
        return self.total / epsilon

    def gaussian_variance(self, rho: Fraction) -> Fraction:
        """Return the squared sigma of Gaussian noise that costs `rho` in zCDP."""
        return self.square / (2 * rho)


@dataclass(frozen=True, slots=True)
class Contribution:
    r"""The bounds on one unit's rows in one query.

    Parameters
    ----------
    rows : int or None
        R, most rows of a unit; None if nothing bounds them.
    groups : int or None
        G, most cells that a unit counts in.
    per_group : int or None
        r, most rows of a unit in one cell.
    cells : int or None
        Number of cells there are; None if the keys are discovered.

    Notes
    -----
    With :math:`r' = \min(r, R)` and :math:`G' = \min(G, R, \text{cells})`:

    .. math:: \Delta_1 = \min(R, G' r'), \qquad
              \Delta_2^2 = q r'^2 + s^2,\quad q = \min(G', \lfloor R/r' \rfloor),\;
              s = \min(r', R - q r')\,[q < G'].

    The sum of squares is convex, so it is largest at an extreme point of the allowed
    set: all cells but one full or empty. Proved on the page *Release accounting*.

    Examples
    --------
    >>> Contribution(rows=50, groups=4, per_group=20, cells=24).row_reach()
    Reach(total=50, square=900, touched=4)
    >>> Contribution(rows=50, groups=None, per_group=None, cells=24).unit_reach()
    Reach(total=24, square=24, touched=24)
    """

    rows: int | None
    groups: int | None
    per_group: int | None
    cells: int | None

    @property
    def most_groups(self) -> int | None:
        """Most cells that a unit can count in, all bounds together."""
        return _least(self.groups, self.rows, self.cells)

    def row_reach(self) -> Reach:
        """Return how far the row counts move.

        Raises
        ------
        PlanError
            If the bounds leave the rows of a unit unbounded.
        """
        groups, most = self.most_groups, _least(self.per_group, self.rows)
        if most is None or (groups is None and self.rows is None):
            raise PlanError(
                "bounds.rows_per_unit must be given where rows are counted or added "
                "up, got nothing that bounds the rows of a unit; say for example "
                "rows_per_unit = 50."
            )
        if groups is None:
            groups = self.rows
        assert groups is not None
        total = groups * most if self.rows is None else min(self.rows, groups * most)
        full = min(groups, total // most)
        rest = min(most, total - full * most)
        reach = Reach(total, full * most**2 + rest**2, groups)
        return reach.of_one_sign(cells=self.cells, most=most)

    def unit_reach(self) -> Reach:
        """Return how far the numbers of distinct units move: one in each cell.

        Raises
        ------
        PlanError
            If the bounds leave the cells of a unit unbounded.
        """
        groups = self.most_groups
        if groups is None:
            raise PlanError(
                "bounds.groups_per_unit must be given where keys are discovered, got "
                "nothing that bounds the cells of a unit; say for example "
                "groups_per_unit = 10."
            )
        return Reach(groups, groups, groups).of_one_sign(cells=self.cells)


def _least(*bounds: int | None) -> int | None:
    given = [bound for bound in bounds if bound is not None]
    return min(given) if given else None


# Confidence intervals from the exact laws of the noise, never too narrow.

Ends = tuple[Any, Any]
# Covers the rounding of a few dozen floating-point operations.
_MARGIN = 1e-9


@dataclass(frozen=True, slots=True)
class IntegerNoise:
    r"""Independent noise on whole numbers: discrete Laplace or discrete Gaussian.

    Parameters
    ----------
    law : {"laplace", "gaussian"}
        Probability proportional to :math:`e^{-|k|/b}` or to
        :math:`e^{-k^2/2\sigma^2}`.
    parameter : Fraction
        The scale b, or the square of sigma.

    Examples
    --------
    >>> noise = IntegerNoise("laplace", Fraction(2))
    >>> noise.radius(0.05), noise.loss(Reach(1, 1, 1))
    (6, Pure(epsilon=0.5))
    """

    law: str
    parameter: Fraction

    @property
    def mechanism(self) -> DiscreteLaplaceMechanism | DiscreteGaussianMechanism:
        """The mechanism that adds this noise to one whole number."""
        if self.law == "laplace":
            return DiscreteLaplaceMechanism(self.parameter)
        return DiscreteGaussianMechanism.from_variance(self.parameter)

    @property
    def deviation(self) -> float:
        """The standard deviation of one number's noise (of the Gaussian law, sigma)."""
        if self.law == "gaussian":
            return math.sqrt(self.parameter)
        # 2 p / (1 - p)^2 with p = exp(-1/b), which is 1 / (2 sinh^2(1/2b)).
        half = 1.0 / (2.0 * float(self.parameter))
        return 0.0 if half > 350 else 1.0 / (math.sqrt(2.0) * math.sinh(half))

    def loss(self, reach: Reach) -> Loss:
        """Return what releasing a vector of this reach costs per unit, exactly."""
        if self.law == "laplace":
            return Pure(reach.total / self.parameter)
        return ZCDP(reach.square / (2 * self.parameter))

    def swap_loss(self, reach: Reach) -> Loss:
        """Return what it costs per unit whose data is replaced, exactly."""
        if self.law == "laplace":
            return Pure(reach.swap_total / self.parameter)
        return ZCDP(reach.swap_square / (2 * self.parameter))

    def radius(self, beta: float) -> int:
        """Return the least t with an error above t of probability at most `beta`."""
        return max(0, int(self.mechanism.accuracy(beta)) - 1)

    def log_tail(self, at_least: int) -> float:
        """Return the log probability of noise of at least `at_least`, rounded up."""
        if at_least <= 0:
            return 0.0
        twice = self.mechanism.confidence(at_least)
        if twice > 1e-290:
            return math.log(twice / 2.0) + _MARGIN
        return self._chernoff_at(float(at_least))

    def sum_radius(
        self,
        weights: Sequence[float],
        beta: float,
        *,
        counts: Sequence[int] | None = None,
    ) -> float:
        r"""Return t with :math:`\Pr[\sum_i w_i\eta_i > t] \le \beta`, rounded up.

        Parameters
        ----------
        weights : sequence of float
            The weights; their signs do not matter.
        beta : float
            The probability.
        counts : sequence of int, optional
            How many terms have each weight; one by default.

        Notes
        -----
        Chernoff's bound :math:`\ln\Pr \le \sum_i \ln E e^{\lambda w_i\eta_i} -
        \lambda t`, with the exact moment generating function of the discrete Laplace
        law, and :math:`e^{\lambda^2\sigma^2/2}` for the discrete Gaussian, which is an
        upper bound of its own. Every :math:`\lambda` gives a valid t; the search for
        the best one cannot make it unsafe. By symmetry the same t holds below.
        """
        w = np.abs(np.asarray(weights, dtype=np.float64))
        n = np.ones_like(w) if counts is None else np.asarray(counts, dtype=np.float64)
        w, n = w[(w > 0) & (n > 0)], n[(w > 0) & (n > 0)]
        if not w.size:
            return 0.0
        rates = self._rates(w, n)
        levels = (self._log_moments(w, n, rates=rates) - math.log(beta)) / rates
        return inflate(float(levels.min()), _MARGIN)

    def add_to(self, values: NDArray[Any], *, source: NoiseSource | None) -> Draw:
        """Draw the noisy whole numbers, as Python integers of any size.

        Parameters
        ----------
        values : ndarray of object
            Python integers.
        source : NoiseSource, optional
            Operating-system entropy by default.
        """
        origin = SecureSource() if source is None else source
        drawn = origin.laplace if self.law == "laplace" else origin.gaussian
        noise = drawn(self.parameter, values.size)
        whole = noise.values.astype(np.object_).reshape(values.shape)
        return Draw(np.asarray(values + whole), noise.simulated, noise.source)

    def _rates(self, w: Array, n: Array) -> Array:
        """Return rates to try, a fine geometric grid below the largest allowed."""
        if self.law == "gaussian":
            unit = 1.0 / math.sqrt(float(self.parameter) * float(np.sum(n * w**2)))
            return np.asarray(unit * np.geomspace(0.01, 100.0, 400))
        largest = 1.0 / (float(self.parameter) * float(w.max()))
        small = np.geomspace(1e-4, 0.5, 200)
        return np.asarray(largest * np.concatenate([small, 1.0 - small]))

    def _log_moments(self, w: Array, n: Array, *, rates: Array) -> Array:
        if self.law == "gaussian":
            total = float(self.parameter) * float(np.sum(n * w**2))
            return np.asarray(rates**2 * total / 2.0)
        # E exp(x eta) = (cosh(1/b) - 1) / (cosh(1/b) - cosh(x)), as half-angle sinhs.
        half = np.asarray(1.0 / (2.0 * float(self.parameter)))
        x = np.outer(rates, w) / 2.0
        logs = 2.0 * _log_sinh(half) - _log_sinh(half + x) - _log_sinh(half - x)
        return np.asarray(logs @ n)

    def _chernoff_at(self, t: float) -> float:
        one = np.ones(1)
        rates = self._rates(one, one)
        return min(
            0.0,
            float((self._log_moments(one, one, rates=rates) - rates * t).min())
            + _MARGIN,
        )


@dataclass(frozen=True, slots=True)
class LatticeNoise:
    """Noise on the multiples of a step, as a record keeps it and people read it.

    Parameters
    ----------
    noise : IntegerNoise
        On how many steps there are.
    step : Fraction
        What one step stands for, in the unit of the column.

    Examples
    --------
    >>> stored = LatticeNoise(IntegerNoise("laplace", Fraction(640)), Fraction(1, 8))
    >>> stored.to_dict()
    {'law': 'laplace', 'scale': '640', 'step': '1/8'}
    >>> stored.in_steps
    'discrete Laplace noise of scale 640 in steps of 0.125'
    >>> stored.in_units
    'discrete Laplace noise of scale 80, drawn in steps of 0.125'
    """

    noise: IntegerNoise
    step: Fraction

    @property
    def in_steps(self) -> str:
        """The noise in words, its size as a number of steps."""
        text = f"{_WORDS[self.noise.law]} {self._size:.6g}"
        return text if self.step == 1 else f"{text} in steps of {float(self.step):.6g}"

    @property
    def in_units(self) -> str:
        """The noise in words, its size in the unit of the column."""
        if self.step == 1:
            return self.in_steps
        words, step = _WORDS[self.noise.law], float(self.step)
        return f"{words} {self._size * step:.5g}, drawn in steps of {step:.6g}"

    @property
    def _size(self) -> float:
        size = float(self.noise.parameter)
        return size if self.noise.law == "laplace" else math.sqrt(size)

    def is_alike(self, other: LatticeNoise) -> bool:
        """Tell whether two are of one law, step and size.

        Sizes may differ in their last digits, in which machines do.
        """
        if (self.noise.law, self.step) != (other.noise.law, other.step):
            return False
        ours, theirs = self.noise.parameter, other.noise.parameter
        return abs(ours - theirs) <= _ALIKE * max(ours, theirs)

    def to_dict(self) -> dict[str, str]:
        """Return the law, its parameter and the step, numbers as exact fractions."""
        name = _PARAMETERS[self.noise.law]
        parameter, step = str(self.noise.parameter), str(self.step)
        return {"law": self.noise.law, name: parameter, "step": step}


_PARAMETERS = {"laplace": "scale", "gaussian": "variance"}
_WORDS = {
    "laplace": "discrete Laplace noise of scale",
    "gaussian": "discrete Gaussian noise of sigma",
}
_ALIKE = Fraction(1, 10**9)
# What records said of noise before they kept it as data; never to be changed.
_FORMER_WORDS = re.compile(
    r"discrete (Laplace noise of scale|Gaussian noise of sigma) (\S+)"
    r"(?: in steps of \S+)?"
)


def stored_noise(query: Mapping[str, Any]) -> LatticeNoise | None:
    """Return the noise of a node, from what the record of a plan says of a query.

    Parameters
    ----------
    query : mapping
        As ``expected_error`` returned it, in this version or an earlier one.

    Returns
    -------
    LatticeNoise or None
        None where an earlier version did not say enough.

    Raises
    ------
    PlanError
        If it says nothing that any version has said.
    """
    stored = query.get("noise")
    if stored is None:
        return _former_noise(query)
    try:
        parameter = Fraction(stored[_PARAMETERS[stored["law"]]])
        step = Fraction(stored["step"])
    except (ArithmeticError, KeyError, TypeError, ValueError):
        parameter = step = Fraction(0)
    if parameter <= 0 or step <= 0:
        raise PlanError(
            "the stored noise must have a law, its parameter and a step, got something "
            "else; it was stored by another program or a newer version."
        )
    return LatticeNoise(IntegerNoise(stored["law"], parameter), step)


def _former_noise(query: Mapping[str, Any]) -> LatticeNoise | None:
    """Read the words in which earlier versions stored noise, and its deviation.

    The words name the law and six digits of its size, and the deviation has the rest.
    """
    words = _FORMER_WORDS.fullmatch(query["mechanism"])
    step, deviation = query.get("step"), query.get("node_deviation")
    if deviation is None:  # which only nodes of running totals have
        deviation = query.get("deviation")
    if words is None or step is None or deviation is None:
        return None
    law, size = ("laplace" if "Laplace" in words[1] else "gaussian"), float(words[2])
    found = deviation / step
    if law == "laplace":  # the inverse of IntegerNoise.deviation, which may be none
        halved = math.asinh(1.0 / (math.sqrt(2.0) * found)) if found else 0.0
        found = 1.0 / (2.0 * halved) if halved else size
    if not math.isclose(found, size, rel_tol=1e-5):
        return None
    parameter = Fraction(found) if law == "laplace" else Fraction(found) ** 2
    return LatticeNoise(IntegerNoise(law, parameter), Fraction(step))


def _log_sinh(x: Array) -> Array:
    """Return ln(2 sinh(x)) for positive x, without overflow."""
    return np.asarray(x + np.log(-np.expm1(-2.0 * x)))


def ratio_interval(first: Ends, second: Ends) -> tuple[Array, Array]:
    """Return the range of ``a / (a + b)`` over boxes of non-negative numbers.

    Parameters
    ----------
    first, second : tuple of array_like
        Lower and upper ends of the intervals of a and b; negative ends stand for 0.

    Examples
    --------
    >>> low, high = ratio_interval(([1, -2], [3, -1]), ([1, -3], [3, 0]))
    >>> low.tolist(), high.tolist()
    ([0.25, 0.0], [0.75, 1.0])
    """
    a_low, a_high = _raised_ends(first)
    b_low, b_high = _raised_ends(second)
    with np.errstate(invalid="ignore", divide="ignore"):
        low = np.where(a_low > 0, a_low / (a_low + b_high), 0.0)
        high = np.where(b_low > 0, a_high / (a_high + b_low), 1.0)
    return low, high


def variance_interval(parts: Sequence[Ends]) -> tuple[Array, Array]:
    r"""Bound variances of numbers in [0, 1] from intervals of three sums.

    The sums are those of :math:`(1-x)^2`, :math:`2x(1-x)` and :math:`x^2`, which add up
    to the number of rows.

    Parameters
    ----------
    parts : sequence of tuple of array_like
        Lower and upper ends of the three sums.

    Notes
    -----
    With the mean m and the share p of the middle sum, the variance is
    :math:`m(1-m) - p/2`, and with the share s of the last it is :math:`s - m^2`; both
    are bounded over the box, and the enclosures intersected.

    Examples
    --------
    >>> low, high = variance_interval([([10], [10]), ([0], [0]), ([10], [10])])
    >>> low.tolist(), high.tolist()
    ([0.25], [0.25])
    """
    zero, one, two = (_raised_ends(ends) for ends in parts)
    middle = ratio_interval(one, _sum_ends(zero, two))
    last = ratio_interval(two, _sum_ends(zero, one))
    m_low, m_high = ratio_interval(_sum_ends(two, two, one), _sum_ends(zero, zero, one))
    spread = np.minimum(m_low * (1 - m_low), m_high * (1 - m_high))
    nearest = np.clip(0.5, m_low, m_high)
    low = np.maximum(spread - middle[1] / 2, last[0] - m_high**2)
    high = np.minimum(nearest * (1 - nearest) - middle[0] / 2, last[1] - m_low**2)
    low = np.maximum(low, 0.0)
    return low, np.maximum(low, np.minimum(high, 0.25))


def _raised_ends(ends: Ends) -> tuple[Array, Array]:
    low, high = (np.maximum(np.asarray(end, dtype=np.float64), 0.0) for end in ends)
    return low, high


def _sum_ends(*terms: tuple[Array, Array]) -> tuple[Array, Array]:
    low, high = (np.sum([term[at] for term in terms], axis=0) for at in (0, 1))
    return low, high


# The law of the sum of several independent integer noises of one scale.
#
# Running totals add up noisy nodes; their intervals come from the law of that sum. It
# is exact for both laws up to rounding, which is to the safe side; nothing is
# simulated.

# Covers the rounding of a few thousand additions of positive floats.

# From this variance on, sums of discrete Gaussians are discrete Gaussian to 1e-15.
_SMOOTH = 4
# Below it, the law is tabulated: farther out, floats cannot hold a probability.
_FARTHEST = 80
# Floats below it lose digits.
_SMALLEST_TAIL = 1e-290


def total_radius(noise: IntegerNoise, terms: int, *, beta: float) -> int:
    r"""Return the least t with a sum of noises above t in size with chance `beta`.

    Parameters
    ----------
    noise : IntegerNoise
        The law of each term.
    terms : int
        How many independent noises are added up.
    beta : float
        The probability, in (0, 1).

    Notes
    -----
    The sum is symmetric: t is the least whole number with
    :math:`2\Pr[S \ge t + 1] \le \beta`, the tail rounded up.

    Examples
    --------
    >>> noise = IntegerNoise("laplace", Fraction(2))
    >>> [total_radius(noise, terms, beta=0.05) for terms in (1, 2, 3)]
    [6, 8, 10]
    """
    if terms == 1:
        return noise.radius(beta)
    limit = log_down(Fraction(beta) / 2)
    table = _table(noise, terms)

    def exceeds(t: int) -> bool:
        return _log_tail(noise, t + 1, terms=terms, table=table) > limit

    return greatest_int(exceeds) + 1 if exceeds(0) else 0


def total_log_tail(noise: IntegerNoise, at_least: int, *, terms: int) -> float:
    r"""Return the log probability of a sum of at least `at_least`, rounded up.

    Parameters
    ----------
    noise : IntegerNoise
        The law of each term.
    at_least : int
        Where the tail starts.
    terms : int
        How many independent noises are added up.

    Notes
    -----
    With :math:`p = e^{-1/b}`, the sum S of n discrete Laplace noises is a mixture of
    negative binomial laws above zero: for :math:`k \ge 1`

    .. math:: \Pr[S \ge k] = \sum_{j=0}^{n-1} w_j \sum_{i=0}^{n-j-1}
              \binom{k+n-j-1}{i} (1-p)^i p^{k+n-j-1-i}, \quad
              w_j = \frac{[j=0] + \sum_{i=1}^{j} \binom{n}{i}\binom{j-1}{i-1} p^{2i}}
              {(1+p)^{n+j}}.

    All terms are positive, so that nothing cancels. The sum of n discrete Gaussians of
    :math:`\sigma^2 \ge 4` is the discrete Gaussian of :math:`n\sigma^2` up to a
    factor below :math:`1 + 10^{-16}n`; below that the laws are convolved. Both are
    proved on the page *Running totals*.

    Examples
    --------
    >>> import math
    >>> noise = IntegerNoise("gaussian", Fraction(1, 4))
    >>> round(math.exp(total_log_tail(noise, 2, terms=3)), 4)
    0.0286
    """
    if at_least <= 0:
        return 0.0
    return _log_tail(noise, at_least, terms=terms, table=_table(noise, terms))


def _log_tail(
    noise: IntegerNoise, at_least: int, *, terms: int, table: Array | None
) -> float:
    if table is None:
        return IntegerNoise("gaussian", terms * noise.parameter).log_tail(at_least)
    scale = float(noise.parameter)
    if noise.law == "laplace":
        return min(0.0, _laplace_tail(1.0 / scale, at_least, weights=table))
    tail = float(table[at_least]) if at_least < len(table) else 0.0
    if tail > _SMALLEST_TAIL:
        return math.log(tail) + _MARGIN
    return -(at_least**2) / (2.0 * terms * scale) * (1.0 - _MARGIN)  # Chernoff


def _table(noise: IntegerNoise, terms: int) -> Array | None:
    """Return the weights of the Laplace law, or the tails of a narrow Gaussian one."""
    if noise.law == "laplace":
        return _log_weights(1.0 / float(noise.parameter), terms)
    return None if noise.parameter >= _SMOOTH else _tails(noise, terms)


def _log_weights(rate: float, terms: int) -> Array:
    """Return the logs of the weights of the negative binomial laws."""
    both = math.log1p(math.exp(-rate))
    found = [-terms * both]
    for j in range(1, terms):
        logs = [
            math.log(math.comb(terms, i) * math.comb(j - 1, i - 1)) - 2 * i * rate
            for i in range(1, j + 1)
        ]
        found.append(float(np.logaddexp.reduce(logs)) - (terms + j) * both)
    return np.array(found)


def _laplace_tail(rate: float, at_least: int, *, weights: Array) -> float:
    """Return the log of the mixture of negative binomial tails, rounded up."""
    stop = math.log(-math.expm1(-rate))  # ln(1 - p), and ln p is -rate
    terms, logs = len(weights), []
    for j, weight in enumerate(weights.tolist()):
        trials, choices = at_least + terms - j - 1, 0.0
        for i in range(terms - j):
            logs.append(weight + choices + i * stop - (trials - i) * rate)
            choices += math.log(trials - i) - math.log(i + 1)
    # Each of the logs is a sum of numbers that together are no larger than this.
    size = (at_least + 4 * terms) * rate
    size += terms * (abs(stop) + math.log(at_least + terms) + 4)
    return float(np.logaddexp.reduce(logs)) + 1e-14 * size


def _tails(noise: IntegerNoise, terms: int) -> Array:
    """Return Pr[S >= k] for k from 0 on, by convolution."""
    k = np.arange(-_FARTHEST, _FARTHEST + 1, dtype=np.float64)
    one = np.exp(-(k**2) / (2.0 * float(noise.parameter)))
    one /= one.sum()
    law = one
    for _ in range(terms - 1):
        law = np.convolve(law, one)
    return np.asarray(np.cumsum(law[::-1])[::-1][len(law) // 2 :])


# Intervals of a share A / (A + B) of two numbers that got noise of one scale.
#
# The share :math:`\theta` makes :math:`(1-\theta)A - \theta B` zero, so that the noisy
# one is noise alone: :math:`(1-\theta)\eta_1 - \theta\eta_2`. The shares at which it is
# not too large are the interval.

# Covers the rounding of a few dozen floating-point operations.

# Parts of [0, 1] in which one radius holds.
_SHARE_PARTS = 128
# Answers at once, so that memory stays small.
_BLOCK = 8192
# From this deviation on, one whole number more or less hardly matters.
_FINE = 16
# Below this probability, Chernoff's bound serves: floats and couplings are too coarse.
_SMALLEST_BETA = 1e-20


def share_interval(
    first: Array, second: Array, *, noise: IntegerNoise, beta: float
) -> tuple[Array, Array]:
    r"""Return intervals of A / (A + B) that miss it with probability at most `beta`.

    Parameters
    ----------
    first, second : ndarray
        The noisy A and B, one of each per answer; neither truth is negative.
    noise : IntegerNoise
        The independent noise of both.
    beta : float
        The probability.

    Notes
    -----
    The hull of the :math:`\theta \in [0, 1]` with
    :math:`|\tilde A - \theta(\tilde A + \tilde B)| \le t_i` in the i-th part of [0, 1],
    where the noise at any :math:`\theta` of that part passes :math:`t_i` in size with
    probability at most beta. The true share is left out with at most that probability,
    and no union over two numbers or over parts is needed. Noise of a deviation below 16
    has the range of the ratio over a box of two intervals of beta / 2 instead.

    Examples
    --------
    >>> from fractions import Fraction
    >>> noise = IntegerNoise("laplace", Fraction(100))
    >>> low, high = share_interval(
    ...     np.array([4e3]), np.array([6e3]), noise=noise, beta=0.05
    ... )
    >>> low.round(3).tolist(), high.round(3).tolist()
    ([0.379], [0.421])
    """
    if noise.deviation < _FINE:
        t = noise.radius(beta / 2)
        return ratio_interval((first - t, first + t), (second - t, second + t))
    radii = _radii(noise, beta)
    starts = range(0, max(1, len(first)), _BLOCK)
    blocks = [slice(start, start + _BLOCK) for start in starts]
    found = [_hull(first[part], second[part], radii=radii) for part in blocks]
    low, high = (np.concatenate(ends) for ends in zip(*found, strict=True))
    return low, high


def share_radius(noise: IntegerNoise, *, beta: float) -> float:
    """Return the largest half-width of an interval, times A + B.

    It is reached at shares near 0 and 1, and smaller between them.
    """
    if noise.deviation < _FINE:
        return float(noise.radius(beta / 2))
    return float(_radii(noise, beta).max())


def _hull(first: Array, second: Array, *, radii: Array) -> tuple[Array, Array]:
    """Return the ends of the union of what each part of [0, 1] leaves.

    Numbers that leave nothing, or add up to none, say nothing.
    """
    edges = np.linspace(0.0, 1.0, _SHARE_PARTS + 1)
    total = first + second
    # The second term covers the rounding of the sums.
    reach = radii + 1e-12 * (np.abs(first) + np.abs(second))[:, None]
    above = np.where(total > 0, total, 1.0)[:, None]
    low = np.maximum(edges[:-1], (first[:, None] - reach) / above)
    high = np.minimum(edges[1:], (first[:, None] + reach) / above)
    kept = low <= high
    none = (total <= 0) | ~kept.any(axis=1)
    return (
        np.where(none, 0.0, np.where(kept, low, 1.0).min(axis=1)),
        np.where(none, 1.0, np.where(kept, high, 0.0).max(axis=1)),
    )


def _radii(noise: IntegerNoise, beta: float) -> Array:
    r"""Return the radius of each part of [0, 1].

    Notes
    -----
    The noise is coupled with noise of the continuous law so that they differ by at most
    one, and :math:`|w_1X_1 - w_2X_2|` grows in law with either weight (Birnbaum 1948):
    the largest weights of a part serve for all of it. Proved on the page *Release
    accounting*.
    """
    edges = np.linspace(0.0, 1.0, _SHARE_PARTS + 1)
    more, less = 1.0 - edges[:-1], edges[1:]
    large, small = np.maximum(more, less), np.minimum(more, less)
    if noise.law == "gaussian":
        sigma = math.sqrt(noise.parameter)
        return _outward(sigma * np.hypot(large, small) * _normal_radius(beta))
    scale = float(noise.parameter)
    return _outward(scale * _laplace_radius(large, small, beta=beta))


def _outward(radii: Array) -> Array:
    return np.asarray(radii * (1.0 + _MARGIN) + 1.0)


def _normal_radius(beta: float) -> float:
    """Return the quantile of a standard normal number's size."""
    if beta < _SMALLEST_BETA:
        return math.sqrt(2.0 * math.log(2.0 / beta))
    return inflate(float(-ndtri(beta * (1.0 - _MARGIN) / 2.0)), _MARGIN)


def _laplace_radius(large: Array, small: Array, *, beta: float) -> Array:
    """Return t with Pr[|large X - small Y| > t] = beta for Laplace X and Y of scale 1.

    The search keeps a valid upper end; weights that are almost equal are made equal.
    """
    above = (large + small) * math.log(2.0 / beta)
    if beta < _SMALLEST_BETA:
        return above
    below = np.zeros_like(above)
    close = small > 0.99 * large
    square = np.where(close, 0.5, small / large) ** 2

    def fits(t: Array) -> Bools:
        x = t / large
        apart = (np.exp(-x) - square * np.exp(-t / small)) / (1.0 - square)
        tail = np.where(close, (1.0 + x / 2.0) * np.exp(-x), apart)
        return np.asarray(tail <= beta * (1.0 - _MARGIN))

    return bisect_each(fits, inside=above, outside=below, rounds=100)


# Choosing the keys to publish: noisy numbers of units above a proved threshold.


def key_threshold(noise: IntegerNoise, *, groups: int, delta: Fraction) -> int:
    r"""Return the least noisy number of units from which a key may be published.

    .. math:: \tau = \min\{\tau : G\,\Pr[\eta \ge \tau - 1] \le \delta\}

    Parameters
    ----------
    noise : IntegerNoise
        Independent noise of each number of units.
    groups : int
        G, most cells that one unit counts in.
    delta : Fraction
        Set aside for the keys; in (0, 1).

    Notes
    -----
    A cell that only the added unit has holds one unit; there are at most G of them, and
    none passes the threshold except with probability delta. All other cells are in both
    tables, where the noise alone protects. Proved on the page *Partition selection*;
    the tail is that of the discrete law, rounded up.

    Examples
    --------
    >>> key_threshold(IntegerNoise("laplace", Fraction(1)), groups=1,
    ...               delta=Fraction(1, 10**6))
    15
    """
    limit = log_down(delta) - math.log(groups) * (1 + 1e-12)

    def passes(count: int) -> bool:
        return noise.log_tail(count) > limit

    return greatest_int(passes) + 2


def kept_cells(noisy: NDArray[Any], threshold: int) -> list[int]:
    """Return the positions of the cells whose noisy number reaches the threshold."""
    return [at for at, number in enumerate(noisy.tolist()) if number >= threshold]


def published_radius(noise: IntegerNoise, *, beta: float) -> int:
    """Return how far the upper end of a published number's interval lies above it.

    The lower end lies as far below it where the number is clear of the threshold.
    """
    return noise.radius(beta / 2)


def published_intervals(
    noisy: list[int], *, noise: IntegerNoise, threshold: int, beta: float
) -> list[tuple[int, int, int]]:
    r"""Return intervals of numbers of units that were published because they are large.

    Parameters
    ----------
    noisy : list of int
        The published numbers, each at least `threshold`.
    noise : IntegerNoise
        Their Laplace noise, which also chose them.
    threshold : int
        From which number on a key is published.
    beta : float
        One minus the confidence, given that the key is published.

    Notes
    -----
    Let n be the number of units, :math:`x = n + \eta \ge \tau` the published number,
    and t such that :math:`\Pr[|\eta| > t] \le \beta/2`. Above: x + t < n needs
    :math:`\eta < -t`, impossible for :math:`n \le \tau` and otherwise of conditional
    probability at most :math:`\Pr[\eta < -t]/\Pr[\eta \ge 0] \le \beta/2`. Below:
    x - t is stated only from :math:`x \ge \tau + 2t` on, and 1 otherwise. For
    :math:`n \ge \tau` the same quotient bounds the error; for :math:`n < \tau` the
    excess :math:`x - \tau` is geometric whatever n is, and passes 2t with probability
    at most :math:`\Pr[\eta \ge 2t \mid \eta \ge 0] \le \beta/2` (for t = 0, passes 1).

    Examples
    --------
    >>> published_intervals([20, 90], noise=IntegerNoise("laplace", Fraction(2)),
    ...                     threshold=15, beta=0.05)
    [(20, 1, 27), (90, 83, 97)]
    """
    t = published_radius(noise, beta=beta)
    clear = threshold + max(2 * t, 1)
    return [(x, x - t if x >= clear else 1, x + t) for x in noisy]
