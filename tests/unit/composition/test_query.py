"""Everyday queries priced at the value level."""

from __future__ import annotations

import pytest

import undertow as ut
from undertow.composition.release import blocks_of
from undertow.errors import MismatchError
from undertow.mechanisms import GaussianMechanism, LaplaceMechanism


def test_a_count_is_priced_by_how_far_it_moves():
    count = ut.count_release("n", LaplaceMechanism(2), cells="S")
    plan = ut.Plan(ut.Table(("N", "S")), [count])
    assert plan.loss(ut.Bounded()).loss == ut.Pure("0.5")
    assert plan.loss(ut.Unbounded()).loss == ut.Pure("0.5")
    assert plan.loss(ut.Group(ut.Unbounded(), 3)).loss == ut.Pure("1.5")


def test_a_count_of_everything_does_not_move_when_a_record_is_replaced():
    count = ut.count_release("n", LaplaceMechanism(1), cells=("N", "S"))
    plan = ut.Plan(ut.Table(("N", "S")), [count])
    assert plan.loss(ut.Bounded()).loss == ut.Pure(0)
    assert plan.loss(ut.Unbounded()).loss == ut.Pure(1)


def test_gaussian_counts_add_in_squares():
    cells = tuple(range(10))
    plan = ut.Plan(
        ut.Table(cells),
        [ut.count_release(f"n{c}", GaussianMechanism(1), cells=c) for c in cells],
    )
    assert plan.loss(ut.Bounded()).loss == ut.GDP.from_square(2)
    assert plan.loss(ut.Unbounded()).loss == ut.GDP(1)


def test_a_degree_moves_by_one_for_an_edge():
    release = ut.degree_release("d", LaplaceMechanism(10), vertex=3)
    assert release.view == ut.Degree(3)
    plan = ut.Plan(ut.Graph(5), [release])
    assert plan.loss(ut.Edge()).loss == ut.Pure("0.1")


def test_blocks_are_the_cells_times_or_vertices():
    names = [name for name, _ in blocks_of(ut.Table(("a", 2), cell="zone"))]
    assert names == ["zone a", "zone 2"]
    assert [view for _, view in blocks_of(ut.Stream(2, 2))] == [ut.At(0), ut.At(1)]
    assert [view for _, view in blocks_of(ut.Graph(2))] == [
        ut.IncidentEdges(0),
        ut.IncidentEdges(1),
    ]


@pytest.mark.parametrize("domain", [ut.Table(), ut.Rows(3)])
def test_domains_without_natural_parts_are_refused(domain):
    with pytest.raises(MismatchError, match="natural parts"):
        list(blocks_of(domain))
