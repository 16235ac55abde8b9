"""What DuckDB, PostgreSQL and Spark write differently, made the same.

Every function takes and returns Ibis expressions and gives the same value on the three
engines, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any, Literal, cast

from undertow.errors import PlanError
from undertow.release._extras import load

ibis = load("ibis")

Backend = Literal["duckdb", "postgres", "pyspark"]
"""The engines, by the names Ibis gives them."""

BACKENDS = ("duckdb", "postgres", "pyspark")
_FEW_KEYS = 200
_MOST_DIGITS = 38
_COARSE = (0, 3)  # decimal places of seconds and milliseconds
_EPOCH = datetime(1970, 1, 1)
_FIRST, _LAST = datetime.min, datetime.max
_DAYS = date.min, date.max
_NANOSECONDS = datetime(1678, 1, 1), datetime(2262, 1, 1)  # what 64 bits hold


def backend_of(table: Any) -> Backend:
    """Return the engine an Ibis table lives on.

    Raises
    ------
    PlanError
        If it is none of the three.
    """
    name = table.get_backend().name
    if name not in BACKENDS:
        raise PlanError(
            f"table must live on DuckDB, PostgreSQL or Spark, got {name}; "
            "write it to Parquet first."
        )
    return cast(Backend, name)


@cache
def _builtin(name: str, result: str) -> Any:
    """Return the engine's own function `name` of any arguments."""
    dt = load("ibis.expr.datatypes")

    # Ibis reads the types off the annotations; an argument without one may be of any.
    def one(a):  # type: ignore[no-untyped-def]
        ...

    def two(a, b):  # type: ignore[no-untyped-def]
        ...

    def three(a, b, c):  # type: ignore[no-untyped-def]
        ...

    wrapped = {}
    for count, function in enumerate((one, two, three), start=1):
        function.__name__ = f"{name}_{count}"
        function.__annotations__ = {"return": dt.dtype(result)}
        wrapped[count] = ibis.udf.scalar.builtin(function, name=name)
    return lambda *arguments: wrapped[len(arguments)](*arguments)


def double(value: float) -> Any:
    """Return a constant of 64 bits; engines read decimal points as decimals."""
    return ibis.literal(repr(float(value))).cast("float64")


def wide(value: Any) -> Any:
    """Return a whole number with room for 38 digits, so that sums are exact."""
    return value.cast("decimal(38, 0)")


def long(number: Any, backend: Backend) -> Any:
    """Return a whole number in 64 bits; Spark numbers rows in 32, unknown to Ibis."""
    if backend == "pyspark":
        return _builtin("bigint", "int64")(number)
    return number.cast("int64")


def type_name(kind: Any) -> str:
    """Return the name of a type on one line, in the engine's words if Ibis has none."""
    name = kind.raw_type if kind.is_unknown() else kind
    return " ".join(str(name).split())


def truth(column: Any) -> Any:
    """Return a truth value as 1 or 0; PostgreSQL casts none to 64 bits."""
    one, zero = (ibis.literal(bit).cast("int64") for bit in (1, 0))
    return column.ifelse(one, zero)


def enclosed(column: Any) -> Any:
    """Return a truth value that binds by itself, whatever is asked of it.

    Ibis writes ``a > 1 IN (TRUE)`` and ``NOT (b) IS NULL`` without the parentheses that
    they need; the argument of a function needs none. Other kinds are returned as is.
    """
    if not column.type().is_boolean():
        return column
    operations = load("ibis.expr.operations")
    closed = isinstance(column.op(), (operations.Coalesce, operations.Literal))
    return column if closed else ibis.coalesce(column)


