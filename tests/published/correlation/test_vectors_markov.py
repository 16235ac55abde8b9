"""Numbers of the sources about Markov chains, corrected where they are wrong."""

import itertools
import math

import numpy as np
import pytest

from support.markov_oracle import chain_law, parity_attack, parity_laws
from undertow.correlation.calibrate import what_if
from undertow.correlation.finite.exact import exact_leakage
from undertow.correlation.finite.joint import JointTable
from undertow.correlation.finite.program import worst_case_leakage
from undertow.correlation.markov.chain import MarkovChain, MarkovFamily
from undertow.correlation.markov.projective import (
    ProjectiveTheorem,
    closed_value,
    column_ratio,
    mixing_time,
    projective_budget,
    projective_diameter,
    projective_leakage,
    ratio_diameter,
    transition_ratio,
    window_leakage,
)
from undertow.correlation.markov.published import (
    GammaTheorem,
    ZhaoTheorem,
    accuracy_factor,
    gamma_budget,
    gamma_leakage,
    largest_gamma,
    largest_log_ratio,
    ratio_threshold,
)
from undertow.correlation.markov.steps import (
    HigherOrderChain,
    StepTheorem,
    step_diameters,
    step_leakage,
)
from undertow.correlation.query import AnyQuery
from undertow.correlation.result import Adversary
from undertow.errors import InfeasibleTarget, ModelError, NotApplicable
from undertow.mechanisms.accuracy import laplace_accuracy

ANY = AnyQuery()
ACTIVITY = [[0.882, 0.118], [0.305, 0.695]]
METER_70 = [[0.445, 0.555], [0.15, 0.85]]
METER_80 = [[0.818, 0.182], [0.371, 0.629]]
METER_90 = [[0.894, 0.106], [0.478, 0.522]]
FLIP_30 = [[0.7, 0.3], [0.3, 0.7]]
GOLDEN = [[0.5, 0.5], [1.0, 0.0]]
NOT_REVERSIBLE = [[0.97, 0.02, 0.01], [0.87, 0.03, 0.10], [0.01, 0.56, 0.43]]
BACKWARD = [[0.1, 0.1, 0.8], [0.1, 0.1, 0.8], [0.8, 0.1, 0.1]]
DELTA = projective_diameter(ACTIVITY)


def ring(states):
    step = np.roll(np.eye(states), 1, axis=1)
    return 0.5 * np.eye(states) + 0.25 * (step + step.T)


def backward_kernel(P):
    law = MarkovChain(P).stationary()
    return (law[:, None] * np.array(P)).T / law[:, None]


def test_T16_gamma_of_the_printed_meter_matrices():
    assert transition_ratio(METER_80) == pytest.approx(4.494505, abs=1e-6)
    assert transition_ratio(METER_90) == pytest.approx(8.433962, abs=1e-6)
    assert 4 * math.log(transition_ratio(METER_80)) == pytest.approx(6.011423, abs=1e-6)
    assert 4 * math.log(transition_ratio(METER_90)) == pytest.approx(8.529067, abs=1e-6)


def test_T17_thresholds_of_equation_6_70():
    assert ratio_threshold(0.5, 80) == pytest.approx(19438.288, abs=1e-3)
    assert ratio_threshold(0.5, 20) == pytest.approx(10.751013, abs=1e-6)
    assert ratio_threshold(1.0, 50) == pytest.approx(208981.3, abs=0.05)
    assert ratio_threshold(0.5, 10) == pytest.approx(3.080, abs=1e-3)
    assert ratio_threshold(0.5, 40) == pytest.approx(130.974, abs=1e-3)


def test_T18_theorem_6_20_for_activity():
    chain = MarkovChain(ACTIVITY)
    level = GammaTheorem().invert(chain, 10.0, query=ANY)
    assert level == pytest.approx(1.953970, abs=1e-6)
    with pytest.raises(InfeasibleTarget) as refusal:
        GammaTheorem().invert(chain, 8.0, query=ANY)
    assert refusal.value.least == pytest.approx(8.046030, abs=1e-6)


