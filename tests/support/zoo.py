"""A zoo of a hundred mechanisms: what people ship as private, and what it truly is.

Eighty-nine are flawed and eleven keep their promise. Each is an ordinary function from
data to an output that draws its own randomness, with two neighbouring inputs and the
claim that its author would make. The docstring of a function says why it is flawed;
`loss` is what it truly loses at the claimed delta on these two inputs, where that is
known: infinite where an output is possible on one input alone.

Noise is a multiple of 2^-20, unless low bits are the flaw, so that a mechanism is
flawed for the reason that is stated and for no other.
"""

from __future__ import annotations

import itertools
import json
import math
import random
import statistics
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np

__all__ = ["ZOO", "Animal", "reset"]


@dataclass(frozen=True)
class Animal:
    """A mechanism, two neighbouring inputs, and what is claimed for it."""

    function: Callable[[Any], Any]
    family: str
    inputs: tuple[Any, Any]
    epsilon: float
    delta: float
    flawed: bool
    loss: float | None

    @property
    def name(self) -> str:
        return self.function.__name__

    @property
    def reason(self) -> str:
        return str(self.function.__doc__)


ZOO: list[Animal] = []
"""All of them, by family, in the order of this file; the correct ones last."""

coin = random.Random()


def reset(seed: int | None = None) -> None:
    """Seed what the zoo draws from, so that a run of all of it can be repeated."""
    coin.seed(seed)


def _keep(family, first, second, epsilon, delta, loss, *, flawed):
    def enter(function):
        inputs = (first, second)
        animal = Animal(function, family, inputs, epsilon, delta, flawed, loss)
        ZOO.append(animal)
        return function

    return enter


def flawed(family, first, second, *, epsilon=1.0, delta=0.0, loss=math.inf):
    """Enter a mechanism that breaks its claim."""
    return _keep(family, first, second, epsilon, delta, loss, flawed=True)


def correct(first, second, *, epsilon=1.0, delta=0.0):
    """Enter a mechanism that keeps its claim, exactly tight where possible."""
    return _keep("Correct", first, second, epsilon, delta, epsilon, flawed=False)


def on_grid(value):
    return math.floor(value * 2**20 + 0.5) / 2**20


def laplace(scale):
    return on_grid(scale * (coin.expovariate(1.0) - coin.expovariate(1.0)))


def float_laplace(scale):
    return scale * (coin.expovariate(1.0) - coin.expovariate(1.0))


def gauss(sigma):
    return on_grid(coin.gauss(0.0, sigma))


def geometric(alpha):
    """Two-sided: k with probability proportional to alpha^|k|."""
    first, second = (math.log(1.0 - coin.random()) for _ in range(2))
    return int(first / math.log(alpha)) - int(second / math.log(alpha))


def choose(weights):
    return coin.choices(range(len(weights)), weights)[0]


def best(scores):
    return max(range(len(scores)), key=scores.__getitem__)


# The deviation of Gaussian noise for sensitivity 1 at (1, 1e-5), rounded up.
SIGMA = 3.7307
TINY = 1e-5


# --- The wrong scale ------------------------------------------------------------------

SCALE = "wrong scale"


@flawed(SCALE, [31], [31, 45], loss=2.0)
def half_the_scale(people):
    """The scale is half of what it must be: 1/(2 epsilon)."""
    return len(people) + laplace(0.5)


@flawed(SCALE, [31], [31, 45], loss=math.sqrt(2))
def deviation_for_scale(people):
    """One over epsilon is taken for the standard deviation, not for the scale."""
    return len(people) + laplace(1 / math.sqrt(2))


@flawed(SCALE, [3, 4], [3, 4, 9], loss=9.0)
def sensitivity_forgotten(marks):
    """A sum of values up to 10 gets the noise of a count."""
    return sum(marks) + laplace(1.0)


