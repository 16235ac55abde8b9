"""Statuses and refusals of `undertow audit` that no other test holds it to."""

from __future__ import annotations

import json

import numpy as np
import pytest

from support.command import invoke as command
from undertow.audit import Claim, audit_local
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.subject import CallableSubject
from undertow.errors import AuditError
from undertow.mechanisms.local import GeneralizedResponse

GRR = ("ldp", "--protocol", "grr", "--categories", "2", "--epsilon", "1", "--seed", "1")


def invoke(*arguments):
    return command("audit", *arguments, "--no-baseline", "--json")


@pytest.mark.parametrize(("delta", "status"), [("0.3", 3), ("0.6", 0)])
def test_a_claim_of_total_variation_is_a_claim(delta, status):
    # Randomised response at level 1 tells its two values apart by 0.462.
    ran = invoke(*GRR, "--claim", "0", "--delta", delta, "--trials", "20000")
    told = json.loads(ran.stdout)
    assert ran.exit_code == status
    assert told["claim"]["epsilon"] == 0.0
    assert told["verdict"] == ("violated" if status else "not refuted")


@pytest.mark.parametrize("more", [(), ("--delta", "0")])
def test_a_claim_of_nothing_at_all_is_refused(more):
    ran = invoke(*GRR, "--claim", "0", *more)
    assert ran.exit_code == 2
    assert "claim must be positive" in ran.stderr


def flip(values, rng):
    return np.where(rng.random(len(values)) < 0.7, values, 1 - np.asarray(values))


def test_a_checkpoint_of_one_kind_of_audit_is_refused_by_the_other(tmp_path):
    subject, claim = CallableSubject(flip, [0, 1], vectorised=True), Claim.pure(1)
    local, pair = tmp_path / "local", tmp_path / "pair"
    options = {"trials": 2000, "seed": 1}
    audit_local(GeneralizedResponse(2, 1), claim, checkpoint=local, **options)
    audit_pair(subject, claim, checkpoint=pair, **options)
    before = local.read_bytes(), pair.read_bytes()
    with pytest.raises(AuditError, match="checkpoint must belong to this job"):
        audit_pair(subject, claim, checkpoint=local, **options)
    with pytest.raises(AuditError, match="checkpoint must belong to this job"):
        audit_local(GeneralizedResponse(2, 1), claim, checkpoint=pair, **options)
    assert (local.read_bytes(), pair.read_bytes()) == before
