"""A number with noise as the source of a risk: one answer for each record, and the law.

Plain noise has a density on the line; clamped noise moves what falls outside an
interval to its ends, which become atoms; truncated noise divides the density by the
probability :math:`Z_x` of falling inside.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, ndtr, ndtri

from undertow._validate import check_count, check_index
from undertow.errors import AssumptionError, MismatchError, ModelError, NotApplicable
from undertow.mechanisms.bounded_noise import ClampedMechanism, TruncatedMechanism
from undertow.mechanisms.continuous import GaussianMechanism, LaplaceMechanism
from undertow.numeric.array import Floats

# Distances between answers must be floats, in units of any scale.
_LARGEST = 1e150
_LEVEL = 2.0**-54


@dataclass(frozen=True, slots=True, eq=False, init=False)
class ScalarChannel:
    r"""A one-dimensional additive mechanism on the numeric answer of each record.

    Parameters
    ----------
    mechanism : LaplaceMechanism, GaussianMechanism or one of them kept in a range
        On one coordinate; kept by `ClampedMechanism` or `TruncatedMechanism`.
    answers : array_like of shape (m,)
        The true answer if the target is each record, such as a sum with it; ties are
        allowed.
    support : sequence of hashable, optional
        The records; a threat on others is then refused. Without it the answers are
        taken in the order of the threat's records.

    Raises
    ------
    ModelError
        If the answers are not finite numbers.
    MismatchError
        If there is not one answer for each record.

    Notes
    -----
    The law is the continuous one. What the mechanisms release is its lattice form, a
    law within the rounding that their `released_loss` accounts for. Only differences
    of answers matter: the known part of a sum may be left out, except where an
    interval is fixed.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> from undertow.risk.exact import advantage
    >>> from undertow.risk.threat import Prior
    >>> from undertow.risk.threat import Threat
    >>> channel = ScalarChannel(LaplaceMechanism(1), [0, 1])
    >>> round(advantage(channel, Threat(Prior.uniform(2))).value, 9)
    0.19673467
    """

    mechanism: Any
    answers: Floats
    support: tuple[Hashable, ...] | None
    law: ScalarLaw

    def __init__(
        self,
        mechanism: Any,
        answers: ArrayLike,
        support: Sequence[Hashable] | None = None,
    ) -> None:
        law, line = ScalarLaw.of(mechanism), _read_answers(answers)
        records = None if support is None else tuple(support)
        if records is not None and len(records) != len(line):
            raise MismatchError(
                f"answers must be one for each of the {len(records)} records, got "
                f"{len(line)}."
            )
        law.weights(line)  # refuses answers outside a truncated interval
        line.setflags(write=False)
        object.__setattr__(self, "mechanism", mechanism)
        object.__setattr__(self, "answers", line)
        object.__setattr__(self, "support", records)
        object.__setattr__(self, "law", law)

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self.answers)

    def sample(self, record: int, size: int = 1, *, rng: np.random.Generator) -> Floats:
        """Draw outputs for one record, by number: a simulation, never a release.

        Parameters
        ----------
        record : int
            Number of the record.
        size : int, optional
            How many outputs.
        rng : numpy.random.Generator
            Source of randomness.
        """
        number = check_index(record, "record", size=self.size)
        draws = rng.uniform(size=check_count(size, "size", minimum=0))
        draws = np.maximum(draws, _LEVEL)  # level 0 would be an infinite output
        answer, law = self.answers[number : number + 1], self.law
        if law.kind == "truncated":
            ends = np.array([law.low, law.high])
            start, stop = law.cdf((ends - answer) / law.scale)
            draws = start + (stop - start) * draws
        output = answer + law.scale * _quantile(law, draws)
        return np.asarray(np.clip(output, law.low, law.high))

    def log_likelihood(self, outputs: ArrayLike) -> Floats:
        """Return the log density (log probability at an atom): (outputs, records)."""
        seen = np.asarray(outputs, dtype=np.float64)
        return np.asarray(self.mechanism.log_densities(seen, self.answers))

    def __repr__(self) -> str:
        return f"ScalarChannel({self.mechanism!r}, {self.size} records)"


def as_scalar(source: Any, support: Sequence[Hashable]) -> ScalarChannel | None:
    """Read a scalar channel on the given records; None if the source is another kind.

    Parameters
    ----------
    source : ScalarChannel, mechanism or anything else
        Of a Laplace or Gaussian mechanism the records themselves are the answers.
    support : sequence of hashable
        The records of the threat.

    Raises
    ------
    MismatchError
        If a channel is on other records, or on another number of them.
    ModelError
        If a mechanism is given and a record is not a number.
    """
    if is_scalar(source):
        return ScalarChannel(source, _read_answers(list(support), "records"), support)
    if not isinstance(source, ScalarChannel):
        return None
    if source.size != len(support):
        raise MismatchError(
            f"the channel must have an answer for each of the {len(support)} records, "
            f"got {source.size}."
        )
    if source.support is not None and source.support != tuple(support):
        raise MismatchError(
            "the channel must be on the records of the threat, in their order, got "
            "others."
        )
    return source


def _read_answers(answers: Any, name: str = "answers") -> Floats:
    given = np.atleast_1d(np.asarray(answers, object))
    try:
        line = np.array([float(a) for a in given])
    except (TypeError, ValueError, OverflowError):
        line = np.array([np.nan])
    text = any(isinstance(a, str | bytes) for a in given)
    if text or line.size == 0 or not (np.abs(line) <= _LARGEST).all():
        raise ModelError(
            f"{name} must be finite numbers below 1e150, at least one; give "
            "ScalarChannel the answer of each record."
        )
    # Two whole numbers that round to one would pass for a tie, which tells nothing.
    pairs = zip(given, line.tolist(), strict=True)
    if any(isinstance(a, int | np.integer) and int(place) != a for a, place in pairs):
        raise ModelError(
            f"{name} must be exact as floats, got whole numbers beyond 2^53; subtract "
            "a common offset, since only differences matter."
        )
    return line


def _quantile(law: ScalarLaw, levels: Floats) -> Floats:
    if law.family == "gaussian":
        return np.asarray(ndtri(levels))
    centred = np.minimum(levels, 1.0 - levels)
    with np.errstate(divide="ignore"):
        return np.where(levels < 0.5, 1.0, -1.0) * np.log(2.0 * centred)


# The law of a noisy number, as the scalar engine reads it from a mechanism.
#
# Plain noise has a density on the line; clamped noise moves what falls outside an
# interval to its ends, which become atoms; truncated noise divides the density by the
# probability :math:`Z_x` of falling inside.

# A density of 1/scale must be a float, and so must distances in units of the scale.
_SMALLEST_SCALE = 1e-150
_LARGEST_SCALE = 1e150
_NARROWEST = 1e-290


@dataclass(frozen=True, slots=True)
class ScalarLaw:
    """Noise of one family and scale, plain, clamped or truncated.

    Parameters
    ----------
    family : {"laplace", "gaussian"}
        The noise.
    scale : float
        The b of Laplace noise, the standard deviation of Gaussian noise.
    kind : {"plain", "clamped", "truncated"}
        What is done with outputs outside the interval.
    low, high : float
        Ends of the interval; infinite for plain noise.

    Examples
    --------
    >>> law = ScalarLaw.of(ClampedMechanism(LaplaceMechanism(2), 0, 10))
    >>> law.kind, law.scale, law.low, law.high
    ('clamped', 2.0, 0.0, 10.0)
    """

    family: Literal["laplace", "gaussian"]
    scale: float
    kind: Literal["plain", "clamped", "truncated"] = "plain"
    low: float = -math.inf
    high: float = math.inf

    @classmethod
    def of(cls, mechanism: Any) -> Self:
        """Read the law of a mechanism with Laplace or Gaussian noise.

        Raises
        ------
        NotApplicable
            If the mechanism is of another kind, has several coordinates, or a scale
            that cannot be squared as a float.
        """
        if not is_scalar(mechanism):
            raise NotApplicable(
                "mechanism must be Laplace or Gaussian noise on one number, plain, "
                f"clamped or truncated, got {type(mechanism).__name__}; tabulate a "
                "finite mechanism as a Channel."
            )
        if isinstance(mechanism, ClampedMechanism):
            ends = (float(mechanism.low), float(mechanism.high))
            return cls(*_noise(mechanism.base), "clamped", *ends)
        if isinstance(mechanism, TruncatedMechanism):
            ends = (float(mechanism.low), float(mechanism.high))
            return cls(*_noise(mechanism.base), "truncated", *ends)
        return cls(*_noise(mechanism))

    def masses(self, low: Floats, high: Floats, answers: Floats) -> Floats:
        """Return the probability of unbounded noise between ends, one row per answer.

        The absolute error is a few units of rounding.
        """
        lower = (low[None, :] - answers[:, None]) / self.scale
        upper = (high[None, :] - answers[:, None]) / self.scale
        # On the right of the answer the tails are subtracted, not the bulks.
        right = lower > 0
        start = np.where(right, -upper, lower)
        stop = np.where(right, -lower, upper)
        return np.asarray(self.cdf(stop) - self.cdf(start))

    def atoms(self, answers: Floats) -> Floats:
        """Return the probabilities of the two ends in columns, none if not clamped."""
        if self.kind != "clamped":
            return np.empty((len(answers), 0))
        ends = [(self.low - answers), (answers - self.high)]
        return np.asarray(self.cdf(np.stack(ends, axis=1) / self.scale))

    def weights(self, answers: Floats) -> Floats:
        r"""Return :math:`1/Z_x` for truncated noise, else ones.

        Raises
        ------
        AssumptionError
            If an answer lies outside the interval of truncated noise, or the interval
            is too narrow for its probability to be a float.
        """
        if self.kind != "truncated":
            return np.ones(len(answers))
        if not ((answers >= self.low) & (answers <= self.high)).all():
            raise AssumptionError(
                f"answers must lie in the interval [{self.low:g}, {self.high:g}] of "
                "truncated noise; clip them first."
            )
        if self.high - self.low < _NARROWEST * self.scale:
            raise NotApplicable(
                f"the interval of truncated noise must not be {_NARROWEST:g} of the "
                "scale or less; state the answers in another unit."
            )
        below = (answers - self.low) / self.scale
        above = (self.high - answers) / self.scale
        return np.asarray(1.0 / (self._half(below) + self._half(above)))

    def variation(self, width: float) -> float:
        """Return the total variation of two plain answers that far apart."""
        return float(2 * self._half(np.asarray(width / self.scale / 2)))

    def cdf(self, noise: Floats) -> Floats:
        """Return the law of plain noise, in units of the scale."""
        if self.family == "gaussian":
            return np.asarray(ndtr(noise))
        tail = np.exp(-np.abs(noise)) / 2
        return np.where(noise < 0, tail, 1.0 - tail)

    def _half(self, width: Floats) -> Floats:
        """Return the probability of noise in (0, width]."""
        if self.family == "gaussian":
            return np.asarray(erf(width / math.sqrt(2)) / 2)
        return np.asarray(-np.expm1(-width) / 2)


def is_scalar(mechanism: Any) -> bool:
    """Say whether a mechanism adds continuous noise to one number.

    Examples
    --------
    >>> is_scalar(LaplaceMechanism(1)), is_scalar(LaplaceMechanism(1, dimension=2))
    (True, False)
    """
    if isinstance(mechanism, ClampedMechanism | TruncatedMechanism):
        mechanism = mechanism.base
    plain = isinstance(mechanism, LaplaceMechanism | GaussianMechanism)
    return plain and mechanism.dimension == 1


def _noise(base: Any) -> tuple[Literal["laplace", "gaussian"], float]:
    laplace = isinstance(base, LaplaceMechanism)
    try:
        scale = float(base.scale) if laplace else base.sigma
    except OverflowError:
        scale = math.inf
    if not _SMALLEST_SCALE <= scale <= _LARGEST_SCALE:
        raise NotApplicable(
            f"scale must be in [{_SMALLEST_SCALE:g}, {_LARGEST_SCALE:g}], got {scale}; "
            "state the answers in another unit."
        )
    return "laplace" if laplace else "gaussian", scale
