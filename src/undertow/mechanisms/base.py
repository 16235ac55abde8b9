r"""What every mechanism says of itself: its loss, its exact output law, its sampler.

A mechanism is a frozen description. It reads *values* (query answers, scores, a
category), never a database: what a database costs is the loss here times the distance
between the two values, and that product is made by :mod:`undertow.composition`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import MismatchError
from undertow.mechanisms.noise.draw import Draw
from undertow.mechanisms.values import Floats, plain, subtract, total
from undertow.privacy.exact import Number
from undertow.privacy.loss import Loss
from undertow.spaces.base import Metric

__all__ = [
    "AdditiveMechanism",
    "ChoiceMechanism",
    "ChoiceSource",
    "Mechanism",
    "Support",
]


class ChoiceSource(Protocol):
    """A source that also tosses exact coins and draws uniform integers."""

    @property
    def name(self) -> str:
        """How the source names itself in a `Draw`."""

    @property
    def simulated(self) -> bool:
        """Whether the randomness is seeded."""

    def bernoulli_exp(self, x: Fraction, size: int) -> Draw:
        """Draw 1 with probability ``exp(-x)``, else 0."""

    def geometric(self, scale: Fraction, size: int) -> Draw:
        """Draw k = 0, 1, ... with probability proportional to ``exp(-k/scale)``."""

    def uniform(self, bound: int, size: int) -> Draw:
        """Draw integers uniform on 0, ..., bound - 1."""


@dataclass(frozen=True, slots=True)
class Support:
    """The set of possible outputs of one coordinate.

    Parameters
    ----------
    low, high : float
        Ends, included where finite.
    step : Fraction, optional
        Spacing of a lattice that contains 0; None for an interval of reals.
    """

    low: float = -math.inf
    high: float = math.inf
    step: Fraction | None = None

    def __contains__(self, output: float) -> bool:
        inside = self.low <= output <= self.high and math.isfinite(output)
        on_lattice = self.step is None or Fraction(output) % self.step == 0
        return bool(inside and on_lattice)


class Mechanism(ABC):
    """A frozen description of one randomised answer.

    Notes
    -----
    `loss` states what a unit of distance between the *values given* costs. A loss that
    holds for a whole pipeline does not hold for the mechanism inside it (thesis,
    Remark A.4), so nothing here can be inferred from a guarantee of the pipeline.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def measure(self) -> str:
        """What `log_density` is a density of.

        ``"lebesgue"``, ``"counting"``, or ``"mixed"``: Lebesgue inside an interval,
        counting at its two ends.
        """

    @abstractmethod
    def loss(self, metric: Metric) -> Loss:
        """Return the loss per unit of `metric` between two given values."""

    @abstractmethod
    def pair_loss(self, first: Any, second: Any) -> Loss:
        """Return the loss between two given values, exactly or rounded up."""

    @abstractmethod
    def log_density(self, output: Any, given: Any) -> Floats:
        """Return the log density of the output law, in the sense of `measure`."""

    @abstractmethod
    def cdf(self, output: Any, given: Any) -> Floats:
        """Return the probability that no coordinate exceeds `output`."""

    @abstractmethod
    def support(self, given: Any) -> Support | tuple[Hashable, ...]:
        """Return the possible outputs."""

    @abstractmethod
    def sample(self, values: Any, *, source: Any = None) -> Draw:
        """Draw an output; with no `source`, from operating-system entropy."""

    def log_pmf(self, output: Any, given: Any) -> Floats:
        """Return the log probability of an output; discrete laws only."""
        if self.measure != "counting":
            raise MismatchError(
                "a log_pmf must belong to a discrete law, got the "
                f"{self.measure} law of {type(self).__name__}; use log_density."
            )
        return self.log_density(output, given)


class AdditiveMechanism(Mechanism):
    """Independent symmetric noise added to each of `dimension` coordinates.

    Notes
    -----
    With one coordinate, an array of outputs is an array of scalars. With k > 1, the
    last axis of an array of outputs has length k and its law is the joint law.
    """

    __slots__ = ()
    dimension: int

    @abstractmethod
    def noise_log_density(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log density of one coordinate's noise."""

    @abstractmethod
    def noise_log_cdf(self, noise: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the log probability of noise at most `noise`, accurate in the tail."""

    @abstractmethod
    def accuracy(self, beta: Number) -> float:
        """Return the error reached with probability at most `beta`, rounded up."""

    @abstractmethod
    def confidence(self, alpha: Number) -> float:
        """Return the probability of an error of at least `alpha`, rounded up."""

    def log_density(self, output: ArrayLike, given: ArrayLike) -> Floats:
        """Return the log density of the output law, in the sense of `measure`."""
        noise = subtract(output, given, dimension=self.dimension)
        return total(self.noise_log_density(noise), dimension=self.dimension)

    def cdf(self, output: ArrayLike, given: ArrayLike) -> Floats:
        """Return the probability that no coordinate exceeds `output`."""
        noise = subtract(output, given, dimension=self.dimension)
        return plain(np.exp(total(self.noise_log_cdf(noise), dimension=self.dimension)))


class ChoiceMechanism(Mechanism):
    """A mechanism whose output is one of finitely many candidates."""

    __slots__ = ()
    measure = "counting"
    candidates: tuple[Hashable, ...]

    @abstractmethod
    def pmf(self, given: Any) -> NDArray[np.float64]:
        """Return the probability of each candidate, in order."""

    @abstractmethod
    def log_probabilities(self, given: Any) -> NDArray[np.float64]:
        """Return the log probability of each candidate, in order."""

    def log_density(self, output: Hashable, given: Any) -> float:
        """Return the log probability of one candidate."""
        return float(self.log_probabilities(given)[self._position(output)])

    def cdf(self, output: Hashable, given: Any) -> float:
        """Return the probability of the candidates up to `output`, in their order."""
        last = self._position(output)
        return min(1.0, math.fsum(self.pmf(given)[: last + 1].tolist()))

    def support(self, given: Any) -> tuple[Hashable, ...]:
        """Return the candidates: all of them, whatever was given."""
        return self.candidates

    def _position(self, output: Hashable) -> int:
        if output not in self.candidates:
            # The label may be a private value, so the message does not show it.
            raise ValueError(
                f"labels must be among the {len(self.candidates)} candidates."
            )
        return self.candidates.index(output)

    def _labels(self, indices: NDArray[Any], draw: Draw) -> Draw:
        labels = np.empty(len(indices), dtype=np.object_)
        for place, index in enumerate(indices.tolist()):
            labels[place] = self.candidates[index]
        return Draw(labels, draw.simulated, draw.source)
