"""What Sauer's chapter 10 says of its audits, protocol by protocol, as checks."""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Any

from undertow.mechanisms.local import (
    BinaryHashing,
    GeneralizedResponse,
    LocalProtocol,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
)
from undertow.studies.audit_common import (
    UNIVERSES,
    Audited,
    Target,
    ceiling_checks,
    compared,
    expected_baseline,
)
from undertow.studies.base import Check, compare
from undertow.studies.sauer_common import EPSILONS
from undertow.studies.thesis_bounds import stated

__all__ = [
    "Found",
    "claims_10_1",
    "claims_10_2",
    "claims_10_3",
    "claims_10_4",
    "claims_10_5",
    "levels_of",
    "local_protocol",
    "protocol_target",
]

_PROTOCOLS: dict[str, type[Any]] = {
    "GRR": GeneralizedResponse,
    "SS": SubsetSelection,
    "SUE": SymmetricUnary,
    "OUE": OptimizedUnary,
    "SHE": SummationHistogram,
    "THE": ThresholdHistogram,
    "BLH": BinaryHashing,
    "OLH": OptimizedHashing,
}
_LAST_OLH = 10.0
_MILLION = 1_000_000

Found = dict[tuple[str, str], list[Audited]]
"""Audits of each protocol in each city."""


@lru_cache(maxsize=512)
def protocol_target(name: str, m: int, epsilon: float) -> Target:
    """Return a protocol with the success of the attack of the source on it.

    Examples
    --------
    >>> round(protocol_target("OUE", 3052, 10.0).population, 4)
    7.8913
    """
    return Target(name, epsilon, m, local_protocol(name, m, epsilon).attack_success())


def local_protocol(name: str, m: int, epsilon: float) -> LocalProtocol:
    """Return a protocol by its short name."""
    protocol: LocalProtocol = _PROTOCOLS[name](m, epsilon)
    return protocol


def levels_of(name: str) -> tuple[float, ...]:
    """Return the levels at which the source audits a protocol."""
    return tuple(e for e in EPSILONS if name != "OLH" or e <= _LAST_OLH)


def _population(name: str, city: str) -> dict[float, float]:
    m = UNIVERSES[city]
    return {e: protocol_target(name, m, e).population for e in levels_of(name)}


def _tight(name: str, found: Found) -> list[Check]:
    """Check that the estimate is the true epsilon, up to the noise of the counts."""
    checks = []
    for city in UNIVERSES:
        exact = _population(name, city)
        off = max(abs(v / e - 1) for e, v in exact.items())
        means = {a.target.epsilon: a.audit.mean for a in found[name, city]}
        errors = [abs(v - e) for e, v in means.items() if math.isfinite(v)]
        checks.append(
            stated(
                f"the audit finds the true ε at every level, {name}, {city}",
                off < 1e-6,
                f"exactly in the population, relative difference {off:.0e}; largest "
                f"error of the mean of five audits {max(errors):.3f}",
            )
        )
    return checks


def _plateau(city: str) -> Check:
    """Check from which level on LDP-Auditor no longer grows."""
    m, ceiling = UNIVERSES[city], ceiling_checks()[0].ours
    assert isinstance(ceiling, float)
    mean = {
        e: expected_baseline(protocol_target("GRR", m, e), trials=_MILLION)
        for e in EPSILONS
    }
    start = next(e for e, v in mean.items() if v > ceiling - 0.1)
    return Check(
        f"where LDP-Auditor is within 0.1 of its largest value, GRR, {city}",
        "ε ≥ 12",
        f"ε ≥ {start:g}",
        "match" if start == 12 else "erratum",
        f"on average {mean[12.0]:.2f} at ε = 12, {mean[start]:.2f} at ε = {start:g}: "
        "it falls behind before its largest value binds, for want of false positives",
        "" if start == 12 else "AE29",
    )


def claims_10_1(found: Found) -> list[Check]:
    """Check what is said of randomised response."""
    return [
        *_tight("GRR", found),
        *(_plateau(city) for city in UNIVERSES),
        *ceiling_checks(),
        *(compared(f"GRR, {city}", found["GRR", city]) for city in UNIVERSES),
    ]


