"""Which method certifies: chosen on a pilot whose trials certify nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import SupportsIndex

import numpy as np

from undertow._validate import check_count
from undertow.audit._methods import (
    BOTH,
    FIRST,
    SECOND,
    Method,
    Pairs,
    Reconstruct,
    Single,
    Tally,
)
from undertow.audit.claim import Claim
from undertow.audit.runner import Counts

__all__ = ["candidates", "choose", "pilot_size", "total_trials"]

# Share of the trials that chooses the method, and the most it may be.
_SHARE = 20
_PILOT = 50_000
# Support bits that the pilot may read.
_BITS = 1 << 26


def pilot_size(trials: SupportsIndex, categories: SupportsIndex) -> int:
    """Return how many trials choose the method.

    Examples
    --------
    >>> pilot_size(10**6, 100), pilot_size(1000, 100)
    (50000, 50)
    """
    n = check_count(trials, "trials")
    most = min(_PILOT, _BITS // check_count(categories, "categories"))
    return max(1, min(n // _SHARE, most))


def total_trials(needed: int, categories: int) -> int:
    """Return how many trials leave the needed ones after the pilot.

    Examples
    --------
    >>> total_trials(95, 10), total_trials(3, 10)
    (99, 4)
    """
    total = needed
    while total - pilot_size(total, categories) < needed:
        total += needed - (total - pilot_size(total, categories))
    return total


def candidates(
    pilot: Counts, claim: Claim, m: int, confidence: float
) -> tuple[Method, ...]:
    """Return the three methods, with the direction and value the pilot suggests."""
    pooled = pilot["pooled"]
    return (
        Reconstruct(claim, confidence, m),
        Pairs(claim, confidence, bool(pooled[SECOND] > pooled[FIRST])),
        _best_value(pilot, claim, confidence),
    )


def _best_value(pilot: Counts, claim: Claim, confidence: float) -> Single:
    """Return the value, cell and direction of the largest cautious ratio."""
    table = pilot["table"]
    own, other = table[0].astype(float), table[1].astype(float)
    # Two standard errors below the log-ratio; a half keeps empty cells finite.
    center = np.log((own + 0.5) / (other + 0.5))
    error = 2.0 * np.sqrt(1.0 / (own + 0.5) + 1.0 / (other + 0.5))
    score = np.abs(center) - error
    cell, value = np.unravel_index(int(np.argmax(score)), score.shape)
    reverse = bool(center[cell, value] < 0)
    return Single(claim, confidence, int(value), int(cell), reverse)


def choose(methods: tuple[Method, ...], pilot: Counts, trials: int) -> Method:
    """Return the method with the largest expected certificate, as the pilot shows it.

    A method that can never refute the claim gives way to one that the pilot leaves a
    chance to. The single value is taken only if the pilot shows it beyond all chance:
    it was the best of many.
    """
    *plain, single = methods
    best = _best_plain(plain, pilot, trials)
    seen, tried = single.tally(pilot), single.choices(pilot)
    shown = single.certify(seen, tried=tried)[0]
    ahead = shown > max(0.0, best.expected(pilot, trials))
    return single if ahead and _reaches(single, pilot, trials, best) else best


def _best_plain(methods: Sequence[Method], pilot: Counts, trials: int) -> Method:
    def expected(method: Method) -> float:
        return method.expected(pilot, trials)

    best = _favourite(methods, pilot, trials)
    goal = best.claim.for_replacement().level
    if _ceiling(best, pilot, trials) > goal:
        return best
    able = [method for method in methods if method.hopeful(pilot, trials) > goal]
    return max(able or [best], key=expected)


def _favourite(methods: Sequence[Method], pilot: Counts, trials: int) -> Method:
    """Return the method with the largest expected certificate.

    If the pilot does not tell the two apart: the attack if it never had to guess, as
    it then has the population value of the pairs and the narrower interval.
    """
    reconstruct, pairs = methods
    pooled = pilot["pooled"]
    if pooled[SECOND] > pooled[FIRST] or _differ(reconstruct, pairs, pilot):
        return max(methods, key=lambda method: method.expected(pilot, trials))
    guessed = int(pilot["successes"][0]) != int(pooled[FIRST] + pooled[BOTH])
    return pairs if guessed else reconstruct


def _differ(method: Method, other: Method, pilot: Counts) -> bool:
    """Return whether the estimates of the pilot differ beyond their joint margin."""
    size = int(pilot["trials"][0])
    margins = (each.margin(pilot, size) for each in (method, other))
    gap = abs(method.suggested(pilot) - other.suggested(pilot))
    return gap > math.hypot(*margins)


def _reaches(method: Method, pilot: Counts, trials: int, other: Method) -> bool:
    """Return whether a method can refute the claim, or the other cannot either."""
    goal = method.claim.for_replacement().level
    if _ceiling(method, pilot, trials) > goal:
        return True
    return other.hopeful(pilot, trials) <= goal


def _ceiling(method: Method, pilot: Counts, trials: int) -> float:
    """Return the largest certificate that so many trials could give."""
    scale = trials / int(pilot["trials"][0])
    seen = method.tally(pilot)
    return method.ceiling(Tally(*(round(number * scale) for number in seen)))
