"""The correlation attack where a place has no name, and graphs against brute force."""

import mpmath as mp
import numpy as np
import pytest

from undertow.errors import MismatchError
from undertow.mechanisms.graph import GraphExponential
from undertow.mechanisms.local import GeneralizedResponse
from undertow.risk.attacks import (
    CorrelationGuess,
    attack_figures,
    exact_correlation_figures,
    transition_threat,
)
from undertow.risk.channel import Channel

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
