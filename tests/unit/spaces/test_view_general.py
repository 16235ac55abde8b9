"""The whole data, declared maps, clipping, truncation and chains."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from undertow.errors import MismatchError
from undertow.spaces.domain import Graph, Rows, Stream, Table
from undertow.spaces.metric import AbsoluteDifference, LpNorm
from undertow.spaces.sensitivity import sensitivity
from undertow.spaces.unit import (
    Bounded,
    Edge,
    Edit,
    Event,
    FreeLunch,
    Relation,
    Unbounded,
    User,
)
from undertow.spaces.view import (
    Chain,
    Clip,
    Degree,
    Identity,
    Lipschitz,
    Select,
    Truncate,
    declared_stretch,
    sensitivity_chain,
)

OWNERS = Table(("u", "v"), cell="user", values_per_cell=3, max_size=4)
VISITS = Stream(1, 4, values=("a", "b"))
TWO = Stream(2, 2, values=("a", "b"))


def _label(value):
    return getattr(value, "name", None) or value.kind


def _total(database):
    return sum(database)


total = Lipschitz(
    "sum", _total, unit_from=Bounded(), unit_to=AbsoluteDifference(), constant=5
)


def test_the_identity_shows_everything():
    assert Identity().apply((1, 2), Rows(2)) == (1, 2)
    assert Identity().image(Rows(2)) == Rows(2)
    assert Identity().stretch(Bounded(), Bounded()) == 1
    assert Identity().stretch(Bounded(), Unbounded()) == math.inf
    Identity().require_domain(Graph(2))


def test_a_declared_map_keeps_its_constant_exactly_between_its_own_units():
    half = Lipschitz(
        "mean",
        _total,
        unit_from=Bounded(),
        unit_to=AbsoluteDifference(),
        constant="1/3",
    )
    assert half.stretch(Bounded(), AbsoluteDifference()) == Fraction(1, 3)
    assert half.stretch(Unbounded(), AbsoluteDifference()) == math.inf
    assert half.image(Table((1, 2))) is None


def test_a_missing_constant_is_infinite_and_not_one():
    raw = Lipschitz("sum", _total, unit_from=Unbounded(), unit_to=AbsoluteDifference())
    assert raw.constant == math.inf
    assert declared_stretch(Select("a"), Unbounded(), Unbounded()) == math.inf


def test_arrays_and_lists_come_out_as_tuples():
    def spread(database):
        return np.array([[1.0, 2.0], [3.0, 4.0]])

    view = Lipschitz("spread", spread, unit_from=Bounded(), unit_to=LpNorm(1))
    assert view.apply((), Table((1,))) == ((1.0, 2.0), (3.0, 4.0))


def test_a_declared_map_requires_the_domain_of_its_source_unit():
    with pytest.raises(MismatchError):
        total.require_domain(Graph(3))
    total.require_domain(Table((1, 2), values_per_cell=1))
    numbers = Lipschitz(
        "double",
        lambda x: 2 * x,
        unit_from=AbsoluteDifference(),
        unit_to=AbsoluteDifference(),
        constant=2,
    )
    numbers.require_domain(Graph(3))


def test_clip_moves_numbers_and_leaves_gaps():
    assert Clip(0, 3).apply((-1, 2, 9), Rows(3)) == (0, 2, 3)
    stream = Stream(1, 2, values=(1, 9))
    assert Clip(0, 3).apply(((9, None),), stream) == ((3, None),)
    table = Table((1, 5, 9), values_per_cell=1)
    assert Clip(2, 5).apply((1, 5, 9), table) == (2, 5, 5)


@pytest.mark.parametrize(
    "domain",
    [
        Rows(2, values=(1, 5, 9)),
        Stream(1, 2, values=(1, 5, 9)),
        Table((1, 5, 9), values_per_cell=1, max_size=2),
    ],
    ids=["rows", "stream", "table"],
)
def test_the_image_of_clip_is_exactly_the_set_of_its_values(domain):
    view = Clip(2, 5)
    view.require_domain(domain)
    shown = {view.apply(one, domain) for one in domain.databases()}
    assert shown == set(view.image(domain).databases())


@pytest.mark.parametrize(
    ("unit", "domain"),
    [
        (Unbounded(), Table((1, 5, 9), values_per_cell=1, max_size=3)),
        (Bounded(), Table((1, 5, 9), values_per_cell=1, size=3)),
        (Edit(), Table((1, 5, 9), values_per_cell=1, max_size=3)),
        (Bounded(ordered=True), Rows(2, values=(1, 5, 9))),
        (Event(), Stream(1, 2, values=(1, 5, 9))),
        (User(), Stream(2, 2, values=(1, 9))),
        (FreeLunch(), Rows(2, values=(1, 5, 9))),
    ],
    ids=_label,
)
def test_clip_never_stretches_a_record_unit(unit, domain):
    view = Clip(2, 5)
    assert view.stretch(unit, unit) == 1
    assert sensitivity(view, domain, source=unit, target=unit).value <= 1


def test_clip_of_plain_numbers_never_stretches_a_norm():
    assert Clip(0, 1).stretch(LpNorm(1), LpNorm(1)) == 1
    assert Clip(0, 1).stretch(LpNorm(1), LpNorm(2)) == math.inf
    assert Clip(0, 1).stretch(Edge(), Edge()) == math.inf


def test_clip_refuses_what_is_no_number():
    with pytest.raises(TypeError, match="numbers"):
        Clip(0, 1).apply(("a",), Rows(1))
    with pytest.raises(ValueError, match="low must be at most high"):
        Clip(2, 1)
    with pytest.raises(MismatchError, match="project"):
        Clip(0, 1).require_domain(Rows(1, attributes=("x",)))
    with pytest.raises(MismatchError, match="project"):
        Clip(0, 1).require_domain(OWNERS)
    with pytest.raises(MismatchError, match="kind"):
        Clip(0, 1).require_domain(Graph(2))


def test_truncate_keeps_the_first_records_of_each_unit():
    database = OWNERS.database([("u", 2), ("u", 0), ("v", 1), ("u", 1)])
    assert Truncate(2).apply(database, OWNERS) == (("u", 0), ("u", 1), ("v", 1))
    assert Truncate(1).apply(((None, "a", "b", "a"),), VISITS) == (
        (None, "a", None, None),
    )


@pytest.mark.parametrize(
    "domain", [OWNERS, VISITS, Stream(1, 2, regular=True, values=("a", "b"))]
)
def test_truncated_databases_lie_in_the_image(domain):
    view = Truncate(1)
    view.require_domain(domain)
    shown = {view.apply(one, domain) for one in domain.databases()}
    assert shown <= set(view.image(domain).databases())


@pytest.mark.parametrize(
    ("unit", "domain"),
    [
        (Unbounded(), OWNERS),
        (Edit(), OWNERS),
        (Event(), VISITS),
        (Event(add_remove=True), VISITS),
        (User(), TWO),
        (User(add_remove=True), TWO),
    ],
    ids=_label,
)
def test_the_proved_constant_of_truncation_is_exact(unit, domain):
    view = Truncate(2 if domain is OWNERS else 1)
    found = sensitivity(view, domain, source=unit, target=unit)
    assert found.value == view.stretch(unit, unit)


def test_nothing_is_claimed_about_truncation_under_replacement():
    assert Truncate(1).stretch(Bounded(), Bounded()) == math.inf
    found = sensitivity(Truncate(1), OWNERS, source=Bounded(), target=Bounded())
    assert found.value == math.inf
    assert Truncate(1).stretch(Unbounded(), Edit()) == math.inf


def test_a_relation_that_borrows_a_name_borrows_no_constant():
    borrowed = Relation("unbounded", lambda one, two: True)
    assert Truncate(1).stretch(borrowed, borrowed) == math.inf
    assert Clip(0, 1).stretch(borrowed, borrowed) == math.inf


def test_truncate_refuses_tables_without_units_and_a_cap_of_nothing():
    with pytest.raises(MismatchError, match="exactly one cell"):
        Truncate(1).require_domain(Table(("a", "b"), multi=True))
    with pytest.raises(MismatchError, match="kind"):
        Truncate(1).require_domain(Rows(2))
    with pytest.raises(ValueError, match="positive"):
        Truncate(0)


def test_a_chain_applies_the_second_view_to_what_the_first_shows():
    table = Table((1, 5, 9), values_per_cell=1, max_size=3)
    chain = Chain(Clip(2, 5), total)
    chain.require_domain(table)
    assert chain.apply((1, 9), table) == 7
    assert chain.image(table) is None
    assert Chain(Select(1, 5), Clip(2, 5)).image(table).cells == (2, 5)


def test_a_chain_after_plain_values_passes_them_on():
    chain = Chain(Degree(0), Clip(0, 1))
    chain.require_domain(Graph(3))
    assert chain.image(Graph(3)) is None
    assert chain.apply(frozenset({(0, 1), (0, 2)}), Graph(3)) == 1


def test_a_chain_multiplies_what_its_parts_declare():
    clipped = Chain(Clip(0, 5), total)
    assert clipped.stretch(Bounded(), AbsoluteDifference()) == 5
    doubled = Chain(
        total,
        Lipschitz(
            "double",
            lambda x: 2 * x,
            unit_from=AbsoluteDifference(),
            unit_to=AbsoluteDifference(),
            constant=2,
        ),
    )
    assert doubled.stretch(Bounded(), AbsoluteDifference()) == 10
    assert Chain(Select(1), total).stretch(Bounded(), AbsoluteDifference()) == math.inf


def test_products_of_sensitivities_keep_infinity_beside_zero():
    assert sensitivity_chain(2, 3) == 6
    assert sensitivity_chain() == 1
    assert sensitivity_chain(0, "inf") == math.inf
    with pytest.raises(ValueError, match="non-negative"):
        sensitivity_chain(-1)


@pytest.mark.parametrize(
    ("view", "name"),
    [
        (Identity(), "whole data"),
        (Clip(0, 2.5), "clipped to [0, 2.5]"),
        (Truncate(3), "first 3 per unit"),
        (total, "sum"),
        (Chain(Clip(0, 1), total), "clipped to [0, 1], then sum"),
    ],
)
def test_every_view_has_a_name_hashes_and_survives_pickling(view, name):
    assert view.name == name
    assert len({view, pickle.loads(pickle.dumps(view))}) == 1
