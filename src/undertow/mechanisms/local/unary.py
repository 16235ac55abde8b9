"""Unary encodings: one noisy bit per category (SUE, OUE and any pair p, q).

Bit x of the report of x is 1 with probability p, every other bit with probability q:
the closed forms give the advantage from the two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_index, check_probability
from undertow.mechanisms.base import PRECISE, decimal_up
from undertow.mechanisms.local._bitset import (
    bernoulli,
    bits_at,
    column_counts,
    count_bits,
    read_words,
    sample_rows,
    set_bits,
    unpack,
)
from undertow.mechanisms.local.base import (
    Knowledge,
    LocalProtocol,
    advantage_up,
    disagreement,
    log_fraction,
    ordered_masses,
    read_categories,
    read_knowledge,
    read_level,
    read_prior,
    read_values,
)
from undertow.mechanisms.noise.bits import bits_of
from undertow.mechanisms.noise.draw import Draw, UniformSource, read_probability
from undertow.mechanisms.noise.secure import read_source
from undertow.mechanisms.randomized_response import exact_odds
from undertow.numeric.array import Levels, functions_of
from undertow.numeric.exact import Number
from undertow.privacy.loss import Pure
from undertow.results import Bound

# Categories up to which all reports are listed.
_BITS = 12


@dataclass(frozen=True, slots=True, init=False, repr=False)
class UnaryEncoding(LocalProtocol):
    r"""Independent bits, the true one with probability p, the others with q.

    Parameters
    ----------
    categories : int
        The m; at least two.
    keep, noise : int, float, str, Decimal or Fraction
        The p and q, read exactly; :math:`0 < q < p < 1`.

    Notes
    -----
    The loss is exactly :math:`\ln\frac{p(1-q)}{(1-p)q}`, from the outputs with one
    of two given bits set. A report is a row of packed bits
    (:mod:`undertow.mechanisms.local._bitset`), drawn with exactly these probabilities;
    its probability depends on the true bit and on the number of ones, so no table of
    :math:`2^m` outputs is ever needed.

    Examples
    --------
    >>> protocol = UnaryEncoding(4, keep="0.75", noise="0.25")
    >>> round(protocol.loss().epsilon, 12), round(protocol.total_variation(), 9)
    (2.197224577336, 0.5)
    """

    name: ClassVar[str] = "UE"
    categories: int
    epsilon: Fraction
    p: Fraction
    q: Fraction

    def __init__(
        self, categories: SupportsIndex, *, keep: Number, noise: Number
    ) -> None:
        p, q = read_probability(keep, "keep"), read_probability(noise, "noise")
        if not 0 < q < p < 1:
            raise ValueError(
                "keep and noise must satisfy 0 < noise < keep < 1, "
                f"got {float(p)} and {float(q)}."
            )
        self._keep_law(read_categories(categories), p, q, epsilon=_bit_loss(p, q))

    def _keep_law(
        self, categories: int, p: Fraction, q: Fraction, *, epsilon: Fraction
    ) -> None:
        object.__setattr__(self, "categories", categories)
        object.__setattr__(self, "epsilon", epsilon)
        object.__setattr__(self, "p", p)
        object.__setattr__(self, "q", q)

    @property
    def keep(self) -> Fraction:
        """Probability p that the true bit is 1."""
        return self.p

    @property
    def noise(self) -> Fraction:
        """Probability q that another bit is 1."""
        return self.q

    def loss(self) -> Pure:
        """Return the local loss between any two categories, rounded up."""
        return Pure(min(_bit_loss(self.p, self.q), self.epsilon))

    def total_variation(self) -> float:
        """Return :math:`p - q`, rounded up."""
        return advantage_up(float(self.p - self.q))

    def attack_success(self) -> float:
        """Return how often a uniform one-bit is the truth, uniform prior."""
        return unary_success(self.categories, keep=float(self.p), noise=float(self.q))

    def advantage_bound(
        self, prior: ArrayLike | None = None, *, knowledge: Knowledge = "none"
    ) -> Bound:
        """Bound the reconstruction advantage; exact for every prior."""
        value = unary_from_gap(
            self.categories,
            float(self.p - self.q),
            noise=float(self.q),
            prior=prior,
            knowledge=knowledge,
        )
        return self._bound(
            value, "Local protocols, Proposition 2 (thesis, Example 5.5)"
        )

    def log_density(self, reports: Any, given: SupportsIndex) -> NDArray[np.float64]:
        """Return the log probability of each packed report; O(m/32) each."""
        truth = check_index(given, "given", size=self.categories)
        table = read_words(reports, self.categories)
        bit = bits_at(table, np.full(len(table), truth)).astype(np.int64)
        others = count_bits(table) - bit
        own = np.where(bit, log_fraction(self.p), log_fraction(1 - self.p))
        zeros = self.categories - 1 - others
        noise, silence = log_fraction(self.q), log_fraction(1 - self.q)
        return np.asarray(own + others * noise + zeros * silence)

    def sample(self, values: ArrayLike, *, source: UniformSource | None = None) -> Draw:
        """Draw one row of packed bits per client; O(m/32) words each."""
        truths, origin = read_values(values, self.categories), read_source(source)
        count, bits = len(truths), bits_of(origin)
        rows = sample_rows(self.q, count, length=self.categories, bits=bits)
        set_bits(rows, truths, bernoulli(self.p, count, bits=bits))
        return Draw(rows, origin.simulated, origin.name)

    def _shape(self) -> tuple[tuple[str, float], ...]:
        return ("keep", float(self.p)), ("noise", float(self.q))

    def support(self, reports: Any) -> NDArray[np.bool_]:
        """Return the table (report, category): the bits."""
        return unpack(read_words(reports, self.categories), self.categories)

    def support_counts(self, reports: Any) -> NDArray[Any]:
        """Return the number of ones at each category."""
        return column_counts(read_words(reports, self.categories), self.categories)

    def listed_outputs(self) -> NDArray[np.uint32]:
        """Return the reports by number, the first category lowest; for up to 12."""
        self._require_few(self.categories * math.log10(2), limit=2**_BITS)
        return np.arange(2**self.categories, dtype="<u4")[:, None]

    def table(self, inputs: Sequence[int]) -> NDArray[np.float64]:
        """Return the probability of each report; every entry is correctly rounded.

        It depends on the true bit and on the number of ones among the others.
        """
        self.listed_outputs()  # refuses too many
        law = bits_table(self.categories, keep=self.keep, noise=self.noise)
        return np.ascontiguousarray(law[np.asarray(inputs)])


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SymmetricUnary(UnaryEncoding):
    r"""Symmetric unary encoding (SUE, basic RAPPOR): p = 1 - q.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : int, float, str, Decimal or Fraction
        Largest loss allowed; positive, at most 10000.

    Notes
    -----
    :math:`q = 1/(1+e^{\varepsilon/2})`, rounded to a rational on the private side.

    References
    ----------
    .. [1] U. Erlingsson, V. Pihur and A. Korolova, *RAPPOR: Randomized Aggregatable
       Privacy-Preserving Ordinal Response*, CCS, 2014.

    Examples
    --------
    >>> round(SymmetricUnary(10, 1).total_variation(), 10)
    0.2449186624
    """

    name: ClassVar[str] = "SUE"

    def __init__(self, categories: SupportsIndex, epsilon: Number) -> None:
        level, odds = exact_odds(epsilon)
        _, odds = exact_odds(level / 2)
        q = odds / (1 + odds)
        self._keep_law(read_categories(categories), 1 - q, q, epsilon=level)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class OptimizedUnary(UnaryEncoding):
    r"""Optimised unary encoding (OUE): p = 1/2, q = 1/(1 + e^ε).

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : int, float, str, Decimal or Fraction
        Largest loss allowed; positive, at most 10000.

    Notes
    -----
    q is rounded to a rational on the private side. The advantage without knowledge
    stays below 1/2 for every epsilon.

    References
    ----------
    .. [1] T. Wang, J. Blocki, N. Li and S. Jha, *Locally Differentially Private
       Protocols for Frequency Estimation*, USENIX Security, 2017.

    Examples
    --------
    >>> protocol = OptimizedUnary(10, 1)
    >>> round(protocol.advantage_bound().value, 9)
    0.080789798
    """

    name: ClassVar[str] = "OUE"

    def __init__(self, categories: SupportsIndex, epsilon: Number) -> None:
        level, odds = exact_odds(epsilon)
        q = odds / (1 + odds)
        self._keep_law(read_categories(categories), Fraction(1, 2), q, epsilon=level)


def bits_table(
    categories: int, *, keep: float | Fraction, noise: float | Fraction
) -> NDArray[np.float64]:
    """Return the law of independent bits for each category, reports by their number.

    Every entry is correctly rounded if the probabilities are fractions.
    """
    p, q, others = keep, noise, categories - 1
    chances = np.array(
        [
            [float(own * q**k * (1 - q) ** (others - k)) for k in range(others + 1)]
            for own in (1 - p, p)
        ]
    )
    numbers = np.arange(2**categories)
    own = numbers >> np.arange(categories)[:, None] & 1
    return np.asarray(chances[own, own.sum(axis=0) - own])


def _bit_loss(p: Fraction, q: Fraction) -> Fraction:
    """Return the log of p (1 - q) / ((1 - p) q), rounded up."""
    ratio = p * (1 - q) / ((1 - p) * q)
    logs = [PRECISE.ln(Decimal(n)) for n in (ratio.numerator, ratio.denominator)]
    return decimal_up(PRECISE.subtract(logs[0], logs[1]))


def inverse_mean(categories: int, rate: float) -> float:
    r"""Return :math:`E[1/(1+B)]` for B binomial over m - 1 tosses.

    .. math:: h(m, q) = \frac{1 - (1-q)^m}{mq}

    Examples
    --------
    >>> inverse_mean(5, 0.0), round(inverse_mean(2, 0.5), 12)
    (1.0, 0.75)
    """
    if rate == 0.0:
        return 1.0
    if rate == 1.0:
        return 1.0 / categories
    return -math.expm1(categories * math.log1p(-rate)) / (categories * rate)


def unary_success(categories: SupportsIndex, *, keep: float, noise: float) -> float:
    r"""Return how often a uniform one-bit is the truth, uniform prior, rounded up.

    .. math:: p\,h(m, q) + (1-p)(1-q)^{m-1}/m

    Parameters
    ----------
    categories : int
        The m; at least two.
    keep, noise : float
        The p and q, in [0, 1].

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Where no bit is 1 the attack guesses uniformly. It is optimal under the uniform
    prior if p is at least q.

    Examples
    --------
    >>> round(unary_success(10, keep=0.5, noise=0.2689414213699951), 8)
    0.1807898
    """
    m, p, q = _read_bits(categories, keep, noise)
    blank = 0.0 if q == 1.0 else math.exp((m - 1) * math.log1p(-q))
    return advantage_up(p * inverse_mean(m, q) + (1.0 - p) * blank / m)


def unary_advantage(
    categories: SupportsIndex,
    *,
    keep: float,
    noise: float,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    r"""Return the largest advantage against a unary encoding, rounded up.

    .. math:: \frac{p-q}{1-q} \sum_i (1-q)^{m-i} \pi_i
              \Bigl[(1-\pi_i) - q \sum_{z<i} \pi_z\Bigr],
              \quad \pi_1 \le \dots \le \pi_m

    without knowledge, and :math:`(p-q)(1-\kappa_\pi)` with full knowledge.

    Parameters
    ----------
    categories : int
        The m; at least two.
    keep, noise : float
        The p and q, with :math:`0 \le q \le p \le 1` and q below 1.
    prior : array_like of shape (m,), optional
        In any order; uniform by default.
    knowledge : {"none", "full"}
        What the attacker knows of the target.

    Returns
    -------
    float
        Exact up to a relative 1e-12, by which it is raised.

    Notes
    -----
    Thesis, Examples 5.5 and A.17 (there for one choice of p and q), whose order of the
    prior is ascending. Proved on the page *Local protocols*. O(m log m).

    Examples
    --------
    >>> q = 0.2689414213699951
    >>> round(unary_advantage(10, keep=0.5, noise=q), 9)
    0.080789798
    >>> round(unary_advantage(10, keep=0.5, noise=q, knowledge="full"), 9)
    0.207952721
    """
    m, p, q = _read_bits(categories, keep, noise)
    if not q <= p or q == 1.0:
        raise ValueError(
            f"keep must be at least noise and noise below 1, got {p} and {q}."
        )
    return unary_from_gap(m, p - q, noise=q, prior=prior, knowledge=knowledge)


def unary_from_gap(
    categories: int,
    gap: float,
    *,
    noise: float,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    """Return the advantage from :math:`p - q`, for callers who have it accurately."""
    read_knowledge(knowledge)
    m, q = categories, noise
    if knowledge == "full":
        return advantage_up(gap * disagreement(prior, m))
    if prior is None:
        # (1 - (1 - q)^(m-1)) / (m q), with its limit at q = 0
        return advantage_up(gap * (m - 1) / m * inverse_mean(m - 1, q))
    return advantage_up(gap * _ordered_sum(read_prior(prior, m), q), terms=m)


def _ordered_sum(prior: NDArray[np.float64], q: float) -> float:
    pi, below, above = ordered_masses(prior)
    later = np.arange(len(pi) - 1, -1, -1)  # m - i
    weights = np.exp((later - 1.0) * math.log1p(-q))
    return math.fsum((weights * pi * (above + (1.0 - q) * below)).tolist())


def _read_bits(
    categories: SupportsIndex, keep: float, noise: float
) -> tuple[int, float, float]:
    m = read_categories(categories)
    return m, check_probability(keep, "keep"), check_probability(noise, "noise")


def sue_gap(level: Levels) -> Levels:
    """Return p - q of symmetric unary encoding, to nearest."""
    gap: Levels = functions_of(level).tanh(level / 4.0)
    return gap


def oue_gap(level: Levels) -> Levels:
    """Return p - q of optimised unary encoding and of two buckets, to nearest."""
    gap: Levels = functions_of(level).tanh(level / 2.0) / 2.0
    return gap


def sue_variation(epsilon: float) -> float:
    r"""Return :math:`\tanh(\varepsilon/4)`, the total variation of SUE, rounded up.

    Parameters
    ----------
    epsilon : float
        In :math:`[0, \infty]`.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 2.

    Examples
    --------
    >>> round(sue_variation(1.0), 10)
    0.2449186624
    """
    return advantage_up(sue_gap(read_level(epsilon)))


def oue_variation(epsilon: float) -> float:
    r"""Return :math:`\tfrac12\tanh(\varepsilon/2)`, the total variation of OUE.

    Rounded up.

    Parameters
    ----------
    epsilon : float
        In :math:`[0, \infty]`.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 2.

    Examples
    --------
    >>> round(oue_variation(1.0), 10)
    0.2310585786
    """
    return min(0.5, advantage_up(oue_gap(read_level(epsilon))))


def sue_advantage(
    categories: SupportsIndex,
    epsilon: float,
    *,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    r"""Return the largest advantage against symmetric unary encoding, rounded up.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    prior : array_like of shape (m,), optional
        In any order; uniform by default.
    knowledge : {"none", "full"}
        What the attacker knows of the target.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 2.

    Examples
    --------
    >>> round(sue_advantage(10, 1.0), 6)
    0.063962
    """
    m, level = read_categories(categories), read_level(epsilon)
    q = 1.0 / (1.0 + _exp(level / 2.0))
    return unary_from_gap(m, sue_gap(level), noise=q, prior=prior, knowledge=knowledge)


def oue_advantage(
    categories: SupportsIndex,
    epsilon: float,
    *,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
) -> float:
    r"""Return the largest advantage against optimised unary encoding, rounded up.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : float
        In :math:`[0, \infty]`.
    prior : array_like of shape (m,), optional
        In any order; uniform by default.
    knowledge : {"none", "full"}
        What the attacker knows of the target.

    Returns
    -------
    float
        Raised by a relative 1e-12, which covers its rounding.

    Notes
    -----
    Thesis, Example 5.5. Uniform prior, no knowledge:
    :math:`\frac{e^\varepsilon-1}{2m}(1-(e^\varepsilon/(1+e^\varepsilon))^{m-1})`, at
    most :math:`(m-1)/2m` whatever epsilon is. That prior is not the worst.

    Examples
    --------
    >>> round(oue_advantage(11, 3.0), 6), round(oue_advantage(11, 1e4), 6)
    (0.333858, 0.454545)
    """
    m, level = read_categories(categories), read_level(epsilon)
    q = 1.0 / (1.0 + _exp(level))
    return unary_from_gap(m, oue_gap(level), noise=q, prior=prior, knowledge=knowledge)


def _exp(level: float) -> float:
    return math.exp(level) if level < 709.0 else math.inf
