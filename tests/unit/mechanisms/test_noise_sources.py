"""The sources: arguments, stamps, machine limits, and the exactness of their parts."""

import builtins
import math
import pickle
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from undertow.errors import AssumptionError, UndertowError
from undertow.mechanisms import (
    ClampedMechanism,
    DiscreteGaussianMechanism,
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    NoisyMax,
    RandomizedResponse,
    TruncatedMechanism,
)
from undertow.mechanisms.local import (
    BinaryHashing,
    GeneralizedResponse,
    OptimizedHashing,
    OptimizedUnary,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
    ThresholdHistogram,
)
from undertow.mechanisms.noise import _inversion as inversion
from undertow.mechanisms.noise import _inversion as staircase
from undertow.mechanisms.noise._inversion import (
    ExpCoin,
    Stairs,
    gaussian_stairs,
    laplace_stairs,
    sample_stairs,
)
from undertow.mechanisms.noise.bits import (
    BitSource,
    SystemBits,
    _bulk_reader,
    bits_of,
    uniform_below,
)
from undertow.mechanisms.noise.draw import Draw, NoiseSource
from undertow.mechanisms.noise.secure import OpenDPSource, SecureSource, secure_source
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.numeric.rounding import exp_bracket

SOURCES = [SecureSource(), SimulatedSource(5), OpenDPSource()]
OWN = SOURCES[:2]


@given(
    st.fractions(min_value=0, max_value=200, max_denominator=10**9),
    st.integers(1, 150),
)
def test_exp_bracket_encloses_the_exponential_to_two_units(x, precision):
    lower, upper = exp_bracket(x, precision)
    finer_lower, finer_upper = exp_bracket(x, precision + 40)
    assert lower << 40 <= finer_lower <= finer_upper <= upper << 40
    assert 0 <= upper - lower <= 2


@given(st.fractions(min_value=0, max_value=30, max_denominator=10**6))
def test_exp_bracket_agrees_with_the_library_exponential(x):
    lower, upper = exp_bracket(x, 100)
    assert lower / 2**100 == pytest.approx(math.exp(-x), rel=1e-13)
    assert upper >= lower > 0


@pytest.mark.parametrize(
    "stairs",
    [
        laplace_stairs(Fraction(37, 10)),
        laplace_stairs(Fraction(10**6)),
        gaussian_stairs(Fraction(1)),
        gaussian_stairs(Fraction(10**6)),
    ],
)
@pytest.mark.parametrize("precision", [10, 40, 90])
def test_boundaries_at_one_precision_contain_those_at_a_finer_one(stairs, precision):
    lower, upper = stairs.boundaries(precision)
    finer_lower, finer_upper = stairs.boundaries(precision + 30)
    assert lower[0] == upper[0] == 0
    assert len(finer_lower) > len(lower)
    for i, (low, high) in enumerate(zip(lower, upper, strict=True)):
        assert low << 30 <= finer_lower[i] <= finer_upper[i] <= high << 30
        assert high - low <= 2
    assert (1 << precision) - lower[-1] <= 2  # less than 2**-precision is left out


@pytest.mark.parametrize("height", [1, 2, 5])
@pytest.mark.parametrize(
    "stairs",
    [
        laplace_stairs(Fraction(1, 3)),
        laplace_stairs(Fraction(100)),
        laplace_stairs(Fraction(20), sides=1),
        gaussian_stairs(Fraction(1)),
        gaussian_stairs(Fraction(10**4)),
    ],
)
def test_the_tail_bound_is_above_the_tail_and_of_its_order(stairs, height):
    first = stairs.sides * height
    tail = sum(
        exp_bracket(stairs.rate * stairs.base(i) ** stairs.power, 80)[0]
        for i in range(first, first + 800)
    )
    assert tail <= stairs._tail(height, 80) <= 40 * tail + 2


def test_a_step_is_chosen_with_the_width_set_by_the_scale():
    assert laplace_stairs(Fraction(31)).width == 1
    assert laplace_stairs(Fraction(32)).width == 2
    assert laplace_stairs(Fraction(1, 1000)).width == 1
    assert gaussian_stairs(Fraction(32**2)).width == 2
    assert gaussian_stairs(Fraction(32**2 - 1)).width == 1


def test_step_values_cover_each_integer_once():
    stairs = Stairs(Fraction(1), 1, 4)
    values = [stairs.value(i, o) for i in range(6) for o in range(4)]
    assert sorted(values) == list(range(-12, 12))
    for index in range(6):
        for offset in range(4):
            magnitude = abs(stairs.value(index, offset))
            assert magnitude == stairs.base(index) + offset


