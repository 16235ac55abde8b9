"""Window covers, interval covers, vertex covers, assignments, feedback sets."""

import math
from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.spaces.canonical import (
    CoverBounds,
    assignment_cost,
    interval_cover,
    least_feedback,
    vertex_cover,
    w_event_distance,
)


def least_windows(need, w):
    """Search all multisets of windows, smallest first."""
    starts = range(1 - w, len(need))
    for number in range(sum(need) + 1):
        for chosen in _multisets(starts, number):
            covered = [sum(s <= t < s + w for s in chosen) for t in range(len(need))]
            if all(c >= n for c, n in zip(covered, need, strict=True)):
                return number
    raise AssertionError


def _multisets(items, number):
    if number == 0:
        yield ()
        return
    for at, first in enumerate(items):
        for rest in _multisets(items[at:], number - 1):
            yield (first, *rest)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 2), max_size=5), st.integers(1, 4))
def test_the_window_scan_is_optimal(need, w):
    assert w_event_distance(need, w) == least_windows(need, w)


@settings(max_examples=60, deadline=None)
@given(st.sets(st.integers(-9, 9)), st.integers(1, 5))
def test_the_interval_cover_is_the_window_cover_of_single_points(points, length):
    need = [int(t in points) for t in range(-9, 10)]
    assert interval_cover(points, length) == w_event_distance(need, length)


def test_windows_longer_than_the_stream_cover_all_times():
    assert w_event_distance([1, 1, 1], 99) == 1
    assert w_event_distance([], 3) == 0
    assert interval_cover([], 3) == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: w_event_distance([1], 0), "w must be"),
        (lambda: w_event_distance([-1], 2), "need must hold no negative"),
        (lambda: interval_cover([1], 0), "length must be"),
    ],
)
def test_impossible_windows_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@settings(max_examples=40, deadline=None)
@given(
    st.integers(0, 5).flatmap(
        lambda n: st.lists(
            st.lists(st.integers(0, 9), min_size=n, max_size=n), min_size=n, max_size=n
        )
    )
)
def test_the_assignment_is_the_cheapest_permutation(costs):
    n = len(costs)
    best = min(sum(costs[i][p[i]] for i in range(n)) for p in permutations(range(n)))
    assert assignment_cost(costs) == best


def brute_cover(edges):
    vertices = sorted({v for e in edges for v in e})
    for number in range(len(vertices) + 1):
        for chosen in combinations(vertices, number):
            if all(set(e) & set(chosen) for e in edges):
                return number
    return 0


def brute_matching(edges):
    if not edges:
        return 0
    (i, j), *rest = edges
    without = [e for e in rest if not set(e) & {i, j}]
    return max(brute_matching(rest), 1 + brute_matching(without))


def graphs(most):
    pairs = list(combinations(range(most), 2))
    return st.lists(st.sampled_from(pairs), unique=True, max_size=14)


@settings(max_examples=150, deadline=None)
@given(graphs(8))
def test_small_covers_are_exact(edges):
    found = vertex_cover(edges)
    assert found.exact
    assert found.low == brute_cover(edges)


@settings(max_examples=150, deadline=None)
@given(graphs(8))
def test_unsolved_covers_lie_between_the_matching_and_twice_it(edges):
    found, matching = vertex_cover(edges, exact_edges=0), brute_matching(edges)
    assert matching <= found.low <= brute_cover(edges) <= found.high <= 2 * matching


@pytest.mark.parametrize("seed", range(5))
def test_sixty_edges_are_solved_exactly(seed):
    rng = np.random.default_rng(seed)
    pairs = list(combinations(range(24), 2))
    edges = [pairs[k] for k in rng.choice(len(pairs), 60, replace=False)]
    found = vertex_cover(edges)
    assert found.exact
    bounds = vertex_cover(edges, exact_edges=0)
    assert bounds.low <= found.low <= bounds.high


def test_bipartite_covers_are_matchings_at_any_size():
    edges = [(i, 100 + j) for i in range(30) for j in range(90)]
    assert vertex_cover(edges) == CoverBounds(30, 30)
    path = [(i, i + 1) for i in range(200)]
    assert vertex_cover(path) == CoverBounds(100, 100)


def test_components_add_up():
    triangles = [
        (3 * k + a, 3 * k + b) for k in range(40) for a, b in ((0, 1), (0, 2), (1, 2))
    ]
    assert vertex_cover(triangles) == CoverBounds(80, 80)


def test_a_large_dense_graph_is_bounded():
    edges = list(combinations(range(30), 2))
    found = vertex_cover(edges)
    assert not found.exact or found.low == 29
    assert found.low <= 29 <= found.high
    assert not CoverBounds(2, math.inf).exact


def acyclic(waits):
    left = dict(waits)
    while left:
        free = [v for v, out in left.items() if not out & left.keys()]
        if not free:
            return False
        for v in free:
            del left[v]
    return True


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), max_size=12))
def test_feedback_sets_are_the_smallest_that_break_all_cycles(arcs):
    waits = {v: {b for a, b in arcs if a == v and b != v} for v in range(5)}
    best = min(
        k
        for k in range(6)
        for chosen in combinations(range(5), k)
        if acyclic(
            {v: out - set(chosen) for v, out in waits.items() if v not in chosen}
        )
    )
    assert least_feedback(waits) == best


def test_large_entanglements_are_left_open():
    assert least_feedback({v: {(v + 1) % 21} for v in range(21)}) is None
    assert least_feedback({v: {v + 1} for v in range(50)}) == 0


@pytest.mark.parametrize("number", [127, 128, 256, 300])
def test_covers_of_many_parallel_or_crowded_edges_are_exact(number):
    crowded = [(i, 1000 + j) for i in range(3) for j in range(number)]
    for edges, size in (([(0, 1)] * number, 1), (crowded, 3), (crowded * 2, 3)):
        for exact_edges in (0, 60):
            bounds = vertex_cover(edges, exact_edges=exact_edges)
            assert bounds.low <= size <= bounds.high
        assert vertex_cover(edges) == CoverBounds(size, size)
