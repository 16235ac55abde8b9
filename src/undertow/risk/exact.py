r"""The exact risk of a known mechanism: the best advantage and the best success.

.. math:: \mathrm{RAD}^* = \sum_\theta \sum_z \max_{g} \sum_{x :\, a(x) = z,\,
   \ell(g, x) \le \eta} \pi_x \, (p(\theta \mid x) - p(\theta))

Each kind of mechanism has its engine: channels that of :mod:`undertow.risk.finite`,
numbers with Laplace or Gaussian noise that of :mod:`undertow.risk.scalar`, and local
protocols the closed forms of :mod:`undertow.risk.families`.

Reconstruction robustness (ReRo) is the success of the best attacker who knows nothing:
a probability of success, not a risk, as it counts lucky guesses and public knowledge as
leakage. It is defined without auxiliary knowledge, and the bounds on it fail with any.

Where the prior is unknown, a search finds the worst one, next to caps that hold for
every prior. The two are different things. A prior found is a *lower* value of the worst
case: some attacker with that prior has that advantage. Only the caps are guarantees.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_non_negative, check_probability
from undertow.errors import AssumptionError, NotApplicable
from undertow.mechanisms.local.base import LocalProtocol
from undertow.numeric.array import Floats
from undertow.numeric.rounding import CLOSED_FORM, inflate
from undertow.results import _Shown
from undertow.risk.channel import (
    Channel,
    ProtocolSampler,
    as_channel,
    read_source,
)
from undertow.risk.finite import Risk, finite_advantage, finite_success_rate
from undertow.risk.number import ScalarChannel, as_scalar
from undertow.risk.scalar import scalar_advantage, scalar_success_rate
from undertow.risk.success import Success
from undertow.risk.threat import Knowledge, Prior, Threat


def advantage(source: Any, threat: Threat) -> Risk:
    r"""Compute the reconstruction advantage of the best attack on a known mechanism.

    .. math:: \mathrm{RAD}^* = \sum_\theta \sum_z \max_{g} \sum_{x :\, a(x) = z,\,
       \ell(g, x) \le \eta} \pi_x \, (p(\theta \mid x) - p(\theta))

    Parameters
    ----------
    source : Channel, ChannelStream, ScalarChannel or mechanism
        The law of everything that is released, for each record. A mechanism has
        finitely many outputs, is Laplace or Gaussian noise on records that are
        numbers, or is a local protocol whose categories are the records.
    threat : Threat
        Prior, success rule and knowledge.

    Returns
    -------
    Risk
        The exact value, raised by a bound on its rounding: about m units of
        :math:`2^{-50}`. For Gaussian noise it may be 1e-9 above the exact value; see
        :func:`~undertow.risk.scalar.scalar_advantage`.

    Raises
    ------
    NotApplicable
        If more than `WORK_LIMIT` additions are needed, or `source` has infinitely many
        outputs of another kind.

    Notes
    -----
    Theorem 5.3 of [1]_, attained by Algorithm 1 (Corollary 5.9), so the value is a
    guarantee and an attack at once. Membership, attribute and reconstruction attacks
    are the same formula. Departures from the source: Equation 5.12 sums over the truths
    hit by a guess, Equation 5.10 needs a guess that misses the target, and Equation
    5.13 holds for exact success only; the general formula is used throughout. Checked:
    probability laws, matching records. Not checkable: independent records, a public
    prior, and that the channel is what runs. Sums over all possible truths vanish
    identically and are taken as zero.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.risk.channel import Channel
    >>> from undertow.risk.threat import Prior
    >>> P = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    >>> prior = Prior(3, [0.5, 0.3, 0.2])
    >>> round(advantage(P, Threat.reconstruction(prior)).value, 9)
    0.242
    >>> round(advantage(P, Threat.membership(prior)).value, 9)
    0.248
    """
    from undertow.risk.families.local import protocol_risk

    seen = read_source(source, threat.support)
    if isinstance(seen, ProtocolSampler):
        return protocol_risk(seen.protocol, threat)
    if isinstance(seen, ScalarChannel):
        return scalar_advantage(seen, threat)
    return finite_advantage(seen, threat)


def success_rate(source: Any, threat: Threat) -> Risk:
    r"""Compute the success probability of the best guess: Bayes vulnerability.

    .. math:: \sum_\theta \sum_z \max_{g} \sum_{x :\, a(x) = z,\, \ell(g, x) \le \eta}
       \pi_x \, p(\theta \mid x)

    Parameters
    ----------
    source : Channel, ChannelStream, ScalarChannel or mechanism
        The law of everything that is released, for each record. A mechanism has
        finitely many outputs, is Laplace or Gaussian noise on records that are
        numbers, or is a local protocol with few reports.
    threat : Threat
        Prior, success rule and knowledge.

    Returns
    -------
    Risk
        The exact probability, raised by a bound on its rounding; its `baseline` is the
        best success without the output.

    Notes
    -----
    A success probability is not a risk: the attack that always names a known record
    succeeds with probability 1 and learns nothing. Definition 2.18 of [1]_ has no
    knowledge; see :func:`~undertow.risk.exact.reconstruction_robustness` for that. The
    attack that attains this value maximises the posterior, not its gain over the prior,
    and its advantage may be zero.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.risk.channel import Channel
    >>> from undertow.risk.threat import Prior
    >>> P = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    >>> round(success_rate(P, Threat(Prior(3, [0.5, 0.3, 0.2]))).value, 9)
    0.59
    """
    number = as_scalar(source, threat.support)
    if number is not None:
        return scalar_success_rate(number, threat)
    return finite_success_rate(source, threat)


# Reconstruction robustness: the success of the best attacker who knows nothing.
#
# Robustness (ReRo) is a probability of success, not a risk: it counts lucky guesses and
# public knowledge as leakage. It is defined without auxiliary knowledge, and the bounds
# on it fail with any.


def require_no_knowledge(threat: Threat, statement: str) -> None:
    """Refuse a threat with auxiliary knowledge, for statements that fail with any.

    Parameters
    ----------
    threat : Threat
        The threat.
    statement : str
        What is asked for, as it should read in the message.

    Raises
    ------
    AssumptionError
        If what is known varies over the possible targets.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> require_no_knowledge(Threat(Prior.uniform(2)), "Theorem 5.11")
    """
    if threat.has_knowledge:
        raise AssumptionError(
            f"{statement} must have an attacker without auxiliary knowledge, got one "
            f"who knows {threat.knowledge.summary}; use the exact advantage or the "
            "bound by total variation, which hold with any."
        )


def reconstruction_robustness(source: Any, threat: Threat) -> Risk:
    r"""Compute the least level at which a finite channel is reconstruction robust.

    .. math:: \gamma^* = \sum_\theta \max_{g} \sum_{x :\, \ell(g, x) \le \eta}
       \pi_x \, p(\theta \mid x)

    Parameters
    ----------
    source : Channel, ChannelStream or mechanism with finitely many outputs
        The law of the output for each record.
    threat : Threat
        Prior and success rule, without knowledge.

    Returns
    -------
    Risk
        The exact level, raised by a bound on its rounding; its `baseline` is
        :math:`\kappa^+`, the level of a mechanism that says nothing.

    Raises
    ------
    AssumptionError
        If the threat has auxiliary knowledge; :func:`~undertow.risk.exact.success_rate`
        is the extension to it, to which no bound on robustness applies.

    Notes
    -----
    Definition 2.18 of [1]_; that the value is the Bayes vulnerability of the channel is
    proved on the theory page. Not checkable: independent records, a public prior.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.risk.channel import Channel
    >>> from undertow.risk.threat import Prior
    >>> P = Channel([[0.6, 0.3, 0.1], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]])
    >>> level = reconstruction_robustness(P, Threat(Prior(3, [0.5, 0.3, 0.2])))
    >>> round(level.value, 9), round(level.baseline, 9)
    (0.59, 0.5)
    """
    require_no_knowledge(threat, "reconstruction robustness (Definition 2.18)")
    return success_rate(source, threat)


def is_reconstruction_robust(source: Any, threat: Threat, *, gamma: float) -> bool:
    """Say whether no attack without knowledge succeeds more often than `gamma`.

    True is proved: the level compared is rounded up.
    """
    level = check_probability(gamma, "gamma")
    return reconstruction_robustness(source, threat).value <= level


def advantage_range(success: float, threat: Threat) -> tuple[float, float]:
    r"""Return what the success of an attack says of its advantage, without knowledge.

    .. math:: \mathrm{Succ}(A) - \kappa^+ \le \mathrm{RAD}(A) \le
       \mathrm{Succ}(A) - \kappa^-

    Parameters
    ----------
    success : float
        Probability that the attack succeeds on a target that took part.
    threat : Threat
        Prior and success rule, without knowledge.

    Returns
    -------
    low, high : float
        Rounded outwards, and within :math:`\pm(1 - \kappa_\pi)`.

    Notes
    -----
    Proved on the theory page: without knowledge, the correction is the mean prior mass
    of the sets that the attack hits. Under a uniform prior with exact success both ends
    agree, and the advantage is the success less 1/m.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> low, high = advantage_range(0.35, Threat(Prior.uniform(10)))
    >>> round(low, 9), round(high, 9)
    (0.25, 0.25)
    """
    rate = check_probability(success, "success")
    require_no_knowledge(threat, "the range of the advantage")
    low, high = rate - threat.best_guess, rate - threat.worst_guess
    return (
        max(low - CLOSED_FORM, -threat.ceiling),
        min(high + CLOSED_FORM, threat.ceiling),
    )


# The worst prior that a search finds, next to caps that hold for every prior.
#
# The two are different things. A prior found is a *lower* value of the worst case: some
# attacker with that prior has that advantage. Only the caps are guarantees. The risk is
# in general not concave in the prior, so no search certifies the worst case.


# Cells of a table of outputs in line for the search, and bins of a real output.
_CELLS, _BINS = 4_000_000, 600
_PAIRS, _SCATTERED, _ROUNDS = 6, 4, 400
_SPREAD = 0.02


@dataclass(frozen=True, slots=True, eq=False)
class WorstPrior(_Shown):
    """The worst prior found and what holds for every prior.

    Parameters
    ----------
    value : float
        Advantage under `prior`, to the accuracy of the exact engine: the worst case is
        at least this.
    prior : Prior
        Where it is attained.
    two_point, uniform : float
        Advantage under the worst two equally likely records, and under all records
        equally likely.
    caps : mapping
        Upper bounds that hold for every prior, by name: the guarantees.
    starts : int
        From how many priors the search set out.
    """

    value: float
    prior: Prior
    two_point: float
    uniform: float
    caps: Mapping[str, float]
    starts: int

    @property
    def cap(self) -> float:
        """The least of the caps: the worst case is at most this."""
        return min(self.caps.values())

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values; the prior by its positive masses."""
        masses = zip(self.prior.support, self.prior.pmf.tolist(), strict=True)
        return {
            "at_least": self.value,
            "at_most": self.cap,
            "prior": {str(record): mass for record, mass in masses if mass > 0},
            "two_point": self.two_point,
            "uniform": self.uniform,
            "caps": dict(self.caps),
            "starts": self.starts,
        }