@pytest.mark.parametrize(
    "stairs",
    [
        laplace_stairs(Fraction(10**6)),
        gaussian_stairs(Fraction(10**6)),
        gaussian_stairs(Fraction(3 * 2**59)),
    ],
)
def test_failure_brackets_enclose_the_exact_probability(stairs):
    plan = staircase._compile(stairs, 16)
    assert plan.machine
    top = min(plan.near, 2**62)
    z = np.unique(np.geomspace(1, float(top), 200).astype(np.int64).clip(0, top))
    low, high = staircase._failure_bracket(plan, z)
    for value, no_below, yes_from in zip(
        z.tolist(), low.tolist(), high.tolist(), strict=True
    ):
        exact_low, exact_high = exp_bracket(stairs.rate * value, plan.scale)
        assert no_below <= (1 << plan.scale) - exact_high
        assert (1 << plan.scale) - exact_low <= yes_from


@given(st.integers(0, 60), st.integers(1, 9))
def test_every_plan_stays_inside_the_machine_word(exponent, lead):
    for stairs in (
        laplace_stairs(Fraction(lead * 2**exponent, 3)),
        gaussian_stairs(Fraction(lead * 2**exponent, 3)),
    ):
        plan = staircase._compile.__wrapped__(stairs, 16)
        last, m = stairs.base(plan.table.outcomes - 1), stairs.width
        z = m - 1 if stairs.power == 1 else (m - 1) * (2 * last + m - 1)
        if plan.machine:
            assert max(z, last + m) < 2**62
            assert z * plan.high < 2**63
            root = (plan.near * plan.high >> plan.scale // 2) + 1
            assert root * root < 2**63
            assert plan.scale >= 32


def test_tiny_scales_are_drawn_in_machine_words_and_give_zero():
    for draw in (
        SecureSource().laplace("1e-30", 9),
        SecureSource().gaussian("1e-60", 9),
    ):
        assert draw.values.dtype == np.int64
        assert not draw.values.any()  # another value has probability exp(-1e30)


@pytest.mark.parametrize("power", [1, 2])
@pytest.mark.parametrize("sides", [1, 2])
def test_arrays_and_python_integers_agree_on_every_place(power, sides):
    stairs = Stairs(Fraction(1, 50), power, 4, sides)
    index, offset = (grid.ravel() for grid in np.mgrid[0:9, 0:4])
    growth = staircase._growth(stairs, index, offset)
    values = staircase._mirror(stairs, index, offset)
    for i, o, z, value in zip(index, offset, growth, values, strict=True):
        assert stairs.rate * int(z) == stairs.excess(int(i), int(o))
        assert value == stairs.value(int(i), int(o))


def test_too_narrow_steps_are_refused():
    with pytest.raises(ValueError, match="use wider steps"):
        inversion.compile_table(Stairs(Fraction(1, 10**4), 1, 1), 16)


@pytest.mark.parametrize("source", SOURCES, ids=repr)
def test_sources_share_one_interface(source):
    assert isinstance(source, NoiseSource)
    for draw in (source.laplace(2, 7), source.gaussian(4, 7)):
        assert isinstance(draw, Draw)
        assert draw.values.shape == (7,)
        assert draw.values.dtype == np.int64
        assert (draw.simulated, draw.source) == (source.simulated, source.name)
    assert source.laplace(2, 0).values.size == source.gaussian(2, 0).values.size == 0


@pytest.mark.parametrize("source", OWN, ids=repr)
def test_own_sources_draw_coins_geometric_and_uniform_integers(source):
    assert set(source.bernoulli("1/2", 99).values.tolist()) == {0, 1}
    assert set(source.bernoulli_exp(0, 99).values.tolist()) == {1}
    assert set(source.bernoulli_exp(math.inf, 99).values.tolist()) == {0}
    assert source.geometric(5, 99).values.min() >= 0
    assert set(source.uniform(3, 99).values.tolist()) == {0, 1, 2}
    assert source.uniform(1, 5).values.tolist() == [0] * 5


@pytest.mark.parametrize("source", SOURCES, ids=repr)
@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "0", "-1/2", "x"])
def test_bad_scales_are_refused_with_one_sentence(source, value):
    for draw, name in ((source.laplace, "scale"), (source.gaussian, "variance")):
        with pytest.raises(ValueError, match=rf"^{name} must [^\n]+\.$"):
            draw(value, 1)


