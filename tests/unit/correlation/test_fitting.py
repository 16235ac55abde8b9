"""From data to a model: counts, regions, tests, and warnings."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy import stats

from undertow.correlation.gaussian.model import correlation_upper_limit, fit_gaussian
from undertow.correlation.markov.chain import (
    MarkovChain,
    fit_markov,
    fit_markov_private,
)
from undertow.correlation.markov.projective import projective_diameter
from undertow.correlation.observation import (
    anytime_interval,
    code_series,
    count_transitions,
)
from undertow.errors import EstimatedModelWarning, ModelError
from undertow.mechanisms import Draw, SimulatedSource


def simulate(transition, length: int, seed: int) -> np.ndarray:
    chain = MarkovChain(transition, length=length)
    return chain.sample(1, rng=np.random.default_rng(seed))[0]


def test_pairs_that_touch_a_missing_record_are_dropped():
    fit = fit_markov([0, 0, None, 1, 1, float("nan"), 0], public=True, states=[0, 1])
    assert fit.counts.tolist() == [[1, 0], [0, 1]]
    assert fit.missing == 2
    assert fit.length == 7


def test_several_series_are_not_joined():
    apart = fit_markov([[0, 1], [1, 0]], public=True)
    joined = fit_markov([0, 1, 1, 0], public=True)
    assert apart.counts.tolist() == [[0, 1], [1, 0]]
    assert joined.counts.tolist() == [[0, 1], [1, 1]]


def test_marks_of_missing_records_can_be_named():
    coded, states = code_series(["a", "?", "b"], missing=["?"])
    assert coded[0].tolist() == [0, -1, 1]
    assert states == ("a", "b")


def test_states_that_cannot_be_ordered_are_ordered_by_name():
    _, states = code_series([1, "a", 1])
    assert set(states) == {1, "a"}


@pytest.mark.parametrize(
    ("series", "options", "words"),
    [
        ([0, 0, 0], {}, "at least two states"),
        ([None, None], {}, "at least two states, got none"),
        ([0, 1, 2], {"states": [0, 1]}, "one of the 2 states"),
        ([0, 1], {"states": [0, 0]}, "distinct"),
        ([0, 0, 1], {}, "left at least once"),
    ],
)
def test_series_that_fit_no_chain_are_refused_in_one_sentence(series, options, words):
    with pytest.raises(ModelError, match=words):
        fit_markov(series, public=True, **options)


def test_fitting_on_the_private_series_warns():
    with pytest.warns(EstimatedModelWarning, match="public"):
        fit_markov([0, 1, 0, 1, 1, 0])
    with pytest.warns(EstimatedModelWarning, match="public"):
        fit_gaussian(np.random.default_rng(0).normal(size=(20, 2)))


def test_T33_activity_counts_give_their_ratio():
    counts = np.array([[9713, 1295], [1295, 2955]])
    runs = []
    for now in (0, 1):
        for then in (0, 1):
            runs += [[now, then]] * counts[now, then]
    fit = fit_markov(runs, public=True)
    assert fit.counts.tolist() == counts.tolist()
    assert fit.gamma == pytest.approx(7.500386, abs=1e-6)
    assert 4 * math.log(fit.gamma) == pytest.approx(8.059818, abs=1e-6)


def test_T34_fishers_upper_limit():
    assert correlation_upper_limit(0.27535, 898) == pytest.approx(0.325355, abs=1e-6)
    assert correlation_upper_limit(-0.27535, 898) == correlation_upper_limit(
        0.27535, 898
    )


def test_trap_c04_limits_are_wider_than_the_point_and_shrink_with_data():
    widths = []
    for length in (200, 2000, 20_000):
        fit = fit_markov(simulate([[0.8, 0.2], [0.3, 0.7]], length, 1), public=True)
        assert (fit.lower < fit.transition).all()
        assert (fit.transition < fit.upper).all()
        assert fit.diameter < fit.diameter_upper
        widths.append(float((fit.upper - fit.lower).max()))
    assert widths[0] > widths[1] > widths[2]


def test_trap_c05_replacing_one_record_moves_the_counts_by_four():
    rng = np.random.default_rng(2)
    most = 0
    for _ in range(300):
        series = rng.integers(0, 3, 8)
        other = series.copy()
        other[rng.integers(8)] = rng.integers(3)
        moved = count_transitions([series], 3) - count_transitions([other], 3)
        most = max(most, int(np.abs(moved).sum()))
    assert most == 4


def test_trap_c07_missing_is_not_inactive():
    series = [0, 1, 1, 0, 1, 1, *[None] * 9, 1, 0, 0, 1]
    dropped = fit_markov(series, public=True)
    coded = fit_markov([0 if x is None else x for x in series], public=True)
    assert dropped.gamma != coded.gamma


def test_a_transition_never_seen_makes_the_region_infinite_not_smoothed():
    fit = fit_markov([0, 1] * 50 + [1], public=True)
    assert fit.lower.min() == 0
    assert fit.diameter_upper == math.inf
    smoothed = fit_markov([0, 1] * 50 + [1], public=True, smoothing=1.0)
    assert math.isfinite(smoothed.diameter)


def test_the_region_contains_chains_inside_the_limits_only():
    fit = fit_markov(simulate([[0.8, 0.2], [0.3, 0.7]], 3000, 4), public=True)
    corner = np.array(
        [[fit.upper[0, 0], 1 - fit.upper[0, 0]], [fit.lower[1, 0], 1 - fit.lower[1, 0]]]
    )
    assert projective_diameter(corner) <= fit.diameter_upper * (1 + 1e-9)
    assert projective_diameter(corner) == pytest.approx(fit.diameter_upper, rel=1e-6)


def test_a_calibration_over_the_region_is_more_careful_than_over_the_point():
    from undertow.correlation.calibrate import calibrate

    fit = fit_markov(simulate([[0.8, 0.2], [0.3, 0.7]], 3000, 4), public=True)
    point = calibrate(fit.chain(3000), 1.0)
    region = calibrate(fit.region(3000), 1.0)
    assert 0 < region.epsilon < point.epsilon


@pytest.mark.statistical
@pytest.mark.slow
def test_limits_miss_the_truth_less_often_than_stated():
    """False-alarm rate of this test below 1e-6: misses are binomial with p <= 0.1."""
    truth = np.array([[0.9, 0.1], [0.4, 0.6]])
    missed = 0
    for seed in range(300):
        fit = fit_markov(simulate(truth, 120, seed), public=True, confidence=0.9)
        inside = (fit.lower <= truth) & (truth <= fit.upper)
        missed += not inside.all()
    assert missed <= stats.binom.isf(1e-6, 300, 0.1)


@pytest.mark.parametrize(("hits", "misses"), [(0, 0), (0, 30), (17, 3), (500, 500)])
def test_an_interval_is_where_the_mixture_ratio_stays_small(hits: int, misses: int):
    low, high = anytime_interval(hits, misses, error=0.05)

    def log_ratio(p: float) -> float:
        truth = stats.binom.logpmf(hits, hits + misses, p)
        mixture = -math.log(hits + misses + 1)  # beta-binomial with uniform weight
        return mixture - truth

    bound = math.log(1 / 0.05)
    if low > 0:
        assert log_ratio(low) == pytest.approx(bound, abs=1e-6)
    if high < 1:
        assert log_ratio(high) == pytest.approx(bound, abs=1e-6)
    assert low <= high


def test_an_interval_is_wider_than_the_exact_one_at_a_fixed_size():
    low, high = anytime_interval(20, 80, error=0.05)
    exact = stats.binomtest(20, 100).proportion_ci(0.95)
    assert low < exact.low < exact.high < high


@pytest.mark.parametrize("counts", [(-1, 2), (1, math.inf), (math.nan, 1)])
def test_counts_that_are_none_are_refused(counts):
    with pytest.raises(ValueError, match="hits and misses"):
        anytime_interval(*counts, error=0.05)


def test_order_two_is_noticed():
    rng = np.random.default_rng(8)
    series = [0, 0]
    for _ in range(4000):
        series.append(int(rng.random() < (0.9 if series[-1] != series[-2] else 0.2)))
    doubts = fit_markov(series, public=True).doubts
    assert any("order one" in doubt for doubt in doubts)


def test_trap_l06_a_change_over_time_is_noticed():
    first = simulate([[0.9, 0.1], [0.5, 0.5]], 2000, 1)
    second = simulate([[0.5, 0.5], [0.2, 0.8]], 2000, 2)
    doubts = fit_markov(np.concatenate([first, second]), public=True).doubts
    assert any("whole time" in doubt for doubt in doubts)


@pytest.mark.slow
def test_a_true_chain_is_not_doubted():
    doubted = sum(
        bool(
            fit_markov(simulate([[0.7, 0.3], [0.4, 0.6]], 1500, s), public=True).doubts
        )
        for s in range(60)
    )
    assert doubted <= 8  # two tests at 1 %: 1.2 expected, 8 or more has chance 4e-5


def test_a_private_fit_is_near_the_truth_and_says_what_it_cost():
    series = simulate([[0.8, 0.2], [0.3, 0.7]], 20_000, 3)
    fit = fit_markov_private(series, 0.5, states=[0, 1], source=SimulatedSource(5))
    assert fit.budget == 0.5
    assert np.abs(fit.transition - [[0.8, 0.2], [0.3, 0.7]]).max() < 0.02
    exact = fit_markov(series, public=True)
    assert (fit.upper - fit.lower).min() > (exact.upper - exact.lower).min()


@pytest.mark.statistical
@pytest.mark.slow
def test_limits_of_a_private_fit_cover_the_truth():
    """Misses are binomial with p <= 0.1; false-alarm rate below 1e-6."""
    truth = np.array([[0.8, 0.2], [0.3, 0.7]])
    source = SimulatedSource(9)
    missed = 0
    for seed in range(200):
        fit = fit_markov_private(
            simulate(truth, 400, seed),
            1.0,
            states=[0, 1],
            confidence=0.9,
            source=source,
        )
        missed += not ((fit.lower <= truth) & (truth <= fit.upper)).all()
    assert missed <= stats.binom.isf(1e-6, 200, 0.1)


def test_a_private_fit_uses_secure_noise_by_default():
    fit = fit_markov_private([0, 1] * 200, 1.0, states=[0, 1])
    assert fit.counts.min() >= 0


def test_a_private_fit_of_almost_nothing_is_refused():
    class AlwaysLow:
        name, simulated = "low", True

        def laplace(self, scale, size):
            return Draw(np.full(size, -1000), True, "low")

    with pytest.raises(ModelError, match="noisy row"):
        fit_markov_private([0, 1], 0.01, states=[0, 1, 2], source=AlwaysLow())


def galton_like(groups: int, seed: int) -> np.ndarray:
    covariance = [[6.1, 0.42, 2.44], [0.42, 5.3, 1.67], [2.44, 1.67, 12.8]]
    rng = np.random.default_rng(seed)
    return rng.multivariate_normal([69, 64, 67], covariance, groups)


def test_a_gaussian_fit_has_the_sample_covariance_and_limits_beyond_it():
    rows = galton_like(900, 1)
    fit = fit_gaussian(rows, names=["father", "mother", "child"], public=True)
    assert fit.covariance == pytest.approx(np.cov(rows.T))
    assert fit.correlation < fit.correlation_upper < 1
    assert fit.deviation_ratio_upper > math.sqrt(12.8 / 5.3) * 0.9
    assert fit.model().size == 3
    assert fit.doubts == ()


def test_rows_with_a_missing_value_are_left_out_and_counted():
    rows = galton_like(50, 1)
    rows[3, 1] = math.nan
    fit = fit_gaussian(rows, public=True)
    assert (fit.groups, fit.dropped) == (49, 1)


def test_skewed_rows_are_doubted():
    rows = np.random.default_rng(1).exponential(size=(500, 2))
    assert fit_gaussian(rows, public=True).doubts


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([["a", "b"]], "table of numbers"),
        ([[1.0], [2.0]], "two columns"),
        ([[1.0, math.inf]] * 9, "finite"),
        ([[1.0, 2.0]] * 3, "complete groups"),
        ([[1.0, float(j)] for j in range(9)], "constant"),
    ],
)
def test_rows_that_fit_no_gaussian_are_refused(rows, words):
    with pytest.raises(ModelError, match=words):
        fit_gaussian(rows, public=True)


def test_a_perfect_correlation_has_no_limit():
    with pytest.raises(ValueError, match="correlation"):
        correlation_upper_limit(1.0, 100)


def test_fits_are_plain_for_json():
    chain = fit_markov([0, 1, 0, 0, 1, 1, 0], public=True)
    assert json.loads(json.dumps(chain.to_dict()))["states"] == ["0", "1"]
    table = fit_gaussian(galton_like(30, 2), public=True)
    assert json.loads(json.dumps(table.to_dict()))["groups"] == 30


@pytest.mark.statistical
def test_limits_of_a_gaussian_fit_cover_the_truth():
    """Misses are binomial with p about 0.1; false-alarm rate below 1e-6."""
    covariance = np.array([[6.1, 0.42, 2.44], [0.42, 5.3, 1.67], [2.44, 1.67, 12.8]])
    deviations = np.sqrt(np.diag(covariance))
    largest = 2.44 / (deviations[0] * deviations[2])
    ratio = deviations.max() / deviations.min()
    missed = 0
    for seed in range(300):
        fit = fit_gaussian(galton_like(100, seed), public=True, confidence=0.9)
        missed += fit.correlation_upper < largest or fit.deviation_ratio_upper < ratio
    assert missed <= stats.binom.isf(1e-6, 300, 0.1)


def test_the_region_of_a_gaussian_fit_has_a_larger_factor_than_the_point():
    from undertow.correlation.leak import leakage
    from undertow.correlation.query import LinearQuery

    fit = fit_gaussian(galton_like(900, 1), public=True)
    query = LinearQuery(clip=(0, 100))
    point = leakage(fit.model(), 1.0, query=query).value
    assert leakage(fit.region(), 1.0, query=query).value > point


def test_records_are_not_shown_in_messages():
    with pytest.raises(ModelError) as refusal:
        fit_markov_private([0, 1, 777] * 50, 1.0, states=[0, 1])
    assert "777" not in str(refusal.value)


def test_missing_records_of_every_float_type_are_missing():
    series = np.array([0, 1, np.nan, 1, 0, 0, 1], dtype=np.float32)
    assert fit_markov(series, public=True).missing == 1


def test_a_fit_below_the_least_level_is_refused():
    with pytest.raises(ValueError, match=r"at least 1e-12"):
        fit_markov_private([0, 1] * 50, 1e-20, states=[0, 1])


def test_columns_that_determine_each_other_are_refused():
    column = np.random.default_rng(1).normal(size=(50, 1))
    with pytest.raises(ModelError, match=r"combination of the others"):
        fit_gaussian(np.hstack([column, 2 * column]), public=True)


def test_normality_of_many_rows_needs_little_memory():
    rows = np.random.default_rng(1).normal(size=(200_000, 3))
    assert not fit_gaussian(rows, public=True).doubts


def test_skewness_is_the_mean_over_all_pairs():
    rows = np.random.default_rng(1).exponential(size=(40, 3))
    centred = rows - rows.mean(axis=0)
    products = centred @ np.linalg.solve(np.cov(rows.T, bias=True), centred.T)
    skew, kurtosis = fit_gaussian(rows, public=True).checks
    assert skew.statistic == pytest.approx(40 * (products**3).mean() / 6)
    mardia = ((np.diag(products) ** 2).mean() - 15) / math.sqrt(8 * 15 / 40)
    assert kurtosis.statistic == pytest.approx(mardia)
