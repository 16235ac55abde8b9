"""Which epsilon a known protocol has, from how often its simple attack is right."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_choice, check_count, check_probability
from undertow.mechanisms.local import (
    PROTOCOLS,
    LocalHashing,
    LocalProtocol,
    grr_success,
    hash_buckets,
    hashing_success,
    oue_advantage,
    protocol_name,
    she_success,
    subset_success,
    sue_advantage,
    the_advantage,
)
from undertow.numeric.array import Floats
from undertow.results import to_plain
from undertow.risk.intervals import clopper_pearson
from undertow.risk.scalar.uniform import (
    gaussian_placement_advantage,
    laplace_placement_advantage,
)

FAMILIES = (
    "blh",
    "gaussian",
    "grr",
    "laplace",
    "olh",
    "oue",
    "she",
    "ss",
    "sue",
    "the",
)
"""Names of the families that can be inverted; ``"gaussian"`` in mu.

So can every other protocol of :data:`~undertow.mechanisms.local.PROTOCOLS` of which it
is proved that its success never falls.
"""

Status = Literal["interior", "blind", "jump", "saturated"]

# Largest level searched; beyond it the success of every family but OLH has converged.
_LARGEST = 60.0
# Buckets of OLH searched: up to epsilon = 13.
_BUCKETS = 442_413
_STEPS = 100


@dataclass(frozen=True, slots=True)
class Inversion:
    """The levels of a family that fit a success rate.

    Parameters
    ----------
    family : str
        One of `FAMILIES`.
    value : float
        The smallest level whose success reaches the observed rate.
    low, high : float
        Least and largest level that fit the interval of the rate; infinite where the
        success no longer grows.
    status : {"interior", "blind", "jump", "saturated"}
        Whether the rate is attained, at most that of blind guessing, skipped by a jump
        (the value is then the left end), or so large that no upper limit follows.
    """

    family: str
    value: float
    low: float
    high: float
    status: Status

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        names = ("family", "value", "low", "high", "status")
        return {name: to_plain(getattr(self, name)) for name in names}


def family_success(
    family: str, level: float, *, categories: SupportsIndex, subset: int | None = None
) -> float:
    """Return how often the simple attack on a family is right; uniform values.

    Parameters
    ----------
    family : str
        One of `FAMILIES`. Laplace and Gaussian: one of m answers, evenly spread over
        an interval as long as the sensitivity.
    level : float
        Epsilon, or mu for ``"gaussian"``; non-negative.
    categories : int
        The m; at least two.
    subset : int, optional
        For ``"ss"``: the size of the reported set; by default the floor rule.

    Examples
    --------
    >>> round(family_success("oue", 3, categories=100), 8)
    0.10465027
    """
    check_choice(family, "family", choices=_names())
    m = check_count(categories, "categories", minimum=2)
    if family == "ss":
        return subset_success(m, level, subset=subset)
    if subset is not None:
        raise ValueError(f"subset must be left out for {family}, got {subset}.")
    if family in _SUCCESS:
        return _SUCCESS[family](m, level)
    return PROTOCOLS[family].at(m, level).attack_success() if level else 1.0 / m


def _names() -> tuple[str, ...]:
    """Return the names of all families that can be inverted."""
    more = (n for n, entry in PROTOCOLS.items() if entry.protocol.monotone)
    return tuple(sorted({*FAMILIES, *more}))


def estimate_level(
    family: str,
    successes: SupportsIndex,
    trials: SupportsIndex,
    *,
    categories: SupportsIndex,
    shape: SupportsIndex | None = None,
    confidence: float = 0.99,
) -> Inversion:
    r"""Estimate the level of a known family from the success of the simple attack.

    Parameters
    ----------
    family : str
        One of `FAMILIES`.
    successes, trials : int
        Right guesses, of how many; every value equally often.
    categories : int
        The m; at least two.
    shape : int, optional
        The size of the sets of ``"ss"`` or the buckets of ``"olh"``, if they are fixed
        rather than chosen for the level.
    confidence : float, optional
        Of the two-sided Clopper-Pearson interval of the success.

    Returns
    -------
    Inversion
        An estimate: if the code deviates from the protocol, epsilon may be anything.

    Notes
    -----
    The success of SS jumps up where its set shrinks, and that of OLH may fall where its
    buckets grow; between those points it rises, so each piece is searched by bisection.
    `value` and `low` are the smallest compatible levels, `high` the largest. Monotone
    by post-processing: GRR, SUE, OUE, SHE, BLH, Laplace, Gaussian; THE on every grid
    tried.

    Examples
    --------
    >>> fit = estimate_level("grr", 6945, 100_000, categories=100)
    >>> round(fit.value, 6), fit.status
    (1.999951, 'interior')
    """
    check_choice(family, "family", choices=_names())
    m, n = (
        check_count(categories, "categories", minimum=2),
        check_count(trials, "trials"),
    )
    level = check_probability(confidence, "confidence", open_interval=True)
    low, high = clopper_pearson(successes, n, confidence=level)
    search = _search(family, m, _read_shape(family, m, shape))
    rate = int(successes) / n
    value, jump = search.smallest(rate)
    least = min(search.smallest(low)[0], float(search.stops[-1]))
    most = search.largest(high)
    return Inversion(family, value, least, most, _status(value, most, jump))


def _read_shape(family: str, m: int, shape: SupportsIndex | None) -> int | None:
    if shape is None:
        return None
    if family not in ("ss", "olh"):
        raise ValueError(f"shape must be left out for {family}, got {shape}.")
    least = 1 if family == "ss" else 2
    size = check_count(shape, "shape", minimum=least)
    if family == "ss" and size >= m:
        raise ValueError(f"shape must be below the {m} categories, got {size}.")
    return size


def _status(value: float, high: float, jump: bool) -> Status:
    if math.inf in (value, high):
        return "saturated"
    if value == 0.0:
        return "blind"
    return "jump" if jump else "interior"


class _Search:
    """Pieces on which the success of a family rises, and the search in one of them."""

    def __init__(self, family: str, m: int, shape: int | None) -> None:
        self._m, self._family = m, family
        self.starts, self.stops, self.shapes = _pieces(family, m, shape)
        count = range(len(self.starts))
        if family == "olh":
            self.low = _hash_success(m, np.exp(self.starts), self.shapes)
            self.high = _hash_success(m, np.exp(self.stops), self.shapes)
        else:
            self.low = np.array([self._at(i, float(self.starts[i])) for i in count])
            self.high = np.array([self._at(i, float(self.stops[i])) for i in count])

    def smallest(self, rate: float) -> tuple[float, bool]:
        """Return the least level that reaches a rate, and whether it is a jump."""
        found = np.flatnonzero(self.high > rate)
        if not found.size:
            return math.inf, False
        i = int(found[0])
        if rate <= self.low[i]:
            return float(self.starts[i]), i > 0
        return self._inside(i, rate), False

    def largest(self, rate: float) -> float:
        """Return the largest level that does not pass a rate."""
        found = np.flatnonzero(self.low <= rate)
        if not found.size:
            return 0.0
        i = int(found[-1])
        if rate >= self.high[i]:
            last = i == len(self.starts) - 1
            return math.inf if last else float(self.stops[i])
        return self._inside(i, rate)

    def _at(self, i: int, level: float) -> float:
        if self._family == "ss":
            return _subset_success(self._m, level, int(self.shapes[i]))
        if self._family == "olh":
            return hashing_success(self._m, level, buckets=int(self.shapes[i]))
        return family_success(self._family, level, categories=self._m)

    def _inside(self, i: int, rate: float) -> float:
        low, high = float(self.starts[i]), float(self.stops[i])
        for _ in range(_STEPS):
            mid = (low + high) / 2
            if mid in (low, high):
                break
            low, high = (low, mid) if self._at(i, mid) >= rate else (mid, high)
        return high


@lru_cache(maxsize=8)
def _search(family: str, m: int, shape: int | None) -> _Search:
    return _Search(family, m, shape)


def _pieces(
    family: str, m: int, shape: int | None
) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """Return where each piece starts and stops, and its subset size or buckets."""
    if shape is not None:
        return np.zeros(1), np.full(1, _LARGEST), np.array([shape])
    if family == "ss":
        sizes = np.arange(max(1, m // 2), 0, -1)
        ends = np.log((m - sizes) / sizes)
        ends[-1] = _LARGEST
        keep = ends > 0.0
        ends, sizes = ends[keep], sizes[keep]
        return np.concatenate([[0.0], ends[:-1]]), ends, sizes
    if family == "olh":
        buckets = np.arange(2, _BUCKETS)
        return np.log(buckets - 1.0), np.log(buckets), buckets
    # The answers of a number lie close together, so that their success grows slowly.
    spread = m if family in ("laplace", "gaussian") else 1
    return np.zeros(1), np.full(1, _LARGEST * spread), np.ones(1, dtype=np.int64)


def _subset_success(m: int, level: float, size: int) -> float:
    return 1.0 / (size + (m - size) * math.exp(-level))


def _hash_success(m: int, odds: Floats, buckets: NDArray[np.int64]) -> Floats:
    """Return the success of local hashing for many numbers of buckets at once."""
    g = buckets.astype(np.float64)
    keep = odds / (odds + g - 1.0)
    empty = np.exp((m - 1) * np.log1p(-1.0 / g))
    among = -np.expm1(m * np.log1p(-1.0 / g)) * g / m
    return np.asarray(keep * among + (1.0 - keep) * empty / m)


_SUCCESS: dict[str, Callable[[int, float], float]] = {
    "blh": lambda m, e: hashing_success(m, e, buckets=2),
    "gaussian": lambda m, e: gaussian_placement_advantage(m, e) + 1.0 / m,
    "grr": grr_success,
    "laplace": lambda m, e: laplace_placement_advantage(m, e) + 1.0 / m,
    "olh": lambda m, e: hashing_success(m, e, buckets=hash_buckets(e)),
    "oue": lambda m, e: oue_advantage(m, e) + 1.0 / m,
    "she": she_success,
    "sue": lambda m, e: sue_advantage(m, e) + 1.0 / m,
    "the": lambda m, e: (the_advantage(m, e) if e else 0.0) + 1.0 / m,
}


# Which family a protocol belongs to, and which level its simple attack tells.


def estimate_protocol_level(
    protocol: Any,
    successes: SupportsIndex,
    trials: SupportsIndex,
    *,
    confidence: float = 0.99,
) -> Inversion | None:
    """Estimate the level of a protocol by the family that its class belongs to.

    Parameters
    ----------
    protocol : LocalProtocol
        Its class and its sizes are used; its epsilon only to tell whether the sizes and
        the threshold follow the rule of the family.
    successes, trials : int
        Right guesses of the simple attack, of how many; every value equally often.
    confidence : float, optional
        Of the two-sided interval.

    Returns
    -------
    Inversion or None
        None for whatever is no protocol, for an encoding with probabilities of its own,
        and for a threshold other than the best one: no level stands for them.

    Examples
    --------
    >>> from undertow.mechanisms.local import GeneralizedResponse
    >>> fit = estimate_protocol_level(GeneralizedResponse(100, 1), 6945, 100_000)
    >>> fit.family, round(fit.value, 3)
    ('grr', 2.0)
    """
    found = _family_of(protocol)
    if found is None:
        return None
    family, shape = found
    return estimate_level(
        family,
        successes,
        trials,
        categories=protocol.categories,
        shape=shape,
        confidence=confidence,
    )


def _family_of(protocol: Any) -> tuple[str, int | None] | None:
    """Return the family of a protocol, and its sizes if they are not by the rule."""
    if not isinstance(protocol, LocalProtocol):
        return None
    name = protocol_name(protocol)
    if type(protocol) is LocalHashing:
        name = "blh" if protocol.buckets == 2 else "olh"
    if name is None or name == "blh" or protocol.follows_rule:
        return None if name is None else (name, None)
    return None if protocol.structure is None else (name, protocol.structure)
