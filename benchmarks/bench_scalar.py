"""A risk curve of Laplace noise on 101 answers, against adaptive quadrature.

Run ``python benchmarks/bench_scalar.py``; prints one JSON object. The curve has 100
values of epsilon under an uneven prior, for exact guesses and for guesses within 40.
The peer integrates the same gains by ``scipy.integrate.quad`` with the answers given as
points, on a few of the values, and is scaled to all of them.
"""

from __future__ import annotations

import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import integrate

from undertow.mechanisms import LaplaceMechanism
from undertow.risk.scalar import ScalarChannel, advantage_curve
from undertow.risk.success import Success
from undertow.risk.threat import Prior, Threat

ANSWERS = np.arange(101.0)
EPSILONS = np.geomspace(0.1, 20, 100)
PEER = (20, 60)  # numbers into EPSILONS
SEED, ACCURACY = 12, 1e-12  # the engine is good to 4e-13


def threat_of(eta: float) -> Threat:
    masses = np.random.default_rng(SEED).dirichlet(np.ones(len(ANSWERS)))
    return Threat(Prior(range(101), masses), Success.within("absolute", eta))


def ours(threat: Threat) -> list[float]:
    noise = [LaplaceMechanism(100 / float(epsilon)) for epsilon in EPSILONS]
    channels = [ScalarChannel(one, ANSWERS) for one in noise]
    return [risk.value for risk in advantage_curve(channels, threat)]


def peer(epsilon: float, threat: Threat) -> float:
    """Return the advantage by adaptive quadrature between the answers."""
    b, pmf = 100 / epsilon, threat.prior.pmf
    hits = threat.success.matrix(threat.support).astype(float)

    def best(theta: float) -> float:
        laws = np.exp(-np.abs(theta - ANSWERS) / b) / (2 * b)
        return float((hits @ (pmf * (laws - pmf @ laws))).max())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", integrate.IntegrationWarning)
        inner, _ = integrate.quad(
            best, 0, 100, points=ANSWERS[1:-1], limit=5000, epsabs=ACCURACY, epsrel=0
        )
    return inner + b * (best(0.0) + best(100.0))  # the two rays, in closed form


def fastest(task: Callable[[], list[float]]) -> tuple[list[float], float]:
    """Return what a task gives and the shortest of three times, in seconds."""
    times = []
    for _ in range(3):
        start = time.perf_counter()
        result = task()
        times.append(time.perf_counter() - start)
    return result, min(times)


def measure(eta: float) -> dict[str, Any]:
    threat = threat_of(eta)
    curve, mine = fastest(lambda: ours(threat))
    checks, few = fastest(lambda: [peer(float(EPSILONS[k]), threat) for k in PEER])
    theirs = few / len(PEER) * len(EPSILONS)
    gaps = [abs(curve[k] - c) for k, c in zip(PEER, checks, strict=True)]
    return {
        "eta": eta,
        "answers": len(ANSWERS),
        "epsilons": len(EPSILONS),
        "curve_s": round(mine, 4),
        "quadrature_s": round(theirs, 1),
        "speedup": round(theirs / mine, 1),
        "largest_difference": max(gaps),
    }


def run() -> dict[str, Any]:
    return {"benchmark": "scalar", "rows": [measure(eta) for eta in (0, 40)]}


if __name__ == "__main__":
    print(json.dumps(run()))