def test_T19_projective_diameter_of_activity():
    assert pytest.approx(2.8351075005, abs=1e-9) == DELTA
    assert math.tanh(DELTA / 4) == pytest.approx(0.6099092703, abs=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "leak"),
    [(0.1, 0.41201528), (0.5, 1.98624596), (1, 3.64452906), (2, 6.03604910)],
)
def test_T20_closed_form_for_activity(epsilon, leak):
    chain = MarkovChain(ACTIVITY)
    found = ProjectiveTheorem().bound(chain, epsilon, query=ANY)
    assert found.value == pytest.approx(leak, abs=1e-8)


@pytest.mark.parametrize(
    ("target", "level"),
    [(0.5, 0.12145010), (1, 0.24468533), (2, 0.50372568), (10, 4.70301926)],
)
def test_T21_closed_inverse_for_activity(target, level):
    found = projective_budget(target, DELTA)
    assert found == pytest.approx(level, abs=1e-8)
    assert projective_leakage(found, DELTA).value == pytest.approx(target, rel=1e-9)


def test_T22_closed_form_from_gamma_alone():
    two = ratio_diameter(2.0)
    assert projective_leakage(0.1, two).value == pytest.approx(0.199938, abs=1e-6)
    assert projective_leakage(1.0, two).value == pytest.approx(1.943520, abs=1e-6)
    for gamma, level in ((7.5, 0.134701), (10.0, 0.101034)):
        found = projective_budget(1.0, MarkovFamily(gamma=gamma).diameter)
        assert found == pytest.approx(level, abs=1e-6)


def test_T32_ring_of_six_takes_six_steps():
    chain = MarkovChain(ring(6))
    found = StepTheorem().bound(chain, 0.1, query=ANY)
    assert found.value == pytest.approx(1.7471626, abs=1e-6)
    assert found.checked[0].startswith("6 steps")
    level = StepTheorem().invert(chain, 1.0, query=ANY)
    assert level == pytest.approx(0.0568976, abs=1e-6)
    diameters = step_diameters(chain, until_useless=False)
    weaker = {k: closed_value((2 * k - 1) * 0.1, d) for k, d in diameters.items()}
    assert min(weaker, key=weaker.get) == 7
    assert weaker[7] == pytest.approx(2.177380, abs=1e-6)


def test_T33_gamma_of_the_activity_counts():
    chain = MarkovChain([[9713, 1295], [1295, 2955]], renormalise=True)
    assert chain.gamma == pytest.approx(7.500386, abs=1e-6)
    assert 4 * math.log(chain.gamma) == pytest.approx(8.059818, abs=1e-6)


@pytest.mark.parametrize(("size", "exact"), [(3, 0.20250), (4, 0.22839), (5, 0.25428)])
def test_T38_golden_mean_chain(size, exact):
    chain = MarkovChain(GOLDEN)
    law = chain_law(chain.stationary(), [np.array(GOLDEN)] * (size - 1))
    found = worst_case_leakage(JointTable(law), 0.1).value
    assert found == pytest.approx(exact, abs=1e-5)
    diameters = step_diameters(chain)
    bound = step_leakage(0.1, diameters)
    assert bound.value == pytest.approx(0.4461224, abs=1e-6)
    assert closed_value(0.3, diameters[2]) == pytest.approx(0.5186480, abs=1e-6)
    assert found <= bound.value


def test_T39_backward_ratios_pass_gamma():
    assert transition_ratio(NOT_REVERSIBLE) == pytest.approx(97.0)
    Q = backward_kernel(NOT_REVERSIBLE)
    assert (Q.max(axis=1) / Q.min(axis=1)).max() == pytest.approx(4119.598, abs=1e-3)
    assert (Q.max(axis=0) / Q.min(axis=0)).max() == pytest.approx(1826.2, abs=0.05)


