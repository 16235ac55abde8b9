"""What an adversarial reading of the audits found, one test for each."""

import functools
import json
import math
import os
import subprocess
import sys
import time

import mpmath
import numpy as np
import pytest
from scipy.special import betaln
from scipy.stats import binom

from undertow.audit._outcome import read_outputs
from undertow.audit._trial import ValueReader
from undertow.audit.certificate import (
    _level,
    event_epsilon,
    odds_epsilon,
    proportion_sequence,
    success_epsilon,
    success_mu,
    trials_needed,
)
from undertow.audit.claim import Claim
from undertow.audit.event import LabelEvent, Score, ScoreEvent
from undertow.audit.leakage import audit_leakage
from undertow.audit.local import audit_local, audit_until_refuted
from undertow.audit.pair._draw import EventTest
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.program import CommandSubject
from undertow.audit.record import Freshness, RecordedSubject
from undertow.audit.runner import run_chunks
from undertow.audit.subject import CallableSubject, subject_identity
from undertow.correlation import JointTable
from undertow.errors import AuditError, MismatchError
from undertow.mechanisms.local import GeneralizedResponse, OptimizedUnary

CLAIMS = (
    Claim.pure(1),
    Claim.approx("0.2", "0.3"),
    Claim.approx("0.3", "0.01", adjacency="add-remove"),
    Claim.gaussian(1),
    Claim.gaussian("0.5", adjacency="add-remove"),
)


def flip(value, rng):
    return value if rng.random() < 0.73 else 1 - value


def program(code, **options):
    return CommandSubject([sys.executable, "-c", code], [0, 1], **options)


def draw(subject, size=3, value=0):
    return subject.sample(value, size, rng=np.random.default_rng(1))


def certified(claim, hits, trials, m, confidence):
    tested = claim.for_replacement()
    if tested.parameter == "mu":
        return success_mu(hits, trials, m, confidence=confidence).value
    options = {"delta": tested.delta, "confidence": confidence}
    return success_epsilon(hits, trials, m, **options).value


# Levels, by enumeration.


@pytest.mark.parametrize("tail", [0.1, 0.01])
@pytest.mark.parametrize("m", [2, 7])
@pytest.mark.parametrize("claim", CLAIMS, ids=str)
def test_naming_a_value_refutes_a_tight_mechanism_at_most_at_the_level(claim, m, tail):
    rate, level = claim.success_limit(m), claim.for_replacement().level
    for n in (7, 60):
        alarms = [
            k for k in range(n + 1) if certified(claim, k, n, m, 1 - tail) > level
        ]
        assert binom.pmf(alarms, n, rate).sum() <= tail
    # And the least number of trials that can refute is just that.
    need = trials_needed(claim, m, confidence=1 - tail)
    assert certified(claim, need, need, m, 1 - tail) > level
    if need > 1:
        assert certified(claim, need - 1, need - 1, m, 1 - tail) <= level


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_odds_refute_a_tight_pair_at_most_at_the_level(epsilon):
    share = math.exp(epsilon) / (1 + math.exp(epsilon))
    for both in (1, 17, 150):
        alarms = [
            k
            for k in range(both + 1)
            if odds_epsilon(k, both - k, confidence=0.9).value > epsilon
        ]
        assert binom.pmf(alarms, both, share).sum() <= 0.1


def test_an_event_refutes_a_tight_pair_at_most_at_the_level():
    n, epsilon, delta = 20, 0.5, 0.1
    for q in (0.05, 0.4, 0.9):
        p = min(math.exp(epsilon) * q + delta, 1 - math.exp(-epsilon) * (1 - delta - q))
        law = np.outer(*(binom.pmf(range(n + 1), n, rate) for rate in (p, q)))
        alarm = sum(
            law[i, j]
            for i in range(n + 1)
            for j in range(n + 1)
            if event_epsilon(i, n, j, n, delta=delta, confidence=0.9).value
            > epsilon + 1e-12
        )
        assert alarm <= 0.1


