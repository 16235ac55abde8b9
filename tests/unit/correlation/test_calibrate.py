"""From a promise to noise."""

from __future__ import annotations

import json
import math
from fractions import Fraction

import mpmath
import pytest

from undertow.correlation.calibrate import calibrate
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.group import Blocks, GeneralTheorem, Independent
from undertow.correlation.query import AnyQuery, CountQuery, LinearQuery
from undertow.correlation.result import Leakage
from undertow.correlation.theorem import LeakageTheorem
from undertow.errors import InfeasibleTarget, ModelError, NotApplicable


class Surcharge(LeakageTheorem):
    """An additive bound: the level and three."""

    name = "surcharge"
    source = "a test"

    def bound(self, model, epsilon, /, *, query=None):
        return Leakage(epsilon + 3.0, self.source, method=self.name)

    def invert(self, model, target, /, *, query=None):
        if target <= 3.0:
            raise InfeasibleTarget(
                f"target must be above 3, got {target}; use the general bound.",
                least=3.0,
            )
        return (target - 3.0) * (1 - 1e-12)


class Series(Blocks):
    def methods(self):
        return (Surcharge(), GeneralTheorem())


def test_households_of_five_need_a_fifth_of_the_level():
    found = calibrate(Blocks.of_size(5, groups=2000), 1.0)
    assert found.epsilon == 0.2
    assert found.noise_scale == 5.0
    assert found.accuracy.alpha == pytest.approx(14.97866136776995, rel=1e-12)
    assert found.accuracy.mae == 5.0
    assert found.cost == 5.0
    assert found.floor == 2.5
    assert found.achieves.value <= 1.0
    assert found.method == "general"


def test_the_largest_level_wins():
    found = calibrate(Series([10]), 5.0)
    assert found.method == "surcharge"
    assert found.epsilon == pytest.approx(2.0, rel=1e-11)
    (other,) = found.alternatives
    assert (other.name, other.parameter) == ("general", 0.5)
    assert other.reason == "would need noise scale 2"


def test_an_infeasible_method_is_listed_with_its_least_target():
    found = calibrate(Series([10]), 2.0)
    assert found.method == "general"
    assert found.epsilon == 0.2
    assert "infeasible at or below 3:" in found.alternatives[0].reason


def test_an_infeasible_method_asked_by_name_raises():
    with pytest.raises(InfeasibleTarget) as caught:
        calibrate(Series([10]), 3.0, method="surcharge")
    assert caught.value.least == 3.0


def test_no_method_gives_every_reason():
    class Nothing(Series):
        def methods(self):
            return (Surcharge(),)

    with pytest.raises(NotApplicable, match=r"no method reaches the target 2\.0"):
        calibrate(Nothing([10]), 2.0)


def test_the_sensitivity_of_the_query_scales_the_noise():
    found = calibrate(Blocks([4]), 2.0, query=AnyQuery(3.0))
    assert (found.epsilon, found.noise_scale, found.sensitivity) == (0.5, 6.0, 3.0)
    clipped = calibrate(Blocks([4]), 2.0, query=LinearQuery(clip=(60, 80)))
    assert clipped.noise_scale == 40.0
    assert clipped.floor == 40.0


def test_independent_records_cost_nothing_more():
    found = calibrate(Independent(), 0.7, query=CountQuery())
    assert (found.epsilon, found.cost, found.floor) == (0.7, 1.0, 0.5)


def test_unequal_weights_need_less_noise_than_their_number():
    query = LinearQuery([1.0, 0.5, 0.25], clip=(0, 1))
    found = calibrate(Blocks([3]), 1.0, query=query)
    assert found.method == "per-record"
    assert found.epsilon == pytest.approx(1 / 1.75, rel=1e-12)
    assert found.achieves.value <= 1.0
    published = calibrate(Blocks([3]), 1.0, query=query, method="published")
    assert published.epsilon == pytest.approx(1 / 3, rel=1e-15)


def test_beta_sets_the_error_and_the_floor():
    loose = calibrate(Blocks([2]), 1.0, beta=0.5)
    assert loose.accuracy.alpha == pytest.approx(2 * math.log(2), rel=1e-12)
    assert loose.floor is None  # one half is above 1/(e + 1)
    assert calibrate(Blocks([2]), 1.0, beta=1.0).accuracy.alpha == 0.0


def test_a_sum_of_unbounded_records_needs_a_clip():
    with pytest.raises(ModelError, match=r"clip="):
        calibrate(Blocks([2]), 1.0, query=LinearQuery())


@pytest.mark.parametrize("target", [0, -1, math.inf, math.nan])
def test_a_promise_is_positive_and_finite(target):
    with pytest.raises(ValueError, match=r"target must be positive and finite"):
        calibrate(Blocks([2]), target)


@pytest.mark.parametrize("beta", [-0.1, 0.0, 1.1, math.nan])
def test_beta_is_a_probability_above_zero(beta):
    with pytest.raises(ValueError, match=r"beta must be in"):
        calibrate(Blocks([2]), 1.0, beta=beta)


def test_the_result_prints_as_json():
    plain = calibrate(Blocks([2]), 1.0).to_dict()
    assert json.loads(json.dumps(plain)) == plain


FLATMATES = JointTable([[0.45, 0.05], [0.05, 0.45]])


def flatmates_leakage(epsilon):
    """The leakage of the noisy count of two flatmates, with many digits."""
    with mpmath.workdps(700):
        e = mpmath.e ** mpmath.mpf(epsilon)
        nine, one = (mpmath.mpf(float(p)) for p in FLATMATES.pmf[0])
        return mpmath.log((nine * e**2 + one * e) / (nine + one * e))


@pytest.mark.parametrize("target", [1e-300, 1e-18, 1e-15, 1e-12, 1e-6, 1.0, 1e3, 1e5])
@pytest.mark.parametrize("query", [CountQuery(), AnyQuery()])
def test_calibrated_levels_keep_tiny_and_huge_targets(target, query):
    found = calibrate(FLATMATES, target, query=query)
    scale = Fraction(found.noise_scale)
    assert flatmates_leakage(1 / scale) <= target
    assert found.epsilon > target / 2  # better than the general bound


def test_a_query_that_nothing_moves_is_not_calibrated():
    with pytest.raises(ModelError, match=r"answered without noise"):
        calibrate(JointTable([[1.0]]), 1.0, query=LinearQuery())
