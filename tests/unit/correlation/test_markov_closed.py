import itertools
import math

import mpmath
import numpy as np
import pytest

from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.projective import (
    OmegaTheorem,
    ProjectiveTheorem,
    finite_leakage,
    influence,
    projective_budget,
    projective_diameter,
    projective_leakage,
    ratio_diameter,
)
from undertow.correlation.markov.published import (
    GammaTheorem,
    RatioTheorem,
    ZhaoTheorem,
)
from undertow.correlation.markov.steps import (
    BlockTheorem,
    HigherOrderChain,
    StepTheorem,
    WindowTheorem,
)
from undertow.correlation.markov.tree import TreeModel, TreeTheorem
from undertow.correlation.query import AnyQuery, LinearQuery
from undertow.errors import InfeasibleTarget, NotApplicable

ACTIVITY = [[0.882, 0.118], [0.305, 0.695]]
DIAMETER = 2.8351075005
ANY = AnyQuery()
LEVELS = [10.0**k for k in range(-7, 4)]
DIAMETERS = [1e-6, 0.01, 0.5, 2.8351, 10.0, 100.0, 1500.0, 2800.0]


def exact_closed(epsilon, diameter):
    with mpmath.workdps(60):
        e, d = mpmath.mpf(epsilon), mpmath.mpf(diameter)
        return 4 * mpmath.asinh(mpmath.exp(d / 2) * mpmath.sinh(e / 4))


@pytest.mark.parametrize("diameter", DIAMETERS)
def test_the_bound_is_never_below_the_exact_value_and_hardly_above(diameter):
    for epsilon in [*LEVELS, 1e-300, 5e-324, 2900.0, 1e6]:
        value = projective_leakage(epsilon, diameter).value
        exact = exact_closed(epsilon, diameter)
        assert value >= exact
        if epsilon > 1e-290:
            assert value <= exact * (1 + mpmath.mpf("2e-12"))


@pytest.mark.parametrize("diameter", DIAMETERS[:6])
def test_calibrating_and_bounding_cancel_over_ten_decades(diameter):
    for target in LEVELS:
        epsilon = projective_budget(target, diameter)
        assert 0 < epsilon <= target
        achieved = projective_leakage(epsilon, diameter).value
        assert achieved <= target
        assert achieved == pytest.approx(target, rel=1e-9)


@pytest.mark.parametrize("diameter", DIAMETERS[:5])
def test_the_inverse_is_the_closed_inverse(diameter):
    for target in LEVELS[:9]:
        x = mpmath.exp(-mpmath.mpf(diameter) / 2) * mpmath.sinh(mpmath.mpf(target) / 4)
        expected = float(4 * mpmath.asinh(x))
        assert projective_budget(target, diameter) == pytest.approx(expected, rel=1e-9)


def test_the_sinh_form_is_the_artanh_form():
    rng = np.random.default_rng(0)
    for _ in range(500):
        epsilon, diameter = 10 ** rng.uniform(-3, 1), 10 ** rng.uniform(-2, 1)
        kappa, e = math.tanh(diameter / 4), math.tanh(epsilon / 4)
        one_minus = 2 / (math.exp(diameter / 2) + 1)
        t = 2 * kappa * e / (one_minus + math.sqrt(one_minus**2 + 4 * kappa * e * e))
        expected = epsilon + 8 * math.atanh(t)
        assert projective_leakage(epsilon, diameter).value == pytest.approx(
            expected, rel=1e-9
        )


def test_the_bound_is_the_fixed_point_of_the_recursion():
    for epsilon in (0.01, 0.3, 2.0, 9.0):
        d = 0.0
        for _ in range(5000):
            d = influence(epsilon + d, DIAMETER)
        assert projective_leakage(epsilon, DIAMETER).value == pytest.approx(
            epsilon + 2 * d, rel=1e-11
        )


def test_influence_is_the_largest_change_of_a_mean():
    # ((1 + sqrt(E theta)) / (sqrt E + sqrt theta))^2, by brute force over base odds.
    for a, diameter in ((0.1, 3.0), (2.0, 0.5), (6.0, 8.0), (30.0, 40.0)):
        E, theta = math.exp(a), math.exp(diameter)
        odds = np.exp(np.linspace(-60, 60, 200_001))
        p, q = theta * odds / (1 + theta * odds), odds / (1 + odds)
        best = float(np.log((1 + (E - 1) * p) / (1 + (E - 1) * q)).max())
        assert influence(a, diameter) == pytest.approx(best, abs=1e-6)
        assert influence(a, diameter) >= best - 1e-12


def test_influence_keeps_its_digits():
    for a, diameter in ((1e-9, 1e-9), (50.0, 49.0), (700.0, 3.0), (2000.0, 2000.0)):
        with mpmath.workdps(1000):
            exact = 4 * mpmath.atanh(
                mpmath.tanh(mpmath.mpf(a) / 4) * mpmath.tanh(mpmath.mpf(diameter) / 4)
            )
        assert influence(a, diameter) == pytest.approx(float(exact), rel=1e-14)
    assert influence(9.0, math.inf) == 9.0


def test_limits_zero_epsilon_zero_diameter_and_one_record():
    assert projective_leakage(0.0, DIAMETER).value == 0.0
    assert projective_leakage(0.7, 0.0).value == 0.7
    assert projective_budget(0.7, 0.0) == 0.7
    for found in (
        projective_leakage(0.7, DIAMETER, size=1).value,
        projective_budget(0.7, DIAMETER, size=1),
        finite_leakage(0.7, DIAMETER, size=1).value,
    ):
        assert found == pytest.approx(0.7, rel=1e-15)


