"""Exact draws from a lattice law truncated to an interval, by rejection."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.mechanisms.discrete import (
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    LatticeMechanism,
)
from undertow.mechanisms.interval import IntervalMechanism
from undertow.mechanisms.noise.draw import Draw
from undertow.mechanisms.noise.lattice import (
    add_noise,
    lattice_floats,
    lattice_round,
)

__all__ = ["sample_truncated"]

# Below this many scales the interval is proposed uniformly instead of by its noise.
_NARROW = 8
_MACHINE = 2**62


def sample_truncated(
    mechanism: IntervalMechanism, values: ArrayLike, source: Any
) -> Draw:
    """Draw from a truncated lattice law, in steps, and return multiples of the step."""
    base = mechanism.base
    assert isinstance(base, LatticeMechanism)
    low, high = (int(end / base.step) for end in (mechanism.low, mechanism.high))
    rounded = lattice_round(values, base.exponent)
    if max(-low, high) >= _MACHINE:
        rounded = rounded.astype(np.object_)
    centres = np.asarray(np.clip(rounded, low, high))
    flat = np.atleast_1d(centres).ravel()
    output = np.empty_like(flat)
    pending = np.arange(flat.size)
    propose = _uniform_steps if mechanism.width * _NARROW < _spread(base) else _steps
    while pending.size:
        drawn, kept = propose(base, flat[pending], (low, high), source)
        kept &= (drawn >= low) & (drawn <= high)
        output[pending[kept]] = drawn[kept]
        pending = pending[~kept]
    steps = output.reshape(centres.shape)
    values = steps if base.exponent == 0 else lattice_floats(steps, base.exponent)
    return Draw(np.asarray(values), source.simulated, source.name)


def _spread(base: LatticeMechanism) -> Fraction:
    if isinstance(base, DiscreteLaplaceMechanism):
        return base.scale
    return (
        Fraction(base.sigma)
        if isinstance(base, DiscreteGaussianMechanism)
        else base.step
    )


def _steps(
    base: LatticeMechanism, centres: NDArray[Any], ends: tuple[int, int], source: Any
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Propose by the noise itself; everything inside is kept."""
    if isinstance(base, DiscreteLaplaceMechanism):
        noise = source.laplace(base.scale / base.step, centres.size)
    else:
        assert isinstance(base, DiscreteGaussianMechanism)
        noise = source.gaussian(base.variance / base.step**2, centres.size)
    return add_noise(centres, noise).values, np.ones(centres.size, dtype=bool)


def _uniform_steps(
    base: LatticeMechanism, centres: NDArray[Any], ends: tuple[int, int], source: Any
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Propose uniformly and keep with the probability of the noise, by exact coins."""
    low, high = ends
    drawn = low + source.uniform(high - low + 1, centres.size).values
    kept = np.empty(centres.size, dtype=bool)
    for i, (one, two) in enumerate(zip(drawn.tolist(), centres.tolist(), strict=True)):
        exponent = _exponent(base, abs(one - two) * base.step)
        kept[i] = source.bernoulli_exp(exponent, 1).values[0] == 1
    return drawn, kept


def _exponent(base: LatticeMechanism, gap: Fraction) -> Fraction:
    if isinstance(base, DiscreteLaplaceMechanism):
        return gap / base.scale
    assert isinstance(base, DiscreteGaussianMechanism)
    return gap**2 / (2 * base.variance)
