"""Running the command line in tests."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from undertow.cli import app


def invoke(*arguments: object) -> Result:
    """Run a command in this process, its two output streams apart."""
    try:
        runner = CliRunner(mix_stderr=False)
    except TypeError:  # newer parsers always keep them apart
        runner = CliRunner()
    return runner.invoke(app, [str(word) for word in arguments])


def run(*arguments: object, **options: Any) -> subprocess.CompletedProcess[bytes]:
    """Run the command as users do, in a process of its own."""
    command = [sys.executable, "-m", "undertow", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, timeout=60, **options)


def to_toml(value: Any) -> str:
    """Write a nested value as an inline TOML value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return "[" + ", ".join(map(to_toml, value)) + "]"
    if isinstance(value, dict):
        pairs = (f"{to_toml(key)} = {to_toml(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    return repr(value)


def write_plan(folder: Path, document: dict[str, Any], name: str = "plan.toml") -> Path:
    """Write a document as a TOML file."""
    path = folder / name
    lines = (f"{to_toml(key)} = {to_toml(item)}\n" for key, item in document.items())
    path.write_text("".join(lines), encoding="utf-8")
    return path


def beside_no_check(stderr: str) -> str:
    """Leave out what every run without a count before its charge says."""
    lines = stderr.splitlines(keepends=True)
    return "".join(x for x in lines if not x.startswith("Nothing checks that rows"))