def claims_10_2(found: Found) -> list[Check]:
    """Check what is said of subset selection."""
    checks = []
    for city in UNIVERSES:
        exact = _population("SS", city)
        short = max(e for e, v in exact.items() if v < e - 1e-9)
        checks += [
            Check(
                f"where the audit of SS is below the true ε, {city}",
                "ε ≤ 9",
                f"ε ≤ {short:g}",
                "erratum",
                f"{exact[short]:.4f} at ε = {short:g}; with the stated size ω the "
                f"subsets have one element at ε = {short + 1:g}, and SS is GRR",
                "AE23",
            ),
            Check(
                f"from where on the audit of SS is exact, {city}",
                "ε ≈ 10",
                f"ε = {short + 1:g}",
                "erratum",
                "where ω is 1",
                "AE23",
            ),
            compared(f"SS, {city}", found["SS", city]),
        ]
    return checks


def _near_baseline(name: str, found: Found) -> Check:
    gap = max(
        a.target.population - expected_baseline(a.target, trials=_MILLION)
        for city in UNIVERSES
        for a in found[name, city]
    )
    return stated(
        f"comparable to LDP-Auditor, {name}",
        gap < 1.0,
        f"up to {gap:.2f} above it at a million trials; without its confidence limits "
        "the two would be equal",
    )


def claims_10_3(found: Found) -> list[Check]:
    """Check what is said of unary encodings."""
    checks = [_near_baseline(name, found) for name in ("SUE", "OUE")]
    for city, m in UNIVERSES.items():
        sue, oue = _population("SUE", city), _population("OUE", city)
        below = [e for e in EPSILONS if sue[e] < oue[e]]
        last = protocol_target("OUE", m, 20.0)
        checks += [
            stated(
                f"SUE is audited less well than OUE at low ε, {city}",
                below == list(EPSILONS[: len(below)]) and len(below) >= 10,
                f"up to ε = {max(below):g}",
            ),
            compare(
                f"success of the attack on OUE at ε = 20, {city}",
                "0.5",
                last.success,
                note="its limit is 1/2 + 1/(2m)",
            ),
            stated(
                f"the audit of OUE reaches a plateau, {city}",
                last.population < math.log(m - 1) + 1e-3,
                f"{last.population:.4f} at ε = 20; the limit is ln(m + 1)"
                f" = {math.log(m + 1):.4f}",
            ),
        ]
    return checks


def claims_10_4(found: Found) -> list[Check]:
    """Check what is said of histogram encodings."""
    checks = [_near_baseline(name, found) for name in ("SHE", "THE")]
    for name, city in itertools.product(("SHE", "THE"), UNIVERSES):
        exact = _population(name, city)
        gaps = [e - v for e, v in exact.items()]
        grows = all(a < b for a, b in itertools.pairwise(gaps))
        rises = all(a < b for a, b in itertools.pairwise(exact.values()))
        checks.append(
            stated(
                f"the estimate of {name} grows with ε, and so does its gap, {city}",
                grows and rises,
                f"gap {gaps[0]:.2f} at ε = 1, {gaps[9]:.2f} at ε = 10 and "
                f"{gaps[-1]:.2f} at ε = 20",
            )
        )
    checks.append(_cause())
    return checks


def _cause() -> Check:
    return Check(
        "why the audits of SHE and THE are loose",
        "the attack",
        "the bound",
        "erratum",
        "both attacks are optimal for what they read; Corollary 1 holds for every "
        "mechanism and only randomised response attains it",
        "AE30",
    )


def claims_10_5(found: Found) -> list[Check]:
    """Check what is said of local hashing."""
    checks = [_near_baseline(name, found) for name in ("BLH", "OLH")]
    for city, m in UNIVERSES.items():
        blh, olh = _population("BLH", city), _population("OLH", city)
        checks += [
            stated(
                f"the attack on BLH is ineffective, {city}",
                max(blh.values()) < 0.7,
                f"the audit never passes {max(blh.values()):.4f}; its limit is near "
                "ln 2, as half of the nodes share the bucket",
            ),
            stated(
                f"OLH is audited better than BLH, {city}",
                all(olh[e] > blh[e] for e in olh),
                f"{olh[1.0]:.4f} to {blh[1.0]:.4f} at ε = 1, {olh[10.0]:.4f} to "
                f"{blh[10.0]:.4f} at ε = 10",
            ),
        ]
        checks.append(_feasible(city, m))
    return checks


def _feasible(city: str, m: int) -> Check:
    value = protocol_target("OLH", m, 20.0).population
    return Check(
        f"audits of OLH beyond ε = 10, {city}",
        "infeasible",
        f"{value:.4f} at ε = 20",
        "erratum",
        "a report and the attack on it cost m hashes, however many buckets there are; "
        "the closed form needs none",
        "AE31",
    )
