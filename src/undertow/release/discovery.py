r"""Choosing the keys to publish: noisy numbers of units above a proved threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from numpy.typing import NDArray

from undertow._numeric import greatest_int, log_down
from undertow.release.intervals import IntegerNoise

__all__ = ["kept_cells", "key_threshold"]


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
