"""The house has one direction of flow; a wrong arrow fails here."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import undertow

ROOT = Path(undertow.__file__).parent

# package -> packages it may import, besides itself and the shared small modules
CORE = [
    "privacy",
    "spaces",
    "mechanisms",
    "composition",
    "correlation",
    "risk",
    "audit",
]
ARROWS = {
    "privacy": [],
    "spaces": ["privacy"],
    "mechanisms": ["privacy", "spaces"],
    "composition": CORE[:3],
    "correlation": CORE[:4],
    "risk": CORE[:5],
    "audit": CORE[:6],
    "datasets": CORE,
    "ledger": ["privacy", "spaces", "composition", "correlation"],
    "release": [*CORE, "ledger"],
    "plotting": [*CORE, "release"],
    "report": [*CORE, "plotting", "ledger", "release"],
    "cli": [*CORE, "datasets", "plotting", "ledger", "release", "report"],
    "__main__": ["cli"],
}
SHARED = {
    "errors",
    "_address",
    "_files",
    "_text",
    "_validate",
    "_version",
    "numeric",
    "results",
    "theorem",
}
CORE_LIBRARIES = {"numpy", "scipy"} | set(sys.stdlib_module_names)
# Optional libraries of the core: imported inside their functions, on request.
OPTIONAL = {
    "_address.py": {"sqlalchemy"},
    "mechanisms/noise/secure.py": {"opendp"},
    "audit/runner.py": {"joblib"},
    "audit/event.py": {"sklearn", "threadpoolctl"},
}


def package_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


def imported_modules(tree: ast.AST) -> list[str]:
    names: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute, so that arrows can be read"
            names.append(node.module or "")
            if node.module == "undertow":
                names += [f"undertow.{alias.name}" for alias in node.names]
    return names


def sources() -> list[Path]:
    return [p for p in sorted(ROOT.rglob("*.py")) if package_of(p) != "__init__"]


def wrong_arrows(path: Path, text: str) -> list[str]:
    package = package_of(path)
    if package in SHARED:
        allowed: set[str] = set(SHARED)
    else:
        allowed = SHARED | {package, *ARROWS[package]}
    wrong = []
    for name in imported_modules(ast.parse(text)):
        head, _, rest = name.partition(".")
        if head == "undertow":
            target = rest.split(".")[0]
            if target and target not in allowed:
                wrong.append(name)
        elif package in {*CORE, *SHARED} and head not in CORE_LIBRARIES:
            if head not in OPTIONAL.get(path.relative_to(ROOT).as_posix(), set()):
                wrong.append(name)
    return wrong


@pytest.mark.parametrize(
    "path", sources(), ids=lambda p: p.relative_to(ROOT).as_posix()
)
def test_imports_follow_the_arrows(path: Path):
    assert wrong_arrows(path, path.read_text(encoding="utf-8")) == []


def test_a_wrong_arrow_is_found():
    text = "from undertow.composition.plan import Plan\nimport matplotlib\n"
    assert wrong_arrows(ROOT / "privacy" / "loss.py", text) == [
        "undertow.composition.plan",
        "matplotlib",
    ]


def test_every_package_has_its_place_in_the_house():
    folders = {p.name for p in ROOT.iterdir() if (p / "__init__.py").exists()}
    assert folders <= set(ARROWS) | SHARED


# Modules that still know each other, through imports inside of functions.
KNOTS: list[set[str]] = []


def module_name(path: Path) -> str:
    parts = ["undertow", *path.relative_to(ROOT).with_suffix("").parts]
    return ".".join(parts)


def module_graph() -> dict[str, set[str]]:
    """Map each module, packages left out, to those it imports, wherever it does."""
    modules = {module_name(p): p for p in ROOT.rglob("*.py") if p.name != "__init__.py"}
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        targets: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                targets |= {f"{node.module}.{alias.name}" for alias in node.names}
                targets.add(node.module or "")
        graph[name] = {t for t in targets if t in modules and t != name}
    return graph


def knots(graph: dict[str, set[str]]) -> list[set[str]]:
    """Return the sets of modules that reach each other."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        stack = [start]
        while stack:
            for target in graph[stack.pop()] - seen:
                seen.add(target)
                stack.append(target)
        reach[start] = seen
    tied = {
        frozenset(b for b in reach[a] if a in reach[b]) for a in graph if a in reach[a]
    }
    return sorted((set(knot) for knot in tied), key=lambda knot: sorted(knot))


def test_modules_import_in_one_direction():
    assert knots(module_graph()) == sorted(KNOTS, key=lambda knot: sorted(knot))


def test_a_knot_is_found():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}
    assert knots(graph) == [{"b", "c"}]
