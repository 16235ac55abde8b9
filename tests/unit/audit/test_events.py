from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from undertow.audit.certificate import event_epsilon, event_mu
from undertow.audit.claim import Claim
from undertow.audit.event import (
    LabelEvent,
    Score,
    ScoreEvent,
    best_event,
    learned_scores,
    lower_limits,
    lowest_bit,
    output_labels,
    residue,
)
from undertow.audit.pair._score import pair_scores
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.subject import CallableSubject, ProtocolSubject
from undertow.errors import AuditError
from undertow.mechanisms.local import GeneralizedResponse

OUTPUT = Score("output", lambda outputs: np.asarray(outputs, dtype=float))


def choose(first, second, *, scores=(), **options):
    half = [(x[: len(x) // 2], x[len(x) // 2 :]) for x in (first, second)]
    return best_event(
        (half[0][0], half[1][0]),
        (half[0][1], half[1][1]),
        scores=scores,
        tail=0.005,
        **options,
    )


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_the_lowest_bit_divides_the_number_and_the_next_does_not(y):
    e = int(lowest_bit([y])[0])
    if y == 0:
        assert e == 1100
        return
    numerator, denominator = y.as_integer_ratio()
    twos = (numerator & -numerator).bit_length() - denominator.bit_length()
    assert e == twos


def test_infinity_has_no_lowest_bit():
    assert lowest_bit([np.inf, -np.inf, 0.0]).tolist() == [1100.0] * 3


@given(st.integers(-(2**40), 2**40), st.integers(0, 12))
def test_the_residue_is_the_fraction_of_the_scaled_number(k, bits):
    y = k / 2**15
    assert residue([y], bits=bits)[0] == (y * 2**bits) % 1


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("counts", [(0, 0), (5, 5), (90, 10), (100, 0), (100, 100)])
def test_limits_of_many_events_agree_with_the_certificates(counts, delta):
    p, q = counts
    value = lower_limits([p], [q], trials=(100, 120), tail=0.005, delta=delta)[0]
    exact = event_epsilon(p, 100, q, 120, delta=delta).value
    assert max(0.0, value) == pytest.approx(exact, abs=1e-9)
    mu = lower_limits([p], [q], trials=(100, 120), tail=0.005, parameter="mu")[0]
    assert max(0.0, mu) == pytest.approx(event_mu(p, 100, q, 120).value, abs=1e-9)


def test_an_output_that_only_one_input_has_is_found():
    rng = np.random.default_rng(1)
    first, second = rng.integers(0, 6, 4000), rng.integers(0, 5, 4000)
    assert choose(first, second).event.labels == (5,)


def test_labels_join_in_the_order_of_their_ratio():
    rng = np.random.default_rng(1)
    names = np.array(["a", "b", "c", "d"], dtype=object)
    first = names[rng.choice(4, 8000, p=[0.4, 0.4, 0.1, 0.1])]
    second = names[rng.choice(4, 8000, p=[0.1, 0.1, 0.4, 0.4])]
    assert set(choose(first, second).event.labels) == {"a", "b"}


def test_outputs_that_are_all_different_do_not_pass_for_events():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=2000), rng.normal(size=2000)
    found = choose(first, second, scores=(OUTPUT,))
    assert isinstance(found.event, ScoreEvent)
    assert found.value < 0.3


def test_labels_without_repetition_need_a_score():
    first, second = (np.array([f"{s}{k}" for k in range(40)], object) for s in "ab")
    with pytest.raises(AuditError, match="give a score"):
        choose(first, second)


def test_the_half_line_of_a_shift_is_found():
    rng = np.random.default_rng(1)
    first, second = rng.laplace(size=20_000), 1 + rng.laplace(size=20_000)
    event = choose(first, second, scores=(OUTPUT,)).event
    ends = np.array([event.low, event.high])
    (p, q) = (np.diff(stats.laplace(loc=x).cdf(ends))[0] for x in (0, 1))
    assert max(math.log(p / q), math.log((1 - q) / (1 - p))) > 0.97  # of 1
    assert min(p, 1 - q) > 0.2


def test_an_interval_is_found_where_half_lines_fail():
    rng = np.random.default_rng(1)
    first, second = 0.2 * rng.normal(size=8000), rng.choice([-1, 1], 8000) * 1.0
    event = choose(first, second, scores=(OUTPUT,)).event
    assert -1 < event.low < event.high < 1
    assert "<= output <=" in event.words


def test_values_outside_the_range_of_the_other_input_are_found():
    rng = np.random.default_rng(1)
    first, second = rng.uniform(0, 1.05, 8000), rng.uniform(0, 1, 8000)
    event = choose(first, second, scores=(OUTPUT,)).event
    assert 0.99 < event.low < 1.01


def test_a_delta_moves_the_event_away_from_the_tail():
    rng = np.random.default_rng(1)
    first, second = rng.normal(size=40_000), 1 + rng.normal(size=40_000)
    pure = choose(first, second, scores=(OUTPUT,)).event
    approx = choose(first, second, scores=(OUTPUT,), delta=0.2).event
    shares = [[e.holds(y).mean() for y in (first, second)] for e in (pure, approx)]
    rare = [min(*share, *(1 - part for part in share)) for share in shares]
    assert rare[0] < 0.01 < 0.05 < rare[1]


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (LabelEvent((3,)), "output = 3"),
        (
            LabelEvent(tuple("abcdefgh")),
            "output in {'a', 'b', 'c', 'd', 'e', 'f' and 2",
        ),
        (ScoreEvent(OUTPUT, 0.5, np.inf), "output >= 0.5"),
        (ScoreEvent(OUTPUT, -np.inf, 2), "output <= 2"),
        (ScoreEvent(OUTPUT, 0, 1), "0 <= output <= 1"),
    ],
    ids=range(5),
)
def test_events_are_said_in_words(event, words):
    assert event.words.startswith(words)


