"""From the shell: each mistake is found, stopped before the charge, and repaired."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from support.command import invoke
from support.release_mistakes import MISTAKES, ROWS, release_file
from undertow.cli import main
from undertow.ledger import BudgetLedger


def charges(path):
    with BudgetLedger.open(path, read_only=True) as ledger:
        return [e.body["label"] for e in ledger.history() if e.kind == "charge"]


def write_table(folder, kind):
    columns = [list(column) for column in zip(*ROWS, strict=True)]
    names = ["person", "zone", "seen", "minutes"]
    if kind == "parquet":
        parquet.write_table(pa.table(columns, names=names), folder / "visits.parquet")
    else:
        lines = [",".join(map(str, row)) for row in [names, *ROWS]]
        (folder / "visits.csv").write_text("\n".join(lines) + "\n")
    return f"visits.{kind}"


def case(mistake, kind, fast):
    marks = () if fast else pytest.mark.slow
    return pytest.param(mistake, kind, id=f"{mistake.name}, {kind}", marks=marks)


CASES = [
    case(mistake, kind, mistake is MISTAKES[0] or mistake.name.endswith("case"))
    for mistake in MISTAKES
    for kind in ("csv", "parquet")
    if kind in mistake.kinds
]


@pytest.mark.parametrize(("mistake", "kind"), CASES)
def test_a_mistake_is_found_stopped_before_the_charge_and_repaired(
    mistake, kind, tmp_path
):
    table = write_table(tmp_path, kind)
    file = tmp_path / "visits.toml"
    file.write_text(release_file(mistake.wrong, table))
    found = invoke("release", "check", file)
    assert found.exit_code == 3, found.output
    assert mistake.words in found.stdout
    assert found.stderr.count("\n") == 1
    assert "got no more for 'visits'" in found.stderr
    assert not (tmp_path / "visits.ledger").exists()
    stopped = invoke("release", "run", file)
    assert stopped.exit_code == 3, stopped.output
    # The count has made a ledger, and nothing else is shown.
    [made] = stopped.stdout.splitlines()
    assert made.startswith("Made a new budget of ε = 2 at user level")
    assert stopped.stderr.count("\n") == 1
    assert "must find at least 1,500 units" in stopped.stderr
    assert "undertow release check" in stopped.stderr
    assert charges(tmp_path / "visits.ledger") == ["visits (count)"]
    assert not (tmp_path / "release").exists()
    file.write_text(release_file(mistake.right, table))
    assert invoke("release", "check", file).exit_code == 0
    done = invoke("release", "run", file, "--json")
    assert done.exit_code == 0, done.output
    record = json.loads(done.stdout)
    assert record["check"]["count"] >= 1500
    assert sum(row[1] for row in record["answers"][0]["rows"]) > 1500
    labels = ["visits (count)", "visits (count)", "visits"]
    assert charges(tmp_path / "visits.ledger") == labels


def plain_file(folder, check=""):
    table = write_table(folder, "csv")
    file = folder / "visits.toml"
    text = release_file(MISTAKES[0].right, table)
    file.write_text(text.replace("[check]\nunits_at_least = 1500\n", check))
    return file


def test_a_check_as_json_is_one_object_that_says_whom_it_is_for(tmp_path):
    result = invoke("release", "check", plain_file(tmp_path), "--json")
    assert result.exit_code == 0, result.output
    record = json.loads(result.stdout)
    assert record["notice"].startswith("For the owner of the table alone")
    assert record["findings"] == record["noise_alone"] == []
    assert record["rows"] == len(ROWS)
    assert record["queries"][0]["keys"][0]["rows"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "visits.csv",
        "visits.toml",
    ]


def test_a_check_says_first_that_its_numbers_are_exact(tmp_path):
    result = invoke("release", "check", plain_file(tmp_path))
    assert result.stdout.startswith("For the owner of the table alone: these numbers")
    assert "Nothing stands out." in result.stdout


def test_a_release_that_counts_nothing_before_says_so_in_one_line(tmp_path):
    file = plain_file(tmp_path)
    words = "Nothing checks that rows match: "
    planned, done = invoke("release", "plan", file), invoke("release", "run", file)
    for said in (planned.stdout, done.stderr):
        assert said.count(words) == 1
        assert f"undertow release check {file} first" in said
    assert (planned.stderr, done.stderr.count("\n")) == ("", 1)
    assert words not in done.stdout
    assert invoke("release", "run", file).stderr == ""  # the stored output
    other = tmp_path / "other" / "own"  # beside no other ledger of the same people
    other.mkdir(parents=True)
    file = plain_file(other, "[check]\nunits_at_least = 1500\n")
    assert words not in invoke("release", "plan", file).stdout
    assert invoke("release", "run", file).stderr == ""


def test_that_nothing_is_counted_before_is_said_before_the_charge(
    tmp_path, monkeypatch, capfd
):
    file, said = plain_file(tmp_path), []
    charge = BudgetLedger.charge

    def charged(*args, **named):
        said.append(capfd.readouterr().err)
        return charge(*args, **named)

    monkeypatch.setattr(BudgetLedger, "charge", charged)
    monkeypatch.setattr("sys.argv", ["undertow", "release", "run", str(file)])
    with pytest.raises(SystemExit):
        main()
    assert [text.startswith("Nothing checks that rows match") for text in said] == [
        True
    ]


def test_a_run_that_is_refused_says_one_sentence(tmp_path):
    file = plain_file(tmp_path)
    file.write_text(file.read_text().replace('by = ["zone"]', 'by = ["zoen"]'))
    file.write_text(file.read_text().replace("keys = { zone", "keys = { zoen"))
    refused = invoke("release", "run", file)
    assert refused.exit_code == 2
    assert refused.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("visits.csv", "missing.csv"), "missing.csv"),
        (('by = ["zone"]', 'by = ["zoen"]'), "zoen"),
        (('seen = { timestamp = "%d.%m.%Y %H:%M" }', 'seen = "text"'), "seen"),
    ],
)
def test_what_a_run_would_refuse_a_check_refuses_as_bad_input(tmp_path, change, words):
    file = plain_file(tmp_path)
    file.write_text(file.read_text().replace(*change))
    result = invoke("release", "check", file)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert words in result.stderr
