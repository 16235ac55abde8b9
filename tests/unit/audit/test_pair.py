from __future__ import annotations

import functools
import json
import math
import os
import time
from dataclasses import replace

import numpy as np
import pytest

from undertow.audit.certificate import event_epsilon
from undertow.audit.claim import Claim
from undertow.audit.pair._draw import repeats
from undertow.audit.pair.fixed import audit_pair, pair_trials_needed
from undertow.audit.pair.sequential import audit_pair_until_refuted
from undertow.audit.record import RecordedSubject
from undertow.audit.subject import CallableSubject, MechanismSubject, ProtocolSubject
from undertow.errors import AuditError
from undertow.mechanisms import GaussianMechanism, LaplaceMechanism
from undertow.mechanisms.local import (
    GeneralizedResponse,
    OptimizedHashing,
    SubsetSelection,
    SummationHistogram,
    SymmetricUnary,
)


def vectorised(function, inputs, **options):
    return CallableSubject(function, inputs, vectorised=True, **options)


def shifted(values, rng):
    return np.round(textbook(values, rng) * 2.0**24) / 2.0**24


def textbook(values, rng):
    return np.asarray(values) + rng.laplace(size=len(values))


@pytest.mark.parametrize(
    "protocol",
    [
        GeneralizedResponse(4, 1),
        SymmetricUnary(4, 1),
        SubsetSelection(4, 1),
        OptimizedHashing(4, 1),
        SummationHistogram(3, 1),
    ],
    ids=lambda p: p.name,
)
def test_protocols_keep_their_level_and_not_a_smaller_one(protocol):
    for level, verdict in [(1.0, "not refuted"), (1 / 1.3, "violated")]:
        found = audit_pair(
            ProtocolSubject(protocol),
            Claim.pure(level),
            pairs=[(0, 1)],
            seed=2,
            score="values",  # real noise, for studies, tells by its last digits
        )
        assert found.verdict == verdict
        assert found.certified <= 1.0


def test_gaussian_noise_is_audited_in_its_own_terms():
    subject = MechanismSubject(GaussianMechanism(1), [0.0, 1.0])
    kept = audit_pair(subject, Claim.gaussian(1), seed=1)
    broken = audit_pair(subject, Claim.gaussian(0.9), seed=1)
    assert (kept.verdict, broken.verdict) == ("not refuted", "violated")
    assert 0.9 < kept.certified < 1.0
    assert kept.epsilon_certified != kept.certified


def test_an_approximate_claim_is_tested_at_its_delta():
    # The least delta of N(0, 1) against N(1, 1) at epsilon 1 is 0.1269.
    subject = MechanismSubject(GaussianMechanism(1), [0.0, 1.0])
    verdicts = [
        audit_pair(subject, Claim.approx(1, delta), seed=1).verdict
        for delta in (0.13, 0.1)
    ]
    assert verdicts == ["not refuted", "violated"]


def test_a_mechanism_that_sometimes_tells_all_violates_every_pure_claim():
    def leaky(values, rng):
        noise = rng.laplace(size=len(values)).round()
        return np.where(
            rng.random(len(values)) < 0.01, 1000 + np.asarray(values), noise
        )

    found = audit_pair(vectorised(leaky, [0, 1]), Claim.pure(2), seed=1)
    assert found.verdict == "violated"
    assert "100" in found.witness.details["event"]
    allowed = audit_pair(vectorised(leaky, [0, 1]), Claim.approx(2, 0.02), seed=1)
    assert allowed.verdict == "not refuted"


def test_a_claim_about_adding_records_is_tested_at_its_price_for_replacing():
    subject = MechanismSubject(LaplaceMechanism(1), [0.0, 1.0])
    claim = Claim.pure(0.6, adjacency="add-remove")
    assert audit_pair(subject, claim, seed=1).verdict == "not refuted"
    assert audit_pair(subject, Claim.pure(0.6), seed=1).verdict == "violated"


def test_the_worst_pair_is_found_among_all():
    subject = MechanismSubject(LaplaceMechanism(1), [0.0, 0.1, 0.2, 1.0])
    found = audit_pair(subject, Claim.pure(0.5), seed=1)
    assert set(found.witness.details["pair"]) == {0.0, 1.0}


