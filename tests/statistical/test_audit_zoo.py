"""The default audit on a zoo of a hundred mechanisms, seeded."""

import pytest

from support.zoo import ZOO, reset
from undertow.audit import AuditError, CallableSubject, Claim, audit_pair

TRIALS = 100_000

# What the audit overlooks so far, or does not take as an output.
UNSEEN = {
    "textbook_noise_at_0_and_1",
    "textbook_noise_at_10_and_11",
    "textbook_noise_at_100_and_101",
    "two_decimals_of_large_noise",
    "textbook_noise_on_a_vector",
    "twenty_answers_at_a_tenth",
    "noise_for_three_of_ten_partitions",
    "l2_for_l1",
    "gaussian_per_coordinate",
    "epsilon_over_the_root_of_ten",
    "sparse_vector_at_full_epsilon_twice",
    "sparse_vector_without_threshold_noise",
    "sparse_vector_with_its_noisy_answer",
    "sparse_vector_with_its_exact_answer",
    "pseudonym_beside_the_report",
    "keys_from_the_data",
    "threshold_with_a_pure_claim",
    "sorted_by_exact_counts",
    "keys_in_order_of_arrival",
    "division_by_an_empty_group",
    "none_for_an_empty_group",
    "nan_for_an_empty_group",
    "one_number_for_each_group",
    "whole_zero_for_nobody",
    "debugging_output",
    "time_that_tells",
    "type_of_the_array",
    "leak_in_ten_deltas",
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
