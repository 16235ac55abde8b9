"""Whether text may compare as equal without being the same, by a collation.

Engines then take ``'a'`` and ``'A'`` for one group in some places and for two in
others, and name the group after whichever row they read first: a unit would escape its
bounds, and the row of one person would move the rows of others to another key.
"""

from __future__ import annotations

from typing import Any

from undertow.errors import PlanError
from undertow.release.engine_sql import Backend

__all__ = ["has_collations"]

_DUCKDB_DEFAULT = "SELECT lower(current_setting('default_collation'))"
_WORD = "collate"
# Views may read any table; a comment with the word is no harm.
_DUCKDB = (
    "SELECT count(*) FILTER (viewed),"
    f" count(*) FILTER (contains(lower(sql), '{_WORD}'))"
    " FROM (SELECT sql, internal, false AS viewed FROM duckdb_tables() UNION ALL"
    " SELECT sql, internal, true FROM duckdb_views()) WHERE NOT internal"
)
_DUCKDB_MACROS = (
    "SELECT count(*) FROM duckdb_functions()"
    f" WHERE NOT internal AND contains(lower(macro_definition), '{_WORD}')"
)
_POSTGRES = "SELECT count(*) FROM pg_collation WHERE NOT collisdeterministic"
_PLAIN = ("", "binary", "c", "posix")
_SPARK_PLAIN = "UTF8_BINARY"


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
        [[name]] = engine.con.execute(_DUCKDB_DEFAULT).fetchall()
        if name not in _PLAIN:
            raise PlanError(
                "the default collation of the DuckDB connection must be binary, got "
                "another; set default_collation = ''."
            )
        return _in_duckdb(engine, str(engine.compile(table)).lower())
    if backend == "postgres":
        with engine.begin() as cursor:
            [[found]] = cursor.execute(_POSTGRES).fetchall()
        return bool(found)
    engine._run_pre_execute_hooks(table)  # names what is in memory
    schema = engine._session.sql(engine.compile(table)).schema
    # Before its fourth version Spark has none.
    kinds = (each.dataType for each in schema)
    return any(
        getattr(kind, "collation", _SPARK_PLAIN) != _SPARK_PLAIN for kind in kinds
    )


def _in_duckdb(engine: Any, written: str) -> bool:
    """Tell whether a table, a view, a macro or the query itself states a collation."""
    [[views, found]] = engine.con.execute(_DUCKDB).fetchall()
    if found or _WORD in written:
        return True
    # The list of functions is long, and only views and expressions call any.
    if not views and "(" not in written:
        return False
    [[found]] = engine.con.execute(_DUCKDB_MACROS).fetchall()
    return bool(found)
