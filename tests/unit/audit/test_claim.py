"""Claims: what they allow, and what they become for replacing a record."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from scipy.stats import norm

from undertow.audit import AuditError, audit_local, audit_until_refuted
from undertow.audit.claim import Claim
from undertow.mechanisms.local import OptimizedUnary
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure


def test_a_claim_about_adding_a_record_is_tested_at_its_price_for_replacing_one():
    pure = Claim.pure("0.7", adjacency="add-remove").for_replacement()
    assert pure == Claim(Pure("1.4"), "replace")
    approx = Claim.approx(1, "1e-5", adjacency="add-remove").for_replacement()
    assert approx.level == 2
    assert approx.delta == pytest.approx((1 + math.e) * 1e-5, rel=1e-12)
    assert approx.delta >= (1 + math.e) * 1e-5
    gaussian = Claim.gaussian("0.5", adjacency="add-remove").for_replacement()
    assert gaussian.loss == GDP(1)


@pytest.mark.parametrize("adjacency", ["replace", "local"])
def test_other_claims_are_tested_as_they_are(adjacency):
    claim = Claim.pure(1, adjacency=adjacency)
    assert claim.for_replacement() is claim


def test_a_delta_of_zero_is_pure():
    assert Claim.approx(1, 0) == Claim.pure(1)


def test_the_replacement_price_of_two_neighbouring_steps_is_attained():
    # Three datasets in a row, each step at the limit of (epsilon, delta).
    epsilon, delta = 0.5, 0.01
    first = 0.2
    second = math.exp(epsilon) * first + delta
    third = math.exp(epsilon) * second + delta
    claim = Claim.approx(epsilon, delta, adjacency="add-remove")
    assert claim.allows(third, first)
    assert not claim.allows(third + 1e-6, first)


def test_an_event_and_its_complement_are_both_held_against_the_claim():
    claim = Claim.pure(1)
    assert claim.allows(math.e * 0.1, 0.1)
    assert not claim.allows(math.e * 0.1 + 1e-6, 0.1)
    assert not claim.allows(0.99, 0.9)  # by the complement alone: 0.1 > e 0.01
    assert Claim.gaussian(1).allows(norm.cdf(1.0), 0.5)
    assert not Claim.gaussian(1).allows(norm.cdf(1.0) + 1e-6, 0.5)


def test_the_success_limit_is_that_of_randomised_response():
    for m in (2, 10, 3052):
        for epsilon in (0.1, 1.0, 8.0):
            limit = math.exp(epsilon) / (math.exp(epsilon) + m - 1)
            value = Claim.pure(epsilon).success_limit(m)
            assert value == pytest.approx(limit, rel=1e-11)
            assert value >= limit * (1 - 1e-15)


def test_no_gaussian_mechanism_passes_the_gaussian_success_limit():
    # Means on a circle: every two differ by at most mu standard deviations.
    rng = np.random.default_rng(5)
    m, mu, n = 6, 1.5, 200_000
    angle = 2 * np.pi * np.arange(m) / m
    means = mu / 2 * np.column_stack([np.cos(angle), np.sin(angle)])
    truth = rng.integers(m, size=n)
    seen = means[truth] + rng.standard_normal((n, 2))
    success = np.mean((seen @ means.T).argmax(axis=1) == truth)
    assert success < Claim.gaussian(mu).success_limit(m)


def test_a_claim_that_promises_nothing_is_refused():
    with pytest.raises(ValueError, match="no audit can refute it"):
        Claim.pure(math.inf)
    with pytest.raises(ValueError, match="delta must be below 1, got 1; no audit can"):
        Claim(Approx(1, 1))
    most = Claim.approx(5, "0.01", adjacency="add-remove")
    with pytest.raises(ValueError, match=r"below 1/\(1 \+ e\^epsilon\) for adding"):
        most.for_replacement()


def test_other_currencies_and_adjacencies_are_refused():
    with pytest.raises(TypeError, match="convert it first"):
        Claim(ZCDP(1))
    with pytest.raises(ValueError, match="adjacency must be one of"):
        Claim.pure(1, adjacency="swap")
    with pytest.raises(ValueError, match="epsilon"):
        Claim.pure(math.nan)
    with pytest.raises(ValueError, match="categories"):
        Claim.pure(1).success_limit(1)


def test_claims_are_values():
    claim = Claim.approx(1, "0.25", adjacency="local")
    assert pickle.loads(pickle.dumps(claim)) == claim
    assert claim.to_dict() == {
        "notion": "approx",
        "epsilon": 1.0,
        "delta": 0.25,
        "adjacency": "local",
    }
    assert str(Claim.gaussian(1)) == "GDP(mu=1) (replace)"
    assert (Claim.gaussian(1).parameter, claim.parameter) == ("mu", "epsilon")


def test_inputs_one_apart_are_held_to_the_claim_as_it_stands():
    for claim in (
        Claim.pure("0.7", adjacency="one-apart"),
        Claim.approx(1, "1e-5", adjacency="one-apart"),
        Claim.gaussian("0.5", adjacency="one-apart"),
    ):
        assert claim.for_replacement() == claim


def test_values_of_a_client_cannot_be_one_record_apart():
    claim = Claim.pure(1, adjacency="one-apart")
    for audit in (audit_local, audit_until_refuted):
        with pytest.raises(AuditError, match="a client always has a value"):
            audit(OptimizedUnary(4, 1), claim, trials=2000, seed=1)


def test_an_event_that_is_too_rare_on_the_first_input_is_not_allowed():
    claim = Claim.pure(1)
    assert not claim.allows(0.2, 0.6)
    assert claim.allows(0.2, 0.5)
    assert not Claim.gaussian(1).allows(0.1, 0.9)
