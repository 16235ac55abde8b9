"""Libraries of the extras: loaded when needed, asked for in one sentence.

Those that no module of the package can do without are asked for here, before any of
them. A missing extra is then one sentence and not a traceback.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from undertow.errors import PlanError


def load(module: str, *, extra: str = "release") -> Any:
    """Import a library of an extra.

    Parameters
    ----------
    module : str
        The module's name.
    extra : str
        The extra that brings it.

    Raises
    ------
    PlanError
        If it is not installed.
    """
    try:
        return import_module(module)
    except ImportError:
        name = module.partition(".")[0]
        raise PlanError(
            f"{name} must be installed, got no such library; "
            f"run pip install 'undertow[{extra}]'."
        ) from None


for _name in ("pydantic", "ibis", "pyarrow", "sqlalchemy"):
    load(_name)
