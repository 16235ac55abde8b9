"""`undertow risk`: numbers, keys, words."""

from __future__ import annotations

import json
import math
import os
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.command import invoke
from undertow.risk.families import FAMILIES
from undertow_studies.dataset import load_adult_hours

HERE = os.environ.get("UNDERTOW_DATA")
ADVANTAGE_KEYS = {"advantage", "rero", "baseline", "exact", "method", "bounds", "tv"}
CALIBRATION_KEYS = {"epsilon", "achieved", "method", "alternatives", "covers"}
P3 = "[[0.6,0.3,0.1],[0.2,0.5,0.3],[0.1,0.2,0.7]]"
LOCAL = ("grr", "sue", "oue", "ss", "blh", "olh", "she", "the")
# What each family needs besides its parameter.
NEEDS = {
    **{name: ("--categories", 6) for name in LOCAL},
    "laplace": ("--answers", "[0,1,3,7]"),
    "gaussian": ("--answers", "[0,1,3,7]"),
    "laplace-sum": ("--range", "0:5"),
    "gaussian-sum": ("--range", "0:5"),
    "exponential": ("--scores", "[[0,1,2],[2,1,0],[1,1,1]]"),
}


def record(*words: object) -> dict:
    """Return the record of a JSON run, checking that it is one object."""
    result = invoke("risk", *words, "--json")
    assert result.exit_code == 0, (result.stderr, result.exception)
    assert result.stdout.count("\n") == 1
    assert result.stderr == ""
    return json.loads(result.stdout)


def text(*words: object) -> str:
    """Return what a person reads."""
    result = invoke("risk", *words)
    assert result.exit_code == 0, (result.stderr, result.exception)
    return result.stdout


def level_of(name: str) -> tuple[object, ...]:
    return ("--sigma", 2) if name.startswith("gaussian") else ("--epsilon", 1)


def test_the_families_of_the_library_are_those_tested_here():
    assert set(NEEDS) == set(FAMILIES)


@pytest.mark.parametrize("name", NEEDS)
def test_every_family_has_an_advantage_under_its_bounds(name):
    found = record("advantage", "--mechanism", name, *NEEDS[name], *level_of(name))
    assert set(found) >= ADVANTAGE_KEYS
    assert found["exact"]
    assert 0 < found["advantage"] <= found["ceiling"]
    assert found["baseline"] <= found["rero"] <= 1
    assert found["advantage"] <= found["tv"] <= 1
    for row in found["bounds"]:
        assert set(row) == {"name", "value", "applies", "reason"}
        assert (row["value"] is not None) == row["applies"]
        assert row["reason"]
        if row["applies"]:
            assert row["value"] >= found["advantage"] - 1e-9


@pytest.mark.parametrize("name", NEEDS)
def test_every_family_calibrates_and_keeps_its_promise(name):
    words = ("--mechanism", name, *NEEDS[name])
    found = record("calibrate", *words, "--advantage", 0.1)
    assert set(found) >= CALIBRATION_KEYS
    assert 0.05 < found["achieved"] <= 0.1
    covers = found["covers"]
    kind = next((k for k in ("laplace", "gaussian") if name.startswith(k)), None)
    assert (covers["family"], covers["noise"]) == (found["mechanism"], kind)
    shown = " ".join(text("calibrate", *words, "--advantage", 0.1).split())
    assert f"holds for: {covers['summary']}" in shown
    if name.startswith("gaussian"):
        assert found["epsilon"] is None
        level = ("--sigma", repr(found["sigma"]))
    else:
        level = ("--epsilon", repr(found["epsilon"]))
    # The protocol chooses its own whole number at a level; close, not equal.
    slack = 1.2 if found["structure"] else 1 + 1e-9
    assert record("advantage", *words, *level)["advantage"] <= 0.1 * slack


