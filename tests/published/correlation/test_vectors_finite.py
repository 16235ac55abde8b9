"""Published and derived numbers on finite tables, by the id of their vector."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.correlation.finite.exact import exact_leakage, leakage_by_adversary
from undertow.correlation.finite.joint import JointTable, local_kernel, two_point_law
from undertow.correlation.finite.laplace import LaplaceJointTheorem, laplace_leakage
from undertow.correlation.finite.program import ProgramTheorem, worst_case_leakage
from undertow.correlation.group import general_leakage
from undertow.correlation.query import AnyQuery, CountQuery
from undertow.correlation.result import Adversary
from undertow.mechanisms import (
    DiscreteLaplaceMechanism,
    LaplaceMechanism,
    RandomizedResponse,
)

FLATMATES = JointTable([[0.45, 0.05], [0.05, 0.45]])
ACTIVITY = np.array([[0.882, 0.118], [0.305, 0.695]])


def xor() -> JointTable:
    pmf = np.zeros((2, 2, 2))
    for a in (0, 1):
        for b in (0, 1):
            pmf[a, b, a ^ b] = 0.25
    return JointTable(pmf)


def tight_family(r: float) -> JointTable:
    """Table 6.1 of the thesis; axis 0 is X1."""
    return JointTable(
        [[1 / r**2, 1 / r**3], [(r - 1) / r**2, (r**3 - r**2 - 1) / r**3]]
    )


def lange_family(r: int) -> JointTable:
    """Table 2 of the master's thesis; axis 0 is X1."""
    a, c = (r - 1) / r, 1 / r**2
    return JointTable([[c, 0.0], [1 - a - c, a]])


def chain(length: int) -> JointTable:
    table = np.array([0.305, 0.118]) / 0.423
    for _ in range(length - 1):
        table = table[..., None] * ACTIVITY
    return JointTable(table)


def test_T1_the_attack_of_example_2_25_beats_the_bound_for_independent_records():
    # Guess 1 if the noisy count is at least 1; the law of the count given X1.
    noise = LaplaceMechanism(1)
    reached = [
        sum(
            chance * (1 - noise.cdf(1.0, given=secret + other))
            for other, chance in enumerate(FLATMATES.given({0: secret}).pmf.tolist())
        )
        for secret in (0, 1)
    ]
    assert reached[1] - reached[0] == pytest.approx(0.5689085, abs=1e-6)
    assert math.tanh(0.5) == pytest.approx(0.4621172, abs=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "expected"), [("0.5", 0.8970033), ("1", 1.7761366), ("2", 3.4155361)]
)
def test_T2_two_flatmates_under_lattice_laplace(epsilon, expected):
    noise = DiscreteLaplaceMechanism(1 / float(epsilon))
    found = exact_leakage(FLATMATES, noise, query=CountQuery())
    assert found.value == pytest.approx(expected, abs=1e-7)
    real = laplace_leakage(FLATMATES, 1 / float(epsilon), query=CountQuery())
    assert real.value == pytest.approx(found.value, abs=1e-12)


def test_T3_the_tight_family_has_its_margins_and_conditionals():
    joint = tight_family(3)
    assert joint.pmf.sum() == pytest.approx(1.0, abs=1e-15)
    assert joint.margin([0]).pmf == pytest.approx([4 / 27, 23 / 27])
    assert joint.margin([1]).pmf == pytest.approx([1 / 3, 2 / 3])
    assert joint.given({0: 0}).pmf[0] == pytest.approx(0.75, abs=1e-15)
    assert joint.given({0: 1}).pmf[0] == pytest.approx(6 / 23, abs=1e-15)


@pytest.mark.parametrize(
    ("r", "formula", "exact"),
    [
        (2, 1.240245, 1.262740),
        (3, 1.457635, 1.462421),
        (10, 1.795535, 1.795610),
        (100, 1.976852, 1.976852),
        (1000, 1.997653, 1.997653),
    ],
)
def test_T4_the_tight_family_approaches_two_epsilon(r, formula, exact):
    joint, response = tight_family(r), RandomizedResponse(2, 1)
    assert exact_leakage(joint, response).value == pytest.approx(exact, abs=1e-6)
    # The formula is the log ratio of the output (0, 0) for K = {}, record 0.
    table = local_kernel(joint, response)[..., 0]
    laws = [(joint.given({0: x}).pmf * table[x]).sum() for x in (0, 1)]
    assert math.log(laws[0] / laws[1]) == pytest.approx(formula, abs=1e-6)


