"""Errata of the literature on correlation that no other test computes, by id.

CE: the thesis and the talk; LE: the master's thesis. Each test evaluates what is
printed next to what holds.
"""

from __future__ import annotations

import math
import os
from datetime import date
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from undertow.correlation import (
    CountQuery,
    Gaussian,
    LimitedGaussian,
    LinearQuery,
    MarkovChain,
    calibrate,
    gamma_budget,
    general_budget,
    two_point_law,
)
from undertow.correlation.finite import exact_leakage
from undertow.correlation.markov.two_state import TwoStateTheorem
from undertow.mechanisms import (
    RandomizedResponse,
    accuracy_interval,
    laplace_accuracy,
    laplace_scale,
)
from undertow_studies.comparators import response_accuracy
from undertow_studies.dataset import (
    FAMILY_IQ_COVARIANCE,
    electricity_stand_in,
    load_activity,
    load_galton,
    read_columns,
    synthetic_iq,
)
from undertow_studies.thesis_model import PRINTED_CHAINS

ACTIVITY = [[0.882, 0.118], [0.305, 0.695]]
METER_80 = [[0.818, 0.182], [0.371, 0.629]]
HERE = os.environ.get("UNDERTOW_DATA")
needs_data = pytest.mark.skipif(HERE is None, reason="UNDERTOW_DATA names no folder")


def error_at(level: float, sensitivity: float = 1.0) -> float:
    """Return the error of Laplace noise that is passed once in twenty."""
    return laplace_accuracy(laplace_scale(sensitivity, level), 0.05)


def test_CE20_intelligence_has_standard_deviation_15_not_variance_15():
    mothers = math.sqrt(FAMILY_IQ_COVARIANCE[1][1])
    assert mothers == pytest.approx(15.0)
    assert synthetic_iq().pairs.std(axis=0) == pytest.approx([15, 15], abs=0.3)
    # As printed, nobody would be above 130 or near the ends of the clip interval.
    assert norm.sf((130 - 100) / math.sqrt(15)) < 1e-14 < norm.sf((130 - 100) / 15)
    assert norm.sf((160 - 100) / math.sqrt(15)) < 1e-50


def test_CE21_731_records_are_the_days_of_two_years():
    days = (date(2014, 4, 1) - date(2012, 4, 1)).days + 1  # span of the meter data
    assert days == 731 == len(electricity_stand_in()[80].states)
    assert 731 / 24 < 31  # as hours they would be one month