@flawed(SCALE, [0, 0, 1], [0, 1, 1], loss=2.0)
def replaced_record_counted_once(groups):
    """Replacing a record changes two bins; the noise is for one."""
    counts = Counter(groups)
    return [counts[0] + laplace(1.0), counts[1] + laplace(1.0)]


@flawed(SCALE, [1], [1, 1], delta=TINY, loss=4.38)
def gaussian_without_its_logarithm(people):
    """Sigma is the sensitivity over epsilon; the root of 2 ln(1.25/delta) is gone."""
    return len(people) + gauss(1.0)


@flawed(SCALE, [1], [1, 1])
def gaussian_with_a_pure_claim(people):
    """Gaussian noise is pure for no epsilon."""
    return len(people) + gauss(1.0)


@flawed(SCALE, [0], [1])
def relative_noise(bits):
    """The noise is a share of the answer, so that 0 stays 0."""
    return on_grid(sum(bits) * (1.0 + float_laplace(0.5)))


@flawed(SCALE, [0], [1], loss=2.0)
def geometric_with_wrong_alpha(bits):
    """Alpha is exp(-2 epsilon), as if noise of both signs spent a half each."""
    return sum(bits) + geometric(math.exp(-2.0))


# --- Another law than the one that was proved -----------------------------------------

LAW = "wrong noise"


@flawed(LAW, [], [1])
def exponential_noise(people):
    """Noise of one sign: nothing below the truth is possible."""
    return len(people) + on_grid(coin.expovariate(1.0))


@flawed(LAW, [], [1])
def uniform_noise(people):
    """Bounded noise shows the truth at its ends."""
    return len(people) + on_grid(coin.uniform(-3.0, 3.0))


@flawed(LAW, [], [1])
def noise_clipped(people):
    """Noise is clipped to two units, which marks the truth plus and minus 2."""
    return len(people) + max(-2.0, min(2.0, laplace(1.0)))


@flawed(LAW, [], [1], loss=1.49)
def drawn_again_until_plausible(people):
    """Noise is drawn until the answer is not negative, which depends on the truth."""
    answer = -1.0
    while answer < 0.0:
        answer = len(people) + laplace(1.0)
    return answer


@flawed(LAW, [4] * 10, [4] * 11)
def drawn_again_until_useful(people):
    """Noise is drawn until the error is below a tenth of the truth."""
    noise = math.inf
    while abs(noise) > len(people) / 10.0:
        noise = laplace(1.0)
    return len(people) + noise


@flawed(LAW, [], [1], loss=1.69)
def noise_cut_to_an_integer(people):
    """Cutting decimals off the noise doubles the weight of 0."""
    return len(people) + int(laplace(1.0))


@flawed(LAW, [5] * 1000, [5] * 1001)
def no_noise_for_large_counts(people):
    """Counts of a thousand or more need no noise, says the comment."""
    count = len(people)
    return float(count) if count > 1000 else count + laplace(1.0)


# --- Floats and decimals --------------------------------------------------------------

FLOATS = "floats and decimals"


@flawed(FLOATS, [], [1])
def textbook_noise_at_0_and_1(people):
    """A float plus float noise: its low bits tell the answer."""
    return len(people) + float_laplace(1.0)


@flawed(FLOATS, [1] * 10, [1] * 11)
def textbook_noise_at_10_and_11(people):
    """A float plus float noise: low bits tell the answer once in two thousand runs."""
    return len(people) + float_laplace(1.0)


@flawed(FLOATS, [1] * 100, [1] * 101)
def textbook_noise_at_100_and_101(people):
    """A float plus float noise: low bits tell the answer in the far tail alone."""
    return len(people) + float_laplace(1.0)


@flawed(FLOATS, [0.123, 0.4], [0.123, 0.9])
def whole_noise_on_a_fraction(shares):
    """Whole noise leaves the decimals of the answer as they are."""
    return sum(shares) + geometric(math.exp(-1.0))


@flawed(FLOATS, [1.2345], [1.9042])
def two_decimals_of_noise(amounts):
    """The noise is rounded to cents, and not the sum."""
    return sum(amounts) + round(float_laplace(1.0), 2)


