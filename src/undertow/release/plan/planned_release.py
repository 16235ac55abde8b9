"""From a release file to a planned run: jobs, noise and costs, before data is read.

And a planned run for reading: text, plain values, and the risk card of its promise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from html import escape
from itertools import chain
from typing import TYPE_CHECKING, Any

from undertow._text import on_one_line
from undertow.composition import Claim, Plan, Release, Report
from undertow.correlation import Leakage, LeakageCalibration, Model
from undertow.correlation.group import WholeUnitsTheorem
from undertow.errors import AssumptionError, PlanError
from undertow.mechanisms import NoiseSource
from undertow.numeric.exact import exact, format_up
from undertow.privacy.loss import Approx, Pure, shown_loss
from undertow.release.document._promise import stated_model
from undertow.release.document._select import KINDS
from undertow.release.engine.job import Aggregates, Bounding, Slice
from undertow.release.plan._budget import (
    Need,
    Promise,
    Share,
    calibrate_noise,
    composed_within,
    settle_promise,
    share_weights,
)
from undertow.release.plan._sanity_count import SanityCount, sanity_count, split_promise
from undertow.release.plan.answer import QueryAnswer, Table, add_up
from undertow.release.plan.noise import key_threshold, stored_noise
from undertow.release.plan.planned_query import QueryPlan, QueryShape, Task, query_shape
from undertow.release.plan.timeline import ADDING, Timeline, period_record, run_fact
from undertow.results import escape_markup, to_plain
from undertow.risk import RiskCard, Threat, best_bound
from undertow.risk.card import points
from undertow.spaces import Identity, Window
from undertow.spaces.base import Domain, Granularity, View
from undertow.spaces.unit import parse_granularity

if TYPE_CHECKING:
    from undertow.release.document.release_document import ReleaseDocument


_REPLACING = ("event", "user", "bounded")


def plan_release(
    document: ReleaseDocument, *, as_of: date | datetime | str | None = None
) -> ReleasePlan:
    """Plan a run of a release file; no data is touched.

    Parameters
    ----------
    document : ReleaseDocument
        The release file.
    as_of : date, datetime or str, optional
        The time of the run, in UTC; a plain date is its midnight. Where rows are
        counted per window, the run reads the last window that is over by then, and the
        promise covers one run for every window of the horizon; without it, one run
        reads the whole horizon, or the first run is planned if there is a running
        total.

    Returns
    -------
    ReleasePlan
        Whose composed loss keeps the promise, by exact arithmetic.

    Raises
    ------
    PlanError
        If the file cannot be planned.
    AssumptionError, InfiniteLossError
        If the guarantee asked for would not hold.

    Examples
    --------
    >>> from undertow.release.document.release_document import release_from_mapping
    >>> plan = plan_release(release_from_mapping({
    ...     "source": {"table": "steps.parquet", "unit": "person", "time": "ts"},
    ...     "promise": {"granularity": "user:add-remove", "epsilon": "1.0"},
    ...     "bounds": {"rows_per_unit": 50},
    ...     "queries": [{"name": "active", "select": "count", "by": ["hour"],
    ...                  "keys": {"hour": "0..23"}}],
    ... }))
    >>> plan.costs()["user"].loss, plan.queries[0].mechanism
    (Pure(epsilon=2), 'discrete Laplace noise of scale 50')
    """
    running = any(query.running for query in document.queries)
    timeline = Timeline.of(document.source, as_of=as_of, continual=running)
    shapes = [
        query_shape(query, document=document, timeline=timeline)
        for query in document.queries
    ]
    promise = _promise(document, timeline, shapes)
    check, rest = _check(document, timeline, shapes, promise)
    shares = _shares(shapes, timeline=timeline, promise=rest)
    if check is not None:
        _require_together(check, [*chain.from_iterable(shares)], timeline, promise)
    return ReleasePlan(
        document,
        timeline,
        promise,
        tuple(
            _planned(shape, part, timeline=timeline, promise=promise)
            for shape, part in zip(shapes, shares, strict=True)
        ),
        timeline.bounding(document.source, document.bounds),
        check,
    )


def _check(
    document: ReleaseDocument,
    timeline: Timeline,
    shapes: Sequence[QueryShape],
    promise: Promise,
) -> tuple[SanityCount | None, Promise]:
    """Return the count before the release, and what is left of the promise."""
    stated = document.check
    if stated is None:
        return None, promise
    part = stated.share * stated.tries
    counts, rest = split_promise(promise, part, runs=timeline.runs)
    found = sanity_count(document, shapes, timeline=timeline, promise=counts)
    return found, rest


def _require_together(
    check: SanityCount, shares: Sequence[Share], timeline: Timeline, promise: Promise
) -> None:
    """Check that counts and queries keep the promise together, by exact arithmetic."""
    if not composed_within(
        shares,
        domain=timeline.domain,
        unit=timeline.unit,
        promise=promise,
        others=check.covered,
    ):
        raise AssumptionError(
            "check.share must leave a budget within which the promise is kept, got a "
            "composed loss above it; state a smaller one."
        )


def _promise(
    document: ReleaseDocument, timeline: Timeline, shapes: Sequence[QueryShape]
) -> Promise:
    stated = document.promise
    correlated = stated.correlation is not None
    target = timeline.granularity(stated.granularity, correlated=correlated)
    if correlated and target.name not in _REPLACING:
        raise AssumptionError(
            "promise.granularity must be event or user where correlation is given, got "
            f"{target.name}; leakage is about what one record is, not whether it is "
            "there."
        )
    model = _model(document, timeline, target) if correlated else None
    threat: Threat | None = (
        None if document.threat is None else document.threat.to_threat()
    )
    return settle_promise(
        stated,
        granularity=target,
        threat=threat_at(threat, target),
        model=model,
        discovers=any(shape.discovers for shape in shapes),
        counts=any(not shape.keys_only for shape in shapes),
    )


def _model(document: ReleaseDocument, timeline: Timeline, target: Granularity) -> Model:
    stated, source = document.promise.correlation, document.source
    assert stated is not None
    lone = source.unit is None and timeline.kind == "user"
    if stated.model == "markov" and lone:
        raise AssumptionError(
            "source.unit must be given where the model is a Markov chain, got none: "
            "every row is then a unit, and a chain of rows would join units; name the "
            'column of the unit, or state per = "event".'
        )
    return stated_model(
        stated,
        path=None if stated.fit is None else document.path(stated.fit),
        unit=source.unit,
        length=source.windows,
        whole_units=not lone and timeline.replaces_units(target),
        moment=source.time,
    )


def _shares(
    shapes: Sequence[QueryShape], *, timeline: Timeline, promise: Promise
) -> list[list[Share]]:
    """Return the noise of each query, that of discovered keys first."""
    weights = share_weights(
        [shape.share for shape in shapes],
        [(shape.size_reach, shape.size_cells) for shape in shapes],
        law=promise.law,
        discovers=any(shape.discovers for shape in shapes),
    )
    needs: list[list[Need]] = []
    plain, trees = timeline.views(), None
    for shape, weight in zip(shapes, weights, strict=True):
        views: tuple[View, ...] = plain
        if shape.running:
            trees = trees or timeline.tree_views()
            views = trees
        needs.append(shape.needs(weight, views))
    found = iter(
        calibrate_noise(
            [need for several in needs for need in several],
            domain=timeline.domain,
            unit=timeline.unit,
            promise=promise,
        )
    )
    return [[next(found) for _ in several] for several in needs]


def _planned(
    shape: QueryShape, shares: Sequence[Share], *, timeline: Timeline, promise: Promise
) -> QueryPlan:
    keys = shares[0] if shape.discovers else None
    threshold = None
    if keys is not None:
        groups = shape.contribution.unit_reach().touched
        threshold = key_threshold(keys.noise, groups=groups, delta=keys.delta)
    return QueryPlan(
        shape.name,
        shape.select,
        shape.tasks(timeline),
        shape.encoding,
        shares[-1],
        keys,
        threshold,
        shape.cells,
        float(promise.confidence),
        promise.beta,
        shape.consistent,
        timeline.run if shape.running else None,
        timeline.unit,
    )


# A planned run: what it asks, adds, answers and costs.


@dataclass(frozen=True, slots=True, eq=False)
class ReleasePlan:
    """What a run will ask, add and cost.

    Parameters
    ----------
    document : ReleaseDocument
        The release file.
    timeline : Timeline
        What is read, and what a unit is.
    promise : Promise
        The loss that must not be passed.
    queries : tuple of QueryPlan
        One per query of the file.
    bounding : Bounding
        How the rows of a unit are bounded.
    check : SanityCount or None
        What is counted, and charged, before the release.
    """

    document: ReleaseDocument
    timeline: Timeline
    promise: Promise
    queries: tuple[QueryPlan, ...]
    bounding: Bounding
    check: SanityCount | None = None
    _known: dict[str, Plan] = field(default_factory=dict, repr=False)
    _priced: dict[bool, dict[str, Report]] = field(default_factory=dict, repr=False)

    @property
    def domain(self) -> Domain:
        """The databases the accounting ranges over."""
        return self.timeline.domain

    @property
    def slice(self) -> Slice | None:
        """The times that this run reads; a running total may read earlier ones too."""
        return self.timeline.slice

    @property
    def tasks(self) -> tuple[Task, ...]:
        """Everything the engine is asked in this run, query by query."""
        return tuple(task for query in self.queries for task in query.tasks)

    @property
    def parts(self) -> tuple[Release, ...]:
        """What this run releases, query by query, without the count before it."""
        return tuple(release for query in self.queries for release in query.releases)

    @property
    def releases(self) -> tuple[Release, ...]:
        """What this run releases after the count before it, for the ledger.

        Query by query; all together where the promise is (epsilon, delta), because
        restating each query by itself would cost more than restating their sum. Not so
        nodes of running totals that read windows of other runs: restated, one that
        shares a few windows with a block would be charged for all that it reads.
        """
        run = self.timeline.view()
        several = any(task.view != run for task in self.tasks)
        discovers = any(query.keys for query in self.queries)
        if not isinstance(self.promise.total, Approx) or (several and not discovers):
            return self.parts
        whole = Plan(self.domain, self.parts)
        target = self.promise.granularity
        claims = [Claim(self.promise.cost(whole).loss, target, "common")]
        if not discovers:
            summed = whole.loss(target, on_infinite="report", notion="zcdp").loss
            claims.append(Claim(summed, target, "common"))
        name = " and ".join(query.name for query in self.queries[:3])
        more = len(self.queries) - 3
        name += f" and {more} more" if more > 0 else ""
        return (Release.with_claims(name, claims, view=self._view()),)

    def _view(self) -> View:
        """Return all that this run reads."""
        views = {task.view for task in self.tasks}
        spans = [view.times for view in views if isinstance(view, Window)]
        if not spans:
            return Identity()
        start = min(min(span) for span in spans)
        return Window(start, max(max(span) for span in spans) - start + 1)

    def composition(self) -> Plan:
        """Return this run, with one count before it, as a plan to compose."""
        counts = () if self.check is None else self.check.releases
        return Plan(self.domain, (*counts, *self.parts))

    def horizon(self) -> Plan:
        """Return all runs that the promise covers, with all their counts, as one."""
        if self.timeline.runs == 1 and self.check is None:
            return self.composition()
        if "horizon" not in self._known:
            plan = Plan(self.domain, () if self.check is None else self.check.covered)
            for query in self.queries:
                for share in query.shares:
                    for release in share.releases(share.need.views, query.unit):
                        plan.add(release)
            self._known["horizon"] = plan
        return self._known["horizon"]

    def costs(self, *, horizon: bool = False) -> dict[str, Report]:
        """Return what a run costs at every usual granularity and at the promised one.

        Parameters
        ----------
        horizon : bool
            Price all runs that the promise covers instead of this one.
        """
        if horizon not in self._priced:
            plan = self.horizon() if horizon else self.composition()
            self._priced[horizon] = self._costs(plan)
        return dict(self._priced[horizon])

    def check_costs(self) -> dict[str, Report]:
        """Return what one count before the release costs, part of the cost of a run."""
        return self._costs(Plan(self.domain, self.check.releases if self.check else ()))

    def _costs(self, plan: Plan) -> dict[str, Report]:
        found = {self.promise.granularity.name: self.promise.cost(plan)}
        for name in self.timeline.usual():
            if name not in found:
                found[name] = self.promise.cost(plan, parse_granularity(name))
        return found

    def leakage(self) -> Leakage | None:
        """Return what all runs leak under the stated model; None if none is stated."""
        return self.promise.leaked_by(self.horizon())

    def risk(self) -> RiskCard | None:
        """Return the risk of all runs under the stated threat; None if none is."""
        if self.promise.threat is None:
            return None
        return risk_of(self.promise, self.promise.cost(self.horizon()), self.leakage())

    def expected_errors(self) -> tuple[dict[str, Any], ...]:
        """Return the error of a cell of each query, before any data is read."""
        return tuple(query.expected_error for query in self.queries)

    def answer(
        self,
        aggregates: Sequence[Aggregates],
        *,
        source: NoiseSource | None = None,
        earlier: Mapping[str, Mapping[str, Sequence[Any]]] | None = None,
    ) -> tuple[QueryAnswer, ...]:
        """Draw all noise of the run, once, and return the tables.

        Parameters
        ----------
        aggregates : sequence of Aggregates
            What the engine returned for each of `tasks`.
        source : NoiseSource, optional
            Operating-system entropy by default.
        earlier : mapping, optional
            For each running query, by name, the nodes stored with earlier outputs.
        """
        if len(aggregates) != len(self.tasks):
            raise PlanError(
                f"the plan must get {len(self.tasks)} results of the engine, "
                f"got {len(aggregates)}."
            )
        given, answers = iter(aggregates), []
        for query in self.queries:
            parts = [next(given) for _ in query.tasks]
            known = (earlier or {}).get(query.name)
            answers.append(
                query.answer(parts, source=source, earlier=known, settle=False)
            )
        pairs = zip(self.queries, self.reconcile(answers), strict=True)
        return tuple(query.settled(answer) for query, answer in pairs)

    def reconcile(self, answers: Sequence[QueryAnswer]) -> tuple[QueryAnswer, ...]:
        """Make margins of answers that are as the noise left them add up, if asked."""
        if not self.document.output.consistency:
            return tuple(answers)
        found = list(answers)
        places = [at for at, query in enumerate(self.queries) if _is_table(query)]
        tables = [_table(self.queries[at], answers[at]) for at in places]
        for at, answer in zip(places, add_up(tables), strict=True):
            found[at] = answer
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return plan_record(self)

    def __rich__(self) -> str:
        return plan_text(self, markup=True)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(plan_text(self, markup=False))}</pre>"


def _is_table(query: QueryPlan) -> bool:
    """Tell whether a query counts the rows that other queries may count as well.

    With bounds on the cells of a unit, or on its rows in a cell, which rows count
    depends on the cells: the total of a table is then not that of another.
    """
    job = query.job
    bounded = job.groups_per_unit is not None or job.rows_per_group is not None
    plain = query.threshold is None and query.run is None and not bounded
    return query.encoding.is_table and plain


def _table(query: QueryPlan, answer: QueryAnswer) -> Table:
    job = query.job
    assert job.grid is not None
    where = None if job.where is None else str(job.where)
    return Table(answer, job.grid, (where,), query.consistent)


# A plan for reading: text, plain values, and the risk card of its promise.

EMPTY_WINDOWS = "having no rows in a window is one of the values the model speaks of"
"""What a model of windows takes on trust: somebody may be absent from all of them."""

_HEADER = ("protects", "cost", "worst cases added up", "worst change")
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
    return _UNITS if leak.method == WholeUnitsTheorem.name else _MODELLED


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
    if plan.timeline.kind == "window" and leak.method != WholeUnitsTheorem.name:
        trusted.append(EMPTY_WINDOWS)
    lines += [f"taken on trust: {text}" for text in trusted]
    return "\n".join(on_one_line(line) for line in lines)


def noise_words(query: Mapping[str, Any]) -> str:
    """Return the noise of a query with its size in the unit of the column.

    Parameters
    ----------
    query : mapping
        What the record of a plan says of it, in this version or an earlier one.
    """
    noise = stored_noise(query)
    return str(query["mechanism"]) if noise is None else noise.in_units


def _error_line(error: dict[str, Any]) -> str:
    cells = "keys to discover" if error["cells"] is None else f"{error['cells']} cells"
    cells = "1 cell" if error["cells"] == 1 else cells
    level = f"{100 * error['confidence']:g} %"
    name, width = on_one_line(error["name"]), f"{error['half_width']:.6g}"
    off = f"± {width} {error['unit']}"
    kind = KINDS[error["select"]]
    if kind.averaged:
        each = f"{error['half_width'] / 1000:.3g}"
        off += f", such as ± {each} where these are 1000"
    if kind.ranked:
        off = f"rank off by at most {math.ceil(error['half_width'])} rows"
    text = f"{name}: {off} ({level}), {noise_words(error)}, {cells}"
    if error["threshold"] is not None:
        text += f", keys from {error['threshold']} noisy units on"
    return text
