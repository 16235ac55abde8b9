"""Documented stand-ins for data of people: hours of work, heights, a series of steps.

Hours are a mixture that anyone can write down, with 46.7 % of 32 561 people at 40. The
heights are the published figures of Galton's families, in inches. The series is drawn
by the printed chain of a step counter, 288 intervals of five minutes a day.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.risk import Prior

HOURS_LIMIT = 100
"""The largest number of hours a week."""

_PEOPLE = 32_561

# The stand-in: 46.7 % at 40, then round numbers, then everybody else.
_AT_FORTY, _ROUND, _OTHERS = 0.467, 0.333, 0.2
_ROUND_LAW, _OTHER_LAW = (42.0, 15.0), (38.0, 14.0)


@dataclass(frozen=True, eq=False)
class Hours:
    """How many people work 0, 1, ..., 100 hours a week.

    Parameters
    ----------
    counts : ndarray of int, shape (101,)
        People by hours.
    real : bool
        Whether these are the real counts.
    """

    counts: NDArray[np.int64]
    real: bool

    def prior(self) -> Prior:
        """Return the relative frequencies as a prior on 0, ..., 100."""
        return Prior.from_counts(dict(enumerate(self.counts.tolist())))


def hours_stand_in() -> Hours:
    """Return 32 561 people of a mixture; no randomness.

    46.7 % work 40 hours. 33.3 % work another positive multiple of five below 100, in
    proportion to the normal density of mean 42 and deviation 15; 20 % work another
    number from 1 to 99, in proportion to that of mean 38 and deviation 14. Shares are
    rounded to people, and what is missing is put at 40.

    Examples
    --------
    >>> hours = hours_stand_in()
    >>> int(hours.counts.sum()), round(float(hours.prior().pmf[40]), 3), hours.real
    (32561, 0.467, False)
    """
    hours = np.arange(HOURS_LIMIT + 1)
    inside = (hours > 0) & (hours < HOURS_LIMIT)
    fives = inside & (hours % 5 == 0) & (hours != 40)
    share = _ROUND * _bell(hours, fives, _ROUND_LAW)
    share += _OTHERS * _bell(hours, inside & (hours % 5 != 0), _OTHER_LAW)
    counts = np.round(_PEOPLE * share).astype(np.int64)
    counts[40] = _PEOPLE - counts.sum()
    return Hours(counts, real=False)


def _bell(
    hours: NDArray[np.int64], where: NDArray[np.bool_], law: tuple[float, float]
) -> NDArray[np.float64]:
    """Return the normal density on the chosen hours, scaled to sum 1."""
    mean, deviation = law
    weight = np.where(where, np.exp(-0.5 * ((hours - mean) / deviation) ** 2), 0.0)
    return np.asarray(weight / weight.sum())


GALTON_MEANS = (69.233, 64.084, 66.761)
"""Mean height of fathers, mothers and children, inches."""

GALTON_DEVIATIONS = (2.4703, 2.3070, 3.5829)
"""Their standard deviations."""

GALTON_CORRELATION = (0.07366461, 0.27535483, 0.20165489)
"""Correlations father-mother, father-child, mother-child."""


def galton_covariance() -> NDArray[np.float64]:
    """Return the covariance of (father, mother, child) from the published figures."""
    fm, fc, mc = GALTON_CORRELATION
    correlation = np.array([[1, fm, fc], [fm, 1, mc], [fc, mc, 1]])
    deviations = np.array(GALTON_DEVIATIONS)
    return correlation * np.outer(deviations, deviations)


MISSING = -1

ACTIVITY_TRANSITION = ((0.882, 0.118), (0.305, 0.695))
"""Printed transition matrix of Activity; row 0 sums to one with .118."""

_ACTIVITY_SEED = 20260519
_DAY = 288


@dataclass(frozen=True)
class Series:
    """A two-state series.

    Parameters
    ----------
    states : ndarray of int
        0 or 1 by record, -1 where the record is missing.
    days : ndarray of int
        Day of each record, from 0.
    real : bool
        Whether these are real records.
    """

    states: NDArray[np.int64]
    days: NDArray[np.int64]
    real: bool

    @property
    def count(self) -> int:
        """Number of records in state 1."""
        return int((self.states == 1).sum())

    def complete_days(self) -> list[NDArray[np.int64]]:
        """Return the states of each day without a missing record."""
        found = [self.states[self.days == day] for day in np.unique(self.days)]
        return [day for day in found if (day != MISSING).all()]


def activity_stand_in() -> Series:
    """Return 53 simulated days of the printed activity chain, none missing."""
    rng = np.random.default_rng(_ACTIVITY_SEED)
    states = simulate_chain(ACTIVITY_TRANSITION, 53 * _DAY, rng=rng)
    return Series(states, np.repeat(np.arange(53), _DAY), real=False)


def simulate_chain(
    transition: tuple[tuple[float, float], tuple[float, float]],
    length: int,
    *,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Simulate a two-state chain from its stationary start."""
    (_, p01), (p10, _) = transition
    uniform = rng.random(length)
    states = np.empty(length, dtype=np.int64)
    states[0] = uniform[0] < p01 / (p01 + p10)
    to_one = (p01, transition[1][1])
    for t in range(1, length):
        states[t] = uniform[t] < to_one[states[t - 1]]
    return states
