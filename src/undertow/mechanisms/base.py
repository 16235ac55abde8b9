"""What every mechanism says of itself: its loss, its exact output law, its sampler.

A mechanism is a frozen description. It reads *values* (query answers, scores, a
category), never a database: what a database costs is the loss here times the distance
between the two values, and that product is made by :mod:`undertow.composition`.

Values are read exactly, and a loss in one norm becomes one in another by the least
constant between the two.
"""

from __future__ import annotations

import math
import numbers
from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import InfiniteLossError, MismatchError
from undertow.mechanisms.law import Floats, Law
from undertow.mechanisms.noise.draw import (
    Draw,
    UniformSource,
    read_positive,
    read_size,
)
from undertow.numeric.exact import Exact, Number, exact, format_up, sqrt_up
from undertow.numeric.rounding import nudge_up
from undertow.privacy.loss import Loss
from undertow.spaces.base import Metric
from undertow.spaces.metric import (
    AbsoluteDifference,
    DiscreteMetric,
    Euclidean,
    LpNorm,
    Scaled,
)


class ChoiceSource(UniformSource, Protocol):
    """A source that also tosses exact coins and draws geometric numbers."""

    def bernoulli_exp(self, x: Fraction, size: int) -> Draw:
        """Draw 1 with probability ``exp(-x)``, else 0."""

    def geometric(self, scale: Fraction, size: int) -> Draw:
        """Draw k = 0, 1, ... with probability proportional to ``exp(-k/scale)``."""


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


class Mechanism(Law):
    """A frozen description of one randomised answer.

    Notes
    -----
    `loss` states what a unit of distance between the *values given* costs. A loss that
    holds for a whole pipeline does not hold for the mechanism inside it (thesis,
    Remark A.4), so nothing here can be inferred from a guarantee of the pipeline.
    """

    __slots__ = ()

    @abstractmethod
    def loss(self, metric: Metric) -> Loss:
        """Return the loss per unit of `metric` between two given values."""

    @abstractmethod
    def pair_loss(self, first: Any, second: Any) -> Loss:
        """Return the loss between two given values, exactly or rounded up."""

    @abstractmethod
    def cdf(self, output: Any, given: Any) -> Floats:
        """Return the probability that no coordinate exceeds `output`."""

    @abstractmethod
    def support(self, given: Any) -> Support | tuple[Hashable, ...]:
        """Return the possible outputs."""


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


class GaussianNoise(AdditiveMechanism):
    """Gaussian noise on the reals or on a lattice: what follows from its variance."""

    __slots__ = ()
    variance: Fraction

    @property
    def sigma(self) -> float:
        """The sigma of the law: of continuous noise the standard deviation."""
        return sqrt_nearest(self.variance)

    def _of_variance(self, variance: Number) -> Self:
        object.__setattr__(self, "variance", read_positive(variance, "variance"))
        return self

    def _square_loss(self, metric: Metric) -> Fraction:
        """Return the square of 1/sigma per unit of the metric, in the l2 norm."""
        factor = norm_factor(metric, p=2, dimension=self.dimension)
        return factor**2 / self.variance

    def _square_gap(self, gaps: Iterable[Fraction]) -> Fraction:
        """Return the squared distance of two values over the variance."""
        return sum((gap**2 for gap in gaps), start=Fraction(0)) / self.variance


