"""A table on an engine, open for reading, and what must hold before it is read.

The functions of the engine must be its own, text may compare as equal without being the
same only where that is known, and two statements read the same rows only of a table
that is stored: else a unit would escape its bounds.
"""

from __future__ import annotations

import re
import secrets
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from undertow.errors import EngineError, PlanError, UndertowError
from undertow.release._extras import load
from undertow.release.engine._dialect import Backend
from undertow.release.run._limit import ran_out_of_memory
from undertow.release.source._plain_file import Misfits

_LABELS = {"duckdb": "DuckDB", "postgres": "PostgreSQL", "pyspark": "Spark"}


@dataclass(eq=False)
class Source:
    """A table on an engine, open for reading.

    Parameters
    ----------
    table : Ibis table
        The rows.
    backend : {"duckdb", "postgres", "pyspark"}
        The engine.
    closing : callable
        Ends what was opened for it.
    stamp : callable
        Returns what changes when the table is written to; for files.
    stored : bool
        Whether every statement reads the same rows, unless they are written to; a view
        or an expression may give others to each.
    collated : bool
        Whether text may compare as equal without being the same.
    unread : mapping of str to str
        For columns whose type nothing states, the sentence that refuses their use.
    opened : object, optional
        What `stamp` returned before the table was opened; by default what it returns
        now.
    opening_copy : callable, optional
        Opens a copy of the rows without what the engine stops at, for files that it
        may stop at; returns None if there cannot be one.
    written : Ibis table or None
        The rows before some of their columns of text are read as other types.
    counted : callable
        Returns how many cells of some columns hold anything before they are read as
        their types, where `written` does not tell.
    lines : bool
        Whether the first line of a CSV file, which may be a row, names the columns.
    misfits : callable
        Counts the rows of CSV files that are not like their first lines.

    Notes
    -----
    A context manager; leaving it closes the source.
    """

    table: Any
    backend: Backend
    closing: Callable[[], None] = field(default=lambda: None, repr=False)
    stamp: Callable[[], Any] = field(default=lambda: None, repr=False)
    stored: bool = field(default=True, repr=False)
    collated: bool = field(default=False, repr=False)
    unread: Mapping[str, str] = field(default_factory=dict, repr=False)
    opened: Any = field(default=None, repr=False)
    opening_copy: Callable[[], Source | None] | None = field(default=None, repr=False)
    _copy: Source | None = field(default=None, repr=False)
    written: Any = field(default=None, repr=False)
    counted: Callable[[Sequence[str]], Mapping[str, int]] = field(
        default=lambda names: {}, repr=False
    )
    lines: bool = field(default=False, repr=False)
    misfits: Callable[[], Misfits | None] = field(default=lambda: None, repr=False)
    _held: list[Callable[[], Any]] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        if self.opened is None:
            self.opened = self.stamp()

    def __repr__(self) -> str:
        return f"Source on {_LABELS[self.backend]} with {len(self.columns)} columns"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.table.columns)

    def filled(self, names: Sequence[str]) -> dict[str, int]:
        """Count the cells of some columns that hold anything, as they are stored.

        Columns that are stored as what they are read as may be left out.
        """
        found = dict(self.counted(names))
        stored = () if self.written is None else self.written.columns
        text = [name for name in names if name in stored]
        if text:
            cells = [self.written[name].count() for name in text]
            counts = {f"c{at}": count for at, count in enumerate(cells)}
            [row] = self.execute(self.written.aggregate(**counts)).to_pylist()
            found |= zip(text, map(int, row.values()), strict=True)
        return found

    def close(self) -> None:
        """End connections, and remove what was spilled to disk."""
        self._held.clear()
        copy, self._copy, self.opening_copy = self._copy, None, None
        if copy is not None:
            copy.close()
        closing, self.closing = self.closing, lambda: None
        closing()

    def execute(self, table: Any) -> Any:
        """Run an Ibis table on the engine and return an Arrow table.

        Raises
        ------
        EngineError
            If the engine fails; its own words may hold data and are not repeated.
        """
        with guarded(self.backend):
            return table.to_pyarrow()

    def kept(self, table: Any) -> Any:
        """Keep rows on the engine for several queries, where it can for a reader.

        PostgreSQL creates nothing in a read-only session and computes them again.
        """
        if self.backend == "postgres":
            return table
        with guarded(self.backend):
            if self.backend == "pyspark":
                held = table.cache()
                self._held.append(held.release)
                return held
            engine = self.table.get_backend()
            name = f"undertow_kept_{secrets.token_hex(8)}"
            held = engine.create_table(name, table, temp=True)
            self._held.append(lambda: engine.raw_sql(f"DROP TABLE temp.main.{name}"))
            return held

    def without_faults(self) -> Source | None:
        """Return a copy of the rows at which the engine does not stop.

        None where there is none: only files are copied, and only as they were opened.
        """
        if self._copy is None and self.opening_copy is not None:
            opening, self.opening_copy = self.opening_copy, None
            if self.stamp() == self.opened:
                self._copy = opening()
        return self._copy

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Give up what was kept for the queries inside, at the end of them.

        Raises
        ------
        EngineError
            If a file was written to meanwhile, so that bounds may not hold.
        """
        try:
            try:
                yield
            except EngineError:
                self._require_as_opened()
                raise
            self._require_as_opened()
        finally:
            held, self._held = self._held, []
            for release in held:
                with guarded(self.backend):
                    release()

    def _require_as_opened(self) -> None:
        if self.stamp() != self.opened:
            raise EngineError(
                "the table must stay as it is while it is read, got a file that "
                "was written to; run the release again."
            ) from None


@contextmanager
def guarded(backend: str) -> Iterator[None]:
    """Replace what an engine says on failure by one sentence without data."""
    try:
        with warnings.catch_warnings():
            # What Ibis, the engines and Arrow say to each other is not for the reader.
            warnings.simplefilter("ignore")
            yield
    except (UndertowError, MemoryError):
        raise
    except Exception as fault:
        # Of other faults the kind may depend on what is in a row.
        outer = any(base.__name__ == "OperationalError" for base in type(fault).__mro__)
        kind = type(fault).__name__ if outer else "an error"
        if kind == "OutOfMemoryException":
            ran_out_of_memory()
        raise EngineError(
            f"{_LABELS.get(backend, backend)} must finish the query, got {kind}; check "
            "the table and the engine, whose own message may hold data and is not "
            "shown."
        ) from None


# Whether what a query says means what the engine's own manual says.
#
# A database may hold functions under the names of built-in ones. A macro ``min(a, b)``
# of a DuckDB file comes before the aggregate that finds the last row kept of a unit,
# and a function ``text(varchar)`` of PostgreSQL before the conversion of the column
# that tells units apart: units would escape their bounds. A function that a Spark
# session registers as ``min`` is called in place of Spark's. So would units escape in a
# session that sorts downwards, or reads texts in another way.

_DUCKDB_FUNCTIONS = (
    "SELECT lower(function_name) FROM duckdb_functions()"
    " GROUP BY 1 HAVING bool_or(internal) AND NOT bool_and(internal)"
    " ORDER BY 1 LIMIT 1"
)
_DUCKDB_ORDER = "SELECT upper(current_setting('default_order')) LIKE 'ASC%'"
_POSTGRES_SESSION = (
    "SELECT pg_catalog.current_schemas(true)::pg_catalog.text[],"
    " pg_catalog.current_setting('standard_conforming_strings')"
)
# What an extension brings is for its own types.
_POSTGRES_FUNCTIONS = """
    WITH found AS (
        SELECT oid, proname AS name, pronamespace AS place FROM pg_catalog.pg_proc
        UNION ALL
        SELECT oid, oprname, oprnamespace FROM pg_catalog.pg_operator
    )
    SELECT name::pg_catalog.text FROM found JOIN pg_catalog.pg_namespace n
        ON n.oid = place
    WHERE n.nspname = ANY (pg_catalog.current_schemas(false))
        AND n.nspname <> 'pg_catalog' AND name = ANY (%s)
        AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend
            WHERE objid = found.oid AND deptype = 'e')
    ORDER BY 1 LIMIT 1
