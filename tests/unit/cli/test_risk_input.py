"""`undertow risk`: bad input is one sentence, and no input makes a fault."""

from __future__ import annotations

import json

import pytest
from hypothesis import strategies as st

from support.command import invoke, run
from support.examples import given_examples

GRR = ("advantage", "--mechanism=grr", "--epsilon=1")
THREE = (*GRR, "--categories=3")
GAUSSIAN = ("calibrate", "--mechanism=gaussian-sum", "--range=0:9")
SCORES = ("advantage", "--mechanism=exponential", "--epsilon=1")
NAMED = '{"a":1,"b":2}'

BAD = [
    (("advantage", "--channel=[[0.5,0.4],[0.5,0.5]]"), 2, "sum to 1"),
    (("advantage", "--channel=[[1.5,-0.5],[0.5,0.5]]"), 2, "least entry of -0.5"),
    (("advantage", "--channel=[[0.5,0.5],[1]]"), 2, "rows of equal length"),
    (("advantage", "--channel=[[0.5,0.5]]"), 2, "at least 2, got 1"),
    (("advantage", "--channel=[[[1]],[[1]]]"), 2, "rows of equal length"),
    (("advantage", "--channel=[[NaN,1],[0,1]]"), 2, "NaN is not a number"),
    (("advantage", "--channel=[[],[]]"), 2, "rows of equal length"),
    (("advantage", "--channel=[[1,0],[0,1]]", "--categories=3"), 2, "3 records, got 2"),
    (("advantage", "--channel=[[1,0],[0,1]]", "--epsilon=1"), 2, "left out"),
    (("advantage", "--channel=[[1,0],[0,1]]", "--mechanism=grr"), 2, "got both"),
    (("advantage",), 2, "got neither"),
    (("card", "--channel=[[1,0],[1,1]]"), 2, "sum to 1"),
    ((*THREE, "--prior=[0.5,-0.1,0.6]"), 2, "entry of -0.1"),
    ((*THREE, "--prior=[0.5,0.2,0.2]"), 2, "got a sum of 0.9"),
    ((*THREE, "--prior=[0,0,0]"), 2, "positive sum"),
    ((*THREE, "--prior=[1e999,1,1]"), 2, "sum of inf"),
    ((*THREE, "--prior=[1,2]"), 2, "each of the 3 records, got 2"),
    ((*THREE, "--prior", NAMED), 2, "each of the 3 records, got 2"),
    ((*THREE, '--prior={"0":1,"7":1}'), 2, "some of 0 to 2 alone may leave out"),
    ((*THREE, "--prior=[[1],[1],[1]]"), 2, "flat list"),
    ((*THREE, "--prior=7"), 2, "'uniform', a JSON list"),
    ((*THREE, "--prior={}"), 2, "'uniform', a JSON list"),
    ((*THREE, '--prior=["1",1,1]'), 2, "numbers only"),
    ((*THREE, "--prior=[1,"), 2, "prior must be JSON"),
    ((*THREE, "--prior=often"), 2, "prior must be JSON"),
    ((*GRR, '--prior={"1":1,"1.0":2}'), 2, "got one twice"),
    ((*GRR, '--prior={"1":1,"1e99":2}'), 2, "up to 1e+60"),
    ((*GRR, "--prior", NAMED, "--tolerance=1"), 2, "records must be finite numbers"),
    ((*GRR, "--prior=[1]"), 2, "at least 2, got 1"),
    (GRR, 2, "records must be described, got none"),
    ((*THREE, "--range=0:2"), 2, "described once, got --categories and --range"),
    ((*GRR, "--categories=1"), 2, "at least 2, got 1"),
    ((*GRR, "--categories=-3"), 2, "at least 2, got -3"),
    ((*GRR, "--categories=10000000000"), 2, "at most 100000 records"),
    ((*GRR, "--range=0:10000000000"), 2, "at most 100000 records"),
    ((*GRR, "--range=5:5"), 2, "rising whole numbers"),
    ((*GRR, "--range=0.5:2"), 2, "rising whole numbers"),
    ((*GRR, "--range=0:2", '--prior={"7":1}'), 2, "records of the range, got 7"),
    ((*THREE, "--aux=[1,2]"), 2, "label for each of the 3 records, got 2"),
    ((*THREE, "--aux=[1,2,[3]]"), 2, "aux must be 'none'"),
    ((*THREE, '--aux=[1,2,"a"]'), 2, "one kind for all records"),
    ((*THREE, "--aux=some"), 2, "aux must be JSON"),
    ((*THREE, "--tolerance=-1"), 2, "tolerance must be non-negative"),
    ((*THREE, "--tolerance=nan"), 2, "tolerance must be non-negative"),
    ((*THREE, "--tolerance=inf"), 2, "tolerance must be non-negative"),
    ((*THREE, "--loss=[[0,1],[1,0]]", "--tolerance=0"), 2, "square matrix"),
    ((*THREE, "--loss=[[0,1,1],[1,0,1]]", "--tolerance=0"), 2, "got 2 rows of 3"),
    ((*THREE, "--loss=[[0,1,1],[1,0,1],[1,1,0]]"), 2, "come with --tolerance"),
    (
        (*THREE, "--loss=[[0,-1,1],[1,0,1],[1,1,0]]", "--tolerance=0"),
        2,
        "loss must be non-negative, got -1",
    ),
    (
        (*THREE, "--loss=[[1,1,1],[1,0,1],[1,1,0]]", "--tolerance=0"),
        2,
        "a record must hit itself",
    ),
    (
        ("advantage", "--mechanism=grr", "--categories=3"),
        2,
        "given --epsilon, got none",
    ),
    (("card", "--mechanism=grr", "--categories=3"), 2, "given --epsilon, got none"),
    ((*THREE, "--scale=1"), 2, "got --epsilon and --scale"),
    ((*THREE, "--sensitivity=1"), 2, "--sensitivity must be left out"),
    ((*THREE, "--delta=0.1"), 2, "--delta must be left out"),
    (
        ("advantage", "--mechanism=magic", "--categories=3", "--epsilon=1"),
        2,
        "mechanism must be one of grr",
    ),
    (
        ("advantage", "--mechanism=grr", "--categories=9", "--epsilon=1e5"),
        2,
        "at most 10000, got 100000.0",
    ),
    (
        ("advantage", "--mechanism=olh", "--categories=9", "--epsilon=20000"),
        2,
        "epsilon must be positive and at most 10000",
    ),
    (
        ("advantage", "--mechanism=laplace", "--categories=3", "--epsilon=1"),
        2,
        "laplace must be given --answers",
    ),
    (
        ("advantage", "--mechanism=laplace", "--answers=[1,1]", "--epsilon=1"),
        2,
        "answers must differ",
    ),
    (
        ("advantage", "--mechanism=laplace", "--answers=[[0],[1]]", "--epsilon=1"),
        2,
        "one answer a record, got a table",
    ),
    (
        ("advantage", "--mechanism=laplace", "--answers=[1e308,0]", "--epsilon=1"),
        2,
        "up to 1e+60",
    ),
    (
        (
            "advantage",
            "--mechanism=laplace",
            "--answers=[0,1]",
            "--epsilon=1",
            "--sensitivity=0.5",
        ),
        3,
        "sensitivity must be at least the range 1",
    ),
    (
        ("advantage", "--mechanism=laplace-sum", "--answers=[0,1]", "--epsilon=1"),
        2,
        "laplace-sum must be given --range",
    ),
    (
        ("advantage", "--mechanism=gaussian", "--answers=[0,1]", "--epsilon=1"),
        2,
        "--epsilon without --delta",
    ),
    (
        ("advantage", "--mechanism=gaussian", "--answers=[0,1]", "--sigma=1e-99"),
        2,
        "sigma must be in [1e-60, 1e+60]",
    ),
    (
        (*SCORES, "--answers=[0,1]"),
        2,
        "a row of scores for each record",
    ),
    (
        (*SCORES, "--sensitivity=1", "--scores=[[0,3],[2,2]]"),
        3,
        "sensitivity must be at least the range 2 of a score, got 1.0",
    ),
    ((*SCORES, "--scores=[[1,2],[1,2]]"), 2, "range of the scores must be positive"),
    (
        ("calibrate", "--mechanism=grr", "--categories=3"),
        2,
        "--advantage must be given",
    ),
    (
        (*GAUSSIAN, "--advantage=1e-9", "--delta=0.1"),
        3,
        "advantage must be greater than 0.01",
    ),
    (
        (*GAUSSIAN, "--advantage=0.1", "--delta=1"),
        2,
        "delta must be in (0, 1)",
    ),
    (("compare", "--mechanisms=grr,grr", "--categories=3"), 2, "got neither"),
    (
        ("compare", "--mechanisms=grr,grr", "--categories=3", "--epsilon=1"),
        2,
        "mechanisms must differ",
    ),
    (
        ("compare", "--mechanisms=grr,", "--categories=3", "--epsilon=1"),
        2,
        "mechanism must be one of",
    ),
    (
        ("compare", "--mechanisms=grr", "--categories=3", "--epsilon=1", "--delta=0.1"),
        2,
        "--delta must be left out",
    ),
    (
        ("compare", "--mechanisms=grr", "--categories=3", "--epsilon=1", "--users=0"),
        2,
        "users must be",
    ),
]


