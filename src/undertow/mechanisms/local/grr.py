"""Generalised randomised response: the category itself, or a uniform other one.

The protocol, and its closed forms with their inverse.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_index, check_probability
from undertow.mechanisms.local._bitset import respond
from undertow.mechanisms.local.base import (
    Knowledge,
    LocalProtocol,
    advantage_up,
    disagreement,
    log_fraction,
    lowered_target,
    never_binds,
    read_categories,
    read_knowledge,
    read_level,
    read_prior,
    read_values,
)
from undertow.mechanisms.noise.bits import bits_of
from undertow.mechanisms.noise.draw import Draw, UniformSource
from undertow.mechanisms.noise.secure import read_source
from undertow.mechanisms.randomized_response import (
    exact_odds,
    response_gap,
    response_loss,
    truth_share,
)
from undertow.numeric.exact import Number
from undertow.privacy.loss import Pure
from undertow.results import Bound, Calibration


@dataclass(frozen=True, slots=True, init=False, repr=False)
class GeneralizedResponse(LocalProtocol):
    r"""Generalised (k-ary) randomised response over 0, ..., m - 1, at scale.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : int, float, str, Decimal or Fraction
        Largest loss allowed; positive, at most 10000.

    Notes
    -----
    The law is that of :class:`~undertow.mechanisms.RandomizedResponse`, its rational
    odds included; what is added is a sampler over arrays and the closed forms of the
    attack. A report is an integer.

    Examples
    --------
    >>> from undertow.mechanisms import SimulatedSource
    >>> protocol = GeneralizedResponse(5, 2)
    >>> protocol.sample([0, 1, 4], source=SimulatedSource(1)).values.shape
    (3,)
    """

    name = "GRR"
    categories: int
    epsilon: Fraction
    odds: Fraction

    def __init__(self, categories: SupportsIndex, epsilon: Number) -> None:
        object.__setattr__(self, "categories", read_categories(categories))
        level, odds = exact_odds(epsilon)
        object.__setattr__(self, "epsilon", level)
        object.__setattr__(self, "odds", odds)

    @property
    def keep(self) -> Fraction:
        """Probability of the truth."""
        return truth_share(self.odds, self.categories)

    @property
    def noise(self) -> Fraction:
        """Probability of one given other category."""
        return self.odds * self.keep

    def loss(self) -> Pure:
        """Return the local loss between any two categories, rounded up."""
        return Pure(response_loss(self.epsilon))

    def total_variation(self) -> float:
        """Return the total variation between two categories, rounded up."""
        return grr_variation(self.categories, float(self.epsilon))

    def attack_success(self) -> float:
        """Return how often the report is the truth."""
        return grr_success(self.categories, float(self.epsilon))

    def advantage_bound(
        self, prior: ArrayLike | None = None, *, knowledge: Knowledge = "none"
    ) -> Bound:
        """Bound the reconstruction advantage; exact for every prior."""
        read_knowledge(knowledge)
        value = grr_advantage(self.categories, float(self.epsilon), prior=prior)
        return self._bound(
            value, "Local protocols, Proposition 1 (thesis, Example 5.4)"
        )

    def log_density(
        self, reports: ArrayLike, given: SupportsIndex
    ) -> NDArray[np.float64]:
        """Return the log probability of each report."""
        truth = check_index(given, "given", size=self.categories)
        same = read_values(reports, self.categories) == truth
        return np.where(same, log_fraction(self.keep), log_fraction(self.noise))

    def sample(self, values: ArrayLike, *, source: UniformSource | None = None) -> Draw:
        """Draw one report per client, with exactly the stated probabilities."""
        truths, origin = read_values(values, self.categories), read_source(source)
        bits = bits_of(origin)
        reports = respond(truths, self.keep, among=self.categories, bits=bits)
        return Draw(reports, origin.simulated, origin.name)

    def support(self, reports: Any) -> NDArray[np.bool_]:
        """Return the table (report, category): the report itself."""
        told = read_values(reports, self.categories)
        return np.asarray(told[:, None] == np.arange(self.categories))

    def support_counts(self, reports: Any) -> NDArray[Any]:
        """Return how often each category was reported; O(reports)."""
        told = read_values(reports, self.categories)
        counts = np.bincount(told, minlength=self.categories)
        return counts.astype(np.int64)

    def listed_outputs(self) -> NDArray[np.int64]:
        """Return the categories."""
        self._require_few(math.log10(self.categories))
        return np.arange(self.categories, dtype=np.int64)

    def table(self, inputs: Sequence[int]) -> NDArray[np.float64]:
        """Return the probability of each report; every entry is correctly rounded."""
        same = np.equal.outer(np.asarray(inputs), self.listed_outputs())
        return np.where(same, float(self.keep), float(self.noise))

    def sample_guesses(
        self, reports: Any, *, rng: np.random.Generator | None = None
    ) -> NDArray[np.int64]:
        """Return the guesses of the simple attack: the reports."""
        return read_values(reports, self.categories)


def grr_variation(categories: SupportsIndex, epsilon: float) -> float:
    r"""Return the total variation of generalised randomised response, rounded up.

    .. math:: p - q = \frac{1 - e^{-\varepsilon}}{1 + (m-1) e^{-\varepsilon}}

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Thesis, Example 5.4; the same for any two categories.

    Examples
    --------
    >>> round(grr_variation(10, 1.0), 10), grr_variation(10, 1e4)
    (0.1466325741, 1.0)
    """
    m, level = read_categories(categories), read_level(epsilon)
    return advantage_up(response_gap(level, m))


def grr_success(categories: SupportsIndex, epsilon: float) -> float:
    r"""Return the probability p of the truth, rounded up.

    It is the success of the attack that guesses the report, for every prior.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Optimal under the uniform prior.

    Examples
    --------
    >>> round(grr_success(10, 1.0), 8)
    0.23196932
    """
    m, level = read_categories(categories), read_level(epsilon)
    return advantage_up(1.0 / (1.0 + (m - 1) * math.exp(-level)))


def grr_advantage(
    categories: SupportsIndex,
    epsilon: float,
    *,
    prior: ArrayLike | None = None,
    success: ArrayLike | None = None,
) -> float:
    r"""Return the largest advantage against generalised randomised response.

    .. math:: (p - q)\Bigl(1 - \sum_\theta \pi_\theta
              \min_{x' : \theta \in S(x')} \pi(S(x'))\Bigr)

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    prior : array_like of shape (m,), optional
        Uniform by default.
    success : array_like of bool, shape (m, m), optional
        Row: guess; column: truth; the guess wins where true. The identity by default.
        Each truth needs a guess that wins on it.

    Returns
    -------
    float
        Rounded up by a relative 1e-12.

    Notes
    -----
    Thesis, Example 5.4, printed there for the uniform prior; exact for every prior,
    without knowledge for every success set, and, for exact success, with full knowledge
    too, where it is :math:`(p-q)(1-\kappa_\pi)`. Proved on the page *Local protocols*.
    Not checkable: that the prior is the attacker's. Cost O(m), or O(m²) with `success`.

    Examples
    --------
    >>> round(grr_advantage(10, 1.0), 9)
    0.131969317
    >>> round(grr_advantage(3, 1.0, prior=[0.8, 0.1, 0.1]), 6)
    0.12382
    """
    m = read_categories(categories)
    gap = grr_variation(m, epsilon)
    if success is None:
        return advantage_up(gap * disagreement(prior, m))
    masses, wins = read_prior(prior, m), _read_wins(success)
    if wins.shape != (m, m) or not wins.any(axis=0).all():
        raise ValueError(
            f"success must be a table of shape ({m}, {m}) in which some guess wins on "
            f"each truth, got shape {wins.shape}."
        )
    # One minus a mass near 1 has no digits left; what a guess misses is added up.
    missed = np.logical_not(wins).astype(float) @ masses
    best = np.where(wins, missed[:, None], 0.0).max(axis=0)
    return advantage_up(gap * math.fsum((masses * best).tolist()), terms=m)


def _read_wins(success: ArrayLike) -> NDArray[np.bool_]:
    table = np.asarray(success)
    if table.dtype.kind not in "biuf" or not np.isin(table, (0, 1)).all():
        raise ValueError("success must be a table of truth values, got other entries.")
    return table.astype(np.bool_)


def grr_level(
    categories: SupportsIndex, advantage: float, *, prior: ArrayLike | None = None
) -> float:
    r"""Return the level at which the advantage is attained, rounded to nearest.

    .. math:: \varepsilon = \ln\frac{1 + g(m-1)}{1 - g}, \quad
              g = \frac{\gamma}{1 - \kappa_\pi}

    Parameters
    ----------
    categories : int
        The m; at least two.
    advantage : float
        The :math:`\gamma`, in [0, 1].
    prior : array_like of shape (m,), optional
        Uniform by default.

    Returns
    -------
    float
        Infinite from :math:`1 - \kappa_\pi` on, which no level attains. A guarantee
        needs :func:`calibrate_grr`, which rounds down.

    Notes
    -----
    The inverse of :func:`grr_advantage`; thesis, Example 5.4.

    Examples
    --------
    >>> round(grr_level(10, 0.5), 6)
    2.60269
    """
    m, target = read_categories(categories), check_probability(advantage, "advantage")
    room = disagreement(prior, m)
    if target >= room:
        return math.inf
    g = target / room
    return math.log1p(g * (m - 1)) - math.log1p(-g)


def calibrate_grr(
    categories: SupportsIndex, advantage: float, *, prior: ArrayLike | None = None
) -> Calibration:
    r"""Return the largest epsilon that keeps the advantage at or below a target.

    .. math:: \varepsilon = \ln\frac{1 + g(m-1)}{1 - g}, \quad
              g = \frac{\gamma}{1 - \kappa_\pi}

    Parameters
    ----------
    categories : int
        The m; at least two.
    advantage : float
        The target, in [0, 1].
    prior : array_like of shape (m,), optional
        Uniform by default, the worst prior of this protocol.

    Returns
    -------
    Calibration
        Epsilon rounded down; infinite if the target is never binding, that is, from
        :math:`1 - \kappa_\pi` on.

    Notes
    -----
    Thesis, Example 5.4, whose printed number for 100 categories, 2.503, uses
    :math:`1 - \gamma(1-\kappa)` for :math:`1 - \gamma/(1-\kappa)`.

    Examples
    --------
    >>> [round(calibrate_grr(m, 0.1).value, 6) for m in (2, 100)]
    [0.405465, 2.504379]
    """
    m, target = read_categories(categories), check_probability(advantage, "advantage")
    if never_binds(target, prior, m):
        value = math.inf
    else:
        value = grr_level(m, lowered_target(target), prior=prior) * (1.0 - 1e-15)
    achieved = Bound(
        # A target that never binds is itself a bound, and has no rounding margin.
        min(grr_advantage(m, value, prior=prior), target if value == math.inf else 1.0),
        "Local protocols, Proposition 1 (thesis, Example 5.4)",
        unchecked=("the prior is the attacker's",),
        quantity="advantage",
        tight=True,
    )
    return Calibration("epsilon", value, achieved, "closed form")