@pytest.mark.parametrize("source", SOURCES, ids=repr)
def test_bad_sizes_are_refused_with_one_sentence(source):
    with pytest.raises(ValueError, match=r"^size must be non-negative, got -1\.$"):
        source.laplace(1, -1)
    for size in (1.5, "3", None, True):
        with pytest.raises(TypeError, match=r"^size must be an integer, got \w+\.$"):
            source.gaussian(1, size)
    with pytest.raises(TypeError, match=r"^scale must be"):
        source.laplace(True, 1)


@pytest.mark.parametrize("source", OWN, ids=repr)
def test_bad_coins_and_bounds_are_refused(source):
    with pytest.raises(ValueError, match="probability must be at most 1"):
        source.bernoulli(1.5, 1)
    with pytest.raises(ValueError, match="x must be non-negative"):
        source.bernoulli_exp(-1, 1)
    with pytest.raises(ValueError, match="bound must be positive"):
        source.uniform(0, 1)


def test_the_secure_source_cannot_be_seeded():
    with pytest.raises(TypeError):
        SecureSource(7)
    assert not hasattr(SecureSource(), "__dict__")
    assert isinstance(pickle.loads(pickle.dumps(SecureSource())), SecureSource)
    np.random.seed(1)  # noqa: NPY002 -- the point is that it changes nothing
    first = SecureSource().laplace(1000, 50).values.tolist()
    np.random.seed(1)  # noqa: NPY002 -- see above
    assert first != SecureSource().laplace(1000, 50).values.tolist()


def test_few_system_bits_are_sixteen_bit_words_of_urandom(monkeypatch):
    monkeypatch.setattr("os.urandom", lambda count: bytes(range(count)))
    bits = SystemBits()
    assert isinstance(bits, BitSource)
    expected = np.array([0, 1, 2, 3], np.uint8).view(np.uint16)
    assert bits.words(2).tolist() == expected.tolist()


@pytest.fixture
def fresh_reader():
    _bulk_reader.cache_clear()
    yield
    _bulk_reader.cache_clear()


@pytest.mark.usefixtures("fresh_reader")
@pytest.mark.parametrize("name", ["PCG64", "PCG64DXSM", "Philox", "SFC64", "MT19937"])
@pytest.mark.parametrize("count", [3, 5000])
def test_seeded_words_are_all_bits_of_the_generator(name, count):
    kind = getattr(np.random, name)
    drawn = SimulatedSource(np.random.Generator(kind(5))).bits.words(count)
    ahead = np.random.Generator(kind(5)).integers(
        2**64 - 1, size=5000, dtype=np.uint64, endpoint=True
    )
    np.testing.assert_array_equal(drawn, ahead.astype("<u8").view("<u2")[:count])