@flawed(FLOATS, [200.1234], [900.5678])
def two_decimals_of_large_noise(amounts):
    """The noise is rounded to cents, and has so many that none occurs twice."""
    return sum(amounts) + round(float_laplace(1000.0), 2)


@flawed(FLOATS, [[1] * 3, [1] * 3], [[1] * 3, [1] * 4])
def textbook_noise_on_a_vector(groups):
    """Low bits of one element of a vector tell its answer."""
    return [len(group) + float_laplace(1.0) for group in groups]


# --- Randomness that is none ----------------------------------------------------------

SEEDS = "randomness"


@flawed(SEEDS, [], [1])
def fixed_seed(people):
    """The generator is seeded with 42 in every call."""
    generator = random.Random(42)
    return len(people) + on_grid(generator.expovariate(1.0) - 1.0)


@flawed(SEEDS, [3, 5], [3, 6])
def seed_from_the_data(values):
    """The seed is a function of the data, and so is the answer."""
    generator = random.Random(sum(values))
    return sum(values) + on_grid(generator.gauss(0.0, 1.0))


@flawed(SEEDS, ["ann", "bob"], ["ann", "bob", "cyd"])
def noise_by_name(people):
    """Each person has noise of their own, drawn once from their name."""
    total = sum(1 + random.Random(name).gauss(0.0, 1.0) for name in people)
    return on_grid(total)


@flawed(SEEDS, [0.0], [0.7])
def seed_of_ten_bits(values):
    """The seed has ten bits, so that there are 1024 outputs."""
    generator = random.Random(coin.getrandbits(10))
    return sum(values) + on_grid(generator.expovariate(1.0) - generator.random())


@flawed(SEEDS, [4, 4, 7], [4, 5, 7])
def noise_kept_by_value(counts):
    """Noise is kept for each value, so that equal counts stay equal."""
    noise = {count: laplace(2.0) for count in counts}
    return [count + noise[count] for count in counts]


@flawed(SEEDS, [1, 0, 1], [1, 1, 1])
def one_noise_for_two_answers(bits):
    """The same noise is added to the count and to the count of the others."""
    noise = laplace(2.0)
    return [sum(bits) + noise, sum(bits[::2]) + noise]


@flawed(SEEDS, [1, 0, 1], [1, 1, 1])
def one_noise_with_two_signs(bits):
    """What is added to those who do is taken from those who do not come first."""
    noise = laplace(2.0)
    return [sum(bits) + noise, sum(bits[1:]) - noise]


@flawed(SEEDS, [3, 5, 2, 4], [3, 5, 2, 5])
def noise_that_sums_to_zero(counts):
    """Noise is centred, so that the total is kept."""
    noise = [laplace(1.0) for _ in counts]
    middle = on_grid(sum(noise) / len(noise))
    return [count + part - middle for count, part in zip(counts, noise, strict=True)]


# --- Composition that was forgotten ---------------------------------------------------

COMPOSITION = "composition"


@flawed(COMPOSITION, [0] * 20, [1] * 20, loss=20.0)
def twenty_answers_at_full_epsilon(counts):
    """A person is in twenty counts, each of which spends all of epsilon."""
    return [count + laplace(1.0) for count in counts]


@flawed(COMPOSITION, [0] * 20, [1] * 20, loss=2.0)
def twenty_answers_at_a_tenth(counts):
    """A person is in twenty counts, each of which spends a tenth of epsilon."""
    return [count + laplace(10.0) for count in counts]


@flawed(COMPOSITION, [0] * 10, [1] * 10, loss=10 / 3)
def noise_for_three_of_ten_partitions(counts):
    """A person may be in ten partitions; the noise is for three."""
    return [count + laplace(3.0) for count in counts]


@flawed(COMPOSITION, [5] * 10, [5] * 9 + [6])
def three_of_ten_partitions_with_noise(counts):
    """The first three partitions get noise, the others are left as they are."""
    return [c + laplace(1.0) if k < 3 else float(c) for k, c in enumerate(counts)]


