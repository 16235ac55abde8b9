"""A ledger whose making is killed anywhere is made by the next run; copies know all."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing

import pytest

from support.command import invoke
from support.release_documents import write_visits
from undertow.errors import LedgerError
from undertow.ledger import BudgetLedger, verify_ledger
from undertow.privacy import Pure
from undertow.release import load
from undertow.release.run._ledger_place import has_ledger
from undertow.spaces import Stream, User

# Counts what SQLite is asked for, and dies before or after one of these calls.
STATEMENTS = """
import os, sqlite3, sys
stop, done = int(sys.argv[2]), 0

def tick():
    global done
    done += 1
    if done == stop:
        os.kill(os.getpid(), 9)

def ticking(name):
    def method(self, *given, **named):
        tick()
        found = getattr(super(type(self), self), name)(*given, **named)
        tick()
        return found
    return method

names = ("execute", "executemany", "executescript")
Cursor = type("Cursor", (sqlite3.Cursor,), {name: ticking(name) for name in names})
body = {name: ticking(name) for name in ("commit", "close", "execute")}
body["cursor"] = lambda self, *given: sqlite3.Connection.cursor(self, Cursor)
Link = type("Link", (sqlite3.Connection,), body)
real = sqlite3.connect

def connect(*given, **named):
    tick()
    return real(*given, **{**named, "factory": Link})

sqlite3.connect = sqlite3.dbapi2.connect = connect
"""
# Dies where a file would become larger than so many bytes.
SIZES = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
done = 0
"""
MAKE = """
import undertow as ut
from undertow.ledger import BudgetLedger
BudgetLedger.create(sys.argv[1], dataset="visits", domain=ut.Stream(10**9, 1),
                    budgets={ut.User(): ut.Pure(1)}).close()
print(done)
"""


def left_of(folder):
    return {path.name: path.stat().st_size for path in folder.glob("visits.ledger*")}


def check_the_next_run_makes_it(folder, path):
    """Whatever was left, one command releases, and refuses nothing."""
    before = left_of(folder)
    assert invoke("release", "plan", path).exit_code == 0
    assert left_of(folder) == before  # a plan only looks
    done = invoke("release", "run", path)
    assert done.exit_code == 0, (before, done.stderr)
    assert done.stderr.startswith("Nothing checks that rows match")
    assert done.stderr.count("\n") == 1
    with BudgetLedger.open(folder / "visits.ledger") as ledger:
        assert ledger.losses() == {"user": Pure(1)}
        assert ledger.verify() == []


def check_kill(runs, folder, script, at):
    folder /= "own"  # beside no other ledger of the same people
    folder.mkdir(parents=True)
    path = write_visits(folder)
    words = (str(folder / "visits.ledger"), str(at))
    ended = runs.run(*words, folder=folder, script=script + MAKE)
    check_the_next_run_makes_it(folder, path)
    return ended


@pytest.mark.parametrize("part", [pytest.param(1, marks=pytest.mark.slow), 17])
def test_a_ledger_killed_at_any_statement_is_made_by_the_next_run(runs, tmp_path, part):
    whole = check_kill(runs, tmp_path / "whole", STATEMENTS, 0)
    assert whole.status == 0, whole.error
    last = int(whole.output)
    assert last > 50
    for at in range(1, last + 1, part):
        ended = check_kill(runs, tmp_path / f"at{at}", STATEMENTS, at)
        assert ended.status == -9


@pytest.mark.parametrize(
    "room",
    [0, 100, 511, 512, 4095, 4096, 8192, 20_000]
    + [pytest.param(size, marks=pytest.mark.slow) for size in range(28, 36_000, 999)],
)
def test_a_ledger_killed_at_any_size_is_made_by_the_next_run(runs, tmp_path, room):
    ended = check_kill(runs, tmp_path / "folder", SIZES, room)
    assert ended.status in (-25, -31, 0)  # SIGXFSZ has other numbers elsewhere
    assert ended.status != 0 or room > 20_000


