"""Domains: what is inside, how many there are, and what is refused when built."""

import math
from itertools import product

import pytest

from undertow.errors import AssumptionError, MismatchError
from undertow.spaces.domain import (
    FiniteDomain,
    Graph,
    MetricSpace,
    Rows,
    Stream,
    Table,
    record_order,
    require_enumerable,
    require_members,
)

ENUMERABLE = [
    Table(("a", "b", "c"), values_per_cell=1, max_size=3),
    Table(("a", "b"), values_per_cell=2, size=2),
    Table(("a", "b"), values_per_cell=1, multi=True, max_cells=1, max_size=2),
    Table(attributes={"x": (0, 1), "y": ("u", "v")}, size=2),
    Table(("u", "v"), cell="y", attributes={"x": (0, 1), "y": None}, max_size=2),
    Table(size=0),
    Rows(3, values=(0, 1)),
    Rows(("p", "q"), values=(0, 1), free_ids=True),
    Rows(2, attributes={"x": (0, 1), "y": (0, 1)}),
    Rows(0),
    Stream(2, 2, values=("a", "b")),
    Stream(2, 2, regular=True, values=("a", "b")),
    Graph(4),
    Graph(4, max_degree=2),
    Graph(5, max_degree=1),
    Graph(3, max_degree=0),
    FiniteDomain([(), ("a",), ("a", "b")]),
    MetricSpace((0, 1, 3), function=lambda x, y: abs(x - y)),
]


@pytest.mark.parametrize("domain", ENUMERABLE, ids=repr)
def test_enumeration_counts_each_member_once(domain):
    listed = list(domain.databases())
    assert len(listed) == len(set(listed)) == domain.count()
    assert all(database in domain for database in listed)


@pytest.mark.parametrize("domain", ENUMERABLE, ids=repr)
def test_domains_are_hashable_values(domain):
    assert {domain: 1}[domain] == 1
    assert "nothing of the kind" not in domain
    assert (("no",), "such") not in domain


@pytest.mark.parametrize("cap", [0, 1, 2, 3])
def test_capped_graphs_are_those_of_small_degree(cap):
    everything = Graph(5).databases()
    kept = {g for g in everything if max(Graph(5).degrees(g)) <= cap}
    assert set(Graph(5, max_degree=cap).databases()) == kept


def test_count_of_capped_graphs_beyond_twelve_vertices_is_an_upper_bound():
    assert Graph(13, max_degree=1).count() == 2**78 > 568504
    assert Graph(12, max_degree=1).count() == 140152
    assert Graph(1000).count() == math.inf


def test_an_order_of_records_does_not_depend_on_how_they_came():
    records = [("b", 1), "a", 10, 2, None, frozenset({"y", "x"}), ("b", 0), 1.5]
    assert Table.database(records) == Table.database(reversed(records))
    assert record_order(frozenset("xy")) == record_order(frozenset("yx"))
    assert record_order(1) == record_order(1.0) == record_order(True)
    assert record_order(complex(1, 2))[0] == 5


def test_only_the_sorted_tuple_is_a_database_of_a_table():
    table = Table(("a", "b"), values_per_cell=1, max_size=2)
    assert ("a", "b") in table
    assert ("b", "a") not in table
    assert ("a", "a", "a") not in table
    assert ("c",) not in table


def test_cells_of_a_record_in_every_form_of_table():
    assert Table(("N", "S"), values_per_cell=1).cells_of("N") == {"N"}
    assert Table(("N", "S")).cells_of(("N", 7)) == {"N"}
    multi = Table(("N", "S"), multi=True, values_per_cell=1)
    assert multi.cells_of(frozenset({"N", "S"})) == {"N", "S"}
    placed = Table(("N", "S"), cell="area", attributes={"age": None, "area": None})
    assert placed.cells_of((30, "S")) == {"S"}
    assert Table().cells_of("anything") == frozenset()


def test_attributes_decide_how_many_values_a_cell_has():
    placed = Table(("N", "S"), cell="area", attributes={"age": (1, 2), "area": None})
    assert placed.values_per_cell == 2
    assert dict(placed.attributes)["area"] == ("N", "S")
    assert (
        Table(("N", "S"), cell="area", attributes=("age", "area")).values_per_cell
        is None
    )
    assert Table(("N",), cell="area", attributes={"area": ("N",)}).values_per_cell == 1
    assert placed.attribute_names == ("age", "area")


def test_a_table_stored_form_of_attributes_reads_back():
    table = Table(attributes={"x": (0, 1), "y": None}, size=2)
    assert Table(attributes=table.attributes, size=2) == table


