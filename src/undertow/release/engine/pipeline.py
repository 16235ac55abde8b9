"""From jobs to aggregates: bounding once, then one query per job, inside the engine.

Numbers of rows become whole numbers on a public lattice, or bins, which all engines
agree on; what comes back are whole numbers per cell.
"""

from __future__ import annotations

import math
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import EngineError, PlanError
from undertow.release._extras import load
from undertow.release.document._error import absent, nearest, types_entry
from undertow.release.document.release_document import TIME_COLUMNS
from undertow.release.engine._bounding import KeyedOrder, keep_first, window_start
from undertow.release.engine._dialect import (
    Backend,
    among,
    double,
    enclosed,
    epoch_us,
    held,
    midnight,
    moment,
    naive_utc,
    truth,
    type_name,
    whole_microseconds,
    wide,
)
from undertow.release.engine.job import Aggregates, Bounding, Job, Slice, Value
from undertow.release.language.expression import Expression
from undertow.release.language.meaning import Kind, to_ibis
from undertow.release.source.table import Source, guarded

ibis = load("ibis")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_US = -62_135_596_800_000_000  # the year 1
_LAST_US = 253_402_300_799_999_999  # the end of the year 9999
_OURS = "undertow_"
_WINDOW_COLUMN = "undertow_window"
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
        The table, from :func:`~undertow.release.open_source`.
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
    >>> from undertow.release.engine.job import Bounding, Grid, Job
    >>> from undertow.release.source.opening import open_source
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
            table, window = self._windowed(table), _WINDOW_COLUMN
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
        table = table.mutate(**{_WINDOW_COLUMN: start})
        return table.filter(table[_WINDOW_COLUMN].notnull())  # infinite times have none

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
    if part.start > _FIRST_US:
        found &= time >= moment(min(part.start, _LAST_US), zone=zone)
    if part.stop <= _LAST_US:
        found &= time < moment(max(part.stop, _FIRST_US), zone=zone)
    return found


# One job on one table: from rows to whole numbers per cell.

_BIN, _CODE, _UNIT, _WINDOW, _USED = "bin", "code", "unit", "window", "used"
_INT64 = 2**63
_FIRST_DATE, _LAST_DATE = date(1, 1, 1), date(9999, 12, 31)


@dataclass(frozen=True, slots=True)
class Rows:
    """The bounded rows that jobs read.

    Parameters
    ----------
    table : Ibis table
        The rows with their columns.
    column : callable
        Returns the column or derived column of a name, on the table or what was
        filtered from it.
    unit, window : str or None
        The names of the unit and of its window.
    used : tuple of str
        The columns that the keyed order of rows depends on.
    source : Source
        Where the table lives.
    key : bytes
        The secret of the run.
    """

    table: Any
    column: Callable[[str, Any], Any]
    unit: str | None
    window: str | None
    used: tuple[str, ...]
    source: Source
    key: bytes

    @property
    def backend(self) -> Backend:
        """The engine."""
        return self.source.backend

    def order(
        self, columns: Sequence[str], label: str, *, distinct: bool = False
    ) -> KeyedOrder:
        """Return the keyed order that depends on these columns."""
        return KeyedOrder(tuple(columns), self.key, self.backend, label, distinct)


def aggregate(rows: Rows, job: Job, *, where: Any) -> Aggregates:
    """Run a job.

    Parameters
    ----------
    rows : Rows
        The bounded rows.
    job : Job
        What to count.
    where : Ibis column or None
        The condition of the job on the rows' table.

    Returns
    -------
    Aggregates
        The whole grid, absent cells as zeros; or the observed groups.

    Raises
    ------
    PlanError
        If a column's type does not fit what is asked of it.
    EngineError
        If the engine fails.

    Notes
    -----
    However many groups there are to be discovered, all are taken: a limit would tell
    their true number to whoever sees it refused.
    """
    totals = _totals(rows, job, counted(rows, job, where))
    if job.total:
        with guarded(rows.backend):
            return _completed(job, rows.source.execute(totals).to_pydict())
    found = rows.source.execute(totals)
    with guarded(rows.backend):
        plain = found.to_pydict()
        kinds = [_arrow_word(found.schema.field(f"key{i}").type) for i in _places(job)]
    return replace(_completed(job, plain), kinds=tuple(kinds))