def worst_prior(
    source: Any,
    records: Sequence[Hashable] | int,
    *,
    success: Success | None = None,
    knowledge: Knowledge | None = None,
    epsilon: float | None = None,
    starts: int = 8,
    rng: np.random.Generator | int = 0,
) -> WorstPrior:
    r"""Search for the prior under which an attack gains most.

    Parameters
    ----------
    source : Channel, ScalarChannel or mechanism that the exact engine reads
        The law of the output for each record; of a local protocol the table of its
        reports, which must be few.
    records : sequence of hashable, or int
        The records; a number m stands for 0, ..., m - 1.
    success, knowledge : optional
        Of the threat; exact success and no knowledge by default.
    epsilon : float, optional
        A proved pure-DP parameter for replacing a record; by default the one that the
        law itself has, and never less.
    starts : int
        Random priors to start from, besides the uniform and two-point ones.
    rng : numpy.random.Generator or int
        Generator or seed of the random starts.

    Returns
    -------
    WorstPrior
        A prior with its exact advantage, a lower value of the worst case; and the caps
        :math:`\tanh(\varepsilon/4)`, :math:`\mathrm{TV}(1-1/m)` and TV.

    Raises
    ------
    AssumptionError
        If the law itself contradicts `epsilon`.

    Notes
    -----
    All pairs are ranked by their advantage as two equally likely records: half their
    total variation where guesses tell them apart, else a quarter or nothing. From
    there, from the uniform prior and from random ones the search climbs by
    exponentiated gradient: for a fixed attack the advantage is quadratic in the prior,
    and the best attack of the moment gives the direction. A real output is cut into
    bins for the climb, which can only lower it; every value returned is recomputed by
    the exact engine. Not a certificate: the two-point prior that the source suggests
    (end of Section 5.2) is not the worst in general.

    Examples
    --------
    >>> from undertow.mechanisms import RandomizedResponse
    >>> found = worst_prior(RandomizedResponse(4, math.log(9)), 4)
    >>> round(found.value, 6), round(found.cap, 6)
    (0.5, 0.5)
    """
    support = Prior.uniform(records).support
    rule, known = success or Success.exact(), knowledge or Knowledge.none()
    if len(support) < 2:
        raise ValueError(
            "records must be at least two, got 1; one record cannot be disclosed."
        )
    if isinstance(source, LocalProtocol):
        source = as_channel(source, support)  # a bound would be no lower value
    scalar = as_scalar(source, support)
    table = _table(source, support) if scalar is None else _binned(scalar)
    hits, labels = rule.matrix(support), known.labels(support)
    distances = _variations(table)
    caps = _caps(scalar, table, float(distances.max()), epsilon)
    search = _Search(table, hits, labels)
    pairs = distances * _pair_shares(hits, labels)
    seeds = _seeds(pairs, check_count(starts, "starts", minimum=0), rng)

    def measure(pmf: Floats) -> float:
        found = advantage(source, Threat(Prior(support, pmf), rule, known)).value
        return min(found, *caps.values())  # the engine rounds up, by 1e-9 for Gaussians

    measured = [measure(pmf) for pmf in seeds]
    climbed = [search.climb(pmf) for pmf in seeds]
    best = max(climbed, key=search.value)
    kept = np.where(best < 1e-3 * best.max(), 0.0, best)
    candidates = [best, kept / kept.sum(), *seeds[: 1 + _PAIRS]]
    top = max(candidates, key=measure)
    return WorstPrior(
        measure(top),
        Prior(support, top),
        max(m for m, p in zip(measured, seeds, strict=True) if (p > 0).sum() == 2),
        measured[0],
        caps,
        len(seeds),
    )


