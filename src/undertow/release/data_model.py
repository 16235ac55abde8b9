"""How records depend on each other, from what a release file states in public."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from pathlib import Path
from typing import Any

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
from undertow.release.moments import in_utc, read_moment

__all__ = ["FittedChains", "StatedGroups", "follows_time", "stated_model"]

# Records of a public file up to which a chain is fitted, and states: triples of them
# are counted.
_MOST_RECORDS = 10**7
_MOST_STATES = 200


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
        columns = _parquet(path) if path.suffix == ".parquet" else _csv(path)
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
    if len(seen - {None, ""}) > _MOST_STATES:
        raise PlanError(
            f"promise.correlation.states must be a column of {path.name} with at most "
            f"{_MOST_STATES} values, got more; put them in classes."
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


def _csv(path: Path) -> dict[str, list[Any]]:
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


def _parquet(path: Path) -> dict[str, list[Any]]:
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
