"""Reports: records, terminal and HTML forms."""

from __future__ import annotations

import io
import json
import math
import pickle

import pytest
from rich.console import Console

import undertow as ut
from undertow.composition import reports_table
from undertow.privacy import GDP, ZCDP, Approx, Pure

KEYS = {
    "granularity",
    "notion",
    "epsilon",
    "delta",
    "rho",
    "mu",
    "witness",
    "contributions",
    "sequential",
    "theorems",
    "unprotected",
    "warnings",
    "assumptions",
    "tight",
}


def plan_of(loss, *, cells=("[red]", "[/]", "c"), setting="common", unit=None):
    unit = ut.Bounded() if unit is None else unit
    return ut.Plan(
        ut.Table(cells),
        [
            ut.Release(
                f"count {c}", loss, unit=unit, view=ut.Select(c), setting=setting
            )
            for c in cells
        ],
    )


@pytest.mark.parametrize(
    ("loss", "parameters"),
    [
        (Pure(1), {"epsilon": 2.0, "delta": None, "rho": None, "mu": None}),
        (
            Approx(1, "0.01"),
            {"epsilon": 2.0, "delta": 0.02, "rho": None, "mu": None},
        ),
        (ZCDP(1), {"epsilon": None, "delta": None, "rho": 2.0, "mu": None}),
        (
            GDP(1),
            {
                "epsilon": None,
                "delta": None,
                "rho": None,
                "mu": 1.4142135623730951,
            },
        ),
    ],
    ids=lambda item: getattr(item, "notion", ""),
)
def test_the_record_holds_the_parameters_of_its_notion_only(loss, parameters):
    record = plan_of(loss).loss(ut.Bounded()).to_dict()
    assert set(record) == KEYS
    shown = {name: record[name] for name in parameters}
    assert shown == parameters
    json.dumps(record, allow_nan=False)


@pytest.mark.parametrize("loss", [Pure(0), Approx(0, 0), ZCDP(0), GDP(0)])
def test_an_infinite_loss_is_the_text_inf_and_never_nan(loss):
    plan = plan_of(loss, setting="view")
    record = plan.loss(ut.Bounded(), on_infinite="report").to_dict()
    text = json.dumps(record, allow_nan=False)
    assert '"inf"' in text
    assert "NaN" not in text
    assert record["sequential"] is not None


def test_huge_finite_budgets_are_shown_as_inf_but_stay_finite():
    report = plan_of(Pure("9e399")).loss(ut.Bounded())
    assert not report.loss.is_infinite
    assert report.to_dict()["epsilon"] == "inf"


def test_floats_are_the_exact_value_rounded_up():
    report = plan_of(Pure("1/3")).loss(ut.Bounded())
    (exact,) = report.loss.exact_parameters()
    value = report.to_dict()["epsilon"]
    assert value >= exact
    assert math.nextafter(value, 0) < exact


def test_brackets_in_names_are_no_markup():
    report = plan_of(Pure(1)).loss(ut.Bounded())
    console = Console(file=io.StringIO(), width=300)
    console.print(report)
    assert "'[red]'" in console.file.getvalue()
    assert "'[/]'" in console.file.getvalue()


def test_html_is_escaped():
    report = plan_of(Pure(1), cells=("<b>", "x")).loss(ut.Bounded())
    assert "<b>" not in report._repr_html_()
    assert "&lt;b&gt;" in report._repr_html_()


def test_a_report_survives_pickling():
    report = plan_of(Pure(1)).loss(ut.Bounded())
    assert pickle.loads(pickle.dumps(report)) == report
    assert hash(report) == hash(pickle.loads(pickle.dumps(report)))


def test_to_approx_states_gaussian_privacy_at_a_delta():
    report = plan_of(GDP(1)).loss(ut.Bounded())
    assert report.to_approx("1e-5").epsilon == pytest.approx(6.572970067, abs=1e-6)


def test_reports_side_by_side_have_one_line_each():
    plan = plan_of(Pure(1), cells=("a", "b"))
    lines = reports_table(plan.table([ut.Bounded(), ut.Unbounded()])).splitlines()
    assert [line.split()[0] for line in lines] == [
        "granularity",
        "bounded",
        "unbounded",
    ]
    assert "Pure(epsilon=2)" in lines[1]


def test_the_profile_is_told_only_where_it_says_more_than_the_loss():
    releases = [
        ut.Release(c, loss, unit=ut.Unbounded(), view=ut.Select(c), setting="view")
        for c, loss in {"a": Approx(1, 0), "b": Approx("0.1", "0.1")}.items()
    ]
    report = ut.Plan(ut.Table(("a", "b")), releases).loss(ut.Unbounded())
    assert report.loss == Approx(1, "0.1")
    pairs = [(p["epsilon"], p["delta"]) for p in report.to_dict()["profile"]]
    assert sorted(pairs) == [(0.1, 0.1), (1.0, 0.0)]
