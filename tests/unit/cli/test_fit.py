"""`undertow fit`: models from files, and the examples of every help page."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from support.command import invoke
from undertow.cli.app import load_command

HERE = os.environ.get("UNDERTOW_DATA")
needs_data = [
    pytest.mark.data,
    pytest.mark.skipif(HERE is None, reason="UNDERTOW_DATA names no folder"),
]


@pytest.fixture
def activity(tmp_path) -> Path:
    """Two days of a chain, one interval missing."""
    rng = np.random.default_rng(11)
    state, lines = 0, ["date,interval,steps"]
    for t in range(600):
        state = int(rng.random() < (0.118, 0.695)[state])
        steps = "NA" if t == 300 else str(state * 7)
        lines.append(f"2012-10-{1 + t // 300:02d},{t},{steps}")
    file = tmp_path / "activity.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def galton(tmp_path) -> Path:
    """Trios with a common part."""
    rng = np.random.default_rng(12)
    rows = 68 + 2 * (rng.standard_normal((80, 3)) + 0.5 * rng.standard_normal((80, 1)))
    lines = ["father,mother,height", *(",".join(f"{x:.1f}" for x in r) for r in rows)]
    file = tmp_path / "galton.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def record(*words: object) -> dict:
    result = invoke("fit", *words, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


def test_a_chain_is_fitted_to_a_condition(activity):
    found = record("markov", activity, "--active", "steps>0", "--public")
    counts = np.array(found["counts"])
    assert counts.shape == (2, 2)
    assert counts.sum() == 600 - 1 - 2  # two pairs touch the missing interval
    assert np.sum(found["transition"], axis=1) == pytest.approx([1, 1])
    assert found["missing"] == 1


def test_series_are_kept_apart_where_a_column_separates_them(activity):
    words = ("markov", activity, "--active=steps>0", "--public")
    assert np.sum(record(*words, "--by=date")["counts"]) == 600 - 2 - 1


def test_a_chain_is_fitted_to_labels(tmp_path):
    file = tmp_path / "states.csv"
    file.write_text("room\n" + "\n".join("abcab" * 30 + "ba"), encoding="utf-8")
    found = record("markov", file, "--column", "room", "--public")
    assert found["states"] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("condition", "active"),
    [("x>1", 1), ("x>=1", 2), ("x<1", 1), ("x<=1", 2), ("x==1", 1), ("x!=1", 2)],
)
def test_every_comparison_is_the_one_it_says(tmp_path, condition, active):
    file = tmp_path / "x.csv"
    file.write_text("x\n" + "0\n1\n2\n" * 40, encoding="utf-8")
    found = record("markov", file, f"--active={condition}", "--public")
    # The number of records in state 1, the last transition's end aside.
    assert abs(np.sum(found["counts"], axis=1)[1] - 40 * active) <= 1


def test_a_condition_may_have_spaces_signs_and_exponents(tmp_path):
    file = tmp_path / "x.csv"
    file.write_text("x\n" + "-2e3\n1\n" * 40, encoding="utf-8")
    found = record("markov", file, "--active", " x < -1.5e3 ", "--public")
    assert found["gamma"] == "inf"


def test_groups_are_fitted_to_columns(galton):
    found = record("gaussian", galton, "--columns", "father, mother,height", "--public")
    assert found["names"] == ["father", "mother", "height"]
    assert np.array(found["covariance"]).shape == (3, 3)


@pytest.mark.parametrize("flag", [[], ["--json"]])
def test_a_fit_to_data_that_are_not_public_is_a_warning(activity, galton, flag):
    for words in (
        ("markov", activity, "--active=steps>0"),
        ("gaussian", galton, "--columns=father,mother,height"),
    ):
        result = invoke("fit", *words, *flag)
        assert result.exit_code == 0
        assert result.stderr.startswith("Warning: ")
        assert result.stderr.count("\n") == 1
        assert invoke("fit", *words, *flag, "--public").stderr == ""


def test_the_terminal_shows_the_matrix_and_its_limits(activity, galton):
    shown = invoke("fit", "markov", activity, "--active=steps>0", "--public").stdout
    assert "597 transitions of 600 records, 1 missing" in shown
    assert "largest ratio γ" in shown
    shown = invoke(
        "fit", "gaussian", galton, "--columns=father,mother,height", "--public"
    ).stdout
    assert "80 groups, 0 left out" in shown


BAD = [
    (("markov", "empty.csv", "--column=steps"), "got no header"),
    (("markov", "header.csv", "--column=steps"), "at least two records, got none"),
    (("markov", "one.csv", "--column=steps"), "at least two states, got only '0'"),
    (("markov", "one.csv", "--active=steps>0"), "at least two states, got only 0"),
    (("markov", "text.csv", "--active=steps>0"), "must be a number, got 'abc'"),
    (("markov", "one.csv", "--column=stepz"), "must have a column 'stepz'"),
    (("markov", "one.csv", "--column=steps", "--by=day"), "must have a column 'day'"),
    (("markov", "one.csv", "--active=steps~0"), "got 'steps~0'"),
    (("markov", "one.csv", "--active=steps>0>1"), "got 'steps>0>1'"),
    (("markov", "one.csv", "--active=steps>1.2.3"), "must be a number, got '1.2.3'"),
    (("markov", "one.csv"), "one of --column and --active, got neither"),
    (("markov", "one.csv", "--column=a", "--active=a>0"), "got both"),
    (("markov", "nowhere.csv", "--column=a"), "must be a readable CSV file, got No"),
    (("markov", ".", "--column=a"), "must be a readable CSV file, got Is a directory"),
    (("markov", "bytes.csv", "--column=a"), "must be UTF-8 text"),
    (("markov", "two.csv", "--column=steps", "--confidence=1.5"), "confidence must be"),
    (("gaussian", "one.csv", "--columns=a,b"), "must have a column 'a'"),
    (("gaussian", "one.csv", "--columns=steps"), "at least two columns"),
    (("gaussian", "text.csv", "--columns=steps,steps"), "must be a number, got 'abc'"),
    (("gaussian", "empty.csv", "--columns=a,b"), "got no header"),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_bad_input_is_one_sentence(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in {
        "empty.csv": b"",
        "header.csv": b"steps\n",
        "one.csv": b"steps\n0\n0\n0\n",
        "two.csv": b"steps\n" + b"0\n1\n1\n" * 20,
        "text.csv": b"steps\n0\nabc\n1\n",
        "bytes.csv": b"\xff\xfe",
    }.items():
        Path(name).write_bytes(content)
    result = invoke("fit", *words, "--public", "--json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert isinstance(result.exception, SystemExit)


class TestRealData:
    pytestmark = needs_data

    def test_activity_has_the_ratio_of_its_observed_pairs(self):
        file = Path(HERE) / "activity" / "activity.csv"
        found = record("markov", file, "--active", "steps>0", "--public")
        assert found["counts"] == [[9713, 1295], [1295, 2955]]
        assert found["gamma"] == pytest.approx(7.500386, abs=5e-7)
        assert found["missing"] == 2304

    def test_galton_has_its_published_correlation(self):
        file = Path(HERE) / "galton" / "galton.csv"
        words = ("gaussian", file, "--columns=father,mother,height", "--public")
        assert record(*words)["correlation"] == pytest.approx(0.27535483, abs=1e-6)


def commands() -> list[tuple[str, str]]:
    """Return every command of the four groups with its help text."""
    found = []
    for name in ("leak", "calibrate", "fit", "reproduce"):
        command = load_command(name)
        inner = getattr(command, "commands", {"": command})
        found += [(f"{name} {key}".strip(), c.help or "") for key, c in inner.items()]
    return found


def test_every_command_is_there():
    assert len(commands()) == 5 + 5 + 2 + 1


@pytest.mark.parametrize(("name", "text"), commands(), ids=[n for n, _ in commands()])
def test_the_example_of_the_help_runs(
    name, text, activity, galton, tmp_path, monkeypatch
):
    assert "Example:" in invoke(*name.split(), "--help").stdout
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"Example: \[bold\](.*?)\[/bold\]", text, re.S)
    words = shlex.split(" ".join(example.split()))
    assert words[: 1 + len(name.split())] == ["undertow", *name.split()]
    result = invoke(*words[1:])
    assert result.exit_code == 0, result.stderr
    assert result.stdout