def test_a_journal_that_would_undo_the_set_up_is_no_ledger(tmp_path):
    # As a kill leaves it before the journal of the first page is removed: SQLite's
    # mark, no pages to bring back, a file of 0 pages before, sectors and pages.
    path = write_visits(tmp_path)
    file = tmp_path / "visits.ledger"
    with closing(sqlite3.connect(file)) as link:
        link.execute("PRAGMA journal_mode = WAL")
    mark = bytes.fromhex("d9d505f920a163d7")
    numbers = (0, 7, 0, 512, 4096)
    head = mark + b"".join(number.to_bytes(4) for number in numbers)
    (tmp_path / "visits.ledger-journal").write_bytes(head.ljust(512, b"\0"))
    assert file.stat().st_size == 4096
    assert has_ledger(str(file), looking=True)  # nothing is said of it
    check_the_next_run_makes_it(tmp_path, path)


def test_ledger_init_goes_on_where_its_making_was_killed(runs, tmp_path):
    path = write_visits(tmp_path)
    place = tmp_path / "visits.ledger"
    runs.run(str(place), "4096", folder=tmp_path, script=SIZES + MAKE)
    words = ("--dataset", "v", "--granularity", "user=epsilon:1", "--release", path)
    assert invoke("ledger", "init", place, *words).exit_code == 0
    assert invoke("release", "run", path).exit_code == 0


# A copy without the journal.


def test_a_copy_of_the_file_alone_knows_every_output_handed_out(runs, tmp_path):
    path = write_visits(tmp_path)
    killed = runs.run(
        "release", "run", path.name, folder=tmp_path, at="/_earlier.keep_head"
    )
    assert killed.status == -9
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "visits.ledger", tmp_path / "copy" / "visits.ledger")
    with BudgetLedger.open(tmp_path / "copy" / "visits.ledger") as copy:
        (charge, output) = copy.history()
        assert (charge.kind, output.kind) == ("charge", "output")
        stored = copy.output(copy.find(charge.key))
        assert copy.verify() == []
    assert stored is not None
    done = load(path).run()
    assert done.repeated
    assert json.loads(stored)["answers"] == done.record["answers"]


def test_an_output_stored_by_a_killed_run_is_in_the_file_before_it_is_shown(
    runs, tmp_path
):
    path = write_visits(tmp_path)
    killed = runs.run(
        "release", "run", path.name, folder=tmp_path, script=UNSETTLED, call=None
    )
    assert killed.status == -9, killed.error
    assert (tmp_path / "visits.ledger-wal").stat().st_size > 0
    # The output is in the journal alone; whoever reads it carries it over first.
    with BudgetLedger.open(tmp_path / "visits.ledger") as ledger:
        [charge, _] = ledger.history()
        assert alone(tmp_path, "before") == 0
        assert ledger.output(ledger.find(charge.key)) is not None
        assert alone(tmp_path, "after") == 2


UNSETTLED = """
import os
from undertow.ledger._place import Place
real = Place.settle
def settle(self):
    with self.reading() as link:
        made = link.exec_driver_sql("SELECT count(*) FROM ledger_outputs").scalar()
    if made:
        os.kill(os.getpid(), 9)
    real(self)
Place.settle = settle
import undertow.cli
undertow.cli.main()
"""


STORES = """
import os, sys
import undertow as ut
from undertow.ledger import BudgetLedger
with BudgetLedger.open(sys.argv[1]) as ledger:
    for at in range(12):
        release = ut.Release("n", ut.Pure("1/999"), unit=ut.User(), view=ut.At(0),
                             setting="view")
        charge = ledger.charge([release], key=f"{sys.argv[2]} {at}")
        ledger.store(charge, os.urandom(5000))
"""


def test_writers_that_store_at_once_wait_for_each_other(runs, tmp_path):
    place = tmp_path / "x.ledger"
    terms = {"domain": Stream(10**9, 1), "budgets": {User(): Pure(1)}}
    BudgetLedger.create(place, dataset="visits", **terms).close()
    words = [(str(place), str(at)) for at in range(4)]
    found = runs.run_at_once(words, folder=tmp_path, script=STORES)
    assert [each.status for each in found] == [0] * 4, found
    assert verify_ledger(place) == []
    with BudgetLedger.open(place) as ledger:
        assert ledger.states()["done"] == 48


def alone(folder, name):
    """How many entries a copy of the file without its journal has."""
    copy = folder / name
    shutil.copy(folder / "visits.ledger", copy)
    with closing(sqlite3.connect(copy)) as link:
        [found] = link.execute("SELECT count(*) FROM ledger_entries").fetchone()
    return found


