"""No function of a database, no setting of a role and no memory gets past a bound."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import duckdb
import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from undertow.errors import PlanError
from undertow.release.engine.job import Bounding, Grid, Job
from undertow.release.engine.pipeline import run_jobs
from undertow.release.source.opening import open_source

MOST = 3
TOTAL = Job("all", ("rows",), grid=Grid((), ()))
DATA = "SELECT 'p' AS person, 'A' AS zone FROM range(50)"


@pytest.mark.parametrize(
    "macro",
    ["min(a, b) AS CAST([] AS BIGINT[])", "MD5(x) AS x", "range(n) AS TABLE SELECT 1"],
)
def test_a_macro_in_the_place_of_a_function_is_refused(tmp_path, macro):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as link:
        link.execute(f"CREATE TABLE visits AS {DATA}")
        link.execute(f"CREATE MACRO {macro}")
    with pytest.raises(PlanError, match="leave built-in functions as they are, got"):
        open_source(path)
    engine = ibis.duckdb.connect(str(path))
    with pytest.raises(PlanError, match="leave built-in functions as they are, got"):
        open_source(engine.table("visits"))
    engine.disconnect()


def test_macros_of_other_names_are_left_alone(tmp_path):
    path = tmp_path / "t.duckdb"
    with duckdb.connect(str(path)) as link:
        link.execute(f"CREATE TABLE visits AS {DATA}")
        link.execute("CREATE MACRO smaller(a, b) AS least(a, b)")
    with open_source(path) as source:
        [found] = run_jobs(source, [TOTAL], bounding=Bounding("person", MOST))
    assert found.measures["rows"].tolist() == [MOST]


@pytest.mark.parametrize("order", ["ASC", "DESC"])
def test_a_connection_that_sorts_downwards_is_refused(order):
    engine = ibis.duckdb.connect()
    engine.raw_sql(f"CREATE TABLE visits AS {DATA}")
    engine.raw_sql(f"SET default_order = '{order}'")
    if order == "DESC":
        with pytest.raises(PlanError, match="must sort upwards, got another default"):
            open_source(engine.table("visits"))
    else:
        with open_source(engine.table("visits")) as source:
            [found] = run_jobs(source, [TOTAL], bounding=Bounding("person", 1))
        assert found.measures["rows"].tolist() == [1]
    engine.disconnect()


@pytest.fixture(scope="module")
def url(postgres: Any) -> str:
    where = str(postgres.create_database("own_functions"))
    with postgres.connect("own_functions") as link:
        link.execute("CREATE TABLE visits (person varchar, zone text)")
        link.execute(
            "INSERT INTO visits SELECT 'p', 'A' FROM generate_series(1, 50)"
            " UNION ALL SELECT 'q', E'\\\\'"
        )
        link.execute("CREATE ROLE odd_reader LOGIN")
        link.execute("GRANT SELECT ON visits TO odd_reader")
        link.execute("CREATE SCHEMA other")
        link.execute("GRANT USAGE ON SCHEMA other TO odd_reader")
    return where.replace("postgres@", "odd_reader@")


@pytest.fixture
def altered(postgres: Any) -> Any:
    """Run statements for one test, and others after it."""
    after: list[str] = []
    with postgres.connect("own_functions") as link:

        def alter(statement: str, undo: str) -> None:
            link.execute(statement)
            after.append(undo)

        yield alter
        for statement in reversed(after):
            link.execute(statement)


def test_a_function_in_the_place_of_a_conversion_is_refused(url, altered):
    altered(
        "CREATE FUNCTION public.text(varchar) RETURNS text LANGUAGE sql VOLATILE AS"
        " 'SELECT pg_catalog.random()::pg_catalog.text'",
        "DROP FUNCTION public.text(varchar)",
    )
    with pytest.raises(PlanError, match="as they are, got its own 'text'"):
        open_source(f"{url}#visits")


def test_an_operator_in_the_place_of_another_is_refused(url, altered):
    altered(
        "CREATE FUNCTION other.never(varchar, varchar) RETURNS boolean"
        " LANGUAGE sql AS 'SELECT false'",
        "DROP FUNCTION other.never",
    )
    altered(
        "CREATE OPERATOR public.= (LEFTARG = varchar, RIGHTARG = varchar,"
        " FUNCTION = other.never)",
        "DROP OPERATOR public.= (varchar, varchar)",
    )
    with pytest.raises(PlanError, match="as they are, got its own '='"):
        open_source(f"{url}#visits")


def test_functions_off_the_path_and_of_other_names_are_left_alone(url, altered):
    body = "RETURNS text LANGUAGE sql AS 'SELECT NULL::pg_catalog.text'"
    altered(f"CREATE FUNCTION other.text(varchar) {body}", "DROP FUNCTION other.text")
    altered(f"CREATE FUNCTION public.mine(varchar) {body}", "DROP FUNCTION public.mine")
    with open_source(f"{url}#visits") as source:
        [found] = run_jobs(source, [TOTAL], bounding=Bounding("person", MOST))
    assert found.measures["rows"].tolist() == [MOST + 1]


def test_a_path_before_that_of_the_server_is_refused(url, altered):
    altered(
        "ALTER ROLE odd_reader SET search_path = other, pg_catalog, public",
        "ALTER ROLE odd_reader RESET search_path",
    )
    with pytest.raises(PlanError, match="search_path of the role must leave pg_cat"):
        open_source(f"{url}#public.visits")


def test_a_backslash_in_a_key_ends_no_text(url, altered, postgres):
    altered(
        "ALTER ROLE odd_reader SET standard_conforming_strings = off",
        "ALTER ROLE odd_reader RESET standard_conforming_strings",
    )
    keys = ("\\", "\\' OR true --")
    job = Job("q", ("rows",), by=("zone",), grid=Grid(("zone",), (keys,)))
    with open_source(f"{url}#visits") as source:
        [found] = run_jobs(source, [job])
    assert found.measures["rows"].tolist() == [1, 0]
    engine = ibis.postgres.connect(
        host="127.0.0.1",
        port=postgres.port,
        user="odd_reader",
        database="own_functions",
    )
    with pytest.raises(PlanError, match="standard_conforming_strings on, got off"):
        open_source(engine.table("visits"))
    engine.disconnect()


def test_a_table_with_a_policy_or_a_part_elsewhere_is_not_stored(url, postgres):
    with postgres.connect("own_functions") as link:
        link.execute("CREATE TABLE guarded (person int, zone text)")
        link.execute("ALTER TABLE guarded ENABLE ROW LEVEL SECURITY")
        link.execute("CREATE TABLE whole (person int) PARTITION BY LIST (person)")
        link.execute("CREATE TABLE part PARTITION OF whole DEFAULT")
        link.execute("CREATE TABLE mixed (person int) PARTITION BY LIST (person)")
        link.execute("CREATE FOREIGN DATA WRAPPER w")
        link.execute("CREATE SERVER far FOREIGN DATA WRAPPER w")
        link.execute("CREATE FOREIGN TABLE f PARTITION OF mixed DEFAULT SERVER far")
        link.execute("GRANT SELECT ON guarded, whole, mixed TO odd_reader")
    for name, stored in (("guarded", False), ("whole", True), ("mixed", False)):
        with open_source(f"{url}#{quote(name)}") as source:
            assert source.stored is stored


def made(kind: str, memory: np.ndarray[Any, Any]) -> Any:
    """Return a table over numbers that others hold."""
    if kind == "pandas":
        return pd.DataFrame({"person": memory}, copy=False)
    if kind == "polars":
        return pl.DataFrame({"person": memory})
    table = pa.table({"person": pa.array(memory)})
    return ibis.memtable(table) if kind == "memtable" else table


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "memtable"])
def test_memory_that_is_written_to_meanwhile_is_bounded(kind, monkeypatch):
    memory = np.arange(1000)
    with open_source(made(kind, memory)) as source:
        execute = source.execute

        def writing(table: Any) -> Any:
            found = execute(table)
            memory[:] = 0  # all rows are of one unit from now on
            return found

        monkeypatch.setattr(source, "execute", writing)
        jobs = [Job("all", ("rows", "units"), grid=Grid((), ()))]
        [found] = run_jobs(source, jobs, bounding=Bounding("person", MOST))
    rows, units = (int(found.measures[name][0]) for name in ("rows", "units"))
    assert rows <= MOST * units


def test_a_reader_that_can_be_read_once_is_refused():
    table = pa.table({"person": [1, 2]})
    with pytest.raises(PlanError, match="can be read again, got a RecordBatchReader"):
        open_source(table.to_reader())


def test_a_table_all_of_whose_columns_are_its_index_is_one_sentence():
    table = pd.DataFrame({"person": [1, 2], "zone": ["A", "B"]})
    with pytest.raises(PlanError, match="table must have columns, got none"):
        open_source(table.set_index(["person", "zone"]))
