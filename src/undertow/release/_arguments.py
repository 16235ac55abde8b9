"""Arguments of functions that people call: one sentence when one is something else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from undertow.errors import PlanError

__all__ = ["path_text", "require_text_keys"]


def path_text(
    value: Any, name: str, *, kind: str = "the name of a file or folder"
) -> str:
    """Return the text of a name, or of a path object.

    Parameters
    ----------
    value : str or path
        A name; it may be an address, which is no path.
    name, kind : str
        The argument and what it must be, for the message.

    Raises
    ------
    PlanError
        If it is something else.

    Examples
    --------
    >>> from pathlib import Path
    >>> path_text(Path("visits.toml"), "path")
    'visits.toml'
    """
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str):
        raise PlanError(f"{name} must be {kind}, got {type(value).__name__}.")
    return text


def require_text_keys(value: Any, path: str = "") -> None:
    """Refuse nested mappings with keys that are no text, as no TOML file has them.

    Raises
    ------
    PlanError
        Which names the table that holds the key.
    """
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise PlanError(
                    f"the keys of {path or 'the release'} must be text, got "
                    f"{type(key).__name__}."
                )
            require_text_keys(inner, f"{path}.{key[:60]}" if path else key[:60])
    elif isinstance(value, list | tuple):
        for at, inner in enumerate(value):
            require_text_keys(inner, f"{path}[{at}]")
