"""Contribution bounding, pushed down: at most so many rows of a unit are kept.

Rows are kept in a keyed order inside the engine. Only units above the bound are put in
order; if there are none, nothing is. How long that takes depends on the data: running
times are not protected.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from undertow.release._extras import load
from undertow.release.source import Source

__all__ = ["Kept", "Order", "keep_first", "window_start"]

ibis = load("ibis")

Order = Callable[[Any], list[Any]]
"""Returns the columns by which the rows of an Ibis table are ordered."""

_COUNT, _RANK = "undertow_count", "undertow_rank"
_PLACE, _PLACES = "undertow_place", "undertow_places"
_LIMIT, _TIED, _SLOTS = "undertow_limit", "undertow_tied", "undertow_slots"
# DuckDB keeps so many least values per group in memory; above, groups are sorted.
_MOST_LEAST = 100_000


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows kept, and whether any unit had to be put in order for that."""

    table: Any
    ranked: bool


def window_start(epoch: Any, length: int) -> Any:
    """Return the start of the window of a time, in microseconds since 1970."""
    step = ibis.literal(length, type="int64")
    return epoch - ((epoch % step) + step) % step


def keep_first(
    table: Any, most: int, *, within: Sequence[str], order: Order, source: Source
) -> Kept:
    """Keep the first `most` rows of each group in the given order.

    Parameters
    ----------
    table : Ibis table
        The rows; nothing in `within` is missing.
    most : int
        Rows kept per group.
    within : sequence of str
        The columns whose values make a group: the unit, and what it is bounded in.
    order : callable
        Returns the columns of the order of a table: whole numbers first, then what
        breaks their ties. Rows alike in all of them are interchangeable.
    source : Source
        Where the table lives.

    Returns
    -------
    Kept
        The table itself if no group is above the bound.

    Notes
    -----
    PostgreSQL and Spark number the rows of each group, in the statement that reads
    them: what others write between two statements is bounded as well. DuckDB would have
    to hold them in memory for that; it finds the place of the last row kept in each
    group instead, by an aggregate that holds `most` numbers per group, and reads the
    table again.
    """
    order(table)  # types that have no order are refused whether or not it is needed
    groups = table.select(*within)
    counts = groups.group_by(list(within)).aggregate(**{_COUNT: groups.count()})
    count = counts[_COUNT]
    above = count > most
    totals = counts.aggregate(
        rows=count.sum().cast("int64"), above=count.sum(where=above).cast("int64")
    )
    [found] = source.execute(totals).to_pylist()
    if not found["above"] and source.steady:
        return Kept(table, False)
    mostly = 2 * (found["above"] or 0) > (found["rows"] or 0)
    heavy = None if mostly else counts.filter(above).select(*within)
    if source.backend == "duckdb" and most < _MOST_LEAST:
        return Kept(_below_limits(table, most, within, order, heavy, source), True)
    if heavy is None:
        return Kept(_numbered(table, most, within, order(table)), True)
    rest = table.anti_join(heavy, list(within))
    few = table.semi_join(heavy, list(within))
    few = _numbered(few, most, within, order(few))
    return Kept(rest.union(few, distinct=False), True)


def _numbered(table: Any, most: Any, within: Sequence[str], order: list[Any]) -> Any:
    """Keep rows whose number in their group is at most `most`."""
    group = [table[name] for name in within]
    number = ibis.row_number().over(ibis.window(group_by=group, order_by=order))
    numbered = table.mutate(**{_RANK: number})
    most = numbered[_SLOTS] if most is None else most
    # Ibis numbers rows from 0.
    return numbered.filter(numbered[_RANK] < most).select(*table.columns)


@cache
def _least() -> Any:
    """Return DuckDB's aggregate of the n least values."""
    dt = load("ibis.expr.datatypes")

    # Ibis reads the types off the annotations; an argument without one may be of any.
    def least(value, number):  # type: ignore[no-untyped-def]
        ...

    least.__annotations__ = {"return": dt.Array(dt.int64)}
    return ibis.udf.agg.builtin(least, name="min")


def _limits(table: Any, most: int, within: Sequence[str], place: Any) -> Any:
    """Return, for each group above the bound, the place of its last row kept.

    A group is tied if the next row has the same place; of the rows at that place only
    as many as there are slots are kept.
    """
    groups = {f"{_PLACE}{i}": table[name] for i, name in enumerate(within)}
    rows = table.select(**groups, **{_PLACE: place})
    least = _least()(rows[_PLACE], most + 1)
    found = rows.group_by(list(groups)).aggregate(**{_PLACES: least.sort()})
    found = found.filter(found[_PLACES].length() > most)
    places = found[_PLACES]
    limit = places[most - 1]
    return found.select(
        *groups,
        **{
            _LIMIT: limit,
            _TIED: places[most] == limit,
            _SLOTS: most - places.index(limit),
        },
    )


def _below_limits(
    table: Any,
    most: int,
    within: Sequence[str],
    order: Order,
    heavy: Any,
    source: Source,
) -> Any:
    """Keep the rows up to the last place kept in their group."""
    above = table if heavy is None else table.semi_join(heavy, list(within))
    limits = source.kept(_limits(above, most, within, order(above)[0]))
    joined = _with_limits(table, limits, within, order, how="left")
    place, limit, tied = joined[_PLACE], joined[_LIMIT], joined[_TIED]
    clear = limit.isnull() | (place < limit) | ((place == limit) & ~tied)
    kept = joined.filter(clear).select(*table.columns)
    [found] = source.execute(limits.aggregate(tied=limits[_TIED].any())).to_pylist()
    if not found["tied"]:
        return kept
    # Read again for the few tied groups: as one part of two readers of the join it
    # would be held in memory whole.
    few = _with_limits(table, limits.filter(limits[_TIED]), within, order, how="inner")
    alike = few.filter(few[_PLACE] == few[_LIMIT]).select(*table.columns, _SLOTS)
    ties = order(alike)[1:] or [alike[_SLOTS]]
    last = _numbered(alike, None, within, ties).select(*table.columns)
    return kept.union(last, distinct=False)


def _with_limits(
    table: Any, limits: Any, within: Sequence[str], order: Order, *, how: str
) -> Any:
    """Return the rows with their places and the limits of their groups."""
    placed = table.mutate(**{_PLACE: order(table)[0]})
    same = [placed[n] == limits[f"{_PLACE}{i}"] for i, n in enumerate(within)]
    return placed.join(limits, same, how=how)
