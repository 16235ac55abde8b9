"""`undertow calibrate`: numbers, keys, bad input."""

from __future__ import annotations

import json

import pytest

from support.command import invoke

KEYS = {
    "dp_epsilon",
    "noise_scale",
    "method",
    "leakage",
    "accuracy",
    "floor",
    "alternatives",
    # beside the fixed ones
    "target",
    "sensitivity",
    "theorem",
    "tight",
    "covers",
}
ACTIVITY = "[[0.882,0.118],[0.305,0.695]]"
FLATMATES = "[[0.45,0.05],[0.05,0.45]]"
# Covariance of (father, mother, child) in the 898 rows of Galton's table, inches.
GALTON = (
    "[[6.10216377,0.41981038,2.43708989],[0.41981038,5.32236537,1.66685581],"
    "[2.43708989,1.66685581,12.83730476]]"
)


def record(*words: object) -> dict:
    """Return the record of a JSON run, checking that it is one object."""
    result = invoke("calibrate", *words, "--json")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.count("\n") == 1
    return json.loads(result.stdout)


def others(found: dict) -> dict[str, dict]:
    return {other["method"]: other for other in found["alternatives"]}


@pytest.mark.parametrize(
    "words",
    [
        ("markov", "--transition", ACTIVITY, "--query", "count"),
        ("gaussian", "--correlation", 0.275, "--group", 3, "--clip", "[0, 100]"),
        ("blocks", "--group", 5),
        ("joint", "--table", FLATMATES, "--query", "sum"),
        ("pedigree", "--group", 4, "--frequency", 0.7),
    ],
)
def test_the_record_has_its_fixed_keys(words):
    found = record(*words, "--target", 1)
    assert set(found) == KEYS
    assert set(found["accuracy"]) == {"alpha", "beta", "mae"}
    assert found["leakage"] <= 1
    assert found["noise_scale"] >= found["sensitivity"] / found["dp_epsilon"]
    for other in found["alternatives"]:
        assert set(other) == {"method", "dp_epsilon", "reason"}
    assert found["covers"]["epsilon"] == found["dp_epsilon"]
    assert found["covers"]["noise_scale"] == found["noise_scale"]


@pytest.mark.parametrize(
    ("words", "family", "step"),
    [
        (("blocks", "--group", 5), "any", None),
        (("gaussian", "--correlation", 0.5, "--group", 2), "laplace", None),
        (("markov", "--transition", ACTIVITY, "--query", "count"), "laplace", 1),
    ],
)
def test_a_calibration_names_the_noise_that_it_is_about(words, family, step):
    several = ("--clip", "[0, 100]") if words[0] == "gaussian" else ()
    method = ("--method", "count", "--length", 5) if words[0] == "markov" else ()
    asked = (*words, *several, *method, "--target", 1)
    covers = record(*asked)["covers"]
    assert covers["family"] == family
    assert covers["every"] == (family == "any")
    assert covers["step"] == step
    shown = " ".join(invoke("calibrate", *asked).stdout.split())
    assert f"holds for: {covers['summary']}" in shown


def test_a_wearable_keeps_its_promise_with_noise_of_scale_four():
    words = ("--transition", ACTIVITY, "--target", 1, "--query", "count")
    found = record("markov", *words, "--length", 17568)
    assert found["dp_epsilon"] == pytest.approx(0.250326, abs=5e-7)
    assert found["noise_scale"] == pytest.approx(3.995, abs=5e-4)
    assert found["accuracy"]["alpha"] == pytest.approx(13.0, abs=5e-4)
    assert (found["method"], found["tight"]) == ("two-state", True)
    general = others(found)["general"]
    assert general["reason"] == "would need noise scale 17568"
    assert general["dp_epsilon"] == pytest.approx(1 / 17568)
    closed = others(found)["projective"]
    assert closed["dp_epsilon"] == pytest.approx(0.244685, abs=5e-7)


def test_a_method_that_cannot_reach_the_promise_is_listed_with_its_least():
    found = record("markov", "--transition", ACTIVITY, "--target", 1)
    gamma = others(found)["gamma"]
    assert gamma["dp_epsilon"] is None
    assert gamma["reason"].startswith("infeasible at or below 8.04603")


@pytest.mark.parametrize(
    ("target", "expected"), [(0.5, 0.12145010), (2, 0.50372568), (10, 4.70301926)]
)
def test_the_closed_form_by_name(target, expected):
    words = ("--transition", ACTIVITY, "--method", "projective")
    found = record("markov", *words, "--target", target)
    assert found["dp_epsilon"] == pytest.approx(expected, abs=1e-8)
    assert found["alternatives"] == []


def test_a_ratio_alone_calibrates():
    found = record("markov", "--gamma", 7.5, "--target", 1)
    assert found["dp_epsilon"] == pytest.approx(0.134701, abs=5e-7)