def held(column: Any, backend: Backend, *, collated: bool = False) -> Any:
    """Return a column whose every value bears what is done with it.

    DuckDB's whole numbers of 128 bits have up to 39 digits, and Ibis takes them for
    decimals of 38; its seconds and milliseconds reach beyond what it compares and
    computes in, microseconds. What does not fit is missing: it would end the query.
    Ibis does not know its nanoseconds with a zone. Where a Parquet file states the ends
    of its numbers, which leave out NaN, DuckDB 2.0 takes them for those of all cells,
    so that a NaN passes for a number or not by what other rows hold. Text that is
    `collated` is read by its characters, so that only what is the same is equal.
    """
    kind = column.type()
    if kind.is_string() and backend == "postgres":
        # Enumerations compare with their own words only; char(n) is padded, but equal
        # to what is not. Of other text that is what it is read as anyway.
        column = _builtin("text", "string")(column)
    if kind.is_string() and collated:
        return _by_characters(column, backend)
    if backend != "duckdb":
        return column
    if kind.is_floating():
        return _unforeseen(column)
    if kind.is_decimal() and (kind.precision, kind.scale) == (_MOST_DIGITS, 0):
        # As text, because Ibis leaves out casts that, by its types, do nothing.
        return column.cast("string").try_cast(kind)
    if kind.is_timestamp() and kind.scale in _COARSE:
        return column.try_cast("timestamp(6)")
    if kind.is_unknown() and str(kind.raw_type) == "TIMESTAMPTZ_NS":
        return column.cast("timestamp(9)")
    return column


def _unforeseen(number: Any) -> Any:
    """Return a number of DuckDB of which its optimizer knows nothing.

    It looks through arithmetic, but not at what may fail; a text of it is exact, too.
    """
    kind = number.type()
    if _has_try():
        return _builtin("try", str(kind))(number).name(number.get_name())
    return number.cast("string").try_cast(kind).name(number.get_name())


@cache
def _has_try() -> bool:
    """Tell whether DuckDB knows `TRY`, as it does from 1.3 on."""
    numbers = load("duckdb").__version__.split(".")[:2]
    return tuple(map(int, numbers)) >= (1, 3)


def _by_characters(text: Any, backend: Backend) -> Any:
    """Return text without its collation: bytes have none."""
    out, back = "encode", "decode"
    if backend == "postgres":
        out, back = "convert_to", "convert_from"
    code = () if backend == "duckdb" else ("UTF-8",)
    return _builtin(back, "string")(_builtin(out, "binary")(text, *code), *code)


def midnight(day: Any) -> Any:
    """Return the time at which a day begins, missing if it cannot be written."""
    return written(day).cast("timestamp")


def naive_utc(column: Any, backend: Backend) -> Any:
    """Return a time or date as a time without zone, in UTC."""
    kind = column.type()
    if kind.is_date():
        return midnight(column)
    if kind.timezone is None or backend == "pyspark":
        return column
    if backend == "postgres":
        return _builtin("timezone", "timestamp")("UTC", column)
    # Its own function fails far from today, and is many times slower.
    number = _builtin("epoch_us", "int64")(column)
    finite = _builtin("make_timestamp", "timestamp")(number)
    last, first = (
        ibis.literal(end).cast("timestamp") for end in ("infinity", "-infinity")
    )
    present, zero = column.notnull(), moment(0, zone=True)
    infinite = present.ifelse((column > zero).ifelse(last, first), ibis.null())
    return ibis.coalesce(finite, infinite)


def epoch_us(column: Any, backend: Backend) -> Any:
    """Return a time without zone as microseconds since 1970 in UTC, rounded down.

    A time outside of the years 1 to 9999 has none.
    """
    column = written(column)
    if backend == "duckdb":
        if column.type().scale == 9:  # its own function rounds to the nearest
            nanoseconds = _builtin("epoch_ns", "int64")(column)
            thousand = ibis.literal(1000).cast("int64")
            past = (nanoseconds % thousand + thousand) % thousand
            return _builtin("divide", "int64")(nanoseconds - past, thousand)
        return _builtin("epoch_us", "int64")(column)
    if backend == "pyspark":
        return _builtin("unix_micros", "int64")(column.cast("timestamp('UTC')"))
    seconds = column.epoch_seconds().cast("decimal(38, 6)")
    return (seconds * 1_000_000).cast("int64")


