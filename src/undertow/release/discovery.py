r"""Choosing the keys to publish: noisy numbers of units above a proved threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from undertow.numeric.rounding import greatest_int, log_down
from undertow.release.intervals import IntegerNoise

__all__ = ["kept_cells", "key_threshold", "published_intervals", "published_radius"]


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
