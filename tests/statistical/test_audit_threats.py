"""Audits against a threat err no more often than they say, and have power."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from undertow.audit import Claim, audit_local
from undertow.audit._trial import Source
from undertow.audit.threat import Moments, ThreatTest, ThreatTrials
from undertow.mechanisms.local import GeneralizedResponse, OptimizedUnary
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.risk import Knowledge, Prior, Success, Threat, advantage
from undertow.risk.bounds import program_bound

pytestmark = pytest.mark.statistical

PRIOR = Prior(4, [0.45, 0.3, 0.15, 0.1])
LABELS = [0, 1, 0, 1]
THREATS = {
    "prior": Threat(PRIOR),
    "labels": Threat(PRIOR, knowledge=Knowledge.from_labels(LABELS)),
    "within": Threat(PRIOR, Success.within("absolute", 1)),
    "constant": Threat(Prior.uniform(4), Success.attribute(lambda v: v // 2)),
}


class Worst:
    """The mechanism of the linear program: no other of its loss gives away more."""

    name, categories = "worst", 4

    def __init__(self, level, labels):
        found = program_bound(level, PRIOR, labels=labels)
        channel = found.witness.details["channel"]
        self.table = (channel / channel.max(axis=0) > 0.999).T
        running = np.cumsum(channel, axis=1)
        self.running = running / running[:, -1:]

    def sample(self, values, *, source):
        u = source.uniform(1 << 40, len(values)).values / 2.0**40
        return (u[:, None] >= self.running[values]).sum(axis=1)

    def support(self, reports):
        return self.table[reports]


@pytest.mark.parametrize("name", THREATS)
@pytest.mark.parametrize(
    "protocol", [GeneralizedResponse(4, 1), OptimizedUnary(4, 1)], ids=["grr", "oue"]
)
def test_the_limit_of_the_advantage_is_too_large_no_more_often_than_stated(
    protocol, name
):
    """False-alarm rate 1e-6 for each of eight: 400 limits at 90 % confidence."""
    threat, runs = THREATS[name], 400
    work = ThreatTrials(Source(protocol), threat, 1.0)
    test = ThreatTest(Claim.pure(1), threat, 0.9, work.scorer.span)
    exact = advantage(protocol, threat).value
    wrong = above = 0
    for seed in range(runs):
        counts = work(300, np.random.default_rng(seed))
        seen = Moments.read(counts, trials=300)
        wrong += test.lower(int(counts["threat_hits"][0]), seen) > exact
        above += seen.mean > exact
    assert wrong <= binom.isf(1e-6, runs, 0.1)
    # The point estimate is no limit: it is too large about half of the time.
    assert binom.ppf(1e-6, runs, 0.4) < above < binom.isf(1e-6, runs, 0.6)


@pytest.mark.parametrize("labels", [None, LABELS], ids=["none", "labels"])
def test_the_worst_mechanism_of_a_claim_is_not_refuted_and_a_smaller_claim_is(labels):
    """False-alarm rate 1e-6: 100 limits at 90 % confidence of a bound that is met."""
    threat = THREATS["prior" if labels is None else "labels"]
    subject, runs = Worst(1.0, labels), 100
    work = ThreatTrials(Source(subject), threat, 1.0)
    test = ThreatTest(Claim.pure(1), threat, 0.9, work.scorer.span)
    wrong = 0
    for seed in range(runs):
        counts = work(5000, np.random.default_rng(seed))
        seen = Moments.read(counts, trials=5000)
        wrong += test.lower(int(counts["threat_hits"][0]), seen) > test.allowed.value
    assert wrong <= binom.isf(1e-6, runs, 0.1)
    verdicts = [
        audit_local(
            subject, claim, trials=20_000, seed=1, confidence=0.9, threat=threat
        ).verdict
        for claim in (Claim.pure(1), Claim.pure("0.8"))
    ]
    assert verdicts == ["not refuted", "violated"]


def test_the_worst_mechanism_has_the_advantage_of_its_bound():
    """False-alarm rate 1e-6: one interval at that level."""
    threat = THREATS["labels"]
    bound = program_bound(1.0, PRIOR, labels=LABELS).value
    found = audit_local(
        Worst(1.0, LABELS),
        Claim.pure(1),
        trials=200_000,
        seed=1,
        confidence=1 - 1e-6,
        threat=threat,
    )
    assert found.advantage.low < bound < found.advantage.high
    assert found.epsilon_estimate == pytest.approx(1.0, abs=0.05)
    drawn = Worst(1.0, None).sample(np.zeros(9, int), source=SimulatedSource(1))
    assert drawn.shape == (9,)
