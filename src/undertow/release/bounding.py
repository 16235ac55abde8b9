"""Contribution bounding, pushed down: at most so many rows of a unit are kept.

Rows are kept in a keyed order inside the engine. The statements are the same whatever
the rows are, and none of their tables is ever empty on account of them: no unit, row or
copy of a row makes a step necessary that was not taken before. Running times are not
protected, but no single row decides how long a release takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from undertow.release._extras import load
from undertow.release.keyed import PRIME, KeyedOrder
from undertow.release.source import Source

__all__ = ["Kept", "keep_first", "window_start"]

ibis = load("ibis")

_COUNT, _RANK = "undertow_count", "undertow_rank"
_PLACE, _PLACES = "undertow_place", "undertow_places"
_LIMIT = "undertow_limit"
_COPY, _GROUP = "undertow_copy", "undertow_group"
# DuckDB keeps so many least values per group in memory; above, groups are sorted.
_MOST_LEAST = 100_000
_NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Kept:
    """The rows kept, and whether the engine holds them already."""

    table: Any
    held: bool


def window_start(epoch: Any, length: int) -> Any:
    """Return the start of the window of a time, in microseconds since 1970."""
    step = ibis.literal(length, type="int64")
    return epoch - ((epoch % step) + step) % step


def keep_first(
    table: Any, most: int, *, within: Sequence[str], order: KeyedOrder, source: Source
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
    order : KeyedOrder
        Their order; copies of a row are kept or not by themselves.
    source : Source
        Where the table lives.

    Returns
    -------
    Kept
        On DuckDB they are held, unless `order` is distinct.

    Notes
    -----
    PostgreSQL and Spark number the rows of each group, in the statement that reads
    them: what others write between two statements is bounded as well. DuckDB would have
    to hold them in memory for that; it finds the place of the last row kept in each
    group above the bound instead, by an aggregate that holds `most` numbers per group,
    and reads the table again. Before, it looks for places that several rows of a group
    have. A view or an expression, which need not give the same rows wherever it stands,
    is read at one place of one statement on PostgreSQL and Spark; on DuckDB `table` is
    a copy.
    """
    # Types that have no order are refused whether or not it is needed.
    order.placed(table, _PLACE)
    if source.backend == "duckdb" and most < _MOST_LEAST:
        return _below_limits(table, most, within, order, source)
    return Kept(_numbered(table, most, within, order), held=False)


def _numbered(table: Any, most: int, within: Sequence[str], order: KeyedOrder) -> Any:
    """Keep rows whose number in their group is at most `most`."""
    placed = order.placed(table, _PLACE)
    if not order.distinct:
        placed = _moved(placed, list(within), order)
    first = [placed[_PLACE], *order.ties(placed)]
    numbered = placed.mutate(**{_RANK: _number(placed, within, first)})
    # Ibis numbers rows from 0.
    return numbered.filter(numbered[_RANK] < most).select(*table.columns)


def _number(table: Any, within: Sequence[str], order: list[Any]) -> Any:
    group = [table[name] for name in within]
    return ibis.row_number().over(ibis.window(group_by=group, order_by=order))


def _moved(placed: Any, within: Sequence[str], order: KeyedOrder) -> Any:
    """Give the rows of a group that share a place places of their own."""
    copy = _number(placed, [*within, _PLACE], order.ties(placed))
    counted = placed.mutate(**{_COPY: copy})
    place = order.place_of_copy(counted[_PLACE], counted[_COPY])
    return counted.mutate(**{_PLACE: place}).drop(_COPY)


@cache
def _least() -> Any:
    """Return DuckDB's aggregate of the n least values."""
    dt = load("ibis.expr.datatypes")

    # Ibis reads the types off the annotations; an argument without one may be of any.
    def least(value, number):  # type: ignore[no-untyped-def]
        ...

    least.__annotations__ = {"return": dt.Array(dt.int64)}
    return ibis.udf.agg.builtin(least, name="min")


def _any(table: Any, within: Sequence[str], source: Source) -> Any:
    """Return one of the groups; of a table without rows, one that matches none.

    DuckDB 2.0 never ends a statement that reads a repeated expression up to a limit and
    has little memory, so that this is an aggregate, and a statement by itself.
    """
    group = ibis.struct({name: table[name] for name in within})
    found = table.aggregate(**{_GROUP: group.arbitrary()})
    return source.kept(found.select(**{name: found[_GROUP][name] for name in within}))