@flawed(COMPOSITION, [0] * 20, [1] * 20, loss=math.sqrt(20))
def l2_for_l1(counts):
    """Laplace noise is scaled to the L2 sensitivity of twenty answers."""
    return [count + laplace(math.sqrt(20)) for count in counts]


@flawed(COMPOSITION, [0] * 16, [1] * 16, delta=TINY, loss=4.75)
def gaussian_per_coordinate(counts):
    """Sigma is that of one coordinate; a person changes sixteen."""
    return [count + gauss(SIGMA) for count in counts]


@flawed(COMPOSITION, [0], [1], loss=10.0)
def privacy_of_rows_for_people(visits):
    """One person has ten rows, and the noise is for one."""
    return sum(10 * visit for visit in visits) + laplace(1.0)


def _tree(leaves):
    levels = [leaves]
    while len(levels[-1]) > 1:
        pairs = zip(levels[-1][::2], levels[-1][1::2], strict=True)
        levels.append([a + b for a, b in pairs])
    return list(itertools.chain.from_iterable(levels))


@flawed(COMPOSITION, [2] * 8, [2] * 7 + [3], loss=4.0)
def tree_without_its_logarithm(hours):
    """A person is in a node of each of four levels; the noise is for one node."""
    return [node + laplace(1.0) for node in _tree(hours)]


@flawed(COMPOSITION, [0] + [1] * 15, [1] * 16, loss=16.0)
def running_totals(days):
    """A person of the first day is in all sixteen totals."""
    return [total + laplace(1.0) for total in itertools.accumulate(days)]


@flawed(COMPOSITION, [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], loss=1.85)
def top_three_at_full_epsilon_each(scores):
    """Three winners are peeled off, each by an exponential mechanism at epsilon."""
    left, winners = list(range(len(scores))), []
    for _ in range(3):
        winner = left[choose([math.exp(scores[item] / 2.0) for item in left])]
        left.remove(winner)
        winners.append(winner)
    return tuple(winners)


@flawed(COMPOSITION, [0] * 10, [1] * 10, delta=TINY, loss=None)
def epsilon_over_the_root_of_ten(counts):
    """Advanced composition without its logarithm: each answer at epsilon/sqrt(10)."""
    return [count + laplace(math.sqrt(10)) for count in counts]


# --- Sparse vectors -------------------------------------------------------------------

SPARSE = "sparse vector"


def _above(queries, *, threshold_noise, query_noise, most):
    """Return whether each query is above a threshold of 0, up to so many times."""
    bar, told = laplace(threshold_noise) if threshold_noise else 0.0, []
    for query in queries:
        noise = laplace(query_noise) if query_noise else 0.0
        told.append(query + noise >= bar)
        if sum(told) == most:
            break
    return told


@flawed(SPARSE, [1, 0] * 4, [0, 1] * 4)
def sparse_vector_without_query_noise(queries):
    """Only the threshold is noisy, so that answers keep the order of the queries."""
    return _above(queries, threshold_noise=2.0, query_noise=0.0, most=8)


@flawed(SPARSE, [0] * 12, [1] * 6 + [-1] * 6, loss=5.43)
def sparse_vector_without_an_end(queries):
    """It goes on after any number of answers above the threshold."""
    return _above(queries, threshold_noise=2.0, query_noise=2.0, most=-1)


@flawed(SPARSE, [0, 0, 0, 0, 1], [1, 1, 1, 1, 0], loss=2.73)
def sparse_vector_at_full_epsilon_twice(queries):
    """Threshold and queries spend epsilon each, the queries without their factor 2."""
    return _above(queries, threshold_noise=1.0, query_noise=1.0, most=1)


@flawed(SPARSE, [0] * 8 + [2], [1] * 8 + [1], loss=4.16)
def sparse_vector_without_threshold_noise(queries):
    """Every answer below the threshold costs epsilon again."""
    return _above(queries, threshold_noise=0.0, query_noise=2.0, most=1)


