r"""The exponential mechanism: candidates have odds :math:`e^{r\,\text{score}}`."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._numeric import inflate
from undertow.errors import MismatchError
from undertow.mechanisms.accuracy import log_ratio
from undertow.mechanisms.base import ChoiceMechanism, ChoiceSource
from undertow.mechanisms.noise.draw import Draw, read_positive
from undertow.mechanisms.noise.secure import read_source
from undertow.mechanisms.norm import norm_factor
from undertow.mechanisms.values import (
    PRECISE,
    decimal_up,
    read_candidates,
    read_vector,
    to_decimal,
)
from undertow.privacy.exact import Number, exact
from undertow.privacy.loss import Pure
from undertow.spaces.base import Metric
from undertow.spaces.metric import LpNorm, Scaled

__all__ = ["ExponentialMechanism", "ScoreMechanism"]


class ScoreMechanism(ChoiceMechanism):
    r"""A choice by noisy scores: the given value is the vector of exact scores.

    Notes
    -----
    `rate` is :math:`r = \varepsilon/2\Delta`, or :math:`\varepsilon/\Delta` for
    monotone scores, where a change moves every score the same way. Scores are read
    exactly.
    """

    __slots__ = ()
    epsilon: Fraction
    sensitivity: Fraction
    monotone: bool

    @abstractmethod
    def _draw_index(self, scores: tuple[Fraction, ...], source: Any) -> int:
        """Draw the position of the chosen candidate."""

    def _keep(
        self,
        candidates: Sequence[Hashable] | int,
        *,
        epsilon: Number,
        sensitivity: Number,
        monotone: bool,
    ) -> None:
        object.__setattr__(self, "candidates", read_candidates(candidates))
        object.__setattr__(self, "epsilon", read_positive(epsilon, "epsilon"))
        delta = read_positive(sensitivity, "sensitivity")
        object.__setattr__(self, "sensitivity", delta)
        object.__setattr__(self, "monotone", bool(monotone))

    @property
    def rate(self) -> Fraction:
        """The r by which scores enter the exponent."""
        return self.epsilon / self.sensitivity / (1 if self.monotone else 2)

    def loss(self, metric: Metric | None = None) -> Pure:
        r"""Return the loss per unit of the largest score difference.

        Parameters
        ----------
        metric : Metric, optional
            A norm on score vectors; :math:`\ell_\infty` by default.

        Notes
        -----
        Epsilon over sensitivity, the supremum over pairs of score vectors; with
        ``monotone=True``, over pairs in which no two scores move in opposite
        directions, which is not checked here but by :meth:`pair_loss`.
        """
        factor = _largest_factor(metric, len(self.candidates))
        return Pure(factor * self.epsilon / self.sensitivity)

    def sample(self, values: ArrayLike, *, source: ChoiceSource | None = None) -> Draw:
        """Draw one candidate per vector of scores.

        Parameters
        ----------
        values : array_like of shape (m,) or (n, m)
            Scores of the m candidates; every row gets its own draw.
        source : ChoiceSource, optional
            Operating-system entropy by default.

        Notes
        -----
        Coins of probability :math:`e^{-x}` with rational x are exact, hence so is the
        law. The number of coins depends on the scores: its timing is not protected.
        """
        origin = read_source(source, draws="bernoulli_exp")
        rows = np.atleast_2d(np.asarray(values, dtype=np.object_))
        chosen = [self._draw_index(self._scores(row), origin) for row in rows]
        stamp = Draw(np.empty(0), origin.simulated, origin.name)
        return self._labels(np.array(chosen), stamp)

    def pmf(self, given: ArrayLike) -> NDArray[np.float64]:
        """Return the probability of each candidate."""
        return np.exp(self.log_probabilities(given))

    def confidence(self, alpha: Number, *, given: ArrayLike) -> float:
        """Return the probability of a candidate `alpha` or more below the best score.

        Exact from the law of the scores `given`; rounded up.
        """
        scores, error = self._scores(given), exact(alpha, "alpha")
        worse = [max(scores) - score >= error for score in scores]
        total = math.fsum(self.pmf(given)[np.array(worse)].tolist())
        bound = inflate(total, 1e-12)
        return min(1.0, max(bound, math.nextafter(0.0, 1.0)) if any(worse) else 0.0)

    def accuracy(self, beta: Number) -> float:
        r"""Return the regret reached with probability at most `beta`.

        Notes
        -----
        :math:`\alpha = \ln(m/\beta)/r` for m candidates, whatever the scores; the
        union bound over the candidates. McSherry and Talwar (2007).
        """
        share = exact(beta, "beta", at_most=1)
        if share == 0:
            raise ValueError("beta must be in (0, 1], got 0.")
        logs = log_ratio(len(self.candidates) / Fraction(share))
        return inflate(logs / float(self.rate), 1e-13)

    def _scores(self, given: Any) -> tuple[Fraction, ...]:
        return read_vector(given, len(self.candidates), "scores")

    def _pair(self, first: Any, second: Any) -> list[Fraction]:
        """Return r times the score differences, after checking monotonicity."""
        x, y = self._scores(first), self._scores(second)
        moves = [self.rate * (a - b) for a, b in zip(x, y, strict=True)]
        if self.monotone and min(moves) < 0 < max(moves):
            raise MismatchError(
                "scores must all move one way between neighbours of a monotone "
                "mechanism, got moves in both; use monotone=False."
            )
        return moves


@dataclass(frozen=True, slots=True, init=False)
class ExponentialMechanism(ScoreMechanism):
    r"""Choose candidate i with probability :math:`e^{r s_i}/\sum_j e^{r s_j}`.

    Parameters
    ----------
    candidates : sequence of hashable, or int
        At least two; a number n stands for 0, ..., n - 1.
    epsilon : int, float, str, Decimal or Fraction
        The loss per `sensitivity`; positive and finite.
    sensitivity : int, float, str, Decimal or Fraction
        Most that one change moves any score; positive and finite.
    monotone : bool
        Whether a change moves all scores the same way, which allows twice the rate.

    Notes
    -----
    Due to [1]_. The loss of a pair is
    :math:`\max_i |r(s_i-s'_i) - \ln(\sum_j e^{rs_j}/\sum_j e^{rs'_j})|`, exactly; it is
    at most :math:`r(\max_i(s_i-s'_i) - \min_i(s_i-s'_i))`, and epsilon per sensitivity
    is its supremum. Same law as the largest score plus Gumbel noise.

    References
    ----------
    .. [1] F. McSherry and K. Talwar, *Mechanism Design via Differential Privacy*,
       FOCS, 2007.

    Examples
    --------
    >>> mechanism = ExponentialMechanism("abc", epsilon=2)
    >>> mechanism.pmf([0, 0, 1]).round(4)
    array([0.2119, 0.2119, 0.5761])
    """

    candidates: tuple[Hashable, ...]
    epsilon: Fraction
    sensitivity: Fraction
    monotone: bool

    def __init__(
        self,
        candidates: Sequence[Hashable] | int,
        *,
        epsilon: Number,
        sensitivity: Number = 1,
        monotone: bool = False,
    ) -> None:
        self._keep(
            candidates, epsilon=epsilon, sensitivity=sensitivity, monotone=monotone
        )

    def log_probabilities(self, given: ArrayLike) -> NDArray[np.float64]:
        """Return the log probability of each candidate."""
        scores = self._scores(given)
        best = max(scores)
        logs = np.array([float(self.rate * (score - best)) for score in scores])
        return np.asarray(logs - math.log(math.fsum(np.exp(logs).tolist())))

    def pair_loss(self, first: ArrayLike, second: ArrayLike) -> Pure:
        """Return the loss between two score vectors: exact, to 50 digits, upwards."""
        moves = self._pair(first, second)
        if max(moves) == min(moves):  # a common shift changes nothing
            return Pure.zero()
        top = self.rate * (max(self._scores(first)) - max(self._scores(second)))
        ratio = PRECISE.subtract(self._log_sum(first), self._log_sum(second))
        # The large numbers are subtracted as fractions, so that no digit is lost.
        ends = (to_decimal(max(moves) - top), to_decimal(min(moves) - top))
        gaps = [PRECISE.abs(PRECISE.subtract(end, ratio)) for end in ends]
        return Pure(min(decimal_up(max(gaps)), max(moves) - min(moves)))

    def _log_sum(self, given: ArrayLike) -> Decimal:
        """Return the log of the sum of odds relative to the best score."""
        scores = self._scores(given)
        best, total = max(scores), Decimal(0)
        for score in scores:
            power = PRECISE.exp(to_decimal(self.rate * (score - best)))
            total = PRECISE.add(total, power)
        return PRECISE.ln(total)

    def _draw_index(self, scores: tuple[Fraction, ...], source: Any) -> int:
        """Propose uniformly, keep with probability exp(-r (best - score))."""
        best = max(scores)
        while True:
            index = int(source.uniform(len(scores), 1).values[0])
            if source.bernoulli_exp(self.rate * (best - scores[index]), 1).values[0]:
                return index


def _largest_factor(metric: Metric | None, size: int) -> Fraction:
    """Return the least c with the largest coordinate at most c times the metric."""
    if isinstance(metric, Scaled) and 0 < metric.factor < math.inf:
        return _largest_factor(metric.base, size) / Fraction(metric.factor)
    if metric is not None and not isinstance(metric, LpNorm):
        norm_factor(metric, p=1, dimension=size)  # refuses what is not a norm
    return Fraction(1)
