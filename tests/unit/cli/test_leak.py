"""`undertow leak`: numbers, keys, bad input."""

from __future__ import annotations

import json

import pytest
from hypothesis import strategies as st

from support.command import invoke, run
from support.examples import given_examples

KEYS = {
    "leakage",
    "method",
    "tight",
    "theorem",
    "witness",
    "assumptions",
    "alternatives",
    # beside the fixed ones
    "model",
    "mechanisms",
    "attackers",
    "scope",
}
ACTIVITY = "[[0.882,0.118],[0.305,0.695]]"
# Covariance of (father, mother, child) in the 898 rows of Galton's table, inches.
GALTON = (
    "[[6.10216377,0.41981038,2.43708989],[0.41981038,5.32236537,1.66685581],"
    "[2.43708989,1.66685581,12.83730476]]"
)
FLATMATES = "[[0.45,0.05],[0.05,0.45]]"
CYCLE = (
    '[{"id":"a","father":"b","mother":"c"},{"id":"b","father":"a","mother":"c"},'
    '{"id":"c"}]'
)


def record(*words: object) -> dict:
    """Return the record of a JSON run, checking that it is one object."""
    result = invoke("leak", *words, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


def others(found: dict) -> dict[str, dict]:
    return {other["method"]: other for other in found["alternatives"]}


@pytest.mark.parametrize(
    "words",
    [
        ("markov", "--transition", ACTIVITY, "--epsilon", 0.25),
        ("gaussian", "--correlation", 0.275, "--group", 3, "--epsilon", 1),
        ("blocks", "--group", 4, "--epsilon", 0.5),
        ("joint", "--table", FLATMATES, "--epsilon", 1, "--query", "sum"),
        ("pedigree", "--group", 4, "--frequency", 0.7, "--epsilon", 1),
    ],
)
def test_the_record_has_its_fixed_keys(words):
    found = record(*words)
    assert set(found) == KEYS
    for other in found["alternatives"]:
        assert set(other) == {"method", "leakage", "reason"}
    for assumption in found["assumptions"]:
        assert set(assumption) == {"text", "status"}
        assert assumption["status"] in ("checked", "assumed")
    assert found["tight"] in (True, False, None)


@pytest.mark.parametrize(
    ("epsilon", "length", "expected"),
    [(0.1, None, 0.38934370), (1, None, 3.47487338), (1, 5, 2.87765377)],
)
def test_a_two_state_chain_is_exact(epsilon, length, expected):
    words = ["markov", "--transition", ACTIVITY, "--epsilon", epsilon]
    found = record(*words, *(["--length", length] if length else []))
    assert found["leakage"] == pytest.approx(expected, abs=1e-8)
    assert (found["method"], found["tight"]) == ("two-state", True)
    assert found["witness"]["details"]["pair"]
    assert others(found)["gamma"]["leakage"] == pytest.approx(epsilon + 8.04602973)


def test_the_general_bound_of_a_chain_waits_for_a_length():
    found = record("markov", "--transition", ACTIVITY, "--epsilon", 1)
    general = others(found)["general"]
    assert general["leakage"] is None
    assert "needs a number of records" in general["reason"]


def test_a_ratio_alone_bounds_every_chain_with_it():
    found = record("markov", "--gamma", 2, "--epsilon", 1)
    assert found["leakage"] == pytest.approx(1.943520, abs=1e-6)


def test_heights_leak_by_their_largest_correlation():
    found = record("gaussian", "--correlation", 0.275, "--group", 3, "--epsilon", 1)
    assert found["leakage"] == pytest.approx(1.55, rel=1e-12)
    assert others(found)["thesis"]["leakage"] == pytest.approx(1.853448, abs=1e-6)
    assert others(found)["general"]["leakage"] == 3.0


def test_heights_leak_by_their_covariance():
    found = record("gaussian", "--covariance", GALTON, "--epsilon", 1)
    assert found["leakage"] == pytest.approx(1.468178, abs=1e-6)
    assert found["witness"]["details"]["target"] == 0
    assert "standard deviations must be equal" in others(found)["thesis"]["reason"]


def test_a_series_leaks_by_the_correlation_of_neighbours():
    found = record("gaussian", "--phi", 0.5, "--length", 5, "--epsilon", 1)
    assert found["leakage"] == pytest.approx(2.5, abs=1e-9)


def test_groups_leak_by_their_size():
    found = record("blocks", "--labels", '["a","b","a","c","a"]', "--epsilon", 0.5)
    assert (found["leakage"], found["method"]) == (1.5, "general")


@pytest.mark.parametrize(
    ("epsilon", "expected"), [(0.5, 0.8970033), (1, 1.7761366), (2, 3.4155361)]
)
def test_flatmates_leak_what_their_joint_law_says(epsilon, expected):
    found = record("joint", "--table", FLATMATES, "--epsilon", epsilon, "--query=sum")
    assert found["leakage"] == pytest.approx(expected, abs=1e-7)


def test_a_trio_leaks_by_its_frequency():
    words = ("pedigree", "--group", 3, "--frequency", 0.5, "--epsilon", 1)
    assert record(*words)["leakage"] == pytest.approx(2.2402290139, abs=1e-9)


def test_a_matrix_comes_from_a_file_as_well(tmp_path):
    file = tmp_path / "chain.json"
    file.write_text(ACTIVITY, encoding="utf-8")
    text = record("markov", "--transition", ACTIVITY, "--epsilon", 1)
    assert record("markov", "--transition", f"@{file}", "--epsilon", 1) == text


def test_a_method_by_name_has_no_alternatives():
    found = record(
        "markov", "--transition", ACTIVITY, "--epsilon=1", "--method=projective"
    )
    assert found["leakage"] == pytest.approx(3.64452906, abs=1e-8)
    assert found["alternatives"] == []


def test_published_methods_are_those_of_the_sources():
    words = ("markov", "--transition", ACTIVITY, "--epsilon=1", "--method=published")
    assert record(*words)["leakage"] == pytest.approx(9.046029726, abs=1e-9)


def test_an_infinite_leakage_is_the_word_inf():
    text = invoke("leak", "joint", "--table=[[0.5,0],[0,0.5]]", "--epsilon=1", "--json")
    assert "Infinity" not in text.stdout
    assert text.exit_code == 0


def test_the_terminal_shows_the_answer_first_and_the_scope():
    result = invoke(
        "leak", "gaussian", "--correlation=0.275", "--group=3", "--epsilon=1"
    )
    assert result.exit_code == 0
    assert result.stdout.startswith("leakage ≤ 1.55 for a release that is 1-DP\n")
    assert "both secrets in [0, 1]" in result.stdout
    assert "assumed: the records are jointly Gaussian" in result.stdout
    assert "thesis" in result.stdout


def test_brackets_in_what_is_shown_are_not_markup():
    family = '[{"id": "[bold]x"}, {"id": "[/]"}]'
    result = invoke(
        "leak", "pedigree", "--family", family, "--frequency=0.5", "--epsilon=1"
    )
    assert result.exit_code == 0
    assert result.exception is None


BAD = [
    (("markov", "--transition", "[[0.9,0.2],[0.3,0.7]]"), 2, "rows that sum to 1"),
    (("markov", "--transition", "[[1]]"), 2, "at least 2 states"),
    (("markov", "--transition", "[[0.5,0.5],[NaN,1]]"), 2, "NaN is not a number"),
    (("markov", "--transition", "[[0.5,"), 2, "transition must be JSON"),
    (("markov", "--transition", '[["0.5","0.5"],[0,1]]'), 2, "numbers only"),
    (("markov", "--transition", "@nowhere.json"), 2, "readable file, got nowhere.json"),
    (("markov", "--transition", ACTIVITY, "--method", "magic"), 2, "got 'magic'"),
    (("markov", "--transition", ACTIVITY, "--query", "median"), 2, "got 'median'"),
    (("markov", "--transition", ACTIVITY, "--initial", "[1,1]"), 2, "initial must sum"),
    (("markov", "--gamma", "0.5"), 2, "ratio must be at least 1"),
    (("markov",), 2, "one of --transition and --gamma, got neither"),
    (("gaussian", "--covariance", "[[1,2],[2,1]]"), 2, "positive definite"),
    (("gaussian", "--covariance", "[[1,0.5],[0.2,1]]"), 2, "symmetric"),
    (("gaussian", "--covariance", "[[1,NaN],[NaN,1]]"), 2, "NaN is not a number"),
    (("gaussian", "--covariance", "[1,2]"), 2, "square matrix"),
    (("gaussian", "--correlation", "nan", "--group", "3"), 2, "got nan"),
    (("gaussian", "--correlation", "1.2", "--group", "3"), 2, "got 1.2"),
    (
        ("gaussian", "--correlation", "0.4", "--group", "5", "--method", "thesis"),
        3,
        "got 1.2 for groups of 5; give the covariance",
    ),
    (
        ("gaussian", "--covariance", "[[1,1.5],[1.5,9]]", "--method", "thesis"),
        3,
        "standard deviations must be equal (Definition 6.9), got a ratio of 3",
    ),
    (("gaussian", "--phi", "1.5", "--length", "3"), 2, "phi must be in (-1, 1)"),
    (("blocks",), 2, "got neither"),
    (("joint", "--table", "[[0.5,0.6],[0,0]]"), 2, "pmf must sum to one"),
    (("joint", "--table", '{"pmf":[1],"x":2}'), 2, "got key 'x'"),
    (("pedigree", "--family", CYCLE, "--frequency", "0.5"), 2, "acyclic"),
    (("pedigree", "--group", "4", "--frequency", "1.5"), 2, "got 1.5"),
    (("pedigree", "--group", "2"), 2, "at least 3"),
]


@pytest.mark.parametrize(("words", "status", "message"), BAD)
def test_bad_input_is_one_sentence(words, status, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = invoke("leak", *words, "--epsilon", "1", "--json")
    assert result.exit_code == status
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize("epsilon", ["-1", "nan", "inf", "-inf"])
def test_an_epsilon_that_is_no_level_is_bad_input(epsilon):
    result = invoke("leak", "blocks", "--group=2", f"--epsilon={epsilon}")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "epsilon must be" in result.stderr


@pytest.mark.parametrize("words", [("--group=0", "--epsilon=1"), ("--group=2",)])
def test_usage_errors_are_one_sentence_too(words):
    result = run("leak", "blocks", *words)
    assert (result.returncode, result.stdout) == (2, b"")
    assert result.stderr.count(b"\n") == 1
    assert b"Traceback" not in result.stderr


def test_a_group_of_commands_alone_shows_its_help():
    shown = run("leak")
    assert b"pedigree" in shown.stdout + shown.stderr
    assert b"Traceback" not in shown.stderr


number = st.one_of(
    st.sampled_from([0, 1, 0.5, -1, 1e-300, 1e30, 2, 0.25]),
    st.floats(-1e9, 1e9),
    st.integers(-(10**30), 10**30),
)
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), number, st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["pmf", "values", "a"]), inner, max_size=2),
    ),
    max_leaves=8,
)


