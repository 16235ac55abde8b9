"""One query of a release: what it means, its jobs and noise, and how it is answered."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from undertow.composition import Release
from undertow.errors import PlanError
from undertow.mechanisms import NoiseSource
from undertow.release.document._select import KINDS, Select, SelectKind
from undertow.release.engine.job import Aggregates, Grid, Job, Measure, Slice, Value
from undertow.release.plan._budget import Need, Share
from undertow.release.plan.answer import (
    Noised,
    QueryAnswer,
    add_noise,
    answer_columns,
    answer_table,
    answer_types,
    settle_rows,
    stored_nodes,
)
from undertow.release.plan.encoding import (
    Encoding,
    Histogram,
    Mean,
    OneNumber,
    Quantiles,
    Rows,
    Sum,
    Units,
    Variance,
    value_lattice,
)
from undertow.release.plan.noise import (
    ClaimUnit,
    Contribution,
    LatticeNoise,
    Reach,
    published_intervals,
    published_radius,
    total_radius,
)
from undertow.release.plan.timeline import (
    Node,
    Timeline,
    node_view,
    running_nodes,
    running_total,
)
from undertow.spaces.base import View

if TYPE_CHECKING:
    from undertow.release.document.release_document import QueryPart, ReleaseDocument


@dataclass(frozen=True, slots=True)
class Task:
    """One query to the engine.

    Parameters
    ----------
    job : Job
        What is asked.
    slice : Slice or None
        Which times it reads.
    view : View
        What that is to the accounting.
    node : Node or None
        Of a running total.
    """

    job: Job
    slice: Slice | None
    view: View
    node: Node | None = None


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """A query with its noise.

    Parameters
    ----------
    name, select : str
        As in the release file.
    tasks : tuple of Task
        What the engine is asked in this run: one, for a running total that of its node.
    encoding : Encoding
        The whole numbers of a cell.
    share : Share
        The noise of these numbers and what it costs.
    keys : Share or None
        The noise of the numbers of units that choose keys; `share` itself where these
        numbers are the answer.
    threshold : int or None
        From which noisy number of units a key is published.
    cells : int or None
        Number of cells; None where keys are discovered.
    confidence, beta : float
        Of the intervals, and one minus it.
    consistent : tuple of str
        What is done after the noise.
    run : int or None
        Number of the run of a running total.
    unit : ClaimUnit
        What one step of the claims is.
    """

    name: str
    select: Select
    tasks: tuple[Task, ...]
    encoding: Encoding
    share: Share
    keys: Share | None
    threshold: int | None
    cells: int | None
    confidence: float
    beta: float
    consistent: tuple[str, ...]
    run: int | None
    unit: ClaimUnit

    @property
    def kind(self) -> SelectKind:
        """What is true of every query that asks for the same."""
        return KINDS[self.select]

    @property
    def job(self) -> Job:
        """The job of the first task."""
        return self.tasks[0].job

    @property
    def slice(self) -> Slice | None:
        """The times that the first task reads."""
        return self.tasks[0].slice

    @property
    def mechanism(self) -> str:
        """The noise in words."""
        return self.noise.in_steps

    @property
    def noise(self) -> LatticeNoise:
        """The noise of a released number, with the step that it is drawn in."""
        return LatticeNoise(self.share.noise, self.step)

    @property
    def step(self) -> Fraction:
        """What a whole number of noise stands for: rows, units, or of the column.

        The step of the lattice for sums and means, its square for variances.
        """
        return self.encoding.step

    @property
    def nodes(self) -> int:
        """How many noisy numbers the answer of this run adds up."""
        return 1 if self.run is None else len(running_nodes(self.run))

    @property
    def expected_error(self) -> dict[str, Any]:
        """The error of a cell, before any data is read.

        `deviation` is that of the noise in a released number, in the unit of the column
        (its square for variances); a running total adds up several nodes, whose own is
        `node_deviation`. `step` is what a whole number of noise stands for. `noise` is
        the law of a node as data, and `mechanism` the same in words.
        `half_width` is that of the interval in the answer, before it is made
        consistent; of discovered numbers of units, that of its upper part, because the
        lower end is 1 near the threshold. Where `unit` says so it is divided by the
        noisy number of rows, and then a bound to first order.
        """
        nodes, (width, unit) = self.nodes, self._half_width()
        deviation = self.share.noise.deviation * float(self.step)
        return {
            "name": self.name,
            "select": self.select,
            "cells": self.cells,
            "loss": [share.loss.to_dict() for share in self.shares],
            "mechanism": self.mechanism,
            "noise": self.noise.to_dict(),
            "step": float(self.step),
            "deviation": deviation * math.sqrt(nodes),
            "node_deviation": None if self.run is None else deviation,
            "half_width": width,
            "unit": unit,
            "confidence": self.confidence,
            "threshold": self.threshold,
        }

    def _half_width(self) -> tuple[float, str]:
        noise = self.share.noise
        if isinstance(self.encoding, OneNumber):
            return self.encoding.width(self.radius)
        return self.encoding.half_width(noise, self.beta)

    @property
    def radius(self) -> int:
        """How far the interval of one released whole number reaches, in steps.

        The plan and the answer both take it from here.
        """
        noise = self.share.noise
        if self.run is not None:
            return total_radius(noise, self.nodes, beta=self.beta)
        if self.keys is self.share:
            return published_radius(noise, beta=self.beta)
        return noise.radius(self.beta)

    @property
    def shares(self) -> tuple[Share, ...]:
        """The noise of everything the query releases, that of its keys first."""
        if self.keys is None or self.keys is self.share:
            return (self.share,)
        return (self.keys, self.share)

    @property
    def releases(self) -> tuple[Release, ...]:
        """What this run releases, for the composition engine."""
        views = [task.view for task in self.tasks]
        return tuple(
            release
            for share in self.shares
            for release in share.releases(views, self.unit)
        )

    def answer(
        self,
        aggregates: Aggregates | Sequence[Aggregates],
        *,
        source: NoiseSource | None = None,
        earlier: Mapping[str, Sequence[Any]] | None = None,
        settle: bool = True,
    ) -> QueryAnswer:
        """Draw the noise and return the table of answers.

        Parameters
        ----------
        aggregates : Aggregates or sequence of Aggregates
            What the engine returned for each task.
        source : NoiseSource, optional
            Operating-system entropy by default.
        earlier : mapping, optional
            Stored nodes of earlier runs of a running total.
        settle : bool
            Whether to make the answers consistent; else they are as the noise left
            them, for :meth:`settled`.

        Notes
        -----
        Every call draws fresh noise and is a release of its own: charge before, call
        once, and store what comes back.
        """
        given = [aggregates] if isinstance(aggregates, Aggregates) else list(aggregates)
        if len(given) != len(self.tasks):
            raise PlanError(
                f"query {self.name!r} must get {len(self.tasks)} results of the "
                f"engine, got {len(given)}."
            )
        noised = [self._noised(result, source) for result in given]
        if self.tasks[0].node is not None:
            found = self._running(noised, earlier or {})
        else:
            found = self._single(noised[0], given[0].kinds)
        return self.settled(found) if settle else found

    def settled(self, answer: QueryAnswer) -> QueryAnswer:
        """Make every answer consistent by itself, as the query asks."""
        rows, notes = settle_rows(
            answer.rows, self.consistent, non_negative=self.encoding.non_negative
        )
        return replace(answer, rows=rows, notes=(*answer.notes, *notes))

    def _single(self, noised: Noised, kinds: Sequence[str]) -> QueryAnswer:
        if self.keys is self.share:
            rows = self._published(noised)
        else:
            noise = self.share.noise
            rows = answer_table(
                noised, encoding=self.encoding, noise=noise, beta=self.beta
            )
        return self._table(rows, simulated=noised.simulated, kinds=kinds)

    def _published(self, noised: Noised) -> list[tuple[Any, ...]]:
        """Return numbers of units that were chosen by their own noise."""
        assert self.threshold is not None
        found = published_intervals(
            [int(row[0]) for row in noised.numbers],
            noise=self.share.noise,
            threshold=self.threshold,
            beta=self.beta,
        )
        pairs = zip(noised.cells, found, strict=True)
        return [(*cell, *interval) for cell, interval in pairs]

    def _noised(self, result: Aggregates, source: NoiseSource | None) -> Noised:
        return add_noise(
            result,
            encoding=self.encoding,
            share=self.share,
            keys=self.keys,
            threshold=self.threshold,
            source=source,
        )

    def _running(
        self, noised: Sequence[Noised], earlier: Mapping[str, Sequence[Any]]
    ) -> QueryAnswer:
        assert self.run is not None
        fresh = {
            str(task.node): part.numbers
            for task, part in zip(self.tasks, noised, strict=True)
        }
        known = {**stored_nodes(earlier), **fresh}
        flat = {name: numbers[:, 0].tolist() for name, numbers in known.items()}
        totals = running_total(flat, self.run).reshape(-1, 1)
        assert isinstance(self.encoding, OneNumber)
        estimates = self.encoding.around(totals, self.radius)
        pairs = zip(noised[0].cells, estimates, strict=True)
        rows = [(*cell, *found) for cell, found in pairs]
        table = self._table(rows, simulated=any(part.simulated for part in noised))
        stored = {name: numbers.tolist() for name, numbers in fresh.items()}
        return replace(table, nodes=stored)

    def _table(
        self,
        rows: list[tuple[Any, ...]],
        *,
        simulated: bool,
        kinds: Sequence[str] = (),
    ) -> QueryAnswer:
        told = [self.encoding.note] if self.encoding.note else []
        if self.threshold is not None:
            told.append(
                f"keys with a noisy number of units below {self.threshold} are left out"
            )
        return QueryAnswer(
            self.name,
            answer_columns(self.job.by, self.encoding),
            rows,
            self.confidence,
            tuple(told),
            simulated,
            self.share.noise.deviation,
            types=answer_types(
                self.job, self.encoding, kinds=kinds, consistent=self.consistent
            ),
        )


# What one query of a release file means: measures, bounds, and what wants noise.


@dataclass(frozen=True, slots=True)
class QueryShape:
    """A query before its noise is known.

    Parameters
    ----------
    name, select : str
        As in the release file.
    job : Job
        What the engine is asked.
    encoding : Encoding
        The whole numbers of a cell.
    contribution : Contribution
        How much of a unit counts.
    cells : int or None
        Number of cells, bins counted; None where keys are discovered.
    share : Fraction or None
        Part of the budget, if stated.
    consistent : tuple of str
        What is done after the noise.
    running : bool
        Whether totals run on.
    """

    name: str
    select: Select
    job: Job
    encoding: Encoding
    contribution: Contribution
    cells: int | None
    share: Fraction | None
    consistent: tuple[str, ...]
    running: bool

    @property
    def discovers(self) -> bool:
        """Whether keys are discovered."""
        return self.cells is None

    @property
    def keys_only(self) -> bool:
        """Whether the numbers of units that choose the keys are the answer."""
        return self.discovers and isinstance(self.encoding, Units)

    @property
    def keys_name(self) -> str:
        """The name of the release that chooses keys."""
        return f"{self.name} (keys)"

    @property
    def size_reach(self) -> Reach:
        """How far a unit moves counts of rows or units, for equal relative error."""
        if isinstance(self.encoding, Units):
            return self.contribution.unit_reach()
        return self.contribution.row_reach()

    @property
    def size_cells(self) -> int:
        """The number of answers, for equal relative error; a unit's if discovered.

        The candidates of a quantile are not answers: it is one per group.
        """
        if self.cells is None:
            return self.contribution.unit_reach().touched
        if isinstance(self.encoding, Quantiles):
            return self.cells // self.encoding.bins
        return self.cells

    def needs(self, weight: Fraction, views: tuple[View, ...]) -> list[Need]:
        """Return what wants noise, the weight shared where keys are discovered."""
        if self.keys_only:
            reach = self.contribution.unit_reach()
            return [Need(self.keys_name, reach, weight, views, keys=True)]
        reach = self.encoding.reach(self.contribution)
        if not self.discovers:
            return [Need(self.name, reach, weight, views)]
        units = self.contribution.unit_reach()
        return [
            Need(self.keys_name, units, weight / 2, views, keys=True),
            Need(self.name, reach, weight / 2, views),
        ]

    def tasks(self, timeline: Timeline) -> tuple[Task, ...]:
        """Return what the engine is asked in this run."""
        if not self.running:
            return (Task(self.job, timeline.slice, timeline.view()),)
        return tuple(
            Task(
                self.job,
                timeline.node_slice(node),
                node_view(node, windows_per_run=1),
                node,
            )
            for node in timeline.nodes()
        )


def query_shape(
    query: QueryPart, *, document: ReleaseDocument, timeline: Timeline
) -> QueryShape:
    """Read one query.

    Raises
    ------
    PlanError
        If the bounds do not fit the query.
    """
    encoding = _encoding(query)
    cells = _cells(query, encoding)
    contribution = _contribution(document, timeline, cells=cells)
    if query.discover and encoding.bins > 1:
        raise PlanError(
            f"query {query.name!r} must list its keys, got keys to discover for a "
            f"{query.select}; discover them with a count first."
        )
    if query.discover and query.running:
        raise PlanError(
            f"query {query.name!r} must list its keys, got keys to discover for a "
            "running total, which adds up the same keys in every run; discover them "
            "with a release of their own first."
        )
    return QueryShape(
        query.name,
        query.select,
        _job(query, encoding, document=document),
        encoding,
        contribution,
        cells,
        query.share,
        tuple(query.consistent),
        query.running,
    )


def _encoding(query: QueryPart) -> Encoding:
    return _ENCODINGS[query.select](query)


def _value(query: QueryPart, *, added: bool = False) -> Value:
    assert query.column is not None
    assert query.low is not None
    assert query.high is not None
    return value_lattice(query.column, low=query.low, high=query.high, added=added)


def _cuts(query: QueryPart) -> tuple[Fraction, ...]:
    assert query.cuts is not None
    return query.cuts


_ENCODINGS: dict[Select, Callable[[QueryPart], Encoding]] = {
    "count": lambda query: Rows(),
    "count_distinct": lambda query: Units(),
    "sum": lambda query: Sum(_value(query, added=True)),
    "mean": lambda query: Mean(_value(query)),
    "variance": lambda query: Variance(_value(query)),
    "quantile": lambda query: Quantiles(_cuts(query), query.quantiles),
    "histogram": lambda query: Histogram(_cuts(query)),
}


def _cells(query: QueryPart, encoding: Encoding) -> int | None:
    keys = query.public_keys
    if keys is None:
        return None
    return Grid(query.by, keys).size * encoding.bins


def _contribution(
    document: ReleaseDocument, timeline: Timeline, *, cells: int | None
) -> Contribution:
    """Return the bounds on what one unit, or one unit in one window, counts."""
    if timeline.kind == "event" or document.source.unit is None:
        return Contribution(1, 1, 1, cells)
    bounds = document.bounds
    return Contribution(
        bounds.rows_per_unit, bounds.groups_per_unit, bounds.rows_per_group, cells
    )


def _job(query: QueryPart, encoding: Encoding, *, document: ReleaseDocument) -> Job:
    keys = query.public_keys
    measures: tuple[Measure, ...] = encoding.measures
    if keys is None and "units" not in measures:
        measures = (*measures, "units")
    binned = isinstance(encoding, Histogram)
    each = document.source.kind == "event" or document.source.unit is None
    return Job(
        query.name,
        measures,
        query.where,
        query.by,
        None if keys is None else Grid(query.by, keys),
        getattr(encoding, "value", None),
        encoding.cuts if isinstance(encoding, Histogram) else None,
        query.column if binned else None,
        None if each else document.bounds.groups_per_unit,
        None if each else document.bounds.rows_per_group,
    )
