"""Ledgers of every earlier schema open; those of a later one are refused."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text

import undertow as ut
import undertow.ledger
from undertow.errors import BudgetExceeded, LedgerError
from undertow.ledger import BudgetLedger, verify_ledger
from undertow.ledger import _database as upgrade
from undertow.ledger._database import LATEST, METADATA, upgrade_schema
from undertow.ledger._place import place_of

FIXTURE = Path(__file__).parent / "schema_1.sql"
MIGRATIONS = Path(undertow.ledger.__file__).parent / "migrations"


def hour(at, epsilon="0.25"):
    return ut.Release(
        f"hour {at}",
        ut.Pure(epsilon),
        unit=ut.User(),
        view=ut.At(at),
        setting="view",
    )


@pytest.fixture
def old(tmp_path):
    """A ledger of schema 1: its own migration, then plain inserts."""
    path = tmp_path / "old.ledger"
    place = place_of(path)
    place.claim()
    with place.writing() as link:
        upgrade_schema(link, to=1)
        for line in FIXTURE.read_text(encoding="utf-8").splitlines()[1:]:
            link.exec_driver_sql(line)
    place.close()
    return path


def test_a_ledger_of_schema_1_opens_with_all_its_charges(old):
    with BudgetLedger.open(old) as ledger:
        assert ledger.verify() == []
        assert ledger.losses() == {"user": ut.Pure("0.5"), "event": ut.Pure("0.25")}
        assert [entry.kind for entry in ledger.history()] == ["charge", "charge"]


def test_a_ledger_of_schema_1_goes_on(old):
    with BudgetLedger.open(old) as ledger:
        known = ledger.charge([hour(8)], key="2026-01-01")
        assert (known.repeated, known.state) == (True, "charged")
        assert ledger.store(known, b"drawn after the update") == ledger.output(known)
        ledger.charge([hour(10, "0.5")], key="2026-01-03")
        with pytest.raises(BudgetExceeded):
            ledger.charge([hour(11, "0.1")], key="2026-01-04")
        assert ledger.verify() == []
        assert not ledger.history()[2].clock_back


def test_a_copy_of_the_old_file_is_kept_for_its_owner(old):
    BudgetLedger.open(old).close()
    copy = Path(f"{old}.schema1.bak")
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    with closing(sqlite3.connect(copy)) as link:
        assert link.execute("SELECT version_num FROM ledger_version").fetchone() == (
            "1",
        )
        assert link.execute("SELECT count(*) FROM ledger_entries").fetchone() == (2,)
    BudgetLedger.open(old).close()
    assert len(list(old.parent.glob("*.bak"))) == 1


def test_an_older_copy_is_not_overwritten(old):
    first = Path(f"{old}.schema1.bak")
    first.write_text("kept")
    BudgetLedger.open(old).close()
    assert first.read_text() == "kept"
    assert Path(f"{old}.schema1.2.bak").exists()


def test_a_migration_that_fails_leaves_the_old_ledger(old, monkeypatch):
    def broken(link, *, to=LATEST):
        upgrade_schema(link, to=to)
        link.execute(text("SELECT * FROM no_such_place"))

    monkeypatch.setattr(upgrade, "upgrade_schema", broken)
    with pytest.raises(LedgerError):
        BudgetLedger.open(old)
    monkeypatch.undo()
    with closing(sqlite3.connect(old)) as link:
        found = link.execute("SELECT version_num FROM ledger_version").fetchone()
        assert found == ("1",)
        names = {row[0] for row in link.execute("SELECT name FROM sqlite_master")}
        assert "ledger_outputs" not in names
    assert verify_ledger(old) == []


def test_a_newer_schema_is_refused_in_one_sentence(tmp_path):
    path = tmp_path / "new.ledger"
    BudgetLedger.create(
        path,
        dataset="steps",
        domain=ut.Stream(10, 4),
        budgets={ut.User(): ut.Pure(1)},
    ).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as link:
        link.execute("UPDATE ledger_version SET version_num = '9'")
    with pytest.raises(LedgerError, match=r"got schema 9; update undertow\.$"):
        BudgetLedger.open(path)
    assert [p.name for p in tmp_path.glob("*.bak")] == []


def test_the_migrations_end_at_the_tables_in_use(tmp_path):
    place = place_of(tmp_path / "a")
    place.claim()
    with place.writing() as link:
        upgrade_schema(link)
        found = inspect(link)
        for table in METADATA.sorted_tables:
            columns = {column["name"] for column in found.get_columns(table.name)}
            assert columns == set(table.columns.keys())
    place.close()


def test_the_schemas_are_one_line_up_to_the_latest():
    script = ScriptDirectory(str(MIGRATIONS))
    assert script.get_heads() == [str(LATEST)]
    revisions = [r.revision for r in script.walk_revisions()]
    assert revisions == [str(n) for n in range(LATEST, 0, -1)]


def test_a_ledger_that_cannot_be_copied_is_left_at_its_schema(old, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(upgrade.os, "open", full)
    with pytest.raises(LedgerError, match="must be copied before it is brought"):
        BudgetLedger.open(old)
    monkeypatch.undo()
    assert list(old.parent.glob("*.bak")) == []
    with closing(sqlite3.connect(old)) as link:
        found = link.execute("SELECT version_num FROM ledger_version").fetchone()
        assert found == ("1",)
