"""`undertow audit`: threats, scores, early stops, and what a report says of a run."""

from __future__ import annotations

import json
import re
import sys
import time

import numpy as np
import pytest

from support.command import invoke
from undertow.audit import Claim, audit_local, audit_until_refuted
from undertow.audit.local import running_estimate
from undertow.cli._audit_input import read_attacker
from undertow.cli._audit_option import in_option_words
from undertow.cli._audit_result import Watch
from undertow.errors import ModelError
from undertow.mechanisms.local import GeneralizedResponse, OptimizedUnary
from undertow_studies.faults import FAULTS

LDP = ("ldp", "--protocol=oue", "--categories=6", "--epsilon=1", "--no-baseline")
CODE = """
import numpy as np

def noisy(values, rng):
    return np.round(np.asarray(values) + rng.laplace(scale=0.5, size=len(values)), 6)

def textbook(values, rng):
    return np.asarray(values) + rng.laplace(size=len(values))

def vector(values, rng):
    noise = rng.normal(size=(len(values), 4))
    apart = np.asarray(values)[:, None] > 0
    return np.round(np.where(apart, np.abs(noise) * np.sign(noise[:, :1]), noise), 6)
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """Make a module of its own name in the current directory."""
    name = f"looked_at_{tmp_path.name}".replace("-", "_")
    (tmp_path / f"{name}.py").write_text(CODE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield name
    sys.modules.pop(name, None)


def record(*words: object, status: int) -> dict:
    result = invoke("audit", *words, "--json")
    assert result.exit_code == status, (result.stderr, result.exception)
    return json.loads(result.stdout)


def test_the_level_of_the_protocol_is_fitted_with_its_interval():
    found = record(*LDP, "--trials=40000", status=0)
    own = audit_local(
        OptimizedUnary(6, 1), Claim.pure(1, adjacency="local"), trials=40_000, seed=0
    )
    assert found["inversion"] == own.inversion.to_dict()
    assert found["inversion"]["low"] < 1 < found["inversion"]["high"]
    assert (found["parameter"], found["estimate"]) == ("epsilon", own.estimate)
    shown = invoke("audit", *LDP, "--trials=40000").stdout
    assert re.search(r"ε, if it is OUE +│ \d\.\d{4} \(from \d\.\d{4} to \d\.", shown)


def test_saturation_is_told_in_words(tmp_path):
    words = ("ldp", "--protocol=oue", "--categories=6", "--epsilon=20", "--claim=3")
    words = (*words, "--no-baseline", "--trials=4000", "--report=page.html")
    path = tmp_path / "page.html"
    result = invoke("audit", *words[:-1], f"--report={path}")
    told = "saturated: from here on the attack's success hardly grows"
    assert told in " ".join(result.stdout.replace("│", " ").split())
    assert told.replace("'", "&#x27;") in path.read_text(encoding="utf-8")


def test_a_claim_beyond_what_the_trials_can_show_is_said_to_be():
    words = ("ldp", "--protocol=oue", "--categories=20", "--epsilon=20", "--claim=12")
    words = (*words, "--no-baseline", "--trials=60000")
    found = record(*words, status=0)
    assert found["power"]["can_refute"] is False
    assert "could not have refuted it" in found["statement"]
    assert "could the claim be refuted" in invoke("audit", *words).stdout


def test_a_gaussian_claim_is_estimated_in_mu(module):
    words = ("callable", f"{module}:noisy", "--inputs=[0, 1]", "--vectorised")
    found = record(*words, "--mu=4", "--trials=20000", status=0)
    assert found["parameter"] == "mu"
    assert found["certified"] <= found["estimate"] != found["epsilon_estimate"]
    shown = invoke("audit", *words, "--mu=4", "--trials=20000").stdout
    assert re.search(rf"estimate of μ +│ {found['estimate']:.4f}", shown)
    assert "estimate of ε" not in shown


def test_the_title_is_in_words(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    shown = invoke("audit", *LDP, "--trials=4000").stdout
    assert "OUE (optimized unary encoding), 6 values, ε = 1" in shown
    assert "OptimizedUnary" not in shown
    assert "ε = 1, local" in shown


def test_the_bugs_are_listed_with_trials_and_unit():
    listed = record("ldp", "--fault=list", status=0)["faults"]
    assert {row["parameter"] for row in listed} == {"epsilon", "mu"}
    shown = invoke("audit", "ldp", "--fault=list").stdout
    rows = [line.split("│") for line in shown.splitlines() if "│" in line]
    cells = {row[0].strip(): [cell.strip() for cell in row] for row in rows}
    for name, make in FAULTS.items():
        fault = make()
        symbol = "μ" if fault.claim.parameter == "mu" else "ε"
        assert cells[name][1].startswith(f"{symbol} = ")
        assert cells[name][2].startswith(f"{symbol} = ")
        assert cells[name][3] == str(fault.trials)


def recorded(path, count: int) -> None:
    rng = np.random.default_rng(1)
    rows = [(x, x + rng.laplace(scale=0.5)) for x in (0, 1) for _ in range(count)]
    lines = ["x,y", *(f"{x},{y!r}" for x, y in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_more_trials_than_were_recorded_are_told(tmp_path):
    path = tmp_path / "runs.csv"
    recorded(path, 1000)
    words = ("records", path, "--input-column=x", "--output-column=y", "--claim=1")
    many = record(*words, "--trials=5000", status=3)
    assert many["trials"] == 2000
    assert many["notes"][-1].startswith("5000 trials were asked for and 2000 were used")
    assert (
        "note: 5000 trials were asked"
        in invoke("audit", *words, "--trials=5000").stdout
    )
    for enough in ((), ("--trials=2000",), ("--trials=1001",)):
        enough = (*enough, "--score=values")
    assert record(*words, *enough, status=3)["notes"] == []


def test_a_report_has_date_and_command_and_no_private_values(tmp_path, module):
    secret = "[123456789, 123456790]"
    (tmp_path / "known.json").write_text("[0, 1]", encoding="utf-8")
    path = tmp_path / "page.md"
    words = ("callable", f"{module}:noisy", "--vectorised", "--claim=1")
    words = (*words, "--trials=2000", "--pairs=[[0, 1]]", f"--report={path}")
    record(*words, f"--inputs={secret}", status=3)
    (shown,) = re.findall(r"^\| command \| (.*) \|$", path.read_text("utf-8"), re.M)
    shown = shown.replace("\\", "")
    assert "123456789" not in shown
    assert str(tmp_path) not in shown
    assert shown == (
        f"undertow audit callable {module}:noisy --inputs JSON --claim 1 "
        "--pairs '[[0, 1]]' --vectorised --trials 2000 --report page.md --json"
    )
    record(*words, f"--inputs=@{tmp_path}/known.json", status=3)
    text = path.read_text("utf-8").replace("\\", "")
    assert "--inputs @known.json" in text
    assert re.search(r"\| date \| \d{4}-\d\d-\d\d \d\d:\d\d UTC \|", text)


def test_a_flag_and_its_negation_stand_in_the_command(tmp_path):
    path = tmp_path / "page.md"
    invoke("audit", *LDP, "--trials=2000", f"--report={path}")
    text = path.read_text("utf-8")
    assert "--categories 6 --epsilon 1 --no-baseline --trials 2000" in text


def test_a_report_of_a_protocol_is_titled_in_words(tmp_path):
    path = tmp_path / "page.html"
    invoke("audit", *LDP, "--trials=2000", f"--report={path}")
    text = path.read_text("utf-8")
    assert "<h1>Audit of OUE (optimized unary encoding), 6 values, ε = 1</h1>" in text


def test_the_lowest_bits_are_looked_at_unless_values_are_asked_for(module):
    words = ("callable", f"{module}:textbook", "--inputs=[0.0, 1.0]", "--vectorised")
    words = (*words, "--claim=1.2", "--trials=4000")
    assert record(*words, "--score=values", status=0)["verdict"] == "not refuted"
    assert record(*words, status=3)["notes"][0].startswith(
        "the event is about the last"
    )
    assert record(*words, "--score=bits", status=3)["verdict"] == "violated"


def test_recorded_outputs_may_be_looked_at_by_their_bits(tmp_path):
    path = tmp_path / "runs.csv"
    recorded(path, 2000)
    words = ("records", path, "--input-column=x", "--output-column=y", "--claim=2.5")
    assert record(*words, "--score=values", status=0)["verdict"] == "not refuted"
    assert record(*words, "--score=bits", status=3)["verdict"] == "violated"


def test_a_score_is_learned_if_asked(module):
    pytest.importorskip("sklearn")
    words = ("callable", f"{module}:vector", "--inputs=[0, 1]", "--vectorised")
    words = (*words, "--mu=0.8", "--trials=20000", "--seed=3")
    found = record(*words, "--score=learned", "--score=values", status=3)
    assert found["verdict"] == "violated"


def test_no_threat_is_read_from_what_is_the_default():
    default = {"prior": "uniform", "aux": "none", "tolerance": None, "loss": None}
    assert read_attacker(4, **default) is None
    assert read_attacker(4, **{**default, "tolerance": 0.0}) is None
    threat = read_attacker(4, **{**default, "prior": "[1, 2, 3, 4]", "aux": "full"})
    assert threat.prior.pmf.tolist() == [0.1, 0.2, 0.3, 0.4]
    assert len(threat.fibres) == 4
    near = read_attacker(4, **{**default, "tolerance": 1.0})
    assert near.success.matrix(near.support).sum() == 10


THREATS = [
    ("--prior=[8, 4, 2, 1, 1, 0]", "under a given prior"),
    ("--aux=full", "knowing the whole record"),
    ('--aux=["a", "a", "a", "b", "b", "b"]', "knowing a label"),
    ("--tolerance=1", "guess within 1"),
]


@pytest.mark.parametrize(("option", "words"), THREATS)
def test_a_threat_reaches_the_audit_and_the_page(option, words, tmp_path):
    path = tmp_path / "page.md"
    common = ("ldp", "--protocol=grr", "--categories=6", "--epsilon=3", "--no-baseline")
    common = (*common, "--claim=0.7", "--trials=20000", "--seed=4")
    found = record(*common, option, f"--report={path}", status=3)
    key, _, value = option.removeprefix("--").partition("=")
    given = {"prior": "uniform", "aux": "none", "tolerance": None, "loss": None}
    given[key] = float(value) if key == "tolerance" else value
    own = audit_local(
        GeneralizedResponse(6, 3),
        Claim.pure(0.7, adjacency="local"),
        trials=20_000,
        seed=4,
        threat=read_attacker(6, **given),
    )
    assert found["epsilon_certified"] == own.epsilon_certified
    assert found["advantage"] == own.advantage.to_dict()
    assert found["epsilon_certified"] != record(*common, status=3)["epsilon_certified"]
    assert words in found["threat"]
    assert words in path.read_text("utf-8")
    assert words.split()[0] in invoke("audit", *common, option).stdout


def test_errors_of_a_matrix_count_as_its_tolerance_says():
    loss = [[abs(i - j) for j in range(6)] for i in range(6)]
    common = ("ldp", "--protocol=grr", "--categories=6", "--epsilon=3", "--no-baseline")
    common = (*common, "--claim=0.7", "--trials=20000", "--tolerance=1")
    by_matrix = record(*common, f"--loss={loss}", status=3)
    by_numbers = record(*common, status=3)
    # The same sets of hits; ties between guesses fall otherwise.
    assert by_matrix["certified"] == pytest.approx(by_numbers["certified"], abs=0.1)


def test_a_threat_that_says_nothing_new_changes_nothing():
    plain = record(*LDP, "--trials=4000", status=0)
    even = record(*LDP, "--trials=4000", "--prior=[2, 2, 2, 2, 2, 2]", status=0)
    assert {**even, "threat": None} == plain


def test_a_claim_that_no_attack_on_the_threat_refutes_is_bad_input():
    words = (*LDP, "--claim=9", "--trials=4000", "--prior=[9999, 1, 0, 0, 0, 0]")
    result = invoke("audit", *words)
    assert result.exit_code == 2, result.stdout
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)


def test_a_local_run_stops_as_soon_as_the_claim_is_refuted(tmp_path):
    path = tmp_path / "page.html"
    words = (*LDP[:3], "--epsilon=2", "--claim=1", "--stop-early", "--seed=3")
    found = record(*words, f"--report={path}", status=3)
    own = audit_until_refuted(
        OptimizedUnary(6, 2),
        Claim.pure(1, adjacency="local"),
        trials=100_000,
        seed=3,
    )
    assert (found["trials"], found["certified"]) == (own.trials, own.certified)
    assert found["trials"] < 20_000
    assert found["baseline"] == {"ldp_auditor": None}
    assert f"after {own.trials} of at most 100000 trials" in found["notes"][0]
    assert found["notes"][0] in path.read_text("utf-8")
    kept = [word for word in words if word != "--claim=1"]
    true = record(*kept, "--claim=2", "--trials=20000", status=0)
    assert true["trials"] == 20_000


def test_a_function_is_run_until_its_claim_is_refuted(module):
    words = ("callable", f"{module}:noisy", "--inputs=[0, 1]", "--vectorised")
    found = record(*words, "--claim=1", "--stop-early", status=3)
    assert found["trials"] < 50_000
    assert 1 < found["certified"] < 2
    assert "of at most 100000 trials" in found["notes"][0]
    true = record(*words, "--claim=2", "--stop-early", "--trials=20000", status=0)
    assert true["trials"] == 20_000


def test_a_program_is_run_until_its_claim_is_refuted():
    words = ("command", "cat", "--inputs=[0, 1]", "--claim=1", "--stop-early")
    found = record(*words, "--trials=20000", status=3)
    assert found["trials"] < 20_000


def test_the_bar_of_an_early_stop_shows_the_estimate(module, monkeypatch):
    seen = []
    call = Watch.__call__

    def keep(self, done, total, counts):
        seen.append(running_estimate(counts, categories=2, delta=0.0))
        call(self, done, total, counts)

    monkeypatch.setattr(Watch, "__call__", keep)
    words = ("callable", f"{module}:noisy", "--inputs=[0, 1]", "--vectorised")
    record(*words, "--claim=1", "--stop-early", status=3)
    assert seen
    assert all(value is not None for value in seen)


def test_the_bar_shows_how_often_an_attack_on_a_threat_is_right(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    counts = {"threat_hits": np.array([3]), "trials": np.array([4])}
    with Watch("grr", categories=4, delta=0.0) as watch:
        watch(1, 2, counts)
        time.sleep(0.2)
    assert "attack right in 75 %" in capsys.readouterr().err


def test_a_threat_is_refused_where_the_run_stops_early():
    result = invoke("audit", *LDP, "--stop-early", "--aux=full")
    assert result.exit_code == 2
    assert "--aux, --tolerance and --loss must be left out" in result.stderr


def test_arguments_are_named_as_the_options_are():
    claim = Claim.pure(5, adjacency="local")
    with pytest.raises(ModelError) as caught, in_option_words(claim):
        raise ModelError(f"time_limit must be so for {claim}; raise time_limit.")
    assert str(caught.value) == (
        "--time-limit must be so for ε = 5, local; raise --time-limit."
    )
    with pytest.raises(ValueError, match=r"^--score must be one$"), in_option_words():
        raise ValueError("--score must be one")


TABLES = [
    ("[[1, 2], [1, 2, 3]]", "one-apart"),
    ('[[], [{"age": 3}]]', "one-apart"),
    ('[{"age": [3, 4]}, {"age": [4, 3, 3]}]', "one-apart"),
    ('[["b", "a"], ["a", "c"]]', "replaced"),
    ('[{"age": [3], "zip": [1]}, {"age": [3], "zip": [2]}]', "replaced"),
    ("[0, 1]", None),
    ('["week1.csv", "week2.csv"]', None),
    ("[[1, 2], [1, 2, 3, 4]]", None),
    ("[[1, 2], [3, 4]]", None),
    ("[[1], [1, 2], [1, 3]]", None),
]


@pytest.mark.parametrize(("inputs", "difference"), TABLES)
def test_what_two_inputs_are_is_read_or_asked_for(inputs, difference, tmp_path):
    path = tmp_path / "loud.py"
    path.write_text(
        "def loud(table, rng):\n"
        "    return len(str(table)) * 1.5 + rng.laplace(scale=1 / 1.5)\n",
        encoding="utf-8",
    )
    sys.path.insert(0, str(tmp_path))
    sys.modules.pop("loud", None)
    words = ("callable", "loud:loud", f"--inputs={inputs}", "--trials=400")
    words = (*words, "--adjacency=add-remove", "--claim=1")
    if difference is None:
        result = invoke("audit", *words)
        assert result.exit_code == 2
        assert "must come with --neighbours one-apart" in result.stderr
        words = (*words, "--neighbours=one-apart")
    result = invoke("audit", *words, "--json")
    found = json.loads(result.stdout)
    kept = "add-remove" if difference == "replaced" else "one-apart"
    assert found["claim"]["adjacency"] == kept
    assert found["tested"]["epsilon"] == (2 if kept == "add-remove" else 1)
    expected = "price for replacing" if kept == "add-remove" else "as it stands"
    assert any(expected in note for note in found["notes"])


def test_neighbours_are_stated_with_add_remove_alone():
    words = ("command", "cat", "--inputs=[0, 1]", "--claim=1", "--neighbours=replaced")
    result = invoke("audit", *words)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "must come with --adjacency add-remove" in result.stderr


def test_an_audit_without_trials_takes_the_time_that_is_given(module):
    words = ("callable", f"{module}:noisy", "--inputs=[0, 1]", "--vectorised")
    start = time.monotonic()
    found = record(*words, "--claim=2", "--seconds=0.5", status=0)
    assert time.monotonic() - start < 20
    assert found["trials"] >= 2000
    (chosen,) = (note for note in found["notes"] if "as what 0.5 s allow" in note)
    asked = int(re.search(r"state (\d+) trials", chosen)[1])
    assert asked - 2 <= found["trials"] <= asked
    again = record(*words, "--claim=2", f"--trials={asked}", status=0)
    assert again["certified"] == found["certified"]
    (more,) = (note for note in found["notes"] if "ten times" in note)
    assert more.replace(", in about 5 s,", "") in again["notes"]
    assert float(re.search(r"about ([\d.]+) by", more)[1]) > found["certified"]


@pytest.mark.parametrize("option", ["--trials=2000", "--stop-early"])
def test_seconds_stand_beside_no_number_of_trials(option, module):
    words = ("callable", f"{module}:noisy", "--inputs=[0, 1]", "--vectorised")
    result = invoke("audit", *words, "--claim=2", "--seconds=1", option)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert "--seconds must be left out beside" in result.stderr
    result = invoke("audit", *words, "--claim=2", "--seconds=0")
    assert (result.exit_code, "seconds must be positive" in result.stderr) == (2, True)
