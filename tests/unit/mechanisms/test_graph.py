"""Hop distances and the exponential mechanism on the nodes of a graph."""

from __future__ import annotations

from fractions import Fraction

import mpmath
import mpmath as mp
import numpy as np
import pytest
from scipy import sparse, stats

from undertow.errors import AssumptionError, MismatchError, ModelError, NotApplicable
from undertow.mechanisms import ExponentialMechanism, SimulatedSource
from undertow.mechanisms.graph import (
    GraphExponential,
    adjacency,
    ball_masses,
    hop_blocks,
    hop_distances,
    largest_component,
)
from undertow.spaces import DiscreteMetric, LpNorm


def random_arcs(m, extra, seed):
    """A ring with random chords: strongly connected and directed."""
    rng = np.random.default_rng(seed)
    ring = np.stack([np.arange(m), (np.arange(m) + 1) % m], axis=1)
    return np.concatenate([ring, rng.integers(m, size=(extra, 2))])


def by_powers(arcs, m):
    """Distances as the first power of the matrix that has an entry."""
    step = np.eye(m, dtype=int)
    step[arcs[:, 0], arcs[:, 1]] = 1
    reach, table = np.eye(m, dtype=int), np.full((m, m), -1)
    for hops in range(m):
        table[(table < 0) & (reach > 0)] = hops
        reach = (reach @ step > 0).astype(int)
    return table


def laws_of(mechanism):
    return np.stack([mechanism.pmf(node) for node in mechanism.candidates])


@pytest.mark.parametrize("seed", range(4))
def test_hops_are_the_first_power_that_reaches(seed):
    arcs = random_arcs(12, 9, seed)
    table = hop_distances(arcs)
    assert (table == by_powers(arcs, 12)).all()
    assert (hop_distances(adjacency(arcs), [3, 5]) == table[[3, 5]]).all()
    streamed = np.concatenate([rows for _, rows in hop_blocks(arcs, width=5)])
    assert (streamed == table).all()


def test_arcs_count_once_and_loops_not_at_all():
    matrix = adjacency([[0, 1], [0, 1], [1, 1], [1, 0]])
    assert matrix.toarray().tolist() == [[0, 1], [1, 0]]
    heavy = sparse.csr_array([[5.0, 7.0], [2.0, 0.0]])
    assert hop_distances(heavy).tolist() == [[0, 1], [1, 0]]
    both = adjacency([[0, 1], [1, 2]], directed=False)
    assert (both.toarray() == both.toarray().T).all()


def test_a_graph_that_is_not_strongly_connected_is_refused_with_its_best_part():
    arcs = adjacency([[0, 1], [1, 2], [2, 3], [3, 2], [3, 1]])
    with pytest.raises(
        AssumptionError, match=r"component of 3 of its 4 nodes.*largest"
    ):
        hop_distances(arcs)
    kept = largest_component(arcs)
    assert kept.tolist() == [1, 2, 3]
    assert hop_distances(arcs[kept][:, kept]).max() == 2


def test_the_first_of_equal_components_is_kept():
    assert largest_component([[0, 1], [1, 0], [2, 3], [3, 2], [0, 3]]).tolist() == [
        0,
        1,
    ]


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        ([[0, 1, 2]], "pairs of numbers"),
        ([[0.5, 1.0]], "pairs of numbers"),
        ([[0, -1]], "must name nodes in 0..0"),
        ([[0, 1], [1]], "all lengths"),
        (sparse.csr_array(np.ones((2, 3))), "square"),
    ],
)
def test_what_is_no_graph_is_refused(edges, message):
    with pytest.raises(ModelError, match=message):
        adjacency(edges)


def test_a_node_past_the_size_is_refused():
    with pytest.raises(ModelError, match=r"0\.\.2"):
        adjacency([[0, 3]], size=3)


@pytest.mark.parametrize("eta", [0, 1, 2, 20])
def test_ball_masses_sum_over_truths(eta):
    arcs = random_arcs(15, 10, 3)
    weights = np.random.default_rng(0).dirichlet(np.ones(15))
    table = by_powers(arcs, 15)
    expected = [weights[table[:, g] <= eta].sum() for g in range(15)]
    assert ball_masses(arcs, weights, eta=eta) == pytest.approx(expected, abs=1e-14)


def test_ball_masses_want_a_weight_for_each_node():
    with pytest.raises(MismatchError, match="each of the 3 nodes"):
        ball_masses(random_arcs(3, 0, 0), [0.5, 0.5], eta=1)
    with pytest.raises(ModelError, match="finite"):
        ball_masses(random_arcs(3, 0, 0), [0.5, 0.5, np.nan], eta=1)


