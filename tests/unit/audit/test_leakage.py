from __future__ import annotations

import numpy as np
import pytest

from undertow.audit.claim import Claim
from undertow.audit.leakage import audit_leakage
from undertow.correlation import JointTable, verify_claim
from undertow.errors import AuditError

FLATMATES = JointTable([[0.45, 0.05], [0.05, 0.45]])
# Exact leakage of the noisy sum: someone who knows nobody tells the bits apart.
EXACT = 1.7762


def noisy_sum(rows, rng):
    return rows.sum(axis=1) + rng.laplace(size=len(rows))


@pytest.mark.parametrize(
    ("claimed", "verdict"), [(EXACT, "not refuted"), (1.5, "violated")]
)
def test_a_claim_below_the_leakage_is_refuted(claimed, verdict):
    found = audit_leakage(FLATMATES, noisy_sum, Claim.pure(claimed), samples=40_000)
    assert found.verdict == verdict
    assert found.certified < EXACT


def test_the_result_is_that_of_the_estimate():
    found = audit_leakage(FLATMATES, noisy_sum, Claim.pure(1), samples=5000, seed=4)
    direct = verify_claim(
        FLATMATES, noisy_sum, 1.0, samples=5000, seed=4, confidence=0.99
    ).estimate
    assert found.certified == pytest.approx(direct.low, rel=1e-8)
    assert found.certified <= direct.low
    assert found.seed == 4
    assert found.trials > 4 * 5000 - 4 * direct.tried
    assert "tells" in found.witness.summary
    assert found.power["can_refute"] is True
    assert isinstance(found.power["trials_needed"], int)
    assert found.methods[0].ceiling == found.power["ceiling"]
    assert found.witness.details["pair"] == direct.pair


def test_the_witness_counts_what_the_attacker_knows():
    found = audit_leakage(FLATMATES, noisy_sum, Claim.pure(1), samples=20_000)
    assert found.witness.summary.startswith("someone who knows")


@pytest.mark.parametrize(
    "claim",
    [Claim.approx(1, 0.1), Claim.gaussian(1), Claim.pure(1, adjacency="add-remove")],
    ids=str,
)
def test_claims_of_other_kinds_are_refused(claim):
    with pytest.raises(AuditError, match="must bound a leakage"):
        audit_leakage(FLATMATES, noisy_sum, claim)


def test_too_few_samples_are_refused():
    with pytest.raises(AuditError, match="certify more than 5, got 100, which reach"):
        audit_leakage(FLATMATES, noisy_sum, Claim.pure(5), samples=100)


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (lambda rows, rng: 1 / 0, "sums must not raise, got ZeroDivisionError"),
        (lambda rows, rng: np.full(len(rows), np.nan), "must return numbers, got nan"),
    ],
    ids=["raises", "nan"],
)
def test_a_bad_program_is_named(program, said):
    with pytest.raises(AuditError, match=said):
        audit_leakage(FLATMATES, program, Claim.pure(1), samples=500, name="sums")


REUSED = np.zeros(20_000)


def refill(values, rng):
    """Laplace noise, written into one array again and again."""
    return np.add(values, rng.laplace(size=len(values)), out=REUSED[: len(values)])


def test_a_leakage_is_told_from_one_array_that_is_filled_again():
    apart = JointTable([[0.25, 0.25], [0.25, 0.25]])

    def narrow(rows, rng):
        return refill(rows[:, 0] * 5.0, rng)

    assert audit_leakage(apart, narrow, Claim.pure(1), samples=2000, seed=1).violated
