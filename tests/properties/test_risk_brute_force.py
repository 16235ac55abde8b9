"""The exact engine and the bounds against brute force, programs and sixty digits."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from undertow.privacy import GDP, Approx, Pure
from undertow.risk.bounds import (
    exact_guess_bound,
    gaussian_bound,
    uniform_gaussian_bound,
    uniform_guess_bound,
    uniform_prior_bound,
    variation_bound,
    zero_out_bound,
)
from undertow.risk.channel import Channel, ChannelStream
from undertow.risk.exact import advantage, success_rate
from undertow.risk.finite import ABSTAIN, Decision, OptimalAttack, attack_risk
from undertow.risk.selector import best_bound
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

# Masses, down to what a sum with 1 loses, as powers of ten below a mantissa.
WEIGHTS = st.tuples(
    st.floats(0.1, 1.0), st.sampled_from([0, 0, 0, 3, 8, 16, 17, 30, 250])
).map(lambda pair: pair[0] * 10.0 ** -pair[1])


@st.composite
def cases(draw, records=4, outputs=3):
    """Draw a threat and a channel whose rows are dyadic, so that they sum to one."""
    m, k = draw(st.integers(1, records)), draw(st.integers(1, outputs))
    weights = np.array(draw(st.lists(WEIGHTS, min_size=m, max_size=m)))
    weights[draw(st.integers(0, m - 1))] = 1.0
    if draw(st.booleans()) and m > 1:
        place = draw(st.integers(0, m - 1))
        weights[place] = 0.0 if weights.sum() > weights[place] else 1.0
    rows = []
    for _ in range(m):
        cuts = draw(st.lists(st.integers(0, 2**20), min_size=k - 1, max_size=k - 1))
        ends = [0, *sorted(cuts), 2**20]
        rows.append([(b - a) / 2**20 for a, b in itertools.pairwise(ends)])
    extra = draw(st.integers(0, 1))
    hits = np.array(
        draw(
            st.lists(st.booleans(), min_size=m * (m + extra), max_size=m * (m + extra))
        )
    ).reshape(m + extra, m)
    hits[np.arange(m), np.arange(m)] = True
    labels = draw(st.lists(st.integers(0, 2), min_size=m, max_size=m))
    threat = Threat(
        Prior(m, weights / math.fsum(weights)),
        Success.from_matrix(hits),
        Knowledge.from_labels(labels),
        draw(st.booleans()),
    )
    return threat, Channel(rows)


def brute_force(threat, channel):
    """Return the best advantage and success over all deterministic attacks, exactly."""
    masses = [Fraction(float(p)) for p in threat.prior.pmf]
    pi = [p / sum(masses) for p in masses]
    laws = [[Fraction(float(v)) for v in row] for row in channel.matrix]
    hits = threat.success.matrix(threat.support)
    rows = [*hits.tolist(), *([[False] * len(pi)] if threat.abstain else [])]
    gain = success = Fraction(0)
    for seen in range(channel.outputs):
        column = [row[seen] for row in laws]
        overall = sum(p * v for p, v in zip(pi, column, strict=True))
        for fibre in threat.fibres:
            inside = fibre.tolist()
            gain += max(
                sum(pi[x] * (column[x] - overall) for x in inside if row[x])
                for row in rows
            )
            success += max(
                sum(pi[x] * column[x] for x in inside if row[x]) for row in rows
            )
    return gain, success


@given(cases())
@settings(max_examples=150, deadline=None)
def test_the_engine_is_never_below_the_best_of_all_attacks(case):
    threat, channel = case
    gain, success = brute_force(threat, channel)
    stream = ChannelStream(lambda: [channel.matrix], channel.size)
    for source in (channel, stream):
        value = Fraction(advantage(source, threat).value)
        assert gain <= value <= gain + Fraction(1, 10**12)
        rate = Fraction(success_rate(source, threat).value)
        assert success <= rate <= success + Fraction(1, 10**12)


@given(cases(records=3, outputs=2))
@settings(max_examples=60, deadline=None)
def test_every_table_of_guesses_is_weighed_and_none_beats_the_optimum(case):
    threat, channel = case
    options = range(ABSTAIN if threat.abstain else 0, len(threat.guesses))
    cells = channel.outputs * len(threat.fibres)
    best = -math.inf
    for answers in itertools.islice(itertools.product(options, repeat=cells), 3000):
        table = np.array(answers).reshape(channel.outputs, len(threat.fibres))
        risk = attack_risk(channel, threat, decision=Decision(table))
        assert risk.advantage == pytest.approx(
            risk.success - risk.correction, abs=1e-13
        )
        best = max(best, risk.advantage)
    value = advantage(channel, threat).value
    assert best <= value
    if len(options) ** cells <= 3000:
        assert value == pytest.approx(max(best, 0.0), abs=1e-12)
    attack = OptimalAttack(channel, threat)
    for table in (attack.decision(), attack.randomised_decision()):
        found = attack_risk(channel, threat, decision=table).advantage
        assert found == pytest.approx(value, abs=1e-9)


def worst_channel(pi, hits, epsilon, delta, *, abstain):
    """Solve for the worst mechanism whose output is the guess itself."""
    m = len(pi)
    rows = np.vstack([hits, np.zeros((int(abstain), m))]).astype(float)
    guesses = len(rows)
    gain = pi[:, None] * (rows.T - (rows @ pi)[None, :])
    pairs = list(itertools.permutations(range(m), 2))
    spare = len(pairs) * guesses if delta > 0 else 0
    above, limits = [], []
    for k, (x, y) in enumerate(pairs):
        for g in range(guesses):
            row = np.zeros(m * guesses + spare)
            row[x * guesses + g], row[y * guesses + g] = 1.0, -math.exp(epsilon)
            if spare:
                row[m * guesses + k * guesses + g] = -1.0
            above.append(row)
            limits.append(0.0)
        if spare:
            row = np.zeros(m * guesses + spare)
            row[m * guesses + k * guesses : m * guesses + (k + 1) * guesses] = 1.0
            above.append(row)
            limits.append(delta)
    sums = np.hstack([np.kron(np.eye(m), np.ones(guesses)), np.zeros((m, spare))])
    done = linprog(
        -np.concatenate([gain.ravel(), np.zeros(spare)]),
        A_ub=np.array(above),
        b_ub=limits,
        A_eq=sums,
        b_eq=np.ones(m),
        method="highs",
    )
    return -done.fun


@pytest.mark.parametrize("seed", range(6))
def test_no_row_of_the_table_is_below_the_worst_mechanism(seed):
    rng = np.random.default_rng(seed)
    for _ in range(8):
        m = int(rng.integers(2, 5))
        pi = rng.dirichlet(np.full(m, rng.choice([0.1, 1.0, 50.0])))
        if rng.random() < 0.3:
            pi = np.full(m, 1.0 / m)
        hits = np.eye(m, dtype=bool)
        if rng.random() < 0.5:
            hits |= rng.random((m, m)) < 0.4
        epsilon, delta = (
            float(rng.choice([0.01, 0.5, 1, 3])),
            rng.choice([0, 0.02, 0.2]),
        )
        abstain = bool(rng.random() < 0.4)
        threat = Threat(Prior(m, pi), Success.from_matrix(hits), abstain=abstain)
        loss = Approx(epsilon, float(delta)) if delta else Pure(epsilon)
        worst = worst_channel(pi, hits, epsilon, float(delta), abstain=abstain)
        for row in best_bound(loss, threat).rows:
            assert row.value is None or row.value >= worst - 1e-7, row.name
            if row.bound is not None and row.bound.tight:
                assert row.value == pytest.approx(worst, abs=2e-6), row.name


LEVELS = (0.0, 1e-12, 0.5, 36.0, 38.0, 699.0, 700.0, 745.0, 1e4, math.inf)


@pytest.mark.parametrize("epsilon", LEVELS)
@pytest.mark.parametrize("delta", [0.0, 1e-300, 1e-5, 1 - 2.0**-53])
def test_black_box_bounds_are_not_below_sixty_digits(epsilon, delta):
    loss = Approx(epsilon, delta) if delta else Pure(epsilon)
    with mpmath.workdps(60):
        x = mpmath.exp(-mpmath.mpf(epsilon)) if epsilon < math.inf else mpmath.mpf(0)
        lost = mpmath.mpf(delta)
        total = min(mpmath.mpf(1), (1 - x + 2 * lost * x) / (1 + x))
        for collision in (0.0, 1e-17, 0.38, 1 - 2.0**-53):
            spread = 1 - mpmath.mpf(collision)
            plain = variation_bound(loss, collision=collision, sharpen=False)
            assert total * spread <= plain.value
            assert plain.value <= float(spread) + 2.0**-53
        for m in (1, 2, 10, 10**5, 10**15):
            top = (1 - x + lost * m * x) / (1 + (m - 1) * x)
            truth = mpmath.mpf(m - 1) / m * min(mpmath.mpf(1), top)
            assert uniform_guess_bound(loss, m).value >= truth
        if delta == 0:
            for m in (2, 3, 10):
                truth = max(
                    k * (m - k) * (1 - x) / (m * (k + (m - k) * x)) for k in range(1, m)
                )
                assert uniform_prior_bound(epsilon, m).value >= truth


def knapsack(loss_total, room, pi):
    """Fill the items of size TV (1 - pi) in the order of falling pi."""
    value, left = mpmath.mpf(0), room
    for mass in sorted(pi, reverse=True):
        size = min(left, loss_total * (1 - mass))
        value, left = value + mass * size, left - size
    return value


@given(st.lists(WEIGHTS, min_size=2, max_size=7), st.sampled_from(LEVELS[1:]))
@settings(max_examples=80, deadline=None)
def test_the_knapsack_is_not_below_its_value_in_sixty_digits(weights, epsilon):
    masses = np.array([1.0, *weights])
    prior = Prior(len(masses), masses / math.fsum(masses))
    with mpmath.workdps(60):
        x = mpmath.exp(-mpmath.mpf(epsilon)) if epsilon < math.inf else mpmath.mpf(0)
        pi = [mpmath.mpf(float(p)) for p in prior.pmf]
        pi = [p / mpmath.fsum(pi) for p in pi]
        m = len(pi)
        room = (m - 1) * (1 - x) / (1 + (m - 1) * x)
        truth = knapsack((1 - x) / (1 + x), room, pi)
        value = exact_guess_bound(Pure(epsilon), prior).value
        # Products below the least normal float are not told apart.
        assert value >= truth or truth < mpmath.mpf(10) ** -280
        assert value <= truth + mpmath.mpf(10) ** -11


@pytest.mark.parametrize("mu", [1e-12, 1e-3, 0.5, 1.0, 3.0, 16.0, 21.0, 40.0, 1e4])
def test_gaussian_bounds_are_not_below_sixty_digits(mu):
    with mpmath.workdps(60):
        total = mpmath.erf(mpmath.mpf(mu) / (2 * mpmath.sqrt(2)))
        peak = mpmath.ncdf(-mpmath.mpf(mu) / 2)

        def success(alpha):
            if alpha >= 1:
                return mpmath.mpf(1)
            return mpmath.ncdf(mu - mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * alpha))

        for high in (1e-6, 0.1, 0.5, 1.0):
            for low in (0.0, high / 2, high):
                at = min(max(peak, mpmath.mpf(low)), mpmath.mpf(high))
                truth = total if at == peak else success(at) - at
                value = gaussian_bound(mu, best_guess=high, worst_guess=low).value
                cap = min(truth, total if peak <= high else success(high) - high)
                assert cap <= value <= cap + mpmath.mpf(10) ** -9
            zero = zero_out_bound(1 / mu, 1, best_guess=high).value
            assert zero >= min(mpmath.mpf(1), success(mpmath.mpf(high))) * (
                1 - mpmath.mpf(10) ** -15
            )
        assert uniform_gaussian_bound(mu, 2).value >= total / 2
        assert best_bound(GDP(mu), Threat(Prior.uniform(2))).value >= total / 2