@pytest.mark.parametrize("rate", [0.05, 0.73])
def test_a_sequence_is_ever_wrong_at_most_at_the_level(rate):
    alive, wrong = {0: 1.0}, 0.0
    for n in range(1, 151):
        moved = {}
        for k, mass in alive.items():
            moved[k] = moved.get(k, 0.0) + mass * (1 - rate)
            moved[k + 1] = moved.get(k + 1, 0.0) + mass * rate
        out = {k for k in moved if proportion_sequence(k, n, confidence=0.9)[0] > rate}
        wrong += sum(moved[k] for k in out)
        alive = {k: mass for k, mass in moved.items() if k not in out}
    assert 0 < wrong <= 0.1


def test_the_rounding_of_a_sequence_covers_the_cancelling_log_gammas():
    n, k = 10**8, 1000
    with mpmath.workdps(40):
        half = mpmath.mpf(0.5)
        exact = mpmath.log(mpmath.beta(half + k, half + n - k) / mpmath.beta(0.5, 0.5))
        threshold = float(exact + mpmath.log(mpmath.mpf(1) - mpmath.mpf(0.99)))
        error = abs(float(mpmath.mpf(float(betaln(0.5 + k, 0.5 + n - k))) - exact))
    used = _level(k, n, 0.99, (0.5, 0.5))[2]
    assert error > 1e-8  # what had to be covered
    assert threshold - used > 1e-6


# Claims, seeds and streams.


def test_an_event_that_is_too_rare_on_the_first_input_is_not_allowed():
    claim = Claim.pure(1)
    assert not claim.allows(0.2, 0.6)
    assert claim.allows(0.2, 0.5)
    assert not Claim.gaussian(1).allows(0.1, 0.9)


def test_training_and_certifying_runs_differ_for_seeds_of_many_words():
    streams = []

    class Recorder:
        name, version, inputs = "recorder", "", (0, 1)

        def sample(self, value, size, *, rng):
            streams.append(json.dumps(rng.bit_generator.state, sort_keys=True))
            return rng.normal(size=size) + value

    audit_pair(Recorder(), Claim.pure(2), trials=80_000, seed=2**100 + 5)
    assert len(set(streams)) == len(streams) > 6


def test_a_learned_score_takes_any_seed():
    pytest.importorskip("sklearn")
    subject = CallableSubject(lambda value, rng: value + rng.laplace(), [0.0, 1.0])
    found = audit_pair(subject, Claim.pure(2), trials=2000, seed=2**40, score="learned")
    assert found.seed == 2**40


def test_an_audit_that_no_seed_repeats_names_none():
    coin = np.random.default_rng(3)

    def unseeded(value):
        return value if coin.random() < 0.7 else 1 - value

    found = audit_local(
        CallableSubject(unseeded, [0, 1]), Claim.pure(2), trials=500, seed=4
    )
    assert found.seed is None
    assert found.advantage.seed is None
    assert audit_local(
        GeneralizedResponse(3, 1), Claim.pure(2), trials=500, seed=4
    ).seed


# Batches that repeat.

CONSTANT = """
import json, random, sys
coin = random.Random(7)
for line in sys.stdin:
    value = json.loads(line)
    print(value if coin.random() < 0.73 else 1 - value)
"""


def test_a_local_audit_refuses_a_program_with_a_constant_seed():
    with pytest.raises(AuditError, match="must draw anew"):
        audit_local(program(CONSTANT), Claim.pure(2), trials=8000, seed=1, chunk=2000)


class Constant:
    """Draws in two blocks, so that batches of other sizes begin otherwise."""

    name, version, seeded = "constant", "", False

    def __init__(self, size):
        self.inputs = range(size)

    def sample(self, value, size, *, rng):
        own, m = np.random.default_rng(5), len(self.inputs)
        kept = own.random(size) < 0.4
        return np.where(kept, value, (value + own.integers(1, m, size=size)) % m)


def test_a_constant_seed_is_found_whatever_the_size_of_the_batches():
    for audit in (audit_local, audit_until_refuted):
        with pytest.raises(AuditError, match="must draw anew"):
            audit(Constant(5), Claim.pure(2), trials=4000, seed=1)
    with pytest.raises(AuditError, match="must draw anew"):
        audit_pair(Constant(5), Claim.pure(2), trials=4001, seed=1, pairs=[(1, 3)])


