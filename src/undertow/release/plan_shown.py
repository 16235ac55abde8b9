"""A plan for reading: text, plain values, and the risk card of its promise."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from undertow._text import on_one_line
from undertow.composition import Report
from undertow.correlation import Leakage, LeakageCalibration
from undertow.correlation.group import WholeUnitsMethod
from undertow.numeric.exact import exact, format_up
from undertow.privacy.loss import Pure
from undertow.privacy.result import escape_markup, shown_loss, to_plain
from undertow.release.period import period_record, run_fact
from undertow.release.promise import Promise
from undertow.release.timeline import ADDING
from undertow.risk import RiskCard, Threat, best_bound
from undertow.risk.card import points
from undertow.spaces.base import Granularity

if TYPE_CHECKING:
    from undertow.release.release_plan import ReleasePlan

__all__ = [
    "EMPTY_WINDOWS",
    "mechanism_words",
    "plan_record",
    "plan_text",
    "risk_of",
    "threat_at",
]

EMPTY_WINDOWS = "having no rows in a window is one of the values the model speaks of"
"""What a model of windows takes on trust: somebody may be absent from all of them."""

_HEADER = ("protects", "cost", "worst cases added up", "worst change")
_IN_STEPS = re.compile(r"(.*) (\S+) in steps of (\S+)")
_WARNINGS = (
    "records are taken as independent; correlated records can be worse",
    "the prior is taken as public; one counted on the private data leaks them",
    "the advantage is an upper bound; the exact one may be smaller",
)
_MODELLED = "records depend on each other as the stated model says, and no more"
_UNITS = "units are taken as independent of each other; the records of one may depend"


def threat_at(threat: Threat | None, target: Granularity) -> Threat | None:
    """Return a threat against a guarantee at `target`, which may add or remove."""
    if threat is None or not any(word in target.name for word in ADDING):
        return threat
    return replace(threat, adjacency="add-remove")


def risk_of(
    promise: Promise, report: Report, leak: Leakage | None = None
) -> RiskCard | None:
    """Return what a composed loss allows the attacker of the promise.

    The bound holds for every release with that loss, whatever its queries; None if no
    threat is stated. Under a correlation model the odds of two values of one record
    move by at most the leakage, so that the release is, to this attacker, one with a
    pure loss of that size about the record.
    """
    threat = promise.threat
    if threat is None:
        return None
    loss = report.loss if leak is None else Pure(leak.value)
    found = best_bound(loss, threat).best
    gain = points(found.value)
    share = 1.0 if threat.ceiling == 0 else min(1.0, found.value / threat.ceiling)
    return RiskCard(
        f"What this attacker wants to know of a person can be guessed at most {gain} "
        "points more often because they took part.",
        found.value,
        gain,
        share,
        threat.ceiling,
        threat.informed_guess,
        None,
        None,
        f"any release with {report.loss} at {report.granularity} level"
        + ("" if leak is None else f", which leaks {leak.value:.6g} under the model"),
        threat.summary,
        False,
        found.theorem,
        (),
        _WARNINGS if leak is None else (_trusted(leak), *_WARNINGS[1:]),
    )


def _trusted(leak: Leakage) -> str:
    """Return what a risk card takes for granted about dependence."""
    return _UNITS if leak.method == WholeUnitsMethod.name else _MODELLED


def plan_record(plan: ReleasePlan) -> dict[str, Any]:
    """Return a plan as plain values, for JSON."""
    promise, leak, risk = plan.promise, plan.leakage(), plan.risk()
    found = promise.calibration
    return {
        "fingerprint": plan.document.fingerprint(),
        "granularity": promise.granularity.name,
        "promise": promise.total.to_dict(),
        "calibration": None if found is None else found.to_dict(),
        "confidence": float(promise.confidence),
        "run": plan.timeline.run,
        "runs": plan.timeline.runs,
        **period_record(plan.timeline),
        "costs": {name: to_plain(r.loss) for name, r in plan.costs().items()},
        "horizon_costs": _horizon(plan),
        "check": _check_record(plan),
        "queries": _queries(plan),
        "risk": None if risk is None else risk.to_dict(),
        "leakage": None if leak is None else leak.to_dict(),
        "theorems": list(plan.costs()[promise.granularity.name].theorems),
        "unprotected": list(plan.costs()[promise.granularity.name].unprotected),
    }


def _check_record(plan: ReleasePlan) -> dict[str, Any] | None:
    """Return what is counted before the release, and what one count costs."""
    if plan.check is None:
        return None
    costs = {name: to_plain(r.loss) for name, r in plan.check_costs().items()}
    return {**to_plain(plan.check.to_dict()), "costs": costs}


def _check_text(plan: ReleasePlan) -> str:
    """Say what is counted before the release, and what one count costs."""
    assert plan.check is not None
    level = plan.promise.granularity.name
    cost = shown_loss(plan.check_costs()[level].loss)
    return f"costs {cost} at {level} level; {plan.check.words()}"


def _queries(plan: ReleasePlan) -> list[dict[str, Any]]:
    """Return the error of a cell of each query, and the times that it is for."""
    return [
        {
            **to_plain(query.expected_error),
            **period_record(plan.timeline, running=query.run is not None),
        }
        for query in plan.queries
    ]


def _horizon(plan: ReleasePlan) -> dict[str, Any] | None:
    if plan.timeline.runs == 1:
        return None
    return {n: to_plain(r.loss) for n, r in plan.costs(horizon=True).items()}


def plan_text(plan: ReleasePlan, *, markup: bool) -> str:
    """Return a plan as text, with or without markup for the terminal."""
    leak, risk = plan.leakage(), plan.risk()
    parts = [
        *((name, text) for name, text in [_run_fact(plan)] if text),
        ("promise", _promise_text(plan)),
        ("cost of this run", _costs_text(plan.costs())),
    ]
    if plan.timeline.runs > 1:
        costs = _costs_text(plan.costs(horizon=True))
        parts.append((f"cost of all {plan.timeline.runs} runs", costs))
    errors = "\n".join(_error_line(error) for error in plan.expected_errors())
    if plan.check is not None:
        parts.append(("count before the release", _check_text(plan)))
    parts.append(("expected error of a cell", errors))
    if leak is not None:
        parts.append(("leakage", _leakage_text(leak, plan)))
    if risk is not None:
        parts.append(("risk", risk.sentence))
    if not markup:
        return "\n\n".join(f"{title}\n{text}" for title, text in parts)
    return "\n\n".join(
        f"[bold]{title}[/bold]\n{escape_markup(text)}" for title, text in parts
    )


def _costs_text(costs: dict[str, Report]) -> str:
    """Return costs as a table, one line a granularity."""
    lines = [_HEADER] + [
        (
            report.granularity,
            shown_loss(report.loss),
            shown_loss(report.sequential),
            "" if report.witness is None else report.witness.summary,
        )
        for report in costs.values()
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(3)]
    return "\n".join(
        "  ".join([*(c.ljust(w) for c, w in zip(line, widths, strict=False)), line[3]])
        for line in lines
    ).rstrip()


def _run_fact(plan: ReleasePlan) -> tuple[str, str]:
    """Return which run it is and the times it is for."""
    timeline = plan.timeline
    known = {"run": timeline.run, "runs": timeline.runs, "queries": _queries(plan)}
    return run_fact({**known, **period_record(timeline)})


def _promise_text(plan: ReleasePlan) -> str:
    """Return what is promised, and whose rows are meant where no column says it."""
    promise, source = plan.promise, plan.document.source
    text = f"{shown_loss(promise.total)} at {promise.granularity.name} level"
    stated, found = plan.document.promise, promise.calibration
    if isinstance(found, LeakageCalibration) and stated.epsilon is not None:
        level = format_up(exact(stated.epsilon), 6)
        text = f"leakage at most {level} under the stated model, which leaves {text}"
    elif stated.advantage is not None:
        gain = points(float(stated.advantage))
        text = f"at most {gain} points for the stated threat, which leaves {text}"
    if source.unit is None or source.kind == "event":
        text += "; each row is protected by itself, whoever has several of them"
    return text


def _leakage_text(leak: Leakage, plan: ReleasePlan) -> str:
    """Return what is learnt at most, by which theorem, and what it takes on trust."""
    lines = [f"at most {format_up(exact(leak.value), 6)}, by {leak.theorem}"]
    lines += [f"covers: {leak.model}"] if leak.model else []
    trusted = list(leak.unchecked)
    if plan.timeline.kind == "window" and leak.method != WholeUnitsMethod.name:
        trusted.append(EMPTY_WINDOWS)
    lines += [f"taken on trust: {text}" for text in trusted]
    return "\n".join(on_one_line(line) for line in lines)


def mechanism_words(mechanism: str) -> str:
    """Return the noise of a query with its size in the unit of the column.

    What a record keeps says it in steps, and is compared word by word with the noise
    of later runs.

    Examples
    --------
    >>> mechanism_words("discrete Laplace noise of scale 640 in steps of 0.125")
    'discrete Laplace noise of scale 80, drawn in steps of 0.125'
    """
    found = _IN_STEPS.fullmatch(mechanism)
    if found is None:
        return mechanism
    words, scale, step = found.groups()
    # Both have six digits, so that their product has five.
    return f"{words} {float(scale) * float(step):.5g}, drawn in steps of {step}"


def _error_line(error: dict[str, Any]) -> str:
    cells = "keys to discover" if error["cells"] is None else f"{error['cells']} cells"
    cells = "1 cell" if error["cells"] == 1 else cells
    level = f"{100 * error['confidence']:g} %"
    name, width = on_one_line(error["name"]), f"{error['half_width']:.6g}"
    off = f"± {width} {error['unit']}"
    if error["select"] in ("mean", "variance"):
        each = f"{error['half_width'] / 1000:.3g}"
        off += f", such as ± {each} where these are 1000"
    if error["select"] == "quantile":
        off = f"rank off by at most {math.ceil(error['half_width'])} rows"
    text = f"{name}: {off} ({level}), {mechanism_words(error['mechanism'])}, {cells}"
    if error["threshold"] is not None:
        text += f", keys from {error['threshold']} noisy units on"
    return text
