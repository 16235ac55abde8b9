"""The guides on auditing print what their commands print."""

from __future__ import annotations

import functools
import random
import re
import runpy
import shlex
import sys
import types
from pathlib import Path

import pytest

from support.command import invoke
from undertow import audit

GUIDES = Path(__file__).parents[1] / "docs" / "how-to"
FILES = re.compile(r"Save as `(\w+\.py)`:\n+```py\n(.*?)^```$", re.M | re.S)
BLOCKS = re.compile(r"^```sh\n(.*?)^```$", re.M | re.S)
PEERS = re.compile(r"^```py\n(.*?)^```$", re.M | re.S)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Make a folder of its own the current one, with modules of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


def steps(text: str) -> list[tuple[str, list[str]]]:
    """Return the commands of the blocks, each with the lines shown after it."""
    found = []
    for block in BLOCKS.findall(text):
        assert block.startswith("$ "), block
        for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, *shown = part.rstrip().splitlines()
            found.append((command, shown))
    return found


@pytest.mark.parametrize(
    ("name", "count"),
    [("audit-a-callable.md", 3), ("audit-a-command.md", 3)],
)
def test_the_guides_show_what_their_commands_print(name, count, folder):
    text = (GUIDES / name).read_text(encoding="utf-8")
    for file, code in FILES.findall(text):
        (folder / file).write_text(code, encoding="utf-8")
    commands = steps(text)
    assert len(commands) == count
    for command, shown in commands:
        program, *words = shlex.split(command)
        if program == "python3":
            runpy.run_path(words[0])
            continue
        assert program == "undertow"
        result = invoke(*words)
        printed = (result.stdout + result.stderr).splitlines()
        assert [line.rstrip() for line in printed] == shown, command
        assert result.exit_code == (3 if "is violated" in shown[0] else 0)


def test_the_long_run_of_the_guide_runs_and_writes_its_files(folder):
    text = (GUIDES / "audit-local-protocol.md").read_text(encoding="utf-8")
    ((command, shown),) = steps(text)
    assert shown == []
    assert "--trials 100000000 " in command
    fewer = command.replace("--trials 100000000 ", "--trials 20000 ")
    result = invoke(*shlex.split(fewer)[1:])
    assert result.exit_code == 0, result.stderr
    assert sorted(path.name for path in folder.iterdir()) == [
        "audit.html",
        "audit.json",
    ]


class Laplace:
    """Called as the mechanism of that name in diffprivlib."""

    def __init__(self, *, epsilon: float, sensitivity: float) -> None:
        self.scale, self.draw = sensitivity / epsilon, random.Random(1)

    def randomise(self, value: float) -> float:
        size = self.draw.expovariate(1 / self.scale)
        return value + (size if self.draw.random() < 0.5 else -size)


@pytest.mark.parametrize("library", ["opendp", "diffprivlib"])
def test_the_audits_of_other_libraries_run_as_the_guide_says(library, monkeypatch):
    if library == "diffprivlib":
        stand_in = types.ModuleType("diffprivlib.mechanisms")
        stand_in.Laplace = Laplace
        monkeypatch.setitem(sys.modules, "diffprivlib", types.ModuleType("diffprivlib"))
        monkeypatch.setitem(sys.modules, "diffprivlib.mechanisms", stand_in)
    else:
        pytest.importorskip("opendp")
    # OpenDP has no seed: a true claim must stand in all but one of 10^9 runs.
    few = {"trials": 2000, "confidence": 1 - 1e-9, "score": "values"}
    fewer = functools.partial(audit.audit_pair, **few)
    monkeypatch.setattr(audit, "audit_pair", fewer)
    text = (GUIDES / "audit-your-library.md").read_text(encoding="utf-8")
    (code,) = [block for block in PEERS.findall(text) if f" {library}." in block]
    names: dict[str, object] = {}
    exec(compile(code, library, "exec"), names)
    assert names["found"].trials == 2000
    assert names["found"].verdict == "not refuted"
