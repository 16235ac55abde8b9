r"""The advantage of the best attack, measured wherever the likelihood can be computed.

No attack is run: each simulated output is scored by what the best attack gains on
average given that output, which is a sum over the records. That removes the noise of
the target and of the guess, and works for vectors, local protocols and whole
transcripts, where no finite channel can be written down.
"""

from __future__ import annotations

import math
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from undertow._validate import check_index, check_probability
from undertow.errors import MismatchError, ModelError
from undertow.privacy.result import Estimate
from undertow.risk._draws import Progress, batches, plan_draws
from undertow.risk._gaussian_transcript import GaussianTranscript, LinearRule
from undertow.risk._sampler import LikelihoodSource
from undertow.risk._sets import CellSets, HitSets
from undertow.risk.decision import ABSTAIN
from undertow.risk.intervals import empirical_bernstein, hoeffding_halfwidth
from undertow.risk.threat import Threat

__all__ = [
    "GaussianTranscript",
    "LikelihoodSource",
    "LinearRule",
    "PosteriorGain",
    "estimate_advantage",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

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

    >>> from undertow.risk.prior import Prior
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
    >>> from undertow.risk.estimate import ChannelSampler
    >>> from undertow.risk.channel import Channel
    >>> from undertow.risk.prior import Prior
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
