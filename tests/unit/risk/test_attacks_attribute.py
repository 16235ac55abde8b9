"""Attacks on released models: the three rules, and a leak they find."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.errors import MismatchError, ModelError
from undertow.risk.attacks import (
    ModelGuess,
    choose_confident,
    choose_consistent,
    choose_weighted,
)
from undertow.risk.estimate import estimate_attack
from undertow.risk.threat import Prior, Threat


@pytest.mark.parametrize(
    ("predicted", "confidence", "chosen"),
    [
        ((1, 0, 0), (0.5, 0.9, 0.9), 0),
        ((0, 0, 0), (0.9, 0.6, 0.8), 1),
        ((1, 1, 0), (0.7, 0.8, 0.95), 1),
    ],
)
def test_T_8_8_the_consistency_rule_decides_as_its_table(predicted, confidence, chosen):
    assert choose_consistent(predicted, confidence, label=1) == chosen


def test_T_8_8_the_weighted_rules_take_the_largest_product():
    assert choose_weighted([0.2, 0.6, 0.9], [0.7, 0.2, 0.1]) == 0
    assert choose_weighted([0.9, 0.4, 0.8], [0.3, 0.5, 0.2]) == 0


def test_AE25_the_confidence_is_that_in_the_label_and_not_in_the_candidate():
    """Read as confidence in the candidate, another value wins."""
    table = np.array([[0.1, 0.9], [0.6, 0.4]])  # candidate, class
    label, even = 1, [0.5, 0.5]
    assert choose_weighted(table[:, label], even) == 0
    assert choose_weighted(np.diag(table), even) == 1


def test_the_membership_variant_looks_only_at_candidates_inside():
    assert choose_confident([0.2, 0.6, 0.9], [0.7, 0.2, 0.1], average_loss=0.6) == 1
    assert choose_confident([0.2, 0.6, 0.9], [0.7, 0.2, 0.1], average_loss=0.2) == 2
    # No candidate inside: the first.
    assert choose_confident([0.1, 0.2], [0.1, 0.9], average_loss=0.0) == 0


PEOPLE = 20


class Memory:
    """A model that knows one record by heart and is vague on all others."""

    def __init__(self, record):
        self.record = np.asarray(record, dtype=float)

    def predict_proba(self, features):
        seen = (np.asarray(features) == self.record).all(axis=1)
        sure = np.where(seen, 0.99, 0.5)
        return np.stack([1 - sure, sure], axis=1)


class Training:
    """Release a model trained with the target among the records."""

    def sample(self, record, size, *, rng):
        person, value = divmod(record, 2)
        return [Memory([person, value])] * size


def setting():
    records = [(person, value) for person in range(PEOPLE) for value in (0, 1)]
    threat = Threat.attribute(
        Prior.uniform(records), target=lambda r: r[1], known=lambda r: r[0]
    )
    shown = [int(fibre[0]) // 2 for fibre in threat.fibres]
    attack = ModelGuess(
        threat,
        rows=[[[person, 0], [person, 1]] for person in shown],
        labels=[1] * PEOPLE,
        names=[[2 * person, 2 * person + 1] for person in shown],
        rule=lambda table, y, z: choose_weighted(table[:, y], [0.5, 0.5]),
    )
    return threat, attack


def test_a_planted_leak_is_found_and_stays_below_the_ceiling():
    threat, attack = setting()
    found = estimate_attack(
        Training(),
        attack,
        threat,
        trials=2 * PEOPLE,
        design="exhaustive",
        rng=np.random.default_rng(0),
    )
    # Right when present. Otherwise another person's model says nothing, and the other
    # value of the target misleads as often as its own helps: right half of the time.
    assert found.success.value == pytest.approx(1.0)
    assert found.advantage.value == pytest.approx(0.5)
    assert found.advantage.value <= threat.ceiling


def test_a_model_that_saw_nobody_gives_no_advantage():
    threat, attack = setting()

    class Blind:
        def sample(self, record, size, *, rng):
            return [Memory([-1, -1])] * size

    found = estimate_attack(
        Blind(),
        attack,
        threat,
        trials=2 * PEOPLE,
        design="exhaustive",
        rng=np.random.default_rng(0),
    )
    assert found.advantage.value == 0.0


def test_wrong_shapes_are_refused_in_one_sentence():
    threat, _ = setting()
    with pytest.raises(MismatchError, match="rows must have one entry"):
        ModelGuess(threat, rows=[], labels=[], names=[], rule=lambda t, y, z: 0)
    with pytest.raises(MismatchError, match="one row of numbers"):
        ModelGuess(
            threat,
            rows=[[[0.0, 1.0]]] * PEOPLE,
            labels=[1] * PEOPLE,
            names=[[0, 1]] * PEOPLE,
            rule=lambda t, y, z: 0,
        )
    with pytest.raises(ValueError, match="confidence must be"):
        choose_weighted([], [])
    with pytest.raises(MismatchError, match="weights must have one entry"):
        choose_weighted([0.5, 0.5], [1.0])
    with pytest.raises(MismatchError, match="predicted must have one entry"):
        choose_consistent([1], [0.5, 0.5], label=1)


def test_a_model_of_the_wrong_shape_is_refused():
    _, attack = setting()

    class Short:
        def predict_proba(self, features):
            return [[1.0, 0.0]]

    with pytest.raises(ModelError, match="one row for each record"):
        attack.guess([Short()], 0, rng=np.random.default_rng(0))
