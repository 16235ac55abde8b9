"""Plans of whole release files: what is asked, what it costs, what is refused."""

import json
from fractions import Fraction

import pytest

from support.release_plans import (
    COUNT,
    HOURS,
    WINDOWED,
    count_aggregates,
    release_plan,
    value_aggregates,
)
from undertow.composition import Plan, Release
from undertow.errors import AssumptionError, BudgetExceeded, PlanError
from undertow.ledger import BudgetLedger
from undertow.mechanisms import SimulatedSource
from undertow.privacy import ZCDP, Approx, Pure
from undertow.release.engine.job import Bounding, Slice
from undertow.release.plan._budget import restate
from undertow.spaces import Event, Stream, Table, Unbounded, User, Window
from undertow.spaces.unit import parse_granularity

TOTAL = {"name": "total", "select": "count"}
SUM = {"name": "sum", "select": "sum", "column": "v", "low": 0, "high": 50}
MEAN = {"name": "mean", "select": "mean", "column": "v", "low": 0, "high": 10}
VARIANCE = {
    "name": "variance",
    "select": "variance",
    "column": "v",
    "low": 0,
    "high": 10,
}
HISTOGRAM = {"name": "bins", "select": "histogram", "column": "v", "bins": [0, 1, 5]}
QUANTILE = {
    "name": "median",
    "select": "quantile",
    "column": "v",
    "low": 0,
    "high": 10,
    "candidates": 6,
    "quantiles": ["0.25", "0.5"],
}
RUNNING = {"name": "so far", "select": "count", "running": True}
DISCOVER = {"name": "zones", "select": "count", "by": ["zone"], "keys": "discover"}
HOUR_US = 3_600_000_000
START_US = 1_767_225_600_000_000  # 2026-01-01


def test_a_count_gets_laplace_noise_of_rows_over_epsilon():
    plan = release_plan({"epsilon": "1.0", "granularity": "user:add-remove"})
    (query,) = plan.queries
    assert query.share.noise.parameter == 5
    assert query.job.measures == ("rows",)
    assert query.job.grid.size == query.cells == 4
    assert plan.domain == Stream(10**9, 1)
    assert plan.bounding == Bounding("person", 5)
    assert plan.slice is None


@pytest.mark.parametrize(
    "promise",
    [
        {"epsilon": "1.0"},
        {"rho": "0.125"},
        {"mu": "0.5"},
        {"epsilon": 1, "delta": "1e-6"},
        {"epsilon": "0.3", "granularity": "user:add-remove"},
    ],
    ids=str,
)
def test_every_kind_of_query_fits_in_every_currency(promise):
    queries = [COUNT, TOTAL, SUM, MEAN, VARIANCE, HISTOGRAM, QUANTILE]
    plan = release_plan(promise, queries)
    report = plan.costs()[plan.promise.granularity.name]
    assert report.loss.within(plan.promise.total)
    assert set(plan.costs()) == {"user", "user:add-remove"}
    assert [error["name"] for error in plan.expected_errors()] == [
        query["name"] for query in queries
    ]


def test_the_claims_are_about_whole_units_only():
    plan = release_plan({"epsilon": 1})
    units = [claim.unit for release in plan.releases for claim in release.claims]
    assert units == [User(add_remove=True)]
    single = release_plan({"epsilon": 1}, [TOTAL])
    units = [claim.unit for release in single.releases for claim in release.claims]
    assert units == [User(add_remove=True), User()]


def test_rows_that_are_their_own_events_make_a_table():
    plan = release_plan(
        {"epsilon": 1, "granularity": "event"},
        bounds={},
        source={"table": "t.csv", "per": "event"},
    )
    assert isinstance(plan.domain, Table)
    assert plan.promise.granularity == Unbounded()
    assert plan.queries[0].share.noise.parameter == 1
    assert plan.bounding == Bounding(None, None)


def test_rows_without_a_unit_are_units_of_one_row():
    plan = release_plan(
        {"epsilon": 1, "granularity": "user:add-remove"},
        bounds={},
        source={"table": "t.csv", "per": "user"},
    )
    assert plan.queries[0].share.noise.parameter == 1


