"""Published and derived numbers of the exact engines for Markov chains."""

import math

import numpy as np
import pytest

from undertow.correlation.calibrate import calibrate
from undertow.correlation.leak import leakage
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.markov.count import CountWindows, count_budget, count_leakage
from undertow.correlation.markov.pairwise import pairwise_leakage
from undertow.correlation.markov.projective import (
    closed_value,
    projective_budget,
    projective_diameter,
)
from undertow.correlation.markov.two_state import (
    two_state_budget,
    two_state_leakage,
)
from undertow.correlation.query import CountQuery

ACTIVITY = np.array([[0.882, 0.118], [0.305, 0.695]])
LEVELS = (0.1, 0.5, 1.0, 2.0)

# Matrices of the thesis, Section 6.5.1.2, with rows that sum to one.
CHAINS = {
    "activity": ACTIVITY,
    "electricity 70": np.array([[0.445, 0.555], [0.15, 0.85]]),
    "electricity 80": np.array([[0.818, 0.182], [0.371, 0.629]]),
    "electricity 90": np.array([[0.894, 0.106], [0.478, 0.522]]),
    "flip 0.3": np.array([[0.7, 0.3], [0.3, 0.7]]),
}


def without_known_records(P, epsilon, records=400):
    """Follow the windows that reach both ends of a long stationary chain."""
    law = np.array([P[1, 0], P[0, 1]])
    law = law / law.sum()
    best = []
    for sign in (1, -1):
        gain = np.exp(sign * epsilon * np.array([1.0, 0.0]))
        right, left = np.ones(2), law
        for _ in range(records):
            right = P @ (gain * right)
            left = (gain * left) @ P
            right, left = right / right.max(), left / left.max()
        side = math.log(right[0] / right[1]) + math.log(left[0] / left[1])
        best.append(epsilon + sign * (side - math.log(law[0] / law[1])))
    return max(best)


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    list(zip(LEVELS, (0.15821207, 0.79839671, 1.60120356, 3.13200469), strict=True)),
)
def test_T23_two_records_of_the_activity_chain(epsilon, expected):
    found = two_state_leakage(ACTIVITY, epsilon, length=2)
    assert found.value == pytest.approx(expected, abs=5e-9)
    assert found.tight is True


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    list(zip(LEVELS, (0.28505866, 1.46018584, 2.87765377, 5.01987548), strict=True)),
)
def test_T24_five_records_of_the_activity_chain(epsilon, expected):
    found = two_state_leakage(ACTIVITY, epsilon, length=5).value
    assert found == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize(
    ("epsilon", "expected", "blind"),
    [
        (0.1, 0.38934370, 0.38597918),
        (0.5, 1.98584698, 1.98584698),
        (1.0, 3.47487338, 3.45826474),
        (2.0, 5.43093397, 5.19834678),
    ],
)
def test_T25_any_number_of_records_of_the_activity_chain(epsilon, expected, blind):
    found = two_state_leakage(ACTIVITY, epsilon)
    assert found.value == pytest.approx(expected, abs=1e-8)
    assert found.tight is True
    assert without_known_records(ACTIVITY, epsilon) == pytest.approx(blind, abs=1e-8)


@pytest.mark.parametrize(
    ("target", "expected"),
    [(1, 0.250326), (2, 0.503873), (5, 1.749140), (10, 5.552648)],
)
def test_T26_levels_for_the_activity_chain(target, expected):
    assert two_state_budget(ACTIVITY, target) == pytest.approx(expected, abs=1e-6)


def test_T27_the_closed_form_covers_three_states():
    rng = np.random.default_rng(27)
    for _ in range(5):
        P = rng.dirichlet(np.ones(3), 3)
        found = pairwise_leakage(P, 1.0, length=4).value
        assert found <= closed_value(1.0, projective_diameter(P))


def test_T29_the_printed_flip_probability_breaks_its_promise_of_eight():
    rate, promise = 0.2, 8.0
    growth = rate**2 * math.exp(promise)
    # Smaller root of (1 - (2 - r) rho)^2 = r^2 e^B rho (1 - rho).
    a, b = (2 - rate) ** 2 + growth, 2 * (2 - rate) + growth
    flip = (b - math.sqrt(b * b - 4 * a)) / (2 * a)
    assert flip == pytest.approx(0.008208, abs=1e-6)
    found = two_state_leakage(
        [[0.8, 0.2], [0.2, 0.8]], math.log((1 - flip) / flip), length=5
    )
    assert found.value == pytest.approx(8.842322, abs=1e-6)
    assert found.witness.details["known"] == [0, 4]


