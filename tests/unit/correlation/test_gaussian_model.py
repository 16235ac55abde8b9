"""Gaussian models: construction, conditioning and what they say of themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import block_diag, toeplitz
from scipy.sparse import csr_array, diags

from undertow.correlation.gaussian import (
    AutoregressiveGaussian,
    Gaussian,
    LimitedGaussian,
    exchangeable_factor,
    worst_factor,
)
from undertow.correlation.gaussian.shift import Saturation
from undertow.errors import ModelError, NotApplicable

TRIO = np.array([[1.0, 0.1, 0.3], [0.1, 1.2, 0.3], [0.3, 0.3, 2.0]])
PAIR = np.array([[1.0, -0.4], [-0.4, 1.5]])


def all_models():
    """The same or different laws through every constructor, with dense covariance."""
    ladder = np.array([[2.0, -0.5, -0.2], [-0.5, 2.0, -0.5], [-0.2, -0.5, 2.0]])
    classes = [[1.0, 0.2], [0.2, 0.4]]
    family = np.array([[1, 0.4, 0.4], [0.4, 4, 1.6], [0.4, 1.6, 4]])
    mean = np.array([1.0, -2.0, 0.5])
    return {
        "dense": (Gaussian(TRIO, mean), TRIO, mean),
        "precision": (
            Gaussian.from_precision(ladder, mean),
            np.linalg.inv(ladder),
            mean,
        ),
        "sparse": (
            Gaussian.from_precision(csr_array(ladder), mean),
            np.linalg.inv(ladder),
            mean,
        ),
        "blocks": (
            Gaussian.from_blocks([PAIR, [[2.0]]], [2, 1], means=[[1.0, 2.0], [3.0]]),
            block_diag(PAIR, PAIR, [[2.0]]),
            np.array([1.0, 2.0, 1.0, 2.0, 3.0]),
        ),
        "series": (
            Gaussian.autoregressive(-0.6, 5, sd=2.0, mean=1.0),
            4 * (-0.6) ** np.abs(np.subtract.outer(np.arange(5), np.arange(5))),
            np.ones(5),
        ),
        "toeplitz": (
            Gaussian.toeplitz([2.0, 0.5, 0.1, 0.0]),
            toeplitz([2.0, 0.5, 0.1, 0.0]),
            np.zeros(4),
        ),
        "exchangeable": (
            Gaussian.exchangeable(
                [1, 2], correlation=classes, sds=[1, 2], groups=2, mean=[1.0, 5.0]
            ),
            block_diag(family, family),
            np.array([1.0, 5.0, 5.0, 1.0, 5.0, 5.0]),
        ),
    }


NAMES = tuple(all_models())


@pytest.mark.parametrize("name", NAMES)
def test_every_constructor_gives_the_covariance_it_says(name):
    model, covariance, mean = all_models()[name]
    assert model.size == len(covariance)
    assert model.mean == pytest.approx(mean)
    columns = model.columns(range(model.size))
    assert columns == pytest.approx(covariance, abs=1e-12)
    assert str(model.size) in model.summary
    assert model.summary in repr(model)
    assert model.assumptions().unchecked


@pytest.mark.parametrize("name", NAMES)
def test_conditioning_is_the_schur_complement(name):
    model, covariance, mean = all_models()[name]
    known = {0: 2.0, 2: -1.0}
    law = model.given(known)
    told, unknown = [0, 2], [j for j in range(len(covariance)) if j not in (0, 2)]
    inverse = np.linalg.inv(covariance[np.ix_(told, told)])
    between = covariance[np.ix_(unknown, told)]
    values = np.array([2.0, -1.0])
    assert law.unknown == tuple(unknown)
    expected = mean[unknown] + between @ inverse @ (values - mean[told])
    assert law.mean == pytest.approx(expected, abs=1e-10)
    rest = covariance[np.ix_(unknown, unknown)] - between @ inverse @ between.T
    assert law.covariance == pytest.approx(rest, abs=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_draws_have_the_shape_and_the_known_values(name):
    model, _, _ = all_models()[name]
    rng = np.random.default_rng(0)
    assert model.sample(4, rng=rng).shape == (4, model.size)
    draws = model.sample_given({1: 7.0}, 3, rng=rng)
    assert draws.shape == (3, model.size)
    assert np.all(draws[:, 1] == 7.0)
    everything = {j: float(j) for j in range(model.size)}
    fixed = model.sample_given(everything, 2, rng=rng)
    assert fixed == pytest.approx(np.tile(np.arange(model.size), (2, 1)))
    assert model.given({}).mean == pytest.approx(model.mean)


@pytest.mark.parametrize("name", NAMES)
def test_every_block_gives_the_same_search_as_the_dense_matrix(name):
    from undertow.correlation.gaussian.law import searched_factor

    model, covariance, _ = all_models()[name]
    dense = searched_factor(Gaussian(covariance + 0.0))
    found = searched_factor(model)
    assert found.value == pytest.approx(dense.value, abs=1e-9)
    weights = np.arange(1.0, model.size + 1)
    dense = searched_factor(Gaussian(covariance), weights=weights)
    found = searched_factor(model, weights=weights)
    assert found.value == pytest.approx(dense.value, abs=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_limits_are_those_of_the_dense_matrix(name):
    model, covariance, _ = all_models()[name]
    dense = Gaussian(np.where(np.abs(covariance) < 1e-14, 0.0, covariance)).limits()
    found = model.limits()
    assert found.group >= dense.group
    assert found.correlation == pytest.approx(dense.correlation, rel=1e-9)
    assert found.sd_ratio == pytest.approx(dense.sd_ratio, rel=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_structured_factors_agree_with_the_search(name):
    model, covariance, _ = all_models()[name]
    found = model.structured()
    assert found.value == pytest.approx(worst_factor(covariance).value, abs=1e-8)


def test_a_million_records_of_few_templates_are_one_search():
    model = Gaussian.from_blocks([TRIO, PAIR], [200_000, 200_000])
    assert model.size == 1_000_000
    assert len(model.blocks()) == 2
    weights = np.ones(model.size)
    weights[0] = 2.0
    assert len(model.blocks(weights)) == 3


def test_copies_of_a_block_in_a_dense_model_are_searched_once():
    model = Gaussian(block_diag(TRIO, TRIO, PAIR))
    assert len(model.blocks()) == 2
    assert [len(group) for group in model.groups] == [3, 3, 2]
    assert model.largest_group == 3


def test_copies_of_a_block_in_a_sparse_model_are_searched_once():
    small = np.array([[2.0, -1.0], [-1.0, 2.0]])
    model = Gaussian.from_precision(block_diag(small, [[3.0]], small, [[3.0]]))
    assert len(model.blocks()) == 2
    assert len(model.blocks(np.array([1.0, 1, 1, 1, 2, 1]))) == 3


def test_a_long_sparse_series_refuses_what_needs_its_covariance():
    n = 10_000
    chain = diags([[-0.4], [1.0], [-0.4]], offsets=[-1, 0, 1], shape=(n, n))
    model = Gaussian.from_precision(chain)
    with pytest.raises(NotApplicable, match="structured"):
        model.limits()
    with pytest.raises(ModelError, match="too many"):
        model.given({0: 1.0})
    rng = np.random.default_rng(0)
    assert model.sample_given({0: 1.0, 5000: 2.0}, 1, rng=rng).shape == (1, n)
    assert model.structured().value == pytest.approx(3.0, abs=1e-9)
    assert model.precision.shape == (n, n)


def test_a_long_stationary_series_is_shown_positive_and_sampled_by_fourier():
    lags = np.zeros(5000)
    lags[:3] = [1.0, 0.3, -0.1]
    model = Gaussian.toeplitz(lags)
    assert model.sample(2, rng=np.random.default_rng(1)).shape == (2, 5000)
    assert model.structured().value == pytest.approx(1.8, abs=1e-9)
    assert model.autocovariance[1] == 0.3
    with pytest.raises(NotApplicable, match="at most 2000"):
        model.blocks()
    slow = 0.95 ** np.arange(5000)  # not dominant, but embeddable
    assert Gaussian.toeplitz(slow).sample(1, rng=np.random.default_rng(1)).size == 5000
    with pytest.raises(ModelError, match="circulant"):
        Gaussian.toeplitz(np.where(np.arange(5000) < 2, [1.0] * 5000, 0.0))


def test_a_dominant_series_without_embedding_cannot_be_sampled_when_long():
    from undertow.correlation.gaussian import block as stationary

    lags = np.zeros(10)
    lags[[0, -1]] = [1.0, 0.4]
    assert stationary._spectrum(lags).min() > 0
    lags[-1] = -1.4
    with pytest.raises(ModelError, match="sampling a long series"):
        stationary._embedded_sample(lags, 1, rng=np.random.default_rng(0))


def test_uncorrelated_series_are_independent():
    assert Gaussian.toeplitz([1.0, 0.0, 0.0]).largest_group == 1
    assert Gaussian.autoregressive(0.0, 10).largest_group == 1


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: Gaussian.toeplitz([[1.0]]), "vector"),
        (lambda: Gaussian.toeplitz([1.0, 2.0]), "positive definite"),
        (lambda: Gaussian.autoregressive(1.0, 5), r"\(-1, 1\)"),
        (lambda: Gaussian.from_precision([[1.0, 0.2], [0.1, 1.0]]), "symmetric"),
        (lambda: Gaussian.from_precision([1.0, 2.0]), "square"),
        (lambda: Gaussian.from_precision([[math.inf]]), "finite"),
        (lambda: Gaussian.from_precision([[1.0, 2], [2, 1.0]]), "positive definite"),
        (lambda: Gaussian.from_blocks([TRIO], [1, 2]), "2 counts for 1 templates"),
        (lambda: Gaussian.from_blocks([TRIO], [1], means=[]), "0 means"),
        (lambda: Gaussian.exchangeable([], correlation=[]), "at least one class"),
        (lambda: Gaussian.exchangeable([2], correlation=[[0.1, 0.2]]), "1 by 1"),
        (
            lambda: Gaussian.exchangeable([2, 2], correlation=[[0, 0.1], [0.2, 0]]),
            "symmetric",
        ),
        (
            lambda: Gaussian.exchangeable([2], correlation=[[0.1]], sds=[1.0, 2.0]),
            "each of the 1 classes",
        ),
        (lambda: Gaussian.exchangeable([3], correlation=[[-0.6]]), "positive definite"),
        (lambda: Gaussian(TRIO).given({0: math.nan}), "finite values"),
        (lambda: Gaussian.limited(1.0, 3), r"\[0, 1\)"),
        (lambda: Gaussian.limited(0.1, 3, sd_ratio=0.5), "at least 1"),
        (lambda: Gaussian.limited(0.1, 3, sds=[1.0, -1.0]), "positive"),
    ],
)
def test_malformed_models_are_refused_with_a_reason(build, words):
    with pytest.raises(ModelError, match=words):
        build()


def test_a_precision_with_rounding_asymmetry_is_accepted():
    matrix = np.array([[2.0, -1.0], [-1.0 + 1e-13, 2.0]])
    assert Gaussian.from_precision(matrix).largest_group == 2


def test_an_unknown_record_cannot_be_conditioned_on():
    with pytest.raises(ValueError, match=r"0\.\.2"):
        Gaussian(TRIO).given({3: 1.0})


# Exchangeable groups


@pytest.mark.parametrize("seed", range(6))
def test_exchangeable_groups_agree_with_the_search_over_every_attacker(seed):
    rng = np.random.default_rng(seed)
    counts = [1, 2, 4] if seed % 2 else [3, 3]
    size = len(counts)
    rho = rng.uniform(-0.15, 0.35, (size, size))
    rho = (rho + rho.T) / 2
    rho[np.diag_indices(size)] = rng.uniform(0.0, 0.5, size)
    sds = np.exp(0.5 * rng.normal(size=size))
    model = Gaussian.exchangeable(counts, correlation=rho, sds=sds)
    ((block, _),) = model.blocks()
    for options in (
        {},
        {"signed": True},
        {"saturation": Saturation(((0.8, 0.5), (1.0, 0.2)), own=0.9)},
    ):
        found = exchangeable_factor(model, **options)
        searched = worst_factor(block.covariance, **options)
        assert found.value == pytest.approx(searched.value, abs=1e-8)


def test_the_exchangeable_attacker_reaches_the_factor():
    from undertow.correlation.gaussian import adversary_factor

    rho = [[0.3, -0.2], [-0.2, 0.6]]
    model = Gaussian.exchangeable([3, 4], correlation=rho, sds=[1.0, 2.0])
    found = exchangeable_factor(model)
    ((block, _),) = model.blocks()
    reached = adversary_factor(block.covariance, found.adversary)
    assert reached == pytest.approx(found.value, abs=1e-8)


def test_the_spectrum_of_a_group_is_that_of_its_matrix():
    model = Gaussian.exchangeable([2, 3], correlation=[[0.3, 0.2], [0.2, 0.5]])
    ((block, _),) = model.blocks()
    values = np.linalg.eigvalsh(block.covariance)
    assert model.spectrum.low == pytest.approx(values[0])
    assert model.spectrum.high == pytest.approx(values[-1])


def test_exchangeable_searches_say_what_they_cannot_do():
    crowd = Gaussian.exchangeable([200] * 3, correlation=np.full((3, 3), 0.1))
    with pytest.raises(NotApplicable, match=r"at most 2000000.*structured"):
        exchangeable_factor(crowd)
    with pytest.raises(ValueError, match="freeze"):
        exchangeable_factor(crowd, signed=True, saturation=Saturation())
    huge = Gaussian.exchangeable([3000], correlation=[[0.1]])
    with pytest.raises(NotApplicable, match="exchangeable"):
        huge.blocks()
    assert exchangeable_factor(huge).value == pytest.approx(1 + 2999 * 0.1, abs=1e-3)


# Limited correlations


def test_a_limited_class_describes_itself():
    model = LimitedGaussian(0.275, 3, sd_ratio=1.5, size=2)
    assert "within a factor 1.5" in model.summary
    assert model.summary in repr(model)
    assert model.largest_group == 2
    assert model.size == 2
    assert "differ by at most 1.5" in model.assumptions().unchecked[-1]
    assert "equal" in LimitedGaussian(0.1, 3).assumptions().unchecked[-1]
    assert LimitedGaussian(0.1, 3).size is None


def test_a_limited_class_is_narrowed_before_sampling():
    rng = np.random.default_rng(0)
    model = LimitedGaussian(0.4, 4)
    member = model.member(rng=rng, sd=2.0)
    limits = member.limits()
    assert limits.correlation <= 0.4
    assert limits.sd_ratio == 1.0
    assert member.covariance[0, 0] == 4.0
    with pytest.raises(ModelError, match="member"):
        model.sample(1, rng=rng)
    with pytest.raises(ModelError, match="member"):
        model.sample_given({}, 1, rng=rng)
    with pytest.raises(ModelError, match="lower it"):
        LimitedGaussian(0.999, 12).member(rng=rng)


def test_autoregressive_series_keep_their_parameters():
    model = Gaussian.autoregressive(0.9, 10, sd=3.0)
    assert isinstance(model, AutoregressiveGaussian)
    assert (model.phi, model.sd) == (0.9, 3.0)
    assert "phi = 0.9" in model.summary


def test_a_covariance_of_records_in_small_units_must_be_symmetric_too():
    with pytest.raises(ModelError, match="symmetric"):
        Gaussian([[1e12, 0, 0], [0, 1e-6, 0.9e-6], [0, 0, 1e-6]])


def test_duplicate_entries_of_a_sparse_precision_are_added():
    double = csr_array(([1.0, 1.0, -0.9, -0.9, 2.0], [0, 0, 1, 0, 1], [0, 3, 5]))
    plain = Gaussian.from_precision([[2.0, -0.9], [-0.9, 2.0]])
    found = Gaussian.from_precision(double)
    assert found.structured().value == plain.structured().value
    np.testing.assert_allclose(found.columns([0, 1]), plain.columns([0, 1]))
