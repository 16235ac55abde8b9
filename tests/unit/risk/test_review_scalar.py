"""Extreme scales, exact integers and honest labels of the scalar engine."""

import math

import mpmath as mp
import numpy as np
import pytest

from undertow.errors import ModelError, NotApplicable
from undertow.mechanisms import (
    ClampedMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    TruncatedMechanism,
)
from undertow.risk.exact import advantage, success_rate
from undertow.risk.scalar import (
    ContinuousPrior,
    ScalarChannel,
    calibrate_laplace_level,
    continuous_advantage,
    gaussian_advantage,
    gaussian_placement_advantage,
    laplace_advantage,
    laplace_placement_advantage,
)
from undertow.risk.threat import Prior, Threat

PAIR = Threat(Prior.uniform(2))


@pytest.mark.parametrize("form", [laplace_advantage, gaussian_advantage])
@pytest.mark.parametrize("unit", [1e-307, 1.0, 1e308])
def test_a_closed_form_does_not_depend_on_the_unit(form, unit):
    assert form([0.0, unit], unit) == pytest.approx(form([0.0, 1.0], 1.0), rel=1e-11)


@pytest.mark.parametrize("form", [laplace_advantage, gaussian_advantage])
def test_a_gap_too_small_for_a_float_is_still_a_risk(form):
    assert 0 < form([0.0, 1e-300], 1e100) < 1e-299
    assert form([1.0, 1.0], 1e100) == 0
    assert form([-1e308, 1e308], 1.0) == 0.5


@pytest.mark.parametrize(
    "call",
    [
        lambda m: laplace_placement_advantage(m, 1.0),
        lambda m: gaussian_placement_advantage(m, 1.0),
        lambda m: calibrate_laplace_level(0.1, records=m),
    ],
    ids=["laplace", "gaussian", "calibrate"],
)
def test_more_records_than_floats_can_count_are_refused_in_a_sentence(call):
    with pytest.raises(ValueError, match=r"records must be at most 1e\+15\."):
        call(10**400)


def test_whole_numbers_that_round_to_one_are_no_tie():
    with pytest.raises(ModelError, match=r"exact as floats.*subtract"):
        advantage(LaplaceMechanism(1), Threat(Prior.uniform([2**53, 2**53 + 1])))
    with pytest.raises(ModelError, match="exact as floats"):
        ScalarChannel(LaplaceMechanism(1), [10**17, np.int64(10**17 + 1)])
    kept = advantage(LaplaceMechanism(1), Threat(Prior.uniform([2**53, 2**53 + 2])))
    assert kept.value == pytest.approx(laplace_advantage([0, 2], 1), rel=1e-9)


def test_text_is_no_number():
    with pytest.raises(ModelError, match="finite numbers"):
        advantage(LaplaceMechanism(1), Threat(Prior.uniform(["0", "1"])))


class _Zeros:
    """A generator that draws the least level there is."""

    def uniform(self, size):
        return np.zeros(size)


@pytest.mark.parametrize("noise", [LaplaceMechanism(1), GaussianMechanism(1)])
def test_the_least_level_is_a_finite_output(noise):
    drawn = ScalarChannel(noise, [0.0, 1.0]).sample(0, 3, rng=_Zeros())
    assert np.isfinite(drawn).all()
    assert (drawn < -8).all()


def test_a_record_wider_than_the_engine_resolves_is_refused():
    wide = ContinuousPrior.uniform(0, 1e300)
    with pytest.raises(NotApplicable, match="scales of the noise wide"):
        continuous_advantage(LaplaceMechanism("1e-149"), wide, eta=1)
    assert continuous_advantage(LaplaceMechanism("1e-149"), wide, eta=0).value == 0


def test_truncated_noise_is_not_said_to_be_bounded_by_plain_noise():
    unit = ContinuousPrior.uniform(0, 1)
    cut = TruncatedMechanism(LaplaceMechanism(1), 0, 1)
    with pytest.raises(NotApplicable) as refused:
        continuous_advantage(cut, unit, eta=0.1)
    assert "bounds it" not in str(refused.value)
    kept = ClampedMechanism(LaplaceMechanism(1), 0, 1)
    with pytest.raises(NotApplicable, match="the plain value bounds it"):
        continuous_advantage(kept, unit, eta=0.1)


def test_truncation_can_tell_more_than_plain_noise():
    answers, threat = [0.0, 23.5, 1.2], Threat(Prior(3, [0.02, 0.89, 0.09]))
    plain, cut = LaplaceMechanism(1), TruncatedMechanism(LaplaceMechanism(1), 0, "23.5")
    more = advantage(ScalarChannel(cut, answers), threat).value
    assert more > advantage(ScalarChannel(plain, answers), threat).value + 1e-4


def test_a_wide_enclosure_is_not_called_tight():
    wide = ContinuousPrior.uniform(0, 1e6)
    loose = continuous_advantage(LaplaceMechanism(1), wide, eta=0.1)
    assert loose.witness.details["gap"] > 1e-2
    assert not loose.tight
    unit = ContinuousPrior.uniform(0, 1)
    assert continuous_advantage(LaplaceMechanism(1), unit, eta=0.1).tight


def test_a_sliver_of_gaussian_noise_is_bounded_but_not_called_tight():
    sliver = TruncatedMechanism(GaussianMechanism(1), 0, 1e-9)
    channel = ScalarChannel(sliver, [0.0, 1e-9])
    with mp.workdps(40):
        end = mp.mpf("1e-9")
        mass = mp.ncdf(end) - mp.mpf("0.5")
        exact = (mp.ncdf(end / 2) - mp.mpf("0.5")) / mass - mp.mpf("0.5")
    found = advantage(channel, PAIR)
    assert found.value >= exact
    assert not found.tight
    assert not success_rate(channel, PAIR).tight
    usual = advantage(ScalarChannel(GaussianMechanism(1), [0.0, 1.0]), PAIR)
    assert usual.tight
    assert usual.value >= float(mp.ncdf(0.5) - 0.5)


def test_answers_a_subnormal_share_of_the_scale_apart_keep_a_risk():
    channel = ScalarChannel(LaplaceMechanism("1e150"), [0.0, 1.3e-171])
    assert advantage(channel, PAIR).value >= 1.3e-321 / 4
    assert math.isfinite(advantage(channel, PAIR).value)
