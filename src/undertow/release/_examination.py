"""What a release would find in its table: exact numbers for the eyes of its owner.

A wrong format of times, a key in another case or a column of another type leaves no
row, and the release pure noise. Here rows are counted at every step on which they may
be lost. All of it is aggregated inside the engine; nothing is written, and nothing may
be published.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Literal

from undertow.release._extras import load
from undertow.release.document.time import TimeFormat, read_time
from undertow.release.engine._dialect import among, enclosed
from undertow.release.engine.job import Job, Slice
from undertow.release.engine.pipeline import (
    Pipeline,
    Rows,
    bin_number,
    cell_names,
    counted,
    fits,
    inside,
    is_reserved,
    present,
)
from undertow.release.plan.planned_query import QueryPlan
from undertow.release.plan.planned_release import ReleasePlan
from undertow.release.source._plain_file import Misfits
from undertow.release.source.table import Source

ibis = load("ibis")

USUAL = (
    "%d/%m/%Y %H:%M",
    "%d/%m/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %I:%M %p",
    "%d.%m.%Y %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d-%m-%Y %H:%M",
    "%d-%m-%Y %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d %H:%M:%S",
    "%Y%m%d%H%M%S",
    "%d/%m/%Y",
    "%m/%d/%Y",
    "%d.%m.%Y",
    "%d-%m-%Y",
    "%Y/%m/%d",
    "%Y%m%d",
)
"""Formats of times that are looked for where texts are not read as times."""

_KEY = b"examine no secret: all rows are read"
_DAYS = 6  # of the usual formats, at their end, are of days alone
_SPELLINGS = 5
_COLUMNS, _HALF = 200, 0.5  # of columns that are looked at, and of their rows


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """The cells of one column.

    Parameters
    ----------
    name : str
        The column.
    kind : str
        What it is read as.
    missing : int
        Cells that have no value as it is read.
    unread : int
        Those among them in which something is written that is not of the kind.
    formats : tuple of (str, int)
        Usual formats of times in which most of the cells are written, and how many.
    """

    name: str
    kind: str
    missing: int
    unread: int = 0
    formats: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class BoundFacts:
    """What one bound leaves out.

    Parameters
    ----------
    name : str
        The bound.
    most : int
        What it allows.
    above : int
        Units above it: in a window where rows are counted per window, or in a cell.
    dropped : int
        Rows, or cells of units, that are left out.
    whole : int
        Rows, or cells of units, before it.
    """

    name: str
    most: int
    above: int
    dropped: int
    whole: int


@dataclass(frozen=True, slots=True)
class KeyFacts:
    """The rows at the keys of one column of a query.

    Parameters
    ----------
    column : str
        What is grouped by.
    matched, missing, other : int
        Rows at one of its keys, without a value, and with another value.
    near : int
        Those with another value that only differs in case, or in blanks at its ends.
    rows : dict
        Rows that count, by key; without the keys that have none.
    empty : tuple
        Keys at which no row counts.
    absent : tuple
        Keys among them that no row has which the condition keeps.
    spellings : tuple of (str, int)
        What the rows say that is near a key, the most frequent first, and their rows.
    elsewhere : (str, int) or None
        A column of the table most of whose values are keys, where few of this one are,
        and its rows at a key.
    """

    column: str
    matched: int
    missing: int
    other: int
    near: int
    rows: dict[Any, int]
    empty: tuple[Any, ...]
    absent: tuple[Any, ...]
    spellings: tuple[tuple[str, int], ...] = ()
    elsewhere: tuple[str, int] | None = None


@dataclass(frozen=True, slots=True)
class ValueFacts:
    """The numbers behind a sum, a mean, a quantile or a histogram."""

    column: str
    missing: int
    below: int
    above: int


@dataclass(frozen=True, slots=True)
class QueryFacts:
    """The rows of one query, before its bounds.

    Parameters
    ----------
    name, select : str
        As in the release file.
    read : int
        Rows of its times that belong to a unit.
    where_false, where_unknown : int
        Rows that its condition leaves out, because it is false or has a missing value.
    keys : tuple of KeyFacts
        For each column grouped by that has public keys.
    value : ValueFacts or None
        Of the rows that its condition and its keys keep.
    bounds : tuple of BoundFacts
        Bounds on its cells.
    rows, units : int
        That count, bounds aside.
    cells, empty : int or None
        Groups, and those without a row; groups found and none where discovered.
    most : int
        Rows in the largest group, or units where they are counted.
    passing : int or None
        Discovered groups with as many units as the threshold.
    half_width : float
        What the plan expects of the noise of a cell.
    drowned : bool
        Whether no group holds more than this noise.
    """

    name: str
    select: str
    read: int
    where_false: int
    where_unknown: int
    keys: tuple[KeyFacts, ...]
    value: ValueFacts | None
    bounds: tuple[BoundFacts, ...]
    rows: int
    units: int
    cells: int
    empty: int
    most: int
    passing: int | None
    half_width: float
    drowned: bool

    @property
    def noise_alone(self) -> bool:
        """Whether its table would hold nothing but noise."""
        return self.rows == 0 or self.drowned or self.passing == 0


@dataclass(frozen=True, slots=True)
class TableFacts:
    """What a release would find in its table.

    Parameters
    ----------
    rows : int
        Of the table.
    columns : tuple of ColumnFacts
        That the release reads.
    outside : int or None
        Rows whose time is none that the run reads; None where it reads all.
    times : tuple of str or None
        The first and the last time in the table.
    homeless : int
        Rows of these times without a unit.
    units : int or None
        Different units.
    alike : int
        Those among them that differ from another one only in case or in blanks.
    bounds : tuple of BoundFacts
        Bounds on all rows of a unit.
    queries : tuple of QueryFacts
        Query by query.
    engine : str
        What was asked.
    misfits : Misfits or None
        Rows of a CSV file that are not like its first line.
    """

    rows: int
    columns: tuple[ColumnFacts, ...]
    outside: int | None
    times: tuple[str | None, str | None] | None
    homeless: int
    units: int | None
    alike: int
    bounds: tuple[BoundFacts, ...]
    queries: tuple[QueryFacts, ...] = field(repr=False)
    engine: str
    misfits: Misfits | None = None


def examine(plan: ReleasePlan, source: Source) -> TableFacts:
    """Count the rows of a table at every step on which a release may lose them.

    Parameters
    ----------
    plan : ReleasePlan
        What would be run.
    source : Source
        Its table.

    Raises
    ------
    PlanError
        If a run would be refused, because a column is not there or of another type.
    EngineError
        If the table cannot be read.
    """
    whole = _pipeline(plan, source, plan.queries, _widest(plan))
    with source.reading():
        columns, rows, outside, times = _columns(plan, whole)
        kept = whole.rows()
        homeless = rows if outside is None else rows - outside
        homeless -= _count(source, kept.table)
        bounds, (units, alike) = _bounds(plan, kept)
        queries = tuple(_query(plan, source, query) for query in plan.queries)
    return TableFacts(
        rows,
        columns,
        outside,
        times,
        homeless,
        units,
        alike,
        bounds,
        queries,
        source.backend,
        source.misfits(),
    )


def _widest(plan: ReleasePlan) -> Slice | None:
    """Return the times that anything in the run reads."""
    parts = [task.slice for task in plan.tasks]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    start, stop = min(s.start for s in known), max(s.stop for s in known)
    return replace(known[0], start=start, stop=stop)


def _pipeline(
    plan: ReleasePlan,
    source: Source,
    queries: Sequence[QueryPlan],
    part: Slice | None,
) -> Pipeline:
    """Return how the rows of some queries are read, none of them left out."""
    jobs = tuple(query.job for query in queries)
    derived = plan.document.derived(source.columns)
    return Pipeline(
        source, jobs, derived, replace(plan.bounding, rows=None), part, _KEY
    )


def _count(source: Source, table: Any) -> int:
    return int(_row(source, table, {"rows": table.count()})["rows"])


def _row(source: Source, table: Any, counts: Mapping[str, Any]) -> dict[str, Any]:
    """Return some aggregates of a table; sums of nothing are 0."""
    [found] = source.execute(table.aggregate(**counts)).to_pylist()
    return {name: 0 if value is None else value for name, value in found.items()}


def _columns(
    plan: ReleasePlan, whole: Pipeline
) -> tuple[tuple[ColumnFacts, ...], int, int | None, Any]:
    """Return the cells of the columns that are read, all rows, and those outside."""
    source, part = whole.source, whole.slice
    names = sorted({*whole.used(), *(() if part is None else (part.column,))})
    table = whole.held(names)
    counts = {"rows": table.count()}
    for at, name in enumerate(names):
        counts[f"missing{at}"] = table.count(where=~present(table[name]))
    if part is not None:
        time = table[part.column]
        counts["inside"] = table.count(where=inside(time, part))
        counts["first"] = time.min().cast("string")
        counts["last"] = time.max().cast("string")
    found = _row(source, table, counts)
    rows, filled = int(found["rows"]), source.filled(names)
    columns = []
    for at, name in enumerate(names):
        missing = int(found[f"missing{at}"])
        unread = max(0, missing - (rows - filled[name])) if name in filled else 0
        kind = str(plan.document.source.types.get(name, table[name].type()))
        formats = _formats(source, name, kind) if unread else ()
        columns.append(ColumnFacts(name, kind, missing, unread, formats))
    if part is None:
        return tuple(columns), rows, None, None
    # Rows without a time are none of the run either, but are told of with the column.
    times = (found["first"] or None, found["last"] or None)
    return tuple(columns), rows, rows - int(found["inside"]), times


def _formats(source: Source, name: str, kind: str) -> tuple[tuple[str, int], ...]:
    """Return the usual formats in which most cells of a column of text are written."""
    days = kind.startswith("date")
    if source.written is None or not (days or kind.startswith("timestamp")):
        return ()
    if not source.written[name].type().is_string():
        return ()
    table = source.written
    known = USUAL[-_DAYS:] if days else USUAL
    word: Literal["date", "timestamp"] = "date" if days else "timestamp"
    counts = {
        f"f{at}": read_time(
            table[name],
            TimeFormat(word, form),
            source.backend,
            collated=source.collated,
        ).count()
        for at, form in enumerate(known)
    }
    found = [int(count) for count in _row(source, table, counts).values()]
    best = max(found)
    pairs = zip(known, found, strict=True)
    return tuple((form, n) for form, n in pairs if n == best) if best else ()


def _bounds(
    plan: ReleasePlan, rows: Rows
) -> tuple[tuple[BoundFacts, ...], tuple[int | None, int]]:
    """Return what the bound on all rows of a unit leaves out, and the units.

    Those units are told apart that differ only in case or in blanks at their ends.
    """
    if rows.unit is None:
        return (), (None, 0)
    column = rows.table[rows.unit]
    measures = {"units": column.nunique()}
    if column.type().is_string():
        measures["people"] = column.strip().lower().nunique()
    units = _row(rows.source, rows.table, measures)
    most = plan.bounding.rows
    within = [rows.unit] if rows.window is None else [rows.unit, rows.window]
    bound = _bound("rows_per_unit", most, rows.source, rows.table, within)
    alike = units["units"] - units.get("people", units["units"])
    return bound, (int(units["units"]), int(alike))


def _bound(
    name: str, most: int | None, source: Source, table: Any, within: Sequence[str]
) -> tuple[BoundFacts, ...]:
    """Return how many groups have more rows than a bound, and how many rows more."""
    if most is None:
        return ()
    groups = table.group_by(list(within)).aggregate(n=table.count())
    n = groups.n.cast("int64")
    counts = {
        "above": groups.count(where=n > most),
        "dropped": (n - most).sum(where=n > most).cast("int64"),
        "whole": n.sum().cast("int64"),
    }
    found = {key: int(value) for key, value in _row(source, groups, counts).items()}
    return (BoundFacts(name, most, **found),)


def _query(plan: ReleasePlan, source: Source, query: QueryPlan) -> QueryFacts:
    run = _pipeline(plan, source, [query], query.slice)
    rows, job = run.rows(), query.job
    where = run.where(rows, job)
    cells = counted(rows, job, where)  # what does not fit together is refused here
    read = _lost(rows, job, where)
    sizes, by_key = _groups(rows, job, cells, query)
    groups, most = sizes["groups"], sizes["most"]
    value, name = None, _number_of(job)
    if name is not None:
        value = ValueFacts(name, read["void"], read["below"], read["above"])
    width = float(query.expected_error["half_width"])
    return QueryFacts(
        query.name,
        query.select,
        read["rows"],
        read["off"],
        read["unknown"],
        _keys(run, rows, job, where, read, by_key),
        value,
        _cell_bounds(rows, job, cells),
        read["counted"],
        sizes["units"],
        groups if job.grid is None else job.grid.size,
        0 if job.grid is None else job.grid.size - groups,
        most,
        sizes.get("passing"),
        width,
        _is_drowned(query, most, width),
    )


def _lost(rows: Rows, job: Job, where: Any) -> dict[str, int]:
    """Count the rows of a query that its condition, keys and numbers leave out."""
    table = rows.table
    chosen: dict[str, Any] = {"on": ibis.literal(True) if where is None else where}
    for at, name in enumerate(job.by):
        column = enclosed(rows.column(name, table))
        chosen[f"there{at}"] = column.notnull()
        public, near = column.notnull(), ibis.literal(False)
        if job.grid is not None:
            keys = job.grid.keys[at]
            public = among(column, keys)
            near = _is_near(column, keys)
        chosen[f"public{at}"], chosen[f"near{at}"] = public, near
    number = _number_of(job)
    if number is not None:
        column = enclosed(rows.column(number, table))
        chosen["place"] = bin_number(column, _ends(job))
    seen = table.select(**chosen)
    flags = {n: seen[n].fill_null(False) for n in chosen if n != "place"}
    on = kept = flags["on"]
    counts = {
        "rows": seen.count(),
        "unknown": seen.count(where=seen["on"].isnull()),
        "off": seen.count(where=~on & seen["on"].notnull()),
    }
    for at in range(len(job.by)):
        there, public = flags[f"there{at}"], flags[f"public{at}"]
        counts[f"matched{at}"] = seen.count(where=on & public)
        counts[f"missing{at}"] = seen.count(where=on & ~there)
        counts[f"other{at}"] = seen.count(where=on & there & ~public)
        counts[f"near{at}"] = seen.count(where=on & ~public & flags[f"near{at}"])
        kept = kept & public
    if number is not None:
        place = seen["place"]
        counts["void"] = seen.count(where=kept & place.isnull())
        counts["below"] = seen.count(where=kept & (place == 0))
        counts["above"] = seen.count(where=kept & (place == 2))
        kept = kept & place.notnull()
    counts["counted"] = seen.count(where=kept)
    found = _row(rows.source, seen, counts)
    return {name: int(value) for name, value in found.items()}


def _number_of(job: Job) -> str | None:
    """Return the column that is added up or cut."""
    return job.bin_column if job.value is None else job.value.column


def _ends(job: Job) -> tuple[Fraction, ...]:
    """Return cut points that put a number below, between or above its bounds."""
    if job.value is not None:
        low, high = job.value.low, job.value.high
    else:
        assert job.bins is not None
        low, high = job.bins[0], job.bins[-1]
    # The upper bound itself is not above it; nor is what double precision takes for it.
    above = high + max(abs(high), Fraction(1)) / 10**15
    return (low - 1, low, above, above + 1)


def _is_near(column: Any, keys: Sequence[Any]) -> Any:
    """Tell whether a text is a key but for case, or for blanks at its ends."""
    texts = [key for key in keys if isinstance(key, str)]
    if not texts:
        return ibis.literal(False)
    return among(column.strip().lower(), sorted({key.strip().lower() for key in texts}))


def _keys(
    run: Pipeline,
    rows: Rows,
    job: Job,
    where: Any,
    read: Mapping[str, int],
    by_key: Sequence[Mapping[Any, int]],
) -> tuple[KeyFacts, ...]:
    """Return the rows at the public keys of each column."""
    if job.grid is None:
        return ()
    found, source = [], rows.source
    table = rows.table if where is None else rows.table.filter(where)
    for at, (column, keys) in enumerate(zip(job.by, job.grid.keys, strict=True)):
        values = table.select(value=enclosed(rows.column(column, table)))
        there = values.filter(among(values.value, keys)).select("value").distinct()
        seen = {*source.execute(there).to_pydict()["value"]}
        matched, near, other = (read[f"{n}{at}"] for n in ("matched", "near", "other"))
        found.append(
            KeyFacts(
                column,
                matched,
                read[f"missing{at}"],
                other,
                near,
                dict(by_key[at]),
                tuple(key for key in keys if key not in by_key[at]),
                tuple(key for key in keys if key not in seen),
                _spellings(source, values, keys) if near else (),
                _elsewhere(run, column, keys) if other > matched else None,
            )
        )
    return tuple(found)


def _spellings(
    source: Source, values: Any, keys: Sequence[Any]
) -> tuple[tuple[str, int], ...]:
    """Return the most frequent texts that are a key but for case and blanks."""
    some = values.filter(_is_near(values.value, keys), ~among(values.value, keys))
    listed = some.group_by("value").aggregate(n=some.count())
    listed = listed.order_by(listed.n.desc(), listed.value).limit(_SPELLINGS)
    found = source.execute(listed).to_pydict()
    return tuple(zip(found["value"], map(int, found["n"]), strict=True))


def _elsewhere(
    run: Pipeline, column: str, keys: Sequence[Any]
) -> tuple[str, int] | None:
    """Return another column of the table that most rows have keys in, if any."""
    source = run.source
    names = [
        name
        for name, kind in source.table.schema().items()
        if fits(keys[0], kind)
        and name != column
        and name not in source.unread
        and not is_reserved(name)
    ][:_COLUMNS]
    if not names:
        return None
    table, counts = run.held(names), {}
    for at, name in enumerate(names):
        counts[f"at{at}"] = table.count(where=among(table[name], keys))
        counts[f"of{at}"] = table[name].count()
    found = _row(source, table, counts)
    most = max(range(len(names)), key=lambda at: int(found[f"at{at}"]))
    there, filled = int(found[f"at{most}"]), int(found[f"of{most}"])
    return (names[most], there) if there > _HALF * filled else None


def _groups(
    rows: Rows, job: Job, cells: Any, query: QueryPlan
) -> tuple[dict[str, int], list[dict[Any, int]]]:
    """Return how many groups there are and how large, and the rows at each key.

    A group of a histogram or a quantile has all its bins.
    """
    source, names = rows.source, [f"key{at}" for at in range(len(job.by))]
    units = cells.count() if rows.unit is None else cells["unit"].nunique()
    size = units if query.kind.counts == "units" else cells.count()
    row = _row(source, cells, {"rows": cells.count(), "units": units, "most": size})
    everyone, rows_all = int(row["units"]), int(row["rows"])
    if not names:
        sizes = {"groups": int(rows_all > 0), "most": int(row["most"])}
        return sizes | {"units": everyone}, []
    groups = cells.group_by(names).aggregate(n=cells.count(), size=size, units=units)
    if job.grid is None:
        passing = groups.count(where=groups.units >= int(query.threshold or 0))
        asked = {"groups": groups.count(), "most": groups["size"].max()}
        row = _row(source, groups, {**asked, "passing": passing})
        return {k: int(v) for k, v in row.items()} | {"units": everyone}, []
    listed = source.execute(groups).to_pydict()
    by_key = [Counter[Any]() for _ in names]
    for name, total in zip(names, by_key, strict=True):
        for key, number in zip(listed[name], listed["n"], strict=True):
            total[key] += int(number)
    most = max(map(int, listed["size"]), default=0)
    sizes = {"groups": len(listed["n"]), "most": most, "units": everyone}
    return sizes, [dict(total) for total in by_key]


def _cell_bounds(rows: Rows, job: Job, cells: Any) -> tuple[BoundFacts, ...]:
    """Return what the bounds on the cells of a unit leave out."""
    if rows.unit is None:
        return ()
    unit = ["unit"] if rows.window is None else ["unit", "window"]
    within = [*unit, *cell_names(job)]
    found = _bound("rows_per_group", job.rows_per_group, rows.source, cells, within)
    pairs = cells.select(*within).distinct()
    return found + _bound(
        "groups_per_unit", job.groups_per_unit, rows.source, pairs, unit
    )


def _is_drowned(query: QueryPlan, most: int, width: float) -> bool:
    """Tell whether what the largest group can show is no more than the noise of it."""
    if query.run is not None or most == 0:
        return False  # a total of which this run reads a part
    return query.encoding.largest(most) <= width
