"""Audits of a local protocol against one threat: its prior, success and knowledge.

Which privacy parameter an advantage against a threat needs; trials on targets of its
prior, the guess that gains most, and limits of its mean score.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_finite, check_probability
from undertow.audit._size import least_trials
from undertow.audit._trial import Source, ValueReader
from undertow.audit.claim import Claim
from undertow.audit.result import AuditResult, MethodResult
from undertow.audit.runner import Campaign, Counts
from undertow.errors import AssumptionError, MismatchError
from undertow.mechanisms.local import (
    GeneralizedResponse,
    LocalHashing,
    LocalProtocol,
    SubsetSelection,
    SummationHistogram,
    UnaryEncoding,
)
from undertow.numeric.array import Floats, Ints
from undertow.numeric.rounding import inflate, nudge_down, nudge_up
from undertow.numeric.search import greatest_float
from undertow.privacy.loss import GDP, Approx, Loss, Pure
from undertow.results import Bound, Estimate, Witness
from undertow.risk.bounds.baselines import Baselines
from undertow.risk.channel import Channel
from undertow.risk.estimate import constant_baseline
from undertow.risk.exact import advantage
from undertow.risk.intervals import clopper_pearson
from undertow.risk.selector import best_bound
from undertow.risk.success import HitSets
from undertow.risk.threat import Threat

# Largest parameter searched.
_LARGEST = 700.0
# How far below the root of the linear program an answer may lie.
_ACCURACY = 1e-9


def advantage_epsilon(advantage: float, threat: Threat, *, delta: float = 0.0) -> Bound:
    r"""Return the epsilon that an advantage against a threat needs.

    .. math:: \sup\{\varepsilon : B(\varepsilon, \delta) < \gamma\}

    with B the least of the proved bounds on the advantage that apply to the threat.

    Parameters
    ----------
    advantage : float
        The :math:`\gamma`: a lower confidence limit makes the result a certificate with
        that confidence, a measured value makes it an estimate.
    threat : Threat
        Prior, success rule and knowledge; of guarantees for replacing a record.
    delta : float, optional
        At which epsilon is asked for.

    Returns
    -------
    Bound
        Every mechanism with this advantage has at least this epsilon; rounded down.
        Infinite where no finite one allows it, 0 where all of them do. Names the
        bound that was inverted.

    Raises
    ------
    AssumptionError
        If the threat is about adding or removing a record, or has a certain target.

    Notes
    -----
    A mechanism with a smaller epsilon also satisfies the larger one returned, at which
    the bound is below the advantage: no monotonicity of the bounds is used. Rows that
    need an attacker without knowledge are left out where he has some.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> from undertow.risk.threat import Threat
    >>> skewed = Prior(3, [0.5, 0.3, 0.2])
    >>> found = advantage_epsilon(0.2, Threat(skewed))
    >>> round(found.value, 4), found.theorem
    (0.8873, 'linear program over pure-DP mechanisms')
    >>> round(advantage_epsilon(0.2, Threat.membership(skewed)).value, 4)
    0.8473
    """
    lost = check_probability(delta, "delta")

    def loss(level: float) -> Loss:
        return Approx(level, lost) if lost else Pure(level)

    return _inverse(advantage, threat, loss, "epsilon")


def advantage_mu(advantage: float, threat: Threat) -> Bound:
    """Return the mu of Gaussian DP that an advantage against a threat needs.

    Parameters and result as in :func:`advantage_epsilon`.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> from undertow.risk.threat import Threat
    >>> round(advantage_mu(0.2, Threat(Prior(3, [0.5, 0.3, 0.2]))).value, 4)
    0.8591
    """
    return _inverse(advantage, threat, GDP, "mu")


def advantage_limit(claim: Claim, threat: Threat) -> Bound:
    """Return the largest advantage that a claim allows against a threat.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> from undertow.risk.threat import Threat
    >>> threat = Threat(Prior(3, [0.5, 0.3, 0.2]))
    >>> round(advantage_limit(Claim.pure(1), threat).value, 4)
    0.2258
    """
    return best_bound(claim.for_replacement().loss, _read(threat)).best


def _inverse(
    advantage: float, threat: Threat, loss: Callable[[float], Loss], quantity: str
) -> Bound:
    gamma, known = check_finite(advantage, "advantage"), _read(threat)
    if gamma >= threat.ceiling:
        return Bound(math.inf, "total disclosure", quantity=quantity)
    plain = replace(known, program=None)

    def excess(level: float, against: Baselines = known) -> float:
        return best_bound(loss(level), against).value - gamma

    value = 0.0
    if excess(0.0, plain) < 0.0:
        value = greatest_float(
            lambda level: excess(level, plain) < 0.0, low=0.0, high=_LARGEST
        )
    if known.program is not None and isinstance(loss(1.0), Pure):
        value = _raised(excess, value)
    at = best_bound(loss(value), known).best
    return Bound(value, at.theorem, at.unchecked, at.checked, quantity)


def _raised(excess: Callable[[float], float], value: float) -> float:
    """Return a level from `value` on at which the excess is still negative.

    Few evaluations, as the linear program costs milliseconds; the answer is checked.
    """
    from scipy.optimize import brentq

    if excess(value) >= 0.0:
        return value
    top = 2.0 * value + 1.0
    while top < _LARGEST and excess(top) < 0.0:
        top = 2.0 * top
    if excess(top) < 0.0:
        return top
    root = float(brentq(excess, value, top, xtol=1e-12, rtol=1e-12))
    slack = _ACCURACY * max(1.0, root)
    while root - slack > value:
        if excess(root - slack) < 0.0:
            return root - slack
        slack *= 2.0
    return value


def _read(threat: Threat) -> Baselines:
    """Return what the bounds read of a threat, after the checks."""
    if not isinstance(threat, Threat):
        raise TypeError(f"threat must be a Threat, got {type(threat).__name__}.")
    if threat.adjacency != "replace":
        raise AssumptionError(
            "threat must be about replacing a record, got 'add-remove'; state that "
            "adjacency in the claim."
        )
    if threat.ceiling <= 0.0:
        raise AssumptionError(
            "threat must have a target that is not certain, got a prior on one record; "
            "no bound can be inverted."
        )
    return Baselines.of(threat)


# Audits of a local protocol against one threat: its prior, success and knowledge.

# Records up to which total disclosure is worked out as a channel.
_MOST_VALUES = 4096


def check_threat(threat: Threat, source: Source) -> Threat:
    """Return a threat whose records are the values of the source, in order."""
    if not isinstance(threat, Threat):
        raise TypeError(f"threat must be a Threat, got {type(threat).__name__}.")
    if len(threat.prior) != source.categories:
        raise MismatchError(
            f"threat must have one record for each of the {source.categories} values, "
            f"in their order, got {len(threat.prior)}."
        )
    return threat


def is_plain_threat(threat: Threat) -> bool:
    """Return whether a threat is the usual one: uniform, exact, nothing known."""
    m = len(threat.prior)
    if constant_baseline(threat) != 1.0 / m or threat.adjacency != "replace":
        return False
    (sets,) = threat.success.sets(threat.support, threat.fibres)
    return len(sets.sizes) == m


@dataclass(frozen=True)
class ThreatTest:
    """From the scores of an attack to what they certify for one claim.

    Parameters
    ----------
    claim : Claim
        What is promised.
    threat : Threat
        Against whom.
    confidence : float
        The confidence of the certificate.
    span : tuple of float
        The least and the largest score that there is.
    """

    claim: Claim
    threat: Threat
    confidence: float
    span: tuple[float, float]

    @cached_property
    def largest(self) -> float:
        """The advantage under total disclosure."""
        m = len(self.threat.prior)
        if m > _MOST_VALUES:  # an upper limit of it
            return self.threat.ceiling
        return advantage(Channel(np.eye(m)), self.threat).value

    @cached_property
    def allowed(self) -> Bound:
        """The largest advantage that the claim allows, by the best bound."""
        return advantage_limit(self.claim, self.threat)

    @cached_property
    def shift(self) -> float | None:
        """What guessing alone would hit, if every guess would hit the same."""
        return constant_baseline(self.threat)

    def lower(self, hits: int, seen: Moments) -> float:
        """Return the one-sided lower limit of the advantage."""
        if self.shift is not None:
            level = self.confidence
            low = clopper_pearson(hits, seen.trials, confidence=level, side="lower")[0]
            return nudge_down(low - nudge_up(self.shift))
        return seen.lower(self.span[1] - self.span[0], 1.0 - self.confidence)

    def best(self, trials: int) -> float:
        """Return the limit after total disclosure in so many trials, at its mean."""
        return self.lower(trials, Moments(trials, self.largest, 0.0))

    def trials_needed(self) -> int:
        """Return how many trials under total disclosure refute the claim."""
        allowed = self.allowed
        if self.largest <= allowed.value:
            raise AssumptionError(
                f"claim must allow less than the {self.largest:.6g} of total "
                f"disclosure against {self.threat.summary!r}, got {self.claim}, which "
                f"allows {allowed.value:.6g} ({allowed.theorem}); no audit against "
                "this threat can refute it."
            )
        return least_trials(lambda n: self.best(n) > allowed.value)

    def certify(self, gamma: float) -> tuple[Bound, float]:
        """Return the claimed parameter that an advantage needs, and the epsilon."""
        delta = self.claim.for_replacement().delta
        epsilon = advantage_epsilon(gamma, self.threat, delta=delta)
        if self.claim.parameter == "epsilon":
            return epsilon, epsilon.value
        return advantage_mu(gamma, self.threat), epsilon.value

    def interval(self, hits: int, seen: Moments) -> tuple[float, float, str]:
        """Return two-sided limits of the advantage, and how they were made."""
        level = self.confidence
        if self.shift is not None:
            low, high = clopper_pearson(hits, seen.trials, confidence=level)
            low = nudge_down(low - nudge_up(self.shift))
            high = nudge_up(high - nudge_down(self.shift))
            return low, high, "Clopper-Pearson, less the constant correction"
        span, tail = self.span[1] - self.span[0], (1.0 - level) / 2.0
        low, high = seen.lower(span, tail), seen.upper(span, tail)
        least, most = self.span
        method = "empirical Bernstein, self-paired scores"
        return max(low, least), min(high, most), method


def audit_threat(
    source: Source,
    claim: Claim,
    *,
    threat: Threat,
    trials: int,
    confidence: float,
    campaign: Campaign,
) -> AuditResult:
    """Run the trials against a threat and return what they certify.

    All trials certify: the attack is fixed by the law of the reports or by the claim.
    """
    work = ThreatTrials(source, threat, claim.for_replacement().level)
    test = ThreatTest(claim, threat, confidence, work.scorer.span)
    needed = test.trials_needed()
    if trials < needed:
        raise ValueError(
            f"trials must be at least {needed} to be able to refute {claim} against "
            f"{threat.summary!r}, got {trials}."
        )
    source.check_fresh(trials)
    against = f"{work.scorer.identity}, level {work.level!r}"
    job = f"audit_local of {source.identity} against {against}"
    counts = campaign.run(work, trials, phase=1, job=job)
    seed = campaign.seed if source.seeded else None
    return _result(source.name, test, counts, needed=needed, seed=seed)


def _result(
    name: str, test: ThreatTest, counts: Counts, *, needed: int, seed: int | None
) -> AuditResult:
    """Return the result of the counts."""
    n, hits = int(counts["trials"][0]), int(counts["threat_hits"][0])
    seen = Moments.read(counts, trials=n)
    measured = _advantage(test, hits, seen, seed)
    bound, epsilon = test.certify(test.lower(hits, seen))
    estimate, epsilon_estimate = test.certify(measured.value)
    power = _power(test, hits, seen, needed)
    method = f"reconstruct against the threat, by {bound.theorem}"
    numbers = (estimate.value, bound.value, n, True, test.claim.parameter)
    violated = bound.value > test.claim.for_replacement().level
    return AuditResult(
        name,
        test.claim,
        bound.value,
        test.confidence,
        n,
        epsilon,
        epsilon_estimate=epsilon_estimate,
        advantage=measured,
        methods=(MethodResult(method, *numbers, power["ceiling"]),),
        witness=_witness(test, hits, seen) if violated else None,
        power=power,
        seed=seed,
        estimate=estimate.value,
    )


def _advantage(
    test: ThreatTest, hits: int, seen: Moments, seed: int | None
) -> Estimate:
    """Return the measured advantage and its two-sided interval."""
    value = seen.mean if test.shift is None else hits / seen.trials - test.shift
    low, high, method = test.interval(hits, seen)
    low, high = min(low, value), max(high, value)
    return Estimate(value, low, high, test.confidence, seen.trials, seed, method)


def _power(test: ThreatTest, hits: int, seen: Moments, needed: int) -> dict[str, float]:
    """Return what as many trials with scores as spread could have shown."""
    gamma = seen.mean if test.shift is None else hits / seen.trials - test.shift
    from_here = test.allowed.value + (gamma - test.lower(hits, seen))
    able = from_here < test.largest
    return {
        "trials_needed": needed,
        "ceiling": test.certify(test.best(seen.trials))[0].value,
        "can_refute": able,
        "detectable": test.certify(from_here)[0].value if able else math.inf,
    }


def _witness(test: ThreatTest, hits: int, seen: Moments) -> Witness:
    low, allowed = test.lower(hits, seen), test.allowed
    summary = (
        f"{test.threat.summary}: right in {hits} of {seen.trials} trials, which is an "
        f"advantage of at least {low:.4g}; the claim allows {allowed.value:.4g} "
        f"({allowed.theorem})"
    )
    details: Mapping[str, Any] = {
        "hits": hits,
        "trials": seen.trials,
        "advantage": low,
        "allowed": allowed.value,
        "bound": allowed.theorem,
    }
    return Witness("attack", summary, details)


# Trials against a threat: targets of its prior, the guess that gains most, its score.
#
# The guess is the one whose hit set gains most from prior to posterior, within what is
# known of the target. The law of the reports serves to choose it and never enters the
# certificate.


# Entries of a table of which records each set holds; made where it is small.
_TABLE_CELLS = 1 << 24
# Least share of a likelihood: only what is chosen depends on it.
_LEAST = 1e-290
# Protocols whose law depends on the value only by whether the report supports it.
_SUPPORTED = GeneralizedResponse | LocalHashing | SubsetSelection | UnaryEncoding


def report_likelihood(source: Source, reports: Any, level: float) -> Floats:
    """Return the likelihood of each value as a share of the largest one.

    A subject without a protocol is read as one whose report favours the values that it
    supports by the `level`.
    """
    protocol = source.protocol
    if isinstance(protocol, _SUPPORTED):
        return _favoured(protocol.support(reports), protocol.loss().epsilon)
    if isinstance(protocol, SummationHistogram):
        table = np.asarray(reports, dtype=np.float64)
        rate = float(protocol.epsilon) / 2.0
        return _shares(rate * (np.abs(table) - np.abs(table - 1.0)))
    if isinstance(protocol, LocalProtocol):
        return _shares(protocol.log_densities(reports, range(source.categories)))
    if isinstance(source.reader, ValueReader):
        named = source.reader._read(reports)[:, None] == np.arange(source.categories)
        return _favoured(named, level)
    return _favoured(protocol.support(reports), level)


def _favoured(table: Any, level: float) -> Floats:
    least = max(_LEAST, math.exp(-level))
    return np.where(np.asarray(table, dtype=bool), 1.0, least)


def _shares(logs: Floats) -> Floats:
    shares = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(np.maximum(shares, _LEAST))


class _Group:
    """A fibre of several records: its hit sets, their masses, a guess for each."""

    def __init__(
        self, fibre: int, records: NDArray[np.intp], sets: HitSets, pmf: Floats
    ) -> None:
        self.fibre, self.records, self.sets = fibre, records, sets
        self.masses: Floats = sets.sums(pmf[records, None])[:, 0]
        self._guesses = np.unique(sets.member, return_index=True)[1]
        n = len(records)
        small = n * len(self.masses) <= _TABLE_CELLS
        self._inside = sets.sums(np.eye(n)) > 0.5 if small else None

    def hits(self, top: Ints, targets: Ints, threat: Threat) -> NDArray[np.bool_]:
        """Return whether the guess with each hit set hits the target of its report."""
        if self._inside is not None:
            place = np.searchsorted(self.records, targets)
            return np.asarray(self._inside[top, place])
        guesses = self._guesses[top]
        rule, support = threat.success, threat.support
        return np.asarray(rule.hits(support, guesses=guesses, truths=targets))


class ThreatScorer:
    """Scores reports of known targets: the hit, less what guessing alone would hit.

    Parameters
    ----------
    threat : Threat
        Prior, success rule and knowledge.
    """

    def __init__(self, threat: Threat) -> None:
        self.threat, self._pmf = threat, threat.prior.pmf
        self._labels, fibres = threat.labels, threat.fibres
        several = [z for z, fibre in enumerate(fibres) if len(fibre) > 1]
        sets = threat.success.sets(threat.support, [fibres[z] for z in several])
        self._groups = [
            _Group(z, fibres[z], hit_sets, self._pmf)
            for z, hit_sets in zip(several, sets, strict=True)
        ]
        self._single, self._hit, self._miss = self._read_single(fibres)

    @property
    def span(self) -> tuple[float, float]:
        """The least and the largest score that there is."""
        least, most = 0.0, 0.0
        for group in self._groups:
            least += 0.0 if self.threat.abstain else float(group.masses.min())
            most += float(group.masses.max())
        alone = self._pmf[self._single]
        least += float(alone[self._hit & ~self._miss].sum())
        most += float(alone[self._hit].sum())
        return -min(1.0, most), 1.0 - least

    @property
    def identity(self) -> str:
        """What the scores depend on besides the reports, in a few characters."""
        digest = hashlib.sha256(self._pmf.tobytes() + self._labels.tobytes())
        for part in (self._single, self._hit, self._miss):
            digest.update(part.tobytes())
        for group in self._groups:
            # Sums of weights of no simple ratios tell the sets apart.
            weights = np.sqrt(np.arange(2.0, len(group.records) + 2.0))
            digest.update(np.asarray(group.sets.member, dtype=np.int64).tobytes())
            digest.update(group.sets.sums(weights[:, None]).tobytes())
        return f"{digest.hexdigest()} abstain={self.threat.abstain}"

    def scores(
        self, likelihood: Floats, targets: Ints
    ) -> tuple[NDArray[np.bool_], Floats]:
        """Return whether each guess hits its target, and the score.

        The likelihood of each value is up to a factor of the report alone; positive.
        """
        gains = likelihood * self._pmf
        gains /= gains.sum(axis=1, keepdims=True)
        gains -= self._pmf
        hits, base = self._alone(gains, targets)
        threat = self.threat
        for group in self._groups:
            best = group.sets.sums(gains[:, group.records].T)
            top = best.argmax(axis=0)
            answered = (best.max(axis=0) >= 0.0) | (not threat.abstain)
            base += np.where(answered, group.masses[top], 0.0)
            own = np.flatnonzero((self._labels[targets] == group.fibre) & answered)
            hits[own] = group.hits(top[own], targets[own], threat)
        return hits, hits - base

    def _alone(self, gains: Floats, targets: Ints) -> tuple[NDArray[np.bool_], Floats]:
        """Score the targets of which everything is known: named if they gain."""
        hits = np.zeros(len(targets), dtype=bool)
        if not len(self._single):
            return hits, np.zeros(len(targets))
        named = self._hit & ((gains[:, self._single] > 0.0) | ~self._miss)
        place = np.full(len(self._pmf), -1)
        place[self._single] = np.arange(len(self._single))
        mine = place[targets]
        hits = (mine >= 0) & named[np.arange(len(targets)), mine]
        return hits, named @ self._pmf[self._single]

    def _read_single(
        self, fibres: tuple[NDArray[np.intp], ...]
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_], NDArray[np.bool_]]:
        """Return the records known in full, and if a guess can hit or miss each."""
        alone = [fibre for fibre in fibres if len(fibre) == 1]
        sets = self.threat.success.sets(self.threat.support, alone)
        records = np.array([fibre[0] for fibre in alone], dtype=np.intp)
        hit = np.array([bool((s.sizes > 0).any()) for s in sets], dtype=bool)
        miss = np.array([bool((s.sizes == 0).any()) for s in sets], dtype=bool)
        return records, hit, miss | self.threat.abstain


class ThreatTrials:
    """One report of each target drawn from the prior.

    Counts ``trials``, ``threat_hits``, and the sums of the scores.

    Parameters
    ----------
    source : Source
        The reports.
    threat : Threat
        Its records are the values of the source, in order.
    level : float
        Level of the law by which reports without a protocol are read.
    """

    def __init__(self, source: Source, threat: Threat, level: float) -> None:
        self.source, self.level = source, level
        self.scorer = ThreatScorer(threat)
        running = np.cumsum(threat.prior.pmf)
        self._running = running / running[-1]

    def __call__(self, size: int, rng: np.random.Generator) -> Counts:
        """Run so many trials."""
        drawn = np.searchsorted(self._running, rng.random(size), side="right")
        targets = drawn.astype(np.int64)
        reports = self.source.draw(targets, rng=rng)
        likelihood = report_likelihood(self.source, reports, self.level)
        hits, scores = self.scorer.scores(likelihood, targets)
        return {
            "trials": np.array([size]),
            "threat_hits": np.array([np.count_nonzero(hits)]),
            **score_counts(scores),
        }


# Limits of a mean from whole numbers that can be added up over parts.
#
# Scores are rounded down to multiples of :math:`2^{-24}`, so that their sums and sums
# of squares are exact in any order and a run can be cut, spread and resumed.

_BITS = 24
_UNIT = 1 << _BITS
# Covers the rounding of a width.
_MARGIN = 1e-12


def score_counts(scores: NDArray[np.float64]) -> Counts:
    """Return whole numbers that stand for scores in [-1, 1], their sum and squares.

    Examples
    --------
    >>> counts = score_counts(np.array([0.5, -0.25]))
    >>> Moments.read(counts, trials=2).mean
    0.125
    """
    whole = np.floor(scores * _UNIT).astype(np.int64)
    squares = whole * whole
    # In two words, as a sum of many squares would not fit into one.
    return {
        "scores": np.array([whole.sum()]),
        "squares": np.array([(squares >> _BITS).sum(), (squares % _UNIT).sum()]),
    }


@dataclass(frozen=True, slots=True)
class Moments:
    """How many scores there were, their mean and their variance."""

    trials: int
    mean: float
    variance: float

    @classmethod
    def read(cls, counts: Counts, *, trials: int) -> Moments:
        """Read the sums of :func:`score_counts`, exactly."""
        total = int(counts["scores"][0])
        squares = int(counts["squares"][0]) * _UNIT + int(counts["squares"][1])
        excess = Fraction(trials * squares - total * total, _UNIT * _UNIT)
        variance = excess / (trials * max(1, trials - 1))
        mean = Fraction(total, trials * _UNIT)
        return cls(trials, float(mean), inflate(float(variance), _MARGIN))

    def width(self, span: float, tail: float) -> float:
        r"""Return the one-sided half-width of Maurer and Pontil, rounded up.

        .. math:: \sqrt{\frac{2 \hat V \ln(2/\beta)}{n}} +
           \frac{7 s \ln(2/\beta)}{3 (n - 1)}

        Infinite for a single trial. Rounding the scores widens their span by a unit.
        """
        if self.trials < 2:
            return math.inf
        logs, n = math.log(2.0 / tail), self.trials
        first = math.sqrt(2.0 * self.variance * logs / n)
        wide = span + 1.0 / _UNIT
        return inflate(first + 7.0 * wide * logs / (3.0 * (n - 1)), _MARGIN)

    def lower(self, span: float, tail: float) -> float:
        """Return what the true mean is below with probability `tail` at most."""
        return nudge_down(self.mean - self.width(span, tail), 2)

    def upper(self, span: float, tail: float) -> float:
        """Return the same from above; scores were rounded down by up to a unit."""
        return nudge_up(self.mean + 1.0 / _UNIT + self.width(span, tail), 2)
