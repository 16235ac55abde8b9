"""One budget for the people, whatever the file, the address or the ledger is called."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import undertow as ut
from support.command import invoke
from support.command import run as command
from support.release_documents import visits_mapping, write_visits
from undertow.errors import BudgetError, LedgerError, MismatchError
from undertow.ledger import BudgetLedger
from undertow.ledger._folder import is_same
from undertow.release import from_table, load
from undertow.release.document.release_document import (
    read_release,
    release_from_mapping,
)
from undertow.release.plan.planned_release import plan_release
from undertow.release.run._earlier import HEADS, kept_heads
from undertow.release.run.record import run_keys
from undertow.release.source._place import table_of

SCHEMA_2 = Path(__file__).parents[1] / "ledger" / "schema_2.sql"
TOTAL = {"by": [], "keys": {}}
TWO = {ut.User(): ut.Pure(2)}
RELEASE = ut.Release(
    "n", ut.Pure("1/999"), unit=ut.User(), view=ut.At(0), setting="view"
)


def run(path, *words):
    return invoke("release", "run", path, *words)


def weekly(folder, number, **source):
    """A release of the table of one week."""
    (folder / f"w{number}.csv").write_text("person,zone\n1,A\n2,B\n")
    table = {"table": f"w{number}.csv", **source}
    name, output = f"w{number}.toml", {"folder": f"out{number}"}
    return write_visits(folder, name=name, source=table, query=TOTAL, output=output)


def ledger(path, budgets=TWO, domain=None):
    return BudgetLedger.create(
        path, dataset="x", domain=domain or ut.Stream(10**9, 1), budgets=budgets
    )


def only(path):
    return [p.name for p in sorted(path.rglob("*")) if p.name.endswith("ledger")]


# Two tables, two charges.


class Kept:
    """A ledger of which only the place matters."""

    def __init__(self, name):
        self.name = str(name)


def keys_of(table, relation=None, *, kept="/srv/x.ledger"):
    source = {"table": table, "unit": "person"}
    source |= {} if relation is None else {"relation": relation}
    document = release_from_mapping(visits_mapping(source=source))
    return run_keys(plan_release(document), Kept(kept), repeat=1)


WORDS = st.text(alphabet="abtoken=pwdsecret@:&", min_size=1, max_size=12)


@given(WORDS, WORDS)
def test_files_in_folders_of_other_names_have_other_keys(one, two):
    first, second = (keys_of(f"/data/token={w}/visits.csv") for w in (one, two))
    assert (first.exact[0] == second.exact[0]) == (one == two)
    assert not {*first.exact} & {*second.exact} or one == two


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        ("postgres://ann:a@db/x", "postgres://ann:b@db/x", True),
        ("postgres://ann@DB/x", "postgresql://ann@db:5432/x", True),
        (
            "postgres://ann@db/x?options=a%40b",
            "postgres://ann@db/y?options=a%40b",
            False,
        ),
        ("postgres://ann@db/x", "postgres://bob@db/x", False),
        ("postgres://ann:p@db/x", "postgres://ann:p@db2/x", False),
        ("postgres://ann@db/x?sslmode=require", "postgres://ann@db/x", False),
        ("spark://local", "spark://other:7077", False),
    ],
)
def test_addresses_have_one_key_exactly_if_they_differ_in_passwords(one, two, same):
    first, second = keys_of(one, "visits"), keys_of(two, "visits")
    assert (first.exact[0] == second.exact[0]) == same
    assert keys_of(one, "other").exact[0] != first.exact[0]


def test_a_file_is_one_table_under_its_relative_and_its_whole_name(tmp_path):
    path = write_visits(tmp_path)
    whole = {"table": str(tmp_path / "visits.csv")}
    other = write_visits(tmp_path, name="other.toml", source=whole)
    done = load(path).run()
    again = load(other).run(output=tmp_path / "other")
    assert again.repeated
    assert not again.by_name
    assert again.answers == done.answers


def test_folders_that_look_like_secrets_are_charged_each(tmp_path):
    answers = []
    with ledger(tmp_path / "x.ledger") as made:
        for name in ("token=a", "token=b"):
            folder = tmp_path / name
            folder.mkdir()
            rows = [f"{k},A" for k in range(700 * len(answers) + 1)]
            whole = {"table": str(folder / "visits.csv")}
            path = write_visits(folder, rows, source=whole)
            answers.append(load(path).run(ledger=made))
        assert made.losses() == {"user": ut.Pure(2)}
    assert not answers[1].repeated
    assert (
        answers[0].answers[0]["rows"][0][1] < 350 < answers[1].answers[0]["rows"][0][1]
    )


@pytest.mark.parametrize(
    ("table", "relation", "key", "sure"),
    [
        # As the version before wrote them, with the ledger in /data.
        ("/data/visits.csv", None, "d14f3f42e43509ab4f6d8cea943efd153dbae6399189a1bf50f18f50842ae328", True),  # noqa: E501
        ("/data/token=a/visits.csv", None, "098c3b8f02fbee3fd004049717885d36fce2e35ece277b031813e3bfe465e98c", False),  # noqa: E501
        ("postgres://ann:pw@db/city", "visits", "5beed7ab4585b304b6f78229b6e4829ea4f668f7e8a6c26e09379a814b6e3ec9", False),  # noqa: E501
        ("postgres://ann@db/city", "visits", "b3020075cdbcaf7f3cdc005d5749d308c71a249cd2860095cb1d75c9266c5197", True),  # noqa: E501
    ],
)  # fmt: skip
def test_keys_of_the_version_before_are_still_asked_for(table, relation, key, sure):
    found = keys_of(table, relation, kept="/data/visits.ledger")
    assert key in (found.exact if sure else found.alike)
    assert key != found.exact[0]


def test_a_table_in_memory_keeps_its_key():
    document = release_from_mapping(visits_mapping(), in_memory=True)
    assert run_keys(plan_release(document), Kept("/x"), repeat=1).exact == (
        "306bb1626c9137ff5b0e4e3add68307bc40cef665ee8b3351ad38ba2d3fd749f",
    )


def test_declaring_people_is_no_other_release():
    source = {"table": "/data/visits.csv", "unit": "person", "people": "visitors"}
    document = release_from_mapping(visits_mapping(source=source))
    found = run_keys(plan_release(document), Kept("/srv/x.ledger"), repeat=1)
    assert found == keys_of("/data/visits.csv")
    assert document.to_dict()["source"]["people"] == "visitors"
    plain = release_from_mapping(visits_mapping(source={**source, "people": "a"}))
    assert plain.fingerprint() != document.fingerprint()


def test_a_ledger_of_the_version_before_returns_what_it_stored(tmp_path):
    path = write_visits(tmp_path)
    with closing(sqlite3.connect(tmp_path / "visits.ledger")) as link:
        link.executescript(SCHEMA_2.read_text(encoding="utf-8"))
    done = load(path).run()
    assert done.repeated
    assert not done.by_name
    assert done.charge.number == 1
    with BudgetLedger.open(tmp_path / "visits.ledger") as found:
        assert found.verify() == []
        assert len(found.history()) == 2
    assert (tmp_path / "visits.ledger.schema2.bak").exists()


# Names of ledgers.


@pytest.mark.parametrize("where", ["option", "file"])
def test_a_ledger_that_is_named_is_never_made_by_a_run(tmp_path, monkeypatch, where):
    monkeypatch.chdir(tmp_path)
    path = write_visits(tmp_path)
    load(path).create_ledger("x.ledger").close()
    assert run(path, "--ledger", "x.ledger").exit_code == 0
    words = ["--ledger", "x.ledgr", "--output", "elsewhere"]
    if where == "file":
        stated = {"url": "x.ledgr", "dataset": "visits"}
        path = write_visits(tmp_path, name="again.toml", ledger=stated)
        words = words[2:]
        shutil.rmtree(tmp_path / "release")  # it would say that there was a ledger
        (tmp_path / HEADS).unlink()
    done = run(path, *words)
    assert done.exit_code == 2
    assert len(done.stderr.splitlines()) == 1
    assert "x.ledgr must be a ledger, since it is named for this release" in done.stderr
    assert not (tmp_path / "x.ledgr").exists()
    # The command that is said makes it, and nothing else is missing.
    _, command = done.stderr.rstrip(".\n").split("on purpose with undertow ")
    import shlex

    made = invoke(*shlex.split(command))
    assert made.exit_code == 0, made.stderr
    assert run(path, *words).exit_code == 0


def test_a_release_file_elsewhere_does_not_open_a_second_budget(tmp_path, monkeypatch):
    home, other = tmp_path / "home", tmp_path / "other"
    home.mkdir(), other.mkdir()
    path = write_visits(home)
    load(path).create_ledger(home / "kept.ledger").close()
    load(path).run(ledger=home / "kept.ledger")
    whole = {"table": str(home / "visits.csv")}
    moved = write_visits(other, source=whole)
    monkeypatch.chdir(other)
    done = run(moved, "--output", tmp_path / "out", "--repeat", "2")
    assert done.exit_code == 3
    assert "says that releases of this table were charged to" in done.stderr
    assert f"{home / 'kept.ledger'} (entry 1)" in done.stderr
    assert only(home) == ["kept.ledger"]
    again = run(moved, "--output", tmp_path / "out", "--ledger", home / "kept.ledger")
    assert again.exit_code == 0
    assert "released before (entry 1" in again.stdout


def test_a_stated_ledger_without_an_address_is_made_at_its_default_place(tmp_path):
    path = write_visits(tmp_path, ledger={"dataset": "visits"})
    load(path).run()
    assert (tmp_path / "undertow-ledger.sqlite").exists()


# Whose rows they are.


def test_next_weeks_file_does_not_get_a_new_budget(tmp_path):
    first, second = weekly(tmp_path, 1), weekly(tmp_path, 2)
    assert run(first).exit_code == 0
    done = run(second)
    assert done.exit_code == 3
    assert len(done.stderr.splitlines()) == 1
    assert "the unit 'person' must have one budget, got a new one at" in done.stderr
    assert str(tmp_path / "w1.ledger") in done.stderr
    assert "--ledger or ledger.url" in done.stderr
    assert only(tmp_path) == ["w1.ledger"]
    plan = invoke("release", "plan", second)
    assert "A run without --ledger would be refused: the unit 'person'" in plan.stderr
    # The one budget is spent, and says so.
    spent = run(second, "--ledger", tmp_path / "w1.ledger")
    assert spent.exit_code == 3
    assert f"in the ledger {tmp_path / 'w1.ledger'}" in spent.stderr


def test_one_ledger_for_all_weeks_adds_them_up(tmp_path):
    made = tmp_path / "trips.ledger"
    ledger(made).close()
    for number in (1, 2):
        assert not load(weekly(tmp_path, number)).run(ledger=made).repeated
    with BudgetLedger.open(made) as found:
        assert found.losses() == {"user": ut.Pure(2)}


PLACES = ("table", "release", "output", "working", "beside", "far/away")


@pytest.mark.parametrize("place", PLACES)
def test_a_ledger_within_reach_is_seen_wherever_it_lies(tmp_path, monkeypatch, place):
    names = ("far", *PLACES)
    folders = {name: tmp_path / name for name in names}
    for folder in folders.values():
        folder.mkdir()
    with ledger(folders[place] / "whatever.sqlite") as made:
        load(weekly(tmp_path, 1)).run(ledger=made)
    (tmp_path / HEADS).unlink()
    monkeypatch.chdir(folders["working"])
    (folders["table"] / "w2.csv").write_text("person,zone\n1,A\n")
    source = {"table": str(folders["table"] / "w2.csv")}
    path = write_visits(folders["release"], source=source, query=TOTAL)
    shutil.rmtree(tmp_path / "out1")
    release = load(path)
    if place == "far/away":
        assert not release.run(output=folders["output"]).repeated
        return
    with pytest.raises(BudgetError, match=r"beside .*whatever\.sqlite, to which rows"):
        release.run(output=folders["output"])
    assert only(tmp_path) == []


def test_a_ledger_far_away_is_seen_by_its_head_beside_the_table(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "far").mkdir()
    with ledger(tmp_path / "far" / "budget.db") as made:
        load(weekly(tmp_path / "data", 1)).run(ledger=made)
    second = weekly(tmp_path / "data", 2)
    with pytest.raises(
        BudgetError, match=r"far/budget\.db, of which .*undertow\.heads"
    ):
        load(second).run()


def test_a_ledger_made_on_purpose_is_not_passed_over(tmp_path):
    ledger(tmp_path / "big.ledger").close()
    with pytest.raises(
        BudgetError, match=r"got a new one at .*w1\.ledger beside .*big\.ledger"
    ):
        load(weekly(tmp_path, 1)).run()


@pytest.mark.parametrize(
    ("first", "second", "asks"),
    [
        ({"people": "riders"}, {"people": "riders", "unit": "zone"}, True),
        ({"people": "riders"}, {"people": "Riders "}, True),
        ({"people": "riders"}, {"people": "staff"}, False),
        ({"people": "riders"}, {}, True),
        ({}, {"people": "riders"}, True),
        ({}, {"unit": "zone"}, False),
        ({}, {"unit": "PERSON"}, True),
    ],
)
def test_people_are_the_same_by_declaration_or_by_column(tmp_path, first, second, asks):
    assert load(weekly(tmp_path, 1, **first)).run().charge.number == 1
    path = weekly(tmp_path, 2, **second)
    if second.get("unit") == "PERSON":
        (tmp_path / "w2.csv").write_text("PERSON,zone\n1,A\n")
    if asks:
        with pytest.raises(BudgetError, match="must have one budget"):
            load(path).run()
    else:
        assert not load(path).run().repeated


def test_rows_that_belong_to_nobody_share_no_people(tmp_path):
    event = {"promise": {"granularity": "event", "epsilon": "1"}, "bounds": {}}
    for number in (1, 2):
        (tmp_path / f"w{number}.csv").write_text("person,zone\n1,A\n")
        path = write_visits(
            tmp_path,
            name=f"w{number}.toml",
            source={"table": f"w{number}.csv", "per": "event"},
            query=TOTAL,
            output={"folder": f"out{number}"},
            **event,
        )
        assert not load(path).run().repeated


NAME = st.sampled_from(["card", "Card", "rider", None])


@given(NAME, NAME, NAME, NAME)
def test_who_is_the_same_does_not_depend_on_the_order(unit, people, other, theirs):
    found = is_same(unit, people, other, theirs)
    assert found == is_same(other, theirs, unit, people)
    if unit is not None and (people is None or theirs is None):
        assert is_same(unit, people, unit, theirs)


def test_people_that_are_declared_may_be_in_columns_of_other_names(tmp_path):
    with ledger(tmp_path / "x.ledger", {ut.User(): ut.Pure(9)}) as made:
        load(weekly(tmp_path, 1, people="riders")).run(ledger=made)
        load(weekly(tmp_path, 2, people="riders", unit="zone")).run(ledger=made)
        with pytest.raises(MismatchError, match="another people"):
            load(weekly(tmp_path, 3, people="staff")).run(ledger=made)
        with pytest.raises(MismatchError, match="another unit"):
            load(weekly(tmp_path, 4, unit="zone")).run(ledger=made)
        load(weekly(tmp_path, 5)).run(ledger=made)  # as the first, undeclared


# Older copies.


def copied(tmp_path, path):
    """A release that ran once, and a copy of its ledger from before the run."""
    with load(path).create_ledger(tmp_path / "visits.ledger"):
        pass
    shutil.copy(tmp_path / "visits.ledger", tmp_path / "old")
    return load(path).run()


@pytest.mark.parametrize("lost", ["manifest", "heads"])
def test_an_older_copy_is_refused_wherever_the_output_goes(tmp_path, lost):
    path = write_visits(tmp_path)
    copied(tmp_path, path)
    (tmp_path / "old").rename(tmp_path / "visits.ledger")
    if lost == "heads":
        (tmp_path / HEADS).unlink()
    else:
        shutil.rmtree(tmp_path / "release")
    before = {p: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()}
    planned = invoke("release", "plan", path, "--json")
    assert planned.exit_code == 3
    assert json.loads(planned.stdout)["ledger"] == str(tmp_path / "visits.ledger")
    assert planned.stderr.count("\n") == 1
    assert {p: p.read_bytes() for p in tmp_path.iterdir() if p.is_file()} == before
    done = run(path, "--output", tmp_path / "deep" / "elsewhere")
    assert done.exit_code == 3
    assert planned.stderr.endswith(f"would be refused: {done.stderr}")
    assert "visits.ledger must hold all that was charged to it, got an older" in (
        done.stderr
    )
    assert not (tmp_path / "deep").exists()
    with BudgetLedger.open(tmp_path / "visits.ledger") as found:
        assert found.history() == []


def query(path):
    """Ask for less than what is left."""
    text = path.read_text().replace('epsilon = "1"', 'epsilon = "1/9"')
    path.write_text(text)
    return path


def test_a_copy_that_went_another_way_is_refused(tmp_path):
    path = write_visits(tmp_path)
    copied(tmp_path, path)
    (tmp_path / "old").rename(tmp_path / "visits.ledger")
    with BudgetLedger.open(tmp_path / "visits.ledger") as fork:
        for at in range(2):
            fork.charge([RELEASE], key=f"{at}")
    with pytest.raises(LedgerError, match="got an older copy without"):
        load(query(path)).run(output=tmp_path / "deep" / "out")


def test_the_head_is_in_the_manifest_and_beside_the_table(tmp_path):
    path = write_visits(tmp_path)
    done = load(path).run()
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    with BudgetLedger.open(tmp_path / "visits.ledger") as found:
        head, start = found.head, found.start
    assert manifest["charge"]["head"] == {"count": 2, "hash": head.hash}
    (kept,) = kept_heads(tmp_path)
    assert (kept.ledger, kept.count, kept.hash) == (start, 2, head.hash)
    assert (kept.name, kept.unit, kept.entry) == ("visits.ledger", "person", 1)
    assert load(path).run().repeated
    assert len(kept_heads(tmp_path)) == 1
    assert done.ledger == str(tmp_path / "visits.ledger")
    # A line that a killed run has cut is passed over, and the next one is whole.
    with (tmp_path / HEADS).open("a") as file:
        file.write('{"ledger": "' + start[:20])
    load(write_visits(tmp_path, query=TOTAL, promise={"epsilon": "1"}))
    with BudgetLedger.open(tmp_path / "visits.ledger") as found:
        assert found.holds(2, head.hash)
        assert not found.holds(3, head.hash)
        assert not found.holds(1, head.hash)
    assert [k.count for k in kept_heads(tmp_path)] == [2]


def test_a_folder_that_is_moved_with_its_ledger_and_heads_goes_on(tmp_path):
    (tmp_path / "a").mkdir()
    path = write_visits(tmp_path / "a")
    done = load(path).run()
    (tmp_path / "a").rename(tmp_path / "b")
    assert load(tmp_path / "b" / path.name).run().answers == done.answers
    (tmp_path / "b" / "visits.ledger").unlink()
    shutil.rmtree(tmp_path / "b" / "release")
    with pytest.raises(
        BudgetError, match=r"undertow\.heads says that releases of this"
    ):
        load(tmp_path / "b" / path.name).run()


def test_what_cannot_be_kept_beside_the_table_is_said(tmp_path):
    path = write_visits(tmp_path)
    (tmp_path / HEADS).mkdir()  # nothing can be written there
    done = run(path)
    assert done.exit_code == 0
    assert "could not be kept beside the table" in done.stderr


# From the shell, on tables of a DuckDB file.


def test_the_whole_story_from_the_shell(runs, tmp_path):
    database = duckdb.connect(str(tmp_path / "city.duckdb"))
    for at in (1, 2):
        database.execute(f"CREATE TABLE w{at} AS SELECT 1 AS person, 'A' AS zone")
    database.close()
    for at in (1, 2):
        source = {"table": f"city.duckdb#w{at}"}
        write_visits(tmp_path, name=f"w{at}.toml", source=source)

    def told(*words):
        done = runs.run(*words, folder=tmp_path)
        refused = done.status != 0
        said = done.error.count("adds up") + ("Nothing checks that rows" in done.error)
        assert len(done.error.splitlines()) == refused + said
        return done.status, done.output + done.error

    first = command("release", "run", "w1.toml", "--output", "a", cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert b"Ledger: city.ledger" in first.stdout
    # Another table of the same database, another name of the ledger, another folder.
    status, said = told("release", "run", "w2.toml", "--output", "b")
    assert status == 3
    assert "must fit the user budget" in said
    status, said = told("release", "run", "w2.toml", "--ledger", "city.ledgr")
    assert status == 2
    assert "city.ledgr must be a ledger, since it is named" in said
    shutil.copy(tmp_path / "city.ledger", tmp_path / "spent")
    (tmp_path / "city.ledger").unlink()
    status, said = told("release", "run", "w1.toml", "--output", "c", "--repeat", "2")
    assert status == 3
    assert "must be there, got none although" in said
    words = "--dataset city --granularity user=epsilon:1 --release w1.toml".split()
    assert told("ledger", "init", "city.ledger", *words)[0] == 0
    (tmp_path / "new").mkdir()
    status, said = told("release", "run", "w1.toml", "--output", "new/d")
    assert status == 0
    assert "charged to another ledger before (city.ledger); what they and" in said
    # The first one was put back, and the second one after it.
    (tmp_path / "city.ledger").rename(tmp_path / "newer")
    (tmp_path / "spent").rename(tmp_path / "city.ledger")
    assert told("release", "run", "w1.toml", "--output", "a")[0] == 0
    assert told("ledger", "verify", "city.ledger")[0] == 0


# What a plan and a run say.


def test_a_plan_writes_nothing_and_says_which_ledger(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write_visits(tmp_path)
    assert (
        "Ledger: visits.ledger, not there yet" in invoke("release", "plan", path).stdout
    )
    assert "Ledger: visits.ledger\n" in run(path).stdout
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    assert "Ledger: visits.ledger\n" in invoke("release", "plan", path).stdout
    record = json.loads(invoke("release", "plan", path, "--json").stdout)
    assert record["ledger"] == str(tmp_path / "visits.ledger")
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before


def test_a_plan_that_looks_for_other_ledgers_writes_nothing(runs, tmp_path):
    path = weekly(tmp_path, 1)
    killed = runs.run(
        "release", "run", path.name, folder=tmp_path, at="/_earlier.keep_head"
    )
    assert killed.status == -9
    assert (tmp_path / "w1.ledger-wal").stat().st_size > 0
    (tmp_path / "w1.ledger-shm").unlink()
    second = weekly(tmp_path, 2)
    before = {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")}
    said = invoke("release", "plan", second).stderr
    assert {p: p.stat().st_mtime_ns for p in tmp_path.rglob("*")} == before
    assert "must have one budget, got a new one at" in said
    assert "w1.ledger, to which" in said


@pytest.mark.parametrize(
    ("table", "place"),
    [
        ("days/*.csv", "days/days.ledger"),
        ("days/2026-*/part?.csv", "days/days.ledger"),
        ("days/*", "days.ledger"),
        ("days", "days.ledger"),
        ("trips.csv", "trips.ledger"),
    ],
)
def test_the_ledger_of_a_pattern_lies_among_its_files(tmp_path, table, place):
    (tmp_path / "days").mkdir()
    found = table_of(read_release(write_visits(tmp_path, source={"table": table})))
    assert found is not None
    assert found.ledger == tmp_path / place


def test_a_release_in_memory_makes_its_ledger_on_purpose(tmp_path):
    import pyarrow as pa

    release = from_table(pa.table({"person": [1], "zone": ["A"]}), visits_mapping())
    with pytest.raises(
        LedgerError, match=r"on purpose with undertow ledger init .* --dom"
    ):
        release.run(ledger=tmp_path / "x.ledger")
    with release.create_ledger(tmp_path / "x.ledger", dataset="shops") as made:
        assert made.dataset == "shops"
        assert not release.run(ledger=made).repeated
