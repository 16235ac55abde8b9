"""A ledger is looked at without writing anything, in it or beside it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import text

import undertow as ut
from support.command import invoke
from support.ledger_terms import RELEASE, TERMS
from undertow.cli import ledger as ledger_inputs
from undertow.errors import LedgerError
from undertow.ledger import BudgetLedger, verify_ledger
from undertow.ledger._database import upgrade_schema
from undertow.ledger._place import is_still, place_of, stamp_of

COMMANDS = ("show", "history", "remaining", "verify", "export")


@pytest.fixture
def path(tmp_path):
    where = tmp_path / "a folder" / "50%? steps#1.ledger"
    where.parent.mkdir()
    with BudgetLedger.create(where, **TERMS) as ledger:
        ledger.store(ledger.charge([RELEASE], key="a"), b"42")
    return where


def state(folder):
    """Every file of a folder: its bytes, and when it was written."""
    return {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns)
        for file in [folder, *folder.iterdir()]
        if file.is_file()
    } | {".": folder.stat().st_mtime_ns}


@contextmanager
def as_nobody():
    """Give up the rights of root, to whom no folder is closed, for a while."""
    if os.getuid() != 0:
        yield
        return
    os.setegid(65534)
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def closed(path):
    """A ledger that may be read, in a folder that is closed to writing."""
    # Where only root may pass, nobody could not even look at the folder.
    folder = Path(tempfile.mkdtemp())
    where = folder / "steps.ledger"
    shutil.copy(path, where)
    where.chmod(0o444)
    folder.chmod(0o555)
    yield where
    folder.chmod(0o700)
    shutil.rmtree(folder)


@pytest.mark.parametrize("command", COMMANDS)
def test_looking_writes_nothing(path, command):
    before = state(path.parent)
    assert before.keys() == {path.name, "."}
    done = invoke("ledger", command, path)
    assert done.exit_code == 0, done.stderr
    assert state(path.parent) == before


@pytest.mark.parametrize("command", COMMANDS)
def test_a_ledger_closed_to_writing_can_be_looked_at(closed, command):
    with as_nobody():
        with pytest.raises(PermissionError):
            (closed.parent / "new").touch()
        done = invoke("ledger", command, closed)
    assert done.exit_code == 0, done.stderr


def test_a_ledger_closed_to_writing_is_opened_in_python(closed):
    with as_nobody(), BudgetLedger.open(closed, read_only=True) as ledger:
        assert ledger.remaining(ut.User()) == ut.Pure("0.9")
        assert ledger.output(ledger.find("a")) == b"42"
        assert ledger.verify() == []


def test_what_a_living_writer_committed_is_seen(path):
    with BudgetLedger.open(path) as writer:
        writer.charge([RELEASE], key="b")
        assert not is_still(path)
        with BudgetLedger.open(path, read_only=True) as reader:
            assert reader.remaining(ut.User()) == ut.Pure("0.8")
            writer.charge([RELEASE], key="c")
            assert reader.remaining(ut.User()) == ut.Pure("0.7")
        assert verify_ledger(path) == []
    assert is_still(path)


def test_what_a_living_writer_committed_is_seen_without_rights(closed):
    closed.parent.chmod(0o755)
    closed.chmod(0o644)
    with BudgetLedger.open(closed) as writer:
        writer.charge([RELEASE], key="b")
        for file in closed.parent.iterdir():
            file.chmod(0o444)
        closed.parent.chmod(0o555)
        with as_nobody(), BudgetLedger.open(closed, read_only=True) as reader:
            assert reader.remaining(ut.User()) == ut.Pure("0.8")


def test_what_a_killed_writer_committed_is_seen(path):
    child = os.fork()
    if child == 0:
        try:
            ledger = BudgetLedger.open(path)
            ledger.charge([RELEASE], key="b")
            os._exit(0)  # nothing is closed
        except BaseException:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    journal = Path(f"{path}-wal")
    before = path.read_bytes(), journal.read_bytes()
    with BudgetLedger.open(path, read_only=True) as reader:
        assert reader.remaining(ut.User()) == ut.Pure("0.8")
    assert (path.read_bytes(), journal.read_bytes()) == before


@pytest.mark.parametrize("still", [True, False])
def test_nothing_can_be_written_through_a_reader(path, still):
    with BudgetLedger.open(path) as writer:
        writer.charge([RELEASE], key="b")
        if still:
            writer.close()
        place = place_of(path, read_only=True)
        with (
            pytest.raises(LedgerError, match="is read-only"),
            place.reading() as link,
        ):
            link.execute(text("DELETE FROM ledger_head"))
        with pytest.raises(LedgerError, match="open for writing, got it open to read"):
            place.writing().__enter__()


def test_charging_what_is_only_looked_at_is_refused(path):
    with BudgetLedger.open(path, read_only=True) as reader:
        with pytest.raises(LedgerError, match="open it without read_only"):
            reader.charge([RELEASE], key="b")
        assert reader.head.count == 2


@pytest.mark.parametrize("fails", [False, True])
def test_a_file_that_is_written_to_meanwhile_is_not_believed(path, fails):
    place = place_of(path, read_only=True)

    def read():
        with place.reading() as link:
            link.execute(text("SELECT * FROM ledger_head")).all()
            with BudgetLedger.open(path) as writer:
                writer.charge([RELEASE], key="b")
            if fails:
                raise LedgerError("the ledger must be as it was written.")

    with pytest.raises(LedgerError, match="written to; try again"):
        read()
    with place.reading() as link:
        assert link.execute(text("SELECT count FROM ledger_head")).scalar_one() == 3


def test_a_ledger_with_the_other_journal_is_read_too(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as link:
        link.execute("PRAGMA journal_mode = DELETE")
    assert is_still(path)
    Path(f"{path}-journal").write_bytes(b"begun")
    assert not is_still(path)
    Path(f"{path}-journal").unlink()
    before = state(path.parent)
    assert invoke("ledger", "show", path).exit_code == 0
    assert state(path.parent) == before


def test_an_older_ledger_that_cannot_be_written_is_one_sentence(tmp_path, closed):
    fixture = Path(__file__).parent / "schema_1.sql"
    old = place_of(tmp_path / "old.ledger")
    old.claim()
    with old.writing() as link:
        upgrade_schema(link, to=1)
        for line in fixture.read_text(encoding="utf-8").splitlines()[1:]:
            link.exec_driver_sql(line)
    old.close()
    assert old.path is not None
    closed.parent.chmod(0o755)
    closed.unlink()
    shutil.copy(old.path, closed)
    closed.chmod(0o444)
    closed.parent.chmod(0o555)
    with as_nobody():
        done = invoke("ledger", "show", closed)
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert [file.name for file in closed.parent.iterdir()] == [closed.name]
    assert invoke("ledger", "show", old.path).exit_code == 0  # brought up to date


def test_nothing_is_still_that_is_not_there(tmp_path):
    assert not is_still(tmp_path / "none")
    assert stamp_of(tmp_path / "none") is None


def test_the_command_asks_for_no_more_than_to_read(path):
    with ledger_inputs.opened(str(path)) as found, pytest.raises(LedgerError):
        found.charge([RELEASE], key="b")