@pytest.mark.parametrize("name", NEEDS)
def test_every_family_has_a_card(name):
    words = ("--mechanism", name, *NEEDS[name], *level_of(name))
    card = record("card", *words, "--what", "answer")
    assert card["advantage"] == record("advantage", *words)["advantage"]
    assert text("card", *words, "--what", "answer").startswith(card["sentence"])


@pytest.mark.parametrize(
    ("categories", "epsilon", "shown"),
    [
        (2, 0.405465, "0.4054"),
        (100, 2.504379, "2.5043"),
        (1000, 4.720592, "4.7205"),
    ],
)
def test_randomised_response_calibrates_to_the_published_levels(
    categories, epsilon, shown
):
    words = ("--mechanism=grr", "--categories", categories, "--advantage=0.1")
    found = record("calibrate", *words)
    assert found["epsilon"] == pytest.approx(epsilon, abs=5e-7)
    share = 0.1 * categories / (categories - 1)
    by_hand = math.log((1 + share * (categories - 1)) / (1 - share))
    assert found["epsilon"] == pytest.approx(by_hand, rel=1e-9)
    assert found["epsilon"] <= by_hand
    assert text("calibrate", *words).startswith(f"ε = {shown} for GRR: ")


def best_gain(matrix, prior, *, hits, labels):
    """Return advantage and success of the best attack, over all decisions."""
    P, pi = np.array(matrix), np.array(prior)
    gain = success = 0.0
    for output, label in product(range(P.shape[1]), sorted(set(labels))):
        fibre = [x for x in range(len(pi)) if labels[x] == label]
        weights = [
            (pi[x] * (P[x, output] - pi @ P[:, output]), pi[x] * P[x, output])
            for x in fibre
        ]
        sums = [
            [sum(w[k] for w, x in zip(weights, fibre, strict=True) if row[x])]
            for k in (0, 1)
            for row in hits
        ]
        half = len(hits)
        gain += max(s[0] for s in sums[:half])
        success += max(s[0] for s in sums[half:])
    return gain, success


@st.composite
def small_threats(draw):
    size, outputs = draw(st.integers(2, 4)), draw(st.integers(1, 4))
    weight = st.integers(0, 5)
    rows = []
    for _ in range(size):
        row = draw(st.lists(weight, min_size=outputs, max_size=outputs))
        row[0] += 1
        rows.append([w / sum(row) for w in row])
    counts = draw(st.lists(weight, min_size=size, max_size=size))
    counts[-1] += 1
    labels = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    loss = draw(
        st.lists(
            st.lists(st.integers(0, 2), min_size=size, max_size=size),
            min_size=size,
            max_size=size,
        )
    )
    for x in range(size):
        loss[x][x] = 0
    return rows, counts, labels, loss


@settings(max_examples=25)
@given(small_threats(), st.integers(0, 1))
@pytest.mark.slow
def test_a_channel_is_measured_as_by_trying_every_attack(threat, tolerance):
    rows, counts, labels, loss = threat
    found = record(
        "advantage",
        "--channel",
        json.dumps(rows),
        "--prior",
        json.dumps(counts),
        "--aux",
        json.dumps(labels),
        "--loss",
        json.dumps(loss),
        "--tolerance",
        tolerance,
    )
    hits = [[error <= tolerance for error in row] for row in loss]
    prior = [count / sum(counts) for count in counts]
    gain, success = best_gain(rows, prior, hits=hits, labels=labels)
    assert found["advantage"] == pytest.approx(gain, abs=1e-9)
    assert found["rero"] == pytest.approx(success, abs=1e-9)
    far = max(np.abs(np.array(a) - np.array(b)).sum() / 2 for a in rows for b in rows)
    assert found["tv"] == pytest.approx(far, abs=1e-9)
    for row in found["bounds"]:
        assert row["value"] is None or row["value"] >= gain - 1e-9


