"""`undertow audit`: what it finds, what it prints, and with which status it ends."""

from __future__ import annotations

import itertools
import json
import os
import re
import shlex
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import typer.main

from support.command import invoke, run
from undertow._version import __version__
from undertow.audit import Claim, audit_local, success_epsilon
from undertow.audit.local import running_estimate
from undertow.cli._audit_input import PROTOCOLS
from undertow.cli._audit_result import Job, Watch, conduct, draw_curve
from undertow.cli.audit import audit
from undertow.mechanisms.local import GeneralizedResponse, OptimizedUnary
from undertow_studies.faults import FAULTS

KEYS = {
    "advantage",
    "epsilon_estimate",
    "epsilon_certified",
    "confidence",
    "claim",
    "verdict",
    "trials",
    "seed",
    "baseline",
}
LDP = ("audit", "ldp", "--protocol=oue", "--categories=20", "--epsilon=1")
CODE = """
import os
import numpy as np

__version__ = "1.2.3"

def noisy(value, rng):
    return round(value + rng.laplace(scale=0.7), 6)

def kept(value, rng):
    return value + 0.25

def many(values, rng):
    os.write(1, b"written\\n")
    return np.round(values + rng.laplace(scale=0.7, size=len(values)), 6)

class Holder:
    @staticmethod
    def inner(value, rng):
        print("chatter")
        return round(value + rng.laplace(scale=2.0), 6)
"""
PROGRAM = """
import json, os, sys
import random
draw = random.Random(int(os.environ["UNDERTOW_SEED"]))
for line in sys.stdin:
    bit = json.loads(line)
    print(bit if draw.random() < 0.9 else 1 - bit)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Make a module of its own name in the current directory."""
    name = f"audited_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield name
    sys.modules.pop(name, None)


@pytest.fixture
def program(tmp_path):
    """Write a program that answers lines of JSON, and return its command."""
    path = tmp_path / "flip.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return f"'{sys.executable}' '{path}'"


def record(*words: object, status: int) -> dict:
    result = invoke("audit", *words, "--json")
    assert result.exit_code == status, (result.stderr, result.exception)
    return json.loads(result.stdout)


