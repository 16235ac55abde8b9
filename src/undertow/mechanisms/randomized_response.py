r"""Randomised response: tell the truth with a known probability, else something else.

The classical keep-probability :math:`e^\varepsilon/(e^\varepsilon+k-1)` is irrational,
so no sampler draws with it. Here it is the nearest rational on the private side, and
the loss reported is that of the rational one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import MismatchError
from undertow.mechanisms.base import (
    PRECISE,
    ChoiceMechanism,
    ChoiceSource,
    decimal_up,
    read_candidates,
)
from undertow.mechanisms.noise.draw import Draw
from undertow.mechanisms.noise.secure import read_source
from undertow.numeric.array import Levels, functions_of
from undertow.numeric.exact import Number, exact
from undertow.numeric.rounding import exp_bracket, inflate
from undertow.privacy.loss import Pure
from undertow.spaces.base import Metric
from undertow.spaces.metric import DiscreteMetric, Scaled

# Bits of the odds e^-epsilon beyond its leading one.
_PRECISION = 56
_LARGEST = 10_000


def response_weights(level: Fraction) -> tuple[int, int]:
    r"""Return integer weights of the truth and of another category.

    The second over the first is :math:`e^{-\varepsilon}` rounded up: the private side.
    """
    precision = _PRECISION + math.ceil(3 * level / 2)  # log2(e) < 3/2
    return 1 << precision, exp_bracket(level, precision)[1]


def response_loss(level: Fraction) -> Fraction:
    """Return the loss of the rational odds of a level, rounded up: at most the level.

    Examples
    --------
    >>> response_loss(Fraction(1)) <= 1
    True
    """
    truth, other = response_weights(level)
    if truth == other:
        return Fraction(0)
    logs = [PRECISE.ln(Decimal(weight)) for weight in (truth, other)]
    return min(decimal_up(PRECISE.subtract(logs[0], logs[1])), level)


def exact_odds(epsilon: Number) -> tuple[Fraction, Fraction]:
    r"""Read epsilon and round :math:`e^{-\varepsilon}` up to a rational.

    Returns
    -------
    tuple of Fraction
        The exact epsilon and the odds; minus the log of the odds is at most epsilon and
        short of it by less than :math:`2^{-54}`.

    Examples
    --------
    >>> epsilon, odds = exact_odds(1)
    >>> round(float(odds), 12)
    0.367879441171
    """
    budget = exact(epsilon, "epsilon")
    if budget == 0 or budget > _LARGEST:
        raise ValueError(
            f"epsilon must be positive and at most {_LARGEST}, got {epsilon}; a report "
            "is otherwise useless or the category itself."
        )
    level = Fraction(budget)
    truth, other = response_weights(level)
    return level, Fraction(other, truth)


def truth_share(odds: Fraction, among: int) -> Fraction:
    """Return the probability of the truth among so many answers, by the odds of a lie.

    Examples
    --------
    >>> truth_share(Fraction(1, 3), 4)
    Fraction(1, 2)
    """
    return 1 / (1 + (among - 1) * odds)


def response_gap(level: Levels, among: float) -> Levels:
    r"""Return :math:`p - q` of randomised response, to nearest.

    .. math:: p - q = \frac{1 - e^{-\varepsilon}}{1 + (m-1) e^{-\varepsilon}}

    Parameters
    ----------
    level : float or ndarray
        In :math:`[0, \infty]`.
    among : float
        The m, that is, how many answers there are.

    Examples
    --------
    >>> round(response_gap(1.0, 10), 10)
    0.1466325741
    """
    of = functions_of(level)
    gap: Levels = -of.expm1(-level) / (1.0 + (among - 1) * of.exp(-level))
    return gap


@dataclass(frozen=True, slots=True, init=False)
class RandomizedResponse(ChoiceMechanism):
    r"""k-ary randomised response.

    Parameters
    ----------
    candidates : sequence of hashable, or int
        The categories, at least two; a number n stands for 0, ..., n - 1.
    epsilon : int, float, str, Decimal or Fraction
        Largest loss allowed; at most 10000.

    Notes
    -----
    The truth has integer weight :math:`2^p` and every other category weight w, the
    least integer with :math:`w/2^p \ge e^{-\varepsilon}` that interval arithmetic
    finds. The loss between any two categories is exactly :math:`\ln(2^p/w) \le
    \varepsilon`, short of epsilon by less than :math:`2^{-54}`. It is also the local-DP
    (free-lunch) loss of one category, and of nothing before it in a pipeline.

    References
    ----------
    .. [1] S. L. Warner, *Randomized Response: A Survey Technique for Eliminating
       Evasive Answer Bias*, JASA 60, 1965.
    .. [2] P. Kairouz, S. Oh and P. Viswanath, *Extremal Mechanisms for Local
       Differential Privacy*, JMLR 17, 2016.

    Examples
    --------
    >>> mechanism = RandomizedResponse(2, 1)
    >>> round(float(mechanism.keep_probability), 12)
    0.73105857863
    >>> mechanism.pair_loss(0, 1).epsilon
    1.0
    """

    candidates: tuple[Hashable, ...]
    epsilon: Fraction
    truth_weight: int
    other_weight: int

    def __init__(self, candidates: Sequence[Hashable] | int, epsilon: Number) -> None:
        budget = exact(epsilon, "epsilon")
        if budget == math.inf:
            raise ValueError(
                "epsilon must be finite, got inf; to publish the category itself use "
                "no mechanism."
            )
        if budget > _LARGEST:
            raise ValueError(
                f"epsilon must be at most {_LARGEST}, got one above; a lie is then "
                "impossible in practice, and the exact odds do not fit the memory."
            )
        level = Fraction(budget)
        truth, other = response_weights(level)
        object.__setattr__(self, "candidates", read_candidates(candidates))
        object.__setattr__(self, "epsilon", level)
        object.__setattr__(self, "truth_weight", truth)
        object.__setattr__(self, "other_weight", other)

    @property
    def listed_inputs(self) -> tuple[Hashable, ...]:
        """The categories."""
        return self.candidates

    @property
    def keep_probability(self) -> Fraction:
        """The exact probability of the truth."""
        odds = Fraction(self.other_weight, self.truth_weight)
        return truth_share(odds, len(self.candidates))

    def loss(self, metric: Metric | None = None) -> Pure:
        """Return the loss between two different categories, the discrete metric."""
        factor, unit = Fraction(1), metric
        if isinstance(metric, Scaled) and 0 < metric.factor < math.inf:
            unit, factor = metric.base, Fraction(metric.factor)
        if unit is not None and not isinstance(unit, DiscreteMetric):
            raise MismatchError(
                f"metric must be the discrete metric on categories, got {unit.name}."
            )
        return Pure(response_loss(self.epsilon) / factor)

    def pair_loss(self, first: Hashable, second: Hashable) -> Pure:
        """Return the loss between two categories: zero if they are equal."""
        same = self._position(first) == self._position(second)
        return Pure.zero() if same else self.loss()

    def pmf(self, given: Hashable) -> NDArray[np.float64]:
        """Return the probability of each category."""
        return np.array([float(p) for p in self.exact_pmf(given)])

    def exact_pmf(self, given: Hashable) -> tuple[Fraction, ...]:
        """Return the probability of each category as a fraction."""
        truth, total = self._position(given), self._total()
        weights = [self.other_weight] * len(self.candidates)
        weights[truth] = self.truth_weight
        return tuple(Fraction(weight, total) for weight in weights)

    def log_probabilities(self, given: Hashable) -> NDArray[np.float64]:
        """Return the log probability of each category."""
        logs = [
            math.log(p.numerator) - math.log(p.denominator)
            for p in self.exact_pmf(given)
        ]
        return np.array(logs)

    def confidence(self, alpha: Number = 1) -> float:
        """Return the probability of an answer that is not the truth.

        In the discrete metric an error of `alpha` in (0, 1] is a wrong category; 0 is
        always reached, and more than 1 never.
        """
        error = exact(alpha, "alpha")
        if error == 0 or error > 1:
            return 0.0 if error else 1.0
        return min(1.0, inflate(float(1 - self.keep_probability), 1e-15))

    def accuracy(self, beta: Number) -> float:
        """Return 0, 1 or infinity: the error reached with probability <= `beta`.

        An error of 1 is a wrong category; infinity, that wrong answers are likelier
        than `beta`, so that only an impossible error qualifies.
        """
        share = exact(beta, "beta", at_most=1)
        if share == 1:
            return 0.0
        return 1.0 if self.confidence(1) <= share else math.inf

    def sample(
        self, values: Sequence[Hashable], *, source: ChoiceSource | None = None
    ) -> Draw:
        """Draw one answer per given category, with exactly the stated probabilities.

        Parameters
        ----------
        values : sequence of hashable
            The true categories.
        source : ChoiceSource, optional
            Operating-system entropy by default.
        """
        truths = np.array([self._position(value) for value in values], dtype=np.int64)
        draw = read_source(source).uniform(self._total(), len(truths))
        beyond: NDArray[Any] = draw.values - self.truth_weight
        lies = np.asarray(beyond >= 0, dtype=bool)
        others = (beyond[lies] // self.other_weight).astype(np.int64)
        answers = truths.copy()
        # Skip the truth in the numbering of the other categories.
        answers[lies] = others + (others >= truths[lies])
        return self._labels(answers, draw)

    def _total(self) -> int:
        return self.truth_weight + (len(self.candidates) - 1) * self.other_weight
