"""No row of any source moves the numbers further than claimed, or ends the run."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.examples import given_examples
from support.release_plans import release_plan
from support.release_sources import KINDS, SURROGATE, TYPES, Broken, Far, written
from undertow.errors import EngineError, PlanError
from undertow.release.engine.pipeline import run_jobs
from undertow.release.source.opening import open_source

KEY = bytes(range(32))
START = 1_767_225_600_000  # 2026 in milliseconds
BY = {"by": ["z"], "keys": {"z": ["A", "B", ""]}}
QUERIES = [
    {"name": "count", "select": "count", **BY},
    {"name": "total", "select": "count"},
    {"name": "large", "select": "count", "where": f"n = {2**53}"},
    {"name": "there", "select": "count", "where": "not v is null or n is null"},
    {"name": "late", "select": "count", "where": "year(t) = 2026", **BY},
    {"name": "long", "select": "count", "where": "length(z) < 3 and z != 'B'"},
    {"name": "sum", "select": "sum", "column": "v", "low": -3, "high": 2, **BY},
    {"name": "whole", "select": "sum", "column": "n", "low": -3, "high": 2},
    {"name": "mean", "select": "mean", "column": "v", "low": 0, "high": 4},
    {"name": "bins", "select": "histogram", "column": "v", "bins": [-9, 0, 3, 9]},
]
COLUMNS = {
    "double": "v * 2 - n",
    "part": "v / n",
    "sign": "v > 0",
    "rest": "floor(n) % 5",
    "small": "lower(z)",
    "day": "date(t)",
}
MIDDLE = {"select": "quantile", "low": "-0.1", "high": "0.7", "candidates": 5}
# Statistics of derived numbers, and conditions with every function of the language.
DERIVED = [
    {"name": "middle", "column": "v", **MIDDLE},
    {"name": "parts", "column": "part", **MIDDLE, **BY},
    {"name": "spread", "select": "variance", "column": "double", "low": 0, "high": 4},
    {"name": "signs", "select": "mean", "column": "sign", "low": 0, "high": 1, **BY},
    {"name": "rest", "select": "sum", "column": "rest", "low": 0, "high": 4},
    {
        "name": "cut",
        "select": "histogram",
        "column": "double",
        "bins": ["-1e30", 0, "0.1", 2**53, "1e30"],
    },
    {
        "name": "keys",
        "select": "count",
        "by": ["small", "rest"],
        "keys": {"small": ["a", "", "é"], "rest": "0..4"},
        "where": "coalesce(v, n) >= 0 or t is null",
    },
    {
        "name": "days",
        "select": "count",
        "by": ["day"],
        "keys": {"day": "2025-12-30..2026-01-02"},
        "where": "hour(t) < 3 and weekday(t) in (2, 3)",
    },
    *(
        {"name": f"where {at}", "select": "count", "where": where}
        for at, where in enumerate(
            [
                "v * v > 2 and -n < 5",
                "floor(v) = 0 or abs(n) > 5",
                "t between date('2026-01-01') and date('2026-01-02')",
                "upper(z) in ('A', 'B') and length(z) between 1 and 3",
                "lower(z) != z or z is null",
                "v = n or v + 0.1 > 0.3",
                "month(t) = 1 and minute(t) = 0",
            ]
        )
    ),
]
PEOPLE = {"name": "people", "select": "count_distinct", **BY}
PLANS = {
    "person": ({"table": "t.csv", "unit": "who", "time": "t"}, [*QUERIES, PEOPLE]),
    "person in time": (
        {"table": "t.csv", "unit": "who", "time": "t", "start": "2026-01-01"},
        QUERIES,
    ),
    "row": ({"table": "t.csv", "per": "event"}, QUERIES),
    "row, derived": ({"table": "t.csv", "per": "event"}, DERIVED),
}

NUMBERS = [0.5, 2.0, float("nan"), float("inf"), float("-inf"), -0.0, 1e308, 5e-324]
WHOLE = [0, 1, 7, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 2**63, 2**64]
TEXT = ["A", "B", "", " ", '"', "a,b", "x\ny", "x\r\ny", "\r", "\0", "\x1f", "é"]
LONG = ["y" * 40_000, "\U0001f600" * 1000]
BROKEN = [Broken(b"\xff"), SURROGATE, Broken(b"A\xc3")]
TIMES = [
    Far(ms)
    for ms in (START, START - 1, 0, 9_300_000_000_000_000, -9_300_000_000_000_000)
] + [Far(2**62), Far(2**63 - 1), Far(-(2**63) + 1), Far(-(2**63))]
# What a column of one type is not meant to hold, where a source lets it.
ODD = [None, True, "A", 0.5, 1, "2026-01-01"]


def cells(some: list[Any]) -> st.SearchStrategy[Any]:
    return st.sampled_from([*some, *some, *ODD])


def rows(who: str, most: int) -> st.SearchStrategy[list[Any]]:
    row = st.tuples(
        st.just(who),
        st.sampled_from([*TEXT, *LONG, *BROKEN, None, 1, 0.5, True]),
        cells([*NUMBERS, *WHOLE]),
        cells([*WHOLE, *NUMBERS]),
        st.sampled_from([*TIMES, None]),
        st.sampled_from([*TEXT, *BROKEN, *LONG, None, 1]),
    )
    return st.lists(row, max_size=most)


PLAIN = st.lists(
    st.tuples(
        st.sampled_from(["p", "q"]),
        st.sampled_from(["A", "B"]),
        st.sampled_from([0.5, 2.0]),
        st.sampled_from([1, 2**53 + 1]),
        st.just(Far(START)),
        st.just("u"),
    ),
    max_size=5,
)
# Without quotes, commas or line ends: lines that are no rows.
BARE = [b"x", b"x,A", b"x,A,1,1,,,,", b"\xff,\xfe", b"\0", b"\x1f", b"\r", b",,,,,"]
QUOTED = [b'x,"A', b'x,"A"B,1,1,,', b'"', b'x,"' + b"A" * 2_100_000]
LINES = st.sampled_from([*BARE, b"x" * 2_100_000, *QUOTED])


def outcome(kind: str, plan: Any, table: Any, types: Any) -> Any:
    """Return the numbers before the noise, or how the run ends."""
    try:
        with open_source(table, types=types, threads=1) as source:
            found = run_jobs(
                source,
                [task.job for task in plan.tasks],
                columns=plan.document.derived(source.columns),
                bounding=plan.bounding,
                slice=plan.slice,
                key=KEY,
            )
    except (PlanError, EngineError) as fault:
        return type(fault), str(fault)
    pairs = zip(plan.queries, found, strict=True)
    return [query.encoding.vector(one).ravel().tolist() for query, one in pairs]


def stated(kind: str) -> dict[str, str]:
    if kind.startswith("csv"):
        return TYPES
    texts = {"who": "text", "z": "text"}
    return {**TYPES, **texts} if kind == "pandas objects" else {}


def check(plan: Any, mine: Any, theirs: Any, *, swapped: bool) -> None:
    assert isinstance(mine, list), mine
    assert isinstance(theirs, list), theirs
    for query, first, second in zip(plan.queries, mine, theirs, strict=True):
        moves = [abs(x - y) for x, y in zip(first, second, strict=True)]
        reach = query.share.need.reach
        assert sum(moves) <= (reach.swap_total if swapped else reach.total), query.name
        square = reach.swap_square if swapped else reach.square
        assert sum(move**2 for move in moves) <= square, query.name


def neighbours(kind: str, asked: str, tables: Any, server: Any = None) -> None:
    """Compare a table with and without a unit, and with two rows in its place."""
    base, mine, theirs, places = tables
    source, queries = PLANS[asked]
    alone = asked.startswith("row")
    if alone:
        mine, theirs = mine[:1], theirs[:1]
    bounds = {} if alone else {"rows_per_unit": 2}
    promise = {"epsilon": 1, "granularity": "event" if alone else "user"}
    columns = {"columns": COLUMNS} if queries is DERIVED else {}
    plan = release_plan(promise, queries, bounds=bounds, source=source, **columns)
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for added in ([], mine, theirs):
            some = list(base)
            for row, place in zip(added, places, strict=False):
                some.insert(place, row)
            table = written(kind, some, Path(folder), server)
            found.append(outcome(kind, plan, table, stated(kind)))
    without, one, other = found
    check(plan, one, without, swapped=False)
    check(plan, other, without, swapped=False)
    if mine and theirs:
        check(plan, one, other, swapped=True)


FIXTURE = [HealthCheck.function_scoped_fixture]
PLACES = st.lists(st.integers(0, 5), min_size=3, max_size=3)
TABLES = st.tuples(PLAIN, rows("x", 3), rows("x", 3), PLACES)
LOCAL = sorted(set(KINDS) - {"postgresql"})


@pytest.mark.parametrize("asked", PLANS)
@pytest.mark.parametrize("kind", LOCAL)
@pytest.mark.slow
@settings(max_examples=8)
@given(TABLES)
def test_no_unit_moves_the_numbers_further_than_claimed_or_ends_the_run(
    kind, asked, tables
):
    neighbours(kind, asked, tables)


@pytest.mark.parametrize("asked", PLANS)
@pytest.mark.slow
@settings(max_examples=6, suppress_health_check=FIXTURE)
@given(TABLES)
def test_no_unit_of_a_server_moves_the_numbers_further_or_ends_the_run(
    postgres, asked, tables
):
    neighbours("postgresql", asked, tables, postgres)


@pytest.mark.parametrize("kind", [kind for kind in LOCAL if kind.startswith("csv")])
@given_examples(1, 12, PLAIN, LINES, LINES, PLACES)
def test_no_line_of_csv_moves_the_numbers_further_than_one_row_does(
    kind, base, mine, theirs, places
):
    neighbours(kind, "row", (base, [mine], [theirs], places))


HOSTILE = {
    "z": [*TEXT, *LONG, *BROKEN, None, 1],
    "v": [*NUMBERS, *WHOLE, *ODD],
    "n": [*WHOLE, *NUMBERS, *ODD],
    "t": [*TIMES, None],
    "unused": [*BROKEN, *LONG],
}


def test_every_hostile_cell_is_read_on_every_source(tmp_path, postgres):
    row = {"who": "x", "z": "A", "v": 0.5, "n": 1, "t": Far(START), "unused": "u"}
    plain = [tuple({**row, "who": who}.values()) for who in ("p", "q")]
    source, queries = PLANS["person"]
    bounds = {"rows_per_unit": 50}
    plan = release_plan({"epsilon": 1}, queries, bounds=bounds, source=source)
    hostile = [
        tuple({**row, name: cell}.values())
        for name, some in HOSTILE.items()
        for cell in some
    ]
    assert len(hostile) > 50
    for kind in KINDS:
        folder = tmp_path / kind.replace(" ", "-")
        folder.mkdir()
        tables = (plain, plain + hostile[:50], plain + hostile[-50:])
        found = [
            outcome(kind, plan, written(kind, some, folder, postgres), stated(kind))
            for some in tables
        ]
        check(plan, found[1], found[0], swapped=False)
        check(plan, found[2], found[0], swapped=False)
        check(plan, found[1], found[2], swapped=True)
        assert found[1][0] > found[0][0], kind
        assert np.any(found[1] != found[2]), kind