@flawed(SPARSE, [0, 0, 0, 1], [1, 1, 1, 0], loss=None)
def sparse_vector_with_its_noisy_answer(queries):
    """The answer above the threshold has noise at epsilon, for which nobody pays."""
    told = _above(queries, threshold_noise=2.0, query_noise=4.0, most=1)
    if not told[-1]:
        return [None] * len(queries)
    return [None] * (len(told) - 1) + [queries[len(told) - 1] + laplace(1.0)]


@flawed(SPARSE, [5, 7, 9], [5, 7, 8])
def sparse_vector_with_its_exact_answer(queries):
    """The first query above the threshold is answered without noise."""
    bar = 8.0 + laplace(2.0)
    for number, query in enumerate(queries):
        if query + laplace(4.0) >= bar:
            return number, query
    return None


# --- Choices --------------------------------------------------------------------------

CHOICES = "choices"


@flawed(CHOICES, [4, 5, 2], [5, 4, 2])
def noisy_maximum_with_one_noise(scores):
    """All scores get the same noise, so that the best stays the best."""
    noise = laplace(2.0)
    return best([score + noise for score in scores])


@flawed(CHOICES, [4, 5, 2], [4, 6, 2])
def noisy_maximum_with_its_exact_score(scores):
    """The winner is private and its score is not."""
    winner = best([score + laplace(2.0) for score in scores])
    return winner, scores[winner]


@flawed(CHOICES, [0] * 10, [1] + [0] * 9, loss=1.51)
def noisy_maximum_of_negative_noise(scores):
    """Exponential noise is taken off, where it must be added."""
    return best([score - on_grid(2.0 * coin.expovariate(1.0)) for score in scores])


@flawed(CHOICES, [3, 0, 0], [0, 3, 0], loss=1.5)
def exponential_with_wrong_sensitivity(scores):
    """Scores move by 3, and the weights are for 1."""
    return choose([math.exp(score / 2.0) for score in scores])


@flawed(CHOICES, [1] + [0] * 19, [0] + [1] * 19, loss=1.89)
def exponential_without_its_half(scores):
    """The weights are exp(epsilon u) and not exp(epsilon u / 2)."""
    return choose([math.exp(score) for score in scores])


@flawed(CHOICES, [1, 0, 0, 0], [0, 1, 1, 1], loss=2.8)
def gumbel_with_a_small_scale(scores):
    """Gumbel noise of scale 1/2, where it must be 2."""
    return best([s - 0.5 * math.log(coin.expovariate(1.0)) for s in scores])


@flawed(CHOICES, ["a", "b"], ["a", "b", "a"])
def random_among_ties_alone(votes):
    """Chance decides between equals, and nothing else."""
    counts = Counter(votes)
    most = max(counts.values())
    return coin.choice(sorted(k for k, n in counts.items() if n == most))


# --- Randomised response --------------------------------------------------------------

RESPONSE = "randomised response"


@flawed(RESPONSE, "no", "yes", loss=math.log(3))
def response_by_two_coins(answer):
    """Two fair coins, as in the textbook: ln 3 and not 1."""
    if coin.random() < 0.5:
        return answer
    return "yes" if coin.random() < 0.5 else "no"


def _bits(value, size, *, one, other):
    draws = (coin.random() for _ in range(size))
    return [int(u < (one if k == value else other)) for k, u in enumerate(draws)]


@flawed(RESPONSE, 0, 1, loss=2.0)
def response_at_full_epsilon_per_bit(value):
    """Two bits of a one-hot vector differ, each told at epsilon."""
    keep = math.e / (math.e + 1.0)
    return _bits(value, 8, one=keep, other=1.0 - keep)


@flawed(RESPONSE, 0, 1, loss=1.5)
def unary_encoding_of_two_papers(value):
    """Ones as in symmetric, zeros as in optimised unary encoding."""
    half = math.exp(0.5)
    return _bits(value, 8, one=half / (half + 1.0), other=1.0 / (math.e + 1.0))