def _arrow_word(kind: Any) -> str:
    """Return the type of an Arrow column in the words of JSON Schema."""
    from pyarrow import types

    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind):
        return "integer"
    return "number" if types.is_floating(kind) else "string"


def _places(job: Job) -> range:
    return range(len(job.by))


def cell_names(job: Job) -> list[str]:
    """Return the columns that tell the cells of a job apart."""
    names = [f"key{i}" for i in _places(job)]
    return [*names, _BIN] if job.bins is not None else names


def counted(rows: Rows, job: Job, where: Any) -> Any:
    """Return the rows that count, with the keys of their cells and their codes.

    Parameters
    ----------
    rows, job, where
        As for :func:`aggregate`.

    Returns
    -------
    Ibis table
        With the columns of :func:`cell_names` and, where there are units, ``unit``.
    """
    table = rows.table if where is None else rows.table.filter(where)

    def read(name: str) -> Any:
        return enclosed(rows.column(name, table))

    chosen = {"one": ibis.literal(1)}
    chosen |= {f"key{i}": read(name) for i, name in enumerate(job.by)}
    if job.bins is not None:
        chosen[_BIN] = bin_number(read(str(job.bin_column)), job.bins)
    if job.value is not None:
        chosen[_CODE] = code(read(job.value.column), job.value)
    inner = {_UNIT: rows.unit, _WINDOW: rows.window}
    chosen |= {new: table[old] for new, old in inner.items() if old is not None}
    if job.rows_per_group is not None and rows.unit is not None:
        chosen |= {_USED + str(i): table[name] for i, name in enumerate(rows.used)}
    cells = table.select(**chosen)
    conditions = [_public(cells, job, i, rows.used) for i in range(len(job.by))]
    needed = [name for name in (_BIN, _CODE) if name in chosen]
    conditions += [cells[name].notnull() for name in needed]
    return cells.filter(conditions) if conditions else cells


def _public(cells: Any, job: Job, place: int, stored: Sequence[str]) -> Any:
    """Tell whether the key at a place is public; missing keys are not.

    Others than the `stored` columns are derived, and have no type that can be stated.
    """
    column, name = cells[f"key{place}"], job.by[place]
    kind = column.type()
    if not (
        kind.is_integer() or kind.is_string() or kind.is_date() or kind.is_boolean()
    ):
        raise PlanError(
            f"column {name!r} must hold whole numbers, text, dates or truth values to "
            f"be grouped by, got {type_name(kind)}; derive such a column."
        )
    if job.grid is None:
        # Days that Python cannot write are no keys, so that no row can raise an error.
        return (
            column.between(_FIRST_DATE, _LAST_DATE)
            if kind.is_date()
            else column.notnull()
        )
    keys = job.grid.keys[place]
    if not all(fits(key, kind) for key in keys):
        way = _stated(name, kind, keys) if name in stored else ""
        raise PlanError(
            f"the keys of {name!r} must be of the column's type, {type_name(kind)}, "
            f"got {_key_words(keys)}; write such keys{way}."
        )
    return among(column, keys)


def _key_words(keys: Sequence[Any]) -> str:
    """Say of which type keys are, all of which are of one."""
    words = {bool: "truth values", int: "whole numbers", str: "texts"}
    return words.get(type(keys[0]), "dates")


def _stated(name: str, kind: Any, keys: Sequence[Any]) -> str:
    """Say how a column of text is stated to be of the type of its keys."""
    if not kind.is_string():
        return ""
    words = {bool: "bool", int: "int"}
    entry = types_entry(name, words.get(type(keys[0]), "date"))
    place = "" if "{ date" in entry else " of a CSV file"
    return f", or state what the column{place} holds in source.types, such as {entry}"


