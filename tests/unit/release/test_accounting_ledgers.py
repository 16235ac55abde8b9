"""The same rows are charged to one ledger, as the same units and times."""

from __future__ import annotations

import pytest

import undertow as ut
from support.command import invoke
from support.release_documents import write_visits
from undertow.correlation import Blocks, calibrate
from undertow.errors import BudgetError, BudgetExceeded, MismatchError, PlanError
from undertow.ledger import BudgetLedger, LeakageBudget
from undertow.release import load
from undertow.release.run import protocol as run_module
from undertow.release.run._ledger_place import file_of

TOTAL = {"by": [], "keys": {}}
HOURS = {"time": "ts", "per": {"window": "1h"}, "start": "2026-01-01", "horizon": "24h"}
EVENT = {"promise": {"granularity": "event", "epsilon": "1"}}


def hourly(folder, name, types, **more):
    rows = [f"{k},2026-01-01 05:30:00" for k in range(9)]
    return write_visits(
        folder,
        rows,
        columns="person,ts",
        name=f"{name}.toml",
        source={**HOURS, "types": types},
        query={"by": [], "keys": {}},
        output={"folder": name},
        **{**EVENT, **more},
    )


def people(folder, name, source):
    return write_visits(
        folder, name=f"{name}.toml", source=source, output={"folder": name}
    )


# Columns that are read as something else.


def test_a_day_is_not_the_hour_it_starts_with(tmp_path):
    # As dates all rows of the day are in its first hour; the ledger would take them
    # for other events than the same rows at their times.
    times = load(hourly(tmp_path, "times", {"ts": "timestamp"}))
    dates = load(hourly(tmp_path, "dates", {"ts": "date"}))
    times.run(as_of="2026-01-01T06:00")
    with pytest.raises(MismatchError, match="another type of time"):
        dates.run(as_of="2026-01-01T01:00")
    times.run(as_of="2026-01-01T01:00")


def test_a_number_is_not_the_text_it_is_written_as(tmp_path):
    # "1" and "01" are two people as texts and one as numbers.
    ledger = tmp_path / "visits.ledger"
    with BudgetLedger.create(
        ledger,
        dataset="visits",
        domain=ut.Stream(10**9, 1),
        budgets={ut.User(): ut.Pure(3)},
    ):
        load(people(tmp_path, "texts", {})).run()
        # The message says what differs, and that two budgets are lost together.
        told = r"another type of unit \(read as \w+ here and as \w+ there\); .* on top"
        with pytest.raises(MismatchError, match=told):
            load(people(tmp_path, "numbers", {"types": {"person": "int"}})).run()
        load(people(tmp_path, "same", {"types": {"person": "text"}})).run()


@pytest.mark.parametrize("types", [{"ts": "timestamp"}, {"ts": "date"}])
def test_charges_that_do_not_say_how_they_read_go_on(tmp_path, types):
    release = load(hourly(tmp_path, "hours", types))
    plan = release.plan(as_of="2026-01-01T01:00")
    known = {
        name: value
        for name, value in plan.timeline.frame(plan.document.source).items()
        if not name.startswith("type of")
    }
    with BudgetLedger.create(
        tmp_path / "visits.ledger",
        dataset="visits",
        domain=plan.domain,
        budgets={ut.Event(): ut.Pure(2)},
    ) as ledger:
        ledger.charge(plan.releases, key="of an earlier version", frame=known)
        release.run(ledger=ledger, as_of="2026-01-01T02:00")
        assert ledger.frame["type of time"] == types["ts"]
        ledger.require_frame(known)


# Files, and folders of files.


def folder_of_files(tmp_path):
    (tmp_path / "days" / "old").mkdir(parents=True)
    names = ("days/*.csv", "days/a.csv", "days", "days/old/b.csv")
    for name in (names[1], names[3]):
        (tmp_path / name).write_text("person,zone\n1,A\n2,B\n")
    return {
        name: people(tmp_path, f"r{at}", {"table": name, "format": "csv"})
        for at, name in enumerate(names)
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("days/*.csv", "days/a.csv"),
        ("days", "days/a.csv"),
        ("days/a.csv", "days/*.csv"),
        ("days/a.csv", "days"),
        ("days", "days/old/b.csv"),
        ("days/old/b.csv", "days"),
    ],
)
def test_a_file_and_its_folder_do_not_get_a_budget_each(tmp_path, first, second):
    releases = folder_of_files(tmp_path)
    load(releases[first]).run()
    with pytest.raises(
        BudgetError, match="a table must have one ledger, got a new one at"
    ):
        load(releases[second]).run()
    assert len(list(tmp_path.rglob("*.ledger"))) == 1
    plan = invoke("release", "plan", releases[second])
    assert "A run without --ledger would be refused" in plan.stderr


def test_a_ledger_may_be_named_or_made_for_a_file_of_a_folder(tmp_path):
    releases = folder_of_files(tmp_path)
    load(releases["days/*.csv"]).run()
    with load(releases["days/a.csv"]).create_ledger(tmp_path / "a.ledger") as ledger:
        load(releases["days/a.csv"]).run(ledger=ledger)
    made = tmp_path / "days" / "a.ledger"
    words = ["--dataset", "a", "--granularity", "user=epsilon:1", "--release"]
    release = releases["days/a.csv"]
    assert invoke("ledger", "init", made, *words, release).exit_code == 0
    assert not load(release).run().repeated


def test_both_spellings_of_an_address_are_one_file(tmp_path):
    path = write_visits(tmp_path)
    address = f"sqlite:///{tmp_path}/my%20visits.ledger"
    file = file_of(address)
    words = ["--dataset", "v", "--granularity", "user=epsilon:1", "--release", path]
    assert invoke("ledger", "init", address, *words).exit_code == 0
    assert file is not None
    assert file.exists()
    load(path).run(ledger=address)
    with pytest.raises(BudgetExceeded):
        load(path).run(ledger=address, repeat=2)
    assert list(tmp_path.glob("*.ledger")) == [file]


def test_options_of_an_address_are_refused(tmp_path):
    path = write_visits(tmp_path)
    with pytest.raises(PlanError, match="an address without options"):
        load(path).run(ledger=f"sqlite:///{tmp_path}/a.ledger?mode=memory")


# Models.


def test_the_budget_of_a_model_is_asked_before_the_table_is_read(tmp_path, monkeypatch):
    release = load(write_visits(tmp_path))
    monkeypatch.setattr(run_module, "_read", None)  # would fail
    model = LeakageBudget.from_calibration(
        calibrate(Blocks.of_size(4, groups=250), 1.0), granularity=ut.User(), model={}
    )
    with (
        BudgetLedger.create(
            tmp_path / "visits.ledger",
            dataset="visits",
            domain=ut.Stream(10**9, 1),
            budgets={ut.User(): ut.Pure(9)},
            models={"families": model},
        ) as ledger,
        pytest.raises(BudgetExceeded, match="the run must fit the model:families"),
    ):
        release.run(ledger=ledger)
