"""Published numbers of the methods we compare with, and their errata."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from undertow.correlation.calibrate import calibrate
from undertow.correlation.markov.chain import MarkovChain
from undertow.correlation.query import CountQuery
from undertow.errors import InfeasibleTarget
from undertow.mechanisms.accuracy import laplace_accuracy
from undertow_studies.comparators.pufferfish import (
    gaussian_wasserstein_scale,
    quilt_scale,
)
from undertow_studies.comparators.scale import (
    printed_response,
    response_accuracy,
    response_confidence,
    response_law,
    yang_scale,
    zhao_leakage,
)

ACTIVITY_COUNTS = np.array([[9713.0, 1295.0], [1295.0, 2955.0]])
ACTIVITY = ACTIVITY_COUNTS / ACTIVITY_COUNTS.sum(axis=1, keepdims=True)

# (r, B, flip printed, error of the response, of Laplace noise by Theorem 6.20, and of
# Laplace noise at the exact level); n = 700 with 350 ones, confidence 95 %.
RESPONSES = [
    (0.4, 2, 0.310550, 63.341, 7.922, 2.096),
    (0.4, 3, 0.187598, 32.010, 2.174, 1.329),
    (0.3, 4, 0.138212, 24.876, 4.905, 1.320),
    (0.2, 6, 0.053473, 13.437, 6.587, 1.148),
    (0.2, 4, 0.217086, 37.114, None, 2.135),
    (0.45, 2, 0.287852, 54.207, 2.502, 1.757),
]


def symmetric(switch):
    return np.array([[1 - switch, switch], [switch, 1 - switch]])


def theorem_6_20_error(target, switch, beta=0.05):
    """Error of the Laplace count at the level B - 4 ln((1 - r) / r); None below it."""
    level = target - 4 * math.log((1 - switch) / switch)
    return laplace_accuracy(1 / level, beta) if level > 0 else None


def response_leakage(P, n, flip):
    """Worst leakage of bit flipping on a chain at equilibrium, and who attains it."""
    shape = (2,) * n
    joint = np.full(shape, 0.5)
    for t in range(n - 1):
        joint = joint * P.reshape([2 if j in (t, t + 1) else 1 for j in range(n)])
    bit = np.array([[1 - flip, flip], [flip, 1 - flip]])
    worst: tuple[float, int, tuple[int, ...]] = (0.0, 0, ())
    for i in range(n):
        others = [j for j in range(n) if j != i]
        for size in range(n):
            for K in itertools.combinations(others, size):
                laws = _output_laws(joint, bit, (i, *K))
                flat = laws.reshape(2, -1, 2**n)
                value = float(np.abs(np.log(flat[0]) - np.log(flat[1])).max())
                if value > worst[0] + 1e-12:
                    worst = value, i, K
    return worst


def _output_laws(joint, bit, fixed):
    """Laws of the reported vector given the values of the `fixed` records."""
    n = joint.ndim
    free = tuple(j for j in range(n) if j not in fixed)
    mass = joint.sum(axis=free, keepdims=True)
    laws = joint / mass
    for j in range(n):
        laws = np.moveaxis(laws, j, -1)
        out = laws[..., :, None] * bit.reshape((1,) * (laws.ndim - 1) + (2, 2))
        keep = j in fixed
        laws = out if keep else out.sum(axis=-2, keepdims=True)
        laws = np.moveaxis(laws, -2, j)  # value of record j back; output at the end
    squeezed = laws.reshape([laws.shape[j] for j in range(n)] + [2**n])
    squeezed = squeezed.squeeze(axis=free) if free else squeezed
    order = sorted(fixed)
    return np.moveaxis(squeezed, order.index(fixed[0]), 0)


@pytest.mark.parametrize(
    ("switch", "target", "flip"),
    [
        (0.4, 2, 0.310550),
        (0.4, 3, 0.187598),
        (0.4, 4, 0.091749),
        (0.2, 6, 0.053473),
        (0.2, 8, 0.008208),
        (0.5, 1, 0.397693),
    ],
)
def test_printed_flip_probabilities_are_reproduced(switch, target, flip):
    assert printed_response(target, switch).flip == pytest.approx(flip, abs=1e-6)


def test_T29_printed_flip_probability_leaks_more_than_promised():
    flip = printed_response(8, 0.2).flip
    assert flip == pytest.approx(0.008208, abs=1e-6)
    leaked, target, known = response_leakage(symmetric(0.2), 5, flip)
    assert leaked == pytest.approx(8.842322, abs=1e-5)
    assert leaked > 8
    assert (target, known) == (2, (0, 4))


def test_CE8_formula_with_switch_probability_r_fails_for_large_targets():
    """With small ones it spends too much noise instead."""
    large, _, known = response_leakage(symmetric(0.2), 7, printed_response(6, 0.2).flip)
    assert large == pytest.approx(6.343, abs=1e-3)
    assert known == (0, 6)
    small, _, _ = response_leakage(symmetric(0.4), 5, printed_response(0.5, 0.4).flip)
    assert small < 0.25


def test_CE8_formula_with_switch_probability_r_over_2_fails_without_knowledge():
    """Seven records pass the promise already; the limit is a closed form."""
    printed = printed_response(1, 0.5)
    leaked, _, known = response_leakage(symmetric(0.25), 7, printed.flip)
    assert known == ()
    assert 1.1 < leaked
    limit = 2 * math.asinh(3 * math.sinh(printed.level / 2))
    assert leaked < limit
    assert limit == pytest.approx(1.184, abs=1e-3)


def test_CE8_flip_probability_of_the_exact_level_is_sound():
    chain = MarkovChain(symmetric(0.4), length=5)
    level = calibrate(MarkovChain(symmetric(0.4)), 2.0).epsilon
    assert level == pytest.approx(1.4294, abs=1e-4)
    flip = 1 / (1 + math.exp(level))
    assert flip == pytest.approx(0.19319, abs=1e-5)
    leaked, _, _ = response_leakage(chain.transition, 5, flip)
    assert leaked <= 2.0


def test_T30_corrected_law_sums_to_one_and_the_printed_one_does_not():
    n, ones, flip = 20, 8, 0.3
    assert response_law(ones, n - ones, flip=flip).sum() == pytest.approx(1, abs=1e-12)
    printed = sum(
        math.comb(ones, i)
        * math.comb(n - ones, k - i)
        * (1 - flip) ** (n - ones + i)
        * flip ** (ones - i)
        for k in range(n + 1)
        for i in range(k + 1)
        if i <= ones and k - i <= n - ones
    )
    assert printed == pytest.approx(56.6939, abs=1e-4)
    assert printed == pytest.approx((2 * (1 - flip)) ** (n - ones))


def test_CE17_corrected_law_is_the_one_of_simulated_responses():
    rng = np.random.default_rng(17)
    bits = np.r_[np.ones(8, bool), np.zeros(12, bool)]
    reported = bits ^ (rng.random((200_000, 20)) < 0.3)
    seen = np.bincount(reported.sum(axis=1), minlength=21) / 200_000
    law = response_law(8, 12, flip=0.3)
    assert np.abs(seen - law).max() < 5 * math.sqrt(0.25 / 200_000)


@pytest.mark.parametrize(("r", "B", "flip", "rr", "source", "exact"), RESPONSES)
def test_figure_6_5_errors_of_response_and_laplace(r, B, flip, rr, source, exact):
    found = printed_response(B, r).flip
    assert found == pytest.approx(flip, abs=1e-6)
    error = response_accuracy(0.05, records=700, ones=350, flip=found)
    assert error == pytest.approx(rr, abs=0.01)
    if source is None:
        assert theorem_6_20_error(B, r) is None
    else:
        assert theorem_6_20_error(B, r) == pytest.approx(source, abs=1e-3)


@pytest.mark.parametrize(("r", "B", "flip", "rr", "source", "exact"), RESPONSES)
def test_figure_6_5_laplace_at_the_exact_level(r, B, flip, rr, source, exact):
    found = calibrate(MarkovChain(symmetric(r)), B, query=CountQuery())
    # The figure is about continuous noise; what is released of a count is whole.
    continuous = laplace_accuracy(found.noise_scale, 0.05)
    assert continuous == pytest.approx(exact, abs=2e-3)
    assert continuous < found.accuracy.alpha <= math.ceil(continuous) + 1


@pytest.mark.parametrize(
    ("r", "B", "alpha", "response", "laplace"),
    [
        (0.4, 3, 5, 0.68826, 0.001017),
        (0.4, 3, 20, 0.151918, 1.1e-12),
        (0.3, 4, 5, 0.649751, 0.047168),
    ],
)
def test_figure_6_4_probabilities_of_an_error(r, B, alpha, response, laplace):
    flip = printed_response(B, r).flip
    found = response_confidence(alpha, records=500, ones=250, flip=flip)
    assert found == pytest.approx(response, abs=1e-5)
    level = B - 4 * math.log((1 - r) / r)
    assert math.exp(-alpha * level) == pytest.approx(laplace, rel=0.03)


def test_CE18_response_has_less_error_just_above_the_least_target():
    """So Laplace noise is not better for all values: below 1.66 and 5.745 it is not."""
    for r, low, high in ((0.4, 1.63, 1.70), (0.2, 5.6, 5.8)):
        least = 4 * math.log((1 - r) / r)
        assert least < low

        def errors(target, r=r):
            flip = printed_response(target, r).flip
            response = response_accuracy(0.05, records=700, ones=350, flip=flip)
            return response, theorem_6_20_error(target, r)

        response, laplace = errors(low)
        assert response < laplace
        response, laplace = errors(high)
        assert response > laplace


def test_quilt_scale_of_the_activity_chain():
    row = quilt_scale(ACTIVITY, 1.0, length=17568)
    assert row.noise_scale == pytest.approx(14.854, abs=5e-4)
    assert not row.is_guarantee
    ours = calibrate(MarkovChain(ACTIVITY, length=17568), 1.0, query=CountQuery())
    assert ours.noise_scale == pytest.approx(4.004, abs=1e-3)


def test_zhao_offsets_of_the_master_thesis():
    rounded = [[0.882, 0.118], [0.305, 0.695]]
    assert zhao_leakage(0.0, rounded) == pytest.approx(10.639363326594765, abs=1e-9)
    assert zhao_leakage(0.0, ACTIVITY) == pytest.approx(10.660147523767337, abs=1e-9)
    left, right = [[0.9, 0.1], [0.8, 0.2]], [[0.9, 0.1], [0.2, 0.8]]
    assert zhao_leakage(0.0, left) == pytest.approx(4.1589, abs=1e-4)
    assert zhao_leakage(0.0, right) == pytest.approx(12.4766, abs=1e-4)


def test_theorem_6_20_cannot_reach_small_targets_on_the_activity_chain():
    chain = MarkovChain([[0.882, 0.118], [0.305, 0.695]])
    with pytest.raises(InfeasibleTarget) as refused:
        calibrate(chain, 8.0, method="gamma")
    assert refused.value.least == pytest.approx(8.046030, abs=1e-6)


def test_yang_scale_is_the_general_bound_with_all_records():
    assert yang_scale(1.0, 17568).noise_scale == pytest.approx(17568)
    assert laplace_accuracy(yang_scale(10.0, 17568).noise_scale, 0.05) == pytest.approx(
        5262.90, abs=0.01
    )


def test_wasserstein_scale_is_the_exact_gaussian_one():
    """AR(1) with phi = 1/2: factors 2, 2.5 and 2.8125 for 3, 5 and 8 records."""
    for n, factor in ((3, 2.0), (5, 2.5), (8, 2.8125)):
        cov = 0.5 ** np.abs(np.subtract.outer(np.arange(n), np.arange(n)))
        row = gaussian_wasserstein_scale(cov, 1.0, gap=1.0)
        assert row.noise_scale == pytest.approx(factor, rel=1e-9)