def test_a_probe_runs_only_inputs_that_were_named():
    asked = set()

    def note(value, rng):
        asked.add(value)
        return rng.random()

    audit_pair(
        CallableSubject(note, [0, 1, 2]), Claim.pure(2), trials=500, pairs=[(2, 1)]
    )
    assert asked == {1, 2}


def test_a_pair_audit_refuses_certifying_batches_that_repeat_each_other():
    class Clock:
        """Seeds itself with a clock that stands still after the training."""

        name, version, inputs, seeded = "clock", "", (0, 1), False
        calls = 0

        def sample(self, value, size, *, rng):
            self.calls += 1
            own = np.random.default_rng(min(self.calls, 5))
            return value + own.laplace(size=size)

    with pytest.raises(AuditError, match="with the time"):
        audit_pair(Clock(), Claim.pure(2), trials=100_000, seed=1)


def test_equal_batches_without_chance_are_no_repetition():
    guard = Freshness("f")
    for _ in range(3):
        guard.check(0, np.zeros(5000, dtype=int))
        guard.check(0, np.array([0, 1] * 20))
    coins = np.random.default_rng(1).integers(2, size=300)
    guard.check(0, coins)
    guard.check(1, coins)  # of another input
    with pytest.raises(AuditError, match="f must draw anew"):
        guard.check(0, coins[:150])
    labels = np.array([f"x{c}" for c in coins], dtype=object)
    guard.check(2, labels)
    with pytest.raises(AuditError, match="f must draw anew"):
        guard.check(2, labels)


# Checkpoints.


def test_a_checkpoint_of_another_program_is_refused(tmp_path):
    path = tmp_path / "state.json"
    echo = "import sys\nfor line in sys.stdin: sys.stdout.write(line)"

    def run(code):
        subject = program(code, seeded=True)
        return audit_pair(subject, Claim.pure(1), seed=1, trials=200, checkpoint=path)

    # Name, inputs, event and counts are the same; the words of the command are not.
    assert run(echo).violated
    with pytest.raises(AuditError, match="must belong to this job"):
        run(echo + "  # another program")


def other(value, rng):
    return value if rng.random() < 0.5 else 1 - value


def test_a_checkpoint_of_other_inputs_or_code_is_refused(tmp_path):
    path = tmp_path / "state.json"

    def run(function, inputs, **options):
        subject = CallableSubject(function, inputs, name="same", **options)
        return audit_local(subject, Claim.pure(2), trials=500, seed=1, checkpoint=path)

    first = run(flip, [0, 1])
    assert run(flip, [0, 1]).to_dict() == first.to_dict()
    for arguments, options in (
        ((other, [0, 1]), {}),
        ((flip, [1, 0]), {}),
        ((flip, [0, 1]), {"version": "2"}),
    ):
        with pytest.raises(AuditError, match="must belong to this job"):
            run(*arguments, **options)


def test_long_arrays_and_fixed_arguments_are_told_apart():
    first, *wide = np.zeros((3, 5000))
    first[0], wide[1][2500] = 1.0, 1.0  # the second is elided in its repr
    one, two = (
        subject_identity(CallableSubject(flip, [first, given])) for given in wide
    )
    assert one != two

    def scaled(value, rng, scale):
        return value + scale * rng.laplace()

    parts = [
        subject_identity(CallableSubject(functools.partial(scaled, scale=s), [0, 1]))
        for s in (1, 2, 1)
    ]
    assert parts[0] == parts[2] != parts[1]


def test_a_checkpoint_in_no_folder_is_refused_before_the_work(tmp_path):
    def work(seed, index):
        raise AssertionError("must not run")

    for path in (tmp_path, tmp_path / "none" / "state.json"):
        with pytest.raises(AuditError, match="checkpoint must be a file in a folder"):
            run_chunks(work, chunks=1, seed=1, fingerprint="x", checkpoint=path)


