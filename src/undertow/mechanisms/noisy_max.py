r"""Report noisy max: add noise to every score and name the largest, not its value."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice
from undertow.mechanisms.exponential import ExponentialMechanism, ScoreMechanism
from undertow.privacy.exact import Number
from undertow.privacy.loss import Pure

__all__ = ["NoisyMax"]

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
    t, weights = _unit_rule(len(gaps))
    mass, block = np.zeros(len(gaps)), max(1, _BLOCK // len(gaps))
    for start in range(0, len(t), block):
        part = slice(start, start + block)
        logs = np.log1p(-np.multiply.outer(t[part], np.exp(-gaps)))
        # All factors but the candidate's own.
        mass += weights[part] @ np.exp(logs.sum(axis=1, keepdims=True) - logs)
    return np.asarray(np.log(mass) - gaps)


def _unit_rule(size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a Gauss rule on [0, 1], exact for polynomials of degree size - 1.

    Past 128 factors the rule is composite, on panels that halve towards 0, where the
    product decays; its relative error is below 1e-12.
    """
    if size <= 128:
        nodes, weights = np.polynomial.legendre.leggauss(size // 2 + 1)
        return (nodes + 1) / 2, weights / 2
    cuts = np.concatenate([[0.0], 2.0 ** np.arange(-20.0, 1.0)])
    return _panel_rule(cuts)


def _panel_rule(
    cuts: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the composite Gauss rule on the panels between `cuts`."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    half = np.diff(cuts)[:, None] / 2
    return (cuts[:-1, None] + half * (nodes + 1)).ravel(), (half * weights).ravel()


def _laplace_max(gaps: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log law of the largest of -gap + Laplace noise, by quadrature."""
    y, weights = _panel_rule(_laplace_cuts(-gaps))
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
