"""Views of tables and of identified rows."""

import math
import pickle

import numpy as np
import pytest

from undertow.errors import FalsifiedClaimError, MismatchError
from undertow.spaces.domain import FiniteDomain, Graph, Rows, Table
from undertow.spaces.metric import Euclidean
from undertow.spaces.unit import Unbounded
from undertow.spaces.view import (
    Ids,
    Nearest,
    Project,
    RandomBlock,
    RowPosition,
    Select,
    SortedPosition,
)

AREAS = Table(("N", "S", "W"), values_per_cell=1, max_size=3)
PEOPLE = Table(
    ("f", "m"),
    cell="sex",
    attributes={"age": (30, 40), "sex": ("f", "m"), "smokes": (0, 1)},
    size=2,
)
VISITS = Table(("h1", "h2", "h3"), multi=True, max_cells=2, values_per_cell=1)


def _images_lie_in_the_image(view, domain):
    image = view.image(domain)
    return {view.apply(one, domain) for one in domain.databases()} <= set(
        image.databases()
    )


def test_select_keeps_multiplicities():
    assert Select("N", "S").apply(("N", "N", "S", "W"), AREAS) == ("N", "N", "S")
    assert Select("N", statistic="count").apply(("N", "N", "S"), AREAS) == 2
    assert Select("W").apply(("N",), AREAS) == ()
    assert Select("W", statistic="count").apply(("N",), AREAS) == 0


def test_select_reads_the_cell_from_the_attribute_that_decides_it():
    database = PEOPLE.database([(30, "f", 0), (40, "m", 1)])
    assert Select("m").apply(database, PEOPLE) == ((40, "m", 1),)
    assert Select("m").image(PEOPLE).attributes[1] == ("sex", ("m",))


def test_select_with_overlapping_cells_keeps_records_that_meet_the_selection():
    both, one, none = frozenset({"h1", "h2"}), frozenset({"h3"}), frozenset()
    database = VISITS.database([both, one, none])
    assert set(Select("h2", "h3").apply(database, VISITS)) == {both, one}
    assert Select("h1").apply((none,), VISITS) == ()


def test_the_image_of_a_selection_is_exactly_the_set_of_its_values():
    for view in (Select("N"), Select("N", "S"), Select("N", "S", "W")):
        shown = {view.apply(one, AREAS) for one in AREAS.databases()}
        assert shown == set(view.image(AREAS).databases())
    fixed = Table(("N", "S"), values_per_cell=2, size=3)
    shown = {Select("S").apply(one, fixed) for one in fixed.databases()}
    assert shown == set(Select("S").image(fixed).databases())
    assert Select("N", "S").image(fixed) == fixed


def test_the_image_of_an_overlapping_selection_holds_its_values():
    visits = Table(("h1", "h2"), multi=True, values_per_cell=1, max_size=2)
    assert _images_lie_in_the_image(Select("h1"), visits)
    assert not Select("h1", "h2").covers(visits)  # a record may lie in no cell


def test_a_count_has_no_image_and_covering_selections_say_so():
    assert Select("N", statistic="count").image(AREAS) is None
    assert Select("N", "S", "W").covers(AREAS)
    assert not Select("N").covers(AREAS)


def test_a_selection_covers_when_only_cells_without_records_are_left_out():
    table = Table(
        ("a", "b", "c"), cell="x", attributes={"x": ("a", "b"), "y": (0, 1)}, size=2
    )
    assert Select("a", "b").covers(table)
    assert not Select("a").covers(table)
    shown = {Select("a").apply(one, table) for one in table.databases()}
    assert shown == set(Select("a").image(table).databases())
    both = Select("a", "b")
    assert {both.apply(d, table) for d in table.databases()} == set(
        both.image(table).databases()
    )


def test_select_refuses_unknown_cells_other_domains_and_unknown_statistics():
    with pytest.raises(ValueError, match="got X"):
        Select("X").require_domain(AREAS)
    with pytest.raises(MismatchError, match="kind table"):
        Select("X").require_domain(Graph(3))
    with pytest.raises(ValueError, match="statistic"):
        Select("N", statistic="sum")
    with pytest.raises(ValueError, match="at least one cell"):
        Select()


def test_project_keeps_columns_in_the_order_of_the_domain():
    database = PEOPLE.database([(30, "f", 0), (40, "m", 1)])
    assert Project("smokes", "age").apply(database, PEOPLE) == ((30, 0), (40, 1))
    assert Project("age").apply(database, PEOPLE) == ((30,), (40,))


def test_projected_records_come_out_in_canonical_order():
    database = PEOPLE.database([(30, "m", 1), (40, "f", 0)])
    shown = Project("sex").apply(database, PEOPLE)
    assert shown == Table.database(shown) == (("f",), ("m",))