def test_a_channel_and_the_mechanism_it_tabulates_agree():
    odds = math.exp(-1.2)
    rows = np.full((5, 5), odds)
    np.fill_diagonal(rows, 1.0)
    rows /= rows.sum(axis=1, keepdims=True)
    threat = ("--prior", "[5,4,3,2,1]", "--tolerance", 1, "--aux", "[0,0,0,1,1]")
    table = record("advantage", "--channel", json.dumps(rows.tolist()), *threat)
    named = record("advantage", "--mechanism=grr", "--epsilon=1.2", *threat)
    for key in ("advantage", "rero", "baseline", "tv"):
        assert named[key] == pytest.approx(table[key], abs=1e-9), key


def test_full_knowledge_is_membership():
    words = ("--channel", P3, "--prior", "[5,3,2]")
    assert record("advantage", *words)["advantage"] == pytest.approx(0.242, abs=1e-9)
    known = record("advantage", *words, "--aux=full")
    assert known["advantage"] == pytest.approx(0.248, abs=1e-9)
    assert (known["rero"], known["baseline"]) == (1.0, 1.0)
    same = record("advantage", *words, "--aux", '["a","b","c"]')
    assert same["advantage"] == pytest.approx(0.248, abs=1e-9)


@pytest.mark.parametrize(
    "prior",
    ["[0.5,0.3,0.2]", "[5,3,2]", '{"home":5,"work":3,"gym":2}', '{"4":5,"2":3,"9":2}'],
)
def test_a_prior_is_probabilities_counts_or_an_object(prior):
    found = record("advantage", "--channel", P3, "--prior", prior)
    assert found["advantage"] == pytest.approx(0.242, abs=1e-9)


def test_inputs_come_from_files_as_well(tmp_path):
    words = []
    for name, value in (("channel", P3), ("prior", "[5,3,2]"), ("aux", "[1,1,2]")):
        (tmp_path / f"{name}.json").write_text(value, encoding="utf-8")
        words += [f"--{name}", f"@{tmp_path / name}.json"]
    direct = ("--channel", P3, "--prior", "[5,3,2]", "--aux", "[1,1,2]")
    assert record("advantage", *words) == record("advantage", *direct)


def test_the_numbers_of_an_object_are_the_line_that_tolerance_is_on():
    prior = '{"0": 2, "10": 1, "11": 1}'
    words = ("--mechanism=grr", "--epsilon=1", "--prior", prior, "--tolerance=1")
    found = record("advantage", *words)
    loss = "[[0,10,11],[10,0,1],[11,1,0]]"
    listed = ("--prior", "[2,1,1]", "--tolerance=1", "--loss", loss)
    same = record("advantage", "--mechanism=grr", "--epsilon=1", *listed)
    assert found["advantage"] == pytest.approx(same["advantage"], abs=1e-12)
    indices = ("--prior", "[2,1,1]", "--tolerance=1")
    other = record("advantage", "--mechanism=grr", "--epsilon=1", *indices)
    assert other["advantage"] != pytest.approx(found["advantage"], abs=1e-3)


def test_an_object_may_leave_out_numbers_of_a_range():
    named = ("--prior", '{"3": 4, "1": 1, "2": 1}')
    listed = ("--prior", "[0,1,1,4,0,0]")
    words = ("--mechanism=laplace-sum", "--range=0:5", "--epsilon=2")
    found = record("advantage", *words, *named)
    assert found == record("advantage", *words, *listed)


def test_noise_is_given_by_its_own_parameter_too():
    words = ("--mechanism=laplace-sum", "--range=0:10")
    by_epsilon = record("advantage", *words, "--epsilon=2")
    by_scale = record("advantage", *words, "--scale=5")
    assert by_scale["advantage"] == pytest.approx(by_epsilon["advantage"], rel=1e-9)
    share = 10 / 11 * -math.expm1(-0.1)
    assert by_scale["advantage"] == pytest.approx(share, rel=1e-9)