# Rows in the place of others, and disks.


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT OR REPLACE INTO ledger_outputs SELECT charge, x'' FROM ledger_outputs",
        "REPLACE INTO ledger_outputs VALUES (1, x'00')",
        "INSERT INTO ledger_outputs VALUES (1, x'00') ON CONFLICT DO UPDATE"
        " SET content = x'00'",
        "INSERT OR REPLACE INTO ledger_terms SELECT * FROM ledger_terms",
        "INSERT OR REPLACE INTO ledger_entries SELECT * FROM ledger_entries",
        "INSERT OR REPLACE INTO ledger_entries SELECT number + 9, key, body, hash, kind"
        " FROM ledger_entries",
    ],
)
def test_no_statement_puts_a_row_in_the_place_of_another(tmp_path, statement):
    load(write_visits(tmp_path)).run()
    place = tmp_path / "visits.ledger"
    with closing(sqlite3.connect(place, isolation_level=None)) as link:
        before = list(link.iterdump())
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            link.execute(statement)
        assert list(link.iterdump()) == before
        link.execute("DROP TRIGGER ledger_outputs_insert")
    (fault,) = verify_ledger(place)
    assert "guard ledger_outputs_insert must be as it was made, got none" in fault.what


def test_an_output_that_was_replaced_before_the_upgrade_is_found(tmp_path):
    load(write_visits(tmp_path)).run()
    place = tmp_path / "visits.ledger"
    with closing(sqlite3.connect(place, isolation_level=None)) as link:
        for table in ("terms", "entries", "outputs"):  # as schema 2 left it
            link.execute(f"DROP TRIGGER ledger_{table}_insert")
        link.execute("UPDATE ledger_version SET version_num = '2'")
        link.execute("INSERT OR REPLACE INTO ledger_outputs VALUES (1, x'00')")
    assert "the output of entry 1 must be as stored" in verify_ledger(place)[0].what
    with closing(sqlite3.connect(place)) as link, pytest.raises(sqlite3.IntegrityError):
        link.execute("INSERT OR REPLACE INTO ledger_outputs VALUES (1, x'01')")


FULL = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
import undertow as ut
from undertow.errors import LedgerError
from undertow.ledger import BudgetLedger
try:
    BudgetLedger.create(sys.argv[1], dataset="visits", domain=ut.Stream(10**9, 1),
                        budgets={ut.User(): ut.Pure(1)}).close()
except LedgerError as fault:
    print(fault)
"""


@pytest.mark.parametrize("room", [0, 100, 600, 4096, 9000])
def test_a_full_disk_is_called_one_wherever_the_making_stops(runs, tmp_path, room):
    words = (str(tmp_path / "x.ledger"), str(room))
    ended = runs.run(*words, folder=tmp_path, script=FULL)
    assert ended.status == 0, ended.error
    said = ended.output
    assert "another file" not in said
    assert "no room left" in said or "check the disk" in said
    with pytest.raises(LedgerError), BudgetLedger.open(tmp_path / "x.ledger"):
        pass
    BudgetLedger.create(
        tmp_path / "x.ledger",
        dataset="visits",
        domain=Stream(10**9, 1),
        budgets={User(): Pure(1)},
    ).close()


def test_a_reader_of_a_ledger_whose_making_was_killed_is_told_so(tmp_path):
    source, path = tmp_path / "source", tmp_path / "visits.ledger"
    with closing(sqlite3.connect(source)) as link:
        link.execute("PRAGMA cache_size = 1")
        link.execute("CREATE TABLE ledger_version (version_num)")
        link.execute("BEGIN IMMEDIATE")
        for _ in range(400):
            link.execute("INSERT INTO ledger_version VALUES (?)", ("x" * 1000,))
        # A kill now would leave these two files.
        shutil.copy(source, path)
        shutil.copy(f"{source}-journal", f"{path}-journal")
    before = path.read_bytes()
    for name in ("show", "verify", "export"):
        done = invoke("ledger", name, path)
        assert done.exit_code == 2
        assert "in the middle of a write by a process that was killed" in done.stderr
        assert "read-only" not in done.stderr
    assert path.read_bytes() == before
    with pytest.raises(LedgerError, match="must hold a ledger, got none"):
        BudgetLedger.open(path)  # it may write, and rolls back what was left
    assert not path.with_name(f"{path.name}-journal").exists()
