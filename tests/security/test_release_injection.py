"""No text of a release file reaches an engine as anything but a name or a value."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from hypothesis import assume, example
from hypothesis import strategies as st

from support.examples import given_examples
from support.release_documents import visits_mapping
from undertow.errors import UndertowError
from undertow.release import from_table, plan_release, release_from_mapping
from undertow.release.engine.job import Bounding, Grid, Job
from undertow.release.engine.pipeline import run_jobs
from undertow.release.run import protocol as run_module
from undertow.release.source.opening import open_source

ATTACKS = [
    "'; DROP TABLE canary; --",
    '"; DROP TABLE canary; --',
    '"); DELETE FROM canary; --',
    "') OR 1=1 --",
    "x' UNION SELECT secret FROM canary --",
    "(SELECT max(secret) FROM canary)",
    "\" FROM canary; ATTACH '/tmp/x' AS y; --",
    "read_csv('/etc/passwd')",
    "$$; DROP TABLE canary; $$",
    "E'\\'; DROP TABLE canary; --",
    "\\'; DROP TABLE canary; --",
    "/* */ canary /* */",
    "%(secret)s {secret} %s ? :secret $1",
    "`canary`; ``",
    "＇； DROP TABLE canary； －－",  # the wide forms of the quotes
    "a\nb\r\n; DROP TABLE canary",
    "\u202e elbat pord",
]
SOME_OR_ALL = pytest.mark.parametrize(
    "attacks",
    [
        pytest.param(ATTACKS[::4], id="some"),
        pytest.param(ATTACKS, id="all", marks=pytest.mark.slow),
    ],
)
MARKS = "' \" ` ; -- /* */ \\ $$ %s :a ? {x} ( ) OR 1=1 SELECT canary é 😀".split()
PIECES = st.sampled_from([*MARKS, " ", "\n", "DROP TABLE canary"])
HOSTILE = st.one_of(
    st.sampled_from(ATTACKS),
    st.lists(PIECES, min_size=1, max_size=8).map("".join),
    st.text(min_size=1, max_size=20),
).filter(lambda text: ("\0" not in text and text.isprintable()) or text in ATTACKS)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def base(**source) -> dict:
    return visits_mapping(
        {"where": "minutes > 0", "keys": {"zone": ["A", "B"]}},
        source={"unit": "person", **source},
        bounds={"rows_per_unit": 9},
    )


def asked(mapping, table):
    """The aggregates of a release, without its noise."""
    release = from_table(table, mapping)
    plan = release.plan()
    with open_source(table) as source:
        [found] = run_module._ask(plan, source)
    return {
        cell: int(n)
        for cell, n in zip(found.cells, found.measures["rows"], strict=True)
    }


NAMES = st.lists(HOSTILE, min_size=4, max_size=4, unique_by=str.casefold)


@given_examples(5, 30, NAMES, HOSTILE)
@example(ATTACKS[:4], ATTACKS[4])
def test_hostile_names_and_keys_are_names_and_keys(names, key):
    unit, zone, minutes, query = names
    assume(key != "zzz" and not {unit, zone, minutes} & {"undertow_window"})
    people = [1, 1, 2, 3, 3, 4]
    zones = [key, "zzz", key, None, key, "zzz"]
    spent = [5, 0, 7, 8, 9, 3]
    table = pa.table({unit: people, zone: zones, minutes: spent})
    mapping = base(unit=unit)
    mapping["queries"][0] |= {
        "name": query,
        "where": f"{quoted(minutes)} > 4 and {quoted(zone)} = {literal(key)}",
        "by": [zone],
        "keys": {zone: [key, "absent"]},
    }
    truth = Counter(z for z, m in zip(zones, spent, strict=True) if z == key and m > 4)
    assert asked(mapping, table) == {(key,): truth[key], ("absent",): 0}


FIELDS = [
    ("source", "table"),
    ("source", "relation"),
    ("source", "unit"),
    ("source", "time"),
    ("source", "format"),
    ("source", "per"),
    ("source", "start"),
    ("source", "horizon"),
    ("promise", "granularity"),
    ("promise", "epsilon"),
    ("queries", "name"),
    ("queries", "select"),
    ("queries", "column"),
    ("queries", "where"),
    ("queries", "by"),
    ("queries", "keys"),
    ("queries", "low"),
    ("queries", "share"),
    ("columns", "zone2"),
]


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("canary") / "city.duckdb"
    with duckdb.connect(str(path)) as link:
        link.execute("CREATE TABLE canary AS SELECT 'SECRET-7731' AS secret")
        link.execute("CREATE TABLE visits (person INT, zone VARCHAR, minutes INT)")
        link.execute("INSERT INTO visits VALUES (1, 'A', 1), (2, 'B', 2), (3, 'A', 0)")
    return path


def rest_of(path: Path) -> list:
    with duckdb.connect(str(path), read_only=True) as link:
        tables = link.execute("SHOW TABLES").fetchall()
        return [tables, link.execute("SELECT * FROM canary").fetchall()]


def placed(part: str, field: str, text: str, path: Path) -> dict:
    mapping = deepcopy(base(table=str(path), relation="visits"))
    if part == "queries":
        listed = {"by": [text], "keys": {"zone": [text]}}
        mapping["queries"][0][field] = listed.get(field, text)
    else:
        mapping.setdefault(part, {})[field] = text
    return mapping


def counted(mapping: dict, folder: Path) -> list[int]:
    document = release_from_mapping(mapping)
    plan = plan_release(document)
    with open_source(document.source, folder=folder) as source:
        [found] = run_module._ask(plan, source)
    return [int(number) for number in found.measures["rows"]]


@pytest.mark.parametrize(("part", "field"), FIELDS)
@SOME_OR_ALL
def test_an_attack_in_any_text_is_refused_in_one_sentence_or_changes_nothing(
    part, field, attacks, database
):
    before = rest_of(database)
    for text in attacks:
        mapping, counts, said = placed(part, field, text, database), None, ""
        try:
            counts = counted(mapping, database.parent)
        except UndertowError as fault:
            said = str(fault)
        if counts is None:
            assert said.endswith(".")
            assert "SECRET-7731" not in said
        else:
            assert counts == ([0] if field == "keys" else [1, 1]), text
    assert rest_of(database) == before


@given_examples(3, 15, text=HOSTILE)
def test_a_hostile_table_name_is_a_table_name(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("names") / "city.duckdb"
    with duckdb.connect(str(path)) as link:
        link.execute("CREATE TABLE canary AS SELECT 'SECRET-7731' AS secret")
        link.execute(f"CREATE TABLE {quoted(text)} AS SELECT 1 AS person")
    before = rest_of(path)
    document = release_from_mapping(base(table=str(path), relation=text))
    with open_source(document.source, folder=path.parent) as source:
        assert source.columns == ("person",)
        job = Job("n", ("rows",))
        [found] = run_jobs(source, [job], bounding=Bounding("person", 1))
    assert found.measures["rows"].tolist() == [1]
    assert rest_of(path) == before


@pytest.fixture(scope="module")
def url(postgres) -> str:
    return postgres.create_database("injection")


@SOME_OR_ALL
def test_attacks_on_postgresql_change_nothing(url, postgres, attacks):
    with postgres.connect("injection") as link:
        link.execute("CREATE TABLE canary AS SELECT 'SECRET-7731' AS secret")
        for text in attacks:
            name = text.replace("\n", " ")[:40].rstrip()  # of 63 bytes at most
            link.execute("DROP TABLE IF EXISTS attacked")
            link.execute(
                "CREATE TABLE attacked AS SELECT 1 AS person,"
                f" {literal(text)} AS {quoted(name)}".replace("%", "%%").encode(),
                [],
            )
            grid = Grid((name,), ((text, "absent"),))
            job = Job("n", ("rows", "units"), by=(name,), grid=grid)
            with open_source(f"{url}#attacked") as source:
                [found] = run_jobs(source, [job], bounding=Bounding("person", 1))
            assert found.measures["units"].tolist() == [1, 0], text
        with pytest.raises(UndertowError):
            open_source(f"{url}#canary; DROP TABLE canary")
        found = link.execute("SELECT secret FROM canary").fetchall()
        assert found == [("SECRET-7731",)]
        link.execute("DROP TABLE canary")


def test_a_session_on_postgresql_can_only_read(url, postgres):
    with postgres.connect("injection") as link:
        link.execute("CREATE TABLE visits AS SELECT 1 AS person")
    with open_source(f"{url}#visits") as source:
        backend = source.table.get_backend()
        with pytest.raises(Exception, match="read-only transaction"):
            backend.raw_sql("DROP TABLE visits")
        backend.con.rollback()


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO '{folder}/stolen.csv'",
        "SELECT * FROM read_csv('/etc/hostname')",
        "ATTACH '{folder}/other.duckdb' AS other",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SET lock_configuration = false",
    ],
)
def test_duckdb_is_shut_off_from_everything_but_the_table(tmp_path, statement):
    (tmp_path / "visits.csv").write_text("person\n1\n")
    with open_source(tmp_path / "visits.csv") as source:
        backend = source.table.get_backend()
        with pytest.raises(duckdb.Error):
            backend.raw_sql(statement.format(folder=tmp_path)).fetchall()
        count = source.table.aggregate(n=source.table.count())
        assert source.execute(count).to_pylist() == [{"n": 1}]
    assert [path.name for path in tmp_path.iterdir()] == ["visits.csv"]
