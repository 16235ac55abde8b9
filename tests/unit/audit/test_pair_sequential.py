"""Pair audits that stop as soon as the claim is refuted."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from undertow.audit.certificate import (
    event_epsilon,
    event_mu,
    proportion_sequence,
    ratio_sequence,
)
from undertow.audit.claim import Claim
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.pair.sequential import audit_pair_until_refuted, certify_anytime
from undertow.audit.record import RecordedSubject
from undertow.audit.subject import CallableSubject, MechanismSubject
from undertow.errors import AuditError
from undertow.mechanisms import GaussianMechanism, LaplaceMechanism
from undertow_studies.faults import FAULTS, named_fault


def vectorised(function, inputs=(0, 1), **options):
    return CallableSubject(function, inputs, vectorised=True, **options)


def laplace(values, rng):
    noise = rng.laplace(size=len(values))
    return np.round((np.asarray(values) + noise) * 2.0**24) / 2.0**24


def respond(values, rng):
    return np.asarray(values) ^ (rng.random(len(values)) < 1 / (1 + math.e))


def test_a_false_claim_is_refuted_on_a_small_part_of_the_runs():
    subject = vectorised(laplace)
    found = audit_pair_until_refuted(subject, Claim.pure(0.5), trials=10**6, seed=1)
    assert found.verdict == "violated"
    # Of a million runs that are allowed, the first stages.
    assert found.trials < 10_000
    assert found.certified > 0.5


def test_a_claim_just_below_the_truth_takes_more_runs_than_a_wild_one():
    runs = [
        audit_pair_until_refuted(
            vectorised(laplace), Claim.pure(level), trials=400_000, seed=1
        ).trials
        for level in (0.3, 0.9, 0.95)
    ]
    assert runs == sorted(runs)
    assert runs[0] < runs[-1] < 400_000


def test_a_true_claim_is_tested_to_the_end():
    found = audit_pair_until_refuted(
        vectorised(laplace), Claim.pure(1), trials=50_000, seed=1
    )
    assert found.verdict == "not refuted"
    assert found.trials == 50_000
    assert found.witness is None
    assert 0.8 < found.certified < 1


def test_the_certificate_rests_on_the_counts_of_the_witness_at_all_times():
    found = audit_pair_until_refuted(
        vectorised(respond), Claim.pure(0.5), trials=40_000, seed=3
    )
    (p, q), (n, m) = (found.witness.details[key] for key in ("hits", "trials"))
    # Two stages before the last share a quarter of the error.
    held = ratio_sequence((p, n), (q, m), confidence=1 - 0.01 / 8)
    assert found.certified == pytest.approx(held.value)
    assert found.certified < event_epsilon(p, n, q, m).value
    assert found.methods[0].certified == found.certified
    assert found.methods[0].ceiling == found.power["ceiling"] > found.certified
    assert found.trials in (256 + n + m, 768 + 1024 + n + m)
    assert found.seed == 3
    json.dumps(found.to_dict())


def test_the_run_stops_at_the_first_look_that_refutes():
    seen = []

    def watch(done, total, counts):
        seen.append((done, total, int(counts["p"]), int(counts["q"])))

    claim = Claim.pure(0.9)
    found = audit_pair_until_refuted(
        vectorised(respond), claim, trials=40_000, seed=2, chunk=100, progress=watch
    )
    # Two stages of 256 and 1024 tests at an eighth of the error each, then the last.
    early = {3: (256, 1 - 0.01 / 8), 11: (1024, 1 - 0.01 / 8)}
    looks = []
    for done, total, p, q in seen:
        most, confidence = early.get(total, (math.inf, 1 - 0.01 * 3 / 4))
        n = min(100 * done, most)
        looks.append(certify_anytime(claim, (p, q), (n, n), confidence)[0])
    assert [value > 0.9 for value in looks] == [False] * (len(looks) - 1) + [True]
    assert found.certified == pytest.approx(looks[-1])
    totals = [total for _, total, _, _ in seen]
    assert totals[:14] == [3] * 3 + [11] * 11
    assert set(totals[14:]) == {-(-((36_160 - 2 * 1808) // 2) // 100)}


@pytest.mark.parametrize("kept", [2, 10])
def test_an_early_refutation_waits_until_dependence_would_show(kept):
    calls, noise = itertools.count(), [0.0]

    def lingering(value, rng):
        if next(calls) % kept == 0:
            noise[0] = rng.laplace()
        return value + noise[0] + 0.01 * rng.normal()

    subject = CallableSubject(lingering, [0, 1])
    with pytest.raises(AuditError, match="above or below their middle"):
        audit_pair_until_refuted(subject, Claim.pure(0.1), trials=10**6, seed=1)


def test_a_program_that_tells_its_input_is_refuted_within_a_few_hundred_runs():
    subject = vectorised(lambda values: values, name="tell")
    found = audit_pair_until_refuted(subject, Claim.pure(1), trials=10**5, seed=1)
    assert found.verdict == "violated"
    assert found.trials < 512


def test_claims_of_all_kinds_are_stopped_at_and_kept():
    subject = MechanismSubject(GaussianMechanism(1), [0.0, 1.0])
    for false, true in [
        (Claim.gaussian(0.8), Claim.gaussian(1)),
        (Claim.approx(1, 0.08), Claim.approx(1, 0.13)),
    ]:
        broken = audit_pair_until_refuted(subject, false, seed=1)
        kept = audit_pair_until_refuted(subject, true, seed=1)
        assert (broken.verdict, kept.verdict) == ("violated", "not refuted")
        assert broken.trials < kept.trials == 100_000
    assert audit_pair_until_refuted(subject, Claim.gaussian(1), seed=1).certified < 1


def test_the_limits_are_those_of_the_sequences():
    hits, trials = (900, 100), (1000, 1000)
    value, epsilon = certify_anytime(Claim.gaussian(1), hits, trials, 0.9)
    low = proportion_sequence(900, 1000, confidence=0.95)[0]
    high = proportion_sequence(100, 1000, confidence=0.95)[1]
    assert epsilon == pytest.approx(math.log(low / high))
    assert 0 < value < event_mu(900, 1000, 100, 1000, confidence=0.9).value


def test_a_seed_repeats_the_audit():
    subject, claim = vectorised(laplace), Claim.pure(0.7)
    one, two, other = (
        audit_pair_until_refuted(subject, claim, trials=40_000, seed=seed)
        for seed in (5, 5, 6)
    )
    assert one == two != other


@pytest.mark.parametrize("claim", [Claim.pure(3), Claim.gaussian(2)], ids=str)
@pytest.mark.parametrize("inputs", [2, 5])
def test_too_few_trials_are_refused_with_the_number_needed(claim, inputs):
    subject = vectorised(lambda values, rng: values, list(range(inputs)), name="f")
    with pytest.raises(AuditError, match="to be refutable") as caught:
        audit_pair_until_refuted(subject, claim, trials=10)
    needed = int(str(caught.value).split("at least ")[1].split()[0])
    found = audit_pair_until_refuted(subject, claim, trials=needed)
    assert found.verdict == "violated"
    assert found.power["trials_needed"] == needed
    with pytest.raises(AuditError, match=f"at least {needed} for"):
        audit_pair_until_refuted(subject, claim, trials=needed - 1)


def test_the_power_says_from_where_the_claim_would_have_been_refuted():
    subject = vectorised(laplace)
    found = audit_pair_until_refuted(subject, Claim.pure(1), seed=1)
    assert found.power["can_refute"] is True
    assert 1 < found.power["detectable"] < 1.15
    fixed = audit_pair(subject, Claim.pure(1), seed=1)
    assert found.power["detectable"] > fixed.power["detectable"]


PAIR_FAULTS = [name for name in FAULTS if named_fault(name).method == "pair"]


@pytest.mark.parametrize("name", PAIR_FAULTS)
def test_every_fault_is_found_early_and_its_repair_is_not(name):
    fault = named_fault(name)
    options = {"pairs": fault.pairs, "score": fault.score, "seed": 1}
    most = 4 * fault.trials
    broken, repaired = (
        audit_pair_until_refuted(code.subject, fault.claim, trials=most, **options)
        for code in (fault.broken, fault.repaired)
    )
    assert (broken.verdict, repaired.verdict) == ("violated", "not refuted")
    assert broken.trials < 0.75 * most
    assert repaired.trials > 0.99 * most


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"chunk": 20_000}, "chunk must be at most 10000, got 20000"),
        ({"chunk": 0}, "chunk must be a whole number"),
        ({"confidence": 1.0}, "confidence must be in"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"pairs": [(0, 0)]}, "different inputs"),
        ({"score": "best"}, "score must be"),
    ],
    ids=range(6),
)
def test_arguments_are_checked(options, said):
    with pytest.raises(ValueError, match=said):
        audit_pair_until_refuted(vectorised(laplace), Claim.pure(1), **options)


def test_recorded_runs_cannot_be_stopped():
    subject = RecordedSubject([0, 1] * 500, [0, 1] * 500)
    with pytest.raises(AuditError, match="must be run to be stopped"):
        audit_pair_until_refuted(subject, Claim.pure(1))


def test_a_claim_out_of_reach_of_any_audit_is_refused():
    with pytest.raises(AuditError, match="must be refutable with at most"):
        audit_pair_until_refuted(vectorised(laplace), Claim.pure(60))


def test_a_subject_that_repeats_its_batches_is_refused():
    def stuck(values):
        return values ^ (np.random.default_rng(7).random(len(values)) < 0.3)

    with pytest.raises(AuditError, match="must draw anew in every batch"):
        audit_pair_until_refuted(vectorised(stuck, name="stuck"), Claim.pure(0.5))


def test_central_mechanisms_are_audited_on_a_neighbouring_pair():
    subject = MechanismSubject(LaplaceMechanism(1), [0.0, 0.2, 1.0])
    found = audit_pair_until_refuted(subject, Claim.pure(0.5), seed=1)
    assert set(found.witness.details["pair"]) == {0.0, 1.0}
    assert found.trials < 30_000


def test_the_advantage_holds_at_any_time_and_says_so():
    subject = MechanismSubject(LaplaceMechanism(1), [0.0, 1.0])
    found = audit_pair_until_refuted(subject, Claim.pure("0.5"), trials=40_000, seed=1)
    assert found.advantage is not None
    assert "at any time" in str(found.advantage.method)
    # Laplace noise at epsilon 1: half the total variation is (1 - exp(-1/2)) / 2.
    assert found.advantage.low <= (1 - np.exp(-0.5)) / 2 <= found.advantage.high + 0.02
