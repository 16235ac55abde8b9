r"""Families whose structure steps with epsilon: subset selection and optimised hashing.

Within a range of levels with one subset size, or one number of buckets, the risk grows
and its inverse is explicit; where the whole number steps the risk jumps, up or down. A
*safe* level is one up to which the target holds throughout.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms import RandomizedResponse
from undertow.mechanisms.local import (
    LocalHashing,
    OptimizedHashing,
    SubsetSelection,
    subset_size,
)
from undertow.mechanisms.local.base import exact_odds, read_categories
from undertow.privacy.loss import Loss
from undertow.risk.families.base import (
    LARGEST_LEVEL,
    Curve,
    Family,
    Structure,
    closed_view,
)
from undertow.risk.families.identity import SubsetWeights
from undertow.risk.families.local import HASH_UNCHECKED, bit_sums
from undertow.risk.threat import Threat

__all__ = ["HashingFamily", "SubsetFamily", "olh", "ss"]

Floats = NDArray[np.float64]
Weights = Callable[[NDArray[Any]], Floats]

# Largest level searched of optimised hashing, and largest with at most 2**31 buckets.
_HASH_LEVEL, _HASH_LARGEST = 21.0, 21.487
# From here on the buckets less one are e^level, to the last digit.
_FLAT = 40.0
# Records up to which all subsets are listed.
_LISTED = 12
# A calibrated level stays this share below what was solved for.
_GUARD = 1e-9


class SubsetFamily(Family):
    r"""Subset selection with the floor rule.

    Notes
    -----
    Sizes are :math:`\omega = \max(1, \lfloor m/(e^\varepsilon+1) \rfloor)`. Under every
    threat the advantage is :math:`\frac{pm-\omega}{m-\omega}W_\omega`, where
    :math:`W_\omega` is that of the sets of size :math:`\omega` that hold the truth for
    sure.
    """

    name = "ss"
    monotone = False
    structural = "subset"

    def __init__(self, categories: SupportsIndex) -> None:
        self.records = read_categories(categories)

    def mechanism(
        self, parameter: float, *, structure: int | None = None
    ) -> SubsetSelection:
        """Return the protocol, with the subset size of the floor rule by default."""
        return SubsetSelection(self.records, parameter, subset=structure)

    def variation(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return (pm - w)/(m - 1)."""
        sizes = self._sizes(levels, structure)
        return self._factor(levels, sizes) * (self.records - sizes) / (self.records - 1)

    def curve(self, threat: Threat) -> Curve | None:
        """Return the closed form; all subsets are listed for few categories."""
        weights, limit = SubsetWeights(self.records, threat), threat.ceiling
        if closed_view(threat) is None:
            if self.records > _LISTED:
                return None
            limit = self._largest(weights)
        return self._curve(
            weights,
            limit,
            theorem="Local protocols, Proposition 3 (thesis, Example 5.6)",
        )

    def fallback(self, threat: Threat) -> Curve:
        """Return the bound by total variation, scanned over the sizes like the rest."""
        plain, m = Family.fallback(self, threat), self.records
        return self._curve(
            lambda sizes: (m - sizes) / (m - 1) * threat.ceiling,
            threat.ceiling,
            theorem=plain.theorem,
            reason=plain.reason,
        )

    def _curve(
        self, weights: Weights, limit: float, *, theorem: str, reason: str = ""
    ) -> Curve:
        def values(levels: Floats, structure: Structure | None) -> Floats:
            sizes = self._sizes(levels, structure)
            return self._factor(levels, sizes) * weights(sizes)

        def solve(targets: Floats, largest: bool) -> tuple[Floats, Structure]:
            return (self._last if largest else self._first)(targets, weights)

        return Curve(
            values,
            limit,
            theorem,
            exact=not reason,
            solve=solve,
            reason=reason or "closed form between breakpoints",
            unchecked=("the stated subset size is deployed",),
        )

    def _largest(self, weights: Weights) -> float:
        """Return the supremum over all levels: the largest end of a range."""
        sizes = np.arange(max(1, self.records // 2), 0, -1)
        ends = np.append(np.log((self.records - sizes[:-1]) / sizes[:-1]), np.inf)
        return float((self._factor(ends, sizes) * weights(sizes)).max())

    def _first(self, targets: Floats, weights: Weights) -> tuple[Floats, Structure]:
        """Bisect for the first range that ends above each target: the safe level."""
        m, most = self.records, max(1, self.records // 2)
        low, high = np.ones(targets.shape, np.int64), np.full(targets.shape, most + 1)
        while (high - low > 1).any():  # `low` ends above its target, `high` does not
            middle = (low + high) // 2
            # The floor rule keeps a size a little longer than its range.
            late = np.log(m / (middle - _GUARD) - 1.0)
            over = self._factor(late, middle) * weights(middle) > targets
            low, high = np.where(over, middle, low), np.where(over, high, middle)
        solved, start = self._solved(targets, low, weights), self._end(low + 1)
        # The range may begin above the target: then stop at its beginning.
        jump = (low < most) & (start > 0.0) & (solved < start)
        level = np.where(jump, start, np.minimum(solved, self._end(low)))
        return level * (1.0 - _GUARD), np.where(jump, low + 1, low)

    def _last(self, targets: Floats, weights: Weights) -> tuple[Floats, Structure]:
        """Scan for the last range that begins within each target."""
        sizes = np.arange(1, max(1, self.records // 2) + 1)
        table, starts = weights(sizes), self._end(sizes + 1)
        starts[-1] = 0.0
        level, found = np.empty(targets.shape), np.empty(targets.shape, np.int64)
        for place, target in enumerate(targets.tolist()):
            solved = self._solved(np.full(sizes.shape, target), sizes, lambda _: table)
            first = int(np.argmax((solved >= starts) | (starts <= 0.0)))
            level[place] = min(solved[first], self._end(sizes)[first])
            found[place] = sizes[first]
        return level * (1.0 - _GUARD), found

    def _solved(self, targets: Floats, sizes: Structure, weights: Weights) -> Floats:
        """Return the level at which sets of a size have each risk; infinite if none."""
        with np.errstate(divide="ignore"):
            share = np.minimum(targets / weights(sizes), 1.0)
            odds = (self.records - sizes) / sizes
            return np.asarray(np.log1p(share * odds) - np.log1p(-share))

    def _end(self, sizes: Structure) -> Floats:
        """Return the last level of each size; of half the records, its rounding."""
        m, inner = self.records, np.maximum(sizes, 2)
        end = np.log(np.maximum(m - inner, 1) / inner)
        guarded = np.log(m / (inner - _GUARD) - 1.0) if m > 3 else end
        end = np.where(2 * inner == m, guarded, end)
        return np.where(sizes == 1, LARGEST_LEVEL, end)

    def _factor(self, levels: Floats, sizes: Structure) -> Floats:
        """Return (pm - w)/(m - w)."""
        odds = np.exp(-levels)
        top = -np.expm1(-levels) * sizes
        return np.asarray(top / (sizes + (self.records - sizes) * odds))

    def _sizes(self, levels: Floats, structure: Structure | None) -> Structure:
        if structure is not None:
            return structure
        found = [subset_size(self.records, float(level)) for level in levels]
        return np.array(found, dtype=np.int64)


class HashingFamily(Family):
    r"""Optimised local hashing with :math:`g = \lfloor e^\varepsilon + 1 \rfloor`.

    Notes
    -----
    The advantage is :math:`(p_g - q_g) C_g`, where :math:`C_g` never falls as g grows;
    so the largest value of each range of levels grows with g, and an integer bisection
    finds the range of a target. Proved on the page *Calibration in units of risk*.
    """

    name = "olh"
    monotone = False
    structural = "buckets"
    largest = _HASH_LARGEST

    def __init__(self, categories: SupportsIndex, *, ideal: bool = True) -> None:
        self.records, self._ideal = read_categories(categories), ideal

    def mechanism(
        self, parameter: float, *, structure: int | None = None
    ) -> LocalHashing:
        """Return the protocol, with its own number of buckets by default."""
        if structure is None:
            return OptimizedHashing(self.records, parameter)
        return LocalHashing(self.records, parameter, buckets=structure)

    def require_parameter(self, parameter: float) -> None:
        """Refuse an epsilon that no report can have; the risk needs no hash."""
        exact_odds(parameter)

    def loss(self, parameter: float) -> Loss:
        """Return the guarantee, which does not depend on the buckets."""
        return RandomizedResponse(2, parameter).loss()

    def variation(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return p - q on the buckets, which holds for every hash."""
        buckets = self._buckets(levels, structure)
        flat = levels > _FLAT if structure is None else np.zeros(levels.shape, bool)
        excess = np.log(buckets - 1.0) - np.where(flat, 0.0, levels)
        ratio = np.exp(np.where(flat, 0.0, excess))  # (g - 1) / e^level
        return np.asarray(-np.expm1(-levels) / (1.0 + ratio))

    def curve(self, threat: Threat) -> Curve | None:
        """Return the closed form for an ideal hash and exact success."""
        view = closed_view(threat)
        if view is None or not self._ideal:
            return None

        def shares(buckets: Floats) -> Floats:
            # Targets in one bisection share most of their buckets.
            kinds, place = np.unique(buckets, return_inverse=True)
            rate = 1.0 / kinds
            found = (1.0 - rate) * bit_sums(threat, rate, full=view == "full")
            return np.asarray(found[place.reshape(-1)])

        return self._curve(
            shares, threat.ceiling, theorem="Local protocols, Proposition 4"
        )

    def fallback(self, threat: Threat) -> Curve:
        """Return the bound that holds for every hash."""
        room = threat.ceiling
        reason = "no closed form under this threat or hash; holds for every threat"
        return self._curve(
            lambda buckets: np.full(buckets.shape, room),
            room,
            theorem="thesis, Theorem 5.2",
            reason=reason,
        )

    def _curve(
        self, shares: Weights, room: float, *, theorem: str, reason: str = ""
    ) -> Curve:
        def values(levels: Floats, structure: Structure | None) -> Floats:
            buckets = self._buckets(levels, structure)
            return self.variation(levels, structure) * shares(buckets)

        return Curve(
            values,
            room / 2.0,
            theorem,
            exact=not reason,
            solve=lambda targets, largest: _solve_buckets(shares, targets, largest),
            reason=reason or "closed form, integer bisection over the buckets",
            unchecked=(
                *(() if reason else (HASH_UNCHECKED,)),
                "the stated number of buckets is deployed",
            ),
        )

    def _buckets(self, levels: Floats, structure: Structure | None) -> Floats:
        if structure is not None:
            return np.asarray(structure, dtype=float)
        # More buckets than this change nothing: their inverse is 0 beside 1.
        return np.floor(np.exp(np.minimum(levels, 700.0)) + 1.0 + _GUARD)


def _solve_buckets(
    shares: Weights, targets: Floats, largest: bool
) -> tuple[Floats, Structure]:
    """Find the buckets of each target: the first range it ends in, or the last."""
    most = math.floor(math.exp(_HASH_LEVEL)) + 1

    def passes(buckets: Floats) -> NDArray[np.bool_]:
        # At the start (largest) or the end (safe) of the range of these buckets.
        e = buckets - 1.0 if largest else buckets
        return np.asarray((e - 1.0) / (e + buckets - 1.0) * shares(buckets) > targets)

    low, high = np.full(targets.shape, 1.0), np.full(targets.shape, most + 1.0)
    while (high - low > 1).any():  # `high` passes, `low` does not
        middle = np.floor((low + high) / 2.0)
        over = passes(middle)
        low, high = np.where(over, low, middle), np.where(over, middle, high)
    buckets = np.maximum(low, 2.0) if largest else np.minimum(high, most)
    share = shares(buckets)
    solved = _bucket_level(targets / share, buckets)
    if not largest:
        # The range may begin above the target: then stop at its beginning.
        jump = solved < np.log(buckets - 1.0)
        solved = np.where(jump, np.log(buckets - 1.0), solved)
        buckets = np.where(jump, np.maximum(buckets - 1.0, 2.0), buckets)
    level = np.minimum(np.minimum(solved, np.log(buckets)), _HASH_LEVEL)
    return level * (1.0 - _GUARD), buckets.astype(np.int64)


def _bucket_level(share: Floats, buckets: Floats) -> Floats:
    inside = np.minimum(share, 1.0 - 2.0**-53)
    return np.asarray(np.log1p(inside * (buckets - 1.0)) - np.log1p(-inside))


def ss(categories: SupportsIndex) -> SubsetFamily:
    """Return subset selection.

    Examples
    --------
    >>> from undertow.risk import Prior, Threat
    >>> round(ss(10).risk(1.0, Threat(Prior.uniform(10))).value, 9)
    0.102304838
    """
    return SubsetFamily(categories)


def olh(categories: SupportsIndex, *, ideal: bool = True) -> HashingFamily:
    """Return optimised local hashing.

    Parameters
    ----------
    categories : int
        At least two.
    ideal : bool, optional
        Whether the hash is taken as ideal; otherwise the bound for every hash.
    """
    return HashingFamily(categories, ideal=ideal)
