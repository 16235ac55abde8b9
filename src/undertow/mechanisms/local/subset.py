r"""Subset selection: report a set that is likelier to hold the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_index
from undertow.mechanisms.local._coins import bernoulli
from undertow.mechanisms.local._sets import sample_sets
from undertow.mechanisms.local.base import (
    Knowledge,
    LocalProtocol,
    UniformSource,
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
from undertow.mechanisms.local.subset_formula import (
    read_subset,
    subset_advantage,
    subset_success,
    subset_variation,
)
from undertow.mechanisms.noise.bits import bits_of
from undertow.mechanisms.noise.draw import Draw
from undertow.mechanisms.noise.secure import read_source
from undertow.mechanisms.randomized_response import RandomizedResponse
from undertow.privacy.exact import Number
from undertow.privacy.loss import Pure
from undertow.privacy.result import Bound

__all__ = ["SubsetSelection"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SubsetSelection(LocalProtocol):
    r"""Subset selection over 0, ..., m - 1.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : int, float, str, Decimal or Fraction
        Largest loss allowed; positive, at most 10000.
    subset : int, optional
        The size :math:`\omega`, below m; by default
        :func:`~undertow.mechanisms.local.subset_size`. A calibrated level must come
        with its own size.

    Notes
    -----
    The set holds the truth with the rational probability
    :math:`\omega/(\omega + (m-\omega) r)`, r being :math:`e^{-\varepsilon}` rounded up,
    and the loss is exactly :math:`-\ln r`. Size 1 is generalised randomised response.
    A report is a row of packed bits.

    References
    ----------
    .. [1] S. Wang et al., *Mutual Information Optimally Local Private Discrete
       Distribution Estimation*, 2016.
    .. [2] M. Ye and A. Barg, *Optimal Schemes for Discrete Distribution Estimation
       under Locally Differential Privacy*, IEEE Trans. Inf. Theory 64, 2018.

    Examples
    --------
    >>> protocol = SubsetSelection(10, 1)
    >>> protocol.subset, round(float(protocol.keep), 6)
    (2, 0.40461)
    """

    name: ClassVar[str] = "SS"
    monotone: ClassVar[bool] = False
    categories: int
    epsilon: Fraction
    odds: Fraction
    subset: int

    def __init__(
        self,
        categories: SupportsIndex,
        epsilon: Number,
        *,
        subset: int | None = None,
    ) -> None:
        m = read_categories(categories)
        level, odds = exact_odds(epsilon)
        object.__setattr__(self, "categories", m)
        object.__setattr__(self, "epsilon", level)
        object.__setattr__(self, "odds", odds)
        object.__setattr__(self, "subset", read_subset(m, float(level), subset))

    @property
    def keep(self) -> Fraction:
        """Probability that the set holds the truth."""
        m, size = self.categories, self.subset
        return size / (size + (m - size) * self.odds)

    @property
    def noise(self) -> Fraction:
        """Probability that the set holds one given other category."""
        return (self.subset - self.keep) / (self.categories - 1)

    def loss(self) -> Pure:
        """Return the local loss between any two categories, rounded up."""
        return RandomizedResponse(2, self.epsilon).loss()

    def total_variation(self) -> float:
        """Return the total variation between two categories, rounded up."""
        return subset_variation(
            self.categories, float(self.epsilon), subset=self.subset
        )

    def attack_success(self) -> float:
        """Return how often a uniform element of the set is the truth, uniform prior."""
        return subset_success(self.categories, float(self.epsilon), subset=self.subset)

    def advantage_bound(
        self, prior: ArrayLike | None = None, *, knowledge: Knowledge = "none"
    ) -> Bound:
        """Bound the reconstruction advantage; exact for every prior."""
        value = subset_advantage(
            self.categories,
            float(self.epsilon),
            subset=self.subset,
            prior=prior,
            knowledge=knowledge,
        )
        return self._bound(
            value, "Local protocols, Proposition 3 (thesis, Example 5.6)"
        )

    def log_density(self, reports: Any, given: SupportsIndex) -> NDArray[np.float64]:
        """Return the log probability of each packed set; minus infinity off size."""
        truth = check_index(given, "given", size=self.categories)
        table = read_words(reports, self.categories)
        inside = bits_at(table, np.full(len(table), truth))
        others, size = self.categories - 1, self.subset
        held = log_fraction(self.keep) - _log_binomial(others, size - 1)
        missed = log_fraction(1 - self.keep) - _log_binomial(others, size)
        law = np.where(inside, held, missed)
        return np.where(count_bits(table) == size, law, -np.inf)

    def sample(self, values: ArrayLike, *, source: UniformSource | None = None) -> Draw:
        """Draw one packed set per client, with exactly the stated law."""
        truths, origin = read_values(values, self.categories), read_source(source)
        bits, m = bits_of(origin), self.categories
        held = bernoulli(self.keep, len(truths), bits=bits)
        table = sample_sets(truths, self.subset - held, categories=m, bits=bits)
        set_bits(table, truths, held)
        return Draw(table, origin.simulated, origin.name)

    def support(self, reports: Any) -> NDArray[np.bool_]:
        """Return the table (report, category): membership in the set."""
        return unpack(read_words(reports, self.categories), self.categories)

    def support_counts(self, reports: Any) -> NDArray[Any]:
        """Return how many sets hold each category."""
        return column_counts(read_words(reports, self.categories), self.categories)

    def _shape(self) -> tuple[tuple[str, float], ...]:
        return (("subset", self.subset),)


def _log_binomial(n: int, k: int) -> float:
    """Return the log of a binomial coefficient, exactly rounded but for the log."""
    return math.log(math.comb(n, k))
