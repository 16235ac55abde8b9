"""No time, however far, ends a run or takes the place of another."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from undertow.errors import PlanError
from undertow.release.engine.job import Bounding, Grid, Job, Slice
from undertow.release.engine.pipeline import run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.source.opening import open_source

HOUR = 3_600_000_000
FAR = [2**62, -(2**62), 2**63 - 1, -(2**63), -(2**63) + 1]
"""Beyond the years that microseconds reach, and what DuckDB calls infinite."""


def times(values: list[int], unit: str, zone: str | None = None) -> pa.Array:
    return pa.array(np.array(values, dtype="int64")).view(pa.timestamp(unit, zone))


def rows(table, job=None, **asked) -> list[int]:
    with open_source(table) as source:
        [found] = run_jobs(source, [job or Job("c", ("rows",))], **asked)
    return found.measures["rows"].tolist()


def far_table(unit: str, zone: str | None) -> pa.Table:
    """Three rows of one person in 1970, and one person for each far time."""
    column = times([0, 0, 0, *FAR], unit, zone)
    return pa.table({"person": [1, 1, 1, *range(2, 2 + len(FAR))], "x": column})


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_one_far_time_does_not_end_a_run(unit, zone):
    table = far_table(unit, zone)
    part = Slice("x", 0, HOUR)
    assert rows(table, bounding=Bounding("person", 2), slice=part) == [2]
    windows = Bounding("person", 2, window_us=HOUR, time="x")
    early = parse_expression("x between date('1970-01-01') and date('1970-01-02')")
    assert rows(table, Job("c", ("rows",), where=early), bounding=windows) == [2]
    years = Job(
        "c", ("rows",), by=("year",), grid=Grid(("year",), ((1969, 1970, 1971),))
    )
    columns = {"year": parse_expression("year(x)")}
    bounding = Bounding("person", 1)
    assert rows(table, years, columns=columns, bounding=bounding) == [0, 1, 0]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("unit", ["s", "us"])
def test_far_times_may_be_units_and_are_bounded(unit, zone):
    column = times([0, 0, 0, *FAR, *FAR], unit, zone)
    found = rows(pa.table({"x": column}), bounding=Bounding("x", 1))[0]
    # Those in microseconds are all read; of the others, the infinite ones.
    assert found == (6 if unit == "us" else 3)


@pytest.mark.parametrize("unit", ["s", "us"])
def test_times_with_a_zone_stay_in_order_and_in_place(unit):
    moments = [-1, 0, 1, 1_767_225_600]
    scale = {"s": 1, "ms": 10**3, "us": 10**6}[unit]
    table = pa.table({"x": times([m * scale for m in moments], unit, "Asia/Tokyo")})
    part = Slice("x", 0, 1_767_225_600 * 10**6)
    assert rows(table, slice=part) == [2]
    midnight = Job("c", ("rows",), where=parse_expression("hour(x) = 0"))
    assert rows(table, midnight) == [3]
    assert rows(table, bounding=Bounding("x", 1)) == [4]


@pytest.mark.parametrize("value", ["'infinity'", "'-infinity'", "'2026-01-01 12:00'"])
def test_infinite_times_with_a_zone_stay_apart(value, tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as link:
        link.execute("create table t (x timestamptz)")
        link.execute(f"insert into t select {value}::timestamptz from range(3)")
        link.execute("insert into t values (NULL), ('1970-01-01')")
    assert rows(path, bounding=Bounding("x", 1)) == [2]
    later = Job("c", ("rows",), where=parse_expression("x > date('2000-01-01')"))
    assert rows(path, later) == [0 if "-inf" in value else 3]


@pytest.mark.parametrize("form", ["memory", "pandas", "parquet"])
def test_nanoseconds_with_a_zone_are_times(form, tmp_path):
    table = pa.table({"person": [1, 1, 2], "x": times([0, 1, 2000], "ns", "UTC")})
    if form == "pandas":
        table = table.to_pandas()
        assert str(table.x.dtype) == "datetime64[ns, UTC]"
    if form == "parquet":
        parquet.write_table(table, tmp_path / "t.parquet")
        table = tmp_path / "t.parquet"
    windows = Bounding("person", 1, window_us=HOUR, time="x")
    part = Slice("x", 0, HOUR)
    assert rows(table, bounding=windows, slice=part) == [2]
    with pytest.raises(PlanError, match="got nanoseconds in 'x'"):
        rows(table, bounding=Bounding("x", 1))


def test_pandas_times_in_seconds_are_read():
    stamps = np.array(["2026-01-01", "300000-01-01"], dtype="datetime64[s]")
    table = pd.DataFrame({"x": stamps})
    assert rows(table, slice=Slice("x", 0, 4 * 10**15)) == [1]


@pytest.mark.parametrize("values", [[1, 2], ["a", "b"]])
def test_windows_of_what_is_no_time_are_refused(values):
    table = pa.table({"person": [1, 1], "x": values})
    bounding = Bounding("person", 1, window_us=HOUR, time="x")
    with pytest.raises(PlanError, match="column 'x' must hold times or dates, got"):
        rows(table, bounding=bounding)


def test_a_slice_of_a_column_that_is_not_there_is_refused():
    with pytest.raises(PlanError, match="columns must be of the table, got 'when'"):
        rows(pa.table({"x": [1]}), slice=Slice("when", 0, 1))


@pytest.mark.parametrize("kind", [pa.int8(), pa.uint8()])
@pytest.mark.parametrize("step", [1, 3], ids=["range", "list"])
def test_public_keys_may_lie_beyond_the_type_of_their_column(kind, step):
    keys = tuple(range(-900, 901, step))
    table = pa.table({"x": pa.array([0, 3, 3, 6, 100], kind)})
    job = Job("c", ("rows",), by=("x",), grid=Grid(("x",), (keys,)))
    found = dict(zip(keys, rows(table, job), strict=True))
    assert (found[0], found[3], found[6]) == (1, 2, 1)
    assert sum(found.values()) == (5 if step == 1 else 4)
