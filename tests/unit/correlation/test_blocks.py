"""Groups of records."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest

from undertow.correlation.calibrate import calibrate
from undertow.correlation.group import Blocks, BlocksTheorem, Independent, block_leakage
from undertow.correlation.leak import leakage
from undertow.correlation.query import AnyQuery, CountQuery, LinearQuery
from undertow.correlation.result import Adversary
from undertow.errors import ModelError, NotApplicable


def laplace_leakage(law, weights, scale, who):
    """Exact leakage of a noisy weighted sum to one attacker, by enumeration.

    The ratio of two Laplace mixtures is extreme at one of the possible sums.
    """
    sums = {database: float(np.dot(weights, database)) for database in law}
    seen: dict[tuple, dict] = {}
    for database, mass in law.items():
        known = tuple(database[j] for j in sorted(who.known))
        cell = seen.setdefault(known, {}).setdefault(database[who.target], [])
        cell.append((mass, sums[database]))
    worst = 0.0
    for cells in seen.values():
        for x, y in itertools.permutations(cells, 2):
            for output in sums.values():
                log = [
                    math.log(
                        sum(m * math.exp(-abs(output - s) / scale) for m, s in cells[v])
                        / sum(m for m, _ in cells[v])
                    )
                    for v in (x, y)
                ]
                worst = max(worst, log[0] - log[1])
    return worst


def together(sizes):
    """Return the law under which each group is all 0 or all 1, with equal chance."""
    law = {}
    for bits in itertools.product((0, 1), repeat=len(sizes)):
        database = tuple(b for b, m in zip(bits, sizes, strict=True) for _ in range(m))
        law[database] = 0.5 ** len(sizes)
    return law


def test_sizes_are_consecutive_groups():
    model = Blocks([2, 3, 1])
    assert model.labels.tolist() == [0, 0, 1, 1, 1, 2]
    assert model.sizes.tolist() == [2, 3, 1]
    assert (model.size, model.largest_group) == (6, 3)
    assert model.group_of(3) == (2, 3, 4)


def test_groups_of_one_size():
    model = Blocks.of_size(4, groups=3)
    assert model == Blocks([4, 4, 4])
    assert Blocks.of_size(4) == Blocks([4])


def test_a_partition_may_be_in_any_order():
    model = Blocks.from_partition([[4, 0], [1], [3, 2]])
    assert model.labels.tolist() == [0, 1, 2, 2, 0]
    assert model.group_of(0) == (0, 4)


def test_labels_are_grouped_in_order_of_appearance():
    model = Blocks.from_labels(["b", "a", "b", "c"])
    assert model.labels.tolist() == [0, 1, 0, 2]
    assert Blocks.from_labels(np.array([7, 3, 7, 1])) == model
    assert Blocks.from_families([("x", 1), ("y", 1), ("x", 1), ("z", 1)]) == model


def test_a_graph_gives_its_components():
    model = Blocks.from_graph(6, [(0, 2), (2, 4), (5, 5)])
    assert model == Blocks.from_partition([[0, 2, 4], [1], [3], [5]])
    assert Blocks.from_graph(3, []) == Blocks([1, 1, 1])


def test_components_match_a_plain_search():
    rng = np.random.default_rng(3)
    for _ in range(30):
        size = int(rng.integers(1, 12))
        edges = [tuple(pair) for pair in rng.integers(0, size, (size // 2, 2)).tolist()]
        group = list(range(size))
        for _, (a, b) in itertools.product(range(size), edges):
            group[a] = group[b] = min(group[a], group[b])
        assert Blocks.from_graph(size, edges) == Blocks.from_labels(group)


def test_equality_is_about_who_is_grouped_with_whom():
    one = Blocks.from_labels([0, 0, 1])
    assert one == Blocks.from_labels(["b", "b", "a"])
    assert hash(one) == hash(Blocks.from_partition([[2], [0, 1]]))
    assert one == Blocks.from_partition([[2], [0, 1]])
    assert one != Blocks.from_labels([0, 1, 1])
    assert one != Blocks.from_labels([0, 0, 1, 1])
    assert one != Blocks([1, 1, 1])
    assert one != Independent(3)


def test_words_of_the_models():
    assert Blocks([3]).summary == "3 records in 1 group"
    assert Blocks([1]).summary == "1 record in 1 group"
    assert repr(Blocks([2, 1])) == (
        "<Blocks: 3 records in 2 independent groups of at most 2>"
    )
    assert Independent().summary == "any number of mutually independent records"
    assert Independent(3).summary == "3 mutually independent records"
    assert repr(Independent()) == "Independent()"
    assert repr(Independent(3)) == "Independent(3)"


def test_labels_and_sizes_cannot_be_changed():
    model = Blocks([2])
    with pytest.raises(ValueError, match=r"read-only"):
        model.labels[0] = 1
    with pytest.raises(ValueError, match=r"read-only"):
        model.sizes[0] = 1


def test_changing_the_sizes_given_does_not_change_the_model():
    sizes = np.array([2, 3])
    model = Blocks(sizes)
    sizes[0] = 9
    assert model.sizes.tolist() == [2, 3]


@pytest.mark.parametrize("sizes", [[], [0], [2, -1]])
def test_sizes_are_positive(sizes):
    with pytest.raises(ModelError, match=r"sizes must be at least one size"):
        Blocks(sizes)


@pytest.mark.parametrize("sizes", [[1.5], ["a"], [True]])
def test_sizes_are_whole_numbers(sizes):
    with pytest.raises(ModelError, match=r"sizes must be whole numbers"):
        Blocks(sizes)


def test_more_records_than_fit_are_refused_with_what_works():
    with pytest.raises(ModelError, match=r"general_leakage and general_budget"):
        Blocks.of_size(10**6, groups=10**6)
    with pytest.raises(ModelError, match=r"at most"):
        Blocks([10**9])
    with pytest.raises(ModelError, match=r"at most"):
        Blocks.from_graph(10**9, [])


@pytest.mark.parametrize("groups", [[], [[0], []]])
def test_a_partition_has_no_empty_group(groups):
    with pytest.raises(ModelError, match=r"none of them empty"):
        Blocks.from_partition(groups)


@pytest.mark.parametrize("groups", [[[0, 2]], [[-1, 0]], [[0], [5]]])
def test_a_partition_covers_every_record(groups):
    with pytest.raises(ModelError, match=r"groups must cover the records 0\.\."):
        Blocks.from_partition(groups)


def test_overlapping_groups_are_refused():
    with pytest.raises(ModelError, match=r"must not overlap, got record 1 in several"):
        Blocks.from_partition([[0, 1], [1, 2], [1]])


@pytest.mark.parametrize("missing", [None, math.nan, "", "  "])
def test_a_missing_label_is_refused(missing):
    with pytest.raises(ModelError, match=r"got none for record 1"):
        Blocks.from_labels(["a", missing, "a"])


def test_a_missing_label_in_an_array_is_refused():
    with pytest.raises(ModelError, match=r"got none for record 2"):
        Blocks.from_labels(np.array([1.0, 1.0, np.nan]))


def test_labels_are_not_empty():
    with pytest.raises(ModelError, match=r"one for each record, got none"):
        Blocks.from_labels([])


@pytest.mark.parametrize("edge", [(0, 3), (-1, 0)])
def test_edges_join_records(edge):
    with pytest.raises(ModelError, match=r"edges must join records in 0\.\.2"):
        Blocks.from_graph(3, [(0, 1), edge])


def test_edges_are_whole_numbers():
    with pytest.raises(ModelError, match=r"edges must be whole numbers"):
        Blocks.from_graph(3, [(0.0, 1.0)])


def test_a_record_of_a_group_exists():
    with pytest.raises(ValueError, match=r"record must be in 0\.\.1"):
        Blocks([2]).group_of(2)


@pytest.mark.parametrize("model", [Blocks([2]), Independent(2)])
def test_models_without_a_law_do_not_sample(model):
    rng = np.random.default_rng(0)
    with pytest.raises(NotApplicable, match=r"sampling needs a law"):
        model.sample(1, rng=rng)
    with pytest.raises(NotApplicable, match=r"sampling needs a law"):
        model.given({0: 1}).sample(1, rng=rng)


def test_models_say_what_they_take_for_granted():
    assert Blocks([2]).assumptions().checked == (
        "every record is in exactly one group",
    )
    assert "mutually" in Independent().assumptions().unchecked[0]


def test_independent_records_have_groups_of_one():
    assert Independent(5).largest_group == 1
    assert Independent(5).size == 5
    assert Independent() == Independent(None)
    assert hash(Independent(5)) == hash(Independent(5))
    assert Independent(5) != Independent(4)
    assert Independent(1) != Blocks([1])
    with pytest.raises(ValueError, match=r"size must be a whole number"):
        Independent(0)


def test_a_million_records_take_no_time():
    labels = np.repeat(np.arange(250_000), 4)
    start = time.perf_counter()
    model = Blocks.from_labels(np.random.default_rng(1).permutation(labels))
    found = calibrate(model, 1.0, query=LinearQuery(clip=(0, 1)))
    assert found.epsilon == 0.25
    assert time.perf_counter() - start < 5


def test_what_an_attacker_knows_shrinks_the_group():
    model = Blocks([4, 2])
    known = [frozenset(), {1}, {1, 2}, {1, 2, 3}, {1, 2, 3, 4, 5}, {4, 5}]
    values = [block_leakage(model, 0.5, adversary=Adversary(0, k)).value for k in known]
    assert values == [2.0, 1.5, 1.0, 0.5, 0.5, 2.0]


def test_the_worst_attacker_is_the_default():
    found = block_leakage(Blocks([1, 3, 2]), 0.5)
    assert found.value == 1.5
    assert found.witness.details["target"] == 1
    assert found.attackers == "anyone who knows any subset of the other records"


def test_one_attacker_is_named_in_the_result():
    found = block_leakage(Blocks([3]), 0.5, adversary=Adversary(0, {2}))
    assert found.attackers == "aims at record 0, knows record 2"
    assert found.method == "general"


@pytest.mark.parametrize("sizes", [(3,), (2, 1), (1, 3)])
@pytest.mark.parametrize("weights", [(1, 1, 1, 1), (1, 0.5, 0.25, 2)])
def test_records_that_move_together_attain_the_refined_bound(sizes, weights):
    law, model = together(sizes), Blocks(list(sizes))
    used = np.array(weights[: model.size], dtype=float)
    worst = 0.0
    for target in range(model.size):
        exact = laplace_leakage(law, used, used.max() / 0.7, Adversary(target))
        found = block_leakage(
            model, 0.7, adversary=Adversary(target), sensitivities=used
        )
        assert found.value == pytest.approx(exact, rel=1e-12)
        worst = max(worst, exact)
    assert block_leakage(model, 0.7, sensitivities=used).value == pytest.approx(worst)


def test_random_laws_stay_below_the_refined_bound():
    rng = np.random.default_rng(11)
    model = Blocks([3, 1])
    for _ in range(25):
        block = rng.dirichlet(np.full(8, 0.2))
        law = {
            (*bits, b): p * q
            for bits, p in zip(itertools.product((0, 1), repeat=3), block, strict=True)
            for b, q in ((0, 0.3), (1, 0.7))
        }
        weights = rng.uniform(0.1, 1.0, 4)
        target = int(rng.integers(4))
        others = [j for j in range(4) if j != target]
        who = Adversary(target, [j for j in others if rng.random() < 0.4])
        exact = laplace_leakage(law, weights, weights.max(), who)
        bound = block_leakage(model, 1.0, adversary=who, sensitivities=weights).value
        assert exact <= bound * (1 + 1e-12)


def test_records_without_influence_do_not_count():
    found = block_leakage(Blocks([3]), 1.0, sensitivities=[1.0, 0.0, 0.0])
    assert found.value == pytest.approx(1.0, rel=1e-12)


def test_equal_sensitivities_give_the_general_bound_exactly():
    assert block_leakage(Blocks([3]), 1.0, sensitivities=[0.1] * 3).value == 3.0


@pytest.mark.parametrize(
    "sensitivities", [[1.0], [1.0, -1.0], [0.0, 0.0], [1.0, math.nan]]
)
def test_sensitivities_are_one_for_each_record_and_not_negative(sensitivities):
    with pytest.raises(ModelError, match=r"sensitivities must be"):
        block_leakage(Blocks([2]), 1.0, sensitivities=sensitivities)


def test_an_attacker_is_checked_against_the_records():
    with pytest.raises(ValueError, match=r"record must be in 0\.\.1"):
        block_leakage(Blocks([2]), 1.0, adversary=Adversary(0, {2}))


def test_signs_of_weights_do_not_help():
    query = LinearQuery([1.0, -1.0], clip=(0, 1))
    assert leakage(Blocks([2]), 1.0, query=query).value == 2.0


def test_the_heaviest_group_decides():
    query = LinearQuery([1.0, 1.0, 0.1, 0.1, 0.1], clip=(0, 1))
    found = leakage(Blocks([2, 3]), 1.0, query=query)
    assert (found.value, found.method) == (2.0, "per-record")
    assert found.scope.interval == (0.0, 1.0)
    assert "Laplace" in found.mechanisms


@pytest.mark.parametrize(
    "query", [AnyQuery(), CountQuery(), LinearQuery([1.0, 2.0], gap=1)]
)
def test_the_per_record_bound_needs_a_bounded_sum(query):
    with pytest.raises(NotApplicable, match=r"needs a clipped or bounded linear query"):
        BlocksTheorem().bound(Blocks([2]), 1.0, query=query)


@pytest.mark.parametrize("target", [1e-6, 0.1, 1.0, 33.3])
def test_the_per_record_level_keeps_the_target(target):
    model, query = Blocks([3]), LinearQuery([0.3, 0.7, 0.9], clip=(0, 1))
    level = BlocksTheorem().invert(model, target, query=query)
    value = BlocksTheorem().bound(model, level, query=query).value
    assert value <= target
    assert value == pytest.approx(target, rel=1e-12)


@pytest.mark.parametrize("times", [1, 2, 255, 256, 257, 512, 65536])
def test_an_edge_given_many_times_is_one_edge(times):
    edges = [(0, 1)] * times + [(2, 1)] * times
    assert Blocks.from_graph(4, edges).sizes.tolist() == [3, 1]


def test_sizes_whose_sum_overflows_are_refused():
    with pytest.raises(ModelError, match=r"at most 100000000 records"):
        Blocks([2**62] * 4)
