"""What a sampler proposes and accepts, read off a source that writes it down."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from undertow.errors import MismatchError
from undertow.mechanisms import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    Draw,
    TruncatedMechanism,
)
from undertow.mechanisms.bounded_noise import sample_truncated


class Scripted:
    """A source whose uniform numbers are 0, 1, 2, ... and whose coins show one."""

    name, simulated = "scripted", True

    def __init__(self):
        self.sides, self.exponents = [], []

    def uniform(self, sides, size):
        self.sides.append(sides)
        return Draw(np.arange(size) % sides, True, self.name)

    def bernoulli_exp(self, exponent, size):
        self.exponents.append(exponent)
        return Draw(np.ones(size, dtype=np.int64), True, self.name)

    def laplace(self, scale, size):
        self.sides.append(("laplace", scale))
        return Draw(np.zeros(size, dtype=np.int64), True, self.name)

    def gaussian(self, variance, size):
        self.sides.append(("gaussian", variance))
        return Draw(np.zeros(size, dtype=np.int64), True, self.name)


def proposed(base, low, high, centre):
    """Return the outputs of all proposals in turn, and the exponents of their coins."""
    steps = int((high - low) / base.step) + 1
    source = Scripted()
    draw = sample_truncated(
        TruncatedMechanism(base, low, high), [float(centre)] * steps, source
    )
    assert source.sides == [steps]
    return [Fraction(x) for x in draw.values.tolist()], source.exponents


@pytest.mark.parametrize("exponent", [0, -1])
@pytest.mark.parametrize("centre", [-2, 0, 3])
def test_narrow_truncated_laplace_noise_proposes_every_output_with_its_weight(
    exponent, centre
):
    base = DiscreteLaplaceMechanism(100, exponent=exponent)
    outputs, exponents = proposed(base, -2, 3, centre)
    assert outputs == [-2 + at * base.step for at in range(len(outputs))]
    assert outputs[-1] == 3
    assert exponents == [abs(x - centre) / Fraction(100) for x in outputs]


@pytest.mark.parametrize("exponent", [0, -1])
@pytest.mark.parametrize("centre", [-2, 0, 3])
def test_narrow_truncated_gaussian_noise_proposes_every_output_with_its_weight(
    exponent, centre
):
    base = DiscreteGaussianMechanism.from_variance(10_000, exponent=exponent)
    outputs, exponents = proposed(base, -2, 3, centre)
    assert outputs == [-2 + at * base.step for at in range(len(outputs))]
    assert outputs[-1] == 3
    assert exponents == [(x - centre) ** 2 / Fraction(20_000) for x in outputs]


@pytest.mark.parametrize("exponent", [0, -1, 1])
def test_wide_truncated_noise_is_that_of_the_base_counted_in_steps(exponent):
    step = Fraction(2) ** exponent
    laws = {
        "laplace": DiscreteLaplaceMechanism(6, exponent=exponent),
        "gaussian": DiscreteGaussianMechanism.from_variance(36, exponent=exponent),
    }
    for law, base in laws.items():
        source = Scripted()
        mechanism = TruncatedMechanism(base, -100, 100)
        draw = sample_truncated(mechanism, [-100.0, 4.0], source)
        assert draw.values.tolist() == [-100, 4]
        assert source.sides == [(law, 6 / step if law == "laplace" else 36 / step**2)]


def test_ends_of_an_interval_may_be_written_as_text():
    base = DiscreteLaplaceMechanism(1)
    mechanism = TruncatedMechanism(base, "-2", " 3 ")
    assert (mechanism.low, mechanism.high) == (-2, 3)


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.float64])
@pytest.mark.parametrize("at", [0, 1, 2])
def test_one_value_off_the_lattice_refuses_all_of_them(kind, at):
    values = np.array([4, 8, -12], dtype=kind)
    values[at] += 1
    mechanism = DiscreteLaplaceMechanism(2000, exponent=2)
    with pytest.raises(MismatchError, match="multiples of the step"):
        mechanism.sample(values)
