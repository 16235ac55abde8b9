"""Running times: told where they were not looked at, and looked at if asked for."""

from __future__ import annotations

import itertools
import json
import math
import pickle
import sys
import threading
import time
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from support.command import invoke
from undertow.audit import (
    AuditError,
    AuditResult,
    CallableSubject,
    Claim,
    CommandSubject,
    MechanismSubject,
    audit_local,
    audit_pair,
    audit_pair_until_refuted,
    audit_until_refuted,
)
from undertow.audit.pair._draw import timed_runs
from undertow.mechanisms import LaplaceMechanism
from undertow.mechanisms.local import GeneralizedResponse
from undertow.report import AuditReport

PURE = Claim.pure(1)
LOOSE = Claim.pure(3)


def told(x, rng):
    """Answer by randomised response with the odds e."""
    return x ^ (rng.random() < 1 / (1 + math.e))


def work(rounds):
    total = 0
    for k in range(rounds):
        total += k
    return total


def constant(x, rng):
    work(60)
    return told(x, rng)


def slower_on_one(x, rng):
    work(60 + 600 * x)
    return rng.normal()


def untold(notes):
    return sum("how long a run takes" in note for note in notes)


AUDITS = {
    "pair": lambda claim: audit_pair(CallableSubject(told, [0, 1]), claim, trials=4000),
    "pair at any time": lambda claim: audit_pair_until_refuted(
        CallableSubject(told, [0, 1]), claim, trials=4000
    ),
    "local": lambda claim: audit_local(
        GeneralizedResponse(4, 1), claim, trials=4000, seed=1
    ),
    "local at any time": lambda claim: audit_until_refuted(
        GeneralizedResponse(4, 1), claim, trials=4000, seed=1
    ),
}


@pytest.mark.parametrize("name", AUDITS)
def test_what_is_not_refuted_says_once_that_times_were_not_looked_at(name):
    loose, low = AUDITS[name](LOOSE), AUDITS[name](Claim.pure("0.1"))
    assert (loose.verdict, low.verdict) == ("not refuted", "violated")
    assert untold(loose.notes) == untold(loose.to_dict()["notes"]) == 1
    assert untold(low.notes) == 0
    assert AuditReport(loose).markdown().count("how long a run takes") == 1
    assert AuditReport(loose).html().count("how long a run takes") == 1


def test_the_note_follows_the_verdict_of_a_result():
    given = {"confidence": 0.9, "trials": 9, "epsilon_certified": 1.0}
    result = AuditResult("f", PURE, 0.5, notes=("other",), **given)
    assert (untold(result.notes), result.notes[1:]) == (1, ("other",))
    same = replace(result, notes=(*result.notes, "more"))
    assert (untold(same.notes), same.notes[1:]) == (1, ("other", "more"))
    assert replace(result, certified=2.0).notes == ("other",)
    assert replace(result, times=True).notes == ("other",)
    assert pickle.loads(pickle.dumps(replace(result, times=True))).times


def test_the_command_line_says_that_times_were_not_looked_at():
    words = ("ldp", "--protocol=grr", "--categories=4", "--epsilon=1", "--trials=2000")
    shown = invoke("audit", *words, "--no-baseline").stdout
    record = json.loads(invoke("audit", *words, "--no-baseline", "--json").stdout)
    assert shown.count("how long a run takes") == untold(record["notes"]) == 1
    assert record["times"] is False


def test_a_function_that_needs_longer_on_one_input_is_refuted_by_its_times():
    subject = CallableSubject(slower_on_one, [0, 1])
    blind = audit_pair(subject, PURE, trials=4000)
    assert (blind.verdict, blind.times) == ("not refuted", False)
    found = audit_pair(subject, PURE, trials=4000, score="time")
    assert (found.verdict, found.times, found.seed) == ("violated", True, None)
    assert "running time in nanoseconds" in found.witness.summary
    assert found.trials == 4000
    assert any("running times were looked at" in note for note in found.notes)


def test_outputs_are_looked_at_as_without_times():
    kinds = {
        "vector": lambda x, rng: rng.laplace(size=3) + x,
        "text": lambda x, rng: f"n = {x + rng.laplace():.3f}",
        "label": told,
        "rounded": lambda x, rng: x / 7 + round(rng.laplace(scale=9), 2),
        "raises": lambda x, rng: 1 / 0 if told(x, rng) else rng.normal(),
    }
    for name, function in kinds.items():
        subject = CallableSubject(function, [0, 1], name=name)
        plain = audit_pair(subject, Claim.pure("0.3"), trials=8000, seed=1)
        timed = audit_pair(subject, Claim.pure("0.3"), trials=8000, score=["time"])
        assert plain.violated, name
        assert timed.violated, name
        words = [r.methods[0].name.split(">")[0].split("=")[0] for r in (plain, timed)]
        if name != "raises":  # which takes longer
            assert "nanoseconds" not in words[1], name
        if name in ("label", "rounded"):
            assert words[0] == words[1]


