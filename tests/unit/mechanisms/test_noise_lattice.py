"""Lattice noise: rounding, sensitivities, exact multiples, losses."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.mechanisms.noise.draw import Draw
from undertow.mechanisms.noise.lattice import (
    LatticeGaussian,
    LatticeLaplace,
    lattice_floats,
    lattice_round,
)
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.privacy.loss import ZCDP, Pure

doubles = st.floats(allow_nan=False, allow_infinity=False)
vectors = st.lists(st.fractions(-20, 20, max_denominator=64), min_size=1, max_size=5)
positive = st.fractions(Fraction(1, 1000), 1000, max_denominator=10**4)


class Silent:
    """A source whose noise is zero, to look at the rounding alone."""

    name = "silent"
    simulated = True

    def laplace(self, scale, size):
        return Draw(np.zeros(size, np.int64), self.simulated, self.name)

    gaussian = laplace


def rounded(value, step):
    return math.floor(Fraction(value) / step + Fraction(1, 2))


@given(doubles, st.integers(-60, 60))
def test_rounding_is_exact_for_every_double(value, exponent):
    steps = lattice_round([value], exponent)
    assert int(steps[0]) == rounded(value, Fraction(2) ** exponent)


@pytest.mark.parametrize(
    "value",
    [
        *(0.5, -0.5, 1.5, -1.5, 2.5, -5e-324),
        *(np.nextafter(0.5, 0), np.nextafter(-0.5, -1)),
        *(2.0**52 + 1, 2.0**51 + 0.5, -(2.0**51) - 0.5, 2.0**62, 2.0**61, 1e300),
    ],
)
def test_rounding_is_exact_where_adding_one_half_would_not_be(value):
    assert int(lattice_round(np.array(value), 0)) == rounded(value, 1)


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-70, 70))
def test_rounding_is_exact_for_every_machine_integer(value, exponent):
    steps = lattice_round(np.array([value]), exponent)
    assert int(steps[0]) == rounded(value, Fraction(2) ** exponent)


@pytest.mark.parametrize("values", [[math.nan], [math.inf, 0.0]])
def test_values_that_are_not_finite_are_refused(values):
    with pytest.raises(ValueError, match=r"^values must be finite.*clip them first\.$"):
        lattice_round(values, 0)


@pytest.mark.parametrize("values", [["a"], [True], [1j], [None]])
def test_values_that_are_not_numbers_are_refused(values):
    with pytest.raises(TypeError, match=r"^values must be integers or doubles"):
        lattice_round(values, 0)


@given(vectors, st.data(), positive)
def test_laplace_sensitivity_holds_for_every_rounded_pair(first, data, epsilon):
    moves = st.lists(
        st.fractions(-3, 3, max_denominator=64),
        min_size=len(first),
        max_size=len(first),
    )
    second = [x + y for x, y in zip(first, data.draw(moves), strict=True)]
    gaps = [abs(x - y) for x, y in zip(first, second, strict=True) if x != y]
    if not gaps:
        return
    noise = LatticeLaplace.calibrate(
        sum(gaps), epsilon, coordinates=len(gaps), resolution=1
    )
    moved = [
        abs(rounded(x, noise.step) - rounded(y, noise.step))
        for x, y in zip(first, second, strict=True)
    ]
    assert sum(moved) <= noise.sensitivity
    assert noise.loss == Pure(epsilon)


@given(vectors, st.data(), positive)
def test_gaussian_sensitivity_holds_for_every_rounded_pair(first, data, rho):
    moves = st.lists(
        st.fractions(-3, 3, max_denominator=64),
        min_size=len(first),
        max_size=len(first),
    )
    second = [x + y for x, y in zip(first, data.draw(moves), strict=True)]
    gaps = [abs(x - y) for x, y in zip(first, second, strict=True) if x != y]
    if not gaps:
        return
    # The norm itself is irrational; a float above it is a valid sensitivity.
    norm = Fraction(math.nextafter(math.sqrt(sum(gap**2 for gap in gaps)), math.inf))
    noise = LatticeGaussian.calibrate(norm, rho, coordinates=len(gaps), resolution=1)
    moved = [
        (rounded(x, noise.step) - rounded(y, noise.step)) ** 2
        for x, y in zip(first, second, strict=True)
    ]
    assert sum(moved) <= noise.square
    assert noise.loss == ZCDP(rho)


def test_the_laplace_sensitivity_bound_is_attained():
    noise = LatticeLaplace.calibrate("1.5", "0.75", coordinates=3, resolution=1)
    assert noise.step == 1
    first, second = (0.45, 0.45, 0.45), (1.55, 0.65, 0.65)  # 1.5 apart in l1
    moved = lattice_round(second, 0) - lattice_round(first, 0)
    assert np.abs(moved).sum() == noise.sensitivity == 4


def test_integers_lose_nothing_on_the_lattice():
    noise = LatticeLaplace.calibrate(3, "0.1", coordinates=1)
    assert noise.sensitivity * noise.step == 3
    assert noise.scale * noise.step == 30


@given(positive, positive, st.integers(1, 50))
def test_the_step_is_a_power_of_two_set_by_the_scale_alone(delta, budget, coordinates):
    laplace = LatticeLaplace.calibrate(delta, budget, coordinates=coordinates)
    assert laplace.step * 2**24 <= delta / budget < laplace.step * 2**25
    gaussian = LatticeGaussian.calibrate(delta, budget, coordinates=coordinates)
    variance = delta**2 / (2 * budget)
    assert gaussian.step**2 * 4**24 <= variance < gaussian.step**2 * 4**25
    assert laplace.sensitivity * laplace.step >= delta
    assert gaussian.square * gaussian.step**2 >= delta**2


@pytest.mark.parametrize("kind", [LatticeLaplace, LatticeGaussian])
def test_without_noise_a_sample_is_the_rounded_value(kind):
    noise = kind.calibrate(1, 1, coordinates=1, resolution=3)
    values = np.array([[0.3, -7.26], [12.0, 0.0]])
    sample = noise.sample(values, source=Silent()).values
    expected = [[rounded(v, noise.step) * noise.step for v in row] for row in values]
    assert sample.tolist() == expected


@pytest.mark.parametrize("kind", [LatticeLaplace, LatticeGaussian])
def test_every_output_is_an_exact_multiple_of_the_step(kind):
    noise = kind.calibrate("0.3", "0.7", coordinates=2)
    values = np.linspace(-5, 5, 200)
    draw = noise.sample(values)
    assert not draw.simulated
    for value in draw.values.tolist():
        assert (Fraction(value) / noise.step).denominator == 1
    assert noise.sample_steps(values).values.dtype == np.int64


def test_a_simulated_sample_is_stamped():
    noise = LatticeLaplace.calibrate(1, 1, coordinates=1)
    assert noise.sample(1.0, source=SimulatedSource(1)).simulated
    assert noise.sample(1.0).values.shape == ()


def test_a_multiple_that_is_no_double_is_rounded_to_the_nearest():
    noise = LatticeLaplace.calibrate(1, 1, coordinates=1)
    assert abs(noise.sample([1e12]).values[0] - 1e12) < 200
    steps = noise.sample_steps([1e12]).values
    assert abs(int(steps[0]) - int(1e12) * 2**24) < 2**24 * 200
    assert lattice_floats(np.array([2**53 + 1, 2**53 + 3]), 0).tolist() == [
        2.0**53,
        2.0**53 + 4,
    ]
    assert lattice_floats(np.array([2**53, -1]), -1074).tolist() == [
        2.0**-1021,
        -5e-324,
    ]
    assert lattice_floats(np.array([], np.int64), 0).size == 0


@pytest.mark.parametrize("exponent", [-1075, 1023])
def test_a_multiple_beyond_the_doubles_is_refused(exponent):
    with pytest.raises(ValueError, match=r"range of floats.*\.$"):
        lattice_floats(np.array([3]), exponent)


def test_sums_beyond_the_machine_word_do_not_wrap():
    class Loud(Silent):
        def laplace(self, scale, size):
            return Draw(np.full(size, 2**62 + 2**61), True, self.name)

    noise = LatticeLaplace(0, 1, Fraction(1))
    steps = noise.sample_steps(np.array([2**62]), source=Loud()).values
    assert steps.tolist() == [2**63 + 2**61]
    assert noise.sample_steps([2.0**80], source=Loud()).values[0] > 2**80


@pytest.mark.parametrize("kind", [LatticeLaplace, LatticeGaussian])
def test_bad_calibrations_are_refused_with_one_sentence(kind):
    for value in (0, -1, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"^sensitivity must [^\n]+\.$"):
            kind.calibrate(value, 1, coordinates=1)
        with pytest.raises(ValueError, match=r"^(epsilon|rho) must [^\n]+\.$"):
            kind.calibrate(1, value, coordinates=1)
    with pytest.raises(ValueError, match="coordinates must be positive, got 0"):
        kind.calibrate(1, 1, coordinates=0)
    with pytest.raises(ValueError, match="resolution must be positive, got 0"):
        kind.calibrate(1, 1, coordinates=1, resolution=0)
    with pytest.raises(TypeError):
        kind.calibrate(1, 1)  # the number of coordinates is never guessed
