"""Steps learnt and held out, the self-paired measure, and the crowd's mode."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.mechanisms.local import GeneralizedResponse
from undertow.risk import Prior
from undertow.risk.attacks import (
    CorrelationGuess,
    exact_correlation_figures,
    exact_estimation_figures,
    fit_transitions,
)
from undertow_studies.dataset import Walks, city_stand_in, walks_stand_in
from undertow_studies.sauer_city import (
    EPSILONS,
    MEASURED,
    Moves,
    _baselines,
    measured_response,
    read_moves,
    response_curve,
    response_figures,
)
from undertow_studies.sauer_report import crowd_figures

P = [[0, 0.7, 0.3], [0.5, 0, 0.5], [0.2, 0.8, 0]]
BEFORE = np.array([0.5, 0.3, 0.2])


def toy() -> Moves:
    from scipy import sparse

    chain = sparse.csr_array(np.array(P))
    return Moves(chain, chain, BEFORE, BEFORE @ chain)


def trips(held: list[bool]) -> Walks:
    nodes = (np.array([0, 1, 2, 2]), np.array([2, 1, 0]), np.array([0, 1]))
    inside = (
        np.array([True, True, False, True]),
        np.array([False, True, True]),
        np.array([True, True]),
    )
    return Walks(nodes, inside, np.array(held), np.arange(3), "toy")


def test_T_4_5_the_moves_of_the_toy_have_its_collision_and_figures():
    moves = toy()
    assert moves.now == pytest.approx([0.19, 0.51, 0.3])
    assert moves.collision == pytest.approx(0.3862)
    assert moves.seen == pytest.approx(1)
    figures = exact_correlation_figures(
        GeneralizedResponse(3, 3), moves.model, previous_law=moves.before
    )
    assert figures.advantage == pytest.approx(0.3814422093, abs=1e-9)


def test_held_out_trips_are_attacked_and_the_others_learnt_from():
    moves = read_moves(trips([False, False, True]), 3)
    assert moves.steps.toarray().tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
    assert moves.before.tolist() == [1, 0, 0]
    assert moves.now.tolist() == [0, 1, 0]
    learnt = fit_transitions([[0, 1, 2, 2], [2, 1, 0]], 3)
    assert np.array_equal(moves.model.toarray(), learnt.toarray())


def test_reports_outside_cut_a_trip_where_only_those_inside_count():
    moves = read_moves(trips([False, False, True]), 3, visits="inside")
    assert np.array_equal(
        moves.model.toarray(), fit_transitions([[0, 1], [2], [1, 0]], 3).toarray()
    )


def test_where_nothing_is_held_out_a_tenth_is():
    nodes = tuple(np.array([0, 1]) for _ in range(2000))
    inside = (np.array([True, True]),) * 2000
    walks = Walks(nodes, inside, np.zeros(2000, dtype=bool), np.arange(2000), "many")
    moves = read_moves(walks, 2)
    assert moves.seen == pytest.approx(1)
    assert np.array_equal(
        read_moves(walks, 2).before, moves.before
    )  # the hash is no draw


def test_the_stand_in_walks_along_streets_and_holds_out_a_sixth():
    city = city_stand_in(rows=4, columns=5, rng=np.random.default_rng(0))
    walks = walks_stand_in(city, trips=60, rng=np.random.default_rng(1))
    streets = {tuple(edge) for edge in city.edges.tolist()}
    for walk in walks.nodes:
        for step in zip(walk[:-1].tolist(), walk[1:].tolist(), strict=True):
            assert step[0] == step[1] or step in streets
    assert walks.held_out.sum() == 10
    assert any((walk[1:] == walk[:-1]).any() for walk in walks.nodes)


@pytest.mark.parametrize("threshold", [0.0, 0.4])
def test_the_baseline_of_each_report_is_that_of_the_attack_on_all_targets(threshold):
    model = np.array([[0, 0.7, 0.3], [0.5, 0, 0.5], [0, 0, 0]])
    moves = Moves(*(fit_of(m) for m in (model, np.array(P))), BEFORE, BEFORE @ P)
    trusted = moves.model.copy()
    trusted.data = (trusted.data > threshold).astype(float)
    unseen = np.diff(moves.model.indptr) == 0
    assert unseen.any()
    mine = _baselines(moves.joint.tocoo(), moves.model, trusted, unseen)
    attack = CorrelationGuess(moves.model, threshold)
    joint = moves.joint.toarray()
    by_hand = sum(joint[a] @ attack.guess_law([0, 1, 2], a).T for a in range(3))
    assert mine == pytest.approx(by_hand, abs=1e-14)


def fit_of(matrix):
    from scipy import sparse

    found = sparse.csr_array(matrix)
    found.eliminate_zeros()
    return found


@pytest.mark.statistical
@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_the_measured_attack_covers_the_exact_one(threshold):
    # Certified limits of confidence 1 - 1e-5 at ten levels: false alarm below 1e-3.
    moves = toy()
    found = measured_response(moves, threshold, runs=2000, rng=np.random.default_rng(4))
    assert tuple(found) == MEASURED
    for e, estimate in found.items():
        exact = exact_correlation_figures(
            GeneralizedResponse(3, e),
            moves.model,
            previous_law=moves.before,
            threshold=threshold,
        )
        limits = estimate.advantage
        assert limits.low <= exact.advantage <= limits.high, e
        assert limits.high - limits.low < 0.1


@pytest.mark.statistical
@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_the_mode_of_a_crowd_has_the_exact_figures(epsilon):
    # Certified limits of confidence 1 - 1e-5: false alarm below 1e-4.
    prior, crowd = Prior(3, [0.5, 0.3, 0.2]), np.array([0, 0, 1, 2, 2])
    exact = exact_estimation_figures(
        GeneralizedResponse(3, epsilon), prior, background=crowd
    )
    rng = np.random.default_rng(6)
    found = crowd_figures(prior, crowd, epsilon=epsilon, runs=50_000, rng=rng)
    for name in ("success", "advantage"):
        limits = getattr(found, name)
        assert limits.low <= getattr(exact, name) <= limits.high, name
        assert limits.value == pytest.approx(getattr(exact, name), abs=0.005)


def test_a_crowd_far_from_a_tie_cannot_be_moved():
    prior = Prior(3, [0.5, 0.3, 0.2])
    crowd = np.zeros(20, dtype=np.intp)
    found = crowd_figures(
        prior, crowd, epsilon=40.0, runs=5, rng=np.random.default_rng(0)
    )
    assert found.success.value == pytest.approx(0.5)
    assert found.advantage.value == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    ("size", "collision", "values"),
    [
        (3052, 0.03, (0.044693, 0.851948, 0.969095, 0.969994)),
        (5356, 0.05, (0.025446, 0.764174, 0.948446, 0.949990)),
    ],
    ids=["porto", "beijing"],
)
def test_T_8_2_the_report_under_the_published_collision(size, collision, values):
    found = [
        response_figures(size, e, collision=collision).advantage
        for e in (5, 10, 15, 20)
    ]
    assert found == pytest.approx(values, abs=6e-7)


def test_trap_a04_the_correction_shows_under_a_skewed_prior_only():
    flat = response_figures(3052, 20.0, collision=1 / 3052)
    skew = response_figures(3052, 20.0, collision=0.03)
    assert flat.correction == pytest.approx(1 / 3052)
    assert skew.correction == pytest.approx(0.03, abs=1e-5)


def test_the_curve_of_randomised_response_has_its_three_pieces():
    f = response_curve(4, 1.0)
    response = GeneralizedResponse(4, 1)
    p, q = float(response.keep), float(response.noise)
    assert f(np.array([q / 2, (q + 1 - p) / 2])) == pytest.approx(
        [1 - np.e * q / 2, 4 * q - (q + 1 - p) / 2], abs=1e-9
    )
    assert len(EPSILONS) == 20