def test_CE22_without_a_curator_every_record_carries_noise():
    """The same leakage, locally: each bit flipped, and an error that grows with n."""
    chain = MarkovChain(METER_80, length=731)
    level = TwoStateTheorem().invert(chain, 1.0, query=CountQuery())
    curator = error_at(level)
    flip = 1 / (1 + math.exp(level))
    local = [
        response_accuracy(0.05, records=n, ones=n // 3, flip=flip) for n in (731, 2924)
    ]
    assert curator == pytest.approx(8.156, abs=1e-3)
    assert local[0] > 15 * curator
    assert local[1] == pytest.approx(2 * local[0], rel=0.03)


def test_CE23_the_savings_are_198_points_and_343_inches():
    def saved(correlation: float, group: int, clip: tuple[float, float]) -> float:
        model, sum_of = LimitedGaussian(correlation, group), LinearQuery(clip=clip)
        thesis, general = (
            calibrate(model, 1.0, query=sum_of, method=method).accuracy
            for method in ("thesis", "general")
        )
        return general.alpha - thesis.alpha

    family, synthetic = saved(0.4483, 2, (40, 160)), saved(0.45, 2, (40, 160))
    assert family == pytest.approx(198.329, abs=1e-3)
    assert synthetic == pytest.approx(197.718, abs=1e-3)
    assert max(family, synthetic) < 400  # printed: more than 400 units
    assert saved(0.275, 3, (0, 100)) == pytest.approx(343.476, abs=1e-3)


def test_CE24_the_general_bound_errs_ten_thousand_times_more_not_a_hundred_thousand():
    length, gamma = 17_568, MarkovChain(ACTIVITY).gamma
    targets = np.arange(8.25, 20.01, 0.25)
    ratios = [gamma_budget(B, gamma) / general_budget(B, length) for B in targets]
    assert max(ratios) == ratios[-1] == pytest.approx(10_500, abs=1)
    at_ten = gamma_budget(10.0, gamma) / general_budget(10.0, length)
    assert at_ten == pytest.approx(3433, abs=1)
    assert max(ratios) < length < 1e5  # never above n


def test_CE26_theorem_6_3_calibrates_the_general_bound_not_the_dp_baseline():
    model, sum_of = LimitedGaussian(0.275, 3), LinearQuery(clip=(0, 100))
    general = calibrate(model, 1.0, query=sum_of, method="general")
    assert general.epsilon == pytest.approx(1 / 3)
    assert general.accuracy.alpha == pytest.approx(898.720, abs=1e-3)
    assert error_at(1.0, 100) == pytest.approx(299.573, abs=1e-3)  # the baseline drawn


def test_CE29_the_error_on_electricity_has_no_limit_at_the_least_leakage():
    # Mean error of Laplace noise 1/τ on a count c is 100/(τ c) per cent.
    for name, least in (("70", 1.74), ("80", 4.16), ("90", 7.54)):
        chain = MarkovChain(PRINTED_CHAINS[f"Electricity {name}"])
        expected = 731 * float(chain.stationary()[1])
        assert 1000 / expected == pytest.approx(least, abs=0.005)
        for above in (1e-3, 1.0):  # the DP level that a promise leaves
            assert 100 / (above * expected) > 0.1


def test_CE28_an_answer_of_32_with_an_error_of_one_is_31_to_33():
    low, high = accuracy_interval(32, 1)
    assert (low, high) == (31.0, 33.0)
    # Laplace noise of accuracy 1 leaves 31 to 32 half of the time it is close.
    noise = np.random.default_rng(28).laplace(scale=1 / math.log(20), size=20_000)
    inside = np.mean(np.abs(noise) <= 1)
    printed = np.mean((32 - noise >= 31) & (32 - noise <= 32))
    assert inside > 0.94 > 0.5 > printed


def test_LE4_the_denominator_of_equation_64_is_conditioned_on_the_other_secret():
    law = two_point_law((0, 0, 0), (1, 1, 1))
    mechanism = RandomizedResponse((0, 1), 1.0)
    keep = math.exp(1.0) / (1 + math.exp(1.0))
    # The first record decides the others: one term is left of each sum. Output 000.
    numerator = keep**3
    printed = keep * (1 - keep) ** 2  # others of the second database, X_i = x_i
    corrected = (1 - keep) ** 3  # X_i = x_i'
    assert math.log(numerator / printed) == pytest.approx(2.0)
    assert math.log(numerator / corrected) == pytest.approx(3.0)
    assert exact_leakage(law, mechanism).value == pytest.approx(3.0)


def test_a_conditional_law_and_its_mean_are_two_statements():
    model = Gaussian([[1.0, 0.5], [0.5, 2.0]], [1.0, -1.0])
    given = model.given({0: 3.0})
    mean = given.mean[0]
    assert mean == pytest.approx(-1 + 0.5 * (3.0 - 1.0))  # the second Equation 123
    drawn = given.sample(20_000, rng=np.random.default_rng(7))[:, 1]
    assert drawn.mean() == pytest.approx(mean, abs=0.05)
    # The first depends on its argument: densities at two places differ.
    spread = drawn.std()
    near, far = norm.pdf([mean, mean + 2], mean, spread)
    assert near > 2 * far


@pytest.mark.data
@needs_data
def test_LE18_galtons_897_records_are_898_of_197_families():
    folder = Path(HERE)
    found = load_galton(folder)
    printed = [0.275, 0.202, 0.074]  # child-father, child-mother, father-mother
    assert (len(found.trios), len(set(found.families))) == (898, 197)
    assert _correlations(found.trios) == pytest.approx(printed, abs=5e-4)
    other = read_columns(
        folder / "galton" / "galton_families.csv",
        ("family", "father", "mother", "child_height"),
    )
    trios = np.array(
        [other["father"], other["mother"], other["child_height"]], dtype=float
    ).T
    assert (len(trios), len(set(other["family"]))) == (934, 205)
    assert _correlations(trios) != pytest.approx(printed, abs=5e-3)


def _correlations(trios: np.ndarray) -> list[float]:
    table = np.corrcoef(trios.T)
    return [table[0, 2], table[1, 2], table[0, 1]]


def test_LE19_4250_active_intervals_are_80_a_day_over_53_days_only():
    total = 4250
    assert total / 61 == pytest.approx(69.7, abs=0.05)
    assert total / 53 == pytest.approx(80.2, abs=0.05)
    weight = MarkovChain(ACTIVITY).stationary()[1]
    assert 288 * weight == pytest.approx(80.3, abs=0.1)  # what the chain itself says


@pytest.mark.data
@needs_data
def test_LE19_eight_days_of_activity_are_missing():
    found = load_activity(Path(HERE))
    complete = found.complete_days()
    assert (found.count, len(complete)) == (4250, 53)
    assert np.mean([day.sum() for day in complete]) == pytest.approx(80.19, abs=0.01)


def test_LE10_the_norm_of_a_column_sums_over_all_rows():
    """Over fewer rows than the matrix has, the column's norm falls below its entry."""
    matrix = np.array([[2.0, 0.0, 0.9], [0.0, 2.0, 0.9], [0.9, 0.9, 2.0]])
    column = matrix[:, 0]
    largest = np.linalg.eigvalsh(matrix)[-1]
    assert abs(column[2]) <= np.linalg.norm(column) <= largest
    few = np.linalg.norm(column[1:2])  # a sum over m = 1 of the d = 3 rows
    assert abs(column[2]) > few