@pytest.mark.parametrize(
    ("records", "rank", "leak"), [(8, 3, 3.7864704), (11, 5, 5.0194706)]
)
def test_T41_the_k_step_bound_fails_for_order_two(records, rank, leak):
    attained = parity_attack(records, rank, 0.5)
    assert attained == pytest.approx(leak, abs=1e-6)
    laws, pairs = parity_laws(), np.zeros((16, 16))
    for a, b, c in itertools.product(range(4), repeat=3):
        pairs[4 * a + b, 4 * b + c] = laws[a, b, c]
    four_steps = np.linalg.matrix_power(pairs, 4)
    assert projective_diameter(four_steps) == pytest.approx(0.0, abs=1e-12)
    claimed = step_leakage(0.5, {4: 0.0}).value
    assert claimed == pytest.approx(3.5)
    assert attained > claimed
    block = HigherOrderChain(laws, order=2)
    assert attained <= closed_value(1.0, block.block_diameter)


def test_T42_closed_inverse_at_a_large_target():
    level = projective_budget(140.0, DELTA)
    assert level == pytest.approx(134.3297850, abs=1e-6)
    assert projective_leakage(level, DELTA).value <= 140.0


@pytest.mark.parametrize(
    ("matrix", "gamma", "delta", "kappa", "leak", "level"),
    [
        (ACTIVITY, 7.4746, 2.83511, 0.60991, 0.41202, 0.24469),
        (METER_70, 5.6667, 1.51371, 0.36134, 0.2131, 0.47294),
        (METER_80, 4.4945, 2.03078, 0.46815, 0.2759, 0.36554),
        (METER_90, 8.4340, 2.22032, 0.50432, 0.3032, 0.33257),
        (FLIP_30, 2.3333, 1.69460, 0.4, 0.23323, 0.43221),
    ],
)
def test_table_of_conversions(matrix, gamma, delta, kappa, leak, level):
    chain = MarkovChain(matrix)
    assert chain.gamma == pytest.approx(gamma, abs=5e-5)
    assert chain.diameter == pytest.approx(delta, abs=5e-6)
    assert math.tanh(chain.diameter / 4) == pytest.approx(kappa, abs=5e-6)
    found = ProjectiveTheorem().bound(chain, 0.1, query=ANY).value
    assert found == pytest.approx(leak, abs=5e-5)
    found = ProjectiveTheorem().invert(chain, 1.0, query=ANY)
    assert found == pytest.approx(level, abs=6e-6)
    with pytest.raises(InfeasibleTarget):
        GammaTheorem().invert(chain, 1.0, query=ANY)


@pytest.mark.parametrize(
    ("matrix", "alpha"),
    [(ACTIVITY, 1.5332), (METER_80, 0.75108), (METER_90, 2.0366)],
)
def test_accuracy_of_corollary_6_21_at_target_ten(matrix, alpha):
    gamma = transition_ratio(matrix)
    found = laplace_accuracy(1 / gamma_budget(10.0, gamma), 0.05)
    assert found == pytest.approx(alpha, rel=1e-4)
    assert found == pytest.approx(
        accuracy_factor(10.0, gamma) * laplace_accuracy(0.1, 0.05)
    )


@pytest.mark.parametrize(
    ("target", "two", "five", "limit"),
    [
        (1, 1.13315, 1.22140, 1.28403),
        (2, 1.28403, 1.49182, 1.64872),
        (5, 1.86825, 2.71828, 3.49034),
        (10, 3.49034, 7.38906, 12.18249),
    ],
)
def test_largest_gamma_of_corollary_7_5(target, two, five, limit):
    found = [largest_gamma(target, h) for h in (2.0, 5.0, math.inf)]
    assert found == pytest.approx([two, five, limit], abs=5e-6)


def test_location_traces_with_five_cells():
    cells = [
        [0.6, 0.1, 0.1, 0.1, 0.1],
        [0.15, 0.55, 0.1, 0.1, 0.1],
        [0.1, 0.1, 0.6, 0.1, 0.1],
        [0.1, 0.15, 0.1, 0.55, 0.1],
        [0.1, 0.1, 0.1, 0.1, 0.6],
    ]
    chain = MarkovChain(cells)
    assert chain.gamma == pytest.approx(6.0)
    assert chain.diameter == pytest.approx(3.583519, abs=1e-6)
    for target, level in ((1, 0.168358), (2, 0.346962), (5, 1.055649)):
        found = ProjectiveTheorem().invert(chain, target, query=ANY)
        assert found == pytest.approx(level, abs=1e-6)
        with pytest.raises(InfeasibleTarget):
            GammaTheorem().invert(chain, target, query=ANY)