@flawed(RESPONSE, 0, 1, loss=2.0)
def rappor_with_two_hashes(value):
    """A value sets two bits of the filter; the noise is for one."""
    half = math.exp(0.5)
    keep, told = half / (half + 1.0), []
    for position in range(12):
        bit = position in (value, 11 - value)
        told.append(str(int(bit if coin.random() < keep else not bit)))
    return "".join(told)


@flawed(RESPONSE, 0, 1, loss=1.69)
def response_among_three_as_among_two(value):
    """Three values get the probabilities of two."""
    if coin.random() < math.e / (math.e + 1.0):
        return value
    return coin.choice([other for other in range(3) if other != value])


@flawed(RESPONSE, "bus", "car", loss=1.53)
def lies_that_may_be_true(way):
    """The lie is drawn from all values, the truth included."""
    if coin.random() < math.e / (math.e + 3.0):
        return way
    return coin.choice(["bike", "bus", "car", "train"])


@flawed(RESPONSE, 1, 2)
def lies_of_one_kind(value):
    """The lie is always the next value."""
    return value if coin.random() < math.e / (math.e + 4.0) else (value + 1) % 5


@flawed(RESPONSE, "ann", "bob")
def pseudonym_beside_the_report(name):
    """The report carries a hash of the record."""
    pseudonym = sha256(name.encode()).hexdigest()[:8]
    return {"id": pseudonym, "likes": coin.random() < 0.5}


# --- Keys, partitions and their order -------------------------------------------------

KEYS = "keys"


@flawed(KEYS, ["rome"], ["rome", "oslo"])
def keys_from_the_data(cities):
    """A key is there if somebody has it."""
    return {city: n + laplace(1.0) for city, n in Counter(cities).items()}


@flawed(KEYS, [0, 3], [1, 3])
def zeros_without_noise(counts):
    """Empty bins are left at zero."""
    return [count + laplace(1.0) if count else 0.0 for count in counts]


@flawed(KEYS, ["rome"], ["rome", "oslo"])
def threshold_with_a_pure_claim(cities):
    """Keys with noisy counts above 3 are published, which needs a delta."""
    noisy = {city: n + laplace(1.0) for city, n in sorted(Counter(cities).items())}
    return [city for city, n in noisy.items() if n > 3.0]


@flawed(KEYS, ["rome"], ["rome", "oslo"], delta=TINY)
def threshold_of_swapped_parameters(cities):
    """Epsilon and delta are swapped in the threshold, which is then far too low."""
    noisy = {city: n + laplace(1.0) for city, n in sorted(Counter(cities).items())}
    cut = 1.0 + math.log(1.0 / (2.0 * 1.0))
    return ",".join(city for city, n in noisy.items() if n > cut)


@flawed(KEYS, [3, 2], [3, 4])
def sorted_by_exact_counts(counts):
    """Noisy counts come in the order of the exact ones, with their names."""
    order = sorted(range(len(counts)), key=counts.__getitem__)
    names = [("rome", "oslo")[k] for k in order]
    return names, [counts[k] + laplace(2.0) for k in order]


@flawed(KEYS, ["oslo", "rome", "rome"], ["rome", "oslo", "rome"])
def keys_in_order_of_arrival(cities):
    """Keys are public, and their order is that of the records."""
    counts = Counter(cities)
    return json.dumps({city: counts[city] + laplace(2.0) for city in counts})


# --- Outputs of another shape ---------------------------------------------------------

SHAPES = "shapes and failures"


@flawed(SHAPES, [], [7])
def division_by_an_empty_group(values):
    """The mean of nobody raises ZeroDivisionError."""
    return on_grid(sum(values) / len(values) + float_laplace(10.0))


@flawed(SHAPES, [], [7])
def none_for_an_empty_group(values):
    """Nothing is returned of an empty group."""
    return on_grid(sum(values) + float_laplace(10.0)) if values else None


