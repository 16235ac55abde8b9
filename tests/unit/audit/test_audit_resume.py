"""Audits that are interrupted or killed go on where they were, to the same result."""

from __future__ import annotations

import json
import sys
import textwrap

import numpy as np
import pytest

from support.interrupted import Counted, Script
from undertow.audit import runner as _checkpoint
from undertow.audit.claim import Claim
from undertow.audit.local import audit_local
from undertow.audit.pair import _choice as _pair_training
from undertow.audit.pair import _draw as _pair_chunks
from undertow.audit.pair._draw import decoded, encoded
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.program import CommandSubject
from undertow.audit.subject import CallableSubject
from undertow.errors import AuditError
from undertow.mechanisms.local import GeneralizedResponse, OptimizedUnary


def laplace(values, rng):
    noise = rng.laplace(size=len(values))
    return np.round((np.asarray(values) + noise) * 2.0**24) / 2.0**24


def spawning(values, rng):
    (child,) = rng.spawn(1)
    return np.asarray(values) + child.laplace(size=len(values))


def labels(values, rng):
    told = np.asarray(values) ^ (rng.random(len(values)) < 0.3)
    return [("no", "yes")[int(bit)] for bit in told]


def pairs_of_labels(values, rng):
    return [(label, None) for label in labels(values, rng)]


def sets(values, rng):
    return [frozenset([label]) for label in labels(values, rng)]


@pytest.fixture
def small(monkeypatch):
    """Batches of a thousand runs."""
    for module in (_pair_chunks, _pair_training):
        monkeypatch.setattr(module, "BATCH", 1000)


def audit(counted, path=None, **options):
    subject = CallableSubject(counted, [0, 1], vectorised=True, name="f")
    chosen = {"trials": 16_000, "seed": 5, "checkpoint": path, **options}
    return audit_pair(subject, Claim.pure(1), **chosen)


# Two batches of the start, eight of the choice and eight of the certificate.
PROBES, ALL = 2, 18


@pytest.mark.parametrize("function", [laplace, spawning, labels, pairs_of_labels])
@pytest.mark.parametrize("stop", [5, 8, 13], ids=["first", "second", "certifying"])
@pytest.mark.usefixtures("small")
def test_an_interruption_in_either_half_loses_one_batch(tmp_path, function, stop):
    path, whole = tmp_path / "audit.json", Counted(function)
    expected = audit(whole)
    with pytest.raises(KeyboardInterrupt):
        audit(Counted(function, stop), path)
    again = Counted(function)
    assert audit(again, path) == expected
    assert whole.calls == ALL
    assert again.calls == ALL - (stop - 1 - PROBES)


@pytest.mark.usefixtures("small")
def test_outputs_that_cannot_be_kept_are_drawn_again_to_the_same_result(tmp_path):
    path, again = tmp_path / "audit.json", Counted(sets)
    with pytest.raises(KeyboardInterrupt):
        audit(Counted(sets, 13), path)
    assert audit(again, path) == audit(Counted(sets))
    assert again.calls == ALL - 2  # one certifying chunk was kept


@pytest.mark.usefixtures("small")
def test_outputs_beyond_the_limit_are_not_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(_pair_training, "_MOST", 10_000)
    path = tmp_path / "audit.json"
    whole = audit(Counted(laplace), path)
    assert path.stat().st_size < 20_000
    assert audit(Counted(laplace), path) == whole


@pytest.mark.usefixtures("small")
def test_the_checkpoint_of_a_finished_audit_runs_nothing_but_the_start(tmp_path):
    path, again = tmp_path / "audit.json", Counted(laplace)
    assert audit(Counted(laplace), path) == audit(again, path)
    assert again.calls == PROBES


@pytest.mark.usefixtures("small")
def test_the_choice_among_many_pairs_is_kept_with_the_runs_of_one_pair(tmp_path):
    path = tmp_path / "audit.json"

    def run(counted):
        subject = CallableSubject(counted, [0, 1, 3], vectorised=True, name="f")
        return audit_pair(subject, Claim.pure(1), trials=6_000, seed=5, checkpoint=path)

    first, again = Counted(laplace), Counted(laplace)
    assert run(first) == run(again)
    state = json.loads(path.read_text())["sections"]["choice"]["state"]
    assert state["kept"] == [[0, 2], "usual", []]
    assert set(state["runs"]) == {"0", "2"}


@pytest.mark.parametrize(
    "other",
    [{"seed": 6}, {"trials": 16_004}, {"confidence": 0.95}, {"score": "bits"}],
    ids=["seed", "trials", "confidence", "score"],
)
@pytest.mark.usefixtures("small")
def test_the_checkpoint_of_another_audit_is_refused_before_it_runs(tmp_path, other):
    path = tmp_path / "audit.json"
    with pytest.raises(KeyboardInterrupt):
        audit(Counted(laplace, 5), path)
    counted = Counted(laplace)
    with pytest.raises(AuditError, match="must belong to this job"):
        audit(counted, path, **other)
    assert counted.calls == 0


@pytest.mark.usefixtures("small")
def test_a_score_that_has_changed_its_mind_is_refused(tmp_path):
    path = tmp_path / "audit.json"

    def score(outputs):
        return np.arctan(outputs)

    whole = audit(Counted(laplace), path, score=score)
    assert audit(Counted(laplace), path, score=score) == whole

    def other(outputs):
        return np.zeros(len(outputs))

    other.__name__ = "score"
    with pytest.raises(AuditError, match="must belong to this job"):
        audit(Counted(laplace), path, score=other)