def test_events_hold_where_they_say():
    rows = np.array([[0, 1], [1, 1], [0, 1]])
    assert LabelEvent(((0, 1),)).holds(rows).tolist() == [True, False, True]
    assert ScoreEvent(OUTPUT, 1, 2).holds([0, 1, 2, 3]).tolist() == [0, 1, 1, 0]
    assert output_labels(np.array(["a", ("b",)], dtype=object)) == ["a", ("b",)]


@pytest.mark.parametrize("bad", [lambda y: 1.0, lambda y: np.full(len(y), np.nan)])
def test_a_score_must_give_one_number_each(bad):
    with pytest.raises(AuditError, match="one number for each of 3 outputs"):
        Score("bad", bad)(np.zeros(3))


def test_the_likelihood_ratio_is_tried_where_the_law_is_known():
    subject = ProtocolSubject(GeneralizedResponse(4, 1))
    outputs = np.array([0, 1, 2])
    scores = pair_scores(subject, (0, 1), (outputs, outputs), choice=None, seed=0)
    assert [s.words for s in scores] == ["output", "log likelihood ratio"]
    assert scores[1](outputs).tolist() == pytest.approx([1, -1, 0])


def test_an_impossible_output_tells_nothing_apart():
    class Law:
        def log_likelihood(self, outputs, pair):
            return np.array([[-np.inf, -np.inf], [0.0, -np.inf]])

    outputs = np.array(["a", "b"], dtype=object)
    (score,) = pair_scores(Law(), (0, 1), (outputs, outputs), choice=None, seed=0)
    assert score(outputs).tolist() == [0.0, np.inf]


def test_choices_of_scores_are_checked():
    floats, labels = np.zeros(3), np.array(["a", "b"], dtype=object)
    for choice, outputs, said in [
        (
            "best",
            floats,
            "must be 'learned', 'bits', 'values', 'time' or functions, got 'best'",
        ),
        ([1], floats, "must be 'learned', 'bits', 'values', 'time' or functions"),
        ("bits", labels, "no floats, got 'bits' for object"),
    ]:
        with pytest.raises(ValueError, match=said):
            pair_scores(object(), (0, 1), (outputs, outputs), choice=choice, seed=0)


def test_scores_given_are_tried_besides_the_coordinates():
    rows = np.zeros((3, 2))
    named = Score("total", lambda y: y.sum(axis=1))
    scores = pair_scores(object(), (0, 1), (rows, rows), choice=[named, np.ptp], seed=0)
    assert [s.words for s in scores] == [
        "coordinate 0 of output",
        "coordinate 1 of output",
        "total",
        "ptp",
    ]


