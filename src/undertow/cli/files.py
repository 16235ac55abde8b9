"""Reading plan files: bounded in size, one sentence when something is wrong."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

from undertow.composition import Plan, plan_from_document
from undertow.errors import PlanError

__all__ = ["LARGEST_FILE", "bundled_plan", "parse_plan", "read_plan"]

# A plan is written by people or scripts, a few hundred bytes a release; what is larger
# than this is some other file.
LARGEST_FILE = 16 * 2**20


def read_plan(path: Path) -> Plan:
    """Read a plan from a TOML file.

    Raises
    ------
    PlanError
        If the file is missing, too large, not text, not TOML, or not a plan.
    """
    return parse_plan(_read_text(path), name=str(path))


def parse_plan(text: str, *, name: str) -> Plan:
    """Read a plan from TOML text; `name` says where it came from."""
    try:
        document = tomllib.loads(text)
    except RecursionError:
        raise PlanError(
            f"{name} must be a TOML file, got an error: nested too deeply."
        ) from None
    except ValueError as fault:  # TOML errors, and whole numbers of too many digits
        reason = str(fault).splitlines()[0].rstrip(".")[:200]
        raise PlanError(
            f"{name} must be a TOML file, got an error: {reason}."
        ) from None
    return plan_from_document(document)


def bundled_plan(name: str) -> Plan:
    """Read one of the plans that come with the package."""
    file = resources.files("undertow.cli") / "plans" / f"{name}.toml"
    return parse_plan(file.read_text(encoding="utf-8"), name=f"{name}.toml")


def _read_text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise PlanError(f"{path} must be a plan file, got no such file.") from None
    except IsADirectoryError:
        raise PlanError(f"{path} must be a plan file, got a folder.") from None
    except OSError as fault:
        raise PlanError(
            f"{path} must be a readable file, got {fault.strerror}."
        ) from None
    if len(content) > LARGEST_FILE:
        raise PlanError(
            f"{path} must be a plan file of at most {LARGEST_FILE // 2**20} MiB, "
            "got a larger file."
        )
    if b"\0" in content:
        raise PlanError(f"{path} must be a TOML text file, got binary content.")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise PlanError(f"{path} must be UTF-8 text, got other bytes.") from None
