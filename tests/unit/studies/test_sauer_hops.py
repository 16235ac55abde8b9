"""The exponential mechanism by distances: against the matrix, the LP and by hand."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.datasets import RoadNetwork, grid_graph
from undertow.mechanisms.graph import GraphExponential
from undertow.risk.attacks import (
    exact_correlation_figures,
    exact_report_figures,
    fit_transitions,
)
from undertow_studies.sauer_city import Moves
from undertow_studies.sauer_graph import CityHops, Triples, city_hops


def directed_city(size: int = 14, seed: int = 3) -> RoadNetwork:
    """A ring one way, with random one-way shortcuts."""
    rng = np.random.default_rng(seed)
    ring = np.stack([np.arange(size), (np.arange(size) + 1) % size], axis=1)
    extra = rng.integers(size, size=(8, 2))
    both = np.concatenate([ring, extra[extra[:, 0] != extra[:, 1]]])
    ones = np.ones(size, dtype=np.int64)
    zeros = np.zeros(size)
    edges = np.unique(both, axis=0).astype(np.intp)
    return RoadNetwork(zeros, zeros, edges, ones, ones, "ring", real=False)


CITY = directed_city()
HOPS = city_hops(CITY)


def some_moves(size: int = 14, seed: int = 5) -> Moves:
    """A model with an empty row, and steps it has not seen."""
    rng = np.random.default_rng(seed)
    model = fit_transitions([rng.integers(1, size, size=30)], size)
    steps = fit_transitions([np.append(rng.integers(size, size=60), [0, 4])], size)
    before = rng.random(size) * (np.diff(steps.indptr) > 0)
    before /= before.sum()
    return Moves(model, steps, before, np.asarray(before @ steps).reshape(-1))


def test_hops_are_those_of_the_network():
    assert np.array_equal(HOPS.hops, CITY.hops)
    grid = grid_graph(5, 10)
    assert np.array_equal(city_hops(grid).hops, grid.hops)


def test_hops_are_kept_for_the_next_study_on_the_same_graph():
    assert city_hops(directed_city()) is HOPS
    assert city_hops(directed_city(seed=4)) is not HOPS


def test_a_graph_with_a_gap_is_refused():
    ones, zeros = np.ones(3, dtype=np.int64), np.zeros(3)
    edges = np.array([[0, 1], [1, 0], [1, 2]], dtype=np.intp)
    gap = RoadNetwork(zeros, zeros, edges, ones, ones, "gap", real=False)
    with pytest.raises(ValueError, match="strongly connected"):
        city_hops(gap)


@pytest.mark.parametrize("eta", [0, 1, 3, 50])
@pytest.mark.parametrize("epsilon", [1.0, 10.0, 20.0])
def test_the_report_has_the_figures_of_the_whole_channel(epsilon, eta):
    mechanism = GraphExponential.from_graph(CITY.edges, epsilon=epsilon)
    whole = exact_report_figures(mechanism, eta=eta)
    mine = HOPS.report_figures((epsilon,), eta)[0]
    assert mine.to_dict() == pytest.approx(whole.to_dict(), abs=1e-12)


def test_T_8_3_the_figures_of_a_five_by_ten_grid():
    hops = city_hops(grid_graph(5, 10))
    found = {e: hops.report_figures((e,), 0)[0] for e in (1.0, 10.0, 20.0)}
    assert found[1.0].success == pytest.approx(0.02404438, abs=6e-9)
    assert found[10.0].success == pytest.approx(0.08703569, abs=6e-9)
    assert found[20.0].advantage == pytest.approx(0.18425092, abs=6e-9)
    near = hops.report_figures((10.0,), 3)[0]
    assert near.success == pytest.approx(0.68398715, abs=6e-9)
    assert near.advantage == pytest.approx(0.33510278, abs=6e-9)


@pytest.mark.parametrize("epsilon", [1.0, 20.0])
def test_trap_a10_the_exact_level_is_that_of_the_mechanism_not_the_nominal(epsilon):
    mechanism = GraphExponential.from_graph(CITY.edges, epsilon=epsilon)
    assert HOPS.level(epsilon) == pytest.approx(mechanism.loss().epsilon, abs=1e-9)
    ring = np.array([[i, (i + 1) % 6] for i in range(6)], dtype=np.intp)
    both = np.concatenate([ring, ring[:, ::-1]])
    ones, zeros = np.ones(6, dtype=np.int64), np.zeros(6)
    cycle = RoadNetwork(zeros, zeros, both, ones, ones, "cycle", real=False)
    assert city_hops(cycle).level(epsilon) == pytest.approx(epsilon / 2, abs=1e-9)


def test_trap_a09_the_ball_of_truths_is_not_the_ball_around_the_guess():
    weights = np.arange(1.0, 15.0)
    hit = HOPS.hops <= 2  # truth, guess
    assert HOPS.ball(weights, 2) == pytest.approx(weights @ hit)
    around = HOPS.profile(weights)[:, :3].sum(axis=1)
    assert around == pytest.approx(hit @ weights)
    assert not np.allclose(around, HOPS.ball(weights, 2))


@pytest.mark.parametrize("epsilon", [1.0, 15.0])
def test_the_correlation_attack_has_the_figures_of_the_whole_channel(epsilon):
    moves = some_moves()
    triples = Triples(HOPS, moves)
    assert (np.diff(moves.model.indptr)[triples.pairs.row] == 0).any()
    mechanism = GraphExponential.from_graph(CITY.edges, epsilon=epsilon)
    found = triples.figures(epsilon, (0, 2, 4, 40))
    for radius, mine in zip((0, 2, 4, 40), found, strict=True):
        whole = exact_correlation_figures(
            mechanism,
            moves.model,
            previous_law=moves.before,
            steps=moves.steps,
            hits=(CITY.hops <= radius).T,
        )
        assert mine.to_dict() == pytest.approx(whole.to_dict(), abs=1e-12), radius
    assert found[-1].advantage == pytest.approx(0, abs=1e-12)


@pytest.mark.statistical
@pytest.mark.parametrize("radius", [0, 2])
def test_the_measured_correlation_attack_covers_the_exact_one(radius):
    # Certified limits of confidence 1 - 1e-5, two figures, two radii: below 1e-4.
    triples = Triples(HOPS, some_moves())
    exact = triples.figures(15.0, (radius,))[0]
    rng = np.random.default_rng(8)
    found = triples.measure(15.0, radius, trials=20_000, rng=rng)
    for name in ("success", "advantage"):
        limits = getattr(found, name)
        assert limits.low <= getattr(exact, name) <= limits.high
        assert limits.high - limits.low < 0.06


@pytest.mark.statistical
def test_reports_are_drawn_from_the_mechanism():
    # Chi-square with 13 degrees of freedom: false alarm 1e-5.
    reports = HOPS.sample(np.full(20_000, 3), 8.0, rng=np.random.default_rng(2))
    law = GraphExponential.from_graph(CITY.edges, epsilon=8).pmf(3)
    counts = np.bincount(reports, minlength=14)
    statistic = ((counts - 20_000 * law) ** 2 / (20_000 * law)).sum()
    assert statistic < 48.0


def test_nobody_to_sample_gives_nothing():
    empty = np.zeros(0, dtype=np.intp)
    assert len(HOPS.sample(empty, 1.0, rng=np.random.default_rng(0))) == 0


def test_a_table_of_its_own_serves_too():
    path = np.abs(np.subtract.outer(np.arange(5), np.arange(5))).astype(np.uint8)
    found = CityHops(path).report_figures((1.0,), 1)[0]
    assert found.success == pytest.approx(0.57971620, abs=6e-9)
    assert found.advantage == pytest.approx(0.05630603, abs=6e-9)