def test_named_pairs_alone_are_tried():
    subject = MechanismSubject(LaplaceMechanism(1), [0.0, 0.1, 1.0])
    found = audit_pair(subject, Claim.pure(0.5), pairs=[(0, 1)], seed=1)
    assert found.verdict == "not refuted"
    assert found.certified <= 0.1


def test_the_result_rests_on_the_counts_of_the_witness():
    subject = vectorised(shifted, [0.0, 1.0])
    found = audit_pair(subject, Claim.pure(0.5), trials=40_000, seed=3)
    (p, q), (n, m) = (found.witness.details[key] for key in ("hits", "trials"))
    # One tail is rounded twice where the event is stated by its complement.
    direct = event_epsilon(p, n, q, m).value
    assert found.certified == pytest.approx(direct, rel=1e-12)
    assert found.advantage.value == pytest.approx((p / n - q / m) / 2, rel=1e-12)
    assert found.trials == 40_000
    assert found.methods[0].trials == n + m == 20_000
    json.dumps(found.to_dict())


@pytest.mark.extra
def test_the_same_seed_gives_the_same_result_with_any_workers():
    pytest.importorskip("joblib")
    subject, claim = vectorised(shifted, [0.0, 1.0]), Claim.pure(1)
    one = audit_pair(subject, claim, seed=5)
    assert one == audit_pair(subject, claim, seed=5, workers=2)
    assert one != audit_pair(subject, claim, seed=6)


def ends_other_processes(values, rng, *, home):
    if os.getpid() != home:
        os._exit(3)
    return shifted(values, rng)


@pytest.mark.extra
def test_a_function_that_ends_a_worker_ends_the_audit_with_one_sentence():
    pytest.importorskip("joblib")
    function = functools.partial(ends_other_processes, home=os.getpid())
    subject = vectorised(function, [0.0, 1.0], name="f")
    with pytest.raises(AuditError, match="f must not end its process") as caught:
        audit_pair(subject, Claim.pure(1), seed=5, workers=2)
    assert "\n" not in str(caught.value)


def test_an_interrupted_audit_resumes_to_the_same_result(tmp_path):
    subject, claim = vectorised(shifted, [0.0, 1.0]), Claim.pure(1)
    path = tmp_path / "state.json"

    def stop(done, total, counts):
        raise KeyboardInterrupt

    long = {"seed": 5, "trials": 200_000, "checkpoint": path}
    with pytest.raises(KeyboardInterrupt):
        audit_pair(subject, claim, **long, progress=stop)
    resumed = audit_pair(subject, claim, **long)
    assert resumed == audit_pair(subject, claim, seed=5, trials=200_000)
    with pytest.raises(AuditError, match="must belong to this job"):
        audit_pair(subject, Claim.pure(2), **long)


def test_naive_noise_is_caught_by_its_bits_and_lattice_noise_is_not():
    naive = vectorised(textbook, [0.0, 1.0])
    lattice = MechanismSubject(LaplaceMechanism(1), [0.0, 1.0])
    claim = Claim.pure(1)
    assert audit_pair(naive, claim, seed=1, score="values").verdict == "not refuted"
    for score in (None, "bits"):
        found = audit_pair(naive, claim, seed=1, score=score)
        assert found.verdict == "violated"
        assert found.certified > 5
        assert found.witness.summary.startswith(("reach of output", "lowest bit"))
        assert audit_pair(lattice, claim, seed=1, score=score).verdict == "not refuted"


def test_an_event_of_last_digits_is_told_beside_what_the_values_show():
    found = audit_pair(vectorised(textbook, [0.0, 1.0]), Claim.pure(1), seed=1)
    values = audit_pair(
        vectorised(textbook, [0.0, 1.0]), Claim.pure(1), seed=1, score="values"
    )
    (note,) = found.notes
    assert "last digits" in note
    assert values.methods[0].name.removeprefix("event on a pair: ") in note
    assert not any("last digits" in note for note in values.notes)


def gaussian_vector(values, rng):
    noise = rng.normal(size=(len(values), 4))
    return np.round((np.asarray(values) + noise) * 2.0**24) / 2.0**24


def test_what_no_coordinate_tells_is_found_in_the_whole_of_a_vector():
    # The distance is 1, that of each coordinate 0.5.
    subject = vectorised(gaussian_vector, [np.zeros(4), np.full(4, 0.5)])
    assert audit_pair(subject, Claim.gaussian(1), seed=1).verdict == "not refuted"
    for score in (None, lambda y: y.sum(axis=1)):
        found = audit_pair(subject, Claim.gaussian(0.8), seed=1, score=score)
        assert found.verdict == "violated"


