r"""Laws of numbers with noise, and of numbers that rounding betrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr

from undertow._validate import check_index

__all__ = ["GaussianLaw", "LaplaceLaw", "TraceLaw"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LaplaceLaw:
    r"""Laplace noise around one answer for each input.

    Parameters
    ----------
    answers, scales : sequence of float
        One of each for each input; scales positive.

    Notes
    -----
    With equal scales b the density ratio is bounded by
    :math:`\max_{x,x'}|a_x - a_{x'}|/b`, attained outside the answers. With different
    scales it grows without bound in the tails: epsilon is infinite.

    Examples
    --------
    >>> LaplaceLaw((0, 1), (0.5, 0.5)).epsilon, LaplaceLaw((0, 0), (1, 2)).epsilon
    (2.0, inf)
    """

    answers: tuple[float, ...]
    scales: tuple[float, ...]

    @property
    def epsilon(self) -> float:
        """The largest log ratio of two densities."""
        if len(set(self.scales)) > 1:
            return math.inf
        return (max(self.answers) - min(self.answers)) / self.scales[0]

    def cdf(self, outputs: ArrayLike, value: int) -> Floats:
        """Return the probability of an output up to each of these."""
        number = check_index(value, "value", size=len(self.answers))
        noise = np.asarray(outputs, dtype=float) - self.answers[number]
        z = noise / self.scales[number]
        tail = np.exp(-np.abs(z)) / 2.0
        return np.asarray(np.where(z < 0, tail, 1.0 - tail))


@dataclass(frozen=True)
class GaussianLaw:
    """Gaussian noise of one deviation around one answer for each input.

    Parameters
    ----------
    answers : sequence of float
        One for each input.
    sigma : float
        The deviation; positive.

    Examples
    --------
    >>> law = GaussianLaw((0, 1), 2.0)
    >>> law.mu, law.epsilon
    (0.5, inf)
    """

    answers: tuple[float, ...]
    sigma: float

    @property
    def epsilon(self) -> float:
        """Infinite: the ratio of two densities grows without bound."""
        return math.inf

    @property
    def mu(self) -> float:
        """The largest distance of two answers in deviations."""
        return (max(self.answers) - min(self.answers)) / self.sigma

    def cdf(self, outputs: ArrayLike, value: int) -> Floats:
        """Return the probability of an output up to each of these."""
        number = check_index(value, "value", size=len(self.answers))
        noise = np.asarray(outputs, dtype=float) - self.answers[number]
        return np.asarray(ndtr(noise / self.sigma))


@dataclass(frozen=True)
class TraceLaw:
    """Outputs that bear a trace no run on one of the inputs can leave.

    Parameters
    ----------
    trace : callable
        From outputs to truth values.
    clean : int
        Number of the input whose outputs never bear the trace; some other input's do,
        with positive probability.
    """

    trace: Callable[[Any], NDArray[np.bool_]]
    clean: int

    @property
    def epsilon(self) -> float:
        """Infinite."""
        return math.inf
