"""One table written as every kind of source, with the cells that only each can hold."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["KINDS", "NAMES", "TYPES", "Broken", "Far", "written"]

NAMES = ("who", "z", "v", "n", "t", "unused")
TYPES = {"v": "float", "n": "int", "t": "timestamp"}
_NUMBER = itertools.count()
_LEAST, _MOST = -(2**63), 2**63 - 1


@dataclass(frozen=True)
class Broken:
    """Bytes in the place of text that are no UTF-8, or half of a surrogate pair."""

    content: bytes


@dataclass(frozen=True)
class Far:
    """A time in milliseconds since 1970, perhaps beyond what engines compute in."""

    ms: int


Row = Sequence[Any]


def written(kind: str, rows: Sequence[Row], folder: Path, server: Any = None) -> Any:
    """Write rows of `NAMES` and return what `open_source` takes.

    A cell that a kind of source cannot hold is written as the nearest that it can.
    """
    return KINDS[kind](rows, folder, server)


def _columns(rows: Sequence[Row]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)] or [[] for _ in NAMES]


def _whole(cell: Any) -> int | None:
    fits = isinstance(cell, int) and _LEAST <= cell <= _MOST
    return int(cell) if fits else None


def _real(cell: Any) -> float | None:
    return float(cell) if isinstance(cell, int | float) else None


def _plain(cell: Any) -> str | None:
    return cell if isinstance(cell, str) else None


def _texts(cells: Sequence[Any]) -> pa.Array:
    """Return text of Arrow, which does not look at what is in it."""
    raw = [
        cell.content
        if isinstance(cell, Broken)
        else cell.encode()
        if isinstance(cell, str)
        else None
        for cell in cells
    ]
    buffers = pa.array(raw, pa.binary()).buffers()
    return pa.Array.from_buffers(pa.string(), len(raw), buffers)


def _arrow_table(rows: Sequence[Row]) -> pa.Table:
    who, z, v, n, t, unused = _columns(rows)
    ticks = [cell.ms if isinstance(cell, Far) else None for cell in t]
    return pa.table(
        [
            _texts(who),
            _texts(z),
            pa.array([_real(cell) for cell in v], pa.float64()),
            pa.array([_whole(cell) for cell in n], pa.int64()),
            pa.array(ticks, pa.int64()).view(pa.timestamp("ms")),
            _texts(unused),
        ],
        names=NAMES,
    )


def _arrow(rows: Sequence[Row], folder: Path, server: Any) -> Any:
    table = _arrow_table(rows)
    z = table["z"].combine_chunks()
    # Some text in a dictionary, whose values are there for all rows at once.
    places = pa.array(range(len(z)), pa.int32())
    words = pa.DictionaryArray.from_arrays(places, z, safe=False)
    return table.set_column(1, "z", words) if len(z) else table


def _parquet(rows: Sequence[Row], folder: Path, server: Any) -> Any:
    path = folder / f"t{next(_NUMBER)}.parquet"
    pq.write_table(_arrow_table(rows), path)
    return path


def _parquet_parts(rows: Sequence[Row], folder: Path, server: Any) -> Any:
    place = folder / f"t{next(_NUMBER)} [1]"
    for part, name in enumerate(("a1", "a[1]", "b?*\\")):
        (place / f"k={part}").mkdir(parents=True)
        table = _arrow_table(rows[part::3])
        pq.write_table(table, place / f"k={part}" / f"{name}.parquet")
    return f"{place}/*/*.parquet"


def _csv_cell(cell: Any) -> bytes:
    if isinstance(cell, Broken):
        return cell.content
    if isinstance(cell, Far):
        return _time_text(cell).encode()
    text = "" if cell is None else str(cell)
    if any(mark in text for mark in '",\r\n'):
        text = '"' + text.replace('"', '""') + '"'
    return text.encode()


def _csv_bytes(rows: Sequence[Row], end: bytes) -> bytes:
    """Return CSV; a row that is bytes is one line as it is."""
    lines = [",".join(NAMES).encode()]
    for row in rows:
        raw = isinstance(row, bytes)
        lines.append(row if raw else b",".join(map(_csv_cell, row)))
    return end.join([*lines, b""])


def _csv(rows: Sequence[Row], folder: Path, server: Any) -> Any:
    path = folder / f"t{next(_NUMBER)}.csv"
    path.write_bytes(_csv_bytes(rows, b"\n"))
    return path


def _csv_returns(rows: Sequence[Row], folder: Path, server: Any) -> Any:
    path = folder / f"t{next(_NUMBER)}.csv"
    path.write_bytes(_csv_bytes(rows, b"\r\n"))
    return path


def _csv_parts(rows: Sequence[Row], folder: Path, server: Any) -> Any:
    place = folder / f"t{next(_NUMBER)} [ab]"
    place.mkdir()
    names = ("a1.csv", "a[1].csv", "*?{a,b}!.csv", "%41 '\"\\k=v.csv", "-ü~#$.csv")
    for part, name in enumerate(names):
        (place / name).write_bytes(_csv_bytes(rows[part :: len(names)], b"\n"))
    return f"{place}/*.csv"


def _sqlite(rows: Sequence[Row], folder: Path, server: Any) -> Any:
    path = folder / f"t{next(_NUMBER)}.sqlite"
    kinds = ("TEXT", "TEXT", "REAL", "INTEGER", "TIMESTAMP", "TEXT")
    columns = ", ".join(map(" ".join, zip(NAMES, kinds, strict=True)))
    with sqlite3.connect(path) as file:
        file.execute(f"CREATE TABLE t ({columns})")
        for row in rows:
            marks, cells = [], []
            for cell in row:
                broken = isinstance(cell, Broken)
                marks.append("CAST(? AS TEXT)" if broken else "?")
                cells.append(_sqlite_cell(cell))
            file.execute(f"INSERT INTO t VALUES ({', '.join(marks)})", cells)
    file.close()
    return path


def _sqlite_cell(cell: Any) -> Any:
    if isinstance(cell, Broken):
        return cell.content
    if isinstance(cell, Far):
        return _time_text(cell)
    if isinstance(cell, int) and not _LEAST <= cell <= _MOST:
        return float(cell)
    return cell


def _time_text(cell: Far) -> str:
    """Return a time as text; far ones as engines write them, or as none."""
    if abs(cell.ms) == _MOST:
        return "infinity" if cell.ms > 0 else "-infinity"
    days, rest = divmod(cell.ms, 86_400_000)
    if 0 <= days < 30_000:
        return f"{np.datetime64(days, 'D')} {np.datetime64(rest, 'ms').item():%H:%M:%S}"
    return "294247-01-10 04:00:54" if cell.ms < 10**16 else f"{cell.ms}-01-01"


def _database_rows(rows: Sequence[Row]) -> list[list[Any]]:
    return [
        [
            _plain(who),
            _plain(z),
            _real(v),
            _whole(n),
            _time_text(t) if isinstance(t, Far) and abs(t.ms) != 2**62 else None,
            _plain(unused),
        ]
        for who, z, v, n, t, unused in rows
    ]


def _duckdb(rows: Sequence[Row], folder: Path, server: Any) -> Any:
    path = folder / f"t{next(_NUMBER)}.duckdb"
    with duckdb.connect(str(path)) as link:
        link.execute(
            "CREATE TABLE t (who VARCHAR, z VARCHAR, v DOUBLE, n HUGEINT,"
            " t TIMESTAMP, unused VARCHAR)"
        )
        for row in _database_rows(rows):
            link.execute(
                "INSERT INTO t VALUES (?, ?, ?, ?, TRY_CAST(? AS TIMESTAMP), ?)", row
            )
        link.execute(
            "UPDATE t SET n = 170141183460469231731687303715884105727 WHERE n = 7"
        )
    return path


def _postgres(rows: Sequence[Row], folder: Path, server: Any) -> Any:
    name = f"rows_{next(_NUMBER)}"
    url = server.url("postgres")
    with psycopg.connect(url, autocommit=True) as link:
        link.execute(
            f"CREATE TABLE {name} (who text, z text, v float8, n numeric,"
            " t timestamp, unused text)"
        )
        for row in _database_rows(rows):
            cells = [c.replace("\0", "0") if isinstance(c, str) else c for c in row]
            cells[3] = Decimal("NaN") if cells[3] == 7 else cells[3]
            link.execute(f"INSERT INTO {name} VALUES (%s, %s, %s, %s, %s, %s)", cells)
    return f"{url}#{name}"


def _pandas(rows: Sequence[Row], folder: Path, server: Any) -> Any:
    """Return columns that hold anything, whose types are stated."""
    cells = [
        [
            cell.content.decode("utf-8", "surrogatepass")
            if cell == SURROGATE
            else pd.Timestamp("2026-01-01T00:30")
            if isinstance(cell, Far) and abs(cell.ms) > 10**13
            else pd.Timestamp(cell.ms, unit="ms")
            if isinstance(cell, Far)
            else cell
            for cell in row
        ]
        for row in rows
    ]
    columns = zip(NAMES, _columns(cells), strict=True)
    return pd.DataFrame({name: pd.Series(c, dtype=object) for name, c in columns})


SURROGATE = Broken(b"\xed\xa0\x80")


def _pandas_typed(rows: Sequence[Row], folder: Path, server: Any) -> Any:
    who, z, v, n, t, unused = _columns(rows)
    text = pd.StringDtype("python")
    odd = ["\ud800" if isinstance(c, Broken) else _plain(c) for c in unused]
    ticks = [cell.ms if isinstance(cell, Far) else _LEAST for cell in t]
    return pd.DataFrame(
        {
            "who": pd.Series([_plain(c) for c in who], dtype=text),
            "z": pd.Series(
                ["\ud800" if isinstance(c, Broken) else _plain(c) for c in z],
                dtype=text,
            ),
            "v": pd.Series([_real(c) for c in v], dtype="float64"),
            "n": pd.Series([_whole(c) for c in n], dtype="Int64"),
            "t": np.array(ticks, dtype="datetime64[ms]"),
            "unused": pd.Series(odd, dtype=object),
        }
    )


def _polars(rows: Sequence[Row], folder: Path, server: Any) -> Any:
    who, z, v, n, t, unused = _columns(rows)
    ticks = [cell.ms if isinstance(cell, Far) else None for cell in t]
    return pl.DataFrame(
        {
            "who": pl.Series([_plain(c) for c in who], dtype=pl.String),
            "z": pl.Series([_plain(c) for c in z], dtype=pl.Categorical),
            "v": pl.Series([_real(c) for c in v], dtype=pl.Float64),
            "n": pl.Series([_whole(c) for c in n], dtype=pl.Int64),
            "t": pl.Series(ticks, dtype=pl.Int64).cast(pl.Datetime("ms")),
            "unused": pl.Series([_plain(c) for c in unused], dtype=pl.String),
        }
    )


KINDS = {
    "arrow": _arrow,
    "csv": _csv,
    "csv with returns": _csv_returns,
    "csv files": _csv_parts,
    "duckdb": _duckdb,
    "pandas": _pandas_typed,
    "pandas objects": _pandas,
    "parquet": _parquet,
    "parquet files": _parquet_parts,
    "polars": _polars,
    "postgresql": _postgres,
    "sqlite": _sqlite,
}
