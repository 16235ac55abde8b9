"""Do the low-order bits of a released number give the input away?

Floating-point noise betrays the value it was added to: ``0 + noise`` keeps all bits of
a small noise, ``1 + noise`` loses those below ``2**-53``, so an output near 0 with
finer bits rules out the input 1 (Mironov, *On Significance of the Least Significant
Bits for Differential Privacy*, 2012). The procedure below looks for such events in any
releasing function and certifies what it finds with an exact binomial test.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import stats

Release = Callable[[float, int], np.ndarray]


@dataclass(frozen=True)
class PrecisionFinding:
    """What `precision_test` found.

    ``distinguishes`` says whether the best event of the form "the output is near the
    inputs and its lowest set bit is at or below ``bit``" is more likely than epsilon
    allows; ``p_value`` is the chance of such counts from an epsilon-DP release.
    """

    distinguishes: bool
    bit: int
    counts: tuple[int, int]
    p_value: float


def lowest_bits(values: np.ndarray) -> np.ndarray:
    """Return the exponent of the lowest set bit of each number; 0 counts as high."""
    return np.array([_lowest_bit(Fraction(value)) for value in values.tolist()])


def _lowest_bit(value: Fraction) -> int:
    if value == 0:
        return 5000
    low = value.numerator & -value.numerator
    return low.bit_length() - value.denominator.bit_length()


def precision_test(
    release: Release,
    *,
    inputs: tuple[float, float] = (0.0, 1.0),
    epsilon: float,
    window: float = 0.25,
    trials: int = 20_000,
    false_alarm: float = 1e-6,
) -> PrecisionFinding:
    """Look for output bits that distinguish two neighbouring inputs.

    Parameters
    ----------
    release : callable
        ``release(value, count)`` returns `count` independent outputs for one input.
    inputs : pair of float
        Neighbouring inputs.
    epsilon : float
        The pure loss claimed for the pair.
    window : float
        Outputs within this distance of an input are looked at.
    trials : int
        Outputs per input; half of them choose the event, half of them test it.
    false_alarm : float
        Chance that a release with the claimed loss is reported.
    """
    findings = [
        _one_sided(release, pair, epsilon, window, trials, false_alarm / 2)
        for pair in (inputs, inputs[::-1])
    ]
    return min(findings, key=lambda finding: finding.p_value)


def _one_sided(
    release: Release,
    pair: tuple[float, float],
    epsilon: float,
    window: float,
    trials: int,
    level: float,
) -> PrecisionFinding:
    """Test whether bits near ``pair[0]`` are too likely under input ``pair[0]``."""
    bits = []
    for value in pair:
        outputs = np.asarray(release(value, trials))
        halves = outputs[: trials // 2], outputs[trials // 2 :]
        bits.append([lowest_bits(h[np.abs(h - pair[0]) <= window]) for h in halves])
    candidates = np.unique(np.concatenate([bits[0][0], bits[1][0]]))
    if not candidates.size:
        return PrecisionFinding(False, 0, (0, 0), 1.0)
    scores = [_p_value(bits[0][0] <= t, bits[1][0] <= t, epsilon) for t in candidates]
    bit = int(candidates[int(np.argmin(scores))])
    hits = bits[0][1] <= bit, bits[1][1] <= bit
    p_value = _p_value(*hits, epsilon)
    counts = int(hits[0].sum()), int(hits[1].sum())
    return PrecisionFinding(p_value < level, bit, counts, p_value)


def _p_value(first: np.ndarray, second: np.ndarray, epsilon: float) -> float:
    # Given their total, the first count is binomial with at most this chance.
    hits, total = int(first.sum()), int(first.sum() + second.sum())
    if total == 0:
        return 1.0
    chance = 1 / (1 + math.exp(-epsilon))
    return float(stats.binomtest(hits, total, chance, alternative="greater").pvalue)
