"""The program over all mechanisms: closed forms, certificates, attained values."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from undertow.correlation.finite import program
from undertow.correlation.finite import program as lipschitz
from undertow.correlation.finite.exact import exact_leakage
from undertow.correlation.finite.joint import JointTable, two_point_law
from undertow.correlation.finite.laplace import laplace_leakage
from undertow.correlation.finite.program import (
    ProgramTheorem,
    lipschitz_envelope,
    lipschitz_ratio,
    threshold_ratio,
    worst_case_kernel,
    worst_case_leakage,
)
from undertow.correlation.query import AnyQuery, CountQuery, LinearQuery
from undertow.correlation.result import Adversary
from undertow.errors import NotApplicable
from undertow.mechanisms import RandomizedResponse

FLATMATES = JointTable([[0.45, 0.05], [0.05, 0.45]])


def textbook_program(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    """Solve the linear-fractional program as stated, target coordinate included."""
    from scipy.optimize import linprog

    cells = list(itertools.product(range(2), *map(range, p.shape)))
    place = {cell: k for k, cell in enumerate(cells)}
    rows = []
    for c, d in itertools.permutations(cells, 2):
        if sum(x != y for x, y in zip(c, d, strict=True)) == 1:
            row = np.zeros(len(cells))
            row[place[c]], row[place[d]] = 1.0, -math.exp(epsilon)
            rows.append(row)
    gain = np.array([p[c[1:]] if c[0] == 0 else 0.0 for c in cells])
    cost = np.array([q[c[1:]] if c[0] == 1 else 0.0 for c in cells])
    solved = linprog(
        -gain, A_ub=np.array(rows), b_ub=np.zeros(len(rows)), A_eq=[cost], b_eq=[1.0]
    )
    return math.log(-solved.fun)


@pytest.mark.parametrize("shape", [(3,), (2, 2), (3, 2), (2, 2, 2)])
@pytest.mark.parametrize("epsilon", [0.3, 1.5])
def test_the_reduced_program_agrees_with_the_textbook_one(shape, epsilon):
    rng = np.random.default_rng(sum(shape))
    p, q = rng.dirichlet(np.full(math.prod(shape), 0.4), size=2).reshape(2, *shape)
    found = lipschitz_ratio(p, q, epsilon)
    expected = textbook_program(p, q, epsilon) - epsilon
    assert found.upper == pytest.approx(expected, abs=1e-7)
    assert found.lower <= found.upper + 1e-12
    assert found.lower == pytest.approx(found.upper, abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_the_attaining_function_satisfies_its_constraints(seed):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(12), size=2).reshape(2, 3, 2, 2)
    found = lipschitz_ratio(p, q, 0.8)
    h = found.function
    assert (h > 0).all()
    for axis in range(3):
        span = h.max(axis=axis) / h.min(axis=axis)
        assert (span <= math.exp(0.8) * (1 + 1e-12)).all()
    ratio = math.log((p * h).sum() / (q * h).sum())
    assert ratio == pytest.approx(found.lower, abs=1e-12)


def test_wrong_multipliers_still_certify_an_upper_bound(monkeypatch):
    # Whatever the solver says, the certificate is never below what is attained.
    rng = np.random.default_rng(1)
    p, q = rng.dirichlet(np.ones(8), size=2).reshape(2, 2, 2, 2)
    best = lipschitz_ratio(p, q, 1.0)
    certify = lipschitz._certify

    def spoilt(gain, cost, limits, multipliers, price):
        noise = rng.uniform(0, 0.05, size=multipliers.shape)
        return certify(gain, cost, limits, multipliers + noise, price * 0.98)

    monkeypatch.setattr(lipschitz, "_certify", spoilt)
    for _ in range(20):
        assert lipschitz_ratio(p, q, 1.0).upper >= best.lower


def test_a_solver_that_fails_leaves_the_closed_form_bound(monkeypatch):
    from types import SimpleNamespace

    import scipy.optimize

    p, q = np.array([[0.4, 0.1], [0.1, 0.4]]), np.full((2, 2), 0.25)
    good = lipschitz_ratio(p, q, 1.0)
    failed = SimpleNamespace(status=4, x=None)
    monkeypatch.setattr(scipy.optimize, "linprog", lambda *a, **k: failed)
    bad = lipschitz_ratio(p, q, 1.0)
    assert bad.lower <= good.lower <= good.upper <= bad.upper


def test_exponents_too_large_to_scale_use_the_closed_form_bound():
    p, q = np.array([[0.4, 0.1], [0.1, 0.4]]), np.full((2, 2), 0.25)
    found = lipschitz_ratio(p, q, 200.0)
    assert found.lower <= found.upper
    assert found.upper == pytest.approx(math.log(1.6), abs=1e-9)


def test_the_threshold_bound_is_the_best_of_all_sets():
    rng = np.random.default_rng(3)
    p, q = rng.dirichlet(np.ones(5), size=2)
    best = 0.0
    for chosen in itertools.product([1.0, math.e**2], repeat=5):
        h = np.array(chosen)
        best = max(best, math.log((p @ h) / (q @ h)))
    assert threshold_ratio(p[None], q[None], 2.0)[0] == pytest.approx(best, abs=1e-12)


def test_both_forms_of_the_threshold_bound_agree(monkeypatch):
    rng = np.random.default_rng(4)
    p, q = rng.dirichlet(np.full(6, 0.3), size=(2, 20))
    small = threshold_ratio(p, q, 5.0)
    monkeypatch.setattr(lipschitz, "_SMALL_EXPONENT", 0.0)
    assert threshold_ratio(p, q, 5.0) == pytest.approx(small, abs=1e-12)


def test_an_envelope_is_the_least_lipschitz_function_above():
    spike = np.zeros((3, 3))
    spike[0, 0] = 1.0
    found = lipschitz_envelope(spike, 1.0)
    distance = (np.arange(3) != 0).astype(int)
    expected = np.exp(-(distance[:, None] + distance[None, :]))
    assert found == pytest.approx(expected, rel=1e-15)


def test_no_budget_leaks_nothing():
    assert worst_case_leakage(FLATMATES, 0.0).value == 0.0


def test_a_law_without_two_likely_states_leaks_nothing():
    joint = JointTable([[1.0, 0.0], [0.0, 0.0]])
    found = worst_case_leakage(joint, 1.0)
    assert (found.value, found.witness) == (0.0, None)
    assert exact_leakage(joint, worst_case_kernel(joint, 1.0)).value == 0.0


def test_independent_records_leak_epsilon():
    joint = JointTable.independent([[0.3, 0.7], [0.2, 0.5, 0.3], [0.5, 0.5]])
    found = worst_case_leakage(joint, 0.7)
    assert found.value == pytest.approx(0.7, rel=1e-10)
    assert found.value >= 0.7
    assert found.tight


def test_records_that_move_together_leak_the_general_bound():
    joint = two_point_law((0, 0, 0, 5), (1, 1, 1, 5))
    found = worst_case_leakage(joint, 0.5)
    assert found.value == pytest.approx(1.5, rel=1e-10)
    assert found.witness.details["known"] == [3]


@pytest.mark.parametrize("epsilon", [0.2, 1.0, 4.0])
@pytest.mark.parametrize("shape", [(2, 2), (2, 2, 2), (3, 2, 2), (3, 3)])
def test_the_worst_mechanism_is_dp_and_attains_the_value(shape, epsilon):
    rng = np.random.default_rng(10 * len(shape) + shape[0])
    joint = JointTable(rng.dirichlet(np.full(math.prod(shape), 0.5)).reshape(shape))
    kernel = worst_case_kernel(joint, epsilon)
    assert kernel.sum(axis=-1) == pytest.approx(1.0)
    for axis in range(len(shape)):
        span = kernel.max(axis=axis) / kernel.min(axis=axis)
        assert (span <= math.exp(epsilon) * (1 + 1e-12)).all()
    found = worst_case_leakage(joint, epsilon)
    attained = exact_leakage(joint, kernel).value
    assert attained <= found.value + 1e-10
    assert attained == pytest.approx(found.value, rel=1e-7)
    assert found.tight


def test_the_worst_mechanism_ignores_other_groups():
    pmf = np.einsum("ac,b->abc", FLATMATES.pmf, [0.3, 0.7])
    joint = JointTable(pmf)
    kernel = worst_case_kernel(joint, 1.0)
    assert kernel[:, 0] == pytest.approx(kernel[:, 1])
    attained = exact_leakage(joint, kernel).value
    assert attained == pytest.approx(worst_case_leakage(FLATMATES, 1.0).value, rel=1e-9)


def test_listed_attackers_are_below_all_and_above_a_mechanism():
    rng = np.random.default_rng(12)
    joint = JointTable(rng.dirichlet(np.ones(8)).reshape(2, 2, 2))
    total = worst_case_leakage(joint, 1.0)
    for one in (Adversary(0), Adversary(1, {2}), Adversary(2, {0, 1})):
        found = worst_case_leakage(joint, 1.0, adversaries=[one])
        mechanism = exact_leakage(joint, RandomizedResponse(2, 1), adversaries=[one])
        assert mechanism.value <= found.value <= total.value
        assert found.witness.details["known"] == sorted(one.known)
    weak = worst_case_leakage(joint, 1.0, adversaries="none-known")
    assert weak.value <= total.value
    assert weak.attackers == "anyone who knows no other record"
    with pytest.raises(ValueError, match="adversaries must be"):
        worst_case_leakage(joint, 1.0, adversaries="some")
    with pytest.raises(ValueError, match="at least one"):
        worst_case_leakage(joint, 1.0, adversaries=[])


def test_skipping_dominated_attackers_does_not_change_the_value(monkeypatch):
    # Outer records of a chain are screened off: many attackers are skipped.
    P = np.array([[0.8, 0.2], [0.4, 0.6]])
    table = np.array([2 / 3, 1 / 3])
    for _ in range(3):
        table = table[..., None] * P
    joint = JointTable(table)
    short = worst_case_leakage(joint, 1.0).value
    everyone = [
        Adversary(i, known)
        for i in range(4)
        for size in range(4)
        for known in itertools.combinations([j for j in range(4) if j != i], size)
    ]
    assert worst_case_leakage(joint, 1.0, adversaries=everyone).value == pytest.approx(
        short, rel=1e-9
    )


@pytest.mark.parametrize("target", [0.01, 1.0, 8.0])
def test_the_budget_is_the_largest_level_within_the_target(target):
    method = ProgramTheorem()
    level = method.invert(FLATMATES, target, query=AnyQuery())
    assert method.bound(FLATMATES, level, query=AnyQuery()).value <= target
    more = method.bound(FLATMATES, level * (1 + 1e-8), query=AnyQuery()).value
    assert more > target


def test_the_budget_of_extreme_laws_is_theirs():
    method = ProgramTheorem()
    single = method.invert(JointTable([0.5, 0.5]), 1.0, query=AnyQuery())
    assert single == pytest.approx(1.0, rel=1e-9)
    same = method.invert(two_point_law((0, 0), (1, 1)), 1.0, query=AnyQuery())
    assert same == pytest.approx(0.5, rel=1e-8)
    point = method.invert(JointTable([1.0]), 1.0, query=AnyQuery())
    assert point == 1.0


def test_large_groups_are_refused_or_left_to_be_asked_for(monkeypatch):
    method = ProgramTheorem()
    rng = np.random.default_rng(0)
    joint = JointTable(rng.dirichlet(np.ones(64)).reshape((2,) * 6))
    reason = method.too_costly(joint, query=AnyQuery())
    assert reason == "the worst mechanism may take 1572 linear programs"
    assert method.too_costly(FLATMATES, query=AnyQuery()) is None
    monkeypatch.setattr(program, "_LARGEST", 3)
    with pytest.raises(NotApplicable, match="at most 3 databases"):
        worst_case_leakage(FLATMATES, 1.0)


def test_releases_that_are_not_dp_are_refused():
    method, query = ProgramTheorem(), LinearQuery(gap=0.5)
    with pytest.raises(NotApplicable, match="needs a DP release"):
        method.bound(FLATMATES, 1.0, query=query)
    with pytest.raises(NotApplicable, match="needs a DP release"):
        method.invert(FLATMATES, 1.0, query=query)


@pytest.mark.parametrize("epsilon", [700.0, 1000.0, 1e6])
def test_the_program_takes_any_level(epsilon):
    joint = two_point_law((0, 0), (1, 1))
    found = worst_case_leakage(joint, epsilon).value
    assert found == pytest.approx(2 * epsilon, rel=1e-9)
    with pytest.raises(NotApplicable, match=r"epsilon must be at most 345"):
        worst_case_kernel(joint, epsilon)


@pytest.mark.parametrize("epsilon", [1e-3, 1.0, 340.0])
def test_the_worst_kernel_is_dp(epsilon):
    joint = two_point_law((0, 0), (1, 1))
    everywhere = JointTable(np.full((2, 2), 0.25))
    kernel = worst_case_kernel(joint, epsilon)
    level = exact_leakage(everywhere, kernel, adversaries="informed").value
    assert level <= epsilon * (1 + 1e-9) + 1e-12


def test_dependence_below_the_tolerance_is_covered_by_the_program():
    d = 9e-13
    joint = JointTable(np.array([[1 + d, 1 - d], [1 - d, 1 + d]]) / 4)
    assert joint.independent_groups() == ((0,), (1,))
    truth = 1 + math.log1p(d * (math.e - 1) / (math.e + 1))
    assert worst_case_leakage(joint, 1.0).value >= truth
    assert laplace_leakage(joint, 1.0, query=CountQuery()).value >= truth