@pytest.mark.extra
def test_a_learned_score_finds_it_too():
    pytest.importorskip("sklearn")
    subject = vectorised(gaussian_vector, [np.zeros(4), np.full(4, 0.5)])
    options = {"seed": 1, "trials": 16_000, "score": "learned"}
    assert audit_pair(subject, Claim.gaussian(0.7), **options).verdict == "violated"
    assert audit_pair(subject, Claim.gaussian(1), **options).verdict == "not refuted"


def test_recorded_runs_are_audited_without_reuse():
    rng = np.random.default_rng(1)
    given = rng.integers(2, size=40_000)
    told = np.where(rng.random(40_000) < 0.75, given, 1 - given)
    subject = RecordedSubject(given, told)
    found = audit_pair(subject, Claim.pure(0.9), seed=1)
    assert found.verdict == "violated"
    assert found.trials == 40_000
    again = audit_pair(subject, Claim.pure(0.9), seed=1)
    assert found == again  # the recording itself is not used up
    some = audit_pair(subject, Claim.pure(0.9), seed=1, trials=8_000)
    assert some.trials == 8_000


def test_too_few_recorded_runs_are_to_be_recorded_and_not_asked_for():
    few = RecordedSubject([0, 1] * 9 + [1] * 90, [0] * 108)
    with pytest.raises(AuditError, match=r"got 4; record at least 68 runs, equally"):
        audit_pair(few, Claim.pure(1))
    many = RecordedSubject([0, 1] * 500, [0] * 1000)
    with pytest.raises(AuditError, match=r"got 5; ask for at least 68 trials, or"):
        audit_pair(many, Claim.pure(1), trials=20)


def test_recorded_runs_are_not_copied_to_other_processes():
    subject = RecordedSubject([0, 1] * 500, [0, 1] * 500)
    with pytest.raises(AuditError, match="workers must be 1"):
        audit_pair(subject, Claim.pure(1), workers=2)


def test_a_checkpoint_needs_a_seeded_subject(tmp_path):
    subject = CallableSubject(lambda value: value, [0, 1], name="f")
    with pytest.raises(AuditError, match="checkpoint must be None for f"):
        audit_pair(subject, Claim.pure(1), checkpoint=tmp_path / "c")


@pytest.mark.parametrize("claim", [Claim.pure(3), Claim.gaussian(3)], ids=str)
def test_too_few_trials_are_refused_with_the_number_needed(claim):
    subject = MechanismSubject(LaplaceMechanism(1), [0.0, 1.0])
    needed = pair_trials_needed(claim)
    assert audit_pair(subject, claim, trials=needed).verdict == "not refuted"
    with pytest.raises(AuditError, match=f"at least {needed} for"):
        audit_pair(subject, claim, trials=needed - 4)


def test_so_many_trials_as_needed_refute_if_all_is_told():
    tells = CallableSubject(lambda value, rng: value, [0, 1])
    claim = Claim.pure(4)
    found = audit_pair(tells, claim, trials=pair_trials_needed(claim))
    assert found.verdict == "violated"
    assert found.certified == found.power["ceiling"] > 4


def test_a_claim_out_of_reach_of_any_audit_is_refused():
    with pytest.raises(AuditError, match="must be refutable with at most"):
        pair_trials_needed(Claim.pure(60))


def test_the_power_says_from_where_a_violation_would_have_been_seen():
    found = audit_pair(vectorised(shifted, [0.0, 1.0]), Claim.pure(1), seed=1)
    assert 1.0 < found.power["detectable"] < 1.1
    assert found.power["ceiling"] == event_epsilon(25_000, 25_000, 0, 25_000).value
    tiny = audit_pair(vectorised(shifted, [0.0, 1.0]), Claim.pure(7.9), seed=1)
    assert math.isfinite(tiny.power["ceiling"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"pairs": [(0, 0)]}, "different inputs, got 0 twice"),
        ({"pairs": [(0, 5)]}, "must be in 0..1, got 5"),
        ({"pairs": []}, "pairs must be from 1 to 4096, got 0"),
        ({"pairs": "all"}, "must be 'auto' or pairs of numbers, got 'all'"),
        ({"trials": 12}, "trials must leave 8 runs"),
        ({"confidence": 1.0}, "confidence must be in"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"score": "best"}, "score must be"),
    ],
    ids=range(8),
)
def test_arguments_are_checked(options, said):
    subject = vectorised(shifted, [0.0, 1.0])
    with pytest.raises(ValueError, match=said):
        audit_pair(subject, Claim.pure(1), **options)


