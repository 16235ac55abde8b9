"""Every way to change a ledger behind its back is found."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

import undertow as ut
from undertow.errors import LedgerError
from undertow.ledger import BudgetLedger, verify_ledger
from undertow.ledger.record import canonical, digest

ENTRIES = 6


def release(epsilon="0.1"):
    return ut.Release(
        "count", ut.Pure(epsilon), unit=ut.User(), view=ut.At(1), setting="view"
    )


@pytest.fixture
def path(tmp_path):
    """Four charges, one with its output, one closed."""
    where = tmp_path / "steps.ledger"
    with BudgetLedger.create(
        where,
        dataset="steps",
        domain=ut.Stream(10, 4),
        budgets={ut.User(): ut.Pure(1)},
    ) as ledger:
        charges = [ledger.charge([release()], key=f"k{at}") for at in range(4)]
        ledger.store(charges[0], b"the answer")
        ledger.fail(charges[1], "no engine")
    return where


def change(path, *statements):
    """Edit the file as someone who first drops the triggers."""
    with closing(sqlite3.connect(path, isolation_level=None)) as link:
        names = link.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")
        for (name,) in names.fetchall():
            link.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            assert link.execute(*statement).rowcount != 0


def rewritten(path, at, /, **edits):
    """Return a body and its fitting hash: what a careful forger writes."""
    with closing(sqlite3.connect(path)) as link:
        (body,) = link.execute(
            "SELECT body FROM ledger_entries WHERE number = ?", (at,)
        ).fetchone()
    text = canonical({**json.loads(body), **edits})
    return text, digest(text)


def forge(path, number, **edits):
    text, computed = rewritten(path, number, **edits)
    change(
        path,
        (
            "UPDATE ledger_entries SET body = ?, hash = ? WHERE number = ?",
            (text, computed, number),
        ),
    )


def test_an_untouched_ledger_is_sound(path):
    assert verify_ledger(path) == []
    with BudgetLedger.open(path) as ledger:
        assert ledger.verify() == []
        assert ledger.verify(head=ledger.head.hash) == []


@pytest.mark.parametrize("verb", ["UPDATE {} SET {} = {}", "DELETE FROM {}"])
@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("ledger_entries", "number"),
        ("ledger_terms", "id"),
        ("ledger_outputs", "charge"),
    ],
)
def test_the_database_itself_refuses_to_change_rows(path, verb, table, column):
    with (
        closing(sqlite3.connect(path)) as link,
        pytest.raises(sqlite3.IntegrityError, match="append-only"),
    ):
        link.execute(verb.format(table, column, column))


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (
            ["UPDATE ledger_entries SET body = replace(body, '1/10', '1/20')"],
            "entry 1 must be as written, got an edited one",
        ),
        (["UPDATE ledger_entries SET body = 'x'"], "entry 1 must be readable"),
        (["UPDATE ledger_entries SET key = 'z' || key"], "must agree with its row"),
        (
            ["UPDATE ledger_entries SET kind = 'failure' WHERE number = 3"],
            "entry 3 must agree with its row",
        ),
        (
            ["DELETE FROM ledger_entries WHERE number = 3"],
            "entry 3 must be in its place, got none",
        ),
        (["DELETE FROM ledger_entries WHERE number = 6"], "the head must be entry 5"),
        (["DELETE FROM ledger_entries"], "the head must be entry 0, got entry 6"),
        (
            [
                "UPDATE ledger_entries SET number = 100 WHERE number = 3",
                "UPDATE ledger_entries SET number = 3 WHERE number = 4",
                "UPDATE ledger_entries SET number = 4 WHERE number = 100",
            ],
            "entry 3 must agree with its row",
        ),
        (["UPDATE ledger_head SET count = 5"], "the head must be entry 6"),
        (
            ["UPDATE ledger_head SET time = '2020-01-01T00:00:00.000000+00:00'"],
            "the time of the head must be that of the last entry",
        ),
        (["DELETE FROM ledger_head"], "must have its head, got none"),
        (["DELETE FROM ledger_terms"], "must have its terms, got none"),
        (
            ["UPDATE ledger_terms SET body = replace(body, '\"1\"', '\"9\"')"],
            "the terms must be as they were agreed",
        ),
        (
            ["UPDATE ledger_outputs SET content = x'00'"],
            "the output of entry 1 must be as stored",
        ),
        (["DELETE FROM ledger_outputs"], "the output of entry 1 must be there"),
        (
            ["INSERT INTO ledger_outputs VALUES (3, x'00')"],
            "the output of entry 3 must be as stored",
        ),
    ],
)
def test_a_changed_row_is_found(path, statements, words):
    change(path, *[(statement,) for statement in statements])
    faults = verify_ledger(path)
    assert any(words in fault.what for fault in faults), faults
    assert all(fault.to_dict()["what"].endswith(".") for fault in faults)


def test_an_edited_time_of_a_ledger_without_entries_is_found(tmp_path):
    where = tmp_path / "new.ledger"
    BudgetLedger.create(
        where,
        dataset="steps",
        domain=ut.Stream(10, 4),
        budgets={ut.User(): ut.Pure(1)},
    ).close()
    assert verify_ledger(where) == []
    change(where, ("UPDATE ledger_head SET time = '2020'",))
    (fault,) = verify_ledger(where)
    assert "the time of the head" in fault.what


def test_an_edited_row_with_a_fitting_hash_breaks_the_chain(path):
    forge(path, 2, label="another")
    assert any("entry 3 must follow" in fault.what for fault in verify_ledger(path))


def test_an_edited_last_row_with_a_fitting_hash_misses_the_head(path):
    forge(path, ENTRIES, reason="another")
    assert any("the head must be" in fault.what for fault in verify_ledger(path))


def test_edited_terms_with_a_fitting_hash_break_the_first_link(path):
    with closing(sqlite3.connect(path)) as link:
        (body,) = link.execute("SELECT body FROM ledger_terms").fetchone()
    text = canonical({**json.loads(body), "dataset": "another"})
    statement = "UPDATE ledger_terms SET body = ?, hash = ?"
    change(path, (statement, (text, digest(text))))
    assert any("entry 1 must follow" in fault.what for fault in verify_ledger(path))
    with BudgetLedger.open(path) as ledger, pytest.raises(LedgerError, match="breaks"):
        ledger.charge([release()], key="new")


def test_a_hash_kept_elsewhere_shows_a_ledger_that_was_replaced(path, tmp_path):
    with BudgetLedger.open(path) as ledger:
        kept = ledger.head.hash
        ledger.charge([release()], key="later")
    assert verify_ledger(path, head=kept) == []
    with BudgetLedger.create(
        tmp_path / "b",
        dataset="steps",
        domain=ut.Stream(10, 4),
        budgets={ut.User(): ut.Pure(1)},
    ):
        pass
    assert verify_ledger(tmp_path / "b") == []
    (fault,) = verify_ledger(tmp_path / "b", head=kept)
    assert "replaced or rewritten" in fault.what


def append(path, **edits):
    """Add a well-chained entry that the package would not have written."""
    with closing(sqlite3.connect(path)) as link:
        count, last = link.execute("SELECT count, hash FROM ledger_head").fetchone()
    text, _ = rewritten(path, 1, number=count + 1, previous=last, **edits)
    body = json.loads(text)
    row = (count + 1, body["kind"], body["key"], text, digest(text))
    change(
        path,
        (
            "INSERT INTO ledger_entries (number, kind, key, body, hash) "
            "VALUES (?, ?, ?, ?, ?)",
            row,
        ),
        (
            "UPDATE ledger_head SET count = ?, hash = ?, time = ?",
            (count + 1, digest(text), body["time"]),
        ),
    )


def test_a_charge_with_a_false_sum_is_found(path):
    append(path, key="forged")
    (fault,) = verify_ledger(path)
    assert "must be the sum of the charges" in fault.what


def test_an_overspent_budget_is_found(path):
    with BudgetLedger.open(path) as ledger:
        document = ledger.history()[0].body["releases"][0]
    document["claims"][0]["loss"]["epsilon"] = "2"
    losses = {"user": {"notion": "pure", "exact": ["12/5"]}}
    append(path, key="forged", releases=[document], losses=losses)
    (fault,) = verify_ledger(path)
    assert fault.what == "the user budget is overspent."


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ({"kind": "output", "key": "none"}, "about an earlier charge"),
        ({"kind": "failure", "key": "k0", "charge": 1}, "an open charge"),
    ],
    ids=["no charge", "closed"],
)
def test_an_entry_about_no_open_charge_is_found(path, edits, words):
    append(path, **edits)
    assert any(words in fault.what for fault in verify_ledger(path))


def test_a_charge_that_cannot_be_read_is_found(path):
    append(path, key="forged", releases=[{"name": "x"}])
    (fault,) = verify_ledger(path)
    assert "must be readable" in fault.what


def test_an_edited_output_is_not_handed_out(path):
    change(path, ("UPDATE ledger_outputs SET content = x'00'",))
    with (
        BudgetLedger.open(path) as ledger,
        pytest.raises(LedgerError, match="as it was stored, got other bytes"),
    ):
        ledger.output(ledger.find("k0"))


def test_a_charge_on_an_edited_history_is_refused(path):
    change(path, ("UPDATE ledger_entries SET body = replace(body, '1/10', '1/20')",))
    with BudgetLedger.open(path) as ledger:
        with pytest.raises(LedgerError, match="entry 1 must be as it was written"):
            ledger.charge([release()], key="new")
        with pytest.raises(LedgerError, match="entry 1 must be as it was written"):
            ledger.find("k0")