def refused(result, status: int, message: str) -> None:
    """Check that a result is one sentence on standard error and nothing else."""
    assert result.exit_code == status, (result.stderr, result.exception)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize(("words", "status", "message"), BAD)
def test_bad_input_is_one_sentence(words, status, message):
    refused(invoke("risk", *words, "--json"), status, message)


@pytest.mark.parametrize("target", ["0", "-0.1", "1.0001", "nan", "inf", "1e-99"])
@pytest.mark.parametrize("command", ["calibrate", "compare"])
def test_a_target_that_is_no_advantage_is_bad_input(command, target):
    names = "--mechanism=grr" if command == "calibrate" else "--mechanisms=grr"
    words = (command, names, "--categories=9", f"--advantage={target}")
    refused(invoke("risk", *words), 2, "advantage must be in")


@pytest.mark.parametrize("epsilon", ["0", "-1", "nan", "inf", "-inf", "1e99"])
@pytest.mark.parametrize("name", ["grr", "laplace-sum"])
def test_an_epsilon_that_is_no_level_is_bad_input(name, epsilon):
    words = (f"--mechanism={name}", "--range=0:4", f"--epsilon={epsilon}")
    refused(invoke("risk", "advantage", *words), 2, "epsilon must be")


@pytest.mark.parametrize(
    "option", ["--prior", "--aux", "--loss", "--channel", "--answers"]
)
def test_files_that_hold_no_json_are_bad_input(option, tmp_path):
    (tmp_path / "noise.bin").write_bytes(bytes(range(256)))
    (tmp_path / "deep.json").write_text("[" * 50_000 + "]" * 50_000, encoding="utf-8")
    (tmp_path / "nested.json").write_text("[" * 200 + "]" * 200, encoding="utf-8")
    (tmp_path / "digits.json").write_text(f"[{'9' * 5000}, 1, 1]", encoding="utf-8")
    (tmp_path / "empty.json").write_text("", encoding="utf-8")
    if option == "--channel":
        words: tuple[str, ...] = ("advantage",)
    else:
        own = () if option == "--answers" else ("--categories=3",)
        words = (*GRR, *own, *(("--tolerance=0",) if option == "--loss" else ()))
    names = ("noise.bin", "deep.json", "nested.json", "digits.json", "empty.json")
    for name in (*names, "nowhere.json", "."):
        result = invoke("risk", *words, option, f"@{tmp_path / name}")
        refused(result, 2, "must")