"""
_POSTGRES_USED = (
    "abs char_length concat convert_from convert_to count date date_part date_trunc"
    " decode extract floor get_byte left length make_date make_timestamp md5 mod"
    " numeric position replace right round row_number string_to_array substr substring"
    " sum text timestamp timezone to_timestamp translate unnest"
    " = <> < <= > >= + - * / % & | << >> || ~"
).split()
"""What the queries of a release use of PostgreSQL."""
_SPARK_CLASSES = (
    "org.apache.spark.sql.catalyst."  # where the classes of its functions are
)


def require_own_functions(table: Any, backend: Backend) -> None:
    """Refuse a database whose own functions take the names of built-in ones.

    And a session in which texts, names or the order of numbers mean something else.

    Parameters
    ----------
    table : Ibis table
        Of the database.
    backend : Backend
        Its engine.

    Raises
    ------
    PlanError
        If there is one that queries might call.

    Examples
    --------
    >>> import ibis
    >>> engine = ibis.duckdb.connect()
    >>> _ = engine.raw_sql("CREATE TABLE visits (zone VARCHAR)")
    >>> _ = engine.raw_sql("CREATE MACRO min(a, b) AS least(a, b)")
    >>> require_own_functions(engine.table("visits"), "duckdb")
    Traceback (most recent call last):
        ...
    undertow.errors.PlanError: the database must leave built-in functions as they are...
    """
    engine, found = table.get_backend(), list[Any]()
    if backend == "duckdb":
        found = engine.con.execute(_DUCKDB_FUNCTIONS).fetchall()
        [[ascending]] = engine.con.execute(_DUCKDB_ORDER).fetchall()
        if not ascending:  # the last place kept of a unit would be another
            raise PlanError(
                "the DuckDB connection must sort upwards, got another default_order; "
                "set default_order = 'ASC'."
            )
    elif backend == "postgres":
        with engine.begin() as cursor:
            [[path, plain]] = cursor.execute(_POSTGRES_SESSION).fetchall()
            found = cursor.execute(_POSTGRES_FUNCTIONS, (_POSTGRES_USED,)).fetchall()
        _require_session(path, plain)
    else:
        found = _own_of_spark(engine._session)
    for [name] in found:
        raise PlanError(
            "the database must leave built-in functions as they are, got its own "
            f"{str(name)[:60]!r}; rename it, or write the table to Parquet."
        )


def _own_of_spark(session: Any) -> list[tuple[str]]:
    """Return the functions of a Spark session that have the name of a built-in one.

    Spark 3.5 lists them in its place. Spark 4.3 lists both, and says Spark's class of
    both; which of them it calls is a setting.
    """
    listed = session.catalog.listFunctions()
    builtin = {row[0] for row in session.sql("SHOW SYSTEM FUNCTIONS").collect()}
    times = Counter(function.name for function in listed)
    return [
        (function.name,)
        for function in listed
        if function.name in builtin
        and (
            times[function.name] > 1
            or not (function.className or _SPARK_CLASSES).startswith(_SPARK_CLASSES)
        )
    ]


def _require_session(path: list[str], plain: str) -> None:
    """Refuse a session in which names or texts mean something else.

    A session's own schema is never searched for functions.
    """
    schemas = [name for name in path if not name.startswith("pg_temp")]
    if schemas[:1] != ["pg_catalog"]:
        raise PlanError(
            "the search_path of the role must leave pg_catalog first, got another "
            "schema before it; leave pg_catalog out of it."
        )
    if plain != "on":  # a backslash in a key would end the text
        raise PlanError(
            "the session must have standard_conforming_strings on, got off; set it."
        )


# Whether text may compare as equal without being the same, by a collation.
#
# Engines then take ``'a'`` and ``'A'`` for one group in some places and for two in
# others, and name the group after whichever row they read first: a unit would escape
# its bounds, and the row of one person would move the rows of others to another key.

_DUCKDB_COLLATION = "SELECT lower(current_setting('default_collation'))"
_COLLATE = "collate"
# Views may read any table; a comment with the word is no harm.
_DUCKDB_COLLATIONS = (
    "SELECT count(*) FILTER (viewed),"
    f" count(*) FILTER (contains(lower(sql), '{_COLLATE}'))"
    " FROM (SELECT sql, internal, false AS viewed FROM duckdb_tables() UNION ALL"
    " SELECT sql, internal, true FROM duckdb_views()) WHERE NOT internal"
)
_DUCKDB_COLLATED_MACROS = (
    "SELECT count(*) FROM duckdb_functions()"
    f" WHERE NOT internal AND contains(lower(macro_definition), '{_COLLATE}')"
)
_POSTGRES_COLLATIONS = "SELECT count(*) FROM pg_collation WHERE NOT collisdeterministic"
_PLAIN_COLLATIONS = ("", "binary", "c", "posix")
_SPARK_COLLATION = "UTF8_BINARY"


def has_collations(table: Any, backend: Backend) -> bool:
    """Tell whether any text of the database may have such a collation.

    Parameters
    ----------
    table : Ibis table
        A table, a view, or an expression.
    backend : Backend
        Its engine.

    Returns
    -------
    bool
        True if text has to be read by its characters, whatever its column says.

    Raises
    ------
    PlanError
        If a DuckDB connection compares all text in such a way.

    Examples
    --------
    >>> import ibis
    >>> engine = ibis.duckdb.connect()
    >>> _ = engine.raw_sql("CREATE TABLE plain (zone VARCHAR)")
    >>> has_collations(engine.table("plain"), "duckdb")
    False
    >>> _ = engine.raw_sql("CREATE TABLE folded (zone VARCHAR COLLATE NOCASE)")
    >>> has_collations(engine.table("folded"), "duckdb")
    True
    """
    engine = table.get_backend()
    if backend == "duckdb":
        [[name]] = engine.con.execute(_DUCKDB_COLLATION).fetchall()
        if name not in _PLAIN_COLLATIONS:
            raise PlanError(
                "the default collation of the DuckDB connection must be binary, got "
                "another; set default_collation = ''."
            )
        return _is_collated_in_duckdb(engine, str(engine.compile(table)).lower())
    if backend == "postgres":
        with engine.begin() as cursor:
            [[found]] = cursor.execute(_POSTGRES_COLLATIONS).fetchall()
        return bool(found)
    engine._run_pre_execute_hooks(table)  # names what is in memory
    schema = engine._session.sql(engine.compile(table)).schema
    # Before its fourth version Spark has none.
    kinds = (each.dataType for each in schema)
    return any(
        getattr(kind, "collation", _SPARK_COLLATION) != _SPARK_COLLATION
        for kind in kinds
    )


def _is_collated_in_duckdb(engine: Any, written: str) -> bool:
    """Tell whether a table, a view, a macro or the query itself states a collation."""
    [[views, found]] = engine.con.execute(_DUCKDB_COLLATIONS).fetchall()
    if found or _COLLATE in written:
        return True
    # The list of functions is long, and only views and expressions call any.
    if not views and "(" not in written:
        return False
    [[found]] = engine.con.execute(_DUCKDB_COLLATED_MACROS).fetchall()
    return bool(found)


# Whether a table is stored, or computed anew by every statement that reads it.
#
# A view or an expression may sample, or ask for the time: two statements, or two places
# of one statement, then read other rows. Bounds hold only for rows that stay, and whose
# types no row decides.

_TEXT = r"""'(?:[^']|'')*'|"(?:[^"]|"")*\""""
_INNER = rf"""(?:[^'"()]|{_TEXT})*"""
_NAMED = r"""(?:"(?:[^"]|"")*"|\w+)(?:\.(?:"(?:[^"]|"")*"|\w+))*"""
# What reading a file with Ibis creates, and nothing more: one call, no condition.
_FILES = re.compile(
    rf"CREATE (?:TEMP )?VIEW {_NAMED} AS SELECT \* FROM read_parquet"
    rf"\((?:[^'\"()]|{_TEXT}|\({_INNER}\)|list_value\({_INNER}\))*\);\s*",
)
# What DuckDB takes the types of from the rows, each time it is read.
_GUESSED = re.compile(
    r"\b(?:read_csv|read_json|read_ndjson|sniff_csv)"
    r"|\b(?:from|join)\s*\(?\s*['\"][^'\"]*\.(?:csv|tsv|json|jsonl|ndjson)\b",
    re.IGNORECASE,
)
_ALL_VIEWS = "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal"
_DUCKDB_VIEWS = (
    "SELECT sql FROM duckdb_views() WHERE lower(view_name) = lower(?)"
    " AND (schema_name = ? OR ? IS NULL)"
)
# Generated columns are computed when they are read, and may ask for random numbers.
_DUCKDB_TABLES = (
    "SELECT type = 'duckdb' AND NOT contains(lower(sql), 'generated always as')"
    " FROM duckdb_tables() JOIN duckdb_databases() USING (database_oid)"
    " WHERE lower(table_name) = lower(?)"
)
# A policy on rows is computed when they are read, and parts may be elsewhere.
_POSTGRES_RELATIONS = (
    "WITH RECURSIVE part (oid) AS (SELECT to_regclass(%s)::oid UNION"
    " SELECT inhrelid FROM pg_inherits JOIN part ON inhparent = part.oid)"
    " SELECT CASE WHEN relrowsecurity THEN 'policy' ELSE relkind::text END"
    " FROM pg_class JOIN part USING (oid)"
)
_POSTGRES_KINDS = ("m", "p", "r")  # tables, parts included, and materialised views
_SPARK_KINDS = ("EXTERNAL", "MANAGED")


