"""Slow functions: every run is kept, and no result depends on how runs are grouped."""

from __future__ import annotations

import json
import textwrap

import numpy as np
import pytest

from support.interrupted import Counted, Script
from undertow.audit.claim import Claim
from undertow.audit.pair import _draw as _pair_draw
from undertow.audit.pair._draw import Drawer, is_divisible, joined
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.subject import CallableSubject
from undertow.errors import AuditError


def laplace(value, rng):
    return value + rng.laplace()


def words(value, rng):
    return "yes" if rng.random() < (0.3, 0.7)[value] else "no"


def spawning(value, rng):
    (child,) = rng.spawn(1)
    return value + child.laplace()


def mixed(value, rng):
    """Return whole numbers for a while, then others."""
    return value if rng.random() < 0.99 else 0.5


def sets(value, rng):
    return frozenset([words(value, rng)])


TRIALS = 1600


def audit(counted, path=None, **options):
    subject = CallableSubject(counted, [0, 1], name="f")
    return audit_pair(
        subject, Claim.pure(1), trials=TRIALS, seed=5, checkpoint=path, **options
    )


@pytest.fixture
def slow(monkeypatch):
    """Functions so slow that every part is one run."""
    monkeypatch.setattr(_pair_draw, "_SHORT", 0.0)


@pytest.mark.parametrize("function", [laplace, words, spawning, mixed])
@pytest.mark.parametrize("stop", [3, 700, 1000, 1500])
def test_an_interruption_loses_one_run(tmp_path, monkeypatch, function, stop):
    path, whole = tmp_path / "audit.json", Counted(function)
    expected = audit(whole)  # in parts as large as they come
    monkeypatch.setattr(_pair_draw, "_SHORT", 0.0)
    with pytest.raises(KeyboardInterrupt):
        audit(Counted(function, stop), path)
    again = Counted(function)
    assert audit(again, path).to_dict() == expected.to_dict()
    assert whole.calls == TRIALS
    assert again.calls == TRIALS - (stop - 1)


@pytest.mark.usefixtures("slow")
def test_outputs_that_cannot_be_kept_cost_their_batch(tmp_path):
    path, again = tmp_path / "audit.json", Counted(sets)
    with pytest.raises(KeyboardInterrupt):
        audit(Counted(sets, 1500), path)  # in the second batch of the first input
    assert audit(again, path) == audit(Counted(sets))
    assert again.calls == TRIALS - 2 * 256


@pytest.mark.usefixtures("slow")
def test_a_checkpoint_holds_no_certifying_output_once_its_batch_is_counted(tmp_path):
    path = tmp_path / "audit.json"
    audit(Counted(laplace), path)
    state = json.loads(path.read_text())["sections"]["counts"]["state"]
    assert state["part"] is None
    assert state["done"] == 2


@pytest.mark.extra
def test_several_workers_run_the_begun_batch_again_to_the_same_result(tmp_path):
    pytest.importorskip("joblib")
    path, options = tmp_path / "audit.json", {"trials": TRIALS, "seed": 5}
    subject = CallableSubject(laplace, [0, 1], name="f")
    expected = audit_pair(subject, Claim.pure(1), **options)

    def stopped(value, rng):
        stopped.runs += 1
        if stopped.runs == 900:
            raise KeyboardInterrupt
        return laplace(value, rng)

    stopped.runs = 0
    subject.function = stopped
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_pair_draw, "_SHORT", 0.0)
        patch.setattr("undertow.audit.pair._choice.subject_identity", lambda s: "f")
        patch.setattr("undertow.audit.pair.fixed.subject_identity", lambda s: "f")
        with pytest.raises(KeyboardInterrupt):
            audit_pair(subject, Claim.pure(1), checkpoint=path, **options)
        state = json.loads(path.read_text())["sections"]["counts"]["state"]
        assert len(state["part"]["outputs"]) == 99
        subject.function = laplace
        options |= {"checkpoint": path, "workers": 2}
        assert audit_pair(subject, Claim.pure(1), **options) == expected