def test_a_model_that_is_only_roughly_known():
    models = {f"{gamma}": MarkovFamily(gamma=gamma) for gamma in (7.5, 10.0)}
    assumed, instead = what_if(1.0, models)
    assert assumed.epsilon == pytest.approx(0.1347, abs=5e-5)
    assert instead.epsilon == pytest.approx(0.101, abs=5e-4)


def test_M1_activity_by_gamma_omega_and_the_exact_ratio():
    chain = MarkovChain(ACTIVITY, length=288)
    assert 4 * math.log(chain.gamma) == pytest.approx(8.046029726, abs=1e-9)
    assert 6 * math.log(chain.omega) == pytest.approx(10.639363327, abs=1e-9)
    assert 4 * math.log(chain.omega) == pytest.approx(7.092908884, abs=1e-9)
    assert largest_log_ratio(chain) == pytest.approx(4.598491692, abs=1e-9)


def test_M2_chains_of_figure_12():
    left, right = [[0.9, 0.1], [0.8, 0.2]], [[0.9, 0.1], [0.2, 0.8]]
    found = [(transition_ratio(P), column_ratio(P)) for P in (left, right)]
    assert found == [pytest.approx((9, 2)), pytest.approx((9, 8))]
    gamma = [
        GammaTheorem().bound(MarkovChain(P), 0.0, query=ANY).value
        for P in (left, right)
    ]
    zhao = [
        ZhaoTheorem().bound(MarkovChain(P), 0.0, query=ANY).value for P in (left, right)
    ]
    assert gamma == pytest.approx([8.7889, 8.7889], abs=1e-4)
    assert zhao == pytest.approx([4.1589, 12.4766], abs=1e-4)


def test_M4_and_M5_targets_around_the_limit():
    chain = MarkovChain(ACTIVITY)
    level = GammaTheorem().invert(chain, 9.0, query=ANY)
    assert level == pytest.approx(0.953970273835493, abs=1e-12)
    with pytest.raises(InfeasibleTarget) as refusal:
        GammaTheorem().invert(chain, 8.0, query=ANY)
    assert refusal.value.least == pytest.approx(8.046, abs=1e-3)


def test_M7_backward_ratio_of_a_chain_that_is_not_reversible():
    chain = MarkovChain(BACKWARD)
    assert chain.stationary().tolist() == pytest.approx(
        [0.4294117647, 0.1, 0.4705882353], abs=1e-10
    )
    Q = backward_kernel(BACKWARD)
    assert (Q.max(axis=1) / Q.min(axis=1)).max() == pytest.approx(37.64705882352938)
    assert (Q.max(axis=0) / Q.min(axis=0)).max() == pytest.approx(8.767, abs=1e-3)
    assert chain.gamma == pytest.approx(8.0)


def test_exact_ratio_of_the_symmetric_chain():
    chain = MarkovChain([[0.9, 0.1], [0.1, 0.9]], length=5)
    assert largest_log_ratio(chain) == pytest.approx(7.427144133408615, abs=1e-12)
    backward = MarkovChain(BACKWARD, length=5)
    assert largest_log_ratio(backward) == pytest.approx(6.728534791252292, abs=1e-12)
    assert 4 * math.log(backward.omega) == pytest.approx(8.317766166719343)


def conditional(law, record, known):
    """Law of one record given the states of others, by summing the joint table."""
    table = law
    for axis in sorted(known, reverse=True):
        table = np.take(table, [known[axis]], axis=axis)
    others = tuple(axis for axis in range(law.ndim) if axis != record)
    found = table.sum(axis=others)
    return found / found.sum()


