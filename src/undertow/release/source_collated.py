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
# Views may read any table, and an expression call any macro; a comment with the word
# is no harm.
_DUCKDB = (
    "SELECT count(*) FROM (SELECT sql, internal FROM duckdb_tables() UNION ALL"
    " SELECT sql, internal FROM duckdb_views() UNION ALL"
    " SELECT macro_definition, internal FROM duckdb_functions())"
    f" WHERE NOT internal AND contains(lower(sql), '{_WORD}')"
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
        [[found]] = engine.con.execute(_DUCKDB).fetchall()
        # SQL of its own may state a collation that no table has.
        return bool(found) or _WORD in str(engine.compile(table)).lower()
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
