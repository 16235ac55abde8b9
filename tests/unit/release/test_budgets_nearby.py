"""A new budget: where others of the same people are looked for, and what is said."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from pathlib import Path

import pytest

import undertow as ut
from support.command import beside_no_check, invoke
from support.release_documents import write_visits
from undertow.errors import BudgetError
from undertow.ledger import BudgetLedger
from undertow.ledger import _folder as reach
from undertow.ledger._folder import folders_beside, ledgers_in
from undertow.release import load
from undertow.release.run._earlier import HEADS

TOTAL = {"by": [], "keys": {}}


def run(path, *words):
    return invoke("release", "run", path, *words)


def week(folder, number, inner="", **source):
    """A release of the table of one week, in the folder of that week."""
    own = folder / f"week{number}"
    (own / inner).mkdir(parents=True)
    (own / inner / "trips.csv").write_text("person,zone\n1,A\n2,B\n")
    table = {"table": os.path.join(inner, "trips.csv"), **source}
    return write_visits(own, name="trips.toml", source=table, query=TOTAL)


def ledgers(folder):
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*.ledger"))


def commanded(text):
    """Run the command of a sentence, which ends there or goes on in parentheses."""
    words = text[text.index("undertow ledger init") :].split(" (ten such")[0]
    done = invoke(*shlex.split(words.strip().rstrip("."))[1:])
    assert done.exit_code == 0, done.stderr
    return Path(shlex.split(words)[3])


# Folders.


@pytest.mark.parametrize("inner", ["", "data", "data/raw"])
def test_a_folder_a_week_does_not_get_a_new_budget(tmp_path, monkeypatch, inner):
    monkeypatch.chdir(tmp_path)
    first, second = week(tmp_path, 1, inner), week(tmp_path, 2, inner)
    assert run(first).exit_code == 0
    made = os.path.join("week1", inner, "trips.ledger")
    assert ledgers(tmp_path) == [made]
    done = run(second)
    assert done.exit_code == 3
    assert len(done.stderr.splitlines()) == 1
    assert "the unit 'person' must have one budget, got a new one at" in done.stderr
    assert f"beside {tmp_path / made}, to which" in done.stderr
    assert ledgers(tmp_path) == [made]
    plan = invoke("release", "plan", second, "--json")
    assert plan.exit_code == 0
    assert "would be refused: the unit 'person'" in json.loads(plan.stdout)["notes"][0]
    assert json.loads(plan.stdout)["new_budget"] is None
    # Said on purpose, it is made and used.
    commanded(done.stderr)
    told = run(second, "--json")
    assert told.exit_code == 0
    assert made in json.loads(told.stdout)["notes"][0]


def test_a_head_beside_tells_of_a_ledger_that_is_far_away(tmp_path):
    (tmp_path / "far" / "away").mkdir(parents=True)
    first, second = week(tmp_path, 1), week(tmp_path, 2)
    with load(first).create_ledger(tmp_path / "far" / "away" / "x.db") as made:
        load(first).run(ledger=made)
    with pytest.raises(BudgetError, match=r"far/away/x\.db, of which .*week1/under"):
        load(second).run()
    (tmp_path / "week1" / HEADS).unlink()
    assert load(second).run().new_budget is not None


def test_a_ledger_above_is_seen_before_anything_is_charged_to_it(tmp_path):
    second = week(tmp_path, 2)
    load(week(tmp_path, 1)).create_ledger(tmp_path / "all.ledger").close()
    with pytest.raises(BudgetError, match=r"beside .*all\.ledger, to which"):
        load(second).run()
    (tmp_path / "week1" / "mine.ledger").write_bytes(b"")
    shutil.move(tmp_path / "all.ledger", tmp_path / "week1" / "all.ledger")
    # In a folder beside, it is somebody's: nothing was charged to it.
    assert not load(second).run().repeated


@pytest.mark.parametrize(
    ("first", "second", "asks"),
    [
        ({"people": "riders"}, {"people": "riders", "unit": "zone"}, True),
        ({"people": "riders"}, {"people": "staff"}, False),
        ({}, {"unit": "zone"}, False),
        ({}, {"people": "riders"}, True),
        ({"per": "event"}, {"per": "event"}, False),
    ],
)
def test_only_the_same_people_share_over_folders(tmp_path, first, second, asks):
    def made(number, source):
        path = week(tmp_path, number, **source)
        if "per" in source:  # rows belong to nobody
            text = path.read_text().replace('"user"', '"event"')
            path.write_text(text.replace("rows_per_unit = 2", ""))
        return load(path)

    made(1, first).run()
    if asks:
        with pytest.raises(BudgetError, match="must have one budget"):
            made(2, second).run()
    else:
        assert made(2, second).run().new_budget is not None


def test_what_is_looked_at_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(reach, "MOST_BESIDE", 3)
    for at in range(6):
        (tmp_path / f"f{at}").mkdir()
        os.utime(tmp_path / f"f{at}", (at, at))
    (tmp_path / ".hidden").mkdir()
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "f0")
    found = folders_beside(tmp_path / "f5")
    assert [p.name for p in found] == [tmp_path.name, "f2", "f3", "f4"]
    monkeypatch.setattr(reach, "MOST_NAMES", 0)
    assert folders_beside(tmp_path / "f5") == [tmp_path]
    assert folders_beside(Path("/")) == []


def test_links_are_not_followed_and_what_cannot_be_read_is_passed_over(tmp_path):
    first, second = week(tmp_path, 1), week(tmp_path, 2)
    load(first).run()
    (tmp_path / "elsewhere").mkdir()
    shutil.move(tmp_path / "week1", tmp_path / "elsewhere" / "week1")
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "week1")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "beside").mkdir()
    ledger = tmp_path / "elsewhere" / "week1" / "trips.ledger"
    (tmp_path / "beside" / "x.ledger").symlink_to(ledger)
    assert len([*ledgers_in(tmp_path / "beside")]) == 1
    assert [*ledgers_in(tmp_path / "beside", bounded=True)] == []
    assert [*ledgers_in(tmp_path / "none", bounded=True)] == []
    assert load(second).run().new_budget is not None


@pytest.mark.parametrize("closed", ["", "week1"])
def test_a_folder_that_is_closed_is_passed_over(tmp_path, monkeypatch, closed):
    load(week(tmp_path, 1)).run()
    listed = os.scandir

    def scandir(place):
        if str(place) == str(tmp_path / closed):
            raise PermissionError(13, "closed")
        return listed(place)

    monkeypatch.setattr(reach.os, "scandir", scandir)
    (tmp_path / "week1" / HEADS).unlink()
    assert load(week(tmp_path, 2)).run().new_budget is not None


def test_where_anybody_may_write_nothing_beside_tells(tmp_path):
    load(week(tmp_path, 1)).run()
    tmp_path.chmod(0o1777)
    assert load(week(tmp_path, 2)).run().new_budget is not None


def test_a_ledger_of_another_name_is_no_other_ledger(tmp_path):
    path = week(tmp_path, 1)
    made = tmp_path / "riders.ledger"
    commanded(load(path).new_budget().many)
    (path.parent / "trips.ledger").rename(made)
    assert beside_no_check(run(path, "--ledger", made, "--json").stderr) == ""
    made.rename(tmp_path / "kept.ledger")
    again = run(path, "--ledger", tmp_path / "kept.ledger", "--repeat", "2", "--json")
    assert (again.exit_code, beside_no_check(again.stderr)) == (0, "")
    assert not json.loads(again.stdout)["repeated"]


# What is said of a budget that is made.


def test_a_plan_and_the_first_run_say_what_is_made_and_how_to_make_more(
    tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    path = week(tmp_path, 1)
    plan = invoke("release", "plan", path)
    line = next(x for x in plan.stdout.splitlines() if "A run makes this" in x)
    assert "budget of ε = 1 at user level for the unit 'person': room for this" in line
    assert line.endswith(
        "undertow ledger init week1/trips.ledger --dataset trips --granularity "
        f"user=epsilon:10 --release {path}"
    )
    coming = json.loads(invoke("release", "plan", path, "--json").stdout)["new_budget"]
    assert coming["many"] in line
    assert coming["budget"] == {"notion": "pure", "epsilon": 1.0}
    done = run(path, "--report", "page.md", "--json")
    assert done.exit_code == 0
    assert "Made a new budget of ε = 1 at user level for the unit 'person' at " in (
        done.stderr
    )
    assert "week1/trips.ledger; people counted elsewhere have another" in done.stderr
    made = json.loads(done.stdout)["new_budget"]
    assert made["ledger"] == str(tmp_path / "week1" / "trips.ledger")
    assert (made["unit"], made["granularity"]) == ("person", "user")
    page = (tmp_path / "page.md").read_text()
    assert "this run made the ledger, with a budget of ε = 1 at user level" in page
    assert "trips.ledger" not in page
    again = run(path, "--report", "again.md", "--json")
    assert json.loads(again.stdout)["new_budget"] is None
    assert (again.stderr, json.loads(again.stdout)["notes"]) == ("", [])
    assert "this run made the ledger" not in (tmp_path / "again.md").read_text()
    # The command that the run has said works, and the next week is charged to it.
    larger = commanded(beside_no_check(done.stderr))
    assert larger == Path("week1/trips-2.ledger")
    second = week(tmp_path, 2)
    told = run(second, "--ledger", larger, "--json")
    assert told.exit_code == 0
    assert "week1/trips.ledger); what they and" in json.loads(told.stdout)["notes"][0]


def test_the_command_of_a_plan_makes_room_for_many_weeks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = week(tmp_path, 1)
    many = json.loads(invoke("release", "plan", path, "--json").stdout)["new_budget"]
    made = commanded(many["many"])
    for number in (1, 2, 3):
        if number > 1:
            path = week(tmp_path, number)
        done = run(path, "--ledger", made, "--json")
        assert (done.exit_code, beside_no_check(done.stderr)) == (0, "")
        assert json.loads(done.stdout)["new_budget"] is None
    with BudgetLedger.open(made) as found:
        assert found.losses() == {"user": ut.Pure(3)}
        assert found.budgets == {ut.User(): ut.Pure(10)}


@pytest.mark.parametrize(
    ("promise", "said"),
    [
        ({"epsilon": "1/3"}, "epsilon:10/3"),
        ({"epsilon": "1", "delta": "1e-6"}, "epsilon:10,delta:1/100000"),
        ({"rho": "0.1"}, "rho:1"),
        ({"mu": "0.5"}, "mu:1.58113883008"),
        ({"epsilon": "1", "delta": "0.2"}, None),
    ],
)
def test_every_kind_of_promise_has_its_command(tmp_path, promise, said):
    path = write_visits(tmp_path, query=TOTAL, promise=promise)
    new = load(path).new_budget()
    assert new is not None
    if said is None:
        assert new.many is None
        return
    word = next(w for w in shlex.split(new.many) if w.startswith("user="))
    assert word.startswith(f"user={said}") or said.startswith("mu")
    with BudgetLedger.open(commanded(new.many)) as made:
        alone = load(path).plan().promise.total
        total = sum([alone] * 9, alone)
        assert total.within(made.budgets[ut.User()])
        assert not (total + alone).within(made.budgets[ut.User()])


def test_a_spent_budget_says_what_can_be_done(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(week(tmp_path, 1))
    ledger, second = tmp_path / "week1" / "trips.ledger", week(tmp_path, 2)
    done = run(second, "--ledger", ledger)
    assert done.exit_code == 3
    assert len(done.stderr.splitlines()) == 1
    assert "Pure(epsilon=0) of it is left and a stated budget is not raised" in (
        done.stderr
    )
    with BudgetLedger.open(ledger) as found:
        assert len(found.history()) == 2
    assert run(second, "--ledger", commanded(done.stderr)).exit_code == 0


def test_a_run_that_is_refused_after_it_made_a_ledger_says_so(tmp_path):
    check = {"units_at_least": 100, "share": "1/10", "tries": 1}
    path = write_visits(tmp_path, query=TOTAL, check=check)
    done = run(path)
    assert done.exit_code == 3
    assert "Made a new budget of ε = 1 at user level" in done.stdout
    assert len(done.stderr.splitlines()) == 1
    assert "must find at least 100 units" in done.stderr


def test_people_who_were_charged_elsewhere_are_told_of_before_a_charge(tmp_path):
    for name in ("a", "b"):
        load(week(tmp_path, 9 if name == "a" else 8)).create_ledger(
            tmp_path / f"{name}.ledger"
        ).close()
    first, second = week(tmp_path, 1), week(tmp_path, 2)
    said = run(first, "--ledger", tmp_path / "a.ledger").stderr
    assert beside_no_check(said) == ""
    done = run(second, "--ledger", tmp_path / "b.ledger", "--json")
    assert done.exit_code == 0
    [note] = json.loads(done.stdout)["notes"]
    assert beside_no_check(done.stderr) == f"{note}\n"
    assert note == (
        "Rows of the same people may have been charged to other ledgers "
        f"({tmp_path / 'a.ledger'}); what they and {tmp_path / 'b.ledger'} allow adds "
        "up."
    )
    again = run(second, "--ledger", tmp_path / "b.ledger", "--json")
    assert json.loads(again.stdout)["notes"] == []
    # The same table at another ledger.
    load(second).create_ledger(tmp_path / "c.ledger").close()
    other = run(second, "--ledger", tmp_path / "c.ledger", "--output", tmp_path / "o")
    assert other.exit_code == 0
    assert "charged to another ledger before (../b.ledger)" in other.stderr
