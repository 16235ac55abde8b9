"""`undertow compose`: numbers, refusals, bad input."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from importlib import resources

import pytest

from support.command import invoke, run, write_plan
from support.documents import VALID, districts, valid
from undertow.privacy import round_up

KEYS = {
    "granularity",
    "notion",
    "epsilon",
    "delta",
    "rho",
    "mu",
    "witness",
    "sequential",
    "theorems",
    "unprotected",
    "warnings",
}
HOURLY = resources.files("undertow.cli") / "plans" / "hourly.toml"


def losses(result) -> dict[str, dict]:
    """Return the reports of a JSON run by granularity, checking the one object."""
    record = json.loads(result.stdout)
    assert set(record) == {"losses"}
    assert result.stdout.count("\n") == 1
    return {report["granularity"]: report for report in record["losses"]}


def test_four_districts_cost_the_two_largest_together(tmp_path):
    path = write_plan(tmp_path, districts())
    result = invoke("compose", path, "--granularity", "bounded", "--json")
    report = losses(result)["bounded"]
    assert result.exit_code == 0
    assert set(report) >= KEYS
    assert report["epsilon"] == 1.8
    assert report["sequential"]["epsilon"] == 2.6
    assert report["unprotected"] == ["size: the number of records"]
    assert report["witness"]["summary"].count("'S'") == 1
    assert (report["delta"], report["rho"], report["mu"]) == (None, None, None)


def test_the_same_in_the_view_setting_is_refused_with_a_pair(tmp_path):
    path = write_plan(tmp_path, districts("view"))
    result = invoke("compose", path, "--granularity", "bounded", "--json")
    assert result.exit_code == 3
    assert losses(result)["bounded"]["epsilon"] == "inf"
    assert result.stderr.count("\n") == 1
    assert "{S, S, S} versus {S, S, W}" in result.stderr
    assert "common setting, where the same losses compose to" in result.stderr


def test_the_hourly_plan_has_its_published_numbers():
    result = invoke("compose", HOURLY, "--json")
    found = {name: report["epsilon"] for name, report in losses(result).items()}
    exact = {"event": "0.5", "w-event:3": "0.7", "l-trajectory:3": "1.1", "user": "3.2"}
    assert found == {name: round_up(Fraction(value)) for name, value in exact.items()}
    assert "independent" in losses(result)["event"]["warnings"][0]
    assert losses(result)["user"]["warnings"] == []


@pytest.mark.parametrize(
    "words",
    [
        ["--granularity", "event", "user", "w-event:3"],
        ["--granularity", "event", "--granularity", "user", "--granularity=w-event:3"],
        ["--granularity", "event,user,w-event:3"],
        ["--granularity", "event,user", "w-event:3"],
    ],
)
def test_granularities_come_in_a_row_repeated_or_with_commas(words):
    result = invoke("compose", HOURLY, *words, "--json")
    assert list(losses(result)) == ["event", "user", "w-event:3"]


def test_floats_are_the_exact_value_rounded_up_in_the_last_place(tmp_path):
    document = districts()
    for release, epsilon in zip(
        document["releases"], ("1/3", "1/7", "1e-9", "0.1"), strict=True
    ):
        release["loss"] = {"epsilon": epsilon}
    path = write_plan(tmp_path, document)
    report = losses(invoke("compose", path, "--granularity=bounded", "--json"))
    exact = Fraction(1, 3) + Fraction(1, 7)
    value = report["bounded"]["epsilon"]
    assert Fraction(value) >= exact
    assert Fraction(math.nextafter(value, 0)) < exact


@pytest.mark.parametrize(
    ("loss", "shown"),
    [
        ({"mu": 1}, {"notion": "gdp", "mu": 1.4142135623730951}),
        ({"rho": "0.5"}, {"notion": "zcdp", "rho": 1.0}),
        (
            {"epsilon": 1, "delta": "1e-5"},
            {"notion": "approx", "epsilon": 2.0, "delta": 2e-5},
        ),
    ],
)
def test_every_notion_is_told_in_its_own_parameters(tmp_path, loss, shown):
    document = districts()
    for release in document["releases"]:
        release["loss"] = loss
    path = write_plan(tmp_path, document)
    report = losses(invoke("compose", path, "--granularity=bounded", "--json"))
    told = {
        k: report["bounded"][k] for k in ("notion", "epsilon", "delta", "rho", "mu")
    }
    assert {k: v for k, v in told.items() if v is not None} == shown


def test_delta_converts_gaussian_losses_that_meet_approximate_ones(tmp_path):
    document = districts()
    document["releases"][0]["loss"] = {"mu": "0.1"}
    document["releases"][1]["loss"] = {"epsilon": 1, "delta": "1e-6"}
    path = write_plan(tmp_path, document)
    without = invoke("compose", path, "--granularity=bounded")
    assert without.exit_code == 2
    assert "delta must be given" in without.stderr
    given = invoke("compose", path, "--granularity=bounded", "--delta=1e-5", "--json")
    assert losses(given)["bounded"]["delta"] == pytest.approx(1.1e-5)


@pytest.mark.parametrize("name", VALID)
def test_every_document_composes_or_is_refused_in_one_sentence(tmp_path, name):
    result = invoke("compose", write_plan(tmp_path, valid(name)), "--json")
    assert result.exit_code in (0, 2, 3)
    if result.exit_code:
        assert result.stderr.count("\n") == 1
        assert "Traceback" not in result.stderr


def test_the_table_shows_names_with_brackets_as_they_are(tmp_path):
    document = districts()
    document["domain"]["cells"] = ["[/]", "[bold]", "E", "W"]
    for release, cell in zip(document["releases"], ["[/]", "[bold]"], strict=False):
        release["view"]["cell"] = cell
    path = write_plan(tmp_path, document)
    result = invoke("compose", path, "--granularity", "bounded")
    assert result.exit_code == 0
    assert "[bold]" in result.stdout


BAD = {
    "unknown top-level key": ("colour", 1),
    "unknown domain key": ("domain.colour", 1),
    "unknown release key": ("releases.0.colour", 1),
    "unknown view key": ("releases.0.view.colour", 1),
    "unknown loss key": ("releases.0.loss.colour", 1),
    "negative epsilon": ("releases.0.loss.epsilon", -0.5),
    "nan": ("releases.0.loss.epsilon", "nan"),
    "delta above one": ("releases.0.loss", {"epsilon": 1, "delta": 1.5}),
    "no such cell": ("releases.0.view.cell", "X"),
    "no releases": ("releases", []),
    "count as text": ("domain.size", "5"),
    "flag as number": ("domain.multi", 1),
    "number as flag": ("releases.0.loss.epsilon", True),
    "list as name": ("releases.0.name", ["a"]),
    "unknown unit": ("releases.0.unit", "bonded"),
    "unknown kind": ("domain.kind", "tabel"),
}


def spoil(document, path, value):
    place = document
    *way, last = path.split(".")
    for key in way:
        place = place[int(key)] if key.isdigit() else place[key]
    place[last] = value
    return document


def is_one_sentence(result, status=2):
    assert result.exit_code == status
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.rstrip()[-1] in ".?"
    assert "Traceback" not in result.stderr
    return True


@pytest.mark.parametrize(("path", "value"), BAD.values(), ids=BAD)
@pytest.mark.parametrize("json_output", [False, True])
def test_bad_plans_are_one_sentence_and_status_2(tmp_path, path, value, json_output):
    plan = write_plan(tmp_path, spoil(districts(), path, value))
    assert is_one_sentence(invoke("compose", plan, *["--json"] * json_output))


def test_a_missing_setting_is_one_sentence_that_says_why(tmp_path):
    document = districts()
    del document["releases"][2]["setting"]
    result = invoke("compose", write_plan(tmp_path, document))
    assert is_one_sentence(result)
    assert "there is no default" in result.stderr


def test_a_time_that_does_not_exist_is_one_sentence(tmp_path):
    document = valid("hours")
    document["releases"][0]["view"]["at"] = 24
    assert is_one_sentence(invoke("compose", write_plan(tmp_path, document)))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--granularity", "evnt"], "the nearest is 'event'"),
        (["--granularity", "event", "evnt"], "the nearest is 'event'"),
        (["--granularity", ""], "must be a known name"),
        (["--granularity", "event,"], "must be a known name"),
        (["--granularity", "bounded"], "domain must be of kind"),
        (["--delta", "nan"], "delta must be a number"),
        (["--delta", "2"], "delta must be at most 1"),
        (["another.toml"], "compose must be given one plan file"),
    ],
)
def test_bad_options_are_one_sentence(words, message):
    result = invoke("compose", HOURLY, *words)
    assert is_one_sentence(result)
    assert message in result.stderr


def test_vacuous_granularities_are_refused_with_status_3(tmp_path):
    document = districts()
    document["domain"]["size"] = 5
    path = write_plan(tmp_path, document)
    assert is_one_sentence(invoke("compose", path, "--granularity=unbounded"), 3)
    assert invoke("compose", path).exit_code == 0


def test_a_real_process_prints_utf8_whatever_the_locale(tmp_path):
    document = districts()
    document["releases"][1]["name"] = "Süd ☃"
    path = write_plan(tmp_path, document)
    done = run("compose", path, "--json", env={"PYTHONIOENCODING": "ascii", "PATH": ""})
    record = json.loads(done.stdout.decode("utf-8"))
    assert done.returncode == 0
    assert "Süd ☃" in record["losses"][0]["contributions"]


def test_a_real_process_refuses_with_status_3_and_one_line(tmp_path):
    path = write_plan(tmp_path, districts("view"))
    done = run("compose", path, "--granularity", "bounded", "--json")
    assert done.returncode == 3
    assert done.stderr.count(b"\n") == 1
    assert b"{S, S, S} versus {S, S, W}" in done.stderr
    json.loads(done.stdout)


def test_ten_thousand_releases_take_seconds(tmp_path):
    document = {
        "domain": {"kind": "stream", "users": 1000, "times": 10_000},
        "releases": [
            {
                "name": f"minute {at}",
                "loss": {"epsilon": "0.001"},
                "unit": "event",
                "view": {"kind": "time", "at": at},
                "setting": "view",
            }
            for at in range(10_000)
        ],
    }
    path = write_plan(tmp_path, document)
    result = invoke("compose", path, "--granularity", "w-event:3", "--json")
    assert losses(result)["w-event:3"]["epsilon"] == round_up(Fraction("0.003"))
