"""Compose 1000 different mechanisms, here and with dp_accounting's PLDAccountant.

Run ``python benchmarks/bench_pld.py``; one line of JSON comes back. Both sides do the
whole task: describe the mechanisms, compose them, and report epsilon at delta. The
mechanisms are a third each Laplace, Gaussian and randomized response (to the peer as
discrete Laplace of sensitivity 1, which has the same loss), all parameters different.
"""

from __future__ import annotations

import json
import time
from typing import Any

import numpy as np

from undertow.privacy.pld import PrivacyLossDistribution, compose_distributions

PARTS, DELTA, SEED, PEER_LIMIT_S = 1000, 1e-6, 20260, 20.0
LOWEST, HIGHEST = 0.01, 0.06


def parameters(n: int) -> list[tuple[str, float]]:
    rng = np.random.default_rng(SEED)
    kinds = ("laplace", "gaussian", "pure")
    return [(kinds[i % 3], float(rng.uniform(LOWEST, HIGHEST))) for i in range(n)]


def ours(mechanisms: list[tuple[str, float]], delta: float) -> float:
    build = {
        "laplace": PrivacyLossDistribution.from_laplace,
        "gaussian": PrivacyLossDistribution.from_gaussian,
        "pure": PrivacyLossDistribution.from_pure,
    }
    parts = [build[kind](value) for kind, value in mechanisms]
    return compose_distributions(parts).epsilon(delta)


def peer(mechanisms: list[tuple[str, float]], delta: float) -> tuple[float, int, float]:
    """Return the peer's epsilon, how many parts it composed in time, its seconds."""
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant

    start = time.perf_counter()
    accountant, done = PLDAccountant(), 0
    for kind, value in mechanisms:
        if kind == "laplace":
            event: Any = dp_event.LaplaceDpEvent(1 / value)
        elif kind == "gaussian":
            event = dp_event.GaussianDpEvent(1 / value)
        else:
            event = dp_event.DiscreteLaplaceDpEvent(value, 1)
        accountant.compose(event)
        done += 1
        if time.perf_counter() - start > PEER_LIMIT_S:
            break
    epsilon = float(accountant.get_epsilon(delta))
    return epsilon, done, time.perf_counter() - start


def run() -> dict[str, Any]:
    """Measure both in one run; if the peer runs out of time, both do what it managed.

    The ratio is never extrapolated: it compares the same mechanisms on both sides.
    """
    mechanisms = parameters(PARTS)
    peer_epsilon, done, peer_seconds = peer(mechanisms, DELTA)
    ours(mechanisms[:3], DELTA)  # imports and plans of the transforms
    times = []
    for _ in range(3):
        start = time.perf_counter()
        epsilon = ours(mechanisms[:done], DELTA)
        times.append(time.perf_counter() - start)
    seconds = sorted(times)[1]
    return {
        "benchmark": "pld",
        "parts_wanted": PARTS,
        "parts_composed": done,
        "parameter_range": [LOWEST, HIGHEST],
        "seed": SEED,
        "delta": DELTA,
        "undertow_s": seconds,
        "peer_s": peer_seconds,
        "ratio": peer_seconds / seconds,
        "undertow_epsilon": epsilon,
        "peer_epsilon": peer_epsilon,
        "epsilon_excess": epsilon / peer_epsilon - 1,
        "peer": "dp_accounting PLDAccountant, default discretisation 1e-4",
    }


if __name__ == "__main__":
    print(json.dumps(run()))
