"""Tables in memory: pandas, Polars and Arrow objects, read in place by DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy

from undertow.errors import PlanError
from undertow.release._extras import load
from undertow.release.moments import in_utc
from undertow.release.source import Source, guarded
from undertow.release.source_arrow import bearable
from undertow.release.source_files import Limits, connect_duckdb, lock_duckdb
from undertow.release.source_names import absent, require_apart

__all__ = ["open_memory"]

_NAME = "undertow_source"
_LEAST, _MOST = -(2**63), 2**63 - 1
_LARGEST_EXACT = 2**53
_KINDS_READ = "biufM"
"""Of dtypes: truth values, whole numbers with a sign or none, numbers, and times."""
_KINDS = "a pandas, Polars or Arrow table, an Ibis table, a file or a connection URL"


def open_memory(table: Any, *, types: Mapping[str, str], limits: Limits) -> Source:
    """Open a table in memory.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame or LazyFrame, or Arrow table
        The rows; only what queries need is read from it.
    types : mapping of str to str
        Types of the columns of a pandas table that have none of their own.
    limits : Limits
        What DuckDB may use.

    Raises
    ------
    PlanError
        If it is no such table, or a type is stated for a column that has its own.

    Notes
    -----
    The type of a column is what its own dtype or `types` say, never what its cells
    are. A cell that is not of it is missing.
    """
    unread: dict[str, str] = {}
    if _home(table) == "pandas.DataFrame":
        arrow, unread = _from_pandas(table, types)
    else:
        arrow = _arrow(table)
        _check_stated(types, arrow.column_names, objects=())
    if not arrow.column_names:
        raise PlanError(
            "table must have columns, got none; those of an index become columns with "
            "reset_index."
        )
    _check_types(arrow)
    require_apart(arrow.column_names, where="the table in memory")
    arrow = _bearable(_local_times(arrow))
    connection, closing = connect_duckdb(limits)
    try:
        with guarded("duckdb"):
            connection.con.register(_NAME, arrow)
            lock_duckdb(connection)
            # Arrow shares the memory of NumPy and pandas, which others may write to.
            return Source(
                connection.table(_NAME), "duckdb", closing, stored=False, unread=unread
            )
    except BaseException:
        closing()
        raise


def _home(table: Any) -> str:
    """Return the library and the name of the class of a table."""
    return f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"


def _check_stated(
    types: Mapping[str, str], names: Sequence[str], *, objects: Sequence[str]
) -> None:
    """Refuse types of columns that are not there, or have one of their own."""
    for name in types:
        if name not in names:
            why = absent(name, names, wanted=types, lines=False)
            raise PlanError(
                f"source.types must name columns of the table, got {name[:60]!r}{why}."
            )
        if name not in objects:
            raise PlanError(
                "source.types must be left out for a column in memory that has a type "
                f"of its own, got one for {name[:60]!r}."
            )


def _bearable(table: Any) -> Any:
    """Return a table whose text is all UTF-8; other cells of it are missing."""
    for place, field in enumerate(table.schema):
        column = table.column(place)
        read = bearable(column)
        if read is not column:
            table = table.set_column(place, field.name, read)
    return table


def _local_times(table: Any) -> Any:
    """Take the zone off times in seconds and milliseconds; they are in UTC anyway.

    DuckDB would make them microseconds when it reads them, and fail on far ones.
    """
    arrow = load("pyarrow")
    for place, field in enumerate(table.schema):
        kind = field.type
        if not arrow.types.is_timestamp(kind) or kind.tz is None:
            continue
        if kind.unit in ("s", "ms"):
            naive = arrow.timestamp(kind.unit)
            chunks = [chunk.view(naive) for chunk in table.column(place).chunks]
            column = arrow.chunked_array(chunks, naive)
            table = table.set_column(place, field.name, column)
    return table


def _arrow(table: Any) -> Any:
    arrow = load("pyarrow")
    if isinstance(table, arrow.RecordBatch):
        return arrow.Table.from_batches([table])
    if isinstance(table, arrow.Table):
        return table
    kind = _home(table)
    if kind == "polars.LazyFrame":
        with guarded("Polars"):  # whose words may hold data
            table, kind = table.collect(), "polars.DataFrame"
    if kind == "polars.DataFrame":
        return _from_polars(arrow, table)
    if isinstance(table, arrow.RecordBatchReader):
        raise PlanError(
            "table must be one that can be read again, got a RecordBatchReader, which "
            "is empty then; read it with read_all."
        )
    if hasattr(table, "__arrow_c_stream__"):
        try:
            return arrow.table(table)
        except (TypeError, arrow.ArrowException):  # a single column has a stream too
            pass
    kind = type(table).__name__
    way = "; make it a table with to_frame" if kind == "Series" else ""
    raise PlanError(f"table must be {_KINDS}, got {kind}{way}.")


def _from_pandas(table: Any, types: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """Return the columns that have a type, and what refuses the use of the others."""
    arrow = load("pyarrow")
    names = list(table.columns)
    if not all(isinstance(name, str) for name in names):
        raise PlanError("the columns of a pandas table must be named by text.")
    require_apart(names, where="the table in memory")  # Arrow refuses them in its words
    objects = [name for name in names if _is_object(table[name].dtype)]
    _check_stated(types, names, objects=objects)
    columns, unread = [], {}
    for name in names:
        series = table[name]
        if name in types:
            columns.append(_stated_column(arrow, series, types[name]))
        elif name in objects:
            unread[name] = (
                f"column {name[:60]!r} of the pandas table must have a type, got "
                f"{series.dtype.name}, which holds anything; state it in source.types, "
                "or convert the column with astype."
            )
        elif not _is_read(series.dtype):
            unread[name] = (
                f"column {name[:60]!r} of the pandas table must be of a type that "
                f"DuckDB reads, got {series.dtype.name}; convert it with astype."
            )
        else:
            columns.append(_own_column(arrow, series))
            continue
        if name in unread:  # its rows are there all the same
            columns.append(arrow.nulls(len(series), arrow.string()))
    return arrow.table(columns, names=names), unread


def _is_object(dtype: Any) -> bool:
    """Tell whether a column of this type may hold cells of any type."""
    categories = getattr(dtype, "categories", None)
    return "object" in (str(dtype), str(getattr(categories, "dtype", "")))


def _is_read(dtype: Any) -> bool:
    """Tell whether DuckDB reads columns of this type, whatever is in them."""
    categories = getattr(dtype, "categories", None)
    if categories is not None:
        return _is_read(categories.dtype)
    home, name = type(dtype).__module__.partition(".")[0], str(dtype.name)
    if home not in ("numpy", "pandas") or name.startswith("Sparse"):
        return False
    return dtype.kind in _KINDS_READ or name in ("str", "string") or "arrow" in name


def _own_column(arrow: Any, series: Any) -> Any:
    """Return a column by its own type; text that is no Unicode is missing."""
    try:
        column = arrow.Array.from_pandas(series)
    except UnicodeEncodeError:  # half of a surrogate pair
        return _stated_column(arrow, series, "text")
    kind = column.type
    # DuckDB takes a dictionary for text, whatever its values are.
    if arrow.types.is_dictionary(kind) and not _is_text_of(arrow, kind.value_type):
        return column.cast(kind.value_type)
    return column


def _is_text_of(arrow: Any, kind: Any) -> bool:
    return bool(arrow.types.is_string(kind) or arrow.types.is_large_string(kind))


def _stated_column(arrow: Any, series: Any, stated: str) -> Any:
    """Return a column as what it is stated to be; cells of other types are missing."""
    kind, cell_of = _STATED[stated]
    cells = (
        None if missing else cell_of(cell)
        for cell, missing in zip(series, series.isna(), strict=True)
    )
    return arrow.array(list(cells), getattr(arrow, kind[0])(*kind[1:]))


def _whole(cell: Any) -> int | None:
    if isinstance(cell, bool | numpy.bool_):
        return None
    exact = isinstance(cell, Integral) or (
        isinstance(cell, float | numpy.floating) and float(cell).is_integer()
    )
    return int(cell) if exact and _LEAST <= cell <= _MOST else None


def _real(cell: Any) -> float | None:
    if isinstance(cell, bool | numpy.bool_):
        return None
    if isinstance(cell, Integral) and abs(int(cell)) > _LARGEST_EXACT:
        return None
    return float(cell) if isinstance(cell, Decimal | Real | Integral) else None


def _text(cell: Any) -> str | None:
    try:
        return (
            str(cell) if isinstance(cell, str) and cell.encode() is not None else None
        )
    except UnicodeEncodeError:  # half of a surrogate pair
        return None


def _truth(cell: Any) -> bool | None:
    return bool(cell) if isinstance(cell, bool | numpy.bool_) else None


def _day(cell: Any) -> date | None:
    return cell if isinstance(cell, date) and not isinstance(cell, datetime) else None


def _moment(cell: Any) -> datetime | None:
    """Return a time without its zone, in UTC and without what is below microseconds."""
    if not isinstance(cell, datetime):
        return None
    try:
        # A time of pandas counts nanoseconds as well.
        plain = datetime.combine(cell.date(), cell.timetz())
        return in_utc(plain)
    except (OverflowError, ValueError):
        return None


_STATED: dict[str, tuple[tuple[Any, ...], Callable[[Any], Any]]] = {
    "bool": (("bool_",), _truth),
    "date": (("date32",), _day),
    "float": (("float64",), _real),
    "int": (("int64",), _whole),
    "text": (("string",), _text),
    "timestamp": (("timestamp", "us"), _moment),
}
"""For each type that can be stated that of Arrow, and how to read one cell."""


def _from_polars(arrow: Any, table: Any) -> Any:
    try:
        return table.to_arrow()
    except arrow.ArrowException:
        raise PlanError(
            "the columns of a Polars table must be of types that Arrow has, got "
            "another; cast it, or leave it out."
        ) from None


def _check_types(table: Any) -> None:
    """Refuse types of Arrow that DuckDB does not read."""
    types = load("pyarrow").types
    for field in table.schema:
        kind = field.type
        wide = types.is_decimal256(kind) or types.is_float16(kind)
        if wide or (types.is_decimal(kind) and kind.scale < 0):
            family = str(kind).partition("(")[0]  # the digits are those of a value
            raise PlanError(
                f"column {field.name!r} must be of a type that DuckDB reads, got "
                f"{family}; cast it, or leave it out."
            )
