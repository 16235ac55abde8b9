"""SQLite lets a cell hold anything: what is not of its column's type is missing."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from undertow.release.engine.job import Bounding, Job, Slice
from undertow.release.engine.pipeline import run_jobs
from undertow.release.source import _file as source_sqlite
from undertow.release.source.opening import open_source


def written(folder: Path, kind: str, cells: list[Any]) -> Path:
    """Write one row per cell; text that starts with = is an expression of SQL."""
    path = folder / "t.sqlite"
    with sqlite3.connect(path) as file:
        file.execute(f"CREATE TABLE t (person INTEGER, x {kind})")
        for person, cell in enumerate(cells):
            if isinstance(cell, str) and cell.startswith("="):
                file.execute(f"INSERT INTO t VALUES (?, {cell[1:]})", (person,))
            else:
                file.execute("INSERT INTO t VALUES (?, ?)", (person, cell))
    file.close()
    return path


def read(path: Path) -> list[Any]:
    with open_source(path) as source:
        found = source.execute(source.table.order_by("person")).to_pydict()
    assert found["person"] == list(range(len(found["person"])))
    return [str(x) if hasattr(x, "isoformat") else x for x in found["x"]]


INVALID = "=CAST(x'ff' AS TEXT)"
CASES = [
    ("INTEGER", [1, "abc", 1.5, b"\0", INVALID], [1, None, None, None, None]),
    ("INTEGER", [2**63 - 1, "=1e300", 3.0], [2**63 - 1, None, 3]),
    ("INTEGER", [None, None], [None, None]),
    ("TEXT", ["a", INVALID, b"\xff", "é", "", 5], ["a", None, None, "é", "", "5"]),
    ("TEXT", ["='a'||char(0)", "a"], ["a\0", "a"]),
    ("REAL", [1.5, "abc", 5, b"x"], [1.5, None, 5.0, None]),
    ("REAL", ["=9e999", "=-9e999"], [float("inf"), float("-inf")]),
    ("NUMERIC", [1.5, 2**53, 2**53 + 1], [1.5, 2.0**53, None]),
    ("NUMERIC", [1, 2, 2**53 + 1], [1.0, 2.0, None]),
    ("BOOLEAN", [1, 0, 7, "yes"], [True, False, True, None]),
    ("DATE", ["2026-01-01", "2026-02-30", "", 7], ["2026-01-01", None, None, None]),
    ("TIMESTAMP", ["2026-01-01", "x", 7.5], ["2026-01-01 00:00:00", None, None]),
]


@pytest.mark.parametrize(("kind", "cells", "found"), CASES)
def test_a_cell_of_another_type_is_missing(kind, cells, found, tmp_path):
    assert read(written(tmp_path, kind, cells)) == found


def test_a_cell_of_another_type_changes_no_cell_of_another_piece(tmp_path, monkeypatch):
    monkeypatch.setattr(source_sqlite, "_PIECE", 2)
    path = written(tmp_path, "INTEGER", [1, 2, 3, "abc", 5])
    assert read(path) == [1, 2, 3, None, 5]


def test_units_are_not_merged_by_their_whole_part(tmp_path):
    path = written(tmp_path, "INTEGER", [1, 1, 1.5, 1.5, 2])
    with open_source(path) as source:
        [found] = run_jobs(
            source, [Job("c", ("rows", "units"))], bounding=Bounding("x", 3)
        )
    assert found.measures["rows"].tolist() == [3]
    assert found.measures["units"].tolist() == [2]


def test_a_time_that_is_none_does_not_end_a_run(tmp_path):
    path = written(tmp_path, "TIMESTAMP", ["2026-01-01 10:00:00", "soon", b"\xff"])
    with open_source(path) as source:
        [found] = run_jobs(
            source, [Job("c", ("rows",))], slice=Slice("x", 0, 4 * 10**15)
        )
    assert found.measures["rows"].tolist() == [1]
