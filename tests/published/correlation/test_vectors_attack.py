"""Published and derived numbers about attacks and native mechanisms, by id."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.correlation.attack import (
    leakage_advantage,
    leakage_for_advantage,
    leakage_tradeoff,
    optimal_attack,
    strongest_attack,
)
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.floor import native_mechanism
from undertow.correlation.result import Adversary
from undertow.privacy import Pure, total_variation

FLATMATES = JointTable([[0.45, 0.05], [0.05, 0.45]])
ACTIVITY = np.array([[0.882, 0.118], [0.305, 0.695]])


def activity(length: int) -> JointTable:
    law = np.array([0.305, 0.118]) / 0.423
    for _ in range(length - 1):
        law = law[..., None] * ACTIVITY
    return JointTable(law)


def test_T1_flatmates_are_attacked_beyond_the_bound_for_independent_data():
    found = optimal_attack(FLATMATES, 1.0, adversary=Adversary(0), pair=(1, 0))
    assert found.advantage == pytest.approx(0.5689085, abs=1e-7)
    assert found.advantage == pytest.approx(0.9 * (1 - math.exp(-1)), rel=1e-12)
    assert total_variation(Pure(1)) == pytest.approx(0.4621172, abs=1e-7)
    assert strongest_attack(FLATMATES, 1.0).advantage == found.advantage


def test_CE5_the_attack_says_one_on_large_outputs():
    found = optimal_attack(FLATMATES, 1.0, adversary=Adversary(0), pair=(1, 0))
    assert found.says_first([0.9, 1.1]).tolist() == [False, True]


def test_T31_advantage_and_tradeoff():
    assert leakage_for_advantage(0.5) == pytest.approx(1.0986123, abs=1e-7)
    assert float(leakage_tradeoff(1.0)(0.1)) == pytest.approx(0.728172, abs=1e-6)
    assert math.exp(-1) * 0.9 == pytest.approx(0.331091, abs=1e-6)


def test_CE6_the_second_line_of_the_tradeoff_has_a_negative_exponent():
    alpha = 0.6
    attained = float(leakage_tradeoff(1.0)(alpha))
    assert attained == pytest.approx(math.exp(-1) * (1 - alpha))
    assert attained < math.exp(1) * (1 - alpha)  # as printed, no mechanism could do it


def test_trap_c18_a_leakage_of_eight_protects_almost_nobody():
    assert leakage_advantage(8.0) == pytest.approx(0.9993, abs=5e-5)


def test_T35_native_mechanism_for_the_flatmates():
    found = native_mechanism(FLATMATES, 1.0)
    assert found.error == pytest.approx(0.5378828, abs=1e-6)
    assert found.leakage.value <= 1.0
    assert found.error < 0.5879941 < 0.6213857


@pytest.mark.parametrize(("length", "error"), [(3, 0.6504513), (4, 0.7955941)])
def test_T36_native_mechanism_on_the_activity_chain(length: int, error: float):
    found = native_mechanism(activity(length), 1.0)
    assert found.error == pytest.approx(error, abs=1e-6)
    assert found.leakage.value <= 1.0


@pytest.mark.parametrize(
    ("joint", "epsilon", "error"),
    [
        pytest.param(FLATMATES, 0.557867, 0.5879941, id="T35-exact"),
        pytest.param(FLATMATES, 0.5, 0.6213857, id="T35-general"),
        pytest.param(activity(3), 0.4563448, 0.8599498, id="T36-exact-3"),
        pytest.param(activity(4), 0.3922995, 1.1106713, id="T36-exact-4"),
        pytest.param(activity(3), 1 / 3, 0.9926629, id="T36-general-3"),
        pytest.param(activity(4), 0.25, 1.3566147, id="T36-general-4"),
    ],
)
def test_recalibrated_geometric_noise_has_the_error_beside_it(joint, epsilon, error):
    n = joint.size
    law = np.zeros(n + 1)
    for index, mass in np.ndenumerate(joint.pmf):
        law[sum(index)] += mass
    assert float(law @ truncated_geometric_errors(n, epsilon)) == pytest.approx(
        error, abs=2e-6
    )


def truncated_geometric_errors(n: int, epsilon: float) -> np.ndarray:
    """Expected absolute error at each count, tails collapsed onto the ends."""
    decay = math.exp(-epsilon)
    errors = []
    for count in range(n + 1):
        masses = [
            (1 - decay) / (1 + decay) * decay ** abs(k - count) for k in range(n + 1)
        ]
        masses[0] = decay**count / (1 + decay)
        masses[-1] = decay ** (n - count) / (1 + decay)
        errors.append(sum(m * abs(k - count) for k, m in enumerate(masses)))
    return np.array(errors)
