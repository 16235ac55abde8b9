"""The attack on released totals over time: optimal, and weaker against less."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from undertow.cli.demo import attack_series, posterior_states

MOVES = [[0.95, 0.05], [0.05, 0.95]]


def test_posteriors_equal_enumeration_over_all_paths():
    rng = np.random.default_rng(5)
    P, start = np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([0.4, 0.6])
    scores = rng.normal(size=(3, 5, 2))
    found = posterior_states(P, start, scores)
    for run in range(3):
        mass = np.zeros((5, 2))
        for path in itertools.product((0, 1), repeat=5):
            weight = start[path[0]] * np.prod(
                [P[a, b] for a, b in itertools.pairwise(path)]
            )
            weight *= np.exp(sum(scores[run, t, s] for t, s in enumerate(path)))
            for t, s in enumerate(path):
                mass[t, s] += weight
        expected = mass / mass.sum(axis=1, keepdims=True)
        assert found[run] == pytest.approx(expected, abs=1e-12)


def test_one_slot_alone_gains_what_the_noise_allows():
    # Discrete Laplace noise on 0 or 1, even prior: right with (1 + tanh(e/2)) / 2.
    found = attack_series(
        MOVES, 1.0, slots=9, runs=200_000, knows="one slot", seed=2, confidence=0.999999
    )
    gain = np.tanh(0.5) / 2
    assert found.success.low < 0.5 + gain < found.success.high


def test_movement_gains_more_than_independence_allows_and_less_noise_helps():
    runs = {
        e: attack_series(MOVES, e, slots=42, runs=20_000, seed=3) for e in (0.05, 1.0)
    }
    assert runs[1.0].success.low - 0.5 > np.tanh(0.5) / 2
    assert runs[0.05].success.high - 0.5 < 0.06


def test_the_result_is_plain_in_its_dictionary():
    found = attack_series(MOVES, 1.0, slots=3, runs=10, seed=1).to_dict()
    assert found["knows"] == "movement"
    assert found["advantage"] == pytest.approx(found["success"]["value"] - 0.5)


def test_an_unknown_attacker_is_refused():
    with pytest.raises(ValueError, match="knows must be one of"):
        attack_series(MOVES, 1.0, slots=3, runs=10, knows="all", seed=1)