class _Search:
    """The advantage of a table and its direction of growth, by the best attack."""

    def __init__(
        self, laws: Floats, hits: NDArray[np.bool_], labels: NDArray[np.intp]
    ) -> None:
        self._laws, self._hits = laws, hits.astype(float)
        fibres = [np.flatnonzero(labels == z) for z in np.unique(labels)]
        self._alone = np.array([f[0] for f in fibres if len(f) == 1], dtype=np.intp)
        self._sure = np.all(hits[:, self._alone], axis=0)[:, None]  # no guess misses it
        self._fibres = [f for f in fibres if len(f) > 1]

    def value(self, pmf: Floats) -> float:
        """Return the advantage of the best attack on the table."""
        return self._evaluate(pmf)[0]

    def _evaluate(self, pmf: Floats) -> tuple[float, Floats]:
        laws = self._laws
        gains = pmf[:, None] * (laws - pmf @ laws)
        success = np.empty((len(pmf), len(pmf)))  # [target, record inside]
        named = (gains[self._alone] > 0) | self._sure
        total = float(gains[self._alone][named].sum())
        success[self._alone] = named @ laws.T
        for fibre in self._fibres:
            sums = self._hits[:, fibre] @ gains[fibre]
            guess = sums.argmax(axis=0)
            total += float(sums.max(axis=0).sum())
            success[fibre] = self._hits[guess][:, fibre].T @ laws.T
        # The derivative of sum pi_x s_xx - sum pi_x pi_y s_xy for this attack.
        slope = np.diagonal(success) - success @ pmf - success.T @ pmf
        return total, np.asarray(slope)

    def climb(self, start: Floats) -> Floats:
        """Climb from a prior by exponentiated steps that grow while they help."""
        pmf = (1.0 - _SPREAD) * start + _SPREAD / len(start)
        value, slope = self._evaluate(pmf)
        step = 1.0
        for _ in range(_ROUNDS):
            tilt = step * (slope - slope @ pmf)
            trial = pmf * np.exp(tilt - tilt.max())
            trial /= trial.sum()
            found, next_slope = self._evaluate(trial)
            if found > value:
                gain, pmf, value, slope = found - value, trial, found, next_slope
                step = min(2.0 * step, 1e4)
                if gain < 1e-11:
                    break
            else:
                step /= 4.0
                if step < 1e-6:
                    break
        return pmf


