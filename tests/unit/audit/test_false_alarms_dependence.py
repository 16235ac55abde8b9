"""Runs that follow each other are no evidence: they end an audit in one sentence."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from undertow.audit import Claim
from undertow.audit.leakage import audit_leakage
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.pair.sequential import audit_pair_until_refuted
from undertow.audit.record import Freshness, lingering
from undertow.audit.subject import CallableSubject
from undertow.correlation import JointTable
from undertow.errors import AuditError

LINGERS = "stay above or below their middle beyond chance"


def kept_noise(every):
    state = {"calls": 0, "noise": 0.0}

    def mechanism(value, rng):
        if state["calls"] % every == 0:
            state["noise"] = rng.laplace()
        state["calls"] += 1
        return value + state["noise"] + 1e-6 * rng.random()

    return mechanism


def wandering(value, rng, state=[0.0]):  # noqa: B006 - the state is the point
    state[0] = 0.9 * state[0] + math.sqrt(1 - 0.81) * rng.normal()
    return value + state[0]


def numbered():
    calls = itertools.count()
    return lambda value, rng: next(calls) + rng.random()


@pytest.mark.parametrize(
    "mechanism",
    [kept_noise(10), kept_noise(2), wandering, numbered()],
    ids=["kept-10", "kept-2", "wandering", "numbered"],
)
def test_noise_that_follows_the_noise_before_it_ends_an_audit(mechanism):
    subject = CallableSubject(mechanism, [0, 1])
    with pytest.raises(AuditError, match=LINGERS):
        audit_pair(subject, Claim.pure(1), trials=4000)


def test_a_sequential_audit_refuses_such_noise_as_well():
    subject = CallableSubject(kept_noise(10), [0, 1])
    with pytest.raises(AuditError, match=LINGERS):
        audit_pair_until_refuted(subject, Claim.pure(1), trials=4000)


def test_noise_that_the_rows_of_a_batch_share_in_part_is_seen_between_batches():
    def noisy(rows, rng):
        own = 0.01 * rng.normal(size=len(rows))
        return rows.sum(axis=1) + rng.laplace() + own

    flatmates = JointTable([[0.45, 0.05], [0.05, 0.45]])
    with pytest.raises(AuditError, match=LINGERS):
        audit_leakage(flatmates, noisy, Claim.pure(1), samples=2000)


def test_a_coordinate_of_a_vector_that_lingers_is_seen():
    rng = np.random.default_rng(1)
    rows = np.column_stack([rng.normal(size=500), np.arange(500.0)])
    with pytest.raises(AuditError, match=LINGERS):
        Freshness("f").check(0, rows[:256])
    assert lingering(rows[:, :1]) < 1.0


def test_independent_runs_linger_no_more_often_than_is_said():
    # All orders of six numbers: the share that lingers so far is at most exp(-c).
    numbers = [0.0, 0.0, 1.0, 2.0, 3.0, 4.0]
    found = sorted(
        (lingering(np.array(order)) for order in itertools.permutations(numbers)),
        reverse=True,
    )
    assert found[0] > 0.5
    for place, nats in enumerate(found, start=1):
        if place == len(found) or found[place] < nats:
            assert place / len(found) <= math.exp(-nats) * (1 + 1e-12)


@pytest.mark.parametrize("numbers", ["labels", "same", "infinite", "two"])
def test_what_has_no_middle_does_not_linger(numbers):
    given = {
        "labels": np.array(["a", "b"], dtype=object),
        "same": np.ones(900),
        "infinite": np.tile([-np.inf, np.inf, 0.0], 300),
        "two": np.tile([0, 1], 450),
    }[numbers]
    assert lingering(given) <= 0.0