@pytest.mark.parametrize(
    ("name", "at_tenth", "for_one"),
    [
        ("activity", 0.38934, 0.25033),
        ("electricity 70", 0.19243, 0.49895),
        ("electricity 80", 0.26679, 0.36730),
        ("electricity 90", 0.26446, 0.36260),
        ("flip 0.3", 0.23290, 0.44263),
    ],
)
def test_thesis_matrices_have_these_exact_conversions(name, at_tenth, for_one):
    P = CHAINS[name]
    assert two_state_leakage(P, 0.1).value == pytest.approx(at_tenth, abs=1e-5)
    assert two_state_budget(P, 1.0) == pytest.approx(for_one, abs=1e-5)


def test_exact_calibration_needs_a_third_of_the_noise_of_theorem_6_20():
    level = two_state_budget(ACTIVITY, 10.0)
    assert level == pytest.approx(5.55265, abs=1e-5)
    assert level / (10 - 4 * math.log(0.882 / 0.118)) > 2.8


def test_story_of_the_smart_meter():
    meter = MarkovChain([[0.818, 0.182], [0.371, 0.629]], length=731)
    found = calibrate(meter, 1.0, query=CountQuery(), beta=0.05)
    assert found.epsilon == pytest.approx(0.367303, abs=1e-6)
    # The story is about continuous noise; what is released of a count is whole.
    assert found.noise_scale * math.log(20) == pytest.approx(8.156, abs=1e-3)
    assert found.accuracy.alpha == 9
    assert found.method in ("two-state", "count")
    closed = projective_budget(1.0, meter.diameter, size=731)
    assert closed == pytest.approx(0.365537, abs=1e-6)


def test_story_of_the_wearable():
    counts = np.array([[9713.0, 1295.0], [1295.0, 2955.0]])
    chain = MarkovChain(counts, length=17_568, renormalise=True)
    one = count_budget(chain, 1.0)
    assert one == pytest.approx(0.249773, abs=1e-6)
    assert math.log(20) / one == pytest.approx(12, abs=0.01)
    assert count_budget(chain, 10.0) == pytest.approx(5.545, abs=1e-3)


def test_story_of_twenty_releases():
    chain = MarkovChain(ACTIVITY, length=10_000)
    assert leakage(chain, 20 * 0.05).value == pytest.approx(3.474873, abs=1e-6)
    assert leakage(chain, 0.05).value == pytest.approx(0.192471, abs=1e-6)


EXACT_COUNTS = {
    1: (0.5, 1.0, 2.0),
    2: (0.9698, 1.8382, 3.2870),
    3: (1.3781, 2.5325, 4.2886),
    4: (1.7119, 3.1093, 5.0568),
    5: (1.9893, 3.5771, 5.6679),
    6: (2.2208, 3.9524, 6.2548),
    7: (2.4169, 4.2534, 6.7605),
    8: (2.5851, 4.4960, 7.1996),
    9: (2.7312, 4.6930, 7.5837),
    10: (2.8595, 4.8918, 7.9217),
}


@pytest.mark.parametrize("gamma", EXACT_COUNTS)
def test_count_on_ten_records_of_the_chains_of_figure_15(gamma):
    stay = gamma / (1 + gamma)
    chain = MarkovChain([[stay, 1 - stay], [1 - stay, stay]], length=10)
    windows = CountWindows(chain.transition, chain.initial_law(), 10, np.array([0, 1]))
    for epsilon, expected in zip((0.5, 1.0, 2.0), EXACT_COUNTS[gamma], strict=True):
        found = count_leakage(chain, epsilon).value
        assert found == pytest.approx(expected, abs=5.1e-5)
        assert windows.largest(epsilon).value == pytest.approx(found, rel=1e-9)


def test_M3_count_at_gamma_ten():
    chain = MarkovChain([[10 / 11, 1 / 11], [1 / 11, 10 / 11]], length=10)
    assert count_leakage(chain, 1.0).value == pytest.approx(4.891847406567631, rel=1e-9)
    for epsilon, expected in ((0.5, 2.859469519548524), (2.0, 7.921727296976712)):
        assert count_leakage(chain, epsilon).value == pytest.approx(expected, rel=1e-9)


