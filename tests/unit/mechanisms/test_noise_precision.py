"""The precision test: low-order bits must not give the input away."""

import numpy as np
import pytest

from support.precision import lowest_bits, precision_test
from undertow.mechanisms.noise.lattice import LatticeGaussian, LatticeLaplace
from undertow.mechanisms.noise.secure import SecureSource

pytestmark = pytest.mark.statistical


def _float_laplace(value, count, rng=np.random.default_rng(3)):  # noqa: B008 -- seeded
    return value + rng.laplace(scale=1.0, size=count)


def _float_gaussian(value, count, rng=np.random.default_rng(4)):  # noqa: B008 -- seeded
    return value + rng.normal(scale=1.0, size=count)


def _lattice_laplace(value, count):
    noise = LatticeLaplace.calibrate(1, 1, coordinates=1)
    return noise.sample(np.full(count, value)).secure_values()


def _lattice_gaussian(value, count):
    noise = LatticeGaussian.calibrate(1, "1/2", coordinates=1)
    return noise.sample(np.full(count, value)).secure_values()


def _integer_laplace(value, count):
    return int(value) + SecureSource().laplace(1, count).secure_values()


def test_lowest_bits_are_those_of_the_binary_expansion():
    numbers = np.array([1.0, 0.5, 0.75, 12.0, 2.0**-60, 1 + 2.0**-52, 0.0])
    assert lowest_bits(numbers).tolist() == [0, -1, -2, 2, -60, -52, 5000]


@pytest.mark.parametrize("release", [_float_laplace, _float_gaussian])
def test_float_noise_gives_the_input_away(release):
    finding = precision_test(release, epsilon=1.0)
    assert finding.distinguishes
    assert finding.counts[1] == 0 < finding.counts[0]
    assert finding.bit < -53


def test_float_noise_on_neighbours_away_from_zero_gives_the_input_away():
    assert precision_test(_float_laplace, inputs=(0.0, 3.0), epsilon=3.0).distinguishes


# False alarm 1e-6 each. The Gaussian is held to the log-ratio 1.5 that it reaches at
# the window's far end, (1 + 2 * 0.25) / 2 + 0.5 at most.
@pytest.mark.parametrize(
    ("release", "epsilon"),
    [(_lattice_laplace, 1.0), (_integer_laplace, 1.0), (_lattice_gaussian, 1.5)],
)
def test_secure_noise_keeps_the_input_to_itself(release, epsilon):
    assert not precision_test(release, epsilon=epsilon).distinguishes


def test_the_procedure_also_finds_plain_lack_of_noise():
    def too_little(value, count):
        return _lattice_laplace(value * 4, count) / 4

    assert precision_test(too_little, epsilon=1.0).distinguishes
