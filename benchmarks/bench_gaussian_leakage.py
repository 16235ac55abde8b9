"""Search every attacker on a Gaussian block, and bound a million records.

Run ``python benchmarks/bench_gaussian_leakage.py``; one line of JSON comes back. The
search over all attackers is timed against the plain way (one ``numpy.linalg.solve`` for
each known set and target, on a random subset of them, scaled to all) in the same run.
The structured bounds are timed on a million records with their peak memory.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from typing import Any

import numpy as np
from scipy.sparse import diags_array

from undertow.correlation.gaussian import Gaussian, worst_factor

BLOCK, LARGE_BLOCK, RECORDS, SEED, SUBSET = 16, 20, 1_000_000, 20263, 4000
BAND = 3


def covariance(size: int) -> np.ndarray:
    rng = np.random.default_rng(SEED)
    root = rng.normal(size=(size, 2 * size))
    return root @ root.T / (2 * size)


def plain_seconds(matrix: np.ndarray) -> tuple[float, float]:
    """Return the time of all attackers by solves, scaled up, and the largest factor."""
    size = len(matrix)
    rng = np.random.default_rng(SEED)
    chosen = [(int(rng.integers(size)), rng.random(size) < 0.5) for _ in range(SUBSET)]
    best, start = 1.0, time.perf_counter()
    for target, mask in chosen:
        known = [j for j in range(size) if mask[j] and j != target]
        told = [*known, target]
        unknown = [j for j in range(size) if j != target and not mask[j]]
        unit = np.zeros(len(told))
        unit[-1] = 1.0
        shifts = matrix[np.ix_(unknown, told)] @ np.linalg.solve(
            matrix[np.ix_(told, told)], unit
        )
        best = max(best, 1 + float(np.abs(shifts).sum()))
    seconds = time.perf_counter() - start
    return seconds * size * 2 ** (size - 1) / SUBSET, best


def timed(action: Any) -> tuple[float, Any]:
    start = time.perf_counter()
    result = action()
    return time.perf_counter() - start, result


def sparse_factor() -> float:
    """Build a banded precision of a million records and bound its leakage."""
    offsets = list(range(-BAND, BAND + 1))
    values = [2.0 if k == 0 else -0.3 for k in offsets]
    bands = diags_array(
        [np.full(RECORDS - abs(k), v) for k, v in zip(offsets, values, strict=True)],
        offsets=offsets,
    )
    return Gaussian.from_precision(bands).structured().value


def toeplitz_factor() -> float:
    lags = np.zeros(RECORDS)
    lags[:50] = 0.3 ** np.arange(50)
    return Gaussian.toeplitz(lags).structured().value


def peak_bytes() -> int:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def run() -> dict[str, Any]:
    """Measure the searches and the structured bounds in one run."""
    block = covariance(BLOCK)
    worst_factor(block[:4, :4])  # imports
    plain, sampled = plain_seconds(block)
    searches = [timed(lambda: worst_factor(block)) for _ in range(3)]
    seconds, found = sorted(searches, key=lambda pair: pair[0])[1]
    large_seconds, _ = timed(lambda: worst_factor(covariance(LARGE_BLOCK)))
    sparse_seconds, sparse_value = timed(sparse_factor)
    toeplitz_seconds, toeplitz_value = timed(toeplitz_factor)
    series_seconds, series = timed(
        lambda: Gaussian.autoregressive(0.9, RECORDS).structured().value
    )
    return {
        "benchmark": "gaussian_leakage",
        "block": BLOCK,
        "attackers": BLOCK * 2 ** (BLOCK - 1),
        "undertow_s": seconds,
        "plain_s": plain,
        "plain_timed_on": SUBSET,
        "ratio": plain / seconds,
        "factor": found.value,
        "factor_of_subset": sampled,
        "large_block": LARGE_BLOCK,
        "large_block_s": large_seconds,
        "records": RECORDS,
        "sparse_s": sparse_seconds,
        "sparse_band": BAND,
        "sparse_factor": sparse_value,
        "toeplitz_s": toeplitz_seconds,
        "toeplitz_factor": toeplitz_value,
        "autoregressive_s": series_seconds,
        "autoregressive_factor": series,
        "peak_bytes": peak_bytes(),
        "seed": SEED,
    }


if __name__ == "__main__":
    print(json.dumps(run()))
