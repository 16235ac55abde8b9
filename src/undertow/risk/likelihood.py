"""The advantage of the best attack, measured wherever the likelihood can be computed.

No attack is run: each simulated output is scored by what the best attack gains on
average given that output, which is a sum over the records. That removes the noise of
the target and of the guess, and works for vectors, local protocols and whole
transcripts, where no finite channel can be written down.

One such transcript is that of noisy sums of candidate gradients over many steps, a
:class:`GaussianTranscript`, for which there is also a published rule.
"""

from __future__ import annotations

import math
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from undertow._validate import (
    check_count,
    check_index,
    check_positive,
    check_probability,
)
from undertow.errors import MismatchError, ModelError
from undertow.numeric.array import Floats, Indices
from undertow.results import Estimate
from undertow.risk.channel import LikelihoodSource
from undertow.risk.estimate import Progress, batches, plan_draws
from undertow.risk.finite import ABSTAIN
from undertow.risk.intervals import empirical_bernstein, hoeffding_halfwidth
from undertow.risk.success import CellSets, HitSets
from undertow.risk.threat import Threat

# Numbers held per batch of outputs.
_ENTRIES = 4_000_000
# Gains are rounded by less.
_MARGIN = 1e-9


def estimate_advantage(
    source: LikelihoodSource,
    threat: Threat,
    *,
    trials: SupportsIndex = 100_000,
    confidence: float = 0.95,
    progress: Progress | None = None,
    rng: np.random.Generator,
) -> Estimate:
    r"""Estimate the reconstruction advantage of the best attack.

    .. math:: \mathrm{RAD}^* = E_{\theta \sim p} \sum_z \max_g \big(
       \Pr[X \in S^z(g) \mid \theta] - \Pr[X \in S^z(g)] \big)

    Parameters
    ----------
    source : LikelihoodSource
        Draws outputs of a record and knows the likelihood of every record.
    threat : Threat
        Prior, success rule and knowledge.
    trials : int, optional
        Number of outputs.
    confidence : float, optional
        Probability that the interval covers the true value.
    progress : callable, optional
        Called with the number of outputs scored so far and in all.
    rng : numpy.random.Generator
        Split into streams for targets and mechanism.

    Returns
    -------
    Estimate
        The mean gain. Compare ``high``, not ``value``, with what may be risked.

    Raises
    ------
    ModelError
        If an output is impossible under every record that is possible.

    Notes
    -----
    The posterior form of Theorem 5.3 of [1]_, proved on the page on estimation. It is
    unbiased because the sum over the records is exact: a maximum over *sampled*
    averages would be too large on average, a maximum over fewer guesses too small. The
    marginal of a transcript is the mixture of its products, not the product of its
    marginals. Gains lie in [0, 1) if declining, missing the fibre or naming some record
    never loses, else in (-1, 1). The limits are the better of Hoeffding's and of the
    empirical Bernstein inequality, each with half of the error. Cost: the likelihoods,
    and m additions per output. Not checkable: that `source` is what is released.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    Eight orthogonal gradients, and an attacker who knows the record:

    >>> from undertow.risk.threat import Prior
    >>> transcript = GaussianTranscript(np.eye(8), 1 / 0.924931)
    >>> risk = estimate_advantage(
    ...     transcript, Threat.membership(Prior.uniform(8)), trials=20_000,
    ...     rng=np.random.default_rng(5),
    ... )
    >>> risk.low < 0.3385 < risk.high
    True
    """
    check_probability(confidence, "confidence", open_interval=True)
    targets, runner = rng.spawn(2)
    plan = plan_draws(threat, design="plain", trials=trials, runs=None, rng=targets)
    gain = PosteriorGain(source, threat)
    gains, done = np.empty(plan.total), 0
    width = max(1, _ENTRIES // len(threat.prior))
    for records, outputs in batches(source, plan, width=width, rng=runner):
        gains[done : done + len(records)] = gain.best(outputs)
        done += len(records)
        if progress is not None:
            progress(done, plan.total)
    return _estimate(gains, gain.least, confidence)


class PosteriorGain:
    """What the best attack gains from each output, and which guess attains it.

    An :class:`~undertow.risk.estimate.Attack` too: Algorithm 1 of the thesis for
    anything with a likelihood. Ties go to the first guess.

    Parameters
    ----------
    source : LikelihoodSource
        Knows the likelihood of every record.
    threat : Threat
        Prior, success rule and knowledge.

    Examples
    --------
    >>> from undertow.risk.channel import ChannelSampler
    >>> from undertow.risk.channel import Channel
    >>> from undertow.risk.threat import Prior
    >>> P = ChannelSampler(Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]))
    >>> gain = PosteriorGain(P, Threat(Prior(3, [0.5, 0.3, 0.2])))
    >>> gain.best([0, 1, 2]).round(6).tolist()
    [0.289474, 0.141176, 0.3]
    """

    __slots__ = ("_groups", "_log_prior", "source", "threat")

    def __init__(self, source: LikelihoodSource, threat: Threat) -> None:
        if not isinstance(source, LikelihoodSource):
            raise TypeError(
                "source must have methods sample and log_likelihood, got "
                f"{type(source).__name__}."
            )
        self.source, self.threat = source, threat
        fibres = threat.fibres
        sets = threat.success.sets(threat.support, fibres)
        self._groups: tuple[tuple[Indices, HitSets], ...] = tuple(
            zip(fibres, sets, strict=True)
        )
        with np.errstate(divide="ignore"):
            self._log_prior = np.log(threat.prior.pmf)

    @property
    def least(self) -> float:
        """A number that no gain is below: 0, or -1 where an attack may have to lose."""
        whole = len(self._groups) == 1
        safe = self.threat.abstain or all(
            (sets.sizes == 0).any() or (whole and _averages_to_zero(sets))
            for _, sets in self._groups
        )
        return 0.0 if safe else -1.0

    def posterior(self, outputs: Any) -> Floats:
        """Return the posterior of each record: shape (outputs, records)."""
        logs = np.asarray(self.source.log_likelihood(outputs), dtype=np.float64)
        if logs.ndim != 2 or logs.shape[1] != len(self._log_prior):
            raise MismatchError(
                f"log_likelihood must have one column for each of the "
                f"{len(self._log_prior)} records, got shape {logs.shape}."
            )
        joint = logs + self._log_prior
        overall = np.asarray(logsumexp(joint, axis=1, keepdims=True))
        if not np.isfinite(overall).all():
            raise ModelError(
                "every output must have a finite likelihood under some possible "
                "record, got one that has none."
            )
        return np.asarray(np.exp(joint - overall))

    def best(self, outputs: Any) -> Floats:
        """Return the gain of the best attack given each output, over all fibres."""
        gains = (self.posterior(outputs) - self.threat.prior.pmf).T
        total = np.zeros(gains.shape[1])
        for fibre, sets in self._groups:
            top = sets.sums(gains[fibre]).max(axis=0)
            total += np.maximum(top, 0.0) if self.threat.abstain else top
        return total

    def guess(
        self, outputs: Any, known: int, *, rng: np.random.Generator
    ) -> NDArray[np.intp]:
        """Return the first guess of largest gain, or decline if all of them lose."""
        scores = self.scores(outputs, known)
        answers: NDArray[np.intp] = scores.argmax(axis=1)
        if self.threat.abstain:
            answers[scores.max(axis=1) < 0] = ABSTAIN
        return answers

    def scores(self, outputs: Any, known: int, *, centred: bool = True) -> Floats:
        """Return the gain of every guess given each output: shape (outputs, guesses).

        Parameters
        ----------
        outputs : object
            A batch, as the source makes it.
        known : int
            What is known of the target: a number into ``threat.fibres``.
        centred : bool, optional
            Whether the prior mass of what a guess hits is subtracted from its
            posterior mass, the default.
        """
        z = check_index(known, "known", size=len(self._groups))
        fibre, sets = self._groups[z]
        weights = self.posterior(outputs)
        if centred:
            weights -= self.threat.prior.pmf
        return np.asarray(sets.sums(weights.T[fibre])[sets.member].T)

    def __repr__(self) -> str:
        return f"PosteriorGain({self.source!r})"


def _averages_to_zero(sets: HitSets) -> bool:
    """Whether the gains of disjoint sets that hold all records add up to zero."""
    return isinstance(sets, CellSets) or bool(sets.full.any())


def _estimate(gains: Floats, least: float, confidence: float) -> Estimate:
    """Return the mean with the better of two limits, each with half of the error."""
    size, half = len(gains), (1.0 + confidence) / 2.0
    mean = math.fsum(gains.tolist()) / size
    width = hoeffding_halfwidth(size, confidence=half, span=1.0 - least) + _MARGIN
    low, high = mean - width, mean + width
    if size > 1:
        lower, upper = empirical_bernstein(
            gains, confidence=half, lowest=least - _MARGIN, highest=1.0 + _MARGIN
        )
        low, high = max(low, lower), min(high, upper)
    # Ignoring the output gains nothing, so the truth is never negative.
    low, high = max(low, 0.0), min(high, 1.0)
    return Estimate(
        mean,
        min(low, mean),
        max(high, mean),
        confidence,
        size,
        method="Hoeffding and empirical Bernstein on posterior gains",
    )


# Noisy sums of candidate gradients over many steps, and a published rule for them.
#
# The released sums, less what the known others contribute, are Gaussian around the
# target's clipped gradients. Their inner products with the candidates' gradients say
# all there is to say, so that only the Gram matrix of the gradients is kept.

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
    :class:`~undertow.risk.channel.LikelihoodSource` of one's own. The likelihood is
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
    >>> from undertow.risk.threat import Prior
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
