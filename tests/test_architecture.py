"""What the pages for newcomers say of the house is true of it."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

import undertow
from support.journeys import JOURNEYS, rooms_of

ROOT = Path(__file__).parent.parent
ARCHITECTURE = ROOT / "docs" / "development" / "architecture.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
NAME = re.compile(r"\bundertow(?:_studies)?(?:\.\w+)+")
PATH = re.compile(r"`((?:src|tests|docs|studies|benchmarks)/[\w./-]+)`")


def exists(name: str) -> bool:
    """Return whether a dotted name is a module, or something public in one."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("page", [ARCHITECTURE, CONTRIBUTING], ids=lambda p: p.name)
def test_every_module_and_file_on_the_page_exists(page):
    text = page.read_text(encoding="utf-8")
    names, paths = set(NAME.findall(text)), set(PATH.findall(text))
    assert len(names) > 12
    assert [name for name in sorted(names) if not exists(name)] == []
    assert [path for path in sorted(paths) if not (ROOT / path).exists()] == []


def test_a_module_that_is_gone_is_found():
    assert exists("undertow.privacy.Bound")
    assert not exists("undertow.privacy.Gone")
    assert not exists("undertow.gone.Bound")


@pytest.mark.parametrize("page", [ARCHITECTURE, CONTRIBUTING], ids=lambda p: p.name)
def test_every_package_is_on_the_map(page):
    house = Path(undertow.__file__).parent
    packages = {f"undertow.{p.parent.name}" for p in house.glob("*/__init__.py")}
    text = page.read_text(encoding="utf-8")
    assert [name for name in sorted(packages) if name not in text] == []
    assert "undertow_studies" in text


def test_the_architecture_is_told_in_three_hundred_words_and_twenty_questions():
    told, asked = ARCHITECTURE.read_text(encoding="utf-8").split("## Twenty questions")
    assert len(told.split("```")[2].split()) <= 320
    assert len(re.findall(r"^\| .*\? \|", asked, re.M)) == 20


# The most modules in which functions run on a journey; these numbers only fall.
LIMITS = {
    "release_of_one_count": 68,
    "loss_of_a_plan": 20,
    "leakage_of_a_chain": 24,
    "advantage_of_a_report": 33,
}


@pytest.mark.parametrize("journey", JOURNEYS, ids=lambda j: j.__name__)
def test_a_number_is_followed_through_few_modules(journey):
    modules = rooms_of(journey).modules
    assert 3 < len(modules) <= LIMITS[journey.__name__], sorted(modules)


def test_the_limits_are_those_that_contributors_read():
    text = CONTRIBUTING.read_text(encoding="utf-8")
    for journey in JOURNEYS:
        line = f"| {journey.__doc__} | {LIMITS[journey.__name__]} |"
        assert line in text


def test_files_of_tests_are_named_after_what_they_test():
    when_or_why = re.compile(r"review|regression|_(first|second|third|new|more|fixes)$")
    files = (ROOT / "tests").rglob("test_*.py")
    assert [path.name for path in files if when_or_why.search(path.stem)] == []


def test_the_quick_tests_look_into_every_room():
    listed = (ROOT / "Makefile").read_text(encoding="utf-8").split("QUICK :=")[1]
    listed = listed.split("\n\n")[0]
    files = re.findall(r"(?<= )tests/[\w/]+\.py", " " + listed)
    rooms = re.findall(r"patsubst %,tests/unit/(\w+)/test_%\.py,([\w ]+)\)", listed)
    files += [
        f"tests/unit/{room}/test_{name}.py" for room, s in rooms for name in s.split()
    ]
    assert [file for file in files if not (ROOT / file).exists()] == []
    house = Path(undertow.__file__).parent
    packages = {path.parent.name for path in house.glob("*/__init__.py")}
    assert packages - {room for room, _ in rooms} == {"datasets", "numeric"}