@pytest.mark.parametrize("words", [("calibrate",), ("guess",)])
def test_usage_errors_are_one_sentence_too(words):
    result = run("risk", *words)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.count(b"\n") == 1
    assert b"Traceback" not in result.stderr


def test_a_group_of_commands_alone_shows_its_help():
    result = invoke("risk")
    assert "calibrate" in result.stdout + result.stderr
    assert not isinstance(result.exception, Exception)


number = st.one_of(
    st.sampled_from([0, 1, 0.5, -1, 1e-300, 1e30, 1e308, 2, 0.25]),
    st.floats(-1e9, 1e9),
    st.integers(-(10**30), 10**30),
)
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), number, st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["1", "2.5", "a", "-3"]) | st.text(max_size=3),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=8,
)
counts = st.one_of(
    anything,
    st.lists(st.integers(0, 9), min_size=3, max_size=3),
    st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0, 1e-300]), min_size=3, max_size=3),
    st.dictionaries(
        st.sampled_from(["0", "1", "2", "0.5", "x"]),
        st.integers(0, 9),
        min_size=3,
        max_size=3,
    ),
)
table = st.one_of(
    anything,
    st.lists(
        st.lists(st.sampled_from([0, 0.5, 1, 3, 1e-12, 1e60]), min_size=3, max_size=3),
        min_size=3,
        max_size=3,
    ),
)


