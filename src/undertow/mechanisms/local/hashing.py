r"""Local hashing: randomised response on the bucket of a public random hash.

Each report carries the seed of its hash, so the attacker knows the function. With a
fully random hash the protocol is a unary encoding in disguise: the bits
:math:`[H(x) = \theta]` have :math:`p = p_g` and :math:`q = 1/g`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice, check_count, check_index
from undertow.errors import MismatchError
from undertow.mechanisms.base import PRECISE
from undertow.mechanisms.local._bitset import respond
from undertow.mechanisms.local.base import (
    Knowledge,
    LocalProtocol,
    advantage_up,
    disagreement,
    log_fraction,
    read_categories,
    read_knowledge,
    read_level,
    read_prior,
    read_values,
)
from undertow.mechanisms.local.unary import unary_from_gap, unary_success
from undertow.mechanisms.noise.bits import bits_of
from undertow.mechanisms.noise.draw import Draw, UniformSource
from undertow.mechanisms.noise.secure import read_source
from undertow.mechanisms.randomized_response import (
    exact_odds,
    response_loss,
    truth_share,
)
from undertow.numeric.array import complements
from undertow.numeric.exact import Number
from undertow.privacy.loss import Pure
from undertow.results import Bound

REPORT = np.dtype([("seed", "<u8"), ("bucket", "<u4")])
"""A report: the seed of the hash, and the noisy bucket."""

_LARGEST = 1 << 31


def hash_bucket(
    seeds: ArrayLike, values: ArrayLike, *, buckets: int
) -> NDArray[np.int64]:
    """Return the bucket of each value under the hash of each seed.

    Output `value` of the generator SplitMix64 started at the seed, modulo the number of
    buckets: a fixed public function, not an ideal one.

    Parameters
    ----------
    seeds : array_like of int
        64-bit seeds, broadcast against `values`.
    values : array_like of int
        Categories.
    buckets : int
        The g.

    Returns
    -------
    ndarray of int
        In 0, ..., g - 1; at least one dimension.

    Notes
    -----
    The bias of the remainder is below :math:`g/2^{64}`.

    Examples
    --------
    >>> hash_bucket(7, [0, 1, 2, 3], buckets=5).shape
    (4,)
    """
    g = check_count(buckets, "buckets")
    # Arrays of at least one dimension, whose products wrap around silently.
    state = np.atleast_1d(np.asarray(values)).astype(np.uint64) + np.uint64(1)
    word = state * np.uint64(0x9E3779B97F4A7C15) + np.asarray(seeds, dtype=np.uint64)
    word ^= word >> np.uint64(30)
    word *= np.uint64(0xBF58476D1CE4E5B9)
    word ^= word >> np.uint64(27)
    word *= np.uint64(0x94D049BB133111EB)
    word ^= word >> np.uint64(31)
    # The remainder: a division by one number is much faster.
    quotient = word // np.uint64(g)
    quotient *= np.uint64(g)
    word -= quotient
    return word.astype(np.int64)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class LocalHashing(LocalProtocol):
    r"""Local hashing with a given number of buckets.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : int, float, str, Decimal or Fraction
        Largest loss allowed; positive, at most 10000.
    buckets : int
        The g, from 2 to :math:`2^{31}`.

    Notes
    -----
    The loss holds for every hash function, as randomised response on the bucket has it.
    `keep`, `noise` and what is estimated with them assume an ideal hash; a report is a
    pair of seed and bucket (`REPORT`).

    References
    ----------
    .. [1] R. Bassily and A. Smith, *Local, Private, Efficient Protocols for Succinct
       Histograms*, STOC, 2015.
    .. [2] T. Wang, J. Blocki, N. Li and S. Jha, *Locally Differentially Private
       Protocols for Frequency Estimation*, USENIX Security, 2017.

    Examples
    --------
    >>> protocol = LocalHashing(100, 3, buckets=8)
    >>> round(float(protocol.keep), 6), float(protocol.noise)
    (0.741559, 0.125)
    """

    name: ClassVar[str] = "LH"
    categories: int
    epsilon: Fraction
    odds: Fraction
    buckets: int

    def __init__(
        self, categories: SupportsIndex, epsilon: Number, *, buckets: int
    ) -> None:
        level, odds = exact_odds(epsilon)
        if check_count(buckets, "buckets", minimum=2) > _LARGEST:
            raise ValueError(
                "buckets must be at most 2**31, got more; give fewer buckets or use "
                "OptimizedUnary, which has nearly the same accuracy."
            )
        object.__setattr__(self, "categories", read_categories(categories))
        object.__setattr__(self, "epsilon", level)
        object.__setattr__(self, "odds", odds)
        object.__setattr__(self, "buckets", int(buckets))

    @property
    def keep(self) -> Fraction:
        """Probability that the report is the bucket of the truth."""
        return truth_share(self.odds, self.buckets)

    @property
    def noise(self) -> Fraction:
        """Probability that it is the bucket of one other category; ideal hash."""
        return Fraction(1, self.buckets)

    @property
    def structure(self) -> int:
        """The number of buckets."""
        return self.buckets

    @property
    def follows_rule(self) -> bool:
        """Whether the buckets are those of optimised hashing."""
        return self.buckets == hash_buckets(float(self.epsilon))

    def loss(self) -> Pure:
        """Return the local loss between any two categories, rounded up."""
        return Pure(response_loss(self.epsilon))

    def total_variation(self) -> float:
        """Return a total variation that holds for every hash, rounded up."""
        level = float(self.epsilon)
        return hashing_variation(level, buckets=self.buckets, ideal=False)

    def attack_success(self) -> float:
        """Return the success of the simple attack; uniform prior, ideal hash."""
        level = float(self.epsilon)
        return hashing_success(self.categories, level, buckets=self.buckets)

    def advantage_bound(
        self, prior: ArrayLike | None = None, *, knowledge: Knowledge = "none"
    ) -> Bound:
        r"""Bound the reconstruction advantage, whatever the hash.

        Notes
        -----
        Full knowledge: :math:`(p_g-q_g)\min(1-\kappa_\pi, 1-1/g)`. No knowledge: the
        smaller of that and :math:`p_g - q_g` times the sum of the g largest
        :math:`\pi_x(1-\pi_x)`; for the uniform prior,
        :math:`(p_g-q_g)(\min(g,m)-1)/m`. Proved on the page *Local protocols*.
        """
        m, gap = self.categories, self.total_variation()
        share = min(disagreement(prior, m), 1.0 - 1.0 / self.buckets)
        if read_knowledge(knowledge) == "none" and prior is None:
            share = (min(self.buckets, m) - 1) / m
        elif knowledge == "none":
            masses = read_prior(prior, m)
            best = np.sort(masses * complements(masses))[::-1][: self.buckets]
            share = min(share, math.fsum(best.tolist()))
        value = advantage_up(gap * share)
        return self._bound(value, "Local protocols, Proposition 4", tight=None)

    def log_density(self, reports: Any, given: SupportsIndex) -> NDArray[np.float64]:
        """Return the log probability of each pair of seed and bucket."""
        truth = check_index(given, "given", size=self.categories)
        told = self._read(reports)
        home = hash_bucket(told["seed"], truth, buckets=self.buckets)
        bucket = np.where(
            home == told["bucket"],
            log_fraction(self.keep),
            log_fraction(self.odds * self.keep),
        )
        return np.asarray(bucket - 64 * math.log(2.0))

    def sample(self, values: ArrayLike, *, source: UniformSource | None = None) -> Draw:
        """Draw one pair of fresh seed and noisy bucket per client."""
        truths, origin = read_values(values, self.categories), read_source(source)
        bits, count = bits_of(origin), len(truths)
        reports = np.empty(count, dtype=REPORT)
        reports["seed"] = seeds = bits.words(4 * count).view(np.uint64)
        home = hash_bucket(seeds, truths, buckets=self.buckets)
        told = respond(home, self.keep, among=self.buckets, bits=bits)
        reports["bucket"] = told
        return Draw(reports, origin.simulated, origin.name)

    def support(self, reports: Any) -> NDArray[np.bool_]:
        """Return the table (report, category): which hash to the bucket."""
        told = self._read(reports)
        values = np.arange(self.categories)
        homes = hash_bucket(told["seed"][:, None], values, buckets=self.buckets)
        return np.asarray(homes == told["bucket"][:, None])

    def listed_outputs(self) -> NDArray[Any]:
        """Refuse a list: a report carries one of 2^64 seeds."""
        raise self._no_list(
            "a report names a hash function, whose law the family of hashes decides"
        )

    def _shape(self) -> tuple[tuple[str, float], ...]:
        return (("buckets", self.buckets),)

    def _read(self, reports: Any) -> NDArray[Any]:
        told = np.asarray(reports)
        if told.dtype != REPORT or np.any(told["bucket"] >= self.buckets):
            raise MismatchError(
                f"reports must be pairs of a seed and one of {self.buckets} buckets."
            )
        return told


@dataclass(frozen=True, slots=True, init=False, repr=False)
class BinaryHashing(LocalHashing):
    """Binary local hashing (BLH): two buckets.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : int, float, str, Decimal or Fraction
        Largest loss allowed; positive, at most 10000.

    Examples
    --------
    >>> round(BinaryHashing(10, 1).attack_success(), 8)
    0.14612146
    """

    name: ClassVar[str] = "BLH"
    follows_rule = True

    def __init__(self, categories: SupportsIndex, epsilon: Number) -> None:
        LocalHashing.__init__(self, categories, epsilon, buckets=2)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class OptimizedHashing(LocalHashing):
    r"""Optimised local hashing (OLH): about :math:`e^\varepsilon + 1` buckets.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : int, float, str, Decimal or Fraction
        Largest loss allowed; positive, at most 21, beyond which the buckets are too
        many.

    Notes
    -----
    The number of buckets steps with epsilon and the advantage may drop where it does.

    Examples
    --------
    >>> OptimizedHashing(100, 3).buckets
    21
    """

    name: ClassVar[str] = "OLH"
    monotone: ClassVar[bool] = False

    def __init__(self, categories: SupportsIndex, epsilon: Number) -> None:
        level, _ = exact_odds(epsilon)
        buckets = hash_buckets(float(level))
        LocalHashing.__init__(self, categories, level, buckets=buckets)


_GUARD = Decimal("1e-9")


def hash_buckets(epsilon: float, *, rule: Literal["floor", "nearest"] = "floor") -> int:
    r"""Return the number of buckets of optimised local hashing.

    .. math:: g = \lfloor e^\varepsilon + 1 \rfloor

    Parameters
    ----------
    epsilon : float
        Non-negative and finite.
    rule : {"floor", "nearest"}
        Rounding; published curves differ in it.

    Returns
    -------
    int
        At least two.

    Notes
    -----
    The floor is taken after adding 1e-9, so that exact powers survive their rounding.

    Examples
    --------
    >>> hash_buckets(1.0), hash_buckets(1.0, rule="nearest"), hash_buckets(math.log(3))
    (3, 4, 4)
    """
    level = read_level(epsilon)
    check_choice(rule, "rule", choices=("floor", "nearest"))
    if level == math.inf:
        raise ValueError("epsilon must be finite, got inf; there are no more buckets.")
    shift = _GUARD if rule == "floor" else Decimal("0.5")
    return int(PRECISE.add(PRECISE.exp(Decimal(level)), 1 + shift))


def hashing_variation(epsilon: float, *, buckets: int, ideal: bool = True) -> float:
    r"""Return the total variation of local hashing, rounded up.

    .. math:: (p_g - q_g)(1 - 1/g) = p_g - 1/g

    Parameters
    ----------
    epsilon : float
        Non-negative.
    buckets : int
        The g; at least two.
    ideal : bool
        Whether any two categories collide with probability exactly 1/g. Otherwise
        :math:`p_g - q_g`, which holds for every hash.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 4.

    Examples
    --------
    >>> round(hashing_variation(1.0, buckets=3), 7)
    0.2427836
    """
    level, g = read_level(epsilon), check_count(buckets, "buckets", minimum=2)
    return advantage_up(_gap(level, g) * (1.0 - _inverse(g) if ideal else 1.0))


def hashing_success(
    categories: SupportsIndex, epsilon: float, *, buckets: int
) -> float:
    r"""Return the success of a uniform guess in the reported bucket, rounded up.

    .. math:: p_g\,h(m, 1/g) + (1-p_g)(1-1/g)^{m-1}/m

    Uniform prior, ideal hash; the attack guesses uniformly where the bucket is empty.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    buckets : int
        The g; at least two.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 4. Optimal under the
    uniform prior; assumed and not checkable: an ideal hash.

    Examples
    --------
    >>> round(hashing_success(10, 1.0, buckets=2), 8)
    0.14612146
    """
    m, level = read_categories(categories), read_level(epsilon)
    g = check_count(buckets, "buckets", minimum=2)
    return unary_success(m, keep=1.0 / (1.0 + _scaled(level, g)), noise=_inverse(g))


def hashing_advantage(
    categories: SupportsIndex,
    epsilon: float,
    *,
    buckets: int,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    r"""Return the largest advantage against local hashing with an ideal hash.

    Uniform prior, no knowledge: :math:`\frac{p_g-q_g}{m}(g(1-(1-1/g)^m) - 1)`; full
    knowledge: :math:`(p_g-q_g)(1-1/g)(1-\kappa_\pi)`. For any prior it is that of the
    unary encoding with :math:`p = p_g` and :math:`q = 1/g`.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        Non-negative.
    buckets : int
        The g; at least two.
    prior : array_like of shape (m,), optional
        Uniform by default.
    knowledge : {"none", "full"}
        What the attacker knows of the target.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*. Assumed and not checkable: fully independent
    uniform hash values (pairwise is enough with full knowledge); a guarantee that
    needs no such assumption is that of
    :class:`~undertow.mechanisms.local.LocalHashing`. With g growing
    with epsilon the value is not monotone: it drops where g jumps. O(m log m).

    Examples
    --------
    >>> round(hashing_advantage(3, 1.0, buckets=2), 6)
    0.115529
    """
    m, level = read_categories(categories), read_level(epsilon)
    g = check_count(buckets, "buckets", minimum=2)
    gap, rate = _gap(level, g) * (1.0 - _inverse(g)), _inverse(g)
    return unary_from_gap(m, gap, noise=rate, prior=prior, knowledge=knowledge)


def _scaled(level: float, g: int) -> float:
    """Return (g - 1) e^-epsilon, for g beyond the range of floats too."""
    return math.exp(math.log(g - 1) - level)


def _gap(level: float, g: int) -> float:
    """Return p_g - q_g."""
    return -math.expm1(-level) / (1.0 + _scaled(level, g))


def _inverse(g: int) -> float:
    return 1.0 / g if g.bit_length() < 1000 else 0.0
