"""Every erratum, trap and published number of the correlation theory has a test."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
PAGE = TESTS.parent / "docs" / "errata.md"

VECTORS = [
    *(f"T{k}" for k in range(1, 43)),
    *(f"A{k}" for k in range(1, 8)),
    *(f"G{k}" for k in range(1, 7)),
    *(f"N{k}" for k in range(1, 8)),
    *(f"M{k}" for k in range(1, 8)),
    "E1",
    "U1",
    "U2",
]
TRAPS = [
    *(f"c{k:02}" for k in range(1, 19)),
    "c11a",
    *(f"l{k:02}" for k in range(1, 19)),
    "l17a",
]


@cache
def sources() -> str:
    """Return the text of all tests, those of composition and this file left out."""
    files = [
        *(TESTS / "published" / "correlation").glob("test_*.py"),
        *(TESTS / "unit" / "correlation").glob("test_*.py"),
        *(TESTS / "unit" / "datasets").glob("test_*.py"),
        *(TESTS / "unit" / "studies").glob("test_*.py"),
        *(TESTS / "statistical").glob("test_*.py"),
        *(TESTS / "properties").glob("test_correlation_*.py"),
    ]
    mine = Path(__file__).resolve()
    texts = [p.read_text(encoding="utf-8") for p in files if p.resolve() != mine]
    return "\n".join(texts)


@cache
def named(pattern: str) -> set[str]:
    """Return the ids in test names, several joined by ``_and_`` included."""
    found: set[str] = set()
    for name in re.findall(r"^\s*def (test_\w+)", sources(), re.M):
        found.update(re.findall(rf"(?<=_){pattern}(?=_)", name + "_"))
    return found


def listed(prefix: str) -> list[str]:
    page = PAGE.read_text(encoding="utf-8")
    return re.findall(rf"^\| ({prefix}\d+) \|", page, re.M)


# What LE7 named is true as printed; the page says so.
@pytest.mark.parametrize(
    ("prefix", "count", "unused"), [("CE", 29, set()), ("LE", 23, {7})]
)
def test_the_errata_page_lists_each_id_once_and_in_order(prefix, count, unused):
    ids = [k for k in range(1, count + 1) if k not in unused]
    assert listed(prefix) == [f"{prefix}{k}" for k in ids]


@pytest.mark.parametrize("prefix", ["CE", "LE"])
def test_errata_of_the_page_and_of_the_tests_are_the_same(prefix):
    assert named(prefix + r"\d+") == set(listed(prefix))


@pytest.mark.parametrize("trap", TRAPS)
def test_every_trap_has_a_test(trap):
    # Two traps in one test are named test_trap_c01_and_trap_l01_ or ..._and_l01_.
    assert trap in named(r"[cl]\d\da?")


@pytest.mark.parametrize("vector", VECTORS)
def test_every_published_number_has_a_test(vector):
    in_names = named(r"[TAGNMEU]\d+")
    in_cases = set(re.findall(r"\"([TAGNMEU]\d+)(?:-[\w.-]+)?\"", sources()))
    assert vector in in_names | in_cases
