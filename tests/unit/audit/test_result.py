"""Results: the verdict is computed from the certificate and nothing else."""

from __future__ import annotations

import json
import math
import pickle

import pytest

from undertow.audit.claim import Claim
from undertow.audit.inversion import Inversion
from undertow.audit.result import AuditResult, MethodResult
from undertow.results import Estimate, Witness


def result(certified, claim=None, **more):
    claim = Claim.pure(1) if claim is None else claim
    return AuditResult(
        "code", claim, certified, 0.99, 1000, epsilon_certified=certified, **more
    )


def test_only_a_certificate_above_the_claim_is_a_violation():
    assert result(1.0 + 1e-9).verdict == "violated"
    assert result(1.0).verdict == "not refuted"
    assert result(0.0).verdict == "not refuted"


def test_a_point_estimate_never_decides():
    assert not result(0.9, epsilon_estimate=5.0).violated
    assert not result(0.9, epsilon_estimate=math.inf).violated


def test_a_claim_about_adding_a_record_is_compared_at_its_price():
    claim = Claim.pure(1, adjacency="add-remove")
    assert not result(1.9, claim).violated
    assert result(2.1, claim).violated
    assert result(1.9, claim).to_dict()["tested"]["epsilon"] == 2.0


def test_a_verdict_cannot_be_given():
    with pytest.raises(TypeError, match="verdict"):
        result(0.5, verdict="violated")


@pytest.mark.parametrize("bad", [math.nan, -1.0])
def test_a_certificate_is_a_number_of_at_least_zero(bad):
    with pytest.raises(ValueError, match="certified must be non-negative"):
        result(bad)


def test_other_fields_are_checked():
    with pytest.raises(ValueError, match="nan"):
        result(0.5, epsilon_estimate=math.nan)
    with pytest.raises(ValueError, match="confidence"):
        AuditResult("x", Claim.pure(1), 0.5, 1.0, 10, epsilon_certified=0.5)
    with pytest.raises(ValueError, match="trials"):
        AuditResult("x", Claim.pure(1), 0.5, 0.9, 0, epsilon_certified=0.5)


def full():
    return result(
        1.5,
        epsilon_estimate=math.inf,
        advantage=Estimate(0.1, 0.05, 0.15, 0.99, 1000),
        methods=(MethodResult("pairs", 1.6, 1.5, 950, decides=True, ceiling=9.0),),
        inversion=Inversion("oue", math.inf, 9.0, math.inf, "saturated"),
        witness=Witness("event", "the report supports [0]", {"hits": 3}),
        power={"ceiling": 9.0},
        baseline={"epsilon": 0.4},
        seed=3,
    )


def test_a_result_is_plain_json_and_shows_itself():
    told = json.loads(json.dumps(full().to_dict()))
    assert told["verdict"] == "violated"
    assert told["epsilon_estimate"] == "inf"
    assert told["methods"][0]["decides"] is True
    assert "violated" in full().__rich__()
    assert r"\[0]" in full().__rich__()
    assert "<td>violated</td>" in full()._repr_html_()


def test_the_estimate_is_in_the_parameter_of_the_claim():
    pure = result(0.5, epsilon_estimate=0.7)
    assert (pure.parameter, pure.estimate) == ("epsilon", 0.7)
    gaussian = result(0.5, Claim.gaussian(1), epsilon_estimate=0.7, estimate=0.6)
    assert (gaussian.parameter, gaussian.estimate) == ("mu", 0.6)
    assert gaussian.to_dict()["parameter"] == "mu"
    unknown = result(0.5, Claim.gaussian(1), epsilon_estimate=0.7)
    assert unknown.estimate is None  # an epsilon is no mu
    with pytest.raises(ValueError, match="estimate must be a number, got nan"):
        result(0.5, estimate=math.nan)
    with pytest.raises(TypeError, match="parameter"):
        result(0.5, parameter="mu")


def test_the_keys_of_the_json_contract_are_there():
    told = full().to_dict()
    for key in (
        "advantage",
        "epsilon_estimate",
        "epsilon_certified",
        "confidence",
        "claim",
        "verdict",
        "trials",
        "seed",
        "baseline",
        "inversion",
        "estimate",
        "parameter",
    ):
        assert key in told
    assert told["inversion"]["status"] == "saturated"
    assert told["methods"][0]["ceiling"] == 9.0
    assert "status = saturated" in full().__rich__()


def test_a_result_survives_pickling():
    again = pickle.loads(pickle.dumps(full()))
    assert again.to_dict() == full().to_dict()
