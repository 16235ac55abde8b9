"""No value of a row switches the bounds off, and no file may change under them."""

from __future__ import annotations

from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from undertow.errors import EngineError, PlanError
from undertow.release.engine._bounding import KeyedOrder, keep_first
from undertow.release.engine.job import Bounding, Grid, Job, Slice, Value
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


@pytest.mark.parametrize("name", ["undertow_limit", "UNDERTOW_tied", "undertow_x"])
def test_columns_with_our_names_are_refused(name):
    table = pa.table({"person": [1] * 6, name: [None, 1, 2, 3, 4, 5]})
    where = parse_expression(f"{name} is null or {name} >= 0")
    job = Job("c", ("rows",), where=where)
    with (
        open_source(table) as source,
        pytest.raises(PlanError, match="must not start with undertow_"),
    ):
        run_jobs(source, [job], bounding=Bounding("person", 1))


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


def dated(tmp_path, rows: list[str], types) -> list[int]:
    path = tmp_path / "days.csv"
    path.write_text("person,day\n" + "".join(rows))
    where = parse_expression("month(day) = 2")
    with open_source(str(path), types=types) as source:
        [found] = run_jobs(
            source, [Job("c", ("rows",), where=where)], bounding=Bounding("person", 1)
        )
    return found.measures["rows"].tolist()


def test_one_row_of_a_csv_file_does_not_change_how_others_are_read(tmp_path):
    rows = [f"{k},2026-02-{k % 28 + 1:02d}\n" for k in range(40)]
    types = {"day": "date"}
    before = dated(tmp_path, rows, types)
    assert before == [40]
    for row in ("99,02/13/2026\n", "99,never\n", "99,\n"):
        assert dated(tmp_path, [*rows, row], types) == before


def test_columns_of_a_csv_file_are_text_unless_a_type_is_stated(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("person,n\n1,7\n2,x\n")
    grid = Grid(("n",), ((7,),))
    job = Job("c", ("rows",), by=("n",), grid=grid)
    with (
        open_source(str(path)) as source,
        pytest.raises(PlanError, match=r"source\.types"),
    ):
        run_jobs(source, [job])
    with open_source(str(path), types={"n": "int"}) as source:
        [found] = run_jobs(source, [job])
    assert found.measures["rows"].tolist() == [1]
    with pytest.raises(PlanError, match=r"source\.types must name columns"):
        open_source(str(path), types={"m": "int"})


def test_parts_of_nanosecond_times_are_read():
    stamps = np.array(["2026-02-01T00:30:00.000000001"], dtype="datetime64[ns]")
    table = pd.DataFrame({"person": [1], "ts": stamps})
    job = Job(
        "c", ("rows",), where=parse_expression("year(ts) = 2026 and month(ts) = 2")
    )
    with open_source(table) as source:
        [answer] = run_jobs(source, [job], bounding=Bounding("person", 1))
    assert answer.measures["rows"].tolist() == [1]


def test_unsigned_numbers_are_added_up():
    table = pa.table({"n": pa.array([0, 5, 2**64 - 1], type=pa.uint64())})
    value = Value("n", Fraction(0), Fraction(10), 0)
    with open_source(table) as source:
        [answer] = run_jobs(source, [Job("s", ("sum",), value=value)])
    assert answer.measures["sum"].tolist() == [15]


def test_lines_of_a_csv_file_are_no_comments(tmp_path):
    path = tmp_path / "people.csv"
    rows = [f"{k},1\n" for k in range(20)] + [f"#{k},1\n" for k in range(20)]
    for more, expected in (([], 40), (["anna,1\n"], 41)):
        path.write_text("person,v\n" + "".join(rows + more))
        with open_source(str(path)) as source:
            [answer] = run_jobs(
                source, [Job("c", ("rows",))], bounding=Bounding("person", 1)
            )
        assert answer.measures["rows"].tolist() == [expected]


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("zone = yes", "got 'yes' in query 'c'; text is written in single quotes"),
        ("month = 3", "got 'month' in query 'c'; month is that of source.time, or"),
    ],
)
def test_a_name_that_is_no_column_is_said_to_be_what_it_may_be(where, words):
    job = Job("c", ("rows",), where=parse_expression(where))
    table = pa.table({"zone": ["A"], "n": [1]})
    with open_source(table) as source, pytest.raises(PlanError, match=words):
        run_jobs(source, [job])


@pytest.mark.parametrize(
    ("bounding", "words"),
    [
        (Bounding("nobody", 1), r"got 'nobody' in source\.unit\."),
        (Bounding("zone", 1, 60, "never"), r"got 'never' in source\.time\."),
    ],
)
def test_a_unit_or_time_that_is_no_column_is_named(bounding, words):
    table = pa.table({"zone": ["A"], "n": [1]})
    with open_source(table) as source, pytest.raises(PlanError, match=words):
        run_jobs(source, [Job("c", ("rows",))], bounding=bounding)


def test_a_table_of_one_column_is_one_without_commas():
    table = pa.table({"zone;n": ["A;1"]})
    with (
        open_source(table) as source,
        pytest.raises(PlanError, match="the table has one column, and the columns of"),
    ):
        run_jobs(source, [Job("c", ("rows",), where=parse_expression("visits = 1"))])


def test_the_types_of_keys_and_column_are_named():
    grid = Grid(("n",), (("1", "2"),))
    table = pa.table({"n": [1, 2]})
    with (
        open_source(table) as source,
        pytest.raises(PlanError, match="column's type, int64, got texts; write such"),
    ):
        run_jobs(source, [Job("c", ("rows",), by=("n",), grid=grid)])
