"""What a person is told of an answer that is stored already."""

from __future__ import annotations

import json
import os
import shutil
import time

import pytest

import undertow as ut
from support.command import beside_no_check, invoke
from support.release_documents import write_visits
from undertow.ledger import BudgetLedger
from undertow.release import from_table, load
from undertow.release.document.release_document import release_from_mapping

TOTAL = {"by": [], "keys": {}}
MANY = {ut.User(): ut.Pure(20)}


def run(path, *words):
    done = invoke("release", "run", path, *words, "--json")
    return done, json.loads(done.stdout) if done.exit_code == 0 else None


def roomy(folder):
    """A ledger with room for many releases, in the place of the default one."""
    BudgetLedger.create(
        folder, dataset="x", domain=ut.Stream(10**9, 1), budgets=MANY
    ).close()


def entries(ledger):
    with BudgetLedger.open(ledger) as found:
        assert found.verify() == []
        return len(found.history())


def weeks(folder, count=1):
    (folder / "weeks").mkdir()
    roomy(folder / "weeks" / "weeks.ledger")
    for number in range(1, count + 1):
        add(folder, number)
    return write_visits(folder, source={"table": "weeks/*.csv"}, query=TOTAL)


def add(folder, number):
    (folder / "weeks" / f"w{number}.csv").write_text("person,zone\n1,A\n")


def later(path, seconds=60):
    os.utime(path, (time.time() + seconds,) * 2)


# Files that came, went or were written.


def test_files_that_were_added_to_a_pattern_are_told(tmp_path):
    path = weeks(tmp_path)
    ledger = tmp_path / "weeks" / "weeks.ledger"
    _, first = run(path)
    assert first["notes"] == []
    _, again = run(path)
    assert (again["repeated"], again["notes"]) == (True, [])
    add(tmp_path, 2)
    os.utime(tmp_path / "weeks" / "w2.csv", (0, 0))  # an old file that came late
    done, old = run(path)
    assert old["answers"] == first["answers"]
    [note] = old["notes"]
    assert done.stderr == f"{note}\n"
    assert note.startswith("This is the answer of 20")
    assert "UTC, from before 1 file was added to the table: " in note
    assert note.endswith("--repeat 2 asks anew and charges again.")
    assert entries(ledger) == 2
    plan = invoke("release", "plan", path, "--json")
    assert json.loads(plan.stdout)["notes"] == [note]
    _, new = run(path, "--repeat", "2")
    assert (new["repeated"], new["notes"]) == (False, [])
    assert entries(ledger) == 4
    assert run(path, "--repeat", "2")[1]["notes"] == []
    add(tmp_path, 3)
    [note] = run(path)[1]["notes"]
    assert "before 2 files were added to the table" in note
    assert "--repeat 3 asks anew" in note
    [note] = run(path, "--repeat", "2")[1]["notes"]
    assert "before 1 file was added" in note
    (tmp_path / "weeks" / "w3.csv").unlink()
    (tmp_path / "weeks" / "w2.csv").unlink()
    [note] = run(path, "--repeat", "2")[1]["notes"]
    assert "before 1 file was removed from the table" in note


@pytest.mark.parametrize("table", ["visits.csv", "weeks/*.csv"])
def test_a_file_that_was_written_since_is_told(tmp_path, table):
    path = weeks(tmp_path, 2)
    path = write_visits(tmp_path, source={"table": table}, query=TOTAL)
    roomy(tmp_path / "visits.ledger")
    first = run(path)[1]
    file = tmp_path / table.replace("*", "w1")
    later(file)
    [note] = run(path)[1]["notes"]
    if table == "visits.csv":
        assert "before the file of the table was written, moved or copied" in note
    else:
        assert "before 1 file was written, moved or copied" in note
    # It is no part of anything that is kept, and no row decides.
    assert run(path)[1]["answers"] == first["answers"]
    for name in ("manifest.json", "01-visits.csv"):
        assert "written, moved" not in (tmp_path / "release" / name).read_text()
    shutil.rmtree(tmp_path / "release")
    again = invoke("release", "run", path, "--report", tmp_path / "page.md")
    assert "written, moved" in again.stderr
    assert "written, moved" not in (tmp_path / "page.md").read_text()


def test_a_table_that_is_gone_leaves_its_answer_and_is_told(tmp_path):
    path = write_visits(tmp_path)
    first = run(path)[1]
    (tmp_path / "visits.csv").unlink()
    [note] = run(path)[1]["notes"]
    assert note.endswith("; the table is not there any more.")
    assert run(path)[1]["answers"] == first["answers"]


def test_the_number_of_files_is_kept_and_nothing_else_of_them(tmp_path):
    path = weeks(tmp_path, 3)
    run(path)
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert manifest["files"] == 3
    assert "w1.csv" not in json.dumps(manifest)


