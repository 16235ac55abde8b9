"""Published and derived numbers of the local protocols, by their ids.

Numbers without an id belong to the worked examples of the protocols. Values printed to
six digits are compared at 1e-6, table cells at half of their last digit.
"""

import math

import numpy as np
import pytest

from support.audit_tables import BEIJING, PORTO
from undertow.mechanisms.local import (
    GeneralizedResponse,
    SubsetSelection,
    calibrate_grr,
    calibrate_subset,
    frequency_from_counts,
    grr_advantage,
    grr_success,
    grr_variation,
    hash_buckets,
    hashing_advantage,
    hashing_success,
    hashing_variation,
    oue_advantage,
    oue_variation,
    she_advantage,
    she_variation,
    subset_advantage,
    subset_size,
    subset_success,
    subset_variation,
    sue_advantage,
    sue_variation,
    the_advantage,
    the_threshold,
    unary_success,
)

close = pytest.approx


def success(protocol, m, epsilon):
    """Return the success of the simple attack of a protocol, uniform prior."""
    if protocol == "OLH":
        return hashing_success(m, epsilon, buckets=hash_buckets(epsilon))
    if protocol == "BLH":
        return hashing_success(m, epsilon, buckets=2)
    if protocol == "SSr":
        size = subset_size(m, epsilon, rule="nearest")
        return subset_success(m, epsilon, subset=size)
    advantage = {
        "GRR": grr_advantage,
        "SS": subset_advantage,
        "SUE": sue_advantage,
        "OUE": oue_advantage,
        "SHE": she_advantage,
        "THE": the_advantage,
    }[protocol]
    return advantage(m, epsilon) + 1 / m


def black_box_level(gamma, m):
    """Return the level at which randomised response would have this advantage."""
    return math.log1p(gamma * m) - math.log1p(-gamma * m / (m - 1))


def test_response_of_the_worked_examples():
    assert grr_advantage(10, 1.0) == close(0.131969317, abs=1e-9)
    for epsilon, value in [(0.5, 0.054828), (2, 0.350853), (4, 0.758486)]:
        assert grr_advantage(10, epsilon) == close(value, abs=1e-6)
    assert grr_advantage(11, 1.0) == close(0.122821, abs=1e-6)
    assert grr_advantage(11, 3.0) == close(0.576705, abs=1e-6)
    skew = grr_advantage(3, 1.0, prior=[0.8, 0.1, 0.1])
    assert skew == close(0.123820, abs=1e-6)


@pytest.mark.parametrize(
    ("m", "epsilon"),
    [
        (2, 0.405465),
        (5, 0.538997),
        (10, 0.810930),
        (100, 2.504379),
        (1000, 4.720592),
        (10_000, 7.014126),
    ],
)
def test_calibrated_response_at_one_tenth(m, epsilon):
    found = calibrate_grr(m, 0.1)
    assert found.value == close(epsilon, abs=1e-6)
    assert found.achieves.value <= 0.1


def test_unary_encodings_of_the_worked_examples():
    assert oue_advantage(10, 1.0) == close(0.080789798, abs=1e-9)
    assert oue_advantage(10, 1.0, knowledge="full") == close(0.207952721, abs=1e-9)
    for epsilon, value in [(0.5, 0.031981), (2, 0.217526), (4, 0.403877)]:
        assert oue_advantage(10, epsilon) == close(value, abs=1e-6)
    for epsilon, value in [(1, 0.074698), (3, 0.333858), (14, 0.454543)]:
        assert oue_advantage(11, epsilon) == close(value, abs=1e-6)
    assert oue_advantage(10, 2.0, knowledge="full") == close(0.342717, abs=1e-6)
    for epsilon, none, full in [(1, 0.063962, 0.220427), (2, 0.161580, 0.415905)]:
        assert sue_advantage(10, epsilon) == close(none, abs=1e-6)
        assert sue_advantage(10, epsilon, knowledge="full") == close(full, abs=1e-6)


def test_subset_selection_of_the_worked_examples():
    assert subset_advantage(10, 1.0) == close(0.102304838, abs=1e-9)
    assert subset_advantage(10, 1.0, knowledge="full") == close(0.204609675, abs=1e-9)
    assert subset_advantage(6, 0.5) == close(0.059264714, abs=1e-9)
    assert (subset_size(10, 0.5), subset_size(10, 1), subset_size(10, 2)) == (3, 2, 1)
    assert float(SubsetSelection(10, 1).keep) == close(0.404610, abs=1e-6)
    assert subset_advantage(10, 0.5) == close(0.038013, abs=1e-6)
    assert subset_advantage(10, 2.0) == close(0.350853, abs=1e-6)


