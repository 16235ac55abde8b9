"""Two-state time series: step counts of one person, electricity of one household.

*Activity*: steps in 17 568 five-minute intervals of 61 days, eight whole days missing.
A missing interval is missing, not inactive: counting it as inactive changes every
transition. *Electricity*: the series behind the published matrices is not public; the
stand-in simulates the chains of the thesis. A real household series is read as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from undertow.datasets.folder import read_columns, require_file

MISSING = -1

ACTIVITY_TRANSITION = ((0.882, 0.118), (0.305, 0.695))
"""Printed transition matrix of Activity; row 0 sums to one with .118."""

ELECTRICITY_TRANSITIONS = {
    70: ((0.445, 0.555), (0.149, 0.851)),
    80: ((0.818, 0.182), (0.371, 0.629)),
    90: ((0.894, 0.106), (0.478, 0.522)),
}
"""Printed matrices by threshold in kWh; .850 raised to .851 so the row sums to one."""

_ACTIVITY_SEED = 20260519
_ELECTRICITY_SEED = 20260521
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


def load_activity(folder: Path) -> Series:
    """Read ``activity/activity.csv``; active means at least one step."""
    path = require_file(folder, "activity/activity.csv")
    columns = read_columns(path, ("date", "steps"))
    steps = columns["steps"]
    states = [MISSING if s in ("", "NA") else int(float(s) > 0) for s in steps]
    _, days = np.unique(np.array(columns["date"]), return_inverse=True)
    return Series(np.array(states), days.astype(np.int64), real=True)


def activity_stand_in() -> Series:
    """Return 53 simulated days of the printed activity chain, none missing."""
    rng = np.random.default_rng(_ACTIVITY_SEED)
    states = simulate_chain(ACTIVITY_TRANSITION, 53 * _DAY, rng=rng)
    return Series(states, np.repeat(np.arange(53), _DAY), real=False)


def load_electricity(folder: Path) -> dict[int, Series]:
    """Read ``electricity/electricity_markov_synthetic.csv``, which is simulated."""
    path = require_file(folder, "electricity/electricity_markov_synthetic.csv")
    names = tuple(f"high_{threshold}" for threshold in ELECTRICITY_TRANSITIONS)
    columns = read_columns(path, names)
    return {
        threshold: _daily(np.array(columns[name], dtype=np.int64))
        for threshold, name in zip(ELECTRICITY_TRANSITIONS, names, strict=True)
    }


def electricity_stand_in() -> dict[int, Series]:
    """Simulate 731 days of each printed chain, by the fixed recipe."""
    rng = np.random.default_rng(_ELECTRICITY_SEED)
    return {
        threshold: _daily(simulate_chain(matrix, 731, rng=rng))
        for threshold, matrix in ELECTRICITY_TRANSITIONS.items()
    }


def load_household(folder: Path, *, threshold_kwh: float = 25.0) -> Series:
    """Read ``electricity/household_daily_kwh.csv``; state 1 is above the threshold."""
    path = require_file(folder, "electricity/household_daily_kwh.csv")
    values = np.array(read_columns(path, ("kwh",))["kwh"], dtype=float)
    series = _daily((values > threshold_kwh).astype(np.int64))
    return Series(series.states, series.days, real=True)


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


def _daily(states: NDArray[np.int64]) -> Series:
    return Series(states, np.arange(len(states)), real=False)
