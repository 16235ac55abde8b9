"""Random release files: the composed loss keeps the promise, exactly and tightly."""

from fractions import Fraction
from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from support.examples import given_examples
from support.release_plans import WINDOWED, release_plan
from undertow.composition import Plan
from undertow.privacy import Approx
from undertow.release.plan.timeline import run_node, running_nodes

SELECTS = st.sampled_from(
    [
        {"select": "count"},
        {"select": "count_distinct"},
        {"select": "sum", "column": "v", "low": -3, "high": 50},
        {"select": "sum", "column": "v", "low": 0, "high": 7},
        {"select": "mean", "column": "v", "low": "0.1", "high": "0.7"},
        {"select": "variance", "column": "v", "low": -1, "high": 1},
        {"select": "histogram", "column": "v", "bins": [0, 1, 2, 9]},
        {"select": "quantile", "column": "v", "low": 0, "high": 9, "candidates": 4},
    ]
)
KEYS = st.sampled_from(
    [{}, {"by": ["hour"], "keys": {"hour": "0..23"}}, {"by": ["z"], "keys": {"z": [1]}}]
)
SHARES = st.sampled_from([{}, {"share": 1}, {"share": "2/3"}])
BOUNDS = st.fixed_dictionaries(
    {"rows_per_unit": st.integers(1, 200)},
    optional={
        "groups_per_unit": st.integers(1, 30),
        "rows_per_group": st.integers(1, 30),
    },
)
LEVELS = st.tuples(st.integers(1, 999), st.integers(-6, 3)).map(
    lambda pair: f"{pair[0]}e{pair[1] - 3}"
)
CURRENCIES = st.one_of(
    st.builds(lambda x: {"epsilon": x}, LEVELS),
    st.builds(lambda x: {"rho": x}, LEVELS),
    st.builds(lambda x: {"mu": x}, st.sampled_from(["0.001", "0.5", "3"])),
    st.builds(lambda x: {"epsilon": x, "delta": "1e-7"}, LEVELS),
)


@st.composite
def queries(draw):
    number = draw(st.integers(1, 4))
    return [
        {"name": f"q{at}", **draw(SELECTS), **draw(KEYS), **draw(SHARES)}
        for at in range(number)
    ]


def spent_and_promised(plan, *, horizon=False):
    composed = plan.horizon() if horizon else plan.composition()
    return plan.promise.cost(composed).loss, plan.promise.total


@given_examples(
    20,
    100,
    CURRENCIES,
    queries(),
    BOUNDS,
    st.sampled_from(["user", "user:add-remove"]),
)
def test_a_release_of_whole_users_costs_what_was_promised(
    promise, asked, bounds, granularity
):
    plan = release_plan({**promise, "granularity": granularity}, asked, bounds=bounds)
    spent, total = spent_and_promised(plan)
    assert spent.within(total)
    # Scales are rounded up by at most 2**-40, conversions by a little more.
    for mine, theirs in zip(
        spent.exact_parameters(), total.exact_parameters(), strict=True
    ):
        assert mine >= theirs * (1 - Fraction(1, 10**5))


@given_examples(
    15,
    100,
    CURRENCIES,
    queries(),
    st.sampled_from(
        ["event", "event:add-remove", "w-event:7", "user", "user:add-remove"]
    ),
    st.booleans(),
)
def test_all_runs_of_a_windowed_release_cost_what_was_promised(
    promise, asked, granularity, continual
):
    plan = release_plan(
        {**promise, "granularity": granularity},
        asked,
        source=WINDOWED,
        as_of="2026-01-01T09:00" if continual else None,
    )
    spent, total = spent_and_promised(plan, horizon=True)
    assert spent.within(total)
    assert spent_and_promised(plan)[0].within(spent)


@given_examples(10, 60, LEVELS, st.integers(1, 20), st.booleans(), st.booleans())
def test_discovered_keys_stay_within_epsilon_and_delta(epsilon, groups, units, windows):
    assume(Fraction(epsilon) < 50)
    zones = {
        "name": "zones",
        "select": "count_distinct" if units else "count",
        "by": ["zone"],
        "keys": "discover",
    }
    # Every run restates its zCDP by itself: at user level that would add up.
    level = "event" if windows and units else "user"
    plan = release_plan(
        {"epsilon": epsilon, "delta": "1e-6", "granularity": level},
        [zones, {"name": "total", "select": "count"}],
        bounds={"rows_per_unit": 20, "groups_per_unit": groups},
        source={**WINDOWED, "horizon": "3h"} if windows else None,
        as_of="2026-01-01T02:00" if windows and units else None,
    )
    spent, total = spent_and_promised(plan, horizon=True)
    assert isinstance(spent, Approx)
    assert spent.within(total)
    assert plan.queries[0].threshold >= 2


@given_examples(8, 25, queries(), BOUNDS, st.sampled_from(["epsilon", "rho"]))
def test_promising_more_never_adds_noise(asked, bounds, currency):
    scales = []
    for level in ("1e-5", "0.001", "0.1", "1", "10", "1e5"):
        plan = release_plan({currency: level}, asked, bounds=bounds)
        scales.append([query.share.noise.parameter for query in plan.queries])
    for more, less in pairwise(scales):
        assert all(x > y for x, y in zip(more, less, strict=True))


@given_examples(10, 25, queries(), st.integers(1, 50), st.integers(1, 50))
def test_looser_bounds_never_remove_noise(asked, rows, more):
    tight = release_plan({"epsilon": 1}, asked, bounds={"rows_per_unit": rows})
    loose = release_plan({"epsilon": 1}, asked, bounds={"rows_per_unit": rows + more})
    totals = [
        sum(float(1 / query.share.noise.parameter) for query in plan.queries)
        for plan in (tight, loose)
    ]
    assert totals[1] <= totals[0] * (1 + 1e-9)


@given_examples(10, 25, queries(), st.sampled_from(["epsilon", "rho"]))
def test_less_noise_in_any_query_breaks_the_promise(asked, currency):
    plan = release_plan({currency: 1}, asked)
    for weak in plan.queries:
        releases = [
            release
            for query in plan.queries
            for _ in range(2 if query is weak else 1)
            for release in query.releases
        ]
        spent = plan.promise.cost(Plan(plan.domain, releases)).loss
        assert not spent.within(plan.promise.total)


@given(st.integers(1, 5000))
def test_a_total_needs_at_most_logarithmically_many_nodes(run):
    assert len(running_nodes(run)) <= run.bit_length()
    assert running_nodes(run)[-1] == run_node(run)


@given_examples(10, 20, st.integers(1, 5), st.integers(1, 30))
def test_a_running_total_keeps_an_event_level_promise(rows, horizon):
    plan = release_plan(
        {"epsilon": 1, "granularity": "event"},
        [{"name": "so far", "select": "count", "running": True}],
        bounds={"rows_per_unit": rows},
        source={**WINDOWED, "horizon": f"{horizon}h"},
    )
    spent, total = spent_and_promised(plan, horizon=True)
    assert spent == total
    levels = horizon.bit_length()
    assert plan.queries[0].share.noise.parameter == 2 * rows * levels


def test_a_tiny_promise_is_kept_not_rounded_away():
    plan = release_plan({"epsilon": "1e-100"})
    spent, total = spent_and_promised(plan)
    assert spent.within(total)
    assert plan.queries[0].share.noise.parameter >= 10**100
