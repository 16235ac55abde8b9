"""Bias and coverage of measured risks; all seeded, false-alarm rates stated."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.mechanisms.local import (
    BinaryHashing,
    GeneralizedResponse,
    OptimizedUnary,
    SubsetSelection,
)
from undertow.risk.channel import Channel, ChannelSampler, ProtocolSampler
from undertow.risk.estimate import estimate_attack
from undertow.risk.exact import advantage
from undertow.risk.finite import Decision, attack_risk
from undertow.risk.intervals import clopper_pearson
from undertow.risk.likelihood import estimate_advantage
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

pytestmark = pytest.mark.statistical

RNG = np.random.default_rng
P3 = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
SKEWED = Prior(3, [0.5, 0.3, 0.2])
NEAR = Threat(SKEWED, Success.within("absolute", 1), Knowledge.from_labels([0, 0, 1]))


class Table:
    def __init__(self, table):
        self.table = np.asarray(table)

    def guess(self, outputs, known, *, rng):
        return self.table[outputs, known]


class SimpleAttack:
    """A uniform element of the support of the report."""

    def __init__(self, protocol):
        self.protocol = protocol

    def guess(self, outputs, known, *, rng):
        return self.protocol.sample_guesses(outputs, rng=rng)


def _within_four_errors(values, truth):
    error = np.std(values, ddof=1) / math.sqrt(len(values))
    return abs(np.mean(values) - truth) <= 4 * error


# Chance of a false alarm: 1e-4 in each case.
@pytest.mark.parametrize(
    ("design", "estimator"),
    [
        ("plain", "paired"),
        ("exhaustive", "paired"),
        ("clustered", "paired"),
        ("plain", "nested"),
        ("clustered", "nested"),
    ],
)
def test_the_estimator_is_unbiased_over_200_seeds(design, estimator):
    table = [[0, 2], [1, 2], [2, 1]]
    truth = attack_risk(P3, NEAR, decision=Decision(table)).advantage
    values = []
    for seed in range(200):
        found = estimate_attack(
            ChannelSampler(P3),
            Table(table),
            NEAR,
            trials=None if design == "exhaustive" else 30,
            runs=None if design == "plain" else 3,
            design=design,
            estimator=estimator,
            rng=RNG(seed),
        )
        values.append(found.advantage.value)
    assert _within_four_errors(values, truth)
    assert not _within_four_errors(values, truth + 0.06)


def test_the_posterior_estimator_is_unbiased_over_200_seeds():
    truth = advantage(P3, NEAR).value
    values = [
        estimate_advantage(ChannelSampler(P3), NEAR, trials=30, rng=RNG(seed)).value
        for seed in range(200)
    ]
    assert _within_four_errors(values, truth)
    assert not _within_four_errors(values, truth + 0.02)


def test_paired_and_nested_estimators_have_their_simulated_spread():
    # m = 10, eps = 2, a skewed prior of true advantage 0.324032, I = 1000 targets of
    # J = 5 runs: standard deviations about 0.0065 (paired) and 0.0071 (nested).
    weights = 0.7324469674767078 ** np.arange(10)
    prior = Prior(10, weights / weights.sum())
    protocol, threat = GeneralizedResponse(10, 2), Threat(prior)
    p, q = float(protocol.keep), float(protocol.noise)
    truth = (p - q) * (1 - prior.collision)
    assert truth == pytest.approx(0.324032, abs=1e-6)
    laws = np.full((10, 10), q)
    np.fill_diagonal(laws, p)
    response, report = ChannelSampler(Channel(laws)), Table(np.arange(10)[:, None])
    spread, covered = {}, 0
    for estimator in ("paired", "nested"):
        values = []
        for seed in range(120):
            found = estimate_attack(
                response,
                report,
                threat,
                design="clustered",
                trials=1000,
                runs=5,
                estimator=estimator,
                rng=RNG(seed),
            )
            values.append(found.advantage.value)
            if found.descriptive is not None:
                covered += found.descriptive[0] <= truth <= found.descriptive[1]
        assert _within_four_errors(values, truth)
        spread[estimator] = np.std(values, ddof=1)
    assert spread["paired"] < spread["nested"]
    assert spread["paired"] == pytest.approx(0.0065, rel=0.3)
    # Binomial(120, 0.95) is below 104 with probability 1e-4.
    assert covered >= 104


def test_trap_r28_limits_cover_under_a_skewed_prior_where_pooled_trials_fail():
    # One record of mass 0.9 and 99 others, J = 20 runs of each.
    pmf = np.r_[0.9, np.full(99, 0.1 / 99)]
    threat = Threat(Prior(100, pmf))
    channel = Channel(np.full((100, 2), 0.5))
    table = Table([[0], [1]])
    truth = attack_risk(channel, threat, decision=Decision([[0], [1]])).success
    pooled = math.sqrt(2 * math.log(40) / 2000)
    certified, naive = 0, 0
    for seed in range(200):
        found = estimate_attack(
            ChannelSampler(channel),
            table,
            threat,
            design="exhaustive",
            runs=20,
            rng=RNG(seed),
        ).success
        certified += found.low <= truth <= found.high
        naive += abs(found.value - truth) <= pooled
    assert certified >= 178  # Binomial(200, 0.95) is below with probability 2e-4
    assert naive < 130  # about half, where 95 % were promised


def test_trap_r28_limits_per_target_cover_where_pooled_counts_fail():
    # Success is certain on 2 of 20 records: I = 100 targets, J = 50 runs.
    threat, wrong, failed = Threat(Prior.uniform(20)), 0, 0
    table = np.zeros((20, 1), dtype=int)
    table[1] = 1
    for seed in range(200):
        found = estimate_attack(
            ChannelSampler(Channel(np.eye(20))),
            Table(table),
            threat,
            design="clustered",
            trials=100,
            runs=50,
            confidence=0.98,
            rng=RNG(seed),
        )
        count = round(found.success.value * 5000)
        pooled, _ = clopper_pearson(count, 5000, confidence=0.99, side="lower")
        wrong += pooled > 0.1
        failed += found.success.low > 0.1
    assert wrong > 30  # 30 % in the long run, not the 1 % promised
    assert failed <= 8  # Binomial(200, 0.01) is above with probability 3e-4


def test_counts_of_every_record_cover_with_unequal_success():
    # Exhaustive and uniform: Clopper-Pearson at 90 %, successes from 0 to 1.
    rng = RNG(11)
    chances = np.r_[0.0, 1.0, rng.random(10) ** 4]
    rows = np.stack([chances, 1 - chances], axis=1)
    threat = Threat(Prior.uniform(12), Success.from_matrix(np.eye(12, dtype=bool)))

    class Right:
        """Hits its own record on output 0: outputs carry the record's number."""

        def guess(self, outputs, known, *, rng):
            return np.where(outputs % 2 == 0, outputs // 2, (outputs // 2 + 1) % 12)

    wide = np.zeros((12, 24))
    for x, row in enumerate(rows):
        wide[x, 2 * x : 2 * x + 2] = row
    covered = 0
    for seed in range(300):
        found = estimate_attack(
            ChannelSampler(Channel(wide)),
            Right(),
            threat,
            design="exhaustive",
            runs=5,
            confidence=0.9,
            rng=RNG(seed),
        ).success
        assert found.method == "Clopper-Pearson"
        covered += found.low <= chances.mean() <= found.high
    assert covered >= 250  # Binomial(300, 0.9) is below with probability 1e-4


def test_trap_r28_student_limits_fail_for_rare_successes_and_certified_do_not():
    # Success probability 0.002, 50 targets: Student's interval is mostly a point.
    channel = Channel([[0.002, 0.998], [0.002, 0.998]])
    threat = Threat(Prior(2, [0.999, 0.001]), Success.from_matrix([[1, 0], [0, 1]]))
    table = [[0], [1]]
    truth = attack_risk(channel, threat, decision=Decision(table)).success
    student, certified = 0, 0
    for seed in range(150):
        found = estimate_attack(
            ChannelSampler(channel), Table(table), threat, trials=50, rng=RNG(seed)
        )
        hits = found.success
        certified += hits.low <= truth <= hits.high
        spread = math.sqrt(hits.value * (1 - hits.value) / 50)
        student += abs(hits.value - truth) <= 2.01 * spread
    assert student < 45
    assert certified >= 131  # Binomial(150, 0.95) is below with probability 1e-4


# Chance of a false alarm: 6e-7 in each case.
@pytest.mark.parametrize(
    "protocol",
    [
        GeneralizedResponse(12, 2),
        OptimizedUnary(12, 2),
        SubsetSelection(12, 1),
        BinaryHashing(12, 2),
    ],
    ids=lambda protocol: type(protocol).__name__,
)
def test_simulated_success_is_the_closed_form_within_five_errors(protocol):
    found = estimate_attack(
        ProtocolSampler(protocol),
        SimpleAttack(protocol),
        Threat(Prior.uniform(12)),
        trials=20_000,
        rng=RNG(17),
    )
    p = protocol.attack_success()
    assert abs(found.success.value - p) <= 5 * math.sqrt(p * (1 - p) / 20_000)


def test_a_correct_response_rarely_looks_like_a_violation():
    # Confidence 0.99, one-sided limit of the success: at most 25 alarms in 1000 runs.
    rng = RNG(23)
    p = float(GeneralizedResponse(10, 1).keep)
    counts = rng.binomial(2000, p, size=1000)
    limits = {
        int(k): clopper_pearson(int(k), 2000, confidence=0.99, side="lower")[0]
        for k in np.unique(counts)
    }
    alarms = sum(limits[int(k)] > p for k in counts)
    assert 0 < alarms <= 25
