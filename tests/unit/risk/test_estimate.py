from __future__ import annotations

import json
import math

import numpy as np
import pytest

from undertow.errors import MismatchError, NotApplicable
from undertow.mechanisms import GaussianMechanism, LaplaceMechanism, RandomizedResponse
from undertow.mechanisms.local import GeneralizedResponse, OptimizedUnary
from undertow.risk.attacks import PriorGuess
from undertow.risk.channel import (
    Channel,
    ChannelSampler,
    ChannelStream,
    MechanismSampler,
    ProtocolSampler,
)
from undertow.risk.estimate import Attack, LawAttack, Sampler, estimate_attack
from undertow.risk.finite import ABSTAIN, Decision, attack_risk
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

P3 = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
SKEWED = Prior(3, [0.5, 0.3, 0.2])
GOLD = np.random.default_rng


class Table:
    """The attack of a table of decisions."""

    def __init__(self, table):
        self.table = np.asarray(table)

    def guess(self, outputs, known, *, rng):
        return self.table[outputs, known]


class Noisy:
    """Reports with probability 0.7, else guesses uniformly among three."""

    def guess(self, outputs, known, *, rng):
        lie = rng.random(len(outputs)) < 0.3
        return np.where(lie, rng.integers(3, size=len(outputs)), outputs)

    def guess_law(self, outputs, known):
        return 0.7 * np.eye(3)[outputs] + 0.1


def measure(attack, threat, channel=P3, **options):
    options = {"trials": 4000, "rng": GOLD(7)} | options
    return estimate_attack(ChannelSampler(channel), attack, threat, **options)


def test_the_protocols_are_recognised():
    assert isinstance(ChannelSampler(P3), Sampler)
    assert isinstance(Table([[0]]), Attack)
    assert not isinstance(Table([[0]]), LawAttack)
    assert isinstance(Noisy(), LawAttack)


KNOWN = Threat(SKEWED, knowledge=Knowledge.from_labels([0, 0, 1]))
NEAR = Threat(SKEWED, Success.within("absolute", 1), Knowledge.full(), abstain=True)


@pytest.mark.parametrize("design", ["plain", "exhaustive", "clustered"])
@pytest.mark.parametrize(
    ("threat", "table"),
    [
        (Threat(SKEWED), [[0], [1], [2]]),
        (KNOWN, [[0, 2], [1, 2], [0, 1]]),
        (NEAR, [[0, 1, ABSTAIN], [ABSTAIN, 1, 1], [2, 0, 2]]),
        (Threat(Prior(3, [0.5, 0.5, 0.0])), [[0], [1], [2]]),
    ],
    ids=["none", "labels", "abstain", "impossible"],
)
def test_every_design_agrees_with_the_exact_figures(design, threat, table):
    runs = {"plain": None, "exhaustive": 20_000, "clustered": 2}[design]
    trials = None if design == "exhaustive" else 30_000
    found = measure(Table(table), threat, design=design, trials=trials, runs=runs)
    truth = attack_risk(P3, threat, decision=Decision(table))
    for name in ("success", "correction", "advantage"):
        part = getattr(found, name)
        assert part.value == pytest.approx(getattr(truth, name), abs=0.012), name
        assert part.low <= getattr(truth, name) <= part.high
    gap = found.success.value - found.correction.value
    assert found.advantage.value == pytest.approx(gap, abs=1e-12)
    assert found.design == design


def test_large_fibres_are_scored_like_small_ones():
    m, rng = 40, GOLD(5)
    channel = Channel(rng.dirichlet(np.ones(4), size=m))
    threat = Threat(
        Prior(m, rng.dirichlet(np.ones(m))),
        Success.within("absolute", 3),
        Knowledge.from_labels([int(x < 3) for x in range(m)]),
    )
    table = rng.integers(m, size=(4, 2))
    found = measure(Table(table), threat, channel, trials=60_000)
    truth = attack_risk(channel, threat, decision=Decision(table))
    assert found.correction.value == pytest.approx(truth.correction, abs=0.005)
    assert found.advantage.value == pytest.approx(truth.advantage, abs=0.01)


def test_a_uniform_prior_without_knowledge_has_a_constant_correction():
    found = measure(Table([[0], [1], [2]]), Threat(Prior.uniform(3)))
    assert found.correction == pytest.approx(1 / 3, abs=1e-15)
    assert found.advantage.method.startswith("Clopper-Pearson")
    assert found.advantage.low == pytest.approx(found.success.low - 1 / 3, abs=1e-12)


