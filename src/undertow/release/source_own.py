"""Whether what a query says means what the engine's own manual says.

A database may hold functions under the names of built-in ones. A macro ``min(a, b)`` of
a DuckDB file comes before the aggregate that finds the last row kept of a unit, and a
function ``text(varchar)`` of PostgreSQL before the conversion of the column that tells
units apart: units would escape their bounds. A function that a Spark session registers
as ``min`` is called in place of Spark's. So would units escape in a session that sorts
downwards, or reads texts in another way.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from undertow.errors import PlanError
from undertow.release.engine_sql import Backend

__all__ = ["require_own_functions"]

_DUCKDB = (
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
_POSTGRES = """
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
_NAMES = (
    "abs char_length concat convert_from convert_to count date date_part date_trunc"
    " decode extract floor get_byte left length make_date make_timestamp md5 mod"
    " numeric position replace right round row_number string_to_array substr substring"
    " sum text timestamp timezone to_timestamp translate unnest"
    " = <> < <= > >= + - * / % & | << >> || ~"
).split()
"""What the queries of a release use of PostgreSQL."""
_SPARK = "org.apache.spark.sql.catalyst."  # where the classes of its functions are


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
        found = engine.con.execute(_DUCKDB).fetchall()
        [[ascending]] = engine.con.execute(_DUCKDB_ORDER).fetchall()
        if not ascending:  # the last place kept of a unit would be another
            raise PlanError(
                "the DuckDB connection must sort upwards, got another default_order; "
                "set default_order = 'ASC'."
            )
    elif backend == "postgres":
        with engine.begin() as cursor:
            [[path, plain]] = cursor.execute(_POSTGRES_SESSION).fetchall()
            found = cursor.execute(_POSTGRES, (_NAMES,)).fetchall()
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
            or not (function.className or _SPARK).startswith(_SPARK)
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
