"""No value of a row switches the bounds off, and no file may change under them."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from undertow.errors import EngineError, PlanError
from undertow.release.engine._bounding import KeyedOrder, keep_first
from undertow.release.engine.job import Bounding, Grid, Job, Slice
from undertow.release.engine.pipeline import run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.source.opening import open_source


def kept_rows(kind: str, value: str, folder, *, bounding=None, job=None) -> list[int]:
    folder.mkdir(exist_ok=True)
    path = folder / "table.duckdb"
    with duckdb.connect(str(path)) as link:
        link.execute(f"create table t (person integer, x {kind}, n integer)")
        link.execute(f"insert into t select 1, {value}::{kind}, i from range(5) r(i)")
    found = job or Job("c", ("rows",), where=parse_expression("x is not null"))
    with open_source(f"{path}#t") as source:
        [answer] = run_jobs(source, [found], bounding=bounding or Bounding("person", 1))
    return answer.measures["rows"].tolist()


@pytest.mark.parametrize("kind", ["DATE", "TIMESTAMP", "TIMESTAMPTZ"])
@pytest.mark.parametrize("value", ["'infinity'", "'-infinity'", "'2026-01-01'"])
def test_infinite_times_are_bounded_like_all_others(kind, value, tmp_path):
    assert kept_rows(kind, value, tmp_path) == [1]


@pytest.mark.parametrize("value", ["'infinity'", "'-infinity'"])
def test_infinite_times_in_nanoseconds_are_missing(value, tmp_path):
    assert kept_rows("TIMESTAMP_NS", value, tmp_path) == [0]


def test_units_in_nanoseconds_are_refused(tmp_path):
    # Two of one microsecond would be one unit, whose rows take each other's places.
    with pytest.raises(PlanError, match="got nanoseconds in 'x'; cast it to micro"):
        kept_rows("TIMESTAMP_NS", "'2026-01-01'", tmp_path, bounding=Bounding("x", 1))


@pytest.mark.parametrize("kind", ["TIMESTAMP", "TIMESTAMPTZ", "DATE"])
def test_units_may_be_times(kind, tmp_path):
    bounding = Bounding("x", 2)
    assert kept_rows(kind, "'2026-01-01'", tmp_path, bounding=bounding) == [2]


@pytest.mark.parametrize(
    ("value", "rows"), [("9" * 38, 1), ("1" + "0" * 38, 0), ("-17" + "0" * 37, 0)]
)
def test_whole_numbers_of_39_digits_are_missing(value, rows, tmp_path):
    # One row of them must not end the run.
    assert kept_rows("HUGEINT", value, tmp_path) == [rows]
    folder, bounding = tmp_path / "unit", Bounding("x", 1)
    assert kept_rows("HUGEINT", value, folder, bounding=bounding) == [rows]


@pytest.mark.parametrize("value", ["'nan'", "'infinity'", "'-infinity'", "1e300"])
def test_numbers_that_are_none_are_bounded_like_all_others(value, tmp_path):
    job = Job("c", ("rows",), by=("n",), grid=Grid(("n",), (tuple(range(5)),)))
    bounding = Bounding("x", 1)  # the unit itself; one that is no number is missing
    missing = value == "'nan'"
    found = kept_rows("DOUBLE", value, tmp_path, bounding=bounding, job=job)
    assert sum(found) == (0 if missing else 1)
    assert sum(kept_rows("DOUBLE", value, tmp_path / "b")) == (0 if missing else 1)


@pytest.mark.parametrize("places", [0, 2, 4, 6, 9])
@pytest.mark.parametrize("sign", ["", "-"])
def test_decimals_of_any_size_and_scale_are_bounded(sign, places, tmp_path):
    value = f"{sign}{'9' * 11}.{'9' * places}"
    assert kept_rows(f"DECIMAL({11 + places}, {places})", value, tmp_path) == [1]


@pytest.mark.parametrize("day", ["'500000-01-01'", "'infinity'", "'2026-01-01'"])
def test_days_that_no_time_reaches_are_missing_times(day, tmp_path):
    near = int("2026" in day)
    job = Job(
        "c", ("rows",), where=parse_expression("x < timestamp('2027-01-01T00:00:00')")
    )
    assert kept_rows("DATE", day, tmp_path, job=job) == [near]
    part = Slice("x", 1_767_225_600_000_000, 1_798_761_600_000_000)
    path = tmp_path / "table.duckdb"
    with open_source(f"{path}#t") as source:
        [answer] = run_jobs(source, [Job("c", ("rows",))], slice=part)
    assert answer.measures["rows"].tolist() == [5 * near]


def test_infinite_times_are_in_no_window(tmp_path):
    bounding = Bounding("person", 1, window_us=3_600_000_000, time="x")
    assert kept_rows("TIMESTAMP", "'infinity'", tmp_path, bounding=bounding) == [0]


def test_nanoseconds_fall_into_the_window_they_lie_in():
    times = ["2026-01-01T00:30:00.000000000", "2026-01-01T00:59:59.999999600"]
    stamps = np.array(times, dtype="datetime64[ns]")
    table = pd.DataFrame({"person": [1, 1], "ts": stamps})
    bounding = Bounding("person", 1, window_us=3_600_000_000, time="ts")
    with open_source(table) as source:
        [answer] = run_jobs(source, [Job("c", ("rows",))], bounding=bounding)
    assert answer.measures["rows"].tolist() == [1]


@pytest.mark.parametrize("value", ["'infinity'", "'20000-01-01'", "'0044-03-15 (BC)'"])
def test_days_that_cannot_be_written_are_no_keys(value, tmp_path):
    job = Job("c", ("rows", "units"), by=("x",))
    bounding = Bounding("person", None)
    found = kept_rows("DATE", value, tmp_path, bounding=bounding, job=job)
    assert found == []


def test_a_file_that_is_written_meanwhile_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "visits.csv"
    path.write_text("person,zone\n1,A\n2,A\n")
    grid = Grid(("zone",), (("A",),))
    job = Job("c", ("rows",), by=("zone",), grid=grid)
    with open_source(str(path)) as source:
        execute, lines = source.execute, ["1,A\n"] * 3

        def written(table):
            if lines:
                with path.open("a") as file:
                    file.write(lines.pop())
            return execute(table)

        monkeypatch.setattr(source, "execute", written)
        with pytest.raises(EngineError, match="must stay as it is while it is read"):
            run_jobs(source, [job], bounding=Bounding("person", 1))


@pytest.mark.parametrize("backend", ["postgres", "pyspark"])
def test_on_a_server_every_statement_bounds_what_it_reads(backend, monkeypatch):
    table = pa.table({"person": [1, 2, 2], "zone": ["A", "A", "A"]})
    order = KeyedOrder(("person",), b"0" * 16, "duckdb", "rows")
    with open_source(table) as source:
        rows = source.table
        with monkeypatch.context() as server:
            server.setattr(source, "backend", backend)
            for name in ("execute", "kept"):  # nothing is asked before
                server.setattr(source, name, None)
            served = keep_first(rows, 1, within=["person"], order=order, source=source)
        assert not served.held
        assert source.execute(served.table).num_rows == 2


@pytest.mark.parametrize("count", [1, 3, 4])
def test_a_type_without_an_order_is_refused_whoever_is_above_the_bound(count, tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as link:
        link.execute(
            "create table t as select 'a'::blob as person from range(?)", [count]
        )
    with (
        open_source(f"{path}#t") as source,
        pytest.raises(PlanError, match="must hold numbers, text, times"),
    ):
        run_jobs(source, [Job("c", ("rows",))], bounding=Bounding("person", 3))


@pytest.mark.parametrize("count", [1, 5])
def test_decimals_of_any_scale_have_an_order(count, tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as link:
        link.execute(
            "create table t as select 1 as person, 0.5::decimal(38, 37) as x "
            "from range(?)",
            [count],
        )
    job = Job("c", ("rows",), where=parse_expression("x is not null"))
    with open_source(f"{path}#t") as source:
        [found] = run_jobs(source, [job], bounding=Bounding("person", 2))
    assert found.measures["rows"].tolist() == [min(count, 2)]
