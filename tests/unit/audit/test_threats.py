"""Audits against a threat: a prior, a success rule and knowledge of the target."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from undertow.audit import Claim, audit_local, epsilon_from_advantage
from undertow.audit._trial import Source
from undertow.audit.threat import (
    Moments,
    ThreatScorer,
    advantage_epsilon,
    advantage_limit,
    advantage_mu,
    is_plain_threat,
    score_counts,
)
from undertow.errors import AssumptionError, AuditError, MismatchError
from undertow.mechanisms.local import (
    GeneralizedResponse,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
)
from undertow.privacy import Approx, Pure
from undertow.risk import Channel, Knowledge, Prior, Success, Threat, advantage
from undertow.risk.intervals import empirical_bernstein
from undertow.risk.selector import best_bound

SKEWED = Prior(5, [0.4, 0.25, 0.2, 0.1, 0.05])
LABELS = Knowledge.from_labels([0, 1, 0, 1, 1])
THREATS = {
    "prior": Threat(SKEWED),
    "labels": Threat(SKEWED, knowledge=LABELS),
    "full": Threat.membership(SKEWED),
    "within": Threat(SKEWED, Success.within("absolute", 1)),
    "within-labels": Threat(SKEWED, Success.within("absolute", 1), LABELS),
    "abstain": Threat(SKEWED, abstain=True),
    "uniform-within": Threat(Prior.uniform(5), Success.attribute(lambda v: v // 3)),
}


class Answers:
    """Keeps its value with one probability, and else tells another one."""

    name = "answers"

    def __init__(self, keep, labels):
        self.keep, self.inputs = keep, labels

    def sample(self, value, size, *, rng):
        m = len(self.inputs)
        lies = (value + rng.integers(1, m, size=size)) % m
        told = np.where(rng.random(size) < self.keep, value, lies)
        return np.asarray(self.inputs)[told]


def private_channel(rng, m, outputs, epsilon):
    table = np.exp(rng.uniform(0, epsilon / 2, size=(m, outputs)))
    return table / table.sum(axis=1, keepdims=True)


def mean_score(threat, matrix):
    """The exact mean of the scores of the attack on a channel."""
    scorer, total = ThreatScorer(threat), 0.0
    for truth, weight in enumerate(threat.prior.pmf):
        targets = np.full(matrix.shape[1], truth)
        total += weight * float(matrix[truth] @ scorer.scores(matrix.T, targets)[1])
    return total


@pytest.mark.parametrize("name", THREATS)
def test_the_scores_average_to_the_exact_advantage_of_a_channel(name):
    rng = np.random.default_rng(5)
    for _ in range(20):
        matrix = private_channel(rng, 5, 7, 3.0)
        exact = advantage(Channel(matrix), THREATS[name]).value
        assert mean_score(THREATS[name], matrix) == pytest.approx(exact, abs=1e-9)


@pytest.mark.parametrize("name", THREATS)
def test_no_score_leaves_its_span(name):
    scorer = ThreatScorer(THREATS[name])
    rng = np.random.default_rng(1)
    told = np.exp(rng.normal(scale=4, size=(4000, 5)))
    hits, scores = scorer.scores(told, rng.integers(5, size=4000))
    low, high = scorer.span
    assert low - 1e-12 <= scores.min() <= scores.max() <= high + 1e-12
    assert (scores[~hits] <= 0).all()
    assert (scores[hits] >= 0).all()


@pytest.mark.parametrize("name", THREATS)
def test_the_inverse_never_passes_the_loss_of_a_private_channel(name):
    rng = np.random.default_rng(7)
    for _ in range(3):
        matrix = private_channel(rng, 5, 8, 2.5)
        loss = float(np.log(matrix.max(axis=0) / matrix.min(axis=0)).max())
        gamma = advantage(Channel(matrix), THREATS[name]).value
        assert advantage_epsilon(gamma, THREATS[name]).value <= loss + 1e-9


@pytest.mark.parametrize("name", THREATS)
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_the_bound_reaches_the_advantage_just_above_the_inverse(name, delta):
    threat = THREATS[name]
    found = advantage_epsilon(0.15, threat, delta=delta)

    def bound(level):
        loss = Approx(level, delta) if delta else Pure(level)
        return best_bound(loss, threat).value

    assert bound(found.value) < 0.15 <= bound(found.value * (1 + 1e-6))
    assert found.quantity == "epsilon"


@pytest.mark.parametrize("m", [11, 100, 3052])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_uniform_prior_has_the_closed_inverse(m, delta):
    for gamma in (0.01, 0.2, 0.8):
        found = advantage_epsilon(gamma, Threat(Prior.uniform(m)), delta=delta).value
        closed = epsilon_from_advantage(gamma, m, delta=delta)
        assert found == pytest.approx(closed, abs=1e-9)
        assert found <= closed


def test_full_knowledge_of_many_records_inverts_the_two_bounds_that_are_left():
    pmf = np.arange(1, 31) / 465
    threat = Threat.membership(Prior(30, pmf))
    spread = 1 - float(pmf @ pmf)
    for gamma in (0.05, 0.3, 0.7, 0.9):
        known = max(4 * math.atanh(gamma), 2 * math.atanh(gamma / spread))
        found = advantage_epsilon(gamma, threat).value
        assert found == pytest.approx(known, abs=1e-6)


def test_ends_of_the_inverse():
    threat = THREATS["labels"]
    assert advantage_epsilon(-0.1, threat).value == 0.0
    assert advantage_epsilon(0.0, threat).value == 0.0
    assert advantage_epsilon(threat.ceiling, threat).value == math.inf
    assert advantage_mu(0.0, threat).value == 0.0
    rising = [advantage_mu(gamma, threat).value for gamma in (0.1, 0.2, 0.4, 0.6)]
    assert rising == sorted(rising)
    assert advantage_mu(0.1, threat).quantity == "mu"
    with pytest.raises(ValueError, match="advantage must be finite"):
        advantage_epsilon(math.nan, threat)


def test_threats_without_a_bound_to_invert_are_refused():
    removed = Threat(SKEWED, adjacency="add-remove")
    with pytest.raises(AssumptionError, match="state that adjacency in the claim"):
        advantage_epsilon(0.1, removed)
    certain = Threat(Prior(2, [1.0, 0.0]))
    with pytest.raises(AssumptionError, match="a prior on one record"):
        advantage_epsilon(0.1, certain)
    with pytest.raises(TypeError, match="threat must be a Threat, got Prior"):
        advantage_epsilon(0.1, SKEWED)


PROTOCOLS = {"oue": OptimizedUnary(5, 2), "ss": SubsetSelection(5, 1)}


@pytest.mark.parametrize("name", THREATS)
@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_an_audit_measures_the_exact_advantage_and_inverts_its_bound(protocol, name):
    threat = THREATS[name]
    result = audit_local(
        protocol, Claim.pure(protocol.epsilon), trials=40_000, seed=3, threat=threat
    )
    exact = advantage(protocol, threat).value
    assert result.advantage.low <= exact <= result.advantage.high
    assert result.advantage.value == pytest.approx(exact, abs=0.012)
    needed = advantage_epsilon(result.advantage.value, threat).value
    assert result.epsilon_estimate == pytest.approx(needed, abs=1e-9)
    assert 0 < result.epsilon_certified < result.epsilon_estimate
    assert result.epsilon_certified <= float(protocol.epsilon)
    assert not result.violated
    assert result.methods[0].decides
    assert result.methods[0].trials == result.trials == 40_000


def test_population_values_under_a_skewed_prior():
    pmf = np.arange(1, 21) / 210
    spread = 1 - float(pmf @ pmf)
    prior = Prior(20, pmf)
    gap = (math.exp(2) - 1) / (math.exp(2) + 19)
    for protocol, exact in (
        (GeneralizedResponse(20, 2), gap * spread),
        (OptimizedUnary(20, 2), OptimizedUnary(20, 2).advantage_bound(prior).value),
    ):
        result = audit_local(
            protocol, Claim.pure(2), trials=200_000, seed=1, threat=Threat(prior)
        )
        assert result.advantage.low < exact < result.advantage.high
        want = advantage_epsilon(exact, Threat(prior)).value
        assert result.epsilon_estimate == pytest.approx(want, abs=0.03)
        assert want - 0.06 < result.epsilon_certified < want


@pytest.mark.parametrize(
    "protocol", [OptimizedHashing(12, 2), SummationHistogram(12, 2)], ids=["olh", "she"]
)
def test_hashing_and_noisy_vectors_are_attacked_too(protocol):
    threat = Threat.membership(Prior(12, np.arange(1, 13) / 78))
    result = audit_local(protocol, Claim.pure(2), trials=20_000, seed=1, threat=threat)
    limit = protocol.total_variation() * threat.ceiling
    assert 0.5 * limit < result.advantage.value < limit
    assert not result.violated


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_the_uniform_threat_without_knowledge_is_the_usual_audit(protocol):
    claim = Claim.pure(1)
    threat = Threat(Prior.uniform(5))
    assert is_plain_threat(threat)
    plain = audit_local(protocol, claim, trials=20_000, seed=1)
    named = audit_local(protocol, claim, trials=20_000, seed=1, threat=threat)
    assert named.to_dict() == plain.to_dict()
    assert not any(is_plain_threat(other) for other in THREATS.values())


@pytest.mark.parametrize(
    ("claim", "violated"),
    [
        (Claim.pure("0.8"), True),
        (Claim.pure(2), False),
        (Claim.approx("0.7", "1e-3"), True),
        (Claim.approx(2, "1e-3"), False),
        (Claim.gaussian("0.5"), True),
        (Claim.gaussian(3), False),
        (Claim.pure("0.4", adjacency="add-remove"), True),
        (Claim.pure(1, adjacency="add-remove"), False),
    ],
    ids=lambda value: str(value),
)
def test_claims_of_every_currency_are_tested_against_a_threat(claim, violated):
    protocol = GeneralizedResponse(5, 2)
    result = audit_local(
        protocol, claim, trials=40_000, seed=1, threat=THREATS["labels"]
    )
    assert result.violated == violated
    assert result.methods[0].parameter == result.parameter == claim.parameter
    assert result.estimate == result.methods[0].estimate > result.certified
    told = json.loads(json.dumps(result.to_dict()))
    assert told["power"]["can_refute"] is True
    assert isinstance(told["power"]["trials_needed"], int)
    if violated:
        assert result.witness.kind == "attack"
        assert result.witness.details["advantage"] > result.witness.details["allowed"]


def test_code_that_lies_too_rarely_is_refuted_whatever_its_labels_are():
    threat = Threat(Prior(["a", "b", "c"], [0.6, 0.3, 0.1]))
    results = [
        audit_local(
            Answers(0.9, labels), Claim.pure(2), trials=20_000, seed=1, threat=threat
        )
        for labels in (["a", "b", "c"], [0, 1, 2])
    ]
    assert results[0].violated  # ln(0.9 / 0.05) is 2.9
    assert results[0].certified == results[1].certified


def test_a_subject_is_attacked_by_the_law_of_its_reader():
    class Client:
        name, inputs = "client", range(5)

        def sample(self, value, size, *, rng):
            from undertow.mechanisms.noise.simulated import SimulatedSource

            values = np.full(size, value)
            protocol = OptimizedUnary(5, 4)
            return protocol.sample(values, source=SimulatedSource(rng)).values

    result = audit_local(
        Client(),
        Claim.pure(1),
        trials=20_000,
        seed=1,
        reader=OptimizedUnary(5, 1),
        threat=THREATS["full"],
    )
    assert result.violated


def test_a_checkpoint_does_not_change_the_result_and_fits_its_threat_alone(tmp_path):
    protocol, claim = OptimizedUnary(5, 2), Claim.pure(1)
    threat, path = THREATS["labels"], tmp_path / "run.json"
    runs = [
        audit_local(
            protocol, claim, trials=9000, seed=1, chunk=1000, threat=threat, **more
        )
        for more in ({}, {"checkpoint": path}, {"checkpoint": path})
    ]
    assert runs[0].to_dict() == runs[1].to_dict() == runs[2].to_dict()
    with pytest.raises(AuditError, match="checkpoint must belong to this job"):
        audit_local(
            protocol,
            claim,
            trials=9000,
            seed=1,
            chunk=1000,
            threat=Threat(SKEWED, Success.within("absolute", 1), LABELS),
            checkpoint=path,
        )


def test_a_threat_on_other_records_is_refused():
    with pytest.raises(MismatchError, match="one record for each of the 4 values"):
        audit_local(
            GeneralizedResponse(4, 1),
            Claim.pure(1),
            trials=1000,
            seed=1,
            threat=Threat(SKEWED),
        )
    with pytest.raises(TypeError, match="threat must be a Threat, got str"):
        audit_local(
            GeneralizedResponse(4, 1), Claim.pure(1), trials=9, seed=1, threat="full"
        )


def test_a_threat_that_leaves_nothing_to_gain_is_refused():
    easy = Threat(SKEWED, Success.within("absolute", 4))
    with pytest.raises(AssumptionError, match="no audit against this threat"):
        audit_local(
            GeneralizedResponse(5, 1), Claim.pure(1), trials=1000, seed=1, threat=easy
        )


@pytest.mark.parametrize("name", ["labels", "uniform-within"])
def test_too_few_trials_are_refused_with_the_number_needed(name):
    protocol, claim = GeneralizedResponse(5, 1), Claim.pure(3)
    with pytest.raises(ValueError, match="trials must be at least") as caught:
        audit_local(protocol, claim, trials=3, seed=1, threat=THREATS[name])
    needed = int(str(caught.value).split("at least ")[1].split()[0])
    done = audit_local(protocol, claim, trials=needed, seed=1, threat=THREATS[name])
    assert done.power["trials_needed"] == needed
    assert done.methods[0].ceiling > 3
    with pytest.raises(ValueError, match=f"at least {needed} "):
        audit_local(protocol, claim, trials=needed - 1, seed=1, threat=THREATS[name])


def test_the_baseline_is_run_against_a_threat_as_well():
    result = audit_local(
        GeneralizedResponse(5, 1),
        Claim.pure(1),
        trials=2000,
        seed=1,
        threat=THREATS["prior"],
        baseline=True,
    )
    assert result.baseline["trials"] == 1000


def test_moments_are_exact_and_give_the_limits_of_empirical_bernstein():
    rng = np.random.default_rng(1)
    parts = [rng.uniform(-1, 1, size=size) for size in (500, 700)]
    counts = [score_counts(part) for part in parts]
    added = {name: counts[0][name] + counts[1][name] for name in counts[0]}
    seen = Moments.read(added, trials=1200)
    joined = np.concatenate(parts)
    assert seen.mean == pytest.approx(joined.mean(), abs=2.0**-24)
    assert seen.mean <= joined.mean()
    assert seen.variance == pytest.approx(joined.var(ddof=1), abs=1e-6)
    low, high = empirical_bernstein(joined, confidence=0.98, lowest=-1, highest=1)
    assert seen.lower(2.0, 0.01) == pytest.approx(low, abs=1e-6)
    assert seen.upper(2.0, 0.01) == pytest.approx(high, abs=1e-6)
    assert Moments(1, 0.0, 0.0).lower(2.0, 0.01) == -math.inf


def test_the_limit_of_a_claim_is_that_of_the_best_bound():
    threat = THREATS["full"]
    for claim in (Claim.pure(1), Claim.approx(1, "0.01"), Claim.gaussian(1)):
        best = best_bound(claim.loss, threat)
        assert advantage_limit(claim, threat).value == best.value
    doubled = advantage_limit(Claim.pure(1, adjacency="add-remove"), threat)
    assert doubled.value == advantage_limit(Claim.pure(2), threat).value


def test_scorers_of_different_threats_have_different_identities():
    source = Source(GeneralizedResponse(5, 1))
    assert source.categories == 5
    assert len({ThreatScorer(threat).identity for threat in THREATS.values()}) == 7


@pytest.mark.parametrize("name", ["prior", "labels", "within-labels"])
def test_large_domains_ask_the_success_rule_and_get_the_same_hits(name, monkeypatch):
    rng = np.random.default_rng(3)
    told, targets = rng.random((500, 5)) + 0.01, rng.integers(5, size=500)
    tabled = ThreatScorer(THREATS[name]).scores(told, targets)
    monkeypatch.setattr("undertow.audit.threat._TABLE_CELLS", 0)
    asked = ThreatScorer(THREATS[name]).scores(told, targets)
    assert all((a == b).all() for a, b in zip(tabled, asked, strict=True))


def test_the_number_of_workers_does_not_change_the_result():
    parity = Knowledge.attributes(lambda value: value % 2)
    threat = Threat(SKEWED, knowledge=parity)
    one, two = (
        audit_local(
            OptimizedUnary(5, 2),
            Claim.pure(1),
            trials=4000,
            seed=1,
            chunk=1000,
            threat=threat,
            workers=workers,
        ).to_dict()
        for workers in (1, 2)
    )
    assert one == two