def test_scores_have_the_sensitivity_that_they_show():
    words = ("--mechanism=exponential", "--scores=[[0,4],[4,0]]", "--epsilon=1")
    found = record("advantage", *words)
    assert found["advantage"] == pytest.approx(0.5 * math.tanh(0.25), abs=1e-9)
    wider = record("advantage", *words, "--sensitivity=8")
    assert wider["advantage"] == pytest.approx(0.5 * math.tanh(0.125), abs=1e-9)


def test_noise_is_calibrated_with_both_its_names():
    found = record(
        "calibrate", "--mechanism=laplace-sum", "--range=0:10", "--advantage=0.05"
    )
    assert found["scale"] >= 10 / found["epsilon"]
    assert found["scale"] == pytest.approx(10 / found["epsilon"], rel=1e-9)
    words = ("--mechanism=gaussian-sum", "--range=0:10", "--advantage=0.05")
    alone = record("calibrate", *words)
    stated = record("calibrate", *words, "--delta=1e-5")
    assert alone["epsilon"] is None
    assert stated["epsilon"] > 0
    assert stated["delta"] == 1e-5
    assert stated["sigma"] == pytest.approx(alone["sigma"], rel=1e-6)
    assert stated["sigma"] >= alone["sigma"] * (1 - 1e-12)


@pytest.mark.parametrize("target", [0.9, 0.95, 1])
def test_a_target_that_never_binds_allows_any_epsilon(target):
    words = ("--mechanism=grr", "--categories=10", f"--advantage={target}")
    found = record("calibrate", *words)
    assert found["epsilon"] == "inf"
    assert not found["binding"]
    assert "the target never binds" in found["method"]
    shown = text("calibrate", *words)
    assert shown.startswith("any ε for GRR keeps the advantage")
    assert shown.splitlines()[0].count(":") == 1
    assert found["utility"]["kind"] == "deviation"
    assert "in the limit" in found["utility"]["summary"]
    noise = record(
        "calibrate", "--mechanism=gaussian-sum", "--range=0:9", f"--advantage={target}"
    )
    assert (noise["epsilon"], noise["sigma"]) == ("inf", 0.0)


def test_a_large_epsilon_discloses_all_without_overflow():
    for name in ("grr", "laplace-sum"):
        found = record(
            "advantage", f"--mechanism={name}", "--range=0:4", "--epsilon=10000"
        )
        assert found["advantage"] == pytest.approx(0.8)
        assert found["rero"] == 1.0


def test_families_are_compared_at_equal_risk():
    words = ("--mechanisms=grr,oue,ss,olh", "--categories=3052")
    found = record("compare", *words, "--advantage=0.1")
    rows = {row["mechanism"]: row for row in found["rows"]}
    assert list(rows) == ["grr", "oue", "ss", "olh"]
    for row in rows.values():
        assert 0.09 < row["advantage"] <= 0.1
        assert row["utility"]["kind"] == "deviation"
    least = min(rows, key=lambda name: rows[name]["utility"]["value"])
    assert found["best"] == {"deviation": least}
    alone = record(
        "calibrate", "--mechanism=ss", "--categories=3052", "--advantage=0.1"
    )
    assert rows["ss"]["epsilon"] == alone["epsilon"]
    assert rows["ss"]["structure"] == alone["structure"]
    shown = text("compare", *words, "--advantage=0.1")
    assert shown.startswith(
        f"at advantage 0.1, {least.upper()} has the least deviation\n"
    )


def test_a_mechanism_that_never_reaches_the_promise_is_compared_by_its_limit():
    words = ("--mechanisms=grr,oue", "--categories=10", "--advantage=0.46")
    found = record("compare", *words)
    assert found["best"] == {"deviation": "oue"}
    first, second = found["rows"]
    assert (first["binding"], second["binding"]) == (True, False)
    assert second["utility"]["value"] == pytest.approx(math.sqrt(1e-5), rel=1e-9)
    assert second["utility"]["value"] < first["utility"]["value"]
    lines = text("compare", *words).splitlines()
    assert lines[0] == (
        "at advantage 0.46, OUE has the least deviation (any ε; in the limit 0.003163)"
    )
    assert any("any ε" in line for line in lines[1:])
    assert "deviation: standard deviation of an estimated share of 0.1 from 10000 " in (
        "\n".join(lines)
    )
    noise = ("--mechanisms=gaussian-sum", "--range=0:9", "--advantage=0.95")
    assert text("compare", *noise).startswith(
        "at advantage 0.95, gaussian-sum has the least error (any σ; in the limit 0)"
    )


