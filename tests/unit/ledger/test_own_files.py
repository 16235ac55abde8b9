"""What is charged is written to the file that others see."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import undertow as ut
from support.ledger_terms import RELEASE, TERMS
from undertow.errors import LedgerError
from undertow.ledger import BudgetLedger, verify_ledger
from undertow.ledger._place import is_still

HALF = ut.Release("half", ut.Pure("1/2"), unit=ut.User(), view=ut.At(1), setting="view")
# Another process: charges half of the budget, and closes the ledger.
OTHER = """
import sys
import undertow as ut
from undertow.ledger import BudgetLedger
half = ut.Release("half", ut.Pure("1/2"), unit=ut.User(), view=ut.At(1), setting="view")
with BudgetLedger.open(sys.argv[1]) as ledger:
    ledger.charge([half], key=sys.argv[2])
"""


@pytest.fixture
def path(tmp_path):
    where = tmp_path / "steps.ledger"
    BudgetLedger.create(where, **TERMS).close()
    return where


def charges_elsewhere(path, key):
    """Tell whether another process could charge half of the budget."""
    words = [sys.executable, "-c", OTHER, str(path), key]
    return subprocess.run(words, capture_output=True).returncode == 0


def test_looking_at_a_ledger_takes_no_locks_from_who_writes_to_it(path):
    # A process that opens and closes the file loses the locks of its connections: the
    # other would take itself for the last user and remove the journal of this one.
    with BudgetLedger.open(path) as ledger:
        assert ledger.losses() == {"user": ut.Pure(0)}
        assert verify_ledger(path) == []
        with BudgetLedger.open(path, read_only=True) as reader:
            assert reader.head.count == 0
        assert charges_elsewhere(path, "theirs")
        assert Path(f"{path}-wal").exists()
        ledger.charge([HALF], key="ours")
        assert not charges_elsewhere(path, "too much")
    with BudgetLedger.open(path) as ledger:
        assert ledger.losses() == {"user": ut.Pure(1)}
        assert [entry.key for entry in ledger.history()] == ["theirs", "ours"]


def test_what_a_forked_process_charges_outlives_its_parent(path):
    # The child inherits no lock: the parent would remove the journal as it leaves.
    ledger = BudgetLedger.open(path)
    ledger.charge([RELEASE], key="before")
    (ready, begun), (told, left) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        try:
            ledger.charge([RELEASE], key="child")
            os.write(begun, b".")
            os.read(told, 1)
            ledger.charge([RELEASE], key="orphan")
            os._exit(0)
        except BaseException:
            os._exit(1)
    os.read(ready, 1)
    ledger.charge([RELEASE], key="parent")
    ledger.close()
    os.write(left, b".")
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with BudgetLedger.open(path) as again:
        keys = [entry.key for entry in again.history()]
    assert keys == ["before", "child", "parent", "orphan"]


def test_a_file_that_took_the_place_of_the_ledger_is_not_passed_by(path):
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    with BudgetLedger.open(path) as ledger:
        ledger.charge([RELEASE], key="a")
        os.replace(copy, path)
        with pytest.raises(
            LedgerError, match="must stay in its place while it is open"
        ):
            ledger.charge([RELEASE], key="b")


def test_a_ledger_that_was_removed_is_not_charged(path):
    with BudgetLedger.open(path) as ledger:
        charge = ledger.charge([RELEASE], key="a")
        for file in path.parent.iterdir():
            file.unlink()
        with pytest.raises(LedgerError, match="must stay in its place"):
            ledger.store(charge, b"42")


def test_a_journal_that_was_removed_is_missed(path):
    with BudgetLedger.open(path) as ledger:
        ledger.charge([RELEASE], key="a")
        Path(f"{path}-wal").unlink()
        with pytest.raises(LedgerError, match="another file or journal there, or none"):
            ledger.charge([RELEASE], key="b")


def test_a_journal_that_goes_while_a_charge_is_written_is_missed(path):
    with (
        BudgetLedger.open(path) as ledger,
        pytest.raises(LedgerError, match="must stay in its place"),
        ledger._place.writing(),
    ):
        Path(f"{path}-wal").unlink()


def test_a_ledger_has_one_name(path):
    other = path.with_name("other.ledger")
    other.hardlink_to(path)
    for name in (path, other):
        with (
            BudgetLedger.open(name) as ledger,
            pytest.raises(
                LedgerError, match="must be a file of one name, got one of 2"
            ),
        ):
            ledger.charge([RELEASE], key="a")
        assert verify_ledger(name) == []
    other.unlink()
    with BudgetLedger.open(path) as ledger:
        assert ledger.charge([RELEASE], key="a").number == 1


def test_the_journal_of_an_alias_is_that_of_the_file(path):
    alias = path.with_name("alias")
    alias.symlink_to(path)
    with BudgetLedger.open(path) as writer, BudgetLedger.open(alias) as other:
        writer.charge([RELEASE], key="a")
        assert not is_still(alias)
        with BudgetLedger.open(alias, read_only=True) as reader:
            assert reader.head.count == 1
        assert other.charge([RELEASE], key="b").number == 2


@pytest.mark.parametrize("name", ["file:steps", "file::memory:", "file:a?mode"])
def test_a_name_that_looks_like_an_address_is_a_name(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    BudgetLedger.create(name, **TERMS).close()
    assert [file.name for file in tmp_path.iterdir()] == [name]
    with BudgetLedger.open(name) as ledger:
        assert ledger.name == name
        ledger.charge([RELEASE], key="a")
    with BudgetLedger.open(name) as ledger:
        assert ledger.head.count == 1


def test_a_ledger_stays_where_it_was_opened(path, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with BudgetLedger.open(path.name) as ledger:
        (tmp_path / "folder").mkdir()
        monkeypatch.chdir(tmp_path / "folder")
        assert ledger.charge([RELEASE], key="a").number == 1
    assert list((tmp_path / "folder").iterdir()) == []


@pytest.mark.parametrize("dataset", ["half \udcff", "\ud800"])
def test_a_data_set_that_cannot_be_written_leaves_no_file(dataset, tmp_path):
    with pytest.raises(ValueError, match="dataset must be a text of whole characters"):
        BudgetLedger.create(tmp_path / "a", **{**TERMS, "dataset": dataset})
    assert list(tmp_path.iterdir()) == []
