"""When a guess counts: the three forms of hit sets agree with their matrix."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from undertow.errors import MismatchError, ModelError, NotApplicable
from undertow.risk.success import Success

LINE = [0.0, 0.1, 0.3, 0.30000000000000004, 0.6, 0.8, 2.0]


def rules():
    rng = np.random.default_rng(5)
    table = rng.random((9, 7)) < 0.3
    table[range(7), range(7)] = True
    return {
        "exact": Success.exact(),
        "attribute": Success.attribute(lambda r: int(10 * r) % 3),
        "constant": Success.attribute(lambda r: 0),
        "line": Success.within("absolute", 0.2),
        "line, more guesses": Success.within("absolute", 0.2, guesses=[0.45, 9.0]),
        "wide line": Success.within("absolute", 2.0),
        "distance": Success.within(lambda g, x: max(g - x, 0.0), 0.2, guesses=[5.0]),
        "table": Success.from_matrix(table),
        "full table": Success.from_matrix(np.ones((7, 7))),
        "hops": Success.hops(np.abs(np.subtract.outer(range(7), range(7))), 2),
    }


@pytest.mark.parametrize("name", rules())
@pytest.mark.parametrize("fibre", [range(7), [2], [6, 0, 3], [1, 2, 3, 4]], ids=str)
def test_hit_sets_add_what_the_rows_of_the_matrix_add(name, fibre):
    rule, places = rules()[name], np.array(fibre)
    weights = np.random.default_rng(1).normal(size=(len(places), 3))
    (sets,) = rule.sets(LINE, [places])
    rows = rule.matrix(LINE)[:, places]
    assert sets.sums(weights)[sets.member] == pytest.approx(rows @ weights, abs=1e-12)
    assert sets.sizes[sets.member].tolist() == rows.sum(axis=1).tolist()
    assert sets.full[sets.member].tolist() == rows.all(axis=1).tolist()
    assert len(sets.sizes) == len({row.tobytes() for row in rows})


@pytest.mark.parametrize("name", rules())
def test_a_truth_is_missed_where_a_row_has_no_hit(name):
    rule = rules()[name]
    assert rule.missed(LINE).tolist() == (~rule.matrix(LINE).all(axis=0)).tolist()


@pytest.mark.parametrize("name", rules())
def test_there_is_a_row_for_every_guess(name):
    rule = rules()[name]
    assert len(rule.matrix(LINE)) == len(rule.guesses(LINE))
    assert rule.guesses(LINE)[:7] == tuple(LINE)


def test_a_sparse_table_adds_like_a_dense_one():
    near = np.abs(np.subtract.outer(range(60), range(60)))
    weights = np.random.default_rng(2).normal(size=(60, 4))
    for eta in (1, 30):
        (table,) = Success.hops(near, eta).sets(range(60), [np.arange(60)])
        (line,) = Success.within("absolute", eta).sets(range(60), [np.arange(60)])
        dense = (near <= eta) @ weights
        assert table.sums(weights)[table.member] == pytest.approx(dense, abs=1e-12)
        assert line.sums(weights)[line.member] == pytest.approx(dense, abs=1e-12)
        assert line.work < table.work
        # The hits, or every entry of 59 rows: two guesses hit all.
        assert table.work == (178 if eta == 1 else 59 * 60)


def test_a_run_on_the_line_is_decided_by_the_decimals():
    # As floats 0.8 - 0.6 exceeds 0.2, while 0.6 + 0.2 reaches 0.8.
    assert 0.8 - 0.6 > 0.2
    assert 0.6 + 0.2 >= 0.8
    rule = Success.within("absolute", 0.2)
    (sets,) = rule.sets([0.6, 0.8], [np.arange(2)])
    assert sets.sizes.max() == 2
    assert rule.matrix([0.6, 0.8])[0, 1]


@pytest.mark.parametrize("eta", [0.1, 0.2, 0.3, 0.7, 1.1])
def test_runs_agree_with_every_rounded_difference(eta):
    line = [k / 10 - 3 for k in range(70)]
    rule = Success.within("absolute", eta, guesses=[k / 20 - 4 for k in range(180)])
    (sets,) = rule.sets(line, [np.arange(70)])
    assert sets.sums(np.eye(70))[sets.member].tolist() == rule.matrix(line).tolist()


def test_runs_take_in_what_only_rounding_brings_near():
    line = [-1.0, -1e-20, 1e-20, 1.0]
    rule = Success.within("absolute", 1.0)
    (sets,) = rule.sets(line, [np.arange(4)])
    assert rule.matrix(line)[0].tolist() == [True, True, True, False]
    assert sets.sums(np.eye(4))[sets.member].tolist() == rule.matrix(line).tolist()


def test_success_is_indexed_by_guess_then_truth():
    upward = Success.within(lambda guess, truth: float(guess < truth), 0.0)
    assert upward.matrix([1, 2]).tolist() == [[True, False], [True, True]]


def test_a_table_keeps_its_kind_of_number():
    far = np.array([[0, np.inf], [1, 0]])
    assert Success.hops(far, 1).matrix("ab").tolist() == [[True, False], [True, True]]
    with pytest.raises(ModelError, match="non-negative"):
        Success.hops([[0, -1], [1, 0]], 1)
    with pytest.raises(ModelError, match="non-negative"):
        Success.hops([[0, np.nan], [1, 0]], 1)


def test_a_record_must_hit_itself():
    with pytest.raises(ModelError, match="diagonal at 1"):
        Success.from_matrix([[1, 1], [1, 0]])
    with pytest.raises(ModelError, match="hit itself"):
        Success.within(lambda g, x: 1.0, 0.5).matrix([1, 2])


def test_a_table_needs_a_row_for_each_record_and_truth_values():
    with pytest.raises(ModelError, match="a row for each record"):
        Success.from_matrix([[1, 1]])
    with pytest.raises(ModelError, match="truth values"):
        Success.from_matrix([[1, 2], [0, 1]])
    with pytest.raises(MismatchError, match="each of the 3 records"):
        Success.from_matrix(np.eye(2)).matrix("abc")


def test_records_on_a_line_must_be_numbers():
    with pytest.raises(ModelError, match="finite numbers"):
        Success.within("absolute", 1).matrix(["a", "b"])


def test_wrong_distances_and_functions_are_refused():
    with pytest.raises(TypeError, match="distance must be"):
        Success.within("euclidean", 1)
    with pytest.raises(TypeError, match="function must be callable"):
        Success.attribute("column")
    with pytest.raises(ValueError, match="eta must be non-negative"):
        Success.within("absolute", -1)


def test_a_callable_distance_is_refused_on_millions_of_pairs():
    with pytest.raises(NotApplicable, match=r"use Success\.hops"):
        Success.within(lambda g, x: 0.0, 1).matrix(range(2001))


def test_a_callable_distance_is_called_once_per_pair():
    calls = []
    rule = Success.within(lambda g, x: calls.append(1) or abs(g - x), 1)
    rule.matrix([1, 2, 3])
    rule.sets([1, 2, 3], [np.arange(3)])
    assert len(calls) == 9
    assert repr(rule) == "<Success: within 1>"


def test_decimals_a_tenth_apart_are_a_tenth_apart():
    """As floats 0.8 - 0.6 exceeds 0.2, and the lost hit would understate the risk."""
    rule = Success.within("absolute", 0.2)
    assert rule.matrix([0.6, 0.8, 1.1]).astype(int).tolist() == [
        [1, 1, 0],
        [1, 1, 0],
        [0, 0, 1],
    ]
    assert Success.within("absolute", 0.3).matrix([-0.1, 0.2]).all()


def test_numbers_without_a_common_unit_are_compared_as_they_are():
    assert Success.within("absolute", 1e-9).matrix([1e-300, 1e9, -1e9]).sum() == 3
    assert Success.within("absolute", math.inf).matrix([0.1, 1e9]).all()


LOSS = [[0, 1, 2], [1, 0, 1], [2, 3, 0]]


def test_a_loss_matrix_is_read_by_guess_then_truth():
    rule = Success.within(np.array(LOSS), 1)
    assert rule.matrix("abc").astype(int).tolist() == [[1, 1, 0], [1, 1, 1], [0, 0, 1]]
    assert rule.matrix("abc").tolist() == Success.hops(LOSS, 1).matrix("abc").tolist()
    more = Success.within([*LOSS, [9.5, 0.5, math.inf]], 1)
    assert more.guesses("abc") == ("a", "b", "c", "guess 0")
    assert more.matrix("abc")[3].tolist() == [False, True, False]
    assert Success.within(np.zeros((2, 2)), 1).matrix("ab").all()


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        ([0, 1], r"a row for each record, .* got shape \(2,\)"),
        ([[0, 1]], r"a row for each record, .* got shape \(1, 2\)"),
        (np.zeros((2, 2, 2)), r"got shape \(2, 2, 2\)"),
        (np.zeros((0, 0)), r"got shape \(0, 0\)"),
        (3.0, r"got shape \(\)"),
        ([[0], [1, 0]], "rows of unequal length"),
        ([[0, -1], [1, 0]], "non-negative"),
        ([["0", "1"], ["1", "0"]], "non-negative"),
        (None, "table of non-negative numbers"),
        ([[0, 1], [1, 2]], "diagonal at 1"),
    ],
    ids=str,
)
def test_a_loss_matrix_of_another_shape_is_refused(loss, words):
    with pytest.raises(ModelError, match=words):
        Success.within(loss, 1)


def test_a_loss_matrix_must_fit_the_records_and_states_its_guesses():
    with pytest.raises(MismatchError, match="distance must have one column for each"):
        Success.within(LOSS, 1).matrix("ab")
    with pytest.raises(TypeError, match="guesses must be left out"):
        Success.within(LOSS, 1, guesses=["d"])


def test_a_rule_says_its_threshold_and_unit():
    assert Success.within(LOSS, 1.5).summary == "within 1.5 of the stated loss"
    assert Success.within(LOSS, 1.5, unit="years").summary == "within 1.5 years"
    assert Success.within("absolute", 3, unit="hours").summary == "within 3 hours"
    assert Success.within("metres", 500).summary == "within 500 metres"
    assert Success.hops(LOSS, 2).summary == "within 2 hops"
    assert Success.from_matrix(np.eye(2)).summary == "within the stated tolerance"


def test_whole_numbers_that_a_float_merges_are_refused_on_a_line():
    stamps = [2**53, 2**53 + 1, 2**53 + 2]
    rule = Success.within("absolute", 0)
    with pytest.raises(ModelError, match=r"beyond 2\^53; subtract a common offset"):
        rule.matrix(stamps)
    with pytest.raises(ModelError, match="subtract"):
        rule.matrix(list(np.array(stamps, dtype=np.int64)))
    moved = [stamp - stamps[0] for stamp in stamps]
    assert rule.matrix(moved).tolist() == np.eye(3, dtype=bool).tolist()


def test_a_distance_that_is_no_number_is_refused_instead_of_a_miss():
    rule = Success.within(lambda g, x: 0.0 if g == x else math.nan, 1)
    with pytest.raises(ModelError, match="distances must be a table of non-negative"):
        rule.matrix([1, 2])
    with pytest.raises(ModelError, match="distances must be a table of non-negative"):
        Success.within(lambda g, x: "near", 1).matrix([1, 2])
    unequal = Success.within(lambda g, x: g != x, 0)
    assert unequal.matrix([1, 2]).tolist() == [[True, False], [False, True]]
    third = Success.within(lambda g, x: abs(Fraction(g - x, 3)), 0.5)
    assert third.matrix([1, 2, 3])[0].tolist() == [True, True, False]
