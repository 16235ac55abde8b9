"""The imputation attack: right as often as the classifier, and no leak."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.errors import MismatchError, ModelError
from undertow.mechanisms.local import GeneralizedResponse
from undertow.risk.attacks import (
    ImputationGuess,
    OptimalGuess,
    attack_figures,
    expand_classes,
)
from undertow.risk.channel import Channel
from undertow.risk.threat import Prior, Threat


def population(n, classes, seed):
    """Two public columns and a sensitive one that follows them in part."""
    rng = np.random.default_rng(seed)
    public = rng.integers(4, size=(n, 2))
    likely = public.sum(axis=1) % classes
    noise = rng.integers(classes, size=n)
    return public, np.where(rng.random(n) < 0.7, likely, noise)


class Constant:
    """A classifier that says the same of everybody."""

    def __init__(self, classes, probabilities):
        self.found, self.probabilities = classes, probabilities

    def fit(self, features, labels):
        self.classes_ = self.found

    def predict_proba(self, features):
        return np.tile(self.probabilities, (len(features), 1))


def universe(public, secret):
    people = [
        (number, tuple(row), int(value))
        for number, (row, value) in enumerate(zip(public.tolist(), secret, strict=True))
    ]
    return Threat.attribute(
        Prior.uniform(people), target=lambda r: r[2], known=lambda r: (r[0], r[1])
    )


def attack_on(threat, classifier, public, secret):
    return ImputationGuess(
        classifier,
        threat,
        features=public,
        labels=secret,
        public=lambda r: list(r[1]),
        sensitive=lambda r: r[2],
    )


@pytest.mark.extra
@pytest.mark.parametrize("classes", [2, 8])
def test_success_is_accuracy_and_the_advantage_is_zero(classes):
    pytest.importorskip("sklearn")
    from sklearn.naive_bayes import CategoricalNB

    learn, known = population(2000, classes, 0), population(300, classes, 1)
    threat = universe(*known)
    attack = attack_on(threat, CategoricalNB(min_categories=4), *learn)
    model = CategoricalNB(min_categories=4).fit(*learn)
    accuracy = np.mean(model.predict(known[0]) == known[1])
    leak = GeneralizedResponse(classes, 2)
    laws = np.where(np.eye(classes, dtype=bool), leak.keep, leak.noise).astype(float)
    channel = Channel(laws[known[1]])
    found = attack_figures(channel, threat, attack=attack)
    assert found.success == pytest.approx(accuracy, abs=1e-12)
    assert found.advantage == pytest.approx(0.0, abs=1e-13)
    # The same release is a leak to an attack that looks.
    best = attack_figures(channel, threat, attack=OptimalGuess(channel, threat))
    assert best.advantage > 0.1


def test_columns_of_missing_classes_are_put_back():
    table = expand_classes([[0.1, 0.9]], found=[3, 1], classes=[1, 2, 3])
    assert table.tolist() == [[0.9, 0.0, 0.1]]
    dropped = expand_classes([[0.1, 0.9]], found=[3, 9], classes=[1, 3])
    assert dropped.tolist() == [[0.0, 0.1]]
    with pytest.raises(ModelError, match="each of the 2 classes"):
        expand_classes([[1.0]], found=[3, 1], classes=[1])
    with pytest.raises(ModelError, match="finite"):
        expand_classes([[np.nan]], found=[1], classes=[1])
    with pytest.raises(ModelError, match="has learned"):
        expand_classes([[1.0]], found=[3], classes=[1])


def test_a_classifier_without_a_class_names_the_right_record():
    # Class 0 was never seen in training: column 0 of the classifier is class 1.
    threat = universe(np.array([[0, 0], [1, 1], [2, 2]]), np.array([0, 2, 1]))
    attack = attack_on(threat, Constant([1, 2], [0.2, 0.8]), [[0, 0]], [1])
    assert attack.probabilities.tolist() == [[0.0, 0.8, 0.2]] * 3
    guesses = attack.guess(["any", "output"], 2, rng=np.random.default_rng(0))
    assert [threat.support[g][2] for g in guesses] == [2, 2]


def test_the_knowledge_must_determine_the_features():
    people = [((0, 0), 0), ((1, 1), 1)]
    blind = Threat.attribute(Prior.uniform(people), target=lambda r: r[1])
    with pytest.raises(MismatchError, match="determine the public features"):
        ImputationGuess(
            Constant([0, 1], [0.5, 0.5]),
            blind,
            features=[[0, 0]],
            labels=[0],
            public=lambda r: list(r[0]),
            sensitive=lambda r: r[1],
        )
    with pytest.raises(ModelError, match="one row of numbers"):
        ImputationGuess(
            Constant([0, 1], [0.5, 0.5]),
            blind,
            features=[[0]],
            labels=[0],
            public=lambda r: 0.0,
            sensitive=lambda r: r[1],
        )
