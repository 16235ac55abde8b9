from __future__ import annotations

import math
import sys
import threading
import time

import numpy as np
import pytest

from undertow.audit import Claim, audit_local
from undertow.audit._outcome import read_outputs, shortened
from undertow.audit._trial import ValueReader
from undertow.audit.record import RecordedSubject
from undertow.audit.subject import (
    CallableSubject,
    MechanismSubject,
    ProtocolSubject,
    Subject,
    draws_apart,
    is_seeded,
    read_inputs,
)
from undertow.errors import AuditError, MismatchError, UndertowError
from undertow.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    RandomizedResponse,
)
from undertow.mechanisms.local import GeneralizedResponse, OptimizedHashing


def rng(seed=1):
    return np.random.default_rng(seed)


def test_an_audit_error_is_one_of_ours_and_a_value_error():
    assert issubclass(AuditError, UndertowError)
    assert issubclass(AuditError, ValueError)


@pytest.mark.parametrize(
    ("raw", "kind", "shape"),
    [
        ([True, False], "b", (2,)),
        ([1, 2], "i", (2,)),
        ([1, 2.5], "f", (2,)),
        ([np.float32(1), 2], "f", (2,)),
        ([[1, 2], (3, 4)], "i", (2, 2)),
        ([np.array([0.5, 1.0])] * 3, "f", (3, 2)),
        (["a", "b"], "O", (2,)),
        ([("a", 1), ("b", 2)], "O", (2,)),
        ([frozenset({1}), frozenset()], "O", (2,)),
        ([2**70, 1], "O", (2,)),
        (np.zeros((4, 2)), "f", (4, 2)),
        ([], "f", (0,)),
    ],
    ids=range(12),
)
def test_outputs_become_one_array(raw, kind, shape):
    outputs = read_outputs(raw, len(raw), name="f")
    assert (outputs.dtype.kind, outputs.shape) == (kind, shape)


class Sour:
    """Equal hashes, and an error where two are compared."""

    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise ZeroDivisionError


class Unhashed:
    def __hash__(self):
        raise ZeroDivisionError


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ([Sour(), Sour()], "can be compared, got Sour that raises ZeroDivisionError"),
        ([Unhashed()], "hashable outputs or vectors of numbers, got Unhashed"),
        ([1, None], "a value every time, got None"),
        ([1.0, float("nan")], "numbers, got nan"),
        (np.array([np.nan]), "numbers, got nan"),
        ([[1.0, float("nan")]], "numbers, got nan"),
        ([1, "a"], "one type of output, got int and str"),
        ([True, 1], "one type of output, got bool and int"),
        ([{1}], "hashable outputs or vectors of numbers, got set"),
        ([{"a": 1}], "got dict"),
        ([["a"]], "got list"),
        ([(1, [2])], "got tuple"),
        ([np.zeros((2, 2))], "got ndarray"),
        (np.zeros((2, 2, 2)), r"got arrays of shape \(2, 2\); flatten"),
        ([[1], [1, 2]], "vectors of one length, got 1 and 2"),
    ],
    ids=range(15),
)
def test_bad_outputs_are_named(raw, said):
    with pytest.raises(AuditError, match=said):
        read_outputs(raw, len(raw), name="f")


@pytest.mark.parametrize("raw", [None, 3, "ab", {0: 1, 1: 2}, np.array(3)])
def test_outputs_must_be_a_sequence(raw):
    with pytest.raises(AuditError, match="one output for each of 2 runs"):
        read_outputs(raw, 2, name="f")


def test_the_number_of_outputs_is_checked():
    with pytest.raises(AuditError, match="each of 3 runs, got 2"):
        read_outputs([1, 2], 3, name="f")


def test_inputs_are_at_least_two():
    with pytest.raises(ValueError, match="at least two, got 1"):
        read_inputs([1])
    with pytest.raises(TypeError, match="must be a sequence, got 'ab'"):
        read_inputs("ab")


def test_long_messages_are_cut_to_one_line():
    assert shortened("a\nb") == "a"
    assert len(shortened("x" * 200)) == 83
    assert shortened("  ") == ""


