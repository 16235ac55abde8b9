"""The promise, the data model and the attacker that a release file states.

What the file says of how records depend on each other becomes a model here, from its
own numbers or from a public file to which it is fitted.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from undertow.correlation import (
    Blocks,
    Gaussian,
    IndependentUnits,
    MarkovChain,
    MarkovFamily,
    Model,
)
from undertow.correlation.markov.chain import MarkovFit, fit_markov
from undertow.correlation.model import Assumptions
from undertow.errors import ModelError, PlanError
from undertow.release.document._error import Fault, shown
from undertow.release.document._part import (
    Measured,
    Name,
    Part,
    Positive,
    Probability,
    Url,
    readable_name,
)
from undertow.release.document.time import in_utc, read_moment

if TYPE_CHECKING:
    from undertow.risk import Threat


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


# How records depend on each other, from what a release file states in public.

# Records of a public file up to which a chain is fitted, and states: triples of them
# are counted.
_MOST_RECORDS = 10**7
_MOST_FITTED_STATES = 200


def follows_time(stated: Any) -> bool:
    """Tell whether a model is about records that follow each other in time.

    Those of a Markov chain and of an autoregressive series do. The groups of the other
    models are of whatever the promise protects: of units at user level.
    """
    return stated.model == "markov" or stated.phi is not None


def stated_model(
    stated: Any,
    *,
    path: Path | None,
    unit: str | None,
    length: int | None,
    whole_units: bool = False,
    moment: str | None = None,
) -> Model:
    """Return the model that ``promise.correlation`` states.

    Parameters
    ----------
    stated : CorrelationPart
        The model's kind and parameters.
    path : Path, optional
        The public file to fit a chain to.
    unit : str, optional
        Column of that file whose values separate series; ignored if it is not there.
    length : int, optional
        Number of records of a unit, where it is known: that of the model if the file
        does not state it, and the least it may state.
    whole_units : bool
        Whether the promise is about all records of a unit at once.
    moment : str, optional
        Column of the time; a file that has it must be in its order, series by series.

    Returns
    -------
    Model
        A model of records in time is one of the records inside of a unit where the
        promise is about whole units; elsewhere a fitted chain is replaced by the
        whole region of chains that its file supports.

    Raises
    ------
    PlanError
        If the public file cannot be read, or no chain can be fitted to it, or the
        model stops before the records do.
    ModelError
        If the parameters are no model.
    """
    records = stated.length if stated.length is not None else length
    if length is not None and records is not None and records < length:
        raise PlanError(
            f"promise.correlation.length must be at least the {length} windows of the "
            f"source, got {records}; leave it out, or use a blocks model if records "
            "further apart are independent."
        )
    inside = whole_units and follows_time(stated)
    if stated.fit is None:
        found = _by_numbers(stated, records)
    else:
        assert path is not None
        columns = (
            _parquet_columns(path) if path.suffix == ".parquet" else _csv_columns(path)
        )
        fit = _fitted(_read_series(columns, path, stated.states, unit), path)
        if inside:
            return IndependentUnits(fit.chain(records))
        _require_order(columns, path, unit=unit, moment=moment)
        apart = unit if unit in columns else None
        found = _region(fit, records, name=path.name, column=stated.states, unit=apart)
    return IndependentUnits(found) if inside else found


def _by_numbers(stated: Any, records: int | None) -> Model:
    """Return a model whose parameters are in the release file."""
    if stated.model == "blocks":
        return StatedGroups.of_size(stated.group, groups=1)
    if stated.model == "gaussian":
        if stated.phi is not None:
            return Gaussian.autoregressive(float(stated.phi), stated.length)
        return Gaussian.limited(float(stated.correlation), stated.group)
    if stated.gamma is not None:
        return MarkovFamily(gamma=float(stated.gamma), length=records)
    rows = [[float(p) for p in row] for row in stated.transition]
    start = stated.initial and [float(p) for p in stated.initial]
    return MarkovChain(rows, start, records)


class StatedGroups(Blocks):
    """Any number of groups like the one of this model, of which one is enough."""

    @property
    def summary(self) -> str:
        """The model in words."""
        return f"any number of records in groups of at most {self.largest_group}"


class FittedChains(MarkovFamily):
    """Every chain that a public file supports, and how well it supports them.

    Parameters
    ----------
    fit : MarkovFit
        The chain fitted to the file.
    length : int, optional
        Number of records.
    name, column : str
        The file, and its column of states.
    unit : str, optional
        Its column that tells series apart; None if all rows are one series.

    Notes
    -----
    The limits hold with the confidence of the fit, not for certain. Tests of the file
    that reject the model do not stop a plan, since long files reject every model; they
    are among what must be taken on trust.
    """

    def __init__(
        self,
        fit: MarkovFit,
        length: int | None,
        *,
        name: str,
        column: str,
        unit: str | None,
    ) -> None:
        super().__init__(lower=fit.lower, upper=fit.upper, length=length)
        self._fit, self._file, self._column, self._series = fit, name, column, unit

    @property
    def summary(self) -> str:
        """The class in one line."""
        return f"{super().summary}, fitted to {self._column} of {self._file}"

    def assumptions(self) -> Assumptions:
        """Return what must be trusted, and what in the file speaks against it."""
        fit, name, column = self._fit, self._file, self._column
        one = f"all rows of {name} are one series: no column of it tells units apart"
        trusted = [
            *(f"the model, although {name} speaks against it: {d}" for d in fit.doubts),
            f"the limits fitted to {name} hold for the protected data: by chance they "
            f"do with {100 * fit.confidence:g} % confidence, from "
            f"{int(fit.counts.sum())} steps between {len(fit.states)} states",
            f"the rows of {name} follow each other in time, as far apart as the "
            "protected records do",
            f"all that is released of a record depends on others through {column} "
            f"alone, and {column} has no other states than in {name}",
        ]
        trusted += [] if self._series is not None else [one]
        base = super().assumptions()
        return Assumptions(base.checked, (*base.unchecked, *trusted))


def _fitted(series: list[list[Any]], path: Path) -> MarkovFit:
    """Return a chain fitted to the series of a public file."""
    try:
        return fit_markov(series, public=True)
    except ModelError:
        raise PlanError(
            "promise.correlation.fit must hold series of at least two states, each "
            f"followed by another record at least once, got {path.name}, which does "
            "not; give longer series."
        ) from None


def _region(
    fit: MarkovFit, records: int | None, *, name: str, column: str, unit: str | None
) -> FittedChains:
    """Return every chain that a public file supports."""
    if not fit.counts.all():
        raise PlanError(
            "promise.correlation.fit must show every state after every state at least "
            f"once, got {name}, which does not; give longer series or fewer states, or "
            "use a blocks model."
        )
    return FittedChains(fit, records, name=name, column=column, unit=unit)


def _read_series(
    columns: Mapping[str, list[Any]], path: Path, states: str, unit: str | None
) -> list[list[Any]]:
    """Return the series of states of a public file, one per unit, in its order."""
    if states not in columns:
        raise PlanError(
            f"promise.correlation.states must be a column of {path.name}, "
            f"got {states[:60]!r}."
        )
    values = columns[states]
    owners: Sequence[Any] = columns.get(unit or "", [None] * len(values))
    series: dict[Any, list[Any]] = {}
    try:
        for owner, value in zip(owners, values, strict=True):
            series.setdefault(owner, []).append(None if value == "" else value)
        seen = {value for value in values if value == value}  # NaN does not
    except TypeError:  # lists and the like
        raise _unreadable(path) from None
    if len(seen - {None, ""}) > _MOST_FITTED_STATES:
        raise PlanError(
            f"promise.correlation.states must be a column of {path.name} with at most "
            f"{_MOST_FITTED_STATES} values, got more; put them in classes."
        )
    return list(series.values())


def _require_order(
    columns: Mapping[str, list[Any]],
    path: Path,
    *,
    unit: str | None,
    moment: str | None,
) -> None:
    """Refuse a public file whose rows are not series in the order of its own times.

    Rows that are shuffled, or of several units without a column that says so, look
    independent, and a chain fitted to them would promise too much.
    """
    times = columns.get(moment or "", [])
    owners: Sequence[Any] = columns.get(unit or "", [None] * len(times))
    last: dict[Any, datetime] = {}
    for owner, value in zip(owners, times, strict=False):
        now = _moment(value)
        if now is None:
            continue
        if now < last.get(owner, now):
            raise PlanError(
                "promise.correlation.fit must have the rows of a series in the order "
                f"of time, got {path.name}, in which {moment} goes back; sort it, or "
                "give it the column that tells units apart."
            )
        if unit not in columns and now == last.get(owner):
            raise PlanError(
                "promise.correlation.fit must be one series where no column tells "
                f"units apart, got {path.name} with several rows at one {moment}; give "
                f"it {'a column' if unit is None else f'the column {unit}'}."
            )
        last[owner] = now


def _moment(value: Any) -> datetime | None:
    """Return a cell of a public file as a time; None if it is none."""
    if isinstance(value, datetime):
        return in_utc(value)
    if isinstance(value, date):
        return datetime.combine(value, time())
    return read_moment(value.strip()) if isinstance(value, str) else None


def _csv_columns(path: Path) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.reader(file)
            names = next(reader, [])
            columns = {name: [] for name in names}
            if len(columns) < len(names):
                raise _unreadable(path)
            for count, row in enumerate(reader):
                fields = row or [""] * len(names)  # an empty line is a gap
                if len(fields) != len(names) or count >= _MOST_RECORDS:
                    raise _unreadable(path)
                for name, value in zip(names, fields, strict=True):
                    columns[name].append(value)
    except (OSError, UnicodeDecodeError, csv.Error):
        raise _unreadable(path) from None
    return columns


def _parquet_columns(path: Path) -> dict[str, list[Any]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise PlanError(
            "pyarrow must be installed to fit a model to a Parquet file; run pip "
            "install 'undertow[release]'."
        ) from None
    try:
        return dict(parquet.read_table(path).to_pydict())
    except (OSError, ValueError):
        raise _unreadable(path) from None


def _unreadable(path: Path) -> PlanError:
    return PlanError(
        f"promise.correlation.fit must be a readable public table, got {path.name}."
    )
