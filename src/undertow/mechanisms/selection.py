r"""Selection: name the candidate of the best score, by odds or by noisy scores.

The exponential mechanism gives candidates odds :math:`e^{r\,\text{score}}`. Report
noisy max adds noise to every score and names the largest, not its value.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice
from undertow.errors import MismatchError
from undertow.mechanisms.accuracy import log_ratio
from undertow.mechanisms.base import (
    PRECISE,
    ChoiceMechanism,
    ChoiceSource,
    decimal_up,
    norm_factor,
    read_candidates,
    read_vector,
    to_decimal,
)
from undertow.mechanisms.noise.draw import Draw, read_positive
from undertow.mechanisms.noise.secure import read_source
from undertow.numeric.exact import Number, exact
from undertow.numeric.quadrature import panel_rule, unit_rule
from undertow.numeric.rounding import inflate
from undertow.privacy.loss import Pure
from undertow.spaces.base import Metric
from undertow.spaces.metric import LpNorm, Scaled


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


_NOISES = ("exponential", "gumbel", "laplace")
# Rounding of sums of positive terms and of the quadrature.
_MARGIN = 1e-10
_NODES = 32
_BLOCK = 1 << 20  # numbers held at a time


@dataclass(frozen=True, slots=True, init=False)
class NoisyMax(ScoreMechanism):
    r"""The candidate whose score plus noise of scale :math:`1/r` is largest.

    Parameters
    ----------
    candidates : sequence of hashable, or int
        At least two; a number n stands for 0, ..., n - 1.
    epsilon : int, float, str, Decimal or Fraction
        The loss per `sensitivity`; positive and finite.
    sensitivity : int, float, str, Decimal or Fraction
        Most that one change moves any score.
    noise : {"exponential", "gumbel", "laplace"}
        ``"exponential"`` is permute-and-flip, never less accurate than the exponential
        mechanism, whose law ``"gumbel"`` gives.
    monotone : bool
        Whether a change moves all scores the same way, which allows twice the rate.

    Notes
    -----
    With :math:`p_i = e^{-r(\max s - s_i)}`, permute-and-flip visits the candidates in
    random order and takes i with probability :math:`p_i`; it chooses i with probability
    :math:`p_i\int_0^1\prod_{j\ne i}(1-tp_j)\,dt`, where t is the uniform time of the
    visit to i and the product says that no earlier one was taken [1]_. The integrand is
    a polynomial, so a Gauss rule integrates it exactly. The Laplace law is
    :math:`\int f(y-s_i)\prod_{j\ne i}F(y-s_j)\,dy`, cut at
    the scores, where the integrand has kinks.

    All samplers are exact for rational scores: coins of probability :math:`e^{-x}` for
    the first two, and for Laplace noise binary digits drawn only as far as the
    comparison needs them.

    References
    ----------
    .. [1] R. McKenna and D. Sheldon, *Permute-and-Flip: A New Mechanism for
       Differentially Private Selection*, NeurIPS, 2020.
    .. [2] Z. Ding, D. Kifer, S. M. S. N. E., T. Steinke, Y. Wang, Y. Xiao and D. Zhang,
       *The Permute-and-Flip Mechanism is Identical to Report-Noisy-Max with Exponential
       Noise*, 2021.

    Examples
    --------
    >>> mechanism = NoisyMax("ab", epsilon=2)
    >>> mechanism.pmf([0, 1]).round(4)  # p = (1/e, 1)
    array([0.1839, 0.8161])
    """

    candidates: tuple[Hashable, ...]
    epsilon: Fraction
    sensitivity: Fraction
    monotone: bool
    noise: str

    def __init__(
        self,
        candidates: Sequence[Hashable] | int,
        *,
        epsilon: Number,
        sensitivity: Number = 1,
        noise: str = "exponential",
        monotone: bool = False,
    ) -> None:
        object.__setattr__(self, "noise", check_choice(noise, "noise", choices=_NOISES))
        self._keep(
            candidates, epsilon=epsilon, sensitivity=sensitivity, monotone=monotone
        )

    def log_probabilities(self, given: ArrayLike) -> NDArray[np.float64]:
        """Return the log probability of each candidate."""
        if self.noise == "gumbel":
            return self._gumbel().log_probabilities(given)
        scores = self._scores(given)
        best = max(scores)
        gaps = np.array([float(self.rate * (best - score)) for score in scores])
        if self.noise == "exponential":
            return _permute_and_flip(gaps)
        return _laplace_max(gaps)

    def pair_loss(self, first: ArrayLike, second: ArrayLike) -> Pure:
        """Return the largest log ratio between two score vectors, rounded up.

        Computed from the law; never above r times the spread of the score moves in
        either direction, 2 r times the largest.
        """
        moves = self._pair(first, second)
        if self.noise == "gumbel":
            return self._gumbel().pair_loss(first, second)
        if max(moves) == min(moves):
            return Pure.zero()
        x, y = self.log_probabilities(first), self.log_probabilities(second)
        slack = _MARGIN * (1 + np.abs(x))
        return Pure(float(np.max(np.abs(x - y) + slack)))

    def accuracy(self, beta: Number) -> float:
        """Return the regret reached with probability at most `beta`.

        A union bound over the noise of the candidates: their regret is at most the
        largest noise if it is one-sided, twice that for Laplace noise.
        """
        # super() needs its arguments: a slotted dataclass is a new class.
        single = super(NoisyMax, self).accuracy(beta)
        return 2 * single if self.noise == "laplace" else single

    def _gumbel(self) -> ExponentialMechanism:
        return ExponentialMechanism(
            self.candidates,
            epsilon=self.epsilon,
            sensitivity=self.sensitivity,
            monotone=self.monotone,
        )

    def _draw_index(self, scores: tuple[Fraction, ...], source: Any) -> int:
        if self.noise == "gumbel":
            return self._gumbel()._draw_index(scores, source)
        if self.noise == "laplace":
            return _draw_laplace_max([self.rate * score for score in scores], source)
        return self._flip(scores, source)

    def _flip(self, scores: tuple[Fraction, ...], source: Any) -> int:
        """Visit the candidates in random order; take one with its probability."""
        best, left = max(scores), list(range(len(scores)))
        while True:
            at = int(source.uniform(len(left), 1).values[0])
            index = left.pop(at)
            if source.bernoulli_exp(self.rate * (best - scores[index]), 1).values[0]:
                return index


def _permute_and_flip(gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log law for score gaps."""
    t, weights = _product_rule(len(gaps))
    mass, block = np.zeros(len(gaps)), max(1, _BLOCK // len(gaps))
    for start in range(0, len(t), block):
        part = slice(start, start + block)
        logs = np.log1p(-np.multiply.outer(t[part], np.exp(-gaps)))
        # All factors but the candidate's own.
        mass += weights[part] @ np.exp(logs.sum(axis=1, keepdims=True) - logs)
    return np.asarray(np.log(mass) - gaps)


def _product_rule(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a Gauss rule on [0, 1], exact for polynomials of degree size - 1.

    Past 128 factors the rule is composite, on panels that halve towards 0, where the
    product decays; its relative error is below 1e-12.
    """
    if size <= 128:
        return unit_rule(size // 2 + 1)
    cuts = np.concatenate([[0.0], 2.0 ** np.arange(-20.0, 1.0)])
    return panel_rule(cuts, _NODES)


def _laplace_max(gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log law of the largest of -gap + Laplace noise, by quadrature."""
    y, weights = panel_rule(_laplace_cuts(-gaps), _NODES)
    mass = np.zeros(len(gaps))
    block = max(1, _BLOCK // len(gaps))
    for start in range(0, len(y), block):
        part = slice(start, start + block)
        mass += weights[part] @ np.exp(_laplace_exponent(y[part], gaps))
    return np.asarray(np.log(mass) - gaps)


def _laplace_cuts(kinks: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return panel ends that are dense at the kinks and double in between."""
    offsets = 2.0 ** np.arange(0, 7) - 1
    cuts = [kinks.min() - offsets, kinks, kinks.max() + offsets]
    for low, high in itertools.pairwise(np.unique(kinks).tolist()):
        inner = offsets[offsets < (high - low) / 2]
        cuts += [low + inner, high - inner]
    return np.unique(np.concatenate(cuts))


def _laplace_exponent(
    y: NDArray[np.float64], gaps: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the log integrand times exp(gap), so that no candidate underflows."""
    noise = np.add.outer(y, gaps)
    tail = -np.abs(noise) - math.log(2)
    below = np.where(noise < 0, tail, np.log1p(-np.exp(tail)))
    return np.asarray(tail + gaps + below.sum(axis=1, keepdims=True) - below)


class _LazyLaplace:
    r"""A score plus Laplace noise of scale 1, known only to lie in an interval.

    The binary digits of an exponential variable are independent: the digit of weight w
    is 1 with probability :math:`1/(1+e^{w})`. The integer part is drawn first, then one
    digit whenever a comparison asks for it.
    """

    def __init__(self, score: Fraction, source: Any) -> None:
        self.source = source
        self.sign = 1 - 2 * int(source.uniform(2, 1).values[0])
        self.width = Fraction(1)
        whole = int(source.geometric(1, 1).values[0])
        self.score, self.known = score, Fraction(whole)

    @property
    def bounds(self) -> tuple[Fraction, Fraction]:
        """The ends of the interval."""
        ends = (self.known * self.sign, (self.known + self.width) * self.sign)
        return self.score + min(ends), self.score + max(ends)

    def refine(self) -> None:
        """Draw one more binary digit."""
        self.width /= 2
        while True:
            if self.source.uniform(2, 1).values[0]:
                return  # the digit is 0
            if self.source.bernoulli_exp(self.width, 1).values[0]:
                self.known += self.width
                return


def _draw_laplace_max(scores: list[Fraction], source: Any) -> int:
    """Draw the position of the largest noisy score, comparing as far as needed."""
    noisy = [_LazyLaplace(score, source) for score in scores]
    left = list(range(len(noisy)))
    while len(left) > 1:
        floor = max(noisy[i].bounds[0] for i in left)
        left = [i for i in left if noisy[i].bounds[1] > floor]
        if len(left) > 1:
            for i in left:
                noisy[i].refine()
    return left[0]