def test_the_inputs_run_in_one_random_order_after_some_that_are_dropped():
    seen = []

    def function(x, rng):
        seen.append(x)
        return rng.normal()

    subject = CallableSubject(function, [0, 1, 2])
    runs = timed_runs(subject, [0, 2], trials=1000, root=1)
    assert (len(seen), set(seen)) == (1000 + 2 * 63, {0, 2})
    assert [runs.available(k) for k in range(3)] == [500, 0, 500]
    order = [x for x in seen[126:] if x != 1]
    stretches = 1 + sum(a != b for a, b in itertools.pairwise(order))
    assert 400 < stretches < 600
    again = list(seen)
    seen.clear()
    timed_runs(subject, [0, 2], trials=1000, root=1)
    assert seen == again  # the order is that of the seed
    seen.clear()
    timed_runs(subject, [0, 2], trials=1000, root=2)
    assert seen != again


@pytest.mark.slow
def test_each_run_of_a_program_is_a_process_of_its_own():
    code = (
        "import json, random, sys, time\n"
        "bits = [json.loads(line) for line in sys.stdin]\n"
        "time.sleep(0.15 * bits[0])\n"
        "print(len(bits) + random.random())"
    )
    subject = CommandSubject([sys.executable, "-S", "-c", code], [0, 1])
    found = audit_pair(subject, PURE, trials=100, score="time", confidence=0.9)
    assert found.violated
    assert "running time" in found.witness.summary


@pytest.mark.parametrize(
    ("subject", "options", "said"),
    [
        (CallableSubject(told, [0, 1], vectorised=True), {}, "not made one by one"),
        (MechanismSubject(LaplaceMechanism(1), [0.0, 1.0]), {}, "not made one by one"),
        (CallableSubject(told, [0, 1]), {"workers": 2}, "workers must be 1"),
        (CallableSubject(told, [0, 1]), {"checkpoint": "x"}, "checkpoint must be None"),
        (CallableSubject(told, [0, 1]), {"trials": 20}, "ask for at least"),
    ],
)
def test_what_cannot_be_timed_is_refused(subject, options, said):
    with pytest.raises(AuditError, match=said):
        audit_pair(subject, PURE, score="time", **options)


def test_times_are_no_part_of_an_audit_that_stops_early():
    with pytest.raises(AuditError, match="without 'time'"):
        audit_pair_until_refuted(CallableSubject(told, [0, 1]), PURE, score="time")


def test_noise_that_is_kept_from_run_to_run_is_still_refused():
    kept = {}

    def function(x, rng):
        kept["sum"] = kept.get("sum", 0.0) + rng.normal()
        return x + kept["sum"]

    with pytest.raises(AuditError, match="must draw anew"):
        audit_pair(CallableSubject(function, [0, 1]), PURE, score="time", trials=4000)


class Machine:
    """A subject with a clock of its own: times drift, jump and follow each other."""

    name, version, inputs, forkable, seeded = "machine", "", (0, 1), False, False

    def __init__(self, seed, *, slower=0.0):
        self.rng, self.slower = np.random.default_rng(seed), slower

    def sample(self, value, size, *, rng):
        raise AssertionError

    def run_timed(self, order, *, rng):
        n = len(order)
        drift = np.linspace(0, 3000, n) + 2000 * (np.arange(n) > n // 2)
        noise = np.cumsum(self.rng.normal(scale=30, size=n)) + self.rng.gamma(2, 99, n)
        carried = 500 * np.array([0, *order[:-1]])  # a cache that the last run left
        own = self.slower * np.array(order)
        taken = (5000 + drift + noise + carried + own).astype(int)
        answers = [told(x, rng) for x in order]
        return list(zip(answers, taken.tolist(), strict=True))


def test_a_machine_that_drifts_does_not_accuse():
    """Two hundred audits at 90 %, each of exactly level 1: fails once in 1e6."""
    found = [
        audit_pair(
            Machine(seed), PURE, trials=800, score="time", seed=seed, confidence=0.9
        ).violated
        for seed in range(200)
    ]
    assert sum(found) <= stats.binom.isf(1e-6, 200, 0.1)
    slower = audit_pair(Machine(1, slower=9000.0), PURE, trials=800, score="time")
    assert slower.violated


@pytest.mark.statistical
def test_constant_work_is_not_accused_on_a_machine_under_load():
    """Two hundred audits at 90 %, each of exactly level 1: fails once in 1e6."""
    stop = threading.Event()

    def load():
        while not stop.is_set():
            work(20_000)
            time.sleep(0.0005)

    threads = [threading.Thread(target=load, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        subject = CallableSubject(constant, [0, 1])
        found = [
            audit_pair(
                subject, PURE, trials=400, score="time", seed=seed, confidence=0.9
            ).violated
            for seed in range(200)
        ]
    finally:
        stop.set()
    for thread in threads:
        thread.join()
    assert sum(found) <= stats.binom.isf(1e-6, 200, 0.1)


def test_the_command_line_looks_at_times(tmp_path, monkeypatch):
    (tmp_path / "timed_module.py").write_text(
        "def f(x, rng):\n    sum(range(100 + 5000 * x))\n    return rng.normal()\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    words = ("callable", "timed_module:f", "--inputs=[0, 1]", "--claim=1", "--json")
    more = ("--trials=2000", "--score=time")
    ran = invoke("audit", *words, *more)
    record = json.loads(ran.stdout)
    assert (ran.exit_code, record["times"]) == (3, True)
    refused = invoke("audit", *words, *more, "--stop-early")
    assert (refused.exit_code, "'time'" in refused.stderr) == (2, True)
    blind = invoke("audit", *words, "--trials=2000")
    assert (blind.exit_code, json.loads(blind.stdout)["times"]) == (0, False)