@pytest.mark.parametrize(
    ("table", "inside", "outside"),
    [
        (Table(("a",)), (("a", "any"),), ("a",)),
        (Table(("a",), values_per_cell=2), (("a", 1),), (("a", 2),)),
        (Table(("a",), multi=True, values_per_cell=1), (frozenset(),), ("a",)),
        (
            Table(("a", "b"), multi=True, max_cells=1, values_per_cell=1),
            (frozenset("a"),),
            (frozenset("ab"),),
        ),
        (Table(attributes={"x": (0, 1)}), ((1,),), ((2,),)),
        (Table(attributes={"x": (0, 1)}), ((1,),), ((1, 1),)),
        (Table(attributes=("x",)), (("free",),), ("free",)),
    ],
)
def test_which_records_belong_to_a_universe(table, inside, outside):
    assert inside in table
    assert outside not in table


@pytest.mark.parametrize(
    "table", [Table(), Table(("a", "b")), Table(attributes=("x", "y")), Table(size=2)]
)
def test_an_open_universe_shows_examples_but_no_list(table):
    examples = list(table.records(at_most=2))
    assert len(set(examples)) == 2
    assert all(table.has_record(record) for record in examples)
    assert table.universe_size == math.inf
    with pytest.raises(AssumptionError, match="leaves them open"):
        table.records()
    with pytest.raises(AssumptionError, match="at most"):
        table.databases().__next__()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 1, "max_size": 2}, "one of size and max_size"),
        ({"size": -1}, "size must be a whole number"),
        ({"max_cells": 2}, "max_cells must come with multi"),
        ({"multi": True}, "cells must be given"),
        ({"values_per_cell": 1}, "cells must be given"),
        ({"cells": ("a", "a")}, "cells must not repeat"),
        ({"cells": ("a",), "attributes": ("x",)}, "cell attribute 'cell'"),
        ({"cells": ("a",), "cell": "x", "attributes": {"x": ("b",)}}, "no cell"),
        ({"attributes": ("x", "x")}, "different names"),
        ({"attributes": {"x": ()}}, "must have a value"),
        ({"attributes": {"x": (1, 1)}}, "must not repeat"),
        (
            {
                "cells": ("a",),
                "cell": "x",
                "attributes": {"x": None, "y": (1, 2)},
                "values_per_cell": 3,
            },
            "which give 2",
        ),
    ],
)
def test_a_table_that_contradicts_itself_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Table(**arguments)


def test_text_is_not_taken_for_a_sequence_of_labels():
    with pytest.raises(TypeError, match="got the text 'NS'"):
        Table("NS")
    with pytest.raises(TypeError, match="got the text 'ab'"):
        Stream(1, 1, values="ab")
    with pytest.raises(TypeError, match="got the text 'uv'"):
        Rows(1, attributes={"x": "uv"})


def test_rows_know_their_ids():
    assert Rows((0, 1, 2)) == Rows(3) == Rows(range(3))
    assert tuple(Rows(("p", "q")).ids) == ("p", "q")
    assert (None, 1) in Rows(2, free_ids=True)
    assert (None, 1) not in Rows(2)
    assert Rows(2).count() == math.inf
    assert Rows(5000, values=(0, 1)).count() == math.inf
    assert ((0, 1),) in Rows(1, attributes=("x", "y"))
    assert Rows(1, attributes=("x", "y")).attribute_names == ("x", "y")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": ("p", "p")}, "ids must not repeat"),
        ({"ids": -1}, "ids must be a whole number"),
        ({"ids": 1, "values": (None, 1)}, "without None"),
        ({"ids": 1, "values": ()}, "non-empty"),
        ({"ids": 1, "values": (1,), "attributes": ("x",)}, "values must be left out"),
    ],
)
def test_rows_that_contradict_themselves_are_refused(arguments, message):
    ids = arguments.pop("ids")
    with pytest.raises(ValueError, match=message):
        Rows(ids, **arguments)


def test_rows_left_open_generate_nothing():
    with pytest.raises(AssumptionError, match="list its records"):
        Rows(2).choices()


def test_streams_derive_their_values_from_clusters():
    stream = Stream(1, 2, clusters={"p": "home", "q": "home", "r": "work"})
    assert stream.values == ("p", "q", "r")
    assert stream.cluster_labels == ("home", "work")
    assert stream.cluster_of("q") == "home"
    assert stream.cluster_of(None) is None
    assert Stream(1, 2, clusters=stream.clusters) == stream


