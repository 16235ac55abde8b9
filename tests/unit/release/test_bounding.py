"""At most so many rows of a unit count, chosen by the key and by nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from typing import Any

import duckdb
import ibis
import pyarrow as pa
import pytest

from undertow.release.engine import _bounding as module
from undertow.release.engine.job import Bounding, Grid, Job
from undertow.release.engine.pipeline import run_jobs
from undertow.release.source.opening import open_source

TOTAL = Grid((), ())
KEY = bytes(range(16))


def rows(table: dict[str, Any], job: Job, bounding: Bounding, key: bytes = KEY) -> Any:
    with open_source(pa.table(table), threads=1) as source:
        [found] = run_jobs(source, [job], bounding=bounding, key=key)
    return found.measures["rows"].tolist()


def by_n(most: int) -> Job:
    return Job("n", ("rows",), by=("n",), grid=Grid(("n",), (tuple(range(most)),)))


def test_a_unit_keeps_at_most_its_rows_and_others_keep_theirs():
    table = {"who": ["a"] * 50 + ["b"] * 3, "n": [*range(50), 1, 2, 3]}
    assert sum(rows(table, by_n(50), Bounding("who", 10))) == 13


def test_without_a_bound_nothing_is_dropped():
    table = {"who": ["a"] * 50, "n": list(range(50))}
    assert sum(rows(table, by_n(50), Bounding("who", None))) == 50


def test_identical_rows_fill_the_bound_exactly():
    table = {"who": ["a"] * 9 + ["b"] * 2, "n": [4] * 11}
    assert rows(table, by_n(5), Bounding("who", 3)) == [0, 0, 0, 0, 5]


@pytest.mark.parametrize("most", [1, 2, 7, 19])
def test_both_ways_of_keeping_the_first_rows_agree(monkeypatch, most):
    # Duplicates of every multiplicity, so that ties cross the bound.
    numbers = [n for n in range(12) for _ in range(1 + n % 4)]
    table = {"who": ["a"] * len(numbers) + ["b"] * 5, "n": [*numbers, 1, 1, 1, 2, 2]}
    quick = rows(table, by_n(12), Bounding("who", most))
    monkeypatch.setattr(module, "_MOST_LEAST", 0)
    assert rows(table, by_n(12), Bounding("who", most)) == quick


def test_few_units_above_the_bound_are_put_in_order_alone(monkeypatch):
    table = {"who": ["a"] * 20 + [f"b{i}" for i in range(60)], "n": [*range(80)]}
    quick = rows(table, by_n(80), Bounding("who", 5))
    assert sum(quick) == 65
    monkeypatch.setattr(module, "_MOST_LEAST", 0)
    assert rows(table, by_n(80), Bounding("who", 5)) == quick


def statements(table: pa.Table, jobs: list[Job], bounding: Bounding) -> list[str]:
    """What the engine is asked, with its own names for what it keeps left out."""
    asked = []
    with open_source(table, threads=1) as source:
        execute, kept = source.execute, source.kept

        def noted(found: Any) -> None:
            words = str(ibis.to_sql(found, dialect="duckdb"))
            asked.append(re.sub(r"(undertow_kept|ibis_\w+)_\w+", r"\1", words))

        def executed(found: Any) -> Any:
            noted(found)
            return execute(found)

        def held(found: Any) -> Any:
            noted(found)
            return kept(found)

        source.execute, source.kept = executed, held  # type: ignore[method-assign]
        run_jobs(source, jobs, bounding=bounding, key=KEY)
    return asked


def units_of(*rows: int, alike: bool) -> pa.Table:
    """So many rows of each unit, those of a unit alike or not."""
    who = [unit for unit, count in enumerate(rows) for _ in range(count)]
    numbers = [0 if alike else n for count in rows for n in range(count)]
    schema = pa.schema({"who": pa.int64(), "n": pa.int64()})
    return pa.table({"who": who, "n": numbers}, schema=schema)


@pytest.mark.parametrize(
    "bounding", [Bounding("who", 3), Bounding("who", None)], ids=["rows", "cells"]
)
def test_the_engine_is_asked_the_same_whatever_the_rows_are(bounding):
    jobs = [
        by_n(5),
        replace(by_n(5), groups_per_unit=2, rows_per_group=2),
        Job("some", ("rows", "units"), by=("n",), groups_per_unit=2),
    ]
    tables = [
        units_of(*rows, alike=alike)
        for rows, alike in [((), False), ((3, 3), False), ((4, 1), True), ((90,), True)]
    ]
    [asked] = {tuple(statements(table, jobs, bounding)) for table in tables}
    assert len(asked) > 3


def test_the_key_decides_which_rows_are_kept():
    table = {"who": ["a"] * 40, "n": list(range(40))}
    kept = {
        tuple(rows(table, by_n(40), Bounding("who", 4), bytes([k] * 16)))
        for k in range(3)
    }
    assert len(kept) == 3
    again = rows(table, by_n(40), Bounding("who", 4))
    assert again == rows(table, by_n(40), Bounding("who", 4))


def test_one_unit_does_not_change_what_is_kept_of_another():
    alone = {"who": ["a"] * 30, "n": list(range(30))}
    both = {"who": ["a"] * 30 + ["b"] * 30, "n": [*range(30), *range(30, 60)]}
    kept = rows(alone, by_n(60), Bounding("who", 6))
    assert rows(both, by_n(60), Bounding("who", 6))[:30] == kept[:30]


def test_units_with_equal_rows_keep_different_ones():
    units = 40
    table = {
        "who": [u for u in range(units) for _ in range(20)],
        "n": [n for _ in range(units) for n in range(20)],
    }
    kept = rows(table, by_n(20), Bounding("who", 5))
    assert sum(kept) == 5 * units
    assert max(kept) < units


@pytest.mark.statistical
def test_every_row_is_kept_equally_often_whatever_its_place():
    # 4000 units of 10 evenly spaced rows, 3 kept: 1200 of each place expected, standard
    # deviation 29; ten places beyond 6 deviations: false alarm below 1e-7.
    units, hour = 4000, 3_600_000_000
    table = {
        "who": [u for u in range(units) for _ in range(10)],
        "at": pa.array([n * hour for n in range(10)] * units, pa.timestamp("us")),
        "n": [*range(10)] * units,
    }
    kept = rows(table, by_n(10), Bounding("who", 3))
    assert sum(kept) == 3 * units
    assert all(abs(count - 1200) < 6 * 29 for count in kept)


@pytest.mark.statistical
@pytest.mark.parametrize(("copies", "most"), [((9, 1), 1), ((40, 10), 10), ((3, 3), 4)])
@pytest.mark.parametrize("way", ["limits", "numbers"])
def test_every_row_is_kept_equally_often_however_many_are_alike(
    monkeypatch, copies, most, way
):
    # Sums over 2000 independent units of at most `most` rows each, beyond six of their
    # deviations: false alarm below 1e-8 for each of the six.
    if way == "numbers":
        monkeypatch.setattr(module, "_MOST_LEAST", 0)
    units, size = 2000, sum(copies)
    one = [n for n, count in enumerate(copies) for _ in range(count)]
    table = {"who": [u for u in range(units) for _ in one], "n": one * units}
    kept = rows(table, by_n(2), Bounding("who", most))
    assert sum(kept) == most * units
    share = copies[0] / size
    deviation = (units * most * share * (1 - share) * (size - most) / (size - 1)) ** 0.5
    assert abs(kept[0] - most * units * share) < 6 * deviation


def test_windows_are_bounded_one_by_one_and_start_at_the_epoch():
    hour = 3_600_000_000
    at = [-hour, -1, 0, 1, hour - 1, hour, 2 * hour]
    table = {"who": ["a"] * 7, "at": pa.array(at, pa.timestamp("us")), "n": [0] * 7}
    bounding = Bounding("who", 1, hour, "at")
    # One row each in the hours -1, 0, 1 and 2.
    assert rows(table, by_n(1), bounding) == [4]


def test_rows_without_a_unit_or_a_window_are_left_out():
    table = {
        "who": ["a", None, "a"],
        "at": pa.array([0, 0, None], pa.timestamp("us")),
        "n": [0, 0, 0],
    }
    assert rows(table, by_n(1), Bounding("who", None)) == [2]
    assert rows(table, by_n(1), Bounding("who", 5, 10**6, "at")) == [1]


def test_a_unit_counts_in_at_most_its_cells():
    table = {"who": ["a"] * 8 + ["b"] * 2, "n": [0, 1, 2, 3, 4, 5, 5, 5, 6, 7]}
    grid = Grid(("n",), (tuple(range(8)),))
    job = Job("n", ("rows", "units"), by=("n",), grid=grid, groups_per_unit=2)
    with open_source(pa.table(table)) as source:
        [found] = run_jobs(source, [job], bounding=Bounding("who", None))
    units = found.measures["units"].tolist()
    assert sum(units[:6]) == 2
    assert units[6:] == [1, 1]


def test_a_unit_counts_in_a_cell_with_at_most_its_rows():
    table = {"who": ["a"] * 8 + ["b"] * 2, "n": [0, 1, 1, 1, 1, 1, 1, 2, 1, 1]}
    grid = Grid(("n",), ((0, 1, 2),))
    job = Job("n", ("rows",), by=("n",), grid=grid, rows_per_group=3)
    assert rows(table, job, Bounding("who", None)) == [1, 5, 1]


def test_a_key_that_is_too_short_is_refused():
    with pytest.raises(ValueError, match="key must have at least 16 bytes"):
        rows({"n": [1]}, by_n(1), Bounding(None, None), b"short")


def test_fresh_keys_are_drawn_where_none_is_given():
    table = pa.table({"who": ["a"] * 40, "n": list(range(40))})
    seen: Counter[tuple[int, ...]] = Counter()
    with open_source(table, threads=1) as source:
        for _ in range(3):
            # Eight of forty: two choices are the same once in 77 million times.
            [found] = run_jobs(source, [by_n(40)], bounding=Bounding("who", 8))
            seen[tuple(found.measures["rows"].tolist())] += 1
    assert len(seen) == 3


LITTLE_MEMORY = """
import sys
from undertow.release.engine.pipeline import run_jobs
from undertow.release.engine.job import Bounding, Grid, Job
from undertow.release.source.opening import open_source

job = Job("n", ("rows",), by=("n",), grid=Grid(("n",), (tuple(range(8)),)))
with open_source("visits.duckdb", memory_mb=int(sys.argv[1]), threads=1) as source:
    [found] = run_jobs(source, [job], bounding=Bounding("who", 10))
print(found.measures["rows"].sum())
"""


@pytest.mark.slow
def test_little_memory_ends_with_an_answer_or_a_refusal_and_not_never(tmp_path):
    units, of_each = 20_000, 50
    with duckdb.connect(str(tmp_path / "visits.duckdb")) as link:
        link.execute(
            f"create table visits as select i % {units} as who,"
            f" (i // {units}) % 8 as n from range({units * of_each}) r(i)"
        )
    script, ends = [sys.executable, "-c", LITTLE_MEMORY], set()
    for memory in (20, 40, 100):
        done = subprocess.run(
            [*script, str(memory)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        ends.add(done.returncode)
        if done.returncode:
            assert "OutOfMemoryException" in done.stderr
        else:
            assert int(done.stdout) == 10 * units
    assert ends == {0, 1}