def test_M6_count_calibration_of_the_activity_chain():
    chain = MarkovChain(ACTIVITY, length=288)
    assert count_budget(chain, 1.0) == pytest.approx(0.250325787648345, rel=1e-9)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (1, 0.250326),
        (2, 0.503873),
        (5, 1.749140),
        (9, 4.728810),
        (12, 7.425589),
        (20, 15.401517),
    ],
)
def test_calibrated_levels_of_the_activity_data(target, expected):
    for length in (288, 17_568):
        level = count_budget(MarkovChain(ACTIVITY, length=length), target)
        assert level == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("epsilon", "many", "ten"),
    [
        (0.1, 0.3893437, 0.3572622),
        (0.25, 0.9986606, None),
        (0.5, 1.985847, 1.8456994),
        (1.0, 3.4748734, 3.3857125),
        (2.0, 5.4309340, 5.4309340),
        (5.0, 9.3435926, None),
    ],
)
def test_exact_counts_on_the_activity_chain(epsilon, many, ten):
    for length in (288, 17_568):
        chain = MarkovChain(ACTIVITY, length=length)
        assert count_leakage(chain, epsilon).value == pytest.approx(many, abs=1e-6)
    if ten is not None:
        chain = MarkovChain(ACTIVITY, length=10)
        assert count_leakage(chain, epsilon).value == pytest.approx(ten, abs=1e-7)


def tail_value(P, initial, length, epsilon, counted):
    """Return the largest ratio at outputs beyond every count, over all windows."""
    marks = np.array([float(z in counted) for z in range(len(P))])
    best = 0.0
    for sign in (1, -1):
        gain = np.exp(sign * epsilon * marks)

        def windows(kernel, start, room, gain=gain):
            found = []
            ends = [(kernel[:, z], q) for z in range(len(P)) for q in range(room)]
            for weights, unknown in [*ends, (start, room)]:
                tilted, plain = weights, weights
                for _ in range(unknown):
                    tilted, plain = kernel @ (gain * tilted), kernel @ plain
                found.append(np.log(tilted) - np.log(plain))
            return np.array(found)

        for target in range(length):
            right = windows(P, np.ones(len(P)), length - 1 - target)
            left = windows(P.T, initial, target)
            gap = sum(
                (v[:, :, None] - v[:, None, :]).max(axis=0) for v in (left, right)
            )
            own = sign * epsilon * (marks[:, None] - marks[None])
            best = max(best, float((own + gap).max()))
    return best


def test_trap_l17a_the_tail_of_a_count_is_too_small_on_three_states():
    P = np.array(
        [
            [0.0021140799, 0.9399497792, 0.0579361409],
            [0.7513258939, 0.2402505325, 0.0084235736],
            [0.9775091847, 0.0219958358, 0.0004949791],
        ]
    )
    P /= P.sum(axis=1, keepdims=True)
    initial = np.array([0.13716, 0.81444, 0.04840])
    tail = tail_value(P, initial, 6, 4.0, {2})
    full = count_leakage(MarkovChain(P, initial, 6), 4.0, states=[2])
    assert tail == pytest.approx(4.232935, abs=2e-6)
    assert full.value == pytest.approx(4.239442, abs=2e-6)
    assert full.tight is True


def test_the_tail_is_the_full_value_on_positively_dependent_two_states():
    law = np.array([0.305, 0.118]) / 0.423
    for epsilon in (0.3, 2.0):
        tail = tail_value(ACTIVITY, law, 8, epsilon, {1})
        found = count_leakage(MarkovChain(ACTIVITY, length=8), epsilon).value
        assert found == pytest.approx(tail, rel=1e-9)


def test_trap_c11a_the_mixing_time_is_no_stopping_rule_for_windows():
    P = np.array([[1 - 1.4354e-12, 1.4354e-12], [0.671346, 1 - 0.671346]])
    power = np.linalg.matrix_power(P, 25)
    assert np.abs(power[0] - power[1]).max() < 2e-12
    found = two_state_leakage(P, 1.596151)
    assert found.value == pytest.approx(51.992, abs=5e-4)
    assert found.tight is True
