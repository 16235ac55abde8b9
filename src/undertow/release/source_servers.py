"""Tables behind connection URLs: DuckDB files, PostgreSQL, Spark."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from undertow._address import Address, read_address
from undertow.errors import EngineError, PlanError, UndertowError
from undertow.release._extras import load
from undertow.release.limits import ended_by, limited_s, stops_postgres
from undertow.release.source import Source, guarded, texts_as_written
from undertow.release.source_collated import has_collations
from undertow.release.source_files import Limits, open_file
from undertow.release.source_own import require_own_functions
from undertow.release.source_paths import existing_part
from undertow.release.source_stored import is_stored

__all__ = ["is_url", "open_url"]

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
