"""What many coordinates tell together, and what the last digits of numbers tell."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from undertow.audit import CallableSubject, Claim
from undertow.audit._outcome import read_outcomes
from undertow.audit.event import decimal_residue, laplace_reach, textbook_laplace
from undertow.audit.pair._score import differing, digit_scores, whole_scores
from undertow.audit.pair._table import Fields, Numbers
from undertow.audit.pair.fixed import audit_pair


def on_grid(outputs):
    return np.round(np.asarray(outputs) * 2.0**24) / 2.0**24


def laplace(rng, scale, *shape):
    return rng.laplace(scale=scale, size=shape)


def composition(values, rng):
    """Twenty answers, each at the whole epsilon."""
    return on_grid(values[:, None] + laplace(rng, 1, len(values), 20))


def three_of_ten(values, rng):
    """A person is in ten partitions; the noise is for three."""
    return on_grid(values[:, None] + laplace(rng, 3, len(values), 10))


def euclidean(values, rng):
    """Laplace noise for the Euclidean norm of sixteen answers, which is 4."""
    return on_grid(values[:, None] + laplace(rng, 4, len(values), 16))


def each_gaussian(values, rng):
    """Gaussian noise for one of sixteen coordinates."""
    return on_grid(values[:, None] + rng.normal(size=(len(values), 16)))


def sums_to_zero(values, rng):
    """Noise that cancels over eight coordinates."""
    noise = laplace(rng, 80, len(values), 8)
    return on_grid(values[:, None] + noise - noise.mean(axis=1, keepdims=True))


def one_draw(values, rng):
    """One draw, used with another sign and size for each coordinate."""
    noise = laplace(rng, 60, len(values), 1)
    return on_grid(values[:, None] + noise * [1, -1, 2, 0.5, -3, 1.5])


def shuffled(values, rng):
    """Twelve answers in random order, one of which is larger by 1 at most."""
    answers = np.zeros((len(values), 12))
    answers[:, 0] = 9 * values
    noisy = answers + laplace(rng, 3, len(values), 12)
    return on_grid(rng.permuted(noisy, axis=1))


def correlated_sign(values, rng):
    """Three coordinates that go together on one input alone."""
    noise = rng.normal(size=(len(values), 3))
    shared = rng.normal(size=(len(values), 1))
    return on_grid(np.where(values[:, None] > 0, 0.3 * noise + shared, 1.044 * noise))


PURE, GAUSSIAN = Claim.pure(1), Claim.gaussian(1)
BUGS = {
    "composition": (composition, PURE),
    "three of ten": (three_of_ten, PURE),
    "euclidean": (euclidean, PURE),
    "each gaussian": (each_gaussian, GAUSSIAN),
    "sums to zero": (sums_to_zero, PURE),
    "one draw": (one_draw, PURE),
    "shuffled": (shuffled, PURE),
    "correlated": (correlated_sign, PURE),
}


def vectorised(function, inputs=(0.0, 1.0)):
    return CallableSubject(function, inputs, vectorised=True)


@pytest.mark.parametrize("name", BUGS)
def test_what_only_a_whole_vector_tells_is_found(name):
    function, claim = BUGS[name]
    found = audit_pair(vectorised(function), claim, trials=20_000, seed=1)
    assert found.verdict == "violated"


@pytest.mark.parametrize("name", ["composition", "sums to zero"])
def test_it_is_found_in_lists_dictionaries_and_texts_too(name):
    function, claim = BUGS[name]
    for shape in (list, lambda row: dict(enumerate(row)), str):

        def one(value, rng, shape=shape):
            return shape(function(np.array([value]), rng)[0].tolist())

        subject = CallableSubject(one, [0.0, 1.0])
        assert audit_pair(subject, claim, trials=4000, seed=1).violated


def split_budget(values, rng):
    return on_grid(values[:, None] + laplace(rng, 5, len(values), 5))


def whole_gaussian(values, rng):
    return on_grid(values[:, None] + 4 * rng.normal(size=(len(values), 16)))


@pytest.mark.parametrize(
    ("function", "claim", "least"),
    [(split_budget, PURE, 0.45), (whole_gaussian, GAUSSIAN, 0.85)],
    ids=["laplace", "gaussian"],
)
def test_a_vector_that_keeps_its_claim_is_seen_nearly_whole(function, claim, least):
    found = audit_pair(vectorised(function), claim, trials=100_000, seed=1)
    assert least < found.certified <= claim.level


def test_scores_of_the_whole_travel_and_read_gaps():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=(2, 400, 3))
    first[:5], second[5:9, 1], second[7:30, 2] = np.inf, -np.inf, 1e300
    mixed = read_outcomes([*first, "a", None, [1]], 403, name="f")
    for table, one, two in [
        (Numbers((3,), np.dtype(float)), first, second),
        (Numbers((3,), np.dtype(float)), mixed, second),
        (Fields(mixed, second), mixed, second),
    ]:
        scores = [*whole_scores(table, one, two), *digit_scores(table, one, two)]
        assert len(scores) >= 4
        for score in scores:
            copy = pickle.loads(pickle.dumps(score.function))
            assert np.array_equal(copy(one), score(one), equal_nan=True)
            assert len(score(one)) == len(one)


@given(
    npst.arrays(
        float,
        st.tuples(st.integers(2, 40), st.integers(2, 5)),
        elements=st.floats(width=32) | st.integers(-3, 3).map(float),
    ),
    st.integers(1, 39),
)
@settings(max_examples=60)
def test_a_score_of_an_output_does_not_depend_on_those_beside_it(rows, cut):
    table = Numbers((rows.shape[1],), np.dtype(float))
    half = len(rows) // 2
    scores = whole_scores(table, rows[:half], rows[half:])
    scores += digit_scores(table, rows[:half], rows[half:])
    cut = min(cut, len(rows) - 1)
    for score in scores:
        whole = score(rows)
        parts = np.concatenate([score(rows[:cut]), score(rows[cut:])])
        assert np.array_equal(whole, parts, equal_nan=True)


@given(
    npst.arrays(float, st.integers(1, 30), elements=st.floats(-5, 5)),
    npst.arrays(float, st.integers(1, 30), elements=st.floats(-5, 5)),
)
def test_the_distance_is_that_of_the_distribution_functions(first, second):
    points = np.concatenate([first, second])
    gaps = [abs((first <= p).mean() - (second <= p).mean()) for p in points]
    (found,) = differing(first[:, None], second[:, None])
    assert found == pytest.approx(max(gaps))


# Last digits --------------------------------------------------------------------------


@given(
    st.integers(-(10**9), 10**9),
    st.integers(0, 6),
    st.floats(-0.49, 0.49),
    st.booleans(),
)
def test_the_residue_is_that_of_the_decimal(count, digits, share, negative):
    step = 10.0**-digits
    number = (count % 10**6 + share) * step
    number = -number if negative else number
    (found,) = decimal_residue([number], digits=digits)
    assert found == pytest.approx(-share if negative else share, abs=2e-6)


DIGITS = {
    "rounded noise": (
        lambda x, rng: x + round(rng.laplace(scale=9), 2),
        (3.14159, 3.2),
    ),
    "whole noise": (lambda x, rng: x + int(rng.integers(10**6)), (12.5, 12.25)),
    "textbook": (lambda x, rng: x + rng.laplace(), (0.0, 1.0)),
    "vector": (lambda x, rng: x + rng.laplace(scale=3, size=3), (0.0, 1.0)),
    "text": (lambda x, rng: f"<{x + round(rng.laplace(scale=9), 1)}>", (0.25, 0.5)),
    "dict": (lambda x, rng: {"n": x + rng.laplace()}, (0.0, 1.0)),
}


def inverse(x, rng):
    u = rng.random() - 0.5
    return x - math.copysign(1.0, u) * math.log(1 - 2 * abs(u)) / 0.7


SAMPLERS = {
    "sum": lambda x, rng: x + rng.laplace(),
    "location": lambda x, rng: rng.laplace(x, 2.5),
    "inverse": inverse,
}


@pytest.mark.parametrize("inputs", [(10, 11), (100, 101), (-7.5, -6.5)])
@pytest.mark.parametrize("name", SAMPLERS)
def test_floats_that_a_textbook_sampler_cannot_reach_are_found(name, inputs):
    subject = CallableSubject(SAMPLERS[name], inputs)
    found = audit_pair(subject, Claim.pure(1.5), trials=100_000, seed=1)
    assert found.violated
    assert "last digits" in found.notes[0]


@given(
    st.integers(-50, 50),
    st.sampled_from([0.5, 1.0, 2.5, 1 / 0.7, 10.0]),
    st.integers(0, 2**32),
)
@settings(max_examples=20)
def test_the_law_of_textbook_noise_is_recognised_and_that_of_a_lattice_is_none(
    centre, scale, seed
):
    noise = np.random.default_rng(seed).laplace(scale=scale, size=4000)
    reach = laplace_reach(centre + noise, centre=centre, scale=scale)
    assert reach.mean() > 0.99
    assert textbook_laplace(centre + noise) in ((centre, scale), None)
    assert textbook_laplace(np.round((centre + noise) * 2.0**20) / 2.0**20) is None


@pytest.mark.parametrize("name", DIGITS)
def test_last_digits_that_tell_are_found_and_told_as_such(name):
    function, inputs = DIGITS[name]
    subject = CallableSubject(function, inputs)
    found = audit_pair(subject, Claim.pure(1.2), trials=6000, seed=1)
    assert found.violated
    assert any("last digits" in note for note in found.notes) or name == "text"


@pytest.mark.parametrize("step", [1.0, 0.1, 0.01, 2.0**-20])
def test_noise_that_is_rounded_with_its_answer_leaves_no_digits(step):
    def rounded(values, rng):
        return np.round((values + rng.laplace(size=len(values))) / step) * step

    inputs = (3.14159, 4.14159)
    found = audit_pair(vectorised(rounded, inputs), Claim.pure(1.1), trials=20_000)
    assert found.verdict == "not refuted"


def test_what_was_not_looked_at_is_noted():
    def wide(values, rng):
        return rng.integers(2, size=(len(values), 70))

    subject = CallableSubject(wide, [0, 1, 2], vectorised=True)
    found = audit_pair(subject, Claim.pure(1), pairs=[(0, 1)], trials=2000)
    assert found.notes[1:-1] == (
        "1 of 3 pairs of inputs were compared",
        "of 70 numbers in an output 64 were looked at one by one, and up to 128 "
        "together",
    )


def test_many_pairs_are_looked_at_finely_where_they_differ_most():
    def respond(values, rng):
        lie = rng.random(len(values)) < 0.5
        return np.where(lie, rng.integers(15, size=len(values)), values)

    subject = CallableSubject(respond, list(range(15)), vectorised=True)
    found = audit_pair(subject, Claim.pure(math.log(18)), trials=15_000)
    assert "on the 64 pairs" in found.notes[1]