def test_the_interval_follows_the_design():
    report, uniform = Table([[0], [1], [2]]), Threat(Prior.uniform(3))

    def method(threat, **options):
        return measure(report, threat, **options).advantage.method

    assert method(uniform, design="exhaustive").startswith("Clopper-Pearson")
    assert method(Threat(SKEWED)).startswith("empirical Bernstein")
    assert method(Threat(SKEWED), design="exhaustive").startswith("Hoeffding, weighted")
    assert method(uniform, design="clustered", runs=4).startswith("empirical Bernstein")
    assert method(Threat(SKEWED), interval="hoeffding").startswith("Hoeffding, one")
    assert method(uniform, trials=1, interval="bernstein").startswith("Hoeffding, one")


def test_the_weighted_interval_has_the_effective_sample_size():
    found = measure(
        Table([[0], [1], [2]]),
        Threat(SKEWED),
        design="exhaustive",
        runs=5000,
        trials=None,
    )
    width = math.sqrt(2 * math.log(40) * SKEWED.collision / 5000)
    assert found.advantage.high - found.advantage.value == pytest.approx(width)


@pytest.mark.parametrize(
    ("threat", "options"),
    [
        (Threat(SKEWED), {}),
        (Threat(Prior.uniform(3)), {"design": "clustered", "runs": 3}),
        (Threat(SKEWED), {"design": "exhaustive"}),
    ],
    ids=["varying correction", "clustered", "unequal weights"],
)
def test_clopper_pearson_is_refused_where_it_does_not_hold(threat, options):
    with pytest.raises(NotApplicable, match="independent hits of equal weight"):
        measure(Table([[0], [1], [2]]), threat, interval="clopper-pearson", **options)


def test_bernstein_is_refused_for_weights():
    with pytest.raises(NotApplicable, match="targets drawn from the prior"):
        measure(Noisy(), Threat(SKEWED), design="exhaustive", interval="bernstein")


def test_expected_hits_have_less_noise_than_drawn_ones():
    threat, truth = Threat(SKEWED), None
    table = Noisy().guess_law(np.arange(3), 0)[:, None, :]
    truth = attack_risk(P3, threat, decision=Decision(table))
    drawn, expected = [], []
    for seed in range(60):
        found = measure(Noisy(), threat, trials=400, rng=GOLD(seed))
        expected.append(found.advantage.value)
        plain = Table([[0], [1], [2]])
        plain.guess = Noisy().guess
        drawn.append(measure(plain, threat, trials=400, rng=GOLD(seed)).advantage.value)
    assert np.mean(expected) == pytest.approx(truth.advantage, abs=0.012)
    assert np.std(expected) < np.std(drawn)


def test_expected_hits_rule_out_clopper_pearson_unless_guesses_are_drawn():
    uniform = Threat(Prior.uniform(3))
    assert measure(Noisy(), uniform).success.method.startswith("empirical Bernstein")
    drawn = measure(Noisy(), uniform, interval="clopper-pearson")
    assert drawn.success.method == "Clopper-Pearson"


def test_another_attack_meets_the_same_outputs():
    class Spy(Table):
        def guess(self, outputs, known, *, rng):
            rng.random(int(self.table[0, 0]) * 1000)
            seen.append(np.array(outputs))
            return self.table[outputs, known]

    runs = []
    for first in (0, 2):
        seen = []
        measure(Spy([[first], [1], [2]]), Threat(SKEWED))
        runs.append(np.concatenate(seen))
    np.testing.assert_array_equal(*runs)


def test_results_are_reproducible_and_streams_move_on():
    def once(rng):
        return measure(Noisy(), Threat(SKEWED), rng=rng).advantage

    assert once(GOLD(3)) == once(GOLD(3))
    rng = GOLD(3)
    assert once(rng) != once(rng)


def test_progress_is_told_and_runs_are_counted():
    told = []
    found = measure(
        Table([[0, 0], [1, 2], [2, 1]]),
        KNOWN,
        trials=100,
        design="exhaustive",
        progress=lambda done, total: told.append((done, total)),
    )
    assert found.mechanism_runs == 102 == found.advantage.trials
    assert found.attack_calls == 204
    assert told[-1] == (102, 102)


def test_any_object_serves_as_outputs():
    class Lists:
        def sample(self, record, size, *, rng):
            return [record] * size

    class Reads:
        def guess(self, outputs, known, *, rng):
            return np.array(outputs)

    threat = Threat(SKEWED)
    found = estimate_attack(Lists(), Reads(), threat, trials=500, rng=GOLD(0))
    assert found.success.value == 1.0
    assert found.advantage.value == pytest.approx(0.62, abs=0.1)


