"""Two-state time series: step counts of one person, electricity of one household.

*Activity*: steps in 17 568 five-minute intervals of 61 days, eight whole days missing.
A missing interval is missing, not inactive: counting it as inactive changes every
transition. *Electricity*: the series behind the published matrices is not public; the
stand-in simulates the chains of the thesis. A real household series is read as well.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from undertow.datasets import (
    Series,
    read_columns,
    require_file,
    simulate_chain,
)
from undertow.datasets.stand_in import MISSING

ELECTRICITY_TRANSITIONS = {
    70: ((0.445, 0.555), (0.149, 0.851)),
    80: ((0.818, 0.182), (0.371, 0.629)),
    90: ((0.894, 0.106), (0.478, 0.522)),
}
"""Printed matrices by threshold in kWh; .850 raised to .851 so the row sums to one."""

_ELECTRICITY_SEED = 20260521


def load_activity(folder: Path) -> Series:
    """Read ``activity/activity.csv``; active means at least one step."""
    path = require_file(folder, "activity/activity.csv")
    columns = read_columns(path, ("date", "steps"))
    steps = columns["steps"]
    states = [MISSING if s in ("", "NA") else int(float(s) > 0) for s in steps]
    _, days = np.unique(np.array(columns["date"]), return_inverse=True)
    return Series(np.array(states), days.astype(np.int64), real=True)


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


def _daily(states: NDArray[np.int64]) -> Series:
    return Series(states, np.arange(len(states)), real=False)
