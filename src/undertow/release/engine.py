"""From jobs to aggregates: bounding once, then one query per job, inside the engine."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from undertow.errors import EngineError, PlanError
from undertow.release._extras import load
from undertow.release.aggregate import Rows, aggregate
from undertow.release.bounding import keep_first, window_start
from undertow.release.coding import present
from undertow.release.document import TIME_COLUMNS
from undertow.release.document_errors import nearest
from undertow.release.engine_sql import (
    enclosed,
    epoch_us,
    held,
    midnight,
    moment,
    naive_utc,
    type_name,
    whole_microseconds,
)
from undertow.release.expression import Expression
from undertow.release.expression_ibis import to_ibis
from undertow.release.expression_kinds import Kind
from undertow.release.job import Aggregates, Bounding, Job, Slice
from undertow.release.source import Source
from undertow.release.source_names import absent, types_entry

__all__ = ["Pipeline", "inside", "is_reserved", "run_jobs"]

ibis = load("ibis")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST = -62_135_596_800_000_000  # the year 1
_LAST = 253_402_300_799_999_999  # the end of the year 9999
_OURS = "undertow_"
_WINDOW = "undertow_window"
_KEY_BYTES = 16
_NANOSECONDS = 9  # decimal places of a second


def run_jobs(
    source: Source,
    jobs: Sequence[Job],
    *,
    columns: Mapping[str, Expression] | None = None,
    bounding: Bounding | None = None,
    slice: Slice | None = None,
    key: bytes | None = None,
) -> list[Aggregates]:
    """Run jobs on a table and return their aggregates.

    Parameters
    ----------
    source : Source
        The table, from :func:`open_source`.
    jobs : sequence of Job
        What to count, each over the same bounded rows.
    columns : mapping of str to Expression, optional
        Derived columns.
    bounding : Bounding, optional
        Whose rows they are and how many are kept; by default every row is a unit.
    slice : Slice, optional
        The times that are read; rows without a time are then left out.
    key : bytes, optional
        The secret that orders a unit's rows, 16 bytes or more; by default fresh ones
        from the operating system, which are kept nowhere.

    Returns
    -------
    list of Aggregates
        One per job, in their order: private numbers, not yet noised.

    Raises
    ------
    PlanError
        If a column is not there or its type does not fit.
    EngineError
        If the engine fails.

    Notes
    -----
    Rows whose unit is missing belong to nobody who could be protected and are left out;
    so are rows with a missing key. What is kept of a unit depends on that unit's rows
    and on the key, never on other units, so that adding or removing a unit changes its
    own bounded rows and nothing else.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from undertow.release.job import Bounding, Grid, Job
    >>> from undertow.release.source import open_source
    >>> table = pa.table({"person": [1, 1, 1, 2], "zone": ["A", "A", "A", "B"]})
    >>> grid = Grid(("zone",), (("A", "B", "C"),))
    >>> job = Job("visits", ("rows", "units"), by=("zone",), grid=grid)
    >>> with open_source(table) as source:
    ...     [found] = run_jobs(source, [job], bounding=Bounding("person", 2))
    >>> found.measures["rows"].tolist(), found.measures["units"].tolist()
    ([2, 1, 0], [1, 1, 0])
    """
    key = secrets.token_bytes(_KEY_BYTES) if key is None else key
    if len(key) < _KEY_BYTES:
        raise ValueError(f"key must have at least 16 bytes, got {len(key)}.")
    bounding = Bounding(None, None) if bounding is None else bounding
    run = Pipeline(source, tuple(jobs), dict(columns or {}), bounding, slice, key)
    try:
        return run.answers()
    except EngineError as fault:
        failed = fault
    # A row of a file may have stopped the engine; without what did it, none can.
    again = source.without_faults()
    if again is None:
        raise failed from None
    return replace(run, source=again).answers()


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Jobs on one table: from what is stored to the bounded rows that they read."""

    source: Source
    jobs: tuple[Job, ...]
    derived: dict[str, Expression]
    bounding: Bounding
    slice: Slice | None
    key: bytes

    def answers(self) -> list[Aggregates]:
        """Return the aggregates of all jobs over the same bounded rows."""
        with self.source.reading():
            rows = self.rows()
            return [
                aggregate(rows, job, where=self.where(rows, job)) for job in self.jobs
            ]

    def rows(self) -> Rows:
        """Return the bounded rows with the columns that the jobs read."""
        bounding = self.bounding
        table, used = self._read(), tuple(sorted(self.used()))
        window = None
        if bounding.unit is not None and bounding.window_us is not None:
            table, window = self._windowed(table), _WINDOW
        rows = Rows(
            table,
            self.column,
            bounding.unit,
            window,
            used,
            self.source,
            self.key,
        )
        if bounding.unit is None or bounding.rows is None:
            return rows
        kept = keep_first(
            table,
            bounding.rows,
            within=[bounding.unit] if window is None else [bounding.unit, window],
            order=rows.order(used, "rows"),
            source=self.source,
        )
        again = not kept.held and len(self.jobs) > 1
        return replace(
            rows, table=self.source.kept(kept.table) if again else kept.table
        )

    def where(self, rows: Rows, job: Job) -> Any:
        """Return the condition of a job on the bounded rows."""
        if job.where is None:
            return None
        name = f"where of query {job.name!r}"
        table = rows.table
        return to_ibis(job.where, table, self.derived, name=name, kind=Kind.BOOLEAN)

    def column(self, name: str, table: Any) -> Any:
        """Return the column or derived column of a name."""
        if name in self.derived:
            return to_ibis(self.derived[name], table, self.derived, name=name)
        return table[name]

    def _read(self) -> Any:
        """Return the rows of the slice, times in UTC, only columns that are used."""
        backend, used = self.source.backend, sorted(self.used())
        times = () if self.slice is None else (self.slice.column,)
        read = sorted({*used, *times})
        table = self._part(self.held(read))
        if backend == "duckdb" and self._bounds and not self.source.stored:
            # Bounding reads it several times: all of them must see the same rows.
            table = self._part(self.source.kept(table.select(*read)))
        chosen = {name: table[name] for name in used}
        for name, column in chosen.items():
            if column.type().is_timestamp():
                chosen[name] = whole_microseconds(naive_utc(column, backend), backend)
            chosen[name] = enclosed(chosen[name])
        return table.select(**chosen) if chosen else table

    def held(self, names: Sequence[str]) -> Any:
        """Return the table, these columns with values that no query fails on."""
        table, changed = self.source.table, {}
        for name in names:
            self._check_present(name)
            column = table[name]
            safe = held(column, self.source.backend, collated=self.source.collated)
            if safe is not column:
                changed[name] = safe
        return table.mutate(**changed) if changed else table

    def _part(self, table: Any) -> Any:
        """Return the rows of the slice that belong to a unit."""
        if self.slice is not None:
            table = table.filter(inside(table[self.slice.column], self.slice))
        if self.bounding.unit is not None:
            unit = table[self.bounding.unit]
            _check_unit(self.bounding.unit, unit.type())
            table = table.filter(present(unit))
        return table

    @property
    def _bounds(self) -> bool:
        """Whether any number of rows or cells of a unit is bounded."""
        limits = [self.bounding.rows]
        for job in self.jobs:
            limits += [job.groups_per_unit, job.rows_per_group]
        return self.bounding.unit is not None and any(x is not None for x in limits)

    def _windowed(self, table: Any) -> Any:
        """Add the window of each row; rows without a time are left out."""
        name, backend = str(self.bounding.time), self.source.backend
        _check_time(name, table[name].type())
        table = table.filter(table[name].notnull())
        epoch = epoch_us(naive_utc(table[name], backend), backend)
        start = window_start(epoch, int(self.bounding.window_us or 1))
        table = table.mutate(**{_WINDOW: start})
        return table.filter(table[_WINDOW].notnull())  # infinite times have none

    def used(self) -> set[str]:
        """Return the columns of the table that anything depends on."""
        names = {self.bounding.unit} - {None}
        if self.bounding.window_us is not None:
            names.add(self.bounding.time)
        found = _without_derived({str(name) for name in names}, self.derived)
        return found.union(*(self.used_by(job) for job in self.jobs))

    def used_by(self, job: Job) -> set[str]:
        """Return the columns of the table that a job depends on."""
        names = set(job.by) | ({job.bin_column} - {None})
        names |= set() if job.value is None else {job.value.column}
        names |= set() if job.where is None else job.where.columns
        return _without_derived({str(name) for name in names}, self.derived)

    def _check_present(self, name: str) -> None:
        available = self.source.columns
        if is_reserved(name):
            raise PlanError(
                f"columns must not start with {_OURS}, got {name[:60]!r}; rename it "
                "in the table."
            )
        if name not in available:
            place = self._place(name)
            # The names of the table may be a row of it, and are not repeated.
            stated = self._stated() - {name}
            near = absent(
                name,
                available,
                wanted=self.used(),
                lines=self.source.lines,
                near=nearest(name, stated.difference(TIME_COLUMNS)),
            )
            near = near or nearest(name, stated)
            near = near or _elsewhere(name, text=place.startswith("query"))
            raise PlanError(
                f"columns must be of the table, got {name[:60]!r} in {place}{near}."
            )
        if name in self.source.unread:
            raise PlanError(self.source.unread[name])

    def _stated(self) -> set[str]:
        """Return the names that the release file itself states, and that are there."""
        used = self.used() & set(self.source.columns)
        return used | set(self.derived)

    def _place(self, name: str) -> str:
        """Return where a release file names a column."""
        if name == self.bounding.unit:
            return "source.unit"
        if name == self.bounding.time or (self.slice and name == self.slice.column):
            return "source.time"
        return next(
            f"query {job.name[:60]!r}" for job in self.jobs if name in self.used_by(job)
        )


