"""Times that are written as text: their offsets are read, and no text ends a run."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from undertow.release.engine.job import Bounding, Grid, Job, Slice
from undertow.release.engine.pipeline import run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.source.opening import open_source

TEXTS = {
    "2026-01-01T02:30:00+02:00": "2026-01-01 00:30:00",
    "2026-01-01T02:30:00+0200": "2026-01-01 00:30:00",
    "2026-01-01 02:30:00-05:30": "2026-01-01 08:00:00",
    "2026-01-01T02:30:00Z": "2026-01-01 02:30:00",
    "2026-01-01 02:30:00.123456+01": "2026-01-01 01:30:00.123456",
    "2026-03-29 12:00:00 Europe/Berlin": "2026-03-29 10:00:00",
    "2026-01-01 02:30": "2026-01-01 02:30:00",
    "2026-01-01": "2026-01-01 00:00:00",
    "infinity": "infinity",
    "290309-12-22 (BC) 00:00:00+01": "290309-12-22 (BC) 00:00:00",  # before the first
    "294247-01-10 04:00:54.775806-01": "294247-01-10 04:00:54.775806",
    "soon": None,
    "": None,
}


@pytest.fixture(params=["csv", "sqlite"])
def times(request, tmp_path) -> Any:
    """A table with these texts, as times."""
    if request.param == "csv":
        lines = [f"{place},{text}\n" for place, text in enumerate(TEXTS)]
        path = tmp_path / "times.csv"
        path.write_text("place,ts\n" + "".join(lines))
        types = {"place": "int", "ts": "timestamp"}
        return {"spec": path, "types": types}
    path = tmp_path / "times.sqlite"
    file = sqlite3.connect(path)
    file.execute("CREATE TABLE times (place INTEGER, ts TIMESTAMP)")
    file.executemany("INSERT INTO times VALUES (?, ?)", enumerate(TEXTS))
    file.commit()
    file.close()
    return {"spec": path}


def test_times_with_an_offset_are_read_in_utc(times):
    with open_source(**times) as source:
        rows = source.table.order_by("place").select(ts=source.table.ts.cast("string"))
        assert source.execute(rows).column("ts").to_pylist() == list(TEXTS.values())


def test_offsets_put_rows_into_their_hours_and_windows(times):
    hours = Grid(("hour",), ((0, 1, 2, 8),))
    job = Job("hours", ("rows",), by=("hour",), grid=hours)
    day = Slice("ts", 1_767_225_600_000_000, 1_767_312_000_000_000)  # 2026-01-01
    with open_source(**times) as source:
        [found] = run_jobs(
            source,
            [job],
            columns={"hour": parse_expression("hour(ts)")},
            bounding=Bounding(None, None),
            slice=day,
        )
    assert found.measures["rows"].tolist() == [3, 1, 2, 1]
