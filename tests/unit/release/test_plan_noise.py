"""What a plan says of its noise, and the promises it refuses."""

import math
from fractions import Fraction

import pytest

from undertow.errors import AssumptionError, PlanError
from undertow.release.document.release_document import release_from_mapping
from undertow.release.plan.encoding import value_lattice
from undertow.release.plan.planned_release import plan_release

SOURCE = {"table": "steps.csv", "unit": "person", "time": "ts"}
WINDOWED = {
    **SOURCE,
    "per": {"window": "1d"},
    "start": "2026-01-01",
    "horizon": "7d",
}
COUNT = {"name": "rows", "select": "count"}
UNITS = {"name": "people", "select": "count_distinct"}
MEDIAN = {
    "name": "median",
    "select": "quantile",
    "column": "steps",
    "low": 0,
    "high": 256,
    "candidates": 257,
}
FOUND = {"name": "zones", "select": "count", "by": ["zone"], "keys": "discover"}


def release_plan(promise, queries=(COUNT,), *, source=SOURCE, as_of=None, **parts):
    parts = {"bounds": {"rows_per_unit": 50}} | parts
    whole = {"source": source, "promise": promise, "queries": list(queries), **parts}
    return plan_release(release_from_mapping(whole), as_of=as_of)


@pytest.mark.parametrize(
    ("select", "power"), [("sum", 1), ("mean", 1), ("variance", 2)]
)
def test_the_deviation_is_in_the_unit_of_the_half_width(select, power):
    query = {"name": "q", "select": select, "column": "steps", "low": 0, "high": 50}
    plan = release_plan({"rho": "0.5"}, [query])
    (error,) = plan.to_dict()["queries"]
    ends = {"low": Fraction(0), "high": Fraction(50)}
    step = value_lattice("steps", **ends, added=select == "sum").step ** power
    noise = plan.queries[0].share.noise
    assert error["step"] == float(step)
    assert error["deviation"] == pytest.approx(noise.deviation * float(step))
    assert 1 < error["half_width"] / error["deviation"] < 6
    assert error["mechanism"].endswith(f" in steps of {float(step):.6g}")
    assert error["node_deviation"] is None


def test_counts_have_a_step_of_one_that_goes_without_saying():
    (error,) = release_plan({"epsilon": 1}).expected_errors()
    assert error["step"] == 1
    assert "steps" not in error["mechanism"]


def test_the_deviation_of_a_running_total_is_that_of_all_its_nodes():
    query = COUNT | {"running": True}
    promise = {"epsilon": 1, "granularity": "event"}
    plan = release_plan(promise, [query], source=WINDOWED, as_of="2026-01-08")
    (error,) = plan.expected_errors()
    one = plan.queries[0].share.noise.deviation
    assert error["node_deviation"] == one
    assert error["deviation"] == pytest.approx(one * math.sqrt(3))  # 7 = 4 + 2 + 1


@pytest.mark.parametrize(
    "model", [{"model": "markov", "gamma": 2}, {"model": "gaussian", "phi": "0.5"}]
)
def test_a_model_must_not_end_before_the_windows_do(model):
    promise = {"epsilon": 1, "granularity": "event"}
    with pytest.raises(PlanError, match="length must be at least the 7 windows"):
        release_plan(promise | {"correlation": model | {"length": 6}}, source=WINDOWED)
    for length in (7, 70):
        correlation = model | {"length": length}
        plan = release_plan(promise | {"correlation": correlation}, source=WINDOWED)
        assert plan.leakage().value <= 1


def widths(promise, *queries):
    plan = release_plan(promise, queries)
    return [error["half_width"] for error in plan.expected_errors()]


@pytest.mark.parametrize("promise", [{"epsilon": 1}, {"rho": "0.1"}], ids=str)
def test_rows_and_units_get_the_same_error_relative_to_what_a_unit_adds(promise):
    promise = promise | {"granularity": "user:add-remove"}
    rows, units = widths(promise, COUNT, UNITS)
    assert rows / 50 == pytest.approx(units, rel=0.2)


def test_the_candidates_of_a_quantile_take_no_budget_from_other_queries():
    plan = release_plan(
        {"epsilon": 1, "granularity": "user:add-remove"}, [MEDIAN, COUNT]
    )
    losses = [query.share.loss.epsilon for query in plan.queries]
    assert losses == [0.5, 0.5]


def test_keys_discovered_run_by_run_need_a_level_at_which_runs_do_not_add_up():
    promise = {"epsilon": 1, "delta": "1e-6"}
    bounds = {"rows_per_unit": 50, "groups_per_unit": 2}

    def planned(level, *queries):
        return release_plan(
            promise | {"granularity": level},
            queries,
            source=WINDOWED,
            as_of="2026-01-03",
            bounds=bounds,
        )

    with pytest.raises(AssumptionError, match=r"must be one at which runs do not add"):
        planned("user", FOUND)
    assert planned("event", FOUND).timeline.runs == 7
    assert planned("user", FOUND | {"select": "count_distinct"}).timeline.runs == 7
    assert planned("user", COUNT).timeline.runs == 7


@pytest.mark.parametrize("currency", ["epsilon", "rho", "mu", "advantage"])
def test_promises_too_small_for_any_number_are_refused(currency):
    threat = {"threat": {"categories": 2}} if currency == "advantage" else {}
    for level in ("1e-101", "1e-310", "1e-400"):
        with pytest.raises(PlanError, match=rf"{currency} must be at least 1e-100"):
            release_plan({currency: level}, **threat)
    query = {"name": "q", "select": "variance", "column": "x", "low": 0, "high": 50}
    (error,) = release_plan({currency: "1e-100"}, [query], **threat).expected_errors()
    assert math.isfinite(error["half_width"])


@pytest.mark.parametrize("gamma", ["0.5", "1e-400"])
def test_a_ratio_below_one_is_refused(gamma):
    correlation = {"model": "markov", "gamma": gamma}
    promise = {"epsilon": 1, "granularity": "event", "correlation": correlation}
    with pytest.raises(PlanError, match="gamma must be at least 1, the ratio of"):
        release_plan(promise, source=WINDOWED)