def test_a_level_below_the_range_of_floats_is_infeasible():
    with pytest.raises(InfeasibleTarget, match="below the range of floats"):
        projective_budget(1e-7, 1500.0)
    assert projective_budget(1.0, 1300.0) > 0


def test_the_bound_is_capped_by_the_general_one_and_by_its_limit():
    assert projective_leakage(0.1, 50.0, size=3).value == pytest.approx(0.3, rel=1e-15)
    assert projective_budget(0.3, 50.0, size=3) == pytest.approx(0.1, rel=1e-12)
    for epsilon in LEVELS:
        value = projective_leakage(epsilon, DIAMETER).value
        assert value <= (epsilon + 2 * DIAMETER) * (1 + 1e-15)


def test_small_levels_pay_the_factor_exp_of_half_the_diameter():
    ratio = projective_leakage(1e-6, DIAMETER).value / 1e-6
    assert ratio == pytest.approx(4.127012, abs=1e-6)
    assert projective_leakage(300.0, DIAMETER).value == pytest.approx(305.670215)


def test_the_finite_bound_grows_to_the_closed_form():
    values = [finite_leakage(0.5, DIAMETER, size=n).value for n in range(1, 60)]
    closed = projective_leakage(0.5, DIAMETER).value
    assert all(a <= b for a, b in itertools.pairwise(values))
    assert all(v <= min(n * 0.5 * (1 + 1e-12), closed) for n, v in enumerate(values, 1))
    assert finite_leakage(0.5, DIAMETER, size=10**6).value == pytest.approx(closed)
    assert finite_leakage(0.5, 0.0, size=5).value == pytest.approx(0.5, rel=1e-11)


def test_an_infinite_diameter_is_refused_with_what_works():
    golden = MarkovChain([[0.5, 0.5], [1.0, 0.0]])
    for method in (ProjectiveTheorem(), OmegaTheorem()):
        with pytest.raises(NotApplicable, match="'steps', or 'general'"):
            method.bound(golden, 1.0, query=ANY)
        with pytest.raises(NotApplicable, match="'steps', or 'general'"):
            method.invert(golden, 1.0, query=ANY)
    with pytest.raises(NotApplicable, match="infinite projective diameter"):
        finite_leakage(1.0, math.inf, size=3)


@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_targets_are_positive_and_finite(bad):
    with pytest.raises(ValueError, match="target must be positive"):
        projective_budget(bad, 1.0)


def test_a_ratio_is_at_least_one():
    with pytest.raises(ValueError, match="ratio must be at least 1"):
        ratio_diameter(0.5)
    assert ratio_diameter(1.0) == 0.0


def test_the_omega_method_needs_only_the_column_ratio():
    chain = MarkovChain(ACTIVITY)
    found = OmegaTheorem().bound(chain, 1.0, query=ANY)
    expected = 4 * math.asinh(chain.omega * math.sinh(0.25))
    assert found.value == pytest.approx(expected, rel=1e-11)
    assert found.method == "omega"
    assert found.value >= ProjectiveTheorem().bound(chain, 1.0, query=ANY).value
    level = OmegaTheorem().invert(chain, 1.0, query=ANY)
    assert OmegaTheorem().bound(chain, level, query=ANY).value <= 1.0
    assert level == pytest.approx(4 * math.asinh(math.sinh(0.25) / chain.omega))


@pytest.mark.parametrize(
    ("model", "method"),
    [
        (MarkovChain(ACTIVITY, length=9), method)
        for method in (
            ProjectiveTheorem(),
            OmegaTheorem(),
            GammaTheorem(),
            ZhaoTheorem(),
            StepTheorem(),
            WindowTheorem(),
            RatioTheorem(),
        )
    ]
    + [
        (HigherOrderChain(ACTIVITY, order=1), BlockTheorem()),
        (TreeModel([None, 0], ACTIVITY), TreeTheorem()),
    ],
    ids=lambda thing: getattr(thing, "name", None),
)
def test_a_release_that_is_not_dp_for_every_pair_is_refused(model, method):
    unclipped = LinearQuery(gap=0.5)
    with pytest.raises(NotApplicable, match="needs a DP release"):
        method.bound(model, 1.0, query=unclipped)
    with pytest.raises(NotApplicable, match="needs a DP release"):
        method.invert(model, 20.0, query=unclipped)
    assert method.invert(model, 20.0, query=LinearQuery()) > 0


def test_the_methods_use_the_length_of_the_model():
    chain = MarkovChain(ACTIVITY, length=2)
    assert ProjectiveTheorem().bound(chain, 0.1, query=ANY).value == pytest.approx(0.2)
    assert ProjectiveTheorem().invert(chain, 0.2, query=ANY) == pytest.approx(0.1)
    assert OmegaTheorem().bound(chain, 0.1, query=ANY).value == pytest.approx(0.2)


def test_rows_that_differ_in_the_last_bit_are_not_called_independent():
    nearly = np.array([[0.2, 0.8], [np.nextafter(0.2, 1.0), 0.8]])
    assert projective_diameter(nearly) > 0
    assert projective_diameter([[0.2, 0.8], [0.2, 0.8]]) == 0
