"""Whatever is composed, the reported delta and epsilon are never below the truth."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.privacy._pld_fourier import Plan, gather, tilted_law
from undertow.privacy.pld import PrivacyLossDistribution, compose_distributions

PLD = PrivacyLossDistribution
REFERENCE_ERROR = 1e-13

weight = st.one_of(st.just(0.0), st.floats(1e-6, 1.0))
epsilons = st.one_of(st.just(0.0), st.floats(0.0, 4.0))


@st.composite
def pairs(draw):
    k = draw(st.integers(2, 4))
    laws = []
    for _ in range(2):
        law = np.array(draw(st.lists(weight, min_size=k, max_size=k)))
        law[draw(st.integers(0, k - 1))] += 0.1
        laws.append(law / law.sum())
    return tuple(laws)


def products(chosen):
    p = q = np.ones(1)
    for left, right in chosen:
        p, q = np.outer(p, left).ravel(), np.outer(q, right).ravel()
    return p, q


def brute_force(chosen, epsilon):
    """Largest hockey-stick divergence of the full product, in either order."""
    p, q = products(chosen)
    factor = math.exp(epsilon)
    return max(np.maximum(a - factor * b, 0).sum() for a, b in ((p, q), (q, p)))


def compose_pairs(chosen, **options):
    return compose_distributions([PLD.from_pmfs(p, q) for p, q in chosen], **options)


@settings(max_examples=150, deadline=None)
@given(st.lists(pairs(), min_size=1, max_size=5), epsilons)
def test_delta_is_above_and_near_brute_force(chosen, epsilon):
    truth = brute_force(chosen, epsilon)
    got = compose_pairs(chosen).delta(epsilon)
    assert got >= truth * (1 - REFERENCE_ERROR) - 1e-15
    assert got <= truth + 2e-4


@settings(max_examples=75, deadline=None)
@given(
    st.lists(pairs(), min_size=1, max_size=4), epsilons, st.floats(-10, 2).map(math.exp)
)
def test_no_step_however_coarse_reports_too_little(chosen, epsilon, step):
    truth = brute_force(chosen, epsilon)
    got = compose_pairs(chosen, step=step).delta(epsilon)
    assert got >= truth * (1 - REFERENCE_ERROR) - 1e-15


@settings(max_examples=150, deadline=None)
@given(
    st.lists(pairs(), min_size=1, max_size=4),
    epsilons,
    st.builds(
        Plan,
        tilt=st.floats(1e-3, 30.0),
        low_tilt=st.floats(-30.0, 9e-4),
        high_tilt=st.floats(1e-3, 60.0),
        step=st.integers(-8, 1).map(lambda power: 2.0**power),
        first=st.integers(-40, 20),
        size=st.integers(2, 80),
    ),
)
def test_no_window_however_misplaced_reports_too_little(chosen, epsilon, plan):
    composition = gather(compose_pairs(chosen).parts, reverse=False)
    if composition.infinity == 1 or not composition.on_grid:
        return
    p, q = products(chosen)
    truth = np.maximum(p - math.exp(epsilon) * q, 0).sum()
    got = tilted_law(composition, plan).delta(epsilon)
    assert got >= truth * (1 - REFERENCE_ERROR) - 1e-15


@settings(max_examples=75, deadline=None)
@given(st.lists(pairs(), min_size=1, max_size=4), st.floats(-9, -0.3))
def test_epsilon_is_enough_for_its_delta(chosen, exponent):
    delta = 10.0**exponent
    epsilon = compose_pairs(chosen).epsilon(delta)
    if epsilon < math.inf:
        assert brute_force(chosen, epsilon) <= delta * (1 + 1e-12) + 1e-15
    else:
        assert brute_force(chosen, 600.0) >= delta * (1 - 1e-12)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(1e-3, 3.0), min_size=1, max_size=6),
    st.floats(0.05, 3.0),
    st.floats(0.0, 0.95),
)
def test_responses_under_gaussian_noise_match_enumeration(losses, mu, fraction):
    from scipy.special import ndtr

    epsilon = fraction * (sum(losses) + mu)
    parts = [PLD.from_pure(loss) for loss in losses] + [PLD.from_gaussian(mu)]
    totals, masses = np.zeros(1), np.ones(1)
    for loss in losses:
        top = 1 / (1 + math.exp(-loss))
        totals = np.add.outer(totals, [loss, -loss]).ravel()
        masses = np.outer(masses, [top, 1 - top]).ravel()
    gap = epsilon - totals
    truth = masses @ (ndtr(mu / 2 - gap / mu) - np.exp(gap) * ndtr(-mu / 2 - gap / mu))
    got = compose_distributions(parts).delta(epsilon)
    assert truth * (1 - 1e-12) - 1e-14 <= got <= truth * 1.002 + 1e-12


mechanisms = st.lists(
    st.tuples(
        st.sampled_from(
            [
                PLD.from_laplace,
                PLD.from_gaussian,
                PLD.from_pure,
                PLD.from_discrete_laplace,
            ]
        ),
        st.floats(-6, math.log10(50)).map(lambda x: 10.0**x),
        st.sampled_from([1, 2, 30, 10**3]),
    ),
    min_size=1,
    max_size=4,
)


def composed(chosen):
    return compose_distributions(
        [build(value).self_compose(n) for build, value, n in chosen]
    )


@settings(max_examples=40, deadline=None)
@given(mechanisms, st.floats(-40, -0.5), st.floats(0.1, 0.9))
@pytest.mark.slow
def test_delta_falls_in_epsilon_and_inverts(chosen, exponent, fraction):
    distribution, delta = composed(chosen), 10.0**exponent
    epsilon = distribution.epsilon(delta)
    assert 0 <= epsilon <= distribution.max_loss
    # Each question has its own grid; the two agree within the tolerance, as an epsilon.
    assert distribution.delta(epsilon * 1.002 + 1e-12) <= delta * (1 + 1e-9)
    assert distribution.delta(fraction * epsilon) >= delta * (1 - 1e-3) or epsilon == 0


@settings(max_examples=25, deadline=None)
@given(mechanisms, st.floats(1e-3, 1.0), st.floats(-12, -1))
@pytest.mark.slow
def test_one_more_mechanism_never_costs_less(chosen, extra, exponent):
    distribution, delta = composed(chosen), 10.0**exponent
    for more in (PLD.from_laplace(extra), PLD.from_gaussian(extra)):
        grown = replace(distribution.compose(more), tolerance=1e-3)
        before, after = distribution.epsilon(delta), grown.epsilon(delta)
        assert after >= before * (1 - 2e-3)


@settings(max_examples=40, deadline=None)
@given(st.floats(1e-6, 50), st.integers(1, 40), st.floats(0.0, 0.99))
def test_repeated_responses_never_fall_below_the_binomial(epsilon, n, fraction):
    at = fraction * n * epsilon
    j = np.arange(n + 1)
    log_terms = np.array(
        [math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) for k in j]
    )
    log_terms += -j * math.log1p(math.exp(-epsilon))
    log_terms += (n - j) * (-epsilon - math.log1p(math.exp(-epsilon)))
    gap = np.minimum(at - (2 * j - n) * epsilon, 0)
    truth = float(np.exp(log_terms) @ -np.expm1(gap))
    got = PLD.from_pure(epsilon).self_compose(n).delta(at)
    assert got >= truth * (1 - 1e-11)
    assert got == pytest.approx(truth, rel=1e-6, abs=1e-290)


def test_a_pair_whose_loss_is_all_in_impossible_outputs_costs_no_epsilon():
    pair = PrivacyLossDistribution.from_pmfs([0.5, 0.5, 0], [0.5, 0.25, 0.25])
    assert pair.epsilon(0.25) <= 1e-9
    assert pair.delta(0) == pytest.approx(0.25, abs=1e-9)
    assert pair.epsilon(0.2499) == math.inf


@given(st.lists(st.integers(0, 6), min_size=2, max_size=6), st.randoms())
def test_the_mass_without_a_counterpart_is_never_called_infinite(counts, random):
    shuffled = counts[:]
    random.shuffle(shuffled)
    total = sum(counts)
    if total == 0:
        return
    p, q = (np.array(each) / total for each in (counts, shuffled))
    pair = PrivacyLossDistribution.from_pmfs(p, q)
    # Both sums of floats, of what the other law lacks.
    alone = max(
        sum((Fraction(x) for x, y in zip(a, b, strict=True) if y == 0), Fraction(0))
        / sum(Fraction(x) for x in a)
        for a, b in ((p.tolist(), q.tolist()), (q.tolist(), p.tolist()))
    )
    assert pair.epsilon(alone) < math.inf
    truth = max(0.0, float(np.maximum(p - q, 0).sum()))
    assert pair.delta(0) >= truth * (1 - 1e-12)
    assert pair.delta(0) <= truth + 1e-8


@settings(deadline=None, max_examples=8)
@given(st.integers(-390, 4), st.integers(-390, 4), st.integers(0, 2), st.integers(0, 2))
def test_losses_of_any_two_sizes_compose_without_leaving_the_floats(
    a, b, first, second
):
    kinds = ("from_pure", "from_laplace", "from_gaussian")
    build = PrivacyLossDistribution
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        parts = [
            getattr(build, kinds[kind])(f"1e{power}")
            for kind, power in ((first, a), (second, b))
        ]
        whole = compose_distributions(parts)
        for epsilon in (0, "1e-390", 1, 30):
            delta = whole.delta(epsilon)
            assert 0 <= delta <= 1
            assert delta >= max(part.delta(epsilon) for part in parts) * (1 - 1e-2)
        apart = sum(part.epsilon(0.05) for part in parts)
        assert whole.epsilon("0.1") <= 1.1 * apart + 1e-3
