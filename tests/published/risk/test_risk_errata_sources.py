"""Where the printed formulas of the two theses fail, each by a number.

"Sauer" is A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
master's thesis, KIT, 2025; "thesis" is P. Guerra-Balboa, *A Formal Study of
Differential Privacy in Complex and Correlated Data*, PhD thesis, KIT, 2026.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

from undertow.errors import AssumptionError
from undertow.mechanisms.local.grr import grr_advantage
from undertow.mechanisms.local.unary import oue_advantage
from undertow.privacy import GDP, Approx, Pure, gdp_mu, total_variation
from undertow.risk.bounds import (
    SubsampledTradeOff,
    black_box_conjecture,
    region_capacity,
    sgd_mu,
    success_bound,
    superseded_bound,
    uniform_guess_bound,
    uniform_guess_epsilon_bound,
    uniform_interval,
    uniform_interval_bound,
    variation_bound,
)
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage, success_rate
from undertow.risk.threat import Prior, Threat

EIGHT = [0.35, 0.35] + [0.05] * 6


def near(value, tolerance=1e-6):
    return pytest.approx(value, abs=tolerance)


def two_level(m, kept):
    channel = np.full((m, m), (1 - kept) / (m - 1))
    np.fill_diagonal(channel, kept)
    return channel


def hockey_stick(channel, epsilon):
    excess = np.maximum(0, channel[:, None] - math.exp(epsilon) * channel[None])
    return float(excess.sum(axis=2).max())


# Sauer


def test_AE1_the_capacity_of_theorem_7_has_the_denominator_of_total_variation():
    prior, loss = [0.4829, 0.5171], Approx(1, "0.05")
    kept = (1 + total_variation(loss)) / 2
    attack = two_level(2, kept)
    assert hockey_stick(attack, 1.0) <= 0.05 + 1e-12
    attained = advantage(Channel(attack, range(2)), Threat(Prior(2, prior))).value
    assert attained > black_box_conjecture(loss, prior, printed=True).value + 0.05
    assert attained <= black_box_conjecture(loss, prior).value + 1e-12


def test_AE2_theorem_7_is_about_epsilon_and_delta():
    with pytest.raises(AssumptionError, match="Pure or Approx"):
        black_box_conjecture(GDP(1), EIGHT)


def test_AE3_the_upper_end_of_the_interval_carries_plus_delta():
    m, epsilon, delta = 4, 1.0, 0.05
    decay = math.exp(-epsilon)
    right = (1 + delta * decay) / (m - 1 + decay)
    printed = (1 - delta * decay) / (m - 1 + decay)
    # A channel that avoids the truth has its rate at the corrected end.
    channel = two_level(m, 1 - (m - 1) * right)
    assert hockey_stick(channel, epsilon) <= delta + 1e-12
    assert right > printed
    assert uniform_interval(m, loss=Approx(epsilon, delta))[1] == near(right, 1e-12)


def test_AE4_the_one_belongs_into_the_denominator():
    m, e, delta = 4, math.e, 0.05
    right, printed = (e + delta) / ((m - 1) * e + 1), (e + delta) / ((m - 1) * e) + 1
    assert printed > 1
    assert uniform_interval(m, loss=Approx(1, delta))[1] == near(right, 1e-12)


def test_AE5_the_differences_of_lemma_1_share_the_guess():
    C = np.random.default_rng(2).dirichlet(np.ones(4), size=4)
    diagonal = np.diag(C)
    printed = np.sum(diagonal[:, None] - diagonal[None])
    meant = np.sum(diagonal[None] - C)
    assert printed == near(0, 1e-12)
    epsilon = float(np.log(C[:, None] / C[None]).max())
    assert 0 < abs(meant) <= 4 * region_capacity(Pure(epsilon), 4)


def test_AE6_the_audit_multiplies_by_m():
    m, epsilon = 10, 2.0
    gamma = uniform_guess_bound(Pure(epsilon), m).value
    meant = math.log((gamma * m + 1) / (1 - gamma * m / (m - 1)))
    printed = math.log(gamma ** (m + 1) / (1 - gamma * m / (m - 1)))
    assert meant == near(epsilon, 1e-9)
    assert uniform_guess_epsilon_bound(gamma, m).value == near(epsilon, 1e-9)
    assert printed < 0


@pytest.mark.parametrize(
    ("statement", "prior", "worst", "printed"),
    [
        ("theorem-4", [0.2186, 0.1918, 0.1804, 0.2212, 0.188], 0.055560, 0.049958),
        ("theorem-5", [0.4949, 0.5051], 0.048725, 0.035434),
    ],
)
def test_AE7_the_second_terms_need_two_delta(statement, prior, worst, printed):
    epsilon, delta, m = 0.1, 0.05, len(prior)
    high, low = max(prior), min(prior)
    tanh = math.tanh(epsilon / 2)
    second = tanh if statement[-1] == "4" else high * (m - 1) * tanh + high - low
    first = high * math.expm1(epsilon) + delta * m
    assert min(first, second) == near(printed, 2e-6)
    # The two-level channel is a mechanism with these parameters.
    e = math.exp(epsilon)
    channel = two_level(m, (e + delta * (m - 1)) / (e + m - 1))
    assert hockey_stick(channel, epsilon) <= delta + 1e-12
    attained = advantage(Channel(channel, range(m)), Threat(Prior(m, prior))).value
    assert printed < attained <= worst + 1e-6
    known = {"size": m, "best_guess": high, "worst_guess": low}
    loss = Approx(epsilon, delta)
    assert superseded_bound(loss, **known, statement=statement).value >= worst


def test_AE8_theorem_6_needs_no_term_in_m():
    # The stray -delta m of its proof would make it false on two records.
    loss, delta = Approx(1, "0.01"), 0.01
    channel = two_level(2, (1 + total_variation(loss)) / 2)
    assert hockey_stick(channel, 1.0) <= delta + 1e-12
    attained = advantage(Channel(channel, range(2)), Threat(Prior.uniform(2))).value
    bound = variation_bound(loss, collision=0.5).value
    assert attained == near(bound, 1e-12)
    assert attained > bound - 2 * delta


def test_AE9_the_reference_is_the_first_argument():
    f = SubsampledTradeOff(1.0, 0.5)
    # Reject above the threshold that the reference passes in a tenth of the runs.
    cut = norm.isf(0.1)
    attained = 0.5 * norm.sf(cut) + 0.5 * norm.sf(cut - 1)
    assert attained == near(0.2445718458, 1e-9)
    assert 1 - float(f(0.1)) == near(attained, 1e-12)
    assert 1 - float(f.inverse()(0.1)) == near(0.1737715728, 1e-9)
    assert attained > 1 - float(f.inverse()(0.1))


def test_AE12_the_noise_belongs_to_the_sum_of_gradients():
    # Noise on the average of a batch of 50 would be noise of 50 times the multiplier.
    sigma, batch = 2.0, 50
    summed = sgd_mu(sigma, 1, adjacency="add_remove")
    averaged = sgd_mu(sigma * batch, 1, adjacency="add_remove")
    assert summed == near(1 / sigma, 1e-12)
    assert averaged == near(summed / batch, 1e-12)


def test_AE13_the_fourth_tolerance_is_eight_tenths_of_the_diameter():
    for diameter, printed in ((88, 70), (92, 74)):
        assert round(0.8 * diameter) == printed
        assert round(0.7 * diameter) != printed


@pytest.mark.parametrize(
    ("tail", "ceiling"), [(0.01, 12.2883), (0.005, 12.1481), (0.0025, 12.0252)]
)
def test_AE14_and_RE25_no_tail_gives_a_ceiling_of_12_25(tail, ceiling):
    n = 10**6
    low, high = tail ** (1 / n), -math.expm1(math.log(tail) / n)
    assert math.log(low / high) == near(ceiling, 5e-5)
    assert abs(ceiling - 12.25) > 0.03


def test_AE15_the_correction_of_a_perfect_attack_is_the_collision():
    threat, perfect = Threat(Prior(8, EIGHT)), Channel(np.eye(8), range(8))
    gap = success_rate(perfect, threat).value - advantage(perfect, threat).value
    assert gap == near(0.26, 1e-9)
    assert gap < 0.35


def test_AE16_the_curves_cross_elsewhere():
    def flat(epsilon):
        curve = success_bound(GDP(gdp_mu(epsilon, 1e-5)), best_guess=0.125).value
        return uniform_guess_bound(Approx(epsilon, "1e-5"), 8).value - curve

    def skew(epsilon):
        curve = success_bound(GDP(gdp_mu(epsilon, 1e-5)), best_guess=0.35).value
        return black_box_conjecture(Approx(epsilon, "1e-5"), EIGHT).value - curve

    assert brentq(flat, 8, 16) == near(11.89, 5e-3)
    assert brentq(skew, 2, 3) == near(2.475, 1e-3)
    assert brentq(skew, 3.2, 5) == near(3.832, 1e-3)


def test_AE17_one_in_128_rounds_to_0_0078():
    value = uniform_guess_bound(Pure(50), 128).value
    assert round(1 - value, 4) == 0.0078


def test_AE27_the_figures_use_the_wrong_adjacency():
    # Gradients at the corners of a simplex, eight records, epsilon 8.
    mu = gdp_mu(8.0, 1e-5)
    shift = mu * math.sqrt(8 / 7)
    attack = quad(lambda x: norm.pdf(x - shift) * norm.cdf(x) ** 7, -10, 14)[0]
    printed = uniform_interval_bound(GDP(mu), 8).value
    assert attack - 0.125 == near(0.5200, 5e-5)
    assert printed == near(0.5096, 5e-5)
    assert attack - 0.125 <= uniform_interval_bound(GDP(2 * mu), 8).value


# Thesis


def test_RE14_the_noise_is_measured_in_clipping_norms():
    # Log-likelihood ratio at the best threshold, for two clipping norms.
    for clip in (0.1, 7.0):
        sigma = 2.0
        tv = 2 * norm.cdf(clip / (2 * clip * sigma)) - 1
        mu = sgd_mu(sigma, 1, adjacency="add_remove")
        assert tv == near(total_variation(GDP(mu)), 1e-9)
    printed = 2 * norm.cdf(7.0 / (2 * 2.0)) - 1  # noise that does not scale with it
    assert abs(printed - tv) > 0.5


def test_RE15_a_transcript_is_a_mixture_of_products():
    # Two records, two steps, unit noise: means (0, 0) and (1, 1).
    means, g = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([1.4, -0.2])
    steps = norm.pdf(g[None] - means)
    mixture = 0.5 * steps.prod(axis=1).sum()
    marginals = steps.mean(axis=0).prod()
    assert mixture != pytest.approx(marginals, rel=0.01)
    # The exponent is <g, mean> - |mean|^2/2, over the variance and not twice it.
    ratio = math.log(steps[1].prod() / steps[0].prod())
    assert ratio == near(g @ means[1] - 0.5 * means[1] @ means[1], 1e-12)
    assert abs(ratio - 0.5 * (g @ means[1])) > 0.1
    # The linear rule sees a gain where the posterior falls.
    g = np.array([0.3, 0.2])
    linear = g @ means[1] - np.mean(g @ means.T)
    weights = norm.pdf(g[None] - means).prod(axis=1)
    assert linear > 0
    assert weights[1] / weights.sum() < 0.5


def test_RE16_the_attack_reads_the_residual_and_adds_the_steps_up():
    rng = np.random.default_rng(5)
    means = np.array([[1.0, 0.0], [0.0, 1.0]])
    background, steps = np.array([-3.0, 3.0]), 40
    residual = means[0] + 2.0 * rng.standard_normal((steps, 2))
    scores = residual @ means.T
    assert np.argmax(scores.sum(axis=0)) == 0
    assert np.argmax((residual + background).sum(axis=0) @ means.T) == 1
    single = np.argmax(scores, axis=1)
    assert 0 < np.mean(single == 1) < 0.5


def test_RE18_fifty_thousand_records_are_not_drawn_from_1676():
    assert 1676 < 49_000 + 1_000 < 1_676_000


def test_RE21_laplace_and_unary_encoding_cross_twice():
    def gap(epsilon):
        laplace = 10 / 11 * -math.expm1(-epsilon / 20)
        return laplace - oue_advantage(11, epsilon)

    assert brentq(gap, 1e-4, 0.1) == near(0.0019, 1e-4)
    assert brentq(gap, 10, 14) == near(13.8628, 1e-4)
    assert gap(13.9) > 0  # the print says below up to 14
    assert gap(7.0) < 0


def test_RE26_a_raised_false_positive_rate_lowers_the_estimate():
    n, hits, alarms = 10**6, 890, 327
    from scipy.special import betaincinv

    low = betaincinv(hits, n - hits + 1, 0.005)
    high = betaincinv(alarms + 1, n - alarms, 0.995)
    assert high > alarms / n
    assert math.log(low / high) == near(0.7723, 5e-5)
    assert math.log(low / high) < math.log(hits / alarms)


def test_RE27_the_attack_on_housemates_says_yes_above_one():
    # A count of two equal records with Laplace noise of scale 1.
    def above(count):
        return 1 - 0.5 * math.exp(-1) if count == 2 else 0.5 * math.exp(-1)

    meant = 0.9 * (above(2) - above(0))
    printed = 0.9 * ((1 - above(2)) - (1 - above(0)))
    assert meant == near(0.568909)
    assert printed < 0


# Traps


def test_trap_r10_a_formula_of_one_mechanism_is_no_lower_bound_for_another():
    # A response that is sold as unary encoding.
    m, epsilon = 10, 3.0
    measured = grr_advantage(m, epsilon)
    assert measured > oue_advantage(m, 50.0)  # that inverse is undefined
    weaker = grr_advantage(m, 1.0)
    claimed = brentq(lambda e: oue_advantage(m, e) - weaker, 0.1, 10)
    assert claimed > 1.4
    assert uniform_guess_epsilon_bound(weaker, m).value <= 1.0 + 1e-9


def test_trap_r14_the_flat_end_of_a_curve_certifies_nothing():
    n = 10**6

    def error(epsilon):
        step = 1e-3
        ends = [oue_advantage(3052, epsilon + s) for s in (-step, step)]
        slope = (ends[1] - ends[0]) / (2 * step)
        value = oue_advantage(3052, epsilon) + 1 / 3052
        return math.sqrt(value * (1 - value) / n) / slope, slope

    assert error(12.0)[1] == near(0.0046, 1e-4)
    assert error(12.0)[0] < 0.5
    assert error(14.0)[0] > 0.5