def test_T5_pairwise_independent_bits_leak_two_epsilon():
    found = exact_leakage(xor(), RandomizedResponse(2, 1))
    assert found.value == pytest.approx(2.0, abs=1e-9)
    assert len(found.witness.details["known"]) == 1
    assert worst_case_leakage(xor(), 1.0).value == pytest.approx(2.0, abs=1e-9)
    table = leakage_by_adversary(xor(), RandomizedResponse(2, 1))
    # Who knows both others is certain of the secret: nothing left to learn.
    assert table[Adversary(2, {0, 1})].value == 0.0
    assert 1.0 < table[Adversary(2)].value < 2.0


def test_T6_a_law_without_full_support_hides_a_mechanism_that_is_not_dp():
    joint = two_point_law((0, 0), (1, 1))
    kernel = np.zeros((2, 2, 2))
    for a in (0, 1):
        for b in (0, 1):
            kernel[a, b, a ^ b] = 1.0
    assert exact_leakage(joint, kernel).value == 0.0
    everywhere = JointTable(np.full((2, 2), 0.25))
    assert exact_leakage(everywhere, kernel).value == math.inf


def test_CE1_bdp_implies_dp_needs_full_support_and_the_converse_mutual_independence():
    # "BDP implies DP" fails without full support (T6), and "independent for all
    # pairs" does not make DP and BDP equivalent (T5).
    joint = two_point_law((0, 0), (1, 1))
    reveal_xor = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    assert exact_leakage(joint, reveal_xor).value == 0.0
    for a in range(3):
        for b in range(a):
            pair = xor().margin([a, b])
            assert pair.independent_groups() == ((0,), (1,))
    assert exact_leakage(xor(), RandomizedResponse(2, 1)).value > 1.99
    # With full support, and with mutual independence, both hold.
    full = JointTable([[0.4, 0.2], [0.1, 0.3]])
    response = RandomizedResponse(2, 1)
    informed = exact_leakage(full, response, adversaries="informed").value
    assert informed == pytest.approx(1.0, abs=1e-9)
    mutual = JointTable.independent([[0.5, 0.5]] * 3)
    assert exact_leakage(mutual, response).value == pytest.approx(1.0, abs=1e-9)


def test_CE3_the_event_of_example_6_4_is_both_zero_not_both_one():
    kernel = local_kernel(tight_family(3), RandomizedResponse(2, 1))
    zero, one = kernel[..., 0], kernel[..., 3]
    factors = np.exp([[0, -1], [-1, -2]])
    assert zero == pytest.approx(zero[0, 0] * factors, rel=1e-12)
    assert not np.allclose(one, one[0, 0] * factors)


@pytest.mark.parametrize(
    ("length", "values"),
    [
        (2, (0.15821207, 0.79839671, 1.60120356, 3.13200469)),
        (5, (0.28505866, 1.46018584, 2.87765377, 5.01987548)),
    ],
)
def test_T27_the_program_has_the_exact_values_of_two_state_chains(length, values):
    # The values of T23 and T24.
    for epsilon, expected in zip((0.1, 0.5, 1.0, 2.0), values, strict=True):
        found = worst_case_leakage(chain(length), epsilon)
        assert found.value == pytest.approx(expected, abs=2e-8)
        assert found.tight


def test_T28_two_runs_leak_more_than_twice_one_run():
    joint = JointTable([[0.1 * 0.9, 0.1 * 0.1], [0.9 * 0.5, 0.9 * 0.5]])
    once = local_kernel(joint, RandomizedResponse(2, "0.5"))
    twice = np.einsum("abs,abt->abst", once, once).reshape(2, 2, 16)
    single, double = exact_leakage(joint, once), exact_leakage(joint, twice)
    assert single.value == pytest.approx(0.7180751, abs=1e-7)
    assert double.value == pytest.approx(1.4615494, abs=1e-7)
    assert double.value > 2 * single.value
    count = laplace_leakage(joint, 2.0, query=CountQuery())
    assert count.value == pytest.approx(0.7180751, abs=1e-7)
    # What is sound: add at the DP level and convert once.
    assert double.value <= worst_case_leakage(joint, 1.0).value


