r"""Histogram encodings: Laplace noise on a one-hot vector, summed or thresholded.

Both add Laplace noise of scale :math:`2/\varepsilon` to each of the m coordinates.
SHE sends the real vector; THE sends which coordinates pass a threshold, which is a
unary encoding and is drawn as one, exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_index, check_probability
from undertow.errors import MismatchError
from undertow.mechanisms.local.base import (
    Knowledge,
    LocalProtocol,
    advantage_up,
    disagreement,
    read_categories,
    read_knowledge,
    read_level,
    read_values,
)
from undertow.mechanisms.local.unary import UnaryEncoding, inverse_mean, unary_from_gap
from undertow.mechanisms.noise.draw import Draw
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.mechanisms.randomized_response import exact_odds
from undertow.numeric.array import Levels, functions_of, read_floats
from undertow.numeric.exact import Number, round_up
from undertow.privacy.loss import Pure
from undertow.results import Bound

# Real numbers held at a time by a simulated draw: 800 MB.
_LARGEST = 100_000_000


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ThresholdHistogram(UnaryEncoding):
    r"""Thresholding with histogram encoding (THE), drawn as the bits it sends.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : int, float, str, Decimal or Fraction
        Loss of the noisy vector; positive, at most 10000.
    threshold : float, optional
        In (0, 1); by default :func:`~undertow.mechanisms.local.the_threshold`.

    Notes
    -----
    Both bit probabilities are rounded to rationals on the private side. The loss
    reported is that of the bits, which is below epsilon.

    Examples
    --------
    >>> ThresholdHistogram(10, 1).loss().epsilon < 1
    True
    """

    name: ClassVar[str] = "THE"
    monotone: ClassVar[bool] = False
    threshold: float

    def __init__(
        self,
        categories: SupportsIndex,
        epsilon: Number,
        *,
        threshold: float | None = None,
    ) -> None:
        level, _ = exact_odds(epsilon)
        cut = read_threshold(float(level), threshold)
        object.__setattr__(self, "threshold", cut)
        _, miss = exact_odds(level * (1 - Fraction(cut)) / 2)
        _, noise = exact_odds(level * Fraction(cut) / 2)
        m = read_categories(categories)
        self._keep_law(m, 1 - miss / 2, noise / 2, epsilon=level)

    @property
    def follows_rule(self) -> bool:
        """Whether the threshold is the best one."""
        return self.threshold == the_threshold(float(self.epsilon))


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SummationHistogram(LocalProtocol):
    r"""Summation with histogram encoding (SHE): a noisy real vector.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : int, float, str, Decimal or Fraction
        Loss; positive, at most 10000.

    Notes
    -----
    Real noise is for studies only: `sample` needs a simulated source. To release, use
    :class:`ThresholdHistogram`, whose bits are exact. `support_counts` adds the vectors
    up; the attack reads which coordinates are the most likely.

    Examples
    --------
    >>> round(SummationHistogram(100, 3).attack_success(), 8)
    0.04481685
    """

    name: ClassVar[str] = "SHE"
    measure: ClassVar[str] = "lebesgue"
    categories: int
    epsilon: Fraction

    def __init__(self, categories: SupportsIndex, epsilon: Number) -> None:
        object.__setattr__(self, "categories", read_categories(categories))
        object.__setattr__(self, "epsilon", exact_odds(epsilon)[0])

    @property
    def keep(self) -> Fraction:
        """Mean of the true coordinate."""
        return Fraction(1)

    @property
    def noise(self) -> Fraction:
        """Mean of another coordinate."""
        return Fraction(0)

    def loss(self) -> Pure:
        """Return the local loss: two coordinates move by 1, the scale is 2/epsilon."""
        return Pure(self.epsilon)

    def total_variation(self) -> float:
        """Return the total variation between two categories, rounded up."""
        return she_variation(float(self.epsilon))

    def attack_success(self) -> float:
        """Return the success of the most likely guess, uniform prior."""
        return she_success(self.categories, float(self.epsilon))

    def advantage_bound(
        self, prior: ArrayLike | None = None, *, knowledge: Knowledge = "none"
    ) -> Bound:
        """Bound the reconstruction advantage.

        Exact for the uniform prior without knowledge, and for two categories; otherwise
        the total variation times the chance that two draws of the prior differ (thesis,
        Theorem 5.2).
        """
        m = self.categories
        if read_knowledge(knowledge) == "none" and prior is None:
            value = she_advantage(m, float(self.epsilon))
            return self._bound(value, "Local protocols, Proposition 5")
        value = advantage_up(self.total_variation() * disagreement(prior, m))
        tight = True if m == 2 else None
        return self._bound(value, "thesis, Theorem 5.2", tight=tight)

    def log_density(self, reports: Any, given: SupportsIndex) -> NDArray[np.float64]:
        """Return the log density of each real vector."""
        truth = check_index(given, "given", size=self.categories)
        table = self._read(reports)
        rate = float(self.epsilon) / 2.0
        distance = np.abs(table).sum(axis=1) - np.abs(table[:, truth])
        distance += np.abs(table[:, truth] - 1.0)
        return np.asarray(self.categories * math.log(rate / 2.0) - rate * distance)

    def sample(
        self, values: ArrayLike, *, source: SimulatedSource | None = None
    ) -> Draw:
        """Draw one real vector per client; at most 1e8 numbers at a time."""
        truths, m = read_values(values, self.categories), self.categories
        if not isinstance(source, SimulatedSource):
            raise TypeError(
                "source must be a SimulatedSource, got "
                f"{type(source).__name__}; to release, use ThresholdHistogram."
            )
        if len(truths) * m > _LARGEST:
            raise ValueError(
                f"values must be at most {_LARGEST // m} clients at a time, got "
                f"{len(truths)}; draw and sum them in batches."
            )
        noise = source.continuous_laplace(2 / self.epsilon, len(truths) * m).values
        table = noise.reshape(len(truths), m).copy()
        table[np.arange(len(truths)), truths] += 1.0
        return Draw(table, source.simulated, source.name)

    def support(self, reports: Any) -> NDArray[np.bool_]:
        """Return which categories are the most likely ones of each report."""
        score = np.clip(self._read(reports), 0.0, 1.0)
        return np.asarray(score == score.max(axis=1, keepdims=True))

    def support_counts(self, reports: Any) -> NDArray[Any]:
        """Return the sum of the vectors."""
        return np.asarray(self._read(reports).sum(axis=0))

    def report_variance(self, frequency: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of one coordinate, the same at every frequency."""
        return np.full(np.shape(frequency), 8.0 / float(self.epsilon) ** 2)

    def _read(self, reports: Any) -> NDArray[np.float64]:
        table = read_floats(reports, "reports")
        if table.ndim != 2 or table.shape[1] != self.categories:
            raise MismatchError(
                f"reports must be rows of {self.categories} numbers, got shape "
                f"{table.shape}."
            )
        if not np.isfinite(table).all():
            raise MismatchError("reports must be finite numbers, got others.")
        return table


