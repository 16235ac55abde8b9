"""What one query of a release file means: measures, bounds, and what wants noise."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from undertow.errors import PlanError
from undertow.release.averages import Mean, Variance
from undertow.release.budget import Need
from undertow.release.job import Grid, Job, Measure
from undertow.release.measure import Encoding, Rows, Sum, Units, value_lattice
from undertow.release.quantile import Histogram, Quantiles
from undertow.release.query_plan import Task
from undertow.release.running import node_view
from undertow.release.sensitivity import Contribution, Reach
from undertow.release.timeline import Timeline
from undertow.spaces.base import View

if TYPE_CHECKING:
    from undertow.release.document import ReleaseDocument
    from undertow.release.document_query import QueryPart

__all__ = ["QueryShape", "query_shape"]


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
    select: str
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
    if query.select == "count":
        return Rows()
    if query.select == "count_distinct":
        return Units()
    if query.select == "histogram":
        assert query.cuts is not None
        return Histogram(query.cuts)
    if query.select == "quantile":
        assert query.cuts is not None
        return Quantiles(query.cuts, query.quantiles)
    assert query.column is not None
    assert query.low is not None
    assert query.high is not None
    added = query.select == "sum"
    value = value_lattice(query.column, low=query.low, high=query.high, added=added)
    if added:
        return Sum(value)
    return Mean(value) if query.select == "mean" else Variance(value)


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
