"""Sauer, Section 10.2: audits of code with known bugs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from undertow_studies.audit_repeat import (
    EPSILON_LABEL,
    ESTIMATE_LABEL,
    LDP_AUDITOR,
    REPEATS,
    UNIVERSES,
    Audited,
    Repeats,
    Target,
    audit_result,
    audited,
    baseline_curves,
    certified,
    expected_baseline,
    line,
    markers,
    reports_check,
    sample_fault,
    trials_of,
)
from undertow_studies.faults import Fault, missing_reset, raised_truth, whole_domain_lie
from undertow_studies.sauer_city import SOURCE
from undertow_studies.study import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
    count,
)
from undertow_studies.thesis_bound import stated

_RESPONSE = tuple(float(e) for e in range(1, 13))
# The levels of the case study of LDP-Auditor that the source replicates.
_UNARY = (0.25, 0.5, 0.75, 1.0, 2.0, 4.0, 6.0, 10.0)
_MILLION = 1_000_000
_AUDIT, _TRUE, _CERTIFIED = "U-ReRo", "true ε of the code", "certified, 99 %"
# Reports run through the broken code at each level, for each run.
_REPORTS = {"whole-domain-lie": 200, "raised-truth": 200}
_FEW = 4
# Trials of an audit by pairs of values, which reads which of two a report supports.
_PAIR_TRIALS = 10_000

Broken = Callable[[int, float], Fault]
Found = dict[str, list[Audited]]


def fault_target(fault: Fault, m: int, epsilon: float) -> Target:
    """Return broken code with the success of the simple attack on it.

    Examples
    --------
    >>> target = fault_target(missing_reset("sue", 3052, 0.25), 3052, 0.25)
    >>> round(target.population, 4)
    0.4714
    """
    assert fault.success is not None
    return Target(fault.name, epsilon, m, fault.success)


def _run(
    study: Study,
    broken: Broken,
    levels: tuple[float, ...],
    claims: Callable[[Found], list[Check]],
    inputs: Inputs,
) -> StudyResult:
    rng, trials = np.random.default_rng(inputs.seed), trials_of(inputs)
    found: Found = {}
    panels, repeats = [], {}
    for city, m in UNIVERSES.items():
        targets = [fault_target(broken(m, e), m, e) for e in levels]
        each = max(1, trials // m)
        found[city] = [
            audited(t, trials=trials, per_value=each, rng=rng) for t in targets
        ]
        panel = _panel(f"{city}, {m} nodes", found[city], broken, trials=trials)
        panels.append(panel)
        for label, points in _repeated(found[city]).items():
            repeats[panel.name, f"{label}, measured"] = points
    checks = [*claims(found), *_baseline_claims(found)]
    checks.append(_reports(broken, levels, inputs, rng))
    words = (
        "none needed, only the number of nodes; simulated: five audits a point, right "
        "guesses drawn from their exact law, and fewer reports from the broken code"
    )
    return audit_result(study, panels, checks, repeats=repeats, data=words)


def _repeated(found: list[Audited]) -> dict[str, dict[float, Repeats]]:
    """Return the repeated results of both audits, by level."""
    return {
        _AUDIT: {a.target.epsilon: a.audit for a in found},
        LDP_AUDITOR: {a.target.epsilon: a.baseline for a in found},
    }


def _panel(name: str, found: list[Audited], broken: Broken, *, trials: int) -> Panel:
    targets = [a.target for a in found]
    levels = tuple(t.epsilon for t in targets)
    curves = [
        Curve("claimed", levels, levels, kind="baseline"),
        line(_AUDIT, targets, lambda target: target.population),
        markers(_AUDIT, _repeated(found)[_AUDIT]),
        *baseline_curves(LDP_AUDITOR, found, trials=trials),
        line(_CERTIFIED, targets, partial(certified, trials=trials)),
    ]
    if targets[0].label == "whole-domain-lie":
        # The excess is a few hundredths of ε, invisible beside it.
        shown = tuple(_excess(curve) for curve in curves)
        return Panel(name, shown, EPSILON_LABEL, f"{ESTIMATE_LABEL} minus claimed ε")
    unary = targets[0].label.startswith("missing-reset")
    if unary:
        curves.append(
            line(_TRUE, targets, lambda t: broken(t.categories, t.epsilon).epsilon)
        )
        curves = [_positive(curve) for curve in curves]
    axes = {"x_log": unary, "y_log": unary}
    return Panel(name, tuple(curves), EPSILON_LABEL, ESTIMATE_LABEL, **axes)


def _positive(curve: Curve) -> Curve:
    """Leave a gap where there is nothing to draw on a logarithmic axis."""
    shown = tuple(y if y > 0 else math.nan for y in curve.y)
    return replace(curve, y=shown)


def _excess(curve: Curve) -> Curve:
    above = tuple(y - x for x, y in zip(curve.x, curve.y, strict=True))
    return replace(curve, y=above)


def _reports(
    broken: Broken, levels: tuple[float, ...], inputs: Inputs, rng: np.random.Generator
) -> Check:
    points = []
    for m in UNIVERSES.values():
        for e in levels:
            fault = broken(m, e)
            reports = _REPORTS.get(fault.name, _FEW) * inputs.runs
            target = fault_target(fault, m, e)
            points.append(sample_fault(target, fault, reports=reports, rng=rng))
    return reports_check("broken code, both cities", points)


def _alarms(city: str, broken: Broken, levels: tuple[float, ...]) -> dict[float, float]:
    """Return what expected counts of a million trials certify where they refute."""
    m = UNIVERSES[city]
    targets = [fault_target(broken(m, e), m, e) for e in levels]
    limits = {t.epsilon: certified(t, trials=_MILLION) for t in targets}
    return {e: limit for e, limit in limits.items() if limit > e}


def _baseline_claims(found: Found) -> list[Check]:
    """Return the levels at which LDP-Auditor, on average, is above the claim."""
    checks = []
    for city, audits in found.items():
        targets = [a.target for a in audits]
        means = {t.epsilon: expected_baseline(t, trials=_MILLION) for t in targets}
        first = min(means)
        checks.append(
            Check(
                f"levels at which {LDP_AUDITOR} is above ε on average, {city}",
                None,
                _listed([e for e, mean in means.items() if mean > e]),
                "not published",
                f"{means[first]:.4f} at ε = {first:g}; a million trials on each of two "
                "nodes, 99 %",
            )
        )
    return checks


def _listed(levels: list[float]) -> str:
    return ", ".join(f"{e:g}" for e in levels) if levels else "none"


def _claims_10_6(found: Found) -> list[Check]:
    checks = []
    for city, audits in found.items():
        exact = {a.target.epsilon: a.target.population for a in audits}
        alarms = _alarms(city, whole_domain_lie, _RESPONSE)
        limits = ", ".join(f"{limit:.4f} at ε = {e:g}" for e, limit in alarms.items())
        checks += [
            stated(
                f"the estimate exceeds ε at ε = 1 and 2, {city}",
                all(exact[e] > e + 0.1 for e in (1.0, 2.0)),
                f"{exact[1.0]:.4f} and {exact[2.0]:.4f} in the population",
            ),
            Check(
                f"levels at which the flaw is identified, {city}",
                "1, 2",
                _listed(list(alarms)),
                "match" if list(alarms) == [1.0, 2.0] else "erratum",
                f"from the expected counts, at 99 %, {limits}; at ε = 3 the population "
                f"value is {exact[3.0]:.4f}",
                "" if list(alarms) == [1.0, 2.0] else "AE32",
            ),
        ]
    return checks


def _claims_10_7(found: Found) -> list[Check]:
    checks = []
    for city, audits in found.items():
        exact = {a.target.epsilon: a.target.population for a in audits}
        over = [e for e, v in exact.items() if v > e and math.isfinite(v)]
        checks.append(
            stated(
                f"overestimation for all ε ≤ 10, {city}",
                over == list(_RESPONSE[:10]),
                f"{exact[1.0]:.4f} at ε = 1 and {exact[10.0]:.4f} at ε = 10; from "
                "ε = 11 on p + 0.1 is above 1, the code always tells the truth and the "
                "estimate is undefined",
            )
        )
    factor = "what is added to p"
    reason = "its effect, and the caption, are those of a sum"
    return [
        *checks,
        Check(
            factor, "a constant factor of 0.1", "0.1 itself", "erratum", reason, "AE24"
        ),
    ]


def _unary_claims(kind: str, found: Found) -> list[Check]:
    checks = []
    for city, audits in found.items():
        exact = {a.target.epsilon: a for a in audits}
        checks += [
            _exceeds(f"{kind}, {city}", exact[0.25]),
            _half(kind, city, exact[0.5]),
        ]
        alarms = _alarms(city, partial(_unary, kind), _UNARY)
        checks.append(
            Check(
                f"levels certified as violated from a million trials, {kind}, {city}",
                None,
                _listed(list(alarms)),
                "not published",
                "99 %, at the expected counts; an estimate above ε is no violation",
            )
        )
    return [*checks, _by_pairs(kind)]


def _exceeds(where: str, found: Audited) -> Check:
    claim, exact = found.target.epsilon, found.target.population
    return stated(
        f"the estimate exceeds ε at ε = {claim:g}, {where}",
        exact > claim,
        f"{exact:.4f} in the population, {found.audit.mean:.4f} on average here",
    )


def _half(kind: str, city: str, found: Audited) -> Check:
    """Check the level at which one of the four printed audits raises no alarm."""
    if (kind, city) != ("SUE", "Porto"):
        return _exceeds(f"{kind}, {city}", found)
    target = found.target
    s = target.success
    error = math.sqrt((1 - s) / (s * _MILLION * REPEATS)) / (1 - s)
    away = (target.population - target.epsilon) / error
    return Check(
        f"the estimate exceeds ε at ε = 0.5, {kind}, {city}",
        "no",
        "yes" if target.population > target.epsilon else "no",
        "differs",
        f"{target.population:.4f} in the population; a mean of five audits below 0.5 "
        f"is {away:.1f} standard errors away",
    )


def _by_pairs(kind: str) -> Check:
    """Check that reading which of two values a report supports finds the bug."""
    fault = _unary(kind, UNIVERSES["Porto"], 0.5)
    result = fault.audit(seed=1, trials=_PAIR_TRIALS)
    found = result.verdict == "violated"
    return Check(
        f"pairs of values find the bug at ε = 0.5, {kind}, Porto",
        None,
        "yes" if found else "no",
        "not published" if found else "differs",
        f"{_PAIR_TRIALS} trials certify {result.epsilon_certified:.3f}; the true ε of "
        f"the code is {fault.epsilon:.4f}",
    )


def _unary(kind: str, m: int, epsilon: float) -> Fault:
    return missing_reset("sue" if kind == "SUE" else "oue", m, epsilon)


def _draws(runs: int) -> str:
    return (
        "source: a million attacked reports a point; here: marks are five audits of "
        f"{count(1000 * runs)}, right guesses drawn from their exact law, no attack "
        f"run; attacked one by one as a check: {count(4 * runs)} to "
        f"{count(200 * runs)} reports of the broken code"
    )


def _study(
    number: str,
    title: str,
    broken: Broken,
    levels: tuple[float, ...],
    claims: Callable[[Found], list[Check]],
) -> Study:
    def run(inputs: Inputs) -> StudyResult:
        return _run(study, broken, levels, claims, inputs)

    study = Study(
        f"sauer-figure-{number}",
        f"audits of {title}",
        f"{SOURCE}, Figure {number}",
        run,
        draws=_draws,
    )
    return study


AUDIT_BUGS = (
    _study(
        "10.6",
        "randomised response that lies with any node",
        whole_domain_lie,
        _RESPONSE,
        _claims_10_6,
    ),
    _study(
        "10.7",
        "randomised response with p raised by 0.1",
        raised_truth,
        _RESPONSE,
        _claims_10_7,
    ),
    _study(
        "10.8",
        "symmetric unary encoding without reset",
        partial(_unary, "SUE"),
        _UNARY,
        partial(_unary_claims, "SUE"),
    ),
    _study(
        "10.9",
        "optimised unary encoding without reset",
        partial(_unary, "OUE"),
        _UNARY,
        partial(_unary_claims, "OUE"),
    ),
)
