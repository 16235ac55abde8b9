"""The tables of a ledger, as the latest migration leaves them."""

from __future__ import annotations

from sqlalchemy import Column, Integer, LargeBinary, MetaData, String, Table, Text

__all__ = ["LATEST", "METADATA", "entries", "head", "outputs", "terms", "version"]

LATEST = 3
"""The schema this version of the package writes; older ones are migrated."""

METADATA = MetaData()

terms = Table(
    "ledger_terms",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("body", Text, nullable=False),
    Column("hash", String(64), nullable=False),
)

head = Table(
    "ledger_head",
    METADATA,
    Column("id", Integer, primary_key=True),
    Column("count", Integer, nullable=False),
    Column("hash", String(64), nullable=False),
    Column("time", String(40), nullable=False),
)

entries = Table(
    "ledger_entries",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", String(16), nullable=False),
    Column("key", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("hash", String(64), nullable=False),
)

outputs = Table(
    "ledger_outputs",
    METADATA,
    Column("charge", Integer, primary_key=True, autoincrement=False),
    Column("content", LargeBinary, nullable=False),
)

version = Table("ledger_version", METADATA, Column("version_num", String(32)))
