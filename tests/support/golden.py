"""Frozen outputs: what commands print, kept so that no number changes unseen.

``python -m support.golden`` in the folder of the tests writes them anew; what changed
is then seen in the difference of the files, and belongs into the changelog.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from support.command import invoke

FOLDER = Path(__file__).parent.parent / "golden"
GROUPS = sorted(path.stem for path in (FOLDER / "commands").glob("*.txt"))

NEARLY = 1e-9
"""Largest relative difference of two numbers: another processor may round otherwise."""

_CHANGING = ("duration", "seconds", "took", "version", "versions", "python", "system")


def commands(group: str) -> list[str]:
    """Return the commands of a group, one a line."""
    text = (FOLDER / "commands" / f"{group}.txt").read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def frozen(group: str) -> dict[str, Any]:
    """Return what the commands of a group printed when they were frozen."""
    path = FOLDER / "expected" / f"{group}.json"
    return json.loads(path.read_text(encoding="utf-8"))


@contextlib.contextmanager
def inputs() -> Iterator[Path]:
    """Work in a copy of the input files."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "inputs"
        shutil.copytree(FOLDER / "inputs", folder)
        os.chdir(folder)
        sys.path.insert(0, str(folder))
        try:
            yield folder
        finally:
            sys.path.remove(str(folder))
            os.chdir(before)


def outcome(command: str, folder: Path) -> dict[str, Any]:
    """Run a command with ``--json`` and return its exit status and what it printed."""
    words = shlex.split(command)
    result = invoke(*words, *(() if words[0] == "schema" else ("--json",)))
    printed = json.loads(result.stdout) if result.stdout.strip() else None
    return {"status": result.exit_code, "printed": _steady(printed, str(folder))}


def differences(new: Any, old: Any, *, place: str = "", exact: bool) -> list[str]:
    """Return the places where two values differ, with both."""
    if isinstance(new, dict) and isinstance(old, dict):
        places = [
            f"{place}.{key}: {'new' if key in new else 'gone'}"
            for key in sorted(new.keys() ^ old.keys())
        ]
        for key in new.keys() & old.keys():
            inside = f"{place}.{key}"
            places += differences(new[key], old[key], place=inside, exact=exact)
        return places
    if isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        places = []
        for number, pair in enumerate(zip(new, old, strict=True)):
            places += differences(*pair, place=f"{place}[{number}]", exact=exact)
        return places
    if isinstance(new, float) and isinstance(old, float) and not exact:
        same = math.isclose(new, old, rel_tol=NEARLY, abs_tol=1e-300)
    else:
        same = type(new) is type(old) and new == old
    return [] if same else [f"{place}: {new!r}, was {old!r}"]


def _steady(value: Any, folder: str) -> Any:
    """Leave out what differs between two runs of the same program."""
    if isinstance(value, dict):
        return {
            key: "…" if key in _CHANGING else _steady(inner, folder)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_steady(inner, folder) for inner in value]
    if isinstance(value, str):
        return value.replace(folder, "…")
    return value


def _write(groups: list[str]) -> None:
    for group in groups:
        with inputs() as folder:
            outcomes = {line: outcome(line, folder) for line in commands(group)}
        text = json.dumps(outcomes, indent=1, ensure_ascii=False)
        path = FOLDER / "expected" / f"{group}.json"
        path.write_text(text + "\n", encoding="utf-8")
        print(f"{group}: {len(outcomes)} commands")


if __name__ == "__main__":
    _write(sys.argv[1:] or GROUPS)
