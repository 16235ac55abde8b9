"""Seconds and memory of a million local reports over 3052 categories.

Run ``python benchmarks/bench_local.py``; prints one JSON object. Each row draws the
reports, counts their support and keeps to one gigabyte.
"""

from __future__ import annotations

import json
import resource
import time
from typing import Any

import numpy as np

from undertow.mechanisms.local import (
    GeneralizedResponse,
    LocalHashing,
    LocalProtocol,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SymmetricUnary,
    ThresholdHistogram,
)
from undertow.mechanisms.noise.secure import SecureSource
from undertow.mechanisms.noise.simulated import SimulatedSource

CLIENTS = 1_000_000
CLIENTS_HASHED = 50_000  # counting costs one hash per client and category
CATEGORIES = 3052
SOURCES = {"simulated": lambda: SimulatedSource(1), "secure": SecureSource}


def protocols() -> list[LocalProtocol]:
    return [
        GeneralizedResponse(CATEGORIES, 5),
        SymmetricUnary(CATEGORIES, 5),
        OptimizedUnary(CATEGORIES, 5),
        ThresholdHistogram(CATEGORIES, 5),
        SubsetSelection(CATEGORIES, 1),
        SubsetSelection(CATEGORIES, 5),
        OptimizedHashing(CATEGORIES, 5),
    ]


def measure(protocol: LocalProtocol, source: str, clients: int) -> dict[str, Any]:
    """Return one row: time to draw, time to count, largest error of the counts."""
    truths = np.arange(clients) % CATEGORIES
    start = time.perf_counter()
    reports = protocol.sample(truths, source=SOURCES[source]()).values
    drawn = time.perf_counter()
    counts = protocol.support_counts(reports)
    counted = time.perf_counter()
    p, q = float(protocol.keep), float(protocol.noise)
    mean = clients * q + np.bincount(truths, minlength=CATEGORIES) * (p - q)
    deviation = np.abs(counts - mean).max() / np.sqrt(clients * q * (1 - q))
    return {
        "protocol": protocol.name,
        "epsilon": float(protocol.epsilon),
        "source": source,
        "clients": clients,
        "sample_s": round(drawn - start, 3),
        "count_s": round(counted - drawn, 3),
        "report_mb": round(reports.nbytes / 1e6, 1),
        "largest_deviation": round(float(deviation), 2),
    }


def run(clients: int = CLIENTS) -> dict[str, Any]:
    rows = []
    for source in SOURCES:
        for protocol in protocols():
            hashed = isinstance(protocol, LocalHashing)
            count = min(clients, CLIENTS_HASHED) if hashed else clients
            rows.append(measure(protocol, source, count))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"benchmark": "local", "peak_mb": round(peak, 1), "rows": rows}


if __name__ == "__main__":
    print(json.dumps(run()))
