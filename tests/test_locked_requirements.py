"""The lock names everything an installation asks for, extras included.

pip installs a package with extras only at a version that the lock pins with the same
extras: without them it looks for the newest release, which has no hash here, and every
installation fails from the day after that release.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

FOLDER = Path(__file__).parents[1] / "requirements"
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[([^\]]*)\])?==", re.MULTILINE)


def locked(name: str) -> dict[str, set[str]]:
    """Return the extras of every package that the lock `name` pins."""
    return {
        canonicalize_name(package): set(filter(None, extras.split(",")))
        for package, extras in PIN.findall((FOLDER / name).read_text())
    }


@pytest.mark.parametrize("name", ["dev.txt", "docs.txt", "engines.txt"])
def test_packages_asked_for_with_extras_are_locked_with_them(name: str) -> None:
    pins = locked("dev.txt") | locked(name)
    asked = 0
    for package, extras in locked(name).items():
        try:
            requirements = [Requirement(text) for text in requires(package) or ()]
        except PackageNotFoundError:  # of another lock, not installed here
            continue
        for need in requirements:
            holds = [
                need.marker is None or need.marker.evaluate({"extra": extra})
                for extra in (extras or {""})
            ]
            if any(holds) and need.extras:
                asked += 1
                assert need.extras <= pins[canonicalize_name(need.name)], (
                    f"{package} asks for {need}; lock it with these extras."
                )
    if name == "dev.txt":
        assert asked > 0


@pytest.mark.parametrize("name", ["dev.txt", "docs.txt", "engines.txt"])
def test_a_lock_names_no_index(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert "://" not in text
    assert "index-url" not in re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
