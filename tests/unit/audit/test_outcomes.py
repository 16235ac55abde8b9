"""Whatever a run ends in is an outcome: it is compared, and its numbers are read."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import fractions
import math
import pickle
from collections import OrderedDict, namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.audit import AuditError, CallableSubject, Claim, audit_local
from undertow.audit._outcome import (
    Raised,
    Row,
    kind_of,
    numbers_in,
    outcome,
    read_outcomes,
)
from undertow.audit.event import output_labels
from undertow.audit.pair._draw import joined
from undertow.audit.pair._table import Fields, Numbers, kind_views
from undertow.audit.pair.fixed import audit_pair

pd = pytest.importorskip("pandas")


class Colour(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Point:
    x: float
    y: object = None


Named = namedtuple("Named", "left right")


class Slotted:
    __slots__ = ("held",)

    def __init__(self, held):
        self.held = held


class Sour:
    """Cannot be compared, hashed, measured or shown."""

    def _fail(self, *_):
        raise ZeroDivisionError

    __eq__ = __hash__ = __len__ = __repr__ = __bool__ = _fail


def nested():
    inside = []
    inside.append(inside)
    return inside


# Each made anew, so that equal content and not identity is compared.
EVERY = {
    "none": lambda: None,
    "nan": lambda: math.nan,
    "inf": lambda: math.inf,
    "bool": lambda: True,
    "big": lambda: 2**80,
    "complex": lambda: complex(1, math.nan),
    "text": lambda: "count=12.5",
    "bytes": lambda: b"12",
    "bytearray": lambda: bytearray(b"12"),
    "decimal": lambda: decimal.Decimal("1.50"),
    "signalling nan": lambda: decimal.Decimal("sNaN"),
    "fraction": lambda: fractions.Fraction(1, 3),
    "numpy scalar": lambda: np.float32(0.5),
    "numpy text": lambda: np.str_("a"),
    "numpy time": lambda: np.datetime64("2024-01-02"),
    "numpy no time": lambda: np.datetime64("NaT"),
    "masked": lambda: np.ma.masked,
    "NA": lambda: pd.NA,
    "NaT": lambda: pd.NaT,
    "timestamp": lambda: pd.Timestamp("2024-01-02"),
    "date": lambda: datetime.date(2024, 1, 2),
    "delta": lambda: datetime.timedelta(seconds=3),
    "enum": lambda: Colour.RED,
    "list": lambda: ["a", [1, None]],
    "tuple": lambda: ("a", {"b": [1]}),
    "named": lambda: Named(1, [2]),
    "dict": lambda: {"a": {"b": [1, math.nan]}, 2: None},
    "ordered": lambda: OrderedDict(a=1),
    "set": lambda: {1, "a"},
    "vector": lambda: np.array([1.0, math.nan]),
    "table of numbers": lambda: np.arange(6.0).reshape(2, 3),
    "objects": lambda: np.array([None, "a"], dtype=object),
    "long": lambda: np.arange(5000),
    "empty": lambda: np.zeros((0, 3)),
    "zero": lambda: np.array(3.0),
    "record": lambda: np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])[0],
    "series": lambda: pd.Series([1.0, None], index=["a", "b"], name="n"),
    "frame": lambda: pd.DataFrame({"a": [1, 2], "b": ["x", None]}),
    "category": lambda: pd.DataFrame({"a": pd.Categorical(["x", "y"])}),
    "no rows": lambda: pd.DataFrame({"a": []}),
    "dataclass": lambda: Point(1.5, [2]),
    "slots": lambda: Slotted([1]),
    "exception": lambda: ValueError("7"),
    "raised": lambda: Raised(KeyError("7")),
    "type": lambda: int,
    "object": lambda: object(),
    "sour": lambda: Sour(),
    "itself": nested,
}


@pytest.mark.parametrize("name", EVERY)
def test_every_outcome_equals_itself_made_again_and_can_be_read(name):
    one, two = (outcome(EVERY[name]()) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)
    assert outcome(one) is one or outcome(one) == one
    assert repr(one) == repr(two)
    assert kind_of(one, exact=True) == kind_of(two, exact=True)
    assert hash(kind_of(one, exact=True)) is not None
    told = list(numbers_in(one))
    assert told == list(numbers_in(two))
    assert all(isinstance(value, float) and value == value for _, value in told)


def test_outcomes_of_different_kinds_differ():
    kept = {outcome(make()) for make in EVERY.values()}
    # Both values of pandas and numpy that stand for no time have None's fields.
    assert len(kept) >= len(EVERY) - 3


@pytest.mark.parametrize("name", EVERY)
def test_what_is_read_of_an_output_does_not_depend_on_those_beside_it(name):
    make = EVERY[name]
    alone = read_outcomes([make()], 1, name="f")
    for others in ([1.5], [[1, 2]], ["a"], [None, {"a": 1}], [True]):
        beside = read_outcomes([make(), *others], 1 + len(others), name="f")
        assert output_labels(beside)[0] == output_labels(alone)[0]
        for table in (Fields(alone, beside), Numbers((), np.dtype(float))):
            rows = [table.rows(part)[0] for part in (alone, beside)]
            assert np.array_equal(*rows, equal_nan=True)
        for view in kind_views(beside, alone, exact=True):
            assert view.function(beside)[0] == view.function(alone)[0]


def plain_values():
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
    return st.recursive(
        leaves,
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            | st.tuples(inner, inner)
        ),
        max_leaves=8,
    )


@given(st.lists(plain_values(), min_size=1, max_size=6), st.integers(0, 6))
def test_parts_of_a_batch_are_read_as_the_whole(items, cut):
    whole = read_outcomes(items, len(items), name="f")
    cut = min(cut, len(items) - 1)
    parts = [part for part in (items[:cut], items[cut:]) if part]
    read = [read_outcomes(part, len(part), name="f") for part in parts]
    assert output_labels(joined(read, name="f")) == output_labels(whole)
    labels = [label for part in read for label in output_labels(part)]
    assert labels == output_labels(whole)
    assert len({hash(label) for label in labels}) <= len(items)
    (views,) = [kind_views(whole, np.array(["other"], dtype=object), exact=True)]
    for view in views:
        told = [label for part in read for label in view.function(part)]
        assert told == view.function(whole)


@pytest.mark.parametrize("name", EVERY)
def test_outcomes_travel_to_other_processes(name):
    if name in ("sour", "object"):
        return  # a pickle of these is theirs
    one = outcome(EVERY[name]())
    copy = pickle.loads(pickle.dumps(one))
    assert copy == one
    assert hash(copy) == hash(one)
    row = pickle.loads(pickle.dumps(Row(np.array([1, 2], dtype=np.uint8))))
    assert (row, row.kind) == ((1, 2), "uint8")


def test_the_message_of_an_exception_is_compared_and_not_shown():
    one, other = Raised(ValueError("Alice is 7")), Raised(ValueError("Bob is 7"))
    assert one != other
    assert "Alice" not in repr(one)
    assert repr(one).startswith("ValueError with message ")
    assert one == Raised(ValueError("Alice is 7")) != Raised(KeyError("Alice is 7"))
    assert kind_of(one, exact=True) == kind_of(other, exact=True)


def test_a_mixed_type_is_told_by_its_kind_and_compared_by_its_value():
    read = read_outcomes([1, 1.0, True], 3, name="f")
    assert output_labels(read) == [1, 1, 1]
    assert [kind_of(item, exact=True) for item in read] == ["int", "float", "bool"]
    assert {kind_of(item, exact=False) for item in read[:2]} == {"number"}


# Audits ------------------------------------------------------------------------------

LEAKS = {
    "exception": lambda x, rng: 1 / (1 - x) and int(rng.integers(2)),
    "message": lambda x, rng: {}[("someone", x)] if rng.random() < 0.5 else 0,
    "exit": lambda x, rng: exit(3) if x else 0,
    "none": lambda x, rng: None if x and rng.random() < 0.2 else rng.normal(),
    "nan": lambda x, rng: math.nan if x and rng.random() < 0.2 else rng.normal(),
    "inf": lambda x, rng: math.inf if x and rng.random() < 0.2 else rng.normal(),
    "type": lambda x, rng: float(rng.integers(5)) if x else int(rng.integers(5)),
    "array type": lambda x, rng: rng.integers(5, size=2).astype([int, float][x]),
    "length": lambda x, rng: rng.normal(size=3 + x).tolist(),
    "shape": lambda x, rng: rng.normal(size=(2, 2 + x)),
    "key": lambda x, rng: {"a": rng.normal(), **({"b": 0} if x else {})},
    "order": lambda x, rng: dict(sorted({"a": 0.5, "b": 1}.items(), reverse=bool(x))),
    "na": lambda x, rng: pd.NA if x and rng.random() < 0.2 else int(rng.integers(9)),
    "not a time": lambda x, rng: pd.NaT if x else pd.Timestamp("2024-01-02"),
    "decimal": lambda x, rng: decimal.Decimal(x) + rng.integers(2).item(),
    "frame": lambda x, rng: pd.DataFrame({"n": rng.normal(size=3 + x)}),
    "column": lambda x, rng: pd.DataFrame({"nm"[x]: rng.normal(size=2)}),
    "dataclass": lambda x, rng: Point(rng.laplace() / 4 + x),
    "text": lambda x, rng: f"count={rng.laplace() / 4 + x:.9f}",
    "digits of text": lambda x, rng: f"{rng.random():.{3 + x}f}",
    "set": lambda x, rng: {"a", "b"} if rng.random() < 0.1 + 0.7 * x else {"a"},
    "first true": lambda x, rng: [None] * int(rng.integers(2) + 2 * x) + [True],
    "mixed": lambda x, rng: [None, True, rng.normal() + 4 * x],
}


@pytest.mark.parametrize("name", LEAKS)
def test_a_leak_shows_in_whatever_a_run_ends_in(name):
    subject = CallableSubject(LEAKS[name], [0, 1], name="f")
    found = audit_pair(subject, Claim.pure(1), trials=1200, seed=1)
    assert found.verdict == "violated"
    assert "someone" not in repr(found.to_dict())


@pytest.mark.parametrize("name", [n for n in EVERY if n not in ("none", "nan")])
def test_no_outcome_beside_numbers_ends_or_refutes_an_audit(name):
    make = EVERY[name]

    def noisy(x, rng):
        if rng.random() < 0.1:
            told = make()
            if isinstance(told, Raised):
                raise KeyError("7")
            return told
        return round((x + rng.laplace(scale=2)) * 2**20) / 2**20

    found = audit_pair(CallableSubject(noisy, [0, 1]), Claim.pure(1), trials=800)
    assert found.verdict == "not refuted"


@pytest.mark.parametrize("of", ["numbers", "vectors", "words"])
def test_an_exception_in_a_thousand_does_not_lose_the_runs(of):
    def noisy(x, rng):
        if rng.random() < 1e-3:
            raise ZeroDivisionError
        if of == "words":
            return "yes" if rng.random() < (0.1, 0.9)[x] else "no"
        noise = rng.laplace(scale=0.3, size=() if of == "numbers" else 3)
        return np.round((x + noise) * 2**20) / 2**20

    found = audit_pair(CallableSubject(noisy, [0, 1]), Claim.pure(1), trials=20_000)
    assert found.violated
    assert found.certified > 1.9


def test_the_words_of_an_event_tell_of_outputs_that_are_none():
    def noisy(x, rng):
        return None if rng.random() < 0.05 else rng.normal() + 9 * x

    found = audit_pair(
        CallableSubject(noisy, [0, 1]), Claim.pure(1), trials=2000, score="values"
    )
    assert found.violated
    words = found.witness.details["event"]
    rest = words.split(" or ")
    assert len(rest) == 1 or "no output" in rest


def test_a_score_of_the_user_is_of_the_runs_that_returned():
    def noisy(x, rng):
        if rng.random() < 0.2:
            raise ZeroDivisionError
        return {"a": [rng.normal() + 4 * x]}

    found = audit_pair(
        CallableSubject(noisy, [0, 1]),
        Claim.pure(1),
        trials=2000,
        score=lambda told: np.array([item["a"][0] for item in told]),
    )
    assert found.violated


def test_a_local_audit_still_takes_values_alone():
    for function, said in [
        (lambda x, rng: 1 / 0, "must not raise, got ZeroDivisionError"),
        (lambda x, rng: None, "a value every time, got None"),
        (lambda x, rng: {"a": 1}, "hashable outputs or vectors of numbers, got dict"),
    ]:
        subject = CallableSubject(function, [0, 1], name="f")
        with pytest.raises(AuditError, match=said):
            audit_local(subject, Claim.pure(1), trials=500, seed=1)


def test_an_exception_of_a_whole_array_is_of_no_run():
    subject = CallableSubject(lambda x, rng: 1 / 0, [0, 1], vectorised=True, name="f")
    with pytest.raises(AuditError, match="f must not raise, got ZeroDivisionError"):
        audit_pair(subject, Claim.pure(1), trials=800)