@pytest.mark.parametrize("columns", [("age",), ("sex",), ("age", "sex", "smokes")])
def test_the_image_of_a_projection_is_exactly_the_set_of_its_values(columns):
    view = Project(*columns)
    shown = {view.apply(one, PEOPLE) for one in PEOPLE.databases()}
    assert shown == set(view.image(PEOPLE).databases())


def test_project_leaves_absent_rows_absent():
    rows = Rows(2, attributes={"x": (0, 1), "y": (0, 1)}, free_ids=True)
    assert Project("y").apply(((0, 1), None), rows) == ((1,), None)
    assert _images_lie_in_the_image(Project("y"), rows)


def test_project_refuses_unknown_and_repeated_columns():
    with pytest.raises(ValueError, match="got height"):
        Project("height").require_domain(PEOPLE)
    with pytest.raises(ValueError, match="different columns"):
        Project("age", "age")
    with pytest.raises(MismatchError, match="table or rows"):
        Project("age").require_domain(Graph(2))


def test_ids_pick_rows_in_the_order_of_the_domain():
    rows = Rows(("u", "v", "w"), values=(0, 1))
    assert Ids(["w", "u"]).apply((0, 1, 1), rows) == (0, 1)
    assert Ids(["w", "u"]).image(rows).ids == ("u", "w")
    assert _images_lie_in_the_image(Ids(["w", "u"]), rows)
    with pytest.raises(ValueError, match="got x"):
        Ids(["x"]).require_domain(rows)
    with pytest.raises(ValueError, match="at least one"):
        Ids([])
    with pytest.raises(MismatchError):
        Ids([0]).require_domain(AREAS)


def test_random_blocks_partition_the_ids_and_do_not_depend_on_the_process():
    rows = Rows(200)
    blocks = [RandomBlock(block, 4, "salt") for block in range(4)]
    shown = [view.apply(tuple(range(200)), rows) for view in blocks]
    assert sorted(sum(shown, ())) == list(range(200))
    assert all(20 < len(one) < 80 for one in shown)
    # BLAKE2b(b"4:salt:0") taken modulo 4; a change here would move stored data.
    assert [key for key in range(12) if blocks[0].holds(key)] == _first_block()


def _first_block():
    import hashlib

    found = []
    for key in range(12):
        digest = hashlib.blake2b(f"4:salt:{key}".encode(), digest_size=16).digest()
        if int.from_bytes(digest, "big") % 4 == 0:
            found.append(key)
    return found


def test_another_salt_is_another_assignment():
    rows, data = Rows(200), tuple(range(200))
    assert RandomBlock(0, 4, "a").apply(data, rows) != RandomBlock(0, 4, "b").apply(
        data, rows
    )


def test_the_image_of_a_random_block_holds_its_values():
    rows = Rows(5, values=(0, 1))
    for block in range(8):  # more blocks than ids: some are empty
        assert _images_lie_in_the_image(RandomBlock(block, 8, "s"), rows)
    with pytest.raises(MismatchError):
        RandomBlock(0, 2, "s").require_domain(AREAS)


def test_equal_ids_fall_into_the_same_block():
    for block in range(3):
        view = RandomBlock(block, 3, "s")
        assert view.holds(5) == view.holds(np.int64(5))
        assert view.holds(frozenset("abcdef")) == view.holds(frozenset("fedcba"))


def test_row_positions_count_present_rows_only():
    rows = Rows(4, values=(1, 3, 5, 8), free_ids=True)
    shown = [RowPosition(block, 2).apply((5, None, 8, 1), rows) for block in (0, 1)]
    assert shown == [(5, 1), (8, None)]
    for block in (0, 1):
        assert _images_lie_in_the_image(RowPosition(block, 2), rows)


def test_sorted_positions_do_not_depend_on_the_order_of_rows():
    rows = Rows(3, values=(1, 2, 3))
    for block in range(2):
        view = SortedPosition(block, 2)
        assert view.apply((3, 1, 2), rows) == view.apply((1, 2, 3), rows)
        assert _images_lie_in_the_image(view, rows)


@pytest.mark.parametrize(
    "table",
    [
        Table(("a", "b"), values_per_cell=1, size=3),
        Table(("a", "b"), values_per_cell=1, max_size=3),
    ],
    ids=["fixed", "capped"],
)
def test_sorted_positions_of_a_table_lie_in_their_image(table):
    for block in range(2):
        assert _images_lie_in_the_image(SortedPosition(block, 2), table)
    assert SortedPosition(0, 2).image(Table(("a", "b"))) == Table(("a", "b"))


