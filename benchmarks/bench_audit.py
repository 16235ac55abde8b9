"""Audits of local protocols against a plain loop, and the certificates of a second.

Run ``python benchmarks/bench_audit.py``; one line of JSON comes back. The audit of
Figure 5.8 of the thesis (GRR, OUE and SS on 3052 values, epsilon 1 to 16, a million
trials, five repeats) runs in three ways: a plain loop that perturbs, attacks and
compares one report at a time, on a thousandth of the trials; the audit of reports from
the samplers, as for a black box, on a tenth; and in full by what the attack reads of a
report, which is exact but presumes the protocol. Seconds are those of one processor,
scaled to all trials, and nanoseconds those of one trial at each epsilon.
Then `audit_local` certifies four protocols on 100 values at epsilon 1, by the clock.
"""

from __future__ import annotations

import json
import os
import random
import resource
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter as clock
from time import process_time
from typing import Any

import numpy as np

from undertow.audit import Claim, audit_local
from undertow.audit._trial import Source, UniformTrials
from undertow.mechanisms.local import (
    GeneralizedResponse,
    LocalProtocol,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
)
from undertow_studies.audit_repeat import Target, sample_reading

CATEGORIES, LEVELS, TRIALS, REPEATS = 3052, range(1, 17), 1_000_000, 5
PLAIN_SHARE, REPORT_SHARE, CHUNK, SEED = 1000, 10, 16_384, 20262
MEMORY_TRIALS, MEMORY_LIMIT_MB = 50_000, 1000
PROTOCOLS: dict[str, type[Any]] = {
    "grr": GeneralizedResponse,
    "oue": OptimizedUnary,
    "ss": SubsetSelection,
}
SMALL, SMALL_LEVEL, SMALL_LIMIT_S, SMALL_TARGET = 100, 1, 3.0, 0.97
SMALL_PROTOCOLS: dict[str, type[Any]] = {**PROTOCOLS, "olh": OptimizedHashing}


Law = tuple[float, float, int]


def plain_grr(truth: int, law: Law, coin: random.Random) -> bool:
    """Answer, and take the answer for the truth."""
    keep, _, _ = law
    report = truth
    if coin.random() >= keep:
        report = coin.randrange(CATEGORIES - 1)
        report += report >= truth
    return report == truth


def plain_oue(truth: int, law: Law, coin: random.Random) -> bool:
    """Draw every bit, list the ones, and guess one of them."""
    (keep, noise, _), draw = law, coin.random
    bits = [draw() < noise for _ in range(CATEGORIES)]
    bits[truth] = draw() < keep
    ones = [i for i, bit in enumerate(bits) if bit]
    guess = coin.choice(ones) if ones else coin.randrange(CATEGORIES)
    return guess == truth


def plain_ss(truth: int, law: Law, coin: random.Random) -> bool:
    """Draw the set, and guess one of its elements."""
    keep, _, size = law
    held = coin.random() < keep
    others = coin.sample(range(CATEGORIES - 1), size - held)
    subset = [other + (other >= truth) for other in others]
    if held:
        subset.append(truth)
    return coin.choice(subset) == truth


PLAIN: dict[str, Callable[[int, Law, random.Random], bool]] = {
    "grr": plain_grr,
    "oue": plain_oue,
    "ss": plain_ss,
}


def plain_right(name: str, protocol: Any, trials: int) -> int:
    """Attack one report at a time."""
    coin, trial = random.Random(SEED), PLAIN[name]
    size = getattr(protocol, "subset", 1)
    law = (float(protocol.keep), float(protocol.noise), size)
    return sum(trial(coin.randrange(CATEGORIES), law, coin) for _ in range(trials))


def reports_right(name: str, protocol: LocalProtocol, trials: int) -> int:
    """Attack reports from the sampler, as the audit of a black box does."""
    del name
    rng = np.random.default_rng(SEED)
    work, right = UniformTrials(Source(protocol), pairs=False), 0
    for start in range(0, trials, CHUNK):
        right += int(work(min(CHUNK, trials - start), rng)["successes"][0])
    return right


def reading_right(name: str, protocol: LocalProtocol, trials: int) -> int:
    """Attack by what is read of a report."""
    target = Target(name, float(protocol.epsilon), CATEGORIES, 0.5)
    rng = np.random.default_rng(SEED)
    return sample_reading(target, protocol, trials=trials, rng=rng).right


