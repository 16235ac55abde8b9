"""Chapter 10 of Sauer: audits of eight local protocols on two cities."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from undertow.studies.audit_claims import (
    Found,
    claims_10_1,
    claims_10_2,
    claims_10_3,
    claims_10_4,
    claims_10_5,
    levels_of,
    local_protocol,
    protocol_target,
)
from undertow.studies.audit_common import (
    EPSILON_LABEL,
    ESTIMATE_LABEL,
    LDP_AUDITOR,
    UNIVERSES,
    Audited,
    Repeats,
    audit_result,
    audited,
    baseline_curves,
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
    count,
)
from undertow.studies.sauer_common import EPSILONS, SOURCE

__all__ = ["AUDIT_SAUER"]

# Hashing needs m hashes a report, a noisy histogram m Laplace draws.
_REPORTS = {"GRR": 500, "SS": 3, "SUE": 5, "OUE": 5}
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
        panel, points = _panel(f"{city}, {m} nodes", here, trials=trials)
        panels.append(panel)
        repeats.update({(panel.name, label): at for label, at in points.items()})
    checks = [*claims(found), *(_reports(name, inputs, rng) for name in names)]
    words = (
        "none needed, only the number of nodes; simulated: five audits a point, of "
        f"{max(1, trials // 3052)} and {max(1, trials // 5356)} trials on each node, "
        "right guesses drawn from their exact law, and fewer reports from the samplers"
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


def _draws(runs: int) -> str:
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
        draws=_draws,
    )
    return study


AUDIT_SAUER = tuple(_study(*figure) for figure in _FIGURES)
