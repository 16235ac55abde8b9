"""Published and derived numbers of calibration, comparison, worst priors and cards.

Values printed to six digits are compared at 1e-6, table cells at half of their last
digit. Stories are the worked questions of practice.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.mechanisms import LaplaceMechanism, RandomizedResponse
from undertow.mechanisms.local import subset_size
from undertow.privacy import Approx, Pure
from undertow.risk.bounds import calibrate_exact_guess, calibrate_variation
from undertow.risk.calibration import calibrate, compare
from undertow.risk.card import risk_card
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage, success_rate, worst_prior
from undertow.risk.families import (
    FAMILIES,
    blh,
    gaussian,
    grr,
    laplace,
    laplace_sum,
    olh,
    oue,
    ss,
    sue,
    the,
)
from undertow.risk.selector import (
    best_bound,
    best_success_bound,
    calibrate_black_box,
)
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat
from undertow.risk.utility import utility_at_equal_risk

CELLS = Threat(Prior.uniform(1000))
TEN = Threat(Prior.uniform(10))
ELEVEN = Threat(Prior.uniform(11))
SKEW = Prior(8, [0.35, 0.35, *[0.05] * 6])
LINE = [k / 10 for k in range(11)]


def near(value, digits=6):
    return pytest.approx(value, abs=1.01 * 10.0**-digits)


def level(family, threat, target):
    return calibrate(family, threat, advantage=target, alternatives=False).value


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
def test_response_is_calibrated_to_a_tenth(m, epsilon):
    assert level(grr(m), Threat(Prior.uniform(m)), 0.1) == near(epsilon)


def test_story_of_the_home_cell():
    chosen = calibrate(ss(1000), CELLS, advantage=0.1)
    assert chosen.value == near(5.2933, 4)
    assert chosen.structure == {"subset": 5}
    assert level(oue(1000), CELLS, 0.1) == near(5.3106, 4)
    assert level(sue(1000), CELLS, 0.1) == near(9.2303, 4)
    assert calibrate_black_box(0.1, CELLS).value == near(4.7206, 4)
    known = Threat.membership(Prior.uniform(1000))
    routes = {
        a.name: a.parameter
        for a in calibrate(grr(1000), known, advantage=0.1).alternatives
    }
    plain = calibrate_variation(0.1, collision=1e-3, sharpen=False).value
    assert plain == near(0.2009, 4)
    assert routes["any mechanism, any knowledge"] == near(0.4013, 4)
    assert routes["any mechanism, this threat"] == near(0.4013, 4)
    assert calibrate(oue(1000), CELLS, advantage=0.1).shown == "5.3105"
    assert calibrate(grr(1000), CELLS, advantage=0.1).shown == "4.7205"


def test_story_of_eleven_answers_at_level_three():
    expected = {"grr": 0.5767, "ss": 0.5767, "oue": 0.3339}
    for name, value in expected.items():
        assert FAMILIES[name](11).risk(3.0, ELEVEN).value == near(value, 4)
    assert laplace(range(11)).risk(3.0, ELEVEN).value == near(0.1266, 4)
    normal = gaussian(range(11), parameter="epsilon", delta=1e-5)
    assert normal.risk(3.0, ELEVEN).value == near(0.0261, 4)


RANKING = {
    "gaussian": (0.0107, 0.0297),
    "laplace": (0.0486, 0.1213),
    "sue": (0.0640, 0.2204),
    "oue": (0.0808, 0.2080),
    "ss": (0.1023, 0.2046),
    "grr": (0.1320, 0.1320),
}


def ten(name):
    if name == "gaussian":
        return gaussian(range(10), parameter="epsilon", delta=1e-5)
    return laplace(range(10)) if name == "laplace" else FAMILIES[name](10)


@pytest.mark.parametrize("name", sorted(RANKING))
def test_story_of_the_ranking_that_flips_with_what_is_known(name):
    blind, member = RANKING[name]
    assert ten(name).risk(1.0, TEN).value == near(blind, 4)
    known = Threat.membership(Prior.uniform(10))
    assert ten(name).risk(1.0, known).value == near(member, 4)


FIGURE_5_1 = [
    (0.5, 0.050628, 0.030366, 0.029230, 0.022446, 0.005158, 7.0318, 0.222653),
    (1, 0.122821, 0.097382, 0.074698, 0.044337, 0.009721, 3.7306, 0.420107),
    (2, 0.334017, 0.334017, 0.208796, 0.086511, 0.018188, 1.9938, 0.692358),
    (3, 0.576705, 0.576705, 0.333858, 0.126629, 0.026075, 1.3906, 0.822862),
    (5, 0.845965, 0.845965, 0.435193, 0.201090, 0.040643, 0.8919, 0.896922),
    (8, 0.905747, 0.905747, 0.453556, 0.299709, 0.060353, 0.6002, 0.908481),
    (10, 0.908637, 0.908637, 0.454411, 0.357699, 0.072430, 0.4999, 0.909008),
    (14, 0.909083, 0.909083, 0.454543, 0.457650, 0.094667, 0.3820, 0.909089),
]


@pytest.mark.parametrize("row", FIGURE_5_1)
def test_figure_5_1_mechanisms_at_equal_level(row):
    epsilon, *values, sigma, bound = row
    normal = gaussian(LINE, parameter="epsilon", delta=1e-5)
    families = [grr(11), ss(11), oue(11), laplace(LINE), normal]
    found = [family.risk(epsilon, ELEVEN).value for family in families]
    assert found == [near(v) for v in values]
    assert normal.noise(epsilon) == near(sigma, 4)
    assert math.tanh(epsilon / 2) * 10 / 11 == near(bound)


def test_figure_5_1_total_variation_bounds_and_order():
    normal = gaussian(LINE, parameter="epsilon", delta=1e-5)
    families = [grr(11), oue(11), laplace(LINE), normal]
    found = [
        float(f.variation(np.array([f.level(1.0)]))[0]) * 10 / 11 for f in families
    ]
    assert found == [near(v) for v in (0.122821, 0.210053, 0.357699, 0.096925)]
    for epsilon in (0.01, 0.5, 2.0, 7.0, 13.8):
        order = [normal, laplace(LINE), oue(11), ss(11), grr(11)]
        risks = [f.risk(epsilon, ELEVEN).value for f in order]
        assert risks == sorted(risks)


def test_figure_5_1_laplace_crosses_optimised_unary():
    for epsilon, first in ((13.86281, False), (13.86283, True)):
        noise = laplace(LINE).risk(epsilon, ELEVEN).value
        assert (noise > oue(11).risk(epsilon, ELEVEN).value) == first


FIGURE_5_2 = [
    (0.05, 1.0289, 2.9117, None, math.inf),
    (0.10, 2.1201, 1.4130, 0.0, math.inf),
    (0.15, 3.2818, 0.9128, 0.4055, 7.3884),
    (0.20, 4.5237, 0.6622, 0.6931, 4.3219),
    (0.30, 7.2984, 0.4105, 1.0986, 2.7268),
    (0.50, 14.5967, 0.2052, 1.6094, 1.8614),
    (0.70, 27.0734, 0.1107, 1.9459, 1.5395),
    (0.80, 39.5500, 0.0757, 2.0794, 1.4406),
]


def test_figure_5_2_utility_at_equal_risk():
    table = utility_at_equal_risk([row[0] for row in FIGURE_5_2], 10)
    for k, (_, epsilon, error, success, success_error) in enumerate(FIGURE_5_2):
        assert table.epsilon[k] == near(epsilon, 4)
        assert table.error[k] == near(error, 4)
        if success is None:
            assert math.isnan(table.success_epsilon[k])
        else:
            assert table.success_epsilon[k] == near(success, 4)
        if success_error < math.inf:
            assert table.success_error[k] == near(success_error, 4)
        else:
            assert table.success_error[k] > 1e6
    assert table.laplace_epsilon[-2:] == near(np.array([2.1203, 2.5257]), 4)
    assert table.laplace_error[-2:] == near(np.array([1.4129, 1.1861]), 4)
    assert table.two_point[1] == near(0.3268, 4)


def test_figure_5_2_the_advantage_asks_for_less_noise_throughout():
    table = utility_at_equal_risk(np.linspace(0.101, 0.899, 50), 10)
    assert (table.error < table.success_error).all()


def test_story_of_the_same_risk_with_better_utility():
    row = utility_at_equal_risk(0.2, 10)
    assert row.error[0] == near(0.662, 3)
    assert row.success_error[0] == near(4.32, 2)


@pytest.mark.parametrize(("m", "sigma"), [(11, 0.051767), (5, 0.113381)])
def test_gaussian_noise_of_seven_tenths(m, sigma):
    answers = np.linspace(0, 1, m)
    assert gaussian(answers).risk(0.7, Threat(Prior.uniform(m))).value == near(sigma)


def test_gaussian_noise_for_a_fifth():
    answers = np.linspace(0, 1, 10)
    assert level(gaussian(answers), TEN, 0.2) == near(0.196855)


def test_laplace_on_uneven_answers():
    family = laplace([0, 0.1, 0.5, 0.55, 1])
    assert family.risk(2.0, Threat(Prior.uniform(5))).value == near(0.167197)


@pytest.mark.parametrize(
    ("epsilon", "value"), [(1, 0.121313), (2, 0.217321), (4, 0.355030)]
)
def test_laplace_membership_of_ten(epsilon, value):
    known = Threat.membership(Prior.uniform(10))
    assert laplace(range(10)).risk(epsilon, known).value == near(value)


def test_protocols_of_a_hundred_categories_at_level_three():
    threat = Threat(Prior.uniform(100))
    expected = {
        grr: 0.159,
        ss: 0.104,
        oue: 0.095,
        olh: 0.094,
        sue: 0.035,
        the: 0.031,
        blh: 0.009,
    }
    for make, value in expected.items():
        assert make(100).risk(3.0, threat).value == near(value, 3)


def test_budget_of_ten_points_on_an_attribute():
    assert calibrate_black_box(0.1, Threat(Prior.uniform(100))).value == near(2.5044, 4)
    assert calibrate_black_box(0.1, Threat(Prior.uniform(2))).value == near(0.4055, 4)
    collision = SKEW.collision
    loose = calibrate_variation(0.1, collision=collision, sharpen=False)
    assert loose.value == near(0.2719, 4)
    assert calibrate_exact_guess(0.1, SKEW).value == near(0.4112, 4)
    assert level(grr(8), Threat(SKEW), 0.1) == near(0.8109, 4)


def test_deployed_level_explained():
    threat = Threat(Prior.uniform(8))
    loss = Approx(1, "1e-5")
    assert best_success_bound(loss, threat).value == near(0.339795)
    assert best_bound(loss, threat).value == near(0.154715)
    assert threat.best_guess == 0.125


def test_skew_prior_of_an_unknown_mechanism():
    rows = {row.name: row.value for row in best_bound(Pure(1), Threat(SKEW)).rows}
    assert rows["total variation"] == near(0.342, 3)
    assert rows["exact guess"] == near(0.242, 3)
    assert rows["linear program"] == near(0.178, 3)


def test_story_of_the_board_that_asks_about_eighty_percent():
    prior = Prior(3, [0.8, 0.1, 0.1])
    response = grr(3).source(1.0, Threat(prior))
    assert success_rate(response, Threat(prior)).value == near(0.8)
    card = risk_card(grr(3), Threat(prior), parameter=1.0)
    assert card.baseline == near(0.8)
    assert card.advantage == near(0.123820)
    assert card.success_with == near(0.576117)
    silent = Channel(np.full((3, 2), 0.5))
    nothing = risk_card(silent, Threat(prior))
    assert (nothing.baseline, nothing.advantage) == (near(0.8), 0.0)


def test_story_of_the_weekly_hours():
    hours = Prior.uniform(range(101))
    threat = Threat(hours, Success.within("absolute", 40))
    assert laplace_sum(0, 100).risk(4.0, threat).value == near(0.31247, 5)
    ends = Threat(Prior.two_point(range(101), (0, 100)), threat.success)
    assert laplace_sum(0, 100).risk(4.0, ends).value == near(0.43233, 5)
    assert best_success_bound(Pure(4), threat).value == near(0.9964, 4)
    card = risk_card(laplace_sum(0, 100), threat, parameter=4.0, what="working hours")
    assert card.points == "31.3"
    assert "working hours to within 40" in card.sentence


def test_story_of_an_unknown_prior():
    found = worst_prior(LaplaceMechanism(1), [0.0, 1.0])
    assert found.value == near(0.5 * (1 - math.exp(-0.5)))
    assert found.caps["prior-free cap tanh(epsilon/4)"] == near(math.tanh(0.25))
    assert found.value < found.cap


def test_trap_r04_one_level_is_not_one_risk_and_the_order_needs_a_threat():
    risks = {name: ten(name).risk(1.0, TEN).value for name in RANKING}
    known = Threat.membership(Prior.uniform(10))
    members = {name: ten(name).risk(1.0, known).value for name in RANKING}
    assert max(risks, key=risks.get) == "grr"
    assert max(members, key=members.get) == "sue"
    assert "knowing nothing" in compare([grr(10)], TEN, advantage=0.1).threat


def test_trap_r05_noise_for_ten_records_is_too_little_for_two():
    epsilon = level(laplace(range(10)), TEN, 0.1)
    assert epsilon == near(2.1201, 4)
    ends = Threat(Prior.two_point(range(10), (0, 9)))
    assert laplace(range(10)).risk(epsilon, ends).value == near(0.327, 3)
    wide = Threat(Prior.uniform(range(10)), Success.within("absolute", 3))
    assert laplace(range(10)).risk(epsilon, wide).value > 0.1
    warned = calibrate(laplace(range(10)), TEN, advantage=0.1)
    assert any("another threat" in text for text in warned.warnings)
    routes = {a.name: a.parameter for a in warned.alternatives}
    safe = routes["any mechanism, any knowledge and prior"]
    assert laplace(range(10)).risk(safe, ends).value <= 0.1


def test_trap_r06_the_uniform_prior_is_the_worst_for_response():
    found = worst_prior(RandomizedResponse(10, 1), 10)
    assert found.value == near(0.132, 3)
    assert found.two_point == pytest.approx(0.073, abs=5e-4)
    assert found.prior.pmf == pytest.approx(np.full(10, 0.1), abs=1e-3)


def test_trap_r06_an_uneven_prior_is_found_for_optimised_unary():
    found = worst_prior(oue(4).source(1.0, Threat(Prior.uniform(4))), 4)
    assert found.value == near(0.136301)
    assert found.uniform == near(0.130866)
    assert found.two_point == near(0.115529)
    assert found.prior.pmf.max() > 0.34


@pytest.mark.parametrize(
    ("scale", "knowledge", "value", "pair"),
    [
        (5, "none", 0.4810, 0.4590),
        (5, "full", 0.4919, 0.4590),
        (8, "none", 0.577, 0.491),
        (8, "full", 0.584, 0.491),
    ],
)
def test_trap_r06_three_points_beat_two_for_laplace(scale, knowledge, value, pair):
    known = Knowledge.full() if knowledge == "full" else Knowledge.none()
    found = worst_prior(LaplaceMechanism(1 / scale), LINE, knowledge=known)
    assert found.value == pytest.approx(value, abs=5.1e-4)
    assert found.two_point == pytest.approx(pair, abs=5.1e-4)
    assert (found.prior.pmf > 1e-3).sum() >= 3


def test_trap_r06_three_points_beat_two_for_hours():
    found = worst_prior(
        LaplaceMechanism(25),
        list(range(0, 101, 10)),
        success=Success.within("absolute", 40),
    )
    assert found.value == near(0.4448, 4)
    assert found.two_point == near(0.4323, 4)
    assert found.prior.pmf[[0, 5, 10]] == pytest.approx([0.408, 0.184, 0.408], abs=2e-3)
    assert found.value < found.cap


def test_trap_r12_a_safe_level_of_subset_selection_stops_before_the_hump():
    known = Threat.membership(Prior.uniform(10))
    safe = calibrate(ss(10), known, advantage=0.25, alternatives=False)
    far = calibrate(ss(10), known, advantage=0.25, choose="largest", alternatives=False)
    assert safe.value < math.log(4) < far.value
    between = ss(10).risk(math.log(4) * (1 - 1e-12), known).value
    assert between == near(0.3)
    assert ss(10).risk(math.log(4) + 1e-6, known).value == near(0.2077, 4)


def test_trap_r12_hashing_falls_where_a_bucket_is_added_and_is_scanned():
    threat = Threat(Prior.uniform(2))
    below = olh(2).risk(math.log(3) - 1e-6, threat).value
    above = olh(2).risk(math.log(3) + 1e-6, threat).value
    assert (below, above) == (near(0.1333, 4), near(0.1250, 4))
    safe = calibrate(olh(2), threat, advantage=0.13, alternatives=False)
    far = calibrate(olh(2), threat, advantage=0.13, choose="largest")
    assert safe.value < math.log(3) < far.value
    assert safe.structure == {"buckets": 3}


def test_trap_r13_targets_out_of_reach_are_infinite_with_a_reason():
    for family, target in ((grr(10), 0.9), (oue(10), 0.45), (laplace(range(10)), 0.9)):
        found = calibrate(family, TEN, advantage=target, alternatives=False)
        assert found.value == math.inf
        assert "never binds" in found.method


def test_trap_r14_a_flat_curve_is_not_inverted_beyond_its_digits():
    family, threat = oue(3052), Threat(Prior.uniform(3052))
    found = calibrate(family, threat, advantage=0.4998, alternatives=False)
    slope = family.risk(found.value + 0.1, threat).value - found.achieves.value
    assert 0 < slope < 0.01
    assert found.achieves.value <= 0.4998
    limit = family.curve(threat).limit
    assert level(family, threat, limit * (1 - 1e-13)) < math.inf


def test_trap_r15_extreme_targets_and_levels_survive():
    threat = Threat(Prior.uniform(3))
    for name in ("grr", "sue", "oue", "ss", "the", "blh"):
        family = FAMILIES[name](3)
        tiny = level(family, threat, 1e-14)
        assert 0 < tiny < 1e-12
        assert np.isfinite(family.risk(1e4, threat).value)


def test_trap_r15_a_deployed_size_must_be_the_calibrated_one():
    chosen = calibrate(ss(1000), CELLS, advantage=0.1, alternatives=False)
    assert ss(1000).risk(chosen.value, CELLS, structure=5).value <= 0.1
    assert ss(1000).risk(chosen.value, CELLS, structure=4).value == near(0.1100, 4)
    assert subset_size(1000, chosen.value) == 5
    assert advantage(Channel(np.eye(2)), Threat(Prior.uniform(2))).value == near(0.5)
