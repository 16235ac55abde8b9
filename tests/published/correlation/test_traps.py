"""Traps in using the theory of correlation that no other test steps into, by id."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from undertow.correlation import calibrate, fit_markov, fit_markov_private
from undertow.datasets import activity_stand_in
from undertow.errors import EstimatedModelWarning

DAY = 288


def test_trap_c16_a_scale_fitted_on_private_data_is_itself_a_release():
    """Two neighbouring series have different scales: the scale alone tells them."""
    series = activity_stand_in().states[: 10 * DAY].tolist()
    neighbour = list(series)
    neighbour[100] = 1 - neighbour[100]
    scales = []
    for each in (series, neighbour):
        with pytest.warns(EstimatedModelWarning, match="noise scale then depends"):
            fitted = fit_markov(each)
        scales.append(calibrate(fitted.region(), 1.0).noise_scale)
    assert scales[0] != scales[1]
    # Paid for, or from public data, no warning is given and the price is on record.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fit_markov_private(series, 0.5, states=[0, 1]).budget == 0.5
        assert fit_markov(series, public=True).budget == 0.0


def test_trap_l18_missing_records_are_dropped_not_called_inactive():
    """Eight missing days of 61, as in the activity data, raise gamma by a quarter."""
    days = activity_stand_in().states.reshape(-1, DAY)
    gaps = {1, 8, 22, 25, 30, 33, 39, 52}
    rows = iter(days.tolist())
    calendar = [[None] * DAY if d in gaps else next(rows) for d in range(61)]
    seen = [record for day in calendar for record in day]
    coded = [0 if record is None else record for record in seen]
    dropped = fit_markov(seen, public=True)
    mistaken = fit_markov(coded, public=True)
    assert dropped.missing == 8 * DAY
    # Only pairs with a missing record are lost, and all of them join (0, 0) or edges.
    assert mistaken.counts.sum() == len(seen) - 1
    assert dropped.counts.sum() < mistaken.counts.sum()
    extra = mistaken.counts - dropped.counts
    assert extra[0, 0] > 8 * (DAY - 1) > 20 * extra.sum(where=~np.eye(2, dtype=bool))
    assert mistaken.gamma / dropped.gamma == pytest.approx(9.2834 / 7.5004, rel=0.03)
