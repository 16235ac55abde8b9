"""Published and derived numbers about Gaussian data, errata and traps, by id."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from undertow.correlation.calibrate import calibrate
from undertow.correlation.gaussian import (
    ClippedRelease,
    Gaussian,
    adversary_factor,
    clipped_output_leakage,
    clipped_tail_leakage,
    exchangeable_factor,
    gaussian_correlation_limit,
    gaussian_crossover,
    gaussian_factor,
    gaussian_laplace_log_density,
    pair_leakage,
    partial_shift,
    scope_leakage,
    worst_factor,
)
from undertow.correlation.leak import leakage
from undertow.correlation.query import (
    AnyQuery,
    CountQuery,
    LinearQuery,
    LipschitzQuery,
    Scope,
)
from undertow.correlation.result import Adversary
from undertow.errors import ModelError, NotApplicable, ScopeWarning

GALTON_SDS = np.array([2.47025581, 2.30702522, 3.58291847])
GALTON_CORRELATION = np.array(
    [
        [1.0, 0.07366461, 0.27535483],
        [0.07366461, 1.0, 0.20165489],
        [0.27535483, 0.20165489, 1.0],
    ]
)
GALTON = GALTON_CORRELATION * np.outer(GALTON_SDS, GALTON_SDS)
FAMILY_IQ = [[416.596, 137.244], [137.244, 225.0]]
HEIGHTS = LinearQuery(clip=(0, 100))


def thesis(group, correlation):
    return gaussian_factor(group, correlation, variant="thesis")


def ar(phi, n):
    return phi ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))


def equicorrelated(m, rho):
    return np.full((m, m), rho) + (1 - rho) * np.eye(m)


def iq_pairs():
    return Gaussian([[225.0, 101.25], [101.25, 225.0]], mean=[100.0, 100.0])


# Vectors of the thesis


def test_T8_the_factor_of_theorem_6_14():
    assert thesis(3, 0.275) == pytest.approx(1.8534483, abs=1e-6)
    assert thesis(2, 0.4483) == pytest.approx(1.4483, abs=1e-9)
    assert thesis(2, 0.45) == pytest.approx(1.45, abs=1e-9)


def test_T9_the_crossover_with_the_general_bound():
    expected = {2: 1, 3: 0.4705882, 4: 0.3, 5: 0.219178, 10: 0.0927835, 20: 0.0429864}
    for m, rho in expected.items():
        assert gaussian_crossover(m) == pytest.approx(rho, abs=1e-6)
    assert gaussian_crossover(100) == pytest.approx(0.00811343, abs=1e-8)


def test_T10_the_level_that_keeps_a_promise_of_one():
    model = Gaussian.limited(0.275, 3)
    found = calibrate(model, 1.0, query=HEIGHTS, method="thesis")
    assert found.epsilon == pytest.approx(0.5395349, abs=1e-6)
    assert found.achieves.value <= 1.0


def test_T11_the_sharp_factor():
    assert gaussian_factor(3, 0.275) == 1.55
    assert gaussian_factor(5, 0.2) == 1.8
    assert gaussian_factor(10, 0.12) == pytest.approx(4.0, abs=1e-9)


@pytest.mark.parametrize(("n", "factor"), [(3, 2.0), (5, 2.5), (8, 2.8125)])
def test_T12_the_searched_factor_of_an_autoregressive_series(n, factor):
    found = worst_factor(ar(0.5, n))
    assert found.value == pytest.approx(factor, abs=1e-9)
    assert found.adversary.known == frozenset()


def test_T13_the_searched_factor_of_galtons_trios():
    by_correlation = worst_factor(GALTON_CORRELATION)
    assert by_correlation.value == pytest.approx(1.4770097, abs=1e-6)
    assert by_correlation.adversary == Adversary(2)
    by_covariance = worst_factor(GALTON)
    assert by_covariance.value == pytest.approx(1.4681782, abs=1e-6)
    assert by_covariance.adversary == Adversary(0)


@pytest.mark.parametrize(
    ("pair", "leak"),
    [
        ((160, 40), 1.4494782),
        ((120, 80), 0.4833293),
        ((200, 0), 1.7351068),
        ((1000, -800), 2.0),
    ],
)
def test_T14_what_a_clipped_sum_leaks_on_and_off_its_interval(pair, leak):
    model = iq_pairs()
    found = clipped_tail_leakage(model, 1.0, clip=(40, 160), pair=pair)
    assert found == pytest.approx(leak, abs=1e-6)
    by_grid = clipped_output_leakage(model, 1.0, clip=(40, 160), pair=pair)
    assert by_grid == pytest.approx(found, abs=1e-9)
    bound = pair_leakage(model, ClippedRelease(1.0, (40, 160)), pair=pair)
    assert found <= bound.value


def test_T15_family_iq_leaks_more_than_the_printed_factor():
    model = Gaussian(FAMILY_IQ, mean=[86.797, 100.0])
    found = clipped_tail_leakage(model, 1.0, clip=(40, 160), pair=(160, 40), target=1)
    assert found == pytest.approx(1.5853997, abs=1e-6)
    assert found > thesis(2, 0.4483)


def test_T34_factors_at_the_upper_confidence_limit_of_galtons_correlation():
    assert thesis(3, 0.325355) == pytest.approx(2.085089, abs=2e-6)
    assert gaussian_factor(3, 0.325355) == pytest.approx(1.650711, abs=2e-6)


def test_T37_the_exact_leakage_of_one_attacker_on_an_unclipped_sum():
    covariance = [[1, 0.5, -0.3], [0.5, 2, 0.2], [-0.3, 0.2, 1.5]]
    signed = adversary_factor(covariance, Adversary(0), signed=True)
    assert signed == pytest.approx(1.2, abs=1e-12)
    assert 1.9 * signed / 1.3 == pytest.approx(1.7538462, abs=1e-6)
    # the same from the two output laws
    output = np.linspace(-4e3, 4e3, 801)
    shifts = np.array([0.5, -0.3])
    rest = np.array([[2, 0.2], [0.2, 1.5]]) - np.outer(shifts, shifts)
    laws = [
        gaussian_laplace_log_density(
            output, mean=signed * x, variance=rest.sum(), scale=1.3
        )
        for x in (1.2, -0.7)
    ]
    assert np.abs(laws[0] - laws[1]).max() == pytest.approx(1.7538462, abs=1e-6)


def test_T40_a_signed_factor_is_no_bound_after_clipping():
    correlation = np.array([[1, 0.81, -0.9], [0.81, 1, -0.9], [-0.9, -0.9, 1]])
    model = Gaussian(1e-4 * correlation, mean=[5.0, 5.0, 100.0])
    assert worst_factor(model.covariance, signed=True).value == pytest.approx(1.0)
    unsigned = adversary_factor(model.covariance, Adversary(0))
    assert unsigned == pytest.approx(2.71, abs=1e-9)
    assert worst_factor(model.covariance).value == pytest.approx(2.8, abs=1e-9)
    # Record 2 stays above the interval, so its clipped value is 10 in both worlds.
    both = [model.given({0: x}) for x in (0.0, 10.0)]
    assert min(law.mean[1] for law in both) > 10 + 50 * math.sqrt(1e-4)
    pair = Gaussian(model.covariance[:2, :2], mean=[5.0, 5.0])
    leak = clipped_tail_leakage(pair, 1.0, clip=(0, 10), pair=(0, 10))
    assert leak == pytest.approx(1.81, abs=1e-4)
    assert leak <= pair_leakage(model, ClippedRelease(1, (0, 10)), pair=(0, 10)).value


# Tables and stories


@pytest.mark.parametrize(
    ("m", "rho", "printed", "middle", "sharp"),
    [
        (3, 0.275, 1.853448, 1.758621, 1.55),
        (2, 0.4483, 1.4483, 1.4483, 1.4483),
        (3, 0.47, 2.995283, 2.773585, 1.94),
        (5, 0.1, 1.892857, 1.75, 1.4),
        (5, 0.2, 4.125, 3.0, 1.8),
        (7, 0.1, 3.45, 2.714286, 1.6),
        (10, 0.05, 3.083333, 2.6, 1.45),
        (10, 0.1, 13.5, 6.333333, 1.9),
        (100, 0.001, 3.771619, None, 1.099),
        (3, 0.9, 21.25, None, 10.0),
    ],
)
def test_the_three_closed_forms_have_their_tabulated_values(
    m, rho, printed, middle, sharp
):
    assert thesis(m, rho) == pytest.approx(printed, abs=1e-6)
    assert gaussian_factor(m, rho) == pytest.approx(sharp, abs=1e-9)
    if middle is not None:
        found = gaussian_factor(m, rho, variant="intermediate")
        assert found == pytest.approx(middle, abs=1e-6)


@pytest.mark.parametrize(
    ("n", "values"),
    [
        (3, (1.25, 1.75, 3.25, 7.75, 21.25)),
        (5, (1.2315, 1.6944, 3.0833, 7.25, 19.75)),
        (7, (1.2722, 1.8167, 3.45, 8.35, 23.05)),
        (10, (1.3472, 2.0417, 4.125, 10.375, 29.125)),
    ],
)
def test_figure_8_of_the_masters_thesis(n, values):
    for share, value in zip((0.1, 0.25, 0.5, 0.75, 0.9), values, strict=True):
        assert thesis(n, share / (n - 2)) == pytest.approx(value, abs=6e-5)


def test_story_3_heights_of_trios_need_half_the_noise_of_the_general_bound():
    found = calibrate(Gaussian(GALTON), 1.0, query=HEIGHTS)
    assert found.noise_scale == pytest.approx(146.8178, abs=1e-3)
    levels = {other.name: other for other in found.alternatives}
    assert levels["general"].parameter == pytest.approx(1 / 3)
    assert "equal" in levels["thesis"].reason
    assert found.accuracy.alpha == pytest.approx(439.827, abs=2e-3)


def galton_family(within, sds=GALTON_SDS):
    classes = GALTON_CORRELATION.copy()
    classes[2, 2] = within
    return Gaussian.exchangeable([1, 1, 15], correlation=classes, sds=sds)


@pytest.mark.parametrize("within", [0.187, 0.3, 0.401])
def test_story_4_a_family_of_seventeen_leaks_seven_times_the_level(within):
    family = galton_family(within)
    found = leakage(family, 1.0, query=HEIGHTS, method="exchangeable")
    assert found.value == pytest.approx(7.059, abs=6e-4)
    assert found.witness.details["target"] == 0
    with pytest.raises(NotApplicable, match="equal"):
        leakage(family, 1.0, query=HEIGHTS, method="thesis")
    by_correlation = exchangeable_factor(galton_family(0.187, 1.0))
    assert by_correlation.value == pytest.approx(5.2039, abs=1e-4)


def test_story_4_agrees_with_the_search_over_every_attacker():
    family = galton_family(0.187)
    searched = leakage(family, 1.0, query=HEIGHTS, method="covariance")
    assert searched.value == pytest.approx(7.0595, abs=1e-4)
    assert searched.witness.details["known"] == []


def test_story_11_a_million_hourly_values_cost_nineteen():
    series = Gaussian.autoregressive(0.9, 1_000_000)
    found = leakage(series, 1.0, query=LinearQuery(clip=(0, 1)))
    assert found.method == "structured"
    assert found.value == pytest.approx(19.0, abs=1e-9)


def test_the_errors_of_galton_and_iq_at_a_promise_of_one():
    galton = Gaussian.limited(0.275, 3)
    expected = {"thesis": 555.243, "general": 898.720, "sharp": 464.338}
    for method, alpha in expected.items():
        found = calibrate(galton, 1.0, query=HEIGHTS, method=method)
        assert found.accuracy.alpha == pytest.approx(alpha, abs=1e-3)
    iq = Gaussian.limited(0.4483, 2)
    found = calibrate(iq, 1.0, query=LinearQuery(clip=(40, 160)), method="thesis")
    assert found.accuracy.alpha == pytest.approx(520.646, abs=1e-3)


# Vectors of the master's thesis


def test_N1_the_gaussian_bound():
    assert thesis(3, 0.275) == pytest.approx(1.853448275862069, abs=1e-12)


def test_N2_the_better_closed_form_is_attained():
    assert gaussian_factor(3, 0.275) == 1.55
    assert worst_factor(equicorrelated(3, 0.275)).value == pytest.approx(1.55, abs=1e-9)


def test_N3_the_crossover_of_three_records():
    assert gaussian_crossover(3) == pytest.approx(0.47058823529411764, abs=1e-15)


def test_N4_the_largest_correlation_for_twice_the_noise():
    def limit(factor, group):
        return gaussian_correlation_limit(factor, group, variant="thesis")

    assert limit(2, 100) == pytest.approx(3.8491147036181676e-4, rel=1e-12)
    assert limit(2, 3) == pytest.approx(0.3076923077, abs=1e-9)
    assert limit(2, 10) == pytest.approx(0.0303030303, abs=1e-9)
    assert limit(1.1, 100) == pytest.approx(3.9843812256e-5, rel=1e-9)
    assert limit(2, 1000) == pytest.approx(3.9840954908e-6, rel=1e-9)
    assert gaussian_correlation_limit(2, 3) == 0.5
    assert gaussian_correlation_limit(2, 10) == pytest.approx(1 / 9)
    assert gaussian_correlation_limit(2, 100) == pytest.approx(0.01010101)


def test_N5_the_exact_factor_of_galtons_covariance():
    sds = np.array([2.4703, 2.3070, 3.5829])
    found = worst_factor(GALTON_CORRELATION * np.outer(sds, sds))
    assert found.value == pytest.approx(1.4681787565802897, abs=3e-5)
    assert worst_factor(GALTON).value == pytest.approx(1.4681787565802897, abs=1e-6)
    assert found.adversary == Adversary(0)


def test_N6_unequal_variances_break_the_formula():
    covariance = [[1, 1.5], [1.5, 9]]
    assert worst_factor(covariance).value == pytest.approx(2.5, abs=1e-9)
    assert thesis(2, 0.5) == pytest.approx(1.5, abs=1e-12)
    assert gaussian_factor(2, 0.5, sd_ratio=3) == 2.5


def test_N7_a_clipped_pair_inside_and_outside_the_interval():
    model = Gaussian([[1e-4, 5e-5], [5e-5, 1e-4]], mean=[5.0, 5.0])
    for pair, leak in (((0, 10), 1.5), ((0, 20), 1.75)):
        found = clipped_output_leakage(model, 1.0, clip=(0, 10), pair=pair)
        assert found == pytest.approx(leak, abs=1e-4)


def test_the_closed_values_that_replace_figures_9_and_10():
    for n, value in ((3, 1.2), (5, 1.4), (7, 1.6)):
        assert gaussian_factor(n, 0.1) == pytest.approx(value, abs=1e-12)
        found = worst_factor(equicorrelated(n, 0.1), signed=True)
        assert found.value == pytest.approx(value, abs=1e-9)


def test_autoregressive_values_of_the_masters_thesis():
    for n, phi, value in ((5, 0.5, 2.5), (10, 0.5, 2.90625), (8, 0.9, 6.5341)):
        assert worst_factor(ar(phi, n)).value == pytest.approx(value, abs=1e-6)


def test_the_ratio_of_two_gaussian_plus_laplace_laws_is_its_tail_value():
    output = np.linspace(-50, 50, 2001)
    laws = [
        gaussian_laplace_log_density(output, mean=m, variance=2.16, scale=10)
        for m in (0.0, 12.0)
    ]
    assert np.abs(laws[0] - laws[1]).max() == pytest.approx(1.2, abs=1e-4)


# Errata of the thesis


def test_CE7_the_bound_carries_the_level_and_m_plus_two():
    model = Gaussian.limited(0.275, 3)
    once = leakage(model, 1.0, query=HEIGHTS, method="thesis").value
    twice = leakage(model, 2.0, query=HEIGHTS, method="thesis").value
    assert twice == pytest.approx(2 * once, rel=1e-12)
    # with m + 3 in the denominator the constant would be below what is attained
    wrong = 1 + 9 * 0.9 / (4 * (1 - 0 * 0.9))
    matrix = [[1, 0.9, 0.43], [0.9, 1, 0], [0.43, 0, 1]]
    assert worst_factor(matrix).value > wrong


def test_CE9_the_gaussian_bound_holds_on_the_clip_interval_only():
    model = iq_pairs()
    promised = leakage(model, 1.0, query=LinearQuery(clip=(40, 160)), method="thesis")
    assert promised.value == pytest.approx(1.45, abs=1e-9)
    assert promised.scope == Scope.inside(40, 160)
    outside = clipped_tail_leakage(model, 1.0, clip=(40, 160), pair=(1000, -800))
    assert outside > promised.value + 0.5


def test_CE10_galton_and_family_iq_have_unequal_variances():
    for covariance in (GALTON, FAMILY_IQ):
        with pytest.raises(NotApplicable, match=r"equal.*covariance"):
            leakage(Gaussian(covariance), 1.0, query=HEIGHTS, method="thesis")
    found = worst_factor(FAMILY_IQ)
    assert found.value == pytest.approx(1.609975, abs=1e-5)
    assert found.adversary == Adversary(1)


def test_CE11_the_accuracy_corollary_needs_a_lipschitz_query():
    model = Gaussian(GALTON)
    for query in (AnyQuery(), CountQuery()):
        with pytest.raises(NotApplicable, match="Lipschitz"):
            leakage(model, 1.0, query=query, method="covariance")
        assert leakage(model, 1.0, query=query).method == "general"
    median = LipschitzQuery(1.0, clip=(0, 100))
    assert leakage(model, 1.0, query=median).value == pytest.approx(1.4681782, abs=1e-6)


def test_CE27_the_shift_is_that_of_the_difference_of_two_values():
    model = Gaussian(GALTON, mean=[69.2, 64.1, 66.8])
    unknown, shifts = partial_shift(GALTON, Adversary(0, {1}))
    laws = [model.given({0: x, 1: 60.0}) for x in (70.0, 65.0)]
    assert unknown == (2,)
    assert laws[0].mean - laws[1].mean == pytest.approx(5.0 * shifts)
    assert laws[0].covariance == pytest.approx(laws[1].covariance)


# Errata of the master's thesis, Chapter 6


def test_LE8_the_denominator_has_n_minus_two():
    assert thesis(4, 0.2) == pytest.approx(1 + 16 / (4 * (1 / 0.2 - 4 + 2)))


def test_LE9_the_regression_has_a_row_for_each_unknown_and_a_column_for_each_told():
    unknown, shifts = partial_shift(ar(0.5, 5), Adversary(2, {4}))
    assert unknown == (0, 1, 3)
    assert shifts.shape == (3,)


def test_LE10_and_LE11_inverse_entries_are_bounded_in_absolute_value():
    matrix = equicorrelated(4, 0.3)
    inverse = np.linalg.inv(matrix)
    assert inverse.min() < 0
    assert np.abs(inverse).max() <= 1 / np.linalg.eigvalsh(matrix)[0]


def test_LE12_the_product_is_at_most_a_quarter_of_the_square():
    for n in range(2, 30):
        products = [(n - 1 - k) * (k + 1) for k in range(n - 1)]
        assert max(products) <= (n / 2) ** 2 < math.comb(n, 2) ** 2 + 1


def test_LE13_the_metric_is_the_level_times_the_distance():
    model = iq_pairs()
    release = ClippedRelease(1.0, (40, 160))
    near = pair_leakage(model, release, pair=(90, 110)).value
    far = pair_leakage(model, release, pair=(80, 120)).value
    assert far == pytest.approx(2 * near, rel=1e-9)


# Traps


def test_trap_c01_and_trap_l01_the_scope_is_printed_and_leaving_it_costs_more():
    model = iq_pairs()
    query = LinearQuery(clip=(40, 160))
    assert leakage(model, 1.0, query=query).scope.summary == (
        "both secrets in [40, 160]"
    )
    release = ClippedRelease(1.0, (40, 160))
    with pytest.warns(ScopeWarning, match="leaves a clip interval"):
        wide = scope_leakage(model, [release], scope=Scope.every_pair())
    assert wide.value == 2.0
    with pytest.warns(ScopeWarning):
        some = scope_leakage(model, [release], scope=Scope.within(200))
    assert some.value == pytest.approx(1.75, abs=1e-9)


def test_trap_c02_the_group_has_everyone_in_it():
    trio = worst_factor(GALTON).value
    family = exchangeable_factor(galton_family(0.187)).value
    assert family > 4 * trio


def test_trap_c11a_and_trap_l17a_signed_factors_are_refused_for_clipped_queries():
    model = Gaussian(GALTON)
    with pytest.raises(NotApplicable, match="freeze"):
        leakage(model, 1.0, query=HEIGHTS, method="linear-exact")


def test_trap_c12_an_arbitrary_dp_mechanism_gets_the_general_bound():
    found = leakage(Gaussian(GALTON), 1.0)
    assert found.value == 3.0
    reasons = {other.name: other.reason for other in found.alternatives}
    assert "metric privacy" in reasons["thesis"]


def test_trap_c15_and_trap_l12_accuracy_is_about_the_clipped_query():
    near, far = (
        calibrate(Gaussian(GALTON, mean=[m] * 3), 1.0, query=HEIGHTS)
        for m in (66.0, 1e6)
    )
    assert near.accuracy == far.accuracy
    assert near.accuracy.alpha == pytest.approx(near.noise_scale * math.log(20))


def test_trap_l02_known_unequal_deviations_need_more_than_a_correlation():
    with pytest.raises(ModelError, match="pass sd_ratio"):
        Gaussian.limited(0.5, 2, sds=[1.0, 3.0])
    covered = Gaussian.limited(0.5, 2, sds=[1.0, 3.0], sd_ratio=3.0)
    assert gaussian_factor(2, 0.5, sd_ratio=covered.sd_ratio) == 2.5


def test_the_unclipped_factor_may_pass_the_group_size():
    rho = 0.9
    edge = math.sqrt(1 - rho**2) - 1e-6
    matrix = [[1, rho, edge], [rho, 1, 0], [edge, 0, 1]]
    best = 1 + 1 / math.sqrt(1 - rho**2)
    assert worst_factor(matrix).value == pytest.approx(best, abs=1e-4)
    assert best > 3
    bounded = leakage(Gaussian(matrix), 1.0, query=HEIGHTS, method="covariance")
    assert bounded.value == 3.0


def test_the_worst_attacker_of_every_size_is_found():
    """A matrix whose worst attacker knows one record, by literal enumeration."""
    matrix = np.array([[1, 0.9, 0.43], [0.9, 1, 0], [0.43, 0, 1]])
    values = {
        (i, known): adversary_factor(matrix, Adversary(i, known))
        for i in range(3)
        for size in range(3)
        for known in itertools.combinations([j for j in range(3) if j != i], size)
    }
    found = worst_factor(matrix)
    place = max(values, key=values.get)
    assert found.adversary == Adversary(place[0], place[1])
    assert found.value == pytest.approx(values[place], abs=1e-9)
