"""Audits of a local protocol against one threat: its prior, success and knowledge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from undertow.audit._chunks import Campaign
from undertow.audit._moments import Moments
from undertow.audit._threat_trials import ThreatTrials
from undertow.audit._trials import Source
from undertow.audit.claim import Claim
from undertow.audit.result import AuditResult, MethodResult
from undertow.audit.runner import Counts
from undertow.audit.threats import advantage_epsilon, advantage_limit, advantage_mu
from undertow.errors import AssumptionError, MismatchError
from undertow.numeric.rounding import greatest_int, nudge_down, nudge_up
from undertow.privacy.result import Bound, Estimate, Witness
from undertow.risk.channel import Channel
from undertow.risk.estimate import constant_baseline
from undertow.risk.exact import advantage
from undertow.risk.intervals import clopper_pearson
from undertow.risk.threat import Threat

__all__ = ["ThreatTest", "audit_threat", "check_threat", "is_plain_threat"]

# Records up to which total disclosure is worked out as a channel.
_TABLE = 4096


def check_threat(threat: Threat, source: Source) -> Threat:
    """Return a threat whose records are the values of the source, in order."""
    if not isinstance(threat, Threat):
        raise TypeError(f"threat must be a Threat, got {type(threat).__name__}.")
    if len(threat.prior) != source.categories:
        raise MismatchError(
            f"threat must have one record for each of the {source.categories} values, "
            f"in their order, got {len(threat.prior)}."
        )
    return threat


def is_plain_threat(threat: Threat) -> bool:
    """Return whether a threat is the usual one: uniform, exact, nothing known."""
    m = len(threat.prior)
    if constant_baseline(threat) != 1.0 / m or threat.adjacency != "replace":
        return False
    (sets,) = threat.success.sets(threat.support, threat.fibres)
    return len(sets.sizes) == m


@dataclass(frozen=True)
class ThreatTest:
    """From the scores of an attack to what they certify for one claim.

    Parameters
    ----------
    claim : Claim
        What is promised.
    threat : Threat
        Against whom.
    confidence : float
        Of the certificate.
    span : tuple of float
        The least and the largest score that there is.
    """

    claim: Claim
    threat: Threat
    confidence: float
    span: tuple[float, float]

    @cached_property
    def largest(self) -> float:
        """The advantage under total disclosure."""
        m = len(self.threat.prior)
        if m > _TABLE:  # an upper limit of it
            return self.threat.ceiling
        return advantage(Channel(np.eye(m)), self.threat).value

    @cached_property
    def allowed(self) -> Bound:
        """The largest advantage that the claim allows, by the best bound."""
        return advantage_limit(self.claim, self.threat)

    @cached_property
    def shift(self) -> float | None:
        """What guessing alone would hit, if every guess would hit the same."""
        return constant_baseline(self.threat)

    def lower(self, hits: int, seen: Moments) -> float:
        """Return the one-sided lower limit of the advantage."""
        if self.shift is not None:
            level = self.confidence
            low = clopper_pearson(hits, seen.trials, confidence=level, side="lower")[0]
            return nudge_down(low - nudge_up(self.shift))
        return seen.lower(self.span[1] - self.span[0], 1.0 - self.confidence)

    def best(self, trials: int) -> float:
        """Return the limit after total disclosure in so many trials, at its mean."""
        return self.lower(trials, Moments(trials, self.largest, 0.0))

    def trials_needed(self) -> int:
        """Return how many trials under total disclosure refute the claim."""
        allowed = self.allowed
        if self.largest <= allowed.value:
            raise AssumptionError(
                f"claim must allow less than the {self.largest:.6g} of total "
                f"disclosure against {self.threat.summary!r}, got {self.claim}, which "
                f"allows {allowed.value:.6g} ({allowed.theorem}); no audit against "
                "this threat can refute it."
            )
        return 1 + greatest_int(lambda n: n == 0 or self.best(n) <= allowed.value)

    def certify(self, gamma: float) -> tuple[Bound, float]:
        """Return the claimed parameter that an advantage needs, and the epsilon."""
        delta = self.claim.for_replacement().delta
        epsilon = advantage_epsilon(gamma, self.threat, delta=delta)
        if self.claim.parameter == "epsilon":
            return epsilon, epsilon.value
        return advantage_mu(gamma, self.threat), epsilon.value

    def interval(self, hits: int, seen: Moments) -> tuple[float, float, str]:
        """Return two-sided limits of the advantage, and how they were made."""
        level = self.confidence
        if self.shift is not None:
            low, high = clopper_pearson(hits, seen.trials, confidence=level)
            low = nudge_down(low - nudge_up(self.shift))
            high = nudge_up(high - nudge_down(self.shift))
            return low, high, "Clopper-Pearson, less the constant correction"
        span, tail = self.span[1] - self.span[0], (1.0 - level) / 2.0
        low, high = seen.lower(span, tail), seen.upper(span, tail)
        least, most = self.span
        method = "empirical Bernstein, self-paired scores"
        return max(low, least), min(high, most), method


def audit_threat(
    source: Source,
    claim: Claim,
    *,
    threat: Threat,
    trials: int,
    confidence: float,
    campaign: Campaign,
) -> AuditResult:
    """Run the trials against a threat and return what they certify.

    All trials certify: the attack is fixed by the law of the reports or by the claim.
    """
    work = ThreatTrials(source, threat, claim.for_replacement().level)
    test = ThreatTest(claim, threat, confidence, work.scorer.span)
    needed = test.trials_needed()
    if trials < needed:
        raise ValueError(
            f"trials must be at least {needed} to be able to refute {claim} against "
            f"{threat.summary!r}, got {trials}."
        )
    source.check_fresh(trials)
    against = f"{work.scorer.identity}, level {work.level!r}"
    job = f"audit_local of {source.identity} against {against}"
    counts = campaign.run(work, trials, phase=1, job=job)
    seed = campaign.seed if source.seeded else None
    return _result(source.name, test, counts, needed=needed, seed=seed)


def _result(
    name: str, test: ThreatTest, counts: Counts, *, needed: int, seed: int | None
) -> AuditResult:
    """Return the result of the counts."""
    n, hits = int(counts["trials"][0]), int(counts["threat_hits"][0])
    seen = Moments.read(counts, trials=n)
    measured = _advantage(test, hits, seen, seed)
    bound, epsilon = test.certify(test.lower(hits, seen))
    estimate, epsilon_estimate = test.certify(measured.value)
    power = _power(test, hits, seen, needed)
    method = f"reconstruct against the threat, by {bound.theorem}"
    numbers = (estimate.value, bound.value, n, True, test.claim.parameter)
    violated = bound.value > test.claim.for_replacement().level
    return AuditResult(
        name,
        test.claim,
        bound.value,
        test.confidence,
        n,
        epsilon,
        epsilon_estimate=epsilon_estimate,
        advantage=measured,
        methods=(MethodResult(method, *numbers, power["ceiling"]),),
        witness=_witness(test, hits, seen) if violated else None,
        power=power,
        seed=seed,
        estimate=estimate.value,
    )


def _advantage(
    test: ThreatTest, hits: int, seen: Moments, seed: int | None
) -> Estimate:
    """Return the measured advantage and its two-sided interval."""
    value = seen.mean if test.shift is None else hits / seen.trials - test.shift
    low, high, method = test.interval(hits, seen)
    low, high = min(low, value), max(high, value)
    return Estimate(value, low, high, test.confidence, seen.trials, seed, method)


def _power(test: ThreatTest, hits: int, seen: Moments, needed: int) -> dict[str, float]:
    """Return what as many trials with scores as spread could have shown."""
    gamma = seen.mean if test.shift is None else hits / seen.trials - test.shift
    from_here = test.allowed.value + (gamma - test.lower(hits, seen))
    able = from_here < test.largest
    return {
        "trials_needed": needed,
        "ceiling": test.certify(test.best(seen.trials))[0].value,
        "can_refute": able,
        "detectable": test.certify(from_here)[0].value if able else math.inf,
    }


def _witness(test: ThreatTest, hits: int, seen: Moments) -> Witness:
    low, allowed = test.lower(hits, seen), test.allowed
    summary = (
        f"{test.threat.summary}: right in {hits} of {seen.trials} trials, which is an "
        f"advantage of at least {low:.4g}; the claim allows {allowed.value:.4g} "
        f"({allowed.theorem})"
    )
    details: Mapping[str, Any] = {
        "hits": hits,
        "trials": seen.trials,
        "advantage": low,
        "allowed": allowed.value,
        "bound": allowed.theorem,
    }
    return Witness("attack", summary, details)
