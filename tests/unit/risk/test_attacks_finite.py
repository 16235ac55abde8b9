"""Attacks on finite channels and on local reports."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.errors import MismatchError
from undertow.mechanisms import RandomizedResponse, SimulatedSource
from undertow.mechanisms.local import (
    GeneralizedResponse,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
)
from undertow.risk.attacks import (
    OptimalGuess,
    PosteriorGuess,
    PriorGuess,
    ReportGuess,
    SupportGuess,
    attack_figures,
)
from undertow.risk.channel import Channel, ChannelStream
from undertow.risk.decision import ABSTAIN, Decision, attack_risk
from undertow.risk.exact import advantage, success_rate
from undertow.risk.knowledge import Knowledge
from undertow.risk.prior import Prior
from undertow.risk.success import Success
from undertow.risk.threat import Threat


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
