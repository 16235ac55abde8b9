"""Every erratum, trap and published number of the risk theory has a test."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
PAGE = TESTS.parent / "docs" / "errata.md"

SECTIONS = {2: 4, 3: 4, 4: 6, 5: 13, 6: 3, 7: 4, 8: 8, 9: 1, 10: 1}
VECTORS = [f"T_{s}_{k}" for s, last in SECTIONS.items() for k in range(1, last + 1)]
TRAPS = [
    *(f"r{k:02}" for k in range(1, 29)),
    *(f"a{k:02}" for k in range(1, 22)),
]


@cache
def names() -> tuple[str, ...]:
    """Return the names of all tests that may carry an id of the risk theory."""
    folders = (
        "published/risk",
        "unit/risk",
        "unit/audit",
        "unit/mechanisms",
        "unit/datasets",
        "unit/studies",
        "statistical",
        "properties",
    )
    mine = Path(__file__).resolve()
    files = [p for f in folders for p in sorted((TESTS / f).rglob("test_*.py"))]
    text = "\n".join(
        p.read_text(encoding="utf-8") for p in files if p.resolve() != mine
    )
    return tuple(re.findall(r"^\s*def (test_\w+)", text, re.M))


@cache
def named(pattern: str) -> set[str]:
    found: set[str] = set()
    for name in names():
        found.update(re.findall(rf"(?<=_){pattern}(?=_)", name + "_"))
    return found


def listed(prefix: str) -> list[str]:
    page = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^\| ({prefix}\d+) \|", page, re.M)


# What RE28 named is true as printed; the page says so.
@pytest.mark.parametrize(
    ("prefix", "count", "unused"), [("RE", 32, {28}), ("AE", 38, set())]
)
def test_the_errata_page_lists_each_id_once_and_in_order(prefix, count, unused):
    ids = [k for k in range(1, count + 1) if k not in unused]
    assert listed(prefix) == [f"{prefix}{k}" for k in ids]


@pytest.mark.parametrize("prefix", ["RE", "AE"])
def test_errata_of_the_page_and_of_the_tests_are_the_same(prefix):
    assert named(prefix + r"\d+") == set(listed(prefix))


@pytest.mark.parametrize("trap", TRAPS)
def test_every_trap_has_a_test(trap):
    assert trap in named(r"[ra]\d\d")


@pytest.mark.parametrize("vector", VECTORS)
def test_every_published_number_has_a_test(vector):
    assert vector in named(r"T_\d+_\d+")
