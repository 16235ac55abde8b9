"""Reconstruction robustness, and what success says of the advantage."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.errors import AssumptionError
from undertow.risk.channel import Channel
from undertow.risk.exact import (
    advantage_range,
    is_reconstruction_robust,
    reconstruction_robustness,
    require_no_knowledge,
)
from undertow.risk.finite import Decision, attack_risk
from undertow.risk.success import Success
from undertow.risk.threat import Prior, Threat

P = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
SKEWED = Prior(3, [0.5, 0.3, 0.2])


def test_the_level_of_a_silent_channel_is_the_best_guess():
    silent = Channel(np.ones((3, 1)))
    level = reconstruction_robustness(silent, Threat(SKEWED))
    assert level.value == pytest.approx(0.5, abs=1e-12)
    assert level.baseline == 0.5


def test_the_level_of_an_open_channel_is_one():
    assert reconstruction_robustness(Channel(np.eye(3)), Threat(SKEWED)).value == 1.0


def test_robustness_holds_from_its_level_on():
    assert is_reconstruction_robust(P, Threat(SKEWED), gamma=0.5901)
    assert not is_reconstruction_robust(P, Threat(SKEWED), gamma=0.5899)


def test_trap_r02_robustness_is_refused_with_knowledge():
    with pytest.raises(AssumptionError, match="knows the whole record"):
        reconstruction_robustness(P, Threat.membership(SKEWED))
    with pytest.raises(AssumptionError, match=r"Theorem 5\.11 must have"):
        require_no_knowledge(Threat.membership(SKEWED), "Theorem 5.11")
    with pytest.raises(AssumptionError, match="the range of the advantage"):
        advantage_range(0.5, Threat.membership(SKEWED))


def test_success_brackets_the_advantage_of_every_attack():
    threat = Threat(SKEWED, Success.within("absolute", 1))
    rng = np.random.default_rng(8)
    for _ in range(50):
        table = rng.dirichlet(np.ones(3), size=(3, 1))
        found = attack_risk(P, threat, decision=Decision(table))
        low, high = advantage_range(found.success, threat)
        assert low <= found.advantage <= high


def test_the_range_stays_below_the_ceiling():
    threat = Threat(Prior(2, [0.9, 0.1]))
    assert advantage_range(1.0, threat)[1] == threat.ceiling
    assert advantage_range(0.0, threat)[0] == -threat.ceiling
