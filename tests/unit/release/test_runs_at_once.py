"""Runs that meet: one makes the ledger and charges, the others find what it did."""

from __future__ import annotations

import sqlite3

import pytest

from support.release_documents import write_visits
from undertow.errors import BudgetExceeded, LedgerError
from undertow.ledger import BudgetLedger
from undertow.ledger import _place as connection
from undertow.privacy.loss import Pure
from undertow.release import load
from undertow.release.run import protocol as run
from undertow.spaces import Stream, User


def test_a_run_that_another_process_charged_meanwhile_is_found(tmp_path, monkeypatch):
    path = write_visits(tmp_path)
    first = load(path).run()
    plain, asked = run.find_charge, []

    def late(ledger, keys):
        asked.append(keys)
        return None if len(asked) == 1 else plain(ledger, keys)

    monkeypatch.setattr(run, "find_charge", late)
    second = load(path).run()
    assert len(asked) == 2
    assert second.repeated
    assert second.answers == first.answers


def test_another_run_is_refused_as_before(tmp_path):
    path = write_visits(tmp_path)
    load(path).run()
    with pytest.raises(BudgetExceeded, match="must fit the user budget"):
        load(path).run(repeat=2)


def busy_for(times: int, monkeypatch, *, code: int = sqlite3.SQLITE_BUSY) -> list[int]:
    plain, calls = connection._set_journal, []

    def locked(link):
        calls.append(1)
        if len(calls) <= times:
            fault = sqlite3.OperationalError("database is locked")
            fault.sqlite_errorcode = code
            raise fault
        return plain(link)

    monkeypatch.setattr(connection, "_set_journal", locked)
    return calls


def made(path):
    given = {"dataset": "visits", "domain": Stream(10, 1), "budgets": {User(): Pure(1)}}
    return BudgetLedger.create(path, **given)


def test_a_ledger_waits_for_who_makes_its_file_at_once(tmp_path, monkeypatch):
    calls = busy_for(3, monkeypatch)
    with made(tmp_path / "a.ledger") as ledger:
        assert ledger.budgets == {User(): Pure(1)}
    assert len(calls) == 4


@pytest.mark.parametrize("code", [sqlite3.SQLITE_BUSY, sqlite3.SQLITE_READONLY])
def test_it_does_not_wait_forever_or_for_other_faults(tmp_path, monkeypatch, code):
    monkeypatch.setattr(connection, "_PATIENCE_S", 0)
    calls = busy_for(10**6, monkeypatch, code=code)
    with pytest.raises(LedgerError, match="must be a place where a file can be made"):
        made(tmp_path / "a.ledger")
    assert len(calls) == 1 if code == sqlite3.SQLITE_READONLY else len(calls) >= 1


def test_a_file_made_by_another_process_at_once_is_taken(tmp_path):
    path = tmp_path / "a.ledger"
    path.touch(0o600)
    connection._make_file(path)
    (tmp_path / "b.ledger").symlink_to(tmp_path / "nowhere" / "b")
    with pytest.raises(FileExistsError):
        connection._make_file(tmp_path / "b.ledger")