def fits(key: Any, kind: Any) -> bool:
    """Tell whether a column of a type may hold a key."""
    if isinstance(key, bool):
        return bool(kind.is_boolean())
    if isinstance(key, int):
        return bool(kind.is_integer())
    if isinstance(key, date):
        return bool(kind.is_date())
    return bool(isinstance(key, str) and kind.is_string())


def _grouped_names(job: Job) -> list[str]:
    """Return the columns that tell apart what is returned."""
    return [] if job.total else cell_names(job)


def _totals(rows: Rows, job: Job, cells: Any) -> Any:
    """Return the query for the measures of all observed cells."""
    bounded = job.groups_per_unit is not None or job.rows_per_group is not None
    if rows.unit is not None and bounded:
        return _bounded_totals(rows, job, cells)
    units = cells.count() if rows.unit is None else cells[_UNIT].nunique()
    measures = {
        "rows": lambda: cells.count(),
        "units": lambda: units,
        "sum": lambda: _exact_sum(cells[_CODE], rows.backend),
        "squares": lambda: _exact_sum(_square(cells[_CODE], job), rows.backend),
    }
    chosen = {str(name): measures[name]() for name in job.measures}
    return _grouped(cells, _grouped_names(job), chosen)


def _bounded_totals(rows: Rows, job: Job, cells: Any) -> Any:
    """Bound rows per cell, then cells per unit, then add up over units."""
    unit = [_UNIT] if rows.window is None else [_UNIT, _WINDOW]
    names = cell_names(job)
    if job.rows_per_group is not None:
        used = [_USED + str(i) for i in range(len(rows.used))]
        cells = keep_first(
            cells,
            job.rows_per_group,
            within=[*unit, *names],
            order=rows.order(used, "rows"),
            source=rows.source,
        ).table
    pairs = _pairs(rows, job, cells, [*unit, *names])
    if job.groups_per_unit is not None:
        pairs = keep_first(
            pairs,
            job.groups_per_unit,
            within=unit,
            order=rows.order([*unit, *names], f"cells/{job.name}", distinct=True),
            source=rows.source,
        ).table
    chosen = {
        str(name): pairs[name].sum().cast("decimal(38, 0)") for name in job.measures
    }
    if "units" in chosen:
        chosen["units"] = pairs[_UNIT].nunique()
    return _grouped(pairs, _grouped_names(job), chosen)


def _pairs(rows: Rows, job: Job, cells: Any, within: list[str]) -> Any:
    """Return one row per unit and cell, with its measures."""
    measures = {"rows": cells.count(), "units": cells.count()}
    if _CODE in cells.columns:
        measures["sum"] = _exact_sum(cells[_CODE], rows.backend)
        measures["squares"] = _exact_sum(_square(cells[_CODE], job), rows.backend)
    chosen = {name: measures[name] for name in job.measures}
    return cells.group_by(within).aggregate(**chosen)


def _exact_sum(number: Any, backend: Backend) -> Any:
    # DuckDB and PostgreSQL add 64-bit numbers without overflow, Spark does not.
    number = wide(number) if backend == "pyspark" else number
    return number.sum().cast("decimal(38, 0)")


def _square(number: Any, job: Job) -> Any:
    if job.value is not None and job.value.most**2 >= _INT64:
        return wide(number) * wide(number)
    return number * number


def _grouped(table: Any, names: list[str], measures: dict[str, Any]) -> Any:
    return (
        table.group_by(names).aggregate(**measures)
        if names
        else table.aggregate(**measures)
    )


def _completed(job: Job, found: dict[str, list[Any]]) -> Aggregates:
    """Put the observed cells on the grid."""
    names = _grouped_names(job)
    observed = list(zip(*(found[name] for name in names), strict=True))
    if not names:
        observed = [()]
    if job.total:
        cells = [()]
    elif job.grid is None:
        cells = sorted(observed, key=lambda cell: tuple(map(str, cell)))
    else:
        cells = _all_cells(job)
    place = {cell: i for i, cell in enumerate(observed)}
    rows = [place.get(cell) for cell in cells]
    measures = {
        str(name): _column([0 if i is None else int(found[name][i] or 0) for i in rows])
        for name in job.measures
    }
    return Aggregates(tuple(cells), measures)


