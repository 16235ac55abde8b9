"""The schemas of a ledger, oldest first, as Alembic migrations."""

from __future__ import annotations

__all__: list[str] = []