@flawed(SHAPES, [], [7])
def nan_for_an_empty_group(values):
    """The mean of nobody is nan."""
    return on_grid(sum(values) + float_laplace(10.0)) if values else math.nan


@flawed(SHAPES, ["rome", "oslo"], ["rome", "oslo", "bern"])
def one_number_for_each_group(cities):
    """The length of the output is the number of groups in the data."""
    counts = Counter(cities)
    return [counts[city] + laplace(1.0) for city in sorted(counts)]


@flawed(SHAPES, [], [7])
def whole_zero_for_nobody(people):
    """Nobody is the whole number 0; everybody else is a float."""
    return len(people) + laplace(1.0) if people else 0


@flawed(SHAPES, [1] * 104, [1] * 105)
def rows_read_in_the_log(rows):
    """A message says how many rows were read, beside the noisy count."""
    return f"read {len(rows)} rows; noisy count {len(rows) + laplace(1.0):.2f}"


@flawed(SHAPES, [1] * 8, [1] * 9)
def debugging_output(people):
    """The exact answer is returned beside the noisy one."""
    return {"answer": len(people) + laplace(1.0), "debug": {"exact": len(people)}}


@flawed(SHAPES, [20, 30], [20, 90])
def exact_spread_beside_the_mean(values):
    """The interval has the exact standard deviation as its width."""
    middle = sum(values) / 2.0 + laplace(50.0)
    spread = on_grid(statistics.pstdev(values))
    return middle - spread, middle, middle + spread


@flawed(SHAPES, [2] * 9, [2] * 10)
def time_that_tells(people):
    """Ten people or more take longer, and the answer is noise alone."""
    sum(range(3000 if len(people) >= 10 else 10))
    return geometric(math.exp(-1.0))


@flawed(SHAPES, [3, 200], [3, 300])
def type_of_the_array(values):
    """The smallest type that holds the data is the type of the output."""
    kind = np.min_scalar_type(max(values))
    return np.array([geometric(0.5) % 100, geometric(0.5) % 100], dtype=kind)


# --- Statistics -----------------------------------------------------------------------

STATISTICS = "statistics"


@flawed(STATISTICS, [1, 1], [1, 1, 0])
def mean_with_a_private_number(bits):
    """The noise of a mean is scaled by the exact number of people."""
    return on_grid((sum(bits) + float_laplace(1.0)) / len(bits))


@flawed(STATISTICS, [1, 2, 3], [1, 2, 3, 4])
def whole_noise_over_a_private_number(values):
    """A whole noisy sum over the exact number: thirds are not quarters."""
    return (sum(values) + geometric(math.exp(-0.1))) / len(values)


@flawed(STATISTICS, [10, 10, 70, 70], [10, 70, 70, 70], loss=30.0)
def median_with_the_noise_of_a_count(ages):
    """The median may move by half of the range."""
    return statistics.median(ages) + laplace(1.0)


@flawed(STATISTICS, [1, 1, 1], [1, 1, 50], loss=None)
def clipped_at_the_largest_value(values):
    """The bound, and so the scale of the noise, is read off the data."""
    return on_grid(sum(values) + float_laplace(max(values)))


@flawed(STATISTICS, [0, 10, 0], [0, 10, 10], loss=None)
def median_of_noisy_values(values):
    """Each value between 0 and 10 gets the noise of a bit."""
    return statistics.median(value + laplace(1.0) for value in values)


@flawed(STATISTICS, [2] * 5, [2] * 6)
def no_more_than_there_are(people):
    """The noisy count is cut at the exact size of the table."""
    return min(float(len(people)), len(people) + laplace(1.0))


# --- Sampling, training and delta -----------------------------------------------------

SAMPLING = "sampling, training, delta"


@flawed(SAMPLING, [], [1], loss=7.7)
def sampling_divides_epsilon(people):
    """A tenth is sampled and counted at epsilon 10, which is said to be epsilon 1."""
    return sum(coin.random() < 0.1 for _ in people) + laplace(0.1)


