"""What is kept of a run: one plain record, stored in the ledger before anyone sees it.

Files, manifest and report are made from the record alone, so that they can be written
again after a crash without any new noise.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from undertow._version import __version__
from undertow.errors import LedgerError
from undertow.release.outputs import MANIFEST, file_names, table_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from undertow.ledger import Charge
    from undertow.release.answer import QueryAnswer
    from undertow.release.plan import ReleasePlan

__all__ = [
    "FORMAT",
    "read_record",
    "record_bytes",
    "record_files",
    "release_key",
    "run_record",
]

FORMAT = "undertow release 1"
"""Stands first in every record."""

_PACKAGES = ("duckdb", "ibis-framework", "numpy", "psycopg", "pyspark", "sqlalchemy")


def release_key(plan: ReleasePlan, *, run: int | None = None, repeat: int = 1) -> str:
    """Return the name under which a run is charged once.

    It depends on what is asked of which data for which promise, and not on where the
    answers are written.

    Parameters
    ----------
    plan : ReleasePlan
        The run.
    run : int, optional
        Another run of the same file, by its number; by default the planned one.
    repeat : int, optional
        Larger numbers name further, separately paid runs of the same thing.
    """
    document = plan.document.to_dict()
    asked = {k: v for k, v in document.items() if k not in ("output", "ledger")}
    number = plan.timeline.run if run is None else run
    part = None
    if number is None and plan.slice is not None:
        part = [plan.slice.start, plan.slice.stop]
    said = {"release": asked, "run": number, "slice": part, "repeat": repeat}
    text = json.dumps(said, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def run_record(
    plan: ReleasePlan,
    answers: Sequence[QueryAnswer],
    *,
    engine: str,
    title: str,
    command: str | None = None,
) -> dict[str, Any]:
    """Return everything that may be shown of a run, as plain values."""
    return {
        "format": FORMAT,
        "title": title,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "engine": engine,
        "versions": _versions(),
        "document": plan.document.to_dict(),
        "plan": plan.to_dict(),
        "answers": [{**a.to_dict(), "nodes": a.nodes} for a in answers],
    }


def _versions() -> dict[str, str]:
    found = {"undertow": __version__, "python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def record_bytes(record: Mapping[str, Any]) -> bytes:
    """Return a record as UTF-8 JSON."""
    text = json.dumps(record, ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8", "backslashreplace")


def read_record(stored: bytes) -> dict[str, Any]:
    """Read a record back.

    Raises
    ------
    LedgerError
        If the bytes are no record of a release.
    """
    try:
        record = json.loads(stored)
    except ValueError:
        record = None
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise LedgerError(
            f"the stored output must be a record of {FORMAT!r}, got something else; "
            "it was stored by another program or a newer version."
        )
    return record


def record_files(record: Mapping[str, Any], charge: Charge) -> dict[str, bytes]:
    """Return the files of a run by name, the manifest among them.

    The manifest holds the promise, the parameters, theorems, versions, the ledger entry
    and the digest of every table; no seed, and nothing of the data but the answers'
    own files.
    """
    kind = str(record["document"]["output"]["format"])
    answers = record["answers"]
    names = file_names([answer["name"] for answer in answers], kind=kind)
    files = {
        name: table_bytes(answer["columns"], answer["rows"], kind=kind)
        for name, answer in zip(names, answers, strict=True)
    }
    manifest = {
        **{name: value for name, value in record.items() if name != "answers"},
        "tables": [
            _table(answer, name, files[name])
            for name, answer in zip(names, answers, strict=True)
        ],
        "charge": {"number": charge.number, "key": charge.key, "hash": charge.hash},
    }
    text = json.dumps(manifest, ensure_ascii=False, allow_nan=False, indent=2)
    files[MANIFEST] = f"{text}\n".encode("utf-8", "backslashreplace")
    return files


def _table(answer: Mapping[str, Any], name: str, content: bytes) -> dict[str, Any]:
    return {
        "name": answer["name"],
        "file": name,
        "columns": answer["columns"],
        "rows": len(answer["rows"]),
        "confidence": answer["confidence"],
        "notes": answer["notes"],
        "sha256": hashlib.sha256(content).hexdigest(),
    }
