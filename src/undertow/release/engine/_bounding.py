"""Contribution bounding, pushed down: at most so many rows of a unit are kept.

Rows are kept in a keyed order inside the engine, the same on every engine. The
statements are the same whatever the rows are, and none of their tables is ever empty on
account of them: no unit, row or copy of a row makes a step necessary that was not taken
before. Running times are not protected, but no single row decides how long a release
takes.

Which rows of a unit are kept is no secret and needs none: every promise holds for every
fixed key, because what is kept of a unit depends on its own rows and the key alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from hashlib import shake_256
from typing import Any

from undertow.errors import PlanError
from undertow.release._extras import load
from undertow.release.engine._dialect import (
    Backend,
    double,
    enclosed,
    epoch_days,
    epoch_us,
    long,
    numbers_of_text,
    truth,
    type_name,
)
from undertow.release.source.table import Source

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


# A keyed order of rows: which of a unit's rows are kept, the same on every engine.
#
# Each column becomes a whole number :math:`x = x_0 + 2^{31} x_1 + 2^{62} x_2`; text
# becomes two numbers of 28 bits from its MD5 digest after a secret. With :math:`p =
# 2^{31} - 1` and secret coefficients,
#
# .. math:: h = \sum_c (a_{c0} x_{c0} + a_{c1} x_{c1} + a_{c2} x_{c2}) \bmod p, \qquad
#    g = b_3 h^3 + b_2 h^2 + b_1 h + b_0 \bmod p,
#
# and rows are ordered by :math:`g`, then by their values. Two distinct rows collide in
# :math:`h` with probability about :math:`2^{-31}`; the values :math:`g` of any four
# rows that do not are independent and uniform up to about :math:`2^{-31}`. Of several
# rows of a unit at one place, mostly copies of each other, number j goes to
#
# .. math:: g(h'), \qquad h' = c g + d j \bmod p, \quad j \ge 1,
#
# by another such polynomial, so that every row is kept with the same probability,
# however many are alike. Only 64-bit sums, products below :math:`2^{63}` and remainders
# are used, which all engines compute alike.
#
# Which rows of a unit are kept is no secret and needs none: every promise holds for
# every fixed key, because what is kept of a unit depends on its own rows and the key
# alone. The key makes the choice one that the data cannot have been arranged for.

PRIME = 2**31 - 1
_LIMB = 2**31 - 1
_MOST_LIMBS = 3
_MOST = 2**63 - 1
_SHORT_BYTES = 4
_FLOAT_LIMIT = 2.0**42
_FLOAT_SCALE = 2.0**20
_DECIMAL_LIMIT = 10**11
_DECIMAL_LEAST = Decimal("1e-30")
_DECIMAL_PLACES = 6


def coefficients(key: bytes, label: str) -> Iterator[int]:
    """Yield secret numbers below the prime, expanded from the key."""
    counter = 0
    while True:
        block = shake_256(key + f"|{label}|{counter}".encode()).digest(8)
        yield 1 + int.from_bytes(block, "big") % (PRIME - 1)
        counter += 1


def text_secret(key: bytes) -> str:
    """Return the secret that goes before texts, expanded from the key."""
    return shake_256(key + b"|text").hexdigest(16)


@dataclass(frozen=True, slots=True)
class KeyedOrder:
    """The keyed order of the rows of a table.

    Parameters
    ----------
    columns : tuple of str
        What the order depends on, in an agreed order.
    key : bytes
        The secret of this run.
    backend : Backend
        The engine.
    label : str
        Orders of different labels are independent.
    distinct : bool
        Whether no two rows are alike in all columns.
    """

    columns: tuple[str, ...]
    key: bytes
    backend: Backend
    label: str
    distinct: bool = False

    def placed(self, table: Any, name: str) -> Any:
        """Return the table with the place of each row, a whole number below 2^31 - 1.

        It knows floating point to 2^-20 and decimals to six places.

        Raises
        ------
        PlanError
            If a column is of a type that has no order.
        """
        source = coefficients(self.key, self.label)
        mix = coefficients(self.key, f"{self.label}/mix")
        parts = [_parts(table[n], self.key, self.backend) for n in self.columns]
        # In two steps: a polynomial would write its argument out three times.
        summed = table.mutate(**{name: _sum(parts, source)})
        return summed.mutate(**{name: _mixed(summed[name], mix)})

    def place_of_copy(self, place: Any, copy: Any) -> Any:
        """Return the place of the copy of this number, from 0, of rows at a place."""
        source = coefficients(self.key, f"{self.label}/copies")
        c, d = _literals(source, 2)
        copy = long(copy, self.backend)
        x = (place * c + copy * d) % _big(PRIME)
        return (copy == _big(0)).ifelse(place, _mixed(x, source))

    def ties(self, table: Any) -> list[Any]:
        """Return the columns that order rows of one place, text last."""
        columns = [table[name] for name in self.columns]
        return sorted(columns, key=lambda column: column.type().is_string())


def _mixed(h: Any, source: Iterator[int]) -> Any:
    """Return a secret polynomial of a number: any four values are independent."""
    b0, b1, b2, b3 = _literals(source, 4)
    p = _big(PRIME)
    return (((h * b3 + b2) % p * h + b1) % p * h + b0) % p


def _big(value: int) -> Any:
    return ibis.literal(value, type="int64").cast("int64")


def _literals(source: Iterator[int], count: int) -> list[Any]:
    return [_big(next(source)) for _ in range(count)]


def _sum(parts: list[_Parts], source: Iterator[int]) -> Any:
    """Return the keyed sum; a missing or very large number has a place of its own.

    No term is written twice: engines find what an expression repeats, but not inside of
    the conditions here.
    """
    total, room = _big(next(source)), _MOST - PRIME
    remainders = []
    for part in parts:
        missing, large, *factors = (next(source) for _ in range(2 + _MOST_LIMBS))
        value, most = part.weighed(factors)
        otherwise = missing
        if part.regular is not None:
            value = part.regular.ifelse(value, _big(large))
            value = part.missing.ifelse(_big(missing), value)
            otherwise = large
        if most > room:
            remainders.append(total % _big(PRIME))
            total, room = _big(0), _MOST
        # A row without a place would escape every limit; no type of column gives one.
        value = value.fill_null(_big(otherwise))
        total, room = total + value, room - max(most, PRIME)
    return sum(remainders, total) % _big(PRIME)


@dataclass(frozen=True, slots=True)
class _Parts:
    """Numbers of 31 bits, whether there are any, and whether they say all there is.

    The upper ones of a number that fits 32 bits are those of its sign, and `short`.
    """

    limbs: list[Any]
    missing: Any
    regular: Any = None
    short: bool = False

    def weighed(self, factors: Sequence[int]) -> tuple[Any, int]:
        """Return the sum of limbs times factors, and the most it can be."""
        if self.short:
            low, sign = self.limbs
            upper = (_LIMB * factors[1] + 3 * factors[2]) % PRIME
            return low * _big(factors[0]) + (sign & _big(upper)), _LIMB * PRIME
        terms = list(zip(self.limbs, factors, strict=False))
        value = sum((limb * _big(factor) for limb, factor in terms), _big(0))
        return value, (min(len(terms), 2) * _LIMB + 3) * PRIME


def _parts(column: Any, key: bytes, backend: Backend) -> _Parts:
    kind, missing = column.type(), column.isnull()
    if kind.is_boolean():
        return _Parts([truth(column)], missing)
    if kind.is_string() or kind.is_uuid():
        text = column if kind.is_string() else column.cast("string")
        return _Parts(numbers_of_text(text, text_secret(key), backend), missing)
    if kind.is_date():
        days = epoch_days(column)
        return _Parts(_limbs(days)[:1], missing, days.notnull())
    if kind.is_timestamp():
        number = epoch_us(column, backend)
        return _Parts(_limbs(number)[:2], missing, number.notnull())
    if kind.is_floating():
        number, regular = _float_number(column.cast("float64"))
        # Spark would call NaN missing, by the question that Ibis asks it.
        return _Parts(_limbs(number), enclosed(regular).isnull(), regular)
    if kind.is_decimal() or kind.is_uint64():
        number, regular = _decimal_number(column, backend)
        return _Parts(_limbs(number), missing, regular)
    if kind.is_integer():
        number = column.cast("int64")
        if kind.nbytes <= _SHORT_BYTES and not kind.is_uint32():
            return _Parts([number & _big(_LIMB), number >> 31], missing, short=True)
        return _Parts(_limbs(number), missing)
    raise PlanError(
        f"column {column.get_name()!r} must hold numbers, text, times or truth values, "
        f"got {type_name(kind)}; leave it out or cast it in the table."
    )


def _limbs(number: Any) -> list[Any]:
    low, middle = number & _big(_LIMB), (number >> 31) & _big(_LIMB)
    return [low, middle, (number >> 62) & _big(3)]


def _float_number(column: Any) -> tuple[Any, Any]:
    regular = column.abs() < double(_FLOAT_LIMIT)
    safe = regular.ifelse(column, double(0.0))
    number = (safe * double(_FLOAT_SCALE)).floor().cast("int64")
    return number, regular


def _decimal_number(column: Any, backend: Backend) -> tuple[Any, Any]:
    scale = column.type().scale if column.type().is_decimal() else 0
    places = _DECIMAL_PLACES if scale is None else min(scale, _DECIMAL_PLACES)
    # Compared as doubles, which every scale can be cast to; there are 11 + 6 digits at
    # most then. DuckDB multiplies in the type of the decimal, which needs room.
    size = near = column
    if backend == "postgres":  # whose numbers may be beyond a double, or below
        size = column.abs()
        near = (size < ibis.literal(_DECIMAL_LEAST)).ifelse(ibis.literal(0), column)
    regular = near.cast("float64").abs() < double(float(_DECIMAL_LIMIT))
    if backend == "postgres":
        below = size < ibis.literal(10 * _DECIMAL_LIMIT)
        regular = below.ifelse(regular, ibis.literal(False))
    safe = regular.ifelse(column, ibis.null(column.type()))
    safe = safe.cast(f"decimal(38, {places})")
    number = (safe * ibis.literal(10**places)).cast("int64")
    return number, regular
