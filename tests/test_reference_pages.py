"""The reference shows every public name, and each of them once."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections import Counter
from pathlib import Path

import pytest

from test_public_api import PACKAGES

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
DIRECTIVE = re.compile(r"^\.\. automodule:: (\S+)\n((?:   .*\n)*)", re.M)
# Every name of the root is that of a package below it.
LISTED = [name for name in PACKAGES if name != "undertow"]
RISK = [name for name in PACKAGES if name.startswith("undertow.risk")]


def shown(page: Path) -> list[tuple[str, str]]:
    """Return module and name of whatever the directives of a page show."""
    found = []
    text = page.read_text(encoding="utf-8") + "\n"
    for module, options in DIRECTIVE.findall(text):
        members = re.search(r":members:([^:]*)", options)
        if members is None:
            continue
        names = [n.strip() for n in members[1].split(",") if n.strip()]
        found += [(module, n) for n in names or importlib.import_module(module).__all__]
    return found


@pytest.mark.parametrize("name", LISTED)
def test_every_public_package_has_a_place_in_the_reference(name: str):
    pages = sorted(REFERENCE.glob("*.md"))
    modules = {m for p in pages for m, _ in DIRECTIVE.findall(p.read_text("utf-8"))}
    assert name in modules


def test_every_name_of_the_root_is_shown_with_its_package():
    undertow = importlib.import_module("undertow")
    names = {name for page in REFERENCE.glob("*.md") for _, name in shown(page)}
    modules = {n for n in undertow.__all__ if inspect.ismodule(getattr(undertow, n))}
    assert set(undertow.__all__) - modules - {"__version__"} <= names


@pytest.mark.parametrize("package", RISK)
def test_every_name_of_the_risk_packages_is_shown_once(package: str):
    page = REFERENCE / "risk.md"
    times = Counter(
        (name, id(getattr(importlib.import_module(module), name)))
        for module, name in shown(page)
    )
    module = importlib.import_module(package)
    assert {
        name: times[name, id(getattr(module, name))] for name in module.__all__
    } == dict.fromkeys(module.__all__, 1)


def test_a_name_left_out_of_a_list_is_noticed(tmp_path: Path):
    page = tmp_path / "page.md"
    text = "```{eval-rst}\n.. automodule:: undertow.risk.scalar\n   :members: a,\n"
    page.write_text(text + "             b\n```\n", encoding="utf-8")
    assert shown(page) == [("undertow.risk.scalar", "a"), ("undertow.risk.scalar", "b")]


def test_every_citation_has_its_reference_in_the_same_docstring():
    # A page shows one docstring at a time: the list of its module is not on it.
    missing = [
        f"{path.relative_to(ROOT)}: {getattr(node, 'name', 'module')} [{key}]"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
        for text in [ast.get_docstring(node) or ""]
        for key in sorted(set(re.findall(r"\[(\d+)\]_", text)))
        if f".. [{key}]" not in text
    ]
    assert missing == []
