"""Parquet columns are read with all their digits, or refused."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from undertow.errors import EngineError, PlanError
from undertow.release.engine import run_jobs
from undertow.release.expression import parse_expression
from undertow.release.job import Bounding, Job
from undertow.release.source import open_source

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