def test_CE12_the_nearest_known_records_on_both_sides_decide():
    P = np.array(METER_80)
    law = chain_law(np.array([0.1, 0.9]), [P] * 5)
    known = {0: 1, 1: 0, 4: 1, 5: 0}
    nearest = {1: 0, 4: 1}
    expected = P[0] * (P @ P)[:, 1]
    assert conditional(law, 2, known) == pytest.approx(conditional(law, 2, nearest))
    assert conditional(law, 2, known) == pytest.approx(expected / expected.sum())
    # The ends l and r themselves belong to the condition (j <= l or j >= r).
    without = {0: 1, 5: 0}
    assert abs(conditional(law, 2, known) - conditional(law, 2, without)).max() > 0.01


@pytest.mark.parametrize("matrix", [NOT_REVERSIBLE, BACKWARD])
def test_CE13_gamma_to_the_fourth_stands_although_a_step_of_its_proof_fails(matrix):
    chain = MarkovChain(matrix, length=5)
    Q = backward_kernel(matrix)
    assert (Q.max(axis=1) / Q.min(axis=1)).max() > chain.gamma
    assert (Q.max(axis=1) / Q.min(axis=1)).max() <= chain.gamma**2
    assert largest_log_ratio(chain) <= 4 * math.log(chain.omega)
    assert 4 * math.log(chain.omega) <= 4 * math.log(chain.gamma)


def test_CE14_printed_matrices_do_not_sum_to_one_and_quote_other_ratios():
    with pytest.raises(ModelError, match=r"got 0\.999 in row 0"):
        MarkovChain([[0.882, 0.117], [0.305, 0.695]])
    seventy = MarkovChain([[0.445, 0.555], [0.149, 0.850]], renormalise=True)
    assert seventy.gamma == pytest.approx(5.70, abs=5e-3)  # printed: 3.29
    assert 4 * math.log(seventy.gamma) == pytest.approx(6.9652, abs=1e-4)  # 4.7
    assert 4 * math.log(0.882 / 0.117) == pytest.approx(8.0801, abs=1e-4)
    assert 4 * math.log(transition_ratio(METER_80)) == pytest.approx(6.011, abs=1e-3)
    assert 4 * math.log(transition_ratio(METER_90)) == pytest.approx(8.529, abs=1e-3)


def test_CE15_the_condition_of_corollary_6_21_is_strict():
    gamma = 3.0
    limit = 2 * ratio_diameter(gamma)
    with pytest.raises(InfeasibleTarget):
        accuracy_factor(limit, gamma)
    assert accuracy_factor(limit * (1 + 1e-9), gamma) > 1e8
    # The proof prints "epsilon + 4 gamma"; the constant is 4 log(gamma).
    assert gamma_leakage(1.0, gamma).value == pytest.approx(1 + 4 * math.log(3))


def test_LE14_the_forward_ratio_is_at_most_gamma_not_equal():
    P = np.array(FLIP_30)
    gamma = transition_ratio(P)
    one, two = column_ratio(P), column_ratio(P @ P)
    assert one == pytest.approx(gamma)
    assert two < gamma - 0.5


def test_LE15_lemma_7_2_holds_forward_only_and_the_conclusion_stands():
    chain = MarkovChain(BACKWARD, length=5)
    powers = [np.linalg.matrix_power(BACKWARD, t) for t in range(1, 5)]
    for power in powers:
        assert (power.max(axis=1) / power.min(axis=1)).max() <= chain.gamma + 1e-12
    Q = backward_kernel(BACKWARD)
    assert (Q.max(axis=1) / Q.min(axis=1)).max() > chain.gamma
    assert largest_log_ratio(chain) <= 4 * math.log(chain.gamma)


def test_LE16_with_every_other_record_known_the_leakage_is_at_most_epsilon():
    law = JointTable(chain_law(np.array([0.5, 0.5]), [np.array(FLIP_30)] * 2))
    told = np.array([math.e, 1.0]) / (1 + math.e)
    kernel = np.empty((2, 2, 2, 2))  # randomized response on the first record only
    for first in range(2):
        kernel[first] = told if first == 0 else told[::-1]
    leaks = [
        exact_leakage(law, kernel, adversaries=[Adversary(i, {0, 1, 2} - {i})]).value
        for i in range(3)
    ]
    assert leaks == pytest.approx([1.0, 0.0, 0.0], abs=1e-9)