@pytest.mark.parametrize(
    ("m", "g", "epsilon", "none", "full"),
    [
        (3, 2, 1.0, 0.115529, 0.154039),
        (4, 3, 1.5, 0.189000, 0.268579),
        (5, 2, 2.0, 0.142799, 0.304638),
    ],
)
def test_local_hashing_of_the_worked_examples(m, g, epsilon, none, full):
    assert hashing_advantage(m, epsilon, buckets=g) == close(none, abs=1e-6)
    found = hashing_advantage(m, epsilon, buckets=g, knowledge="full")
    assert found == close(full, abs=1e-6)


MECHANISMS_11 = """
    0.5 0.050628 0.030366 0.029230
    1 0.122821 0.097382 0.074698
    2 0.334017 0.334017 0.208796
    3 0.576705 0.576705 0.333858
    5 0.845965 0.845965 0.435193
    8 0.905747 0.905747 0.453556
    10 0.908637 0.908637 0.454411
    14 0.909083 0.909083 0.454543
"""


@pytest.mark.parametrize("row", MECHANISMS_11.strip().splitlines())
def test_eleven_categories_of_figure_5_1(row):
    epsilon, grr, subset, oue = map(float, row.split())
    assert grr_advantage(11, epsilon) == close(grr, abs=1e-6)
    assert subset_advantage(11, epsilon) == close(subset, abs=1e-6)
    assert oue_advantage(11, epsilon) == close(oue, abs=1e-6)


CITIES = """
    1 .000563 .000282 820 .000282 .000321 .000160 1440 .000160
    3 .006213 .003135 144 .003127 .003550 .001782 254 .001782
    5 .046060 .024407 20 .024150 .026781 .013927 35 .013761
    6 .116458 .068411 7 .065894 .069872 .037917 13 .037568
    7 .264072 .208823 2 .168369 .169791 .112421 4 .101505
    8 .493866 .493866 1 .312740 .357416 .357416 1 .232025
    9 .726140 .726140 1 .416441 .601911 .601911 1 .365752
    10 .878009 .878009 1 .466732 .804243 .804243 1 .443749
    12 .981271 .981271 1 .495176 .967959 .967959 1 .491768
    14 .997142 .997142 1 .499202 .995380 .995380 1 .498795
    16 .999329 .999329 1 .499750 .999211 .999211 1 .499756
"""


@pytest.mark.parametrize("row", CITIES.strip().splitlines())
def test_two_cities_of_figure_5_7(row):
    epsilon, *cells = map(float, row.split())
    for m, (grr, subset, size, oue) in ((3052, cells[:4]), (5356, cells[4:])):
        assert grr_advantage(m, epsilon) == close(grr, abs=1e-6)
        assert subset_advantage(m, epsilon) == close(subset, abs=1e-6)
        assert subset_size(m, epsilon) == size
        assert oue_advantage(m, epsilon) == close(oue, abs=1e-6)


def test_T_4_1_response_of_a_skew_prior():
    assert grr_success(3, math.log(4)) == close(2 / 3)
    found = grr_advantage(3, math.log(4), prior=[0.5, 0.3, 0.2])
    assert found == close(0.31, abs=1e-9)


def test_T_4_2_response_of_a_skew_prior_at_ln_2():
    found = grr_advantage(3, math.log(2), prior=[0.5, 0.3, 0.2])
    assert found == close(0.155, abs=1e-9)


@pytest.mark.parametrize(
    ("m", "gamma", "epsilon"),
    [
        (2, 0.1, 0.4054651081),
        (100, 0.1, 2.5043787532),
        (8, 0.5, 2.4567357728),
        (2, 0.25, math.log(3)),
        (3052, 0.01, 3.4606759116),
        (3052, 0.5, 8.0245353009),
        (9, 0.0, 0.0),
    ],
)
def test_T_6_1_closed_inverse(m, gamma, epsilon):
    assert calibrate_grr(m, gamma).value == close(epsilon, abs=1e-9)


def test_T_6_2_response_with_a_given_collision():
    prior = [0.35, 0.35, *[0.05] * 6]  # collision 0.26
    assert calibrate_grr(8, 0.1, prior=prior).value == close(0.8109302162, abs=1e-9)


def test_T_6_3_a_target_that_never_binds_is_infinite():
    assert calibrate_grr(4, 0.75).value == math.inf
    assert calibrate_subset(4, 0.75).value == math.inf


