"""What a given attack achieves, measured by simulation, with limits that hold.

The advantage of an attack is measured from one set of outputs: each output scores the
hit on its own target minus the prior probability of a hit on an independent one. That
is unbiased and needs no second run of the mechanism. The interval fits the design: how
targets were drawn decides which limits are valid.

In order: the draws (which target, how many runs, in which batches), the scores of an
attack on them, the interval of the design, and the source's own estimator, which takes
a second set of draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Protocol, SupportsIndex, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtrit

from undertow._validate import check_choice, check_count, check_probability
from undertow.errors import MismatchError, NotApplicable
from undertow.numeric.array import Floats, Indices
from undertow.numeric.rounding import CLOSED_FORM, inflate, nudge_down, nudge_up
from undertow.results import Estimate, to_plain
from undertow.risk.finite import ABSTAIN
from undertow.risk.intervals import (
    clopper_pearson,
    empirical_bernstein,
    hoeffding_halfwidth,
    weighted_hoeffding_halfwidth,
)
from undertow.risk.threat import Threat

_INTERVALS = ("auto", "clopper-pearson", "hoeffding", "bernstein")
_ESTIMATORS = ("paired", "nested")


@dataclass(frozen=True, slots=True)
class AttackEstimate:
    """The measured figures of one attack; they bound no other attack.

    Parameters
    ----------
    success, advantage : Estimate
        Each with a certified interval of its own; the two do not hold jointly.
    correction : Estimate or float
        Success on an independent target; a float where it is the same for all attacks.
    descriptive : tuple of float, optional
        Student's interval of the advantage. It fails for rare successes, so it is no
        limit to rely on.
    design, estimator : str
        How the outputs were drawn and scored.
    mechanism_runs, attack_calls : int
        Outputs drawn, and outputs times fibres scored.
    """

    success: Estimate
    correction: Estimate | float
    advantage: Estimate
    descriptive: tuple[float, float] | None
    design: str
    estimator: str
    mechanism_runs: int
    attack_calls: int

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name, ready for JSON."""
        return {name: to_plain(getattr(self, name)) for name in self.__slots__}