def is_stored(table: Any, backend: Backend) -> bool:
    """Tell whether every statement reads the same rows, unless they are written to.

    Parameters
    ----------
    table : Ibis table
        A table, a view, or an expression.
    backend : Backend
        Its engine.

    Returns
    -------
    bool
        False where that is not known.

    Examples
    --------
    >>> import ibis
    >>> engine = ibis.duckdb.connect()
    >>> _ = engine.raw_sql("CREATE TABLE visits (zone VARCHAR)")
    >>> table = engine.table("visits")
    >>> is_stored(table, "duckdb"), is_stored(table.head(1), "duckdb")
    (True, False)
    """
    operations = load("ibis.expr.operations")
    relation, engine = table.op(), table.get_backend()
    # What is in memory may be written to by others who hold it.
    if not isinstance(relation, operations.DatabaseTable):
        return False
    place = relation.namespace
    if backend == "duckdb":
        return _is_stored_in_duckdb(engine, relation.name, place.database)
    parts = [part for part in (place.catalog, place.database) if part is not None]
    if backend == "postgres":
        return _is_stored_in_postgres(engine, [*parts[-1:], relation.name])
    return _is_stored_in_spark(engine, [*parts, relation.name])


def is_guessed(table: Any) -> bool:
    """Tell whether a table of DuckDB reads files whose rows decide its types.

    Parameters
    ----------
    table : Ibis table
        A table, a view of any others, or an expression.

    Examples
    --------
    >>> import ibis
    >>> engine = ibis.duckdb.connect()
    >>> _ = engine.raw_sql("CREATE TABLE visits (zone VARCHAR)")
    >>> is_guessed(engine.table("visits"))
    False
    """
    engine = table.get_backend()
    text = str(engine.compile(table))
    left = dict(engine.con.execute(_ALL_VIEWS).fetchall())
    while used := [name for name in left if name in text]:
        text += "".join(left.pop(name) for name in used)
    return bool(_GUESSED.search(text))


def _is_stored_in_duckdb(engine: Any, name: str, schema: str | None) -> bool:
    """Return False if any relation of the name may be computed."""
    views = engine.con.execute(_DUCKDB_VIEWS, [name, schema, schema]).fetchall()
    if views:
        return all(_FILES.fullmatch(str(sql)) for [sql] in views)
    tables = engine.con.execute(_DUCKDB_TABLES, [name]).fetchall()
    return bool(tables) and all(here for [here] in tables)


def _is_stored_in_postgres(engine: Any, parts: list[str]) -> bool:
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    with engine.begin() as cursor:
        found = cursor.execute(_POSTGRES_RELATIONS, (quoted,)).fetchall()
    return all(kind in _POSTGRES_KINDS for [kind] in found) and bool(found)


def _is_stored_in_spark(engine: Any, parts: list[str]) -> bool:
    quoted = ".".join("`" + part.replace("`", "``") + "`" for part in parts)
    return engine._session.catalog.getTable(quoted).tableType in _SPARK_KINDS
