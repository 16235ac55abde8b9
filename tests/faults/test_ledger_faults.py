"""A ledger when things go wrong: many writers, kills, a full disk, no rights."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
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
    for at in range(40):
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
    print("ready", flush=True)
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
if os.getuid() == 0:
    os.setgid(65534); os.setuid(65534)
try:
    with BudgetLedger.open(path) as ledger:
        ledger.charge([count("1/10")], key="a")
except LedgerError as fault:
    print(json.dumps(str(fault)))
"""


def start(script, path, name):
    return subprocess.Popen(
        [sys.executable, "-c", HEADER + script, str(path), str(name)],
        stdout=subprocess.PIPE,
        text=True,
    )


def finish(process):
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0
    return json.loads(output)


@pytest.fixture
def path(tmp_path):
    where = tmp_path / "steps.ledger"
    BudgetLedger.create(
        where,
        dataset="steps",
        domain=ut.Stream(1000, 4),
        budgets={ut.User(): ut.Pure(1)},
    ).close()
    return where


def test_eight_processes_spend_exactly_the_budget_and_share_one_output(path):
    writers = [start(HAMMER, path, at) for at in range(8)]
    kept, repeated, outputs = zip(*map(finish, writers), strict=True)
    assert sum(map(len, kept)) == 90
    assert repeated.count(False) == 1
    assert len(set(outputs)) == 1
    with BudgetLedger.open(path) as ledger:
        assert ledger.remaining(ut.User()) == ut.Pure(0)
        keys = {entry.key for entry in ledger.history()}
        own = {f"{w}-{at}" for w, ats in enumerate(kept) for at in ats}
        assert keys == own | {"the same"}
    assert verify_ledger(path) == []


def test_a_killed_writer_never_shows_two_outputs_of_one_charge(path, tmp_path):
    folder, seen = tmp_path / "out", {}
    folder.mkdir()
    clock = random.Random(7)
    for _ in range(8):
        writer = start(RELEASE, path, folder)
        assert writer.stdout.readline() == "ready\n"
        time.sleep(clock.uniform(0, 0.15))
        writer.kill()
        writer.communicate()
        for file in folder.iterdir():
            content = file.read_bytes()
            if content:  # the file itself may be cut short; the ledger may not
                assert content == seen.setdefault(file.name, content)
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
def test_a_full_disk_leaves_whole_entries_only(path, room):
    kept, sentence = finish(start(FULL, path, room))
    assert "must be a ledger that can be used, but it" in sentence
    assert sentence.count(".") <= sentence.count(path.name) + 1
    assert verify_ledger(path) == []
    with BudgetLedger.open(path) as ledger:
        assert ledger.head.count == kept
        ledger.charge(
            [
                ut.Release(
                    "count",
                    ut.Pure("1/1000"),
                    unit=ut.User(),
                    view=ut.At(1),
                    setting="view",
                )
            ],
            key="when there is room again",
        )
        assert ledger.losses() == {"user": ut.Pure(f"{kept + 1}/1000")}


def test_a_read_only_ledger_is_one_sentence(tmp_path):
    # Where only root may pass, nobody could not even look at the folder.
    folder = Path("/tmp") if os.getuid() == 0 else tmp_path
    folder = folder / f"undertow-read-only-{os.getpid()}"
    folder.mkdir()
    path = folder / "steps.ledger"
    try:
        BudgetLedger.create(
            path,
            dataset="steps",
            domain=ut.Stream(1000, 4),
            budgets={ut.User(): ut.Pure(1)},
        ).close()
        path.chmod(0o444)
        folder.chmod(0o555)
        sentence = finish(start(READ_ONLY, path, "x"))
        assert any(w in sentence for w in ("is read-only", "cannot be opened"))
        assert "\n" not in sentence
    finally:
        folder.chmod(0o700)
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()


def test_a_ledger_busy_too_long_is_one_sentence(path, monkeypatch):
    from undertow.ledger import connection

    monkeypatch.setattr(connection, "_PATIENCE_S", 0.05)
    with (
        BudgetLedger.open(path) as ledger,
        BudgetLedger.open(path) as other,
        other._place.writing(),
        pytest.raises(LedgerError, match="busy with another writer; try again"),
    ):
        ledger.charge(
            [
                ut.Release(
                    "count",
                    ut.Pure("1/10"),
                    unit=ut.User(),
                    view=ut.At(1),
                    setting="view",
                )
            ],
            key="a",
        )
