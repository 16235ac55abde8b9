"""Outputs, runs and files that are not what an audit takes them for."""

import itertools
import math
import pickle
import textwrap

import numpy as np
import pytest
from scipy.stats import binom

from undertow.audit.claim import Claim
from undertow.audit.event import best_event, lowest_bit
from undertow.audit.leakage import audit_leakage
from undertow.audit.local import audit_local, audit_until_refuted
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.record import Freshness, RecordedSubject, clumping
from undertow.audit.runner import Checkpoint
from undertow.audit.subject import CallableSubject
from undertow.correlation import JointTable
from undertow.errors import AuditError


def draw(subject, size=3, value=0):
    return subject.sample(value, size, rng=np.random.default_rng(1))


REUSED = np.zeros(20_000)


def refill(values, rng):
    """Laplace noise, written into one array again and again."""
    return np.add(values, rng.laplace(size=len(values)), out=REUSED[: len(values)])


def refill_row(value, rng):
    row = REUSED[:2]
    row[:] = value + rng.laplace(size=2)
    return row


def test_outputs_are_kept_as_they_were_returned():
    many = CallableSubject(refill, [0.0, 1.0], vectorised=True)
    first, second = draw(many, 50, value=0), draw(many, 50, value=1)
    assert (first != second).all()
    assert audit_pair(many, Claim.pure("0.2"), trials=20_000, seed=1).violated
    rows = draw(CallableSubject(refill_row, [0.0, 1.0]), 50)
    assert len(np.unique(rows)) == 100


def test_a_leakage_is_told_from_one_array_that_is_filled_again():
    apart = JointTable([[0.25, 0.25], [0.25, 0.25]])

    def narrow(rows, rng):
        return refill(rows[:, 0] * 5.0, rng)

    assert audit_leakage(apart, narrow, Claim.pure(1), samples=2000, seed=1).violated


def test_what_is_masked_was_not_returned():
    def withheld(values, rng):
        return np.ma.array(values, mask=rng.random(len(values)) < 2)

    subject = CallableSubject(withheld, [0.0, 1.0], vectorised=True)
    with pytest.raises(AuditError, match="got None in every run"):
        audit_pair(subject, Claim.pure(1), trials=2000, seed=1)

    class Protocol:
        name, version, inputs = "protocol", "", (0, 1)

        def sample(self, value, size, *, rng):
            return withheld(np.full(size, value), rng)

    with pytest.raises(AuditError, match="got a masked one"):
        audit_local(Protocol(), Claim.pure(1), trials=2000, seed=1)


class Turning:
    """Returns one type of output while an event is chosen, and then another."""

    name, version, inputs = "turning", "", (0, 1)

    def __init__(self, first, then):
        self.first, self.then, self.calls = first, then, 0

    def sample(self, value, size, *, rng):
        self.calls += 1  # two probes, two batches of the choosing half
        now = self.first if self.calls <= 4 else self.then
        return [now(value, rng) for _ in range(size)]


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (lambda value, rng: value + rng.laplace(), lambda value, rng: "a"),
        (lambda value, rng: int(rng.integers(10**6)), lambda value, rng: 10**400),
        (lambda value, rng: rng.normal(size=3), lambda value, rng: 1.5),
    ],
    ids=["text", "huge", "number"],
)
def test_another_type_in_the_certifying_half_is_in_no_event_of_the_first(first, then):
    found = audit_pair(Turning(first, then), Claim.pure(1), trials=2000, seed=1)
    assert found.verdict == "not refuted"
    assert found.certified == 0


def test_whole_numbers_on_one_input_and_floats_on_another_tell_them_apart():
    def typed(value, rng):
        told = rng.integers(5, size=np.shape(value))
        return told.astype(float) if np.all(value) else told

    def one(value, rng):
        return typed(value, rng).item()

    found = audit_pair(CallableSubject(one, [0, 1]), Claim.pure(1), trials=2000)
    assert found.violated
    assert "type of output = 'int'" in found.witness.summary
    # The type of a whole array is not that of each output.
    whole = CallableSubject(typed, [0, 1], vectorised=True)
    assert not audit_pair(whole, Claim.pure(1), trials=2000).violated


@pytest.mark.parametrize("kind", ["frame", "list", "tuple"])
def test_noise_that_stays_in_a_nested_input_is_refused(kind):
    def table(person):
        column = np.zeros(5000)
        column[0] = person
        if kind == "frame":
            return pytest.importorskip("pandas").DataFrame({"x": column})
        return [column, 0] if kind == "list" else (column, 0)

    def wander(given, rng):
        column = given["x"].to_numpy() if kind == "frame" else given[0]
        noisy = column.copy() if kind == "frame" else column
        noisy[2500] += rng.laplace()
        if kind == "frame":
            given["x"] = noisy
        return float(noisy.sum())

    with pytest.raises(AuditError, match="must leave its input"):
        draw(CallableSubject(wander, [table(0), table(1)]))


# Runs that share their noise.


def broadcast(values, rng):
    return values + rng.laplace()


@pytest.mark.parametrize("audit", [audit_pair, audit_local, audit_until_refuted])
def test_a_function_that_draws_once_for_all_its_runs_is_refused(audit):
    own = np.random.default_rng(3)
    flips = iter(own.permutation(np.arange(200) % 2))

    def alternating(values, rng):
        return (values + next(flips)) % 2

    subject = CallableSubject(alternating, [0, 1], vectorised=True)
    with pytest.raises(AuditError, match="must draw anew for every run"):
        audit(subject, Claim.pure(1), trials=60_000, seed=1)
    noise = CallableSubject(broadcast, [0.0, 1.0], vectorised=True)
    with pytest.raises(AuditError, match="must draw anew for every run"):
        audit_pair(noise, Claim.pure(1), trials=2000, seed=1)


