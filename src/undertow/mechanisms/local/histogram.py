r"""Histogram encodings: Laplace noise on a one-hot vector, summed or thresholded.

Both add Laplace noise of scale :math:`2/\varepsilon` to each of the m coordinates.
SHE sends the real vector; THE sends which coordinates pass a threshold, which is a
unary encoding and is drawn as one, exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._arrays import read_floats
from undertow._validate import check_index
from undertow.errors import MismatchError
from undertow.mechanisms.local.base import (
    Knowledge,
    LocalProtocol,
    advantage_up,
    disagreement,
    exact_odds,
    read_categories,
    read_knowledge,
    read_values,
)
from undertow.mechanisms.local.histogram_formula import (
    read_threshold,
    she_advantage,
    she_success,
    she_variation,
)
from undertow.mechanisms.local.unary import UnaryEncoding
from undertow.mechanisms.noise.draw import Draw
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.privacy.exact import Number
from undertow.privacy.loss import Pure
from undertow.privacy.result import Bound

__all__ = ["SummationHistogram", "ThresholdHistogram"]

# Real numbers held at a time by a simulated draw: 800 MB.
_LARGEST = 100_000_000


@dataclass(frozen=True, slots=True, init=False, repr=False)
class ThresholdHistogram(UnaryEncoding):
    r"""Thresholding with histogram encoding (THE), drawn as the bits it sends.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : int, float, str, Decimal or Fraction
        Loss of the noisy vector; positive, at most 10000.
    threshold : float, optional
        In (0, 1); by default :func:`~undertow.mechanisms.local.the_threshold`.

    Notes
    -----
    Both bit probabilities are rounded to rationals on the private side. The loss
    reported is that of the bits, which is below epsilon.

    Examples
    --------
    >>> ThresholdHistogram(10, 1).loss().epsilon < 1
    True
    """

    name: ClassVar[str] = "THE"
    monotone: ClassVar[bool] = False
    threshold: float

    def __init__(
        self,
        categories: SupportsIndex,
        epsilon: Number,
        *,
        threshold: float | None = None,
    ) -> None:
        level, _ = exact_odds(epsilon)
        cut = read_threshold(float(level), threshold)
        object.__setattr__(self, "threshold", cut)
        _, miss = exact_odds(level * (1 - Fraction(cut)) / 2)
        _, noise = exact_odds(level * Fraction(cut) / 2)
        m = read_categories(categories)
        self._keep_law(m, 1 - miss / 2, noise / 2, epsilon=level)


@dataclass(frozen=True, slots=True, init=False, repr=False)
class SummationHistogram(LocalProtocol):
    r"""Summation with histogram encoding (SHE): a noisy real vector.

    Parameters
    ----------
    categories : int
        The m; at least two.
    epsilon : int, float, str, Decimal or Fraction
        Loss; positive, at most 10000.

    Notes
    -----
    Real noise is for studies only: `sample` needs a simulated source. To release, use
    :class:`ThresholdHistogram`, whose bits are exact. `support_counts` adds the vectors
    up; the attack reads which coordinates are the most likely.

    Examples
    --------
    >>> round(SummationHistogram(100, 3).attack_success(), 8)
    0.04481685
    """

    name: ClassVar[str] = "SHE"
    measure: ClassVar[str] = "lebesgue"
    categories: int
    epsilon: Fraction

    def __init__(self, categories: SupportsIndex, epsilon: Number) -> None:
        object.__setattr__(self, "categories", read_categories(categories))
        object.__setattr__(self, "epsilon", exact_odds(epsilon)[0])

    @property
    def keep(self) -> Fraction:
        """Mean of the true coordinate."""
        return Fraction(1)

    @property
    def noise(self) -> Fraction:
        """Mean of another coordinate."""
        return Fraction(0)

    def loss(self) -> Pure:
        """Return the local loss: two coordinates move by 1, the scale is 2/epsilon."""
        return Pure(self.epsilon)

    def total_variation(self) -> float:
        """Return the total variation between two categories, rounded up."""
        return she_variation(float(self.epsilon))

    def attack_success(self) -> float:
        """Return the success of the most likely guess, uniform prior."""
        return she_success(self.categories, float(self.epsilon))

    def advantage_bound(
        self, prior: ArrayLike | None = None, *, knowledge: Knowledge = "none"
    ) -> Bound:
        """Bound the reconstruction advantage.

        Exact for the uniform prior without knowledge, and for two categories; otherwise
        the total variation times the chance that two draws of the prior differ (thesis,
        Theorem 5.2).
        """
        m = self.categories
        if read_knowledge(knowledge) == "none" and prior is None:
            value = she_advantage(m, float(self.epsilon))
            return self._bound(value, "Local protocols, Proposition 5")
        value = advantage_up(self.total_variation() * disagreement(prior, m))
        tight = True if m == 2 else None
        return self._bound(value, "thesis, Theorem 5.2", tight=tight)

    def log_density(self, reports: Any, given: SupportsIndex) -> NDArray[np.float64]:
        """Return the log density of each real vector."""
        truth = check_index(given, "given", size=self.categories)
        table = self._read(reports)
        rate = float(self.epsilon) / 2.0
        distance = np.abs(table).sum(axis=1) - np.abs(table[:, truth])
        distance += np.abs(table[:, truth] - 1.0)
        return np.asarray(self.categories * math.log(rate / 2.0) - rate * distance)

    def sample(
        self, values: ArrayLike, *, source: SimulatedSource | None = None
    ) -> Draw:
        """Draw one real vector per client; at most 1e8 numbers at a time."""
        truths, m = read_values(values, self.categories), self.categories
        if not isinstance(source, SimulatedSource):
            raise TypeError(
                "source must be a SimulatedSource, got "
                f"{type(source).__name__}; to release, use ThresholdHistogram."
            )
        if len(truths) * m > _LARGEST:
            raise ValueError(
                f"values must be at most {_LARGEST // m} clients at a time, got "
                f"{len(truths)}; draw and sum them in batches."
            )
        noise = source.continuous_laplace(2 / self.epsilon, len(truths) * m).values
        table = noise.reshape(len(truths), m).copy()
        table[np.arange(len(truths)), truths] += 1.0
        return Draw(table, source.simulated, source.name)

    def support(self, reports: Any) -> NDArray[np.bool_]:
        """Return which categories are the most likely ones of each report."""
        score = np.clip(self._read(reports), 0.0, 1.0)
        return np.asarray(score == score.max(axis=1, keepdims=True))

    def support_counts(self, reports: Any) -> NDArray[Any]:
        """Return the sum of the vectors."""
        return np.asarray(self._read(reports).sum(axis=0))

    def report_variance(self, frequency: ArrayLike) -> NDArray[np.float64]:
        """Return the variance of one coordinate, the same at every frequency."""
        return np.full(np.shape(frequency), 8.0 / float(self.epsilon) ** 2)

    def _read(self, reports: Any) -> NDArray[np.float64]:
        table = read_floats(reports, "reports")
        if table.ndim != 2 or table.shape[1] != self.categories:
            raise MismatchError(
                f"reports must be rows of {self.categories} numbers, got shape "
                f"{table.shape}."
            )
        if not np.isfinite(table).all():
            raise MismatchError("reports must be finite numbers, got others.")
        return table
