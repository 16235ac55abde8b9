"""What a release computes, and which pairs of secrets a promise about it covers.

Some theorems hold for every epsilon-DP mechanism (:class:`AnyQuery`); others need
Laplace noise on a count, on a linear query, or on a query that is Lipschitz in the
records. A query says its sensitivity on a model and, as a :class:`Scope`, the pairs
of secrets it speaks of: with clipped real values, those inside the clip interval or
at most its width apart; over the whole real line the clipped mechanism leaks more.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from undertow._validate import check_count, check_finite, check_positive
from undertow.errors import ModelError
from undertow.numeric.exact import round_up

Interval = tuple[float, float]


class RecordRange(Protocol):
    """What a query must know of a model: how many records, and their range."""

    @property
    def size(self) -> int | None:
        """Number of records; None if it may be any."""

    @property
    def value_range(self) -> Interval | None:
        """Least and greatest value of a record; None if unbounded or not numeric."""


class Query(ABC):
    """A query with Laplace or discrete Laplace noise of scale sensitivity/epsilon.

    :class:`AnyQuery` stands for every epsilon-DP mechanism instead.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def name(self) -> str:
        """One word for it: ``"any"``, ``"count"``, ``"linear"``, ``"lipschitz"``."""

    @abstractmethod
    def sensitivity(self, model: RecordRange) -> float:
        """Return the most that one record moves the answer, for secrets in scope."""

    @property
    def clip(self) -> Interval | None:
        """Interval each record is clipped to before the query; None if not clipped."""
        return None

    @property
    def is_integer(self) -> bool:
        """Whether every answer is a whole number."""
        return False

    def scope(self) -> Scope:
        """Return the pairs of secrets that a guarantee about the query covers."""
        return Scope.every_pair()


@dataclass(frozen=True, slots=True)
class AnyQuery(Query):
    """Any epsilon-DP mechanism: nothing is known of the query but its sensitivity.

    Parameters
    ----------
    change : float
        Most that one record moves the answer; only sets the noise scale.
    """

    change: float = 1.0

    def __post_init__(self) -> None:
        check_positive(self.change, "change")

    @property
    def name(self) -> str:
        """The word ``"any"``."""
        return "any"

    def sensitivity(self, model: RecordRange) -> float:
        """Return the declared change."""
        return float(self.change)


@dataclass(frozen=True, slots=True)
class CountQuery(Query):
    """The number of records in one of `states`, with (discrete) Laplace noise.

    Parameters
    ----------
    states : iterable of int
        Indices of the states counted.

    Examples
    --------
    >>> CountQuery().states
    frozenset({1})
    """

    states: frozenset[int] = frozenset({1})

    def __init__(self, states: Iterable[int] = (1,)) -> None:
        if not isinstance(states, Iterable):
            raise TypeError(f"states must be several states, got {states!r}.")
        listed = frozenset(check_count(z, "state", minimum=0) for z in states)
        if not listed:
            raise ValueError("states must name at least one state, got none.")
        object.__setattr__(self, "states", listed)

    @property
    def name(self) -> str:
        """The word ``"count"``."""
        return "count"

    @property
    def is_integer(self) -> bool:
        """True: counts are whole numbers."""
        return True

    def sensitivity(self, model: RecordRange) -> float:
        """Return 1."""
        return 1.0


@dataclass(frozen=True, slots=True)
class LinearQuery(Query):
    """The weighted sum of the records, with Laplace noise; a plain sum by default.

    Parameters
    ----------
    weights : float or sequence of float
        One weight for all records, or one for each.
    clip : pair of float, optional
        Interval each record is clipped to first. A release on unbounded records must
        be clipped to be DP at all.
    gap : float, optional
        For unclipped real records: secrets at most this far apart are covered. Such a
        release is *not* DP; it is Bayesian private for these pairs only.

    Examples
    --------
    >>> LinearQuery(clip=(60, 80)).scope().summary
    'both secrets in [60, 80]'
    """

    weights: float | tuple[float, ...] = 1.0
    interval: Interval | None = None
    gap: float | None = None

    def __init__(
        self,
        weights: float | Iterable[float] = 1.0,
        *,
        clip: Interval | None = None,
        gap: float | None = None,
    ) -> None:
        listed = _read_weights(weights)
        if clip is not None and gap is not None:
            raise ValueError("gap must be left out when clip is given, got both.")
        object.__setattr__(self, "weights", listed)
        object.__setattr__(self, "interval", _read_clip(clip))
        object.__setattr__(
            self, "gap", None if gap is None else check_positive(gap, "gap")
        )

    @property
    def name(self) -> str:
        """The word ``"linear"``."""
        return "linear"

    @property
    def clip(self) -> Interval | None:
        """Interval each record is clipped to."""
        return self.interval

    @property
    def largest_weight(self) -> float:
        """Largest absolute weight: the query's l1-Lipschitz constant."""
        listed = self.weights if isinstance(self.weights, tuple) else (self.weights,)
        return max(abs(weight) for weight in listed)

    def weights_for(self, size: int) -> tuple[float, ...]:
        """Return one weight for each of `size` records."""
        if not isinstance(self.weights, tuple):
            return (self.weights,) * size
        if len(self.weights) != size:
            raise ModelError(
                f"weights must be one for each of the {size} records, "
                f"got {len(self.weights)}."
            )
        return self.weights

    def sensitivity(self, model: RecordRange) -> float:
        """Return the largest weight times the widest gap between two secrets."""
        low, high = self._ends(model)
        return _change(self.largest_weight, low, high)

    def _ends(self, model: RecordRange) -> Interval:
        if self.interval is not None:
            return self.interval
        if self.gap is not None:
            return 0.0, self.gap
        if model.value_range is None:
            raise ModelError(
                "a linear query on unbounded records must be given clip=(low, high), "
                "or gap= for an unclipped study that is not DP, got neither."
            )
        return model.value_range

    def scope(self) -> Scope:
        """Return the pairs covered: inside the clip interval, or within the gap."""
        if self.interval is not None:
            return Scope.inside(*self.interval)
        return Scope.every_pair() if self.gap is None else Scope.within(self.gap)


