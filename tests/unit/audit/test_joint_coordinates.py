"""What two coordinates tell together, and how far naming a value refutes mu."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.stats import binom, norm

from undertow.audit import Claim, audit_local
from undertow.audit.certificate import SequentialTest, success_mu, trials_needed
from undertow.audit.pair._score import joint_scores
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.subject import CallableSubject


def shared_noise(values, rng):
    noise = rng.laplace(scale=2, size=len(values))
    return np.column_stack([values + noise, noise])


def same_sign(values, rng):
    first, second = rng.normal(size=(2, len(values)))
    sign = np.where(np.asarray(values) > 0, 1.0, -1.0)
    return np.column_stack([first, sign * np.sign(first) * np.abs(second)])


def parity(values, rng):
    bits = rng.integers(2, size=(len(values), 40))
    bits[:, 7] = bits[:, 3] ^ np.asarray(values, dtype=int)
    return bits


def opposite_noise(values, rng):
    noise = rng.normal(scale=5, size=len(values))
    return np.column_stack([noise, rng.normal(size=len(values)), values - noise])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (shared_noise, "coordinate 0 less coordinate 1"),
        (same_sign, "product of coordinates 0 and 1"),
        (parity, "3"),
        (opposite_noise, "sum of coordinates 0 and 2"),
    ],
    ids=["difference", "product", "parity", "sum"],
)
def test_what_two_coordinates_tell_together_is_found(function, words):
    subject = CallableSubject(function, [0, 1], vectorised=True)
    found = audit_pair(subject, Claim.pure(1), trials=4000, seed=1)
    assert found.violated
    assert found.certified > 3
    assert words in found.witness.details["event"]


def test_independent_coordinates_are_not_refuted_by_their_combinations():
    def noisy(values, rng):
        noise = rng.laplace(scale=2, size=(len(values), 2))
        return np.asarray(values)[:, None] + noise

    subject = CallableSubject(noisy, [0.0, 1.0], vectorised=True)
    refuted = [
        audit_pair(
            subject, Claim.pure(1), trials=400, confidence=0.9, seed=seed
        ).violated
        for seed in range(10)
    ]
    # Up to 1 is expected; more than 7 have a probability below 1e-6.
    assert binom.sf(7, 10, 0.1) < 1e-6
    assert sum(refuted) <= 7


def test_scores_of_two_coordinates_read_infinities_and_travel():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 300, 3))
    first[:, 1], second[:, 1] = first[:, 0] + 0.1, -second[:, 0]
    first[:5], second[5:9, 1] = np.inf, -np.inf
    scores = joint_scores(first, second, tried=[0, 1, 2])
    assert len(scores) == 3
    for score in scores:
        copy = pickle.loads(pickle.dumps(score.function))
        assert np.array_equal(copy(first), score(first))
    assert joint_scores(first[:, :1], second[:, :1], tried=[0]) == []


# Gaussian DP from how often a value is named: randomised response is the worst case.


@pytest.mark.parametrize("m", [2, 5, 300])
@pytest.mark.parametrize("mu", [0.3, 1.5, 4.0])
def test_the_gaussian_success_limit_is_attained_by_randomised_response(m, mu):
    limit = Claim.gaussian(mu).success_limit(m)
    wrong = (1 - limit) / (m - 1)
    assert norm.ppf(limit) - norm.ppf(wrong) == pytest.approx(mu, rel=1e-6)
    for n in (9, 80):
        alarms = [
            k for k in range(n + 1) if success_mu(k, n, m, confidence=0.9).value > mu
        ]
        assert binom.pmf(alarms, n, limit).sum() <= 0.1
    need = trials_needed(Claim.gaussian(mu), m)
    assert success_mu(need, need, m).value > mu


def test_two_values_certify_the_whole_of_mu():
    # Named in 3 of 4 cases, as randomised response of twice the quantile does.
    mu = 2 * norm.ppf(0.75)
    assert 0.97 * mu < success_mu(750_000, 10**6, 2).value < mu
    test = SequentialTest(Claim.gaussian(1), 2)
    assert 0.97 * mu < test.look(750_000, 10**6) < mu

    def flip(values, rng):
        return np.where(rng.random(len(values)) < 0.75, values, 1 - values)

    subject = CallableSubject(flip, [0, 1], vectorised=True)
    found = audit_local(subject, Claim.gaussian(1), trials=4000, seed=1)
    assert found.violated
    assert found.estimate == pytest.approx(mu, abs=0.15)