def test_T_7_1_frequencies_from_counts():
    protocol = GeneralizedResponse(3, math.log(4))
    found = frequency_from_counts(protocol, [450, 300, 250], reports=1000)
    expected = [0.5666666667, 0.2666666667, 0.1666666667]
    np.testing.assert_allclose(found.frequencies, expected, atol=1e-9)


def test_T_7_2_total_variations():
    # Two cells of the table carry errors of 8e-9 and 3e-9; the last one is cut.
    assert grr_variation(10, 1.0) == close(0.1466325662, abs=1e-8)
    assert subset_variation(10, 1.0) == close(0.2273440808, abs=3e-9)
    assert sue_variation(1.0) == close(0.2449186624, abs=1e-10)
    assert oue_variation(1.0) == close(0.2310585786, abs=1e-10)
    assert she_variation(1.0) == close(0.2418366754, abs=1e-10)
    assert hashing_variation(1.0, buckets=3) == close(0.2427835, abs=1e-7)
    assert subset_variation(6, 1.0, subset=2) == close(0.2913402617, abs=1e-8)


def test_threshold_of_the_least_variance():
    # The table has the minimum to eight digits: its function is flat there.
    assert the_threshold(1.0) == close(0.6185534510, abs=1e-8)
    assert the_threshold(4.0) == close(0.8156757934, abs=1e-8)


def test_T_8_1_report_attack():
    assert grr_success(2, 1.0) == close(0.7310585786, abs=1e-9)
    assert grr_advantage(2, 1.0) == close(0.2310585786, abs=1e-9)
    for m, cells in [
        (3052, [(5, 0.046388, 0.046060), (8, 0.494194, 0.493866)]),
        (5356, [(5, 0.026967, 0.026781), (10, 0.804430, 0.804243)]),
    ]:
        for epsilon, rate, advantage in cells:
            assert grr_success(m, epsilon) == close(rate, abs=1e-6)
            assert grr_advantage(m, epsilon) == close(advantage, abs=1e-6)


@pytest.mark.parametrize(
    ("m", "collision", "values"),
    [
        (3052, 0.03, (0.044693, 0.851948, 0.969095, 0.969994)),
        (5356, 0.05, (0.025446, 0.764174, 0.948446, 0.949990)),
    ],
)
def test_T_8_2_report_attack_with_a_given_collision(m, collision, values):
    # One heavy category h and a uniform rest: h^2 + (1-h)^2/(m-1) is the collision.
    a, b, c = 1 + 1 / (m - 1), -2 / (m - 1), 1 / (m - 1) - collision
    heavy = (-b + math.sqrt(b * b - 4 * a * c)) / (2 * a)
    prior = np.full(m, (1 - heavy) / (m - 1))
    prior[0] = heavy
    for epsilon, value in zip((5, 10, 15, 20), values, strict=True):
        assert grr_advantage(m, epsilon, prior=prior) == close(value, abs=1e-6)


T_8_4 = {
    "GRR": (0.16866479, 3.0),
    "SS": (0.11390094, 2.543620),
    "SUE": (0.04481689, 1.535802),
    "OUE": (0.10465027, 2.448529),
    "SHE": (0.04481685, 1.535801),
    "THE": (0.04106801, 1.444529),
    "BLH": (0.01905148, 0.653745),
    "OLH": (0.10446372, 2.446537),
}


@pytest.mark.parametrize("protocol", T_8_4)
def test_T_8_4_success_and_black_box_level(protocol):
    rate, level = T_8_4[protocol]
    found = success(protocol, 100, 3.0)
    assert found == close(rate, abs=1e-8)
    assert black_box_level(found - 0.01, 100) == close(level, abs=1e-6)


T_8_5 = {
    "GRR": 0.23196932,
    "SS": 0.20230484,
    "SUE": 0.16396209,
    "OUE": 0.18078980,
    "SHE": 0.16366626,
    "THE": 0.15892362,
    "BLH": 0.14612146,
    "OLH": 0.17094046,
}


@pytest.mark.parametrize("protocol", T_8_5)
def test_T_8_5_success_for_ten_categories(protocol):
    assert success(protocol, 10, 1.0) == close(T_8_5[protocol], abs=1e-8)


def test_T_8_6_two_categories():
    expected = {
        "SUE": 0.12245933,
        "OUE": 0.11552929,
        "SHE": 0.12091834,
        "OLH": 0.12139178,
    }
    for protocol, value in expected.items():
        assert success(protocol, 2, 1.0) - 0.5 == close(value, abs=1e-8)


