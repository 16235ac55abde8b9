"""Quotients of a metric by the fibres of a view, and proofs of dependency."""

import math
from fractions import Fraction

import numpy as np
import pytest

from undertow.errors import (
    AssumptionError,
    MismatchError,
    NotionMismatchError,
    UnprovedDependencyError,
)
from undertow.spaces.canonical import canonical_matrix
from undertow.spaces.domain import FiniteDomain, Graph, Rows, Table
from undertow.spaces.metric import AbsoluteDifference, Scaled, check_pseudometric
from undertow.spaces.quotient import (
    Dependency,
    Quotient,
    canonical_quotient,
    min_privacy,
    quotient_distance,
    quotient_metric,
    require_dependency,
    sub_universe_distance,
)
from undertow.spaces.unit import (
    Bounded,
    Edge,
    Edit,
    FreeLunch,
    Relation,
    Trajectory,
    Unbounded,
)
from undertow.spaces.view import Degree, Identity, Lipschitz, Select

TABLE = Table(("a", "b", "c"), values_per_cell=1, max_size=3)
LINE = np.abs(np.subtract.outer([0, 1, 11, 12], [0, 1, 11, 12]))


def test_minimum_privacy_is_the_closest_pair_of_the_fibres():
    found = min_privacy(LINE, [1, 2, 2, 3])
    assert (found[0, 3], found[0, 1], found[2, 3], found[1, 2]) == (12, 1, 1, 0)
    assert not check_pseudometric(found).holds


def test_the_closure_restores_the_triangle_inequality():
    found = quotient_metric(LINE, [1, 2, 2, 3])
    assert found[0, 3] == 2
    assert check_pseudometric(found).holds


def test_unreachable_classes_stay_at_infinite_distance():
    apart = [[0, math.inf, 1], [math.inf, 0, math.inf], [1, math.inf, 0]]
    assert quotient_metric(apart, "abc")[0, 1] == math.inf
    assert quotient_metric(apart, "aab")[0, 2] == 1
    assert quotient_metric(apart, "aba")[0, 1] == math.inf


def test_one_fibre_makes_everything_zero_and_singletons_change_nothing():
    assert not quotient_metric(LINE, "aaaa").any()
    assert (quotient_metric(LINE, "abcd") == LINE).all()
    assert (min_privacy(LINE, "abcd") == LINE).all()
    assert quotient_metric(np.zeros((0, 0)), []).shape == (0, 0)


def test_a_pseudometric_may_hold_zeros_between_different_points():
    twins = np.array([[0, 0, 3], [0, 0, 3], [3, 3, 0]])
    assert (quotient_metric(twins, "abc") == twins).all()


def test_sums_along_a_chain_are_rounded_up():
    step, points = 0.1, np.arange(5)
    chain = np.abs(np.subtract.outer(points, points)).astype(float) * 1e6
    for left in range(4):
        chain[left, left + 1] = chain[left + 1, left] = step
    # Fibres of one point each: the closure walks the four short steps.
    found = quotient_metric(chain, "abcde")[0, 4]
    assert Fraction(found) >= 4 * Fraction(step)
    assert found == pytest.approx(0.4, rel=1e-15)


def test_matrices_that_are_no_distances_are_refused():
    with pytest.raises(MismatchError, match="labels"):
        min_privacy(LINE, "abc")
    with pytest.raises(ValueError, match="symmetric"):
        min_privacy([[0, 1], [2, 0]], "ab")
    with pytest.raises(ValueError, match="diagonal"):
        quotient_metric([[1, 1], [1, 0]], "ab")
    with pytest.raises(ValueError, match="non-negative"):
        quotient_metric([[0, math.nan], [math.nan, 0]], "ab")


def test_approximate_losses_have_no_quotient():
    with pytest.raises(NotionMismatchError, match="approx"):
        quotient_metric(LINE, "abbc", notion="approx")
    for notion in ("pure", "gdp", "zcdp"):
        assert quotient_metric(LINE, "abbc", notion=notion)[0, 3] == 2