def she_gap(level: Levels) -> Levels:
    """Return the total variation of summation with histogram encoding, to nearest."""
    of = functions_of(level)
    # Beyond this level nothing is left of the tail, and infinity times 0 is no number.
    least: Any = np.minimum if of is np else min
    finite = least(level, 1e6)
    gap: Levels = -of.expm1(-finite / 2.0) - finite / 4.0 * of.exp(-finite / 2.0)
    return gap


def she_variation(epsilon: float) -> float:
    r"""Return the total variation of summation with histogram encoding, rounded up.

    .. math:: 1 - e^{-\varepsilon/2}(1 + \varepsilon/4)

    Parameters
    ----------
    epsilon : float
        In :math:`[0, \infty]`.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 5. The same for every number of
    categories.

    Examples
    --------
    >>> round(she_variation(1.0), 10)
    0.2418366754
    """
    return advantage_up(she_gap(read_level(epsilon)))


def she_success(categories: SupportsIndex, epsilon: float) -> float:
    r"""Return the success of the most likely guess, uniform prior, rounded up.

    With :math:`a = \tfrac12 e^{-\varepsilon/2}`,

    .. math:: \tfrac12 h(m, a) + \tfrac{a}{2}\int_a^{1/2} \frac{(1-u)^{m-1}}{u^2}\,du
              + \frac{a\,2^{-(m-1)}}{m}

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        Non-negative.

    Returns
    -------
    float
        Raised by its rounding margin.

    Notes
    -----
    The likelihood of x depends on the report only through its coordinate cut to
    [0, 1]; ties at either end are broken uniformly. Optimal under the uniform prior.
    The integral is a finite sum by parts, of O(m) terms; its rounding error is below
    :math:`10^{-15} m`, by which the value is raised.

    Examples
    --------
    >>> round(she_success(10, 1.0), 8), she_success(10, 1e4)
    (0.16366626, 1.0)
    """
    m, level = read_categories(categories), read_level(epsilon)
    a = 0.5 * math.exp(-level / 2.0)
    if a == 0.0:
        return 1.0
    ends = 0.5 * inverse_mean(m, a) + a * math.ldexp(1.0, -(m - 1)) / m
    middle = _middle(m, a, level)
    return min(1.0, advantage_up(ends + middle) + 1e-15 * m * a)


