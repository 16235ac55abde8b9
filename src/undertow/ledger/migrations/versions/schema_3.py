"""Schema 3: no row takes the place of another, by whatever statement."""

from __future__ import annotations

from undertow.ledger.migrations.append_only import forbid_replacing

revision = "3"
down_revision = "2"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the triggers that ``INSERT OR REPLACE`` does not pass."""
    for table in ("ledger_terms", "ledger_entries", "ledger_outputs"):
        forbid_replacing(table)
