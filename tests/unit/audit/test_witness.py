"""The words of a witness are the event that was counted, and short."""

import json
import math

import numpy as np

from undertow.audit.claim import Claim
from undertow.audit.event import LabelEvent, Score, ScoreEvent
from undertow.audit.local import audit_local
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.subject import CallableSubject


def test_the_words_of_a_witness_are_the_event_that_was_counted():
    subject = CallableSubject(lambda v, rng: 1e9 + v + rng.laplace() / 4, [0.0, 1.0])
    found = audit_pair(subject, Claim.pure(1), trials=2000, seed=1)
    assert found.violated
    event = found.witness.details["event"]
    cuts = [float(word) for word in event.split() if word[0].isdigit()]
    assert all(cut % 1 for cut in cuts)
    assert found.witness.summary.startswith(event)
    event = ScoreEvent(Score("output", np.asarray), np.float64(0.1) + 0.2, np.inf)
    assert event.exact == "output >= 0.30000000000000004"
    assert ScoreEvent(event.score, 0.5, 1.0).exact == "0.5 <= output <= 1.0"
    assert ScoreEvent(event.score, -np.inf, 1.0).exact == "output <= 1.0"
    many = LabelEvent(tuple(range(20)))
    assert "19" in many.exact
    assert "19" not in many.words


def test_long_inputs_do_not_flood_the_witness():
    inputs = [tuple(range(100)), tuple(range(101))]
    subject = CallableSubject(lambda value, rng: len(value) + 0 * rng.random(), inputs)
    found = audit_pair(subject, Claim.pure(1), trials=500, seed=1)
    assert len(found.witness.summary) < 300
    assert found.witness.details["pair"] in (tuple(inputs), tuple(inputs[::-1]))


def test_the_witness_of_one_value_counts_inputs_and_does_not_misname_them():
    inputs = [7, 9, 8, 1, 0]  # number 1 is the value 9

    def bug(value, rng):
        return value if value == 9 else inputs[rng.integers(5)]

    found = audit_local(
        CallableSubject(bug, inputs), Claim.pure(1), trials=20_000, seed=1
    )
    assert found.violated
    assert found.witness.summary.startswith("value number 1 against")


def test_an_input_with_a_missing_value_can_be_reported():
    inputs = [np.array([math.nan, 1.0]), np.array([0.0, 1.0])]
    subject = CallableSubject(lambda v, rng: float(np.isnan(v).any()), inputs)
    found = audit_pair(subject, Claim.pure(1), trials=500)
    assert found.violated
    assert "nan" in json.dumps(found.to_dict()["witness"])