@pytest.mark.parametrize("epsilon", [0.5, 4, 40])
def test_the_law_is_that_of_the_exponential_mechanism(epsilon):
    mechanism = GraphExponential.from_graph(random_arcs(9, 6, 1), epsilon=epsilon)
    scores = ExponentialMechanism(
        9, epsilon=epsilon, sensitivity=mechanism.diameter.numerator
    )
    for v in range(9):
        given = (-mechanism.distances[v]).tolist()
        assert mechanism.pmf(v) == pytest.approx(scores.pmf(given), rel=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("epsilon", [0.1, 3, 30])
def test_the_loss_is_the_largest_log_ratio(seed, epsilon):
    mechanism = GraphExponential.from_graph(random_arcs(10, 8, seed), epsilon=epsilon)
    logs = np.stack([mechanism.log_probabilities(v) for v in range(10)])
    pairs = np.abs(logs[:, None] - logs[None]).max(axis=2)
    assert mechanism.loss().epsilon == pytest.approx(pairs.max(), rel=1e-10)
    assert mechanism.loss().epsilon >= pairs.max()
    assert pairs.max() <= epsilon * (1 + 1e-12)
    for v, w in ((0, 1), (4, 9), (7, 2)):
        exact = mechanism.pair_loss(v, w).epsilon
        assert exact == pytest.approx(pairs[v, w], rel=1e-9)
        assert exact >= pairs[v, w]
    assert mechanism.pair_loss(3, 3).epsilon == 0


@pytest.mark.parametrize("epsilon", ["0.001", "2.7", "300"])
def test_the_stated_loss_is_never_below_the_exact_one(epsilon):
    mechanism = GraphExponential.from_graph(random_arcs(14, 9, 8), epsilon=epsilon)
    d = mechanism.distances
    with mpmath.workdps(40):
        rate = mpmath.mpf(epsilon) / (2 * int(d.max()))
        logs = [mpmath.log(sum(mpmath.exp(-rate * int(k)) for k in row)) for row in d]
        exact = max(
            rate * int(d[b, a]) + logs[b] - logs[a]
            for a in range(14)
            for b in range(14)
        )
        stated = mpmath.mpf(mechanism.loss().epsilon)
        assert (
            exact <= stated <= exact * (1 + mpmath.mpf("5e-12")) + mpmath.mpf("2e-13")
        )


def test_equal_normalisers_halve_the_loss_also_on_a_directed_ring():
    ring = [[i, (i + 1) % 7] for i in range(7)]
    for directed in (True, False):
        mechanism = GraphExponential.from_graph(ring, epsilon=6, directed=directed)
        assert mechanism.loss().epsilon == pytest.approx(3.0, abs=1e-9)


def test_unequal_normalisers_can_cost_more_than_half():
    # A clique with a tail: few nodes are near the end of the tail.
    clique = [[i, j] for i in range(12) for j in range(i)]
    mechanism = GraphExponential.from_graph(
        [*clique, [0, 12]], epsilon=4, directed=False
    )
    assert 2.05 < mechanism.loss().epsilon < 4


def test_the_loss_is_stated_for_the_discrete_metric_only():
    mechanism = GraphExponential([[0, 1], [1, 0]], epsilon=1)
    assert mechanism.loss(DiscreteMetric()).epsilon == mechanism.loss().epsilon
    with pytest.raises(MismatchError, match="discrete metric"):
        mechanism.loss(LpNorm(1))


def test_blocks_put_together_are_the_channel():
    mechanism = GraphExponential.from_graph(random_arcs(11, 5, 2), epsilon=3)
    laws = laws_of(mechanism)
    rows = np.concatenate([block for _, block in mechanism.row_blocks(4)])
    columns = np.concatenate(list(mechanism.column_blocks(3)), axis=1)
    assert rows == pytest.approx(laws, abs=1e-15)
    assert columns == pytest.approx(laws, abs=1e-15)
    assert laws.sum(axis=1) == pytest.approx(np.ones(11), abs=1e-14)


def test_total_variation_is_the_largest_over_pairs():
    mechanism = GraphExponential.from_graph(random_arcs(10, 5, 4), epsilon=7)
    laws = laws_of(mechanism)
    worst = max(np.abs(a - b).sum() / 2 for a in laws for b in laws)
    assert mechanism.total_variation() == pytest.approx(worst, rel=1e-10)
    assert mechanism.total_variation() >= worst


def test_the_total_variation_of_a_large_graph_is_refused_with_what_bounds_it(
    monkeypatch,
):
    monkeypatch.setattr("undertow.mechanisms.graph._PAIRED", 9)
    mechanism = GraphExponential.from_graph(random_arcs(10, 5, 4), epsilon=7)
    with pytest.raises(NotApplicable, match="tanh"):
        mechanism.total_variation()


def test_extreme_levels_neither_overflow_nor_vanish():
    ring = [[i, (i + 1) % 5] for i in range(5)]
    sharp = GraphExponential.from_graph(ring, epsilon=5000, directed=False)
    assert sharp.pmf(2)[2] == 1.0
    assert sharp.loss().epsilon == pytest.approx(2500)
    flat = GraphExponential.from_graph(ring, epsilon="1e-9", directed=False)
    assert flat.pmf(0) == pytest.approx(np.full(5, 0.2), abs=1e-9)
    assert 0 < flat.loss().epsilon <= 1e-9


def test_other_distances_are_taken_if_they_obey_the_triangle_inequality():
    places = np.array([0.0, 0.5, 2.0])
    table = np.abs(places[:, None] - places)
    mechanism = GraphExponential(table, epsilon=2, nodes=["a", "b", "c"])
    assert mechanism.diameter == 2
    assert mechanism.rate == Fraction(1, 2)
    weights = np.exp(-0.5 * table[1])
    assert mechanism.pmf("b") == pytest.approx(weights / weights.sum())
    # Entries of 1 that do not connect the nodes are distances like others.
    islands = GraphExponential([[0, 1, 3], [1, 0, 3], [3, 3, 0]], epsilon=1)
    assert islands.diameter == 3
    with pytest.raises(AssumptionError, match=r"triangle inequality.*node 0"):
        GraphExponential([[0, 5, 1], [5, 0, 1], [1, 1, 0]], epsilon=1)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[0, 1]], "square"),
        ([[0, 1], [1]], "all lengths"),
        ([[0, np.inf], [1, 0]], "finite"),
        ([[0, 0], [1, 0]], "positive to others"),
        ([[1, 1], [1, 0]], "zero from a node to itself"),
        ([[0]], "two nodes or more"),
    ],
)
def test_what_is_no_distance_is_refused(table, message):
    with pytest.raises(ModelError, match=message):
        GraphExponential(table, epsilon=1)