@flawed(SAMPLING, [0, 0, 0], [0, 0, 1], loss=4.0)
def three_shuffled_reports(bits):
    """Three reports at epsilon 4 are shuffled, which does not make them epsilon 1."""
    keep = math.exp(4.0) / (math.exp(4.0) + 1.0)
    told = [bit if coin.random() < keep else 1 - bit for bit in bits]
    coin.shuffle(told)
    return tuple(told)


def _step(gradients, *, sigma):
    return [
        on_grid(sum(part) + coin.gauss(0, sigma))
        for part in zip(*gradients, strict=True)
    ]


@flawed(SAMPLING, [(1, 0, 0)], [(1, 0, 0), (20, 9, 9)], delta=TINY, loss=46.5)
def training_without_clipping(gradients):
    """A gradient has any length; the noise is for length 1."""
    return _step(gradients, sigma=SIGMA)


@flawed(SAMPLING, [(0, 0, 0)] * 8, [(0, 0, 0)] * 7 + [(1, 0, 0)], delta=TINY, loss=10.9)
def noise_divided_by_the_batch(gradients):
    """The noise of the sum is divided by the batch of 8, and the sum is not."""
    return _step(gradients, sigma=SIGMA / 8.0)


@flawed(SAMPLING, [31], [45], delta=0.01)
def leak_in_ten_deltas(ages):
    """The whole record is returned with ten times the probability delta."""
    return ages[0] if coin.random() < 0.1 else "nothing"


# --- Correct --------------------------------------------------------------------------


@correct([1] * 10, [1] * 11)
def laplace_noise(people):
    """Laplace noise on a grid, which holds both answers."""
    return len(people) + laplace(1.0)


@correct([1] * 10, [1] * 11)
def discrete_laplace_noise(people):
    """Two-sided geometric noise."""
    return len(people) + geometric(math.exp(-1.0))


@correct([1] * 10, [1] * 11, delta=TINY)
def gaussian_noise(people):
    """Gaussian noise of the exact deviation for epsilon and delta."""
    return len(people) + gauss(SIGMA)


@correct(False, True)
def randomised_response(bit):
    """The truth with probability e/(1 + e)."""
    return bit if coin.random() < math.e / (math.e + 1.0) else not bit


@correct("bus", "car")
def randomised_response_among_four(way):
    """The truth with probability e/(3 + e), else one of the three others."""
    if coin.random() < math.e / (math.e + 3.0):
        return way
    return coin.choice([w for w in ("bike", "bus", "car", "train") if w != way])


@correct(0, 1)
def optimised_unary_encoding(value):
    """A half of the ones, and 1/(1 + e) of the zeros."""
    return _bits(value, 8, one=0.5, other=1.0 / (math.e + 1.0))


@correct([1, 0, 0, 0], [0, 1, 1, 1])
def exponential_mechanism(scores):
    """Weights exp(epsilon u / 2); the answer is JSON text."""
    return json.dumps({"winner": choose([math.exp(s / 2.0) for s in scores])})


@correct([0, 0, 0, 0, 1], [1, 1, 1, 1, 0])
def sparse_vector(queries):
    """Threshold at half of epsilon, queries at a quarter; the first above ends it."""
    return _above(queries, threshold_noise=2.0, query_noise=4.0, most=1)


@correct([1, 0, 0, 0], [0, 1, 1, 1])
def noisy_maximum(scores):
    """The place of the largest of scores with Laplace noise of scale 2."""
    return best([score + laplace(2.0) for score in scores])


@correct(["rome"], ["rome", "oslo"])
def histogram_of_public_keys(cities):
    """All keys are public, and each of them has noise."""
    counts = Counter(cities)
    return {city: counts[city] + laplace(1.0) for city in ("bern", "oslo", "rome")}


@correct([0] * 5, [1] * 5)
def five_answers_of_one_budget(counts):
    """Five answers at a fifth of epsilon each."""
    return [count + laplace(5.0) for count in counts]
