"""The small release that many tests run: how many visits of people to zones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from support.command import to_toml

__all__ = ["release_text", "visits_mapping", "write_visits"]


def visits_mapping(query: Mapping[str, Any] = {}, **parts: Any) -> dict[str, Any]:
    """Return the release of a table in memory.

    What `query` says is said of its query; other parts stand in place of its own.
    """
    visits = {
        "name": "visits",
        "select": "count",
        "by": ["zone"],
        "keys": {"zone": ["A", "B", "C"]},
    }
    return {
        "source": {"unit": "person"},
        "promise": {"granularity": "user", "epsilon": "1"},
        "bounds": {"rows_per_unit": 2},
        "queries": [{**visits, **query}],
        **parts,
    }


def release_text(mapping: Mapping[str, Any]) -> str:
    """Return the release file that reads as this mapping."""
    lines = []
    for name, part in mapping.items():
        listed = isinstance(part, list)
        for table in part if listed else [part]:
            lines.append(f"[[{name}]]" if listed else f"[{name}]")
            lines += [f"{key} = {to_toml(item)}" for key, item in table.items()]
    return "\n".join([*lines, ""])


def write_visits(
    folder: Path,
    rows: Iterable[str] = ("1,A", "1,B", "2,A"),
    *,
    columns: str = "person,zone",
    name: str = "visits.toml",
    source: Mapping[str, Any] = {},
    **changes: Any,
) -> Path:
    """Write ``visits.csv`` with these rows and a release of it, and return the latter.

    What `source` says is added; the other changes are those of `visits_mapping`.
    """
    (folder / "visits.csv").write_text("\n".join([columns, *rows, ""]))
    start = {"table": "visits.csv", "unit": "person", **source}
    path = folder / name
    path.write_text(release_text(visits_mapping(source=start, **changes)))
    return path