@pytest.mark.parametrize(
    "damage",
    [
        {"outputs": [{"array": "AAAA"}]},
        {"stand": [{"bit_generator": "PCG64"}, 0]},
        {"hits": [1, 2]},
        {"hits": None},
    ],
    ids=["outputs", "stand", "sides", "hits"],
)
@pytest.mark.usefixtures("slow")
def test_a_damaged_part_is_refused_with_the_way_out(tmp_path, damage):
    path = tmp_path / "audit.json"
    with pytest.raises(KeyboardInterrupt):
        audit(Counted(laplace, 1000), path)
    saved = json.loads(path.read_text())
    saved["sections"]["counts"]["state"]["part"] |= damage
    path.write_text(json.dumps(saved))
    with pytest.raises(AuditError, match=r"damaged .*; delete it to start again"):
        audit(Counted(laplace), path)


def test_progress_is_told_of_chunks_and_not_of_parts():
    told = []
    audit(Counted(laplace), progress=lambda done, total, counts: told.append(done))
    assert told == [1, 2]


def test_parts_grow_until_they_take_their_time(monkeypatch):
    now, drawn = [0.0], []

    def timed(value, rng):
        now[0] += 0.03  # seconds that a run takes
        return value

    monkeypatch.setattr(_pair_draw.time, "monotonic", lambda: now[0])
    drawer = Drawer(CallableSubject(timed, [0, 1]))
    for part in drawer.parts(0, 40, rng=np.random.default_rng(1)):
        drawn.append(len(part.outputs))
    assert drawn == [1, 2, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1]


def test_only_a_function_of_one_run_is_divided():
    assert is_divisible(CallableSubject(laplace, [0, 1]))
    whole = CallableSubject(lambda v, rng: v, [0, 1], vectorised=True)
    assert not is_divisible(whole)
    parts = Drawer(whole).parts(0, 5000, rng=np.random.default_rng(1))
    assert [len(part.outputs) for part in parts] == [5000]


def test_parts_are_joined_as_if_they_had_been_drawn_at_once():
    found = joined([np.array([1, 2]), np.array([2**70], dtype=object)], name="f")
    assert found.tolist() == [1, 2, 2**70]
    assert all(type(item) is int for item in found)
    rows = joined([np.array([[1, 2]]), np.array([[0.5, 1.0]])], name="f")
    assert rows.tolist() == [(1, 2), (0.5, 1.0)]
    assert joined(
        [np.array([1]), np.array(["a"], dtype=object)], name="f"
    ).tolist() == [
        1,
        "a",
    ]


SCRIPT = textwrap.dedent(
    """
    import json, sys, time
    from undertow.audit import CallableSubject, Claim, audit_pair
    from undertow.audit import runner as _checkpoint

    _checkpoint._INTERVAL = 0.02
    path, pause, runs = sys.argv[1], float(sys.argv[2]), 0

    def noisy(value, rng):
        global runs
        runs += 1
        time.sleep(pause)
        return value + rng.laplace()

    subject = CallableSubject(noisy, [0, 1])
    options = dict(trials=600, seed=5, checkpoint=path)
    found = audit_pair(subject, Claim.pure(1), **options)
    print(json.dumps([found.to_dict(), runs]))
    """
)


@pytest.mark.parametrize(
    "half", ["choice", pytest.param("counts", marks=pytest.mark.slow)]
)
def test_a_killed_audit_of_a_slow_function_goes_on_within_its_batch(tmp_path, half):
    script, path = Script(tmp_path, SCRIPT), tmp_path / "audit.json"

    def reached():
        sections = json.loads(path.read_text())["sections"] if path.exists() else {}
        if half == "counts":
            return "counts" in sections and sections["counts"]["state"]["part"]
        return "choice" in sections

    script.kill(path, reached, pause=0.01)
    resumed, fresh = script.finish(path), script.finish(tmp_path / "fresh.json")
    assert json.dumps(resumed[0]) == json.dumps(fresh[0])
    assert fresh[1] == 600
    assert resumed[1] < (300 if half == "counts" else 600)
