"""One job on one table: from rows to whole numbers per cell."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.errors import PlanError
from undertow.release._extras import load
from undertow.release.bounding import keep_first
from undertow.release.coding import bin_number, code
from undertow.release.column_types import arrow_word
from undertow.release.engine_sql import Backend, among, enclosed, type_name, wide
from undertow.release.job import Aggregates, Job
from undertow.release.keyed import KeyedOrder
from undertow.release.source import Source, guarded
from undertow.release.source_names import types_entry

__all__ = ["Rows", "aggregate", "cell_names", "counted", "fits"]

ibis = load("ibis")

_BIN, _CODE, _UNIT, _WINDOW, _USED = "bin", "code", "unit", "window", "used"
_INT64 = 2**63
_FIRST, _LAST = date(1, 1, 1), date(9999, 12, 31)


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
        kinds = [arrow_word(found.schema.field(f"key{i}").type) for i in _places(job)]
    return replace(_completed(job, plain), kinds=tuple(kinds))


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
        return column.between(_FIRST, _LAST) if kind.is_date() else column.notnull()
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