def _all_cells(job: Job) -> list[tuple[Any, ...]]:
    keys = list(job.grid.keys) if job.grid is not None else []
    if job.bins is not None:
        keys.append(tuple(range(len(job.bins) - 1)))
    return list(product(*keys))


def _column(numbers: list[int]) -> NDArray[np.int64] | NDArray[np.object_]:
    if all(number < _INT64 for number in numbers):
        return np.array(numbers, dtype=np.int64)
    return np.array(numbers, dtype=object)


# Numbers of rows as whole numbers: codes on a public lattice, and bins.
#
# Integers and decimals are coded exactly as ``floor((x - low) / step + 1/2)``; floating
# point follows the same formula in 64-bit arithmetic, one rounding per operation. The
# three engines agree on every code.

MOST_CODE = 2**48
_LEAST, _GREATEST = -(2**63), 2**63 - 1
_DIGITS = 38  # of a decimal
_EXACT = 2**51  # whole doubles below it survive a multiplication by a power of ten


def present(column: Any) -> Any:
    """Tell whether a row has this number: not missing and not NaN."""
    if column.type().is_floating():
        return column.notnull() & ~column.isnan()
    if column.type().is_decimal() and column.get_backend().name == "postgres":
        # Its decimals hold NaN, whatever their scale, above all numbers.
        return column.notnull() & (column != ibis.literal("NaN").cast("decimal"))
    return column.notnull()


def code(column: Any, value: Value) -> Any:
    """Return the code of a number, from 0 to the largest; missing if it is or is NaN.

    Raises
    ------
    PlanError
        If the column holds no numbers, or the lattice is too fine for exact sums.
    """
    kind = column.type()
    if value.most > MOST_CODE:
        raise PlanError(
            f"the lattice of {value.column!r} must have at most 2^48 points, got "
            f"{value.most}; use a coarser step."
        )
    if kind.is_boolean():
        number = column.isnull().ifelse(ibis.null("int64"), truth(column))
        return _integer_code(number, value)
    if kind.is_integer() and not kind.is_uint64():
        return _integer_code(column.cast("int64"), value)
    if kind.is_floating():
        return _float_code(column.cast("float64"), value)
    if kind.is_uint64():
        return _decimal_code(column.cast("decimal(20, 0)"), value)
    if kind.is_decimal():
        return _decimal_code(_unlimited(column), value)
    raise PlanError(
        f"column {value.column!r} must hold numbers, got {type_name(kind)}; state the "
        "types of a CSV file in source.types."
    )


def _unlimited(column: Any) -> Any:
    """Return a decimal of more digits than others have, on PostgreSQL, without scale.

    What its scale leaves room for could not be written as a decimal of 38.
    """
    precision = column.type().precision
    long = precision is not None and precision > _DIGITS
    return column.cast("decimal").name(column.get_name()) if long else column


def _int(value: int) -> Any:
    return ibis.literal(value, type="int64").cast("int64")


def _clipped(number: Any, least: int, greatest: int) -> Any:
    low, high = _int(least), _int(greatest)
    return (number < low).ifelse(low, (number > high).ifelse(high, number))


def _between(
    number: Any, least: int, greatest: int, *, most: int, inner: Any, whole: bool
) -> Any:
    """Return 0 below the range, `most` above it, and `inner` of the number inside.

    If the ends are `whole`, `inner` of the clipped number says all of that.
    """
    if least > greatest or least > _GREATEST or greatest < _LEAST:
        # No whole number lies inside: everything is at one of the two ends.
        cut = min(max(least, _LEAST), _GREATEST)
        end = (number >= _int(cut)).ifelse(_int(most), _int(0))
        if least > _GREATEST:
            end = _int(0)
        return number.isnull().ifelse(ibis.null("int64"), end)
    least, greatest = max(least, _LEAST), min(greatest, _GREATEST)
    inside = inner(_clipped(number, least, greatest))
    if whole:
        return inside
    above = (number > _int(greatest)).ifelse(_int(most), inside)
    return (number < _int(least)).ifelse(_int(0), above)