def test_results_become_json():
    found = measure(Table([[0], [1], [2]]), Threat(SKEWED))
    read = json.loads(json.dumps(found.to_dict()))
    assert read["design"] == "plain"
    assert read["advantage"]["value"] == found.advantage.value


def test_student_interval_is_descriptive_and_needs_repetition():
    report = Table([[0], [1], [2]])
    low, high = measure(report, Threat(SKEWED)).descriptive
    certified = measure(report, Threat(SKEWED)).advantage
    assert certified.low < low < certified.value < high < certified.high
    spread = measure(report, Threat(SKEWED), design="exhaustive").descriptive
    assert spread[0] < certified.value < spread[1]
    once = measure(report, Threat(SKEWED), design="exhaustive", runs=1, trials=None)
    assert once.descriptive is None


def test_the_nested_estimator_agrees_and_is_wider():
    report, threat = Table([[0, 2], [1, 2], [0, 1]]), KNOWN
    truth = attack_risk(P3, threat, decision=Decision(report.table)).advantage
    nested = measure(report, threat, trials=20_000, estimator="nested")
    paired = measure(report, threat, trials=20_000)
    assert nested.advantage.low <= truth <= nested.advantage.high
    assert nested.advantage.value == pytest.approx(truth, abs=0.015)
    assert nested.mechanism_runs == 2 * paired.mechanism_runs
    width = nested.advantage.high - nested.advantage.low
    assert width > paired.advantage.high - paired.advantage.low
    clustered = measure(report, threat, design="clustered", runs=2, estimator="nested")
    assert clustered.advantage.low <= truth <= clustered.advantage.high


def test_the_nested_estimator_needs_drawn_targets():
    report = Table([[0], [1], [2]])
    with pytest.raises(NotApplicable, match="targets drawn from the prior"):
        measure(report, Threat(SKEWED), design="exhaustive", estimator="nested")
    with pytest.raises(ValueError, match="at least 2 for nested"):
        measure(report, Threat(SKEWED), trials=1, estimator="nested")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"design": "pooled"}, "design must be one of"),
        ({"interval": "student"}, "interval must be one of"),
        ({"estimator": "best"}, "estimator must be one of"),
        ({"trials": None}, "trials must be given"),
        ({"runs": 5}, "trials must be given"),
        ({"design": "clustered"}, "trials must be given"),
        ({"design": "clustered", "runs": 1}, "trials must be given"),
        ({"design": "exhaustive", "trials": None}, "runs must be given"),
        ({"design": "exhaustive", "runs": 5}, "runs must be 1334"),
        ({"confidence": 1.0}, "confidence must be in"),
    ],
    ids=str,
)
def test_bad_designs_get_one_clear_sentence(options, message):
    with pytest.raises(ValueError, match=message):
        measure(Table([[0], [1], [2]]), Threat(SKEWED), **options)


@pytest.mark.parametrize(
    ("table", "threat", "message"),
    [
        ([[0.0], [1.0], [2.0]], Threat(SKEWED), "whole numbers"),
        ([[0], [1], [3]], Threat(SKEWED), "among 3 guesses"),
        ([[0], [1], [ABSTAIN]], Threat(SKEWED), "decline only"),
    ],
    ids=["floats", "range", "abstain"],
)
def test_answers_that_are_no_guesses_are_refused(table, threat, message):
    with pytest.raises(MismatchError, match=message):
        measure(Table(table), threat)


def test_laws_of_guesses_that_are_no_laws_are_refused():
    class Wrong(Noisy):
        def guess_law(self, outputs, known):
            return np.full((len(outputs), 3), 0.3)

    with pytest.raises(MismatchError, match="sum to 1"):
        measure(Wrong(), Threat(SKEWED))
    assert measure(Wrong(), Threat(SKEWED, abstain=True)).success.value < 0.31


def test_what_is_no_attack_or_sampler_is_refused():
    with pytest.raises(TypeError, match="method guess"):
        measure(object(), Threat(SKEWED))

    class Short:
        def sample(self, record, size, *, rng):
            return np.zeros(1)

    with pytest.raises(ValueError, match="outputs when asked"):
        estimate_attack(Short(), Table([[0]]), Threat(SKEWED), trials=50, rng=GOLD(0))


