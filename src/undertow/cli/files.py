"""Reading plan files: bounded in size, one sentence when something is wrong."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from undertow._text_file import LARGEST_FILE, parse_toml, read_text_file
from undertow.composition import Plan, plan_from_document
from undertow.errors import PlanError

__all__ = ["LARGEST_FILE", "bundled_plan", "parse_plan", "read_plan"]


def read_plan(path: Path) -> Plan:
    """Read a plan from a TOML file.

    Raises
    ------
    PlanError
        If the file is missing, too large, not text, not TOML, or not a plan.
    """
    return parse_plan(read_text_file(path, kind="plan"), name=str(path))


def parse_plan(text: str, *, name: str) -> Plan:
    """Read a plan from TOML text; `name` says where it came from."""
    try:
        document = parse_toml(text)
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
