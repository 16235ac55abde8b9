"""The engine's own tables: no unit moves the released numbers further than claimed."""

from datetime import datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import strategies as st

from support.examples import given_examples
from support.release_plans import WINDOWED, release_plan
from undertow.release.engine.pipeline import run_jobs
from undertow.release.source.opening import open_source

START = datetime(2026, 1, 1)
KEY = bytes(range(32))
TYPES = pa.schema(
    [
        ("person", pa.int64()),
        ("ts", pa.timestamp("us")),
        ("z", pa.int64()),
        ("v", pa.int64()),
    ]
)
BY = {"by": ["z"], "keys": {"z": [0, 1, 2]}}
QUERIES = [
    {"name": "count", "select": "count", **BY},
    {"name": "total", "select": "count"},
    {"name": "people", "select": "count_distinct", **BY},
    {"name": "sum", "select": "sum", "column": "v", "low": -3, "high": 2, **BY},
    {"name": "mean", "select": "mean", "column": "v", "low": 0, "high": 4},
    {
        "name": "variance",
        "select": "variance",
        "column": "v",
        "low": 0,
        "high": 4,
        **BY,
    },
    {"name": "bins", "select": "histogram", "column": "v", "bins": [-9, 0, 3, 9]},
]
PAIRS = st.lists(
    st.sampled_from(QUERIES),
    min_size=2,
    max_size=2,
    unique_by=lambda query: query["name"],
)
ROWS = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(0, 3), st.integers(0, 3), st.integers(-9, 9)
    ),
    max_size=24,
)
BOUNDS = st.fixed_dictionaries(
    {"rows_per_unit": st.integers(1, 4)},
    optional={
        "groups_per_unit": st.integers(1, 2),
        "rows_per_group": st.integers(1, 2),
    },
)


def table(rows):
    columns = list(zip(*rows, strict=True)) or [[], [], [], []]
    times = [START + timedelta(hours=hour, minutes=7) for hour in columns[1]]
    return pa.table([columns[0], times, columns[2], columns[3]], schema=TYPES)


def vectors(plan, rows):
    with open_source(table(rows), threads=1) as source:
        found = run_jobs(
            source,
            [task.job for task in plan.tasks],
            columns=plan.document.derived(source.columns),
            bounding=plan.bounding,
            slice=plan.slice,
            key=KEY,
        )
    pairs = zip(plan.queries, found, strict=True)
    return [query.encoding.vector(result).ravel().tolist() for query, result in pairs]


def check(plan, mine, theirs, *, swapped):
    for query, first, second in zip(plan.queries, mine, theirs, strict=True):
        moves = [abs(x - y) for x, y in zip(first, second, strict=True)]
        reach = query.share.need.reach
        total = reach.swap_total if swapped else reach.total
        square = reach.swap_square if swapped else reach.square
        assert sum(moves) <= total, query.name
        assert sum(move**2 for move in moves) <= square, query.name


@given_examples(3, 12, ROWS, ROWS, BOUNDS, PAIRS)
def test_adding_removing_or_replacing_a_person_stays_within_the_reach(
    rows, other, bounds, asked
):
    plan = release_plan({"epsilon": 1}, asked, bounds=bounds)
    rest = [row for row in rows if row[0] != 0]
    full, without = vectors(plan, rows), vectors(plan, rest)
    check(plan, full, without, swapped=False)
    changed = rest + [(0, *row[1:]) for row in other]
    check(plan, full, vectors(plan, changed), swapped=True)


@given_examples(3, 12, ROWS, ROWS, BOUNDS, PAIRS)
def test_changing_what_a_person_did_in_one_window_stays_within_the_reach(
    rows, other, bounds, asked
):
    plan = release_plan(
        {"epsilon": 1, "granularity": "event"}, asked, bounds=bounds, source=WINDOWED
    )
    rest = [row for row in rows if row[:2] != (0, 1)]
    full, without = vectors(plan, rows), vectors(plan, rest)
    check(plan, full, without, swapped=False)
    changed = rest + [(0, 1, *row[2:]) for row in other]
    check(plan, full, vectors(plan, changed), swapped=True)


@pytest.mark.parametrize(
    "bounds", [{"groups_per_unit": 2, "rows_per_group": 1}], ids=["groups only"]
)
def test_windows_are_bounded_one_by_one_without_a_bound_on_rows(bounds):
    plan = release_plan(
        {"epsilon": 1, "granularity": "event"},
        QUERIES[:1],
        bounds=bounds,
        source=WINDOWED,
    )
    rows = [
        (0, hour, zone, 2) for hour in range(4) for zone in (0, 1, 2) for _ in (0, 1)
    ]
    rest = [row for row in rows if row[1] != 1]
    full = vectors(plan, rows)
    check(plan, full, vectors(plan, rest), swapped=False)
    assert sum(full[0]) == 4 * 2


def test_some_person_moves_every_query_as_far_as_claimed():
    plan = release_plan({"epsilon": 1}, QUERIES[:3], bounds={"rows_per_unit": 4})
    cases = [[(0, 0, 0, 1)] * 4, [(0, 0, zone, 1) for zone in (0, 1, 2, 2)]]
    empty, *found = (vectors(plan, case) for case in [[], *cases])
    for at, query in enumerate(plan.queries):
        moved = max(
            sum(abs(x - y) for x, y in zip(case[at], empty[at], strict=True))
            for case in found
        )
        assert moved == query.share.need.reach.total