@pytest.mark.parametrize(
    ("unit", "domain", "view"),
    [
        (Bounded(), TABLE, Select("a")),
        (Bounded(), TABLE, Select("a", "b", "c")),
        (Bounded(), TABLE, Select("a", statistic="count")),
        (Unbounded(), TABLE, Select("a", "b")),
        (Edit(), TABLE, Select("b")),
        (FreeLunch(), TABLE, Select("b")),
        (Edge(), Graph(4), Degree(0)),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_contraction_agrees_with_the_closure_of_the_whole_matrix(unit, domain, view):
    listed = list(domain.databases())
    labels = [view.apply(one, domain) for one in listed]
    whole = quotient_metric(canonical_matrix(domain, unit), labels)
    index, matrix = canonical_quotient(unit, view, domain=domain)
    for i, one in enumerate(labels):
        for j, two in enumerate(labels):
            assert matrix[index[one], index[two]] == whole[i, j]


@pytest.mark.parametrize("size", [{}, {"size": 3}, {"max_size": 3}])
@pytest.mark.parametrize("unit", [Bounded(), Unbounded(), Edit()], ids=lambda u: u.name)
def test_closed_forms_of_a_selection_agree_with_contraction(unit, size):
    table = Table(("a", "b", "c"), values_per_cell=1, **(size or {"max_size": 2}))
    view = Select("a", "b")
    index, matrix = canonical_quotient(unit, view, domain=table)
    for one in table.databases():
        for two in table.databases():
            found = quotient_distance(unit, view, domain=table, first=one, second=two)
            shown = index[view.apply(one, table)], index[view.apply(two, table)]
            assert found == matrix[shown]


@pytest.mark.parametrize("unit", [Bounded(), Unbounded(), Edit()], ids=lambda u: u.name)
@pytest.mark.parametrize(
    ("table", "view"),
    [
        (
            Table(("a", "b"), multi=True, values_per_cell=1, max_size=2),
            Select("a", "b"),
        ),
        (
            Table(("a", "b", "c"), cell="x", attributes={"x": ("a", "b")}, max_size=3),
            Select("a", "b"),
        ),
        (
            Table(("a", "b", "c"), cell="x", attributes={"x": ("a", "b")}, size=3),
            Select("a"),
        ),
    ],
    ids=["overlapping cells", "cells without records", "one of two"],
)
def test_closed_forms_hold_on_unusual_tables_too(table, view, unit):
    index, matrix = canonical_quotient(unit, view, domain=table)
    for one in table.databases():
        for two in table.databases():
            found = quotient_distance(unit, view, domain=table, first=one, second=two)
            shown = index[view.apply(one, table)], index[view.apply(two, table)]
            assert found == matrix[shown]


def test_a_relation_that_borrows_a_name_borrows_no_closed_form():
    never = Relation("bounded", lambda one, two: False)
    table = Table(("a", "b"), values_per_cell=1, max_size=1)
    pair = {"first": ("a",), "second": ("b",)}
    assert quotient_distance(never, Select("a"), domain=table, **pair) == math.inf
    assert quotient_distance(Trajectory(), Select("a"), domain=table, **pair) == 1


def test_the_whole_universe_keeps_the_size_apart():
    view = Select("a", "b", "c")
    pair = {"first": ("a",), "second": ("a", "b")}
    assert quotient_distance(Bounded(), view, domain=TABLE, **pair) == math.inf


def test_a_selection_of_an_open_table_needs_no_enumeration():
    table = Table(("a", "b", "c"))
    first, second = (("a", 1), ("c", 0), ("c", 0)), (("b", 7), ("b", 7), ("c", 1))
    pair = {"first": first, "second": second}
    view = Select("a", "b")
    assert quotient_distance(Bounded(), view, domain=table, **pair) == 2
    assert quotient_distance(Unbounded(), view, domain=table, **pair) == 3
    with pytest.raises(AssumptionError, match="domain must"):
        quotient_distance(FreeLunch(), view, domain=table, **pair)


def test_a_metric_without_neighbours_is_closed_over_the_listed_points():
    points = FiniteDomain((0, 1, 11, 12))
    parity = Lipschitz(
        "group",
        {0: "a", 1: "b", 11: "b", 12: "c"}.get,
        unit_from=AbsoluteDifference(),
        unit_to=AbsoluteDifference(),
    )
    metric = Quotient(AbsoluteDifference(), parity)
    assert metric.distance(0, 12, points) == 2
    assert metric.distance(1, 11, points) == 0
    half = Quotient(Scaled(AbsoluteDifference(), "0.5"), parity)
    assert half.distance(0, 12, points) == 1


def test_databases_outside_the_domain_and_foreign_views_are_refused():
    with pytest.raises(ValueError, match="database of the table domain"):
        quotient_distance(
            Bounded(), Select("a"), domain=TABLE, first=("a",) * 9, second=()
        )
    with pytest.raises(MismatchError):
        quotient_distance(Edge(), Select("a"), domain=Graph(2), first=(), second=())
    with pytest.raises(MismatchError):
        quotient_distance(
            Edge(), Select("a", "b", "c"), domain=TABLE, first=("a",), second=()
        )


def test_the_sub_universe_distance_counts_multiplicities():
    assert sub_universe_distance("aab", "a") == 2
    assert sub_universe_distance("a", "bbc") == 3
    assert sub_universe_distance("", "") == 0


def test_a_view_that_separates_everything_changes_nothing():
    line = FiniteDomain(range(4))
    steps = Relation("line", lambda x, y: abs(x - y) == 1)
    pair = {"first": 0, "second": 3}
    assert quotient_distance(steps, Identity(), domain=line, **pair) == 3


def test_dependency_by_construction_and_by_signed_attestation_are_accepted():
    view = Select("a")
    built = Dependency(view, "construction")
    signed = Dependency(
        view, "attestation", by="R. Reviewer", statement="reads the block only"
    )
    assert require_dependency(built, view) is built
    assert require_dependency(signed, view) is signed


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"by": "R. Reviewer"},
        {"statement": "reads the block only"},
        {"by": "  ", "statement": "reads the block only"},
        {"by": "R. Reviewer", "statement": "  "},
    ],
)
def test_an_unsigned_attestation_is_refused(arguments):
    with pytest.raises(UnprovedDependencyError, match="by whom"):
        Dependency(Select("a"), "attestation", **arguments)


