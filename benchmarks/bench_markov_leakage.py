"""Exact leakage about Markov chains: windows by recursion, and by brute force.

Run ``python benchmarks/bench_markov_leakage.py``; one line of JSON comes back. The
naive side tries every attacker on every output of randomized response, which gives the
same number for a handful of records; the recursion does a million. The times of a
thousand and a million records are measured in the same run, as are fifty states
(pairwise) and a thousand (box).
"""

from __future__ import annotations

import itertools
import json
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.correlation.markov.pairwise import box_leakage, pairwise_leakage
from undertow.correlation.markov.two_state import two_state_budget, two_state_leakage

EPSILON, TARGET, SEED, NAIVE_RECORDS = 1.0, 1.0, 20260, 7
ACTIVITY = np.array([[0.882, 0.118], [0.305, 0.695]])


def random_chain(states: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    P = np.random.default_rng(SEED).dirichlet(np.ones(states), states) + 1e-5
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def naive(epsilon: float, records: int) -> float:
    """Return the leakage of randomized response by trying every attacker."""
    law = np.array([0.305, 0.118]) / 0.423
    joint = law.reshape((2,) + (1,) * (records - 1))
    for step in range(records - 1):
        shape = [1] * records
        shape[step : step + 2] = [2, 2]
        joint = joint * ACTIVITY.reshape(shape)
    best = 0.0
    for output in itertools.product((1.0, -1.0), repeat=records):
        seen = joint
        for axis, sign in enumerate(output):
            tilt = np.exp(epsilon * sign * np.array([1.0, 0.0]))
            seen = seen * tilt.reshape([2 if k == axis else 1 for k in range(records)])
        for target in range(records):
            rest = [k for k in range(records) if k != target]
            for count in range(records):
                for hidden in itertools.combinations(rest, count):
                    top = np.moveaxis(seen.sum(axis=hidden), _place(target, hidden), 0)
                    low = np.moveaxis(joint.sum(axis=hidden), _place(target, hidden), 0)
                    gap = np.log(top[0] / low[0]) - np.log(top[1] / low[1])
                    best = max(best, float(np.abs(gap).max()))
    return best


def _place(target: int, hidden: tuple[int, ...]) -> int:
    return target - sum(k < target for k in hidden)


def seconds(work: Callable[[], Any], repeats: int = 1) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def calibration_seconds(records: int) -> float:
    return seconds(lambda: two_state_budget(ACTIVITY, TARGET, length=records), 5)


def run() -> dict[str, Any]:
    """Measure every engine once, the quick ones several times."""
    two_state_budget(ACTIVITY, TARGET)  # imports
    ours = seconds(
        lambda: two_state_leakage(ACTIVITY, EPSILON, length=NAIVE_RECORDS), 5
    )
    start = time.perf_counter()
    brute = naive(EPSILON, NAIVE_RECORDS)
    naive_seconds = time.perf_counter() - start
    exact = two_state_leakage(ACTIVITY, EPSILON, length=NAIVE_RECORDS).value
    assert math.isclose(brute, exact, rel_tol=1e-9)
    short, long = calibration_seconds(10**3), calibration_seconds(10**6)
    fifty, thousand = random_chain(50), random_chain(1000)
    return {
        "benchmark": "markov_leakage",
        "records": NAIVE_RECORDS,
        "undertow_s": ours,
        "naive_s": naive_seconds,
        "ratio": naive_seconds / ours,
        "calibrate_thousand_s": short,
        "calibrate_million_s": long,
        "million_over_thousand": long / short,
        "pairwise_50_states_s": seconds(lambda: pairwise_leakage(fifty, 0.5)),
        "box_1000_states_s": seconds(lambda: box_leakage(thousand, 0.5)),
        "seed": SEED,
    }


if __name__ == "__main__":
    print(json.dumps(run()))
