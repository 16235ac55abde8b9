"""Programs that are slow: parts of batches adapt, and a time limit loses no runs."""

from __future__ import annotations

import sys
import time

import numpy as np
import pytest

from undertow.audit import Claim, CommandSubject, audit_pair, audit_pair_until_refuted
from undertow.audit._process import OutOfTimeError, Paced
from undertow.errors import AuditError

SLOW = (
    "import json, random, sys, time\n"
    "for line in sys.stdin:\n"
    "    time.sleep(0.004)\n"
    "    print(json.loads(line) ^ (random.random() < 0.1), flush=True)\n"
)


class Clockwork:
    """Takes so many seconds for each run, and refuses batches that take too long."""

    name, version, inputs, time_limit = "clockwork", "", (0, 1), 0.5

    def __init__(self, each, stops_after=10**9):
        self.each, self.left = each, stops_after
        self.sizes = []

    def sample(self, value, size, *, rng):
        self.sizes.append(size)
        self.left -= size
        late = self.left < 0
        time.sleep(self.time_limit if late else min(self.each * size, self.time_limit))
        if late or self.each * size > self.time_limit:
            raise AuditError("clockwork must finish a batch, got no answer.")
        return value ^ (rng.random(size) < 0.1)


@pytest.mark.slow
def test_a_slow_program_is_audited_within_a_limit_far_below_the_time_of_a_batch():
    def subject():
        return CommandSubject([sys.executable, "-c", SLOW], [0, 1], time_limit=1.0)

    with pytest.raises(AuditError, match="must finish a batch within 1 s"):
        audit_pair(subject(), Claim.pure(1), trials=1200)
    found = audit_pair(Paced(subject()), Claim.pure(1), trials=1200)
    assert found.verdict == "violated"
    assert found.trials == 1200
    assert found.seed is None


@pytest.mark.parametrize("each", [1e-5, 1e-3, 0.02, 0.1])
def test_parts_follow_the_pace_of_the_program(each):
    subject = Clockwork(each)
    size = 2000 if each < 1e-2 else 20
    outputs = Paced(subject).sample(1, size, rng=np.random.default_rng(1))
    assert len(outputs) == size == sum(subject.sizes)
    assert max(subject.sizes) * each < subject.time_limit
    if each < 1e-2:  # and not one by one
        assert len(subject.sizes) < 60


def test_no_runs_are_drawn_of_none():
    assert len(Paced(Clockwork(0)).sample(0, 0, rng=np.random.default_rng(1))) == 0


def test_what_stops_for_another_reason_is_no_time_limit():
    class Broken(Clockwork):
        def sample(self, value, size, *, rng):
            raise AuditError("broken must exit with status 0, got 1.")

    with pytest.raises(AuditError, match="status 0") as caught:
        Paced(Broken(0)).sample(0, 5, rng=np.random.default_rng(1))
    assert not isinstance(caught.value, OutOfTimeError)


def test_a_time_limit_keeps_the_runs_that_were_made_before_it():
    paced = Paced(Clockwork(1e-6, stops_after=3000))
    found = audit_pair_until_refuted(paced, Claim.pure(3), trials=100_000, seed=1)
    assert found.verdict == "not refuted"
    assert 768 <= found.trials <= 3000
    assert found.certified > 1
    assert "passed the time limit" in found.notes[-1]
    with pytest.raises(OutOfTimeError):
        audit_pair_until_refuted(
            Paced(Clockwork(0, stops_after=400)), Claim.pure(1), trials=10**5
        )