def test_the_record_has_its_keys_and_the_numbers_of_the_library():
    result = invoke(*LDP, "--trials=20000", "--seed=7", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    own = audit_local(
        OptimizedUnary(20, 1),
        Claim.pure(1, adjacency="local"),
        trials=20_000,
        seed=7,
        baseline=True,
    )
    assert set(found) > KEYS
    assert found["epsilon_certified"] == own.epsilon_certified
    assert found["epsilon_estimate"] == own.epsilon_estimate
    assert found["advantage"] == own.advantage.to_dict()
    assert found["baseline"] == {"ldp_auditor": dict(own.baseline)}
    assert found["claim"] == {"notion": "pure", "epsilon": 1.0, "adjacency": "local"}
    assert (found["verdict"], found["seed"]) == ("not refuted", 7)


def test_a_refuted_claim_ends_with_status_3_and_still_prints_the_result():
    result = invoke(*LDP, "--claim=0.7", "--trials=50000", "--json")
    assert result.exit_code == 3
    found = json.loads(result.stdout)
    assert found["verdict"] == "violated"
    assert found["epsilon_certified"] > 0.7
    assert found["witness"]["summary"]
    assert result.stderr == found["statement"] + "\n"
    assert "violated" in result.stderr


def test_people_read_the_verdict_first_and_certificates_cut_down():
    result = invoke(*LDP, "--claim=0.7", "--trials=50000")
    exact = audit_local(
        OptimizedUnary(20, 1),
        Claim.pure(0.7, adjacency="local"),
        trials=50_000,
        seed=0,
    ).certified
    shown = float(result.stdout.split("at least ")[1].split(" ")[0])
    assert result.stdout.startswith("The claim is violated: ε is at least ")
    assert exact - 1e-4 < shown <= exact
    for words in ("witness:", "LDP-Auditor", "pairs", "note: not checkable"):
        assert words in result.stdout


@pytest.mark.parametrize("name", sorted(PROTOCOLS))
def test_every_protocol_is_run_at_its_level(name):
    words = ("ldp", f"--protocol={name}", "--categories=6", "--epsilon=2")
    found = record(*words, "--trials=4000", "--no-baseline", status=0)
    assert found["verdict"] == "not refuted"
    assert 0 < found["epsilon_certified"] <= 2
    assert found["baseline"] == {"ldp_auditor": None}


@pytest.mark.parametrize(
    "name", ["float-noise", "missing-reset-oue", "variance-as-deviation"]
)
def test_a_bug_is_found_and_its_repair_is_not(name):
    assert record("ldp", f"--fault={name}", status=3)["verdict"] == "violated"
    repaired = record("ldp", f"--fault={name}", "--repaired", status=0)
    assert repaired["verdict"] == "not refuted"


def test_the_bugs_are_listed():
    listed = record("ldp", "--fault=list", status=0)["faults"]
    assert [row["name"] for row in listed] == list(FAULTS)
    assert "halved-noise" in invoke("audit", "ldp", "--fault=list").stdout


def test_a_function_is_found_in_the_current_directory(module):
    words = ("callable", f"{module}:noisy", "--inputs=[0, 1]", "--claim=1")
    found = record(*words, "--trials=20000", "--seed=3", status=3)
    again = record(*words, "--trials=20000", "--seed=3", status=3)
    assert found == again
    assert 1 < found["epsilon_certified"] < 1 / 0.7
    assert found["seed"] == 3
    assert found["version"] == f"{module} 1.2.3"
    assert found["undertow"] == __version__


def test_a_vectorised_function_and_a_nested_one_can_be_named(module):
    common = ("--inputs=[0.0, 1.0]", "--trials=4000")
    many = record(
        "callable", f"{module}:many", *common, "--claim=1", "--vectorised", status=3
    )
    assert many["verdict"] == "violated"
    result = invoke(
        "audit", "callable", f"{module}:Holder.inner", *common, "--claim=1", "--json"
    )
    assert result.exit_code == 0
    assert json.loads(result.stdout)["verdict"] == "not refuted"
    assert "chatter" in result.stderr


@pytest.mark.parametrize(
    ("claim", "notion", "status"),
    [
        (("--claim=1", "--delta=1e-6"), "approx", 3),
        (("--claim=1.5", "--delta=1e-6"), "approx", 0),
        (("--mu=0.5",), "gdp", 3),
        (("--mu=3",), "gdp", 0),
        (("--claim=1", "--adjacency=add-remove", "--neighbours=replaced"), "pure", 0),
        (("--claim=1", "--adjacency=add-remove", "--neighbours=one-apart"), "pure", 3),
        (("--claim=1", "--adjacency=local"), "pure", 3),
    ],
)
def test_claims_of_every_kind_are_held_against_the_code(module, claim, notion, status):
    words = ("callable", f"{module}:many", "--inputs=[0, 1]", "--vectorised")
    found = record(*words, *claim, "--trials=100000", status=status)
    assert found["claim"]["notion"] == notion


def test_only_the_named_pairs_are_compared(module):
    words = ("callable", f"{module}:many", "--inputs=[0, 0.001, 1]", "--vectorised")
    words = (*words, "--claim=1", "--trials=20000")
    assert record(*words, "--pairs=[[0, 1]]", status=0)["verdict"] == "not refuted"
    assert record(*words, "--pairs=[[1, 2]]", status=3)["verdict"] == "violated"


def test_workers_find_the_function_and_change_nothing(module):
    words = (f"{module}:many", "--inputs=[0, 1]", "--vectorised", "--claim=2")
    words = ("callable", *words, "--trials=50000")
    two = run("audit", *words, "--workers=2", "--json")
    assert two.returncode == 0, two.stderr
    assert json.loads(two.stdout) == record(*words, status=0)
    assert b"written" in two.stderr


def test_a_program_is_audited_and_repeats_from_a_seed_if_it_says_so(program):
    words = ("command", program, "--inputs=[0, 1]", "--trials=4000")
    true = record(*words, "--claim=2.2", "--seeded", status=0)
    assert true == record(*words, "--claim=2.2", "--seeded", status=0)
    assert true["seed"] == 0
    found = record(*words, "--claim=1", status=3)
    assert found["seed"] is None
    assert 1 < found["epsilon_certified"] < np.log(9) + 0.1


def test_no_shell_reads_the_command(tmp_path):
    words = ("audit", "command", f"cat; touch {tmp_path}/made", "--inputs=[0, 1]")
    assert invoke(*words, "--claim=1").exit_code == 2
    assert not (tmp_path / "made").exists()


def recorded(path: Path, count: int = 4000) -> None:
    rng = np.random.default_rng(1)
    noise = rng.laplace(scale=0.5, size=2 * count).tolist()
    rows = [(x, round(x + noise.pop(), 6)) for x in (0, 1) for _ in range(count)]
    if path.suffix == ".csv":
        lines = ["other,x,y", *(f"-,{x},{y!r}" for x, y in rows)]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    x, y = zip(*rows, strict=True)
    parquet.write_table(pyarrow.table({"x": x, "y": [float(v) for v in y]}), path)


def test_recorded_runs_give_the_same_from_both_kinds_of_file(tmp_path):
    columns = ("--input-column=x", "--output-column=y", "--claim=1", "--seed=2")
    found = []
    for name in ("runs.csv", "runs.parquet"):
        recorded(tmp_path / name)
        found.append(record("records", tmp_path / name, *columns, status=3))
    for key in ("epsilon_certified", "trials", "witness"):
        assert found[0][key] == found[1][key]
    assert found[0]["trials"] == 8000
    assert 1 < found[0]["epsilon_certified"] < 2


def test_recorded_text_is_compared_as_text(tmp_path):
    path = tmp_path / "runs.csv"
    rows = ["x,y", *["a,yes"] * 60, *["a,no"] * 40, *["b,yes"] * 40, *["b,no"] * 60]
    path.write_text("\n".join(rows), encoding="utf-8")
    columns = ("--input-column=x", "--output-column=y", "--claim=0.5")
    assert record("records", path, *columns, status=0)["trials"] == 200


def test_codes_with_leading_zeros_stay_apart(tmp_path):
    path = tmp_path / "runs.csv"
    rows = ["x,y", *["01,7"] * 100, *["1,7"] * 50, *["1,8"] * 50]
    path.write_text("\n".join(rows), encoding="utf-8")
    columns = ("--input-column=x", "--output-column=y", "--claim=0.1")
    found = record("records", path, *columns, status=3)
    assert sorted(found["witness"]["details"]["pair"]) == ["01", "1"]


def test_an_interrupted_run_goes_on_from_its_checkpoint(tmp_path):
    path = tmp_path / "state.json"
    words = ("ldp", "--protocol=grr", "--categories=4", "--epsilon=1", "--no-baseline")
    plain = record(*words, "--trials=200000", status=0)
    saved = record(*words, "--trials=200000", f"--checkpoint={path}", status=0)
    again = record(*words, "--trials=200000", f"--checkpoint={path}", status=0)
    assert plain == saved == again
    other = invoke("audit", *words, "--trials=300000", f"--checkpoint={path}")
    assert other.exit_code == 2
    assert "must belong to this job" in other.stderr


@pytest.mark.parametrize("kind", ["html", "md"])
def test_a_report_is_written_whole_beside_the_result(tmp_path, kind):
    path = tmp_path / f"report.{kind}"
    words = (*LDP[1:], "--claim=0.7", "--trials=20000", f"--report={path}")
    found = record(*words, status=3)
    text = path.read_text(encoding="utf-8")
    assert found["report"] == str(path)
    assert found["statement"] in text
    assert "What an audit cannot show" in text
    assert os.listdir(tmp_path) == [path.name]


def test_a_report_names_the_pairs_that_were_compared(module, tmp_path):
    path = tmp_path / "report.md"
    words = ("callable", f"{module}:many", "--inputs=[0, 0.001, 1]", "--vectorised")
    words = (*words, "--claim=1", "--trials=2000", "--pairs=[[0, 1]]")
    record(*words, f"--report={path}", status=0)
    text = path.read_text(encoding="utf-8")
    assert r"\[(0, 1)\]" in text
    assert f"{module} 1.2.3".replace("_", r"\_") in text
    assert "From audits of a half" in text


def test_a_curve_from_counts_ends_at_the_certificate_and_doubles():
    job = Job(
        GeneralizedResponse(4, 1.0),
        Claim.pure(1, adjacency="local"),
        name="grr",
        local=True,
        trials=4_000_000,
    )
    found = conduct(job)
    curve = draw_curve(found)
    trials = [n for n, _ in curve.points]
    assert "counts" in curve.how
    assert curve.points[-1][1] == found.result.certified
    assert all(2 * a <= b for a, b in itertools.pairwise(trials))
    # An independent route: the counts of one look, certified directly.
    trials_then, certified_then = curve.points[1]
    (look,) = [c for c in found.looks if int(c["trials"][0]) == trials_then]
    (right,) = look["successes"].tolist()
    direct = success_epsilon(right, trials_then, 4, confidence=0.99)
    assert certified_then == direct.value


def test_the_bar_shows_the_estimate_on_a_terminal_only(monkeypatch, capsys):
    with Watch("code", categories=2, delta=0.0) as watch:
        watch(1, 2, {"p": np.array(30), "q": np.array(10)})
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with Watch("code [a]", categories=2, delta=0.0) as watch:
        watch(1, 2, {"p": np.array(30), "q": np.array(10)})
        time.sleep(0.2)
    assert "estimate ε" in capsys.readouterr().err


def test_the_running_estimate_reads_every_kind_of_count():
    one = np.array([100])
    near = {"successes": np.array([73]), "trials": one}
    assert running_estimate(near, categories=2, delta=0.0) == pytest.approx(
        0.995, abs=0.01
    )
    pooled = {"trials": one, "pooled": np.array([0, 30, 80, 0])}
    assert running_estimate(pooled, categories=9, delta=0.0) == pytest.approx(
        0.97, abs=0.01
    )
    roles = {"trials": one, "roles": np.zeros((2, 4))}
    assert running_estimate(roles, categories=9, delta=0.0) is None


@pytest.mark.parametrize(
    ("command", "status"),
    [("ldp", 3), ("callable", 0), ("command", 3), ("records", 3)],
)
def test_the_example_of_the_help_runs(command, status, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path / "runs.csv")
    group = typer.main.get_command(audit)
    (found,) = [c for name, c in group.commands.items() if name == command]
    (example,) = re.findall(r"\[bold\](.*?)\[/bold\]", found.help, re.S)
    program, *words = shlex.split(example)
    assert program == "undertow"
    assert invoke(*words).exit_code == status


@pytest.mark.parametrize("command", ["ldp", "callable", "command", "records"])
def test_every_option_has_help(command):
    group = typer.main.get_command(audit)
    (found,) = [c for name, c in group.commands.items() if name == command]
    assert "Example" in found.help
    for option in found.params:
        assert getattr(option, "help", None), option.name


def test_noise_that_is_kept_is_told_in_a_note(module):
    words = ("callable", f"{module}:kept", "--inputs=[0, 1]", "--claim=1")
    words = (*words, "--trials=2000")
    (note,) = record(*words, status=3)["notes"]
    assert "no noise, or it is drawn once and kept" in note
    assert f"note: {note}" in invoke("audit", *words).stdout