@pytest.mark.extra
def test_learned_scores_separate_and_travel():
    pytest.importorskip("sklearn")
    rng = np.random.default_rng(1)
    first, second = rng.normal(0.6, 1, (800, 3)), rng.normal(0, 1, (800, 3))
    for score in learned_scores(first, second, seed=0):
        copy = pickle.loads(pickle.dumps(score.function))
        assert (copy(first) > 0).mean() > 0.6 > 0.4 > (copy(second) > 0).mean()


@pytest.mark.extra
def test_only_finite_numbers_are_learned_from():
    pytest.importorskip("sklearn")
    labels = np.array(["a", "b"], dtype=object)
    with pytest.raises(AuditError, match="not numbers, got 'learned'"):
        learned_scores(labels, labels, seed=0)
    with pytest.raises(AuditError, match="may be infinite, got 'learned'"):
        learned_scores(np.array([1.0, np.inf]), np.zeros(2), seed=0)


def test_learning_needs_scikit_learn(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "sklearn.ensemble", None)
    with pytest.raises(AuditError, match=r"pip install 'undertow\[learn\]'"):
        learned_scores(np.zeros(3), np.ones(3), seed=0)


def test_labels_that_mostly_occur_once_need_a_score():
    first = np.array([f"0:{i}" for i in range(99)] + ["x"] * 3)
    second = np.array([f"1:{i}" for i in range(99)] + ["x"] * 3)
    pair = (first, second)
    with pytest.raises(AuditError, match="mostly occur once; give a score"):
        best_event(pair, pair, scores=(), tail=0.05)


def test_of_long_vectors_the_coordinates_that_differ_are_tried():
    rng = np.random.default_rng(4)
    first, second = rng.random((200, 300)) < 0.3, rng.random((200, 300)) < 0.3
    first[:, 266], second[:, 266] = False, True
    scores = pair_scores(object(), (0, 1), (first, second), choice=None, seed=0)
    assert len(scores) == 64
    assert "coordinate 266 of output" in {score.words for score in scores}


def test_a_narrow_spike_is_found():
    def spike(values, rng):
        size = len(values)
        struck = (rng.random(size) < 0.02) & (values == 1)
        return np.where(struck, 0.5 + 1e-7 * rng.random(size), rng.laplace(size=size))

    subject = CallableSubject(spike, [0, 1], vectorised=True)
    found = audit_pair(subject, Claim.pure(1), trials=40_000, seed=1)
    assert found.violated
    assert found.witness.details["pair"] == (1, 0)


def test_a_rare_output_is_not_hidden_by_thousands_of_common_ones():
    rng = np.random.default_rng(1)
    halves = []
    for _ in range(2):
        common = [rng.integers(5000, size=120_000) for _ in range(2)]
        common[0][:18] = 10**6  # rarer than the 1,024 commonest
        halves.append(tuple(common))
    found = best_event(*halves, scores=(), tail=0.005)
    assert found.event.labels == (10**6,)
    assert found.value > 0.5


@pytest.mark.parametrize("shape", [(), (2,)])
def test_the_sign_of_zero_is_an_output(shape):
    def signed(values, rng):
        told = rng.integers(-2, 3, size=(len(values), *shape)).astype(float)
        sign = np.where(values == 1, -1.0, 1.0).reshape(-1, *(1 for _ in shape))
        return np.where(told == 0, np.copysign(0.0, sign), told)

    subject = CallableSubject(signed, [0, 1], vectorised=True)
    assert audit_pair(subject, Claim.pure(1), trials=4000, seed=1).violated


def test_the_lowest_bits_of_wide_whole_numbers_are_looked_at():
    def odd(values, rng):
        return 2 * rng.integers(2**60, size=len(values)) + values

    subject = CallableSubject(odd, [0, 1], vectorised=True)
    assert audit_pair(subject, Claim.pure(1), trials=2000, seed=1).violated
    assert lowest_bit(np.array([-(2**63), 0], dtype=np.int64)).tolist() == [63, 1100]
