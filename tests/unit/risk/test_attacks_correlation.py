"""The correlation attack, its Markov models and its exact figures."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy import sparse

from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.mechanisms.graph import GraphExponential
from undertow.mechanisms.local import GeneralizedResponse
from undertow.risk.attacks import (
    CorrelationGuess,
    StepSampler,
    attack_figures,
    exact_correlation_figures,
    fit_transitions,
    graph_success,
    transition_threat,
)
from undertow.risk.channel import Channel, ProtocolSampler
from undertow.risk.estimate import estimate_attack
from undertow.risk.finite import ABSTAIN
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat


def random_model(rng, m, *, empty=0):
    """A sparse model; the last rows may be empty."""
    table = rng.random((m, m)) * (rng.random((m, m)) < 0.6) + 1e-3 * np.eye(m)
    table /= table.sum(axis=1, keepdims=True)
    if empty:
        table[-empty:] = 0
    return table


def by_enumeration(C, P, T, law, threshold, hits):
    """All places before and now, reports and guesses, one by one."""
    m = len(P)
    mean = (law @ T) @ C
    success = correction = 0.0
    for a, b, theta in itertools.product(range(m), repeat=3):
        if not P[a].any() or P[a, theta] > threshold:
            chance = float(hits[theta, b])
        else:
            chance = float(P[a] @ hits[:, b])
        success += law[a] * T[a, b] * C[b, theta] * chance
        correction += law[a] * T[a, b] * mean[theta] * chance
    return success, correction


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("threshold", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("empty", [0, 2])
def test_the_exact_figures_are_those_of_all_cases(seed, threshold, empty):
    rng = np.random.default_rng(seed)
    P, T = random_model(rng, 6, empty=empty), random_model(rng, 6)
    law = rng.dirichlet(np.ones(6))
    hits = rng.random((6, 6)) < 0.4
    np.fill_diagonal(hits, True)
    protocol = GeneralizedResponse(6, 1.5)
    response = np.where(np.eye(6, dtype=bool), protocol.keep, protocol.noise)
    cases = [
        (Channel(rng.dirichlet(np.ones(6), size=6)), hits),
        (Channel(rng.dirichlet(np.ones(6), size=6)), None),
        (protocol, None),
        (protocol, hits),
    ]
    for source, rule in cases:
        found = exact_correlation_figures(
            source,
            sparse.csr_array(P),
            previous_law=law,
            threshold=threshold,
            steps=T,
            hits=rule,
        )
        C = source.matrix if isinstance(source, Channel) else response.astype(float)
        expected = by_enumeration(
            C, P, T, law, threshold, np.eye(6) if rule is None else rule
        )
        assert found.success == pytest.approx(expected[0], abs=1e-13)
        assert found.correction == pytest.approx(expected[1], abs=1e-13)
        assert found.advantage == pytest.approx(expected[0] - expected[1], abs=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_the_attack_on_pairs_has_the_factored_figures(seed):
    rng = np.random.default_rng(seed)
    P, law = random_model(rng, 5), rng.dirichlet(np.ones(5))
    threat = transition_threat(P, law)
    C = rng.dirichlet(np.ones(5), size=5)
    seen = Channel(C[[now for _, now in threat.support]])
    for threshold in (0.0, 0.3):
        attack = CorrelationGuess(P, threshold, threat=threat)
        one = attack_figures(seen, threat, attack=attack)
        two = exact_correlation_figures(
            Channel(C), P, previous_law=law, threshold=threshold
        )
        assert one.success == pytest.approx(two.success, abs=1e-13)
        assert one.advantage == pytest.approx(two.advantage, abs=1e-13)


@pytest.mark.parametrize("seed", range(4))
def test_doubt_costs_advantage_where_the_model_is_right(seed):
    rng = np.random.default_rng(seed)
    P, law = random_model(rng, 7), rng.dirichlet(np.ones(7))
    now = law @ P
    for epsilon in (0.5, 3, 9):
        protocol = GeneralizedResponse(7, epsilon)
        gains = [
            exact_correlation_figures(
                protocol, P, previous_law=law, threshold=threshold
            ).advantage
            for threshold in (0.0, 0.1, 0.2, 0.4, 1.0)
        ]
        assert gains == sorted(gains, reverse=True)
        ceiling = float(protocol.keep - protocol.noise) * (1 - now @ now)
        assert 0 <= gains[0] <= ceiling + 1e-12
        assert gains[-1] == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("empty", [0, 2])
def test_the_advantage_is_a_sum_over_trusted_steps(empty):
    rng = np.random.default_rng(17)
    P, T = random_model(rng, 6, empty=empty), random_model(rng, 6)
    law, protocol = rng.dirichlet(np.ones(6)), GeneralizedResponse(6, 2)
    now, seen = law @ T, P.any(axis=1)
    for threshold in (0.0, 0.15):
        trusted = (P > threshold) | ~seen[:, None]
        common = (T * P).sum(axis=1, keepdims=True)
        terms = trusted * (T * (1 - now - P) + now * common)
        spread = float(protocol.keep - protocol.noise)
        found = exact_correlation_figures(
            protocol, P, previous_law=law, threshold=threshold, steps=T
        )
        assert found.advantage == pytest.approx(spread * (law @ terms).sum(), abs=1e-13)


def test_the_figures_within_a_radius_on_a_graph():
    ring = [[i, (i + 1) % 6] for i in range(6)]
    mechanism = GraphExponential.from_graph(
        ring, epsilon=8, directed=False, nodes="abcdef"
    )
    P = random_model(np.random.default_rng(2), 6)
    law = np.full(6, 1 / 6)
    C = np.stack([mechanism.pmf(node) for node in "abcdef"])
    for eta in (0, 1, 3):
        hits = graph_success(mechanism, eta=eta).matrix(range(6))
        found = exact_correlation_figures(mechanism, P, previous_law=law, hits=hits)
        success, correction = by_enumeration(C, P, P, law, 0.0, hits)
        assert found.success == pytest.approx(success, abs=1e-13)
        assert found.advantage == pytest.approx(success - correction, abs=1e-13)
    assert found.advantage == pytest.approx(0.0, abs=1e-13)


def test_draws_follow_the_law():
    P = [[0, 0.7, 0.3, 0], [0.5, 0, 0.25, 0.25], [0, 0, 0, 1], [0, 0, 0, 0]]
    attack, rng = CorrelationGuess(P, 0.25), np.random.default_rng(7)
    assert attack.unseen.tolist() == [3]
    for known in range(4):
        for report in range(4):
            law = attack.guess_law([report], known)[0]
            drawn = attack.guess(np.full(4000, report), known, rng=rng)
            shares = np.bincount(drawn, minlength=4) / 4000
            assert shares == pytest.approx(law, abs=0.04)
    # Strict: a step of exactly the threshold is doubted.
    assert attack.guess_law([2], 1)[0].tolist() == [0.5, 0, 0.25, 0.25]


@pytest.mark.statistical
def test_the_measured_attack_has_the_exact_figures():
    """The interval of confidence 1 - 1e-6 covers the exact advantage."""
    P, law = random_model(np.random.default_rng(1), 4), np.full(4, 0.25)
    protocol, threat = GeneralizedResponse(4, 2), transition_threat(P, law)

    exact = exact_correlation_figures(protocol, P, previous_law=law)
    measured = estimate_attack(
        StepSampler(ProtocolSampler(protocol), threat),
        CorrelationGuess(P, threat=threat),
        threat,
        trials=10_000,
        confidence=1 - 1e-6,
        rng=np.random.default_rng(4),
    )
    low, high = measured.advantage.low, measured.advantage.high
    assert low <= exact.advantage <= high
    assert high - low < 0.15


def test_the_threat_knows_the_place_before_and_asks_for_the_one_now():
    threat = transition_threat([[0, 1.0], [0.25, 0.75]], [0.5, 0.5])
    assert threat.support == ((0, 1), (1, 0), (1, 1))
    assert threat.prior.pmf.tolist() == [0.5, 0.125, 0.375]
    assert threat.labels.tolist() == [0, 1, 1]
    assert threat.success.matrix(threat.support)[0].tolist() == [True, False, True]
    with pytest.raises(MismatchError, match="empty"):
        transition_threat([[0, 1.0], [0, 0]], [0.5, 0.5])


def test_a_place_that_no_target_is_at_is_declined():
    steps = [[0, 1.0, 0], [0, 1.0, 0], [0, 1.0, 0]]
    threat = transition_threat(steps, [1.0, 0, 0], abstain=True)
    attack = CorrelationGuess(np.full((3, 3), 1 / 3), threat=threat)
    rng = np.random.default_rng(0)
    assert attack.guess([1, 2], 0, rng=rng).tolist() == [0, ABSTAIN]
    assert attack.guess_law([2], 0).sum() == 0
    doubting = CorrelationGuess(np.full((3, 3), 1 / 3), 0.5, threat=threat)
    assert doubting.guess_law([0], 0).tolist() == [[pytest.approx(1 / 3)]]


def test_steps_are_counted_within_trips():
    model = fit_transitions([[0, 1, 1, 2], [], [2], [2, 0]], 4)
    expected = [[0, 1, 0, 0], [0, 0.5, 0.5, 0], [1, 0, 0, 0], [0, 0, 0, 0]]
    assert model.toarray().tolist() == expected
    folded = fit_transitions([[0, 1, 1, 2], []], 4, collapse=True)
    assert folded.toarray()[1].tolist() == [0, 0, 1, 0]
    smooth = fit_transitions([[0, 1]], 2, smoothing=0.5)
    assert smooth.toarray().tolist() == [[0.25, 0.75], [0.5, 0.5]]


def test_a_fitted_model_comes_near_the_truth():
    rng, P = np.random.default_rng(5), random_model(np.random.default_rng(3), 4)
    trip = [0]
    for _ in range(20_000):
        trip.append(int(rng.choice(4, p=P[trip[-1]])))
    assert fit_transitions([trip], 4).toarray() == pytest.approx(P, abs=0.05)


@pytest.mark.parametrize(
    ("trips", "message"),
    [([[0, 5]], "0..2"), ([[0.5]], "numbers of places"), ([[[0]]], "sequence")],
)
def test_what_is_no_trip_is_refused(trips, message):
    with pytest.raises(ModelError, match=message):
        fit_transitions(trips, 3)


def test_models_and_sizes_are_checked():
    with pytest.raises(NotApplicable, match="smoothing=0"):
        fit_transitions([[0, 1]], 10_000, smoothing=1)
    with pytest.raises(ModelError, match="sum 1"):
        CorrelationGuess([[0.5, 0.4], [0, 1]])
    for table in ([[0.5, 0.5]], [[1.0], [0.5, 0.5]], "steps"):
        with pytest.raises(ModelError, match="square"):
            CorrelationGuess(table)
    with pytest.raises(ValueError, match="threshold"):
        CorrelationGuess(np.eye(2), 1.5)
    P, law = np.eye(3), np.full(3, 1 / 3)
    for source in (GeneralizedResponse(4, 1), Channel(np.full((3, 2), 0.5))):
        with pytest.raises(MismatchError, match="source must be"):
            exact_correlation_figures(source, P, previous_law=law)
    good = GeneralizedResponse(3, 1)
    with pytest.raises(MismatchError, match="steps must be on"):
        exact_correlation_figures(good, P, previous_law=[0.5, 0.5], steps=np.eye(2))
    with pytest.raises(MismatchError, match="hits must be"):
        exact_correlation_figures(good, P, previous_law=law, hits=np.eye(3))
    with pytest.raises(MismatchError, match="empty one"):
        exact_correlation_figures(good, np.zeros((3, 3)), previous_law=law)


@pytest.mark.parametrize(
    ("support", "knowledge", "message"),
    [
        ("abc", Knowledge.none(), "pairs of numbers"),
        ([(0, 1), (2, 5)], Knowledge.full(), r"0\.\.2"),
        ([(0, 1), (1, 1)], Knowledge.none(), "place before"),
    ],
    ids=["names", "far", "blind"],
)
def test_the_threat_must_be_on_pairs_of_places(support, knowledge, message):
    threat = Threat(Prior.uniform(support), Success.exact(), knowledge)
    with pytest.raises(MismatchError, match=message):
        CorrelationGuess(np.eye(3), threat=threat)


def test_blocks_of_many_places_are_put_together():
    m, rng = 600, np.random.default_rng(0)
    trips = [rng.integers(m, size=20) for _ in range(200)]
    P, protocol = fit_transitions(trips, m), GeneralizedResponse(m, 5)
    law = np.zeros(m)
    law[:200] = np.diff(P.indptr)[:200] > 0  # nobody starts in the last blocks
    law /= law.sum()
    laws = np.where(np.eye(m, dtype=bool), protocol.keep, protocol.noise)
    channel = Channel(laws.astype(float), [f"place {i}" for i in range(m)])
    one = exact_correlation_figures(protocol, P, previous_law=law)
    two = exact_correlation_figures(channel, P, previous_law=law)
    assert one.success == pytest.approx(two.success, abs=1e-12)
    assert one.advantage == pytest.approx(two.advantage, abs=1e-12)


# Nobody is ever at place 2, and the model has never seen place 1.
STEPS = np.array([[0.4, 0.6, 0.0], [1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])


MODEL = np.array([[0.3, 0.7, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])


LAW = [0.5, 0.5, 0.0]


def test_an_attack_that_may_have_to_decline_needs_a_threat_that_lets_it():
    threat = transition_threat(STEPS, LAW)
    with pytest.raises(MismatchError, match=r"must allow declining.*abstain=True"):
        CorrelationGuess(MODEL, threat=threat)
    leads = np.array([[0.3, 0.3, 0.4], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    with pytest.raises(MismatchError, match="must allow declining"):
        CorrelationGuess(leads, threat=threat)


def test_a_model_that_names_reachable_places_needs_no_declining():
    threat = transition_threat(STEPS, LAW)
    assert CorrelationGuess(STEPS, threat=threat).guess_law([2], 0).sum() == 1


@pytest.mark.parametrize("threshold", [0.0, 0.5])
def test_the_exact_figures_count_a_declined_answer_as_a_miss(threshold):
    response = GeneralizedResponse(3, 1)
    p, q = float(response.keep), float(response.noise)
    table = np.where(np.eye(3, dtype=bool), p, q)
    threat = transition_threat(STEPS, LAW, abstain=True)
    attack = CorrelationGuess(MODEL, threshold, threat=threat)
    rows = Channel([table[now] for _, now in threat.support], threat.support)
    by_pairs = attack_figures(rows, threat, attack=attack)
    by_sums = exact_correlation_figures(
        response, MODEL, previous_law=LAW, threshold=threshold, steps=STEPS
    )
    for name in ("success", "correction", "advantage"):
        assert getattr(by_pairs, name) == pytest.approx(
            getattr(by_sums, name), abs=1e-12
        )
