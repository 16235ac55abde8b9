"""What must be true of the exact advantage, on random channels and threats."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from undertow.risk.channel import Channel
from undertow.risk.exact import advantage, advantage_range, success_rate
from undertow.risk.finite import Decision, OptimalAttack, attack_risk
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

FEW = settings(max_examples=40)
TIGHT = 1e-9


def laws(draw, rows, columns):
    """Draw rows of probabilities, zeros among them, from small whole weights."""
    weights = draw(
        st.lists(
            st.lists(st.integers(0, 6), min_size=columns, max_size=columns).filter(any),
            min_size=rows,
            max_size=rows,
        )
    )
    table = np.array(weights, dtype=float)
    return table / table.sum(axis=1, keepdims=True)


@st.composite
def cases(draw, records=4, outputs=4, fibres=3):
    """Draw a channel and a threat with any success sets, guesses and knowledge."""
    m, k = draw(st.integers(2, records)), draw(st.integers(1, outputs))
    channel = Channel(laws(draw, m, k))
    prior = Prior(m, laws(draw, 1, m)[0])
    rows = m + draw(st.integers(0, 1))
    entries = draw(st.lists(st.booleans(), min_size=rows * m, max_size=rows * m))
    hits = np.reshape(entries, (rows, m)) | np.eye(rows, m, dtype=bool)
    known = draw(st.lists(st.integers(0, fibres - 1), min_size=m, max_size=m))
    success = draw(st.sampled_from([Success.exact(), Success.from_matrix(hits)]))
    threat = Threat(prior, success, Knowledge.from_labels(known), draw(st.booleans()))
    return channel, threat


def played(channel, threat, answer):
    """Play both games of the definition; `answer` maps (output, fibre) to a guess."""
    pmf, P = threat.prior.pmf, channel.matrix
    hits, labels = threat.success.matrix(threat.support), threat.labels
    real = ideal = 0.0
    for target, seen in itertools.product(range(len(pmf)), range(channel.outputs)):
        guess = answer[seen, labels[target]]
        if guess is None or not hits[guess, target]:
            continue
        real += pmf[target] * P[target, seen]
        for other in range(len(pmf)):
            ideal += pmf[target] * pmf[other] * P[other, seen]
    return real, real - ideal


def every_attack(channel, threat):
    places = list(itertools.product(range(channel.outputs), range(len(threat.fibres))))
    options = [*range(len(threat.guesses)), *([None] if threat.abstain else [])]
    for chosen in itertools.product(options, repeat=len(places)):
        yield dict(zip(places, chosen, strict=True))


@FEW
@given(cases(records=3, outputs=2, fibres=2))
def test_the_advantage_is_that_of_the_best_of_all_deterministic_attacks(case):
    channel, threat = case
    figures = [played(channel, threat, attack) for attack in every_attack(*case)]
    best_success, best_advantage = np.max(figures, axis=0)
    assert advantage(channel, threat).value == pytest.approx(best_advantage, abs=TIGHT)
    assert success_rate(channel, threat).value == pytest.approx(best_success, abs=TIGHT)


@FEW
@given(cases())
def test_the_advantage_is_the_value_of_a_linear_program(case):
    channel, threat = case
    pmf, P = threat.prior.pmf, channel.matrix
    hits, labels = threat.success.matrix(threat.support), threat.labels
    fibres, guesses = len(threat.fibres), len(threat.guesses)
    gain = np.zeros((channel.outputs, fibres, guesses))
    for x in range(len(pmf)):
        column = pmf[x] * (P[x] - pmf @ P)
        gain[:, labels[x], :] += column[:, None] * hits[:, x]
    sums = np.kron(np.eye(channel.outputs * fibres), np.ones(guesses))
    ones = np.ones(len(sums))
    rule = {"A_ub" if threat.abstain else "A_eq": sums}
    rule |= {"b_ub" if threat.abstain else "b_eq": ones}
    found = linprog(-gain.ravel(), **rule, bounds=(0, 1))
    assert advantage(channel, threat).value == pytest.approx(-found.fun, abs=TIGHT)


def rational_advantage(channel, threat):
    """The formula in exact arithmetic, for the laws scaled to sum 1 exactly."""

    def scaled(row):
        exact = [Fraction(float(value)) for value in row]
        return [value / sum(exact) for value in exact]

    pmf, P = scaled(threat.prior.pmf), [scaled(row) for row in channel.matrix]
    hits, total = threat.success.matrix(threat.support), Fraction(0)
    for t in range(channel.outputs):
        overall = sum(p * row[t] for p, row in zip(pmf, P, strict=True))
        for fibre in threat.fibres:
            sums = [
                sum(
                    (pmf[x] * (P[x][t] - overall) for x in fibre if row[x]), Fraction(0)
                )
                for row in hits
            ]
            total += max(sums + [Fraction(0)] * threat.abstain)
    return total


@given(cases())
def test_the_advantage_is_never_below_its_exact_rational_value(case):
    channel, threat = case
    value, exact = advantage(channel, threat).value, rational_advantage(*case)
    assert value >= exact - Fraction(1, 2**52) * (value == 0)
    assert value <= exact + Fraction(1, 10**13)


@given(cases())
def test_the_best_attack_attains_the_advantage(case):
    channel, threat = case
    value = advantage(channel, threat).value
    attack = OptimalAttack(channel, threat)
    for decision in (attack.decision(), attack.randomised_decision()):
        found = attack_risk(channel, threat, decision=decision)
        assert found.advantage == pytest.approx(value, abs=1e-11)


@given(cases(), st.integers(0, 2**32 - 1))
@pytest.mark.slow
def test_no_random_attack_beats_the_advantage_or_the_best_success(case, seed):
    channel, threat = case
    shape = (channel.outputs, len(threat.fibres))
    table = np.random.default_rng(seed).dirichlet(
        np.full(len(threat.guesses), 0.3), size=shape
    )
    found = attack_risk(channel, threat, decision=Decision(table))
    value = advantage(channel, threat).value
    assert found.advantage <= value + 1e-12
    assert found.advantage >= -threat.ceiling
    assert found.success <= success_rate(channel, threat).value + 1e-12
    assert found.success - found.correction == pytest.approx(found.advantage, abs=1e-12)


@given(cases(), st.lists(st.integers(0, 1), min_size=4, max_size=4))
def test_knowing_more_never_lowers_the_advantage(case, more):
    channel, threat = case
    finer = Knowledge.from_labels(
        [(int(a), b) for a, b in zip(threat.labels, more, strict=False)]
    )
    values = [
        advantage(channel, Threat(threat.prior, threat.success, known, threat.abstain))
        for known in (Knowledge.none(), threat.knowledge, finer, Knowledge.full())
    ]
    for coarse, fine in itertools.pairwise(values):
        assert coarse.value <= fine.value + 1e-12


@given(cases(), st.data())
def test_post_processing_never_raises_the_advantage(case, data):
    channel, threat = case
    kernel = laws(data.draw, channel.outputs, data.draw(st.integers(1, 4)))
    processed = channel.post_process(kernel)
    value = advantage(channel, threat).value
    assert advantage(processed, threat).value <= value + 1e-12


@given(cases(), st.data())
def test_splitting_merging_and_reordering_outputs_change_nothing(case, data):
    channel, threat = case
    value = advantage(channel, threat).value
    shares = data.draw(
        st.lists(
            st.sampled_from([0.25, 0.5, 0.75]),
            min_size=channel.outputs,
            max_size=channel.outputs,
        )
    )
    split = np.hstack(
        [channel.matrix * shares, channel.matrix * (1 - np.array(shares))]
    )
    order = data.draw(st.permutations(range(split.shape[1])))
    for other in (Channel(split[:, order]), Channel(split[:, order]).merged()):
        assert advantage(other, threat).value == pytest.approx(value, abs=1e-12)


@given(cases(), st.data())
def test_renaming_records_changes_nothing(case, data):
    channel, threat = case
    m = len(threat.prior)
    order = list(data.draw(st.permutations(range(m))))
    hits = threat.success.matrix(threat.support)
    renamed = Threat(
        Prior(m, threat.prior.pmf[order]),
        Success.from_matrix(hits[np.ix_([*order, *range(m, len(hits))], order)]),
        Knowledge.from_labels(threat.labels[order]),
        threat.abstain,
    )
    value = advantage(Channel(channel.matrix[order]), renamed).value
    assert value == pytest.approx(advantage(channel, threat).value, abs=1e-12)


@given(cases())
def test_more_guesses_and_declining_never_lower_the_advantage(case):
    channel, threat = case
    hits = threat.success.matrix(threat.support)
    more = Success.from_matrix(np.vstack([hits, np.roll(hits, 1, axis=1)]))
    value = advantage(channel, threat).value
    wider = Threat(threat.prior, more, threat.knowledge, threat.abstain)
    freer = Threat(threat.prior, threat.success, threat.knowledge, abstain=True)
    assert advantage(channel, wider).value >= value - 1e-12
    assert advantage(channel, freer).value >= value - 1e-12


@given(cases())
def test_a_threshold_beyond_the_diameter_leaves_nothing(case):
    channel, threat = case
    far = Success.within("absolute", len(threat.prior))
    every = Threat(threat.prior, far, threat.knowledge)
    assert advantage(channel, every).value == 0.0


@given(cases())
def test_the_advantage_stays_below_pairs_total_variation_and_ceiling(case):
    channel, threat = case
    pmf, P = threat.prior.pmf, channel.matrix
    pairs = 0.5 * np.abs(P[:, None, :] - P[None, :, :]).sum(axis=2)
    risk = advantage(channel, threat)
    member = advantage(
        channel, Threat(threat.prior, knowledge=Knowledge.full(), abstain=True)
    )
    assert risk.value <= member.value + 1e-12
    assert member.value <= pmf @ pairs @ pmf + 1e-12
    assert pmf @ pairs @ pmf <= pairs.max() * risk.ceiling + 1e-12


@given(cases())
def test_exact_success_leaves_nothing_only_to_constant_columns(case):
    channel, threat = case
    plain = Threat(threat.prior, knowledge=threat.knowledge)
    seen = channel.matrix[threat.prior.pmf > 0]
    constant = bool((np.ptp(seen, axis=0) < 1e-12).all())
    assert (advantage(channel, plain).value < 1e-12) == constant


@given(cases())
def test_success_brackets_the_advantage_without_knowledge(case):
    channel, threat = case
    blind = Threat(threat.prior, threat.success, abstain=threat.abstain)
    decision = OptimalAttack(channel, blind).decision()
    found = attack_risk(channel, blind, decision=decision)
    low, high = advantage_range(min(1.0, found.success), blind)
    assert low <= found.advantage <= high


@given(cases(), st.lists(st.integers(0, 9), min_size=4, max_size=4, unique=True))
def test_the_line_is_the_table_of_its_distances(case, places):
    channel, threat = case
    points = places[: len(threat.prior)]
    prior = Prior(points, threat.prior.pmf)
    table = np.abs(np.subtract.outer(points, points))
    for eta in (0, 1, 3, 5):
        line, listed = (
            Threat(prior, success, threat.knowledge, threat.abstain)
            for success in (Success.within("absolute", eta), Success.hops(table, eta))
        )
        value = advantage(channel, listed).value
        assert advantage(channel, line).value == pytest.approx(value, abs=1e-12)
