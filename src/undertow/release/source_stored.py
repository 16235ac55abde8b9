"""Whether a table is stored, or computed anew by every statement that reads it.

A view or an expression may sample, or ask for the time: two statements, or two places
of one statement, then read other rows. Bounds hold only for rows that stay, and
whose types no row decides.
"""

from __future__ import annotations

import re
from typing import Any

from undertow.release._extras import load
from undertow.release.engine_sql import Backend

__all__ = ["is_guessed", "is_stored"]

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
_POSTGRES = (
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
        return _in_duckdb(engine, relation.name, place.database)
    parts = [part for part in (place.catalog, place.database) if part is not None]
    if backend == "postgres":
        return _in_postgres(engine, [*parts[-1:], relation.name])
    return _in_spark(engine, [*parts, relation.name])


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


def _in_duckdb(engine: Any, name: str, schema: str | None) -> bool:
    """Return False if any relation of the name may be computed."""
    views = engine.con.execute(_DUCKDB_VIEWS, [name, schema, schema]).fetchall()
    if views:
        return all(_FILES.fullmatch(str(sql)) for [sql] in views)
    tables = engine.con.execute(_DUCKDB_TABLES, [name]).fetchall()
    return bool(tables) and all(here for [here] in tables)


def _in_postgres(engine: Any, parts: list[str]) -> bool:
    quoted = ".".join('"' + part.replace('"', '""') + '"' for part in parts)
    with engine.begin() as cursor:
        found = cursor.execute(_POSTGRES, (quoted,)).fetchall()
    return all(kind in _POSTGRES_KINDS for [kind] in found) and bool(found)


def _in_spark(engine: Any, parts: list[str]) -> bool:
    quoted = ".".join("`" + part.replace("`", "``") + "`" for part in parts)
    return engine._session.catalog.getTable(quoted).tableType in _SPARK_KINDS
