"""Inputs made to break the guarantee of a release: none of them may."""

import math
from datetime import datetime
from fractions import Fraction

import pyarrow as pa
import pytest

import undertow as ut
from undertow.errors import MismatchError, PlanError, UndertowError
from undertow.ledger import BudgetLedger
from undertow.privacy.loss import Pure
from undertow.release import from_table
from undertow.release.document.release_document import release_from_mapping
from undertow.release.engine.job import Bounding, Job, Slice
from undertow.release.engine.pipeline import run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.plan.noise import IntegerNoise, published_intervals
from undertow.release.plan.planned_release import plan_release
from undertow.release.source.opening import open_source
from undertow.risk import best_bound

KEY = bytes(range(32))
HOUR = 3_600_000_000
NEW_YEAR = 1_767_225_600_000_000  # 2026-01-01
ALL_ROWS = Job("all", ("rows", "units"))


def rows_kept(path, sql, where, *, most=1):
    """Return the rows that count of a DuckDB table of one unit ``u`` and ``x``."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE OR REPLACE TABLE t AS {sql}")
    job = Job("asked", ("rows",), where=parse_expression(where))
    with open_source(path, threads=1) as source:
        [found] = run_jobs(source, [job], bounding=Bounding("u", most), key=KEY)
    return int(found.measures["rows"][0])


def test_a_unit_that_is_an_infinite_date_is_bounded(tmp_path):
    sql = "SELECT DATE 'infinity' AS u, i AS x FROM range(6) t(i)"
    assert rows_kept(tmp_path / "t.duckdb", sql, "x >= 0") == 1


def test_nanoseconds_before_the_end_of_a_window_are_bounded_in_that_window():
    end = (NEW_YEAR + HOUR) * 1000
    times = pa.array([end - 400, end - HOUR * 500], pa.timestamp("ns"))
    bounding = Bounding("person", 1, HOUR, "ts")
    with open_source(pa.table({"person": [1, 1], "ts": times}), threads=1) as source:
        [found] = run_jobs(
            source,
            [ALL_ROWS],
            bounding=bounding,
            slice=Slice("ts", NEW_YEAR, NEW_YEAR + HOUR),
            key=KEY,
        )
    assert found.measures["rows"].tolist() == [1]


@pytest.mark.parametrize("name", ["undertow_limit", "UNDERTOW_LIMIT", "undertow_tied"])
@pytest.mark.parametrize("rows", [1, 6])
def test_columns_of_the_table_cannot_pass_for_the_engines_own(tmp_path, name, rows):
    sql = f"SELECT 1 AS u, NULL::BIGINT AS {name} FROM range({rows})"
    with pytest.raises(PlanError, match="undertow_"):
        rows_kept(tmp_path / "t.duckdb", sql, f"{name} is null")


CSV_NEIGHBOURS = {
    "order of dates": (
        [f"{i},{i % 12 + 1:02d}/02/2026" for i in range(40)],
        "99,02/13/2026",
    ),
    "comments": ([f"{mark}{i},x" for mark in ("", "#") for i in range(20)], "anna,x"),
}


@pytest.mark.parametrize("case", CSV_NEIGHBOURS)
def test_one_row_of_a_csv_does_not_change_how_the_others_are_read(tmp_path, case):
    rows, other = CSV_NEIGHBOURS[case]
    job = Job("asked", ("rows", "units"), by=("day",))
    cells = []
    for lines in (rows, [*rows, other]):
        file = tmp_path / "days.csv"
        file.write_text("\n".join(["person,day", *lines]) + "\n")
        with open_source(file, threads=1) as source:
            [found] = run_jobs(source, [job], bounding=Bounding("person", 1), key=KEY)
        counts = found.measures["rows"].tolist()
        cells.append(dict(zip(map(str, found.cells), counts, strict=True)))
    one, two = cells
    assert sum(abs(one.get(k, 0) - two.get(k, 0)) for k in {*one, *two}) == 1


def windowed(*, promise, granularity="event", start="2026-01-01", queries=None, **more):
    source = {"unit": "person", "time": "ts", "per": {"window": "1h"}}
    source |= {"start": start, "horizon": "4h", **more}
    return {
        "source": source,
        "promise": {"granularity": granularity, **promise},
        "bounds": {"rows_per_unit": 3},
        "queries": queries
        or [
            {"name": "running", "select": "count", "running": True},
            {
                "name": "sum",
                "select": "sum",
                "column": "v",
                "low": -1,
                "high": 2,
                "by": ["z"],
                "keys": {"z": [1, 2]},
                "share": 3,
            },
        ],
    }


def planned(mapping, run=4):
    document = release_from_mapping(mapping, in_memory=True)
    return plan_release(document, as_of=f"2026-01-01T0{run}:00")


CHANGES = [
    ("event:add-remove", 1, [{t} for t in range(4)]),
    ("event", 2, [{t} for t in range(4)]),
    ("w-event:2", 2, [{t, t + 1} for t in range(3)]),
    ("w-event:3", 2, [{0, 1, 2}, {1, 2, 3}]),
    ("user:add-remove", 1, [{0, 1, 2, 3}]),
    ("user", 2, [{0, 1, 2, 3}]),
]


@pytest.mark.parametrize(("granularity", "steps", "changes"), CHANGES)
@pytest.mark.parametrize("currency", ["epsilon", "rho"])
def test_all_runs_cost_what_was_promised_counted_by_hand(
    granularity, steps, changes, currency
):
    plan = planned(windowed(promise={currency: "1"}, granularity=granularity))

    def cost(windows):
        total = Fraction(0)
        for share in (share for query in plan.queries for share in query.shares):
            reach, noise = share.need.reach, share.noise.parameter
            for view in share.need.views:
                moved = steps * len(windows & set(view.times))
                square = moved**2 * reach.square / (2 * noise)
                linear = moved * reach.total / noise
                total += linear if currency == "epsilon" else square
        return total

    assert max(map(cost, changes)) == 1


@pytest.mark.parametrize("order", [(1, 2, 3, 4), (4, 2, 3, 1)], ids=str)
@pytest.mark.parametrize("currency", ["epsilon", "rho", "mu"])
def test_a_ledger_charged_in_any_order_ends_at_the_promise(tmp_path, order, currency):
    asked = windowed(promise={currency: "1"}, granularity="w-event:2")
    plan = planned(asked)
    budgets = {plan.promise.granularity: plan.promise.total}
    with BudgetLedger.create(
        tmp_path / "a.ledger", dataset="a", domain=plan.domain, budgets=budgets
    ) as ledger:
        for run in order:
            paid = ledger.charge(planned(asked, run).releases, key=str(run))
    [loss] = paid.losses.values()
    assert loss.within(plan.promise.total)
    assert float(loss.exact_parameters()[0]) == pytest.approx(1, rel=1e-6)


TABLE = pa.table(
    {
        "person": [1, 2, 2],
        "device": [1, 2, 3],
        "ts": pa.array([datetime(2026, 1, 1, 1)] * 3, pa.timestamp("us")),
    }
)
COUNT = [{"name": "rows", "select": "count"}]


@pytest.mark.parametrize(
    "other",
    [
        {"start": "2026-01-01T01:00"},
        {"unit": "device"},
        {"per": {"window": "30m"}, "horizon": "2h"},
    ],
    ids=["start", "unit", "window"],
)
def test_one_ledger_does_not_mix_what_its_numbers_stand_for(tmp_path, other):
    promise, address = {"epsilon": "1"}, tmp_path / "a.ledger"
    first = windowed(promise=promise, queries=COUNT)
    release = from_table(TABLE, first)
    release.create_ledger(address, as_of="2026-01-01T02:00").close()
    release.run(ledger=address, as_of="2026-01-01T02:00")
    second = windowed(promise=promise, queries=COUNT, **other)
    with pytest.raises(MismatchError):
        from_table(TABLE, second).run(ledger=address, as_of="2026-01-01T02:00")


def test_a_promise_needs_a_budget_at_its_granularity(tmp_path):
    asked = windowed(promise={"epsilon": "1"}, granularity="user", queries=COUNT)
    plan = planned(asked)
    with (
        BudgetLedger.create(
            tmp_path / "a.ledger",
            dataset="a",
            domain=plan.domain,
            budgets={ut.Event(): ut.Pure(1)},
        ) as ledger,
        pytest.raises(UndertowError, match="budget"),
    ):
        from_table(TABLE, asked).run(ledger=ledger, as_of="2026-01-01T02:00")


@pytest.mark.parametrize("scale", [Fraction(1, 10), Fraction(2), Fraction(30)], ids=str)
def test_intervals_of_published_counts_hold_given_that_they_are_published(scale):
    noise, beta, threshold = IntegerNoise("laplace", scale), 0.05, 40
    ratio = math.exp(-1 / float(scale))
    span = 40 + int(60 * scale)
    for units in {1, 20, 39, 40, 41, 60}:
        law = {
            units + k: (1 - ratio) / (1 + ratio) * ratio ** abs(k)
            for k in range(-span, span + 1)
            if units + k >= threshold
        }
        rows = published_intervals(
            list(law), noise=noise, threshold=threshold, beta=beta
        )
        hit = sum(law[x] for x, low, high in rows if low <= units <= high)
        total = sum(law.values())
        if total > 1e-280:
            assert hit / total >= 1 - beta - 1e-6, units


def test_the_risk_of_a_correlated_promise_is_that_of_its_leakage():
    plan = plan_release(
        release_from_mapping(
            {
                "source": {"unit": "person"},
                "promise": {
                    "granularity": "user",
                    "epsilon": "1",
                    "correlation": {"model": "blocks", "group": 10},
                },
                "threat": {"categories": 2},
                "bounds": {"rows_per_unit": 3},
                "queries": COUNT,
            },
            in_memory=True,
        )
    )
    worst = best_bound(Pure(1), plan.promise.threat).best.value
    assert plan.risk().advantage == pytest.approx(worst, rel=1e-9)


def test_distinct_units_are_not_rows_where_every_row_is_protected():
    mapping = {
        "source": {"unit": "person", "per": "event"},
        "promise": {"granularity": "event", "epsilon": "1"},
        "queries": [{"name": "people", "select": "count_distinct"}],
    }
    with pytest.raises(PlanError):
        release_from_mapping(mapping, in_memory=True)