def test_a_progress_hook_cannot_change_the_counts():
    def spoil(done, total, counts):
        counts["n"] += 100

    found = run_chunks(
        lambda seed, index: {"n": np.array([1])},
        chunks=9, seed=1, fingerprint="x", progress=spoil,
    )  # fmt: skip
    assert found["n"].tolist() == [9]


# What a result says.


def test_the_words_of_a_witness_are_the_event_that_was_counted():
    subject = CallableSubject(lambda v, rng: 1e9 + v + rng.laplace() / 4, [0.0, 1.0])
    found = audit_pair(subject, Claim.pure(1), trials=2000, seed=1)
    assert found.violated
    event = found.witness.details["event"]
    cuts = [float(word) for word in event.split() if word[0].isdigit()]
    assert all(cut % 1 for cut in cuts)
    assert found.witness.summary.startswith(event)
    event = ScoreEvent(Score("output", np.asarray), np.float64(0.1) + 0.2, np.inf)
    assert event.exact == "output >= 0.30000000000000004"
    assert ScoreEvent(event.score, 0.5, 1.0).exact == "0.5 <= output <= 1.0"
    assert ScoreEvent(event.score, -np.inf, 1.0).exact == "output <= 1.0"
    many = LabelEvent(tuple(range(20)))
    assert "19" in many.exact
    assert "19" not in many.words


def test_long_inputs_do_not_flood_the_witness():
    inputs = [tuple(range(100)), tuple(range(101))]
    subject = CallableSubject(lambda value, rng: len(value) + 0 * rng.random(), inputs)
    found = audit_pair(subject, Claim.pure(1), trials=500, seed=1)
    assert len(found.witness.summary) < 300
    assert found.witness.details["pair"] in (tuple(inputs), tuple(inputs[::-1]))


@pytest.mark.parametrize(
    "claim", [Claim.pure(1), Claim.gaussian(1), Claim.approx(1, "0.05")], ids=str
)
@pytest.mark.parametrize("audit", [audit_local, audit_until_refuted])
def test_no_certificate_passes_the_ceiling_and_a_full_disclosure_reaches_it(
    claim, audit
):
    subject = CallableSubject(lambda v, rng: v, [0, 1, 2], name="tells all")
    found = audit(subject, claim, trials=400, seed=1, chunk=400)
    assert found.violated
    assert found.certified == pytest.approx(found.power["ceiling"], abs=1e-9)


@pytest.mark.parametrize("audit", [audit_local, audit_until_refuted])
def test_the_needed_trials_are_the_least_that_are_not_refused(audit):
    claim, protocol = Claim.pure(3), OptimizedUnary(5, 1)
    found = audit(protocol, claim, trials=400, seed=1)
    needed = int(found.power["trials_needed"])
    audit(protocol, claim, trials=needed, seed=1)
    with pytest.raises(ValueError, match=f"at least {needed}"):
        audit(protocol, claim, trials=needed - 1, seed=1)


def test_what_a_stopped_audit_could_detect_follows_its_own_limits():
    plain, stopped = (
        audit(OptimizedUnary(5, 1), Claim.pure(1), trials=5000, seed=1).power
        for audit in (audit_local, audit_until_refuted)
    )
    assert stopped["detectable"] > plain["detectable"] > 1
    assert stopped["ceiling"] < plain["ceiling"]
    assert stopped["trials_needed"] > plain["trials_needed"]


def test_estimates_of_a_gaussian_claim_are_of_mu_and_epsilon_is_kept_apart():
    subject = CallableSubject(
        lambda v, rng: (v + rng.normal(size=len(v))).astype(np.float32),
        [0.0, 1.0],
        vectorised=True,
    )
    found = audit_pair(subject, Claim.gaussian(1), trials=4000, seed=1)
    assert found.parameter == found.methods[0].parameter == "mu"
    assert found.methods[0].estimate == found.estimate != found.epsilon_estimate
    assert found.estimate == pytest.approx(1.0, abs=0.15)
    assert found.power["detectable"] > found.estimate > found.certified
    beyond = audit_pair(subject, Claim.gaussian(5), trials=4000, seed=1)
    assert beyond.power["detectable"] == math.inf
    assert beyond.power["can_refute"] is False
    assert json.loads(json.dumps(beyond.to_dict()))["power"]["detectable"] == "inf"


