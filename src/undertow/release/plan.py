"""From a release file to jobs, noise and costs, before any data is read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from itertools import chain
from typing import TYPE_CHECKING

from undertow.correlation import Model
from undertow.errors import AssumptionError
from undertow.release.allotment import share_weights
from undertow.release.budget import Need, Share, calibrate_noise, composed_within
from undertow.release.data_model import stated_model
from undertow.release.discovery import key_threshold
from undertow.release.plan_query import QueryShape, query_shape
from undertow.release.plan_shown import threat_at
from undertow.release.promise import Promise, settle_promise
from undertow.release.query_plan import QueryPlan
from undertow.release.release_plan import ReleasePlan
from undertow.release.sanity import SanityCount, sanity_count, split_promise
from undertow.release.timeline import Timeline
from undertow.risk import Threat
from undertow.spaces.base import Granularity, View

if TYPE_CHECKING:
    from undertow.release.document import ReleaseDocument

__all__ = ["ReleasePlan", "plan_release"]

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
    >>> from undertow.release.document import release_from_mapping
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
