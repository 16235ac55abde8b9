"""How records depend on each other, from what a release file states in public."""

from __future__ import annotations

import csv
from collections.abc import Sequence
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
from undertow.correlation.fitting import MarkovFit, fit_markov
from undertow.errors import ModelError, PlanError

__all__ = ["follows_time", "stated_model"]

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
        fit = _fitted(path, stated.states, unit)
        found = fit.chain(records) if inside else _region(fit, records, path.name)
    return IndependentUnits(found) if inside else found


def _by_numbers(stated: Any, records: int | None) -> Model:
    """Return a model whose parameters are in the release file."""
    if stated.model == "blocks":
        return Blocks.of_size(stated.group, groups=1)
    if stated.model == "gaussian":
        if stated.phi is not None:
            return Gaussian.autoregressive(float(stated.phi), stated.length)
        return Gaussian.limited(float(stated.correlation), stated.group)
    if stated.gamma is not None:
        return MarkovFamily(gamma=float(stated.gamma), length=records)
    rows = [[float(p) for p in row] for row in stated.transition]
    start = stated.initial and [float(p) for p in stated.initial]
    return MarkovChain(rows, start, records)


def _fitted(path: Path, states: str, unit: str | None) -> MarkovFit:
    """Return a chain fitted to a public file."""
    series = _read_series(path, states, unit)
    try:
        return fit_markov(series, public=True)
    except ModelError:
        raise PlanError(
            "promise.correlation.fit must hold series of at least two states, each "
            f"followed by another record at least once, got {path.name}, which does "
            "not; give longer series."
        ) from None


def _region(fit: MarkovFit, records: int | None, name: str) -> MarkovFamily:
    """Return every chain that a public file supports."""
    if not fit.counts.all():
        raise PlanError(
            "promise.correlation.fit must show every state after every state at least "
            f"once, got {name}, which does not; give longer series or fewer states, or "
            "use a blocks model."
        )
    return fit.region(records)


def _read_series(path: Path, states: str, unit: str | None) -> list[list[Any]]:
    """Return the series of states of a public file, one per unit, in its order."""
    columns = _parquet(path) if path.suffix == ".parquet" else _csv(path)
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