def _integer_code(number: Any, value: Value) -> Any:
    start, last = math.ceil(value.low), math.floor(value.high)
    exponent = value.exponent
    offset = start - value.low

    def fine(x: Any) -> Any:
        # (x - low) / step is a whole number and a public remainder.
        rest = math.floor(offset / value.step + Fraction(1, 2))
        # Where one number lies inside, nothing is multiplied, and steps may be any.
        steps = 2**-exponent if start < last else 1
        return (x - _int(start)) * _int(steps) + _int(rest)

    def coarse(x: Any) -> Any:
        # floor((x + constant) / 2^exponent), carry by carry: no sum can overflow.
        constant = 2 ** (exponent - 1) - start
        mask = 2**exponent - 1
        low_bits = (x & _int(mask)) + _int(constant & mask)
        return (x >> exponent) + _int(constant >> exponent) + (low_bits >> exponent)

    if exponent > 61:
        raise PlanError(
            f"the step of {value.column!r} must be below 2^62, got 2^{exponent}."
        )
    inner = fine if exponent <= 0 else coarse
    whole = start == value.low and last == value.high
    return _between(number, start, last, most=value.most, inner=inner, whole=whole)


def _float_code(number: Any, value: Value) -> Any:
    low, high = float(value.low), float(value.high)
    if not math.isfinite(high - low):
        raise PlanError(
            f"the range of {value.column!r} must be finite in 64 bits, got an overflow."
        )
    number = number.isnan().ifelse(ibis.null("float64"), number)
    above = (number > double(high)).ifelse(double(high), number)
    inside = (number < double(low)).ifelse(double(low), above)
    scaled = (inside - double(low)) * double(2.0**-value.exponent)
    rounded = (scaled + double(0.5)).floor().cast("int64")
    return (rounded > _int(value.most)).ifelse(_int(value.most), rounded)


def decimal_places(scale: int | None, value: Value) -> int:
    """Return to how many decimal places a decimal is read before it is coded.

    All of them unless the range is so wide, or the places so many, that 64 bits could
    not hold the products; then as many as fit, rounding half away from zero.
    """
    bound = max(abs(value.low), abs(value.high)) + 1
    for places in range(12 if scale is None else min(scale, 12), -1, -1):
        factor, constant, _ = _division(value, places)
        span = math.ceil((value.high - value.low) * 10**places)
        if bound * 10**places < _EXACT and factor * span + constant < 2**62:
            return places
    raise PlanError(
        f"the bounds of {value.column!r} must be below 2^51 for a decimal column, got "
        "wider ones; cast the column to an integer or floating point in the table."
    )


def _division(value: Value, places: int) -> tuple[int, int, int]:
    """Return (A, B, C) with code = floor((A d + B) / C), d whole units past the start.

    With M = 10^places * step = u / v in lowest terms and r the distance from low to the
    first unit, code = floor((d + r) / M + 1/2), whose fraction 2 r v may be floored:
    floor((2 v d + floor(2 r v) + u) / 2 u).
    """
    M = Fraction(10) ** places * value.step
    u, v = M.numerator, M.denominator
    low = value.low * 10**places
    r = math.ceil(low) - low
    return 2 * v, math.floor(2 * r * v) + u, 2 * u


def _decimal_code(column: Any, value: Value) -> Any:
    scale = column.type().scale if column.type().is_decimal() else 0
    places = decimal_places(scale, value)
    number = _unscaled(column, math.ceil(max(abs(value.low), abs(value.high))), places)
    start = math.ceil(value.low * 10**places)
    last = math.floor(value.high * 10**places)
    A, B, C = _division(value, places)

    def inner(x: Any) -> Any:
        return _floor_divide((x - _int(start)) * _int(A) + _int(B), C)

    code = _between(number, start, last, most=value.most, inner=inner, whole=False)
    return present(column).ifelse(code, ibis.null("int64"))


