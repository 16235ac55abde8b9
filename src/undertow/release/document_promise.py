"""The parts of a release file about the promise, the data model and the attacker."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from undertow.release.document_errors import Fault, shown
from undertow.release.document_fields import (
    Measured,
    Name,
    Part,
    Positive,
    Probability,
    Url,
    readable_name,
)

if TYPE_CHECKING:
    from undertow.risk import Threat

__all__ = ["CorrelationPart", "PromisePart", "ThreatPart"]

_CURRENCIES = ("epsilon", "rho", "mu", "advantage")
_MOST_STATES = 10_000
_LONGEST_SERIES = 10**6
# A smaller entry of a matrix would become 0 among floats, and another chain.
_RAREST = Fraction(1, 10**300)
# Noise for less could not be written as a number; nobody could use it either.
_LEAST = Fraction(1, 10**100)
_PEOPLE = ("client", "customer", "household", "patient", "people", "person", "unit")
_ROWS = ("entry", "line", "record", "row")
_MODELS = {
    "markov": ({"fit", "transition", "gamma"}, {"states", "length", "initial"}),
    "gaussian": ({"correlation", "phi"}, {"group", "length"}),
    "blocks": ({"group"}, set()),
}


def _categories(value: Any) -> int | tuple[str | int, ...]:
    if isinstance(value, int) and not isinstance(value, bool):
        if not 2 <= value <= _MOST_STATES:
            raise ValueError(f"must be 2 to {_MOST_STATES}, got {shown(value)}")
        return value
    if not isinstance(value, list | tuple) or not 2 <= len(value) <= _MOST_STATES:
        raise ValueError(
            f"must be a number of categories or a list of 2 to {_MOST_STATES} names, "
            f"got {shown(value)}"
        )
    for at, name in enumerate(value):
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise ValueError(f"[{at}] must be text or a number, got {shown(name)}")
        if isinstance(name, str):
            readable_name(name)
    if len(set(value)) < len(value):
        raise ValueError("must name each category once, got a name twice")
    return tuple(value)


Categories = Annotated[
    int | tuple[str | int, ...],
    PlainValidator(_categories),
    PlainSerializer(lambda value: value),
    WithJsonSchema({"anyOf": [{"type": "integer"}, {"type": "array"}]}),
]

Row = Annotated[tuple[Measured, ...], Field(strict=False)]


class CorrelationPart(Part):
    """How the records of the data may depend on each other."""

    model: Literal["markov", "gaussian", "blocks"]
    """The kind of model."""
    states: Name | None = None
    """The column whose values are the states of the chain."""
    fit: Url | None = None
    """A public file from which the chain is fitted."""
    transition: tuple[Row, ...] | None = Field(default=None, strict=False)
    """The transition matrix of the chain, row by row."""
    initial: tuple[Measured, ...] | None = Field(default=None, strict=False)
    """The law of the first state; stationary if not given."""
    gamma: Positive | None = None
    """The largest ratio of two entries of an unknown transition matrix."""
    length: int | None = Field(default=None, ge=1, le=10**9)
    """The number of records of the chain or series."""
    correlation: Probability | None = None
    """The largest correlation of two records."""
    phi: Measured | None = None
    """The coefficient of a series in which each record depends on the last."""
    group: int | None = Field(default=None, ge=1, le=10**9)
    """The most records that depend on each other."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        one_of, others = _MODELS[self.model]
        for field in sorted(self.model_fields_set - {"model"} - one_of - others):
            raise Fault(field, f"must be left out of a {self.model} model, got a value")
        given = sorted(one_of & self.model_fields_set)
        if len(given) != 1:
            need = " or ".join(sorted(one_of))
            raise Fault("", f"must give {need}, got {' and '.join(given) or 'nothing'}")
        if self.transition is not None:
            self._check_matrix(self.transition)
        if self.fit is not None and self.states is None:
            raise Fault("states", "must name the column that fit holds, got nothing")
        if self.correlation is not None and self.group is None:
            raise Fault("group", "must be given with correlation, got nothing")
        if self.gamma is not None and self.gamma < 1:
            got = f"{float(self.gamma):g}"
            raise Fault("gamma", f"must be at least 1, the ratio of equals, got {got}")
        if self.initial is not None:
            self._check_start(self.initial)
        if self.phi is not None:
            self._check_series(self.phi)
        return self

    def _check_matrix(self, matrix: tuple[tuple[Fraction, ...], ...]) -> None:
        size = len(matrix)
        if not 2 <= size <= 1000 or any(len(row) != size for row in matrix):
            raise Fault("transition", "must be a square matrix of 2 to 1000 rows")
        for at, row in enumerate(matrix):
            total = sum(row, Fraction(0))
            if min(row) < 0 or abs(total - 1) > Fraction(1, 10**9):
                raise Fault(
                    f"transition[{at}]",
                    "must be non-negative and sum to 1, "
                    f"got the sum {float(total):.9g}",
                )
            if any(0 < entry < _RAREST for entry in row):
                raise Fault(
                    f"transition[{at}]",
                    "must have entries of 0 or of at least 1e-300, got one between; "
                    "what is impossible is 0",
                )

    def _check_start(self, start: tuple[Fraction, ...]) -> None:
        if self.transition is None:
            raise Fault("initial", "must come with transition, got it without")
        size, total = len(self.transition), sum(start, Fraction(0))
        if len(start) != size:
            raise Fault("initial", f"must give {size} weights, got {len(start)}")
        if min(start) < 0 or abs(total - 1) > Fraction(1, 10**9):
            raise Fault(
                "initial",
                f"must be non-negative and sum to 1, got the sum {float(total):.9g}",
            )

    def _check_series(self, phi: Fraction) -> None:
        if self.length is None:
            raise Fault("length", "must be given with phi, got nothing")
        if self.length > _LONGEST_SERIES:
            most = f"{_LONGEST_SERIES} with phi"
            raise Fault("length", f"must be at most {most}, got {self.length}")
        if abs(phi) >= 1:
            got = f"{float(phi):g}"
            raise Fault("phi", f"must lie strictly between -1 and 1, got {got}")