def test_a_granularity_that_does_not_fit_is_refused_with_those_that_do():
    with pytest.raises(PlanError, match="it can be event, unbounded, bounded"):
        release_plan(
            {"epsilon": 1}, bounds={}, source={"table": "t.csv", "per": "event"}
        )
    for name in ("event", "unbounded", "bounded"):
        release_plan(
            {"epsilon": 1, "granularity": name},
            bounds={},
            source={"table": "t.csv", "per": "event"},
        )


def test_one_run_over_all_windows_is_charged_to_each_event_once():
    plan = release_plan(
        {"epsilon": 1, "granularity": "event:add-remove"}, source=WINDOWED
    )
    costs = {name: report.loss for name, report in plan.costs().items()}
    assert costs["event:add-remove"] == Pure(1)
    assert costs["event"] == Pure(2)
    assert costs["w-event:24"] == Pure(48)
    assert costs["user:add-remove"] == Pure(48)
    assert plan.slice == Slice("ts", START_US, START_US + 48 * HOUR_US)
    assert plan.bounding == Bounding("person", 5, HOUR_US, "ts")


def test_a_run_as_of_a_time_reads_the_last_window_that_is_over():
    plan = release_plan(
        {"epsilon": 1, "granularity": "w-event:24"},
        source=WINDOWED,
        as_of="2026-01-01T05:59",
    )
    assert plan.slice == Slice("ts", START_US + 4 * HOUR_US, START_US + 5 * HOUR_US)
    assert [release.view for release in plan.releases] == [Window(4, 1)]
    assert plan.timeline.run == 5
    assert plan.costs()["w-event:24"].loss == Pure("1/24")
    assert plan.costs(horizon=True)["w-event:24"].loss == Pure(1)
    assert all(
        claim.unit == Event(add_remove=True) for claim in plan.releases[0].claims
    )


@pytest.mark.parametrize(
    "as_of", ["2026-01-01T00:30", "2026-01-03T01:00", "2025-01-01"]
)
def test_a_run_outside_the_horizon_is_refused(as_of):
    with pytest.raises(PlanError, match="as_of must be a time at which one of the 48"):
        release_plan(
            {"epsilon": 1, "granularity": "event"}, source=WINDOWED, as_of=as_of
        )


def test_a_time_that_is_none_is_refused():
    with pytest.raises(PlanError, match="as_of must be a time such as"):
        release_plan({"epsilon": 1}, as_of="yesterday")


def test_as_of_cuts_a_release_of_whole_users():
    source = {"table": "t.csv", "unit": "person", "time": "ts", "start": "2026-01-01"}
    plan = release_plan({"epsilon": 1}, source=source, as_of="2026-01-02")
    assert plan.slice == Slice("ts", START_US, START_US + 24 * HOUR_US)
    with pytest.raises(PlanError, match="must be after"):
        release_plan({"epsilon": 1}, source=source, as_of="2025-01-02")
    with pytest.raises(PlanError, match=r"source\.time must be given"):
        release_plan(
            {"epsilon": 1}, source={"table": "t", "unit": "p"}, as_of="2026-01-01"
        )


def test_a_running_total_asks_for_the_largest_node_it_completes():
    plan = release_plan(
        {"epsilon": 1, "granularity": "event:add-remove"},
        [RUNNING],
        source=WINDOWED,
        as_of="2026-01-01T04:00",
    )
    (task,) = plan.tasks
    assert str(task.node) == "1..4"
    assert task.slice == Slice("ts", START_US, START_US + 4 * HOUR_US)
    assert [release.view for release in plan.releases] == [Window(0, 4)]
    # The first of 48 runs is in nodes of 1, 2, 4, 8, 16 and 32 runs.
    assert plan.queries[0].share.noise.parameter == 5 * 6
    assert plan.costs(horizon=True)["event:add-remove"].loss == Pure(1)