def test_a_protocol_draws_its_own_law():
    subject = ProtocolSubject(GeneralizedResponse(3, 1))
    assert isinstance(subject, Subject)
    outputs = subject.sample(2, 20_000, rng=rng())
    keep = np.e / (np.e + 2)
    assert (outputs == 2).mean() == pytest.approx(keep, abs=0.015)
    logs = subject.log_likelihood(np.array([2, 1]), (2, 1))
    assert (logs[:, 0] - logs[:, 1]).tolist() == pytest.approx([1, -1])


def test_a_subject_is_seeded_and_copied_unless_it_says_otherwise():
    class Plain:
        pass

    assert is_seeded(Plain())
    assert draws_apart(Plain())
    noisy = CallableSubject(lambda value: value, [0, 1])
    assert not is_seeded(noisy)
    assert not draws_apart(noisy)


def test_structured_reports_pass():
    subject = ProtocolSubject(OptimizedHashing(4, 1))
    raw = subject.sample(0, 5, rng=rng())
    assert read_outputs(raw, 5, name="f").shape == (5,)


@pytest.mark.parametrize(
    ("mechanism", "answers", "kind"),
    [
        (LaplaceMechanism(1), [0.0, 1.0], "f"),
        (GaussianMechanism(1, dimension=2), [[0, 0], [1, 0]], "f"),
        (RandomizedResponse(["a", "b"], 1), ["a", "b"], "O"),
        (ExponentialMechanism(["x", "y"], epsilon=1), [[0, 1], [1, 0]], "O"),
    ],
    ids=["laplace", "gaussian", "response", "exponential"],
)
def test_mechanisms_draw_and_know_their_law(mechanism, answers, kind):
    subject = MechanismSubject(mechanism, answers)
    outputs = subject.sample(0, 40, rng=rng())
    assert outputs.dtype.kind == kind
    assert np.array_equal(outputs, subject.sample(0, 40, rng=rng()))
    logs = subject.log_likelihood(outputs, (0, 1))
    assert logs.shape == (40, 2)
    assert np.isfinite(logs).all()


def test_functions_are_called_by_their_arguments():
    def with_default(value, scale=2):
        return value * scale

    def with_keyword(value, *, rng):
        return value + rng.integers(1)

    cases = [
        (lambda value: value, False),
        (lambda value, generator: value + generator.integers(1), True),
        (with_keyword, True),
        (with_default, False),
    ]
    for function, seeded in cases:
        subject = CallableSubject(function, [0, 1])
        assert subject.seeded is subject.forkable is seeded
        assert len(set(subject.sample(1, 3, rng=rng()).tolist())) == 1


@pytest.mark.parametrize("takes", [1, 2])
def test_vectorised_functions_take_all_inputs_at_once(takes):
    calls = []

    def one(values):
        calls.append((type(values), len(values)))
        return values

    function = one if takes == 1 else lambda values, generator: one(values)
    for inputs, kind in [((5, 6), np.ndarray), (("a", "b"), list)]:
        subject = CallableSubject(function, inputs, vectorised=True)
        assert subject.sample(1, 4, rng=rng()).tolist() == [inputs[1]] * 4
        assert calls.pop() == (kind, 4)
    rows = CallableSubject(function, [np.zeros(2), np.ones(2)], vectorised=True)
    assert rows.sample(1, 3, rng=rng()).tolist() == [[1, 1]] * 3


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda: 1, "must take a value"),
        (lambda a, b, c: 1, "3 required arguments"),
        (lambda a, *, other: 1, "must take a value"),
    ],
    ids=range(3),
)
def test_functions_of_another_shape_are_refused(function, said):
    with pytest.raises(AuditError, match=said):
        CallableSubject(function, [0, 1])


def test_functions_that_hide_their_arguments_are_refused():
    with pytest.raises(AuditError, match="must show its arguments"):
        CallableSubject(iter, [0, 1])


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="must be callable, got int"):
        CallableSubject(3, [0, 1])