def test_many_inputs_need_named_pairs():
    subject = ProtocolSubject(GeneralizedResponse(100, 1))
    with pytest.raises(AuditError, match="pairs must be from 1 to 4096, got 4950"):
        audit_pair(subject, Claim.pure(1))


def always_raises(value, rng):
    raise KeyError("missing column")


def secretive(value, rng):
    return object()


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (always_raises, r"f must not raise, got KeyError: 'missing column', in 100.0%"),
        (secretive, "outputs that can be compared, got object"),
        (lambda value, rng: None, "must return a value, got None in every run"),
        (lambda value, rng: float("nan"), "must return a value, got nan in every run"),
    ],
    ids=["raises", "object", "none", "nan"],
)
def test_a_function_that_tells_nothing_on_any_input_ends_an_audit(function, said):
    subject = CallableSubject(function, [0, 1], name="f")
    with pytest.raises(AuditError, match=said) as caught:
        audit_pair(subject, Claim.pure(1), trials=2000)
    assert "\n" not in str(caught.value)


def test_a_function_that_always_raises_is_told_after_few_runs():
    calls = []

    def broken(value, rng):
        calls.append(value)
        raise KeyError("missing column")

    with pytest.raises(AuditError, match="must not raise"):
        audit_pair(CallableSubject(broken, [0, 1]), Claim.pure(1))
    assert len(calls) == 128


def test_a_subject_that_seeds_itself_with_a_constant_is_refused():
    def stuck(values):
        return values ^ (np.random.default_rng(7).random(len(values)) < 0.3)

    subject = vectorised(stuck, [0, 1], name="stuck")
    with pytest.raises(AuditError, match="stuck must draw anew in every batch"):
        audit_pair(subject, Claim.pure(0.5))


def test_a_subject_without_noise_repeats_nothing_but_its_fault():
    subject = CallableSubject(lambda value: value, [0, 1])
    assert audit_pair(subject, Claim.pure(1)).verdict == "violated"


def test_agreement_by_chance_is_no_repetition():
    # Two batches of eight fair coins are equal with probability 2^-8.
    rng = np.random.default_rng(1)
    batches = rng.integers(2, size=(2000, 2, 8))
    assert any(np.array_equal(a, b) for a, b in batches)
    assert not any(repeats(a, b) for a, b in batches)
    rare = np.zeros(10_000, dtype=int)
    rare[17] = 1
    assert not repeats(rare, rare)
    assert repeats(rare * 0 + np.arange(10_000) % 2, np.arange(10_000) % 2)


def test_a_hanging_function_ends_an_audit():
    def hang(value, rng):
        while True:
            pass

    subject = CallableSubject(hang, [0, 1], time_limit=0.2)
    with pytest.raises(AuditError, match=r"hang must finish a batch within 0.2 s"):
        audit_pair(subject, Claim.pure(1))


def test_several_scores_are_tried_together():
    subject = MechanismSubject(LaplaceMechanism(1), [0.0, 1.0])
    found = audit_pair(
        subject, Claim.pure(1), trials=4000, seed=1, score=("bits", np.abs)
    )
    assert found.verdict == "not refuted"
    with pytest.raises(ValueError, match="score must be 'learned', 'bits'"):
        audit_pair(subject, Claim.pure(1), trials=4000, seed=1, score=("bits", "else"))


def test_the_default_number_of_trials_says_that_it_is_one():
    subject = MechanismSubject(LaplaceMechanism(1), [0.0, 1.0])
    notes = audit_pair(subject, Claim.pure(1), seed=1).notes
    assert any("not stated: 100000 were made" in note for note in notes)
    for stated in ({"trials": 2_000}, {"seconds": 0.2}):
        notes = audit_pair(subject, Claim.pure(2), **stated).notes
        assert not any("not stated" in note for note in notes)