def test_gaps_belong_to_irregular_streams_only():
    row = (("a", None),)
    assert row in Stream(1, 2)
    assert row not in Stream(1, 2, regular=True)
    assert (("c", None),) not in Stream(1, 2, values=("a", "b"))
    assert (("a",),) not in Stream(1, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"users": 0}, "users must be"),
        ({"times": 0}, "times must be"),
        ({"values": ()}, "non-empty"),
        ({"values": ("a", None)}, "without None"),
        ({"values": ("a", "a")}, "different"),
        ({"values": ("a", "b"), "clusters": {"a": 1}}, "every value exactly one"),
        ({"clusters": (("a", 1), ("a", 2))}, "different"),
    ],
)
def test_streams_that_contradict_themselves_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Stream(**{"users": 1, "times": 1} | arguments)


def test_streams_left_open_generate_nothing():
    with pytest.raises(AssumptionError, match="set values"):
        Stream(1, 1).choices()
    assert Stream(1, 1).count() == math.inf
    assert Stream(100, 100, values=(0, 1)).count() == math.inf


@pytest.mark.parametrize("bad", [{(0, 1)}, frozenset({(1, 0)}), frozenset({(0, 9)})])
def test_only_sets_of_ordered_pairs_are_graphs(bad):
    assert bad not in Graph(3)


def test_graphs_are_refused_without_vertices():
    with pytest.raises(ValueError, match="vertices must be"):
        Graph(0)
    with pytest.raises(ValueError, match="max_degree must be"):
        Graph(3, max_degree=-1)
    assert frozenset({"edge"}) not in Graph(3)


def test_listed_domains_must_list_something_once():
    with pytest.raises(ValueError, match="at least one"):
        FiniteDomain([])
    with pytest.raises(ValueError, match="must not repeat"):
        FiniteDomain([1, 1])


def test_listed_domains_know_the_shape_of_their_elements():
    rows = FiniteDomain(product((0, 1), (0, 1, 2)))
    assert rows.holds_rows
    assert rows.is_product
    assert not rows.holds_multisets
    assert not rows.holds_matrices
    assert not FiniteDomain([(0, 0), (1, 1)]).is_product
    assert not FiniteDomain([1, 2]).is_product
    matrices = FiniteDomain([((0, 1),), ((1, 1),)])
    assert matrices.holds_matrices
    assert not FiniteDomain([((0, 1),), ((1,),)]).holds_matrices
    assert FiniteDomain(Graph(3).databases()).holds_graphs
    assert not FiniteDomain([frozenset({(1, 0)})]).holds_graphs


def test_closure_under_removal_is_recognised():
    assert FiniteDomain([(), ("a",), ("a", "a")]).closed_under_removal
    assert not FiniteDomain([(), ("a", "a")]).closed_under_removal
    assert FiniteDomain(Graph(3, max_degree=1).databases()).closed_under_removal
    assert not FiniteDomain([frozenset({(0, 1)})]).closed_under_removal


def test_metric_spaces_check_their_metric():
    assert MetricSpace("ab", matrix=[[0, 2], [2, 0]]).between("a", "b") == 2
    assert (
        MetricSpace("ab", matrix=[[0, math.inf], [math.inf, 0]]).between("a", "b") > 9
    )
    with pytest.raises(MismatchError, match="shape"):
        MetricSpace("ab", matrix=[[0]])
    with pytest.raises(AssumptionError, match="symmetric") as fault:
        MetricSpace("ab", matrix=[[0, 1], [2, 0]])
    assert fault.value.witness == ("a", "b")
    with pytest.raises(AssumptionError, match="triangle") as fault:
        MetricSpace("abc", matrix=[[0, 1, 5], [1, 0, 1], [5, 1, 0]])
    assert fault.value.witness == ("a", "b", "c")
    with pytest.raises(AssumptionError, match="zero diagonal"):
        MetricSpace("a", matrix=[[1]])
    with pytest.raises(ValueError, match="one of matrix and function"):
        MetricSpace("a")
    with pytest.raises(ValueError, match="each once"):
        MetricSpace("aa", matrix=[[0]])


def test_a_database_outside_is_refused_without_being_shown():
    with pytest.raises(ValueError, match="got one outside it") as fault:
        require_members(Table(("a",), values_per_cell=1), ("a",), ("secret",))
    assert "secret" not in str(fault.value)
    assert "second" in str(fault.value)


def test_a_domain_too_large_is_not_enumerated():
    with pytest.raises(AssumptionError, match="at most 200000 databases"):
        require_enumerable(Graph(10))
    require_enumerable(Graph(4))


def test_domains_of_any_size_are_refused_in_one_sentence():
    table = Table(range(1000), values_per_cell=1, max_size=1000)
    with pytest.raises(AssumptionError, match="to be enumerated, got over 1e\\+300;"):
        list(table.databases())
