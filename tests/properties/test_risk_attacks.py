"""Laws of the practical attacks that hold whatever the mechanism and the prior."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.mechanisms.graph import GraphExponential
from undertow.risk.attacks import (
    OptimalGuess,
    PosteriorGuess,
    PriorGuess,
    ReportGuess,
    attack_figures,
    exact_report_figures,
)
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

seeds = st.integers(0, 2**32 - 1)


def random_case(seed, m):
    """A prior, hits, knowledge and a channel, all at random."""
    rng = np.random.default_rng(seed)
    hits = rng.random((m, m)) < rng.random()
    np.fill_diagonal(hits, True)
    known = rng.integers(1, 4, size=m)
    threat = Threat(
        Prior(m, rng.dirichlet(np.full(m, 0.5))),
        Success.from_matrix(hits),
        Knowledge.from_labels(known.tolist()),
    )
    return threat, Channel(rng.dirichlet(np.full(m, 0.5), size=m))


def random_graph(seed, m, epsilon):
    rng = np.random.default_rng(seed)
    ring = np.stack([np.arange(m), (np.arange(m) + 1) % m], axis=1)
    arcs = np.concatenate([ring, rng.integers(m, size=(m // 2, 2))])
    return GraphExponential.from_graph(arcs, epsilon=epsilon)


@given(seeds, st.integers(2, 6))
def test_no_attack_beats_the_optimal_one_and_blind_ones_gain_nothing(seed, m):
    threat, channel = random_case(seed, m)
    best = advantage(channel, threat).value
    found = attack_figures(channel, threat, attack=OptimalGuess(channel, threat))
    assert found.advantage == pytest.approx(best, abs=1e-11)
    for attack in (ReportGuess(threat), PosteriorGuess(channel, threat)):
        assert attack_figures(channel, threat, attack=attack).advantage <= best + 1e-12
    blind = attack_figures(channel, threat, attack=PriorGuess(threat))
    assert blind.advantage == pytest.approx(0.0, abs=1e-14)


@given(seeds, st.integers(2, 9), st.floats(0.01, 50))
def test_the_real_epsilon_of_a_graph_is_between_a_quarter_and_the_nominal(
    seed, m, epsilon
):
    mechanism = random_graph(seed, m, epsilon)
    assert epsilon / 4 < mechanism.loss().epsilon <= epsilon


@given(seeds, st.integers(2, 9), st.floats(0.01, 50))
def test_the_report_is_the_best_guess_on_a_graph(seed, m, epsilon):
    mechanism = random_graph(seed, m, epsilon)
    best = advantage(mechanism, Threat(Prior.uniform(m))).value
    found = exact_report_figures(mechanism).advantage
    assert found == pytest.approx(best, abs=1e-12)
    assert found <= np.tanh(mechanism.loss().epsilon / 4) + 1e-12


@given(seeds, st.floats(0.01, 20))
def test_names_of_nodes_change_nothing(seed, epsilon):
    mechanism = random_graph(seed, 7, epsilon)
    order = np.random.default_rng(seed).permutation(7)
    renamed = GraphExponential(
        mechanism.distances[np.ix_(order, order)], epsilon=epsilon
    )
    assert renamed.loss().epsilon == pytest.approx(mechanism.loss().epsilon, rel=1e-12)
    for eta in (0, 2):
        one = exact_report_figures(mechanism, eta=eta)
        two = exact_report_figures(renamed, eta=eta)
        assert one.advantage == pytest.approx(two.advantage, abs=1e-13)
