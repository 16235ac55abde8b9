"""Calibration on hard ground: tiny and touching targets, jumps, claims and words."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest

from undertow.errors import AssumptionError, InfeasibleTarget
from undertow.mechanisms import GaussianMechanism, LaplaceMechanism, RandomizedResponse
from undertow.numeric.search import greatest_level, raise_level
from undertow.risk.calibration import (
    RiskCalibration,
    _scanned,
    calibrate,
    compare,
)
from undertow.risk.card import points, risk_card
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage, worst_prior
from undertow.risk.families import (
    FAMILIES,
    blh,
    exponential,
    finite,
    gaussian,
    grr,
    laplace,
    oue,
    she,
    ss,
)
from undertow.risk.families.base import (
    SubsetWeights,
    answers_advantage,
    identity_advantage,
)
from undertow.risk.families.central import _epsilons
from undertow.risk.families.local import bit_sums
from undertow.risk.finite import Risk
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat
from undertow.risk.utility import utility_at
from undertow_studies import risk_attack as risk_local
from undertow_studies.risk_attack import _best_case, _worst_case
from undertow_studies.risk_theory import _crossing_checks

TEN = Threat(Prior.uniform(10))


def chosen(family, threat, target, **options):
    return calibrate(family, threat, advantage=target, alternatives=False, **options)


# --- the unsafe side ---------------------------------------------------------


@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.3])
@pytest.mark.parametrize("target", [1e-15, 1e-9, 1e-4, 0.2])
def test_epsilon_of_a_gaussian_never_stands_for_too_little_noise(delta, target):
    answers = np.arange(1001.0)
    family = gaussian(answers, parameter="epsilon", delta=delta)
    threat = Threat(Prior.uniform(1001))
    if target < family.least(family.curve(threat)):
        with pytest.raises(InfeasibleTarget):
            chosen(family, threat, target)
        return
    found = chosen(family, threat, target)
    with mpmath.workdps(40):
        gap = 1 / (mpmath.mpf(family.noise(found.value)) * mpmath.sqrt(8))
        risk = mpmath.mpf(1000) / 1001 * mpmath.erf(gap)
        assert risk <= mpmath.mpf(target)


@pytest.mark.parametrize("mu", [1e-6, 0.01, 1.0, 30.0, 1e4, 1e10])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_the_epsilon_of_a_mu_is_rounded_down_and_close(mu, delta):
    found = float(_epsilons(np.array([mu]), delta)[0])
    with mpmath.workdps(60):

        def lost(epsilon):
            m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
            tail = mpmath.ncdf(-m / 2 - e / m)
            return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * tail

        if found == 0.0:
            assert lost(0) <= delta * (1 + 1e-5)
            return
        assert lost(found) >= delta
        assert lost(found * (1 + 1e-5)) < delta


def test_running_sums_over_a_million_records_do_not_drift():
    # Half of the records are three times as likely: a plain running sum is 1e-11 low.
    size = 1_000_000
    weights = np.ones(size)
    weights[: size // 2] = 3.0
    prior = Prior(size, weights / weights.sum())
    pi = np.sort(prior.pmf)
    # With q = 1/2 only the last places count: sum of 2^-(m-i-1) pi_i (above + below/2).
    exact = Fraction(0)
    below = Fraction(math.fsum(pi[:-120]))
    above = [Fraction(0)]
    for p in pi[:-121:-1]:
        above.append(above[-1] + Fraction(p))
    for back, p in enumerate(pi[-120:]):
        place = 119 - back
        term = above[place] + below / 2
        exact += Fraction(2) ** (1 - place) * Fraction(p) * term
        below += Fraction(p)
    found = float(bit_sums(Threat(prior), np.array([0.5]), full=False)[0])
    assert found == pytest.approx(float(exact), rel=5e-13)
    target = 1e-7
    level = chosen(blh(size), Threat(prior), target).value
    assert math.tanh(level / 2) / 2 * float(exact) <= target


def test_a_scan_never_returns_a_level_beyond_one_that_fails():
    def drop(epsilon):  # large at every level below a half, small after it
        gap = 0.5 if epsilon < 0.5 else 0.05
        return Channel([[0.5 + gap / 2, 0.5 - gap / 2], [0.5 - gap / 2, 0.5 + gap / 2]])

    two = Threat(Prior.uniform(2))
    with pytest.raises(InfeasibleTarget, match=r"greater than 0\.25"):
        chosen(finite(drop, 2), two, 0.1)
    late = chosen(finite(drop, 2), two, 0.1, choose="largest")
    assert late.value > 0.5
    assert "not proved monotone" in " ".join(late.warnings)
    assert _scanned(lambda level: 1.0 if level < 0.1 else 0.0, 0.5, last=False) == 0.0


def test_a_safe_size_holds_where_the_floor_rule_keeps_the_size_before():
    # Four records: below 1e-9 the rule still says two, whose membership risk is larger.
    threat = Threat.membership(Prior.uniform(4))
    found = chosen(ss(4), threat, 1.9e-10)
    below = np.linspace(1e-12, found.value, 500)
    assert ss(4).curve(threat).values(below, None).max() <= 1.9e-10


def test_a_claimed_epsilon_below_that_of_the_law_is_refused():
    with pytest.raises(AssumptionError, match="the parameter of the law"):
        worst_prior(RandomizedResponse(4, 2.0), 4, epsilon=0.1)
    with pytest.raises(AssumptionError, match="the parameter of the law"):
        worst_prior(LaplaceMechanism(1), [0.0, 5.0], epsilon=1.0, starts=0)
    held = worst_prior(RandomizedResponse(4, 800.0), 4, epsilon=800.0, starts=0)
    assert held.value <= held.cap <= 0.75 * (1 + 1e-11)


def test_the_worst_prior_found_is_never_above_what_no_prior_exceeds():
    found = worst_prior(GaussianMechanism(1.0), [0.0, 1.0], starts=0)
    assert found.value <= found.cap
    assert found.value == pytest.approx(math.erf(1 / math.sqrt(8)) / 2, abs=1e-9)


def test_the_worst_pair_is_one_that_guesses_tell_apart():
    # Records far apart on the line; the rule hits the ends together, not the middle.
    hits = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 1]], dtype=bool)
    rule, places = Success.from_matrix(hits), [0.0, 5.0, 10.0]
    many = [x + s for x in places for s in (0.0, 0.1, 0.2, 0.3)]
    wide = Success.from_matrix(np.kron(hits, np.ones((4, 4), dtype=bool)))
    for records, success in ((places, rule), (many, wide)):
        found = worst_prior(LaplaceMechanism(2), records, success=success, starts=0)
        best = max(
            advantage(
                LaplaceMechanism(2),
                Threat(Prior.two_point(records, pair), success),
            ).value
            for pair in combinations(records, 2)
        )
        assert found.two_point == pytest.approx(best, abs=1e-9)


def test_scores_that_move_more_than_the_sensitivity_are_refused():
    scores = [[0.0, 3.0], [2.0, 0.0]]
    with pytest.raises(AssumptionError, match=r"at least 3\.0"):
        exponential(scores, sensitivity=1.0)
    with pytest.raises(AssumptionError, match="monotone_scores must be False"):
        exponential(scores, sensitivity=3.0, monotone_scores=True)
    kept = exponential([[0.0, 0.0], [2.0, 1.0]], sensitivity=2, monotone_scores=True)
    assert kept.records == 2


def test_the_default_sensitivity_is_never_below_the_exact_range():
    answers = [-0.1, 1e-17, 0.7]
    family = laplace(answers)
    assert Fraction(family.sensitivity) >= Fraction(0.7) + Fraction(0.1)
    with pytest.raises(
        AssumptionError, match=r"at least the range 0\.30000000000000004"
    ):
        laplace([0.1, 0.4], sensitivity=0.3)
    with pytest.raises(ValueError, match=r"delta must be in \(0, 1\)"):
        gaussian([0, 1], parameter="epsilon", delta=0.0)


# --- targets that do not bind ------------------------------------------------


@pytest.mark.parametrize("name", ["grr", "sue", "oue", "the", "ss"])
def test_what_a_family_never_reaches_does_not_bind(name):
    family, prior = FAMILIES[name](4), Prior.uniform(4)
    parity = Threat(prior, Success.attribute(lambda record: record % 2))
    most = {"grr": 0.5, "sue": 0.5, "ss": 0.5, "oue": 0.25, "the": 1 / 3}[name]
    above = chosen(family, parity, most + 1e-3)
    assert (above.value, above.binding, above.shown) == (math.inf, False, "any")
    assert f"{name.upper()} has at most" in above.method
    below = chosen(family, parity, most - 1e-3)
    assert below.binding
    assert most - 2e-3 < family.risk(below.value, parity).value <= most - 1e-3
    blind = chosen(family, Threat(prior, Success.within("absolute", 9)), 0.1)
    assert not blind.binding


def test_equal_answers_limit_what_noise_can_leave():
    threat = Threat(Prior(4, [0.4, 0.3, 0.2, 0.1]))
    family = laplace([0.0, 0.0, 1.0, 1.0])
    plain = Channel([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    most = advantage(plain, threat).value
    assert answers_advantage(family.answers, threat) == pytest.approx(most, rel=1e-12)
    assert not chosen(family, threat, most + 1e-6).binding
    assert chosen(family, threat, most - 1e-6).binding


@pytest.mark.parametrize("target", [0.95, 1.0, 3.0, math.inf])
def test_a_target_beyond_every_risk_is_met_with_all_alternatives(target):
    found = calibrate(grr(10), TEN, advantage=target)
    assert found.value == math.inf
    assert all(a.parameter == math.inf for a in found.alternatives[:2])


def test_a_table_has_no_structure_where_nothing_binds():
    table = calibrate(ss(10), TEN, advantage=[0.1, 0.95])
    assert table.structure.tolist() == [2, 0]


# --- closed forms and speed --------------------------------------------------


def test_the_published_record_has_the_risk_of_the_engine_under_every_threat():
    rng = np.random.default_rng(3)
    for _ in range(250):
        m = int(rng.integers(2, 9))
        pmf = rng.dirichlet(np.full(m, rng.choice([0.05, 1.0])))
        places = (rng.choice(30, m, replace=False) / 10).tolist()
        rows = (rng.random((m + 2, m)) < rng.choice([0.2, 0.7])) | np.eye(
            m + 2, m, dtype=bool
        )
        success = [
            Success.exact(),
            Success.attribute(lambda r: round(10 * r) % 3),
            Success.within("absolute", float(rng.choice([0.1, 0.5, 5.0]))),
            Success.within("absolute", 0.3, guesses=[1.05, 99.0]),
            Success.from_matrix(rows),
        ][rng.integers(5)]
        known = [
            Knowledge.none(),
            Knowledge.full(),
            Knowledge.from_labels(rng.integers(0, 3, m).tolist()),
        ][rng.integers(3)]
        threat = Threat(
            Prior(places, pmf), success, known, abstain=bool(rng.random() < 0.3)
        )
        engine = advantage(Channel(np.eye(m)), threat).value
        assert identity_advantage(threat) == pytest.approx(engine, abs=1e-13)
        assert (identity_advantage(threat) > 0) == (engine > 0)


def test_response_on_a_line_of_many_records_is_exact():
    threat = Threat(Prior.uniform(range(30_000)), Success.within("absolute", 3))
    found = chosen(grr(30_000), threat, 0.1)
    assert found.exact
    # A guess near an end that holds the truth hits least; inside, seven records.
    inner = 1 - 7 / 30_000
    assert found.achieves.value == pytest.approx(0.1, rel=1e-9)
    assert grr(30_000).curve(threat).limit == pytest.approx(inner, rel=1e-6)


def test_larger_sets_tell_less_under_every_threat():
    rng = np.random.default_rng(5)
    for _ in range(20):
        prior = Prior(7, rng.dirichlet(np.full(7, 0.5)))
        rows = (rng.random((7, 7)) < 0.3) | np.eye(7, dtype=bool)
        labels = Knowledge.from_labels(rng.integers(0, 3, 7).tolist())
        for threat in (
            Threat(prior),
            Threat(prior, Success.from_matrix(rows)),
            Threat(prior, Success.from_matrix(rows), labels),
        ):
            values = SubsetWeights(7, threat)(np.arange(1, 7))
            assert (np.diff(values) <= 1e-12).all()


def test_one_safe_level_of_a_large_skew_prior_needs_few_sizes():
    weights = np.arange(1.0, 20_001.0)
    threat = Threat(Prior(20_000, weights / weights.sum()))
    found = chosen(ss(20_000), threat, 0.1)
    size = found.structure["subset"]
    assert ss(20_000).risk(found.value, threat, structure=size).value <= 0.1
    above = ss(20_000).risk(found.value * (1 + 1e-6), threat).value
    assert above > 0.1


def test_the_engine_is_asked_a_dozen_times():
    calls = []

    def risk(level):
        calls.append(level)
        return 0.9 * -math.expm1(-level / 3.0)

    level = greatest_level(risk, 0.2, least=1e-9, largest=1e4, start=0.05)
    assert len(calls) <= 16
    assert 0.2 * (1 - 1.1e-10) <= 0.9 * -math.expm1(-level / 3.0) <= 0.2

    def jump(level):
        return 0.1 if level < 2.0 else 0.6

    assert raise_level(jump, 0.2, 1.0, 3.0) == pytest.approx(2.0, rel=1e-11)
    assert greatest_level(lambda level: 0.0, 0.2, least=1e-9, largest=50.0) == 50.0


# --- words and digits --------------------------------------------------------


@pytest.mark.parametrize(
    ("parameter", "value", "shown"),
    [
        ("epsilon", 4.72059999, "4.7205"),
        ("epsilon", math.nextafter(0.8109, 0), "0.8108"),
        ("sigma", math.nextafter(1.7717, 2), "1.7718"),
        ("sigma", 1.77161, "1.7717"),
        ("epsilon", 1.23456e-7, "1.2345e-7"),
        ("sigma", 1.23451e14, "1.2346e+14"),
        ("scale", 2e-5, "2.0001e-5"),
    ],
)
def test_what_is_shown_lies_on_the_private_side(parameter, value, shown):
    found = RiskCalibration(parameter, value, Risk(0.1, "none"), "none")
    assert found.shown == shown
    exact = Fraction(found.shown)
    assert exact <= Fraction(value) if parameter == "epsilon" else exact >= value


@pytest.mark.parametrize(
    "target", [True, np.True_, "0.1", None, ["a"], np.array([True]), 0.1j]
)
def test_a_target_must_be_a_number(target):
    with pytest.raises(TypeError, match="must be a number or a list of numbers"):
        calibrate(grr(10), TEN, advantage=target)
    with pytest.raises(TypeError, match="advantage must be"):
        compare([grr(10)], TEN, advantage=target)


def test_a_comparison_has_one_target():
    with pytest.raises(TypeError, match="must be one number"):
        compare([grr(10)], TEN, advantage=[0.1])


@pytest.mark.parametrize("make", [grr, oue, ss, blh])
def test_a_vanishing_target_has_no_utility_left(make):
    found = chosen(make(10), TEN, 1e-300)
    assert 0 < found.value < 1e-290
    assert found.utility.value == math.inf
    assert utility_at(gaussian(range(10)), 1e300).value > 1e299


def test_refusals_name_a_way_out_that_exists():
    with pytest.raises(InfeasibleTarget, match="raise the target"):
        chosen(she(10), TEN, 1e-15)
    noisy = gaussian(range(10), parameter="epsilon", delta=0.1)
    with pytest.raises(InfeasibleTarget, match="lower delta"):
        chosen(noisy, TEN, 1e-4)
    with pytest.raises(ValueError, match="structure must be None for grr"):
        grr(10).risk(1.0, TEN, structure=3)
    with pytest.raises(ValueError, match="subset must be"):
        ss(10).risk(1.0, TEN, structure=10)


def test_points_read_a_float_as_it_is_written():
    assert [points(x) for x in (0.05, 0.07, 0.1, 0.3)] == ["5.0", "7.0", "10.0", "30.0"]
    assert points(0.05 * (1 + 1e-12)) == "5.1"


def test_a_card_speaks_of_its_own_attacker_only():
    hours = Prior.uniform(range(11))
    family = laplace(range(11))
    blind = Threat(hours, Success.within("absolute", 50))
    said = risk_card(family, blind, parameter=1.0, what="hours").sentence
    assert said == (
        "Taking part does not help this attacker to guess a person's hours to within "
        "50."
    )
    night = Knowledge.attributes(lambda h: h > 5, summary="whether it is night")
    said = risk_card(family, Threat(hours, knowledge=night), parameter=1.0).sentence
    assert "guessed by somebody who knows whether it is night" in said
    counted = Prior(list(np.arange(11)), np.full(11, 1 / 11))
    named = [o.threat for o in risk_card(family, Threat(counted), parameter=1.0).others]
    assert "a guess within 2.5" in named


# --- checks of the studies that can fail -------------------------------------


def _case(low, high, real=True):
    """Return a prior whose advantage is `low` at no threshold and `high` beyond."""
    return SimpleNamespace(exact=lambda e, eta: high if eta else low, real=real)


def test_the_checks_on_extreme_priors_can_come_out_otherwise():
    uniform, skewed = _case(0.2, 0.5), _case(0.6, 0.4)
    assert _worst_case(uniform, uniform, skewed).status == "differs"
    assert _worst_case(uniform, uniform, _case(0.6, 0.6)).status == "match"
    assert _best_case(uniform, _case(0.3, 0.4)).status == "erratum"
    assert _best_case(uniform, _case(0.1, 0.4)).status == "match"
    assert _best_case(uniform, _case(0.3, 0.7)).status == "differs"
    assert _best_case(uniform, _case(0.3, 0.7, real=False)).status == "stand-in"


def test_the_check_that_success_and_advantage_coincide_can_fail():
    exact = {"GRR": tuple(0.0 for _ in risk_local._GRID)}
    assert risk_local._coincidence("nowhere", 5000, exact).status == "differs"


def test_the_check_of_the_crossing_can_fail():
    def risk(slope):
        return lambda e: slope * (e - 0.005) * (e - 13.5)

    above = {"OUE": risk(1.0), "Laplace": lambda e: 0.0}
    assert _crossing_checks(above)[0].status == "differs"
    below = {"OUE": risk(-1.0), "Laplace": lambda e: 0.0}
    assert _crossing_checks(below)[0].status == "erratum"
