"""Paths, URLs, and what goes wrong with them."""

from __future__ import annotations

import os
import sqlite3

import pytest

import undertow as ut
from support.ledger_terms import RELEASE, TERMS
from undertow.errors import LedgerError
from undertow.ledger import BudgetLedger
from undertow.ledger._place import place_of


def test_a_path_and_its_url_are_one_place(tmp_path):
    BudgetLedger.create(tmp_path / "a b.ledger", **TERMS).close()
    with BudgetLedger.open(f"sqlite:///{tmp_path}/a b.ledger") as ledger:
        assert ledger.dataset == "steps"


def test_a_password_is_never_shown():
    place = place_of("postgresql://me:secret@localhost/db")
    assert "secret" not in place.name
    assert place.name.startswith("postgresql+psycopg://me:***@localhost")


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("", "empty text"),
        ("mysql://x/y", "SQLite file or a PostgreSQL database, got 'mysql'"),
        ("sqlite://", "SQLite file or a PostgreSQL database"),
        ("://", "must be read in one way"),
        (
            "host=db password='s3 cret' port=1",
            r"may hold a password and is not repeated; put ./",
        ),
        ("postgresql://localhost:1/none", "cannot be reached"),
    ],
)
def test_other_addresses_are_refused(address, words):
    with pytest.raises(LedgerError, match=words):
        BudgetLedger.open(address)


def test_opening_makes_no_file(tmp_path):
    with pytest.raises(LedgerError, match="got no such file; make one with"):
        BudgetLedger.open(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_no_ledger(tmp_path):
    with pytest.raises(LedgerError, match="got no plain file"):
        BudgetLedger.open(tmp_path)


def test_another_file_is_no_ledger_and_is_left_alone(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("dear diary, " * 1000)
    for use in (BudgetLedger.open, lambda at: BudgetLedger.create(at, **TERMS)):
        with pytest.raises(LedgerError):
            use(file)
    assert file.read_text() == "dear diary, " * 1000


def test_another_database_is_no_ledger(tmp_path):
    with sqlite3.connect(tmp_path / "a.db") as link:
        link.execute("CREATE TABLE people (name)")
    link.close()
    before = (tmp_path / "a.db").read_bytes()
    with pytest.raises(LedgerError, match="must hold a ledger, got none"):
        BudgetLedger.open(tmp_path / "a.db")
    with pytest.raises(LedgerError, match="must be a new path or an empty file"):
        BudgetLedger.create(tmp_path / "a.db", **TERMS)
    assert (tmp_path / "a.db").read_bytes() == before


def test_a_ledger_is_not_made_twice(tmp_path):
    BudgetLedger.create(tmp_path / "a", **TERMS).close()
    with pytest.raises(LedgerError, match="must hold no ledger yet, got one"):
        BudgetLedger.create(tmp_path / "a", **TERMS)


def test_a_ledger_needs_a_folder_to_be_in(tmp_path):
    with pytest.raises(LedgerError, match="must be a place where a file can be made"):
        BudgetLedger.create(tmp_path / "none" / "a", **TERMS)


def test_a_file_left_empty_by_a_crash_can_be_used(tmp_path):
    (tmp_path / "a").touch(mode=0o600)
    with BudgetLedger.create(tmp_path / "a", **TERMS) as ledger:
        assert ledger.head.count == 0


def test_connections_are_not_shared_with_a_child(tmp_path):
    with BudgetLedger.create(tmp_path / "a", **TERMS) as ledger:
        ledger.charge([RELEASE], key="parent")
        child = os.fork()
        if child == 0:
            try:
                ledger.charge([RELEASE], key="child")
                os._exit(0)
            except BaseException:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        ledger.charge([RELEASE], key="parent again")
        assert ledger.losses() == {"user": ut.Pure("0.3")}
        assert ledger.verify() == []
