"""Families of local protocols, for arrays of levels, and the risk of one protocol.

Under randomised response the risk is a factor of epsilon times a number of the threat,
whatever the threat is. Unary encodings, and binary hashing, which is one in disguise,
report bits: the risk is a difference of two probabilities times a sum over the prior.
Subset selection and optimised hashing have a structure that steps with epsilon: within
a range of levels with one subset size, or one number of buckets, the risk grows and its
inverse is explicit; where the whole number steps the risk jumps, up or down.

A protocol has too many outputs for a table; it is read as a member of its family.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from undertow.errors import NotApplicable
from undertow.mechanisms import RandomizedResponse
from undertow.mechanisms.local import (
    PROTOCOLS,
    BinaryHashing,
    GeneralizedResponse,
    LocalHashing,
    LocalProtocol,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
    protocol_name,
    subset_size,
)
from undertow.mechanisms.local.base import read_categories
from undertow.mechanisms.local.histogram import she_gap
from undertow.mechanisms.local.unary import bits_table, oue_gap, sue_gap
from undertow.mechanisms.randomized_response import exact_odds, response_gap
from undertow.numeric.array import Floats
from undertow.numeric.exact import round_up
from undertow.privacy.loss import Loss
from undertow.results import Bound
from undertow.risk.channel import Channel
from undertow.risk.families.base import (
    CELLS,
    LARGEST_LEVEL,
    Curve,
    Family,
    Structure,
    SubsetWeights,
    closed_view,
    identity_advantage,
    uniform_prior,
)
from undertow.risk.finite import Risk, finite_advantage
from undertow.risk.threat import Threat

HASH_UNCHECKED = "the hash is ideal: independent uniform buckets"
# Records up to which a table of reports is listed.
_TABLE = 500
# Numbers added up in a row by a running sum.
_ROW = 1024


def bit_sums(threat: Threat, noise: Floats, *, full: bool) -> Floats:
    r"""Return the advantage over :math:`p - q` for each rate q of false ones.

    .. math:: \sum_i (1-q)^{m-i-1} \pi_i \bigl[(1-\pi_i) - q \sum_{z<i} \pi_z\bigr],
       \quad \pi_1 \le \dots \le \pi_m

    without knowledge, :math:`1 - \kappa_\pi` with full knowledge. O(m) per rate.
    """
    if full:
        return np.full(noise.shape, threat.ceiling)
    size = len(threat.prior)
    if uniform_prior(threat):
        return (size - 1) / size * _inverse_means(size - 1, noise)
    pi = np.sort(threat.prior.pmf)
    below = np.concatenate([[0.0], _running(pi)[:-1]])
    above = np.concatenate([_running(pi[::-1])[::-1][1:], [0.0]])
    later = np.arange(size - 1, -1, -1) - 1.0
    sums = np.empty(noise.shape)
    step = max(1, CELLS // size)
    for start in range(0, len(noise), step):
        part = slice(start, start + step)
        weights = np.exp(np.log1p(-noise[part])[:, None] * later)
        sums[part] = weights @ (pi * above) + (1 - noise[part]) * (
            weights @ (pi * below)
        )
    return sums


def _running(values: Floats) -> Floats:
    """Return the sums up to each place, by rows: plain ones drift over a million."""
    rows = -(-len(values) // _ROW)
    table = np.zeros(rows * _ROW)
    table[: len(values)] = values
    table = np.cumsum(table.reshape(rows, _ROW), axis=1)
    table[1:] += np.cumsum(table[:-1, -1])[:, None]
    return np.asarray(table.reshape(-1)[: len(values)])


def _inverse_means(count: int, rate: Floats) -> Floats:
    """Return (1 - (1 - q)^n)/(n q), with its limit at 0."""
    safe = np.where(rate > 0, rate, 0.5)
    return np.where(rate > 0, -np.expm1(count * np.log1p(-safe)) / (count * safe), 1.0)


class LocalFamily(Family):
    """What local protocols share: the number of categories."""

    def __init__(self, categories: SupportsIndex) -> None:
        self.records = read_categories(categories)


class ResponseFamily(LocalFamily):
    r"""Generalised randomised response.

    Notes
    -----
    :math:`p(\theta\mid x) - p(\theta) = (p-q)([\theta = x] - \pi_\theta)`, so under
    every threat the advantage is :math:`p - q` times that of the identity.
    """

    name = "grr"

    def mechanism(
        self, parameter: float, *, structure: int | None = None
    ) -> GeneralizedResponse:
        """Return the protocol."""
        return GeneralizedResponse(self.records, parameter)

    def variation(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return p - q."""
        return response_gap(levels, self.records)

    def curve(self, threat: Threat) -> Curve:
        """Return the closed form: every prior, success rule and knowledge."""
        room = self._room(threat)

        def inverse(targets: Floats) -> Floats:
            share = targets / room
            return np.asarray(np.log1p(share * (self.records - 1)) - np.log1p(-share))

        return Curve(
            lambda levels, _: self.variation(levels) * room,
            room,
            "Local protocols, Proposition 1 (thesis, Example 5.4)",
            inverse=inverse if room > 0 else None,
        )

    def source(self, level: float, threat: Threat) -> Channel | None:
        """Return the table of reports, for few categories."""
        if self.records > _TABLE:
            return None
        laws = np.full((self.records,) * 2, math.exp(-level))
        np.fill_diagonal(laws, 1.0)
        return Channel(laws / laws.sum(axis=1, keepdims=True), threat.support)

    def _room(self, threat: Threat) -> float:
        if closed_view(threat) is not None:
            return threat.ceiling
        return identity_advantage(threat)


