"""What a stated model or threat promises, against brute force, and what it tells."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from support.release_plans import COUNT, WINDOWED, release_plan
from undertow.errors import PlanError
from undertow.release.plan.planned_release import EMPTY_WINDOWS, plan_text

ROWS = {"table": "t.csv", "unit": "person", "per": "event", "time": "ts"}
ACTIVE = {"name": "active", "select": "count", "where": "active = 1"}
STATES = {
    "name": "states",
    "select": "count",
    "by": ["active"],
    "keys": {"active": "0..1"},
}


def chain(*rows, **more):
    return {"model": "markov", "transition": [list(row) for row in rows], **more}


def shown(promise, **parts):
    return plan_text(release_plan(promise, **parts), markup=False)


def leakage_of(laws, weights, paths):
    """Return the exact leakage: every target, every knowledge, every pair of values."""
    worst, length = 0.0, paths.shape[1]
    for target in range(length):
        others = [at for at in range(length) if at != target]
        for size in range(length):
            for known in itertools.combinations(others, size):
                for seen in {tuple(path[list(known)]) for path in paths}:
                    fits = (paths[:, list(known)] == seen).all(axis=1)
                    given = [
                        weights[mask] @ laws[mask] / weights[mask].sum()
                        for value in (0, 1)
                        if weights[mask := fits & (paths[:, target] == value)].sum() > 0
                    ]
                    if len(given) == 2:
                        ratio = np.abs(np.log(given[0]) - np.log(given[1]))
                        worst = max(worst, float(ratio.max()))
    return worst


def run_laws(paths, scales):
    """Return the law of the signs of all counts of all runs, for each path.

    Beyond 0 and 1 the noise of a count says nothing more about one record.
    """
    laws = np.ones((len(paths), 1))
    for at in range(paths.shape[1]):
        hits = [paths[:, at] == 1, paths[:, at] == 0, paths[:, at] == 1]
        for hit, scale in zip(hits, scales, strict=True):
            yes = 1 / (1 + math.exp(-1 / scale))
            up = np.where(hit, yes, 1 - yes)
            both = np.stack([up, 1 - up], axis=1)
            laws = (laws[:, :, None] * both[:, None, :]).reshape(len(paths), -1)
    return laws


@pytest.mark.parametrize("start", [None, ["0.05", "0.95"]], ids=["steady", "stated"])
@pytest.mark.parametrize(
    "rows",
    [
        [("0.9", "0.1"), ("0.2", "0.8")],
        [("0.3", "0.7"), ("0.6", "0.4")],
        [("0", "1"), ("0.5", "0.5")],
    ],
    ids=["sticky", "mixed", "with a zero"],
)
def test_all_runs_and_queries_together_leak_no_more_than_was_promised(rows, start):
    model = chain(*rows) if start is None else chain(*rows, initial=start)
    plan = release_plan(
        {"epsilon": 1, "granularity": "event", "correlation": model},
        [ACTIVE, STATES],
        source={**WINDOWED, "horizon": "3h"},
        bounds={"rows_per_unit": 1},
        as_of="2026-01-01T02:00",
    )
    first, second = (float(q.share.noise.parameter) for q in plan.queries)
    paths = np.array(list(itertools.product((0, 1), repeat=3)))
    matrix = np.array(rows, dtype=float)
    steady = np.array([matrix[1, 0], matrix[0, 1]]) / (matrix[0, 1] + matrix[1, 0])
    law = steady if start is None else np.array(start, dtype=float)
    weights = law[paths[:, 0]]
    for at in (1, 2):
        weights = weights * matrix[paths[:, at - 1], paths[:, at]]
    found = leakage_of(run_laws(paths, (first, second, second)), weights, paths)
    assert 0.5 < found <= 1 + 1e-9
    assert found <= plan.leakage().value + 1e-9


def best_advantage(prior, groups, reach, epsilon):
    """Return the largest advantage against any pure mechanism, by its extreme rows."""
    from scipy.optimize import linprog

    size = len(prior)
    hits = np.abs(np.subtract.outer(range(size), range(size))) <= reach
    columns = np.array(list(itertools.product((1.0, math.exp(epsilon)), repeat=size)))
    above = prior * (columns - (columns @ prior)[:, None])
    value = sum(
        ((above * (groups == group)) @ hits.T).max(axis=1) for group in set(groups)
    )
    found = linprog(-value, A_eq=columns.T, b_eq=np.ones(size))
    assert found.status == 0
    return -found.fun


@pytest.mark.parametrize(
    ("weights", "groups", "reach"),
    [
        ([1, 1, 1, 1], [0, 0, 0, 0], 0),
        ([5, 1, 1, 2], [0, 0, 1, 1], 0),
        ([5, 1, 1, 2, 1], [0, 0, 0, 0, 0], 1),
        ([1, 1, 1, 1, 1], [0, 1, 0, 1, 0], 1),
    ],
)
def test_no_mechanism_of_the_level_gives_more_than_the_promised_advantage(
    weights, groups, reach
):
    threat = {"categories": len(weights), "prior": weights, "knowledge": groups}
    threat |= {"tolerance": reach} if reach else {}
    plan = release_plan({"advantage": "0.1"}, threat=threat)
    prior = np.array(weights) / sum(weights)
    level = float(plan.promise.total.epsilon)
    exact = best_advantage(prior, np.array(groups), reach, level)
    assert 0.04 < exact <= 0.1 + 1e-9
    assert exact <= plan.risk().advantage + 1e-9


@pytest.mark.parametrize(
    ("advantage", "threat"),
    [
        ("0.1", {"categories": 2, "tolerance": 1}),
        ("0.1", {"categories": 3, "prior": [3, 2, 1], "tolerance": 2}),
        ("0.5", {"categories": 2}),
        ("0.6", {"categories": 2}),
    ],
    ids=["all guesses right", "all near", "the most there is", "more than there is"],
)
def test_an_attacker_with_nothing_to_learn_is_no_licence_to_disclose(advantage, threat):
    with pytest.raises(PlanError, match="must be below what total disclosure gives"):
        release_plan({"advantage": advantage}, threat=threat)


def fitted(folder, text):
    path = folder / "public.csv"
    path.write_text(text, encoding="utf-8")
    model = {"model": "markov", "states": "active", "fit": str(path)}
    return {"epsilon": 1, "granularity": "event", "correlation": model}


def every_second_alike():
    """Return a series in which each record repeats the one before the last."""
    drawn = np.random.default_rng(3).random(4000)
    series = [0, 1]
    for chance in drawn:
        series.append(series[-2] if chance < 0.97 else int(chance < 0.985))
    return series


def test_a_plan_tells_how_sure_a_fit_is_and_what_speaks_against_it(tmp_path):
    text = "active\n" + "\n".join(map(str, every_second_alike())) + "\n"
    found = shown(fitted(tmp_path, text), source=ROWS, bounds={})
    assert "although public.csv speaks against it: order one rather than two" in found
    assert "with 95 % confidence, from 4001 steps between 2 states" in found
    assert "all rows of public.csv are one series" in found
    assert "depends on others through active alone" in found


def test_a_file_of_a_chain_is_not_said_to_speak_against_it(tmp_path):
    drawn = np.random.default_rng(8).random(1500)
    series = [0]
    for chance in drawn:
        series.append(series[-1] if chance < 0.7 else 1 - series[-1])
    text = "active,person\n" + "".join(f"{state},a\n" for state in series)
    found = shown(fitted(tmp_path, text), source=ROWS, bounds={})
    assert "speaks against" not in found
    assert "one series" not in found


def lines(moments):
    states = (0, 0, 1, 1, 1, 0, 1, 0) * 60
    pairs = zip(moments, states, strict=False)
    return "ts,active\n" + "".join(f"{ts},{state}\n" for ts, state in pairs)


@pytest.mark.parametrize("form", ["2026-01-01T{:02}:{:02}", "2026-01-01 {:02}:{:02}"])
def test_a_public_file_out_of_its_own_order_is_refused(tmp_path, form):
    moments = [form.format(*divmod(at, 60)) for at in range(480)]
    plan = release_plan(fitted(tmp_path, lines(moments)), source=ROWS, bounds={})
    assert plan.promise.total.epsilon < 1
    mixed = list(np.random.default_rng(1).permutation(moments))
    with pytest.raises(PlanError, match=r"in the order of time, got public\.csv"):
        release_plan(fitted(tmp_path, lines(mixed)), source=ROWS, bounds={})


def test_units_that_no_column_of_a_public_file_tells_apart_are_refused(tmp_path):
    moments = [f"2026-01-01T{at // 20:02}:00" for at in range(480)]
    with pytest.raises(PlanError, match=r"several rows at one ts; give it the column"):
        release_plan(fitted(tmp_path, lines(moments)), source=ROWS, bounds={})
    apart = "person," + lines(moments).replace("\n2026", "\na,2026")
    plan = release_plan(fitted(tmp_path, apart), source=ROWS, bounds={})
    assert plan.promise.total.epsilon < 1


def test_a_plan_says_what_was_promised_and_not_only_what_is_left():
    blocks = {"epsilon": 1, "correlation": {"model": "blocks", "group": 4}}
    assert "leakage at most 1 under the stated model, which leaves" in shown(blocks)
    assert "covers: any number of records in groups of at most 4" in shown(blocks)
    text = shown({"advantage": "0.1"}, threat={"categories": 3})
    assert "at most 10.0 points for the stated threat, which leaves ε = " in text


def test_a_model_of_windows_takes_absence_for_one_of_its_values():
    model = chain(("0.9", "0.1"), ("0.2", "0.8"))
    promise = {"epsilon": 1, "granularity": "event", "correlation": model}
    few = {**WINDOWED, "horizon": "3h"}
    assert EMPTY_WINDOWS in shown(promise, source=few)
    assert EMPTY_WINDOWS not in shown(promise, source=ROWS, bounds={})
    assert EMPTY_WINDOWS not in shown(promise | {"granularity": "user"})


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (chain(("1e-400", "1"), ("1", "0")), "transition[0] must have entries of 0 or"),
        (chain(("0", "1"), ("1", "0"), initial=["1"]), "initial must give 2 weights"),
        (chain(("0", "1"), ("1", "0"), initial=[1, 1]), "initial must be non-negative"),
        ({"model": "markov", "gamma": 2, "initial": [1, 0]}, "must come with transit"),
        ({"model": "gaussian", "phi": 1, "length": 5}, "phi must lie strictly between"),
        (
            {"model": "gaussian", "phi": "0.5", "length": 10**9},
            "length must be at most",
        ),
    ],
)
def test_a_model_that_cannot_be_is_refused_by_the_name_of_its_field(model, words):
    with pytest.raises(PlanError) as refusal:
        release_plan({"epsilon": 1, "correlation": model}, [COUNT])
    assert str(refusal.value).startswith("promise.correlation.")
    assert words in str(refusal.value)
