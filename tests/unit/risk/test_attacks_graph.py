"""Attacks on reports of places on a graph, at any size."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.mechanisms.graph import GraphExponential
from undertow.risk.attacks import (
    GraphSampler,
    ReportGuess,
    attack_figures,
    exact_report_figures,
    graph_stream,
    graph_success,
)
from undertow.risk.estimate import estimate_attack
from undertow.risk.exact import advantage
from undertow.risk.threat import Prior, Threat


def one_way(m, chords, seed, epsilon):
    rng = np.random.default_rng(seed)
    ring = np.stack([np.arange(m), (np.arange(m) + 1) % m], axis=1)
    arcs = np.concatenate([ring, rng.integers(m, size=(chords, 2))])
    return GraphExponential.from_graph(arcs, epsilon=epsilon)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("eta", [0, 1, 3, 99])
def test_the_figures_of_the_report_are_those_of_its_table(seed, eta):
    mechanism = one_way(9, 6, seed, 5)
    pmf = np.random.default_rng(seed).dirichlet(np.ones(9))
    threat = Threat(Prior(9, pmf), graph_success(mechanism, eta=eta))
    found = exact_report_figures(mechanism, eta=eta, prior=pmf)
    table = attack_figures(mechanism, threat, attack=ReportGuess(threat))
    assert found.success == pytest.approx(table.success, abs=1e-13)
    assert found.correction == pytest.approx(table.correction, abs=1e-13)
    assert found.advantage == pytest.approx(table.advantage, abs=1e-13)
    if eta == 99:
        assert found.advantage == pytest.approx(0.0, abs=1e-13)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("epsilon", [0.5, 6, 60])
def test_the_report_is_optimal_on_every_directed_graph(seed, epsilon):
    mechanism = one_way(10, 7, seed, epsilon)
    best = advantage(mechanism, Threat(Prior.uniform(10))).value
    found = exact_report_figures(mechanism)
    assert best == pytest.approx(found.advantage, abs=1e-12)
    normalisers = np.exp(mechanism.log_normalisers)
    assert found.success == pytest.approx(np.mean(1 / normalisers), abs=1e-13)
    assert found.correction == pytest.approx(0.1, abs=1e-13)


def test_success_grows_with_the_radius_while_the_advantage_rises_and_falls():
    streets = [[i, i + 1] for i in range(50) if i % 10 != 9]
    streets += [[i, i + 10] for i in range(40)]
    city = GraphExponential.from_graph(streets, epsilon=10, directed=False)
    figures = [exact_report_figures(city, eta=eta) for eta in range(14)]
    success = [f.success for f in figures]
    gains = [f.advantage for f in figures]
    assert success == sorted(success)
    peak = int(np.argmax(gains))
    assert 0 < peak < 13
    assert gains[:peak] == sorted(gains[:peak])
    assert gains[peak:] == sorted(gains[peak:], reverse=True)
    assert gains[-1] == pytest.approx(0.0, abs=1e-14)


def test_the_stream_is_the_channel():
    mechanism = one_way(12, 5, 1, 4)
    threat = Threat(Prior.uniform(12), graph_success(mechanism, eta=2))
    whole = advantage(mechanism, threat).value
    assert advantage(graph_stream(mechanism), threat).value == pytest.approx(
        whole, abs=1e-12
    )


@pytest.mark.statistical
def test_the_measured_report_attack_has_the_exact_figures():
    """The interval of confidence 1 - 1e-6 covers the exact advantage."""
    mechanism = one_way(10, 5, 2, 12)
    threat = Threat(Prior.uniform(10), graph_success(mechanism, eta=1))
    measured = estimate_attack(
        GraphSampler(mechanism),
        ReportGuess(threat),
        threat,
        trials=20_000,
        confidence=1 - 1e-6,
        rng=np.random.default_rng(2),
    )
    low, high = measured.advantage.low, measured.advantage.high
    assert low <= exact_report_figures(mechanism, eta=1).advantage <= high
    assert high - low < 0.1


def test_priors_and_mechanisms_are_checked():
    mechanism = one_way(4, 0, 0, 1)
    for prior in ([0.5, 0.5], [0.5, 0.5, 0.25, 0.25], [np.nan] * 4):
        with pytest.raises(ValueError, match="pmf must"):
            exact_report_figures(mechanism, prior=prior)
    with pytest.raises(TypeError, match="GraphExponential"):
        GraphSampler("ring")
    with pytest.raises(ValueError, match="record"):
        GraphSampler(mechanism).sample(4, 1, rng=np.random.default_rng(0))
