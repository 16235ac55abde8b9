"""Numbers, errata and traps of the bounds on the advantage.

"Thesis" is P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
Correlated Data*, PhD thesis, KIT, 2026. Where its print is wrong, the name of the test
carries the number of the erratum. Numbers are to 1e-6 unless said otherwise.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from undertow.errors import AssumptionError, InfeasibleTarget
from undertow.privacy import (
    GDP,
    Approx,
    Pure,
    gdp_mu,
    group_approx,
    total_variation,
    total_variation_power,
)
from undertow.risk.bounds import (
    baseline_bound,
    calibrate_sgd,
    calibrate_uniform_guess,
    calibrate_variation,
    composed_variation,
    exact_guess_bound,
    gaussian_bound,
    pairwise_variation_bound,
    prior_free_bound,
    program_bound,
    projected_variation_bound,
    region_capacity,
    sgd_bound,
    sgd_mu,
    success_bound,
    tradeoff_bound,
    uniform_gaussian_bound,
    uniform_guess_bound,
    uniform_guess_epsilon_bound,
    uniform_prior_bound,
    variation_bound,
    variation_epsilon_bound,
    variation_matrix,
    variation_product,
    zero_out_bound,
)
from undertow.risk.selector import best_bound, calibrate_black_box, named_bound
from undertow.risk.success import Success
from undertow.risk.threat import Prior, Threat

P3 = np.array([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
P3_PRIOR = [0.5, 0.3, 0.2]
SKEW = [0.4, 0.3, 0.2, 0.1]
TEN = {"best_guess": 0.1, "worst_guess": 0.1, "collision": 0.1}
SMALL = "1e-5"


def near(value):
    return pytest.approx(value, abs=1e-6)


# Table of unit values


def test_p3_bounds():
    totals = variation_matrix(P3)
    assert totals[[0, 0, 1], [1, 2, 2]] == pytest.approx([0.4, 0.6, 0.4])
    assert pairwise_variation_bound(totals, P3_PRIOR).value == near(0.288)
    assert variation_bound(0.6, collision=0.38).value == near(0.372)
    loss = Pure(math.log(7))
    assert variation_bound(loss, collision=0.38, sharpen=False).value == near(0.465)
    assert prior_free_bound(math.log(7)).value == near(0.451416)
    assert program_bound(math.log(7), P3_PRIOR).value == near(0.413333)
    assert exact_guess_bound(loss, P3_PRIOR).value == near(0.431667)


def test_tv_from_epsilon_delta():
    assert total_variation(Pure(1)) == pytest.approx(0.46211715726, abs=1e-10)
    assert total_variation(Approx(1, SMALL)) == pytest.approx(0.46212253609, abs=1e-10)
    assert total_variation(GDP(1)) == pytest.approx(0.38292492255, abs=1e-10)


@pytest.mark.parametrize(
    ("m", "epsilon"),
    [
        (2, 0.405465),
        (5, 0.538997),
        (10, 0.810930),
        (100, 2.504379),
        (1000, 4.720592),
        (10**4, 7.014126),
    ],
)
def test_calibration_at_a_tenth(m, epsilon):
    assert calibrate_uniform_guess(0.1, m).value == near(epsilon)


def test_thm515_value():
    assert exact_guess_bound(Pure(1), SKEW).value == pytest.approx(
        0.268095769, abs=1e-9
    )


def test_cor516_value():
    value = uniform_guess_bound(Approx(1, SMALL), 10).value
    assert value == pytest.approx(0.131976997, abs=1e-9)


def test_prop513_value():
    assert baseline_bound(Approx(2, SMALL), **TEN, sharpen=False).value == near(
        0.638916
    )


def test_gdp_uniform_values():
    first = uniform_gaussian_bound(1.0, 10, sharpen=False).value
    assert first == pytest.approx(0.271417617, abs=1e-9)
    second = uniform_gaussian_bound(10 / 22, 10, sharpen=False).value
    assert second == pytest.approx(0.099628928, abs=1e-9)


@pytest.mark.parametrize(
    ("options", "sigma"),
    [
        ({"adjacency": "add_remove"}, 21.933159),
        ({"adjacency": "add_remove", "knowledge": "any"}, 35.788342),
        ({}, 22.730872),
        ({"knowledge": "any"}, 71.576685),
    ],
)
def test_dpsgd_sigma(options, sigma):
    assert calibrate_sgd(0.1, 100, size=10, **options).value == near(sigma)


def test_dpsgd_sigma_of_theorem_5_11_under_replacement():
    for sigma, sharpen in ((43.866318, False), (39.525095, True)):
        at = uniform_gaussian_bound(sgd_mu(sigma, 100), 10, sharpen=sharpen).value
        assert at == pytest.approx(0.1, abs=1e-8)


@pytest.mark.parametrize(
    ("mu", "value"), [(0.5, 0.098593), (1, 0.228999), (2, 0.511946), (3, 0.725008)]
)
def test_uniform_form_c(mu, value):
    assert uniform_gaussian_bound(mu, 10).value == near(value)


def test_rero_gdp():
    value = success_bound(GDP(1), best_guess=0.1).value
    assert value == pytest.approx(0.389143692, abs=1e-9)
    assert success_bound(Pure(1), best_guess=0.1).value == near(0.271828)
    curve = success_bound(GDP("0.924931"), best_guess=0.125).value
    assert curve == near(0.410827)


@pytest.mark.parametrize(
    ("epsilon", "count", "exact", "product", "sum_rule"),
    [
        ("0.1", 10, 0.122536, 0.401001, 0.462117),
        ("0.1", 100, 0.381973, 0.994053, 0.999909),
        ("1", 5, 0.751015, 0.954977, 0.986614),
    ],
)
def test_compose_pure(epsilon, count, exact, product, sum_rule):
    assert composed_variation([Pure(epsilon)] * count) == near(exact)
    single = total_variation(Pure(epsilon))
    assert variation_product([single] * count) == near(product)
    assert total_variation(Pure(count * float(epsilon))) == near(sum_rule)


def test_compose_gdp():
    assert composed_variation([GDP("0.1")] * 100) == near(0.382925)
    assert variation_product([total_variation(GDP("0.1"))] * 100) == near(0.982913)
    assert total_variation_power(GDP("0.1"), 100) == near(0.382925)


def test_audit_inverse():
    assert uniform_guess_epsilon_bound(0.5, 10).value == near(2.602690)


# Values stated with the theorems


def test_theorem_5_2_values():
    assert variation_bound(Pure(1), collision=0.5).value == near(0.23105858)
    plain = variation_bound(Pure(1), collision=1 / 11, sharpen=False).value
    assert plain == near(0.420107)
    assert variation_bound(Pure(1), collision=1 / 11).value == near(0.244919)
    assert variation_bound(GDP("0.924931"), collision=0.125).value == near(0.311721)
    twice = variation_bound(GDP("1.849862"), collision=0.125).value
    assert twice == pytest.approx(0.5644, abs=1e-4)


@pytest.mark.parametrize(
    ("mu", "value"), [(0.5, 0.112009), (1, 0.271418), (2, 0.603904), (3, 0.779747)]
)
def test_theorem_5_11_values(mu, value):
    assert gaussian_bound(mu, **TEN).value == near(value)


@pytest.mark.parametrize(
    ("epsilon", "baselines", "flat"),
    [
        (0.5, 0.064882, 0.054837),
        (1, 0.171838, 0.131977),
        (2, 0.638916, 0.350859),
        (3, 0.814634, 0.590571),
        (4, 0.867625, 0.758488),
        (5, 0.887953, 0.842826),
        (6, 0.895549, 0.878178),
        (8, 0.899396, 0.896990),
        (10, 0.899918, 0.899592),
    ],
)
def test_figure_5_3_black_box_bounds(epsilon, baselines, flat):
    loss = Approx(epsilon, SMALL)
    assert baseline_bound(loss, **TEN, sharpen=False).value == near(baselines)
    assert uniform_guess_bound(loss, 10).value == near(flat)


def test_theorem_5_15_values():
    assert exact_guess_bound(Approx(1, SMALL), SKEW).value == near(0.268101)
    assert exact_guess_bound(Approx(2, "1e-3"), SKEW).value == near(0.489342)
    halves = exact_guess_bound(Pure(1), [0.5, 0.25, 0.125, 0.125]).value
    assert halves == near(0.242654)
    assert exact_guess_bound(Pure(1), [0.5, 0.5, 0, 0]).value == near(0.231059)
    assert exact_guess_bound(Pure(1), [0.25] * 4).value == near(0.225367)


@pytest.mark.parametrize(
    ("gamma", "printed", "guaranteed"),
    [
        (0.05, 39.4915, 40.7966),
        (0.1, 21.9332, 22.7309),
        (0.3, 9.2513, 9.7257),
        (0.5, 6.0556, 6.5151),
    ],
)
def test_dpsgd_noise_by_target(gamma, printed, guaranteed):
    source = calibrate_sgd(gamma, 100, size=10, adjacency="add_remove").value
    assert source == pytest.approx(printed, abs=6e-5)
    safe = calibrate_sgd(gamma, 100, size=10).value
    assert safe == pytest.approx(guaranteed, abs=6e-5)


@pytest.mark.parametrize(("gamma", "sigma"), [(0.7, 4.0962), (0.8, 3.1383)])
def test_dpsgd_noise_past_the_switch(gamma, sigma):
    source = calibrate_sgd(gamma, 100, size=10, adjacency="add_remove").value
    assert source == pytest.approx(sigma, abs=6e-5)


def test_dpsgd_bounds_around_the_printed_noise():
    def printed(sigma):
        return sgd_bound(sigma, 100, size=10, adjacency="add_remove").value

    assert printed(22.0) == near(0.099629)
    assert printed(21.0) == near(0.105472)
    known = calibrate_sgd(0.3, 100, size=10, knowledge="any", adjacency="add_remove")
    assert known.value == pytest.approx(11.6083, abs=6e-5)


@pytest.mark.parametrize(
    ("epsilon", "blind", "membership", "flat"),
    [
        (0.5, 0.104899, 0.122459, 0.104661),
        (1, 0.214863, 0.240356, 0.225367),
        (2, 0.430486, 0.449116, 0.461235),
    ],
)
def test_linear_program_values(epsilon, blind, membership, flat):
    assert program_bound(epsilon, SKEW).value == near(blind)
    assert program_bound(epsilon, SKEW, labels=range(4)).value == near(membership)
    assert program_bound(epsilon, [0.25] * 4).value == near(flat)


def test_uniform_prior_cap_values():
    assert uniform_prior_bound(1.0, 3).value == near(0.242784)
    assert uniform_prior_bound(3.0, 10).value == near(0.633925)
    assert prior_free_bound(math.log(9)).value == near(0.5)


def test_story_of_a_thousand_cells():
    cells = Prior.uniform(1000)
    assert calibrate_black_box(0.1, Threat(cells)).value == near(4.720592)
    assert calibrate_variation(0.1, collision=0.001, sharpen=False).value == (
        pytest.approx(0.2009, abs=5e-5)
    )
    known = calibrate_black_box(0.1, Threat.membership(cells)).value
    assert known == pytest.approx(0.4013, abs=5e-5)


def test_story_of_the_disease_bit():
    people = [0.1, 0.4, 0.3, 0.2]
    kappa = sum(p * p for p in people)
    plain = variation_bound(Approx(1, 0), collision=kappa).value
    assert plain == near(0.323482)
    read = projected_variation_bound(Pure(1), people, labels=[1, 0, 1, 0]).value
    assert read == near(0.221816)


# Errata of the thesis


def test_RE1_randomized_response_on_100_records_calibrates_to_another_ratio():
    epsilon = calibrate_uniform_guess(0.1, 100).value
    assert math.exp(epsilon) == near(12.235955)
    assert epsilon == near(2.504379)
    assert abs(math.exp(epsilon) - 12.2087) > 0.02  # printed


def test_RE4_the_collision_probability_is_largest_for_a_point_mass():
    assert Prior.uniform(2).collision == 0.5
    assert Prior(2, [1.0, 0.0]).collision == 1.0
    assert variation_bound(Pure(1), collision=1.0).value == 0


def test_RE11_the_number_of_full_items_has_another_denominator():
    # Gamma/A = (m-1)(e-1+dm)(e+1)/((e+m-1)(e-1+2d)), not over (e-1+2d) squared.
    e, d, m = math.exp(1.0), 0.01, 5
    ratio = region_capacity(Approx(1, "0.01"), m) / total_variation(Approx(1, "0.01"))
    right = (m - 1) * (e - 1 + d * m) * (e + 1) / ((e + m - 1) * (e - 1 + 2 * d))
    wrong = (m - 1) * (e - 1 + d * m) * (e + 1) / (e - 1 + 2 * d) ** 2
    assert ratio == pytest.approx(right, rel=1e-9)
    assert abs(ratio - wrong) > 1


def test_RE12_the_first_display_of_example_5_12_lacks_a_factor():
    m, mu = 10, 1.0
    alpha = min(1 / (m - 1), stats.norm.sf(mu / 2))
    without = stats.norm.sf(stats.norm.isf(alpha) - mu) - alpha
    value = uniform_gaussian_bound(mu, m, sharpen=False).value
    assert value == pytest.approx(0.9 * without, rel=1e-9)
    assert value < without


def test_RE13_the_interval_of_theorem_5_11_is_cut_at_one():
    known = {"best_guess": 0.9, "worst_guess": 0.0, "collision": 0.8}
    assert known["best_guess"] / (1 - known["collision"]) > 1
    value = tradeoff_bound(GDP(1), **known).value
    assert value == pytest.approx(0.2 * total_variation(GDP(1)), rel=1e-9)


def test_RE17_replacing_a_record_moves_a_clipped_sum_by_twice_the_norm():
    # Two opposite gradients of full norm: the exact advantage passes the print.
    sigma, steps = 22.0, 100
    exact = stats.norm.cdf(math.sqrt(steps) / sigma) - 0.5
    printed = sgd_bound(sigma, steps, size=2, adjacency="add_remove").value
    assert exact > printed * 1.9
    assert exact <= sgd_bound(sigma, steps, size=2).value
    assert exact <= sgd_bound(sigma, steps, size=2, knowledge="any").value


def test_the_capacity_is_at_most_total_variation_times_m_minus_one():
    for m in (2, 3, 50):
        for loss in (Pure(0.3), Approx(2, "0.01"), Approx(0, "0.3")):
            e, d = math.exp(loss.epsilon), getattr(loss, "delta", 0.0)
            gap = total_variation(loss) * (m - 1) - region_capacity(loss, m)
            shape = (m - 2) * (e - 1) * (1 - d) * (m - 1) / ((e + 1) * (e + m - 1))
            assert gap == pytest.approx(shape, abs=1e-11)


# Traps


@pytest.mark.parametrize(
    "name", ["trade-off", "baselines", "exact guess", "uniform guess"]
)
def test_trap_r02_bounds_without_knowledge_are_refused_with_it(name):
    with pytest.raises(AssumptionError, match="no knowledge"):
        named_bound(Pure(1), Threat.membership(Prior.uniform(10)), name=name)
    with pytest.raises(AssumptionError):
        success_bound(Pure(1), best_guess=0.1, knowledge=True)


def test_trap_r05_an_uncertain_prior_is_met_by_the_prior_free_cap():
    # Laplace noise for a tenth under ten equal records, against two end points.
    epsilon = 2.12
    two_points = 0.5 * (1 - math.exp(-epsilon / 2))
    assert two_points == pytest.approx(0.327, abs=5e-4)
    assert two_points <= prior_free_bound(epsilon).value
    assert two_points <= variation_bound(Pure(epsilon)).value


def test_trap_r07_add_remove_guarantees_double_before_they_bound_the_advantage():
    epsilon, delta = 0.5, 1e-3
    loss = group_approx(epsilon, delta, n=2)
    assert loss.epsilon == pytest.approx(2 * epsilon)
    assert loss.delta == pytest.approx((1 + math.exp(epsilon)) * delta)
    assert sgd_mu(10.0, 4) == pytest.approx(2 * sgd_mu(10.0, 4, adjacency="add_remove"))


def test_trap_r13_undefined_inversions_are_infinite_or_refused_and_never_nan():
    assert uniform_guess_epsilon_bound(0.9, 10).value == math.inf
    assert variation_epsilon_bound(0.5, collision=0.5).value == math.inf
    assert calibrate_uniform_guess(0.9, 10).value == math.inf
    with pytest.raises(ValueError, match="at most"):
        uniform_guess_epsilon_bound(0.91, 10)
    with pytest.raises(InfeasibleTarget):
        calibrate_variation(1e-4, delta=1e-3)


def test_trap_r15_extreme_parameters_saturate_and_do_not_vanish():
    assert uniform_gaussian_bound(21.0, 8, sharpen=False).value == near(0.875)
    assert uniform_gaussian_bound(60.0, 8).value == near(0.875)
    for epsilon in (709.0, 711.0, 1e5):
        loss = Approx(epsilon, SMALL)
        assert baseline_bound(loss, **TEN).value == near(0.9)
        assert uniform_guess_bound(loss, 10).value == near(0.9)
        assert exact_guess_bound(loss, SKEW).value == near(0.7)
        assert success_bound(Pure(epsilon), best_guess=0.1).value == near(1.0)
        assert program_bound(epsilon, SKEW).value == near(0.7)
        assert uniform_prior_bound(epsilon, 10).value == near(0.9)


def test_trap_r18_theorem_5_15_sorts_the_prior_itself():
    rng = np.random.default_rng(0)
    for _ in range(5):
        shuffled = rng.permutation(SKEW)
        assert exact_guess_bound(Pure(1), shuffled).value == near(0.268095769)


def test_trap_r19_correlated_records_pass_every_bound():
    # Two records equal with probability 0.9 (thesis, Example 2.25).
    attained = 0.9 * (1 - math.exp(-1))
    bound = variation_bound(Pure(1), sharpen=False)
    assert attained == near(0.568909)
    assert attained > bound.value
    assert "the records are independent" in bound.unchecked


def test_trap_r24_a_large_product_of_delta_and_m_is_met_by_another_row():
    # For a uniform prior Corollary 5.16 stays the least of all rows however large the
    # product is; for a skew one Theorem 5.15 can pass Proposition 5.13.
    for epsilon, delta, m in ((1, "0.5", 100), (0, "0.9", 40), (1, SMALL, 10**6)):
        loss, share = Approx(epsilon, delta), 1 / m
        known = {"best_guess": share, "worst_guess": share, "collision": share}
        flat = uniform_guess_bound(loss, m).value
        assert flat <= baseline_bound(loss, **known).value * (1 + 1e-12)
        assert flat <= variation_bound(loss, collision=share).value * (1 + 1e-12)
    threat = Threat(Prior(100, [0.1] * 5 + [0.5 / 95] * 95))
    loss = Approx("0.15", "0.02")
    knapsack = named_bound(loss, threat, name="exact guess").value
    report = best_bound(loss, threat)
    assert report.value < knapsack
    assert report.name in ("baselines", "trade-off")


def test_trap_r25_transposed_hit_sets_give_an_invalid_bound():
    prior = Prior(3, [0.624, 0.241, 0.135])
    hits = np.array([[1, 1, 1], [0, 1, 1], [1, 0, 1]], dtype=bool)
    worst = program_bound(2.0, prior.pmf, hits=hits).value
    assert worst == near(0.293220)
    threat = Threat(prior, Success.from_matrix(hits))
    assert named_bound(Pure(2), threat, name="baselines").value == near(0.406933)
    transposed = Threat(prior, Success.from_matrix(hits.T))
    assert named_bound(Pure(2), transposed, name="baselines").value == near(0.208384)


def test_trap_r26_bounds_on_the_exact_record_are_not_bounds_on_an_attribute():
    people = Prior(range(4), [0.1, 0.4, 0.3, 0.2])  # the bit is that of records 0, 2
    threat = Threat.attribute(people, target=lambda record: record % 2)
    attained = 0.5 * math.tanh(0.5) * (1 - (0.4**2 + 0.6**2)) / 0.5
    assert attained == near(0.221816)
    with pytest.raises(AssumptionError, match="exact success"):
        named_bound(Pure(1), threat, name="exact guess")
    assert best_bound(Pure(1), threat).value >= attained


def test_trap_r27_the_program_returns_its_dual_value():
    for epsilon in (6.0, 8.0, 12.0):
        bound = program_bound(epsilon, SKEW)
        assert bound.value >= bound.witness.details["value"] - 1e-12
        assert "dual certificate" in bound.checked


def test_gdp_of_figure_5_4_is_the_inverted_curve():
    assert gdp_mu(4.0, 1e-5) == near(0.924931)
    value = zero_out_bound(10 / 0.924931, 100, best_guess=0.125, worst_guess=0.125)
    assert value.value == near(0.410827 - 0.125)