def _middle(m: int, a: float, level: float) -> float:
    """Return a/2 times the integral of (1-u)^(m-1)/u^2 over [a, 1/2]."""
    power = math.exp((m - 1) * math.log1p(-a))
    half = math.ldexp(1.0, -(m - 1))
    j = np.arange(1, m - 1)
    # Integral of (1-u)^(m-2)/u: the log of the ends less a geometric sum, term by term.
    parts = (np.exp2(-j) - np.exp(j * math.log1p(-a))) / j
    rest = math.fsum([level / 2.0, *parts.tolist()])
    return 0.5 * (power - 2.0 * a * half - a * (m - 1) * rest)


def she_advantage(categories: SupportsIndex, epsilon: float) -> float:
    r"""Return the largest advantage, uniform prior and no knowledge, rounded up.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.

    Returns
    -------
    float
        Raised by its rounding margin.

    Notes
    -----
    The success of the most likely guess less 1/m. Proved on the page *Local
    protocols*, Proposition 5.

    Examples
    --------
    >>> round(she_advantage(100, 3.0), 8)
    0.03481685
    """
    m = read_categories(categories)
    return max(0.0, round_up(Fraction(she_success(m, epsilon)) - Fraction(1, m)))


def the_threshold(epsilon: float) -> float:
    r"""Return the threshold in [1/2, 1] of the least variance for rare categories.

    Parameters
    ----------
    epsilon : float
        Positive and finite.

    Returns
    -------
    float
        Rounded to nearest.

    Notes
    -----
    The minimum of :math:`q(1-q)/(p-q)^2` is the only zero of
    :math:`(1-2q)(p-q) - 2(1-q)(1-p-q)`, found by bisection.

    Examples
    --------
    >>> round(the_threshold(1.0), 9), round(the_threshold(4.0), 9)
    (0.618553443, 0.815675788)
    """
    level = read_level(epsilon)
    if level in (0.0, math.inf):
        raise ValueError(f"epsilon must be positive and finite, got {epsilon}.")
    low, high = 0.5, 1.0
    while low < (middle := (low + high) / 2.0) < high:
        miss, q = 0.5 * math.exp(level * (middle - 1) / 2), _noise(level, middle)
        slope = (1 - 2 * q) * (1 - miss - q) - 2 * (1 - q) * (miss - q)
        low, high = (middle, high) if slope > 0 else (low, middle)
    return low


def the_variation(epsilon: float, *, threshold: float | None = None) -> float:
    r"""Return :math:`p - q` of the thresholded bits, rounded up.

    .. math:: p = 1 - \tfrac12 e^{\varepsilon(t-1)/2}, \quad
              q = \tfrac12 e^{-\varepsilon t/2}

    Parameters
    ----------
    epsilon : float
        In :math:`[0, \infty]`.
    threshold : float, optional
        The t, in (0, 1); by default :func:`the_threshold`.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 2.

    Examples
    --------
    >>> round(the_variation(1.0), 6)
    0.219831
    """
    level = read_level(epsilon)
    return advantage_up(_gap(level, read_threshold(level, threshold)))


def the_advantage(
    categories: SupportsIndex,
    epsilon: float,
    *,
    threshold: float | None = None,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    r"""Return the largest advantage against the thresholded bits, rounded up.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    threshold : float, optional
        The t, in (0, 1); by default :func:`the_threshold`.
    prior : array_like of shape (m,), optional
        In any order; uniform by default.
    knowledge : {"none", "full"}
        What the attacker knows of the target.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    That of a unary encoding with the bits of :func:`the_variation`; exact relative to
    the bits, below that of the noisy vector.

    Examples
    --------
    >>> round(the_advantage(10, 1.0) + 0.1, 8)
    0.15892362
    """
    m, level = read_categories(categories), read_level(epsilon)
    cut = read_threshold(level, threshold)
    gap, q = _gap(level, cut), _noise(level, cut)
    return unary_from_gap(m, gap, noise=q, prior=prior, knowledge=knowledge)


def read_threshold(level: float, threshold: float | None) -> float:
    """Read a threshold in (0, 1); None is the one of the least variance."""
    if threshold is None:
        return the_threshold(level)
    return check_probability(threshold, "threshold", open_interval=True)


def _noise(level: float, threshold: float) -> float:
    return 0.5 * math.exp(-level * threshold / 2.0)


def _gap(level: float, threshold: float) -> float:
    hit = math.expm1(-level * (1.0 - threshold) / 2.0)
    return -0.5 * (hit + math.expm1(-level * threshold / 2.0))
