"""Values and documents from the command line: JSON text, ``@file.json``, plan files.

Bounded in size, and one sentence when something is wrong.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from undertow._address import refused_name
from undertow._text import parse_toml, read_text_file
from undertow.composition import Plan, plan_from_document
from undertow.errors import ModelError, PlanError

_LARGEST_FILE = 64 * 2**20
_LARGEST_NUMBER = int(sys.float_info.max)


def read_json(text: str, name: str) -> Any:
    """Return the value of a JSON option; ``@path`` reads a file.

    Raises
    ------
    ModelError
        If it is not JSON, or the file cannot be read.

    Examples
    --------
    >>> read_json("[[0.9, 0.1]]", "transition")
    [[0.9, 0.1]]
    """
    body = _read_file(Path(text[1:]), name) if text.startswith("@") else text
    try:
        return json.loads(
            body, parse_constant=_refuse_constant, object_pairs_hook=_whole_object
        )
    except (ValueError, RecursionError) as fault:
        reason = str(fault).splitlines()[0].rstrip(".")[:120]
        raise ModelError(
            f"{name} must be JSON text or @file.json, got an error: {reason}."
        ) from None


def read_numbers(text: str, name: str) -> Any:
    """Return a number or nested lists of numbers given as JSON.

    Raises
    ------
    ModelError
        If it is not JSON, or something in it is not a number.

    Examples
    --------
    >>> read_numbers("[1, [0.5]]", "pmf")
    [1, [0.5]]
    """
    return check_numbers(read_json(text, name), name)


def check_numbers(value: Any, name: str) -> Any:
    """Return `value` if it is a number or nested lists of numbers."""
    open_lists = [value]
    while open_lists:
        item = open_lists.pop()
        if isinstance(item, list):
            open_lists += item
        elif isinstance(item, bool) or not isinstance(item, int | float):
            shown = "null" if item is None else json.dumps(item)[:40]
            raise ModelError(f"{name} must hold numbers only, got {shown}.")
        elif isinstance(item, int) and abs(item) > _LARGEST_NUMBER:
            raise ModelError(f"{name} must hold finite numbers, got one too large.")
    return value


def _refuse_constant(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def _whole_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice[:40]!r} stands twice in one object")
    return found


def _read_file(path: Path, name: str) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(_LARGEST_FILE + 1)
    except OSError as fault:
        raise ModelError(
            f"{name} must name a readable file, got {path}: {fault.strerror}."
        ) from None
    if len(content) > _LARGEST_FILE:
        raise ModelError(
            f"{name} must be a file of at most {_LARGEST_FILE // 2**20} MiB, "
            f"got a larger one: {path}."
        )
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise ModelError(f"{name} must be UTF-8 text, got other bytes.") from None


@contextmanager
def library_input() -> Iterator[None]:
    """Turn what the library says of a wrong argument into bad input."""
    try:
        yield
    except MemoryError:
        raise ModelError(
            "the model must fit into memory, got one that does not; "
            "describe it by fewer records."
        ) from None
    except (TypeError, ValueError) as fault:
        # Refusals of the library are ValueErrors too, and pass as they are.
        if type(fault) in (TypeError, ValueError):
            raise ModelError(str(fault)) from None
        raise


# Reading plan files: bounded in size, one sentence when something is wrong.


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


def load_studies(part: str, *, purpose: str) -> Any:
    """Return a module of the studies, which are a distribution of their own.

    Parameters
    ----------
    part : {"studies", "faults"}
        Its entry point in the group ``undertow.studies``.
    purpose : str
        What it is needed for, in words.

    Raises
    ------
    PlanError
        If nothing that is installed has it.
    """
    for entry in entry_points(group="undertow.studies", name=part):
        return entry.load()
    raise PlanError(
        f"undertow-studies must be installed {purpose}, got none; run "
        "pip install undertow-studies, or pip install ./studies in a clone of Undertow."
    )
