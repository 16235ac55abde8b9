"""Bounds for any mechanism in chapter 5 of the thesis: Figure 5.3 and Table 5.1."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from undertow.errors import AssumptionError
from undertow.mechanisms.local import GeneralizedResponse, OptimizedUnary
from undertow.privacy import GDP, Approx, Loss
from undertow.risk import (
    BoundReport,
    BoundRow,
    Channel,
    Prior,
    Success,
    Threat,
    advantage,
    best_bound,
    best_success_bound,
    success_rate,
)
from undertow.risk.bounds import (
    baseline_bound,
    uniform_gaussian_bound,
    uniform_guess_bound,
)
from undertow.studies.base import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
)
from undertow.studies.risk_theory import ADVANTAGE_LABEL, EPSILON_LABEL, printed_oue
from undertow.studies.thesis_bounds import finished, stated

__all__ = ["RISK_BOUNDS"]

_SIZE = 30
_PRIOR = Prior.from_counts({x: _SIZE - x for x in range(_SIZE)})
_KNOWN = Threat.membership(_PRIOR)
_NEAR = Threat(_PRIOR, Success.within("absolute", 1))
_EXACT = Threat.reconstruction(_PRIOR)
_LOSS = Approx(1, "1e-5")
_LEVEL = 1.0
_DELTA, _CATEGORIES = 1e-5, 10

Risk = Callable[[float], float]


def _figure_5_3(inputs: Inputs) -> StudyResult:
    bounds: Mapping[str, Risk] = {
        "Proposition 5.13": _proposition,
        "Corollary 5.16": lambda e: (
            uniform_guess_bound(Approx(e, _DELTA), _CATEGORIES).value
        ),
        "OUE": lambda e: OptimizedUnary(_CATEGORIES, e).advantage_bound().value,
    }
    grid = tuple(float(e) for e in (0.01, *np.arange(0.1, 10.05, 0.1)))
    curves = tuple(
        Curve(name, grid, tuple(bound(e) for e in grid))
        for name, bound in bounds.items()
    )
    general, perfect, known = (curve.y for curve in curves)
    ordered = all(a < b < c for a, b, c in zip(known, perfect, general, strict=True))
    checks = [
        stated(
            "OUE is below Corollary 5.16, and that below Proposition 5.13, for all ε",
            ordered,
            f"on {len(grid)} levels from 0.01 to 10",
        ),
        *_black_box_checks(bounds),
    ]
    panel = Panel("10 records, δ = 10⁻⁵", curves, EPSILON_LABEL, ADVANTAGE_LABEL)
    return finished(FIGURE_5_3, [panel], checks)


def _proposition(epsilon: float) -> float:
    share = 1 / _CATEGORIES
    return baseline_bound(
        Approx(epsilon, _DELTA),
        best_guess=share,
        worst_guess=share,
        collision=share,
        sharpen=False,
    ).value


def _black_box_checks(bounds: Mapping[str, Risk]) -> list[Check]:
    m, checks = _CATEGORIES, []
    for e in (1.0, 2.0, 6.0):
        rise, odds = math.expm1(e), math.exp(e)
        general = min(
            rise / m + _DELTA,
            ((1 - 1 / m) * rise + _DELTA) / odds,
            (rise + 2 * _DELTA) / (odds + 1) * (1 - 1 / m),
        )
        perfect = (rise + _DELTA * m) / (odds + m - 1) * (m - 1) / m
        checks += [
            compare(
                f"{name} at ε = {e:g}",
                value,
                bounds[name](e),
                note="published: the statement, evaluated",
            )
            for name, value in (
                ("Proposition 5.13", general),
                ("Corollary 5.16", perfect),
                ("OUE", printed_oue(e, m)),
            )
        ]
    return checks


@dataclass(frozen=True)
class _Line:
    """One line of the printed table and an example to which it is applied.

    `row` names the row of our table; `wider` is a threat beyond its assumption, where
    it has one.
    """

    notion: str
    assumption: str
    theorem: str
    counterpart: str
    row: str
    guarantee: Loss | float
    threat: Threat
    wider: Threat | None = None
    source: Channel | None = None

    def report(self, threat: Threat) -> BoundReport:
        return best_bound(self.guarantee, threat, source=self.source)

    def found(self, threat: Threat) -> BoundRow:
        return next(r for r in self.report(threat).rows if r.name == self.row)


def _response(categories: int, epsilon: float) -> Channel:
    protocol = GeneralizedResponse(categories, epsilon)
    keep, other = float(protocol.keep), float(protocol.noise)
    return Channel(np.eye(categories) * (keep - other) + other)


def _lines() -> tuple[_Line, ...]:
    blind, exact = "aux = {∅}", "aux = {∅}, η = 0"
    pair, none = "(ε, δ)-DP", "none"
    return (
        _Line(
            "total variation", none, "Theorem 5.2", none, "total variation", 0.3, _KNOWN
        ),
        _Line(
            "f-DP",
            blind,
            "Theorem 5.11",
            "Equation 2.6",
            "trade-off",
            GDP(1),
            _NEAR,
            _KNOWN,
        ),
        _Line(
            "mechanism",
            "aux known",
            "Theorem 5.3",
            none,
            "exact advantage",
            _LOSS,
            _KNOWN,
            source=_response(_SIZE, _LEVEL),
        ),
        _Line(pair, none, "Theorem 5.2", none, "total variation", _LOSS, _KNOWN),
        _Line(
            pair,
            blind,
            "Proposition 5.13",
            "Equation 2.3",
            "baselines",
            _LOSS,
            _NEAR,
            _KNOWN,
        ),
        _Line(
            pair,
            exact,
            "Theorem 5.15",
            "Equation 2.3",
            "exact guess",
            _LOSS,
            _EXACT,
            _NEAR,
        ),
    )


def _table_5_1(inputs: Inputs) -> StudyResult:
    lines = _lines()
    checks = [
        *(check for line in lines for check in _line_checks(line)),
        *_composition_checks(),
        _pure_only(),
    ]
    header = ("notion", "assumption", "row", "applies", "theorem", "value", "reason")
    rows = tuple(
        (
            line.notion,
            line.assumption,
            row.name,
            "yes" if row.applies else "no",
            row.bound.theorem if row.bound else "",
            "" if row.value is None else row.value,
            row.reason,
        )
        for line in lines
        for row in line.report(line.threat).rows
    )
    return StudyResult(
        TABLE_5_1.name,
        TABLE_5_1.title,
        TABLE_5_1.source,
        (),
        header,
        rows,
        tuple(checks),
    )


def _line_checks(line: _Line) -> list[Check]:
    name = f"{line.notion}, assumption {line.assumption}"
    row, report = line.found(line.threat), line.report(line.threat)
    theorem = row.bound.theorem if row.bound else "none"
    agrees = row.applies and line.theorem in theorem
    checks = [
        Check(
            f"bound for {name}",
            line.theorem,
            theorem,
            "match" if agrees else "differs",
            f"{row.value:.6g} in the example; the best of our rows is "
            f"{report.name!r} with {report.value:.6g}",
        ),
    ]
    if line.wider is not None:
        refused = not line.found(line.wider).applies
        checks.append(
            stated(f"{line.theorem} needs {line.assumption}", refused, line.row)
        )
    if line.counterpart in ("none", "Equation 2.6"):
        checks.append(_counterpart(line, name))
    return checks


def _counterpart(line: _Line, name: str) -> Check:
    loss = line.guarantee if isinstance(line.guarantee, Loss) else _LOSS
    found = _stated_or_none(lambda: best_success_bound(loss, line.threat).theorem)
    agrees = found == line.counterpart
    return Check(
        f"bound on the success of reconstruction for {name}",
        line.counterpart,
        found,
        "match" if agrees else "differs",
        "refused where the attacker knows anything of the target",
    )


def _stated_or_none(theorem: Callable[[], str]) -> str:
    try:
        return theorem()
    except AssumptionError:
        return "none"


def _composition_checks() -> list[Check]:
    first, second = _response(4, _LEVEL), _same_risk()
    once = [advantage(channel, _UNIFORM).value for channel in (first, second)]
    twice = [advantage(_repeated(c), _UNIFORM).value for c in (first, second)]
    differ = math.isclose(*once, rel_tol=1e-9) and abs(twice[0] - twice[1]) > 1e-3
    sigma = uniform_gaussian_bound(10 / 22, 10, sharpen=False).value
    return [
        Check(
            "composition of Theorem 5.3",
            "no",
            "no" if differ else "yes",
            "match" if differ else "differs",
            f"two mechanisms of advantage {once[0]:.6g} have {twice[0]:.6g} and "
            f"{twice[1]:.6g} when run twice; the law of both outputs gives the value",
        ),
        compare(
            "advantage of 100 steps of DP-SGD at σ = 22, ten records",
            "0.1",
            sigma,
            note="Theorem 5.11 with μ = 10/22 for adding or removing a record, as in "
            "Example 5.17; replacing one doubles μ and needs σ = 43.87",
        ),
    ]


_UNIFORM = Threat.reconstruction(Prior.uniform(4))


def _same_risk() -> Channel:
    """Return the channel that tells the record, or nothing, with the same risk."""
    target = advantage(_response(4, _LEVEL), _UNIFORM).value
    told = target / 0.75
    return Channel(np.hstack([told * np.eye(4), np.full((4, 1), 1 - told)]))


def _repeated(channel: Channel) -> Channel:
    laws = channel.matrix
    return Channel((laws[:, :, None] * laws[:, None, :]).reshape(len(laws), -1))


def _pure_only() -> Check:
    """Return the counterexample to Equation 2.3 for approximate DP."""
    delta, m = 0.1, 4
    # The record with probability delta, else nothing: (0, delta)-DP.
    leak = Channel(np.hstack([delta * np.eye(m), np.full((m, 1), 1 - delta)]))
    success = success_rate(leak, _UNIFORM).value
    return Check(
        "bound on the success of reconstruction for (ε, δ)-DP",
        "Equation 2.3",
        "Equation 2.6",
        "erratum" if success > 1 / m else "match",
        "Equation 2.3 needs δ = 0: a (0, 0.1)-DP mechanism on four records has success "
        f"{success:.4g}, above κ⁺ = 0.25; for δ = 0 both hold",
        "RE30" if success > 1 / m else "",
    )


_THESIS = "Guerra-Balboa (2026)"
FIGURE_5_3 = Study(
    "figure-5.3",
    "bounds on the advantage of any mechanism with a guarantee",
    f"{_THESIS}, Figure 5.3",
    _figure_5_3,
)
TABLE_5_1 = Study(
    "table-5.1",
    "which bound on the advantage applies when",
    f"{_THESIS}, Table 5.1",
    _table_5_1,
)
RISK_BOUNDS = (FIGURE_5_3, TABLE_5_1)