def estimate_attack(
    sampler: Sampler,
    attack: Attack,
    threat: Threat,
    *,
    trials: SupportsIndex | None = None,
    design: Design = "plain",
    runs: SupportsIndex | None = None,
    confidence: float = 0.95,
    interval: Literal["auto", "clopper-pearson", "hoeffding", "bernstein"] = "auto",
    estimator: Literal["paired", "nested"] = "paired",
    progress: Progress | None = None,
    rng: np.random.Generator,
) -> AttackEstimate:
    r"""Measure success, correction and advantage of one attack.

    .. math:: \widehat{\mathrm{RAD}} = \frac1n \sum_i \Big( s(x_i, \theta_i) -
       \sum_{x'} \pi_{x'} s(x', \theta_i) \Big), \qquad
       s(x, \theta) = 1[\ell(A(\theta, a(x)), x) \le \eta]

    Parameters
    ----------
    sampler : Sampler
        Runs the mechanism on a target.
    attack : Attack
        The attack. A :class:`LawAttack` is scored by expected hits.
    threat : Threat
        Prior, success rule and knowledge.
    trials : int, optional
        Targets drawn from the prior; in the exhaustive design the least number of
        outputs, rounded up to full rounds over the records.
    design : {"plain", "exhaustive", "clustered"}, optional
        One output for each drawn target; `runs` outputs of every possible record,
        weighted by the prior; or `runs` outputs of each drawn target.
    runs : int, optional
        Outputs per target; not for the plain design.
    confidence : float, optional
        Of each interval by itself.
    interval : {"auto", "clopper-pearson", "hoeffding", "bernstein"}, optional
        ``"auto"`` takes Clopper-Pearson where hits are independent trials and the
        correction is constant, else Hoeffding with the weights of the exhaustive
        design, else empirical Bernstein on one value per target.
    estimator : {"paired", "nested"}, optional
        ``"nested"`` is the source's: a second set of outputs for the correction, scored
        against a second set of drawn targets. For comparison; it is wider.
    progress : callable, optional
        Called with the number of outputs scored so far and in all.
    rng : numpy.random.Generator
        Split into streams for targets, mechanism and attack, so that another attack
        meets the same outputs.

    Returns
    -------
    AttackEstimate
        Values as measured, negative ones included.

    Raises
    ------
    NotApplicable
        If the interval asked for is not valid for the design.

    Notes
    -----
    The estimator is unbiased in every design (Equation 5.5 of [1]_; proved on the page
    on estimation). Several outputs of one drawn target are one observation of the
    average over targets: pooled as if independent, limits of 99 % fail in 13 % to 30 %
    of runs. In the exhaustive design the sample is worth :math:`J/\kappa_\pi` trials.
    Not checkable: that the sampler draws independent outputs of what is really
    released. The nested estimator follows Section 5.5 of [2]_.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025.

    Examples
    --------
    >>> from undertow.mechanisms.local import GeneralizedResponse
    >>> from undertow.risk import ProtocolSampler
    >>> from undertow.risk.threat import Prior
    >>> class Report:
    ...     def guess(self, outputs, known, *, rng):
    ...         return outputs
    >>> measured = estimate_attack(
    ...     ProtocolSampler(GeneralizedResponse(10, 2)), Report(),
    ...     Threat(Prior.uniform(10)), trials=20_000, rng=np.random.default_rng(1),
    ... )
    >>> measured.correction, measured.advantage.method
    (0.1, 'Clopper-Pearson, less the constant correction')
    >>> measured.advantage.low < 0.350848 < measured.advantage.high
    True
    """
    check_probability(confidence, "confidence", open_interval=True)
    check_choice(interval, "interval", choices=_INTERVALS)
    check_choice(estimator, "estimator", choices=_ESTIMATORS)
    targets, runner, guesser = rng.spawn(3)
    plan = plan_draws(threat, design=design, trials=trials, runs=runs, rng=targets)
    scorer = Scorer(attack, threat, expected=interval != "clopper-pearson")
    measured = Measured(plan, threat, confidence, interval, not scorer.expected)
    score = _paired if estimator == "paired" else _nested
    return score(sampler, scorer, measured, (targets, runner, guesser), progress)


def _paired(
    sampler: Sampler,
    scorer: Scorer,
    measured: Measured,
    streams: Streams,
    progress: Progress | None,
) -> AttackEstimate:
    plan, constant = measured.plan, constant_baseline(measured.threat)
    hit, base = score_draws(sampler, scorer, plan, streams, progress)
    advantage = measured.advantage(hit, base, constant)
    return AttackEstimate(
        measured.success(hit),
        measured.mean(base, 0.0, 1.0) if constant is None else constant,
        advantage,
        measured.student(hit - base, advantage.value),
        plan.design,
        "paired",
        plan.total,
        scorer.calls,
    )


def _nested(
    sampler: Sampler,
    scorer: Scorer,
    measured: Measured,
    streams: Streams,
    progress: Progress | None,
) -> AttackEstimate:
    plan = measured.plan
    found = nested_estimates(
        sampler, scorer, measured, streams=streams, progress=progress
    )
    return AttackEstimate(
        *found, None, plan.design, "nested", 2 * plan.total, scorer.calls
    )


# How simulated outputs are drawn: which target, how many runs, in which batches.

Design = Literal["plain", "exhaustive", "clustered"]
"""Independent targets; every record equally often; several runs of drawn targets."""

Progress = Callable[[int, int], None]
"""Called with the number of outputs done, and of all outputs."""

_DESIGNS = ("plain", "exhaustive", "clustered")


