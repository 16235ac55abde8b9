"""From an older schema to the present one: a copy first, then one transaction."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Connection, inspect, select

from undertow.errors import LedgerError, MissingLedger
from undertow.ledger.connection import Place
from undertow.ledger.tables import LATEST, version

__all__ = ["migrate", "schema_of", "upgrade_schema"]


def schema_of(link: Connection) -> int | None:
    """Return the schema of the database; None where it holds no ledger."""
    if not inspect(link).has_table(version.name):
        return None
    match link.execute(select(version.c.version_num)).scalars().all():
        case [str(found)] if found.isdecimal() and str(int(found)) == found != "0":
            return int(found)
    return None


def upgrade_schema(link: Connection, *, to: int = LATEST) -> None:
    """Run the migrations that are missing, in the caller's transaction."""
    from alembic.operations import Operations
    from alembic.runtime.migration import MigrationContext
    from alembic.script import ScriptDirectory

    script = ScriptDirectory(str(Path(__file__).parent / "migrations"))
    context = MigrationContext.configure(link, opts={"version_table": version.name})
    missing = list(script.iterate_revisions(str(to), context.get_current_revision()))
    with Operations.context(context):
        for revision in reversed(missing):
            revision.module.upgrade()
    context.stamp(script, str(to))


def migrate(place: Place) -> None:
    """Bring a ledger to the present schema, a copy of the file kept beside it.

    A ledger of the present schema is not written to. One of an older schema is, even
    where it is only looked at.

    Raises
    ------
    LedgerError
        If the database holds no ledger, or one of a newer version of the package.

    Notes
    -----
    The copy is taken and the migrations run while the writer's lock is held, so no
    charge falls between them; if one fails, the ledger is as it was.
    """
    with place.reading() as link:
        found = _require_known(schema_of(link), place)
    if found == LATEST:
        return
    writer = Place(place.url) if place.read_only else place
    try:
        with writer.writing() as link:
            found = _require_known(schema_of(link), writer)
            if found < LATEST:
                with _copied(writer, schema=found):
                    upgrade_schema(link)
    finally:
        if writer is not place:
            writer.close()


def _require_known(found: int | None, place: Place) -> int:
    if found is None:
        raise MissingLedger(
            f"{place.name} must hold a ledger, got none; make one with undertow "
            "ledger init."
        )
    if found > LATEST:
        raise LedgerError(
            f"{place.name} must be a ledger of schema {LATEST} or older, got schema "
            f"{found}; update undertow."
        )
    return found


@contextmanager
def _copied(place: Place, *, schema: int) -> Iterator[None]:
    """Keep a copy beside the ledger, unless what is done meanwhile fails."""
    copy = None if place.path is None else _copy(place, schema=schema)
    try:
        yield
    except BaseException:
        if copy is not None:  # the ledger is as it was
            copy.unlink(missing_ok=True)
        raise


def _copy(place: Place, *, schema: int) -> Path:
    """Return where a copy was made; a server has its own backups."""
    assert place.path is not None
    target = Path(f"{place.path}.schema{schema}.bak")
    number = 1
    while target.exists():
        number += 1
        target = Path(f"{place.path}.schema{schema}.{number}.bak")
    try:
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        with (
            closing(sqlite3.connect(place.path)) as source,
            closing(sqlite3.connect(target)) as copy,
        ):
            source.backup(copy)
    except (OSError, sqlite3.Error):
        target.unlink(missing_ok=True)
        raise LedgerError(
            f"{place.name} must be copied before it is brought to a newer schema, got "
            f"no copy at {target}; make the folder writable."
        ) from None
    return target
