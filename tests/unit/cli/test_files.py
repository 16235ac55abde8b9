"""Reading plan files: bounded, and one sentence when something is wrong."""

from __future__ import annotations

import pytest

from support.command import invoke, write_plan
from support.documents import VALID, valid
from undertow._text import LARGEST_FILE
from undertow.cli._input import bundled_plan, parse_plan, read_plan
from undertow.composition import plan_from_document
from undertow.errors import PlanError


@pytest.mark.parametrize("name", VALID)
def test_a_file_holds_the_same_plan_as_its_document(tmp_path, name):
    plan = read_plan(write_plan(tmp_path, valid(name)))
    assert plan.releases == plan_from_document(valid(name)).releases
    assert plan.domain == plan_from_document(valid(name)).domain


def test_the_bundled_plan_reads():
    assert len(bundled_plan("hourly")) == 24


CONTENTS = {
    "empty": b"",
    "invalid TOML": b"domain = {",
    "zeros": b"0" * 2_000_000,
    "binary junk": bytes(range(256)) * 50,
    "null bytes": b"\0" * 1000,
    "latin-1": b'name = "S\xfcd"',
    "byte order mark": b"\xff\xfe\x00",
    "deep arrays": b"a = " + b"[" * 50_000,
    "deep tables": b"a = " + b"{a=" * 50_000,
    "deep keys": b".".join([b"a"] * 3000) + b" = 1",
    "long number": b"a = " + b"9" * 10_000,
    "bad date": b"a = 2026-13-45",
    "no plan": b"a = 1",
    "repeated key": b"domain = 1\ndomain = 2",
    "control characters": b'a = "\x1b[31m"',
}


@pytest.mark.parametrize("content", CONTENTS.values(), ids=CONTENTS)
def test_other_contents_are_one_sentence(tmp_path, content):
    path = tmp_path / "plan.toml"
    path.write_bytes(content)
    result = invoke("compose", path)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.rstrip().endswith((".", "?"))
    assert result.stderr.isprintable() or result.stderr.rstrip().isprintable()


def test_a_sparse_file_of_a_hundred_megabytes_is_refused(tmp_path):
    path = tmp_path / "large.toml"
    with path.open("wb") as file:
        file.truncate(100 * 2**20)
    with pytest.raises(PlanError, match="at most 16 MiB, got a larger file"):
        read_plan(path)
    assert LARGEST_FILE == 16 * 2**20


def test_missing_files_and_folders_are_named(tmp_path):
    with pytest.raises(PlanError, match="got no such file"):
        read_plan(tmp_path / "none.toml")
    with pytest.raises(PlanError, match="got a folder"):
        read_plan(tmp_path)
    with pytest.raises(PlanError, match="must be a readable file"):
        read_plan(tmp_path / ("x" * 5000))


def test_text_is_named_after_where_it_came_from():
    with pytest.raises(PlanError, match="here must be a TOML file"):
        parse_plan("a = ", name="here")
