"""Figures 5.8 and 5.9 of the thesis: audits of local protocols on two cities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from undertow.audit import estimate_level, family_success
from undertow.mechanisms.local import (
    GeneralizedResponse,
    OptimizedUnary,
    SubsetSelection,
    oue_advantage,
)
from undertow.studies.audit_common import (
    EPSILON_LABEL,
    ESTIMATE_LABEL,
    LDP_AUDITOR,
    REPEATS,
    UNIVERSES,
    Audited,
    Target,
    audit_result,
    audited,
    baseline_curves,
    ceiling_checks,
    certified,
    compared,
    identity_curve,
    line,
    markers,
    trials_of,
)
from undertow.studies.audit_reports import reports_check, sample_protocol
from undertow.studies.base import (
    Check,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
    count,
)

__all__ = ["AUDIT_THESIS"]

_SIZES = {"Porto": UNIVERSES["Porto"], "Geolife": UNIVERSES["Beijing"]}
_LEVELS = tuple(float(e) for e in range(1, 17))
_PROTOCOLS: dict[str, tuple[type[Any], str]] = {
    "GRR": (GeneralizedResponse, "grr"),
    "SS": (SubsetSelection, "ss"),
    "OUE": (OptimizedUnary, "oue"),
}
# Reports from the sampler at each level, for each run: GRR reports are numbers.
_REPORTS = {"GRR": 1000, "SS": 5, "OUE": 10}
# Beyond this the success of OUE is too near its limit for a million trials.
_OUE_LAST = 14.0
# Estimates with a larger standard error are no longer near normal.
_PRECISE = 0.15
_AUDIT = "RAD audit"
_FAMILY_STEP = 1e-5


def _figure(study: Study, city: str, inputs: Inputs) -> StudyResult:
    m, trials = _SIZES[city], trials_of(inputs)
    rng = np.random.default_rng(inputs.seed)
    panels, checks, repeats = [], [], {}
    for name in _PROTOCOLS:
        found = [
            audited(_target(name, m, e), trials=trials, inverse=_inverse, rng=rng)
            for e in _LEVELS
        ]
        panel = _panel(f"{name}, {city}", found, trials=trials)
        panels.append(panel)
        points = {f.target.epsilon: f for f in found}
        keys = ((_AUDIT, "audit"), (LDP_AUDITOR, "baseline"))
        for label, part in keys:
            repeats[panel.name, f"{label}, measured"] = {
                e: getattr(f, part) for e, f in points.items()
            }
        checks += _protocol_checks(name, city, found)
        checks.append(_reports(name, m, inputs=inputs, rng=rng))
    checks += [*ceiling_checks(), *_unary_checks(m)]
    words = (
        f"none needed, only the {m} crossings; simulated: five audits of {trials} "
        "trials a point, right guesses drawn from their exact law, and fewer reports "
        "from the samplers"
    )
    return audit_result(study, panels, checks, repeats=repeats, data=words)


def _target(name: str, m: int, epsilon: float) -> Target:
    success = family_success(_PROTOCOLS[name][1], epsilon, categories=m)
    return Target(name, epsilon, m, success)


def _inverse(target: Target, right: int, trials: int) -> float:
    """Invert the exact advantage of the protocol (Theorem 5.3)."""
    family, m = _PROTOCOLS[target.label][1], target.categories
    return estimate_level(family, right, trials, categories=m).value


def _panel(name: str, found: Sequence[Audited], *, trials: int) -> Panel:
    targets = [f.target for f in found]
    audits = {f.target.epsilon: f.audit for f in found}
    curves = (
        identity_curve(_LEVELS),
        markers(_AUDIT, audits),
        *baseline_curves(LDP_AUDITOR, found, trials=trials),
        line(
            "certified by reconstruction, 99 %",
            targets,
            partial(certified, trials=trials),
        ),
    )
    return Panel(name, curves, EPSILON_LABEL, ESTIMATE_LABEL)


def _standard_error(target: Target, trials: int) -> float:
    """Return the standard error of the estimate, by the slope of the success."""
    high, low = (
        _target(target.label, target.categories, target.epsilon + h).success
        for h in (_FAMILY_STEP, -_FAMILY_STEP)
    )
    s, slope = target.success, (high - low) / (2 * _FAMILY_STEP)
    return math.sqrt(s * (1 - s) / trials) / slope


def _protocol_checks(name: str, city: str, found: Sequence[Audited]) -> list[Check]:
    where, note = f"{name}, {city}", ""
    if name == "OUE":
        found = [f for f in found if f.target.epsilon <= _OUE_LAST]
        note = f"up to ε = {_OUE_LAST:g}; beyond, some repeats are undefined"
    return [compared(where, found, note=note), _accuracy(where, found)]


def _accuracy(where: str, found: Sequence[Audited]) -> Check:
    errors = {f: _standard_error(f.target, f.trials) for f in found}
    kept = [f for f, error in errors.items() if error < _PRECISE]
    off = [abs(f.audit.mean - f.target.epsilon) for f in kept]
    good = all(
        gap < 4 * errors[f] / math.sqrt(REPEATS) + 0.01
        for gap, f in zip(off, kept, strict=True)
    )
    levels = [f.target.epsilon for f in kept]
    return Check(
        f"the mean of five audits is the true ε, {where}",
        "improved accuracy" if found[0].target.label == "OUE" else "near-perfect",
        "yes" if good else "no",
        "match" if good else "differs",
        f"from ε = {min(levels):g} to {max(levels):g}, where the standard error is "
        f"below {_PRECISE:g}; largest error {max(off):.3f}, allowed are four standard "
        "errors of the mean and 0.01",
    )


def _reports(name: str, m: int, *, inputs: Inputs, rng: np.random.Generator) -> Check:
    kind, reports = _PROTOCOLS[name][0], _REPORTS[name] * inputs.runs
    points = [
        sample_protocol(_target(name, m, e), kind(m, e), reports=reports, rng=rng)
        for e in _LEVELS
    ]
    return reports_check(name, points)


def _unary_checks(m: int) -> list[Check]:
    from scipy.stats import binom

    trials = 1_000_000
    error = {e: _standard_error(_target("OUE", m, e), trials) for e in _LEVELS}
    last = _target("OUE", m, _LEVELS[-1])
    limit = oue_advantage(m, math.inf)
    lost = binom.sf(math.ceil(trials * (limit + 1 / m)) - 1, trials, last.success)
    return [
        Check(
            "where the accuracy of audits of OUE declines",
            "ε ≤ 9",
            "ε ≥ 9",
            "erratum",
            f"standard error {error[9.0]:.3f} at ε = 9, {error[12.0]:.2f} at 12, "
            f"{error[16.0]:.2f} at 16: the success no longer grows",
            "RE20",
        ),
        Check(
            "audits of OUE give an estimate over the whole range, ε = 16",
            "yes",
            f"in {100 * (1 - lost):.0f} % of audits",
            "erratum",
            "above the limit of its success no ε fits; a million trials",
            "RE31",
        ),
        compare(
            "limit of the advantage against OUE, (m - 1)/(2m)",
            (m - 1) / (2 * m),
            limit,
            note="published: the formula, evaluated",
        ),
    ]


def _figure_5_8(inputs: Inputs) -> StudyResult:
    return _figure(FIGURE_5_8, "Porto", inputs)


def _figure_5_9(inputs: Inputs) -> StudyResult:
    return _figure(FIGURE_5_9, "Geolife", inputs)


def _draws(runs: int) -> str:
    return (
        "source: a million attacked reports a point; here: marks are five audits of "
        f"{count(1000 * runs)}, right guesses drawn from their exact law, no attack "
        f"run; attacked one by one as a check: {count(1000 * runs)} of GRR, "
        f"{count(5 * runs)} of SS and {count(10 * runs)} of OUE"
    )


FIGURE_5_8 = Study(
    "figure-5.8",
    "audits of local protocols on 3052 crossings",
    "Guerra-Balboa (2026), Figure 5.8",
    _figure_5_8,
    draws=_draws,
)
FIGURE_5_9 = Study(
    "figure-5.9",
    "audits of local protocols on 5356 crossings",
    "Guerra-Balboa (2026), Figure 5.9",
    _figure_5_9,
    draws=_draws,
)
AUDIT_THESIS = (FIGURE_5_8, FIGURE_5_9)
