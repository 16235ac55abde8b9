"""Files that an audit reads and writes on the command line."""

import json

import numpy as np
import pytest

from support.command import invoke

COLUMNS = ["--input-column", "x", "--output-column", "y", "--claim", "1", "--json"]


def audit(*words):
    found = invoke("audit", *words)
    told = json.loads(found.stdout) if found.stdout else {}
    return found.exit_code, told, found.stderr


def written(folder, rows):
    path = folder / "runs.csv"
    lines = "".join(f"{given},{output}\n" for given, output in rows)
    path.write_text("x,y\n" + lines, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "told", [("a", "a ", "b"), ("0", "-0", "1")], ids=["blanks", "signs"]
)
def test_outputs_of_a_file_differ_by_what_their_text_differs(tmp_path, told):
    coins = np.random.default_rng(1).integers(2, size=600)
    rows = [(k % 2, told[2] if coin else told[k % 2]) for k, coin in enumerate(coins)]
    status, record, _ = audit("records", written(tmp_path, rows), *COLUMNS)
    assert status == 3
    assert record["verdict"] == "violated"


def test_blanks_around_numbers_and_inputs_do_not_count(tmp_path):
    coins = np.random.default_rng(1).integers(2, size=600)
    rows = [(f"{k % 2}" + " " * (k % 3), f" {c}") for k, c in enumerate(coins)]
    status, record, _ = audit("records", written(tmp_path, rows), *COLUMNS)
    assert status == 0
    assert record["trials"] == 600


def test_a_result_is_told_though_its_report_cannot_be_written(tmp_path, monkeypatch):
    def full(path, whole):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr("undertow.cli._audit_result.write_whole", full)
    words = ("ldp", "--protocol", "grr", "--categories", 4, "--epsilon", 1)
    options = ("--trials", 500, "--no-baseline", "--json")
    status, record, said = audit(*words, *options, "--report", tmp_path / "audit.html")
    assert status == 2
    assert record["verdict"] == "not refuted"
    assert record["report"] is None
    assert "No space left" in said
    assert said.count("\n") == 1


def test_a_report_does_not_replace_the_checkpoint(tmp_path):
    path = tmp_path / "audit.html"
    words = ("ldp", "--protocol", "grr", "--categories", 4, "--epsilon", 1)
    places = ("--report", path, "--checkpoint", tmp_path / "." / "audit.html")
    status, record, said = audit(*words, "--trials", 500, "--json", *places)
    assert (status, record) == (2, {})
    assert "must be two files" in said
    assert not path.exists()
