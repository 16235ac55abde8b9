"""Every code block of the documentation runs and prints what the page says."""

from __future__ import annotations

import doctest
import itertools
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from undertow.cli import app

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"]
    + [p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts]
)
FENCE = re.compile(r"^```(?:\{code-block\} )?(\w[\w-]*)\n(.*?)^```$", re.M | re.S)


def blocks(page: Path, language: str) -> list[str]:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [body for tag, body in found if tag == language]


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=page_id)
def test_python_blocks_run_as_shown(page: Path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    parser = doctest.DocTestParser()
    for body in blocks(page, "python"):
        if ">>>" in body:
            test = parser.get_doctest(body, namespace, page_id(page), str(page), 0)
            report: list[str] = []
            runner.run(test, out=report.append, clear_globs=False)
            assert runner.failures == 0, "".join(report)
            namespace = test.globs
        else:
            exec(compile(body, str(page), "exec"), namespace)


@pytest.mark.parametrize(
    "page", [p for p in PAGES if blocks(p, "console")], ids=page_id
)
def test_console_blocks_print_what_the_page_shows(page: Path, tmp_path, monkeypatch):
    """Blocks hold `$ undertow ...` lines, each followed by its output.

    Three dots stand for what differs between runs; files may be copied in between.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for name, body in file_blocks(page):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(body, encoding="utf-8")
    same = doctest.OutputChecker().check_output
    for command, expected in console_steps(page):
        words = shlex.split(command)
        if words[0] != "undertow":
            subprocess.run(words, check=True)
            continue
        result = CliRunner().invoke(app, words[1:])
        shown = "\n".join(line.rstrip() for line in result.output.rstrip().splitlines())
        alike = same(f"{expected}\n", f"{shown}\n", doctest.ELLIPSIS)
        assert alike or shown == expected, command


def file_blocks(page: Path) -> list[tuple[str, str]]:
    """Return the blocks introduced by a line such as ``Save as `plan.toml`:``."""
    text = page.read_text(encoding="utf-8")
    pattern = r"`([\w./-]+\.(?:toml|csv))`:?\n+```(?:toml|text)\n(.*?)^```$"
    return re.findall(pattern, text, re.M | re.S)


def console_steps(page: Path) -> list[tuple[str, str]]:
    steps = []
    for body in blocks(page, "console"):
        for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
            command, _, output = part.partition("\n")
            if command.startswith(("undertow ", "cp ", "mkdir ")):
                steps.append((command, output.rstrip()))
    return steps


def test_every_call_and_command_of_the_front_page_runs(tmp_path, monkeypatch):
    page = ROOT / "docs" / "index.md"
    row = re.compile(r"^\|[^|`]+\| `(.+)` \| `(undertow .+)` \|$", re.M)
    rows = row.findall(page.read_text(encoding="utf-8"))
    assert len(rows) >= 7
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {}
    for body in blocks(page, "python"):
        shown = doctest.DocTestParser().get_examples(body)
        exec("".join(example.source for example in shown), namespace)
    for call, command in rows:
        result = eval(call, namespace)
        assert "to_dict" in dir(result)
        words = shlex.split(command)[1:]
        if any(word.endswith(".toml") for word in words):
            words = [*itertools.takewhile(lambda w: "." not in w, words), "--help"]
        assert CliRunner().invoke(app, words).exit_code == 0, command


def test_the_readme_is_tested():
    assert blocks(ROOT / "README.md", "python")
