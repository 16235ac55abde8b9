"""Open the tables that a release reads: files, databases, and objects in memory.

Of files and database files see the module beside it. Tables in memory are read in place
by DuckDB; PostgreSQL and Spark are reached by connection URLs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy

from undertow._address import Address, read_address, refused_name
from undertow.errors import EngineError, PlanError, UndertowError
from undertow.release._extras import load
from undertow.release.document._error import absent, path_text, require_apart
from undertow.release.document.time import TimeFormat, in_utc, read_time
from undertow.release.engine._dialect import backend_of, type_name
from undertow.release.run._limit import ended_by, limited_s, stops_postgres
from undertow.release.source._file import Limits, connect_duckdb, lock_duckdb, open_file
from undertow.release.source._place import existing_part
from undertow.release.source._plain_file import bearable
from undertow.release.source.table import (
    Source,
    guarded,
    has_collations,
    is_guessed,
    is_stored,
    require_own_functions,
)

Types = Mapping[str, str | TimeFormat]
"""Columns and what they hold, or how they write their times."""

_STATED_TYPES = ("bool", "date", "float", "int", "text", "timestamp")
_TEXTS = ("spark.sql.variable.substitute", "spark.sql.parser.escapedStringLiterals")


@runtime_checkable
class SourceSpec(Protocol):
    """What a release file says about its table."""

    @property
    def table(self) -> str | None:
        """A file, or a connection URL."""

    @property
    def relation(self) -> str | None:
        """The table or view in a database."""

    @property
    def format(self) -> str | None:
        """The format of a file whose name does not end with it."""

    @property
    def types(self) -> Types:
        """The types of the columns of a CSV file; formats of times in any table."""


def open_source(
    spec: SourceSpec | Any,
    *,
    folder: str | Path | None = None,
    types: Types | None = None,
    memory_mb: int | None = None,
    threads: int | None = None,
) -> Source:
    """Open a table for reading.

    Parameters
    ----------
    spec : SourceSpec, str, Path or table
        What a release file says about its table; or a file or connection URL; or a
        table in memory: pandas, Polars or Arrow, or an Ibis table.
    folder : str or Path, optional
        Where relative paths start; by default the working directory.
    types : mapping of str to str or TimeFormat, optional
        Types of the columns of a CSV file given by its name: ``bool``, ``date``,
        ``float``, ``int``, ``text`` or ``timestamp``; others are text. Of a pandas
        table, types of the columns that may hold anything, which are read only then. A
        value that is not of its type is missing. Formats of times go with any table.
    memory_mb : int, optional
        Memory that DuckDB may use, by default two thirds of the machine's, at most
        3000; what does not fit is spilled to a private folder.
    threads : int, optional
        Threads of DuckDB, by default all.

    Returns
    -------
    Source
        A context manager.

    Raises
    ------
    PlanError
        If there is no such table, or it cannot be read as what its name says.
    EngineError
        If a server cannot be reached.

    Examples
    --------
    >>> import pyarrow as pa
    >>> with open_source(pa.table({"zone": ["A", "B"]})) as source:
    ...     source
    Source on DuckDB with 1 columns
    """
    forms = _forms(spec, types)
    if forms:
        plain, kinds = _without_forms(spec, types)
        source = open_source(
            plain, folder=folder, types=kinds, memory_mb=memory_mb, threads=threads
        )
        return _with_times(source, forms)

    limits = Limits.of(memory_mb, threads)
    if types is not None and not isinstance(types, Mapping):
        raise PlanError(
            f"types must be a mapping of columns to types, got {type(types).__name__}."
        )
    for name, stated in (types or {}).items():
        if not isinstance(name, str) or stated not in _STATED_TYPES:
            raise PlanError(
                f"types must map names of columns to {', '.join(_STATED_TYPES)}, got "
                f"{str(stated)[:60]!r} for {str(name)[:60]!r}."
            )
    if isinstance(spec, (str, Path)):
        text, relation, form = str(spec), None, None
        kinds = _plain(types)
    elif isinstance(spec, SourceSpec) and isinstance(spec.table, str):
        text, relation, form = spec.table, spec.relation, spec.format
        kinds = _plain(spec.types)
    elif isinstance(spec, load("ibis").Table):
        if types:
            raise PlanError("types must be left out for an Ibis table, got some.")
        return _open_ibis(spec)
    else:
        return open_memory(spec, types=_plain(types), limits=limits)
    root = Path.cwd() if folder is None else Path(path_text(folder, "folder"))
    refusal = refused_name(text) if isinstance(spec, str) else None
    if refusal is not None:
        raise PlanError(f"table {refusal}.")
    if is_url(text):
        if kinds:
            raise PlanError("source.types must be left out for a server, got some.")
        return open_url(text, relation, root=root, limits=limits)
    return open_file(text, relation, root=root, form=form, types=kinds, limits=limits)


@dataclass(frozen=True, slots=True)
class _Plain:
    """What a release file says about its table, formats of times aside."""

    table: str
    relation: str | None
    format: str | None
    types: dict[str, str]


def _forms(spec: Any, types: Types | None) -> dict[str, TimeFormat]:
    """Return the formats of times among the types that are stated."""
    stated = types if isinstance(types, Mapping) else {}
    if isinstance(spec, SourceSpec) and isinstance(spec.table, str):
        stated = spec.types
    return {n: kind for n, kind in stated.items() if isinstance(kind, TimeFormat)}


def _without_forms(spec: Any, types: Types | None) -> tuple[Any, dict[str, str]]:
    """Return what is opened where formats are taken for text."""
    if isinstance(spec, SourceSpec) and isinstance(spec.table, str):
        kinds = _plain(spec.types)
        return _Plain(spec.table, spec.relation, spec.format, kinds), {}
    kinds = _plain(types)
    # Columns that hold anything are read as text, which others are by themselves.
    dtypes = getattr(spec, "dtypes", {}) if _is_pandas(spec) else {}
    text = [name for name in _forms(spec, types) if str(dtypes.get(name)) == "object"]
    return spec, kinds | dict.fromkeys(text, "text")


def _plain(types: Types | None) -> dict[str, str]:
    """Return the types that are stated, formats of times aside."""
    stated = (types or {}).items()
    return {n: kind for n, kind in stated if not isinstance(kind, TimeFormat)}


def _with_times(source: Source, forms: Mapping[str, TimeFormat]) -> Source:
    """Read columns of text as the times that they write; close what has none."""
    try:
        read = _times(source, forms)
    except BaseException:
        source.close()
        raise
    written = source.table if source.written is None else source.written
    opening = source.opening_copy
    return replace(
        source,
        table=source.table.mutate(**read),
        written=written,
        opening_copy=None if opening is None else partial(_copied, opening, forms),
    )


def _copied(
    opening: Callable[[], Source | None], forms: Mapping[str, TimeFormat]
) -> Source | None:
    """Open the copy of a source, and read its times like those of the source."""
    copy = opening()
    return None if copy is None else _with_times(copy, forms)


def _times(source: Source, forms: Mapping[str, TimeFormat]) -> dict[str, Any]:
    """Return the columns that write times.

    Raises
    ------
    PlanError
        If there is no such column, or it is not of text.
    """
    table = source.table
    for name in forms:
        if name not in source.columns:
            why = absent(name, source.columns, wanted=forms, lines=source.lines)
            raise PlanError(
                f"source.types must name columns of the table, got {name[:60]!r}{why}."
            )
        kind = table[name].type()
        if not kind.is_string():
            raise PlanError(
                f"source.types must give a format for columns of text, got "
                f"{type_name(kind)} in {name[:60]!r}; leave the format out."
            )
    return {
        name: read_time(table[name], form, source.backend, collated=source.collated)
        for name, form in forms.items()
    }


def _open_ibis(table: Any) -> Source:
    backend = backend_of(table)
    if backend == "duckdb":
        ended_by(lambda since: table.get_backend().con.interrupt())
    elif backend == "postgres":
        ended_by(stops_postgres(table.get_backend().con))
    for held in table.op().find(load("ibis.expr.operations").InMemoryTable):
        if any(str(kind) == "object" for kind in getattr(_frame(held), "dtypes", ())):
            raise PlanError(
                "an Ibis table of a pandas table must have columns of types of their "
                "own, got one of dtype object, whose type Ibis takes from the cells; "
                "convert it with astype."
            )
    if backend == "pyspark":
        session = table.get_backend()._session
        zone = session.conf.get("spark.sql.session.timeZone")
        if zone not in ("UTC", "Etc/UTC", "Z", "GMT"):
            raise PlanError(
                f"the time zone of the Spark session must be UTC, got {zone}; set "
                "spark.sql.session.timeZone."
            )
    with guarded(backend):
        if backend == "duckdb" and is_guessed(table):
            raise PlanError(
                "an Ibis table must not read CSV or JSON, whose types DuckDB takes "
                "from the rows; give the name of a CSV file, or create a table of it."
            )
        require_own_functions(table, backend)
        stored, collated = is_stored(table, backend), has_collations(table, backend)
        closing = texts_as_written(session) if backend == "pyspark" else _nothing
    return Source(table, backend, closing, stored=stored, collated=collated)


def _frame(held: Any) -> Any:
    """Return the pandas table that an Ibis table in memory was made of, if any."""
    frame = getattr(held.data, "obj", None)
    return frame if _is_pandas(frame) else None


def _is_pandas(table: Any) -> bool:
    return type(table).__module__.partition(".")[0] == "pandas"


def texts_as_written(session: Any) -> Callable[[], None]:
    """Let Spark take keys and names as they are; return what undoes it.

    It would replace ${env:...} in them, and may be set to leave backslashes doubled.
    """
    before = {setting: session.conf.get(setting) for setting in _TEXTS}
    for setting in _TEXTS:
        session.conf.set(setting, "false")

    def closing() -> None:
        with guarded("pyspark"):
            for setting, value in before.items():
                session.conf.set(setting, value)

    return closing


def _nothing() -> None:
    """Leave what somebody else has opened."""


# Tables in memory: pandas, Polars and Arrow objects, read in place by DuckDB.

_NAME = "undertow_source"
_LEAST, _MOST = -(2**63), 2**63 - 1
_LARGEST_EXACT = 2**53
_KINDS_READ = "biufM"
"""Of dtypes: truth values, whole numbers with a sign or none, numbers, and times."""
_KINDS = "a pandas, Polars or Arrow table, an Ibis table, a file or a connection URL"


def open_memory(table: Any, *, types: Mapping[str, str], limits: Limits) -> Source:
    """Open a table in memory.

    Parameters
    ----------
    table : pandas.DataFrame, polars.DataFrame or LazyFrame, or Arrow table
        The rows; only what queries need is read from it.
    types : mapping of str to str
        Types of the columns of a pandas table that have none of their own.
    limits : Limits
        What DuckDB may use.

    Raises
    ------
    PlanError
        If it is no such table, or a type is stated for a column that has its own.

    Notes
    -----
    The type of a column is what its own dtype or `types` say, never what its cells
    are. A cell that is not of it is missing.
    """
    unread: dict[str, str] = {}
    if _home(table) == "pandas.DataFrame":
        arrow, unread = _from_pandas(table, types)
    else:
        arrow = _arrow_table(table)
        _check_stated(types, arrow.column_names, objects=())
    if not arrow.column_names:
        raise PlanError(
            "table must have columns, got none; those of an index become columns with "
            "reset_index."
        )
    _check_types(arrow)
    require_apart(arrow.column_names, where="the table in memory")
    arrow = _bearable(_local_times(arrow))
    connection, closing = connect_duckdb(limits)
    try:
        with guarded("duckdb"):
            connection.con.register(_NAME, arrow)
            lock_duckdb(connection)
            # Arrow shares the memory of NumPy and pandas, which others may write to.
            return Source(
                connection.table(_NAME), "duckdb", closing, stored=False, unread=unread
            )
    except BaseException:
        closing()
        raise


def _home(table: Any) -> str:
    """Return the library and the name of the class of a table."""
    return f"{type(table).__module__.partition('.')[0]}.{type(table).__name__}"


def _check_stated(
    types: Mapping[str, str], names: Sequence[str], *, objects: Sequence[str]
) -> None:
    """Refuse types of columns that are not there, or have one of their own."""
    for name in types:
        if name not in names:
            why = absent(name, names, wanted=types, lines=False)
            raise PlanError(
                f"source.types must name columns of the table, got {name[:60]!r}{why}."
            )
        if name not in objects:
            raise PlanError(
                "source.types must be left out for a column in memory that has a type "
                f"of its own, got one for {name[:60]!r}."
            )


def _bearable(table: Any) -> Any:
    """Return a table whose text is all UTF-8; other cells of it are missing."""
    for place, field in enumerate(table.schema):
        column = table.column(place)
        read = bearable(column)
        if read is not column:
            table = table.set_column(place, field.name, read)
    return table


def _local_times(table: Any) -> Any:
    """Take the zone off times in seconds and milliseconds; they are in UTC anyway.

    DuckDB would make them microseconds when it reads them, and fail on far ones.
    """
    arrow = load("pyarrow")
    for place, field in enumerate(table.schema):
        kind = field.type
        if not arrow.types.is_timestamp(kind) or kind.tz is None:
            continue
        if kind.unit in ("s", "ms"):
            naive = arrow.timestamp(kind.unit)
            chunks = [chunk.view(naive) for chunk in table.column(place).chunks]
            column = arrow.chunked_array(chunks, naive)
            table = table.set_column(place, field.name, column)
    return table


def _arrow_table(table: Any) -> Any:
    arrow = load("pyarrow")
    if isinstance(table, arrow.RecordBatch):
        return arrow.Table.from_batches([table])
    if isinstance(table, arrow.Table):
        return table
    kind = _home(table)
    if kind == "polars.LazyFrame":
        with guarded("Polars"):  # whose words may hold data
            table, kind = table.collect(), "polars.DataFrame"
    if kind == "polars.DataFrame":
        return _from_polars(arrow, table)
    if isinstance(table, arrow.RecordBatchReader):
        raise PlanError(
            "table must be one that can be read again, got a RecordBatchReader, which "
            "is empty then; read it with read_all."
        )
    if hasattr(table, "__arrow_c_stream__"):
        try:
            return arrow.table(table)
        except (TypeError, arrow.ArrowException):  # a single column has a stream too
            pass
    kind = type(table).__name__
    way = "; make it a table with to_frame" if kind == "Series" else ""
    raise PlanError(f"table must be {_KINDS}, got {kind}{way}.")


def _from_pandas(table: Any, types: Mapping[str, str]) -> tuple[Any, dict[str, str]]:
    """Return the columns that have a type, and what refuses the use of the others."""
    arrow = load("pyarrow")
    names = list(table.columns)
    if not all(isinstance(name, str) for name in names):
        raise PlanError("the columns of a pandas table must be named by text.")
    require_apart(names, where="the table in memory")  # Arrow refuses them in its words
    objects = [name for name in names if _is_object(table[name].dtype)]
    _check_stated(types, names, objects=objects)
    columns, unread = [], {}
    for name in names:
        series = table[name]
        if name in types:
            columns.append(_stated_column(arrow, series, types[name]))
        elif name in objects:
            unread[name] = (
                f"column {name[:60]!r} of the pandas table must have a type, got "
                f"{series.dtype.name}, which holds anything; state it in source.types, "
                "or convert the column with astype."
            )
        elif not _is_read(series.dtype):
            unread[name] = (
                f"column {name[:60]!r} of the pandas table must be of a type that "
                f"DuckDB reads, got {series.dtype.name}; convert it with astype."
            )
        else:
            columns.append(_own_column(arrow, series))
            continue
        if name in unread:  # its rows are there all the same
            columns.append(arrow.nulls(len(series), arrow.string()))
    return arrow.table(columns, names=names), unread


def _is_object(dtype: Any) -> bool:
    """Tell whether a column of this type may hold cells of any type."""
    categories = getattr(dtype, "categories", None)
    return "object" in (str(dtype), str(getattr(categories, "dtype", "")))


def _is_read(dtype: Any) -> bool:
    """Tell whether DuckDB reads columns of this type, whatever is in them."""
    categories = getattr(dtype, "categories", None)
    if categories is not None:
        return _is_read(categories.dtype)
    home, name = type(dtype).__module__.partition(".")[0], str(dtype.name)
    if home not in ("numpy", "pandas") or name.startswith("Sparse"):
        return False
    return dtype.kind in _KINDS_READ or name in ("str", "string") or "arrow" in name


def _own_column(arrow: Any, series: Any) -> Any:
    """Return a column by its own type; text that is no Unicode is missing."""
    try:
        column = arrow.Array.from_pandas(series)
    except UnicodeEncodeError:  # half of a surrogate pair
        return _stated_column(arrow, series, "text")
    kind = column.type
    # DuckDB takes a dictionary for text, whatever its values are.
    if arrow.types.is_dictionary(kind) and not _is_text_of(arrow, kind.value_type):
        return column.cast(kind.value_type)
    return column


def _is_text_of(arrow: Any, kind: Any) -> bool:
    return bool(arrow.types.is_string(kind) or arrow.types.is_large_string(kind))


def _stated_column(arrow: Any, series: Any, stated: str) -> Any:
    """Return a column as what it is stated to be; cells of other types are missing."""
    kind, cell_of = _STATED_CELLS[stated]
    cells = (
        None if missing else cell_of(cell)
        for cell, missing in zip(series, series.isna(), strict=True)
    )
    return arrow.array(list(cells), getattr(arrow, kind[0])(*kind[1:]))


def _whole(cell: Any) -> int | None:
    if isinstance(cell, bool | numpy.bool_):
        return None
    exact = isinstance(cell, Integral) or (
        isinstance(cell, float | numpy.floating) and float(cell).is_integer()
    )
    return int(cell) if exact and _LEAST <= cell <= _MOST else None


def _real(cell: Any) -> float | None:
    if isinstance(cell, bool | numpy.bool_):
        return None
    if isinstance(cell, Integral) and abs(int(cell)) > _LARGEST_EXACT:
        return None
    return float(cell) if isinstance(cell, Decimal | Real | Integral) else None


def _text(cell: Any) -> str | None:
    try:
        return (
            str(cell) if isinstance(cell, str) and cell.encode() is not None else None
        )
    except UnicodeEncodeError:  # half of a surrogate pair
        return None


def _truth(cell: Any) -> bool | None:
    return bool(cell) if isinstance(cell, bool | numpy.bool_) else None


def _day(cell: Any) -> date | None:
    return cell if isinstance(cell, date) and not isinstance(cell, datetime) else None


def _moment(cell: Any) -> datetime | None:
    """Return a time without its zone, in UTC and without what is below microseconds."""
    if not isinstance(cell, datetime):
        return None
    try:
        # A time of pandas counts nanoseconds as well.
        plain = datetime.combine(cell.date(), cell.timetz())
        return in_utc(plain)
    except (OverflowError, ValueError):
        return None


_STATED_CELLS: dict[str, tuple[tuple[Any, ...], Callable[[Any], Any]]] = {
    "bool": (("bool_",), _truth),
    "date": (("date32",), _day),
    "float": (("float64",), _real),
    "int": (("int64",), _whole),
    "text": (("string",), _text),
    "timestamp": (("timestamp", "us"), _moment),
}
"""For each type that can be stated that of Arrow, and how to read one cell."""


def _from_polars(arrow: Any, table: Any) -> Any:
    try:
        return table.to_arrow()
    except arrow.ArrowException:
        raise PlanError(
            "the columns of a Polars table must be of types that Arrow has, got "
            "another; cast it, or leave it out."
        ) from None


def _check_types(table: Any) -> None:
    """Refuse types of Arrow that DuckDB does not read."""
    types = load("pyarrow").types
    for field in table.schema:
        kind = field.type
        wide = types.is_decimal256(kind) or types.is_float16(kind)
        if wide or (types.is_decimal(kind) and kind.scale < 0):
            family = str(kind).partition("(")[0]  # the digits are those of a value
            raise PlanError(
                f"column {field.name!r} must be of a type that DuckDB reads, got "
                f"{family}; cast it, or leave it out."
            )


# Tables behind connection URLs: DuckDB files, PostgreSQL, Spark.

_SCHEMES = ("duckdb", "postgres", "postgresql", "spark")
_GUESSING = "spark.sql.sources.partitionColumnTypeInference.enabled"
_SPARK_MARKS = "*?[]{}\\"
_AFTER_LIMIT_S = 5
_SECRETS = ("password", "passwd", "pgpassword", "pwd")
_OPTIONS = {"sslmode", "sslrootcert", "statement_timeout_s", "connect_timeout"}


def is_url(text: str) -> bool:
    """Tell whether a text names a server, and not a file."""
    return "://" in text


def open_url(text: str, relation: str | None, *, root: Path, limits: Limits) -> Source:
    """Open a table behind a connection URL.

    Parameters
    ----------
    text : str
        ``duckdb://path``, ``postgres://user@host/database`` or ``spark://local``.
    relation : str or None
        The table or view, ``schema.table`` in PostgreSQL; may follow the URL after #.
    root : Path
        Where relative paths start.
    limits : Limits
        What DuckDB may use.

    Raises
    ------
    PlanError
        If the URL or the table cannot be used; the URL is not repeated, it may hold a
        password.
    EngineError
        If the server cannot be reached.
    """
    scheme = text.partition("://")[0].lower()
    if scheme not in _SCHEMES:
        raise PlanError(
            "table must be a duckdb://, postgres:// or spark:// URL, got another."
        )
    if scheme == "duckdb":
        path = text.partition("://")[2]
        return open_file(path, relation, root=root, form="duckdb", limits=limits)
    try:
        address = read_address(text)
    except ValueError as fault:
        raise PlanError(f"table {fault}.") from None
    name = relation or address.fragment
    if not name:
        raise PlanError("relation must name a table behind the URL, got nothing.")
    if scheme == "spark":
        return _open_spark(address, name, root)
    return _open_postgres(address, name)


def _open_postgres(address: Address, name: str) -> Source:
    ibis = load("ibis")
    load("psycopg", extra="postgres")
    options = dict(address.options)
    unknown = sorted(set(options) - _OPTIONS)
    if unknown and unknown[0].lower() in _SECRETS:
        raise PlanError(
            f"options of the URL must hold no password, got {unknown[0]!r}; leave it "
            "to ~/.pgpass or to PGPASSWORD in the environment, or write it, after a "
            "colon, between the user and the @."
        )
    if unknown:
        raise PlanError(
            f"options of the URL must be {', '.join(sorted(_OPTIONS))}, got "
            f"{unknown[0][:60]!r}; leave it out."
        )
    timeout = options.pop("statement_timeout_s", None)
    if timeout is not None and not timeout.isdecimal():
        raise PlanError("statement_timeout_s must be whole seconds, got no number.")
    session = (
        "-c default_transaction_read_only=on -c timezone=UTC"
        " -c standard_conforming_strings=on"  # else a backslash ends a text
    )
    limit = limited_s()
    if timeout is None and limit is not None:
        # Should this process be gone before it can cancel the query.
        timeout = str(math.ceil(limit) + _AFTER_LIMIT_S)
    if timeout is not None:
        session += f" -c statement_timeout={timeout}s"
    schema, _, table = name.rpartition(".")
    try:
        connection = ibis.postgres.connect(
            host=address.host,
            port=address.port or 5432,
            user=address.user,
            password=address.password,
            database=address.database or None,
            options=session,
            **options,
        )
    except UndertowError:
        raise
    except Exception as fault:
        raise EngineError(
            f"PostgreSQL must be reachable, got {type(fault).__name__}; check host, "
            "user, database and password."
        ) from None
    ended_by(stops_postgres(connection.con))
    if connection.con.info.parameter_status("server_encoding") == "SQL_ASCII":
        connection.disconnect()
        raise PlanError(  # a row of any bytes would end the query
            "the database must have an encoding, got SQL_ASCII, which takes any bytes "
            "for text; restore it into one in UTF8."
        )
    return _postgres_table(connection, schema, table)


def _postgres_table(connection: Any, schema: str, table: str) -> Source:
    ibis = load("ibis")
    missing = ibis.common.exceptions.TableNotFound

    def closing() -> None:
        connection.disconnect()

    try:
        with guarded("postgres"):
            try:
                found = connection.table(table, database=schema or None)
            except missing:
                raise PlanError(
                    f"relation must name a table of the database, got {table[:60]!r}."
                ) from None
            require_own_functions(found, "postgres")
            stored = is_stored(found, "postgres")
            collated = has_collations(found, "postgres")
        return Source(found, "postgres", closing, stored=stored, collated=collated)
    except BaseException:
        closing()
        raise


def _open_spark(address: Address, name: str, root: Path) -> Source:
    path = root / name
    parquet = name.lower().endswith(".parquet") or path.is_dir()
    if parquet and any(mark in str(existing_part(path)) for mark in _SPARK_MARKS):
        # Spark would take the name for a pattern, and read other files by it.
        raise PlanError(
            f"table must have a name without {' '.join(_SPARK_MARKS)} for Spark, got "
            "one with such a mark in a folder or file that is there; rename it."
        )
    ibis = load("ibis")
    sql = load("pyspark.sql", extra="spark")
    local = address.host in (None, "local", "localhost") and address.port is None
    place = address.host if address.port is None else f"{address.host}:{address.port}"
    master = "local[*]" if local else f"spark://{place}"
    with guarded("pyspark"):
        builder = sql.SparkSession.builder.appName("undertow").master(master)
        session = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
        ended_by(lambda since: session.sparkContext.cancelAllJobs())
        session.conf.set("spark.sql.session.timeZone", "UTC")
        texts_as_written(session)
        # It would guess types from which folders (year=2026/) there are.
        session.conf.set(_GUESSING, "false")
        connection = ibis.pyspark.connect(session)
        if parquet:
            table = connection.read_parquet(str(path))
            require_own_functions(table, "pyspark")
            return Source(table, "pyspark")
        table = connection.table(name)
        require_own_functions(table, "pyspark")
        stored = is_stored(table, "pyspark")
        collated = has_collations(table, "pyspark")
        return Source(table, "pyspark", stored=stored, collated=collated)
