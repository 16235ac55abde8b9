"""Where a stated model is about records inside of the unit that is protected whole."""

from __future__ import annotations

from fractions import Fraction

import pytest

from support.release_plans import COUNT, WINDOWED, release_plan
from support.release_records import planned_record
from undertow.correlation import IndependentUnits
from undertow.errors import AssumptionError, PlanError
from undertow.numeric.exact import exact
from undertow.privacy import Pure
from undertow.report._release_html import release_html
from undertow.report._release_section import release_sections
from undertow.report.release import release_markdown

CHAINS = {
    "any chain": {"model": "markov", "gamma": 4},
    "one chain": {"model": "markov", "transition": [["0.9", "0.1"], ["0.2", "0.8"]]},
    # Never left, and never seen: at event level nothing bounds the leakage.
    "a frozen chain": {"model": "markov", "transition": [[1, 0], [0, 1]]},
    "a series": {"model": "gaussian", "phi": "0.9", "length": 48},
}
GROUPS = {
    "families": {"model": "blocks", "group": 3},
    "limited": {"model": "gaussian", "correlation": "0.3", "group": 4},
}
FEW = {**WINDOWED, "horizon": "1h"}


def noises(plan):
    return [query.share.noise for query in plan.queries]


@pytest.mark.parametrize("epsilon", ["1.0", "0.1", "1/3", "1e-9", "70"])
@pytest.mark.parametrize("model", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("source", [None, WINDOWED], ids=["per user", "windows"])
def test_a_model_inside_of_units_takes_no_noise_at_user_level(source, model, epsilon):
    promise = {"epsilon": epsilon, "granularity": "user"}
    queries = [COUNT, {"name": "total", "select": "count", "share": 3}]
    plain = release_plan(promise, queries, source=source)
    plan = release_plan(promise | {"correlation": model}, queries, source=source)
    assert noises(plan) == noises(plain)
    assert plan.promise.total == plain.promise.total == Pure(epsilon)
    assert plan.promise.calibration is None
    assert isinstance(plan.promise.model, IndependentUnits)
    spent = plan.costs()["user"].loss.exact_parameters()[0]
    leak = plan.leakage()
    # Read as the decimal that is shown: no lower than the exact number, and next to it.
    assert spent <= exact(leak.value) <= spent * (1 + Fraction(2, 10**15))
    assert leak.method == "whole-units"


def test_every_run_of_the_windows_is_covered():
    promise = {"epsilon": 1, "correlation": CHAINS["any chain"]}
    plan = release_plan(promise, source=WINDOWED, as_of="2026-01-01T05:00")
    assert plan.timeline.runs == 48
    assert plan.costs()["user"].loss == Pure("1/48")
    assert plan.leakage().value == 1.0


@pytest.mark.parametrize("model", CHAINS.values(), ids=CHAINS)
def test_all_that_a_unit_has_may_be_called_an_event_too(model):
    promise = {"epsilon": 1, "granularity": "event", "correlation": model}
    for source in (None, FEW):
        plan = release_plan(promise, source=source)
        assert plan.promise.total == Pure(1)
        assert plan.leakage().method == "whole-units"


@pytest.mark.parametrize("name", ["any chain", "one chain", "a series"])
def test_a_single_window_of_a_unit_is_no_whole_unit(name):
    promise = {"epsilon": 1, "granularity": "event", "correlation": CHAINS[name]}
    plan = release_plan(promise, source=WINDOWED)
    assert plan.promise.total.epsilon < 0.6
    assert plan.leakage().method != "whole-units"


@pytest.mark.parametrize("model", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("source", [None, WINDOWED], ids=["per user", "windows"])
def test_groups_are_of_units_at_user_level_and_stay_calibrated(source, model):
    plan = release_plan({"epsilon": 3, "correlation": model}, source=source)
    assert plan.promise.total.epsilon < 3
    assert plan.promise.calibration is not None
    assert plan.leakage().value <= 3
    assert plan.leakage().method != "whole-units"


def test_rows_without_a_unit_are_units_that_a_chain_would_join():
    lone = {"source": {"table": "t.csv", "time": "ts", "per": "user"}, "bounds": {}}
    promise = {"epsilon": 1, "correlation": CHAINS["any chain"]}
    with pytest.raises(AssumptionError, match=r"source\.unit must be given"):
        release_plan(promise, **lone)
    plan = release_plan({"epsilon": 1, "correlation": CHAINS["a series"]}, **lone)
    assert plan.promise.total.epsilon < 0.1
    assert plan.leakage().method != "whole-units"


def test_rows_that_are_events_are_one_chain_as_before():
    source = {"table": "t.csv", "unit": "person", "per": "event", "time": "ts"}
    promise = {"epsilon": 1, "granularity": "event", "correlation": CHAINS["one chain"]}
    plan = release_plan(promise, source=source, bounds={})
    assert plan.promise.total.epsilon < 0.6


@pytest.mark.parametrize("level", ["user:add-remove", "event:add-remove"])
def test_leakage_is_not_about_whether_a_unit_is_there(level):
    promise = {"epsilon": 1, "granularity": level, "correlation": CHAINS["any chain"]}
    with pytest.raises(AssumptionError, match="must be event or user where"):
        release_plan(promise)


def test_a_series_must_not_end_before_the_windows_do_at_user_level_either():
    short = {"model": "markov", "gamma": 2, "length": 6}
    with pytest.raises(PlanError, match="must be at least the 48 windows"):
        release_plan({"epsilon": 1, "correlation": short}, source=WINDOWED)


def write(folder, text, name="public.csv"):
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return {"model": "markov", "states": "active", "fit": str(path)}


GOOD = "active\n" + "0\n0\n1\n1\n0\n" * 20


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("steps\n1\n2\n", "states must be a column of public.csv, got 'active'"),
        ("", "states must be a column of public.csv"),
        ("active\n", "fit must hold series of at least two states"),
        ("active\n1\n1\n", "fit must hold series of at least two states"),
        ("active\n0\n0\n1\n", "each followed by another record at least once"),
        (b"active\n\xff\n", "must be a readable public table, got public.csv"),
        ("active,active\n0,1\n1,0\n", "must be a readable public table"),
        ("active\n" + "\n".join(map(str, range(201))), "with at most 200 values"),
    ],
)
def test_a_public_file_without_a_chain_is_refused_before_data_are_read(
    tmp_path, text, words
):
    correlation = write(tmp_path, text)
    with pytest.raises(PlanError) as refusal:
        release_plan({"epsilon": 1, "correlation": correlation})
    assert words in str(refusal.value)


