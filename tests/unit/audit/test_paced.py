"""Programs that are slow: starts adapt, and a time limit loses no runs."""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import pytest

from undertow.audit import Claim, CommandSubject, audit_pair, audit_pair_until_refuted
from undertow.audit.program import OutOfTimeError, Pace
from undertow.errors import AuditError

SLOW = (
    "import json, os, random, sys, time\n"
    "draw = random.Random(int(os.environ['UNDERTOW_SEED']))\n"
    "for line in sys.stdin:\n"
    "    time.sleep(EACH)\n"
    "    print(json.loads(line) ^ (draw.random() < 0.1), flush=True)\n"
)


def slow(each, **options):
    words = [sys.executable, "-c", SLOW.replace("EACH", str(each))]
    return CommandSubject(words, [0, 1], name="slow", **options)


class Clockwork(CommandSubject):
    """Takes so many seconds for each run of a clock that only it moves."""

    def __init__(self, monkeypatch, each, *, stops_after=10**9, **options):
        super().__init__("clockwork", [0, 1], time_limit=5.0, **options)
        self.each, self.left, self.now, self.sizes = each, stops_after, 0.0, []
        monkeypatch.setattr("time.monotonic", lambda: self.now)

    def _seed(self, rng):
        return super()._seed(rng) if self.seeded else len(self.sizes)

    def _communicate(self, text, *, seed):
        runs = len(text) // 2
        self.sizes.append(runs)
        self.left -= runs
        self.now += 0.01 + min(self.each * runs, self.time_limit)
        if self.left < 0 or self.each * runs > self.time_limit:
            raise OutOfTimeError(f"clockwork got no answer of {runs}.")
        bits = np.random.default_rng(seed).random(runs) < 0.1
        return "".join(f"{json.loads(text[0]) ^ int(bit)}\n" for bit in bits)


@pytest.mark.slow
def test_a_slow_program_is_audited_within_a_limit_far_below_the_time_of_a_batch():
    found = audit_pair(slow(0.004, time_limit=1.0), Claim.pure(1), trials=1200)
    assert found.verdict == "violated"
    assert found.trials == 1200
    assert found.seed is None


@pytest.mark.parametrize("each", [1e-5, 1e-3, 0.02, 0.1, 4.0])
def test_starts_follow_the_pace_of_the_program(each, monkeypatch):
    subject = Clockwork(monkeypatch, each)
    size = 20_000 if each < 1e-2 else 50
    outputs = subject.sample(1, size, rng=np.random.default_rng(1))
    assert len(outputs) == size == sum(subject.sizes)
    assert max(subject.sizes) * each < subject.time_limit
    if each < 1e-2:  # and not one by one
        assert len(subject.sizes) < 60
    assert max(subject.sizes) <= subject.batch


def test_a_pace_falls_at_once_and_rises_by_degrees():
    pace = Pace(60.0, 1000)
    for runs, seconds, size in [(1, 0.0, 8), (8, 0.0, 64), (64, 64.0, 2), (1, 0.1, 2)]:
        pace.took(runs, seconds)
        assert pace.size == size


def test_no_runs_are_drawn_of_none(monkeypatch):
    subject = Clockwork(monkeypatch, 0)
    assert len(subject.sample(0, 0, rng=np.random.default_rng(1))) == 0
    assert subject.sizes == []


def test_what_stops_for_another_reason_is_no_time_limit():
    broken = CommandSubject([sys.executable, "-c", "raise SystemExit(1)"], [0, 1])
    with pytest.raises(AuditError, match="status 0") as caught:
        broken.sample(0, 5, rng=np.random.default_rng(1))
    assert not isinstance(caught.value, OutOfTimeError)


def test_a_time_limit_keeps_the_runs_that_were_made_before_it(monkeypatch):
    subject = Clockwork(monkeypatch, 1e-6, stops_after=3000)
    found = audit_pair_until_refuted(subject, Claim.pure(3), trials=100_000, seed=1)
    assert found.verdict == "not refuted"
    assert 768 <= found.trials <= 3000
    assert found.certified > 0.8
    assert "passed the time limit" in found.notes[-1]
    stopped = Clockwork(monkeypatch, 0, stops_after=400)
    with pytest.raises(OutOfTimeError):
        audit_pair_until_refuted(stopped, Claim.pure(1), trials=10**5)


def test_a_seeded_program_that_is_too_slow_is_refused_before_any_run(monkeypatch):
    subject = Clockwork(monkeypatch, 0.01, seeded=True)
    for audit in (audit_pair, audit_pair_until_refuted):
        subject.sizes.clear()
        with pytest.raises(
            AuditError, match=r"make \d+ runs within 5 s.*a batch of 200"
        ):
            audit(subject, Claim.pure(1), trials=40_000)
        assert subject.sizes == [1, 16]


def test_a_seeded_program_in_smaller_parts_is_repeated_by_its_seed(monkeypatch):
    results = []
    for each in (0.01, 0.02):  # the clock has no say
        subject = Clockwork(monkeypatch, each, seeded=True, batch=100)
        results.append(audit_pair(subject, Claim.pure(1), trials=4000, seed=1))
        assert set(subject.sizes) <= {1, 16, 100, 56, 256 % 100}
    assert results[0] == results[1]
    assert results[0].violated
    other = Clockwork(monkeypatch, 0.01, seeded=True, batch=50)
    again = audit_pair(other, Claim.pure(1), trials=4000, seed=1)
    assert again.certified != results[0].certified


def test_a_program_with_a_constant_seed_is_found_whatever_its_parts():
    code = (
        "import json, random, sys\nrandom.seed(1)\n"
        "for line in sys.stdin: print(json.loads(line) + random.gauss(0, 1))"
    )
    subject = CommandSubject([sys.executable, "-c", code], [0, 1], name="constant")
    with pytest.raises(AuditError, match="constant must draw anew"):
        subject.sample(0, 200, rng=np.random.default_rng(1))


def test_one_object_may_be_audited_twice_with_one_seed():
    subject = slow(0)
    for _ in range(2):
        assert audit_pair(subject, Claim.pure(1), trials=4000, seed=1).violated


def test_a_run_beyond_the_limit_says_what_to_do():
    start = time.monotonic()
    with pytest.raises(OutOfTimeError, match=r"finish a run within 0\.5 s.*time_limit"):
        slow(60, time_limit=0.5).sample(0, 3, rng=np.random.default_rng(1))
    assert time.monotonic() - start < 10
