"""Triggers that refuse to change or delete a row."""

from __future__ import annotations

from alembic import op

__all__ = ["forbid_changes", "trigger_texts"]

_SQLITE = """
CREATE TRIGGER {table}_{verb} BEFORE {verb} ON {table}
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
"""
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
    verbs = ("update", "delete")
    return {f"{table}_{v}": _SQLITE.format(table=table, verb=v).strip() for v in verbs}


def forbid_changes(table: str) -> None:
    """Make a table append-only for everyone who does not drop the triggers."""
    if op.get_bind().dialect.name == "sqlite":
        for text in trigger_texts(table).values():
            op.execute(text)
        return
    op.execute(_FUNCTION)
    for verb in ("update", "delete", "truncate"):
        op.execute(_POSTGRESQL.format(table=table, verb=verb))
