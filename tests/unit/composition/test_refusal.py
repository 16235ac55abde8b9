"""The sentence of a refusal: what breaks, the pair, the way out."""

from __future__ import annotations

import pytest

import undertow as ut
from undertow.errors import InfiniteLossError


def refusal(plan, target):
    with pytest.raises(InfiniteLossError) as caught:
        plan.loss(target)
    return caught.value


def counts(cells, loss, *, unit=None, setting="view"):
    unit = ut.Bounded() if unit is None else unit
    return ut.Plan(
        ut.Table(cells),
        [
            ut.Release(c, loss, unit=unit, view=ut.Select(c), setting=setting)
            for c in cells
        ],
    )


def test_the_sentence_names_releases_change_pair_and_price_elsewhere():
    fault = refusal(counts(("S", "W"), ut.Pure("0.9")), ut.Bounded())
    text = str(fault)
    assert text.startswith("the loss at bounded level must be finite, got inf")
    assert "'S' and 'W'" in text
    assert "{S, S, S} versus {S, S, W}" in text
    assert "common setting, where the same losses compose to Pure(epsilon=1.8)" in text
    assert text.count(".") - text.count("1.8") == 1
    assert fault.source == "thesis, Example 2.16 (paper, Example II.9)"
    assert fault.witness.details["example"] == (("S", "S", "S"), ("S", "S", "W"))


def test_many_culprits_are_counted():
    plan = counts(("a", "b"), ut.Pure(0))
    for name in ("again", "and again"):
        plan.add(
            ut.Release(
                name,
                ut.Pure(0),
                unit=ut.Bounded(),
                view=ut.Select("a"),
                setting="view",
            )
        )
    text = str(refusal(plan, ut.Bounded()))
    assert "'a' and 'b' and 2 more cannot bound" in text
    assert "got inf: 'a' and 'again' and 1 more" in str(refusal(plan, ut.Unbounded()))


def test_where_no_setting_helps_another_unit_is_advised():
    plan = ut.Plan(
        ut.Table(("a", "b")),
        [
            ut.Release(
                "all", ut.Pure(1), unit=ut.Bounded(), view=ut.Identity(), setting="view"
            )
        ],
    )
    fault = refusal(plan, ut.Unbounded())
    assert "state the losses in a unit that connects such databases" in str(fault)
    assert fault.source is None


def test_a_delta_of_one_is_refused_like_an_infinite_epsilon():
    plan = counts(("a", "b"), ut.Approx(1, "0.6"), setting="common")
    assert "no guarantee" not in str(refusal(plan, ut.Bounded()))
    assert plan.loss(ut.Bounded(), on_infinite="report").loss.no_guarantee


def test_metric_units_do_not_break_the_search_for_a_way_out():
    plan = ut.Plan(
        ut.Table(("a", "b")),
        [
            ut.Release(
                "n",
                ut.Pure(1),
                unit=ut.AbsoluteDifference(),
                view=ut.Select("a", statistic="count"),
                setting="view",
            ),
            ut.Release(
                "raw",
                ut.Pure("inf"),
                unit=ut.Bounded(),
                view=ut.Select("b"),
                setting="view",
            ),
        ],
    )
    assert "'raw'" in str(refusal(plan, ut.Bounded()))


def test_databases_that_are_no_multisets_are_shown_as_they_are():
    stream = ut.Stream(2, 2, values=("a", "b"))
    plan = ut.Plan(
        stream,
        [
            ut.Release(
                "places",
                ut.Pure(1),
                unit=ut.Event(add_remove=True),
                view=ut.Locations(["a"]),
                setting="view",
            ),
            ut.Release(
                "raw", ut.Pure("inf"), unit=ut.Event(), view=ut.At(0), setting="view"
            ),
        ],
    )
    assert "'raw' cannot bound" in str(refusal(plan, ut.Event()))
