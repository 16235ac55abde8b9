"""`undertow reproduce`: files written whole, or not at all."""

from __future__ import annotations

import csv
import json
import os
import stat
from importlib.util import find_spec

import pytest

import undertow.cli.reproduce as command
from support.command import invoke
from undertow.errors import NotApplicable
from undertow_studies import STUDIES, Check, Curve, Panel, Study, StudyResult

KINDS = ("csv", "json", "svg", "png")


def small(name="small", *, panels=True, fail=None) -> Study:
    """Return a study that takes no time."""

    def compute(inputs):
        if fail is not None:
            raise fail
        curve = Curve("exact", (1.0, 2.0), (float(inputs.runs), float(inputs.seed) + 1))
        drawn = (Panel("ρ", (curve,), "x", "y"),) if panels else ()
        checks = (Check("β", None, float("inf"), "not published"),)
        rows = (("ä, b", inputs.runs, inputs.seed),)
        header = ("quantity", "runs", "seed")
        return StudyResult(name, "t", "s", drawn, header, rows, checks)

    return Study(name, "t", "s", compute)


@pytest.fixture
def only(monkeypatch):
    """Return a function that replaces the studies."""

    def replace(*studies):
        monkeypatch.setattr("undertow_studies.STUDIES", studies)

    return replace