def _table(source: Any, support: tuple[Hashable, ...]) -> Floats:
    """Return the table of a finite law."""
    channel = as_channel(source, support)
    if not isinstance(channel, Channel) or channel.matrix.size > _CELLS:
        raise NotApplicable(
            f"a search over priors must have a table of at most {_CELLS} cells, got a "
            "larger one or a stream; use the caps by total variation."
        )
    return np.asarray(channel.matrix)


def _binned(scalar: ScalarChannel) -> Floats:
    """Return the table of a real output cut into bins: a post-processing of it."""
    answers, law = scalar.answers, scalar.law
    spread = 12.0 * law.scale
    edges = np.linspace(answers.min() - spread, answers.max() + spread, _BINS)
    cuts = np.unique(np.concatenate([edges, answers, (answers[1:] + answers[:-1]) / 2]))
    cuts = cuts[(cuts > law.low) & (cuts < law.high)]
    below = np.array([scalar.mechanism.cdf(cuts, float(a)) for a in answers])
    ends = np.zeros((len(answers), 1))
    return np.diff(np.concatenate([ends, below, ends + 1.0], axis=1), axis=1).clip(0.0)


def _pair_shares(hits: NDArray[np.bool_], labels: NDArray[np.intp]) -> Floats:
    """Return the share of its total variation that each equally likely pair has."""
    # A quarter for each record that a guess misses; in one fibre, hitting the other.
    table = hits.astype(np.float64)
    alone = ((table.T @ (1.0 - table)) > 0).astype(np.float64)  # hit x and miss y
    missed = np.logical_not(hits.all(axis=0)).astype(np.float64)
    apart = labels[:, None] != labels
    share = np.where(apart, np.add.outer(missed, missed), alone + alone.T)
    np.fill_diagonal(share, 0.0)
    return np.asarray(share / 4.0)


