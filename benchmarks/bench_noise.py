"""Microseconds per value of integer noise: ours, OpenDP's and unsafe numpy's.

Run ``python benchmarks/bench_noise.py``; prints one JSON object.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.mechanisms.noise.secure import SecureSource

SCALES = (1.0, 3.7, 10.0, 1000.0, 1e6)
CELLS = 1_000_000
CELLS_OPENDP = 100_000  # its cost per value does not depend on the number of values


def microseconds(draw: Callable[[], object], cells: int, *, repeats: int) -> float:
    """Return the best time per value of several runs, tables built beforehand."""
    best = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        draw()
        best = min(best, time.perf_counter() - start)
    return best / cells * 1e6


def opendp_draw(kind: str, scale: float) -> Callable[[], object]:
    """Return a call of OpenDP's vectorised measurement over integers."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=int))
    if kind == "laplace":
        measurement = dp.m.make_laplace(domain, dp.l1_distance(T=int), scale=scale)
    else:
        measurement = dp.m.make_gaussian(domain, dp.l2_distance(T=int), scale=scale)
    zeros = [0] * CELLS_OPENDP
    return lambda: measurement(zeros)


def numpy_draw(kind: str, scale: float) -> Callable[[], object]:
    """Return the unsafe draw: floating point, rounded."""
    sample = getattr(
        np.random.default_rng(1), "laplace" if kind == "laplace" else "normal"
    )
    return lambda: np.rint(sample(scale=scale, size=CELLS)).astype(np.int64)


def measure(kind: str, scale: float) -> dict[str, Any]:
    """Return one row of the table."""
    source = SecureSource()
    parameter = scale if kind == "laplace" else round(scale * scale, 6)
    start = time.perf_counter()
    getattr(source, kind)(parameter, 1)
    setup = time.perf_counter() - start
    ours = microseconds(
        lambda: getattr(source, kind)(parameter, CELLS), CELLS, repeats=3
    )
    opendp = microseconds(opendp_draw(kind, scale), CELLS_OPENDP, repeats=1)
    unsafe = microseconds(numpy_draw(kind, scale), CELLS, repeats=3)
    return {
        "kind": kind,
        "scale": scale,
        "undertow_us": round(ours, 4),
        "opendp_us": round(opendp, 3),
        "numpy_us": round(unsafe, 4),
        "opendp_over_undertow": round(opendp / ours, 1),
        "undertow_over_numpy": round(ours / unsafe, 2),
        "first_call_ms": round(setup * 1e3, 2),
    }


def run() -> dict[str, Any]:
    rows = [
        measure(kind, scale) for kind in ("laplace", "gaussian") for scale in SCALES
    ]
    return {
        "benchmark": "noise",
        "cells": CELLS,
        "cells_opendp": CELLS_OPENDP,
        "worst_opendp_over_undertow": min(row["opendp_over_undertow"] for row in rows),
        "rows": rows,
    }


if __name__ == "__main__":
    print(json.dumps(run()))
