"""Scoring a plan of draws, and the source's estimator with a second set of them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from undertow.errors import NotApplicable
from undertow.privacy.result import Estimate
from undertow.risk._draws import Draws, Progress, Sampler, batches
from undertow.risk._measured import Measured
from undertow.risk._score import Scorer
from undertow.risk.intervals import hoeffding_halfwidth
from undertow.risk.threat import Threat

__all__ = ["Streams", "nested_estimates", "score_draws"]

Floats = NDArray[np.float64]

Streams = tuple[np.random.Generator, np.random.Generator, np.random.Generator]
"""Of the targets, the mechanism and the attack."""


def score_draws(
    sampler: Sampler,
    scorer: Scorer,
    plan: Draws,
    streams: Streams,
    progress: Progress | None = None,
) -> tuple[Floats, Floats]:
    """Return hit and baseline of every output, in the order of the plan."""
    hit, base, done = np.empty(plan.total), np.empty(plan.total), 0
    for records, outputs in batches(sampler, plan, width=scorer.width, rng=streams[1]):
        part = slice(done, done + len(records))
        hit[part], base[part] = scorer.score(records, outputs, rng=streams[2])
        done += len(records)
        if progress is not None:
            progress(done, plan.total)
    return hit, base


def nested_estimates(
    sampler: Sampler,
    scorer: Scorer,
    measured: Measured,
    *,
    streams: Streams,
    progress: Progress | None,
) -> tuple[Estimate, Estimate, Estimate]:
    r"""Return success, correction and advantage of the nested estimator.

    The correction is the mean over I fresh targets' outputs of the hits on I other
    fresh targets. Exchanging one of these 2I independent draws moves it by at most 1/I,
    so that by the bounded-differences inequality it is within
    :math:`\sqrt{\ln(2/\beta)/I}` of its mean.
    """
    plan, threat = measured.plan, measured.threat
    if plan.design == "exhaustive":
        raise NotApplicable(
            "the nested estimator must have targets drawn from the prior, got every "
            "record; use estimator='paired'."
        )
    size = plan.total // plan.runs
    if size < 2:
        raise ValueError(f"trials must be at least 2 for nested draws, got {size}.")
    hit, _ = score_draws(sampler, scorer, plan, streams, progress)
    # Another stream of the attack's would repeat its draws, so it goes on.
    base = _fresh_baselines(sampler, scorer, plan, streams, threat)
    success = measured.success(hit)
    part = (1.0 + measured.confidence) / 2.0
    split = Measured(plan, threat, part, measured.interval, measured.whole)
    low, high = _around(base, size, measured.confidence)
    first = split.success(hit)
    least, most = _around(base, size, part)
    mean = math.fsum(base.tolist()) / len(base)
    runs, method = 2 * plan.total, "bounded differences"
    correction = Estimate(mean, low, high, measured.confidence, runs, method=method)
    advantage = Estimate(
        first.value - mean,
        first.low - most,
        first.high - least,
        measured.confidence,
        runs,
        method=f"{first.method} and bounded differences, half of the error each",
    )
    return success, correction, advantage


def _fresh_baselines(
    sampler: Sampler, scorer: Scorer, plan: Draws, streams: Streams, threat: Threat
) -> Floats:
    """Score new outputs against new targets, in place of the whole prior."""
    pmf, size = threat.prior.pmf, plan.total // plan.runs
    inner = streams[0].multinomial(size, pmf) / size
    outer = streams[0].multinomial(size, pmf)
    drawn = np.flatnonzero(outer)
    counts = (outer[drawn] * plan.runs).astype(np.intp)
    fresh = Draws(plan.design, drawn, counts, plan.runs)
    second = Scorer(scorer.attack, threat, expected=scorer.expected, pmf=inner)
    _, base = score_draws(sampler, second, fresh, streams)
    scorer.calls += second.calls
    return base


def _around(base: Floats, size: int, confidence: float) -> tuple[float, float]:
    mean = math.fsum(base.tolist()) / len(base)
    width = hoeffding_halfwidth(size // 2, confidence=confidence)
    return min(mean, max(0.0, mean - width)), max(mean, min(1.0, mean + width))
