"""Parquet columns are read with all their digits, or refused."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from undertow.errors import PlanError
from undertow.release.engine import run_jobs
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
