"""Fit a chain with noise, so that the fit itself is paid for."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from undertow._validate import check_positive, check_probability
from undertow.correlation.fitting.counting import code_series, count_transitions
from undertow.correlation.fitting.markov import MarkovFit, region_limits, shares
from undertow.errors import ModelError
from undertow.mechanisms import NoiseSource
from undertow.mechanisms.noise.secure import read_source
from undertow.privacy.exact import exact

__all__ = ["fit_markov_private"]

# Replacing one record changes two transitions: two counts fall by one, two rise.
_SENSITIVITY = 4
# Below, noise may pass the largest integer of the counts.
_SMALLEST_LEVEL = 1e-12


def fit_markov_private(
    series: Sequence[Any],
    epsilon: float,
    *,
    states: Sequence[Hashable],
    missing: Iterable[Hashable] = (),
    confidence: float = 0.95,
    source: NoiseSource | None = None,
) -> MarkovFit:
    """Fit a chain from noisy transition counts, for `epsilon` of the budget.

    Parameters
    ----------
    series : sequence
        One series or several; which records are missing is taken as public.
    epsilon : float
        DP level spent: one record of one series is replaced; at least 1e-12. Charge it
        to the same accountant as the releases.
    states : sequence
        All states; they must be known beforehand, since those that occur are private.
    missing : iterable, optional
        Marks of a missing record.
    confidence : float
        Of the region, noise included.
    source : object, optional
        Noise source; the secure one by default.

    Notes
    -----
    The counts have l1 sensitivity 4 under replacement of one record (thesis, section
    6.5; one record is in two transitions). Discrete Laplace noise; negative counts are
    raised to zero, which is post-processing. Half of the error is spent on the noise.

    Examples
    --------
    >>> fit = fit_markov_private([0, 1] * 500, 1.0, states=[0, 1])
    >>> fit.budget
    1.0
    """
    epsilon = check_positive(epsilon, "epsilon")
    if epsilon < _SMALLEST_LEVEL:
        raise ValueError(
            f"epsilon must be at least {_SMALLEST_LEVEL:g}, got {epsilon}; noise for "
            "less has nothing to do with the counts."
        )
    error = 1 - check_probability(confidence, "confidence", open_interval=True)
    runs, listed = code_series(series, states=states, missing=missing)
    counts = count_transitions(runs, len(listed))
    drawn = read_source(source, draws="laplace").laplace(
        _SENSITIVITY / exact(epsilon), counts.size
    )
    noisy = counts + np.asarray(drawn.values, dtype=np.int64).reshape(counts.shape)
    kept = np.maximum(noisy, 0)
    reach = _noise_reach(epsilon, error / 2 / counts.size)
    lower, upper = region_limits(
        np.maximum(noisy + reach, 0), np.maximum(noisy - reach, 0), error=error / 2
    )
    if not (kept.sum(axis=1) > 0).all():
        raise ModelError(
            "every noisy row of counts must be positive, got an empty one; spend more "
            "on the fit or give a longer series."
        )
    return MarkovFit(
        listed,
        kept,
        shares(kept, listed),
        lower,
        upper,
        confidence,
        length=max(len(run) for run in runs),
        missing=sum(int((run < 0).sum()) for run in runs),
        budget=epsilon,
    )


def _noise_reach(epsilon: float, error: float) -> int:
    """Return the least whole number that the noise passes with chance below `error`."""
    rate = epsilon / _SENSITIVITY
    # P(|Z| > t) = 2 e^{-rate (t+1)} / (1 + e^{-rate}) for whole t.
    return max(0, math.ceil(math.log(2 / ((1 + math.exp(-rate)) * error)) / rate))