def test_a_name_that_is_a_word_stands_in_capitals():
    words = ("--mechanism=the", "--categories=10", "--advantage=0.6")
    first = text("calibrate", *words).splitlines()[0]
    assert first == (
        "any ε for THE keeps the advantage within 0.6: the target never binds, as THE "
        "has at most 0.6 under this threat, whatever epsilon is"
    )


@pytest.mark.parametrize("epsilon", [22, 30, 800])
def test_hashing_needs_no_buckets_to_state_its_risk(epsilon):
    words = ("--mechanism=olh", "--categories=10", f"--epsilon={epsilon}")
    assert record("advantage", *words)["advantage"] == pytest.approx(0.45, rel=1e-8)
    assert invoke("risk", "card", *words).exit_code == 0
    many = ("--mechanisms=olh,oue", "--categories=10", f"--epsilon={epsilon}")
    rows = record("compare", *many)["rows"]
    assert rows[0]["advantage"] == pytest.approx(rows[1]["advantage"], rel=1e-8)
    assert rows[0]["method"].endswith("no utility, deployable up to epsilon 21.487")


def test_an_object_may_leave_out_categories_as_it_may_numbers_of_a_range():
    words = ("advantage", "--mechanism=grr", "--epsilon=1", "--tolerance=1")
    named = ("--prior", '{"3": 4, "1": 1}')
    found = record(*words, "--categories=6", *named)
    assert found == record(*words, "--categories=6", "--prior", "[0,1,0,4,0,0]")
    assert found["advantage"] == record(*words, "--range=0:5", *named)["advantage"]
    # Numbers that are not those of categories are names, one for each.
    other = ("--categories=2", "--prior", '{"30": 4, "10": 1}')
    assert record(*words, *other)["ceiling"] == pytest.approx(0.32)


def test_families_are_compared_at_equal_epsilon():
    words = ("--mechanisms=grr,laplace-sum,gaussian-sum", "--range=0:20")
    found = record("compare", *words, "--epsilon=1", "--delta=1e-6")
    for row in found["rows"]:
        level = ("--epsilon=1", "--range=0:20")
        if row["mechanism"] == "gaussian-sum":
            level = (*level, "--delta=1e-6")
        alone = record("advantage", "--mechanism", row["mechanism"], *level)
        assert row["advantage"] == alone["advantage"]
        assert row["epsilon"] == 1.0
    assert found["best"] == {"error": "laplace-sum", "deviation": "grr"}
    assert text("compare", *words, "--epsilon=1", "--delta=1e-6").startswith("at ε = 1")


def test_a_family_that_cannot_keep_the_promise_says_so_in_its_row():
    words = ("--mechanisms=grr,gaussian-sum", "--range=0:5", "--delta=0.1")
    found = record("compare", *words, "--advantage=0.001")
    grr, noise = found["rows"]
    assert grr["advantage"] <= 0.001
    assert (noise["advantage"], noise["epsilon"]) == (None, None)
    assert "advantage must be greater than" in noise["reason"]
    assert "must be greater" in " ".join(
        text("compare", *words, "--advantage=0.001").split()
    )


def test_a_success_that_is_not_known_has_its_reason():
    prior = json.dumps(list(range(1, 41)))
    found = record("advantage", "--mechanism=oue", "--epsilon=1", "--prior", prior)
    assert found["rero"] is None
    assert "list of all outputs" in found["rero_reason"]
    words = ("--mechanism=oue", "--epsilon=1", "--prior", prior)
    assert "– (needs a list of all outputs" in " ".join(
        text("advantage", *words).split()
    )


