"""The ledger of a team: the same promises on a real PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import psycopg
import pytest

import undertow as ut
from undertow.errors import BudgetExceeded, LedgerError
from undertow.ledger import BudgetLedger, verify_ledger
from undertow.ledger._database import upgrade_schema
from undertow.ledger._place import place_of

FIXTURE = Path(__file__).parent.parent / "unit" / "ledger" / "schema_1.sql"
NUMBERS = count()
TERMS = {
    "dataset": "steps",
    "domain": ut.Stream(1000, 24),
    "budgets": {ut.User(): ut.Pure(1)},
}


def release(epsilon="0.1", at=1):
    return ut.Release(
        "count", ut.Pure(epsilon), unit=ut.User(), view=ut.At(at), setting="view"
    )


@pytest.fixture
def url(postgres):
    return postgres.create_database(f"ledger{next(NUMBERS)}")


def test_a_ledger_on_a_server_charges_stores_and_verifies(url):
    with BudgetLedger.create(url, **TERMS) as ledger:
        charge = ledger.charge([release()], key="a", label="ünïcode")
        assert ledger.store(charge, b"\x00first") == b"\x00first"
        assert ledger.store(charge, b"second") == b"\x00first"
        with pytest.raises(BudgetExceeded):
            ledger.charge([release("1")], key="b")
        ledger.fail(ledger.charge([release()], key="c"), "no engine")
    with BudgetLedger.open(url) as ledger:
        assert ledger.charge([release()], key="a").state == "done"
        assert ledger.output(ledger.find("a")) == b"\x00first"
        assert ledger.losses() == {"user": ut.Pure("0.2")}
        assert ledger.states() == {"charged": 0, "done": 1, "spoiled": 1}
        assert ledger.verify(head=ledger.head.hash) == []
        assert [entry.kind for entry in ledger.history(after=1)] == [
            "output",
            "charge",
            "failure",
        ]


def test_writers_on_a_server_spend_exactly_the_budget(url):
    BudgetLedger.create(url, **TERMS).close()

    def spend(name):
        kept = 0
        with BudgetLedger.open(url) as ledger:
            shared = ledger.charge([release("1/10")], key="shared")
            output = ledger.store(shared, str(name).encode())
            for at in range(20):
                try:
                    ledger.charge([release("1/100")], key=f"{name}-{at}")
                    kept += 1
                except BudgetExceeded:
                    break
        return kept, shared.repeated, output

    with ThreadPoolExecutor(8) as pool:
        kept, repeated, outputs = zip(*pool.map(spend, range(8)), strict=True)
    assert sum(kept) == 90
    assert repeated.count(False) == 1
    assert len(set(outputs)) == 1
    assert verify_ledger(url) == []


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE ledger_entries SET key = 'b'",
        "DELETE FROM ledger_entries",
        "TRUNCATE ledger_entries",
        "UPDATE ledger_terms SET hash = ''",
        "DELETE FROM ledger_outputs",
    ],
)
def test_the_server_itself_refuses_to_change_rows(url, statement):
    with BudgetLedger.create(url, **TERMS) as ledger:
        ledger.charge([release()], key="a")
    with (
        psycopg.connect(url) as link,
        pytest.raises(psycopg.errors.RaiseException, match="append-only"),
    ):
        link.execute(statement)


def test_an_edited_row_on_a_server_is_found(url):
    with BudgetLedger.create(url, **TERMS) as ledger:
        ledger.charge([release()], key="a")
        ledger.charge([release()], key="b")
    with psycopg.connect(url, autocommit=True) as link:
        link.execute("ALTER TABLE ledger_entries DISABLE TRIGGER ALL")
        link.execute("UPDATE ledger_entries SET body = replace(body, '1/10', '1/20')")
    assert "got an edited one" in verify_ledger(url)[0].what


def test_a_ledger_of_schema_1_on_a_server_opens(url):
    place = place_of(url)
    with place.writing() as link:
        upgrade_schema(link, to=1)
        for line in FIXTURE.read_text(encoding="utf-8").splitlines()[1:]:
            link.exec_driver_sql(line)
    place.close()
    with BudgetLedger.open(url) as ledger:
        assert ledger.losses()["user"] == ut.Pure("0.5")
        ledger.charge([release("0.25", at=2)], key="new")
        assert ledger.verify() == []


def test_a_database_without_a_ledger_and_one_that_is_not_there(postgres, url):
    with pytest.raises(LedgerError, match="must hold a ledger, got none"):
        BudgetLedger.open(url)
    with pytest.raises(LedgerError, match="make one with undertow ledger init"):
        BudgetLedger.open(postgres.url("no_such_database"))
    BudgetLedger.create(url, **TERMS).close()
    with pytest.raises(LedgerError, match="must hold no ledger yet"):
        BudgetLedger.create(url, **TERMS)
