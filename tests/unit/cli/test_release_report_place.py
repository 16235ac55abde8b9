"""`undertow release`: a report is checked before anything is charged."""

from __future__ import annotations

import os

import pytest

from support.command import invoke
from support.release_documents import write_visits


@pytest.mark.parametrize(
    ("report", "words"),
    [
        ("report.pdf", "report must end with .html or .md"),
        ("nowhere/report.html", "report must be in a folder that exists"),
        ("release/deep/report.html", "report must be in a folder that exists"),
        ("visits.csv/report.html", "report must be in a folder that exists"),
        ("taken.md", "report must be a file"),
    ],
)
def test_a_report_that_cannot_be_is_refused_before_a_charge(tmp_path, report, words):
    file = write_visits(tmp_path)
    (tmp_path / "taken.md").mkdir()
    before = sorted(tmp_path.iterdir())
    for command in ("run", "plan"):
        result = invoke("release", command, file, "--report", tmp_path / report)
        assert result.exit_code == 2, result.output
        assert result.stderr.count("\n") == 1
        assert words in result.stderr
        assert sorted(tmp_path.iterdir()) == before


def test_a_report_in_a_folder_that_is_not_writable_is_refused(tmp_path, monkeypatch):
    file = write_visits(tmp_path)
    real = os.access

    def access(path, *rest, **named):
        return path != tmp_path.resolve() and real(path, *rest, **named)

    monkeypatch.setattr(os, "access", access)
    result = invoke("release", "plan", file, "--report", tmp_path / "report.md")
    assert result.exit_code == 2
    assert "report must be in a folder that can be written" in result.stderr


@pytest.mark.parametrize("folder", ["release", "new", "new/deep"])
def test_a_report_may_stand_in_the_folder_that_the_run_makes(tmp_path, folder):
    file = write_visits(tmp_path)
    words = () if folder == "release" else ("--output", tmp_path / "new" / "deep")
    report = tmp_path / folder / "report.md"
    result = invoke("release", "run", file, *words, "--report", report)
    assert result.exit_code == 0, result.output
    assert report.exists()


def test_bad_input_leaves_the_folder_as_it_was(tmp_path):
    file = write_visits(tmp_path, query={"by": ["zoen"], "keys": {"zoen": ["A"]}})
    before = sorted(os.listdir(tmp_path))
    result = invoke("release", "run", file)
    assert result.exit_code == 2, result.output
    assert sorted(os.listdir(tmp_path)) == before
