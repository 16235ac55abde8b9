r"""Simulation of the success bound of subsampled DP-SGD, with certified limits.

References
----------
.. [1] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*, master's
   thesis, KIT, 2025.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_positive, check_probability
from undertow.privacy import Estimate
from undertow.risk.intervals import clopper_pearson

__all__ = ["estimate_sgd_success"]

Floats = NDArray[np.float64]


def estimate_sgd_success(
    noise_multiplier: float,
    steps: int,
    *,
    best_guess: float,
    sampling_rate: float,
    trials: int = 100_000,
    confidence: float = 0.99,
    rng: np.random.Generator,
) -> Estimate:
    r"""Estimate the bound of Corollary 3 by simulation, with certified limits.

    Parameters
    ----------
    noise_multiplier, steps, best_guess, sampling_rate
        As for :func:`sgd_success_bound`.
    trials : int, optional
        Number of runs simulated under each of the two laws.
    confidence : float, optional
        Chance that the interval holds the exact bound, in (0, 1).
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    Estimate
        Its upper limit is conservative: the threshold is an order statistic that is
        low enough with the stated confidence, and the share above it has a
        Clopper-Pearson limit. Time :math:`O(nT)`, memory :math:`O(n)`.

    Notes
    -----
    A quarter of the error goes to each of the two thresholds and the two shares. If the
    threshold t has :math:`Q(L \ge t) \ge \kappa^+`, the test :math:`L \ge t` is at
    least as powerful as every test of level :math:`\kappa^+` (Neyman and Pearson).
    :func:`sgd_success_bound` needs no simulation and is sharper.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> run = dict(best_guess=0.1, sampling_rate=0.5, trials=4000)
    >>> answer = estimate_sgd_success(1.0, 1, **run, rng=rng)
    >>> answer.low < 0.2445718458 < answer.high
    True
    """
    sigma = check_positive(noise_multiplier, "noise_multiplier")
    count, n = check_count(steps, "steps"), check_count(trials, "trials")
    kappa = check_probability(best_guess, "best_guess", open_interval=True)
    rate = check_probability(sampling_rate, "sampling_rate", open_interval=True)
    error = (1.0 - check_probability(confidence, "confidence", open_interval=True)) / 4
    null = np.sort(_losses(n, count, sigma=sigma, rate=0.0, true_rate=rate, rng=rng))
    other = _losses(n, count, sigma=sigma, rate=rate, true_rate=rate, rng=rng)
    cuts = _thresholds(null, kappa, error)
    shares = [int(np.count_nonzero(other >= cut)) for cut in cuts]
    level = 1.0 - error
    low, _ = clopper_pearson(shares[0], n, confidence=level, side="lower")
    _, high = clopper_pearson(shares[2], n, confidence=level, side="upper")
    method = "order statistic and Clopper-Pearson"
    return Estimate(shares[1] / n, low, high, confidence, n, None, method)


def _losses(
    n: int,
    steps: int,
    *,
    sigma: float,
    rate: float,
    true_rate: float,
    rng: np.random.Generator,
) -> Floats:
    """Draw log-likelihood ratios of runs in which the target joins at `rate`."""
    total = np.zeros(n)
    stay, join = math.log1p(-true_rate), math.log(true_rate)
    for _ in range(steps):
        x = sigma * rng.standard_normal(n)
        if rate > 0:
            x += rng.random(n) < rate
        total += np.logaddexp(stay, join + (2.0 * x - 1.0) / (2.0 * sigma * sigma))
    return total


def _thresholds(null: Floats, kappa: float, error: float) -> tuple[float, float, float]:
    """Return a threshold surely high, the middle one, and one surely low."""
    from scipy.stats import binom

    n = len(null)
    # One rank to the safe side of what the quantile functions return.
    below = int(binom.ppf(error, n, 1.0 - kappa)) - 1
    above = int(binom.isf(error, n, 1.0 - kappa)) + 2
    middle = min(n - 1, max(0, math.ceil(n * (1.0 - kappa)) - 1))
    low = float(null[below - 1]) if below > 0 else -math.inf
    high = float(null[above - 1]) if above <= n else math.inf
    return high, min(high, max(low, float(null[middle]))), low