def test_a_total_variation_that_is_too_large_to_list_has_its_reason(tmp_path):
    file = tmp_path / "identity.json"
    file.write_text(json.dumps(np.eye(600, dtype=int).tolist()), encoding="utf-8")
    found = record("advantage", "--channel", f"@{file}")
    assert found["advantage"] == pytest.approx(1 - 1 / 600, abs=1e-9)
    assert found["tv"] is None
    assert "additions" in found["tv_reason"]
    rows = {row["name"]: row for row in found["bounds"]}
    assert not rows["total variation of the law"]["applies"]
    assert rows["total variation"]["value"] >= found["advantage"] - 1e-9


def test_a_bound_is_not_called_exact():
    labels = json.dumps([0] * 20 + [1] * 20)
    words = ("--mechanism=she", "--categories=40", "--epsilon=1", "--aux", labels)
    found = record("advantage", *words)
    assert not found["exact"]
    last = found["bounds"][-1]
    assert (last["name"], last["applies"]) == ("exact advantage", False)
    assert text("advantage", *words).startswith("advantage ≤ ")


def test_the_terminal_says_the_answer_first_then_what_is_assumed():
    shown = text("advantage", "--mechanism=grr", "--categories=100", "--epsilon=2.5")
    assert shown.startswith(
        "advantage = 0.0995721: the best attack succeeds 10.0 points more often "
        "because the person took part\n"
    )
    for words in ("total variation", "linear program", "assumed: the target is"):
        assert words in shown
    assert "0.109573" in shown


def test_brackets_in_what_is_shown_are_not_markup():
    shown = text(
        "card", "--mechanism=grr", "--categories=3", "--epsilon=1", "--what=[bold]x[/]"
    )
    assert "exact [bold]x[/] can be guessed" in shown


def test_a_card_prints_sentence_numbers_other_attackers_and_warnings():
    words = ("--mechanism=laplace-sum", "--range=0:100", "--epsilon=1", "--tolerance=5")
    shown = text("card", *words, "--what=working hours")
    assert shown.startswith("A person's working hours to within 5 can be guessed 4.8")
    for part in ("the whole record known", "a guess within 25", "note: records are"):
        assert part in shown
    found = record("card", "--channel", P3, "--prior", "[5,3,2]")
    assert found["success_with"] - found["success_without"] == pytest.approx(0.242)


@pytest.mark.data
@pytest.mark.skipif(HERE is None, reason="UNDERTOW_DATA names no folder")
def test_the_hours_of_adult_on_a_card(tmp_path):
    assert HERE is not None
    counts = load_adult_hours(Path(HERE)).counts.tolist()
    file = tmp_path / "hours.json"
    file.write_text(json.dumps(dict(enumerate(counts))), encoding="utf-8")
    words = ("--mechanism=laplace-sum", "--range=0:100", "--prior", f"@{file}")
    shown = text("card", *words, "--epsilon=4", "--what=working hours", "--tolerance=0")
    assert shown.splitlines()[0] == (
        "A person's exact working hours can be guessed 5.1 points more often because "
        "they took part."
    )
    near = record("card", *words, "--epsilon=1", "--tolerance=5")
    assert "to within 5 can be guessed" in near["sentence"]


@pytest.mark.parametrize("command", ["advantage", "calibrate", "compare", "card"])
def test_the_example_of_the_help_runs(command):
    shown = " ".join(invoke("risk", command, "--help").stdout.split())
    example = shown.split("Example: undertow risk ")[1].split("╭")[0]
    words = example.split("Usage:")[0].split("Options")[0].replace("'", "").split()
    what = words.index("--what") if "--what" in words else len(words)
    assert invoke("risk", *words[:what]).exit_code == 0
