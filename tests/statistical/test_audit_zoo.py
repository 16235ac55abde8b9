"""The default audit on a zoo of a hundred mechanisms, seeded."""

import pytest

from support.zoo import ZOO, reset
from undertow.audit import AuditError, CallableSubject, Claim, audit_pair

TRIALS = 100_000

# What the audit overlooks so far, or does not take as an output.
UNSEEN = {
    "textbook_noise_at_10_and_11",
    "textbook_noise_at_100_and_101",
    "twenty_answers_at_a_tenth",
    "time_that_tells",
}


def audited(animal):
    """Return the result of the default audit, None if it was refused."""
    reset(5)
    subject = CallableSubject(animal.function, animal.inputs, name=animal.name)
    claim = Claim.approx(animal.epsilon, animal.delta)
    try:
        return audit_pair(subject, claim, trials=TRIALS, seed=5)
    except AuditError:
        return None


def test_the_zoo_has_a_hundred_animals_of_different_names():
    assert len({animal.name for animal in ZOO}) == len(ZOO) == 100
    assert sum(animal.flawed for animal in ZOO) == 89
    assert {animal.name for animal in ZOO if animal.flawed} >= UNSEEN
    assert all(animal.reason.endswith(".") for animal in ZOO)


@pytest.mark.slow
@pytest.mark.parametrize(
    "animal", [a for a in ZOO if not a.flawed], ids=lambda animal: animal.name
)
def test_no_correct_mechanism_of_the_zoo_is_accused(animal):
    found = audited(animal)
    assert found is None or found.verdict == "not refuted"


@pytest.mark.slow
@pytest.mark.parametrize(
    "animal",
    [a for a in ZOO if a.flawed and a.name not in UNSEEN],
    ids=lambda animal: animal.name,
)
def test_flawed_mechanism_of_the_zoo_stays_caught_by_no_more_than_it_loses(animal):
    found = audited(animal)
    assert found is not None
    assert found.verdict == "violated"
    assert animal.loss is None or found.certified < animal.loss