class ChoiceMechanism(Mechanism):
    """A mechanism whose output is one of finitely many candidates."""

    __slots__ = ()
    measure = "counting"
    output_kind = "finite"
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

    def log_densities(
        self, outputs: Any, inputs: Sequence[Any] | NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return the log probability of each output for each input."""
        place = {label: k for k, label in enumerate(self.candidates)}
        listed = outputs.tolist() if isinstance(outputs, np.ndarray) else outputs
        columns = [place[label] for label in listed]
        return np.stack([self.log_probabilities(x)[columns] for x in inputs], axis=-1)

    def listed_outputs(self) -> tuple[Hashable, ...]:
        """Return the candidates."""
        return self.candidates

    def table(self, inputs: Sequence[Any]) -> NDArray[np.float64]:
        """Return the probability of each candidate for each input."""
        return np.array([self.pmf(given) for given in inputs])

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


# How given values are read, exactly, and how results are handed back.

# Digits carried where a loss is a logarithm of rationals, and the margins that cover
# what their rounding and cancellation can lose.
PRECISE = Context(prec=80)
_MARGIN = Fraction(1, 10**50)
_RELATIVE = Fraction(1, 10**70)

# Sizes of noise whose law floats can hold, the stated ends included though rounded.
_LEAST_SIZE, _LARGEST_SIZE = Fraction(9, 10**301), 11 * 10**304


def float_size(value: Exact, name: str) -> float:
    """Return the size of some noise as a float, if its law can be worked out in floats.

    Parameters
    ----------
    value : Fraction
        Positive.
    name : str
        What it is, for the error message.

    Raises
    ------
    ValueError
        If it is below 1e-300 or above 1e305.
    """
    if not _LEAST_SIZE <= value <= _LARGEST_SIZE:
        raise ValueError(
            f"{name} must be between 1e-300 and 1e305 for its law to be worked out in "
            f"floats, got {format_up(value, 3)}; give the values in another unit."
        )
    return float(value)


def sqrt_nearest(square: Fraction) -> float:
    """Return a square root as a float where it is one, though the square is not.

    Raises
    ------
    ValueError
        If the root lies outside the range of normal floats.
    """
    if _LEAST_SIZE <= square <= _LARGEST_SIZE:
        return math.sqrt(square)
    root = sqrt_up(square)
    float_size(Fraction(root) if root < math.inf else math.inf, "sigma")
    return root


def read_dimension(dimension: int) -> int:
    """Read the number of coordinates."""
    count = read_size(dimension, "dimension")
    if count == 0:
        raise ValueError("dimension must be at least 1, got 0.")
    return count


def subtract(
    output: ArrayLike, given: ArrayLike, *, dimension: int
) -> NDArray[np.float64]:
    """Return the noise that leads from `given` to each output."""
    outputs, start = np.asarray(output, float), np.asarray(given, float)
    if start.size != dimension or not np.isfinite(start).all():
        raise MismatchError(
            f"given must have {dimension} finite coordinates, got {start.size}."
        )
    if dimension > 1 and outputs.shape[-1:] != (dimension,):
        raise MismatchError(
            f"output must have {dimension} coordinates on its last axis, "
            f"got shape {outputs.shape}."
        )
    return np.asarray(outputs - start.reshape(() if dimension == 1 else dimension))


def total(logs: NDArray[np.float64], *, dimension: int) -> Floats:
    """Add the logs of independent coordinates."""
    return plain(logs if dimension == 1 else logs.sum(axis=-1))


def plain(values: ArrayLike) -> Floats:
    """Return a float for a single number, else the array."""
    array = np.asarray(values, dtype=np.float64)
    return float(array) if array.ndim == 0 else array


def read_candidates(candidates: Sequence[Hashable] | int) -> tuple[Hashable, ...]:
    """Read distinct labels; a whole number n stands for the labels 0, ..., n - 1."""
    if isinstance(candidates, int):
        labels: tuple[Hashable, ...] = tuple(range(candidates))
    else:
        labels = tuple(candidates)
    if len(labels) < 2 or len(set(labels)) != len(labels):
        raise ValueError(
            "candidates must be at least two distinct labels, "
            f"got {len(labels)} labels, {len(set(labels))} of them distinct."
        )
    return labels


def read_vector(
    values: Any, dimension: int, name: str, *, binary: bool = False
) -> tuple[Fraction, ...]:
    """Read `dimension` finite numbers exactly.

    Floats are read as the decimals they show, or, if `binary`, as the binary fractions
    they are: a lattice point stays a lattice point.
    """
    array = np.asarray(values, dtype=np.object_).ravel().tolist()
    if len(array) != dimension:
        raise MismatchError(
            f"{name} must have {dimension} coordinates, got {len(array)}."
        )
    return tuple(_signed(value, name, binary) for value in array)


def _signed(value: Any, name: str, binary: bool) -> Fraction:
    if binary and isinstance(value, float | np.floating) and math.isfinite(value):
        return Fraction(float(value))
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return Fraction(int(value))
    text = value.strip() if isinstance(value, str) else ""
    negative = text[:1] == "-" if text else value < 0
    try:
        size = exact((text[1:] if text else -value) if negative else value, name)
    except ValueError:
        size = math.inf
    if size == math.inf:
        # The value may be private, so the message does not show it.
        raise ValueError(f"{name} must be finite numbers.") from None
    return -Fraction(size) if negative else Fraction(size)


def to_decimal(value: Fraction) -> Decimal:
    """Return `value` to 80 digits."""
    return PRECISE.divide(Decimal(value.numerator), Decimal(value.denominator))


def decimal_up(value: Decimal) -> Fraction:
    """Turn a loss computed to 80 digits into one that is at least the true loss.

    Notes
    -----
    Sums, exponentials and logarithms of :class:`decimal.Decimal` are correctly rounded.
    A chain of a few thousand of them loses less than 1e-50, and less than 1e-70 of a
    large result if no intermediate number is larger.
    """
    number = Fraction(value)
    return max(number + _MARGIN + abs(number) * _RELATIVE, Fraction(0))


# The least constants between norms, which turn a loss in one into one in another.


def norm_factor(metric: Metric, *, p: int, dimension: int) -> Fraction:
    r"""Return the least c with :math:`\|x-y\|_p \le c\,d(x,y)` on real vectors.

    Parameters
    ----------
    metric : Metric
        `AbsoluteDifference` (one coordinate), `LpNorm`, `Euclidean`, or one of them
        scaled.
    p : int
        Order of the norm the mechanism is private in: 1 or 2.
    dimension : int
        Number of coordinates k.

    Raises
    ------
    InfiniteLossError
        For the discrete metric: values one step apart may differ by any amount.
    MismatchError
        For a metric that does not compare vectors of numbers.

    Notes
    -----
    :math:`\|z\|_p \le k^{1/p-1/q}\|z\|_q` for :math:`q \ge p`, with equality at the
    all-ones vector, and :math:`\|z\|_p \le \|z\|_q` for :math:`q \le p`, with equality
    at a unit vector. Irrational factors are rounded up.
    """
    if isinstance(metric, Scaled) and 0 < metric.factor < math.inf:
        return norm_factor(metric.base, p=p, dimension=dimension) / Fraction(
            metric.factor
        )
    if isinstance(metric, DiscreteMetric):
        raise InfiniteLossError(
            "metric must bound how far apart the given values are, got the discrete "
            "metric, under which any two reals are neighbours; clip the values first "
            "and state the loss in AbsoluteDifference or LpNorm.",
            witness=(0, math.inf),
            source="thesis, Remark A.4",
        )
    q = _order(metric, dimension)
    if q <= p or dimension == 1:
        return Fraction(1)
    return _power_up(dimension, 1 / Fraction(p) - (0 if q == math.inf else 1 / q))


def _order(metric: Metric, dimension: int) -> Any:
    if isinstance(metric, LpNorm):
        return metric.p if metric.p == math.inf else Fraction(metric.p)
    if isinstance(metric, Euclidean):
        return Fraction(2)
    if isinstance(metric, AbsoluteDifference) and dimension == 1:
        return Fraction(1)
    raise MismatchError(
        f"metric must compare vectors of {dimension} numbers, got {metric.name}; "
        "use AbsoluteDifference for one coordinate, LpNorm or Euclidean for several."
    )


def _power_up(base: int, exponent: Fraction) -> Fraction:
    if exponent == 1:
        return Fraction(base)
    if exponent == Fraction(1, 2):
        return Fraction(sqrt_up(base))
    return Fraction(nudge_up(float(base) ** float(exponent), 64))
