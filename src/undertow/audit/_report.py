"""From the counts of a local audit to its result."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from undertow.audit._choice import total_trials
from undertow.audit._chunks import Counts
from undertow.audit._methods import Method, Tally
from undertow.audit._trials import Source
from undertow.audit.certify import trials_needed
from undertow.audit.result import AuditResult, MethodResult
from undertow.audit.sequential import SequentialTest
from undertow.privacy.result import Estimate
from undertow.risk.intervals import clopper_pearson

__all__ = ["local_result"]


def local_result(
    source: Source,
    chosen: Method,
    *,
    methods: tuple[Method, ...],
    counts: tuple[Counts, Counts],
    seed: int,
    baseline: Mapping[str, Any] | None = None,
    stopped: bool = False,
) -> AuditResult:
    """Return the result of the chosen method on its own trials.

    If the trials `stopped` by what they showed, only limits that hold at all times are
    used, and the advantage is that of the pilot.
    """
    pilot, main = counts
    tally = chosen.tally(main)
    certify = chosen.certify_anytime if stopped else chosen.certify
    certified, epsilon = certify(tally)
    claim, level = chosen.claim, chosen.confidence
    rest, done = int(main["trials"][0]), int(pilot["trials"][0])
    violated = certified > claim.for_replacement().level
    return AuditResult(
        source.name,
        claim,
        certified,
        level,
        rest + done,
        epsilon,
        epsilon_estimate=_estimate(chosen, main),
        advantage=_advantage(
            main if "successes" in main and not stopped else pilot,
            source.categories,
            level,
            seed if source.seeded else None,
        ),
        methods=tuple(
            MethodResult(m.name, _estimate(m, main), certified, rest, True)
            if m is chosen
            else _pilot_row(m, pilot)
            for m in methods
        ),
        witness=chosen.witness(main) if violated else None,
        power=_power(chosen, main, source.categories, stopped=stopped),
        baseline=baseline,
        seed=seed if source.seeded else None,
    )


def _pilot_row(method: Method, pilot: Counts) -> MethodResult:
    tally, tried = method.tally(pilot), method.choices(pilot)
    certified, _ = method.certify(tally, tried=tried)
    trials = int(pilot["trials"][0])
    return MethodResult(method.name, _estimate(method, pilot), certified, trials)


def _estimate(method: Method, counts: Counts) -> float:
    return max(0.0, method.estimate(method.tally(counts)))


def _advantage(counts: Counts, m: int, confidence: float, seed: int | None) -> Estimate:
    hits, n = int(counts["successes"][0]), int(counts["trials"][0])
    low, high = clopper_pearson(hits, n, confidence=confidence)
    blind = 1.0 / m
    method = "Clopper-Pearson, uniform targets"
    return Estimate(
        hits / n - blind, low - blind, high - blind, confidence, n, seed, method
    )


def _power(
    method: Method, counts: Counts, m: int, *, stopped: bool
) -> dict[str, float]:
    """Return what these trials could have shown, by the limits that were used."""
    claim, level, seen = method.claim, method.confidence, method.tally(counts)
    certify = method.certify_anytime if stopped else method.certify
    needed = (
        SequentialTest(claim, m, level).trials_needed()
        if stopped
        else trials_needed(claim, m, confidence=level)
    )
    return {
        "trials_needed": float(total_trials(needed, m)),
        "ceiling": certify(seen._replace(hits=seen.trials, against=0))[0],
        "detectable": _detectable(method, seen, certify),
    }


def _detectable(
    method: Method, seen: Tally, certify: Callable[[Tally], tuple[float, float]]
) -> float:
    """Return the estimate of epsilon from which counts like these would refute."""
    goal = method.claim.for_replacement().level
    both = seen.hits + seen.against
    low = max(0, both - seen.against_trials)
    high = min(both, seen.trials) + 1
    most = high
    while high - low > 1:
        mid = (low + high) // 2
        if certify(seen._replace(hits=mid, against=both - mid))[0] > goal:
            high = mid
        else:
            low = mid
    if high == most:
        return math.inf
    return method.estimate(seen._replace(hits=high, against=both - high))