class SummationFamily(LocalFamily):
    """Summation with histogram encoding: the noisy vector itself."""

    name = "she"

    def mechanism(
        self, parameter: float, *, structure: int | None = None
    ) -> SummationHistogram:
        """Return the protocol."""
        return SummationHistogram(self.records, parameter)

    def variation(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return 1 - exp(-e/2)(1 + e/4)."""
        return she_gap(levels)

    def curve(self, threat: Threat) -> Curve | None:
        """Return the closed form: uniform prior without knowledge, or two records."""
        view = closed_view(threat)
        if view is not None and self.records == 2:
            return Curve(
                lambda levels, _: self.variation(levels) * threat.ceiling,
                threat.ceiling,
                "thesis, Theorem 5.2, attained by two records",
            )
        if view != "none" or not uniform_prior(threat):
            return None
        return Curve(
            lambda levels, _: self._uniform(levels),
            threat.ceiling,
            "Local protocols, Proposition 5",
            slack=2e-12 + 2e-15 * self.records,
        )

    def _uniform(self, levels: Floats) -> Floats:
        m, finite = self.records, np.minimum(levels, 1400.0)
        a = 0.5 * np.exp(-finite / 2.0)
        j, half = np.arange(1, m - 1), math.ldexp(1.0, -(m - 1))
        rest = finite / 2.0
        step = max(1, CELLS // m)
        for start in range(0, len(levels), step):
            part = slice(start, start + step)
            powers = np.exp(np.log1p(-a[part])[:, None] * j)
            rest[part] += ((np.exp2(-j) - powers) / j).sum(axis=1)
        power = np.exp((m - 1) * np.log1p(-a))
        middle = 0.5 * (power - 2.0 * a * half - a * (m - 1) * rest)
        ends = 0.5 * _inverse_means(m, a) + a * half / m
        return np.asarray(np.maximum(0.0, ends + middle - 1.0 / m))


def grr(categories: SupportsIndex) -> ResponseFamily:
    """Return generalised randomised response.

    Examples
    --------
    >>> from undertow.risk import Prior, Threat
    >>> round(grr(10).risk(1.0, Threat(Prior.uniform(10))).value, 9)
    0.131969317
    """
    return ResponseFamily(categories)


def she(categories: SupportsIndex) -> SummationFamily:
    """Return summation with histogram encoding."""
    return SummationFamily(categories)


# Families of unary encodings, and of binary hashing, which is one in disguise.
#
# Bit x of the report of x is 1 with probability p, every other bit with probability q;
# the risk is p - q times a sum over the prior that depends on q alone.

# Categories up to which all reports are listed.
_BITS = 12


class UnaryFamily(LocalFamily):
    """Unary encodings whose bit probabilities follow from epsilon.

    Parameters
    ----------
    categories : int
        At least two.
    name : str
        On the command line.
    protocol : callable
        From categories and epsilon to the protocol.
    bits : callable
        From levels to the arrays p - q and q.
    limit : float
        The largest p - q.
    """

    def __init__(
        self,
        categories: SupportsIndex,
        *,
        name: str,
        protocol: Callable[[int, float], Any],
        bits: Callable[[Floats], tuple[Floats, Floats]],
        limit: float,
        full_inverse: Callable[[Floats], Floats] | None = None,
    ) -> None:
        super().__init__(categories)
        self.name, self._protocol, self._bits = name, protocol, bits
        self._limit, self._full_inverse = limit, full_inverse

    def mechanism(self, parameter: float, *, structure: int | None = None) -> Any:
        """Return the protocol."""
        return self._protocol(self.records, parameter)

    def variation(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return p - q."""
        return self._bits(levels)[0]

    def curve(self, threat: Threat) -> Curve | None:
        """Return the closed form for exact success, knowing nothing or everything."""
        view = closed_view(threat)
        if view is None:
            return None
        full, room, solve = view == "full", threat.ceiling, self._full_inverse

        def values(levels: Floats, _: Structure | None) -> Floats:
            gap, noise = self._bits(levels)
            return gap * bit_sums(threat, noise, full=full)

        return Curve(
            values,
            self._limit * room,
            "Local protocols, Proposition 2 (thesis, Example 5.5)",
            inverse=(lambda g: solve(g / room)) if full and solve is not None else None,
        )

    def supremum(self, threat: Threat) -> float:
        """Return the risk of the bits at infinite epsilon, which all others garble."""
        source = self.source(np.inf, threat)
        if source is None:
            return self._limit * threat.ceiling
        return finite_advantage(source, threat).value

    def source(self, level: float, threat: Threat) -> Channel | None:
        """List all reports, for few categories."""
        if self.records > _BITS:
            return None
        gap, noise = self._bits(np.array([level]))
        keep, false = float(gap[0] + noise[0]), float(noise[0])
        laws = bits_table(self.records, keep=keep, noise=false)
        return Channel(laws, threat.support)


class BinaryHashingFamily(UnaryFamily):
    """Binary local hashing: two buckets, so one factor of epsilon."""

    ideal: bool = True

    def curve(self, threat: Threat) -> Curve | None:
        """Return the closed form; its inverse is explicit for every prior."""
        view = closed_view(threat)
        if view is None or not self.ideal:
            return None
        share = float(bit_sums(threat, np.array([0.5]), full=view == "full")[0])
        return Curve(
            lambda levels, _: oue_gap(levels) * share,
            share / 2.0,
            "Local protocols, Proposition 4",
            inverse=lambda g: np.asarray(2.0 * np.arctanh(2.0 * g / share)),
            unchecked=(HASH_UNCHECKED,),
        )

    def fallback(self, threat: Threat) -> Curve:
        """Return the bound that holds for every hash."""
        curve = super().fallback(threat)
        return Curve(
            lambda levels, _: np.tanh(levels / 2.0) * threat.ceiling,
            threat.ceiling,
            curve.theorem,
            exact=False,
            reason=curve.reason,
        )

    def source(self, level: float, threat: Threat) -> None:
        """Return nothing: the outputs are all hash functions."""


def sue(categories: SupportsIndex) -> UnaryFamily:
    """Return symmetric unary encoding (basic RAPPOR)."""
    return UnaryFamily(
        categories,
        name="sue",
        protocol=SymmetricUnary,
        bits=lambda e: (sue_gap(e), expit(-e / 2.0)),
        limit=1.0,
        full_inverse=lambda g: np.asarray(4.0 * np.arctanh(g)),
    )


def oue(categories: SupportsIndex) -> UnaryFamily:
    """Return optimised unary encoding.

    Examples
    --------
    >>> from undertow.risk import Prior, Threat
    >>> round(oue(10).risk(1.0, Threat(Prior.uniform(10))).value, 9)
    0.080789798
    """
    return UnaryFamily(
        categories,
        name="oue",
        protocol=OptimizedUnary,
        bits=lambda e: (oue_gap(e), expit(-e)),
        limit=0.5,
        full_inverse=lambda g: np.asarray(2.0 * np.arctanh(2.0 * g)),
    )


def the(categories: SupportsIndex) -> UnaryFamily:
    r"""Return thresholding with histogram encoding at its best threshold.

    Notes
    -----
    At the threshold of least variance :math:`1-p = (1-q)/(3-4q)`, hence with
    :math:`u = 1 - e^{-\varepsilon/2}` everything is explicit, p grows and q falls with
    epsilon, and the risk is monotone; p never passes 2/3. Proved on the page
    *Calibration in units of risk*.
    """
    return UnaryFamily(
        categories,
        name="the",
        protocol=ThresholdHistogram,
        bits=_threshold_bits,
        limit=2.0 / 3.0,
    )


def _threshold_bits(levels: Floats) -> tuple[Floats, Floats]:
    u, rest = -np.expm1(-levels / 2.0), np.exp(-levels / 2.0)
    root = np.sqrt(rest + u * u)
    odd = u / (root + rest)  # 1 - 2q
    noise = 1.5 * rest / (2.0 - u + root)
    gap = 2.0 * (1.0 - noise) * odd / (3.0 - 4.0 * noise)
    return np.asarray(gap), np.asarray(noise)


def blh(categories: SupportsIndex, *, ideal: bool = True) -> BinaryHashingFamily:
    """Return binary local hashing; `ideal` says whether its hash is taken as ideal."""
    family = BinaryHashingFamily(
        categories,
        name="blh",
        protocol=BinaryHashing,
        bits=lambda e: (oue_gap(e), np.full(e.shape, 0.5)),
        limit=0.5,
    )
    family.ideal = ideal
    return family


# Families whose structure steps with epsilon: subset selection and optimised hashing.
#
# Within a range of levels with one subset size, or one number of buckets, the risk
#   grows
# and its inverse is explicit; where the whole number steps the risk jumps, up or down.
#   A
# *safe* level is one up to which the target holds throughout.

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


# The risk of one local protocol, read as a member of its family.
#
# A client's protocol has too many outputs for a table; its family knows the closed
# forms and the engines that need none.

_FAMILIES: dict[str, Callable[..., Family]] = {
    "grr": grr,
    "sue": sue,
    "oue": oue,
    "ss": ss,
    "blh": blh,
    "olh": olh,
    "she": she,
    "the": the,
}
# Their families assume an ideal hash, which no client has.
_HASHED = ("blh", "olh")
_UNCHECKED = (
    "the target is independent of the other records",
    "the prior is public",
    "the client follows the protocol",
    "one report per client",
)


def protocol_risk(protocol: LocalProtocol, threat: Threat) -> Risk:
    r"""Return the advantage of the best attack on one report of a protocol.

    Parameters
    ----------
    protocol : LocalProtocol
        The categories are the records of the threat, in their order.
    threat : Threat
        Prior, success rule and knowledge.

    Returns
    -------
    Risk
        Exact (`tight`) where a closed form or an engine covers the threat; otherwise
        total variation times :math:`1 - \kappa_\pi`, and for hashing protocols always
        a bound that holds for every hash.

    Raises
    ------
    MismatchError
        If the threat has another number of records.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> threat = Threat(Prior.uniform(10))
    >>> round(protocol_risk(OptimizedUnary(10, 1), threat).value, 6)
    0.08079
    """
    family = _family(protocol)
    if family is not None:
        level = round_up(protocol.epsilon)
        return family.risk(level, threat, structure=protocol.structure)
    grr(protocol.categories).require_match(threat)
    view = closed_view(threat)
    if view is None:
        value = min(1.0, protocol.total_variation() * threat.ceiling)
        theorem, tight = "thesis, Theorem 5.2", None
    else:
        # Equal to rounding, which the margin of the closed forms covers.
        prior = None if uniform_prior(threat) else threat.prior.pmf
        bound = protocol.advantage_bound(prior, knowledge=view)
        value, theorem, tight = bound.value, bound.theorem, bound.tight
    return Risk(
        min(value, threat.ceiling),
        theorem,
        _UNCHECKED,
        ("records of protocol and threat agree",),
        tight=tight,
        threat=threat.summary,
        ceiling=threat.ceiling,
    )


def _family(protocol: LocalProtocol) -> Family | None:
    """Return the family a protocol is a member of; None if its own choice is not.

    Hashing protocols have none: their families assume an ideal hash, which no client
    has, and a guarantee must hold for every one.
    """
    name = protocol_name(protocol)
    if name not in _FAMILIES or name in _HASHED:
        return None
    sized = protocol.structure is not None
    chosen = sized or protocol.follows_rule
    return _FAMILIES[name](protocol.categories) if chosen else None


class StatedFamily(LocalFamily):
    """A protocol of `PROTOCOLS` without closed forms for many levels at once.

    The risk at a level is what the protocol states of itself where that is attained,
    else that of its table where its reports can be listed.

    Parameters
    ----------
    categories : int
        At least two.
    name : str
        Its name.
    """

    def __init__(self, categories: SupportsIndex, *, name: str) -> None:
        super().__init__(categories)
        self.name, self._entry = name, PROTOCOLS[name]
        self.monotone = self._entry.protocol.monotone

    def mechanism(
        self, parameter: float, *, structure: int | None = None
    ) -> LocalProtocol:
        """Return the protocol."""
        return self._entry.at(self.records, parameter)

    def variation(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return what the protocol states, and 1 beyond the largest level."""
        return self._stated(levels, lambda protocol: protocol.total_variation())

    def curve(self, threat: Threat) -> Curve | None:
        """Return what the protocol states of exact success, if it is attained."""
        view = closed_view(threat)
        if view is None:
            return None
        prior = None if uniform_prior(threat) else threat.prior.pmf

        def bound(protocol: LocalProtocol) -> Bound:
            return protocol.advantage_bound(prior, knowledge=view)

        told = bound(self.mechanism(1.0))
        if told.tight is not True:
            return None
        return Curve(
            lambda levels, _: self._stated(levels, lambda p: bound(p).value),
            threat.ceiling,
            told.theorem,
        )

    def source(self, level: float, threat: Threat) -> Channel | None:
        """Return the table of reports, if they can be listed."""
        try:
            return Channel.from_mechanism(self.mechanism(level), threat.support)
        except NotApplicable:
            return None

    def _stated(
        self, levels: Floats, value: Callable[[LocalProtocol], float]
    ) -> Floats:
        def at(level: float) -> float:
            if 0.0 < level <= LARGEST_LEVEL:
                return value(self.mechanism(level))
            return 0.0 if level == 0.0 else 1.0

        return np.array([at(level) for level in levels.tolist()])


def local_family(name: str) -> Callable[..., Family]:
    """Return the constructor of the family of a local protocol."""
    return _FAMILIES.get(name, partial(StatedFamily, name=name))
