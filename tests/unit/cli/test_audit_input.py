"""`undertow audit`: bad input is one sentence, and no input makes a fault."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.command import invoke
from undertow.cli.audit import audit

GRR = ("ldp", "--protocol=grr", "--categories=4", "--epsilon=1")
CAT = ("command", "cat", "--inputs=[0, 1]")
GAUSS = ("callable", "random:gauss", "--inputs=[0, 1]")

BAD = [
    (("ldp",), "--protocol must be given"),
    (("ldp", "--protocol=grr"), "--categories must be given"),
    (("ldp", "--protocol=grr", "--categories=4"), "--epsilon must be given"),
    (("ldp", "--protocol=rr", "--categories=4", "--epsilon=1"), "protocol must be"),
    (("ldp", "--protocol=grr", "--categories=1", "--epsilon=1"), "at least 2, got 1"),
    (
        ("ldp", "--protocol=grr", "--categories=1000000", "--epsilon=1"),
        "at most 100000",
    ),
    (("ldp", "--protocol=grr", "--categories=4", "--epsilon=0"), "epsilon must be"),
    (("ldp", "--protocol=grr", "--categories=4", "--epsilon=nan"), "epsilon must be"),
    ((*GRR, "--claim=0"), "claim must be positive"),
    ((*GRR, "--claim=-1"), "claim must be positive"),
    ((*GRR, "--claim=nan"), "claim must be positive"),
    ((*GRR, "--claim=inf"), "claim must be positive"),
    ((*GRR, "--claim=1000"), "claim must be at most 100"),
    ((*GRR, "--mu=1", "--claim=1"), "got both"),
    ((*GRR, "--mu=1", "--delta=0.1"), "delta must be left out"),
    ((*GRR, "--mu=0"), "mu must be positive"),
    ((*GRR, "--delta=2"), "delta must be"),
    ((*GRR, "--delta=1"), "delta must be below 1, got 1;"),
    (
        (*GRR, "--claim=9", "--delta=0.01", "--adjacency=add-remove"),
        "got ε = 9, δ = 0.01, adding or removing one record; it promises nothing",
    ),
    ((*GRR, "--adjacency=near"), "adjacency must be"),
    ((*GRR, "--trials=0"), "trials must be"),
    ((*GRR, "--trials=2"), "trials must be at least"),
    ((*GRR, "--claim=9", "--trials=50"), "trials must be at least"),
    ((*GRR, "--trials=1000000000000"), "trials must be at most"),
    ((*GRR, "--confidence=1"), "confidence must be in (0, 1)"),
    ((*GRR, "--confidence=nan"), "confidence must be"),
    ((*GRR, "--seed=-1"), "seed must be"),
    ((*GRR, "--workers=0"), "workers must be"),
    ((*GRR, "--workers=100000"), "workers must be at most"),
    ((*GRR, "--report=report.pdf"), ".html or .md"),
    ((*GRR, "--report=no/such/folder/report.md"), "folder that exists"),
    ((*GRR, "--checkpoint=no/such/folder/state.json"), "folder that exists"),
    ((*GRR, "--checkpoint=."), "folder that exists"),
    ((*GRR, "--repaired"), "come with --fault"),
    ((*GRR, "--fault=halved-noise"), "got --protocol, --categories, --epsilon"),
    (("ldp", "--fault=typo"), "fault must be"),
    (("ldp", "--fault=halved-noise", "--adjacency=replace"), "got --adjacency"),
    (("ldp", "--fault=halved-noise", "--aux=full"), "got --aux beside it"),
    (("ldp", "--fault=halved-noise", "--stop-early", "--baseline"), "--baseline must"),
    (("ldp", "--fault=halved-noise", "--baseline"), "for local protocols"),
    ((*GRR, "--fault=list"), "got --protocol, --categories, --epsilon"),
    ((*GRR, "--stop-early", "--baseline"), "--baseline must be left out"),
    ((*GRR, "--stop-early", "--workers=2"), "--workers must be left out"),
    ((*GRR, "--stop-early", "--checkpoint=x.json"), "--checkpoint must be left out"),
    ((*GRR, "--trials=2"), "to be able to refute ε = 1, local, got 2"),
    ((*GRR, "--prior=[1, 2]"), "prior must have one entry for each of the 4"),
    ((*GRR, "--prior=[1, 2, 3, -4]"), "prior must be non-negative"),
    ((*GRR, "--prior=@no.json"), "readable file"),
    ((*GRR, "--prior=often"), "prior must be JSON"),
    ((*GRR, "--aux=[0, 1]"), "aux must have one label for each of the 4"),
    ((*GRR, "--aux=much"), "aux must be JSON"),
    ((*GRR, "--tolerance=-1"), "tolerance must be non-negative"),
    ((*GRR, "--tolerance=nan"), "tolerance must be non-negative"),
    ((*GRR, "--loss=[[0]]"), "--loss must come with --tolerance"),
    ((*GRR, "--loss=[[0, 1], [1, 0]]", "--tolerance=0"), "each of the 4 records"),
    (GAUSS, "got neither"),
    (("callable", "random", "--inputs=[0, 1]", "--claim=1"), "pkg.module:function"),
    (("callable", "a b:c", "--inputs=[0, 1]", "--claim=1"), "pkg.module:function"),
    (("callable", "random:", "--inputs=[0, 1]", "--claim=1"), "pkg.module:function"),
    (("callable", "..x:f", "--inputs=[0, 1]", "--claim=1"), "pkg.module:function"),
    (("callable", "nowhere_x:f", "--inputs=[0, 1]", "--claim=1"), "can be imported"),
    (("callable", "random:none", "--inputs=[0, 1]", "--claim=1"), "no such name"),
    (("callable", "random:TWOPI", "--inputs=[0, 1]", "--claim=1"), "be callable"),
    (("callable", "random:gauss", "--inputs=[0]", "--claim=1"), "at least two"),
    (("callable", "random:gauss", "--inputs={}", "--claim=1"), "at least two"),
    (("callable", "random:gauss", "--inputs=[0,", "--claim=1"), "inputs must be JSON"),
    (("callable", "random:gauss", "--inputs=@no.json", "--claim=1"), "readable file"),
    (("callable", "random:gauss", "--inputs=[NaN,1]", "--claim=1"), "not a number"),
    ((*GAUSS, "--claim=1", "--pairs=[[0, 2]]"), "pairs must be"),
    ((*GAUSS, "--claim=1", "--pairs=[[0, 0]]"), "different inputs"),
    ((*GAUSS, "--claim=1", "--pairs=[]"), "pairs must be from 1"),
    ((*GAUSS, "--claim=1", "--pairs=[0]"), "list of pairs"),
    ((*GAUSS, "--claim=1", '--pairs=[["a", 1]]'), "pairs must be a whole number"),
    ((*GAUSS, "--claim=1", "--time-limit=0"), "--time-limit must be positive"),
    ((*GAUSS, "--claim=1", "--score=eye"), "--score must be one of"),
    ((*CAT, "--claim=1", "--score=bits"), "--score must be another"),
    ((*CAT, "--claim=1", "--checkpoint=x.json"), "draw from UNDERTOW_SEED alone and"),
    ((*GAUSS, "--claim=1", "--workers=2"), "workers must be 1"),
    ((*GAUSS, "--claim=1", "--checkpoint=x.json"), "--checkpoint must be left out"),
    ((*GAUSS, "--claim=1", "--trials=10"), "trials must"),
    (("callable", "os:getcwd", "--inputs=[0, 1]", "--claim=1"), "must take a value"),
    (("command", "", "--inputs=[0, 1]", "--claim=1"), "must name a program"),
    (("command", "'a", "--inputs=[0, 1]", "--claim=1"), "closing quotation"),
    (("command", "no-such-program", "--inputs=[0, 1]", "--claim=1"), "be started"),
    (("command", "false", "--inputs=[0, 1]", "--claim=1"), "exit with status 0"),
    (("command", "true", "--inputs=[0, 1]", "--claim=1"), "one line for each"),
    (("command", "sed s/.*/x/", "--inputs=[0, 1]", "--claim=1"), "one JSON value"),
    ((*CAT, "--claim=1", "--trials=20"), "trials must"),
    (
        ("command", "sleep 9", "--inputs=[0, 1]", "--claim=1", "--time-limit=0.2"),
        "raise --time-limit",
    ),
]


def names(case: object) -> str:
    return " ".join(case) if isinstance(case, tuple) else str(case)


@pytest.mark.parametrize(("words", "reason"), BAD, ids=names)
def test_bad_input_is_one_sentence(words, reason, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("audit", *words)
    assert result.exit_code == 2, (result.stdout, result.exception)
    assert result.stdout == ""
    assert reason in result.stderr
    assert list(tmp_path.iterdir()) == []


FUNCTIONS = {
    "def f(x): raise ValueError('so [b]bad[/b]')": "must not raise, got ValueError",
    "def f(x): return None": "got None",
    "def f(x): return float('nan')": "got nan",
    "def f(x): return object()": "outputs that can be compared, got object",
    "def f(x): raise SystemExit(3)": "must not raise, got SystemExit",
    "def f(x):\n    while True: pass": "must finish a batch within 0.3 s",
    "def f(x, y, z): return 0": "3 required arguments",
    "raise SystemExit": "can be imported, got SystemExit",
    "1 / 0": "ZeroDivisionError",
    "def (": "SyntaxError",
}


@pytest.mark.parametrize("code", FUNCTIONS, ids=lambda code: code.splitlines()[-1])
def test_code_that_misbehaves_is_one_sentence(code, tmp_path, monkeypatch):
    name = f"misbehaving_{list(FUNCTIONS).index(code)}"
    (tmp_path / f"{name}.py").write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    limit = 0.3 if "while True" in code else 60
    words = ("--inputs=[0, 1]", "--claim=1", f"--time-limit={limit}", "--json")
    result = invoke("audit", "callable", f"{name}:f", *words)
    assert result.exit_code == 2, (result.stdout, result.exception)
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    assert FUNCTIONS[code] in result.stderr


FILES = {
    "x,y\n": "must hold runs, got none",
    "": "one column 'x', got the columns none",
    "x,z\n1,2\n": "one column 'y', got the columns x, z",
    "x,y,y\n1,2,3\n": "one column 'y'",
    "x,y\n,1\n": "empty cell on line 2",
    "x,y\n1\n": "got a row of 1 on line 2",
    "x,y\n1,2\n": "at least two different",
    "x,y\n" + "1,\n2,\n" * 50: "got None in every run",
    "x,y\nnan,1\n2,3\n": "got nan",
    'x,y\n1,"2\n': "must be a CSV file",
    "x,y\n1,2\n2,3\n": "trials must leave",
}
COLUMNS = ("--input-column=x", "--output-column=y", "--claim=1")


@pytest.mark.parametrize("text", FILES, ids=lambda text: json.dumps(text))
def test_files_that_hold_no_runs_are_one_sentence(text, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(text, encoding="utf-8")
    result = invoke("audit", "records", path, *COLUMNS)
    assert result.exit_code == 2, (result.stdout, result.exception)
    assert FILES[text] in result.stderr


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("runs.csv", None, "No such file"),
        ("runs.csv", b"x,y\n\xff,1\n", "UTF-8"),
        ("runs.txt", b"x,y\n", "end in .csv, .jsonl or .parquet"),
        ("runs.jsonl", None, "No such file"),
        (
            "runs.jsonl",
            b'{"x": 1, "y": 2}\n[1]\n',
            "object on each line, got none on line 2",
        ),
        ("runs.jsonl", b'{"x": 1}\n', "'y' on every line, got none on line 1"),
        ("runs.jsonl", b'{"x": null, "y": 1}\n', "number or text in every row"),
        ("runs.jsonl", b'{"x": "\xff"}\n', "UTF-8"),
        ("runs.parquet", None, "readable"),
        ("runs.parquet", b"nothing", "must be a Parquet file"),
    ],
)
def test_files_that_cannot_be_read_are_one_sentence(name, content, reason, tmp_path):
    if name.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    result = invoke("audit", "records", path, *COLUMNS)
    assert result.exit_code == 2, (result.stdout, result.exception)
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1


def test_parquet_columns_are_checked(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")

    path = tmp_path / "runs.parquet"
    for columns, reason in (
        ({"x": [1], "z": [1]}, "one column 'y'"),
        ({"x": [None, 1.0], "y": [1, 2]}, "number or text in every row"),
        ({"x": [[1], [2]], "y": [1, 2]}, "number or text in every row"),
    ):
        parquet.write_table(pyarrow.table(columns), path)
        result = invoke("audit", "records", path, *COLUMNS)
        assert result.exit_code == 2
        assert reason in result.stderr


def test_a_parquet_file_without_pyarrow_is_refused_with_the_way_out(
    tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    result = invoke("audit", "records", tmp_path / "runs.parquet", *COLUMNS)
    assert result.exit_code == 2
    assert "pip install 'undertow[data]'" in result.stderr


def test_a_column_cannot_be_both():
    same = ("--input-column=x", "--output-column=x", "--claim=1")
    result = invoke("audit", "records", "runs.csv", *same)
    assert (result.exit_code, "must differ" in result.stderr) == (2, True)


def survives(*words: str) -> None:
    """Check that an audit answers, or refuses in one sentence."""
    result = invoke("audit", *words, "--json")
    assert result.exit_code in (0, 2, 3), (result.stderr, result.exception)
    assert "Traceback" not in result.stderr
    if result.exit_code == 2:
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1
    else:
        assert isinstance(json.loads(result.stdout), dict)
        assert "Infinity" not in result.stdout


numbers = st.floats(allow_nan=True, allow_infinity=True) | st.floats(0.01, 20)
quick = settings(max_examples=6, suppress_health_check=[HealthCheck.too_slow])


@quick
@given(
    st.sampled_from(["grr", "sue", "oue", "ss", "blh", "olh", "she", "the"]),
    st.integers(-1, 12),
    numbers,
    numbers,
)
def test_no_level_makes_a_fault(name, categories, epsilon, claim):
    words = (f"--protocol={name}", f"--categories={categories}", "--no-baseline")
    survives(
        "ldp", *words, f"--epsilon={epsilon!r}", f"--claim={claim!r}", "--trials=99"
    )
    survives("ldp", *words, "--epsilon=1", f"--mu={claim!r}", "--trials=99")


@quick
@given(numbers, st.floats(0, 1), st.sampled_from(["replace", "add-remove", "local"]))
def test_no_claim_makes_a_fault(claim, delta, adjacency):
    words = (*GRR, "--no-baseline", "--trials=99", f"--adjacency={adjacency}")
    survives(*words, f"--claim={claim!r}", f"--delta={delta!r}")
    survives(*CAT, f"--claim={claim!r}", f"--delta={delta!r}", "--trials=200")


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=6,
)


@quick
@given(json_values, json_values, json_values, numbers)
def test_no_threat_makes_a_fault(prior, aux, loss, tolerance):
    words = (*GRR, "--no-baseline", "--trials=99", "--claim=0.5")
    survives(*words, f"--prior={json.dumps(prior)}", f"--aux={json.dumps(aux)}")
    survives(*words, f"--tolerance={tolerance!r}", f"--loss={json.dumps(loss)}")
    survives(*words, f"--tolerance={tolerance!r}", "--stop-early")


@quick
@given(st.lists(st.integers(0, 9), min_size=4, max_size=4), st.floats(0, 4), numbers)
@pytest.mark.slow
def test_no_prior_makes_a_fault(counts, tolerance, claim):
    words = (*GRR, "--no-baseline", "--trials=99", f"--claim={claim!r}")
    survives(*words, f"--prior={counts}", f"--tolerance={tolerance!r}")
    survives(*words, f"--prior={counts}", f"--aux={counts}")
    survives(*words, "--stop-early")
    survives(*CAT, f"--claim={claim!r}", "--trials=200", "--stop-early")


@quick
@given(st.lists(json_values, max_size=4), json_values)
def test_no_inputs_make_a_fault(inputs, pairs):
    few = ("--claim=1", "--trials=200")
    survives("command", "cat", f"--inputs={json.dumps(inputs)}", *few)
    survives(*CAT, f"--pairs={json.dumps(pairs)}", *few)


@quick
@given(st.text(max_size=12).filter(lambda text: "\0" not in text))
def test_no_text_makes_a_fault(text):
    survives("ldp", f"--protocol={text}", "--categories=3", "--epsilon=1")
    survives("ldp", f"--fault={text}")
    survives("callable", f"nowhere.{text}:f", "--inputs=[0, 1]", "--claim=1")
    survives("callable", f"random:{text}", "--inputs=[0, 1]", "--claim=1")
    survives("command", "cat", f"--inputs={text}", "--claim=1")
    survives(*GRR, f"--report={text}")


@quick
@given(text=st.text(max_size=60))
def test_no_file_makes_a_fault(tmp_path_factory, text):
    path = tmp_path_factory.mktemp("runs") / "runs.csv"
    path.write_text("x,y\n" + text, encoding="utf-8", errors="replace")
    survives("records", str(path), *COLUMNS)


SINGLE = [
    (name, option.opts[0])
    for name, command in typer.main.get_command(audit).commands.items()
    for option in command.params
    if option.param_type_name == "option"
    and not option.multiple
    and not (option.is_flag and not option.secondary_opts)
]


@pytest.mark.parametrize(("command", "option"), SINGLE, ids=" ".join)
def test_no_option_keeps_the_last_of_two_values_in_silence(command, option):
    words = [option] if option == "--baseline" else [option, "1"]
    again = ["--no-baseline"] if option == "--baseline" else [option, "2"]
    result = invoke("audit", command, *words, *again)
    assert result.exit_code == 2
    assert f"{option} must be given once" in result.stderr


def test_output_columns_given_one_by_one_make_one_vector(tmp_path):
    rng = np.random.default_rng(4)
    rows = ["x,y1,y2"]
    for value in (0, 1):
        for noise in np.round(rng.laplace(size=4000), 3):
            # Each column keeps a claim of 1; their difference is the input.
            rows.append(f"{value},{noise:.3f},{noise + value:.3f}")
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(rows), encoding="utf-8")
    common = ("--input-column=x", "--claim=2", "--json")
    for columns, verdict in (
        (("y1",), "not refuted"),
        (("y2",), "not refuted"),
        (("y1", "y2"), "violated"),
        (("y2", "y1"), "violated"),
    ):
        words = [word for name in columns for word in ("--output-column", name)]
        result = invoke("audit", "records", path, *common, *words)
        assert json.loads(result.stdout)["verdict"] == verdict, columns
    twice = ("--output-column=y1", "--output-column=y1")
    result = invoke("audit", "records", path, *common, *twice)
    assert (result.exit_code, "must differ, got 'y1' twice" in result.stderr) == (2, 1)
