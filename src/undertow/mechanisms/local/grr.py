r"""Generalised randomised response: the category itself, or a uniform other one."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_index
from undertow.mechanisms.local._coins import respond
from undertow.mechanisms.local.base import (
    Knowledge,
    LocalProtocol,
    UniformSource,
    exact_odds,
    log_fraction,
    read_categories,
    read_knowledge,
    read_values,
)
from undertow.mechanisms.local.grr_formula import (
    grr_advantage,
    grr_success,
    grr_variation,
)
from undertow.mechanisms.noise.bits import bits_of
from undertow.mechanisms.noise.draw import Draw
from undertow.mechanisms.noise.secure import read_source
from undertow.mechanisms.randomized_response import RandomizedResponse
from undertow.privacy.exact import Number
from undertow.privacy.loss import Pure
from undertow.privacy.result import Bound

__all__ = ["GeneralizedResponse"]


@dataclass(frozen=True, slots=True, init=False, repr=False)
class GeneralizedResponse(LocalProtocol):
    r"""Generalised (k-ary) randomised response over 0, ..., m - 1, at scale.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : int, float, str, Decimal or Fraction
        Largest loss allowed; positive, at most 10000.

    Notes
    -----
    The law is that of :class:`~undertow.mechanisms.RandomizedResponse`, its rational
    odds included; what is added is a sampler over arrays and the closed forms of the
    attack. A report is an integer.

    Examples
    --------
    >>> from undertow.mechanisms import SimulatedSource
    >>> protocol = GeneralizedResponse(5, 2)
    >>> protocol.sample([0, 1, 4], source=SimulatedSource(1)).values.shape
    (3,)
    """

    name = "GRR"
    categories: int
    epsilon: Fraction
    odds: Fraction

    def __init__(self, categories: SupportsIndex, epsilon: Number) -> None:
        object.__setattr__(self, "categories", read_categories(categories))
        level, odds = exact_odds(epsilon)
        object.__setattr__(self, "epsilon", level)
        object.__setattr__(self, "odds", odds)

    @property
    def keep(self) -> Fraction:
        """Probability of the truth."""
        return 1 / (1 + (self.categories - 1) * self.odds)

    @property
    def noise(self) -> Fraction:
        """Probability of one given other category."""
        return self.odds * self.keep

    def loss(self) -> Pure:
        """Return the local loss between any two categories, rounded up."""
        return RandomizedResponse(2, self.epsilon).loss()

    def total_variation(self) -> float:
        """Return the total variation between two categories, rounded up."""
        return grr_variation(self.categories, float(self.epsilon))

    def attack_success(self) -> float:
        """Return how often the report is the truth."""
        return grr_success(self.categories, float(self.epsilon))

    def advantage_bound(
        self, prior: ArrayLike | None = None, *, knowledge: Knowledge = "none"
    ) -> Bound:
        """Bound the reconstruction advantage; exact for every prior."""
        read_knowledge(knowledge)
        value = grr_advantage(self.categories, float(self.epsilon), prior=prior)
        return self._bound(
            value, "Local protocols, Proposition 1 (thesis, Example 5.4)"
        )

    def log_density(
        self, reports: ArrayLike, given: SupportsIndex
    ) -> NDArray[np.float64]:
        """Return the log probability of each report."""
        truth = check_index(given, "given", size=self.categories)
        same = read_values(reports, self.categories) == truth
        return np.where(same, log_fraction(self.keep), log_fraction(self.noise))

    def sample(self, values: ArrayLike, *, source: UniformSource | None = None) -> Draw:
        """Draw one report per client, with exactly the stated probabilities."""
        truths, origin = read_values(values, self.categories), read_source(source)
        bits = bits_of(origin)
        reports = respond(truths, self.keep, among=self.categories, bits=bits)
        return Draw(reports, origin.simulated, origin.name)

    def support(self, reports: Any) -> NDArray[np.bool_]:
        """Return the table (report, category): the report itself."""
        told = read_values(reports, self.categories)
        return np.asarray(told[:, None] == np.arange(self.categories))

    def support_counts(self, reports: Any) -> NDArray[Any]:
        """Return how often each category was reported; O(reports)."""
        told = read_values(reports, self.categories)
        counts = np.bincount(told, minlength=self.categories)
        return counts.astype(np.int64)

    def sample_guesses(
        self, reports: Any, *, rng: np.random.Generator | None = None
    ) -> NDArray[np.int64]:
        """Return the guesses of the simple attack: the reports."""
        return read_values(reports, self.categories)