def test_a_function_that_raises_is_named_with_its_error():
    def broken(value):
        raise KeyError("missing column")

    with pytest.raises(AuditError, match=r"broken must not raise, got KeyError: 'miss"):
        CallableSubject(broken, [0, 1]).sample(0, 1, rng=rng())


def test_a_function_that_hangs_is_stopped_even_if_it_catches_exceptions():
    def stubborn(value):
        while True:
            try:
                time.sleep(0.01)
            except Exception:
                continue

    subject = CallableSubject(stubborn, [0, 1], time_limit=0.1)
    start = time.monotonic()
    with pytest.raises(AuditError, match=r"stubborn must finish a batch within 0.1 s"):
        subject.sample(0, 1, rng=rng())
    assert time.monotonic() - start < 5


def test_the_time_limit_holds_in_other_threads():
    subject = CallableSubject(lambda value: time.sleep(1) or 1, [0, 1], time_limit=0.1)
    quick = CallableSubject(lambda value: value, [0, 1], name="quick")
    broken = CallableSubject(lambda value: 1 // value, [0, 1], name="broken")
    seen = []

    def work():
        for item in (subject, broken):
            try:
                item.sample(0, 1, rng=rng())
            except AuditError as error:
                seen.append(str(error))
        seen.append(quick.sample(1, 1, rng=rng()).tolist())

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert "within 0.1 s" in seen[0]
    assert "ZeroDivisionError" in seen[1]
    assert seen[2] == [1]


def test_recorded_runs_are_dealt_once():
    subject = RecordedSubject(np.array([0, 1, 0, 1, 0]), np.arange(5.0))
    dealt = [subject.sample(0, 2, rng=rng()), subject.sample(0, 1, rng=rng())]
    assert np.concatenate(dealt).tolist() == [0.0, 2.0, 4.0]
    with pytest.raises(AuditError, match="1 more runs of input 0, got 0"):
        subject.sample(0, 1, rng=rng())


def test_a_shuffled_copy_deals_all_again_in_another_order():
    subject = RecordedSubject([0] * 50 + [1] * 50, range(100))
    subject.sample(0, 50, rng=rng())
    copy = subject.shuffled(rng())
    dealt = copy.sample(0, 50, rng=rng()).tolist()
    assert sorted(dealt) == list(range(50)) != dealt
    assert subject.available(0) == 0


def test_recordings_must_fit():
    with pytest.raises(MismatchError, match="each of the 2 inputs, got 1"):
        RecordedSubject([0, 1], [1.0])
    with pytest.raises(AuditError, match="at least two different ones, got 1"):
        RecordedSubject([0, 0], [1.0, 2.0])


BESIDE_FLOATS = [2**53 + 1, 0.5]


@pytest.mark.parametrize("outputs", [BESIDE_FLOATS, [[2**60 + 1, 0], [0.5, 1.0]]])
def test_whole_numbers_that_floats_round_are_not_read_beside_floats(outputs):
    with pytest.raises(AuditError, match=r"one type of output where whole numbers"):
        read_outputs(outputs, 2, name="f")


def test_whole_numbers_that_floats_hold_are_read_beside_floats():
    assert read_outputs([2**53, 0.5], 2, name="f").tolist() == [2.0**53, 0.5]
    assert read_outputs([[2, 0], [0.5, 1.0]], 2, name="f").dtype == float


def test_inputs_of_a_local_audit_are_read_alike():
    def client(value, rng):
        return 2**53 + 1 if value else 0.5

    with pytest.raises(AuditError, match="one type of output"):
        audit_local(CallableSubject(client, [0, 1]), Claim.pure(1), trials=500, seed=1)


def draw(subject, size=3, value=0):
    return subject.sample(value, size, rng=np.random.default_rng(1))


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


def test_plain_values_need_no_table_of_all_of_them():
    reader = ValueReader(10**9)
    told = np.array([3.0, math.inf, -math.inf, 1e300, -2.0])
    assert reader.hits(told, np.full(5, 3), rng=None).tolist() == [True] + [False] * 4
    flags = reader.cells(np.array([True, False]), np.array([1, 1]), np.array([0, 0]))
    assert flags.tolist() == [2, 1]


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