def test_a_running_total_adds_earlier_nodes_and_hands_out_its_own():
    parts = {"source": WINDOWED, "queries": [RUNNING]}
    promise = {"epsilon": 600, "granularity": "event:add-remove"}
    stored = {}
    for hour in range(1, 8):
        plan = release_plan(promise, **parts, as_of=f"2026-01-01T0{hour}:00")
        given = [
            count_aggregates(task.job, 100 * (task.node.last - task.node.first + 1))
            for task in plan.tasks
        ]
        (answer,) = plan.answer(
            given, source=SimulatedSource(hour), earlier={"so far": stored}
        )
        stored |= answer.nodes
        estimate, low, high = answer.rows[0]
        assert low <= 100 * hour <= high
        assert abs(estimate - 100 * hour) < 15
    assert list(stored) == ["1..1", "1..2", "3..3", "1..4", "5..5", "5..6", "7..7"]
    json.dumps(stored)


def test_a_running_total_without_its_past_is_refused():
    plan = release_plan(
        {"epsilon": 1, "granularity": "event"},
        [RUNNING],
        source=WINDOWED,
        as_of="2026-01-01T03:00",
    )
    with pytest.raises(PlanError, match=r"the runs 1\.\.2"):
        plan.answer(
            [count_aggregates(t.job, 1) for t in plan.tasks], source=SimulatedSource(1)
        )


def test_discovered_keys_are_chosen_by_units_and_the_rest_noised_apart():
    plan = release_plan(
        {"epsilon": 1, "delta": "1e-6"},
        [DISCOVER, COUNT],
        bounds={"rows_per_unit": 5, "groups_per_unit": 2},
    )
    query = plan.queries[0]
    assert query.job.measures == ("rows", "units")
    assert query.job.grid is None
    assert query.threshold > 1
    assert query.keys.need.reach.total == 2
    assert query.keys.need.weight == query.share.need.weight == Fraction(1, 4)
    assert [release.name for release in query.releases] == ["zones (keys)", "zones"]
    assert plan.costs()["user"].loss.within(Approx(1, "1e-6"))


def test_discovered_numbers_of_units_are_noised_once():
    units = {**DISCOVER, "select": "count_distinct"}
    plan = release_plan({"epsilon": 1, "delta": "1e-6"}, [units])
    (query,) = plan.queries
    assert query.keys is query.share
    assert len(query.releases) == 1
    assert plan.costs()["user"].loss.within(Approx(1, "1e-6"))
    assert plan.promise.keys_delta == Fraction("1e-6")


def test_bins_need_public_keys():
    binned = {**HISTOGRAM, "by": ["zone"], "keys": "discover"}
    with pytest.raises(PlanError, match="must list its keys"):
        release_plan({"epsilon": 1, "delta": "1e-6"}, [binned])


def test_shares_divide_the_budget():
    queries = [{**COUNT, "share": 3}, {**TOTAL, "share": 1}]
    plan = release_plan({"epsilon": 1, "granularity": "user:add-remove"}, queries)
    assert [query.share.loss for query in plan.queries] == [Pure("3/4"), Pure("1/4")]


def test_an_advantage_becomes_the_level_that_keeps_it():
    for granularity in ("user", "user:add-remove"):
        plan = release_plan(
            {"advantage": "0.1", "granularity": granularity}, threat={"categories": 20}
        )
        card = plan.risk()
        assert 0.0999 < card.advantage <= 0.1
        assert "10.0 points" in card.sentence
        assert plan.costs()[granularity].loss.within(plan.promise.total)


def test_a_stated_threat_gets_its_card_in_other_currencies_too():
    for promise in ({"rho": "0.1"}, {"epsilon": 1, "delta": "1e-6"}, {"mu": 1}):
        card = release_plan(promise, threat={"categories": 20}).risk()
        assert 0 < card.advantage < 1
    assert release_plan({"epsilon": 1}).risk() is None