@st.composite
def nearly_stochastic(draw):
    size = draw(st.integers(1, 3))
    weight = st.sampled_from([0.0, 0.0, 1e-12, 0.1, 0.5, 1.0, 3.0])
    rows = draw(
        st.lists(
            st.lists(weight, min_size=size, max_size=size),
            min_size=size,
            max_size=size,
        )
    )
    return [[w / sum(row) for w in row] if sum(row) else row for row in rows]


@st.composite
def nearly_covariance(draw):
    size = draw(st.integers(1, 4))
    cells = st.sampled_from([-2.0, -0.5, 0.0, 0.1, 0.3, 0.9999999, 1.0, 1e-9])
    matrix = [[draw(cells) for _ in range(size)] for _ in range(size)]
    scale = draw(st.sampled_from([1e-12, 1.0, 1e9]))
    return [
        [
            scale * (matrix[min(i, j)][max(i, j)] if i != j else abs(matrix[i][i]) + 1)
            for j in range(size)
        ]
        for i in range(size)
    ]


@st.composite
def nearly_table(draw):
    shape = draw(st.sampled_from([(2,), (2, 2), (2, 3), (2, 2, 2), (1, 2)]))
    weight = st.sampled_from([0.0, 0.0, 1e-9, 0.2, 0.5, 1.0])

    def nested(depth):
        if depth == len(shape):
            return draw(weight)
        return [nested(depth + 1) for _ in range(shape[depth])]

    table = nested(0)
    total = _total(table)
    return _divided(table, total) if total else table