def test_many_system_bits_are_those_of_the_generator_it_seeds(monkeypatch):
    monkeypatch.setattr("ssl.RAND_bytes", lambda count: b"\1\2" * (count // 2))
    assert (SystemBits().words(600) == SystemBits().words(600)).all()
    assert set(SystemBits().words(600).tolist()) == {0x0201}
    assert len(set(SystemBits().words(100).tolist())) > 1


@pytest.mark.usefixtures("fresh_reader")
def test_without_that_generator_all_bits_come_from_urandom(monkeypatch):
    monkeypatch.setitem(sys.modules, "ssl", None)
    monkeypatch.setattr("os.urandom", lambda count: b"\3\4" * (count // 2))
    assert set(SystemBits().words(5000).tolist()) == {0x0403}


FORKING = """
import os, sys
from undertow.mechanisms.noise import bits
assert "ssl" not in sys.modules
parent = bits.SystemBits().words(1000)
read, write = os.pipe()
if os.fork() == 0:
    os.write(write, bits.SystemBits().words(1000).tobytes())
    os._exit(0)
os.wait()
child = os.read(read, 2000)
mine = bits.SystemBits().words(1000).tobytes()
print(len(child), child != mine, child != parent.tobytes(), "ssl" in sys.modules)
"""


def test_a_child_process_draws_other_bits_and_few_bits_load_nothing():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKING],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["2000", "True", "True", "True"]


def test_a_source_of_uniform_integers_gives_words():
    class Uniform:
        def uniform(self, bound, size):
            assert bound == 1 << 16
            return Draw(np.arange(size, dtype=np.int64), True, "test")

    bits = bits_of(Uniform())
    assert isinstance(bits, BitSource)
    assert bits.words(3).tolist() == [0, 1, 2]
    assert bits.words(3).dtype == np.uint16
    assert isinstance(bits_of(SecureSource()), SystemBits)


def test_seeded_words_repeat_and_are_dealt_once():
    first, second = (SimulatedSource(5).bits for _ in range(2))
    sizes = [3, 1, 600, 5000, 2, 1500]
    for size in sizes:
        words = first.words(size)
        assert words.tolist() == second.words(size).tolist()
        assert words.dtype == np.uint16
        assert len(words) == size
        with pytest.raises(ValueError, match="read-only"):
            words[0] = 1
    drawn = [first.words(100) for _ in range(200)]
    pairs = {tuple(part) for words in drawn for part in words.reshape(-1, 4).tolist()}
    assert len(pairs) == 5000


@pytest.mark.statistical
@pytest.mark.parametrize("source", OWN, ids=repr)
@pytest.mark.parametrize("bound", [3, 3051, 40_000, 65_535, 70_001, 3_000_000_000])
def test_uniform_integers_fill_their_range_evenly(source, bound):
    n = 200_000
    values = uniform_below(bits_of(source), n, bound=bound)
    assert values.dtype == np.int64
    assert values.min() >= 0
    assert values.max() < bound
    cells = min(bound, 64)
    counts = np.bincount(values * cells // bound, minlength=cells)
    sizes = [
        -(-(i + 1) * bound // cells) - -(-i * bound // cells) for i in range(cells)
    ]
    expected = n * np.array(sizes) / bound
    statistic = ((counts - expected) ** 2 / expected).sum()
    # A false alarm in a million.
    assert statistic < stats.chi2.isf(1e-6, cells - 1)


def test_a_simulated_draw_repeats_with_its_seed_and_says_so():
    first, second = (SimulatedSource(9).gaussian(50, 20) for _ in range(2))
    assert first.values.tolist() == second.values.tolist()
    rng = np.random.default_rng(9)
    assert (
        SimulatedSource(rng).gaussian(50, 20).values.tolist() == first.values.tolist()
    )
    assert first.simulated
    with pytest.raises(AssumptionError, match="draw them again with SecureSource"):
        first.secure_values()


def test_a_secure_draw_may_be_released_and_is_read_only():
    draw = SecureSource().laplace(1, 3)
    assert draw.secure_values() is draw.values
    with pytest.raises(ValueError, match="read-only"):
        draw.values[0] = 1


def test_continuous_draws_exist_only_in_simulation():
    source = SimulatedSource(2)
    assert source.continuous_laplace(2, 4).values.dtype == np.float64
    assert source.continuous_gaussian(2, 4).simulated
    assert not hasattr(SecureSource(), "continuous_laplace")


def test_simulation_refuses_scales_that_doubles_cannot_hold():
    with pytest.raises(ValueError, match=r"^scale must be at most .* SecureSource"):
        SimulatedSource(1).laplace(2**60, 1)
    with pytest.raises(ValueError, match="bound must be positive"):
        SimulatedSource(1).uniform(0, 1)
    with pytest.raises(ValueError, match="seed must be non-negative"):
        SimulatedSource(-1)


def test_huge_scales_are_drawn_in_python_integers():
    for draw in (
        SecureSource().laplace("1e30", 40),
        SecureSource().gaussian("1e40", 40),
    ):
        assert draw.values.dtype == np.object_
        assert all(type(value) is int for value in draw.values)
    typical = sorted(abs(v) for v in SecureSource().laplace("1e30", 99).values)[49]
    assert 10**29 < typical < 2 * 10**30  # the median is 0.69e30; 20 sigma away
    assert SecureSource().uniform(2**100, 9).values.dtype == np.object_
    assert max(SecureSource().uniform(2**100 - 5, 50).values) > 2**90


def test_a_value_beyond_the_machine_word_is_kept_as_a_python_integer(monkeypatch):
    def one_far(table, count, *, bits):
        return np.zeros(count, np.int16), {1: 2**70}

    monkeypatch.setattr(staircase, "sample_outcomes", one_far)
    values = sample_stairs(laplace_stairs(Fraction(1)), 3, bits=SystemBits())
    assert values.dtype == np.object_
    assert values.tolist() == [0, 2**69, 0]


def test_blocks_with_and_without_far_values_join(monkeypatch):
    real, calls = staircase.sample_outcomes, []

    def far_in_second_block(table, count, *, bits):
        calls.append(count)
        outcomes, far = real(table, count, bits=bits)
        return outcomes, {0: 2**70 + 1} if len(calls) == 2 else far

    monkeypatch.setattr(staircase, "sample_outcomes", far_in_second_block)
    values = sample_stairs(laplace_stairs(Fraction(1)), 150_000, bits=SystemBits())
    assert len(calls) == 3
    assert values[1 << 16] == ~(2**69)
    assert all(type(value) is int for value in values[[0, 1 << 16, -1]])


def test_a_far_value_after_a_rejection_joins_the_others(monkeypatch):
    calls = []

    def propose(plan, count, bits):
        calls.append(count)
        if len(calls) == 1:
            return np.arange(count), np.array([True, False, True])
        return np.array([2**70], dtype=object), np.array([True])

    monkeypatch.setattr(staircase, "_propose", propose)
    values = sample_stairs(laplace_stairs(Fraction(1)), 3, bits=SystemBits())
    assert calls == [3, 1]
    assert values.tolist() == [0, 2**70, 2]


def test_far_values_on_wide_steps_keep_their_law_of_rejection(monkeypatch):
    """A far step of the Gaussian is so steep that only its first place is kept."""
    real, calls = staircase.sample_outcomes, []

    def far_at_first(table, count, *, bits):
        calls.append(count)
        outcomes, far = real(table, count, bits=bits)
        return outcomes, {0: 2 * 10**6} if len(calls) == 1 else far

    monkeypatch.setattr(staircase, "sample_outcomes", far_at_first)
    values = sample_stairs(gaussian_stairs(Fraction(10**6)), 5, bits=SystemBits())
    assert values[0] == 32 * 10**6 or abs(values[0]) < 10**5
    assert len(calls) >= 1


def test_an_exact_coin_is_asked_for_no_more_bits_than_it_needs():
    class NoBits:
        width = 16

        def words(self, count):
            raise AssertionError

    assert inversion.resolve(ExpCoin(Fraction(0)), 0, length=0, bits=NoBits()) == 1
    half = inversion.resolve(ExpCoin(Fraction(1)), 0, length=1, bits=NoBits())
    assert half == 0  # 1 - 1/e > 1/2


def test_secure_source_chooses_a_backend():
    assert isinstance(secure_source(), SecureSource)
    assert isinstance(secure_source(backend="opendp"), OpenDPSource)
    with pytest.raises(ValueError, match="backend must be undertow or opendp"):
        secure_source(backend="dice")


def test_a_missing_opendp_is_explained_in_one_sentence(monkeypatch):
    real = builtins.__import__

    def without_opendp(name, *args, **kwargs):
        if name.startswith("opendp"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_opendp)
    with pytest.raises(UndertowError, match=r"^backend .* pip install .*\.$"):
        secure_source(backend="opendp")


def test_opendp_refuses_scales_at_which_it_would_saturate():
    with pytest.raises(ValueError, match=r"^scale must be at most 2\*\*40"):
        OpenDPSource().laplace(2**41, 1)
    with pytest.raises(ValueError, match="the root of variance"):
        OpenDPSource().gaussian(2**82, 1)


def test_importing_the_sources_does_not_import_opendp():
    code = (
        "import sys, undertow.mechanisms.noise;"
        "print([m for m in ('opendp', 'scipy.stats') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr


SAMPLERS = [
    (GeneralizedResponse(4, 1), [0]),
    (SymmetricUnary(4, 1), [0]),
    (OptimizedUnary(4, 1), [0]),
    (SubsetSelection(4, 1), [0]),
    (BinaryHashing(4, 1), [0]),
    (OptimizedHashing(4, 1), [0]),
    (SummationHistogram(4, 1), [0]),
    (ThresholdHistogram(4, 1), [0]),
    (LaplaceMechanism(1), [0.0]),
    (GaussianMechanism(1), [0.0]),
    (DiscreteLaplaceMechanism(1), [0]),
    (DiscreteGaussianMechanism(1), [0]),
    (ClampedMechanism(LaplaceMechanism(1), 0, 1), [0.0]),
    (TruncatedMechanism(LaplaceMechanism(1), 0, 1), [0.5]),
    (RandomizedResponse(3, 1), [0]),
    (ExponentialMechanism(3, epsilon=1, sensitivity=1), [0, 1, 2]),
    (NoisyMax(3, epsilon=1, sensitivity=1), [0, 1, 2]),
]
NO_SOURCES = [np.random.default_rng(1), np.random.RandomState(1), 5, 0, "seed", print]


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda pair: type(pair[0]).__name__)
@pytest.mark.parametrize("source", NO_SOURCES, ids=lambda each: type(each).__name__)
def test_what_is_no_noise_source_is_refused_in_one_sentence(sampler, source):
    mechanism, values = sampler
    with pytest.raises(TypeError, match=r"^source must be a .*Source"):
        mechanism.sample(values, source=source)


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda pair: type(pair[0]).__name__)
def test_a_simulated_source_takes_a_generator(sampler):
    mechanism, values = sampler
    for seed in (np.random.default_rng(1), 1):
        assert mechanism.sample(values, source=SimulatedSource(seed)).simulated