def test_LE21_rounded_and_unrounded_transitions_give_different_constants():
    counted = MarkovChain([[9713, 1295], [1295, 2955]], renormalise=True)
    assert 4 * math.log(transition_ratio(ACTIVITY)) == pytest.approx(8.046, abs=5e-4)
    assert 4 * math.log(counted.gamma) == pytest.approx(8.060, abs=5e-4)


def test_trap_c06_the_threshold_that_codes_the_records_moves_the_guarantee():
    found = [transition_ratio(P) for P in (METER_70, METER_80, METER_90)]
    assert max(found) / min(found) > 1.8
    levels = [
        projective_budget(1.0, projective_diameter(P))
        for P in (METER_70, METER_80, METER_90)
    ]
    assert max(levels) / min(levels) > 1.4


def test_trap_c08_every_tenth_record_is_another_chain():
    tenth = np.linalg.matrix_power(ACTIVITY, 10)
    assert projective_diameter(tenth) < 0.01 * DELTA
    full = projective_leakage(1.0, DELTA).value
    assert full > 3 * projective_leakage(1.0, projective_diameter(tenth)).value


def test_trap_c11a_neither_k_steps_of_higher_order_nor_the_mixing_time_stop_leakage():
    assert parity_attack(8, 3, 0.5) > step_leakage(0.5, {4: 0.0}).value
    names = [m.name for m in HigherOrderChain(parity_laws(), order=2).methods()]
    assert "steps" not in names
    P = [[1 - 1.4354e-12, 1.4354e-12], [0.671346, 1 - 0.671346]]
    time = mixing_time(P, 1e-12)
    found = window_leakage(P, 1.596151, lengths=(time, 8 * time))
    assert found[8 * time].value > found[time].value + 1


def test_trap_c13_renormalising_is_asked_for_and_recorded():
    printed = [[0.882, 0.117], [0.305, 0.695]]
    with pytest.raises(ModelError, match="renormalise it"):
        MarkovChain(printed)
    chain = MarkovChain(printed, renormalise=True)
    assert any("0.999" in text for text in chain.assumptions().checked)
    assert chain.gamma == pytest.approx(0.882 / 0.117)


def test_trap_c14_rows_are_the_present_and_columns_the_next_state():
    chain = MarkovChain([[0.0, 1.0], [0.5, 0.5]], [1.0, 0.0], 2)
    assert chain.marginals()[1].tolist() == [0.0, 1.0]
    drawn = chain.sample(4, rng=np.random.default_rng(0))
    assert (drawn[:, 1] == 1).all()


def test_trap_l05_and_l06_the_fit_of_the_model_is_left_to_trust():
    words = " ".join(MarkovChain(ACTIVITY).assumptions().unchecked)
    assert "not fitted to the protected records" in words
    assert "first-order Markov chain" in words


def test_trap_l07_zero_transitions_are_refused_not_smoothed():
    chain = MarkovChain(GOLDEN)
    assert chain.gamma == math.inf
    assert chain.transition[1, 1] == 0.0
    with pytest.raises(NotApplicable, match="got a zero"):
        GammaTheorem().bound(chain, 1.0, query=ANY)


def test_trap_l09_an_infeasible_target_is_never_met_with_a_negative_level():
    for target in (1e-6, 4.0, 2 * ratio_diameter(7.5)):
        with pytest.raises(InfeasibleTarget, match="'projective'"):
            gamma_budget(target, 7.5)
        assert projective_budget(target, ratio_diameter(7.5)) > 0


def test_trap_l10_omega_compares_the_same_next_state():
    P = np.array([[0.9, 0.1], [0.8, 0.2]])
    assert column_ratio(P) == pytest.approx((P.max(axis=0) / P.min(axis=0)).max())
    assert column_ratio(P) == pytest.approx(2.0)
    assert (P.max(axis=1) / P.min(axis=1)).max() == pytest.approx(9.0)
