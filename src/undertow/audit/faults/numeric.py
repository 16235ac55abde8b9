"""Faults of additive noise: the wrong scale, and floating-point arithmetic."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_positive
from undertow.audit._low_bits import lowest_bit
from undertow.audit.claim import Claim
from undertow.audit.faults.base import Code, Fault, code_subject
from undertow.audit.faults.densities import GaussianLaw, LaplaceLaw, TraceLaw
from undertow.audit.subjects import MechanismSubject
from undertow.mechanisms import LaplaceMechanism

__all__ = [
    "data_bounds",
    "float_noise",
    "halved_noise",
    "variance_as_deviation",
    "wrong_sensitivity",
]

Floats = NDArray[np.float64]

# No float is a sum of 1 and a float of at most 1/2 in size and has a bit below this.
_GRID = 2.0**-24
_LOWEST = -53
_TOP = 100.0
_RECORDS = 10


def halved_noise(epsilon: float = 1.0) -> Fault:
    r"""Laplace noise of half the scale: :math:`\Delta/(2\varepsilon)`.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed; positive.

    Examples
    --------
    >>> halved_noise(0.5).epsilon
    1.0
    """
    level = check_positive(epsilon, "epsilon")
    answers = (0.0, 1.0)

    def code(scale: float, name: str) -> Code:
        subject = code_subject(_add_noise, answers, name=name, scale=scale)
        return Code(subject, LaplaceLaw(answers, (scale, scale)))

    return Fault(
        "halved-noise",
        "The scale of the Laplace noise is half of what the sensitivity asks for.",
        Claim.pure(level),
        code(0.5 / level, "halved_noise"),
        code(1.0 / level, "noise"),
        trials=6_000,
    )


def float_noise(epsilon: float = 1.0) -> Fault:
    r"""Textbook Laplace noise: minus the log of a float, with a random sign.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed, at sensitivity 1; positive.

    Notes
    -----
    On the answer 1 every output is a multiple of :math:`2^{-53}`; on the answer 0 small
    outputs keep bits below that: proved on the page *Faults*. The lowest bit tells the
    answers apart [1]_. The repair draws integer noise on a lattice.

    References
    ----------
    .. [1] I. Mironov, *On Significance of the Least Significant Bits for Differential
       Privacy*, CCS, 2012.

    Examples
    --------
    >>> float_noise().epsilon
    inf
    """
    level = check_positive(epsilon, "epsilon")
    answers = (0.0, 1.0)
    subject = code_subject(
        _add_logarithm, answers, name="float_noise", scale=1.0 / level
    )
    lattice = MechanismSubject(LaplaceMechanism(1.0 / level), answers)
    return Fault(
        "float-noise",
        "The noise is the logarithm of a float, and the sum is rounded to a float.",
        Claim.pure(level),
        Code(subject, TraceLaw(_low_bit, clean=1)),
        Code(lattice, LaplaceLaw(answers, (1.0 / level, 1.0 / level))),
        trials=1_000,
        score="bits",
    )


def data_bounds(epsilon: float = 1.0) -> Fault:
    r"""Noisy mean whose clipping bounds are the least and largest value of the data.

    The scale of the noise then depends on the data: its tails tell them apart without
    bound. The repair clips to public bounds.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed, for replacing one record; positive.

    Examples
    --------
    >>> data_bounds().epsilon
    inf
    """
    level = check_positive(epsilon, "epsilon")
    rest = (0.0,) * (_RECORDS - 1)
    people = [(*rest, 1.0), (*rest, _TOP)]
    means = (1.0 / _RECORDS, _TOP / _RECORDS)

    def code(bounds: tuple[float, float] | None, name: str) -> Code:
        widths = [max(x) if bounds is None else bounds[1] - bounds[0] for x in people]
        scales = tuple(w / (_RECORDS * level) for w in widths)
        settings = {"bounds": bounds, "level": level}
        subject = code_subject(_clipped_mean, people, name=name, **settings)
        return Code(subject, LaplaceLaw(means, scales))

    return Fault(
        "data-bounds",
        "The clipping bounds, and with them the noise, are computed from the data.",
        Claim.pure(level),
        code(None, "data_bounds"),
        code((0.0, _TOP), "public_bounds"),
        trials=1_000,
    )


def variance_as_deviation(mu: float = 0.5) -> Fault:
    r"""Gaussian noise whose deviation is taken for a variance.

    .. math:: \sigma' = \sqrt\sigma, \qquad \mu' = \sqrt\mu

    Parameters
    ----------
    mu : float, optional
        What is claimed, at sensitivity 1; positive and below 1, as the bug adds noise
        otherwise.

    Examples
    --------
    >>> fault = variance_as_deviation()
    >>> round(fault.level, 6), fault.claim.level
    (0.707107, 0.5)
    """
    level = check_positive(mu, "mu")
    if level >= 1:
        raise ValueError(f"mu must be below 1, got {level}; the bug is harmless there.")
    answers = (0.0, 1.0)

    def code(sigma: float, name: str) -> Code:
        subject = code_subject(_add_gaussian, answers, name=name, sigma=sigma)
        return Code(subject, GaussianLaw(answers, sigma))

    return Fault(
        "variance-as-deviation",
        "The deviation of the Gaussian noise is read as a variance.",
        Claim.gaussian(level),
        code(math.sqrt(1.0 / level), "variance_as_deviation"),
        code(1.0 / level, "gaussian"),
        trials=24_000,
    )


def wrong_sensitivity(epsilon: float = 1.0) -> Fault:
    r"""Noisy sum of values in [0, 100] with the noise of a count.

    The true epsilon is a hundred times the claimed one.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed, for replacing one record; positive.

    Examples
    --------
    >>> wrong_sensitivity().epsilon
    100.0
    """
    level = check_positive(epsilon, "epsilon")
    rest = (50.0,) * (_RECORDS - 1)
    people = [(*rest, 0.0), (*rest, _TOP)]
    sums = tuple(float(sum(person)) for person in people)

    def code(sensitivity: float, name: str) -> Code:
        scale = sensitivity / level
        subject = code_subject(_noisy_sum, people, name=name, scale=scale)
        return Code(subject, LaplaceLaw(sums, (scale, scale)))

    return Fault(
        "wrong-sensitivity",
        "A sum of values up to 100 gets the noise of a count.",
        Claim.pure(level),
        code(1.0, "sum_as_count"),
        code(_TOP, "noisy_sum"),
        trials=400,
    )


def _add_noise(values: Any, rng: np.random.Generator, *, scale: float) -> Floats:
    return _on_grid(np.asarray(values) + rng.laplace(scale=scale, size=len(values)))


def _on_grid(outputs: Any) -> Floats:
    """Return outputs without their last digits, which noise in floats leaves telling.

    Programs that are broken otherwise, and their repaired twins, have none of it.
    """
    return np.asarray(np.round(np.asarray(outputs) / _GRID) * _GRID)


def _add_gaussian(values: Any, rng: np.random.Generator, *, sigma: float) -> Floats:
    return _on_grid(np.asarray(values) + rng.normal(scale=sigma, size=len(values)))


def _add_logarithm(values: Any, rng: np.random.Generator, *, scale: float) -> Floats:
    uniform = 1.0 - rng.random(len(values))  # multiples of 2^-53 in (0, 1]
    sign = np.where(rng.random(len(values)) < 0.5, -1.0, 1.0)
    return np.asarray(np.asarray(values) - sign * scale * np.log(uniform))


def _low_bit(outputs: Any) -> NDArray[np.bool_]:
    """Return which outputs are no multiple of 2^-53."""
    return lowest_bit(outputs) < _LOWEST


def _clipped_mean(
    values: Any,
    rng: np.random.Generator,
    *,
    bounds: tuple[float, float] | None,
    level: float,
) -> Floats:
    people = np.asarray(values, dtype=float).reshape(-1, _RECORDS)
    if bounds is None:  # the bug
        low = people.min(axis=1, initial=np.inf)
        high = people.max(axis=1, initial=-np.inf)
    else:
        low, high = (np.full(len(people), bound) for bound in bounds)
    means = np.clip(people, low[:, None], high[:, None]).mean(axis=1)
    noise = rng.laplace(size=len(people))
    return _on_grid(means + noise * (high - low) / (_RECORDS * level))


def _noisy_sum(values: Any, rng: np.random.Generator, *, scale: float) -> Floats:
    noise = rng.laplace(scale=scale, size=len(values))
    return _on_grid(np.array([sum(person) for person in values]) + noise)
