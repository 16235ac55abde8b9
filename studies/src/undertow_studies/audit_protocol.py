"""Audits of local protocols on two cities: the thesis and Sauer's chapter 10.

Figures 5.8 and 5.9 of the thesis; eight protocols in Sauer, and what he says of them,
as checks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from undertow.audit import estimate_level, family_success
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
    oue_advantage,
)
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
    ceiling_checks,
    certified,
    compared,
    expected_baseline,
    identity_curve,
    line,
    markers,
    reports_check,
    sample_protocol,
    trials_of,
)
from undertow_studies.sauer_city import EPSILONS, SOURCE
from undertow_studies.study import (
    Check,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
    count,
)
from undertow_studies.thesis_bound import stated

_SIZES = {"Porto": UNIVERSES["Porto"], "Geolife": UNIVERSES["Beijing"]}
_LEVELS = tuple(float(e) for e in range(1, 17))
_THESIS_PROTOCOLS: dict[str, tuple[type[Any], str]] = {
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
    for name in _THESIS_PROTOCOLS:
        found = [
            audited(_target(name, m, e), trials=trials, inverse=_inverse, rng=rng)
            for e in _LEVELS
        ]
        panel = _thesis_panel(f"{name}, {city}", found, trials=trials)
        panels.append(panel)
        points = {f.target.epsilon: f for f in found}
        keys = ((_AUDIT, "audit"), (LDP_AUDITOR, "baseline"))
        for label, part in keys:
            repeats[panel.name, f"{label}, measured"] = {
                e: getattr(f, part) for e, f in points.items()
            }
        checks += _protocol_checks(name, city, found)
        checks.append(_thesis_reports(name, m, inputs=inputs, rng=rng))
    checks += [*ceiling_checks(), *_unary_checks(m)]
    words = (
        f"none needed, only the {m} crossings; simulated: five audits of {trials} "
        "trials a point, right guesses drawn from their exact law, and fewer reports "
        "from the samplers"
    )
    return audit_result(study, panels, checks, repeats=repeats, data=words)


def _target(name: str, m: int, epsilon: float) -> Target:
    success = family_success(_THESIS_PROTOCOLS[name][1], epsilon, categories=m)
    return Target(name, epsilon, m, success)


def _inverse(target: Target, right: int, trials: int) -> float:
    """Invert the exact advantage of the protocol (Theorem 5.3)."""
    family, m = _THESIS_PROTOCOLS[target.label][1], target.categories
    return estimate_level(family, right, trials, categories=m).value


def _thesis_panel(name: str, found: Sequence[Audited], *, trials: int) -> Panel:
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


def _thesis_reports(
    name: str, m: int, *, inputs: Inputs, rng: np.random.Generator
) -> Check:
    kind, reports = _THESIS_PROTOCOLS[name][0], _REPORTS[name] * inputs.runs
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


def _thesis_draws(runs: int) -> str:
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
    draws=_thesis_draws,
)
FIGURE_5_9 = Study(
    "figure-5.9",
    "audits of local protocols on 5356 crossings",
    "Guerra-Balboa (2026), Figure 5.9",
    _figure_5_9,
    draws=_thesis_draws,
)
AUDIT_THESIS = (FIGURE_5_8, FIGURE_5_9)


# What Sauer's chapter 10 says of its audits, protocol by protocol, as checks.

_SAUER_PROTOCOLS: dict[str, type[Any]] = {
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
    protocol: LocalProtocol = _SAUER_PROTOCOLS[name](m, epsilon)
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


# Chapter 10 of Sauer: audits of eight local protocols on two cities.

# Hashing needs m hashes a report, a noisy histogram m Laplace draws.
_SAUER_REPORTS = {"GRR": 500, "SS": 3, "SUE": 5, "OUE": 5}
_FEW = {"SHE": 0.5, "THE": 5.0, "BLH": 3.0, "OLH": 3.0}
_SAMPLED = tuple(float(e) for e in (1, 4, 8, 12, 16, 20))


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
            for e in levels_of(name)
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
        panel, points = _sauer_panel(f"{city}, {m} nodes", here, trials=trials)
        panels.append(panel)
        repeats.update({(panel.name, label): at for label, at in points.items()})
    checks = [*claims(found), *(_sauer_reports(name, inputs, rng) for name in names)]
    words = (
        "none needed, only the number of nodes; simulated: five audits a point, of "
        f"{max(1, trials // 3052)} and {max(1, trials // 5356)} trials on each node, "
        "right guesses drawn from their exact law, and fewer reports from the samplers"
    )
    return audit_result(study, panels, checks, repeats=repeats, data=words)


def _sauer_panel(
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


def _sauer_reports(name: str, inputs: Inputs, rng: np.random.Generator) -> Check:
    share = _FEW.get(name) or _SAUER_REPORTS[name]
    reports = max(1, round(share * inputs.runs))
    points = [
        sample_protocol(
            protocol_target(name, m, e),
            local_protocol(name, m, e),
            reports=reports,
            rng=rng,
        )
        for m in UNIVERSES.values()
        for e in levels_of(name)
        if e in _SAMPLED
    ]
    return reports_check(f"{name}, both cities", points)


_FIGURES: tuple[tuple[str, tuple[str, ...], Callable[[Found], list[Check]], str], ...]
_FIGURES = (
    ("10.1", ("GRR",), claims_10_1, "randomised response"),
    ("10.2", ("SS",), claims_10_2, "subset selection"),
    ("10.3", ("SUE", "OUE"), claims_10_3, "unary encodings"),
    ("10.4", ("SHE", "THE"), claims_10_4, "histogram encodings"),
    ("10.5", ("BLH", "OLH"), claims_10_5, "local hashing"),
)


def _sauer_draws(runs: int) -> str:
    return (
        "source: a million attacked reports a point; here: marks are five audits of "
        f"{count(1000 * runs)}, right guesses drawn from their exact law, no attack "
        f"run; attacked one by one as a check: {count(500 * runs)} of GRR, at most "
        f"{count(5 * runs)} of the others"
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
        draws=_sauer_draws,
    )
    return study


AUDIT_SAUER = tuple(_study(*figure) for figure in _FIGURES)
