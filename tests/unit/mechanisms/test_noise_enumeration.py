"""The samplers' laws, by running through all their random bits.

A source of words of a few bits replays a given string and stops when it is used up.
Expanding the unfinished strings gives each outcome an exact probability from below, and
the mass of the unfinished strings how much may be missing.
"""

import math
from fractions import Fraction

import numpy as np
import pytest

from support.bit_strings import Replay, assert_encloses, enumerate_law
from undertow.mechanisms.noise import _inversion as staircase
from undertow.mechanisms.noise._inversion import (
    ExpCoin,
    RationalCoin,
    Stairs,
    compile_table,
    resolve,
    sample_outcomes,
    sample_stairs,
)
from undertow.mechanisms.noise.bits import uniform_below, uniform_bits


def target(stairs, reach):
    """Return the law of a staircase's target by brute force."""
    start = -reach if stairs.sides == 2 else 0
    weights = {
        x: math.exp(-float(stairs.rate) * abs(x) ** stairs.power)
        for x in range(start, reach + 1)
    }
    total = math.fsum(weights.values())
    return {x: weight / total for x, weight in weights.items()}


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("bound", [1, 2, 3, 5, 6, 7, 8])
def test_uniform_integers_are_uniform_by_enumeration(width, bound):
    def sample(bits):
        return int(uniform_below(bits, 1, bound=bound)[0])

    # A whole number of attempts.
    depth = 4 * -(-(bound - 1).bit_length() // width)
    law, undecided = enumerate_law(sample, width=width, depth=depth)
    assert len(law) == bound
    assert len(set(law.values())) == 1
    assert undecided < Fraction(1, 16)


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5])
def test_uniform_bits_are_uniform_by_enumeration(length):
    def sample(bits):
        return int(uniform_bits(bits, 1, length=length)[0])

    law, undecided = enumerate_law(sample, width=2, depth=3)
    assert undecided == 0
    assert law == {k: Fraction(1, 1 << length) for k in range(1 << length)}


