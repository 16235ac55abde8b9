"""Encodings: what a row moves, and what numbers without noise say."""

from fractions import Fraction

import numpy as np
import pytest

from undertow.release.engine.job import Aggregates, Value
from undertow.release.plan.encoding import (
    Mean,
    Rows,
    Sum,
    Units,
    Variance,
    value_lattice,
)
from undertow.release.plan.noise import Contribution, IntegerNoise

NO_NOISE = IntegerNoise("laplace", Fraction(1, 1000))
ONE_ROW = Contribution(1, None, None, 1)


def table(codes):
    measures = {
        "rows": [len(codes)],
        "units": [len(codes)],
        "sum": [sum(codes)],
        "squares": [sum(code**2 for code in codes)],
    }
    return Aggregates(
        ((),), {k: np.array(v, dtype=np.object_) for k, v in measures.items()}
    )


VALUE = Value("v", Fraction(-1), Fraction(2), -2)  # codes 0..12


@pytest.mark.parametrize("kind", [Sum, Mean, Variance])
def test_a_row_moves_the_numbers_no_further_than_stated_and_some_row_that_far(kind):
    encoding = kind(VALUE)
    reach = encoding.reach(ONE_ROW)
    empty = encoding.vector(table([]))
    moves = [
        (encoding.vector(table([code])) - empty).ravel().tolist()
        for code in range(VALUE.most + 1)
    ]
    assert max(sum(abs(x) for x in move) for move in moves) == reach.total
    assert max(sum(x**2 for x in move) for move in moves) == reach.square


@pytest.mark.parametrize("kind", [Sum, Mean, Variance])
@pytest.mark.parametrize("low", ["-1", "0", "3", "-8"])
def test_replacing_a_row_moves_the_numbers_no_further_than_stated(kind, low):
    value = Value("v", Fraction(low), Fraction(low) + 3, -2)
    encoding = kind(value)
    reach = encoding.reach(ONE_ROW)
    rows = [
        encoding.vector(table([code])).ravel().tolist()
        for code in range(value.most + 1)
    ] + [encoding.vector(table([])).ravel().tolist()]
    for old in rows:
        for new in rows:
            moves = [abs(x - y) for x, y in zip(old, new, strict=True)]
            assert sum(moves) <= reach.swap_total
            assert sum(x**2 for x in moves) <= reach.swap_square


@pytest.mark.parametrize("kind", [Mean, Variance])
def test_the_numbers_of_a_row_are_not_negative_and_add_up_to_a_constant(kind):
    encoding = kind(VALUE)
    for code in range(VALUE.most + 1):
        parts = encoding.vector(table([code])).ravel().tolist()
        assert min(parts) >= 0
        assert sum(parts) == encoding.row_size


def test_estimates_without_noise_are_the_truth():
    codes = [0, 3, 12, 7, 7]
    numbers = np.array([-1 + code / 4 for code in codes])
    seen = {
        kind: kind(VALUE).read(
            kind(VALUE).vector(table(codes)), noise=NO_NOISE, beta=0.05
        )[0]
        for kind in (Sum, Mean, Variance)
    }
    assert seen[Sum][0] == numbers.sum()
    assert seen[Mean][0] == pytest.approx(numbers.mean())
    assert seen[Variance][0] == pytest.approx(numbers.var())
    for kind, truth in ((Mean, numbers.mean()), (Variance, numbers.var())):
        assert seen[kind][1] <= truth <= seen[kind][2]


@pytest.mark.parametrize("kind", [Mean, Variance])
def test_the_truth_is_covered_whenever_no_number_is_off_by_more_than_the_radius(kind):
    codes, encoding = [1, 5, 12, 12, 0, 3] * 4, kind(VALUE)
    numbers = np.array([-1 + code / 4 for code in codes])
    truth = numbers.mean() if kind is Mean else numbers.var()
    noise = IntegerNoise("laplace", Fraction(9))
    parts = 2 if kind is Mean else 3
    t = noise.radius(0.1 / parts)
    vector = encoding.vector(table(codes))
    corners = np.array(np.meshgrid(*[[-t, 0, t]] * parts)).reshape(parts, -1).T
    for corner in corners.tolist():
        noisy = vector + np.array(corner, dtype=np.object_)
        _, low, high = encoding.read(noisy, noise=noise, beta=0.1)[0]
        assert low <= truth <= high


@pytest.mark.parametrize("kind", [Mean, Variance])
def test_a_cell_that_looks_empty_says_nothing_rather_than_something_wrong(kind):
    encoding = kind(VALUE)
    noisy = encoding.vector(table([])) - 1000
    estimate, low, high = encoding.read(noisy, noise=NO_NOISE, beta=0.05)[0]
    assert low <= estimate <= high
    assert (low, high) == ((-1.0, 2.0) if kind is Mean else (0.0, pytest.approx(2.25)))


def test_the_lattice_depends_on_the_bounds_and_has_at_most_a_million_steps():
    for low, high in [("0", "1"), ("-5", "1000"), ("0.1", "0.3"), ("0", "1e9")]:
        value = value_lattice("v", low=Fraction(low), high=Fraction(high))
        assert 2**19 <= value.most <= 2**20 + 1
    assert value_lattice("v", low=Fraction(0), high=Fraction(2**20)).exponent == 0


def test_sums_of_whole_numbers_are_exact_whole_numbers():
    value = value_lattice("v", low=Fraction(-100), high=Fraction(2**21))
    encoding = Sum(value)
    codes = [int((number + 100) / value.step) for number in (4, -100, 1000)]
    estimate = encoding.read(encoding.vector(table(codes)), noise=NO_NOISE, beta=0.05)[
        0
    ][0]
    assert estimate == 904
    assert isinstance(estimate, int)


def test_only_quantities_that_cannot_be_negative_say_so():
    positive = Value("v", Fraction(0), Fraction(2), -2)
    assert Rows().non_negative
    assert Sum(positive).non_negative
    assert not Sum(VALUE).non_negative
    assert not Mean(VALUE).non_negative
    assert Variance(VALUE).non_negative


def test_half_widths_name_their_unit():
    noise = IntegerNoise("laplace", Fraction(3))
    assert Rows().half_width(noise, 0.05) == (noise.radius(0.05), "rows")
    assert Units().half_width(noise, 0.05)[1] == "units"
    assert Sum(VALUE).half_width(noise, 0.05)[0] == noise.radius(0.05) / 4
    for kind in (Mean, Variance):
        assert "divided by the rows" in kind(VALUE).half_width(noise, 0.05)[1]
        assert "clipped to [-1, 2]" in kind(VALUE).note