def figure_seconds(
    attack: Callable[[str, LocalProtocol, int], int], name: str, *, share: int = 1
) -> dict[str, Any]:
    """Time the audits of one protocol, scaled to all trials."""
    kind, trials = PROTOCOLS[name], TRIALS // share * REPEATS
    right, taken = [], []
    for level in LEVELS:
        start = process_time()
        right.append(attack(name, kind(CATEGORIES, level), trials))
        taken.append(process_time() - start)
    success = [kind(CATEGORIES, e).attack_success() for e in LEVELS]
    off = [
        abs(k - trials * s) / np.sqrt(trials * s * (1 - s))
        for k, s in zip(right, success, strict=True)
    ]
    return {
        "seconds": sum(taken) * share,
        "nanoseconds_a_trial": [round(1e9 * t / trials, 1) for t in taken],
        "share_of_trials": 1 / share,
        "largest_deviation_in_standard_errors": float(max(off)),
    }


def figure(*, shares: tuple[int, int, int] = (PLAIN_SHARE, REPORT_SHARE, 1)) -> Any:
    """Time Figure 5.8 in three ways."""
    ways = {"plain": plain_right, "reports": reports_right, "reading": reading_right}
    found: dict[str, Any] = {
        way: {name: figure_seconds(attack, name, share=share) for name in PROTOCOLS}
        for (way, attack), share in zip(ways.items(), shares, strict=True)
    }
    total = {
        way: sum(found[way][name]["seconds"] for name in PROTOCOLS) for way in ways
    }
    for way in ("reports", "reading"):
        found[f"ratio_{way}"] = {
            name: found["plain"][name]["seconds"] / found[way][name]["seconds"]
            for name in PROTOCOLS
        } | {"all": total["plain"] / total[way]}
    return found | {"total_seconds": total}


def reports_seconds_two_workers(share: int) -> float:
    """Time the audit of sampled reports by the clock, on two processes, scaled."""
    from joblib import Parallel, delayed

    trials = TRIALS // share * REPEATS
    jobs = [
        delayed(reports_right)(name, kind(CATEGORIES, level), trials)
        for name, kind in PROTOCOLS.items()
        for level in LEVELS
    ]
    with Parallel(n_jobs=2) as pool:
        pool(jobs[:2])  # start the processes
        start = clock()
        pool(jobs)
        return (clock() - start) * share


def memory_megabytes() -> float:
    """Return the most memory that audits of reports hold, in a process of their own."""
    call = [sys.executable, os.path.abspath(__file__), "--memory"]
    return float(subprocess.run(call, check=True, capture_output=True).stdout)


def held_megabytes() -> float:
    """Audit each protocol and return the peak of this process."""
    for name, kind in PROTOCOLS.items():
        reports_right(name, kind(CATEGORIES, 1), MEMORY_TRIALS)
        reading_right(name, kind(CATEGORIES, 1), TRIALS)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def certificate(name: str, *, trials: int = TRIALS) -> dict[str, Any]:
    """Time one audit of a small protocol with one worker and with two."""
    protocol, seconds, certified = SMALL_PROTOCOLS[name](SMALL, SMALL_LEVEL), {}, set()
    for workers in (1, 2):
        start = clock()
        result = audit_local(
            protocol, Claim.pure(SMALL_LEVEL), trials=trials, seed=SEED, workers=workers
        )
        seconds[workers] = clock() - start
        certified.add(result.epsilon_certified)
    (value,) = certified
    fast = min(seconds.values()) < SMALL_LIMIT_S
    return {
        "certified": value,
        "verdict": result.verdict,
        "seconds_one_worker": seconds[1],
        "seconds_two_workers": seconds[2],
        "within_limits": fast and value >= SMALL_TARGET,
    }


def certificates() -> dict[str, Any]:
    """Start the workers, then time every protocol."""
    certificate("grr", trials=TRIALS // 10)
    return {name: certificate(name) for name in SMALL_PROTOCOLS}


def run() -> dict[str, Any]:
    """Measure the figure, its memory, and the certificates."""
    peak = memory_megabytes()
    found = figure()
    spread = reports_seconds_two_workers(REPORT_SHARE)
    found["reports_two_workers_seconds"] = spread
    found["ratio_reports_two_workers"] = found["total_seconds"]["plain"] / spread
    return {
        "figure_5_8": found,
        "memory_megabytes": peak,
        "memory_within_limit": peak < MEMORY_LIMIT_MB,
        "certificates": certificates(),
    }


if __name__ == "__main__":
    if "--memory" in sys.argv:
        print(held_megabytes())
    else:
        print(json.dumps(run()))
