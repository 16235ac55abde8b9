"""Runs must draw anew: batches that repeat or share their noise end an audit."""

import itertools
import math
import pickle
import sys
import textwrap

import numpy as np
import pytest

from undertow.audit.claim import Claim
from undertow.audit.leakage import audit_leakage
from undertow.audit.local import audit_local, audit_until_refuted
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.program import CommandSubject
from undertow.audit.record import Freshness, clumping
from undertow.audit.subject import CallableSubject
from undertow.correlation import JointTable
from undertow.errors import AuditError


def program(code, **options):
    return CommandSubject([sys.executable, "-c", code], [0, 1], **options)


CONSTANT = """
import json, random, sys
coin = random.Random(7)
for line in sys.stdin:
    value = json.loads(line)
    print(value if coin.random() < 0.73 else 1 - value)
"""


def test_a_local_audit_refuses_a_program_with_a_constant_seed():
    with pytest.raises(AuditError, match="must draw anew"):
        audit_local(program(CONSTANT), Claim.pure(2), trials=8000, seed=1, chunk=2000)


class Constant:
    """Draws in two blocks, so that batches of other sizes begin otherwise."""

    name, version, seeded = "constant", "", False

    def __init__(self, size):
        self.inputs = range(size)

    def sample(self, value, size, *, rng):
        own, m = np.random.default_rng(5), len(self.inputs)
        kept = own.random(size) < 0.4
        return np.where(kept, value, (value + own.integers(1, m, size=size)) % m)


def test_a_constant_seed_is_found_whatever_the_size_of_the_batches():
    for audit in (audit_local, audit_until_refuted):
        with pytest.raises(AuditError, match="must draw anew"):
            audit(Constant(5), Claim.pure(2), trials=4000, seed=1)
    with pytest.raises(AuditError, match="must draw anew"):
        audit_pair(Constant(5), Claim.pure(2), trials=4001, seed=1, pairs=[(1, 3)])


def test_a_pair_audit_refuses_certifying_batches_that_repeat_each_other():
    class Clock:
        """Seeds itself with a clock that stands still after the training."""

        name, version, inputs, seeded = "clock", "", (0, 1), False
        calls = 0

        def sample(self, value, size, *, rng):
            self.calls += 1
            own = np.random.default_rng(min(self.calls, 5))
            return value + own.laplace(size=size)

    with pytest.raises(AuditError, match="with the time"):
        audit_pair(Clock(), Claim.pure(2), trials=100_000, seed=1)


def test_equal_batches_without_chance_are_no_repetition():
    guard = Freshness("f")
    for _ in range(3):
        guard.check(0, np.zeros(5000, dtype=int))
        guard.check(0, np.array([0, 1] * 20))
    coins = np.random.default_rng(1).integers(2, size=300)
    guard.check(0, coins)
    guard.check(1, coins)  # of another input
    with pytest.raises(AuditError, match="f must draw anew"):
        guard.check(0, coins[:150])
    labels = np.array([f"x{c}" for c in coins], dtype=object)
    guard.check(2, labels)
    with pytest.raises(AuditError, match="f must draw anew"):
        guard.check(2, labels)


def broadcast(values, rng):
    return values + rng.laplace()


@pytest.mark.parametrize("audit", [audit_pair, audit_local, audit_until_refuted])
def test_a_function_that_draws_once_for_all_its_runs_is_refused(audit):
    own = np.random.default_rng(3)
    flips = iter(own.permutation(np.arange(200) % 2))

    def alternating(values, rng):
        return (values + next(flips)) % 2

    subject = CallableSubject(alternating, [0, 1], vectorised=True)
    with pytest.raises(AuditError, match="must draw anew for every run"):
        audit(subject, Claim.pure(1), trials=60_000, seed=1)
    noise = CallableSubject(broadcast, [0.0, 1.0], vectorised=True)
    with pytest.raises(AuditError, match="must draw anew for every run"):
        audit_pair(noise, Claim.pure(1), trials=2000, seed=1)


def test_a_program_on_correlated_records_must_draw_for_every_database():
    apart = JointTable([[0.25, 0.25], [0.25, 0.25]])

    def constant(rows, rng):
        return rows[:, 0] + np.random.default_rng(3).laplace(size=len(rows))

    for program_, said in [
        (lambda rows, rng: broadcast(rows[:, 0], rng), "for every run"),
        (constant, "in every batch"),
        (lambda rows, rng: 1.0, "one number for each of"),
    ]:
        with pytest.raises(AuditError, match=said):
            audit_leakage(apart, program_, Claim.pure(1), samples=500)


def test_equal_outputs_side_by_side_are_bounded_by_enumeration():
    for counts in [(3, 3), (2, 2, 2), (5, 1)]:
        labels = np.repeat(np.arange(len(counts)), counts)
        orders = sorted(set(itertools.permutations(labels.tolist())))
        stretches = [len(list(itertools.groupby(order))) for order in orders]
        for order, mine in zip(orders, stretches, strict=True):
            share = np.mean([other <= mine for other in stretches])
            assert share <= math.exp(-clumping(np.array(order))) * (1 + 1e-12)


def test_batches_of_other_types_are_no_stretches():
    guard = Freshness("mostly zero")
    for batch in ([0] * 300, [0.0] * 299 + [0.5], [0] * 300):
        guard.check(0, np.array(batch))
    guard = Freshness("mostly a")
    for words in (["a"] * 300, ["a"] * 299 + ["long"], ["a"] * 300):
        guard.check(0, np.array(words))


def test_a_copy_for_a_worker_hands_over_how_its_batches_began():
    coins = np.random.default_rng(1).integers(2, size=500)
    here, there = Freshness("coins"), pickle.loads(pickle.dumps(Freshness("coins")))
    there.check(0, coins)
    marks = there.drain()
    assert marks
    assert not there.drain()
    here.admit(marks)
    with pytest.raises(AuditError, match="must draw anew"):
        here.check(0, coins)


def test_workers_that_draw_the_same_numbers_are_found():
    pytest.importorskip("joblib")
    # Defined elsewhere: this class cannot be imported by a worker.
    code = """
    import numpy as np
    class Own:
        name, version, inputs = "own", "", (0, 1)
        def __init__(self):
            self.rng = np.random.default_rng(5)
        def sample(self, value, size, *, rng):
            return np.where(self.rng.random(size) < 0.73, value, 1 - value)
    """
    space = {"__name__": "__main__"}
    exec(textwrap.dedent(code), space)
    with pytest.raises(AuditError, match="must draw anew"):
        audit_pair(space["Own"](), Claim.pure(1), trials=100_000, seed=1, workers=2)