def test_a_missing_public_file_is_refused(tmp_path):
    correlation = write(tmp_path, GOOD) | {"fit": str(tmp_path / "none.csv")}
    with pytest.raises(PlanError, match="must be a readable public table"):
        release_plan({"epsilon": 1, "correlation": correlation})


def test_missing_records_are_no_state(tmp_path):
    states = "\n".join(str(at % 200) for at in range(401))
    correlation = write(tmp_path, f"active\n\n{states}\n")
    assert release_plan({"epsilon": 1, "correlation": correlation}).leakage().value == 1


def test_a_mark_of_the_byte_order_is_no_part_of_a_name(tmp_path):
    correlation = write(tmp_path, b"\xef\xbb\xbf" + GOOD.encode())
    assert release_plan({"epsilon": 1, "correlation": correlation}).leakage().value == 1


def test_the_plan_names_theorem_and_what_is_taken_on_trust(tmp_path):
    correlation = write(tmp_path, GOOD)
    plan = release_plan({"epsilon": "0.7", "correlation": correlation})
    text = plan.__rich__()
    assert "at most 0.7, by Theorem 1 of release accounting (whole units)" in text
    assert "covers: independent units with any dependence inside of each" in text
    assert "taken on trust: units are mutually independent" in text
    record = plan.to_dict()
    assert record["promise"] == Pure("0.7").to_dict()
    assert record["calibration"] is None
    assert record["leakage"]["value"] == 0.7
    assert record["leakage"]["method"] == "whole-units"
    assert "Markov chain" in record["leakage"]["model"]


def test_the_risk_card_trusts_units_and_not_the_model_of_one():
    promise = {"epsilon": 1, "correlation": CHAINS["any chain"]}
    plan = release_plan(promise, threat={"categories": 2})
    card = plan.risk()
    # One of two values, even odds, moved by exp(1) at most: e / (1 + e) - 1/2.
    assert card.advantage == pytest.approx(0.23105857863, abs=1e-9)
    assert card.warnings[0].startswith("units are taken as independent of each other")


def test_the_report_says_that_dependence_inside_costs_nothing():
    promise = {"epsilon": 1, "correlation": CHAINS["any chain"]}
    record = planned_record(promise, source=WINDOWED)
    release = release_sections(record)
    assert release.costs.promised == "the promise."
    assert "this costs nothing more" in release.correlation.words
    assert "ε = 1 about one of them" in release.correlation.words
    assert [level.loss for level in release.correlation.levels] == ["ε = 1", "ε = 1"]
    assert any("mutually independent" in text for text in release.unchecked)
    assert any("whole units" in text for text in release.theorems)
    for page in (release_html(release), release_markdown(release)):
        assert "What people have to do with one another is not covered" in page
        assert "whole units" in page


def test_the_report_of_families_says_what_is_left_to_spend():
    record = planned_record({"epsilon": 3, "correlation": GROUPS["families"]})
    release = release_sections(record)
    assert release.costs.promised.startswith("what is left to spend")
    assert "tell more than each by itself" in release.correlation.words
