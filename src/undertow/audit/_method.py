"""The three methods of a local audit, and which of them certifies.

What each counts, estimates and certifies; the choice is made on a pilot whose trials
certify nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, SupportsIndex

import numpy as np
from scipy.special import ndtri

from undertow._validate import check_count
from undertow.audit._trial import PairTrials, Source, UniformTrials, ValueTrials
from undertow.audit.certificate import (
    SequentialTest,
    epsilon_from_success,
    event_epsilon,
    event_mu,
    odds_epsilon,
    ratio_mu_sequence,
    ratio_sequence,
    success_epsilon,
    success_mu,
)
from undertow.audit.claim import Claim
from undertow.audit.runner import Counts, Trials
from undertow.privacy.loss import GDP
from undertow.results import Witness
from undertow.risk.intervals import clopper_pearson

# Of each limit of the rates that a pilot leaves possible.
_HOPE = 0.999
SECOND, FIRST, BOTH = 1, 2, 3
"""Numbers into the cells: the report supports one value of a pair alone, or both."""


class Tally(NamedTuple):
    """Hits on the input that favours the event and on the other, with their trials."""

    hits: int
    trials: int
    against: int
    against_trials: int


def _separation(first: float, second: float) -> float:
    """Return the mu at which a test has these rates; signed, infinite if certain."""
    if first <= second:  # also where both are 0, or both 1
        return 0.0 if first == second else -_separation(second, first)
    return float(ndtri(first) - ndtri(second))


def _extreme(tally: Tally) -> Tally:
    """Return the outcome that speaks loudest against a claim."""
    return tally._replace(hits=tally.trials, against=0)


@dataclass(frozen=True, slots=True)
class Method(ABC):
    """A way to turn counts into a certificate for one claim."""

    claim: Claim
    confidence: float
    name = ""

    @abstractmethod
    def trials(self, source: Source) -> Trials:
        """Return the trials whose counts the method reads."""

    @abstractmethod
    def tally(self, counts: Counts) -> Tally:
        """Return the numbers that the method reads from the counts."""

    @abstractmethod
    def certify(self, tally: Tally, *, tried: int = 1) -> tuple[float, float]:
        """Return the certified parameter of the claim and the certified epsilon.

        `tried` is the number of events among which these counts chose.
        """

    @abstractmethod
    def certify_anytime(self, tally: Tally) -> tuple[float, float]:
        """Return the same with limits that hold at all times."""

    @abstractmethod
    def estimate(self, tally: Tally) -> float:
        """Return the point estimate of epsilon."""

    @abstractmethod
    def estimate_mu(self, tally: Tally) -> float:
        """Return the point estimate of mu of Gaussian DP."""

    @abstractmethod
    def describe(self) -> str:
        """Return the attack or event in words."""

    def claimed(self, tally: Tally) -> float:
        """Return the point estimate of the claimed parameter, at least 0."""
        gaussian = self.claim.parameter == "mu"
        found = self.estimate_mu(tally) if gaussian else self.estimate(tally)
        return max(0.0, found)

    def ceiling(self, tally: Tally, *, tried: int = 1) -> float:
        """Return the largest certificate that as many trials could give."""
        return self.certify(_extreme(tally), tried=tried)[0]

    def hopeful(self, counts: Counts, trials: int) -> float:
        """Return the certificate at the best rates that a pilot leaves possible."""
        seen = self.tally(counts)
        if not (seen.trials and seen.against_trials):
            return 0.0  # one input was never drawn
        scale = trials / int(counts["trials"][0])
        high = clopper_pearson(*seen[:2], confidence=_HOPE, side="upper")[1]
        low = clopper_pearson(*seen[2:], confidence=_HOPE, side="lower")[0]
        n, m = round(seen.trials * scale), round(seen.against_trials * scale)
        return self.certify(Tally(math.ceil(high * n), n, math.floor(low * m), m))[0]

    def expected(self, counts: Counts, trials: int) -> float:
        """Return the certificate of so many trials with the rates of these."""
        return self.certify(self._foreseen(counts, trials))[0]

    def margin(self, counts: Counts, trials: int) -> float:
        """Return how far that certificate is below the estimate of the same rates."""
        seen = self._foreseen(counts, trials)
        return self.claimed(seen) - self.certify(seen)[0]

    def suggested(self, counts: Counts) -> float:
        """Return the point estimate of the claimed parameter that the rates suggest."""
        return self.claimed(self._foreseen(counts, int(counts["trials"][0])))

    def _foreseen(self, counts: Counts, trials: int) -> Tally:
        """Return what so many trials would show with the rates of these.

        One more trial is held against the method, as a rare outcome that a pilot did
        not show is not an impossible one.
        """
        scale = trials / int(counts["trials"][0])
        seen = self.tally(counts)
        seen = seen._replace(
            hits=max(0, seen.hits - 1),
            against=min(seen.against + 1, seen.against_trials),
        )
        return Tally(*(round(number * scale) for number in seen))

    def choices(self, counts: Counts) -> int:
        """Return among how many events the counts of a pilot chose this one."""
        return 1

    def witness(self, counts: Counts) -> Witness:
        """Return what refutes the claim."""
        return Witness("event", self.describe(), self.tally(counts)._asdict())


@dataclass(frozen=True, slots=True)
class Reconstruct(Method):
    """The simple attack names the value, each being equally likely."""

    categories: int = 2
    name = "reconstruct"

    def trials(self, source: Source) -> Trials:
        """Return trials that count the successes."""
        return UniformTrials(source, pairs=False)

    def tally(self, counts: Counts) -> Tally:
        """Return successes, failures and trials."""
        hits, n = int(counts["successes"][0]), int(counts["trials"][0])
        return Tally(hits, n, n - hits, n)

    def certify(self, tally: Tally, *, tried: int = 1) -> tuple[float, float]:
        """Return the inverse of Corollary 5.16 at the limit of the success."""
        m, level = self.categories, 1.0 - (1.0 - self.confidence) / tried
        delta = self.claim.for_replacement().delta
        seen = (tally.hits, tally.trials, m)
        epsilon = success_epsilon(*seen, delta=delta, confidence=level).value
        if isinstance(self.claim.loss, GDP):
            return success_mu(*seen, confidence=level).value, epsilon
        return epsilon, epsilon

    def certify_anytime(self, tally: Tally) -> tuple[float, float]:
        """Return the inverse at the confidence sequence of the success."""
        claims = (self.claim, Claim.approx(1, self.claim.for_replacement().delta))
        value, epsilon = (
            SequentialTest(claim, self.categories, self.confidence).look(*tally[:2])
            for claim in claims
        )
        return value, epsilon

    def estimate(self, tally: Tally) -> float:
        """Return the inverse of Corollary 5.16 at the observed success."""
        delta = self.claim.for_replacement().delta
        rate = tally.hits / tally.trials
        return epsilon_from_success(rate, self.categories, delta=delta)

    def estimate_mu(self, tally: Tally) -> float:
        """Return the inverse of the Gaussian limit at the observed success."""
        rate = tally.hits / tally.trials
        return _separation(rate, (1.0 - rate) / (self.categories - 1))

    def describe(self) -> str:
        """Return the attack in words."""
        return f"the attack names the value, one of {self.categories}"


@dataclass(frozen=True, slots=True)
class _Event(Method, ABC):
    """An event that is to be more likely on one input than on the other."""

    def certify(self, tally: Tally, *, tried: int = 1) -> tuple[float, float]:
        """Return the odds of the outcomes, or two limits where delta or mu asks."""
        level, delta = self.confidence, self.claim.for_replacement().delta
        if not (tally.trials and tally.against_trials):
            return 0.0, 0.0  # one input was never drawn
        if isinstance(self.claim.loss, GDP):
            epsilon = event_epsilon(*tally, confidence=level, tried=tried).value
            return event_mu(*tally, confidence=level, tried=tried).value, epsilon
        if delta:
            bound = event_epsilon(*tally, delta=delta, confidence=level, tried=tried)
        else:
            seen = (tally.hits, tally.against)
            bound = odds_epsilon(*seen, confidence=level, tried=tried)
        return bound.value, bound.value

    def certify_anytime(self, tally: Tally) -> tuple[float, float]:
        """Return the odds, or two sequences where delta or mu asks."""
        level, delta = self.confidence, self.claim.for_replacement().delta
        if isinstance(self.claim.loss, GDP) or delta:
            pair = (tally[:2], tally[2:])
            epsilon = ratio_sequence(*pair, delta=delta, confidence=level).value
            if delta:
                return epsilon, epsilon
            return ratio_mu_sequence(*pair, confidence=level).value, epsilon
        seen = (tally.hits, tally.hits + tally.against)
        value = SequentialTest(Claim.pure(1), 2, level).look(*seen)
        return value, value

    def estimate(self, tally: Tally) -> float:
        """Return the log of the observed ratio."""
        kept = tally.hits / max(1, tally.trials) - self.claim.for_replacement().delta
        against = tally.against / max(1, tally.against_trials)
        if kept <= 0 or not tally.against_trials:
            return -math.inf
        return math.log(kept / against) if against else math.inf

    def estimate_mu(self, tally: Tally) -> float:
        """Return the distance of two unit normals with the observed rates."""
        if not (tally.trials and tally.against_trials):
            return -math.inf
        rates = (tally.hits / tally.trials, tally.against / tally.against_trials)
        return _separation(*rates)


@dataclass(frozen=True, slots=True)
class Pairs(_Event):
    """The report supports its value and not another one, or the other way round."""

    reverse: bool = False
    name = "pairs"

    def trials(self, source: Source) -> Trials:
        """Return trials that count the pairs, and the attack."""
        return PairTrials(source)

    def tally(self, counts: Counts) -> Tally:
        """Return both outcomes; every trial stands for both inputs of its pair."""
        pooled, n = counts["pooled"], int(counts["trials"][0])
        first, second = int(pooled[FIRST]), int(pooled[SECOND])
        pair = (second, n, first, n) if self.reverse else (first, n, second, n)
        return Tally(*pair)

    def choices(self, counts: Counts) -> int:
        """Return 2: a pilot chooses the direction."""
        return 2

    def describe(self) -> str:
        """Return the event in words."""
        ends = (
            ("another value", "its own") if self.reverse else ("its value", "another")
        )
        return f"the report supports {ends[0]} and not {ends[1]}, all pairs pooled"


@dataclass(frozen=True, slots=True)
class Single(_Event):
    """One value against all others, and one cell."""

    value: int = 0
    cell: int = FIRST
    reverse: bool = False
    name = "value"

    def trials(self, source: Source) -> Trials:
        """Return trials of the value and of uniform others."""
        return ValueTrials(source, self.value)

    def tally(self, counts: Counts) -> Tally:
        """Return the hits and the trials of both roles."""
        table = (
            counts["roles"] if "roles" in counts else counts["table"][..., self.value]
        )
        hits, trials = table[:, self.cell], table.sum(axis=1)
        order = (1, 0) if self.reverse else (0, 1)
        return Tally(*(int(part[i]) for i in order for part in (hits, trials)))

    def choices(self, counts: Counts) -> int:
        """Return the number of values, cells and directions."""
        return int(counts["table"].size)  # two roles stand for two directions

    def describe(self) -> str:
        """Return the event in words."""
        roles = ("others", "it") if self.reverse else ("it", "others")
        words = ("neither", "the other alone", "it alone", "both")
        return (
            f"value number {self.value} against uniform others: the report supports "
            f"{words[self.cell]}; {roles[0]} against {roles[1]}"
        )


# Which method certifies: chosen on a pilot whose trials certify nothing.

# Share of the trials that chooses the method, and the most it may be.
_SHARE = 20
_PILOT = 50_000
# Support bits that the pilot may read.
_BITS = 1 << 26


def pilot_size(trials: SupportsIndex, categories: SupportsIndex) -> int:
    """Return how many trials choose the method.

    Examples
    --------
    >>> pilot_size(10**6, 100), pilot_size(1000, 100)
    (50000, 50)
    """
    n = check_count(trials, "trials")
    most = min(_PILOT, _BITS // check_count(categories, "categories"))
    return max(1, min(n // _SHARE, most))


def total_trials(needed: int, categories: int) -> int:
    """Return how many trials leave the needed ones after the pilot.

    Examples
    --------
    >>> total_trials(95, 10), total_trials(3, 10)
    (99, 4)
    """
    total = needed
    while total - pilot_size(total, categories) < needed:
        total += needed - (total - pilot_size(total, categories))
    return total


def candidates(
    pilot: Counts, claim: Claim, m: int, confidence: float
) -> tuple[Method, ...]:
    """Return the three methods, with the direction and value the pilot suggests."""
    pooled = pilot["pooled"]
    return (
        Reconstruct(claim, confidence, m),
        Pairs(claim, confidence, bool(pooled[SECOND] > pooled[FIRST])),
        _best_value(pilot, claim, confidence),
    )


def _best_value(pilot: Counts, claim: Claim, confidence: float) -> Single:
    """Return the value, cell and direction of the largest cautious ratio."""
    table = pilot["table"]
    own, other = table[0].astype(float), table[1].astype(float)
    # Two standard errors below the log-ratio; a half keeps empty cells finite.
    center = np.log((own + 0.5) / (other + 0.5))
    error = 2.0 * np.sqrt(1.0 / (own + 0.5) + 1.0 / (other + 0.5))
    score = np.abs(center) - error
    cell, value = np.unravel_index(int(np.argmax(score)), score.shape)
    reverse = bool(center[cell, value] < 0)
    return Single(claim, confidence, int(value), int(cell), reverse)


def choose(methods: tuple[Method, ...], pilot: Counts, trials: int) -> Method:
    """Return the method with the largest expected certificate, as the pilot shows it.

    A method that can never refute the claim gives way to one that the pilot leaves a
    chance to. The single value is taken only if the pilot shows it beyond all chance:
    it was the best of many.
    """
    *plain, single = methods
    best = _best_plain(plain, pilot, trials)
    seen, tried = single.tally(pilot), single.choices(pilot)
    shown = single.certify(seen, tried=tried)[0]
    ahead = shown > max(0.0, best.expected(pilot, trials))
    return single if ahead and _reaches(single, pilot, trials, best) else best


def _best_plain(methods: Sequence[Method], pilot: Counts, trials: int) -> Method:
    def expected(method: Method) -> float:
        return method.expected(pilot, trials)

    best = _favourite(methods, pilot, trials)
    goal = best.claim.for_replacement().level
    if _ceiling(best, pilot, trials) > goal:
        return best
    able = [method for method in methods if method.hopeful(pilot, trials) > goal]
    return max(able or [best], key=expected)


def _favourite(methods: Sequence[Method], pilot: Counts, trials: int) -> Method:
    """Return the method with the largest expected certificate.

    If the pilot does not tell the two apart: the attack if it never had to guess, as
    it then has the population value of the pairs and the narrower interval.
    """
    reconstruct, pairs = methods
    pooled = pilot["pooled"]
    if pooled[SECOND] > pooled[FIRST] or _differ(reconstruct, pairs, pilot):
        return max(methods, key=lambda method: method.expected(pilot, trials))
    guessed = int(pilot["successes"][0]) != int(pooled[FIRST] + pooled[BOTH])
    return pairs if guessed else reconstruct


def _differ(method: Method, other: Method, pilot: Counts) -> bool:
    """Return whether the estimates of the pilot differ beyond their joint margin."""
    size = int(pilot["trials"][0])
    margins = (each.margin(pilot, size) for each in (method, other))
    gap = abs(method.suggested(pilot) - other.suggested(pilot))
    return gap > math.hypot(*margins)


def _reaches(method: Method, pilot: Counts, trials: int, other: Method) -> bool:
    """Return whether a method can refute the claim, or the other cannot either."""
    goal = method.claim.for_replacement().level
    if _ceiling(method, pilot, trials) > goal:
        return True
    return other.hopeful(pilot, trials) <= goal


def _ceiling(method: Method, pilot: Counts, trials: int) -> float:
    """Return the largest certificate that so many trials could give."""
    scale = trials / int(pilot["trials"][0])
    seen = method.tally(pilot)
    return method.ceiling(Tally(*(round(number * scale) for number in seen)))
