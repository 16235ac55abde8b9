"""Triggers that refuse to change or delete a row."""

from __future__ import annotations

from alembic import op

_SQLITE = """
CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
"""
# SQLite deletes a row that is replaced without asking the trigger of DELETE.
_REPLACING = """
CREATE TRIGGER {table}_insert BEFORE insert ON {table}
WHEN EXISTS (SELECT 1 FROM {table} WHERE {same})
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
"""
_SAME = {
    "ledger_terms": "id = NEW.id",
    "ledger_entries": "number = NEW.number OR (kind = NEW.kind AND key = NEW.key)",
    "ledger_outputs": "charge = NEW.charge",
}
_FUNCTION = """
CREATE OR REPLACE FUNCTION ledger_append_only() RETURNS trigger AS $$
BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$ LANGUAGE plpgsql
"""
_POSTGRESQL = """
CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table}
FOR EACH STATEMENT EXECUTE FUNCTION ledger_append_only()
"""


def trigger_texts(table: str) -> dict[str, str]:
    """Return the triggers of a table of SQLite by name."""
    return {
        **_of_changes(table),
        f"{table}_insert": _REPLACING.format(table=table, same=_SAME[table]).strip(),
    }


def _of_changes(table: str) -> dict[str, str]:
    verbs = ("update", "delete")
    return {f"{table}_{v}": _SQLITE.format(table=table, verb=v).strip() for v in verbs}


def forbid_changes(table: str) -> None:
    """Make a table append-only for everyone who does not drop the triggers."""
    if op.get_bind().dialect.name == "sqlite":
        for text in _of_changes(table).values():
            op.execute(text)
        return
    op.execute(_FUNCTION)
    for verb in ("update", "delete", "truncate"):
        op.execute(_POSTGRESQL.format(table=table, verb=verb))


def forbid_replacing(table: str) -> None:
    """Refuse a row in the place of another; PostgreSQL asks the trigger of UPDATE."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(trigger_texts(table)[f"{table}_insert"])