def _seeds(pairs: Floats, starts: int, rng: np.random.Generator | int) -> list[Floats]:
    """Return the uniform prior, the best pairs, scattered sets and random priors."""
    size, source = len(pairs), np.random.default_rng(rng)
    first, second = np.triu_indices(size, 1)
    spread = pairs[first, second]
    seeds = [np.full(size, 1.0 / size)]
    for pair in np.argsort(-spread, kind="stable")[:_PAIRS]:
        pmf = np.zeros(size)
        pmf[[first[pair], second[pair]]] = 0.5
        seeds.append(pmf)
    seeds += _scattered(pairs, np.flatnonzero(seeds[1]).tolist())
    seeds += [source.dirichlet(np.full(size, 0.5)) for _ in range(starts)]
    return seeds


def _scattered(distances: Floats, chosen: list[int]) -> list[Floats]:
    """Return uniform priors on growing sets, each new record far from the others."""
    seeds = []
    for _ in range(min(_SCATTERED, len(distances) - 2)):
        apart = distances[chosen].min(axis=0)
        apart[chosen] = -1.0  # records may have the same law
        chosen = [*chosen, int(apart.argmax())]
        pmf = np.zeros(len(distances))
        pmf[chosen] = 1.0 / len(chosen)
        seeds.append(pmf)
    return seeds


def _variations(table: Floats) -> Floats:
    return np.array([np.abs(table - row).sum(axis=1) / 2.0 for row in table])


def _caps(
    scalar: ScalarChannel | None, table: Floats, reach: float, epsilon: float | None
) -> dict[str, float]:
    level, plain = _level(table), True
    if scalar is not None:
        (reach, level), plain = _scalar_caps(scalar), scalar.law.kind == "plain"
    if epsilon is not None:
        claim = check_non_negative(epsilon, "epsilon")
        # Beyond 700 a table may hold zeros that are not.
        if plain and claim < min(level * (1.0 - 2e-9), 700.0):
            raise AssumptionError(
                f"epsilon must be at least {level:.6g}, the parameter of the law "
                f"itself, got {epsilon}."
            )
        level = min(level, claim)
    share = (len(table) - 1) / len(table)
    caps = {
        "total variation": reach,
        "total variation times 1 - 1/m": reach * share,
        "prior-free cap tanh(epsilon/4)": math.tanh(level / 4.0),
    }
    if level == math.inf:
        del caps["prior-free cap tanh(epsilon/4)"]
    return {name: inflate(value, CLOSED_FORM) for name, value in caps.items()}


def _level(table: Floats) -> float:
    """Return the pure-DP parameter of a table, raised by its rounding."""
    seen = table[:, table.max(axis=0) > 0]
    if (seen == 0).any():
        return math.inf
    logs = np.log(seen)
    return inflate(float((logs.max(axis=0) - logs.min(axis=0)).max()), 1e-9)


def _scalar_caps(source: ScalarChannel) -> tuple[float, float]:
    """Return total variation and level of noise between the extreme answers."""
    from scipy.special import erf

    law = source.law
    if law.kind == "truncated":  # cutting off renormalises: the plain values may fail
        return 1.0, math.inf
    reach = float(source.answers.max() - source.answers.min()) / law.scale
    if law.family == "laplace":
        return -math.expm1(-reach / 2.0), reach
    return float(erf(reach / math.sqrt(8.0))), math.inf
