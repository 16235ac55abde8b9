"""Chapter 10 of Sauer: audits of eight local protocols on two cities."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

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
    EPSILON_LABEL,
    ESTIMATE_LABEL,
    LDP_AUDITOR,
    UNIVERSES,
    Audited,
    Repeats,
    Target,
    audit_result,
    audited,
    baseline_curves,
    ceiling_checks,
    compared,
    expected_baseline,
    identity_curve,
    line,
    markers,
    reports_check,
    sample_protocol,
    trials_of,
)
from undertow.studies.base import (
    Check,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
)
from undertow.studies.sauer_common import EPSILONS, SOURCE
from undertow.studies.thesis_bounds import stated

__all__ = ["AUDIT_SAUER", "protocol_target"]

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
# Hashing needs m hashes a report, a noisy histogram m Laplace draws.
_REPORTS = {"GRR": 500, "SS": 3, "SUE": 5, "OUE": 5}
_FEW = {"SHE": 0.5, "THE": 5.0, "BLH": 1.0, "OLH": 1.0}
_SAMPLED = tuple(float(e) for e in (1, 4, 8, 12, 16, 20))
_LAST_OLH = 10.0
_MILLION = 1_000_000

Found = dict[tuple[str, str], list[Audited]]


def protocol_target(name: str, m: int, epsilon: float) -> Target:
    """Return a protocol with the success of the attack of the source on it.

    Examples
    --------
    >>> round(protocol_target("OUE", 3052, 10.0).population, 4)
    7.8913
    """
    return Target(name, epsilon, m, _protocol(name, m, epsilon).attack_success())


def _protocol(name: str, m: int, epsilon: float) -> LocalProtocol:
    protocol: LocalProtocol = _PROTOCOLS[name](m, epsilon)
    return protocol


def _levels(name: str) -> tuple[float, ...]:
    return tuple(e for e in EPSILONS if name != "OLH" or e <= _LAST_OLH)


def _audits(names: Sequence[str], inputs: Inputs, rng: np.random.Generator) -> Found:
    """Audit each protocol in each city: every value equally often, as in the source."""
    trials = trials_of(inputs)
    return {
        (name, city): [
            audited(
                protocol_target(name, m, e),
                trials=trials,
                per_value=max(1, trials // m),
                rng=rng,
            )
            for e in _levels(name)
        ]
        for name in names
        for city, m in UNIVERSES.items()
    }


def _run(
    study: Study,
    names: Sequence[str],
    claims: Callable[[Found], list[Check]],
    inputs: Inputs,
) -> StudyResult:
    rng, trials = np.random.default_rng(inputs.seed), trials_of(inputs)
    found = _audits(names, inputs, rng)
    panels, repeats = [], {}
    for city, m in UNIVERSES.items():
        here = {name: found[name, city] for name in names}
        panel, points = _panel(f"{city}, {m} nodes", here, trials=trials)
        panels.append(panel)
        repeats.update({(panel.name, label): at for label, at in points.items()})
    checks = [*claims(found), *(_reports(name, inputs, rng) for name in names)]
    words = (
        "none needed, only the number of nodes; five audits a point, of "
        f"{max(1, trials // 3052)} and {max(1, trials // 5356)} trials on each node, "
        "right guesses drawn from their exact law, fewer reports from the samplers"
    )
    return audit_result(study, panels, checks, repeats=repeats, data=words)


def _panel(
    title: str, found: Mapping[str, list[Audited]], *, trials: int
) -> tuple[Panel, dict[str, dict[float, Repeats]]]:
    """Return the panel of a city, and its repeated audits by label."""
    curves = [identity_curve(EPSILONS)]
    points: dict[str, dict[float, Repeats]] = {}
    for name, audits in found.items():
        own, other = f"{name}, U-ReRo", f"{name}, {LDP_AUDITOR}"
        estimates = {a.target.epsilon: a.audit for a in audits}
        curves.append(line(own, [a.target for a in audits], lambda t: t.population))
        curves.append(markers(own, estimates))
        curves += baseline_curves(other, audits, trials=trials)
        points[f"{own}, measured"] = estimates
        points[f"{other}, measured"] = {a.target.epsilon: a.baseline for a in audits}
    return Panel(title, tuple(curves), EPSILON_LABEL, ESTIMATE_LABEL), points


def _reports(name: str, inputs: Inputs, rng: np.random.Generator) -> Check:
    share = _FEW.get(name) or _REPORTS[name]
    reports = max(1, round(share * inputs.runs))
    points = [
        sample_protocol(
            protocol_target(name, m, e), _protocol(name, m, e), reports=reports, rng=rng
        )
        for m in UNIVERSES.values()
        for e in _levels(name)
        if e in _SAMPLED
    ]
    return reports_check(f"{name}, both cities", points)


def _population(name: str, city: str) -> dict[float, float]:
    m = UNIVERSES[city]
    return {e: protocol_target(name, m, e).population for e in _levels(name)}


def _tight(name: str, found: Found) -> list[Check]:
    """Check that the estimate is the true epsilon, up to the noise of the counts."""
    checks = []
    for city in UNIVERSES:
        exact = _population(name, city)
        off = max(abs(v / e - 1) for e, v in exact.items())
        errors = [abs(a.audit.mean - a.target.epsilon) for a in found[name, city]]
        checks.append(
            stated(
                f"the audit finds the true ε at every level, {name}, {city}",
                off < 1e-9,
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
        "match" if start == 12 else "differs",
        f"on average {mean[12.0]:.2f} at ε = 12 and {mean[start]:.2f} at ε = {start:g}; "
        "it falls behind before its largest value binds, for want of false positives",
    )


def _claims_10_1(found: Found) -> list[Check]:
    return [
        *_tight("GRR", found),
        *(_plateau(city) for city in UNIVERSES),
        *ceiling_checks(),
        *(compared(f"GRR, {city}", found["GRR", city]) for city in UNIVERSES),
    ]


def _claims_10_2(found: Found) -> list[Check]:
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
            ),
            Check(
                f"from where on the audit of SS is exact, {city}",
                "ε ≈ 10",
                f"ε = {short + 1:g}",
                "erratum",
                "where ω is 1",
            ),
            compared(f"SS, {city}", found["SS", city]),
        ]
    return checks


def _near_baseline(name: str, found: Found) -> Check:
    gap = max(
        a.audit.mean - a.baseline.mean
        for city in UNIVERSES
        for a in found[name, city]
        if math.isfinite(a.audit.mean)
    )
    return stated(
        f"comparable to LDP-Auditor, {name}",
        gap < 1.5,
        f"up to {gap:.2f} above it; in the population the two are equal, so that the "
        "difference is that of its confidence limits",
    )


def _claims_10_3(found: Found) -> list[Check]:
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
                0.5,
                last.success,
                tolerance=1e-3,
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


def _claims_10_4(found: Found) -> list[Check]:
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
                f"gap {gaps[0]:.2f} at ε = 1, {gaps[9]:.2f} at 10, {gaps[-1]:.2f} at 20",
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
    )


def _claims_10_5(found: Found) -> list[Check]:
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
        "differs",
        "a report and the attack on it cost m hashes, however many buckets there are; "
        "the closed form needs none",
    )


_FIGURES: tuple[tuple[str, tuple[str, ...], Callable[[Found], list[Check]], str], ...]
_FIGURES = (
    ("10.1", ("GRR",), _claims_10_1, "randomised response"),
    ("10.2", ("SS",), _claims_10_2, "subset selection"),
    ("10.3", ("SUE", "OUE"), _claims_10_3, "unary encodings"),
    ("10.4", ("SHE", "THE"), _claims_10_4, "histogram encodings"),
    ("10.5", ("BLH", "OLH"), _claims_10_5, "local hashing"),
)


def _study(
    number: str,
    names: tuple[str, ...],
    claims: Callable[[Found], list[Check]],
    words: str,
) -> Study:
    def run(inputs: Inputs) -> StudyResult:
        return _run(study, names, claims, inputs)

    study = Study(
        f"sauer-figure-{number}",
        f"audits of {words} on two cities",
        f"{SOURCE}, Figure {number}",
        run,
    )
    return study


AUDIT_SAUER = tuple(_study(*figure) for figure in _FIGURES)
