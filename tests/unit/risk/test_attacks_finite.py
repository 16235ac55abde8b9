"""Attacks on finite channels and on local reports."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.errors import MismatchError
from undertow.mechanisms import (
    GaussianMechanism,
    LaplaceMechanism,
    RandomizedResponse,
    SimulatedSource,
)
from undertow.mechanisms.graph import GraphExponential
from undertow.mechanisms.local import (
    GeneralizedResponse,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
)
from undertow.risk.attacks import (
    CorrelationGuess,
    CrowdSampler,
    EstimationGuess,
    GraphSampler,
    OptimalGuess,
    PosteriorGuess,
    PriorGuess,
    ReportGuess,
    StepSampler,
    SupportGuess,
    attack_figures,
    transition_threat,
)
from undertow.risk.channel import (
    Channel,
    ChannelSampler,
    ChannelStream,
    MechanismSampler,
    ProtocolSampler,
    as_channel,
)
from undertow.risk.estimate import estimate_attack
from undertow.risk.exact import advantage, success_rate
from undertow.risk.finite import ABSTAIN, Decision, attack_risk
from undertow.risk.likelihood import PosteriorGain, estimate_advantage
from undertow.risk.scalar import ScalarChannel
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat


def random_threat(rng, m, *, abstain=False):
    hits = rng.random((m, m)) < 0.3
    np.fill_diagonal(hits, True)
    return Threat(
        Prior(m, rng.dirichlet(np.ones(m))),
        Success.from_matrix(hits),
        Knowledge.from_labels(rng.integers(2, size=m).tolist()),
        abstain,
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("abstain", [False, True])
def test_the_optimal_guess_attains_the_advantage_and_the_posterior_the_success(
    seed, abstain
):
    rng = np.random.default_rng(seed)
    threat = random_threat(rng, 5, abstain=abstain)
    channel = Channel(rng.dirichlet(np.ones(4), size=5))
    best = attack_figures(channel, threat, attack=OptimalGuess(channel, threat))
    assert best.advantage == pytest.approx(advantage(channel, threat).value, abs=1e-12)
    likely = attack_figures(channel, threat, attack=PosteriorGuess(channel, threat))
    assert likely.success == pytest.approx(
        success_rate(channel, threat).value, abs=1e-12
    )


@pytest.mark.parametrize("seed", range(4))
def test_an_attack_that_ignores_the_output_has_no_advantage(seed):
    rng = np.random.default_rng(seed)
    threat = random_threat(rng, 6)
    channel = Channel(rng.dirichlet(np.ones(5), size=6))
    for informed, expected in (
        (True, threat.informed_guess),
        (False, None),
    ):
        attack = PriorGuess(threat, informed=informed)
        found = attack_figures(channel, threat, attack=attack)
        assert found.advantage == pytest.approx(0.0, abs=1e-15)
        if expected is not None:
            assert found.success == pytest.approx(expected, abs=1e-12)


def test_the_blind_guess_of_a_ball_succeeds_with_its_mass():
    prior = Prior(5, [0.3, 0.1, 0.1, 0.25, 0.25])
    threat = Threat(prior, Success.within("absolute", 1))
    attack = PriorGuess(threat, informed=False)
    channel = Channel(np.full((5, 2), 0.5))
    found = attack_figures(channel, threat, attack=attack)
    assert found.success == pytest.approx(threat.best_guess) == pytest.approx(0.6)
    assert attack.guess([0, 1], 0, rng=np.random.default_rng(0)).tolist() == [3, 3]


def test_ties_are_drawn_evenly():
    threat = Threat(Prior.uniform(4))
    channel = Channel(np.full((4, 1), 1.0))
    for attack in (OptimalGuess(channel, threat), PosteriorGuess(channel, threat)):
        assert attack.guess_law([0], 0).tolist() == [[0.25] * 4]
        drawn = attack.guess(np.zeros(4000, int), 0, rng=np.random.default_rng(3))
        assert np.bincount(drawn, minlength=4).min() > 850  # 1000, deviation 27


def test_a_losing_guess_is_declined_where_that_is_allowed():
    rule = Success.exact()
    threat = Threat(Prior(2, [0.5, 0.5]), rule, Knowledge.full(), True)
    channel = Channel([[0.9, 0.1], [0.1, 0.9]])
    attack = OptimalGuess(channel, threat)
    drawn = attack.guess([0, 1], 0, rng=np.random.default_rng(0))
    assert drawn[0] == 0
    assert drawn[1] in (1, ABSTAIN)


def test_laws_and_draws_of_a_batch_agree_with_the_table():
    rng = np.random.default_rng(5)
    threat = random_threat(rng, 5)
    channel = Channel(rng.dirichlet(np.ones(7), size=5))
    attack = PosteriorGuess(channel, threat)
    table = Decision.largest_posterior(channel, threat).table
    for z in range(2):
        drawn = attack.guess(np.arange(7), z, rng=rng)
        laws = attack.guess_law(np.arange(7), z)
        assert (laws[np.arange(7), drawn] > 0).all()
        assert (laws[np.arange(7), table[:, z]] > 0).all()


def test_reports_can_stand_for_other_guesses():
    threat = Threat(Prior.uniform(3))
    attack = ReportGuess(threat, names=[2, 2, 0, 1])
    rng = np.random.default_rng(0)
    assert attack.guess([3, 0], 0, rng=rng).tolist() == [1, 2]
    with pytest.raises(ValueError, match=r"0\.\.2"):
        ReportGuess(threat, names=[3])
    with pytest.raises(ValueError, match=r"0\.\.3"):
        attack.guess([4], 0, rng=rng)
    with pytest.raises(TypeError, match="numbers of outputs"):
        attack.guess([0.5], 0, rng=rng)


PROTOCOLS = [
    GeneralizedResponse(6, 1),
    SubsetSelection(6, 1),
    SymmetricUnary(6, 2),
    OptimizedUnary(6, 2),
    ThresholdHistogram(6, 2),
    SummationHistogram(6, 2),
]


@pytest.mark.statistical
@pytest.mark.parametrize("protocol", PROTOCOLS, ids=lambda p: p.name)
def test_a_guess_from_the_support_succeeds_as_often_as_stated(protocol):
    """Six deviations: false-alarm rate 1e-8 each."""
    n, rng = 20_000, np.random.default_rng(9)
    truths = rng.integers(6, size=n)
    reports = protocol.sample(truths, source=SimulatedSource(rng)).values
    attack = SupportGuess(protocol)
    hits = attack.guess(reports, 0, rng=rng) == truths
    expected = protocol.attack_success()
    deviation = np.sqrt(expected * (1 - expected) / n)
    assert abs(hits.mean() - expected) < 6 * deviation
    law = attack.guess_law(reports[:50], 0)
    assert law.sum(axis=1) == pytest.approx(np.ones(50))


def test_only_a_local_protocol_has_supports():
    with pytest.raises(TypeError, match="LocalProtocol"):
        SupportGuess(RandomizedResponse(2, 1))


def test_figures_are_those_of_the_table():
    rng = np.random.default_rng(8)
    threat = random_threat(rng, 5)
    channel = Channel(rng.dirichlet(np.ones(5), size=5))
    table = Decision.reporting(threat, outputs=5)
    found = attack_figures(channel, threat, attack=ReportGuess(threat))
    assert found == attack_risk(channel, threat, decision=table)


def test_figures_need_a_matrix_and_a_law():
    threat = Threat(Prior.uniform(2))
    stream = ChannelStream(lambda: [np.eye(2)], 2)
    with pytest.raises(MismatchError, match="stream of columns"):
        attack_figures(stream, threat, attack=ReportGuess(threat))
    with pytest.raises(MismatchError, match="stream of columns"):
        PosteriorGuess(stream, threat)

    class Silent:
        def guess(self, outputs, known, *, rng):
            return outputs

    with pytest.raises(MismatchError, match="estimate_attack"):
        attack_figures(Channel(np.eye(2)), threat, attack=Silent())


PROTOCOLS = [
    GeneralizedResponse(4, 1),
    OptimizedUnary(4, 1),
    SubsetSelection(4, 1),
]


@pytest.mark.parametrize("protocol", PROTOCOLS, ids=repr)
@pytest.mark.parametrize("abstain", [False, True])
def test_guesses_on_reports_attain_what_the_table_of_the_protocol_says(
    protocol, abstain
):
    threat = random_threat(np.random.default_rng(3), 4, abstain=abstain)
    channel = as_channel(protocol, threat.support)
    best = attack_figures(protocol, threat, attack=OptimalGuess(protocol, threat))
    assert best.advantage == pytest.approx(advantage(channel, threat).value, abs=1e-12)
    likely = attack_figures(protocol, threat, attack=PosteriorGuess(protocol, threat))
    success = success_rate(channel, threat).value
    assert likely.success == pytest.approx(success, abs=1e-12)


def test_the_figures_of_a_support_guess_are_those_of_the_protocol():
    protocol, threat = OptimizedUnary(4, 1), Threat(Prior.uniform(4))
    found = attack_figures(protocol, threat, attack=SupportGuess(protocol))
    assert found.success == pytest.approx(protocol.attack_success(), abs=1e-12)


@pytest.mark.parametrize(
    "protocol", [OptimizedHashing(6, 2), OptimizedUnary(40, 2)], ids=repr
)
def test_guesses_need_no_table_of_reports(protocol):
    threat = Threat(Prior.uniform(protocol.categories))
    attack, sampler = OptimalGuess(protocol, threat), ProtocolSampler(protocol)
    options = {"trials": 3000, "confidence": 1 - 1e-6}
    rng = np.random.default_rng
    found = estimate_attack(sampler, attack, threat, **options, rng=rng(1)).advantage
    same = estimate_advantage(sampler, threat, **options, rng=rng(2))
    assert found.low < same.value < found.high
    assert found.value > 0.02


@pytest.mark.parametrize("noise", [LaplaceMechanism(2), GaussianMechanism(2)], ids=repr)
@pytest.mark.parametrize("abstain", [False, True])
def test_guesses_on_real_outputs_attain_advantage_and_success(noise, abstain):
    threat = random_threat(np.random.default_rng(9), 6, abstain=abstain)
    channel = ScalarChannel(noise, [0, 1, 1, 4, 6, 7])
    edges = np.linspace(-40.0, 47.0, 4001)
    outputs = (edges[1:] + edges[:-1]) / 2
    laws = np.exp(channel.log_likelihood(outputs)).T * (edges[1] - edges[0])
    fine = Channel(laws / laws.sum(axis=1, keepdims=True))
    figures = []
    for attack in (OptimalGuess(channel, threat), PosteriorGuess(channel, threat)):
        tables = [attack.guess_law(outputs, z) for z in range(len(threat.fibres))]
        decision = Decision(np.stack(tables, axis=1))
        figures.append(attack_risk(fine, threat, decision=decision))
    best, likely = figures
    top = advantage(channel, threat).value
    assert best.advantage == pytest.approx(top, abs=1e-4)
    success = success_rate(channel, threat).value
    assert likely.success == pytest.approx(success, abs=1e-4)
    assert best.advantage > likely.advantage


def test_a_mechanism_on_numbers_guesses_among_the_records():
    threat = Threat(Prior((0, 10, 20), [0.2, 0.5, 0.3]))
    rng = np.random.default_rng(0)
    attack = OptimalGuess(GaussianMechanism(1), threat)
    assert attack.guess([-1.0, 10.2, 25.0], 0, rng=rng).tolist() == [0, 1, 2]
    assert attack.choices(10.2, 0).tolist() == [1]
    assert attack.guess([], 0, rng=rng).tolist() == []
    with pytest.raises(ValueError, match="known"):
        attack.guess([0.0], 1, rng=rng)


def test_real_ties_are_drawn_evenly_and_losses_declined():
    threat = Threat(Prior.uniform(3), Success.exact())
    attack = OptimalGuess(ScalarChannel(LaplaceMechanism(1), [0, 0, 5]), threat)
    assert attack.guess_law([0.0], 0).tolist() == [[0.5, 0.5, 0.0]]
    guesses = attack.guess(np.zeros(4000), 0, rng=np.random.default_rng(2))
    assert 1700 < np.count_nonzero(guesses == 0) < 2300
    shy = Threat(Prior.uniform(2), Success.exact(), Knowledge.full(), True)
    # The first record is in the first fibre; an output at the other one speaks against.
    alone = Threat(
        Prior.uniform(2), Success.from_matrix([[True, True]] * 2), shy.knowledge, True
    )
    attack = OptimalGuess(ScalarChannel(LaplaceMechanism(1), [0, 5]), alone)
    rng = np.random.default_rng(0)
    assert attack.guess([5.0, 0.0], 0, rng=rng).tolist()[0] == ABSTAIN
    assert attack.choices(5.0, 0).tolist() == [ABSTAIN]


def test_a_protocol_for_other_records_is_refused():
    with pytest.raises(MismatchError, match="category for each of the 3 records"):
        OptimalGuess(GeneralizedResponse(4, 1), Threat(Prior.uniform(3)))


def test_names_of_attacks_and_samplers_are_short():
    threat = Threat(Prior.uniform(3))
    response, channel = GeneralizedResponse(3, 1), Channel(np.eye(3))
    crowd = CrowdSampler(response, [0, 1])
    steps = transition_threat([[0, 1], [1, 0]], [0.5, 0.5])
    shown = {
        "OptimalGuess(3 records, 3 outputs)": OptimalGuess(channel, threat),
        "PosteriorGuess(ProtocolSampler(GeneralizedResponse(3, 1)))": PosteriorGuess(
            response, threat
        ),
        "PriorGuess(3 records)": PriorGuess(threat),
        "ReportGuess(3 outputs)": ReportGuess(threat),
        "SupportGuess(GeneralizedResponse(3, 1))": SupportGuess(response),
        "CrowdSampler(GeneralizedResponse(3, 1), 2 others)": crowd,
        "EstimationGuess(GeneralizedResponse(3, 1), ties='random')": EstimationGuess(
            response
        ),
        "CorrelationGuess(2 places, threshold=0.5)": CorrelationGuess(
            [[0, 1], [1, 0]], 0.5
        ),
        "StepSampler(CrowdSampler(GeneralizedResponse(3, 1), 2 others), 2 steps)": (
            StepSampler(crowd, steps)
        ),
        "ChannelSampler(Channel(3 records, 3 outputs))": ChannelSampler(channel),
        "MechanismSampler(LaplaceMechanism, 2 records)": MechanismSampler(
            LaplaceMechanism(1), [0, 1]
        ),
        "PosteriorGain(ChannelSampler(Channel(3 records, 3 outputs)))": PosteriorGain(
            ChannelSampler(channel), threat
        ),
        "GraphSampler(2 nodes)": GraphSampler(
            GraphExponential([[0, 1], [1, 0]], epsilon=1)
        ),
    }
    for name, attack in shown.items():
        assert repr(attack) == name