def test_a_program_on_correlated_records_must_draw_for_every_database():
    apart = JointTable([[0.25, 0.25], [0.25, 0.25]])

    def constant(rows, rng):
        return rows[:, 0] + np.random.default_rng(3).laplace(size=len(rows))

    for program_, said in [
        (lambda rows, rng: broadcast(rows[:, 0], rng), "for every run"),
        (constant, "in every batch"),
        (lambda rows, rng: 1.0, "one number for each of"),
    ]:
        with pytest.raises(AuditError, match=said):
            audit_leakage(apart, program_, Claim.pure(1), samples=500)


def test_equal_outputs_side_by_side_are_bounded_by_enumeration():
    for counts in [(3, 3), (2, 2, 2), (5, 1)]:
        labels = np.repeat(np.arange(len(counts)), counts)
        orders = sorted(set(itertools.permutations(labels.tolist())))
        stretches = [len(list(itertools.groupby(order))) for order in orders]
        for order, mine in zip(orders, stretches, strict=True):
            share = np.mean([other <= mine for other in stretches])
            assert share <= math.exp(-clumping(np.array(order))) * (1 + 1e-12)


def test_batches_of_other_types_are_no_stretches():
    guard = Freshness("mostly zero")
    for batch in ([0] * 300, [0.0] * 299 + [0.5], [0] * 300):
        guard.check(0, np.array(batch))
    guard = Freshness("mostly a")
    for words in (["a"] * 300, ["a"] * 299 + ["long"], ["a"] * 300):
        guard.check(0, np.array(words))


def test_a_copy_for_a_worker_hands_over_how_its_batches_began():
    coins = np.random.default_rng(1).integers(2, size=500)
    here, there = Freshness("coins"), pickle.loads(pickle.dumps(Freshness("coins")))
    there.check(0, coins)
    marks = there.drain()
    assert marks
    assert not there.drain()
    here.admit(marks)
    with pytest.raises(AuditError, match="must draw anew"):
        here.check(0, coins)


def test_workers_that_draw_the_same_numbers_are_found():
    pytest.importorskip("joblib")
    # Defined elsewhere: this class cannot be imported by a worker.
    code = """
    import numpy as np
    class Own:
        name, version, inputs = "own", "", (0, 1)
        def __init__(self):
            self.rng = np.random.default_rng(5)
        def sample(self, value, size, *, rng):
            return np.where(self.rng.random(size) < 0.73, value, 1 - value)
    """
    space = {"__name__": "__main__"}
    exec(textwrap.dedent(code), space)
    with pytest.raises(AuditError, match="must draw anew"):
        audit_pair(space["Own"](), Claim.pure(1), trials=100_000, seed=1, workers=2)


# Recorded runs.


@pytest.mark.slow
def test_a_local_audit_of_a_sorted_file_deals_in_random_order():
    rng, alarms = np.random.default_rng(1), 0
    for seed in range(20):
        inputs = np.repeat([0, 1], 2000)
        kept = rng.random(4000) < math.e / (1 + math.e)
        outputs = np.where(kept, inputs, 1 - inputs)
        order = np.lexsort((outputs, inputs))
        runs = RecordedSubject(inputs[order], outputs[order])
        for audit in (audit_local, audit_until_refuted):
            found = audit(runs, Claim.pure(1), trials=2400, seed=seed)
            alarms += found.violated
        assert runs.available(0) == 2000
    assert binom.sf(alarms - 1, 40, 0.01) > 1e-6


@pytest.mark.parametrize("copies", [2, 3])
def test_runs_that_were_written_several_times_are_refused(copies):
    rng = np.random.default_rng(1)
    inputs = np.repeat([0, 1], 1000)
    noise = inputs + rng.laplace(size=2000)
    coins = np.where(rng.random(2000) < 0.73, inputs, 1 - inputs)
    mixed = rng.permutation(2000 * copies)
    for given, outputs in [
        (np.tile(inputs, copies), np.tile(noise, copies)),
        (np.tile(inputs, copies)[mixed], np.tile(noise, copies)[mixed]),
        (np.tile(inputs, copies), np.tile(coins, copies)),
        (np.repeat(inputs, copies), np.repeat(coins, copies)),
    ]:
        with pytest.raises(AuditError, match="must hold every run once"):
            RecordedSubject(given, outputs)


def test_runs_that_repeat_by_their_law_are_not_refused():
    rng = np.random.default_rng(2)
    for outputs in (
        np.zeros(400),
        np.repeat([0, 1], 200),
        rng.integers(50, size=400),
        np.sort(rng.integers(300, size=400)),
        rng.normal(size=(400, 2)),
    ):
        assert RecordedSubject(np.tile([0, 1], 200), outputs).available(0) == 200


# What was not looked at.


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


def test_a_checkpoint_of_another_score_is_refused(tmp_path):
    subject = CallableSubject(lambda value, rng: value + rng.laplace(), [0.0, 1.0])
    options = {"trials": 2000, "seed": 1, "checkpoint": tmp_path / "kept.json"}
    audit_pair(subject, Claim.pure(2), score=lambda y: y, **options)
    with pytest.raises(AuditError, match="must belong to this job"):
        audit_pair(subject, Claim.pure(2), score=lambda y: -y, **options)


def test_a_checkpoint_that_cannot_be_written_is_one_sentence(tmp_path):
    section = Checkpoint(tmp_path / "kept.json").section("counts", "job")
    tmp_path.rename(tmp_path.with_name("moved"))
    with pytest.raises(AuditError, match=r"must be a file that can be written, got .*"):
        section.save({})