@pytest.mark.parametrize(
    "model",
    [
        {"model": "markov", "gamma": 4},
        {"model": "blocks", "group": 3},
        {"model": "markov", "gamma": 4, "length": 100},
        {"model": "markov", "transition": [["0.8", "0.2"], [0.3, 0.7]]},
        {"model": "gaussian", "correlation": "0.3", "group": 4},
    ],
    ids=str,
)
def test_a_stated_model_turns_the_promise_into_leakage(model):
    plan = release_plan(
        {"epsilon": 3, "granularity": "event", "correlation": model}, source=WINDOWED
    )
    level = plan.promise.total.epsilon
    assert level < 3
    assert plan.leakage().value <= 3
    assert plan.costs()["event"].loss.within(Pure(level))
    assert plan.promise.calibration is not None
    assert release_plan({"epsilon": 3}).leakage() is None


def test_rows_that_follow_each_other_are_replaced_not_removed():
    plan = release_plan(
        {
            "epsilon": 3,
            "granularity": "event",
            "correlation": {"model": "markov", "gamma": 2},
        },
        bounds={},
        source={"table": "t.csv", "per": "event"},
    )
    assert plan.promise.granularity.name == "bounded"


def test_a_chain_is_fitted_to_a_public_file(tmp_path):
    states = (["rest"] * 4 + ["walk"] * 3) * 200
    lines = ["state,person"] + [f"{state},p{at % 2}" for at, state in enumerate(states)]
    public = tmp_path / "public.csv"
    public.write_text("\n".join(lines) + "\n", encoding="utf-8")
    correlation = {"model": "markov", "states": "state", "fit": str(public)}
    promise = {"epsilon": 5, "granularity": "event", "correlation": correlation}
    plan = release_plan(promise, source=WINDOWED)
    assert 0 < plan.promise.total.epsilon < 5
    assert plan.leakage().value <= 5
    promise["correlation"] = {**correlation, "states": "nothing"}
    with pytest.raises(PlanError, match=r"states must be a column of public\.csv"):
        release_plan(promise, source=WINDOWED)
    promise["correlation"] = {**correlation, "fit": str(tmp_path / "none.csv")}
    with pytest.raises(PlanError, match="must be a readable public table"):
        release_plan(promise, source=WINDOWED)


def test_models_that_say_nothing_about_the_promise_are_refused():
    markov = {"model": "markov", "gamma": 2}
    with pytest.raises(AssumptionError, match=r"source\.unit must be given"):
        release_plan(
            {"epsilon": 1, "granularity": "user", "correlation": markov},
            bounds={},
            source={"table": "t.csv", "per": "user"},
        )
    with pytest.raises(AssumptionError, match="must be event or user"):
        release_plan(
            {"epsilon": 1, "granularity": "event:add-remove", "correlation": markov},
            source=WINDOWED,
        )


def test_answers_have_one_row_per_cell_and_label():
    queries = [COUNT, SUM, MEAN, VARIANCE, HISTOGRAM, QUANTILE]
    plan = release_plan({"epsilon": 1000}, queries)
    given = [
        value_aggregates(t.job, [1, 2, 3])
        if t.job.value
        else count_aggregates(t.job, 9)
        for t in plan.tasks
    ]
    answers = plan.answer(given, source=SimulatedSource(4))
    assert [len(answer.rows) for answer in answers] == [4, 1, 1, 1, 2, 2]
    for answer in answers:
        assert all(len(row) == len(answer.columns) for row in answer.rows)
        assert all(row[-2] <= row[-3] <= row[-1] for row in answer.rows)
        assert answer.simulated
        json.dumps(answer.to_dict())
    assert answers[0].columns == ("hour", "estimate", "low", "high")
    assert answers[4].columns == ("from", "to", "estimate", "low", "high")
    assert answers[5].columns == ("quantile", "estimate", "low", "high")


def test_secure_noise_is_the_default():
    plan = release_plan({"epsilon": 1})
    (answer,) = plan.answer([count_aggregates(plan.tasks[0].job, 0)])
    assert not answer.simulated