def test_trap_c11_the_gap_of_adding_grows_with_the_number_of_runs():
    p, rare = 0.999, 1e-6
    joint = JointTable([[0.001 * (1 - rare), 0.001 * rare], [p * 0.99, p * 0.01]])
    response = RandomizedResponse(2, "0.5")
    single = exact_leakage(joint, response).value
    assert single == pytest.approx(0.5064656, abs=1e-7)
    # Twenty runs, all answers one: the likelihood of a database is its 20th power.
    likelihood = local_kernel(joint, response)[..., 3] ** 20
    laws = [(joint.given({0: x}).pmf * likelihood[x]).sum() for x in (0, 1)]
    leaked = math.log(laws[1] / laws[0])
    assert leaked == pytest.approx(15.3775, abs=1e-4)
    assert leaked > 20 * single == pytest.approx(10.1293, abs=1e-4)


def test_the_level_that_brings_flatmates_to_one():
    for method, query in (
        (LaplaceJointTheorem(), CountQuery()),
        (ProgramTheorem(), AnyQuery()),
    ):
        level = method.invert(FLATMATES, 1.0, query=query)
        assert level == pytest.approx(0.557867, abs=1e-6)


def test_A4_bits_that_are_all_equal_leak_the_general_bound():
    joint = two_point_law((0, 0, 0), (1, 1, 1))
    found = laplace_leakage(joint, 2.0, query=sum)
    assert general_leakage(0.5, 3).value == 1.5
    assert found.value == pytest.approx(1.5, abs=1e-12)


def test_A5_the_sum_of_xor_bits_leaks_two():
    found = laplace_leakage(xor(), 1.0, query=sum)
    assert found.value == pytest.approx(2.0, abs=1e-12)
    assert len(found.witness.details["known"]) == 1


@pytest.mark.parametrize(
    ("r", "bound", "exact"),
    [
        (2, 1.5471675747360587, 1.7633825153901415),
        (10, 1.854854800389036, 1.9408172387705094),
        (100, 1.9831304037873696, 1.9937217133444192),
        (1000, 1.998284906351115, 1.9993683114570373),
    ],
)
def test_A6_tightness_with_a_small_pearson_coefficient(r, bound, exact):
    found = laplace_leakage(lange_family(r), 1.0, query=sum).value
    assert found == pytest.approx(exact, abs=1e-12)
    assert 2 + math.log((r + 1) / (r + math.e)) == pytest.approx(bound, abs=1e-12)
    assert found >= bound


@pytest.mark.parametrize(
    ("joint", "expected"),
    [
        (JointTable.independent([[0.7, 0.3]] * 3), 1.0),
        (two_point_law((0, 0, 0), (1, 1, 1)), 3.0),
        (tight_family(10), 1.795610390012517),
    ],
)
def test_the_laplace_sum_has_its_tabulated_leakage(joint, expected):
    found = laplace_leakage(joint, 1.0, query=sum).value
    assert found == pytest.approx(expected, abs=1e-12)


def test_three_equal_records_and_an_independent_one_leak_three():
    same = two_point_law((0, 0, 0), (1, 1, 1))
    joint = JointTable(np.multiply.outer(same.pmf, [0.5, 0.5]))
    for query in (sum, CountQuery()):
        found = laplace_leakage(joint, 1.0, query=query).value
        assert found == pytest.approx(3.0, abs=1e-10)
    assert joint.largest_group == 3


@pytest.mark.parametrize("m", [1, 2, 4])
def test_LE5_a_two_point_law_protects_its_support_only(m):
    # Theorem 4.5 of the master's thesis: m records move together, leakage m tau; the
    # free-lunch conclusion says nothing about databases outside the support.
    joint = two_point_law((0,) * m + (0,), (1,) * m + (0,))
    found = laplace_leakage(joint, 2.0, query=sum).value
    assert found == pytest.approx(0.5 * m, abs=1e-12)
    silent = np.full((2, 2, 2), 0.5)
    silent[0, 1] = [1.0, 0.0]
    outside = exact_leakage(two_point_law((0, 0), (1, 1)), silent)
    assert outside.value == 0.0


def test_trap_c03_zero_correlation_is_not_independence():
    joint = xor()
    bits = np.indices((2, 2, 2)).reshape(3, -1)
    weights = joint.pmf.ravel()
    covariance = np.cov(bits, aweights=weights, ddof=0)
    assert covariance == pytest.approx(np.eye(3) / 4, abs=1e-15)
    assert joint.largest_group == 3


def test_trap_l16_bdp_implies_dp_on_the_support_only():
    joint = two_point_law((0, 0), (1, 1))
    informed = exact_leakage(
        joint, np.eye(4).reshape(2, 2, 4), adversaries="informed"
    ).value
    assert informed == 0.0  # who knows one record knows both
