"""From the counts of an event to a result: units, power, and the witness in words."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

from undertow.audit import Claim, audit_pair, audit_pair_until_refuted
from undertow.audit.event import LabelEvent, Score, ScoreEvent
from undertow.audit.pair._draw import EventTest, stands_still
from undertow.audit.pair.fixed import pair_result
from undertow.audit.subject import CallableSubject
from undertow.privacy.tradeoff import attack_epsilon_bound
from undertow_studies.faults import named_fault

OUTPUT = Score("output", np.asarray)


def outcome(event, hits, sizes=(1000, 2000), claim=None):
    subject = CallableSubject(lambda value, rng: value, ["left", "right"])
    none = np.zeros(0)
    test = EventTest(subject, (0, 1), event, sizes=sizes, earlier=(none, none))
    counts = {"p": np.array(hits[0]), "q": np.array(hits[1])}
    return pair_result(test, claim or Claim.pure("0.1"), 0.99, counts, 6000, 1)


def test_a_rare_event_is_its_own_witness():
    found = outcome(ScoreEvent(OUTPUT, 2.5, np.inf), (300, 60))
    assert found.witness.summary == (
        "output >= 2.5: 300 of 1000 runs on 'left', 60 of 2000 on 'right'"
    )
    assert found.witness.details["pair"] == ("left", "right")
    assert found.witness.details["hits"] == (300, 60)


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (ScoreEvent(OUTPUT, 2.5, np.inf), "output < 2.5"),
        (ScoreEvent(OUTPUT, -np.inf, 0.1), "output > 0.1"),
        (ScoreEvent(OUTPUT, 0.1, 2.0), "output < 0.1 or output > 2.0"),
        (LabelEvent(("a",)), "output is not 'a'"),
        (LabelEvent(("a", "b")), "output not in {'a', 'b'}"),
    ],
    ids=["above", "below", "between", "label", "labels"],
)
def test_the_witness_of_a_nearly_certain_event_is_what_it_leaves_out(event, words):
    found = outcome(event, (999, 1900))
    assert found.witness.summary == (
        f"{words}: 100 of 2000 runs on 'right', 1 of 1000 on 'left'"
    )
    details = found.witness.details
    assert details["pair"] == ("right", "left")
    assert details["hits"] == (100, 1)
    assert details["trials"] == (2000, 1000)
    assert "output" in details["event"]
    assert found.violated


def test_the_outputs_left_out_carry_the_certificate_where_rates_sum_to_more_than_one():
    rng = np.random.default_rng(2)
    for _ in range(500):
        q, p = np.sort(rng.random(2))
        delta = rng.uniform(0, p - q)
        one = (p - delta) / q
        two = (1 - q - delta) / (1 - p)
        assert (two > one) == (p + q > 1)
        best = attack_epsilon_bound(tpr=p, fpr=q, delta=delta)
        assert best == pytest.approx(max(0.0, np.log(max(one, two))), abs=1e-9)


def test_the_endless_threshold_is_shown_by_its_rare_answers():
    found = named_fault("endless-threshold").audit(seed=1)
    p, q = found.witness.details["hits"]
    n, m = found.witness.details["trials"]
    assert p / n + q / m <= 1
    assert p / n > q / m
    assert ">" in found.witness.details["event"]


@pytest.mark.parametrize(
    ("claim", "parameter"),
    [(Claim.pure(1), "epsilon"), (Claim.gaussian(1), "mu")],
    ids=["pure", "gaussian"],
)
def test_every_number_is_in_the_parameter_of_the_claim(claim, parameter):
    found = outcome(ScoreEvent(OUTPUT, 2.5, np.inf), (300, 60), claim=claim)
    (row,) = found.methods
    assert found.parameter == row.parameter == parameter
    assert row.estimate == found.estimate > row.certified == found.certified
    assert row.ceiling == found.power["ceiling"] > found.estimate
    assert (found.estimate == found.epsilon_estimate) == (parameter == "epsilon")
    assert found.power["can_refute"] is True
    assert isinstance(found.power["trials_needed"], int)


def test_an_event_that_could_not_refute_says_so():
    found = outcome(LabelEvent(("a",)), (1000, 1990), claim=Claim.pure(4))
    assert not found.violated
    assert found.power["can_refute"] is False
    assert found.to_dict()["power"]["detectable"] == "inf"


def test_an_audit_of_gaussian_noise_estimates_its_mu():
    noise = CallableSubject(
        lambda v, rng: (v + rng.normal(size=len(v))).astype(np.float32),
        [0.0, 2.0],
        vectorised=True,
    )
    found = audit_pair(noise, Claim.gaussian(1), trials=40_000, seed=1)
    assert found.estimate == pytest.approx(2.0, abs=0.1)
    assert found.violated


class Kept:
    """Adds noise that is drawn once for each input."""

    def __init__(self, noise):
        self.noise = noise

    def __call__(self, value, rng):
        return value + self.noise[value]


@pytest.mark.parametrize("audit", [audit_pair, audit_pair_until_refuted])
def test_outputs_that_never_change_are_told_beside_an_unchanged_verdict(audit):
    kept = CallableSubject(Kept((0.25, -0.5)), [0, 1])
    found = audit(kept, Claim.pure(1), trials=2_000)
    assert found.violated
    assert "no noise, or it is drawn once and kept" in found.notes[0]
    assert pickle.loads(pickle.dumps(found)).notes == found.notes
    assert found.to_dict()["notes"] == list(found.notes)


KINDS = {
    "text": lambda kept: f"about {kept:.2f} people",
    "whole numbers": lambda kept: round(1000 * kept) + 100_000,
    "vectors": lambda kept: [1.0, kept],
    "vectors of whole numbers": lambda kept: [1, round(1000 * kept) + 5000],
    "pairs of labels": lambda kept: ("people", f"{kept!r}"),
    "JSON": lambda kept: json.dumps({"people": {"rome": kept}}),
    "small whole numbers": lambda kept: round(4 * kept),
    "words": lambda kept: "yes" if kept > 0.4 else "no",
    "yes or no": lambda kept: bool(kept > 0.4),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("audit", [audit_pair, audit_pair_until_refuted])
def test_answers_of_every_type_that_are_kept_are_told(kind, audit):
    noise = [0.25, -0.53]
    kept = CallableSubject(lambda value, rng: KINDS[kind](value + noise[value]), [0, 1])
    found = audit(kept, Claim.pure(1), trials=2_000)
    assert any("drawn once and kept" in note for note in found.notes)
    noisy = CallableSubject(lambda value, rng: KINDS[kind](rng.laplace()), [0, 1])
    runs = [noisy.sample(k, 50, rng=np.random.default_rng(k)) for k in (0, 1)]
    assert not stands_still(*runs)


@pytest.mark.parametrize(
    "function",
    [
        Kept((1.25, 0.25)),
        lambda value, rng: value + rng.choice([0.25, 0.5]),
        lambda value, rng: "yes" if value else rng.choice(["yes", "no"]),
    ],
    ids=["one output", "noise", "noise on one input"],
)
def test_other_outputs_have_no_such_note(function):
    found = audit_pair(CallableSubject(function, [0, 1]), Claim.pure(1), trials=2_000)
    assert not any("there is no noise" in note for note in found.notes)