def test_recorded_runs_of_many_inputs_ask_for_enough_of_them():
    rng = np.random.default_rng(1)
    inputs = np.repeat(np.arange(5), 400)
    subject = RecordedSubject(inputs, inputs + rng.laplace(size=len(inputs)))
    claim = Claim.pure(2)
    with pytest.raises(AuditError, match=r"at least \d+ for") as caught:
        audit_pair(subject, claim, trials=150, seed=1)
    words = str(caught.value).split()
    needed = int(words[words.index("least") + 1])
    assert "got 150" in str(caught.value)
    assert audit_pair(subject, claim, trials=needed, seed=1).trials <= needed


# Subjects that misbehave.


@pytest.mark.parametrize("inputs", [[False, True], [0.0, 1.0], ["a", "b"]], ids=str)
def test_values_of_any_plain_type_are_read(inputs):
    def response(value, rng):
        kept = rng.random() < 0.9
        return value if kept else inputs[1 - inputs.index(value)]

    found = audit_local(
        CallableSubject(response, inputs), Claim.pure(1), trials=2000, seed=1
    )
    assert found.violated
    assert found.epsilon_certified < math.log(9)


def test_outputs_that_cannot_be_values_are_still_refused():
    with pytest.raises(MismatchError, match="must be values"):
        ValueReader(2).hits(np.array([0.5, 1.0]), np.array([0, 1]), rng=None)
    with pytest.raises(AuditError, match="inputs must be hashable"):
        ValueReader(2, [[0], [1]])


def test_a_function_that_leaves_the_interpreter_ends_the_audit_in_a_sentence():
    def leave(value, rng):
        sys.exit(0)

    with pytest.raises(AuditError, match="leave must not raise, got SystemExit: 0"):
        draw(CallableSubject(leave, [0, 1]))


@pytest.mark.parametrize(
    "given", [[0], {"a": 0}, np.zeros(2)], ids=["list", "dict", "array"]
)
def test_a_function_that_changes_its_input_is_refused(given):
    def change(value, rng):
        value[next(iter(value)) if isinstance(value, dict) else 0] = 5
        return 1

    with pytest.raises(AuditError, match="must leave its input as it is"):
        draw(CallableSubject(change, [given, 1]))


def test_numpy_scalars_are_outputs_like_any_other():
    flags = read_outputs([True, np.bool_(False)], 2, name="f")
    assert flags.tolist() == [True, False]
    assert read_outputs(["a", np.str_("b")], 2, name="f").tolist() == ["a", "b"]
    mixed = read_outputs([np.float32(1), np.int8(2), -0.0, math.inf], 4, name="f")
    assert mixed.tolist() == [1.0, 2.0, 0.0, math.inf]
    with pytest.raises(AuditError, match="one type of output where whole numbers"):
        read_outputs([10**400, 0.5], 2, name="f")


def test_separators_inside_a_string_do_not_end_a_line():
    code = (
        "import sys\n"
        "for line in sys.stdin:\n"
        "    sys.stdout.buffer.write('\"a\\u2028b\\x85\"\\n'.encode())"
    )
    assert draw(program(code)).tolist() == ["a\u2028b\x85"] * 3
    endings = "import sys\nfor line in sys.stdin: sys.stdout.write('1\\r\\n')"
    assert draw(program(endings)).tolist() == [1, 1, 1]


def test_a_value_nested_too_deeply_is_named():
    with pytest.raises(AuditError, match="one JSON value per line"):
        draw(program("print('[' * 200_000)"), size=1)


def test_a_program_that_never_stops_writing_is_ended_at_once():
    started = time.monotonic()
    with pytest.raises(AuditError, match="write at most 256 MiB in a batch"):
        draw(program("while True: print('y' * 10_000_000)", time_limit=50))
    assert time.monotonic() - started < 30


