"""Nodes of a running sum are added up only if their steps and noise are the same."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.errors import PlanError
from undertow.ledger import BudgetLedger
from undertow.release import from_table
from undertow.release.plan import encoding as measure
from undertow.release.plan import noise
from undertow.release.plan.timeline import Node, Timeline, node_view
from undertow.release.run import record

HOURLY = {
    "source": {
        "unit": "person",
        "time": "ts",
        "per": {"window": "1h"},
        "start": "2026-01-01",
        "horizon": "8h",
    },
    "promise": {"granularity": "event", "epsilon": "1"},
    "bounds": {"rows_per_unit": 1},
    "queries": [
        {
            "name": "total",
            "select": "sum",
            "column": "x",
            "low": 0,
            "high": 3,
            "running": True,
        }
    ],
}


TIMES = [dt.datetime(2026, 1, 1, hour, 5) for hour in range(3)]
TABLE = pa.table({"person": [1, 1, 1], "ts": TIMES, "x": [1.0, 2.0, 3.0]})


def opened(folder, release):
    """Make a ledger for a release."""
    plan = release.plan()
    return BudgetLedger.create(
        folder / "hourly.ledger",
        dataset="hourly",
        domain=plan.domain,
        budgets={plan.promise.granularity: plan.promise.total},
    )


def run_hours(release, ledger, *hours):
    return [
        release.run(ledger=ledger, as_of=f"2026-01-01T0{hour}:00") for hour in hours
    ]


def every_node(run):
    """Return all nodes that end at a run, which earlier versions released."""
    levels = (run & -run).bit_length()
    return tuple(Node(run - 2**level + 1, run) for level in range(levels))


def release_every_node(patch):
    """Plan and run as earlier versions did."""

    def views(timeline):
        runs = range(1, timeline.runs + 1)
        nodes = [node for run in runs for node in every_node(run)]
        return tuple(node_view(node, windows_per_run=1) for node in nodes)

    patch.setattr(Timeline, "nodes", lambda timeline: every_node(timeline.run))
    patch.setattr(Timeline, "tree_views", views)


def under_way(folder, patch, promise):
    """Return a release and its ledger after two runs of an earlier version."""
    release = from_table(TABLE, {**HOURLY, "promise": promise})
    ledger = opened(folder, release)
    with patch.context() as earlier:
        release_every_node(earlier)
        run_hours(release, ledger, 1, 2)
    return release, ledger


def test_a_running_sum_refuses_nodes_of_another_lattice(tmp_path, monkeypatch):
    release = from_table(TABLE, HOURLY)
    with opened(tmp_path, release) as ledger:
        run_hours(release, ledger, 1, 2)
        spent = ledger.history()
        monkeypatch.setattr(measure, "_SUM_RESOLUTION", 20)
        with pytest.raises(PlanError, match=r"must count in steps of .* start a new"):
            run_hours(release, ledger, 3)
        assert ledger.history() == spent
        monkeypatch.undo()
        run_hours(release, ledger, 3)


PROMISES = [{"epsilon": "1"}, {"rho": "1/2"}]


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_a_running_sum_refuses_nodes_with_other_noise(tmp_path, monkeypatch, promise):
    promise = {"granularity": "user", **promise}
    release, ledger = under_way(tmp_path, monkeypatch, promise)
    with ledger:
        spent = ledger.history()
        with pytest.raises(PlanError) as caught:
            run_hours(release, ledger, 3)
        assert ledger.history() == spent
    mechanism = release.plan().queries[0].mechanism
    assert str(caught.value) == (
        f"the earlier runs of 'total' must carry {mechanism} in every node, got those "
        "of another version; start a new release of the running total."
    )


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_a_running_sum_goes_on_where_the_noise_stays(tmp_path, monkeypatch, promise):
    promise = {"granularity": "event", **promise}
    release, ledger = under_way(tmp_path, monkeypatch, promise)
    with ledger:
        (third,) = run_hours(release, ledger, 3)
    assert not third.repeated


def stored_as(monkeypatch, change):
    """Let the noise of stored nodes be another, or be stored in another way."""
    real = record.read_record

    def altered(stored):
        found = real(stored)
        change(found["plan"]["queries"][0])
        return found

    monkeypatch.setattr(record, "read_record", altered)


def hours_after(folder, monkeypatch, promise, change):
    """Run hour 3 after two others whose stored noise `change` has altered."""
    whole = {**HOURLY, "promise": {"granularity": "event", **promise}}
    release = from_table(TABLE, whole)
    with opened(folder, release) as ledger:
        run_hours(release, ledger, 1, 2)
        stored_as(monkeypatch, change)
        return run_hours(release, ledger, 3)[0]


def sized(query, factor):
    name = "scale" if "scale" in query["noise"] else "variance"
    query["noise"][name] = str(Fraction(query["noise"][name]) * Fraction(factor))


def in_words(query, factor=1.0):
    """Leave what earlier versions stored: words, and the deviation."""
    del query["noise"]
    query["node_deviation"] *= factor


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("factor", [1 - 1e-8, 1 + 1e-8])
@pytest.mark.parametrize("change", [sized, in_words])
def test_noise_is_the_same_only_if_its_size_is(
    tmp_path, monkeypatch, change, factor, promise
):
    with pytest.raises(PlanError, match="must carry discrete"):
        hours_after(tmp_path, monkeypatch, promise, lambda query: change(query, factor))


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize("factor", [1 - 1e-11, 1.0, 1 + 1e-11])
@pytest.mark.parametrize("change", [sized, in_words])
def test_noise_is_the_same_where_machines_round_otherwise(
    tmp_path, monkeypatch, change, factor, promise
):
    run = hours_after(
        tmp_path, monkeypatch, promise, lambda query: change(query, factor)
    )
    assert not run.repeated


def in_other_words(query):
    in_words(query)
    words = query["mechanism"]
    law = ("Gaussian", "sigma") if "Laplace" in words else ("Laplace", "scale")
    number = words.split(" of ")[1].split()[1]
    query["mechanism"] = f"discrete {law[0]} noise of {law[1]} {number}"


@pytest.mark.parametrize("promise", PROMISES, ids=str)
@pytest.mark.parametrize(
    "change",
    [
        lambda query: query["noise"].update(law="laplace", scale="6", variance="6"),
        lambda query: query["noise"].update(law="gaussian", scale="6", variance="6"),
        lambda query: query["noise"].update(step="1/2"),
        lambda query: in_other_words(query),
        lambda query: query.update(noise=None, mechanism="noise"),
        lambda query: query.update(noise=None, node_deviation=None, deviation=None),
    ],
)
def test_noise_of_another_law_or_step_is_refused(
    tmp_path, monkeypatch, change, promise
):
    with pytest.raises(PlanError, match="must carry discrete"):
        hours_after(tmp_path, monkeypatch, promise, change)


@pytest.mark.parametrize("promise", PROMISES, ids=str)
def test_words_about_noise_may_be_edited(tmp_path, monkeypatch, promise):
    """The first two hours are stored in the old words, the third is run with others."""
    whole = {**HOURLY, "promise": {"granularity": "event", **promise}}
    release = from_table(TABLE, whole)
    with opened(tmp_path, release) as ledger:
        run_hours(release, ledger, 1, 2)
        monkeypatch.setattr(noise, "_WORDS", dict.fromkeys(noise._WORDS, "noise like"))
        (third,) = run_hours(release, ledger, 3)
        (query,) = third.record["plan"]["queries"]
        assert query["mechanism"].startswith("noise like ")
        run_hours(release, ledger, 4)
        stored_as(monkeypatch, lambda query: sized(query, 1.25))
        with pytest.raises(PlanError, match="must carry noise like"):
            run_hours(release, ledger, 5)


@pytest.mark.parametrize(
    "stored",
    [
        {},
        [],
        "laplace",
        {"law": "laplace", "scale": "6"},
        {"law": "laplace", "variance": "6", "step": "1"},
        {"law": "laplace", "scale": "0", "step": "1"},
        {"law": "laplace", "scale": "1/0", "step": "1"},
        {"law": "laplace", "scale": "6", "step": "-1"},
        {"law": "uniform", "scale": "6", "step": "1"},
    ],
)
def test_noise_that_no_version_has_stored_is_refused(stored):
    with pytest.raises(PlanError, match="newer version"):
        noise.stored_noise({"noise": stored})


@given(
    law=st.sampled_from(["laplace", "gaussian"]),
    parameter=st.fractions("1/20", 10**9),
    step=st.integers(-30, 30).map(lambda power: Fraction(2) ** power),
)
def test_noise_in_the_former_words_reads_as_the_noise_that_it_was(law, parameter, step):
    told = noise.LatticeNoise(noise.IntegerNoise(law, parameter), step)
    query = {
        "mechanism": told.in_steps,
        "step": float(step),
        "node_deviation": told.noise.deviation * float(step),
    }
    found = noise.stored_noise(query)
    assert found.is_alike(told)
    assert found.in_steps == told.in_steps
    assert noise.stored_noise({"noise": told.to_dict()}) == told
