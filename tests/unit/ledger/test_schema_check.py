"""What is no entry is checked too: tables, guards, indexes, and odd rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest

from support.command import invoke
from support.ledger_terms import RELEASE, TERMS
from undertow.errors import LedgerError
from undertow.ledger import BudgetLedger, verify_ledger
from undertow.ledger._database import upgrade_schema
from undertow.ledger._place import place_of

INDEX = "ledger_entries_kind_key"
UNDO = (
    "CREATE TRIGGER undo AFTER INSERT ON ledger_entries BEGIN "
    "UPDATE ledger_head SET time = ''; END"
)
VIEW = (
    "ALTER TABLE ledger_outputs RENAME TO hidden;"
    "CREATE VIEW ledger_outputs AS SELECT * FROM hidden"
)
WEAK = (
    "DROP TRIGGER ledger_terms_update;"
    "CREATE TRIGGER ledger_terms_update BEFORE UPDATE ON ledger_terms "
    "BEGIN SELECT 1; END"
)
FREE = "".join(
    f"DROP TRIGGER ledger_{table}_{verb};"
    for table in ("terms", "entries", "outputs")
    for verb in ("update", "delete")
)


@pytest.fixture
def path(tmp_path):
    where = tmp_path / "steps.ledger"
    with BudgetLedger.create(where, **TERMS) as ledger:
        ledger.store(ledger.charge([RELEASE], key="a"), b"42")
    assert verify_ledger(where) == []
    return where


def change(path, statements):
    with closing(sqlite3.connect(path)) as link:
        link.executescript(statements)
        link.commit()


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        ("DROP TRIGGER ledger_entries_update", "guard ledger_entries_update must be"),
        (WEAK, "guard ledger_terms_update must be as it was made, got another"),
        (UNDO, "its own guards alone, got 'undo'"),
        (f"DROP INDEX {INDEX}", f"guard {INDEX} must be as it was made, got none"),
        (VIEW, "table ledger_outputs must be there, got none"),
        ("DROP TABLE ledger_entries", "table ledger_entries must be there"),
        ("UPDATE ledger_head SET id = 7", "row of ledger_head must be number 1"),
    ],
)
def test_another_schema_is_found(path, statements, words):
    change(path, statements)
    assert words in verify_ledger(path)[0].what
    done = invoke("ledger", "verify", path)
    assert done.exit_code == 3
    assert len(done.stderr.splitlines()) == 1


def test_an_index_that_leaves_out_a_row_is_found(path):
    with closing(sqlite3.connect(path)) as link:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        [page] = link.execute(query, [INDEX]).fetchone()
        [size] = link.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    empty = b"\x0a\x00\x00\x00\x00" + size.to_bytes(2, "big") + b"\x00"
    content[(page - 1) * size : page * size] = empty.ljust(size, b"\x00")
    path.write_bytes(content)
    with BudgetLedger.open(path, read_only=True) as ledger:
        assert ledger.find("a") is None  # it would be charged and drawn again
    (fault,) = verify_ledger(path)
    assert fault.what == "the file must be whole, got a damaged one."


@pytest.mark.parametrize("content", ["'42'", "1.5", "100000000000", "7"])
def test_an_output_of_another_type_is_found(path, content):
    change(path, f"{FREE}UPDATE ledger_outputs SET content = {content}")
    assert "must be as stored, got another" in verify_ledger(path)[0].what
    with (
        BudgetLedger.open(path) as ledger,
        pytest.raises(LedgerError, match="must be as it was stored"),
    ):
        ledger.output(ledger.find("a"))


@pytest.mark.parametrize(
    ("statements", "words"),
    [
        (
            "INSERT INTO ledger_head SELECT 2, count, hash, time FROM ledger_head",
            "must have its head, got more than one",
        ),
        (
            "INSERT INTO ledger_terms SELECT 2, body, hash FROM ledger_terms",
            "must have its terms, got more than one",
        ),
        ("UPDATE ledger_terms SET body = CAST(body AS BLOB)", "must be a text"),
        (
            "UPDATE ledger_entries SET body = CAST(body AS BLOB) WHERE number = 1",
            "entry 1 must be readable",
        ),
        (
            'UPDATE ledger_entries SET body = \'{"number": 1e999, "key": "a", '
            '"time": "t"}\' WHERE number = 1',
            "entry 1 must be readable",
        ),
    ],
)
def test_rows_that_nobody_writes_are_faults(path, statements, words):
    change(path, FREE + statements)
    assert words in verify_ledger(path)[0].what
    with pytest.raises(LedgerError), BudgetLedger.open(path) as ledger:
        ledger.charge([RELEASE], key="b")


def test_a_time_of_another_type_does_not_stop_the_ledger(path):
    change(path, "UPDATE ledger_head SET time = x'00'")
    with BudgetLedger.open(path) as ledger:
        assert ledger.charge([RELEASE], key="b").number == 3


@pytest.mark.parametrize(
    "version",
    ["DELETE FROM ledger_version", "INSERT INTO ledger_version VALUES (1)"]
    + [
        f"UPDATE ledger_version SET version_num = {v}" for v in ("'0'", "'02'", "x'32'")
    ],
)
def test_a_version_that_is_none_is_one_sentence(path, version):
    change(path, version)
    done = invoke("ledger", "show", path)
    assert done.exit_code == 2
    assert "must hold a ledger, got none" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("body", ["{}", "[]", '{"time": "x"}'])
def test_an_old_ledger_that_cannot_be_read_is_left_as_it_was(body, tmp_path):
    path = tmp_path / "old.ledger"
    place = place_of(path)
    place.claim()
    with place.writing() as link:
        upgrade_schema(link, to=1)
        values = (1, "k", body, "h")
        link.exec_driver_sql("INSERT INTO ledger_entries VALUES (?, ?, ?, ?)", values)
    place.close()
    for _ in range(2):
        with pytest.raises(LedgerError, match="an entry must be as the ledger wrote"):
            BudgetLedger.open(path)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_newer_ledger_called_old_leaves_no_copies(path):
    change(path, "UPDATE ledger_version SET version_num = '1'")
    with pytest.raises(LedgerError, match="but it was edited; restore it from a copy"):
        BudgetLedger.open(path)
    assert list(path.parent.glob("*.bak")) == []


def test_a_head_is_taken_as_it_is_written_anywhere(path):
    with BudgetLedger.open(path) as ledger:
        kept = f" {ledger.head.hash.upper()}\n"
        assert ledger.verify(head=kept) == []
        with pytest.raises(LedgerError, match="64 hexadecimal digits"):
            ledger.verify(head=kept[:20])
    assert invoke("ledger", "verify", path, "--head", "abc").exit_code == 2
    assert invoke("ledger", "verify", path, "--head", "0" * 64).exit_code == 3


@pytest.mark.parametrize("option", ["--after", "--limit"])
def test_numbers_that_no_database_counts_to_are_refused(path, option):
    done = invoke("ledger", "history", path, option, 2**63)
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr


def test_an_export_into_no_folder_is_one_sentence(path):
    done = invoke("ledger", "export", path, "--output", path.parent / "no" / "x.json")
    assert done.exit_code == 2
    assert "output must be a file that can be made, got" in done.stderr


def test_a_reader_of_a_server_sees_one_state(postgres):
    from undertow.ledger._database import read_head
    from undertow.ledger.fault import faults_of

    url = postgres.create_database("one_state")
    place = place_of(url, read_only=True)
    with BudgetLedger.create(url, **TERMS) as ledger, place.reading() as link:
        before = read_head(link)
        ledger.store(ledger.charge([RELEASE], key="a"), b"42")
        assert read_head(link) == before
        assert faults_of(link) == []
    place.close()


def test_a_server_with_other_defaults_is_written_to_safely(postgres):
    url = postgres.create_database("defaults")
    with postgres.connect("defaults") as link:
        link.execute("ALTER DATABASE defaults SET synchronous_commit = off")
        link.execute(
            "ALTER DATABASE defaults SET default_transaction_isolation = serializable"
        )
    with (
        BudgetLedger.create(url, **TERMS) as ledger,
        ledger._place.writing() as link,
    ):
        for name, value in (
            ("synchronous_commit", "on"),
            ("transaction_isolation", "read committed"),
        ):
            assert link.exec_driver_sql(f"SHOW {name}").scalar_one() == value


def test_the_guards_of_a_server_are_checked(postgres):
    url = postgres.create_database("guards")
    BudgetLedger.create(url, **TERMS).close()
    assert verify_ledger(url) == []
    table = "ledger_entries"
    with postgres.connect("guards") as link:
        link.execute(f"ALTER TABLE {table} DISABLE TRIGGER {table}_update")
        (fault,) = verify_ledger(url)
        assert f"guard {table}_update must be as it was made" in fault.what
        link.execute(f"ALTER TABLE {table} ENABLE TRIGGER {table}_update")
        link.execute("DROP TABLE ledger_outputs")
    assert "table ledger_outputs must be there" in verify_ledger(url)[0].what