def survives(*words: str) -> None:
    """Check that a command answers, or refuses in one sentence."""
    result = invoke("risk", *words, "--json")
    assert result.exit_code in (0, 2, 3), (result.stderr, result.exception)
    assert "Traceback" not in result.stderr
    if result.exit_code == 0:
        assert isinstance(json.loads(result.stdout), dict)
        assert "Infinity" not in result.stdout
    else:
        assert result.stdout == ""
        assert result.stderr.count("\n") == 1


@given_examples(4, 25, counts, st.sampled_from([None, "0", "1.5"]))
def test_no_prior_makes_a_fault(value, tolerance):
    threat = [f"--prior={json.dumps(value)}"]
    threat += [] if tolerance is None else [f"--tolerance={tolerance}"]
    survives("advantage", "--mechanism=grr", "--epsilon=1", *threat)
    survives("card", "--mechanism=laplace-sum", "--range=0:2", "--epsilon=1", *threat)
    survives("calibrate", "--mechanism=laplace", "--advantage=0.1", *threat)


@given_examples(4, 25, counts)
def test_no_labels_make_a_fault(value):
    survives(*THREE, f"--aux={json.dumps(value)}")
    words = ("calibrate", "--mechanism=ss", "--categories=3", "--advantage=0.1")
    survives(*words, f"--aux={json.dumps(value)}")


@given_examples(4, 25, table, st.sampled_from(["0", "0.5", "1e9"]))
def test_no_table_makes_a_fault(value, tolerance):
    given_text = json.dumps(value)
    survives(*THREE, f"--loss={given_text}", f"--tolerance={tolerance}")
    survives("advantage", f"--channel={given_text}")
    survives("card", f"--channel={given_text}", f"--tolerance={tolerance}")
    survives(*SCORES, f"--scores={given_text}")


@given_examples(
    4, 25, st.lists(number, max_size=4), st.sampled_from(["laplace", "gaussian"])
)
def test_no_answers_make_a_fault(value, name):
    words = (f"--mechanism={name}", f"--answers={json.dumps(value)}")
    level = "--sigma=2" if name == "gaussian" else "--epsilon=2"
    survives("advantage", *words, level)
    survives("calibrate", *words, "--advantage=0.1")


@given_examples(4, 25, st.text(max_size=12))
def test_no_text_makes_a_fault(text):
    survives(*GRR, f"--prior={text}")
    survives(*THREE, f"--aux={text}")
    survives(*GRR, f"--range={text}")
    survives("advantage", f"--mechanism={text}", "--categories=3", "--epsilon=1")
    survives("compare", f"--mechanisms={text}", "--categories=3", "--advantage=0.1")


@given_examples(
    4,
    25,
    st.sampled_from(["grr", "sue", "oue", "ss", "blh", "olh", "she", "the"]),
    st.integers(-1, 40),
    st.floats(allow_nan=True, allow_infinity=True) | st.floats(1e-6, 1.2),
)
def test_no_target_makes_a_fault(name, categories, target):
    words = (f"--mechanism={name}", f"--categories={categories}")
    survives("calibrate", *words, f"--advantage={target!r}")
    if not 100 < target < 1e4:  # slow there: exact powers of e
        survives("advantage", *words, f"--epsilon={target!r}")


@given_examples(
    4,
    25,
    st.sampled_from(["laplace-sum", "gaussian-sum"]),
    st.sampled_from(["scale", "sigma", "epsilon"]),
    st.floats(1e-65, 1e65),
    st.floats(0, 1),
)
def test_no_noise_makes_a_fault(name, option, value, delta):
    words = (f"--mechanism={name}", "--range=-2:3", f"--{option}={value!r}")
    survives("advantage", *words)
    survives("advantage", *words, f"--delta={delta!r}", "--tolerance=1")
