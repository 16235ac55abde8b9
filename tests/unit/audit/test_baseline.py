"""The audit of two fixed values that others are compared with."""

from __future__ import annotations

import math

import pytest

from undertow.audit.local import ldp_auditor, ldp_auditor_epsilon
from undertow.mechanisms.local import GeneralizedResponse, SymmetricUnary


def test_the_tails_differ_and_the_narrowest_claims_most():
    values = [
        ldp_auditor_epsilon(900, 300, trials=10_000, tail=tail)
        for tail in ("quarter", "half", "whole")
    ]
    assert values == sorted(values)
    assert values[0] < values[2] < math.log(3)


def test_delta_is_taken_from_the_true_positives():
    plain = ldp_auditor_epsilon(900, 300, trials=1000)
    assert ldp_auditor_epsilon(900, 300, trials=1000, delta=0.1) < plain
    assert ldp_auditor_epsilon(9, 3, trials=1000, delta=0.1) == -math.inf


@pytest.mark.parametrize("protocol", [GeneralizedResponse(5, 2), SymmetricUnary(5, 2)])
def test_a_run_is_repeatable_and_does_not_depend_on_the_parts(protocol):
    first = ldp_auditor(protocol, trials=5000, seed=1, chunk=5000)
    assert first == ldp_auditor(protocol, trials=5000, seed=1, chunk=5000)
    other = ldp_auditor(protocol, trials=5000, seed=2, chunk=5000)
    assert first.true_positives != other.true_positives
    assert first.values == (0, 4)


def test_counts_are_those_of_the_two_values():
    found = ldp_auditor(GeneralizedResponse(5, 2), trials=20_000, seed=1)
    keep = math.exp(2) / (math.exp(2) + 4)
    assert found.true_positives / 20_000 == pytest.approx(keep, abs=0.015)
    assert found.false_positives / 20_000 == pytest.approx((1 - keep) / 4, abs=0.01)
    assert found.to_dict()["values"] == [0, 4]


def test_bad_arguments_are_refused():
    protocol = GeneralizedResponse(5, 2)
    with pytest.raises(ValueError, match="values must differ"):
        ldp_auditor(protocol, trials=10, values=(1, 1), seed=1)
    with pytest.raises(ValueError, match="values must be in"):
        ldp_auditor(protocol, trials=10, values=(1, 5), seed=1)
    with pytest.raises(ValueError, match="tail must be one of"):
        ldp_auditor_epsilon(1, 1, trials=10, tail="third")
    with pytest.raises(ValueError, match="alpha"):
        ldp_auditor_epsilon(1, 1, trials=10, alpha=0.0)
    with pytest.raises(ValueError, match="trials"):
        ldp_auditor(protocol, trials=0, seed=1)
    with pytest.raises(TypeError, match="must have a method sample"):
        ldp_auditor(object(), trials=10, seed=1)