def test_a_flood_of_errors_is_read_and_its_last_line_kept():
    code = (
        "import sys\n"
        "for line in sys.stdin: print(1)\n"
        "sys.stderr.write('noise\\n' * 300_000)\n"
    )
    assert draw(program(code)).tolist() == [1, 1, 1]
    with pytest.raises(AuditError, match=r"got 3 \(the end\)"):
        draw(program(code + "sys.stderr.write('the end\\n')\nsys.exit(3)"))


def test_a_hanging_program_leaves_no_child_behind(tmp_path):
    told = tmp_path / "pid"
    code = (
        "import subprocess, sys\n"
        "code = 'import time; time.sleep(60)'\n"
        "child = subprocess.Popen([sys.executable, '-c', code])\n"
        f"open({str(told)!r}, 'w').write(str(child.pid))\n"
        "for line in sys.stdin: print(1)\n"
    )
    # The program ends; its child holds the output open.
    with pytest.raises(AuditError, match="within 2 s"):
        draw(program(code, time_limit=2))
    pid = int(told.read_text())
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and not _ended(pid):
        time.sleep(0.05)
    assert _ended(pid)


def _ended(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True
    )
    return state.stdout.strip()[:1] in ("Z", "")


def test_an_open_quote_in_a_command_is_named():
    with pytest.raises(ValueError, match="command must be split as a shell would"):
        CommandSubject("prog 'x", [0, 1])


def test_an_input_without_runs_left_is_not_asked_for_them():
    class Strict:
        name, version, inputs = "strict", "", (0, 1)

        def sample(self, value, size, *, rng):
            assert size > 0
            return rng.normal(size=size)

    test = EventTest(
        Strict(), (0, 1), ScoreEvent(Score("output", np.asarray), 0.0, np.inf),
        sizes=(12_000, 100), earlier=(np.zeros(8), np.zeros(8)),
    )  # fmt: skip
    assert test(np.random.SeedSequence(1), 1)["q"] == 0


def test_plain_values_need_no_table_of_all_of_them():
    reader = ValueReader(10**9)
    told = np.array([3.0, math.inf, -math.inf, 1e300, -2.0])
    assert reader.hits(told, np.full(5, 3), rng=None).tolist() == [True] + [False] * 4
    flags = reader.cells(np.array([True, False]), np.array([1, 1]), np.array([0, 0]))
    assert flags.tolist() == [2, 1]


def test_the_witness_of_one_value_counts_inputs_and_does_not_misname_them():
    inputs = [7, 9, 8, 1, 0]  # number 1 is the value 9

    def bug(value, rng):
        return value if value == 9 else inputs[rng.integers(5)]

    found = audit_local(
        CallableSubject(bug, inputs), Claim.pure(1), trials=20_000, seed=1
    )
    assert found.violated
    assert found.witness.summary.startswith("value number 1 against")


def test_an_input_with_a_missing_value_can_be_reported():
    inputs = [np.array([math.nan, 1.0]), np.array([0.0, 1.0])]
    subject = CallableSubject(lambda v, rng: float(np.isnan(v).any()), inputs)
    found = audit_pair(subject, Claim.pure(1), trials=500)
    assert found.violated
    assert "nan" in json.dumps(found.to_dict()["witness"])


def test_pairs_of_three_are_named():
    subject = CallableSubject(flip, [0, 1])
    for pairs in ([(0, 1, 0)], [0, 1]):
        with pytest.raises(ValueError, match="pairs must be of two numbers each"):
            audit_pair(subject, Claim.pure(1), pairs=pairs)


def test_the_needed_trials_of_a_leakage_are_those_of_the_least_samples():
    table = JointTable([[0.45, 0.05], [0.05, 0.45]])

    def noisy_sum(rows, rng):
        return rows.sum(axis=1) + rng.laplace(size=len(rows))

    most, least = (
        audit_leakage(table, noisy_sum, Claim.pure(1), samples=samples, seed=1)
        for samples in (2000, 100)
    )
    assert most.power["trials_needed"] == least.trials == least.power["trials_needed"]