def test_a_wrong_number_of_results_is_refused():
    plan = release_plan({"epsilon": 1}, [COUNT, TOTAL])
    with pytest.raises(PlanError, match="must get 2 results"):
        plan.answer([count_aggregates(plan.tasks[0].job, 0)])
    with pytest.raises(PlanError, match="must get 1 results"):
        plan.queries[0].answer([])


def test_margins_add_up_where_the_output_asks_for_it():
    plan = release_plan(
        {"epsilon": "0.1"}, [COUNT, TOTAL], output={"consistency": True}
    )
    given = [count_aggregates(task.job, 50) for task in plan.tasks]
    cells, total = plan.answer(given, source=SimulatedSource(6))
    assert sum(row[-3] for row in cells.rows) == pytest.approx(total.rows[0][-3])
    plain = release_plan({"epsilon": "0.1"}, [COUNT, TOTAL])
    cells, total = plain.answer(given, source=SimulatedSource(6))
    assert sum(row[-3] for row in cells.rows) != total.rows[0][-3]


def test_what_a_query_asks_for_is_done_to_its_answer():
    query = {**COUNT, "consistent": ["non-negative"]}
    plan = release_plan({"epsilon": "0.01"}, [query])
    given = [count_aggregates(plan.tasks[0].job, 0)]
    (answer,) = plan.answer(given, source=SimulatedSource(6))
    assert min(row[1] for row in answer.rows) == 0
    assert min(row[2] for row in answer.rows) == 0
    assert answer.notes


def test_a_plan_is_plain_values_and_readable_text():
    plan = release_plan({"rho": "0.5"}, [COUNT, MEAN], threat={"categories": 3})
    record = json.loads(json.dumps(plan.to_dict()))
    assert record["promise"] == {"notion": "zcdp", "rho": 0.5}
    assert record["horizon_costs"] is None
    assert {query["name"] for query in record["queries"]} == {"count", "mean"}
    text = plan.__rich__()
    assert "ρ = 0.5 at user level" in text
    assert "points more often" in text
    windowed = release_plan(
        {"epsilon": 1, "granularity": "event"},
        source=WINDOWED,
        as_of="2026-01-01T05:00",
    )
    assert "cost of all 48 runs" in windowed.__rich__()
    assert windowed.to_dict()["horizon_costs"]["event"]["epsilon"] == 1.0
    correlated = release_plan(
        {
            "epsilon": 3,
            "granularity": "event",
            "correlation": {"model": "blocks", "group": 2},
        },
        source=WINDOWED,
    )
    assert "leakage" in correlated.__rich__()
    discovering = release_plan({"epsilon": 1, "delta": "1e-6"}, [DISCOVER])
    assert "keys to discover" in discovering.__rich__()


def test_expected_errors_are_those_of_the_noise():
    plan = release_plan({"rho": "0.5"}, [COUNT])
    (error,) = plan.expected_errors()
    noise = plan.queries[0].share.noise
    assert noise.loss(plan.queries[0].share.need.reach).within(ZCDP("0.5"))
    assert error["half_width"] == noise.radius(0.05)
    assert error["deviation"] == noise.deviation
    running = release_plan(
        {"epsilon": 1, "granularity": "event"},
        [RUNNING],
        source=WINDOWED,
        as_of="2026-01-01T07:00",
    )
    alone = running.queries[0].share.noise.radius(0.05)
    assert running.expected_errors()[0]["half_width"] > alone


def test_too_many_runs_are_refused():
    source = {**WINDOWED, "per": {"window": "1s"}, "horizon": "2d"}
    with pytest.raises(PlanError, match="at most 100000 windows"):
        release_plan(
            {"epsilon": 1, "granularity": "event"},
            source=source,
            as_of="2026-01-01T01:00",
        )


def test_hours_are_public_keys():
    plan = release_plan({"epsilon": 1}, [{**MEAN, **HOURS}])
    assert plan.queries[0].cells == 4