def epoch_days(column: Any) -> Any:
    """Return a date as days since 1970; one outside of the years 1 to 9999 has none."""
    days = written(column).delta(ibis.date("1970-01-01"), unit="day")
    return days.cast("int64")


def written(column: Any) -> Any:
    """Return a time or date, missing if it is not in the years 1 to 9999.

    Engines fail on what is done with infinite and very far ones.
    """
    kind = column.type()
    first, last = (_FIRST, _LAST) if kind.is_timestamp() else _DAYS
    if kind.is_timestamp() and kind.scale == 9:
        first, last = _NANOSECONDS
    return column.between(first, last).ifelse(column, ibis.null(kind))


def whole_microseconds(time: Any, backend: Backend) -> Any:
    """Return a time rounded down to microseconds, the finest that all engines have."""
    if backend != "duckdb" or time.type().scale != 9:
        return time
    return _builtin("make_timestamp", "timestamp")(epoch_us(time, backend))


def moment(epoch: int, *, zone: bool) -> Any:
    """Return microseconds since 1970 as a constant time."""
    when = _EPOCH + timedelta(microseconds=epoch)
    return ibis.literal(when.replace(tzinfo=UTC) if zone else when)


def numbers_of_text(text: Any, secret: str, backend: Backend) -> list[Any]:
    """Return the first 28 bits and the next of the MD5 digest of secret and text."""
    message = ibis.literal(secret).concat(text)
    if backend == "postgres":
        digest = _builtin("md5", "string")(message)
        raw = _builtin("decode", "binary")(digest, "hex")
        byte = [_builtin("get_byte", "int32")(raw, i).cast("int64") for i in range(7)]
        high = (byte[0] << 20) + (byte[1] << 12) + (byte[2] << 4) + (byte[3] >> 4)
        low = ((byte[3] & 15) << 24) + (byte[4] << 16) + (byte[5] << 8) + byte[6]
        return [high, low]
    digest = message.hexdigest("md5")
    parts = digest.left(7), digest.left(14).right(7)
    if backend == "duckdb":
        return [ibis.literal("0x").concat(part).cast("int64") for part in parts]
    conv = _builtin("conv", "string")
    return [conv(part, 16, 10).cast("int64") for part in parts]


def among(column: Any, keys: Sequence[Any]) -> Any:
    """Tell whether a column holds one of the keys; missing values do not.

    Consecutive numbers and days become a range, few keys a list; many keys travel as
    one text that the engine splits, so that no table has to be created on it.
    """
    bounds = column.type().bounds if column.type().is_integer() else None
    if bounds is not None:  # none beyond them is in the column, nor can be cast to it
        keys = [key for key in keys if bounds.lower <= key <= bounds.upper]
    if not keys:
        return ibis.literal(False)
    if _consecutive(keys):
        return column.between(ibis.literal(min(keys)), ibis.literal(max(keys)))
    if len(keys) <= _FEW_KEYS:
        return column.isin([ibis.literal(key) for key in keys])
    texts = [key if isinstance(key, str) else str(key) for key in keys]
    mark = _mark(texts)
    parts = ibis.literal(mark.join(texts)).split(mark).unnest().name("key").as_table()
    return column.isin(parts.select(key=parts.key.cast(column.type())).key)


def _consecutive(keys: Sequence[Any]) -> bool:
    if any(isinstance(key, (bool, str)) for key in keys):
        return False
    span = max(keys) - min(keys)
    days = span.days if isinstance(keys[0], date) else span
    return bool(days == len(set(keys)) - 1)


def _mark(texts: Sequence[str]) -> str:
    """Return a character of the private use area that no text contains."""
    used = set().union(*texts)
    for code in range(0xE000, 0xF8FF):
        if chr(code) not in used:
            return chr(code)
    raise PlanError(
        "keys must leave one character of the private use area unused, got all of them."
    )