def test_heights_clipped_to_a_range():
    found = record("gaussian", "--covariance", GALTON, "--clip=[0,100]", "--target", 1)
    assert found["dp_epsilon"] == pytest.approx(1 / 1.468178, abs=1e-6)
    assert found["noise_scale"] == pytest.approx(146.8178, abs=1e-3)
    limited = ("--correlation", 0.275, "--group", 3, "--clip=[60,80]", "--target", 1)
    found = record("gaussian", *limited)
    assert found["dp_epsilon"] == pytest.approx(0.6451612903, abs=1e-9)
    assert found["noise_scale"] == pytest.approx(31.0)
    assert others(found)["thesis"]["dp_epsilon"] == pytest.approx(0.5395348837)
    assert others(found)["general"]["dp_epsilon"] == pytest.approx(1 / 3)


def test_households_of_five():
    found = record("blocks", "--group", 5, "--groups", 2000, "--target", 1)
    assert (found["dp_epsilon"], found["noise_scale"]) == (0.2, 5.0)
    assert found["accuracy"]["alpha"] == pytest.approx(14.978661, abs=1e-6)
    assert found["floor"] == pytest.approx(2.5)


def test_beta_sets_the_error_and_nothing_else():
    found = [
        record("blocks", "--group=5", "--target=1", f"--beta={b}") for b in (1, 0.01)
    ]
    assert [f["accuracy"]["beta"] for f in found] == [1.0, 0.01]
    assert found[0]["accuracy"]["alpha"] == 0.0
    assert found[1]["accuracy"]["alpha"] == pytest.approx(23.02585093)
    assert found[0]["noise_scale"] == found[1]["noise_scale"]


def test_the_sensitivity_of_any_mechanism_scales_the_noise():
    found = record("blocks", "--group=2", "--target=1", "--sensitivity=3")
    assert (found["noise_scale"], found["sensitivity"]) == (6.0, 3.0)


def test_the_sum_of_a_chain_has_the_range_of_its_states():
    chain = "[[0.5,0.25,0.25],[0.25,0.5,0.25],[0.25,0.25,0.5]]"
    found = record("markov", "--transition", chain, "--query=sum", "--target=1")
    assert found["sensitivity"] == 2.0
    assert found["noise_scale"] == pytest.approx(2 / found["dp_epsilon"])


def test_flatmates_by_their_joint_law():
    found = record("joint", "--table", FLATMATES, "--query=sum", "--target=1")
    assert found["dp_epsilon"] == pytest.approx(0.557867, abs=1e-6)
    assert others(found)["general"]["dp_epsilon"] == pytest.approx(0.5)


def test_the_terminal_shows_the_noise_and_says_what_it_promises():
    words = ("--transition", ACTIVITY, "--target=1", "--query=count", "--length=288")
    result = invoke("calibrate", "markov", *words)
    assert result.exit_code == 0
    assert "ε = 0.250326" in result.stdout
    assert "3.99479" in result.stdout
    assert "general" in result.stdout
    assert result.stdout.count("No mechanism that keeps the promise") == 1


BAD = [
    (("markov", "--transition", ACTIVITY, "--target", "-1"), 2, "target must be"),
    (("markov", "--transition", ACTIVITY, "--target", "0"), 2, "target must be"),
    (("markov", "--transition", ACTIVITY, "--target", "nan"), 2, "target must be"),
    (("markov", "--transition", ACTIVITY, "--target=1", "--beta=2"), 2, "beta must be"),
    (("markov", "--transition", ACTIVITY, "--target=1", "--beta=0"), 2, "beta must be"),
    (
        ("markov", "--transition", ACTIVITY, "--target=8", "--method=gamma"),
        3,
        "target must be above 8.046",
    ),
    (
        (
            "gaussian",
            "--correlation=0.3",
            "--group=3",
            "--target=1",
            "--sensitivity=-1",
        ),
        2,
        "sensitivity must be positive and finite, got -1.0",
    ),
    (
        ("markov", "--gamma=3", "--query=count", "--target=1", "--sensitivity=3"),
        2,
        "--sensitivity must be left out",
    ),
    (
        ("gaussian", "--correlation=0.5", "--group=5", "--target=1", "--method=thesis"),
        3,
        "correlation * (group - 2) must be below 1",
    ),
    (("markov", "--transition=[[1,0],[0.5,0.5]]", "--target=1"), 3, "no method"),
    (("blocks", "--group=3", "--target=1", "--method=magic"), 2, "got 'magic'"),
]


@pytest.mark.parametrize(("words", "status", "message"), BAD)
def test_bad_input_is_one_sentence(words, status, message):
    result = invoke("calibrate", *words, "--json")
    assert result.exit_code == status
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert message in result.stderr
    assert isinstance(result.exception, SystemExit)
