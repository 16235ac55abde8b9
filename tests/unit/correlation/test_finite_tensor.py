"""The exact engine for finite tables, its kernels and its conventions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from undertow.correlation.finite import exact as extended
from undertow.correlation.finite import joint as kernel
from undertow.correlation.finite.exact import (
    exact_leakage,
    is_bayesian_metric_private,
    leakage_by_adversary,
    pair_leakage,
)
from undertow.correlation.finite.joint import JointTable, answer_table, local_kernel
from undertow.correlation.finite.laplace import laplace_leakage
from undertow.correlation.query import AnyQuery, CountQuery, LinearQuery
from undertow.correlation.result import Adversary
from undertow.errors import AssumptionError, MismatchError, NotApplicable
from undertow.mechanisms import (
    DiscreteLaplaceMechanism,
    GaussianMechanism,
    LaplaceMechanism,
    RandomizedResponse,
)
from undertow.mechanisms.local import (
    GeneralizedResponse,
    OptimizedUnary,
    SubsetSelection,
)

FLATMATES = JointTable([[0.45, 0.05], [0.05, 0.45]])
# Closed form of the two flatmates at epsilon = 1.
AT_ONE = math.log((0.9 * math.e**2 + 0.1 * math.e) / (0.9 + 0.1 * math.e))


def test_randomised_response_on_flatmates_has_its_closed_form():
    found = exact_leakage(FLATMATES, RandomizedResponse(2, 1))
    assert found.value == pytest.approx(AT_ONE, abs=1e-12)
    assert found.is_exact
    assert found.witness.details["output"] == (0, 0)


def test_the_witness_attains_the_value():
    rng = np.random.default_rng(5)
    joint = JointTable(rng.dirichlet(np.ones(18)).reshape(2, 3, 3))
    table = rng.dirichlet(np.ones(4), size=(2, 3, 3))
    found = exact_leakage(joint, table)
    details = found.witness.details
    known = {int(j): state for j, state in details["values"].items()}
    logs = []
    for secret in details["pair"]:
        given = joint.given({**known, details["target"]: secret})
        rows = [slice(None)] * 3
        for j, state in given.known.items():
            rows[j] = state
        law = table[(*rows, details["output"])]
        logs.append(math.log((given.pmf * law).sum()))
    assert logs[0] - logs[1] == pytest.approx(found.value, abs=1e-12)


def test_one_record_leaks_the_dp_loss():
    joint = JointTable([0.2, 0.3, 0.5])
    table = np.array([[0.7, 0.3], [0.4, 0.6], [0.5, 0.5]])
    assert exact_leakage(joint, table).value == pytest.approx(math.log(2), abs=1e-12)


def test_a_constant_mechanism_leaks_nothing():
    table = np.broadcast_to([0.25, 0.75], (2, 2, 2))
    assert exact_leakage(FLATMATES, table).value == pytest.approx(0.0, abs=1e-13)


def test_an_output_possible_under_one_secret_only_leaks_without_limit():
    table = np.zeros((2, 2, 2))
    table[0], table[1] = [1.0, 0.0], [0.5, 0.5]
    found = exact_leakage(FLATMATES, table)
    assert found.value == math.inf
    assert found.witness.details["pair"] == (1, 0)


def test_an_output_impossible_under_both_secrets_leaks_nothing():
    table = np.zeros((2, 2, 3))
    table[..., 0] = table[..., 1] = 0.5
    assert exact_leakage(FLATMATES, table).value == 0.0


def test_secrets_of_probability_zero_are_skipped():
    joint = JointTable([[0.5, 0.5], [0.0, 0.0]])
    table = np.zeros((2, 2, 2))
    table[0], table[1] = [0.5, 0.5], [0.0, 1.0]
    assert exact_leakage(joint, table).value == 0.0


def test_classes_of_attackers_are_told_apart():
    response = RandomizedResponse(2, 1)
    informed = exact_leakage(FLATMATES, response, adversaries="informed")
    weak = exact_leakage(FLATMATES, response, adversaries="none-known")
    listed = exact_leakage(FLATMATES, response, adversaries=[Adversary(1, {0}, {0: 1})])
    assert informed.value == pytest.approx(1.0, abs=1e-12)
    assert weak.value == pytest.approx(AT_ONE, abs=1e-12)
    assert listed.value == pytest.approx(1.0, abs=1e-12)
    assert listed.witness.details["values"] == {"0": 1}
    assert informed.attackers == "anyone who knows all other records"
    with pytest.raises(ValueError, match="adversaries must be 'all'"):
        exact_leakage(FLATMATES, response, adversaries="everyone")
    with pytest.raises(ValueError, match="at least one"):
        exact_leakage(FLATMATES, response, adversaries=[])
    with pytest.raises(ValueError, match="record must be in"):
        exact_leakage(FLATMATES, response, adversaries=[Adversary(2)])


def test_the_table_of_attackers_has_all_of_them_and_the_total_as_maximum():
    rng = np.random.default_rng(3)
    joint = JointTable(rng.dirichlet(np.ones(16)).reshape(2, 2, 2, 2))
    response = RandomizedResponse(2, 1)
    table = leakage_by_adversary(joint, response)
    assert len(table) == 4 * 2**3
    total = exact_leakage(joint, response)
    assert max(found.value for found in table.values()) == total.value
    one = Adversary(2, {0, 3})
    assert table[one].value == exact_leakage(joint, response, adversaries=[one]).value


def test_chunks_over_outputs_do_not_change_the_result(monkeypatch):
    rng = np.random.default_rng(4)
    joint = JointTable(rng.dirichlet(np.ones(8)).reshape(2, 2, 2))
    response = RandomizedResponse(2, 1)
    whole = exact_leakage(joint, response)
    monkeypatch.setattr(extended, "_CHUNK", 60)
    parts = exact_leakage(joint, response)
    assert parts.value == pytest.approx(whole.value, abs=1e-13)
    assert parts.witness.details["output"] == whole.witness.details["output"]


def test_local_kernels_multiply_the_answers_of_the_records():
    joint = JointTable.independent([[0.5, 0.5], [0.2, 0.3, 0.5]])
    response = RandomizedResponse(3, 2)
    table = local_kernel(joint, response)
    assert table.shape == (2, 3, 9)
    for a, b in itertools.product(range(2), range(3)):
        expected = np.outer(response.pmf(a), response.pmf(b)).ravel()
        assert table[a, b] == pytest.approx(expected, rel=1e-14)
    with pytest.raises(MismatchError, match="candidate for each of 3 states"):
        local_kernel(joint, RandomizedResponse(2, 1))


def test_kernels_are_checked():
    with pytest.raises(MismatchError, match="shape"):
        exact_leakage(FLATMATES, np.ones((2, 1)))
    with pytest.raises(ValueError, match="non-negative"):
        exact_leakage(FLATMATES, np.full((2, 2, 2), -0.5))
    with pytest.raises(ValueError, match="sum to one"):
        exact_leakage(FLATMATES, np.full((2, 2, 2), 0.4))
    with pytest.raises(TypeError, match="query must say"):
        exact_leakage(FLATMATES, LaplaceMechanism(1))
    with pytest.raises(MismatchError, match="one coordinate"):
        exact_leakage(FLATMATES, LaplaceMechanism(1, dimension=2), query=sum)
    densities = exact_leakage(FLATMATES, np.full((2, 2, 2), 0.4), densities=True)
    assert densities.value == 0.0


def test_answers_of_discrete_noise_must_lie_on_its_lattice():
    query = LinearQuery([1.0, 0.5])
    with pytest.raises(AssumptionError, match="multiples of the noise step 1"):
        exact_leakage(FLATMATES, DiscreteLaplaceMechanism(1), query=query)
    fine = DiscreteLaplaceMechanism(1, exponent=-1)
    lattice = exact_leakage(FLATMATES, fine, query=query)
    real = exact_leakage(FLATMATES, LaplaceMechanism(1), query=query)
    assert lattice.value == real.value


def test_queries_without_known_answers_are_refused():
    with pytest.raises(NotApplicable, match="got a query of kind 'any'"):
        answer_table(FLATMATES, AnyQuery())
    with pytest.raises(ValueError, match="finite"):
        answer_table(FLATMATES, lambda database: math.inf)


def test_answers_are_counts_or_clipped_weighted_sums():
    joint = JointTable(np.full((2, 2), 0.25), values=[[0, 100], [50, 70]])
    assert answer_table(joint, CountQuery([0])).tolist() == [[2, 1], [1, 0]]
    clipped = answer_table(joint, LinearQuery([1, 2], clip=(60, 80)))
    assert clipped.tolist() == [[180, 200], [200, 220]]


def test_sizes_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr(extended, "_LARGEST", 8)
    with pytest.raises(NotApplicable, match="at most 8 entries, got 9"):
        exact_leakage(FLATMATES, RandomizedResponse(2, 1))
    monkeypatch.setattr(kernel, "_LARGEST", 15)
    with pytest.raises(NotApplicable, match="at most 15 entries, got 16"):
        local_kernel(FLATMATES, RandomizedResponse(2, 1))


def test_the_pair_matrix_has_the_total_as_maximum_and_obeys_the_triangle():
    rng = np.random.default_rng(6)
    joint = JointTable(rng.dirichlet(np.ones(27)).reshape(3, 3, 3))
    response = RandomizedResponse(3, 1)
    matrix = pair_leakage(joint, response)
    assert matrix.max() == pytest.approx(exact_leakage(joint, response).value, 1e-13)
    assert np.diag(matrix).tolist() == [0.0] * 3
    through = (matrix[:, :, None] + matrix[None, :, :]).min(axis=1)
    assert (matrix <= through + 1e-12).all()
    assert not np.allclose(matrix, matrix.T)
    one = pair_leakage(joint, response, target=1)
    assert (one <= matrix).all()
    assert (one < matrix).any()


def test_a_pair_matrix_of_unlike_records_needs_a_target():
    joint = JointTable.independent([[0.5, 0.5], [0.2, 0.3, 0.5]])
    with pytest.raises(MismatchError, match="name a target"):
        pair_leakage(joint, RandomizedResponse(3, 1))
    assert pair_leakage(joint, RandomizedResponse(3, 1), target=1).shape == (3, 3)


def test_pairs_never_possible_together_have_no_leakage():
    joint = JointTable([[0.5, 0.5, 0.0], [0.0] * 3, [0.0] * 3])
    assert pair_leakage(joint, RandomizedResponse(3, 1), target=0).max() == 0.0


def test_laplace_noise_is_bayesian_metric_private_for_the_right_metric_only():
    joint = JointTable.independent([[0.2, 0.3, 0.5]] * 2)
    noise = LaplaceMechanism(2)
    verdict = is_bayesian_metric_private(
        joint, noise, lambda x, y: abs(x - y) / 2, query=sum
    )
    assert verdict.holds
    assert verdict.value == pytest.approx(1.0, abs=1e-12)
    flat = is_bayesian_metric_private(joint, noise, 0.5 - np.eye(3) / 2, query=sum)
    assert not flat.holds
    assert flat.value == pytest.approx(2.0, abs=1e-12)
    assert flat.witness.details["pair"] in {(0, 2), (2, 0)}
    assert "at distance 0.5 leak 1" in flat.witness.summary


def test_a_distance_of_zero_needs_no_leakage_at_all():
    verdict = is_bayesian_metric_private(
        FLATMATES, RandomizedResponse(2, 1), np.zeros((2, 2))
    )
    assert verdict.value == math.inf
    constant = np.broadcast_to([0.5, 0.5], (2, 2, 2))
    assert is_bayesian_metric_private(FLATMATES, constant, np.zeros((2, 2))).holds


def test_an_infinite_distance_allows_everything():
    reveal = np.eye(4).reshape(2, 2, 4)
    far = np.where(np.eye(2) == 1, 0.0, np.inf)
    assert is_bayesian_metric_private(FLATMATES, reveal, far).holds


@pytest.mark.parametrize("metric", [np.zeros((3, 3)), -np.ones((2, 2))])
def test_metrics_are_checked(metric):
    with pytest.raises(ValueError, match="metric must"):
        is_bayesian_metric_private(FLATMATES, RandomizedResponse(2, 1), metric)


@pytest.mark.parametrize(
    "protocol", [GeneralizedResponse(3, 1), SubsetSelection(3, 1, subset=1)]
)
def test_a_local_protocol_that_asks_every_record_leaks_what_its_law_does(protocol):
    pmf = np.random.default_rng(4).dirichlet(np.ones(9)).reshape(3, 3)
    joint = JointTable(pmf)
    labels = exact_leakage(joint, RandomizedResponse(3, 1)).value
    numbers = exact_leakage(joint, protocol).value
    assert numbers == pytest.approx(labels, abs=1e-9)
    assert numbers >= labels - 1e-15


def test_bits_of_every_record_leak_as_the_table_of_their_law():
    joint, protocol = JointTable([[0.45, 0.05], [0.05, 0.45]]), OptimizedUnary(2, 1)
    law = protocol.table(range(2))
    kernel = (law[:, None, :, None] * law[None, :, None, :]).reshape(2, 2, 16)
    found = exact_leakage(joint, protocol)
    assert found.value == pytest.approx(exact_leakage(joint, kernel).value, abs=1e-9)


def test_a_protocol_with_too_few_categories_or_no_list_is_refused():
    joint = JointTable(np.full((3, 3), 1 / 9))
    with pytest.raises(MismatchError, match="candidate for each of 3 states, got 2"):
        local_kernel(joint, GeneralizedResponse(2, 1))
    with pytest.raises(MismatchError, match="must list its inputs"):
        local_kernel(joint, LaplaceMechanism(1))
    with pytest.raises(NotApplicable, match="program over all mechanisms"):
        exact_leakage(joint, GaussianMechanism(1))


POINT = JointTable([[1.0, 0.0], [0.0, 0.0]])


def test_a_kernel_that_hardly_differs_leaks_something():
    found = exact_leakage(FLATMATES, LaplaceMechanism("1e20"), query=CountQuery())
    assert 1.8e-20 <= found.value <= 1e-13
    constant = np.full((2, 2, 3), 1 / 3)
    assert exact_leakage(FLATMATES, constant).value == 0.0


def test_a_table_that_hides_nothing_has_no_witness():
    found = exact_leakage(POINT, np.full((2, 2, 2), 0.5))
    assert found.value == 0.0
    assert found.witness is None
    count = laplace_leakage(POINT, 1.0, query=CountQuery())
    assert (count.value, count.witness) == (0.0, None)
