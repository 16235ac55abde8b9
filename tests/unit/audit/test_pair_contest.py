"""Asking for a learned score costs nothing: its event has to beat the others."""

from __future__ import annotations

import json

import numpy as np
import pytest

from undertow.audit.claim import Claim
from undertow.audit.event import Score, ScoreEvent
from undertow.audit.pair import _choice as _pair_choice
from undertow.audit.pair._choice import Contestant, Measure
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.subject import CallableSubject
from undertow.errors import AuditError

OUTPUT = Score("output", np.asarray)


def laplace(values, rng):
    return np.asarray(values) + rng.laplace(size=len(values))


def gaussian(values, rng):
    return np.asarray(values) + rng.normal(size=len(values))


def two_coordinates(values, rng):
    return np.asarray(values) + rng.laplace(scale=2, size=(len(values), 2))


NUMBERS, VECTORS = [0.0, 1.0], [np.zeros(2), np.ones(2)]
CASES = {
    "laplace": (laplace, NUMBERS, Claim.pure(1)),
    "gaussian": (gaussian, NUMBERS, Claim.gaussian(1)),
    "two": (two_coordinates, VECTORS, Claim.pure(1)),
}


@pytest.fixture
def alone(monkeypatch):
    """Audits that look at no whole vectors and no digits besides."""
    monkeypatch.setattr(_pair_choice, "finer_scores", lambda *pair, digits: ())


def certificates(case, seed, score="learned", trials=8000):
    function, inputs, claim = CASES[case]
    subject = CallableSubject(function, inputs, vectorised=True)
    return tuple(
        audit_pair(subject, claim, seed=seed, trials=trials, score=one).certified
        for one in (None, score)
    )


def noisy_scores(first, second, *, seed):
    """Return scores that tell nothing: functions of the bits of an output."""

    def noise(number):
        def score(outputs):
            bits = np.asarray(outputs).view(np.uint64)
            mixed = (bits * np.uint64(2 * number + 3)) >> np.uint64(11)
            return mixed.astype(np.float64)

        return Score(f"noise {number}", score)

    return tuple(noise(number) for number in range(20))


def totals(first, second, *, seed):
    return (Score("total", lambda outputs: outputs.sum(axis=1)),)


@pytest.mark.parametrize("seed", [0, 3])
def test_scores_that_tell_nothing_leave_the_certificate_as_it_is(monkeypatch, seed):
    monkeypatch.setattr(_pair_choice, "learned_scores", noisy_scores)
    usual, asked = certificates("laplace", seed, trials=2000)
    assert asked == usual


@pytest.mark.usefixtures("alone")
def test_a_better_score_is_taken_with_others_beside_it(monkeypatch):
    monkeypatch.setattr(_pair_choice, "learned_scores", totals)
    usual, asked = certificates("two", 1, ["learned", lambda y: y[:, 0]], 20_000)
    assert asked > usual + 0.1


@pytest.mark.extra
@pytest.mark.parametrize("seed", [24, 30, 33, 45, 70, 90])
def test_a_learned_score_does_not_crowd_out_the_output_itself(seed):
    pytest.importorskip("sklearn")
    usual, asked = certificates("laplace", seed)
    assert asked >= usual - 0.02


@pytest.mark.extra
@pytest.mark.usefixtures("alone")
def test_a_learned_score_is_taken_where_it_tells_more():
    pytest.importorskip("sklearn")
    usual, asked = certificates("two", 1, trials=40_000)
    assert asked > usual + 0.3


@pytest.mark.slow
@pytest.mark.extra
@pytest.mark.usefixtures("alone")
@pytest.mark.parametrize("case", CASES)
def test_learning_costs_nothing_at_ninety_five_of_a_hundred_seeds(case):
    pytest.importorskip("sklearn")
    found = np.array([certificates(case, seed) for seed in range(100)])
    assert (found[:, 1] >= found[:, 0] - 0.02).sum() >= 95
    if case == "two":
        assert found[:, 1].mean() > found[:, 0].mean() + 0.08


def test_outputs_that_never_repeat_need_a_score_and_take_it():
    letters = str.maketrans("0123456789.-", "abcdefghijkl")

    def words(value, rng):
        return f"{value + rng.laplace():+020.12f}".translate(letters)

    subject = CallableSubject(words, [0.0, 5.0])
    found = audit_pair(
        subject,
        Claim.pure(1),
        trials=2000,
        score=lambda outputs: np.array(["l" in word for word in outputs]),
    )
    assert found.verdict == "violated"
    for score in (None, []):
        with pytest.raises(AuditError, match="give a score"):
            audit_pair(subject, Claim.pure(1), trials=2000, score=score)


@pytest.mark.usefixtures("alone")
def test_what_was_chosen_by_a_learned_score_is_chosen_again(tmp_path, monkeypatch):
    monkeypatch.setattr(_pair_choice, "learned_scores", totals)
    path = tmp_path / "audit.json"
    subject = CallableSubject(
        two_coordinates, [np.zeros(2), np.ones(2), np.full(2, 0.5)], vectorised=True
    )

    def run():
        options = {"trials": 30_000, "score": "learned", "checkpoint": path}
        return audit_pair(subject, Claim.pure("0.5"), **options)

    whole = run()
    assert "total" in whole.witness.details["event"]
    saved = json.loads(path.read_text())
    assert saved["sections"]["choice"]["state"]["kept"] == [[0, 1], "learned", []]
    del saved["sections"]["counts"]
    path.write_text(json.dumps(saved))
    assert run() == whole


def contestant(first, second):
    runs = (np.array(first), np.array(second))
    return Contestant(0.0, (0, 1), ScoreEvent(OUTPUT, 1, 1), runs, "usual")


def test_an_event_does_not_surpass_itself_nor_one_that_it_beats_by_luck():
    rng = np.random.default_rng(1)
    measure = Measure(Claim.pure(1), 0.99)
    often, seldom = (rng.random(4000) < rate for rate in (0.6, 0.2))
    good = contestant(often * 1, seldom * 1)
    assert not measure.surpasses(good, good)
    lucky = contestant(np.r_[1, often[1:]] * 1, np.r_[0, seldom[1:]] * 1)
    assert not measure.surpasses(lucky, good)
    assert measure.surpasses(good, contestant(seldom * 1, seldom * 1))
    assert not measure.surpasses(contestant(seldom * 1, seldom * 1), good)
