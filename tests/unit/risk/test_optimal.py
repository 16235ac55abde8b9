"""The best attack, its ties and its refusals, and the tables of given attacks."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.risk.channel import Channel, ChannelStream
from undertow.risk.exact import advantage, success_rate
from undertow.risk.finite import ABSTAIN, Decision, OptimalAttack, attack_risk
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

P = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
SKEWED = Prior(3, [0.5, 0.3, 0.2])


@pytest.mark.parametrize(
    "threat",
    [
        Threat(SKEWED),
        Threat.membership(SKEWED),
        Threat(SKEWED, Success.within("absolute", 1)),
        Threat(SKEWED, Success.within("absolute", 1), Knowledge.full()),
        Threat(SKEWED, Success.within("absolute", 1), Knowledge.full(), abstain=True),
        Threat(SKEWED, knowledge=Knowledge.from_labels([0, 1, 0]), abstain=True),
    ],
    ids=lambda threat: threat.summary,
)
def test_both_tables_of_the_attack_attain_the_exact_advantage(threat):
    attack, value = OptimalAttack(P, threat), advantage(P, threat).value
    for decision in (attack.decision(), attack.randomised_decision()):
        found = attack_risk(P, threat, decision=decision)
        assert found.advantage == pytest.approx(value, abs=1e-12)
        difference = found.success - found.correction
        assert found.advantage == pytest.approx(difference, abs=1e-12)


def test_scores_are_posterior_minus_prior():
    posterior = SKEWED.pmf * P.matrix[:, 0] / 0.38
    scores = OptimalAttack(P, Threat(SKEWED)).scores(0)
    assert scores == pytest.approx(posterior - SKEWED.pmf, abs=1e-14)


def test_scores_of_an_impossible_output_are_zero():
    channel = Channel([[1.0, 0.0], [1.0, 0.0]])
    assert OptimalAttack(channel, Threat(Prior.uniform(2))).scores(1).tolist() == [0, 0]


def test_ties_are_all_found_and_drawn():
    channel = Channel([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [0.2, 0.2, 0.6]])
    attack = OptimalAttack(channel, Threat(Prior.uniform(3)))
    assert attack.choices(0).tolist() == [0, 1]
    rng = np.random.default_rng(3)
    assert {attack.guess(0, rng=rng) for _ in range(40)} == {0, 1}
    assert attack.randomised_decision().table[0, 0].tolist() == [0.5, 0.5, 0.0]


def test_where_all_known_candidates_lose_the_guess_misses_them():
    attack = OptimalAttack(P, Threat.membership(SKEWED))
    # Output 2 speaks against record 0: say no by naming another.
    assert attack.choices(2, 0).tolist() == [1, 2]
    assert attack.choices(0, 0).tolist() == [0]


def test_an_attacker_who_may_decline_does_so_where_every_guess_loses():
    always = Success.from_matrix(np.ones((3, 3)))
    threat = Threat(SKEWED, always, Knowledge.full(), abstain=True)
    attack = OptimalAttack(P, threat)
    assert attack.choices(2, 0).tolist() == [ABSTAIN]
    assert attack.decision().table[2, 0] == ABSTAIN
    assert attack.randomised_decision().table[2, 0].sum() == 0.0


def test_numbers_out_of_range_are_refused():
    attack = OptimalAttack(P, Threat(SKEWED))
    with pytest.raises(ValueError, match="output must be in"):
        attack.scores(3)
    with pytest.raises(ValueError, match="fibre must be in"):
        attack.scores(0, 1)


def test_an_attack_needs_the_whole_matrix():
    stream = ChannelStream(lambda: [P.matrix], 3)
    with pytest.raises(MismatchError, match="build the matrix"):
        OptimalAttack(stream, Threat(SKEWED))
    with pytest.raises(MismatchError, match="build the matrix"):
        attack_risk(stream, Threat(SKEWED), decision=Decision([[0], [0], [0]]))


def test_a_huge_table_of_laws_is_refused(monkeypatch):
    monkeypatch.setattr("undertow.risk.finite._LISTED", 8)
    with pytest.raises(NotApplicable, match="use decision"):
        OptimalAttack(P, Threat(SKEWED)).randomised_decision()


def test_an_attack_that_ignores_the_output_has_no_advantage():
    decision = Decision.ignoring_output([0, 1, 2], outputs=3)
    found = attack_risk(P, Threat.membership(SKEWED), decision=decision)
    assert (found.success, found.correction) == (pytest.approx(1.0), pytest.approx(1.0))
    assert found.advantage == pytest.approx(0.0, abs=1e-15)


def test_a_perverse_attack_has_a_negative_advantage():
    worst = Decision.from_function(
        lambda seen, z: (seen + 1) % 3, Threat(SKEWED), outputs=3
    )
    assert attack_risk(P, Threat(SKEWED), decision=worst).advantage < -0.01


def test_the_largest_posterior_attains_the_best_success():
    for threat in (Threat(SKEWED), Threat(SKEWED, Success.within("absolute", 1))):
        decision = Decision.largest_posterior(P, threat)
        found = attack_risk(P, threat, decision=decision)
        best = success_rate(P, threat).value
        assert found.success == pytest.approx(best, abs=1e-12)
        assert found.to_dict()["success"] == found.success


def test_reporting_guesses_the_output():
    table = Decision.reporting(Threat.membership(SKEWED), outputs=3).table
    assert table.tolist() == [[0, 0, 0], [1, 1, 1], [2, 2, 2]]


@pytest.mark.parametrize("table", [[0, 1], [[0.5, 0.5]], [[[1]]], [[True]]])
def test_what_is_no_table_is_refused(table):
    with pytest.raises(ModelError, match="table must be"):
        Decision(table)


@pytest.mark.parametrize(
    "table",
    [
        [[0], [1]],
        [[0], [1], [3]],
        [[0], [1], [ABSTAIN]],
        np.full((3, 1, 3), 0.3),
        np.full((3, 1, 2), 0.5),
        np.tile([1.5, -0.5, 0.0], (3, 1, 1)),
    ],
)
def test_tables_that_do_not_fit_are_refused(table):
    with pytest.raises(MismatchError, match="table must"):
        attack_risk(P, Threat(SKEWED), decision=Decision(table))


def test_laws_that_fall_short_decline_where_that_is_allowed():
    threat = Threat(SKEWED, abstain=True)
    half = Decision(0.5 * OptimalAttack(P, Threat(SKEWED)).randomised_decision().table)
    found = attack_risk(P, threat, decision=half)
    assert found.advantage == pytest.approx(0.121, abs=1e-12)
    with pytest.raises(MismatchError, match="table must hold"):
        attack_risk(P, threat, decision=Decision(np.full((3, 1, 3), 0.5)))


def test_the_attack_is_tabulated_in_blocks(monkeypatch):

    rng = np.random.default_rng(8)
    channel = Channel(rng.dirichlet(np.ones(9), size=5))
    threat = Threat(Prior.uniform(5), abstain=True)
    whole = OptimalAttack(channel, threat).decision().table
    monkeypatch.setattr("undertow.risk.finite._BLOCK", 10)
    assert OptimalAttack(channel, threat).decision().table.tolist() == whole.tolist()