def test_positions_of_listed_rows_have_no_image():
    listed = FiniteDomain([(5, 3, 8, 1), (3, 8, 1)])
    assert RowPosition(0, 4).apply((5, 3, 8, 1), listed) == (5,)
    assert RowPosition(3, 4).apply((3, 8, 1), listed) == ()
    assert RowPosition(0, 4).image(listed) is None
    assert SortedPosition(0, 4).image(listed) is None


@pytest.mark.parametrize("view", [RowPosition, SortedPosition])
def test_positions_refuse_a_block_outside_and_other_domains(view):
    with pytest.raises(ValueError, match="block 2 of 2"):
        view(2, 2)
    with pytest.raises(MismatchError):
        view(0, 2).require_domain(Graph(3))


PLACES = Table(
    ("d1", "d2"),
    cell="district",
    attributes={"district": ("d1", "d2"), "x": (0, 6), "y": (0, 8)},
    max_size=3,
)


def test_nearest_breaks_ties_by_place_and_shows_the_sentinel_for_an_empty_district():
    view = Nearest("d1", place=("x", "y"), target=(3, 4), sentinel=(0, 0), diameter=10)
    view.require_domain(PLACES)
    both = PLACES.database([("d1", 6, 8), ("d1", 0, 0), ("d2", 0, 8)])
    assert view.apply(both, PLACES) == (0, 0)  # both are 5 away
    assert view.apply((("d2", 6, 8),), PLACES) == (0, 0)
    assert view.apply((("d1", 6, 8),), PLACES) == (6, 8)
    assert view.image(PLACES) is None


def test_nearest_moves_by_its_diameter_at_most():
    view = Nearest("d1", place=("x", "y"), target=(0, 0), sentinel=(0, 0), diameter=10)
    assert view.stretch(Unbounded(), Euclidean()) == 10
    assert view.stretch(Euclidean(), Euclidean()) == math.inf


def test_nearest_refuses_a_sentinel_or_a_diameter_that_does_not_fit():
    far = Nearest("d1", place="xy", target=(0, 0), sentinel=(9, 9), diameter=10)
    with pytest.raises(FalsifiedClaimError, match="diameter") as refusal:
        far.require_domain(PLACES)
    assert (9, 9) in refusal.value.witness
    with pytest.raises(MismatchError, match="one length"):
        Nearest("d1", place="xy", target=(0,), sentinel=(0, 0), diameter=1)
    openly = Table(("d1",), cell="d", attributes=("d", "x", "y"))
    far.require_domain(openly)  # nothing listed, nothing to check
    unknown = Nearest("d1", place="xz", target=(0, 0), sentinel=(0, 0), diameter=1)
    with pytest.raises(ValueError, match="columns"):
        unknown.require_domain(PLACES)


@pytest.mark.parametrize(
    ("view", "name"),
    [
        (Select("N", "S"), "cells N, S"),
        (Select("N", statistic="count"), "count of cells N"),
        (Select(*range(9)), "cells 0, 1, 2, 3, 4, 9 in all"),
        (Project("age", "sex"), "columns age, sex"),
        (Ids([1, 0]), "ids 0, 1"),
        (RandomBlock(1, 3, "s"), "random block 1 of 3"),
        (RowPosition(0, 2), "row positions 0 of 2"),
        (SortedPosition(0, 2), "sorted positions 0 of 2"),
        (
            Nearest("d", place="x", target=(0,), sentinel=(0,), diameter=1),
            "place nearest to (0,) in cells d",
        ),
    ],
)
def test_every_view_has_a_name_hashes_and_survives_pickling(view, name):
    assert view.name == name
    assert len({view, pickle.loads(pickle.dumps(view))}) == 1


def test_the_diameter_is_checked_in_the_order_of_the_place_columns():
    """The farthest corner from (y, x) = (100, 0) is (0, 10), not (0, 1)."""
    city = Table(("n",), cell="c", attributes={"c": ("n",), "x": (0, 10), "y": (0, 1)})
    arguments = {"place": ("y", "x"), "target": (0, 0), "sentinel": (100, 0)}
    with pytest.raises(FalsifiedClaimError) as caught:
        Nearest("n", diameter="100.1", **arguments).require_domain(city)
    assert set(caught.value.witness) == {(0, 10), (100, 0)}
    Nearest("n", diameter="100.5", **arguments).require_domain(city)


@pytest.mark.parametrize("place", ["secret", "17", float("nan"), float("inf"), None])
def test_a_place_that_is_no_number_is_refused_without_being_shown(place):
    city = Table(("n",), cell="c", attributes=("c", "x"))
    view = Nearest("n", place=("x",), target=(0,), sentinel=(0,), diameter=1)
    with pytest.raises(TypeError, match="number") as caught:
        view.apply((("n", place),), city)
    assert "secret" not in str(caught.value)
