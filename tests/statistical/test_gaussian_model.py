"""Draws of Gaussian models have the law they say, and no other.

Each test whitens the draws with a covariance and compares the total squared length with
its chi-square law, two-sided at a false-alarm rate of 1e-9; a covariance wrong by ten
per cent is rejected.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from undertow.correlation.gaussian import Gaussian

ALARM = 1e-9
DRAWS = 40_000
KNOWN = {0: 1.5, 2: -0.5}

LADDER = [[2.0, -0.5, -0.2], [-0.5, 2.0, -0.5], [-0.2, -0.5, 2.0]]
PAIR = [[1.0, -0.4], [-0.4, 1.5]]
MODELS = {
    "dense": lambda: Gaussian([[2.0, 0.5, 0.1], [0.5, 1.0, 0.3], [0.1, 0.3, 1.5]]),
    "precision": lambda: Gaussian.from_precision(LADDER, mean=[1.0, 2.0, 3.0]),
    "blocks": lambda: Gaussian.from_blocks([PAIR, [[2.0]]], [2, 1]),
    "series": lambda: Gaussian.autoregressive(0.8, 6, sd=2.0, mean=-1.0),
    "toeplitz": lambda: Gaussian.toeplitz([2.0, 0.8, 0.2, 0.0, 0.0]),
    "exchangeable": lambda: Gaussian.exchangeable(
        [1, 3], correlation=[[1, 0.3], [0.3, 0.5]], sds=[1.0, 2.0]
    ),
}


def p_value(draws, mean, covariance):
    """Return the two-sided p-value of the whitened squared length."""
    root = np.linalg.cholesky(covariance)
    white = np.linalg.solve(root, (draws - mean).T)
    law = stats.chi2(white.size)
    total = float((white**2).sum())
    return 2 * min(law.cdf(total), law.sf(total))


def cross_terms(draws, mean, covariance):
    """Return the largest standard score of the whitened products: zero if right."""
    white = np.linalg.solve(np.linalg.cholesky(covariance), (draws - mean).T)
    products = white @ white.T / np.sqrt(white.shape[1])
    return float(np.abs(products[np.triu_indices(len(white), 1)]).max(initial=0.0))


@pytest.mark.statistical
@pytest.mark.parametrize(("factor", "accept"), [(1.0, True), (1.1, False)])
@pytest.mark.parametrize("name", MODELS)
def test_draws_have_their_covariance_and_no_other(name, factor, accept):
    model = MODELS[name]()
    draws = model.sample(DRAWS, rng=np.random.default_rng(11))
    covariance = model.columns(range(model.size))
    assert (p_value(draws, model.mean, covariance * factor) > ALARM) == accept
    # 6.5 standard deviations: below 1e-9 for the at most fifteen products
    assert cross_terms(draws, model.mean, covariance) < 6.5
    assert np.abs(draws.mean(axis=0) - model.mean).max() < 6.5 * np.sqrt(
        covariance.max() / DRAWS
    )


@pytest.mark.statistical
@pytest.mark.parametrize(("factor", "accept"), [(1.0, True), (1.1, False)])
@pytest.mark.parametrize("name", MODELS)
def test_conditional_draws_have_the_conditional_law(name, factor, accept):
    model = MODELS[name]()
    law = model.given(KNOWN)
    draws = model.sample_given(KNOWN, DRAWS, rng=np.random.default_rng(12))
    unknown = draws[:, list(law.unknown)]
    assert (p_value(unknown, law.mean, law.covariance * factor) > ALARM) == accept
    assert cross_terms(unknown, law.mean, law.covariance) < 6.5
    assert np.all(draws[:, [0, 2]] == [1.5, -0.5])


@pytest.mark.statistical
def test_a_long_series_sampled_by_fourier_has_its_autocovariance():
    lags = np.zeros(3000)
    lags[:3] = [1.0, 0.4, 0.1]
    draws = Gaussian.toeplitz(lags).sample(60, rng=np.random.default_rng(5))
    for lag, expected in enumerate((1.0, 0.4, 0.1, 0.0)):
        product = draws[:, : 3000 - lag] * draws[:, lag:]
        # the variance of one product is at most 2, and six neighbours depend on it
        error = 6.5 * np.sqrt(2 * 7 / product.size)
        assert product.mean() == pytest.approx(expected, abs=error)