def test_T_8_7_success_and_advantage_are_one_formula():
    for m, epsilon in [(3, 0.4), (40, 2.0), (5356, 6.0)]:
        q, size = 1 / (1 + math.exp(epsilon)), subset_size(m, epsilon)
        oue = (1 - 2 * q) * (1 - (1 - q) ** (m - 1)) / (2 * m * q)
        assert oue_advantage(m, epsilon) == close(oue, rel=1e-9)
        assert unary_success(m, keep=0.5, noise=q) - 1 / m == close(oue, abs=1e-11)
        p = size / (size + (m - size) * math.exp(-epsilon))
        subset = (p * m - size) / (m * size)
        assert subset_advantage(m, epsilon) == close(subset, rel=1e-9)


PROTOCOLS = ("GRR", "SS", "SSr", "SUE", "OUE", "SHE", "THE", "BLH", "OLH")


@pytest.mark.parametrize(
    ("m", "row"),
    [(3052, row) for row in PORTO.strip().splitlines()]
    + [(5356, row) for row in BEIJING.strip().splitlines()],
)
def test_expected_audit_curves(m, row):
    epsilon, *cells = map(float, row.split())
    for protocol, cell in zip(PROTOCOLS, cells, strict=False):
        gamma = success(protocol, m, epsilon) - 1 / m
        # From 15 on, the slope of the inverse enlarges the upward rounding of 1e-12.
        slack = 1e-12 * (1 + math.exp(epsilon))
        assert black_box_level(gamma, m) == close(cell, abs=5.1e-5 + slack)


def test_RE1_the_example_of_hundred_categories():
    found = calibrate_grr(100, 0.1).value
    assert math.exp(found) == close(12.235955, abs=1e-6)
    printed = (1 + 0.1 * 99 / 0.99) / (1 - 0.1 * 0.99)
    assert printed == close(12.2087, abs=5e-4)  # what the wrong denominator gives
    assert grr_advantage(100, math.log(12.2087)) < 0.1


def test_RE5_the_uniform_prior_is_the_worst_for_response():
    pair = np.zeros(10)
    pair[:2] = 0.5
    assert grr_advantage(10, 1.0, prior=pair) == close(0.073316, abs=1e-6)
    assert grr_advantage(10, 1.0) == close(0.131969, abs=1e-6)


def unary_sum(q, pi, *, sign):
    """Return the sum of Example 5.5 in the given order and with the given sign."""
    return sum(
        (1 - q) ** (len(pi) - 1 - i) * pi[i] * ((1 - pi[i]) + sign * q * sum(pi[:i]))
        for i in range(len(pi))
    )


def test_RE6_the_prior_is_ascending():
    q, pi = 1 / (1 + math.e), [0.1, 0.3, 0.6]
    gap = (0.5 - q) / (1 - q)
    found = oue_advantage(3, 1.0, prior=pi)
    assert found == close(gap * unary_sum(q, pi, sign=-1), abs=1e-11)
    assert found > gap * unary_sum(q, pi[::-1], sign=-1) + 0.01


def test_RE7_the_inner_sum_is_subtracted():
    q, pi = 1 / (1 + math.e), [0.1, 0.3, 0.6]
    gap = (0.5 - q) / (1 - q)
    found = oue_advantage(3, 1.0, prior=pi)
    assert found < gap * unary_sum(q, pi, sign=1) - 0.01


def test_RE8_subset_selection_subtracts_the_blind_guess():
    m, size, epsilon = 9, 3, 1.2
    p = size / (size + (m - size) * math.exp(-epsilon))
    hits = math.comb(m, size) * p / math.comb(m - 1, size - 1)
    found = subset_advantage(m, epsilon, subset=size)
    assert found == close((hits - 1) / m, abs=1e-11)


def test_RE9_the_blind_guess_is_subtracted_once():
    # Row x of the channel puts p/omega on the reports an optimal attack maps to x.
    m, size, epsilon = 9, 3, 1.2
    rows = [subset_success(m, epsilon, subset=size)] * m
    found = subset_advantage(m, epsilon, subset=size)
    assert found == close((sum(rows) - 1) / m, abs=1e-11)
    assert found > (sum(rows) - m) / m


def test_RE20_optimised_unary_saturates_from_nine_on():
    limit = 3051 / 6104
    assert limit - oue_advantage(3052, 9.0) > 0.08
    assert limit - oue_advantage(3052, 14.0) < 0.001


