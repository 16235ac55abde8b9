"""Published and derived numbers of measured risks; errata and traps of measuring them.

RE: errata of chapter 5 of the thesis; trap_r and trap_a: traps of measuring. Simulated
figures are compared within four of their standard errors.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.mechanisms import ClampedMechanism, LaplaceMechanism, RandomizedResponse
from undertow.mechanisms.local import GeneralizedResponse, OptimizedUnary
from undertow.risk.channel import (
    Channel,
    ChannelSampler,
    MechanismSampler,
    ProtocolSampler,
)
from undertow.risk.estimate import estimate_attack
from undertow.risk.exact import advantage
from undertow.risk.intervals import clopper_pearson, hoeffding_trials
from undertow.risk.likelihood import GaussianTranscript, LinearRule, estimate_advantage
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat, estimate_collision
from undertow.risk.transcript import joint_channel, repeat_channel

RNG = np.random.default_rng


class Report:
    """Guesses the report itself."""

    def guess(self, outputs, known, *, rng):
        return outputs


class ByKnowledge:
    """Ignores the output."""

    def __init__(self, guesses):
        self.guesses = guesses

    def guess(self, outputs, known, *, rng):
        return np.full(len(outputs), self.guesses[known])


def test_hoeffding_needs_73778_trials_for_a_hundredth():
    assert hoeffding_trials(0.01, confidence=0.95, span=2.0) == 73_778


def test_response_audit_counts_have_their_published_limits():
    low, high = clopper_pearson(6945, 100_000, confidence=0.95)
    assert (low, high) == pytest.approx((0.0678819, 0.0710432), abs=5e-8)
    assert 6945 / 100_000 - 1 / 100 == pytest.approx(0.05945)


def test_trap_r11_the_point_estimate_may_exceed_the_truth_the_limit_does_not():
    # GRR m = 100, eps = 2: success p = E/(E + m - 1); eps of a success rate s is
    # ln(99 s / (1 - s)).
    def level(success):
        return math.log(99 * success / (1 - success))

    one, _ = clopper_pearson(6945, 100_000, confidence=0.95, side="lower")
    two = clopper_pearson(6945, 100_000, confidence=0.95)
    assert level(0.06945) == pytest.approx(1.999951, abs=1e-6)
    assert level(one) == pytest.approx(1.979375, abs=1e-6)
    assert [level(v) for v in two] == pytest.approx([1.975429, 2.024345], abs=1e-6)
    keep = math.exp(2) / (math.exp(2) + 99)
    laws = np.full((100, 100), (1 - keep) / 99)
    np.fill_diagonal(laws, keep)
    response, values = ChannelSampler(Channel(laws)), []
    for seed in range(40):
        found = estimate_attack(
            response,
            Report(),
            Threat(Prior.uniform(100)),
            trials=1000,
            rng=RNG(seed),
        )
        values.append((level(found.success.value), level(found.success.low)))
    above = np.array(values) > 2
    assert above[:, 0].mean() > 0.25
    assert above[:, 1].sum() <= 5  # expected 1; chance of more than 5 is 5e-4


def test_unary_encoding_under_a_drawn_prior_by_simulation():
    prior = Prior(50, RNG(0).dirichlet(np.ones(50)))
    found = estimate_advantage(
        ProtocolSampler(OptimizedUnary(50, 2)), Threat(prior), trials=20_000, rng=RNG(3)
    )
    assert found.low <= 0.14779343 <= found.high
    assert found.value == pytest.approx(0.147786, abs=4 * 0.0004)


@pytest.mark.parametrize(
    ("ends", "risk"),
    [(None, 0.2926462), ((0, 100), 0.2926462), ((30, 70), 0.2922326)],
    ids=["free", "clamped outside", "clamped inside"],
)
def test_laplace_answers_near_the_truth_by_simulation(ends, risk):
    # Candidates 0, 10, ..., 100, scale 25, a guess counts within 20.
    base = LaplaceMechanism(25)
    mechanism = base if ends is None else ClampedMechanism(base, *ends)
    answers = np.arange(0, 101, 10)
    prior = Prior(answers.tolist(), RNG(3).dirichlet(np.ones(11)))
    threat = Threat(prior, Success.within("absolute", 20))
    source = MechanismSampler(mechanism, answers.astype(float))
    found = estimate_advantage(source, threat, trials=40_000, rng=RNG(4))
    assert found.low <= risk <= found.high
    assert found.value == pytest.approx(risk, abs=0.006)


@pytest.mark.parametrize(
    ("epsilon", "eta", "risk"),
    [(1, 0.1, 0.076130), (4, 0.1, 0.263744), (4, 0.25, 0.331024), (1, 1, 0.0)],
)
def test_a_uniform_record_on_a_line_by_a_grid(epsilon, eta, risk):
    # A grid of midpoints stands for the uniform law on [0, 1].
    grid = [(2 * i + 1) / 400 for i in range(200)]
    threat = Threat(Prior.uniform(grid), Success.within("absolute", eta))
    source = MechanismSampler(LaplaceMechanism(1 / epsilon), grid)
    found = estimate_advantage(source, threat, trials=10_000, rng=RNG(5))
    assert found.value == pytest.approx(risk, abs=0.01)


ORTHOGONAL = [
    # eps, mu, RAD without knowledge, RAD of membership, the same by the linear rule
    (1, 0.268051, 0.05405, 0.0998, 0.0995),
    (2, 0.501552, 0.11136, 0.1861, 0.1813),
    (4, 0.924931, 0.23621, 0.3385, 0.3122),
    (8, 1.666031, 0.48324, 0.5756, 0.4629),
    (10, 2.000446, 0.58613, 0.6613, 0.5030),
    (16, 2.905478, 0.78018, 0.8093, 0.5669),
]


@pytest.mark.parametrize(("eps", "mu", "none", "member", "linear"), ORTHOGONAL)
def test_orthogonal_gradients_have_their_tabulated_risks(eps, mu, none, member, linear):
    uniform, trials = Prior.uniform(8), 40_000
    transcript = GaussianTranscript(mu**2 * np.eye(8), 1.0)
    threat = Threat.membership(uniform)
    first = estimate_advantage(transcript, Threat(uniform), trials=trials, rng=RNG(eps))
    second = estimate_advantage(transcript, threat, trials=trials, rng=RNG(eps))
    rule = estimate_attack(
        transcript, LinearRule(threat), threat, trials=trials, rng=RNG(eps)
    )
    # Standard deviations of a gain are below 0.3, of a paired score below 0.55.
    gain, score = 4 * 0.3 / math.sqrt(trials), 4 * 0.55 / math.sqrt(trials)
    assert first.value == pytest.approx(none, abs=gain)
    assert second.value == pytest.approx(member, abs=gain + 4 * 0.0003)
    assert rule.advantage.value == pytest.approx(linear, abs=score + 4 * 0.0003)


@pytest.mark.parametrize(("mu", "risk"), [(0.924931, 0.3194), (2.000446, 0.6490)])
def test_orthogonal_gradients_with_a_known_label(mu, risk):
    labels = Knowledge.from_labels([0, 0, 1, 1, 2, 2, 3, 3])
    found = estimate_advantage(
        GaussianTranscript(mu**2 * np.eye(8), 1.0),
        Threat(Prior.uniform(8), knowledge=labels),
        trials=40_000,
        rng=RNG(1),
    )
    assert found.value == pytest.approx(risk, abs=4 * 0.3 / 200 + 4 * 0.0003)


def test_exact_rule_of_gradients_beats_the_published_one_for_membership():
    # Algorithm 2 as printed is not the optimal attack: 0.5030 against 0.6613.
    threat = Threat.membership(Prior.uniform(8))
    transcript = GaussianTranscript(2.000446**2 * np.eye(8), 1.0)
    best = estimate_advantage(transcript, threat, trials=20_000, rng=RNG(0))
    rule = estimate_attack(
        transcript, LinearRule(threat), threat, trials=20_000, rng=RNG(0)
    )
    assert best.low > rule.advantage.high + 0.1


@pytest.mark.parametrize(
    ("epsilon", "times", "variation"),
    [(0.1, 10, 0.122536), (0.1, 100, 0.381973), (1.0, 5, 0.751015)],
)
def test_composed_responses_have_the_exact_total_variation(epsilon, times, variation):
    once = RandomizedResponse(range(2), epsilon)
    joint = repeat_channel(once, times, support=range(2))
    assert np.abs(joint.matrix[0] - joint.matrix[1]).sum() / 2 == pytest.approx(
        variation, abs=1e-6
    )
    threat = Threat(Prior.uniform(2))
    assert advantage(joint, threat).value == pytest.approx(variation / 2, abs=1e-6)
    if times <= 10:
        full = joint_channel(*[once] * times, support=range(2))
        assert advantage(full, threat).value == pytest.approx(variation / 2, abs=1e-6)


def test_trap_r16_a_maximum_over_sampled_averages_is_too_large():
    # Posterior gains averaged over few inner draws, then maximised, against the truth.
    channel = Channel(np.full((4, 2), 0.5))
    threat = Threat(Prior.uniform(4))
    honest = estimate_advantage(ChannelSampler(channel), threat, trials=500, rng=RNG(0))
    assert honest.value == pytest.approx(0.0, abs=1e-12)
    inner = RNG(1).multinomial(20, np.full(4, 0.25), size=500) / 20
    assert (inner.max(axis=1) - 0.25).mean() > 0.1


def test_trap_r16_fewer_guesses_give_a_smaller_value():
    P3 = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    prior = Prior(3, [0.5, 0.3, 0.2])
    pmf, overall = prior.pmf, prior.pmf @ P3.matrix
    gains = pmf[:, None] * (P3.matrix - overall)
    assert gains[:2].max(axis=0).sum() < advantage(P3, Threat(prior)).value


def test_trap_r17_the_marginal_of_a_transcript_is_no_product_of_marginals():
    once = Channel([[0.75, 0.25], [0.25, 0.75]])
    pmf = np.array([0.5, 0.5])
    joint = joint_channel(once, once, support=range(2))
    wrong = np.kron(pmf @ once.matrix, pmf @ once.matrix)
    right = pmf @ joint.matrix
    assert right == pytest.approx([0.3125, 0.1875, 0.1875, 0.3125])
    assert wrong == pytest.approx([0.25] * 4)
    mistaken = (pmf[:, None] * (joint.matrix - wrong)).max(axis=0).sum()
    exact = advantage(joint, Threat(Prior.uniform(2))).value
    assert exact == pytest.approx(0.25)
    assert mistaken == pytest.approx(0.25)  # here the errors cancel
    skewed = np.array([0.9, 0.1])
    off = np.kron(skewed @ once.matrix, skewed @ once.matrix)
    mistaken = (skewed[:, None] * (joint.matrix - off)).max(axis=0).sum()
    exact = advantage(joint, Threat(Prior(2, skewed))).value
    assert abs(mistaken - exact) > 0.005


def test_trap_r21_a_plugged_in_collision_probability_is_too_large():
    rng, uniform = RNG(2), np.full(20, 0.05)
    plugged, honest = [], []
    for _ in range(300):
        counts = rng.multinomial(50, uniform)
        plugged.append(float(((counts / 50) ** 2).sum()))
        honest.append(estimate_collision(counts).value)
    assert np.mean(plugged) == pytest.approx(0.05 + 0.95 / 50, abs=0.002)
    assert np.mean(honest) == pytest.approx(0.05, abs=0.002)


def test_AT5_imputation_has_its_accuracy_as_success_and_no_advantage_at_all():
    rng, m = RNG(0), 1000
    public = rng.integers(8, size=m)
    likely = rng.integers(3, size=8)
    secret = np.where(rng.random(m) < 0.8, likely[public], rng.integers(3, size=m))
    pairs = zip(public, secret, strict=True)
    records = [(int(a), int(s), i) for i, (a, s) in enumerate(pairs)]
    threat = Threat.attribute(
        Prior.uniform(records), target=lambda r: r[1], known=lambda r: r[0]
    )
    first = {r[1]: i for i, r in reversed(list(enumerate(records)))}
    guesses = [first[int(likely[records[f[0]][0]])] for f in threat.fibres]
    accuracy = float(np.mean(secret == likely[public]))
    blind = ChannelSampler(Channel(np.ones((m, 1))))
    found = estimate_attack(
        blind, ByKnowledge(guesses), threat, design="exhaustive", runs=1, rng=RNG(1)
    )
    assert found.advantage.value == 0.0
    assert abs(found.success.value - accuracy) < 1e-12
    assert found.success.value == pytest.approx(0.81, abs=0.1)


def test_AT5_the_same_imputation_with_a_leak_has_an_advantage():
    prior = Prior([("a", 0), ("a", 1), ("b", 0), ("b", 1)], [0.4, 0.1, 0.1, 0.4])
    threat = Threat.attribute(prior, target=lambda r: r[1], known=lambda r: r[0])
    keep = math.exp(2) / (1 + math.exp(2))
    rows = [[keep, 1 - keep] if r[1] == 0 else [1 - keep, keep] for r in prior.support]

    class Leak:
        def guess(self, outputs, known, *, rng):
            return np.where(outputs == 0, 0, 1)

    found = estimate_attack(
        ChannelSampler(Channel(rows)), Leak(), threat, trials=4000, rng=RNG(0)
    )
    assert found.advantage.low > 0.2


def test_trap_a13_repetitions_of_one_target_are_one_observation():
    # Success is certain on 2 of 20 records and impossible on the rest.
    channel = Channel(np.eye(20))
    hits = np.eye(20, dtype=bool)
    threat = Threat(Prior.uniform(20), Success.from_matrix(hits))

    class Two:
        def guess(self, outputs, known, *, rng):
            return np.where(outputs < 2, outputs, 0)

    found = estimate_attack(
        ChannelSampler(channel),
        Two(),
        threat,
        design="clustered",
        trials=100,
        runs=50,
        confidence=0.98,
        rng=RNG(0),
    )
    assert found.mechanism_runs == 5000
    assert "per target" in found.success.method
    pooled = clopper_pearson(round(found.success.value * 5000), 5000, confidence=0.98)
    assert found.success.high - found.success.low > 5 * (pooled[1] - pooled[0])


def test_trap_a17_the_number_of_runs_is_the_real_one():
    found = estimate_attack(
        ProtocolSampler(GeneralizedResponse(7, 1)),
        Report(),
        Threat(Prior.uniform(7)),
        trials=1000,
        design="exhaustive",
        rng=RNG(0),
    )
    assert found.mechanism_runs == found.advantage.trials == 7 * 143


def test_trap_a18_a_negative_advantage_is_not_clipped():
    class Avoid:
        def guess(self, outputs, known, *, rng):
            return (outputs + 1) % 3

    found = estimate_attack(
        ProtocolSampler(GeneralizedResponse(3, 2)),
        Avoid(),
        Threat(Prior(3, [0.5, 0.3, 0.2])),
        trials=5000,
        rng=RNG(0),
    )
    assert found.advantage.value < -0.1
    assert found.advantage.high < 0