def _total(table):
    return sum(map(_total, table)) if isinstance(table, list) else table


def _divided(table, total):
    if isinstance(table, list):
        return [_divided(inner, total) for inner in table]
    return table / total


def survives(*words: str) -> None:
    """Check that a command answers, or refuses in one sentence."""
    for command, level in (("leak", "--epsilon=0.7"), ("calibrate", "--target=0.7")):
        result = invoke(command, *words, level, "--json")
        assert result.exit_code in (0, 2, 3), (result.stderr, result.exception)
        assert "Traceback" not in result.stderr
        if result.exit_code == 0:
            assert json.loads(result.stdout)
        else:
            assert result.stdout == ""
            assert result.stderr.count("\n") == 1


@given_examples(8, 25, st.one_of(anything, nearly_stochastic()))
def test_no_transition_makes_a_fault(value):
    survives("markov", f"--transition={json.dumps(value)}")


@given_examples(8, 25, st.one_of(anything, nearly_covariance()))
def test_no_covariance_makes_a_fault(value):
    survives("gaussian", f"--covariance={json.dumps(value)}")


@given_examples(
    8, 25, st.one_of(anything, nearly_table()), st.sampled_from(["any", "sum", "count"])
)
def test_no_table_makes_a_fault(value, query):
    survives("joint", f"--table={json.dumps(value)}", f"--query={query}")


@given_examples(8, 25, st.text(max_size=12))
def test_no_text_makes_a_fault(text):
    survives("joint", f"--table={text}")
    survives("blocks", f"--labels={text}")
    survives("pedigree", f"--family={text}", "--frequency=0.5")


people = st.fixed_dictionaries(
    {"id": st.one_of(st.integers(0, 3), anything)},
    optional={
        "father": st.one_of(st.integers(0, 3), st.none(), anything),
        "mother": st.one_of(st.integers(0, 3), st.none()),
        "age": st.just(3),
    },
)


@given_examples(8, 25, st.one_of(anything, st.lists(people, max_size=4)))
def test_no_family_makes_a_fault(value):
    survives("pedigree", f"--family={json.dumps(value)}", "--frequency=0.5")