def _unscaled(column: Any, bound: int, places: int) -> Any:
    """Return a decimal in units of its last place, clipped to one beyond the bound."""
    kind, scale = f"decimal(18, {places})", column.type().scale
    inside = column.cast(kind)
    if scale is None or bound + 1 < 10 ** (_DIGITS - scale):  # else none is beyond
        low, high = ibis.literal(-bound - 1), ibis.literal(bound + 1)
        above = (column > high).ifelse(high.cast(kind), inside)
        inside = (column < low).ifelse(low.cast(kind), above)
    # Both the conversion and the product are within one rounding of a whole number.
    real = inside.cast("float64") * double(10.0**places)
    return (real + double(0.5)).floor().cast("int64")


def _floor_divide(number: Any, divisor: int) -> Any:
    """Divide a whole number >= 0; rounding restores a quotient below 2^50."""
    exact = number - number % _int(divisor)
    real = exact.cast("float64") / double(float(divisor))
    return (real + double(0.5)).floor().cast("int64")


def bin_number(column: Any, cuts: Sequence[Fraction]) -> Any:
    """Return the number of inner cut points that a number has reached.

    Parameters
    ----------
    column : Ibis column
        A number; the bin is missing if it is or is NaN.
    cuts : sequence of Fraction
        Increasing; the first and the last only name the ends.

    Raises
    ------
    PlanError
        If the column holds no numbers, or decimals that no cut point can be written as.
    """
    kind, there = column.type(), present(column)
    if kind.is_boolean():
        column = truth(column)
    elif kind.is_decimal():
        column = _unlimited(column)
    elif not kind.is_numeric():
        raise PlanError(
            f"column {column.get_name()!r} must hold numbers, got {type_name(kind)}."
        )
    found = [_mark(column, cut) for cut in cuts[1:-1]]
    marks = [mark for mark in found if not isinstance(mark, bool)]
    always = sum(mark is True for mark in found)  # these come first

    def count(first: int, last: int) -> Any:
        # Between `first` and `last` cut points are reached.
        if first == last:
            return _int(always + first)
        middle = (first + last + 1) // 2
        upper, lower = count(middle, last), count(first, middle - 1)
        return (column >= marks[middle - 1]).ifelse(upper, lower)

    return there.ifelse(count(0, len(marks)), ibis.null("int64"))


def _mark(column: Any, cut: Fraction) -> Any:
    """Return the least value of the column's type that is not below the cut.

    Instead True where every value reaches the cut, and False where none does.
    """
    kind = column.type()
    if kind.is_floating():
        return double(_float_mark(cut))
    if kind.is_decimal():
        return _decimal_mark(column, cut)
    whole, most = math.ceil(cut), 2**64 - 1 if kind.is_uint64() else _GREATEST
    least = 0 if kind.is_unsigned_integer() else _LEAST
    if not least < whole <= most:
        return whole <= least
    if whole <= _GREATEST:
        return ibis.literal(whole)
    return ibis.literal(Decimal(whole), type=f"decimal({_DIGITS}, 0)")


def _float_mark(cut: Fraction) -> float:
    try:
        nearest = float(cut)
    except OverflowError:
        return math.inf if cut > 0 else -sys.float_info.max
    return nearest if Fraction(nearest) >= cut else math.nextafter(nearest, math.inf)


def _decimal_mark(column: Any, cut: Fraction) -> Any:
    scale = column.type().scale
    places = 12 if scale is None else scale
    whole = math.ceil(cut * 10**places)
    if abs(whole) < 10**_DIGITS:
        # Digits by digits, which are not rounded to those of a context.
        written = (int(whole < 0), tuple(map(int, str(abs(whole)))), -places)
        return ibis.literal(Decimal(written), type=f"decimal({_DIGITS}, {places})")
    if scale:
        return whole < 0
    # Whole numbers of 128 bits, and decimals of PostgreSQL without scale, go further.
    raise PlanError(
        f"the bins of {column.get_name()!r} must be below 10^{_DIGITS - places} for a "
        "decimal column, got a cut point beyond; use nearer ones, or cast the column "
        "to floating point in the table."
    )
