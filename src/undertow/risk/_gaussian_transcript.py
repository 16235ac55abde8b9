"""Noisy sums of candidate gradients over many steps, and a published rule for them.

The released sums, less what the known others contribute, are Gaussian around the
target's clipped gradients. Their inner products with the candidates' gradients say all
there is to say, so that only the Gram matrix of the gradients is kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_index, check_positive
from undertow.errors import MismatchError, ModelError
from undertow.risk.threat import Threat

__all__ = ["GaussianTranscript", "LinearRule"]

Floats = NDArray[np.float64]

_TOLERANCE = 1e-9
_LEAST = 1e-150


class GaussianTranscript:
    r"""All steps of noisy gradient sums, as seen by who knows the other records.

    .. math:: L_i = \sum_t \frac{\langle g_t, \mu_{t,i} \rangle -
       \frac12 \|\mu_{t,i}\|^2}{\sigma^2}, \qquad g_t \sim N(\mu_{t,x}, \sigma^2 I)

    Parameters
    ----------
    gram : array_like of shape (m, m)
        Sums over the steps of the inner products of the candidates' contributions.
    sigma : float
        Standard deviation of the noise in each coordinate: the clipping norm times the
        noise multiplier.

    Raises
    ------
    ModelError
        If `gram` is not symmetric and positive semidefinite, or the square of `sigma`
        is no float.

    Notes
    -----
    An output is the vector of the m inner products of the transcript with the
    candidates, a sufficient statistic; drawing one costs :math:`O(m^2)`, whatever the
    number of steps and of coordinates. The gradients are those along one fixed run:
    where they depend on earlier noise, draw whole runs and give their likelihood by a
    :class:`~undertow.risk.likelihood.LikelihoodSource` of one's own. The likelihood is
    Example 5.10 of [1]_ without its two approximations: the mixture of products is not
    replaced by a product of mixtures, and the norms are kept.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> transcript = GaussianTranscript.from_means(np.ones((3, 2, 1)), 2.0)
    >>> transcript.gram.tolist()
    [[3.0, 3.0], [3.0, 3.0]]
    """

    __slots__ = ("_root", "gram", "sigma")

    def __init__(self, gram: ArrayLike, sigma: float) -> None:
        table = np.array(gram, dtype=np.float64)
        square = table.ndim == 2 and len(set(table.shape)) == 1
        if not (square and table.size and np.isfinite(table).all()):
            raise ModelError(
                f"gram must be a finite square matrix, got shape {table.shape}."
            )
        slack = _TOLERANCE * float(np.abs(table).max())
        values, vectors = np.linalg.eigh(table)
        if np.abs(table - table.T).max() > slack or values.min() < -slack:
            raise ModelError(
                "gram must be symmetric and positive semidefinite, got a least "
                f"eigenvalue of {values.min()}."
            )
        self.gram, self.sigma = table, check_positive(sigma, "sigma")
        if not _LEAST <= self.sigma <= 1 / _LEAST:
            raise ModelError(
                f"sigma must be in [{_LEAST:g}, {1 / _LEAST:g}], got {sigma}; state "
                "the contributions in another unit."
            )
        self._root = vectors * np.sqrt(np.maximum(values, 0.0))

    @classmethod
    def from_means(cls, means: ArrayLike, sigma: float) -> GaussianTranscript:
        """Read the contributions themselves.

        Parameters
        ----------
        means : array_like of shape (steps, m, coordinates)
            What each candidate adds to each noisy sum.
        sigma : float
            Standard deviation of the noise in each coordinate.
        """
        given = np.asarray(means, dtype=np.float64)
        if given.ndim != 3:
            raise ModelError(
                "means must have axes for steps, candidates and coordinates, got shape "
                f"{given.shape}."
            )
        gram = np.zeros((given.shape[1],) * 2)
        for step in given:
            gram += step @ step.T
        return cls(gram, sigma)

    def sample(self, record: int, size: int, *, rng: np.random.Generator) -> Floats:
        """Draw `size` vectors of inner products with the candidates."""
        row = self.gram[check_index(record, "record", size=len(self.gram))]
        noise = rng.standard_normal((check_count(size, "size"), len(row)))
        return np.asarray(row + self.sigma * (noise @ self._root.T))

    def log_likelihood(self, outputs: ArrayLike) -> Floats:
        """Return the log likelihood of each candidate, up to a common term."""
        seen = np.asarray(outputs, dtype=np.float64)
        if seen.ndim != 2 or seen.shape[1] != len(self.gram):
            raise MismatchError(
                f"outputs must be vectors of {len(self.gram)} inner products, got "
                f"shape {seen.shape}."
            )
        return np.asarray((seen - np.diag(self.gram) / 2.0) / self.sigma**2)


class LinearRule:
    r"""The published rule for noisy gradients, for reproduction only: not the best.

    It scores candidate i by :math:`\pi_i \sum_t (\langle g_t, \mu_{t,i} \rangle -
    \frac1m \sum_j \langle g_t, \mu_{t,j} \rangle)`, answers with the best candidate
    that fits what is known, and with a record that does not fit if its score is not
    positive.

    Parameters
    ----------
    threat : Threat
        With exact success, on the candidates of the transcript.

    Notes
    -----
    Algorithm 2 of [1]_. It treats a product of averages as the average of products,
    drops the norms and weighs by the prior. Without knowledge, under a uniform prior
    and with equal norms it makes the same guess as the exact rule; for membership it is
    far behind. Guarantees and audits take
    :func:`~undertow.risk.likelihood.estimate_advantage`.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.risk.prior import Prior
    >>> rule = LinearRule(Threat(Prior.uniform(2)))
    >>> rule.guess([[3.0, 1.0]], 0, rng=np.random.default_rng(0)).tolist()
    [0]
    """

    __slots__ = ("_fibres", "_outside", "_pmf")

    def __init__(self, threat: Threat) -> None:
        size = len(threat.prior)
        if len(threat.guesses) != size or not np.array_equal(
            threat.success.matrix(threat.support), np.eye(size, dtype=bool)
        ):
            raise MismatchError(
                "the linear rule must guess exact records, got a threat to "
                f"{threat.summary}."
            )
        everything = np.arange(size, dtype=np.intp)
        self._pmf, self._fibres = threat.prior.pmf, threat.fibres
        self._outside = [np.setdiff1d(everything, f) for f in threat.fibres]

    def guess(
        self, outputs: Any, known: int, *, rng: np.random.Generator
    ) -> NDArray[np.intp]:
        """Answer with the best linear score, or outside what is known if it loses."""
        seen = np.asarray(outputs, dtype=np.float64)
        scores = self._pmf * (seen - seen.mean(axis=1, keepdims=True))
        fibre, outside = self._fibres[known], self._outside[known]
        best: NDArray[np.intp] = fibre[scores[:, fibre].argmax(axis=1)]
        if not len(outside):
            return best
        loses = scores[np.arange(len(seen)), best] <= 0
        best[loses] = rng.choice(outside, size=len(seen))[loses]
        return best