def _ordered(
    table: Any, most: int, within: Sequence[str], one: Any, source: Source
) -> Any:
    """Return the groups that are put in order: those above the bound, and any one.

    That one may be one of them. It is there so that the first group to pass the bound
    takes no way that the others did not go.
    """
    groups = table.select(*within)
    counts = groups.group_by(list(within)).aggregate(**{_COUNT: groups.count()})
    above = counts.filter(counts[_COUNT] > most).select(*within)
    # What was held has the engine's own types, which Ibis may name otherwise.
    return source.kept(above.union(one.cast(above.schema()), distinct=False))


def _limits(places: Any, most: int) -> Any:
    """Return, for each group, the first place that is not kept.

    It is the one after the last row that fits, or that row's own if the next row has it
    too: rows that share it by chance are left out. Of a group that is not above the
    bound all are kept.
    """
    groups = [name for name in places.columns if name != _PLACE]
    least = _least()(places[_PLACE], most + 1)
    found = places.group_by(groups).aggregate(**{_PLACES: least.sort()})
    last, following = found[_PLACES][most - 1], found[_PLACES][most]
    limit = (last == following).ifelse(last, last + 1)
    whole = found[_PLACES].length() <= most
    every = ibis.literal(PRIME).cast("int64")
    return found.select(*groups, **{_LIMIT: whole.ifelse(every, limit)})


def _below_limits(
    table: Any, most: int, within: Sequence[str], order: KeyedOrder, source: Source
) -> Kept:
    """Keep the rows up to the last place kept in their group."""
    placed = order.placed(_grouped(table, within), _PLACE)
    groups = [name for name in placed.columns if name.startswith(_GROUP)]
    one = _any(table, within, source)
    ordered = _ordered(table, most, within, one, source)
    few = placed.semi_join(ordered, list(within))
    places = few.select(*groups, _PLACE)
    if order.distinct:
        limits = source.kept(_limits(places, most))
        joined = placed.left_join(limits, groups)
        return Kept(_up_to(joined).select(*table.columns), held=False)
    shared = _shared(places, one.rename(dict(zip(groups, within, strict=True))), source)
    alone = places.anti_join(shared, [*groups, _PLACE])
    copies = _copies(shared, groups, order).cast(places.schema())
    limits = source.kept(_limits(alone.union(copies, distinct=False), most))
    # Rows that share a place are read with the others, and looked at afterwards.
    joined = placed.left_join(limits, groups)
    again = joined.left_join(shared, [*groups, _PLACE], rname="{name}_shared")
    first = again.filter(_inside(again) | again[_COUNT].notnull())
    short = {_PLACE: first[_PLACE].cast("int32"), _COPY: first[_COUNT].notnull()}
    held = source.kept(first.select(*table.columns, **short))
    some = _grouped(held.filter(held[_COPY]).drop(_COPY), within)
    some = some.mutate(**{_PLACE: some[_PLACE].cast("int64")})
    moved = _moved(some, groups, order).left_join(limits, groups)
    last = source.kept(_up_to(moved).select(*table.columns))
    kept = held.filter(~held[_COPY]).select(*table.columns)
    return Kept(kept.union(last, distinct=False), held=True)


def _grouped(table: Any, within: Sequence[str]) -> Any:
    """Give the columns of a group names of their own, for joins."""
    return table.mutate(**{f"{_GROUP}{i}": table[n] for i, n in enumerate(within)})


def _inside(joined: Any) -> Any:
    return joined[_LIMIT].isnull() | (joined[_PLACE] < joined[_LIMIT])


def _up_to(joined: Any) -> Any:
    """Keep the rows that are not beyond the limit of their group."""
    return joined.filter(_inside(joined))


def _shared(places: Any, one: Any, source: Source) -> Any:
    """Return the places of several rows of one group, and of how many; and no place.

    No row has that one, and no copies. It is there so that the first row that is
    alike another takes no way that the others did not go.
    """
    groups = [*one.columns, _PLACE]
    counts = places.group_by(groups).aggregate(**{_COUNT: places.count()})
    several = counts.filter(counts[_COUNT] > 1)
    nowhere = ibis.literal(_NOWHERE).cast("int64")
    none = one.mutate(**{_PLACE: nowhere, _COUNT: nowhere}).cast(several.schema())
    return source.kept(several.union(none, distinct=False))


def _copies(shared: Any, groups: list[str], order: KeyedOrder) -> Any:
    """Return the places of all rows that share one."""
    several = ibis.range(shared[_COUNT]).unnest()  # none if it is not positive
    copies = shared.select(*groups, _PLACE, **{_COPY: several})
    copies = copies.filter(copies[_PLACE] > _NOWHERE)
    place = order.place_of_copy(copies[_PLACE], copies[_COPY])
    return copies.select(*groups, **{_PLACE: place})