def listing(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_the_list_names_every_study():
    result = invoke("reproduce", "list")
    assert result.exit_code == 0
    for study in STUDIES:
        assert study.name in result.stdout


def test_the_list_as_json_has_one_entry_a_study():
    result = invoke("reproduce", "list", "--json")
    listed = json.loads(result.stdout)["studies"]
    assert [entry["name"] for entry in listed] == [study.name for study in STUDIES]
    assert all(set(e) == {"name", "title", "source", "needs"} for e in listed)
    assert result.stdout.count("\n") == 1


def test_the_list_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    invoke("reproduce", "list")
    assert listing(tmp_path) == []


def test_a_study_writes_its_four_files(tmp_path):
    out = tmp_path / "deep" / "er"
    result = invoke("reproduce", "figure-6.3", "--out", out)
    assert result.exit_code == 0
    assert listing(out) == sorted(f"figure-6.3.{kind}" for kind in KINDS)
    assert (out / "figure-6.3.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    assert (out / "figure-6.3.svg").read_text().rstrip().endswith("</svg>")
    with (out / "figure-6.3.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["panel", "curve", "kind", "x", "y"]
    assert len(rows) == 1 + 3 * 99
    assert "checks: 2 match\n" in result.stdout


def test_the_json_file_has_every_check_beside_the_published_number(tmp_path):
    invoke("reproduce", "figure-6.2", "--out", tmp_path)
    record = json.loads((tmp_path / "figure-6.2.json").read_text(encoding="utf-8"))
    assert set(record) == {"study", "source", "data", "drawn", "checks"}
    assert record["checks"][0]["ours"] == pytest.approx(3.083333, abs=1e-6)
    assert set(record["checks"][0]) == {
        "quantity",
        "published",
        "ours",
        "status",
        "erratum",
        "note",
    }


def test_json_output_names_the_files_and_repeats_the_checks(only, tmp_path):
    only(small("a"), small("b", panels=False))
    result = invoke("reproduce", "a", "b", "--out", tmp_path, "--json")
    first, second = json.loads(result.stdout)["studies"]
    assert set(first) == {"name", "source", "data", "drawn", "files", "checks"}
    assert [name.rsplit(".", 1)[1] for name in first["files"]] == list(KINDS)
    assert [name.rsplit(".", 1)[1] for name in second["files"]] == ["csv", "json"]
    assert first["checks"][0]["ours"] == "inf"
    assert result.stdout.count("\n") == 1


def test_all_is_every_study_and_a_name_twice_is_one(only, tmp_path):
    only(small("a", panels=False), small("b", panels=False))
    invoke("reproduce", "all", "--out", tmp_path / "all")
    assert listing(tmp_path / "all") == ["a.csv", "a.json", "b.csv", "b.json"]
    result = invoke("reproduce", "a", "a", "--out", tmp_path / "one", "--json")
    assert len(json.loads(result.stdout)["studies"]) == 1


def test_runs_and_seed_reach_the_study(only, tmp_path):
    only(small())
    invoke("reproduce", "small", "--runs=7", "--seed=41", "--out", tmp_path)
    text = (tmp_path / "small.csv").read_text(encoding="utf-8")
    assert text == 'quantity,runs,seed\n"ä, b",7,41\n'


def test_files_are_replaced_and_have_the_permissions_of_others(only, tmp_path):
    only(small())
    (tmp_path / "small.csv").write_text("old", encoding="utf-8")
    (tmp_path / "other.txt").write_text("x", encoding="utf-8")
    invoke("reproduce", "small", "--out", tmp_path)
    modes = {
        stat.S_IMODE((tmp_path / name).stat().st_mode) for name in listing(tmp_path)
    }
    assert len(modes) == 1
    assert (tmp_path / "small.csv").read_text(encoding="utf-8") != "old"


@pytest.mark.parametrize(
    ("fault", "status"), [(NotApplicable("it must hold, got not."), 3), (OSError(5), 2)]
)
def test_a_study_that_is_refused_leaves_nothing(only, tmp_path, fault, status):
    only(small(fail=fault))
    out = tmp_path / "out"
    result = invoke("reproduce", "small", "--out", out)
    assert result.exit_code == status
    assert result.stdout == ""
    assert listing(out) == []


def test_a_fault_while_drawing_leaves_no_table_behind(only, tmp_path, monkeypatch):
    only(small())

    def broken(result):
        raise RuntimeError("no ink")

    monkeypatch.setattr("undertow_studies.picture.plot_study", broken)
    result = invoke("reproduce", "small", "--out", tmp_path / "out")
    assert isinstance(result.exception, RuntimeError)
    assert listing(tmp_path / "out") == []


def test_a_fault_while_writing_leaves_the_old_file_and_no_part(
    only, tmp_path, monkeypatch
):
    only(small(panels=False))
    (tmp_path / "small.csv").write_text("old", encoding="utf-8")

    def full(*paths):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    result = invoke("reproduce", "small", "--out", tmp_path)
    assert result.exit_code == 2
    assert "No space left" in result.stderr
    assert listing(tmp_path) == ["small.csv"]
    assert (tmp_path / "small.csv").read_text(encoding="utf-8") == "old"


def test_the_files_of_earlier_studies_stay_when_a_later_one_fails(only, tmp_path):
    only(small("a", panels=False), small("b", fail=NotApplicable("no.")))
    assert invoke("reproduce", "a", "b", "--out", tmp_path).exit_code == 3
    assert listing(tmp_path) == ["a.csv", "a.json"]


def test_without_matplotlib_the_numbers_are_written_all_the_same(
    only, tmp_path, monkeypatch
):
    only(small())
    monkeypatch.setattr(
        command, "find_spec", lambda name: None if "plot" in name else find_spec(name)
    )
    result = invoke("reproduce", "small", "--out", tmp_path)
    assert result.exit_code == 0
    assert listing(tmp_path) == ["small.csv", "small.json"]
    assert "matplotlib must be installed" in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("figure-9.9",), "got 'figure-9.9'; run undertow reproduce list"),
        (("figure-6.3", "list"), "got 'list'"),
        (("figure-6.3", "--out", "file"), "out must be a folder, got the file"),
        (("figure-6.3", "--out", "file/in"), "out must be a folder that can be made"),
        (("figure-6.6", "--data", "nowhere"), "the data folder must exist"),
        (("figure-6.6", "--data", "."), "must hold galton/galton.csv"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(
    words, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text("", encoding="utf-8")
    result = invoke("reproduce", *words)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert listing(tmp_path) == ["file"]


@pytest.mark.parametrize("words", [["--runs=0", "figure-6.3"], ["--seed=-1", "x"], []])
def test_usage_errors_exit_with_two(words):
    assert invoke("reproduce", *words).exit_code == 2


def test_the_environment_names_the_data(tmp_path, monkeypatch):
    monkeypatch.setenv("UNDERTOW_DATA", str(tmp_path / "nowhere"))
    result = invoke("reproduce", "figure-6.6", "--out", tmp_path)
    assert result.exit_code == 2
    monkeypatch.delenv("UNDERTOW_DATA")
    result = invoke("reproduce", "table-6.2", "--out", tmp_path)
    assert result.exit_code == 0
    assert "stand-in" in result.stdout
