"""A private value never shows: not in words, files, ledger or report."""

from __future__ import annotations

import json
import logging
import traceback

import pyarrow as pa
import pytest

from support.command import invoke
from support.release_documents import visits_mapping, write_visits
from undertow.cli.app import app
from undertow.errors import UndertowError
from undertow.release import from_table
from undertow.release.source.opening import open_source

TEXT, NUMBER = "CANARY-91f3e7", 918273645546372
MARKS = (TEXT, str(NUMBER))

QUERIES = [
    {"name": "by zone", "select": "count", "by": ["zone"], "keys": "discover"},
    {
        "name": "minutes",
        "select": "sum",
        "column": "minutes",
        "low": 0,
        "high": 60,
        "where": "zone != 'nowhere'",
    },
]


@pytest.fixture
def folder(tmp_path):
    rows = [f"p{k},A,{k % 60}" for k in range(2000)]
    rows[7] = f"{TEXT},{TEXT},{NUMBER}"
    write_visits(
        tmp_path,
        rows,
        columns="person,zone,minutes",
        source={"types": {"minutes": "int"}},
        promise={"granularity": "user", "epsilon": "1", "delta": "1e-6"},
        queries=QUERIES,
    )
    return tmp_path


def check_clean(content: str | bytes, where: str) -> None:
    text = content if isinstance(content, str) else content.decode("utf-8", "replace")
    for mark in MARKS:
        assert mark not in text, where


def test_a_run_shows_the_canary_nowhere(folder, runs):
    words = ("release", "run", "visits.toml", "--report", "report.html")
    killed = runs.run(*words, folder=folder, at="/_folder.write_files")
    assert killed.status == -9  # so that the journal of the ledger is there, too
    for path in folder.rglob("*"):
        if path.is_file() and path.name != "visits.csv":
            check_clean(path.read_bytes(), path.name)
    done = runs.run(*words, folder=folder)
    assert done.status == 0, done.error
    check_clean(done.output + done.error, "words")
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"manifest.json", "report.html"}
    for path in files:
        if path.name != "visits.csv":
            check_clean(path.read_bytes(), path.name)
    listed = (folder / "release" / "01-by-zone.csv").read_text()
    assert "A," in listed  # two thousand people are enough to be discovered


def test_the_manifest_holds_no_seed_and_no_password(folder):
    assert invoke("release", "run", folder / "visits.toml").exit_code == 0
    text = (folder / "release" / "manifest.json").read_text().lower()
    for word in ('"seed"', '"random_state"', "password", '"nodes"', '"aggregates"'):
        assert word not in text
    assert json.loads(text)["charge"]["number"] == 1


TABLE = pa.table(
    {
        "person": [TEXT, "b", "c"],
        "zone": [TEXT, "A", None],
        "minutes": [NUMBER, 3, 4],
        "share": [0.5, float("nan"), None],
        "list": [[NUMBER], [1], []],
    }
)
FAULTS = [
    {"select": "sum", "column": "zone", "low": 0, "high": 1},
    {"select": "sum", "column": "absent", "low": 0, "high": 1},
    {"where": "zone > 3"},
    {"where": "minutes / (minutes - minutes) > 1"},
    {"where": "minutes * minutes * minutes > 1"},
    {"where": "hour(zone) = 3"},
    {"by": ["share"], "keys": {"share": ["a"]}},
    {"by": ["minutes"], "keys": {"minutes": ["a"]}},
    {"by": ["list"], "keys": {"list": ["a"]}},
    {"by": ["zone"], "keys": {"zone": "2026-01-01..2026-01-31"}},
]


def asked(**changes):
    return visits_mapping(queries=[{"name": "n", "select": "count", **changes}])


@pytest.mark.parametrize("changes", FAULTS, ids=range(len(FAULTS)))
def test_no_fault_says_the_canary(tmp_path, caplog, changes):
    caplog.set_level(logging.DEBUG)
    path = tmp_path / "visits.ledger"
    said = ""
    try:
        release = from_table(TABLE, asked(**changes))
        release.create_ledger(path).close()
        release.run(ledger=path)
    except UndertowError as fault:
        said = "".join(traceback.format_exception(fault)) + repr(fault)
    check_clean(said, "exception")
    check_clean(caplog.text, "log")
    if path.exists():
        check_clean(path.read_bytes(), "ledger")


def test_a_value_of_another_type_stops_nothing_and_is_not_repeated(folder):
    # If one person's row could stop the release, that it stopped would tell of them.
    with (folder / "visits.csv").open("a") as file:
        file.write(f"last,A,{TEXT}\n")
    done = invoke("release", "run", folder / "visits.toml")
    assert done.exit_code == 0, done.stderr
    check_clean(done.stdout + done.stderr, "words")


def test_nothing_that_holds_data_shows_it_in_its_repr():
    with open_source(TABLE) as source:
        check_clean(repr(source), "source")
    check_clean(repr(from_table(TABLE, asked()).plan()), "plan")


def test_faults_of_our_own_show_no_local_values():
    # Tracebacks of the command are for developers; locals could hold rows.
    assert app.pretty_exceptions_show_locals is False