@pytest.mark.parametrize(
    ("coin", "probability"),
    [
        (RationalCoin(Fraction(1, 3)), 1 / 3),
        (RationalCoin(Fraction(5, 8)), 5 / 8),
        (ExpCoin(Fraction(1, 7)), math.exp(-1 / 7)),
        (ExpCoin(Fraction(5, 2)), math.exp(-5 / 2)),
    ],
)
@pytest.mark.parametrize("width", [1, 2, 4])
def test_coins_have_their_probability_by_enumeration(coin, probability, width):
    table = compile_table(coin, width)

    def sample(bits):
        outcomes, far = sample_outcomes(table, 1, bits=bits)
        assert not far
        return int(outcomes[0])

    law, undecided = enumerate_law(sample, width=width, depth=16 // width)
    assert undecided < 2e-4
    assert_encloses(law, undecided, {0: 1 - probability, 1: probability})


@pytest.mark.parametrize("probability", [0, 1])
def test_certain_coins_need_no_luck(probability):
    table = compile_table(RationalCoin(Fraction(probability)), 3)
    law, undecided = enumerate_law(
        lambda bits: int(sample_outcomes(table, 1, bits=bits)[0][0]), width=3, depth=1
    )
    assert (law, undecided) == ({probability: 1}, 0)


UNIT_STEPS = [
    pytest.param(Stairs(Fraction(1), 1, 1), id="laplace-1"),
    pytest.param(Stairs(Fraction(10, 37), 1, 1), id="laplace-3.7"),
    pytest.param(Stairs(Fraction(5), 1, 1), id="laplace-0.2"),
    pytest.param(Stairs(Fraction(1, 2), 1, 1, 1), id="geometric-2"),
    pytest.param(Stairs(Fraction(1, 2), 2, 1), id="gaussian-1"),
    pytest.param(Stairs(Fraction(1, 14), 2, 1), id="gaussian-7"),
    pytest.param(Stairs(Fraction(9, 2), 2, 1), id="gaussian-1/9"),
]


@pytest.mark.parametrize("width", [2, 4])
@pytest.mark.parametrize("stairs", UNIT_STEPS)
def test_noise_with_unit_steps_has_its_law_by_enumeration(stairs, width):
    def sample(bits):
        return int(sample_stairs(stairs, 1, bits=bits)[0])

    law, undecided = enumerate_law(sample, width=width, depth=12 // width)
    assert undecided < 0.02
    assert_encloses(law, undecided, target(stairs, 120))


SLOW = pytest.mark.slow
WIDE_STEPS = [
    pytest.param(Stairs(Fraction(1, 2), 1, 2), id="laplace-2"),
    pytest.param(Stairs(Fraction(1, 8), 1, 4, 1), id="geometric-8", marks=SLOW),
    pytest.param(Stairs(Fraction(1, 32), 2, 2), id="gaussian-16", marks=SLOW),
    pytest.param(Stairs(Fraction(1, 8), 2, 4), id="gaussian-4-with-steep-steps"),
]


@pytest.mark.parametrize("stairs", WIDE_STEPS[:3])
def test_noise_with_wide_steps_has_its_law_by_enumeration(stairs):
    def sample(bits):
        return int(sample_stairs(stairs, 1, bits=bits)[0])

    law, undecided = enumerate_law(sample, width=4, depth=4)
    assert undecided < 0.3  # the parts are held to far less below
    assert_encloses(law, undecided, target(stairs, 300))


@pytest.mark.parametrize("stairs", WIDE_STEPS)
def test_steps_have_their_law_by_enumeration(stairs):
    table = compile_table(stairs, 4)

    def sample(bits):
        outcomes, far = sample_outcomes(table, 1, bits=bits)
        return far.get(0, int(outcomes[0]))

    law, undecided = enumerate_law(sample, width=4, depth=4)
    weights = [
        math.exp(-float(stairs.rate) * stairs.base(i) ** stairs.power)
        for i in range(300)
    ]
    assert undecided < 0.01
    total = math.fsum(weights)
    assert_encloses(law, undecided, {i: w / total for i, w in enumerate(weights)})


@pytest.mark.parametrize("stairs", WIDE_STEPS)
@pytest.mark.parametrize("index", [0, 1, 3, 6])
def test_places_are_kept_with_their_probability_by_enumeration(stairs, index):
    plan = staircase._compile(stairs, 4)
    assert plan.machine
    offset = stairs.width - 1
    z = int(stairs.excess(index, offset) / stairs.rate)

    def sample(bits):
        return bool(staircase._keep(plan, np.array([z]), bits)[0])

    law, undecided = enumerate_law(sample, width=4, depth=8)
    probability = math.exp(-z * stairs.rate)
    assert undecided < 1e-6
    assert_encloses(law, undecided, {True: probability, False: 1 - probability})


@pytest.mark.parametrize("stairs", WIDE_STEPS[1:2])
def test_machine_words_and_python_integers_make_the_same_noise(stairs, monkeypatch):
    """The object path, forced on a small staircase, has the same law."""
    plan = staircase._compile(stairs, 4)
    slow = staircase._Plan(
        stairs, plan.table, plan.scale, plan.low, plan.high, plan.near, machine=False
    )
    monkeypatch.setattr(staircase, "_compile", lambda *_: slow)

    def sample(bits):
        values = sample_stairs(stairs, 1, bits=bits)
        assert values.dtype == np.object_
        return values[0]

    law, undecided = enumerate_law(sample, width=4, depth=4)
    assert undecided < 0.5
    assert_encloses(law, undecided, target(stairs, 300))


@pytest.mark.parametrize("stairs", [*UNIT_STEPS, *WIDE_STEPS])
def test_the_table_is_the_same_function_of_the_bits_as_exact_inversion(stairs):
    rng = np.random.default_rng(11)
    table = compile_table(stairs, 3)
    for _ in range(300):
        words = rng.integers(8, size=40).tolist()
        outcomes, far = sample_outcomes(table, 1, bits=Replay(3, words))
        exact = resolve(stairs, 0, length=0, bits=Replay(3, words))
        assert far.get(0, int(outcomes[0])) == exact
        assert (0 in far) == (exact >= table.outcomes)


@pytest.mark.parametrize("stairs", [*UNIT_STEPS, *WIDE_STEPS])
def test_outcomes_beyond_the_table_are_those_of_exact_inversion(stairs):
    table = compile_table(stairs, 3)
    beyond = set()
    for ones in range(5, 60, 18):
        words = [7] * ones + [3] * 30
        outcomes, far = sample_outcomes(table, 1, bits=Replay(3, words))
        exact = resolve(stairs, 0, length=0, bits=Replay(3, words))
        assert far.get(0, int(outcomes[0])) == exact
        beyond.add(exact >= table.outcomes)
    assert beyond == {False, True}