def test_a_mechanism_that_peeks_at_a_global_statistic_is_refused():
    with pytest.raises(UnprovedDependencyError, match="grand total"):
        Dependency(Select("a"), "construction", also_reads=("grand total",))


def test_a_statement_for_several_releases_serves_each_view_and_must_say_something():
    for_all = Dependency(None, "construction", statement="each gets its own block")
    assert require_dependency(for_all, Select("a")) is for_all
    assert require_dependency(for_all, Select("b")) is for_all
    with pytest.raises(UnprovedDependencyError, match="statement must say"):
        Dependency(None, "construction")
    with pytest.raises(UnprovedDependencyError, match="read only its view"):
        Dependency(
            None, "construction", statement="built so", also_reads=("grand total",)
        )


def test_a_missing_or_foreign_proof_is_refused():
    with pytest.raises(UnprovedDependencyError, match="got none"):
        require_dependency(None, Select("a"))
    with pytest.raises(UnprovedDependencyError, match="about cells a"):
        require_dependency(Dependency(Select("b"), "construction"), Select("a"))
    with pytest.raises(ValueError, match="kind"):
        Dependency(Select("a"), "hearsay")


def test_rows_can_be_contracted_too():
    rows = Rows(3, values=(0, 1))
    first = Lipschitz(
        "first row",
        lambda database: database[0],
        unit_from=Bounded(ordered=True),
        unit_to=AbsoluteDifference(),
    )
    index, matrix = canonical_quotient(Bounded(ordered=True), first, domain=rows)
    assert set(index) == {0, 1}
    assert matrix.tolist() == [[0, 1], [1, 0]]
