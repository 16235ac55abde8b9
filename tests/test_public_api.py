"""`__all__` is sorted, complete and equal to what a package shows."""

from __future__ import annotations

import importlib
import inspect
import subprocess
import sys
from types import ModuleType

import pytest

import undertow

PACKAGES = [
    "undertow",
    *(
        f"undertow.{name}"
        for name in (
            "privacy",
            "spaces",
            "mechanisms",
            "mechanisms.graph",
            "mechanisms.local",
            "composition",
            "correlation",
            "audit",
            "risk",
            "risk.attacks",
            "risk.bounds",
            "risk.families",
            "risk.scalar",
            "datasets",
            "ledger",
            "release",
            "report",
        )
    ),
]


def natural(name: str) -> tuple[bool, bool, str]:
    """Sort as the linter does: constants, then classes, then functions."""
    return (not name.isupper(), not name[0].isupper(), name)


@pytest.mark.parametrize("name", PACKAGES)
def test_all_is_the_namespace(name: str):
    module = importlib.import_module(name)
    package = hasattr(module, "__path__")
    public = {
        key
        for key in dir(module)
        if not key.startswith("_")
        and not isinstance(getattr(module, key), ModuleType)
        and key != "annotations"
        # A module that is public by itself also shows what it imports.
        and (package or key in module.__all__)
    }
    submodules = {k for k in module.__all__ if inspect.ismodule(getattr(module, k))}
    listed = set(module.__all__) - submodules - {"__version__"}
    assert listed == public - {"TYPE_CHECKING"}


@pytest.mark.parametrize("name", PACKAGES)
def test_every_listed_name_exists_once_and_in_order(name: str):
    module = importlib.import_module(name)
    listed = list(module.__all__)
    assert len(listed) == len(set(listed))
    assert listed == sorted(listed, key=natural)
    for key in listed:
        assert getattr(module, key) is not None


@pytest.mark.parametrize("name", PACKAGES)
def test_every_public_object_is_documented(name: str):
    module = importlib.import_module(name)
    for key in module.__all__:
        item = getattr(module, key)
        ours = getattr(item, "__module__", "").startswith("undertow")
        if ours and (inspect.isclass(item) or inspect.isfunction(item)):
            assert inspect.getdoc(item), f"{name}.{key} has no docstring"


def test_import_is_light():
    heavy = ["scipy.stats", "scipy.optimize", "matplotlib", "typer", "rich", "opendp"]
    code = f"import undertow, sys; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_unknown_attribute_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_thing"):
        undertow.no_such_thing  # noqa: B018 - the access is what is tested
