"""A ledger when things go wrong: many writers, kills, a full disk, no rights."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path

import pytest

import undertow as ut
from undertow.errors import LedgerError
from undertow.ledger import BudgetLedger, verify_ledger

HEADER = """
import json, os, sys
import undertow as ut
from undertow.errors import BudgetExceeded, LedgerError
from undertow.ledger import BudgetLedger

def count(epsilon):
    return ut.Release("count", ut.Pure(epsilon), unit=ut.User(),
                      view=ut.At(1), setting="view")

path, name = sys.argv[1], sys.argv[2]
"""
HAMMER = """
kept = []
with BudgetLedger.open(path) as ledger:
    charge = ledger.charge([count("1/10")], key="the same")
    output = ledger.store(charge, name.encode()).decode()
    for at in range(16):
        try:
            ledger.charge([count("1/100")], key=f"{name}-{at}")
        except BudgetExceeded:
            continue
        kept.append(at)
print(json.dumps([kept, charge.repeated, output]))
"""
RELEASE = """
folder = name
with BudgetLedger.open(path) as ledger:
    at = 0
    while True:
        charge = ledger.charge([count("1/1000")], key=str(at))
        output = ledger.output(charge)
        if output is None:
            output = ledger.store(charge, os.urandom(16))
        with open(f"{folder}/{at}", "wb") as file:
            file.write(output)
        at += 1
"""
FULL = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
kept = 0
with BudgetLedger.open(path) as ledger:
    ledger.charge([count("1/1000")], key="first")
    kept += 1
    journal = os.path.getsize(path + "-wal")
    resource.setrlimit(resource.RLIMIT_FSIZE, (journal + int(name),) * 2)
    try:
        while kept < 500:
            ledger.charge([count("1/1000")], key=f"more {kept}")
            kept += 1
    except LedgerError as fault:
        print(json.dumps([kept, str(fault)]))
"""
READ_ONLY = """
try:
    with BudgetLedger.open(path) as ledger:
        ledger.charge([count("1/10")], key="a")
except LedgerError as fault:
    print(json.dumps(str(fault)))
"""


def told(runs, script, path, name="x", **options):
    """What a writer of its own process says at its end."""
    ended = runs.run(
        str(path), str(name), folder=path.parent, script=HEADER + script, **options
    )
    assert ended.status == 0, ended.error
    return json.loads(ended.output)


def count(epsilon):
    return ut.Release(
        "count", ut.Pure(epsilon), unit=ut.User(), view=ut.At(1), setting="view"
    )


def create(path):
    BudgetLedger.create(
        path,
        dataset="steps",
        domain=ut.Stream(1000, 4),
        budgets={ut.User(): ut.Pure(1)},
    ).close()
    return path


@pytest.fixture
def path(tmp_path):
    return create(tmp_path / "steps.ledger")


def test_eight_processes_spend_exactly_the_budget_and_share_one_output(path, runs):
    words = [(str(path), str(at)) for at in range(8)]
    ended = runs.run_at_once(words, folder=path.parent, script=HEADER + HAMMER)
    said = [json.loads(each.output) for each in ended]
    kept, repeated, outputs = zip(*said, strict=True)
    assert sum(map(len, kept)) == 90
    assert repeated.count(False) == 1
    assert len(set(outputs)) == 1
    with BudgetLedger.open(path) as ledger:
        assert ledger.remaining(ut.User()) == ut.Pure(0)
        keys = {entry.key for entry in ledger.history()}
        own = {f"{w}-{at}" for w, ats in enumerate(kept) for at in ats}
        assert keys == own | {"the same"}
    assert verify_ledger(path) == []


def test_a_killed_writer_never_shows_two_outputs_of_one_charge(path, tmp_path, runs):
    folder, seen = tmp_path / "out", {}
    folder.mkdir()
    clock = random.Random(7)
    for _ in range(8):
        ended = runs.run(
            str(path),
            str(folder),
            folder=tmp_path,
            script=HEADER + RELEASE,
            after=clock.uniform(0.05, 0.25),
        )
        assert ended.status == -9
        for file in folder.iterdir():
            content = file.read_bytes()
            if content:  # the file itself may be cut short; the ledger may not
                assert content == seen.setdefault(file.name, content)
    assert seen
    assert verify_ledger(path) == []
    with BudgetLedger.open(path) as ledger:
        for key, content in seen.items():
            assert ledger.output(ledger.find(key)) == content
        charges = [e for e in ledger.history() if e.kind == "charge"]
        assert [entry.key for entry in charges] == [
            str(at) for at in range(len(charges))
        ]
        assert ledger.losses() == {"user": ut.Pure(f"{len(charges)}/1000")}
        assert len(charges) - ledger.states()["done"] <= 1


@pytest.mark.parametrize("room", [0, 5000, 9000, 40000])
def test_a_full_disk_leaves_whole_entries_only(path, runs, room):
    kept, sentence = told(runs, FULL, path, room)
    assert "must be a ledger that can be used, but it" in sentence
    assert sentence.count(".") <= sentence.count(path.name) + 1
    assert verify_ledger(path) == []
    with BudgetLedger.open(path) as ledger:
        assert ledger.head.count == kept
        ledger.charge([count("1/1000")], key="when there is room again")
        assert ledger.losses() == {"user": ut.Pure(f"{kept + 1}/1000")}


def test_a_read_only_ledger_is_one_sentence(tmp_path, runs):
    # Where only root may pass, nobody could not even look at the folder.
    folder = Path("/tmp") if os.getuid() == 0 else tmp_path
    folder = folder / f"undertow-read-only-{os.getpid()}"
    folder.mkdir()
    path = folder / "steps.ledger"
    try:
        create(path).chmod(0o444)
        folder.chmod(0o555)
        sentence = told(runs, READ_ONLY, path, nobody=True)
        assert any(w in sentence for w in ("is read-only", "cannot be opened"))
        assert "\n" not in sentence
    finally:
        folder.chmod(0o700)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def test_a_ledger_busy_too_long_is_one_sentence(path, monkeypatch):
    from undertow.ledger import _place as connection

    monkeypatch.setattr(connection, "_PATIENCE_S", 0.05)
    with (
        BudgetLedger.open(path) as ledger,
        BudgetLedger.open(path) as other,
        other._place.writing(),
        pytest.raises(LedgerError, match="busy with another writer; try again"),
    ):
        ledger.charge([count("1/10")], key="a")