def test_AE10_the_moment_estimate_is_unbiased_for_the_input():
    protocol = GeneralizedResponse(3, 1)
    truth = np.array([0.7, 0.3, 0.0])
    p, q = float(protocol.keep), float(protocol.noise)
    seen = 100 * (truth * p + (1 - truth) * q)
    found = frequency_from_counts(protocol, seen, reports=100).frequencies
    np.testing.assert_allclose(found, truth, atol=1e-12)


def test_AE22_the_subset_holds_the_truth_only_with_probability_p():
    assert float(SubsetSelection(10, 1).keep) < 0.41


def test_AE23_subset_selection_is_response_from_eight_on():
    for m in (3052, 5356):
        assert subset_advantage(m, 8.0) == close(grr_advantage(m, 8.0), rel=1e-11)
    rounded = subset_success(5356, 8.0, subset=subset_size(5356, 8.0, rule="nearest"))
    assert black_box_level(rounded - 1 / 5356, 5356) == close(7.5576, abs=5.1e-5)


def test_AE28_the_example_of_hundred_categories():
    assert calibrate_grr(100, 0.1).value == close(2.5043787532, abs=1e-9)


def test_trap_r04_one_level_is_not_one_risk():
    assert grr_advantage(11, 3.0) > 1.7 * oue_advantage(11, 3.0)
    # The ranking flips with knowledge.
    assert grr_advantage(10, 1.0) < oue_advantage(10, 1.0, knowledge="full")


def test_trap_r06_an_uneven_prior_is_the_worst_for_optimised_unary():
    uniform, pair = oue_advantage(4, 1.0), oue_advantage(4, 1.0, prior=[0.5, 0.5, 0, 0])
    assert uniform == close(0.130866, abs=1e-6)
    assert pair == close(0.115529, abs=1e-6)
    uneven = [0.107380, 0.229377, 0.308979, 0.354264]
    assert oue_advantage(4, 1.0, prior=uneven) == close(0.136301, abs=1e-6)


def test_trap_r12_some_families_fall_as_epsilon_grows():
    step = math.log(4)
    before, after = step - 1e-7, step + 1e-7
    for knowledge, low, high in [("none", 0.15, 0.207692), ("full", 0.3, 0.207692)]:
        left = subset_advantage(10, before, knowledge=knowledge)
        right = subset_advantage(10, after, knowledge=knowledge)
        assert (left, right) == (close(low, abs=1e-6), close(high, abs=1e-6))
    level = math.log(3)
    left = hashing_advantage(2, level, buckets=3)
    right = hashing_advantage(2, level, buckets=hash_buckets(level))
    assert (left, right) == (close(0.133333, abs=1e-6), close(0.125, abs=1e-6))


@pytest.mark.parametrize("m", [2, 20, 100])
def test_trap_r12_hashing_falls_where_a_bucket_is_added(m):
    jumps = [math.log(k) for k in range(3, 3000)]
    falls = [
        hashing_advantage(m, e, buckets=g - 1) > hashing_advantage(m, e, buckets=g)
        for g, e in enumerate(jumps, start=4)
    ]
    assert any(falls)


def test_trap_r13_unreachable_targets_are_infinite_not_nan():
    assert calibrate_grr(10, 0.9).value == math.inf
    assert calibrate_grr(10, 1.0).value == math.inf
    assert calibrate_subset(10, 0.9, knowledge="full").value == math.inf


def test_trap_r15_numbers_survive_their_ranges():
    assert subset_size(1000, math.log(199)) == 5
    assert oue_advantage(3052, 1e4) == close(3051 / 6104, rel=1e-11)
    pi = np.arange(1, 5357) / (5356 * 5357 / 2)
    assert 0 < subset_advantage(5356, 1.0, prior=pi) < subset_variation(5356, 1.0)


def test_trap_r15_a_level_on_a_breakpoint_comes_with_its_subset():
    chosen = calibrate_subset(1000, 0.1)
    assert chosen.subset == 5
    assert chosen.achieves.value == close(0.0990, abs=1e-6)
    wrong = subset_advantage(1000, chosen.value, subset=4)
    assert wrong == close(0.1100, abs=5e-5)
    assert chosen.value < math.log(199)


def test_trap_r18_the_closed_form_sorts_its_prior():
    for prior in ([0.6, 0.3, 0.1], [0.1, 0.3, 0.6], [0.3, 0.6, 0.1]):
        assert oue_advantage(3, 1.0, prior=prior) == close(0.117315, abs=1e-6)
    q, pi = 1 / (1 + math.e), [0.6, 0.3, 0.1]
    descending = (0.5 - q) / (1 - q) * unary_sum(q, pi, sign=-1)
    assert descending == close(0.098672, abs=1e-6)
