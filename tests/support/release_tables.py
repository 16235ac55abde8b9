"""Tables of visits with every mistake, kept in every kind of source."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

__all__ = ["COLUMNS", "KINDS", "mistaken_rows", "store_rows"]

Row = tuple[str | None, str | None, str | None, int | None]

COLUMNS = ("person", "zone", "ts", "minutes")
KINDS = ("csv", "parquet", "sqlite", "duckdb", "pandas", "polars", "arrow")
"""Where rows are kept; the last three in memory."""


def mistaken_rows(seed: int, count: int = 300) -> list[Row]:
    """Return visits of which many have no unit, another zone, or an odd time."""
    random = Random(seed)
    zones = ["Mitte", "mitte", " Mitte", "nord", "NORD ", "west", None, "Mitte"]
    rows = []
    for _ in range(count):
        day, month = random.randint(1, 31), random.choice([2, 3, 4])
        hour = random.randint(0, 25)
        time = random.choice([f"{day}/{month}/2026 {hour:02}:30", "soon", None])
        if random.random() < 0.5:
            time = f"{random.randint(1, 28):02}/03/2026 {random.randint(0, 23)}:05"
        person = random.choice([None, *(f"p{at}" for at in range(12))])
        minutes = random.choice([None, *range(0, 80, 5)])
        rows.append((person, random.choice(zones), time, minutes))
    return rows


def store_rows(rows: Sequence[Row], kind: str, folder: Path) -> Any:
    """Keep rows; return the name of the file, or the table in memory."""
    import pyarrow as pa

    columns = [list(column) for column in zip(*rows, strict=True)]
    types = [pa.string(), pa.string(), pa.string(), pa.int64()]
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    table = pa.table(arrays, names=list(COLUMNS))
    if kind == "arrow":
        return table
    if kind == "pandas":
        return table.to_pandas()
    if kind == "polars":
        import polars

        return polars.from_arrow(table)
    path = folder / f"visits.{kind}"
    if kind == "csv":
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerows([COLUMNS, *rows])
    elif kind == "parquet":
        from pyarrow import parquet

        parquet.write_table(table, path)
    elif kind == "sqlite":
        with closing(sqlite3.connect(path)) as link, link:
            link.execute(
                "CREATE TABLE visits (person TEXT, zone TEXT, ts TEXT, minutes INT)"
            )
            link.executemany("INSERT INTO visits VALUES (?, ?, ?, ?)", rows)
    else:
        import duckdb

        with closing(duckdb.connect(str(path))) as link:
            link.register("here", table)
            link.execute("CREATE TABLE visits AS SELECT * FROM here")
    return path.name
