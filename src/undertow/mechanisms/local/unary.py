r"""Unary encodings: one noisy bit per category (SUE, OUE and any pair p, q)."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_index
from undertow.mechanisms.local._coins import bernoulli, sample_rows
from undertow.mechanisms.local.base import (
    Knowledge,
    LocalProtocol,
    UniformSource,
    advantage_up,
    exact_odds,
    log_fraction,
    read_categories,
    read_values,
)
from undertow.mechanisms.local.packed import (
    bits_at,
    column_counts,
    count_bits,
    read_words,
    set_bits,
    unpack,
)
from undertow.mechanisms.local.unary_formula import unary_from_gap, unary_success
from undertow.mechanisms.noise.bits import bits_of
from undertow.mechanisms.noise.draw import Draw, read_probability
from undertow.mechanisms.noise.secure import read_source
from undertow.mechanisms.values import PRECISE, decimal_up
from undertow.privacy.exact import Number
from undertow.privacy.loss import Pure
from undertow.privacy.result import Bound

__all__ = ["OptimizedUnary", "SymmetricUnary", "UnaryEncoding"]


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
    (:mod:`undertow.mechanisms.local.packed`), drawn with exactly these probabilities;
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


def _bit_loss(p: Fraction, q: Fraction) -> Fraction:
    """Return the log of p (1 - q) / ((1 - p) q), rounded up."""
    ratio = p * (1 - q) / ((1 - p) * q)
    logs = [PRECISE.ln(Decimal(n)) for n in (ratio.numerator, ratio.denominator)]
    return decimal_up(PRECISE.subtract(logs[0], logs[1]))
