"""What a seed repeats, and the audits that no seed repeats."""

import json

import numpy as np
import pytest

from undertow.audit.claim import Claim
from undertow.audit.local import audit_local
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.subject import CallableSubject
from undertow.mechanisms.local import GeneralizedResponse


def test_training_and_certifying_runs_differ_for_seeds_of_many_words():
    streams = []

    class Recorder:
        name, version, inputs = "recorder", "", (0, 1)

        def sample(self, value, size, *, rng):
            streams.append(json.dumps(rng.bit_generator.state, sort_keys=True))
            return rng.normal(size=size) + value

    audit_pair(Recorder(), Claim.pure(2), trials=80_000, seed=2**100 + 5)
    assert len(set(streams)) == len(streams) > 6


def test_a_learned_score_takes_any_seed():
    pytest.importorskip("sklearn")
    subject = CallableSubject(lambda value, rng: value + rng.laplace(), [0.0, 1.0])
    found = audit_pair(subject, Claim.pure(2), trials=2000, seed=2**40, score="learned")
    assert found.seed == 2**40


def test_an_audit_that_no_seed_repeats_names_none():
    coin = np.random.default_rng(3)

    def unseeded(value):
        return value if coin.random() < 0.7 else 1 - value

    found = audit_local(
        CallableSubject(unseeded, [0, 1]), Claim.pure(2), trials=500, seed=4
    )
    assert found.seed is None
    assert found.advantage.seed is None
    assert audit_local(
        GeneralizedResponse(3, 1), Claim.pure(2), trials=500, seed=4
    ).seed
