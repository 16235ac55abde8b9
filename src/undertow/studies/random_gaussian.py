"""Random Gaussian records, and what a noisy sum of them leaks to random attackers.

Unit variances, correlations uniform in [-rho, rho] until the matrix is positive
definite, means uniform in [0, 10]; one attacker for each law. The sum has Laplace noise
of scale 10, a DP level of 1 when records are clipped to [0, 10], and the secrets are
0 and 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from undertow.correlation.gaussian.method import gaussian_factor

__all__ = ["DrawnLeakage", "sample_correlations", "simulate_gaussians"]

Array = NDArray[np.float64]
Values = tuple[float, ...]

_SIZES = (3, 5, 7)
_WIDTH = 10.0
_PERCENTILE = 99
_DRAWS = 300  # completions of the unknown records for each attacker
_OUTPUTS = 9  # outputs compared, the two ends among them
_LEAST = 1e-9  # smallest eigenvalue kept
_TOGETHER = 1000  # laws in memory at a time


@dataclass(frozen=True)
class DrawnLeakage:
    """Leakage found by drawn attackers: the 99th percentile at each correlation.

    Parameters
    ----------
    size : int
        Number of records n.
    rhos : tuple of float
        Largest correlation allowed, up to 0.95/(n - 2).
    clipped, plain : tuple of float
        Of the clipped sum, averaged likelihoods; of the plain sum, exact. Attackers
        know at least one record, as in the thesis.
    clipped_all, plain_all : tuple of float
        The same, attackers who know nothing among them.
    """

    size: int
    rhos: Values
    clipped: Values
    plain: Values
    clipped_all: Values
    plain_all: Values

    def bound(self, *, capped: bool) -> Values:
        """Return the published bound, at most n where records are clipped."""
        limit = self.size if capped else math.inf
        return tuple(
            min(gaussian_factor(self.size, rho, variant="thesis"), limit)
            for rho in self.rhos
        )

    def supremum(self, *, capped: bool) -> Values:
        """Return the sharp closed form, attained for rho up to 1/(n - 1)."""
        limit = self.size if capped else math.inf
        return tuple(min(gaussian_factor(self.size, rho), limit) for rho in self.rhos)

    def at(self, rho: float, values: Values) -> float:
        """Return the value of a curve at one of the correlations."""
        return next(
            v for r, v in zip(self.rhos, values, strict=True) if math.isclose(r, rho)
        )


def simulate_gaussians(runs: int, *, rng: np.random.Generator) -> list[DrawnLeakage]:
    """Simulate 3, 5 and 7 records at ten correlations each.

    Parameters
    ----------
    runs : int
        Laws drawn at each point, with one attacker each.
    rng : numpy.random.Generator
        Draws laws, attackers, known values and unknown records.
    """
    return [_simulate_size(n, runs, rng=rng) for n in _SIZES]


def _simulate_size(n: int, runs: int, *, rng: np.random.Generator) -> DrawnLeakage:
    rhos = tuple(float(step) / (n - 2) for step in (*np.arange(1, 10) / 10, 0.95))
    columns: list[list[float]] = [[], [], [], []]
    for rho in rhos:
        found = []
        for least in (1, 0):  # the thesis never draws an attacker who knows nothing
            matrices = sample_correlations(n, rho, runs, rng=rng)
            found += _leakages(matrices, rng.integers(least, n, runs), rng=rng)
        for column, values in zip(columns, found, strict=True):
            column.append(float(np.percentile(values, _PERCENTILE)))
    clipped, plain, clipped_all, plain_all = (tuple(c) for c in columns)
    return DrawnLeakage(n, rhos, clipped, plain, clipped_all, plain_all)


def sample_correlations(
    size: int, rho: float, count: int, *, rng: np.random.Generator
) -> Array:
    """Draw correlation matrices with entries uniform in [-rho, rho], by rejection."""
    rows, columns = np.triu_indices(size, 1)
    kept = np.empty((0, size, size))
    while len(kept) < count:
        drawn = np.broadcast_to(np.eye(size), (count, size, size)).copy()
        entries = rng.uniform(-rho, rho, (count, len(rows)))
        drawn[:, rows, columns] = drawn[:, columns, rows] = entries
        definite = np.linalg.eigvalsh(drawn)[:, 0] > _LEAST
        kept = np.concatenate([kept, drawn[definite]])
    return kept[:count]


def _leakages(
    matrices: Array, known: NDArray[np.int64], *, rng: np.random.Generator
) -> list[Array]:
    """Return leakages of the clipped and of the plain sum, one attacker a matrix.

    The target is record 0 and the first records after it are known: the law of the
    matrices does not change when records change places.
    """
    clipped, plain = np.empty(len(matrices)), np.empty(len(matrices))
    for k in np.unique(known):
        places = np.flatnonzero(known == k)
        for start in range(0, len(places), _TOGETHER):
            chosen = places[start : start + _TOGETHER]
            clipped[chosen], plain[chosen] = _leakages_given(
                matrices[chosen], int(k), rng=rng
            )
    return [clipped, plain]


def _leakages_given(
    matrices: Array, known: int, *, rng: np.random.Generator
) -> tuple[Array, Array]:
    count, n, _ = matrices.shape
    told, unknown = slice(0, known + 1), slice(known + 1, n)
    cross = matrices[:, told, unknown]
    slopes = np.linalg.solve(matrices[:, told, told], cross).transpose(0, 2, 1)
    plain = np.abs(1 + slopes[:, :, 0].sum(axis=1))  # |x - x'| is the noise scale
    mean = rng.uniform(0, _WIDTH, (count, n))
    told_by = np.zeros((count, known + 1))  # deviations from the mean
    told_by[:, 1:] = _normal(matrices[:, 1 : known + 1, 1 : known + 1], 1, rng=rng)[
        :, 0
    ]
    noise = _normal(matrices[:, unknown, unknown] - slopes @ cross, _DRAWS, rng=rng)
    answers = []
    for secret in (0.0, _WIDTH):
        told_by[:, 0] = secret - mean[:, 0]
        centre = mean[:, unknown] + (slopes @ told_by[:, :, None])[:, :, 0]
        drawn = np.clip(centre[:, None, :] + noise, 0, _WIDTH)
        answers.append(secret + drawn.sum(axis=2))
    return _largest_ratio(*answers, top=_WIDTH * (n - known)), plain


def _normal(covariances: Array, draws: int, *, rng: np.random.Generator) -> Array:
    """Draw centred Gaussian vectors, `draws` of each covariance."""
    count, size, _ = covariances.shape
    roots = np.linalg.cholesky(covariances).transpose(0, 2, 1)
    return np.asarray(rng.standard_normal((count, draws, size)) @ roots)


def _largest_ratio(first: Array, second: Array, *, top: float) -> Array:
    """Return the largest log ratio of two averages of Laplace densities, by row.

    Answers lie in [0, top]; beyond it the ratio is that of the nearer end.
    """
    largest = np.zeros(len(first))
    for output in np.linspace(0, top, _OUTPUTS):
        one, other = (
            np.exp(-np.abs(output - answers) / _WIDTH).mean(axis=1)
            for answers in (first, second)
        )
        largest = np.maximum(largest, np.abs(np.log(one / other)))
    return largest