# The same question under another name.


def renamed(folder, name, **changes):
    return write_visits(
        folder,
        name=f"{name}.toml",
        query={"name": name},
        output={"folder": name},
        **changes,
    )


def test_an_equal_question_is_told_before_it_is_charged_again(tmp_path):
    roomy(tmp_path / "visits.ledger")
    first, second = renamed(tmp_path, "visits"), renamed(tmp_path, "visits by zone")
    assert run(first)[1]["notes"] == []
    plan = invoke("release", "plan", second, "--json")
    [note] = json.loads(plan.stdout)["notes"]
    assert note.startswith("The same question of the same table was answered on 20")
    assert "(entry 1 of the ledger)" in note
    assert "'visits', a run returns that answer and charges nothing" in note
    assert plan.stderr == f"{note}\n"
    assert entries(tmp_path / "visits.ledger") == 2
    done, new = run(second)
    assert (new["notes"], beside_no_check(done.stderr)) == ([note], f"{note}\n")
    assert entries(tmp_path / "visits.ledger") == 4
    # The way that is told: the old answer, for nothing.
    back = second.read_text().replace('"visits by zone"', '"visits"', 1)
    (tmp_path / "back.toml").write_text(back.replace("visits by zone", "back"))
    found = run(tmp_path / "back.toml")[1]
    assert (found["repeated"], found["notes"]) == (True, [])
    assert entries(tmp_path / "visits.ledger") == 4


def test_an_equal_question_is_told_where_the_budget_is_spent(tmp_path):
    first, second = renamed(tmp_path, "visits"), renamed(tmp_path, "other")
    run(first)
    done = invoke("release", "run", second)
    assert done.exit_code == 3
    told, refused = done.stderr.splitlines()
    assert "answered on" in told
    assert "must fit the user budget" in refused
    assert entries(tmp_path / "visits.ledger") == 2


@pytest.mark.parametrize(
    ("changes", "equal"),
    [
        ({}, True),
        ({"output": {"folder": "elsewhere", "format": "parquet"}}, True),
        ({"source": {"people": "visitors"}}, True),
        ({"promise": {"granularity": "user", "epsilon": "2"}}, False),
        ({"bounds": {"rows_per_unit": 3}}, False),
        ({"source": {"table": "others.csv"}}, False),
    ],
)
def test_only_an_equal_question_of_the_same_table_is_told(tmp_path, changes, equal):
    (tmp_path / "others.csv").write_text("person,zone\n1,A\n")
    roomy(tmp_path / "x.ledger")
    run(renamed(tmp_path, "visits"), "--ledger", tmp_path / "x.ledger")
    parts = {"output": {"folder": "out"}, **changes}
    other = write_visits(tmp_path, name="o.toml", query={"name": "other"}, **parts)
    done, found = run(other, "--ledger", tmp_path / "x.ledger")
    assert done.exit_code == 0
    assert any("same question" in note for note in found["notes"]) == equal


def test_queries_in_another_order_are_an_equal_question(tmp_path):
    roomy(tmp_path / "visits.ledger")
    path = write_visits(tmp_path)
    part = path.read_text().partition("[[queries]]")[2]
    two = "[[queries]]" + part.replace('"visits"', '"people"').replace(
        '"count"', '"count_distinct"'
    )
    start = path.read_text().partition("[[queries]]")[0]
    texts = (f"{start}[[queries]]{part}{two}", f"{start}{two}[[queries]]{part}")
    for at, text in enumerate(texts):
        (tmp_path / f"f{at}.toml").write_text(text)
    run(tmp_path / "f0.toml")
    _, found = run(tmp_path / "f1.toml", "--output", tmp_path / "o")
    assert "in this order, 'visits', 'people', a run" in found["notes"][0]


def test_another_repeat_is_asked_on_purpose(tmp_path):
    roomy(tmp_path / "visits.ledger")
    run(write_visits(tmp_path))
    assert run(write_visits(tmp_path), "--repeat", "2")[1]["notes"] == []


def test_a_table_in_memory_has_no_files_and_knows_its_questions(tmp_path):
    import pyarrow as pa

    def asked(name):
        return {
            "source": {"unit": "person"},
            "promise": {"granularity": "user", "epsilon": "1"},
            "bounds": {"rows_per_unit": 2},
            "queries": [{"name": name, "select": "count"}],
        }

    table, told = pa.table({"person": [1]}), []
    roomy(tmp_path / "x.ledger")
    for name in ("a", "b", "b"):
        release = from_table(table, asked(name))
        done = release.run(ledger=tmp_path / "x.ledger", note=told.append)
    assert done.repeated
    assert len(told) == 1
    assert "answered on" in told[0]
    assert release_from_mapping(asked("a"), in_memory=True).file is None
    assert load(write_visits(tmp_path)).notes() == []
