"""Outputs are what a run returned: their values, their types, and nothing later."""

import numpy as np
import pytest

from undertow.audit.claim import Claim
from undertow.audit.local import audit_local
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.subject import CallableSubject
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