def _meant(name: str) -> str:
    """Say which level a word of everyday language stands for."""
    word = name.strip().lower()
    if word in _PEOPLE:
        return "; people with all their rows are protected by user"
    if word in _ROWS:
        return '; rows by themselves are protected by event, with source.per = "event"'
    return ""


class PromisePart(Part):
    """What is promised to each protected unit."""

    granularity: str = Field(default="user", max_length=200)
    """What one protected change is, by the name the library gives it."""
    epsilon: Positive | None = None
    """Pure differential privacy; with delta, approximate."""
    delta: Probability | None = None
    """The probability aside of approximate differential privacy."""
    rho: Positive | None = None
    """Zero-concentrated differential privacy."""
    mu: Positive | None = None
    """Gaussian differential privacy."""
    advantage: Probability | None = None
    """The largest advantage of the attacker of the threat."""
    confidence: Probability = Fraction(19, 20)
    """The level of the intervals."""
    correlation: CorrelationPart | None = None
    """A data model: epsilon then bounds what an attacker who knows it learns."""

    @property
    def currency(self) -> Literal["epsilon", "approximate", "rho", "mu", "advantage"]:
        """Which kind of promise it is."""
        if self.delta is not None:
            return "approximate"
        if self.epsilon is not None:
            return "epsilon"
        if self.rho is not None:
            return "rho"
        return "mu" if self.mu is not None else "advantage"

    @model_validator(mode="after")
    def _check(self) -> Self:
        from undertow.spaces.unit import parse_granularity

        given = [name for name in _CURRENCIES if getattr(self, name) is not None]
        if len(given) != 1:
            raise Fault(
                "",
                f"must give one of {', '.join(_CURRENCIES)}, "
                f"got {' and '.join(given) or 'none'}",
            )
        if getattr(self, given[0]) < _LEAST:
            raise Fault(given[0], "must be at least 1e-100, got less; promise more")
        if self.delta is not None and given != ["epsilon"]:
            raise Fault("delta", f"must come with epsilon, got it with {given[0]}")
        if self.correlation is not None and self.currency != "epsilon":
            raise Fault(
                "correlation", f"must come with epsilon alone, got {self.currency}"
            )
        try:
            parse_granularity(self.granularity)
        except ValueError as fault:
            words = str(fault).removeprefix("granularity ").rstrip(".")
            meant = _meant(self.granularity)
            words = words.partition("; the nearest")[0] if meant else words
            raise Fault("granularity", f"{words}{meant}") from None
        return self


class ThreatPart(Part):
    """The attacker against whom an advantage is promised."""

    categories: Categories
    """The number or the names of the values that the attacker tells apart."""
    prior: tuple[Measured, ...] | None = Field(default=None, strict=False)
    """Weights of the categories; equal if not given."""
    knowledge: tuple[int, ...] | None = Field(default=None, strict=False)
    """For each category the number of the group the attacker knows it is in."""
    tolerance: Positive | None = None
    """How far a guess may be off where the categories are numbers."""

    @property
    def support(self) -> tuple[str | int, ...]:
        """The categories."""
        if isinstance(self.categories, int):
            return tuple(range(self.categories))
        return self.categories

    def to_threat(self) -> Threat:
        """Return the threat of the risk package."""
        from undertow.risk import Knowledge, Prior, Success, Threat

        size = len(self.support)
        weights = self.prior or (Fraction(1),) * size
        total = sum(weights)
        prior = Prior(self.support, [float(w / total) for w in weights])
        success = Success.exact()
        if self.tolerance is not None:
            success = Success.within(lambda a, b: abs(a - b), float(self.tolerance))
        knows = Knowledge.none()
        if self.knowledge is not None:
            knows = Knowledge.from_labels(self.knowledge)
        return Threat(prior, success, knows)

    @model_validator(mode="after")
    def _check(self) -> Self:
        size = len(self.support)
        if self.prior is not None:
            if len(self.prior) != size:
                got = len(self.prior)
                raise Fault("prior", f"must give {size} weights, got {got}")
            if min(self.prior) < 0 or sum(self.prior) <= 0:
                raise Fault("prior", "must be non-negative and not all 0")
        if self.knowledge is not None and len(self.knowledge) != size:
            got = len(self.knowledge)
            raise Fault("knowledge", f"must give {size} group numbers, got {got}")
        if self.tolerance is not None and any(isinstance(c, str) for c in self.support):
            raise Fault("tolerance", "must be left out where categories are names")
        return self
