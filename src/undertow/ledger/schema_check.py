"""Whether the tables of a ledger are guarded as its migrations left them.

Rows are checked by their hashes. What is not a row can still be changed: without its
triggers a table can be edited by accident, with others a charge may be undone by the
database itself, and a view in the place of a table can leave rows out.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import Connection, select, text

from undertow.ledger.migrations.append_only import trigger_texts
from undertow.ledger.tables import METADATA, head, terms

__all__ = ["guard_faults", "missing_tables"]

_State = tuple[set[str], Mapping[str, str], Mapping[str, str]]
"""The tables, the guards that are there, and those that should be."""
_GUARDED = ("ledger_entries", "ledger_outputs", "ledger_terms")
_INDEX = "ledger_entries_kind_key"
_INDEX_TEXT = f"CREATE UNIQUE INDEX {_INDEX} ON ledger_entries (kind, key)"
_SQLITE = text("SELECT type, name, tbl_name, sql FROM sqlite_master")
_RELATIONS = text(
    "SELECT relname, relkind::text FROM pg_class WHERE relname LIKE 'ledger%'"
    " AND relnamespace = CAST(current_schema() AS regnamespace)"
)
_TRIGGERS = text(
    "SELECT t.tgname, t.tgenabled::text FROM pg_trigger t JOIN pg_class c"
    " ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND c.relname LIKE 'ledger%'"
    " AND c.relnamespace = CAST(current_schema() AS regnamespace)"
)


def missing_tables(link: Connection) -> list[str]:
    """Return a sentence for each table that is not there, or is a view.

    Parameters
    ----------
    link : Connection
        In a reading transaction.
    """
    tables, _, _ = _state(link)
    missing = sorted(set(METADATA.tables) - tables)
    return [f"the table {name} must be there, got none." for name in missing]


def guard_faults(link: Connection) -> list[str]:
    """Return a sentence for each guard that is not as it was made.

    Guards are the triggers that refuse changes, the index that makes keys unique, and
    the numbers of the rows there is one of.

    Parameters
    ----------
    link : Connection
        In a reading transaction, where no table is missing.
    """
    _, found, expected = _state(link)
    faults = _page_faults(link)
    faults += [
        f"the guard {name} must be as it was made, got "
        f"{'another' if name in found else 'none'}."
        for name in sorted(expected)
        if found.get(name) != expected[name]
    ]
    faults += [
        f"a ledger must have its own guards alone, got {name[:60]!r}."
        for name in sorted(set(found) - set(expected))
    ]
    return faults + [
        f"the row of {table.name} must be number 1, got another."
        for table in (head, terms)
        if link.execute(select(table.c.id)).scalars().all() != [1]
    ]


def _page_faults(link: Connection) -> list[str]:
    """Say whether an index leaves out rows: charges are looked up in one."""
    if link.dialect.name != "sqlite":
        return []
    found = link.exec_driver_sql("PRAGMA integrity_check(1)").scalars().all()
    return [] if found == ["ok"] else ["the file must be whole, got a damaged one."]


def _state(link: Connection) -> _State:
    return (_of_sqlite if link.dialect.name == "sqlite" else _of_postgresql)(link)


def _of_sqlite(link: Connection) -> _State:
    rows = link.execute(_SQLITE).all()
    tables = {name for kind, name, _, _ in rows if kind == "table"}
    found = {
        str(name): _plain(str(made))
        for kind, name, table, made in rows
        if name == _INDEX or (kind == "trigger" and table in METADATA.tables)
    }
    made = {name: t for table in _GUARDED for name, t in trigger_texts(table).items()}
    expected = {name: _plain(t) for name, t in made.items()}
    return tables, found, {**expected, _INDEX: _INDEX_TEXT}


def _plain(made: str) -> str:
    """Return a statement without quotes and line breaks, which mean nothing here."""
    return " ".join(made.replace('"', "").split())


def _of_postgresql(link: Connection) -> _State:
    relations = {str(name): str(kind) for name, kind in link.execute(_RELATIONS)}
    tables = {name for name, kind in relations.items() if kind == "r"}
    found = {str(name): str(state) for name, state in link.execute(_TRIGGERS)}
    verbs = ("update", "delete", "truncate")
    expected = {f"{table}_{verb}": "O" for table in _GUARDED for verb in verbs}
    if _INDEX in relations:
        found[_INDEX] = relations[_INDEX]
    return tables, found, {**expected, _INDEX: "i"}
