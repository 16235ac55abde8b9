"""Which statements a report names."""

from __future__ import annotations

import pytest

import undertow as ut
from undertow.composition.plan import assumptions_of, theorems_of, warnings_of

TABLE = ut.Table(("a", "b"))


def release(view, *, unit=None, setting="common", loss=None):
    return ut.Release(
        "r",
        ut.Pure(1) if loss is None else loss,
        unit=ut.Bounded() if unit is None else unit,
        view=view,
        setting=setting,
    )


def names(*releases, target=None, notion="pure", domain=TABLE):
    target = ut.Bounded() if target is None else target
    return theorems_of(releases, target, notion=notion, domain=domain)


@pytest.mark.parametrize(
    ("notion", "view", "common"),
    [
        ("pure", "Theorem 4.1 ", "Theorem 4.10"),
        ("approx", "Theorem VI.4", "Theorem VI.7"),
        ("zcdp", "Theorem VI.13", "Theorem VI.14"),
        ("gdp", "Theorem 4.16", "Theorem 4.18"),
    ],
)
def test_each_notion_and_setting_has_its_composition_theorem(notion, view, common):
    assert view in names(release(ut.Select("a"), setting="view"), notion=notion)[0]
    assert common in names(release(ut.Select("a")), notion=notion)[0]


def test_both_settings_name_both_theorems():
    found = names(release(ut.Select("a"), setting="view"), release(ut.Select("b")))
    assert sum("Theorem 4.1" in name for name in found) == 2


def test_views_of_everything_are_sequential_composition():
    assert "thesis, Corollary 4.2" in names(release(ut.Identity()))


def test_the_two_largest_rule_is_named_only_on_disjoint_cells_at_bounded_level():
    corollary = "thesis, Corollary 4.12"
    a, b = release(ut.Select("a")), release(ut.Select("b"))
    assert corollary in names(a, b)
    assert corollary not in names(a, a)
    assert corollary not in names(a, b, target=ut.Unbounded())
    assert corollary not in names(a, release(ut.Select("b"), setting="view"))
    overlapping = ut.Table(("a", "b"), multi=True)
    assert corollary not in names(a, b, domain=overlapping)


def test_bounded_claims_reach_the_unbounded_target_by_the_sub_universe():
    found = names(release(ut.Select("a")), target=ut.Unbounded())
    assert any("Corollary A.14" in name for name in found)


def test_a_unit_other_than_the_target_needs_the_group_theorem():
    found = names(release(ut.Select("a"), unit=ut.Unbounded(), setting="view"))
    assert any("Proposition A.7" in name for name in found)


def test_common_claims_rest_on_dependency():
    view = assumptions_of([release(ut.Identity(), setting="view")], TABLE)
    common = assumptions_of([release(ut.Identity())], TABLE)
    assert set(common) - set(view) == {
        "every common-domain release reads nothing but its view"
    }


@pytest.mark.parametrize(
    ("domain", "word"),
    [
        (ut.Table(("a", "b"), multi=True, max_cells=2), "at most 2 cells"),
        (ut.Table(("a", "b"), max_size=7), "at most 7 records"),
        (ut.Graph(5, max_degree=3), "at most 3 edges"),
    ],
)
def test_declared_caps_are_told_as_assumptions(domain, word):
    assert any(word in text for text in assumptions_of([], domain))


@pytest.mark.parametrize(
    "target",
    [ut.Event(), ut.WEvent(3), ut.LTrajectory(2), ut.Edge(), ut.Attribute()],
    ids=lambda g: g.name,
)
def test_granularities_that_split_a_person_warn_of_correlation(target):
    (text,) = warnings_of(target, TABLE, no_guarantee=False)
    assert "independent" in text


@pytest.mark.parametrize("target", [ut.User(), ut.Bounded(), ut.Unbounded()])
def test_granularities_of_whole_persons_do_not_warn(target):
    assert warnings_of(target, TABLE, no_guarantee=False) == ()


def test_a_delta_of_one_is_a_warning():
    (text,) = warnings_of(ut.Bounded(), TABLE, no_guarantee=True)
    assert "delta has reached 1" in text
