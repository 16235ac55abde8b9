"""What an audit could detect: its ceiling, its trials, the units of its estimates."""

import json
import math

import numpy as np
import pytest

from undertow.audit.claim import Claim
from undertow.audit.leakage import audit_leakage
from undertow.audit.local import audit_local, audit_until_refuted
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.record import RecordedSubject
from undertow.audit.subject import CallableSubject
from undertow.correlation import JointTable
from undertow.errors import AuditError
from undertow.mechanisms.local import OptimizedUnary


@pytest.mark.parametrize(
    "claim", [Claim.pure(1), Claim.gaussian(1), Claim.approx(1, "0.05")], ids=str
)
@pytest.mark.parametrize("audit", [audit_local, audit_until_refuted])
def test_no_certificate_passes_the_ceiling_and_a_full_disclosure_reaches_it(
    claim, audit
):
    subject = CallableSubject(lambda v, rng: v, [0, 1, 2], name="tells all")
    found = audit(subject, claim, trials=400, seed=1, chunk=400)
    assert found.violated
    assert found.certified == pytest.approx(found.power["ceiling"], abs=1e-9)


@pytest.mark.parametrize("audit", [audit_local, audit_until_refuted])
def test_the_needed_trials_are_the_least_that_are_not_refused(audit):
    claim, protocol = Claim.pure(3), OptimizedUnary(5, 1)
    found = audit(protocol, claim, trials=400, seed=1)
    needed = int(found.power["trials_needed"])
    audit(protocol, claim, trials=needed, seed=1)
    with pytest.raises(ValueError, match=f"at least {needed}"):
        audit(protocol, claim, trials=needed - 1, seed=1)


def test_what_a_stopped_audit_could_detect_follows_its_own_limits():
    plain, stopped = (
        audit(OptimizedUnary(5, 1), Claim.pure(1), trials=5000, seed=1).power
        for audit in (audit_local, audit_until_refuted)
    )
    assert stopped["detectable"] > plain["detectable"] > 1
    assert stopped["ceiling"] < plain["ceiling"]
    assert stopped["trials_needed"] > plain["trials_needed"]


def test_estimates_of_a_gaussian_claim_are_of_mu_and_epsilon_is_kept_apart():
    subject = CallableSubject(
        lambda v, rng: (v + rng.normal(size=len(v))).astype(np.float32),
        [0.0, 1.0],
        vectorised=True,
    )
    found = audit_pair(subject, Claim.gaussian(1), trials=4000, seed=1)
    assert found.parameter == found.methods[0].parameter == "mu"
    assert found.methods[0].estimate == found.estimate != found.epsilon_estimate
    assert found.estimate == pytest.approx(1.0, abs=0.15)
    assert found.power["detectable"] > found.estimate > found.certified
    beyond = audit_pair(subject, Claim.gaussian(5), trials=4000, seed=1)
    assert beyond.power["detectable"] == math.inf
    assert beyond.power["can_refute"] is False
    assert json.loads(json.dumps(beyond.to_dict()))["power"]["detectable"] == "inf"


def test_recorded_runs_of_many_inputs_ask_for_enough_of_them():
    rng = np.random.default_rng(1)
    inputs = np.repeat(np.arange(5), 400)
    subject = RecordedSubject(inputs, inputs + rng.laplace(size=len(inputs)))
    claim = Claim.pure(2)
    with pytest.raises(AuditError, match=r"at least \d+ for") as caught:
        audit_pair(subject, claim, trials=150, seed=1)
    words = str(caught.value).split()
    needed = int(words[words.index("least") + 1])
    assert "got 150" in str(caught.value)
    assert audit_pair(subject, claim, trials=needed, seed=1).trials <= needed


def test_the_needed_trials_of_a_leakage_are_those_of_the_least_samples():
    table = JointTable([[0.45, 0.05], [0.05, 0.45]])

    def noisy_sum(rows, rng):
        return rows.sum(axis=1) + rng.laplace(size=len(rows))

    most, least = (
        audit_leakage(table, noisy_sum, Claim.pure(1), samples=samples, seed=1)
        for samples in (2000, 100)
    )
    assert most.power["trials_needed"] == least.trials == least.power["trials_needed"]
