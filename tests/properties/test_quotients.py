"""Quotients on random finite spaces: pseudometric, never above, always sound."""

from collections import Counter
from itertools import combinations_with_replacement, product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from undertow.spaces.domain import Table
from undertow.spaces.metric import check_pseudometric
from undertow.spaces.quotient import (
    canonical_quotient,
    min_privacy,
    quotient_metric,
    sub_universe_distance,
)
from undertow.spaces.unit import Bounded
from undertow.spaces.view import Select


@st.composite
def spaces(draw, exactly=False):
    """Draw points under the sum norm, some of them coinciding, and their fibres."""
    n = draw(st.integers(1, 8))
    numbers = st.integers(0, 30) if exactly else st.floats(0, 30)
    pairs = st.lists(st.tuples(numbers, numbers), min_size=n, max_size=n)
    points = np.array(draw(pairs), dtype=float)
    matrix = np.abs(points[:, None, :] - points[None, :, :]).sum(axis=2)
    apart = draw(st.booleans())
    if apart and n > 1:  # two components
        half = n // 2
        matrix[:half, half:] = matrix[half:, :half] = np.inf
    labels = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    return matrix, labels


def _minimum_by_hand(matrix, labels):
    fibre = {label: np.flatnonzero(np.equal(labels, label)) for label in labels}
    return np.array(
        [[matrix[np.ix_(fibre[a], fibre[b])].min() for b in labels] for a in labels]
    )


def _closure_by_hand(matrix):
    closed = matrix.copy()
    for _ in range(len(closed)):  # repeated squaring in the (min, +) algebra
        closed = np.minimum(closed, (closed[:, :, None] + closed[None]).min(axis=1))
    return closed


@given(spaces())
def test_minimum_privacy_matches_its_definition(space):
    matrix, labels = space
    assert (min_privacy(matrix, labels) == _minimum_by_hand(matrix, labels)).all()


@given(spaces(exactly=True))
def test_the_quotient_is_the_shortest_path_closure(space):
    matrix, labels = space
    expected = _closure_by_hand(_minimum_by_hand(matrix, labels))
    assert (quotient_metric(matrix, labels) == expected).all()


@given(spaces())
def test_the_quotient_is_a_pseudometric_below_minimum_privacy(space):
    matrix, labels = space
    quotient, minimum = quotient_metric(matrix, labels), min_privacy(matrix, labels)
    assert check_pseudometric(quotient).holds
    assert (quotient <= minimum).all()
    assert (minimum <= matrix).all()
    same = np.equal.outer(labels, labels)
    assert not quotient[same].any()


@given(spaces())
def test_a_quotient_of_a_quotient_changes_nothing(space):
    matrix, labels = space
    once = quotient_metric(matrix, labels)
    np.testing.assert_allclose(quotient_metric(once, labels), once, rtol=1e-12)


@given(spaces(), st.integers(1, 4))
def test_a_coarser_view_is_never_dearer(space, classes):
    matrix, labels = space
    coarse = [label % classes for label in labels]
    assert (min_privacy(matrix, coarse) <= min_privacy(matrix, labels)).all()
    assert (quotient_metric(matrix, coarse) <= quotient_metric(matrix, labels)).all()


@given(spaces(exactly=True), st.floats(0.1, 10))
def test_the_quotient_scales_with_the_metric(space, factor):
    matrix, labels = space
    scaled = quotient_metric(matrix * factor, labels)
    np.testing.assert_allclose(
        scaled, quotient_metric(matrix, labels) * factor, rtol=1e-12
    )


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_a_mechanism_that_reads_its_view_loses_no_more_than_the_quotient(seed):
    rng = np.random.default_rng(seed)
    n, classes = int(rng.integers(2, 8)), int(rng.integers(1, 5))
    labels = rng.integers(classes, size=n)
    law = np.log(rng.dirichlet(np.full(4, 0.5), size=classes)[labels] + 1e-300)
    loss = np.abs(law[:, None, :] - law[None, :, :]).max(axis=2)
    # Any metric above the exact loss is one in which the mechanism is private.
    room = rng.exponential(2.0, size=(n, n))
    claimed = _closure_by_hand(loss + np.triu(room, 1) + np.triu(room, 1).T)
    quotient = quotient_metric((claimed + claimed.T) / 2, labels)
    assert (loss <= quotient * (1 + 1e-12)).all()


multisets = st.lists(st.sampled_from("ab"), max_size=3)


@given(multisets, multisets)
def test_the_sub_universe_formula_matches_the_best_padding(first, second):
    def replaced(one, two):
        gone, come = Counter(one) - Counter(two), Counter(two) - Counter(one)
        return sum(gone.values()) if gone.total() == come.total() else np.inf

    pads = [c for n in range(4) for c in combinations_with_replacement("cd", n)]
    best = min(
        replaced((*first, *one), (*second, *two)) for one, two in product(pads, pads)
    )
    assert sub_universe_distance(first, second) == best


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from([{"size": 3}, {"max_size": 3}, {"size": 4}]),
    st.sampled_from(["a", "ab", "abc"]),
)
def test_the_sub_universe_formula_is_the_quotient_on_every_class(size, inside):
    table = Table(tuple("abcd"), values_per_cell=1, **size)
    index, matrix = canonical_quotient(Bounded(), Select(*inside), domain=table)
    for one, i in index.items():
        for two, j in index.items():
            assert matrix[i, j] == sub_universe_distance(one, two)
