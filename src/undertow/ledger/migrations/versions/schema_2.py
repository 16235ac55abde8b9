"""Schema 2: stored outputs, closed charges, and the time of the last entry."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from undertow.ledger.migrations.append_only import forbid_changes
from undertow.ledger.record import read_entry

revision = "2"
down_revision = "1"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add kinds of entries, the outputs, and the clock of the head."""
    op.add_column(
        "ledger_entries",
        sa.Column("kind", sa.String(16), nullable=False, server_default="charge"),
    )
    op.drop_index("ledger_entries_key", "ledger_entries")
    op.create_index(
        "ledger_entries_kind_key", "ledger_entries", ["kind", "key"], unique=True
    )
    op.add_column(
        "ledger_head",
        sa.Column("time", sa.String(40), nullable=False, server_default=""),
    )
    op.create_table(
        "ledger_outputs",
        sa.Column("charge", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    forbid_changes("ledger_outputs")
    _set_clock()


def _set_clock() -> None:
    """Take the time of the head from the last entry, where there is one."""
    link = op.get_bind()
    rows = link.execute(
        sa.text("SELECT body FROM ledger_entries ORDER BY number DESC LIMIT 1")
    )
    for (body,) in rows.fetchall():
        time = read_entry(body).time
        link.execute(sa.text("UPDATE ledger_head SET time = :time"), {"time": time})
