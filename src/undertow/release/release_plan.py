"""A planned run: what it asks, adds, answers and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from undertow.composition import Claim, Plan, Release, Report
from undertow.correlation import Leakage
from undertow.errors import PlanError
from undertow.mechanisms import NoiseSource
from undertow.privacy.loss import Approx
from undertow.release.answer import QueryAnswer
from undertow.release.consistency import Table, add_up
from undertow.release.job import Aggregates, Bounding, Slice
from undertow.release.plan_shown import plan_record, plan_text, risk_of
from undertow.release.promise import Promise
from undertow.release.query_plan import QueryPlan, Task
from undertow.release.sanity import SanityCount
from undertow.release.timeline import Timeline
from undertow.risk import RiskCard
from undertow.spaces import Identity, Window
from undertow.spaces.base import Domain, View
from undertow.spaces.unit import parse_granularity

if TYPE_CHECKING:
    from undertow.release.document import ReleaseDocument

__all__ = ["ReleasePlan"]


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
    return query.select == "count" and plain


def _table(query: QueryPlan, answer: QueryAnswer) -> Table:
    job = query.job
    assert job.grid is not None
    where = None if job.where is None else str(job.where)
    return Table(answer, job.grid, (where,), query.consistent)
