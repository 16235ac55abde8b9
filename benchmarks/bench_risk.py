"""The exact advantage against one matrix product, and many targets against one.

Run ``python benchmarks/bench_risk.py``; one line of JSON comes back. The advantage of a
channel of 5000 records and 5000 outputs is timed against one product of two matrices of
that size in the same run, for four threats. Then 1000 targets are calibrated in one
call, and a sample of them one by one, scaled to 1000. Wall-clock
seconds, the fastest of several runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from time import perf_counter as clock
from typing import Any

import numpy as np

from undertow.risk.calibration import CalibrationTable, calibrate
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage
from undertow.risk.families import family
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat

SIZE, SEED, REPEATS, LIMIT = 5000, 20261, 3, 10.0
TARGETS, SINGLE_CALLS, RECORDS = 1000, 20, 1000
FAMILIES = ("grr", "oue", "ss", "olh")


def threats(size: int) -> dict[str, Threat]:
    """Return the four threats; the records are the numbers 0, 1, ..."""
    drawn = np.random.default_rng(SEED).exponential(size=size)
    prior = Prior(range(size), drawn / drawn.sum())
    labels = [at % 50 for at in range(size)]
    line = Success.within("absolute", 25)
    return {
        "exact_none": Threat(prior),
        "exact_full": Threat(prior, knowledge=Knowledge.full()),
        "exact_labels": Threat(prior, knowledge=Knowledge.from_labels(labels)),
        "within_25_on_a_line": Threat(prior, line),
    }


def fastest(call: Callable[[], object], repeats: int = REPEATS) -> float:
    taken = []
    for _ in range(repeats):
        start = clock()
        call()
        taken.append(clock() - start)
    return min(taken)


def channel(size: int) -> Channel:
    weights = np.random.default_rng(SEED).exponential(size=(size, size))
    return Channel(weights / weights.sum(axis=1, keepdims=True))


def exact_seconds(size: int = SIZE) -> dict[str, Any]:
    """Time the exact engine and one product of matrices of the same size."""
    known = channel(size)
    product = fastest(lambda: known.matrix @ known.matrix)
    seconds = {
        name: fastest(partial(advantage, known, threat))
        for name, threat in threats(size).items()
    }
    times = {name: taken / product for name, taken in seconds.items()}
    return {
        "size": size,
        "product_seconds": product,
        "seconds": seconds,
        "times_one_product": times,
        "all_within_limit": max(times.values()) < LIMIT,
    }


def calibration_seconds(name: str) -> dict[str, Any]:
    """Time 1000 targets in one call, and calls for one target each."""
    threat, mechanisms = Threat(Prior.uniform(RECORDS)), family(name, RECORDS)
    targets = np.linspace(0.001, 0.9, TARGETS)
    start = clock()
    table = calibrate(mechanisms, threat, advantage=targets)
    together = clock() - start
    assert isinstance(table, CalibrationTable)
    sample = np.linspace(0, TARGETS - 1, SINGLE_CALLS).astype(int)
    start = clock()
    alone = [
        calibrate(mechanisms, threat, advantage=float(at), alternatives=False).value
        for at in targets[sample]
    ]
    single = (clock() - start) * TARGETS / SINGLE_CALLS
    return {
        "seconds_together": together,
        "seconds_one_by_one": single,
        "one_by_one_measured": SINGLE_CALLS,
        "ratio": single / together,
        "agree": bool(np.allclose(table.values[sample], alone, rtol=1e-9)),
    }


def run(size: int = SIZE) -> dict[str, Any]:
    """Measure the exact engine, then calibration."""
    return {
        "exact": exact_seconds(size),
        "targets": TARGETS,
        "calibration": {name: calibration_seconds(name) for name in FAMILIES},
    }


if __name__ == "__main__":
    print(json.dumps(run()))
