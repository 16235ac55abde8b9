"""Schema 1: terms, chained charges, and the head they are anchored by."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from undertow.ledger.migrations.append_only import forbid_changes

revision = "1"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Create the tables of schema 1."""
    op.create_table(
        "ledger_terms",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_table(
        "ledger_head",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("count", sa.Integer, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_table(
        "ledger_entries",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("body", sa.Text, nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
    )
    op.create_index("ledger_entries_key", "ledger_entries", ["key"], unique=True)
    forbid_changes("ledger_terms")
    forbid_changes("ledger_entries")
