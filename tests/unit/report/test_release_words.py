"""Words of a release report: limits are rounded up, sentences say what holds."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from scipy import stats

from support.release_plans import WINDOWED
from support.release_records import MARKOV, finished_record, planned_record
from undertow.report._release_section import (
    answer_words,
    checked,
    correlation_words,
    counted,
    made_facts,
    query_words,
    risk_facts,
    unchecked,
    unprotected,
    wide_note,
)
from undertow.report._release_words import (
    cost_rows,
    granularity_words,
    guess_bound,
    loss_words,
    promise_sentence,
    shown_cell,
    shown_guess,
    shown_text,
    shown_up,
)


@pytest.mark.parametrize("epsilon", [0.0, 0.01, 1.0, 3.0, 40.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.1])
def test_guesses_match_the_corner_of_the_trade_off_curve(epsilon, delta):
    # The best test has both errors at the corner a = 1 - delta - exp(epsilon) a.
    error = (1 - delta) / (1 + math.exp(epsilon))
    loss = {"epsilon": epsilon, "delta": delta}
    assert guess_bound(loss) == pytest.approx(1 - error, rel=1e-12)


def test_guesses_under_gaussian_dp_are_those_between_two_normal_laws():
    assert guess_bound({"mu": 1.5}) == pytest.approx(stats.norm.cdf(0.75), rel=1e-12)


@pytest.mark.parametrize("rho", [0.001, 0.1, 0.5, 2.0, 20.0])
def test_guesses_under_zcdp_cover_the_gaussian_mechanism(rho):
    # N(0, 1) against N(m, 1) is m^2 / 2 of zCDP.
    attained = stats.norm.cdf(math.sqrt(2 * rho) / 2)
    assert attained <= guess_bound({"rho": rho}) <= 1


@pytest.mark.parametrize("value", [0.0238095, 1 / 3, 0.1, 41.999999, 12345.678])
def test_shown_limits_are_never_below_the_limit(value):
    assert Fraction(shown_up(value)) >= Fraction(str(value))
    assert float(shown_up(value)) == pytest.approx(value, rel=1e-3)


def test_infinite_losses_are_shown_and_guessed_always():
    assert loss_words({"epsilon": "inf", "delta": 0.5}) == "ε = ∞, δ = 0.5"
    assert guess_bound({"epsilon": "inf"}) == 1
    assert shown_guess(1.0) == "100"
    assert shown_guess(0.7311) == "73.2"


def test_text_is_cut_and_tamed():
    assert shown_text("x" * 300) == "x" * 199 + "…"
    assert shown_text("é 山 😀") == "é 山 😀"
    assert shown_text("\ud800\u2028\u2067") == "⟨U+D800⟩⟨U+2028⟩⟨U+2067⟩"
    assert shown_cell(float(1234567)) == "1.23457e+06"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("event", "the data of one person in any one window of 1 hour, replaced"),
        ("w-event:24", "the data of one person in each of 24 windows of 1 hour in a"),
        ("w-event:2:single-user", "the data of one person, within 2 windows"),
        ("user:add-remove", "all data of one person, there or not"),
        ("user:max-times=4", "the data of one person in at most 4 windows, replaced"),
        ("group:3:user", "3 changes at once, each: all data of one person"),
        ("unbounded", "one row, there or not"),
        ("bounded", "one row, replaced by any other"),
        ("trajectory", "a change of the kind trajectory"),
    ],
)
def test_granularities_are_said_in_words(name, words):
    record = {"document": {"source": WINDOWED}}
    assert granularity_words(name, record).startswith(words)


def test_rows_without_a_unit_are_rows():
    record = {"document": {"source": {"unit": None, "per": "user"}}}
    assert granularity_words("user", record) == "one row, replaced by any other"


@pytest.mark.parametrize(
    ("promise", "parts"),
    [
        ({"epsilon": 1}, ["right in at most 73.2 of 100", "(ε = 1)", "all other data"]),
        ({"epsilon": 1, "delta": "0.01"}, ["73.4 of 100", "(ε = 1, δ = 0.01)"]),
        ({"mu": 1}, ["69.2 of 100", "(μ = 1)"]),
        ({"rho": "0.5"}, ["75.1 of 100", "(ρ = 0.5)"]),
        (
            {"epsilon": 1, "granularity": "user:add-remove"},
            ["whether all data of one person are in the table, yes and no being"],
        ),
    ],
)
def test_the_promise_is_one_plain_sentence(promise, parts):
    sentence = promise_sentence(planned_record(promise))
    assert all(part in sentence for part in parts), sentence
    assert sentence.endswith(".")


def test_the_promise_is_the_stated_one_and_not_its_float_rounded_up():
    record = planned_record({"epsilon": 1, "delta": "1e-6"})
    assert record["plan"]["promise"]["delta"] > Fraction(1, 10**6)
    assert "(ε = 1, δ = 0.000001)" in promise_sentence(record)


def test_a_promise_over_many_runs_is_about_all_of_them():
    promise = {"epsilon": 1, "granularity": "w-event:24"}
    record = planned_record(promise, source=WINDOWED, as_of="2026-01-01T05:00")
    runs = record["plan"]["runs"]
    assert runs > 1
    assert f"sees all {runs} runs of this release and asks" in promise_sentence(record)


def test_a_promise_of_advantage_names_the_attacker():
    record = planned_record({"advantage": "0.1"}, threat={"categories": 4})
    sentence = promise_sentence(record)
    assert "at most 10.0 percentage points more often" in sentence
    assert "among 4 records" in sentence


def test_a_promise_under_correlation_states_the_leakage_and_not_the_noise():
    record = planned_record(
        {"epsilon": 1, "granularity": "event", "correlation": MARKOV}, source=WINDOWED
    )
    assert record["plan"]["promise"]["epsilon"] < 0.6
    assert "(ε = 1), even if they know how the records" in promise_sentence(record)
    words, facts = correlation_words(record)
    assert "learns at most ε = 1 " in words
    assert f"at most {loss_words(record['plan']['costs']['event'])}." in words
    assert dict(facts)["covers"].startswith("Markov chain of 48 records")
    trusted = unchecked(record)
    assert any("chain" in text for text in trusted)
    assert all(text.endswith(".") for text in (*trusted, *checked(record)))


def test_costs_come_cheapest_first_and_no_lower_than_they_are():
    record = planned_record({"epsilon": "0.3", "granularity": "event"}, source=WINDOWED)
    rows = cost_rows(record)
    chances = [row[3] for row in rows]
    assert chances == sorted(chances)
    for name, _, cost, _, later in rows:
        shown = Fraction(cost.removeprefix("ε = "))
        least = Fraction(str(record["plan"]["costs"][name]["epsilon"]))
        # Its float is rounded up; exactly it is the promise.
        assert shown >= (Fraction(3, 10) if name == "event" else least)
        assert later == ""


def test_what_is_not_protected_and_not_checked_is_said():
    record = planned_record({"epsilon": 1})
    text = " ".join(unprotected(record))
    for part in ("at a time", "Which cells", "how long it took", "whether or not"):
        assert part in text
    assert any("Each value of person stands" in item for item in unchecked(record))
    assert any("No more than 5 rows of each person" in item for item in checked(record))
    lone = planned_record(
        {"epsilon": 1, "granularity": "event"},
        source={"table": "t.csv", "per": "event", "time": "ts"},
        bounds={},
    )
    assert any("no column says whose" in item for item in unchecked(lone))


ROWS = (
    {"source": {"table": "t.csv", "per": "user"}, "bounds": {}},
    {"source": {"table": "t.csv", "unit": "person", "per": "event"}, "bounds": {}},
)


@pytest.mark.parametrize("parts", ROWS, ids=["no unit", "per event"])
def test_rows_by_themselves_say_nothing_about_all_rows_of_a_person(parts):
    level = "user" if "unit" not in parts["source"] else "event"
    record = planned_record({"epsilon": 1, "granularity": level}, **parts)
    words, _ = correlation_words(record)
    assert "all of them together" not in words
    for text in (words, " ".join(unprotected(record))):
        assert "about somebody with several rows more can be learnt" in text
    assert "How many people" not in " ".join(unprotected(record))
    whole = planned_record({"epsilon": 1})
    assert "all of them together cost ε = 1" in correlation_words(whole)[0]
    assert "How many people are in the table: " in " ".join(unprotected(whole))
    assert "several rows" not in " ".join(unprotected(whole))


@pytest.mark.parametrize(
    ("level", "source", "size", "absence"),
    [
        ("user", None, "How many people are in the table", "user:add-remove"),
        ("event", WINDOWED, "How many people and how many wind", "user:add-remove"),
        ("bounded", {"table": "t.csv", "per": "event"}, "How many rows", "unbounded"),
    ],
)
def test_sizes_are_open_only_as_far_as_no_cost_covers_absence(
    level, source, size, absence
):
    bounds = {} if absence == "unbounded" else None
    promise = {"epsilon": 1, "granularity": level}
    record = planned_record(promise, source=source, bounds=bounds)
    (said,) = [item for item in unprotected(record) if item.startswith(size)]
    assert said.endswith(" is there or not is said above.")
    record["plan"]["costs"][absence] = {"notion": "pure", "epsilon": "inf"}
    (said,) = [item for item in unprotected(record) if item.startswith(size)]
    assert "there or not" not in said


def test_ranks_are_off_by_whole_rows_rounded_up():
    query = {"name": "q", "select": "quantile", "column": "v", "low": 0, "high": 9}
    record = planned_record({"epsilon": 1}, [query])
    asked, error = record["document"]["queries"][0], record["plan"]["queries"][0]
    words = query_words(asked, {**error, "half_width": 1746.143})
    assert "is off by at most 1,747 rows with" in words
    assert "at most 746 rows" in query_words(asked, {**error, "half_width": 746.0})


def test_noise_is_told_in_the_unit_of_its_column():
    query = {"name": "q", "select": "sum", "column": "v", "low": 0, "high": 1000}
    record = planned_record({"epsilon": "0.5"}, [query], bounds={"rows_per_unit": 1})
    asked, error = record["document"]["queries"][0], record["plan"]["queries"][0]
    words = query_words(asked, error)
    # Replacing a number between 0 and 1000 moves the sum by 1000 at most.
    assert "Discrete Laplace noise of scale 2000, drawn in steps of " in words
    assert "scale 2000 in steps" not in error["mechanism"]


def test_other_releases_are_not_said_to_be_within_the_promise():
    text = " ".join(unprotected(planned_record({"epsilon": 1})))
    assert "its budget together, which may be larger than this promise" in text


def test_what_does_not_count_is_said_before_the_numbers():
    mean = {"name": "m", "select": "mean", "column": "v", "low": 0, "high": 9}
    record = planned_record({"epsilon": 1}, [mean])
    rows, ends, intervals = counted(record)
    assert rows.startswith("Of each person count at most 5 rows, drawn by chance.")
    assert "smaller than those of the whole table" in rows
    assert "nearest end" in ends
    assert intervals.startswith("Intervals are about the noise alone")


@pytest.mark.parametrize(
    ("source", "bounds", "words"),
    [
        (WINDOWED, {"rows_per_unit": 1}, "at most 1 row in each window, drawn"),
        (
            {"table": "t.csv", "unit": "person"},
            {"groups_per_unit": 2, "rows_per_group": 3},
            "at most 2 cells of a table, and at most 3 rows in one cell, drawn",
        ),
    ],
    ids=["windows", "groups"],
)
def test_every_bound_is_said(source, bounds, words):
    query = {"name": "n", "select": "count", "by": ["z"], "keys": {"z": ["a", "b"]}}
    promise = {"epsilon": 1, "granularity": "user"}
    record = planned_record(promise, [query], source=source, bounds=bounds)
    said = counted(record)
    assert words in said[0]
    assert said[1].startswith("Rows without a key, or with one that is not listed")


def test_a_count_of_all_rows_has_no_limits_to_speak_of():
    query = {"name": "n", "select": "count"}
    record = planned_record(
        {"epsilon": 1}, [query], source={"table": "t.csv", "per": "user"}, bounds={}
    )
    assert counted(record) == ()


@pytest.mark.parametrize(
    ("rows", "notes"),
    [
        ([("a", 4, 1, 6), ("b", 4, 0, 9)], 1),
        ([("a", 4, 1, 9), ("b", 4, 0, 8)], 0),
        ([("a", None, None, None)], 0),
    ],
)
def test_an_interval_as_wide_as_the_ends_is_said_to_tell_nothing(rows, notes):
    query = {"select": "mean", "low": "0", "high": "9"}
    assert len(wide_note(query, rows)) == notes
    assert wide_note({**query, "select": "sum"}, rows) == ()


def test_errors_of_means_and_ranks_are_said_in_words():
    ends = {"column": "v", "low": 0, "high": 9}
    mean = {"name": "m", "select": "mean", **ends}
    rank = {"name": "q", "select": "quantile", **ends}
    record = planned_record({"epsilon": 1}, [mean, rank])
    asked = zip(record["document"]["queries"], record["plan"]["queries"], strict=True)
    first, second = (query_words(query, error) for query, error in asked)
    assert "divided by the number of rows of the cell, with 95 % confidence" in first
    assert "the rank of an answer is off by at most" in second


def test_the_risk_under_a_model_holds_for_what_leaks_under_it():
    promise = {"epsilon": 1, "granularity": "event", "correlation": MARKOV}
    threat = {"categories": ["a", "b"]}
    record = planned_record(promise, source=WINDOWED, threat=threat)
    assert "leaks at most ε = 1 under the" in dict(risk_facts(record))["holds for"]
    plain = dict(risk_facts(planned_record({"epsilon": 1}, threat=threat)))
    assert plain["holds for"].endswith("ε = 1 at user level")


def test_the_risk_says_with_whom_a_person_is_compared():
    threat = {"categories": ["a", "b", "c"], "prior": [6, 3, 1]}
    facts = dict(risk_facts(planned_record({"epsilon": 1}, threat=threat)))
    assert facts["right without this release"] == "at most 60 of 100 cases"
    # 1 minus the chance 0.36 + 0.09 + 0.01 that two people are alike.
    said = facts["more often right because of it"]
    assert said.endswith("who did not take part; full disclosure would give at most 54")


def test_discovered_keys_are_said_to_be_released():
    query = {"name": "zones", "select": "count", "by": ["zone"], "keys": "discover"}
    record = planned_record({"epsilon": 1, "delta": "1e-6"}, [query])
    assert any("they were discovered" in item for item in unprotected(record))
    words = query_words(record["document"]["queries"][0], record["plan"]["queries"][0])
    assert words.startswith("Count, by zone; keys are discovered. ")


@pytest.mark.parametrize(
    ("select", "words"),
    [
        ("count", "rows"),
        ("histogram", "rows"),
        ("count_distinct", "units"),
        ("mean", "mean of v"),
        ("quantile", "v"),
    ],
)
def test_axes_say_what_their_numbers_are(select, words):
    assert answer_words({"select": select, "column": "v"}) == words


def test_numbers_of_units_are_named_by_their_column():
    query = {"select": "count_distinct", "column": None}
    assert answer_words(query, unit="patient") == "different values of patient"


def test_passwords_of_the_table_are_hidden():
    record = finished_record({"epsilon": 1})
    record["document"]["source"]["table"] = "postgresql://ann:s3cret@db/city"
    facts = dict(made_facts(record))
    assert facts["table"] == "postgresql://ann:***@db/city"
