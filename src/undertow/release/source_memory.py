"""Tables in memory: pandas, Polars and Arrow objects, read in place by DuckDB."""

from __future__ import annotations

from typing import Any

from undertow.errors import PlanError
from undertow.release._extras import load
from undertow.release.source import Source, guarded
from undertow.release.source_files import Limits, connect_duckdb, lock_duckdb
from undertow.release.source_names import require_apart

__all__ = ["open_memory"]

_NAME = "undertow_source"
_KINDS = "a pandas, Polars or Arrow table, an Ibis table, a file or a connection URL"


def open_memory(table: Any, *, limits: Limits) -> Source:
    """Open a table in memory.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame or LazyFrame, or Arrow table
        The rows; only what queries need is read from it.
    limits : Limits
        What DuckDB may use.

    Raises
    ------
    PlanError
        If it is no such table.
    """
    arrow = _arrow(table)
    require_apart(arrow.column_names, where="the table in memory")
    connection, closing = connect_duckdb(limits)
    try:
        with guarded("duckdb"):
            connection.con.register(_NAME, arrow)
            lock_duckdb(connection)
            return Source(connection.table(_NAME), "duckdb", closing)
    except BaseException:
        closing()
        raise


def _arrow(table: Any) -> Any:
    arrow = load("pyarrow")
    if isinstance(table, arrow.RecordBatch):
        return arrow.Table.from_batches([table])
    if isinstance(table, arrow.Table):
        return table
    home = type(table).__module__.partition(".")[0]
    kind = f"{home}.{type(table).__name__}"
    if kind == "polars.LazyFrame":
        table, kind = table.collect(), "polars.DataFrame"
    if kind == "polars.DataFrame":
        return table.to_arrow()
    if kind == "pandas.DataFrame":
        return _from_pandas(arrow, table)
    if hasattr(table, "__arrow_c_stream__"):
        try:
            return arrow.table(table)
        except (TypeError, arrow.ArrowException):  # a single column has a stream too
            pass
    kind = type(table).__name__
    way = "; make it a table with to_frame" if kind == "Series" else ""
    raise PlanError(f"table must be {_KINDS}, got {kind}{way}.")


def _from_pandas(arrow: Any, table: Any) -> Any:
    names = list(table.columns)
    if not all(isinstance(name, str) for name in names):
        raise PlanError("the columns of a pandas table must be named by text.")
    require_apart(names, where="the table in memory")  # Arrow refuses them in its words
    try:
        return arrow.Table.from_pandas(table, preserve_index=False)
    except arrow.ArrowException:
        raise PlanError(
            "the columns of a pandas table must each hold values of one type, got a "
            "mixed one; convert it with astype."
        ) from None