@pytest.mark.parametrize("granularity", ["user", "user:add-remove"])
def test_an_approximate_promise_is_charged_as_one_release(granularity):
    plan = release_plan(
        {"epsilon": 1, "delta": "1e-6", "granularity": granularity},
        [COUNT, TOTAL, MEAN, SUM],
    )
    (release,) = plan.releases
    assert release.name == "count and total and mean and 1 more"
    assert len(plan.parts) == 4
    assert {claim.loss.notion for claim in release.claims} == {"approx", "zcdp"}
    charged = Plan(plan.domain, [release])
    target = parse_granularity(granularity)
    approx = [claim for claim in release.claims if isinstance(claim.loss, Approx)]
    alone = Plan(plan.domain, [Release.with_claims("run", approx, view=release.view)])
    assert alone.loss(target).loss.within(Approx(1, "1e-6"))
    assert alone.loss(target).loss.epsilon > 0.999
    summed = charged.loss(target, notion="zcdp").loss
    assert restate(summed, Fraction("1e-6")).within(Approx(1, "1e-6"))


@pytest.mark.parametrize(
    ("queries", "read"),
    [([COUNT, RUNNING], {Window(3, 1), Window(0, 4)}), ([RUNNING], {Window(0, 4)})],
    ids=["beside a count", "alone"],
)
def test_an_approximate_run_of_several_windows_is_charged_node_by_node(queries, read):
    plan = release_plan(
        {"epsilon": 1, "delta": "1e-6", "granularity": "w-event:24"},
        queries,
        source=WINDOWED,
        as_of="2026-01-01T04:00",
    )
    assert plan.releases == plan.parts
    assert {release.view for release in plan.releases} == read
    notions = {c.loss.notion for release in plan.releases for c in release.claims}
    assert notions == {"zcdp"}
    keyed = release_plan({"epsilon": 1, "delta": "1e-6"}, [DISCOVER])
    assert [claim.loss.notion for claim in keyed.releases[0].claims] == ["approx"]


@pytest.mark.parametrize(
    ("promise", "source"),
    [
        ({"epsilon": 1}, None),
        ({"rho": "0.5"}, None),
        ({"mu": 1}, None),
        ({"epsilon": 1, "delta": "1e-6"}, None),
        ({"epsilon": 1, "granularity": "w-event:5"}, WINDOWED),
        ({"rho": 1, "granularity": "user"}, WINDOWED),
        ({"epsilon": 1, "delta": "1e-6", "granularity": "event"}, WINDOWED),
    ],
    ids=str,
)
def test_a_ledger_of_the_promise_takes_every_run_once_and_nothing_more(
    promise, source, tmp_path
):
    source = source and {**source, "horizon": "8h"}
    # In (epsilon, delta) each run pays its delta, so no window may be read twice.
    queries = [COUNT, RUNNING] if source and "delta" not in promise else [COUNT, TOTAL]
    times = [None] if source is None else [f"2026-01-01T0{h}:00" for h in range(1, 9)]
    plans = [release_plan(promise, queries, source=source, as_of=at) for at in times]
    first = plans[0].promise
    with BudgetLedger.create(
        tmp_path / "ledger.sqlite",
        dataset="steps",
        domain=plans[0].domain,
        budgets={first.granularity: first.total},
    ) as ledger:
        for at, plan in enumerate(plans):
            ledger.charge(plan.releases, key=str(at))
        with pytest.raises(BudgetExceeded):
            ledger.charge(plans[0].releases, key="again")


def test_a_query_named_like_the_keys_of_another_keeps_its_own_noise():
    twin = {**COUNT, "name": "zones (keys)", "share": 50}
    plan = release_plan({"epsilon": 1, "delta": "1e-6"}, [DISCOVER, twin])
    zones, other = plan.queries
    assert zones.keys.need.keys
    assert not other.share.need.keys
    assert other.keys is None
    assert other.share.noise.law == "gaussian"
    assert zones.share.noise != other.share.noise


def test_a_plan_shows_in_a_notebook():
    page = release_plan({"epsilon": 1}, [{**COUNT, "name": "<b>"}])._repr_html_()
    assert page.startswith("<pre>")
    assert "&lt;b&gt;: ±" in page
    assert "[bold]" not in page
