r"""The law of the sum of several independent integer noises of one scale.

Running totals add up noisy nodes; their intervals come from the law of that sum. It is
exact for both laws up to rounding, which is to the safe side; nothing is simulated.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from undertow.numeric.rounding import greatest_int, log_down
from undertow.release.intervals import IntegerNoise

__all__ = ["total_log_tail", "total_radius"]

Array = NDArray[np.float64]
# Covers the rounding of a few thousand additions of positive floats.
_MARGIN = 1e-9
# From this variance on, sums of discrete Gaussians are discrete Gaussian to 1e-15.
_SMOOTH = 4
# Below it, the law is tabulated: farther out, floats cannot hold a probability.
_FARTHEST = 80
# Floats below it lose digits.
_SMALLEST = 1e-290


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
    if tail > _SMALLEST:
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