@dataclass(frozen=True, slots=True)
class LipschitzQuery(Query):
    """A query of clipped records that is Lipschitz in l1, with Laplace noise.

    Sums, means, medians, quantiles and maxima are; threshold counts and histograms of
    real values are not.

    Parameters
    ----------
    constant : float
        Most that the answer moves when one record moves by one.
    clip : pair of float
        Interval each record is clipped to first.
    """

    constant: float
    interval: Interval

    def __init__(self, constant: float = 1.0, *, clip: Interval) -> None:
        if clip is None:
            raise ValueError("clip must be given for a Lipschitz query, got None.")
        object.__setattr__(self, "constant", check_positive(constant, "constant"))
        object.__setattr__(self, "interval", _read_clip(clip))

    @property
    def name(self) -> str:
        """The word ``"lipschitz"``."""
        return "lipschitz"

    @property
    def clip(self) -> Interval | None:
        """Interval each record is clipped to."""
        return self.interval

    def sensitivity(self, model: RecordRange) -> float:
        """Return the constant times the width of the clip interval."""
        return _change(self.constant, *self.interval)

    def scope(self) -> Scope:
        """Return the pairs inside the clip interval."""
        return Scope.inside(*self.interval)


def _change(rate: float, low: float, high: float) -> float:
    """Return ``rate * (high - low)``, rounded up: noise is set by it."""
    return round_up(Fraction(rate) * (Fraction(high) - Fraction(low)))


def _read_weights(weights: float | Iterable[float]) -> float | tuple[float, ...]:
    if isinstance(weights, Iterable):
        listed = tuple(check_finite(w, "weight") for w in weights)
        if not any(listed):
            raise ValueError("weights must not all be zero.")
        return listed
    weight = check_finite(weights, "weight")
    if weight == 0:
        raise ValueError("weight must not be zero.")
    return weight


def _read_clip(clip: Interval | None) -> Interval | None:
    if clip is None:
        return None
    ends = [check_finite(end, "clip") for end in clip]
    if len(ends) != 2:
        raise ValueError(f"clip must be (low, high), got {len(ends)} numbers.")
    low, high = ends
    if not low < high or not math.isfinite(high - low):
        raise ValueError(f"clip must be (low, high) with low < high, got {clip}.")
    return low, high


# Which pairs of secrets a promise covers.
#
# A promise about real-valued records that are clipped holds for secrets inside the clip
# interval, or at most its width apart; over the whole real line the clipped mechanism
# leaks more (thesis, Theorem 6.14, holds with this restriction only). Every result
# therefore carries its scope.


@dataclass(frozen=True, slots=True)
class Scope:
    """The pairs of secrets (x, x') of the target record that a promise covers.

    Parameters
    ----------
    gap : float
        Largest ``|x - x'|`` covered; infinite for every pair.
    interval : tuple of float, optional
        Both secrets lie in it; None where only the gap matters.

    Examples
    --------
    >>> Scope.inside(60, 80).summary
    'both secrets in [60, 80]'
    >>> Scope.every_pair().summary
    'every pair of secrets'
    """

    gap: float = math.inf
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.gap != math.inf:
            check_positive(self.gap, "gap")
        if self.interval is not None:
            low, high = self.interval
            if self.gap != high - low:
                raise ValueError(
                    f"gap must be the width of the interval, {high - low}, "
                    f"got {self.gap}; use Scope.inside."
                )

    @classmethod
    def every_pair(cls) -> Scope:
        """Return the scope of all pairs, the whole real line included."""
        return cls()

    @classmethod
    def inside(cls, low: float, high: float) -> Scope:
        """Return the scope of pairs that both lie in ``[low, high]``."""
        low, high = check_finite(low, "low"), check_finite(high, "high")
        if not low < high:
            raise ValueError(f"low must be below high, got [{low}, {high}].")
        return cls(gap=high - low, interval=(low, high))

    @classmethod
    def within(cls, gap: float) -> Scope:
        """Return the scope of pairs at most `gap` apart, wherever they lie."""
        return cls(gap=check_positive(gap, "gap"))

    @property
    def is_every_pair(self) -> bool:
        """Whether no pair is left out."""
        return self.gap == math.inf

    @property
    def summary(self) -> str:
        """The scope in words, for reports."""
        if self.interval is not None:
            low, high = self.interval
            return f"both secrets in [{_number(low)}, {_number(high)}]"
        if self.is_every_pair:
            return "every pair of secrets"
        return f"secrets at most {_number(self.gap)} apart"

    def to_dict(self) -> str:
        """Return the summary, which is what results print."""
        return self.summary


def _number(value: float) -> str:
    """Write a whole number without its point, any other in full."""
    return str(int(value)) if value.is_integer() else repr(value)
