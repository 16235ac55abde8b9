"""Parquet columns are read with all their digits, or refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import ibis
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from undertow.errors import EngineError, PlanError
from undertow.release.engine import _dialect as engine_sql
from undertow.release.engine.job import Bounding, Job
from undertow.release.engine.pipeline import run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.plan.encoding import value_lattice
from undertow.release.source.opening import open_source

KEY = bytes(range(32))
LARGE = 10**37


def units(folder, kind) -> list[int]:
    """Write two units that differ in their last digit, and count them."""
    values = [Decimal(LARGE), Decimal(LARGE + 1), Decimal(LARGE + 1)]
    table = pa.table({"x": pa.array(values, kind)})
    path = folder / "t.parquet"
    parquet.write_table(table, path)
    with open_source(path) as source:
        [found] = run_jobs(
            source, [Job("c", ("rows", "units"))], bounding=Bounding("x", 1)
        )
    return [*found.measures["rows"].tolist(), *found.measures["units"].tolist()]


def test_units_that_differ_in_their_last_digit_are_two(tmp_path):
    assert units(tmp_path, pa.decimal128(38, 0)) == [2, 2]


def test_decimals_of_more_digits_than_duckdb_has_are_refused(tmp_path):
    # It would read them as floating point, and take two units for one.
    with pytest.raises(PlanError, match="'x' must have at most 38 digits, got 50; wri"):
        units(tmp_path, pa.decimal256(50, 0))


def broken_text(*cells: bytes) -> pa.Array:
    """Return text of Arrow, which does not look at what is in it."""
    raw = pa.array(cells, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())


def far_times(unit, zone, *ticks: int) -> pa.Array:
    return pa.array(ticks, pa.int64()).view(pa.timestamp(unit, zone))


FAR = [9_300_000_000_000_000, -9_300_000_000_000_000, 2**62, -(2**63)]


@pytest.mark.parametrize("zone", [None, "UTC"])
@pytest.mark.parametrize("far", FAR)
def test_a_time_that_is_too_far_is_missing(tmp_path, zone, far):
    near = [1_767_225_600_000] * 3
    for name, ticks in (("near", near), ("far", [*near, far])):
        column = far_times("ms", zone, *ticks)
        table = pa.table({"who": range(len(ticks)), "t": column})
        parquet.write_table(table, tmp_path / f"{name}.parquet")
    jobs = [
        Job("q", ("rows",), where=parse_expression(where))
        for where in ("year(t) = 2026", "t is null")
    ]
    for name, missing in (("near", 0), ("far", 1)):
        with open_source(tmp_path / f"{name}.parquet") as source:
            found = run_jobs(source, jobs, bounding=Bounding("who", 1))
            again = run_jobs(source, jobs, bounding=Bounding("who", 1))
        counts = [int(one.measures["rows"][0]) for one in found]
        assert counts == [3, missing]
        assert [int(one.measures["rows"][0]) for one in again] == counts


def test_infinite_times_are_units_whether_or_not_others_are_too_far(tmp_path):
    ends = [2**63 - 1, 2**63 - 1, -(2**63) + 1]
    for more in ([], FAR):
        table = pa.table({"t": far_times("ms", None, *ends, *more)})
        parquet.write_table(table, tmp_path / "t.parquet")
        with open_source(tmp_path / "t.parquet") as source:
            [found] = run_jobs(
                source, [Job("c", ("rows", "units"))], bounding=Bounding("t", 1)
            )
        assert found.measures["rows"].tolist() == [2]


@pytest.mark.parametrize("kind", ["plain", "dictionary"])
def test_text_that_is_no_utf_8_is_missing_and_nothing_else_is(tmp_path, kind):
    text = broken_text(b"a", b"\xff\xfe", b"a", b"b")
    if kind == "dictionary":
        text = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3]), text, safe=False)
    columns = {
        "x": text,
        "n": [1, 2, 3, 4],
        "u": pa.array([b"0" * 16] * 4, pa.binary(16)),
        "d": pa.array([Decimal("1.5")] * 4, pa.decimal128(38, 1)),
        "t": far_times("us", "UTC", 0, 1, 2, 2**63 - 1),
    }
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    found = Job("q", ("rows", "units"), by=("x",))
    unused = Job("q", ("rows",), where=parse_expression("n > 1 and d = 1.5"))
    with open_source(tmp_path / "t.parquet") as source:
        [groups, rows] = run_jobs(source, [found, unused])
        assert source.without_faults().table.schema() == source.table.schema()
    assert groups.cells == (("a",), ("b",))
    assert groups.measures["rows"].tolist() == [2, 1]
    assert rows.measures["rows"].tolist() == [3]


def test_a_file_that_was_written_to_is_not_copied(tmp_path):
    table = pa.table({"x": broken_text(b"a", b"\xff")})
    path = tmp_path / "t.parquet"
    parquet.write_table(table, path)
    with open_source(path) as source:
        parquet.write_table(pa.concat_tables([table, table]), path)
        with pytest.raises(EngineError):
            run_jobs(source, [Job("q", ("rows", "units"), by=("x",))])
        assert source.without_faults() is None


def test_folders_that_state_columns_do_so_for_copies(tmp_path):
    for zone, cells in (("A", [b"a", b"\xff"]), ("B%20[1]", [b"a"])):
        (tmp_path / f"zone={zone}").mkdir()
        table = pa.table({"x": broken_text(*cells)})
        parquet.write_table(table, tmp_path / f"zone={zone}" / "t.parquet")
    job = Job("q", ("rows", "units"), by=("zone", "x"))
    with open_source(tmp_path) as source:
        [found] = run_jobs(source, [job])
    assert found.cells == (("A", "a"), ("B [1]", "a"))


HALF = [0.5, 2.0, float("nan"), None, -0.0] * 3
KEPT = [0.5, 2.0, -0.0] * 3
NUMBERS = [
    ("v < 5", 9),
    ("v > 5", 0),
    ("v >= -7", 9),
    ("not v > 5", 9),
    ("v is null", 6),
    ("not v is null", 9),
    ("v = 2 or v != 2", 9),
    ("v between -1 and 3", 9),
    ("v * 2 < 9", 9),
    ("floor(v) < 9", 9),
    ("abs(v) < 9", 9),
    ("coalesce(v, 7) = 7", 6),
    ("v in (0, 2)", 6),
]


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64()], ids=str)
@pytest.mark.parametrize("others", [[], [1e9], [float("inf")], [float("nan")]], ids=str)
@pytest.mark.parametrize("form", ["one group", "groups", "files", "no statistics"])
def test_a_number_is_read_by_itself_whatever_the_statistics_of_a_file_say(
    tmp_path, kind, others, form
):
    """Statistics leave out NaN, so that other rows would say what it is taken for."""
    cells = [*HALF, *others]
    who = [*range(len(HALF)), *(["other"] * len(others))]
    table = pa.table({"who": list(map(str, who)), "v": pa.array(cells, kind)})
    options = {
        "groups": {"row_group_size": 2},
        "no statistics": {"write_statistics": False},
    }
    if form == "files":
        parquet.write_table(table.slice(0, 4), tmp_path / "a.parquet")
        parquet.write_table(table.slice(4), tmp_path / "b.parquet")
    else:
        parquet.write_table(table, tmp_path / "a.parquet", **options.get(form, {}))
    jobs = [
        Job(text, ("rows",), where=parse_expression(f"({text}) and who != 'other'"))
        for text, _ in NUMBERS
    ]
    value = value_lattice("v", low=Fraction(0), high=Fraction(2))
    jobs.append(
        Job(
            "sum",
            ("sum", "rows"),
            value=value,
            where=parse_expression("who != 'other'"),
        )
    )
    with open_source("*.parquet", folder=tmp_path, threads=1) as source:
        found = run_jobs(source, jobs, bounding=Bounding("who", 1), key=KEY)
    rows = [int(one.measures["rows"][0]) for one in found]
    assert rows == [*(number for _, number in NUMBERS), len(KEPT)]
    assert int(found[-1].measures["sum"][0]) * value.step == sum(KEPT)


def test_numbers_that_are_none_are_no_units_of_a_file(tmp_path):
    cells = pa.array([1.0, 2.0, float("nan"), float("nan"), None])
    parquet.write_table(pa.table({"u": cells}), tmp_path / "a.parquet")
    job = Job("q", ("rows", "units"))
    with open_source(tmp_path / "a.parquet", threads=1) as source:
        [found] = run_jobs(source, [job], bounding=Bounding("u", 1), key=KEY)
    assert [int(found.measures[name][0]) for name in job.measures] == [2, 2]


def test_parquet_that_ibis_reads_is_read_like_a_file(tmp_path):
    parquet.write_table(pa.table({"v": pa.array(HALF)}), tmp_path / "a.parquet")
    job = Job("q", ("rows",), where=parse_expression("v < 5"))
    table = ibis.duckdb.connect().read_parquet(tmp_path / "a.parquet")
    with open_source(table) as source:
        [found] = run_jobs(source, [job], key=KEY)
    assert found.measures["rows"].tolist() == [len(KEPT)]


def test_numbers_are_exact_where_duckdb_knows_no_try(tmp_path, monkeypatch):
    cells = [0.1, 5e-324, -0.0, 1e308, float("inf"), float("nan"), 1 / 3]
    parquet.write_table(pa.table({"v": pa.array(cells)}), tmp_path / "a.parquet")
    read = []
    for known in (True, False):
        monkeypatch.setattr(engine_sql, "_has_try", lambda known=known: known)
        with open_source(tmp_path / "a.parquet") as source:
            column = engine_sql.held(source.table.v, "duckdb")
            found = source.execute(source.table.select(v=column))["v"].to_pylist()
        read.append(list(map(repr, found)))
    assert read == [list(map(repr, cells))] * 2
