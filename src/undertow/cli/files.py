"""Reading plan files: bounded in size, one sentence when something is wrong."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from undertow._address import refused_name
from undertow._text import LARGEST_FILE, parse_toml, read_text_file
from undertow.composition import Plan, plan_from_document
from undertow.errors import PlanError

__all__ = ["LARGEST_FILE", "bundled_plan", "parse_plan", "path_of", "read_plan"]


def path_of(text: str | None, name: str, *, kind: str = "a file") -> Path | None:
    """Return the path of what is written; None if nothing is.

    The text is looked at before it is a path, which would drop the ``./`` that tells a
    file from an address.

    Raises
    ------
    PlanError
        If the name may be an address; it is not repeated.
    """
    refusal = None if text is None else refused_name(text, kind=kind)
    if refusal is not None:
        raise PlanError(f"{name} {refusal}.")
    return None if text is None else Path(text)


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