def test_a_time_too_short_for_the_fewest_trials_is_not_said_to_allow_them():
    def slow(value, rng):
        time.sleep(0.0005)
        return value + rng.laplace()

    subject = CallableSubject(slow, [0.0, 1.0])
    notes = audit_pair(subject, Claim.pure(2), seconds=0.01, score="values").notes
    assert any("0.01 s allow no more" in note for note in notes)
    assert not any("chosen as what" in note or "in about" in note for note in notes)


def test_a_time_in_the_place_of_trials_chooses_them_and_says_how_many():
    subject = vectorised(shifted, [0.0, 1.0])
    found = audit_pair(subject, Claim.pure(2), seconds=0.5, seed=1)
    (chosen,) = (note for note in found.notes if "as what 0.5 s allow" in note)
    asked = int(chosen.split()[0])
    assert 2000 <= found.trials <= asked
    again = audit_pair(subject, Claim.pure(2), trials=asked, seed=1)
    assert (again.certified, again.trials) == (found.certified, found.trials)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"trials": 1000, "seconds": 1}, "seconds must be left out beside trials"),
        ({"checkpoint": "x", "seconds": 1}, "left out beside a checkpoint"),
        ({"seconds": -1}, "seconds must be positive"),
    ],
)
def test_a_time_stands_alone(options, said):
    with pytest.raises(ValueError, match=said):
        audit_pair(vectorised(shifted, [0.0, 1.0]), Claim.pure(2), **options)


def test_recorded_runs_have_a_number_and_no_time():
    runs = RecordedSubject([0, 1] * 50, list(range(100)))
    with pytest.raises(AuditError, match="left out for recorded runs"):
        audit_pair(runs, Claim.pure(1), seconds=1)


@pytest.mark.parametrize("audit", [audit_pair, audit_pair_until_refuted])
@pytest.mark.parametrize("claim", [Claim.pure(1), Claim.gaussian(1)], ids=str)
def test_a_claim_that_is_not_refuted_is_told_what_longer_would_do(audit, claim):
    subject = vectorised(lambda v, rng: v ^ (rng.random(len(v)) < 0.3), [0, 1])
    found = audit(subject, claim, trials=8000)
    (note,) = (note for note in found.notes if "ten times as many trials" in note)
    told = float(note.split("would certify about ")[1].split()[0])
    longer = audit(subject, claim, trials=80_000)
    assert found.certified < told
    assert told == pytest.approx(longer.certified, abs=0.12)
    low = replace(claim, loss=type(claim.loss)("0.1"))
    refuted = audit(subject, low, trials=8000)
    assert not any("ten times" in note for note in refuted.notes)


def test_where_nothing_tells_the_inputs_apart_more_trials_are_no_help():
    subject = vectorised(lambda values, rng: rng.normal(size=len(values)), [0, 1])
    notes = audit_pair(subject, Claim.pure(1), trials=8000).notes
    assert any("would certify nothing by the same event" in note for note in notes)


def test_an_event_of_last_digits_can_be_checked_by_hand():
    def hasty(values, rng):
        return np.asarray(values) + rng.laplace(scale=9, size=len(values)).round(2)

    found = audit_pair(vectorised(hasty, [0.2512, 0.4467]), Claim.pure(1), seed=1)
    event = found.witness.details["event"]
    words = "(output less the nearest multiple of 0.01) / 0.01"
    assert words in event
    first, second = found.witness.details["pair"]

    def holds(output):
        share = round((output - round(output / 0.01) * 0.01) / 0.01, 6)
        told = event.replace(words, repr(share))
        return eval(told)

    for steps in (0, 3, 1257):
        assert holds(first + steps * 0.01)
        assert not holds(second - steps * 0.01)


def flip(value, rng):
    return value if rng.random() < 0.73 else 1 - value


def test_a_probe_runs_only_inputs_that_were_named():
    asked = set()

    def note(value, rng):
        asked.add(value)
        return rng.random()

    audit_pair(
        CallableSubject(note, [0, 1, 2]), Claim.pure(2), trials=500, pairs=[(2, 1)]
    )
    assert asked == {1, 2}


def test_pairs_of_three_are_named():
    subject = CallableSubject(flip, [0, 1])
    for pairs in ([(0, 1, 0)], [0, 1]):
        with pytest.raises(ValueError, match="pairs must be of two numbers each"):
            audit_pair(subject, Claim.pure(1), pairs=pairs)
