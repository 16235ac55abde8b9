"""What a leakage computation hands back."""

from __future__ import annotations

import json
import math
from dataclasses import FrozenInstanceError

import pytest

from undertow.correlation.query import Scope
from undertow.correlation.result import (
    Accuracy,
    Adversary,
    Leakage,
    LeakageCalibration,
    LeakageEstimate,
    adversary_witness,
)


def test_a_leakage_names_model_scope_and_attackers():
    found = Leakage(
        1.5,
        "Theorem 6.3",
        model="three bits",
        scope=Scope.within(2),
        witness=adversary_witness(Adversary(0)),
    )
    plain = found.to_dict()
    assert plain["quantity"] == "BDPL"
    assert plain["model"] == "three bits"
    assert plain["scope"] == "secrets at most 2 apart"
    assert plain["attackers"] == "anyone who knows any subset of the other records"
    assert plain["mechanisms"] == "every epsilon-DP mechanism"
    assert json.loads(json.dumps(plain)) == plain


def test_a_leakage_is_exact_only_if_it_says_so():
    assert Leakage(1.0, "t", tight=True).is_exact
    assert not Leakage(1.0, "t", tight=None).is_exact
    assert not Leakage(1.0, "t", tight=False).is_exact


@pytest.mark.parametrize("value", [-0.1, math.nan])
def test_a_leakage_is_a_non_negative_number(value):
    with pytest.raises(ValueError, match=r"must be"):
        Leakage(value, "t")


def test_a_leakage_may_be_infinite():
    assert Leakage(math.inf, "t").to_dict()["value"] == "inf"


def test_a_leakage_cannot_be_changed_nor_added():
    found = Leakage(1.0, "t")
    with pytest.raises(FrozenInstanceError):
        found.value = 0.5
    with pytest.raises(TypeError):
        found + found


def test_an_estimate_carries_its_attacker():
    found = LeakageEstimate(
        1.0, 0.9, math.inf, 0.95, 1000, adversary=Adversary(1), pair=(0, 1), tried=4
    )
    plain = found.to_dict()
    assert plain["adversary"]["target"] == 1
    assert plain["pair"] == [0, 1]
    assert plain["high"] == "inf"
    assert plain["tried"] == 4


def test_an_estimate_lies_in_its_interval():
    with pytest.raises(ValueError, match=r"value must lie in its interval"):
        LeakageEstimate(1.0, 1.1, math.inf, 0.95, 1000)


def calibration(value: float, target: float) -> LeakageCalibration:
    return LeakageCalibration(
        "epsilon", value, Leakage(target, "t"), "general", target=target
    )


def test_a_calibration_says_what_correlation_costs():
    assert calibration(0.25, 1.0).cost == 4.0
    assert calibration(0.25, 1.0).epsilon == 0.25
    assert calibration(0.0, 1.0).cost == math.inf


def test_a_calibration_prints_as_plain_values():
    found = LeakageCalibration(
        "epsilon",
        0.5,
        Leakage(1.0, "t"),
        "general",
        target=1.0,
        noise_scale=2.0,
        accuracy=Accuracy(alpha=6.0, beta=0.05, mae=2.0),
    )
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["accuracy"] == {"alpha": 6.0, "beta": 0.05, "mae": 2.0}
    assert plain["floor"] is None
    assert plain["achieves"]["value"] == 1.0


def test_results_render_for_terminal_and_notebook():
    found = Leakage(1.0, "Theorem 6.3", model="bits")
    assert "Theorem 6.3" in found.__rich__()
    assert "<td>bits</td>" in found._repr_html_()