@pytest.mark.parametrize(
    "damage",
    [
        {"runs": {"0": {"array": "AAAA", "stand": None}}},
        {"runs": {"0": {"literals": "[1, 2", "stand": None}}},
        {"runs": {"7": {"labels": [], "stand": None}}},
        {"runs": {"0": {"labels": ["a"], "stand": None}}},
        {"kept": [1]},
        {"runs": None},
    ],
    ids=["array", "literals", "input", "part", "pair", "none"],
)
@pytest.mark.usefixtures("small")
def test_a_damaged_choice_is_refused_with_the_way_out(tmp_path, damage):
    path = tmp_path / "audit.json"
    with pytest.raises(KeyboardInterrupt):
        audit(Counted(laplace, 5), path)
    saved = json.loads(path.read_text())
    saved["sections"]["choice"]["state"] |= damage
    path.write_text(json.dumps(saved))
    with pytest.raises(AuditError, match=r"damaged .*; delete it to start again"):
        audit(Counted(laplace), path)


@pytest.mark.parametrize(
    "outputs",
    [
        np.array([1, -2]),
        np.array([[0.1, np.inf]]),
        np.array([True]),
        np.array([(3, 1)], dtype=[("seed", "u8"), ("bucket", "u4")]),
        np.array(["a", "\ud800"], dtype=object),
        np.array([2**70, -1], dtype=object),
    ],
    ids=["ints", "vectors", "bools", "records", "words", "long"],
)
def test_outputs_come_back_as_they_were(outputs):
    kept = decoded(json.loads(json.dumps(encoded(outputs))))
    assert kept.dtype == outputs.dtype
    assert np.array_equal(kept, outputs)


def test_a_command_is_told_its_own_way_to_a_checkpoint(tmp_path):
    command = CommandSubject([sys.executable, "-c", ""], [0, 1], name="prog")
    with pytest.raises(AuditError, match=r"for prog, .*seeded=True \(--seeded"):
        audit_pair(command, Claim.pure(1), checkpoint=tmp_path / "c")
    with pytest.raises(AuditError, match=r"for prog, .*seeded=True \(--seeded"):
        audit_local(
            command, Claim.pure(1), trials=1000, seed=1, checkpoint=tmp_path / "c"
        )


def test_an_interrupted_local_audit_keeps_its_pilot(tmp_path, monkeypatch):
    path, protocol = tmp_path / "audit.json", OptimizedUnary(20, 1)
    options = {"trials": 60_000, "seed": 1, "chunk": 1000}
    expected = audit_local(protocol, Claim.pure(1), **options)

    def stop(done, total, counts):
        if done == 16:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        audit_local(protocol, Claim.pure(1), **options, checkpoint=path, progress=stop)
    sections = json.loads(path.read_text())["sections"]
    assert sections["phase 0"]["state"]["done"] == 3
    assert sections["phase 1"]["state"]["done"] == 16
    calls = []
    sample = OptimizedUnary.sample

    def counting(self, values, *, source=None):
        calls.append(len(values))
        return sample(self, values, source=source)

    monkeypatch.setattr(OptimizedUnary, "sample", counting)
    again = audit_local(protocol, Claim.pure(1), **options, checkpoint=path)
    assert again == expected
    assert len(calls) == 57 - 16


def test_the_pilot_of_another_protocol_is_refused(tmp_path):
    path, options = tmp_path / "audit.json", {"trials": 20_000, "seed": 1}
    kept = {**options, "checkpoint": path}
    audit_local(GeneralizedResponse(20, 1), Claim.pure(1), **kept)
    with pytest.raises(AuditError, match="must belong to this job"):
        audit_local(GeneralizedResponse(20, 2), Claim.pure(1), **kept)


SCRIPT = textwrap.dedent(
    """
    import json, sys, time
    import numpy as np
    from undertow.audit import CallableSubject, Claim
    from undertow.audit import runner as _checkpoint
    from undertow.audit import audit_local, audit_pair

    _checkpoint._INTERVAL = 0.02
    kind, path, pause = sys.argv[1], sys.argv[2], float(sys.argv[3])
    calls = 0

    def noisy(values, rng):
        global calls
        calls += 1
        time.sleep(pause)
        return np.asarray(values) ^ (rng.random(len(values)) < 0.3)

    subject = CallableSubject(noisy, [0, 1], vectorised=True)
    kept = dict(seed=5, checkpoint=path)
    if kind == "pair":
        found = audit_pair(subject, Claim.pure(1), trials=160_000, **kept)
    else:
        found = audit_local(subject, Claim.pure(1), trials=20_000, chunk=1000, **kept)
    print(json.dumps([found.to_dict(), calls]))
    """
)


@pytest.mark.parametrize(
    ("kind", "section"),
    [
        ("pair", "choice"),
        ("pair", "counts"),
        ("local", "phase 1"),
    ],
    ids=["choosing", "certifying", "local"],
)
def test_a_killed_audit_resumes_to_the_identical_result(tmp_path, kind, section):
    script, path = Script(tmp_path, SCRIPT, kind), tmp_path / "audit.json"

    def reached():
        return path.exists() and section in json.loads(path.read_text())["sections"]

    script.kill(path, reached, pause=0.05)
    resumed, fresh = script.finish(path), script.finish(tmp_path / "fresh.json")
    assert resumed[0] == fresh[0]
    assert resumed[1] < fresh[1]


def test_a_folder_that_is_not_there_is_refused_before_anything_runs(tmp_path):
    with pytest.raises(AuditError, match="a folder that is there"):
        _checkpoint.Checkpoint(tmp_path / "none" / "c.json")