@runtime_checkable
class Sampler(Protocol):
    """Anything that runs a mechanism on a target: a black box is enough."""

    def sample(self, record: int, size: int, *, rng: np.random.Generator) -> Any:
        """Draw outputs.

        Parameters
        ----------
        record : int
            Number of the record that takes part, as in ``threat.support``.
        size : int
            Number of independent outputs.
        rng : numpy.random.Generator
            Stream of the mechanism.

        Returns
        -------
        ndarray with `size` along its first axis, or any object for `size` outputs
            Whatever the attack reads; arrays are joined to larger batches.
        """


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """A plan: how many outputs of each record, and which of them are one target's.

    Parameters
    ----------
    design : {"plain", "exhaustive", "clustered"}
        Where the targets come from.
    records, counts : ndarray of int, of shape (k,)
        The records that are run, each at least once, and how often.
    runs : int
        Consecutive outputs of the same target.
    """

    design: Design
    records: NDArray[np.intp]
    counts: NDArray[np.intp]
    runs: int

    @property
    def total(self) -> int:
        """Number of outputs."""
        return int(self.counts.sum())

    def unit_means(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Average over the runs of each target, or of each record if exhaustive."""
        return np.asarray(values.reshape(-1, self.runs).mean(axis=1))


def plan_draws(
    threat: Threat,
    *,
    design: str,
    trials: SupportsIndex | None,
    runs: SupportsIndex | None,
    rng: np.random.Generator,
) -> Draws:
    """Draw the targets and group them by record, which changes no law."""
    pmf = threat.prior.pmf
    possible = np.flatnonzero(pmf > 0)
    if check_choice(design, "design", choices=_DESIGNS) == "exhaustive":
        each = _rounds(trials, runs, len(possible))
        counts = np.full(len(possible), each, dtype=np.intp)
        return Draws("exhaustive", possible, counts, each)
    if trials is None or (design == "clustered") == (runs is None or runs == 1):
        raise ValueError(
            "trials must be given, with runs of at least 2 for the clustered design "
            f"and none for the plain one, got trials {trials} and runs {runs}."
        )
    each = 1 if runs is None else check_count(runs, "runs")
    targets = rng.multinomial(check_count(trials, "trials"), pmf)
    drawn = np.flatnonzero(targets)
    counts = (targets[drawn] * each).astype(np.intp)
    return Draws("plain" if each == 1 else "clustered", drawn, counts, each)


def batches(
    sampler: Sampler, plan: Draws, *, width: int, rng: np.random.Generator
) -> Iterator[tuple[NDArray[np.intp], Any]]:
    """Hand out records and outputs, about `width` at a time, in the plan's order.

    Arrays of several records are joined, so that an attack is called once per batch;
    other objects come one record at a time.
    """
    kept: list[tuple[int, Any]] = []
    held = 0
    for record, count in zip(plan.records.tolist(), plan.counts.tolist(), strict=True):
        for start in range(0, count, width):
            size = min(width, count - start)
            outputs = sampler.sample(record, size, rng=rng)
            joins = isinstance(outputs, np.ndarray)
            if joins and len(outputs) != size:
                raise ValueError(
                    f"a sampler must return {size} outputs when asked for them, got "
                    f"{len(outputs)}."
                )
            if kept and (not joins or held + size > width):
                yield _joined(kept, held)
                kept, held = [], 0
            if joins:
                kept.append((record, outputs))
                held += size
            else:
                yield np.full(size, record, dtype=np.intp), outputs
    if kept:
        yield _joined(kept, held)


def _joined(kept: list[tuple[int, Any]], held: int) -> tuple[NDArray[np.intp], Any]:
    records = np.empty(held, dtype=np.intp)
    start = 0
    for record, outputs in kept:
        records[start : start + len(outputs)] = record
        start += len(outputs)
    return records, np.concatenate([outputs for _, outputs in kept])


def _rounds(
    trials: SupportsIndex | None, runs: SupportsIndex | None, records: int
) -> int:
    """Return how often every record is run, at least `trials` outputs in all."""
    if trials is None and runs is None:
        raise ValueError("runs must be given for the exhaustive design, or trials.")
    if trials is None:
        return check_count(runs or 0, "runs")
    each = -(-check_count(trials, "trials") // records)
    if runs is not None and runs != each:
        raise ValueError(
            f"runs must be {each} for {trials} trials of {records} records, got "
            f"{runs}; leave one of them out."
        )
    return each


# What an attack scores on simulated outputs: hits, and what guessing alone would hit.
#
# For an output and an attack, the *baseline* is the prior probability that the guess
# made for each target's knowledge hits that target. It needs one evaluation of the
# attack per fibre of what is known, and no further run of the mechanism.


# Multiples of 2**-52 up to 2 add without rounding, in any order.
_STEPS = 2.0**52
# Fibres up to this size are scored truth by truth, without a table over all guesses.
_SMALL = 16
# Entries of the table of guesses or hits held at a time.
_ENTRIES = 1 << 22
_TOLERANCE = 1e-9


@runtime_checkable
class Attack(Protocol):
    """A rule from outputs and what is known of the target to guesses."""

    def guess(
        self, outputs: Any, known: int, *, rng: np.random.Generator
    ) -> NDArray[np.integer[Any]]:
        """Answer a batch of outputs.

        Parameters
        ----------
        outputs : object
            A batch, as the sampler made it.
        known : int
            What is known of the target: a number into ``threat.fibres``.
        rng : numpy.random.Generator
            Stream of the attack.

        Returns
        -------
        ndarray of int
            One number into ``threat.guesses`` for each output, or ``ABSTAIN``.
        """


@runtime_checkable
class LawAttack(Attack, Protocol):
    """A randomised attack that states its law, which saves the noise of drawing."""

    def guess_law(self, outputs: Any, known: int) -> Floats:
        """Return the probability of each guess: shape (outputs, guesses)."""


class Scorer:
    """Scores batches of outputs of known records.

    Parameters
    ----------
    attack : Attack
        The attack; its law is used if it states one and `expected` holds.
    threat : Threat
        Prior, success rule and knowledge.
    expected : bool
        Whether expected hits may stand for drawn ones.
    pmf : ndarray, optional
        Weights of the baseline; the prior by default.
    """

    __slots__ = (
        "_alone",
        "_constant",
        "_fibres",
        "_guesses",
        "_labels",
        "_masses",
        "_pmf",
        "attack",
        "calls",
        "expected",
        "threat",
    )

    def __init__(
        self,
        attack: Attack,
        threat: Threat,
        *,
        expected: bool,
        pmf: Floats | None = None,
    ) -> None:
        if not isinstance(attack, Attack):
            raise TypeError(
                f"attack must have a method guess, got {type(attack).__name__}."
            )
        self.attack, self.threat, self.calls = attack, threat, 0
        self.expected = expected and isinstance(attack, LawAttack)
        self._labels, self._fibres = threat.labels, threat.fibres
        self._guesses = len(threat.guesses)
        self._constant = constant_baseline(threat) if pmf is None else None
        weights = threat.prior.pmf if pmf is None else pmf
        self._pmf = grid_weights(weights)
        self._masses = {} if self._constant is not None else self._tables()
        small = [f for f in self._fibres if len(f) <= _SMALL]
        none = np.zeros(0, dtype=np.intp)
        self._alone = np.concatenate([none, *small])

    def score(
        self, records: Indices, outputs: Any, *, rng: np.random.Generator
    ) -> tuple[Floats, Floats]:
        """Return the hit on the own record, and the baseline, of each output."""
        self.calls += len(records) * len(self._fibres)
        if self.expected:
            return self._expected_score(records, outputs)
        guesses = np.stack(
            [
                self._answers(outputs, known, size=len(records), rng=rng)
                for known in range(len(self._fibres))
            ],
            axis=1,
        )
        own = guesses[np.arange(len(records)), self._labels[records]]
        hit = self._hits(own, records)
        if self._constant is not None:
            return hit, np.full(len(records), self._constant)
        return hit, self._baselines(guesses)

    def __repr__(self) -> str:
        return f"Scorer({self.attack!r})"

    @property
    def width(self) -> int:
        """How many outputs to score at a time: the same for every attack."""
        return max(64, _ENTRIES // max(len(self.threat.prior), self._guesses, 128))

    def _tables(self) -> dict[int, Floats]:
        """Return the mass of what each guess hits, for the larger fibres."""
        large = [z for z, fibre in enumerate(self._fibres) if len(fibre) > _SMALL]
        fibres = [self._fibres[z] for z in large]
        found = self.threat.success.sets(self.threat.support, fibres)
        return {
            z: sets.sums(self._pmf[self._fibres[z], None])[sets.member, 0]
            for z, sets in zip(large, found, strict=True)
        }

    def _answers(
        self, outputs: Any, known: int, *, size: int, rng: np.random.Generator
    ) -> Indices:
        answers = np.asarray(self.attack.guess(outputs, known, rng=rng))
        least = ABSTAIN if self.threat.abstain else 0
        if answers.shape != (size,) or answers.dtype.kind not in "iu":
            raise MismatchError(
                f"an attack must return {size} whole numbers, got {answers.dtype} of "
                f"shape {answers.shape}."
            )
        if size and not (answers.min() >= least and answers.max() < self._guesses):
            raise MismatchError(
                f"an attack must guess among {self._guesses} guesses, and decline only "
                f"where the threat allows it, got {answers.min()} to {answers.max()}."
            )
        return answers.astype(np.intp, copy=False)

    def _hits(self, guesses: Indices, truths: Indices) -> Floats:
        given = guesses != ABSTAIN
        found = self.threat.success.hits(
            self.threat.support, guesses=np.where(given, guesses, 0), truths=truths
        )
        return np.asarray(found & given, dtype=np.float64)

    def _baselines(self, guesses: Indices) -> Floats:
        """Return the prior mass of the targets hit by the guesses for their fibres."""
        alone = self._hits(guesses[:, self._labels[self._alone]], self._alone)
        total: Floats = alone @ self._pmf[self._alone]
        for z, masses in self._masses.items():
            column = guesses[:, z]
            total += np.where(column != ABSTAIN, masses[np.maximum(column, 0)], 0.0)
        return total

    def _expected_score(self, records: Indices, outputs: Any) -> tuple[Floats, Floats]:
        """Return expected hits and baselines, from the law of the guesses."""
        assert isinstance(self.attack, LawAttack)
        hit, base = np.zeros(len(records)), np.zeros(len(records))
        for z, masses in enumerate(self._each_mass()):
            law = np.asarray(self.attack.guess_law(outputs, z), dtype=np.float64)
            self._require_law(law, len(records))
            own = np.flatnonzero(self._labels[records] == z)
            if own.size:
                hit[own] = self._chances(law[own], records[own])
            if masses is not None:
                base += law @ masses
        return hit, base if self._constant is None else base + self._constant

    def _chances(self, law: Floats, records: Indices) -> Floats:
        """Return the probability that each law hits its own record."""
        everything = np.arange(self._guesses, dtype=np.intp)[:, None]
        present, place = np.unique(records, return_inverse=True)
        chances = law @ self._hits(everything, present)
        return np.minimum(1.0, chances[np.arange(len(records)), place.reshape(-1)])

    def _each_mass(self) -> Iterator[Floats | None]:
        """Hand out the mass of what each guess hits, fibre by fibre, if it matters."""
        step = max(1, _ENTRIES // self._guesses)
        for start in range(0, len(self._fibres), step):
            numbers = range(start, min(start + step, len(self._fibres)))
            missing = [z for z in numbers if z not in self._masses]
            if self._constant is not None:
                yield from (None for _ in numbers)
                continue
            # One call for many fibres: reading the success rule costs O(records).
            asked = [self._fibres[z] for z in missing]
            found = self.threat.success.sets(self.threat.support, asked)
            sets = dict(zip(missing, found, strict=True))
            for z in numbers:
                if z in sets:
                    sums = sets[z].sums(self._pmf[self._fibres[z], None])
                    yield sums[sets[z].member, 0]
                else:
                    yield self._masses[z]

    def _require_law(self, law: Floats, size: int) -> None:
        total = law.sum(axis=1) if law.ndim == 2 else np.zeros(0)
        proper = law.shape == (size, self._guesses) and bool(
            law.min() >= 0
            and total.max() <= 1 + _TOLERANCE
            and (self.threat.abstain or total.min() >= 1 - _TOLERANCE)
        )
        if not proper:
            raise MismatchError(
                f"a law of guesses must have shape ({size}, {self._guesses}) and rows "
                f"that sum to 1, got shape {law.shape}."
            )


def constant_baseline(threat: Threat) -> float | None:
    """Return the baseline of every attack, if all of them have the same.

    So it is under a uniform prior without knowledge, if all guesses hit equally many
    records and none may be declined; with exact success it is 1/m.

    Examples
    --------
    >>> from undertow.risk.threat import Prior
    >>> constant_baseline(Threat(Prior.uniform(4)))
    0.25
    >>> constant_baseline(Threat(Prior(2, [0.7, 0.3]))) is None
    True
    """
    pmf = threat.prior.pmf
    if threat.abstain or len(threat.fibres) > 1 or pmf.min() < pmf.max():
        return None
    (sets,) = threat.success.sets(threat.support, threat.fibres)
    least, most = int(sets.sizes.min()), int(sets.sizes.max())
    return least / len(pmf) if least == most else None


def grid_weights(pmf: Floats) -> Floats:
    """Round weights to multiples of 2**-52, which add without rounding in any order.

    So the success of an attack that ignores the output equals its correction exactly.
    """
    return np.asarray(np.rint(pmf * _STEPS) / _STEPS)


# From scores to estimates: the interval that is valid for the design of the draws.


@dataclass(frozen=True, slots=True)
class Measured:
    """Turns scores into estimates with the interval that fits the design."""

    plan: Draws
    threat: Threat
    confidence: float
    interval: str
    whole: bool  # hits were drawn, not expected

    @property
    def weights(self) -> Floats:
        """The weight of each target, or of each record in the exhaustive design."""
        if self.plan.design == "exhaustive":
            return grid_weights(self.threat.prior.pmf[self.plan.records])
        units = self.plan.total // self.plan.runs
        return np.full(units, 1.0 / units)

    @property
    def counts_are_trials(self) -> bool:
        """Whether hits are independent trials of equal weight, with small tails."""
        if not self.whole or self.plan.design == "clustered":
            return False
        if self.plan.design == "plain":
            return True
        return bool(np.ptp(self.weights) == 0.0 and 1.0 - self.confidence <= 0.5)

    def success(self, hit: Floats) -> Estimate:
        """Return the success probability."""
        if self.interval in ("auto", "clopper-pearson") and self.counts_are_trials:
            low, high = self._counted(hit)
            value = float(hit.sum()) / self.plan.total
            return self._estimate(value, low, high, "Clopper-Pearson")
        return self.mean(hit, 0.0, 1.0)

    def advantage(self, hit: Floats, base: Floats, constant: float | None) -> Estimate:
        """Return success less correction."""
        value = self._difference(hit, base)
        counted = self.counts_are_trials and constant is not None
        if self.interval in ("auto", "clopper-pearson") and counted:
            low, high = self._counted(hit)
            shift = float(constant or 0.0)
            low, high = nudge_down(low - shift), nudge_up(high - shift)
            method = "Clopper-Pearson, less the constant correction"
            return self._estimate(value, low, high, method)
        if self.interval == "clopper-pearson":
            raise NotApplicable(
                "Clopper-Pearson must have independent hits of equal weight and a "
                "correction that is the same for every guess, got another design or "
                "threat; use interval='auto'."
            )
        if constant is not None:
            return self.mean(hit - base, -constant, 1.0 - constant, value=value)
        return self.mean(hit - base, -1.0, 1.0, value=value)

    def mean(
        self,
        values: Floats,
        lowest: float,
        highest: float,
        *,
        value: float | None = None,
    ) -> Estimate:
        """Return a mean of values in an interval."""
        centre = self._average(values) if value is None else value
        units, span = self.plan.unit_means(values), highest - lowest
        stratified = self.plan.design == "exhaustive"
        if stratified and self.interval == "bernstein":
            raise NotApplicable(
                "empirical Bernstein must have targets drawn from the prior, got every "
                "record; use interval='hoeffding'."
            )
        if stratified or self.interval == "hoeffding" or len(units) < 2:
            low, high, method = self._hoeffding(centre, len(units), span)
        else:
            slack = CLOSED_FORM
            low, high = empirical_bernstein(
                units,
                confidence=self.confidence,
                lowest=lowest - slack,
                highest=highest + slack,
            )
            method = "empirical Bernstein, one value per target"
        # The truth lies in the range; a centre outside it is rounding.
        centre = min(max(centre, lowest), highest)
        low, high = max(low, lowest), min(high, highest)
        return self._estimate(centre, min(low, centre), max(high, centre), method)

    def student(self, values: Floats, value: float) -> tuple[float, float] | None:
        """Return the normal approximation around the value, for description only."""
        units, weights = self.plan.unit_means(values), self.weights
        tail = (1.0 + self.confidence) / 2.0
        if self.plan.design != "exhaustive" and len(units) > 1:
            quantile = float(stdtrit(len(units) - 1, tail))
            width = quantile * float(units.std(ddof=1)) / math.sqrt(len(units))
        elif self.plan.design == "exhaustive" and self.plan.runs > 1:
            J = self.plan.runs
            spread = values.reshape(-1, J).var(axis=1, ddof=1)
            width = float(ndtri(tail)) * math.sqrt(float(weights**2 @ spread) / J)
        else:
            return None
        return value - width, value + width

    def _difference(self, hit: Floats, base: Floats) -> float:
        """Return success less correction, exactly 0 if no output matters."""
        if base.min() == base.max():
            return self._average(hit) - float(base[0])
        return self._average(hit - base)

    def _average(self, values: Floats) -> float:
        units = self.plan.unit_means(values)
        if self.plan.design != "exhaustive":
            return math.fsum(units.tolist()) / len(units)
        return math.fsum((self.weights * units).tolist())

    def _counted(self, hit: Floats) -> tuple[float, float]:
        return clopper_pearson(
            int(hit.sum()),
            self.plan.total,
            confidence=self.confidence,
            equal=self.plan.design == "plain",
        )

    def _hoeffding(
        self, centre: float, units: int, span: float
    ) -> tuple[float, float, str]:
        if self.plan.design == "exhaustive":
            collision = min(
                1.0, inflate(float(self.weights @ self.weights), CLOSED_FORM)
            )
            width = weighted_hoeffding_halfwidth(
                collision, self.plan.runs, confidence=self.confidence, span=span
            )
            method = "Hoeffding, weighted by the prior"
        else:
            width = hoeffding_halfwidth(units, confidence=self.confidence, span=span)
            method = "Hoeffding, one value per target"
        # The average is rounded by less than the margin.
        return centre - width - CLOSED_FORM, centre + width + CLOSED_FORM, method

    def _estimate(self, value: float, low: float, high: float, way: str) -> Estimate:
        return Estimate(value, low, high, self.confidence, self.plan.total, method=way)


# Scoring a plan of draws, and the source's estimator with a second set of them.

Streams = tuple[np.random.Generator, np.random.Generator, np.random.Generator]
"""Of the targets, the mechanism and the attack."""


def score_draws(
    sampler: Sampler,
    scorer: Scorer,
    plan: Draws,
    streams: Streams,
    progress: Progress | None = None,
) -> tuple[Floats, Floats]:
    """Return hit and baseline of every output, in the order of the plan."""
    hit, base, done = np.empty(plan.total), np.empty(plan.total), 0
    for records, outputs in batches(sampler, plan, width=scorer.width, rng=streams[1]):
        part = slice(done, done + len(records))
        hit[part], base[part] = scorer.score(records, outputs, rng=streams[2])
        done += len(records)
        if progress is not None:
            progress(done, plan.total)
    return hit, base


def nested_estimates(
    sampler: Sampler,
    scorer: Scorer,
    measured: Measured,
    *,
    streams: Streams,
    progress: Progress | None,
) -> tuple[Estimate, Estimate, Estimate]:
    r"""Return success, correction and advantage of the nested estimator.

    The correction is the mean over I fresh targets' outputs of the hits on I other
    fresh targets. Exchanging one of these 2I independent draws moves it by at most 1/I,
    so that by the bounded-differences inequality it is within
    :math:`\sqrt{\ln(2/\beta)/I}` of its mean.
    """
    plan, threat = measured.plan, measured.threat
    if plan.design == "exhaustive":
        raise NotApplicable(
            "the nested estimator must have targets drawn from the prior, got every "
            "record; use estimator='paired'."
        )
    size = plan.total // plan.runs
    if size < 2:
        raise ValueError(f"trials must be at least 2 for nested draws, got {size}.")
    hit, _ = score_draws(sampler, scorer, plan, streams, progress)
    # Another stream of the attack's would repeat its draws, so it goes on.
    base = _fresh_baselines(sampler, scorer, plan, streams, threat)
    success = measured.success(hit)
    part = (1.0 + measured.confidence) / 2.0
    split = Measured(plan, threat, part, measured.interval, measured.whole)
    low, high = _around(base, size, measured.confidence)
    first = split.success(hit)
    least, most = _around(base, size, part)
    mean = math.fsum(base.tolist()) / len(base)
    runs, method = 2 * plan.total, "bounded differences"
    correction = Estimate(mean, low, high, measured.confidence, runs, method=method)
    advantage = Estimate(
        first.value - mean,
        first.low - most,
        first.high - least,
        measured.confidence,
        runs,
        method=f"{first.method} and bounded differences, half of the error each",
    )
    return success, correction, advantage


def _fresh_baselines(
    sampler: Sampler, scorer: Scorer, plan: Draws, streams: Streams, threat: Threat
) -> Floats:
    """Score new outputs against new targets, in place of the whole prior."""
    pmf, size = threat.prior.pmf, plan.total // plan.runs
    inner = streams[0].multinomial(size, pmf) / size
    outer = streams[0].multinomial(size, pmf)
    drawn = np.flatnonzero(outer)
    counts = (outer[drawn] * plan.runs).astype(np.intp)
    fresh = Draws(plan.design, drawn, counts, plan.runs)
    second = Scorer(scorer.attack, threat, expected=scorer.expected, pmf=inner)
    _, base = score_draws(sampler, second, fresh, streams)
    scorer.calls += second.calls
    return base


def _around(base: Floats, size: int, confidence: float) -> tuple[float, float]:
    mean = math.fsum(base.tolist()) / len(base)
    width = hoeffding_halfwidth(size // 2, confidence=confidence)
    return min(mean, max(0.0, mean - width)), max(mean, min(1.0, mean + width))