def test_a_channel_sampler_never_draws_what_is_impossible():
    sampler = ChannelSampler(Channel([[0.0, 0.3, 0.0, 0.7, 0.0]]))
    drawn = sampler.sample(0, 5000, rng=GOLD(2))
    assert set(drawn.tolist()) == {1, 3}
    assert (drawn == 3).mean() == pytest.approx(0.7, abs=0.03)


def test_a_channel_sampler_tabulates_mechanisms_and_refuses_streams():
    sampler = ChannelSampler(RandomizedResponse("ab", 1), "ab")
    assert sampler.channel.outputs == 2
    with pytest.raises(TypeError, match="must be a Channel"):
        ChannelSampler(RandomizedResponse("ab", 1))
    stream = ChannelStream(lambda: [np.eye(2)], 2)
    with pytest.raises(NotApplicable, match="whole matrix"):
        ChannelSampler(stream, range(2))


def test_a_mechanism_sampler_draws_around_the_answers():
    sampler = MechanismSampler.from_query(
        LaplaceMechanism(1), lambda r: 10.0 * r, support=range(3)
    )
    assert sampler.sample(2, 4000, rng=GOLD(0)).mean() == pytest.approx(20, abs=0.15)
    vectors = MechanismSampler(GaussianMechanism(1, dimension=2), [[0, 0], [3, 4]])
    drawn = vectors.sample(1, 4000, rng=GOLD(0))
    assert drawn.mean(axis=0) == pytest.approx([3, 4], abs=0.1)
    logs = vectors.log_likelihood(drawn[:5])
    square = ((drawn[:5] - [3, 4]) ** 2).sum(axis=1) - (drawn[:5] ** 2).sum(axis=1)
    np.testing.assert_allclose(logs[:, 0] - logs[:, 1], square / 2)


def test_a_mechanism_sampler_refuses_choices_and_bad_answers():
    with pytest.raises(NotApplicable, match="use ChannelSampler"):
        MechanismSampler(RandomizedResponse("ab", 1), [0.0, 1.0])
    with pytest.raises(MismatchError, match="one finite number or vector"):
        MechanismSampler(LaplaceMechanism(1), [0.0, math.inf])


def test_a_protocol_sampler_draws_reports_with_their_likelihood():
    sampler = ProtocolSampler(OptimizedUnary(5, 1))
    reports = sampler.sample(3, 200, rng=GOLD(0))
    logs = sampler.log_likelihood(reports)
    assert logs.shape == (200, 5)
    np.testing.assert_allclose(logs[:, 2], OptimizedUnary(5, 1).log_density(reports, 2))
    with pytest.raises(TypeError, match="LocalProtocol"):
        ProtocolSampler(LaplaceMechanism(1))
    told = ProtocolSampler(GeneralizedResponse(4, 50)).sample(1, 9, rng=GOLD(0))
    assert told.tolist() == [1] * 9


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("m", [3, 7, 11])
def test_the_student_interval_holds_the_value_even_where_nothing_varies(m, seed):
    threat = Threat(Prior(m, GOLD(seed).dirichlet(np.ones(m))))
    channel = Channel(GOLD(seed).dirichlet(np.ones(3), size=m))
    blind = PriorGuess(threat)
    for design in ("plain", "exhaustive", "clustered"):
        runs = None if design == "plain" else 3
        trials = 60 if design != "exhaustive" else None
        found = measure(blind, threat, channel, design=design, runs=runs, trials=trials)
        low, high = found.descriptive
        assert low <= found.advantage.value <= high
        if design == "exhaustive":
            assert found.advantage.value == 0.0
            assert high - low < 1e-15


class _Uniform:
    """Draws any category, and says so."""

    def __init__(self, size):
        self.size = size

    def guess(self, outputs, known, *, rng):
        return rng.integers(self.size, size=len(outputs))

    def guess_law(self, outputs, known):
        return np.full((len(outputs), self.size), 1 / self.size)


def test_the_success_rule_is_not_read_again_for_every_fibre():
    size, asked = 300, []

    def attribute(record):
        asked.append(record)
        return record

    threat = Threat(
        Prior.uniform(size),
        Success.attribute(attribute),
        Knowledge.attributes(lambda record: record // 2),
    )
    found = estimate_attack(
        ProtocolSampler(GeneralizedResponse(size, 1)),
        _Uniform(size),
        threat,
        trials=20,
        rng=np.random.default_rng(0),
    )
    assert found.advantage.value == pytest.approx(0, abs=1e-12)
    assert len(asked) < 40 * size