def is_reserved(name: str) -> bool:
    """Tell whether a name is kept for what the engine adds."""
    return name.lower().startswith(_OURS)


def _elsewhere(name: str, *, text: bool) -> str:
    """Say what a name that is no column may have been meant for."""
    if name in TIME_COLUMNS:
        return f"; {name} is that of source.time, or of a column in [columns]"
    return "; text is written in single quotes, 'so'" if text else ""


def _without_derived(names: set[str], derived: Mapping[str, Expression]) -> set[str]:
    """Replace derived columns by the columns of the table behind them."""
    seen: set[str] = set()
    left = list(names)
    while left:
        name = left.pop()
        if name not in seen:
            seen.add(name)
            left += derived[name].columns if name in derived else ()
    return {name for name in seen if name not in derived}


def _check_unit(name: str, kind: Any) -> None:
    """Refuse units that would be merged: one could then take the place of another."""
    if kind.is_timestamp() and kind.scale == _NANOSECONDS:
        raise PlanError(
            f"source.unit must tell units apart by text, numbers or times in "
            f"microseconds, got nanoseconds in {name[:60]!r}; cast it to microseconds "
            "or to text in the table."
        )


def _check_time(name: str, kind: Any) -> None:
    if not (kind.is_timestamp() or kind.is_date()):
        way = "cast it in the table"
        if kind.is_string():
            entry = types_entry(name, "timestamp")
            way = f"state how it writes them in source.types, such as {entry}"
        raise PlanError(
            f"column {name!r} must hold times or dates, got {type_name(kind)}; {way}."
        )


def inside(column: Any, part: Slice) -> Any:
    """Tell whether a time lies in the slice; a missing time does not."""
    kind = column.type()
    _check_time(part.column, kind)
    zone = kind.is_timestamp() and kind.timezone is not None
    time = midnight(column) if kind.is_date() else column
    found = time.notnull()
    if part.start > _FIRST:
        found &= time >= moment(min(part.start, _LAST), zone=zone)
    if part.stop <= _LAST:
        found &= time < moment(max(part.stop, _FIRST), zone=zone)
    return found