def test_a_large_table_must_count_hops():
    with pytest.raises(NotApplicable, match="from_graph"):
        GraphExponential(2.5 * (1 - np.eye(1001)), epsilon=1)


def test_names_and_epsilon_are_checked():
    with pytest.raises(MismatchError, match="name each of the 2 rows"):
        GraphExponential([[0, 1], [1, 0]], epsilon=1, nodes="abc")
    with pytest.raises(ValueError, match="epsilon must be positive"):
        GraphExponential([[0, 1], [1, 0]], epsilon=0)
    mechanism = GraphExponential([[0, 1], [1, 0]], epsilon=1)
    with pytest.raises(ValueError, match="among the 2 nodes"):
        mechanism.pmf(2)
    assert repr(mechanism) == "GraphExponential(2 nodes, diameter 1, epsilon=1)"


@pytest.mark.parametrize("truths", [[[0]], [0.5]])
def test_nodes_to_draw_for_must_be_numbers(truths):
    mechanism = GraphExponential([[0, 1], [1, 0]], epsilon=1)
    with pytest.raises(TypeError, match="one-dimensional array of integers"):
        mechanism.sample_nodes(truths)
    with pytest.raises(ValueError, match=r"0\.\.1"):
        mechanism.sample_nodes([2])


def test_a_secure_draw_says_so_and_uses_names():
    mechanism = GraphExponential([[0, 1], [1, 0]], epsilon=200, nodes=["in", "out"])
    draw = mechanism.sample(["in", "out", "out"])
    assert draw.values.tolist() == ["in", "out", "out"]
    assert not draw.simulated


@pytest.mark.statistical
@pytest.mark.parametrize(("shift", "accept"), [(0.0, True), (1.5, False)])
def test_the_sampler_has_the_law_and_no_other(shift, accept):
    """False-alarm rate 1e-6 by the chi-square test."""
    arcs = random_arcs(8, 4, 6)
    mechanism = GraphExponential.from_graph(arcs, epsilon=5)
    claimed = GraphExponential.from_graph(arcs, epsilon=5 + shift)
    truths = np.full(40_000, 3)
    drawn = mechanism.sample_nodes(truths, source=SimulatedSource(11)).values
    counts = np.bincount(drawn, minlength=8)
    p_value = stats.chisquare(counts, 40_000 * claimed.pmf(3)).pvalue
    assert (p_value > 1e-6) == accept


@pytest.mark.parametrize("epsilon", ["1e-9", "0.3", "40", "600"])
@pytest.mark.parametrize("directed", [True, False])
def test_the_loss_on_a_graph_is_never_below_the_largest_ratio(epsilon, directed):
    arcs = [[0, 1], [1, 2], [2, 3], [3, 4], [4, 0], [2, 0], [4, 5], [5, 0]]
    mechanism = GraphExponential.from_graph(arcs, epsilon=epsilon, directed=directed)
    with mp.workdps(50):
        rate = mp.mpf(mechanism.rate.numerator) / mechanism.rate.denominator
        odds = [[-rate * int(d) for d in row] for row in mechanism.distances]
        norms = [mp.log(mp.fsum(mp.e**x for x in row)) for row in odds]
        logs = [[x - z for x in row] for row, z in zip(odds, norms, strict=True)]
        worst = max(
            a - b for p in logs for q in logs for a, b in zip(p, q, strict=True)
        )
        loss = mp.mpf(mechanism.loss().epsilon)
        assert 0 <= loss - worst <= mp.mpf("1e-12") + worst * mp.mpf("1e-11")
