"""A run killed at any point: one charge, one output, and the next run finishes it."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from pathlib import Path

import pytest

from support.release_documents import visits_mapping, write_visits
from undertow.ledger import BudgetLedger, verify_ledger
from undertow.privacy import Pure

MINUTES = {
    "name": "minutes",
    "select": "sum",
    "column": "minutes",
    "low": 0,
    "high": 60,
}
# Nothing is bounded, which takes most of the time of a small release.
ROWS_ALONE = {"promise": {"granularity": "event", "epsilon": "1"}, "bounds": {}}
SHORT, LONG = 1, 25
BOUNDED = 5  # one in so many


@pytest.fixture
def place(tmp_path):
    """A function that makes a fresh folder with a release and its table."""
    rows = [f"{k % 50},{'ABC'[k % 3]},{k % 70}" for k in range(400)]
    count = iter(range(1000))

    def made(*, bounded: bool = True) -> Path:
        folder = tmp_path / f"place{next(count)}"
        folder /= "own"  # beside no other ledger of the same people
        folder.mkdir(parents=True)
        parts = {} if bounded else ROWS_ALONE
        path = write_visits(
            folder,
            rows,
            columns="person,zone,minutes",
            source={"types": {"minutes": "int"}},
            queries=[*visits_mapping()["queries"], MINUTES],
            **parts,
        )
        if not bounded:
            text = path.read_text().replace('unit = "person"', 'per = "event"')
            path.write_text(text.replace("[bounds]\n", ""))
        return folder

    return made


def contents(folder: Path) -> dict[str, bytes]:
    """What is shown in the output folder."""
    shown = folder / "release"
    if not shown.exists():
        return {}
    return {p.name: p.read_bytes() for p in shown.iterdir() if p.name[0] != "."}


def check_whole(files: dict[str, bytes]) -> None:
    """If there is a manifest, its digests are those of the files."""
    if "manifest.json" in files:
        for table in json.loads(files["manifest.json"])["tables"]:
            digest = hashlib.sha256(files[table["file"]]).hexdigest()
            assert digest == table["sha256"]


def state(folder: Path) -> str:
    """How far a killed run came; what is in the ledger is whole and in budget."""
    path = folder / "visits.ledger"
    if not path.exists():
        return "nothing"
    try:
        ledger = BudgetLedger.open(path)
    except Exception:
        return "ledger being made"
    with ledger:
        assert verify_ledger(path) == []
        assert all(loss.within(Pure(1)) for loss in ledger.losses().values())
        charges = [e for e in ledger.history() if e.kind == "charge"]
        assert len(charges) <= 1
        if not charges:
            return "not charged"
        done = ledger.states()["done"] == 1
    if not done:
        assert contents(folder) == {}
        return "charged"
    return "shown" if "manifest.json" in contents(folder) else "stored"


def check_killed_run(runs, folder, **kill) -> str:
    """Kill a run, look at what it left, and finish it twice."""
    killed = runs.run("release", "run", "visits.toml", folder=folder, **kill)
    seen = contents(folder)
    check_whole(seen)
    if killed.status == 0:
        return "ended before the kill"
    assert killed.status == -9
    found = state(folder)
    again = runs.run("release", "run", "visits.toml", "--json", folder=folder)
    assert again.status == 0, again.error
    told = json.loads(again.output)
    assert told["resumed"] == (found == "charged")
    assert told["repeated"] == (found in ("stored", "shown"))
    files = contents(folder)
    assert sorted(files) == ["01-visits.csv", "02-minutes.csv", "manifest.json"]
    check_whole(files)
    assert all(files[name] == content for name, content in seen.items())
    last = runs.run("release", "run", "visits.toml", "--json", folder=folder)
    assert json.loads(last.output)["answers"] == told["answers"]
    assert contents(folder) == files
    assert {p.name for p in (folder / "release").iterdir()} == set(files)
    with BudgetLedger.open(folder / "visits.ledger") as ledger:
        assert [state.left for state in ledger.budget_states()] == [Pure(0)]
        assert [e.kind for e in ledger.history()] == ["charge", "output"]
    assert verify_ledger(folder / "visits.ledger") == []
    return found


def check_kills(runs, place, number: int) -> Counter[str]:
    """Kill so many runs at random calls and as many after random times."""
    calls, seconds = {}, {}
    for bounded in (True, False):
        folders = (place(bounded=bounded) for _ in range(2))
        whole, timed = (
            runs.run("release", "run", "visits.toml", folder=folder, counting=counting)
            for folder, counting in zip(folders, (True, False), strict=True)
        )
        assert whole.status == timed.status == 0, whole.error
        calls[bounded], seconds[bounded] = whole.calls, timed.seconds
    chance, found = random.Random(6), Counter[str]()
    for at in range(number):
        # One in each of so many equal parts of a run.
        share, bounded = (at + chance.random()) / number, at % BOUNDED == 0
        call = 1 + int(share * calls[bounded])
        folder = place(bounded=bounded)
        found[check_killed_run(runs, folder, call=call)] += 1
        folder, after = place(bounded=bounded), share * seconds[bounded]
        found[check_killed_run(runs, folder, after=after)] += 1
    return found


def test_a_run_killed_at_a_few_points_is_finished_by_the_next(runs, place):
    found = check_kills(runs, place, SHORT)
    assert found.total() == 2 * SHORT


@pytest.mark.slow
def test_a_run_killed_at_fifty_points_is_finished_by_the_next(runs, place):
    found = check_kills(runs, place, LONG)
    assert found.total() == 2 * LONG


@pytest.mark.parametrize(
    ("function", "found"),
    [
        ("_ledger_place.open_ledger", "nothing"),
        ("protocol._require_budget", "not charged"),
        ("record.run_record", "charged"),
        ("_folder.write_files", "stored"),
    ],
)
def test_a_run_killed_between_its_steps_is_finished_by_the_next(
    runs, place, function, found
):
    folder = place()
    assert check_killed_run(runs, folder, at=f"/{function}") == found
