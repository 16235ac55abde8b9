"""Recorded runs are dealt once, in random order, and copies of them are refused."""

import math

import numpy as np
import pytest
from scipy.stats import binom

from undertow.audit.claim import Claim
from undertow.audit.event import Score, ScoreEvent
from undertow.audit.local import audit_local, audit_until_refuted
from undertow.audit.pair._draw import EventTest
from undertow.audit.record import RecordedSubject
from undertow.errors import AuditError


def test_an_input_without_runs_left_is_not_asked_for_them():
    class Strict:
        name, version, inputs = "strict", "", (0, 1)

        def sample(self, value, size, *, rng):
            assert size > 0
            return rng.normal(size=size)

    test = EventTest(
        Strict(), (0, 1), ScoreEvent(Score("output", np.asarray), 0.0, np.inf),
        sizes=(12_000, 100), earlier=(np.zeros(8), np.zeros(8)),
    )  # fmt: skip
    assert test(np.random.SeedSequence(1), 1)["q"] == 0


@pytest.mark.slow
def test_a_local_audit_of_a_sorted_file_deals_in_random_order():
    rng, alarms = np.random.default_rng(1), 0
    for seed in range(20):
        inputs = np.repeat([0, 1], 2000)
        kept = rng.random(4000) < math.e / (1 + math.e)
        outputs = np.where(kept, inputs, 1 - inputs)
        order = np.lexsort((outputs, inputs))
        runs = RecordedSubject(inputs[order], outputs[order])
        for audit in (audit_local, audit_until_refuted):
            found = audit(runs, Claim.pure(1), trials=2400, seed=seed)
            alarms += found.violated
        assert runs.available(0) == 2000
    assert binom.sf(alarms - 1, 40, 0.01) > 1e-6


@pytest.mark.parametrize("copies", [2, 3])
def test_runs_that_were_written_several_times_are_refused(copies):
    rng = np.random.default_rng(1)
    inputs = np.repeat([0, 1], 1000)
    noise = inputs + rng.laplace(size=2000)
    coins = np.where(rng.random(2000) < 0.73, inputs, 1 - inputs)
    mixed = rng.permutation(2000 * copies)
    for given, outputs in [
        (np.tile(inputs, copies), np.tile(noise, copies)),
        (np.tile(inputs, copies)[mixed], np.tile(noise, copies)[mixed]),
        (np.tile(inputs, copies), np.tile(coins, copies)),
        (np.repeat(inputs, copies), np.repeat(coins, copies)),
    ]:
        with pytest.raises(AuditError, match="must hold every run once"):
            RecordedSubject(given, outputs)


def test_runs_that_repeat_by_their_law_are_not_refused():
    rng = np.random.default_rng(2)
    for outputs in (
        np.zeros(400),
        np.repeat([0, 1], 200),
        rng.integers(50, size=400),
        np.sort(rng.integers(300, size=400)),
        rng.normal(size=(400, 2)),
    ):
        assert RecordedSubject(np.tile([0, 1], 200), outputs).available(0) == 200
