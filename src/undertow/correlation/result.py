"""What a leakage computation hands back: a bound, an estimate or a calibration.

A :class:`Leakage` is a proved bound on what a Bayesian attacker learns, with the
model, the scope and the class of attackers it speaks of; a verdict without these
three means nothing. A :class:`LeakageEstimate` is a measured lower bound. A
:class:`LeakageCalibration` is the noise that keeps a promise, and its price. An
:class:`Adversary` says who attacks: the record aimed at, and the records already
known. What a leakage means for the attacker's odds stands at the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any

from undertow._validate import (
    check_count,
    check_index,
    check_non_negative,
    check_probability,
)
from undertow.correlation.query import Scope
from undertow.errors import NotApplicable
from undertow.mechanisms.accuracy import laplace_accuracy
from undertow.mechanisms.continuous import LaplaceMechanism
from undertow.mechanisms.discrete import DiscreteLaplaceMechanism
from undertow.mechanisms.randomized_response import RandomizedResponse
from undertow.numeric.exact import exact, round_up
from undertow.numeric.rounding import inflate, nudge_down, nudge_up
from undertow.privacy.loss import Pure
from undertow.results import Alternative, Bound, Calibration, Estimate, Witness, _Shown

# Scales tried for what rounding adds; two or three are enough, if any is.
_TRIES = 8
_EVERY = "every epsilon-DP mechanism"


@dataclass(frozen=True, slots=True)
class Leakage(Bound):
    """A proved Bayesian-DP leakage (BDPL): exact, or an upper bound.

    Parameters
    ----------
    value, theorem, unchecked, checked, quantity, witness, tight
        As in :class:`~undertow.privacy.Bound`; `tight` says that some mechanism of the
        stated class, or the stated mechanism itself, attains the value.
    method : str
        Name of the engine, as given to ``method=``.
    model : str
        The model in words.
    mechanisms : str
        The class of mechanisms the value holds for.
    scope : Scope
        The pairs of secrets it covers.
    attackers : str
        The class of attackers it covers.
    alternatives : tuple of Alternative
        What other methods give, or why they do not apply.
    """

    quantity: str = "BDPL"
    method: str = ""
    model: str = ""
    mechanisms: str = _EVERY
    scope: Scope = field(default_factory=Scope)
    attackers: str = "anyone who knows any subset of the other records"
    alternatives: tuple[Alternative, ...] = ()

    def __post_init__(self) -> None:
        # Not super().__post_init__(): zero-argument super and slots do not mix.
        Bound.__post_init__(self)
        if not self.value >= 0:
            raise ValueError(f"leakage must be non-negative, got {self.value}.")

    @property
    def is_exact(self) -> bool:
        """Whether the value is attained, not only an upper bound."""
        return self.tight is True

    @property
    def is_for_every_mechanism(self) -> bool:
        """Whether nothing but the DP level of the mechanism is used."""
        return self.mechanisms == _EVERY


@dataclass(frozen=True, slots=True)
class LeakageEstimate(Estimate):
    """A measured leakage: a lower bound that holds with the stated confidence.

    It is never a guarantee. `low` is the certified lower bound on the leakage, `high`
    is infinite where nothing bounds it from above.

    Parameters
    ----------
    value, low, high, confidence, trials, seed, method
        As in :class:`~undertow.privacy.Estimate`.
    adversary : Adversary, optional
        The attacker it was measured for.
    pair : tuple, optional
        The two secrets told apart.
    event : str
        The outputs on which they are told apart, in words.
    tried : int
        How many (attacker, pair, event) were tested; their error is shared.
    """

    adversary: Adversary | None = None
    pair: tuple[Any, Any] | None = None
    event: str = ""
    tried: int = 1


@dataclass(frozen=True, slots=True)
class CoveredMechanisms(_Shown):
    """The mechanisms that a calibrated promise is about; it says nothing of others.

    Parameters
    ----------
    epsilon : float
        The DP level of the promise.
    noise_scale : float
        The Laplace scale for the query.
    sensitivity : float
        Most that one record moves the query.
    every : bool
        Whether every mechanism of this DP level is covered; otherwise Laplace noise on
        the query, continuous or on a lattice of `step` or finer by powers of two.
    step : Fraction, optional
        The largest power of two of which every answer is a multiple, the coarsest
        lattice covered; None where the answers are real numbers.

    Notes
    -----
    Laplace noise of one scale tells *more* on a coarser lattice: noise on a finer one,
    and continuous noise, is the coarse noise plus independent noise. Real answers are
    rounded to the lattice before they are released, which adds at most its step over
    the scale to a leakage: at most :math:`2^{-24}` for
    :class:`~undertow.mechanisms.LaplaceMechanism`.
    """

    epsilon: float
    noise_scale: float
    sensitivity: float
    every: bool
    step: Fraction | None = None

    @property
    def family(self) -> str:
        """The family of noise: ``"laplace"``, or ``"any"`` for every mechanism."""
        return "any" if self.every else "laplace"

    def to_dict(self) -> dict[str, Any]:
        """Return the family, the fields and the class in words."""
        # Not super().to_dict(): zero-argument super and slots do not mix.
        fields = _Shown.to_dict(self)
        return {"family": self.family, **fields, "summary": self.summary}

    @property
    def summary(self) -> str:
        """The class in words.

        Examples
        --------
        >>> CoveredMechanisms(0.5, 2.0, 1.0, every=False, step=Fraction(1)).summary
        'Laplace noise of scale 2 or more on the query, on multiples of 1 or finer'
        """
        if self.every:
            return f"every mechanism that is {self.epsilon:g}-DP"
        lattice = (
            f"on multiples of {float(self.step):g} or finer"
            if self.step is not None
            else "continuous, or rounded to a lattice at step/scale more leakage"
        )
        noise = f"Laplace noise of scale {self.noise_scale:g} or more"
        return f"{noise} on the query, {lattice}"

    @property
    def released_scale(self) -> float:
        """A scale whose released values keep the level, hardly larger than needed.

        Infinite where the level is so small that one step of the lattice costs more. It
        is above `noise_scale` where rounding moves two answers further apart than
        the sensitivity.

        Examples
        --------
        >>> covered = CoveredMechanisms(0.2, 0.5, 0.1, every=True)
        >>> covered.released_scale > 0.5
        True
        """
        scale, level = self.noise_scale, exact(self.epsilon)
        for _ in range(_TRIES):
            paid = _pure_level(LaplaceMechanism(scale), self.sensitivity)
            if paid <= level:
                return scale
            # A larger scale may have a larger step.
            scale = max(round_up(exact(scale) * paid / level), nudge_up(scale))
            if scale == math.inf:
                break
        return math.inf

    def require(self, mechanism: Any) -> None:
        """Refuse a mechanism that the promise does not cover.

        Parameters
        ----------
        mechanism : mechanism or Pure
            Laplace noise or a randomised response; where every mechanism is covered,
            also the loss of any other.

        Raises
        ------
        NotApplicable
            If it is of another family, its noise too small, its lattice too coarse, or
            its level too high.

        Examples
        --------
        >>> covered = CoveredMechanisms(0.5, 2.0, 1.0, every=False, step=Fraction(1))
        >>> covered.require(DiscreteLaplaceMechanism(2))
        >>> covered.require(RandomizedResponse(2, "0.5"))
        Traceback (most recent call last):
        ...
        undertow.errors.NotApplicable: mechanism must be Laplace noise of scale 2 ...
        """
        if self.every:
            self._require_level(mechanism)
        else:
            self._require_noise(mechanism)

    def _require_level(self, mechanism: Any) -> None:
        if isinstance(mechanism, Pure) and mechanism.continuous:
            raise NotApplicable(
                "mechanism must state the loss of what is drawn for the promise to "
                f"hold, got {mechanism} of continuous noise; give the Pure loss of its "
                "released mechanism."
            )
        level = _pure_level(mechanism, self.sensitivity)
        if level is None or level > exact(self.epsilon):
            got = "no pure loss" if level is None else f"{round_up(level):.6g}"
            scale = self.released_scale
            noise = "DiscreteLaplaceMechanism"
            if scale < math.inf:
                noise = f"LaplaceMechanism({scale!r})"
            raise NotApplicable(
                f"mechanism must be {self.epsilon:g}-DP for the promise to hold, got "
                f"{got} for {type(mechanism).__name__}; use {noise}, or give the Pure "
                "loss of the mechanism."
            )

    def _require_noise(self, mechanism: Any) -> None:
        fits = (
            isinstance(mechanism, LaplaceMechanism | DiscreteLaplaceMechanism)
            and mechanism.dimension == 1
            and mechanism.scale >= exact(self.noise_scale)
        )
        if fits and self.step is not None:
            drawn = (
                mechanism.released
                if isinstance(mechanism, LaplaceMechanism)
                else mechanism
            )
            fits = self.step % drawn.step == 0
        if not fits:
            raise NotApplicable(
                f"mechanism must be {self.summary}, got {mechanism!r}; calibrate with "
                "query=AnyQuery() for a promise about every mechanism of one level."
            )


def _pure_level(mechanism: Any, sensitivity: float) -> Any:
    """Return the exact pure level of a release for one record, None if not known."""
    if isinstance(mechanism, Pure):
        return mechanism.exact_parameters()[0]
    if isinstance(mechanism, RandomizedResponse):
        return mechanism.epsilon
    if isinstance(mechanism, LaplaceMechanism):
        return mechanism.released_loss(sensitivity).exact_parameters()[0]
    if isinstance(mechanism, DiscreteLaplaceMechanism):
        steps = math.ceil(exact(sensitivity) / mechanism.step)
        return steps * mechanism.step / mechanism.scale
    return None


@dataclass(frozen=True, slots=True)
class Accuracy:
    """How far the noisy answer is from the (clipped) one, for the noise named.

    Parameters
    ----------
    alpha : float
        Error that is reached with probability at most `beta`.
    beta : float
        That probability.
    mae : float
        Mean absolute error at most: the noise scale.
    noise : str
        The noise that it speaks of, in words.
    """

    alpha: float
    beta: float
    mae: float
    noise: str = ""

    @classmethod
    def of_laplace(
        cls, scale: float, beta: float, *, step: Fraction | None = None
    ) -> Accuracy:
        """Return the accuracy of a query with Laplace noise of a scale.

        Parameters
        ----------
        scale, beta : float
            The noise, and how often the error may be passed.
        step : Fraction, optional
            A power of two of which every answer is a multiple, 1 for a count; None
            where the answers are real numbers.

        Notes
        -----
        Noise on the lattice of the answers errs more often than noise on any finer
        lattice and than continuous noise; the error is that of the former, so that it
        holds for all of them. Real answers get the error of continuous noise. What is
        released of them is rounded to a lattice and gets noise on it: it passes `alpha`
        plus one step of the lattice with probability at most `beta`, because q steps of
        size s of discrete noise have a two-sided tail of
        ``2 exp(-q s / b) / (1 + exp(-s / b))``, which is at most
        ``exp(-(q - 1/2) s / b)``.

        Examples
        --------
        >>> Accuracy.of_laplace(1.0, 0.05, step=Fraction(1)).alpha
        4.0
        >>> round(Accuracy.of_laplace(1.0, 0.05).alpha, 6)
        2.995732
        """
        if step is None:
            words = "continuous Laplace noise; on a lattice at most one step more"
            return cls(laplace_accuracy(scale, beta), beta, scale, words)
        exponent = step.numerator.bit_length() - step.denominator.bit_length()
        drawn = DiscreteLaplaceMechanism(scale, exponent=exponent)
        words = f"Laplace noise on multiples of {float(step):g}, or finer"
        return cls(drawn.accuracy(beta), beta, scale, words)

    def to_dict(self) -> dict[str, float | str]:
        """Return the three numbers by name, and the noise where it is said."""
        said = {"noise": self.noise} if self.noise else {}
        return {"alpha": self.alpha, "beta": self.beta, "mae": self.mae, **said}


@dataclass(frozen=True, slots=True)
class LeakageCalibration(Calibration):
    """The DP level and noise that keep a Bayesian promise, and what it costs.

    Parameters
    ----------
    parameter, value, achieves, method, alternatives
        As in :class:`~undertow.privacy.Calibration`: the parameter is ``"epsilon"``,
        `value` the DP level, `achieves` the :class:`Leakage` at it.
    target : float
        The promise: largest leakage allowed.
    noise_scale : float
        Laplace scale for the query; infinite where no answer can be given.
    sensitivity : float
        Most that one record moves the query.
    accuracy : Accuracy
        Error of the noisy answer.
    floor : float, optional
        Error that *no* mechanism can stay below under the promise when nothing but
        the group sizes is known of the law; None where no such statement holds.
    covers : CoveredMechanisms, optional
        The mechanisms that the promise is about; None where no finite noise keeps it.
    """

    target: float = math.inf
    noise_scale: float = math.inf
    sensitivity: float = 1.0
    accuracy: Accuracy | None = None
    floor: float | None = None
    covers: CoveredMechanisms | None = None

    @property
    def epsilon(self) -> float:
        """The DP level."""
        return self.value

    @property
    def cost(self) -> float:
        """How many times more noise than for independent records."""
        return self.target / self.value if self.value > 0 else math.inf


# Who attacks: the record aimed at, and the records already known.

# More known records than this are counted instead of listed in words.
_LISTED = 6


@dataclass(frozen=True, slots=True)
class Adversary:
    """An attacker (K, i): knows the records `known`, aims at the record `target`.

    Parameters
    ----------
    target : int
        Index of the record aimed at, from 0.
    known : iterable of int
        Indices of the records known; the target is not among them.
    values : mapping of int to object, optional
        What is known: the value of each known record, where a worst one was found.

    Examples
    --------
    >>> Adversary(2, {0, 4}, {0: 1, 4: 0}).summary
    'aims at record 2, knows record 0 = 1 and record 4 = 0'
    >>> Adversary(0).summary
    'aims at record 0, knows no other record'
    """

    target: int
    known: frozenset[int] = frozenset()
    values: Mapping[int, Any] = field(default_factory=dict, hash=False)

    def __init__(
        self,
        target: int,
        known: Iterable[int] = (),
        values: Mapping[int, Any] | None = None,
    ) -> None:
        listed = frozenset(check_count(j, "known record", minimum=0) for j in known)
        object.__setattr__(self, "target", check_count(target, "target", minimum=0))
        object.__setattr__(self, "known", listed)
        object.__setattr__(self, "values", MappingProxyType(dict(values or {})))
        if self.target in self.known:
            raise ValueError(
                f"known must not contain the target, got record {target} in both."
            )
        if not set(self.values) <= self.known:
            stray = sorted(set(self.values) - self.known)[0]
            raise ValueError(f"values must be of known records, got record {stray}.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Adversary, (self.target, tuple(self.known), dict(self.values))

    def within(self, size: int) -> Adversary:
        """Return the adversary itself, after checking its indices against `size`."""
        for record in (self.target, *self.known):
            check_index(record, "record", size=size)
        return self

    def unknown(self, size: int) -> tuple[int, ...]:
        """Return the records neither known nor aimed at, among `size` records."""
        self.within(size)
        return tuple(j for j in range(size) if j not in self.known and j != self.target)

    @property
    def summary(self) -> str:
        """The adversary in words."""
        return f"aims at record {self.target}, knows {self._known_words()}"

    def _known_words(self) -> str:
        if not self.known:
            return "no other record"
        if len(self.known) > _LISTED:
            return f"{len(self.known)} other records"
        words = [self._record_words(j) for j in sorted(self.known)]
        return (
            words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
        )

    def _record_words(self, record: int) -> str:
        if record in self.values:
            return f"record {record} = {self.values[record]}"
        return f"record {record}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "target": self.target,
            "known": sorted(self.known),
            "values": {str(j): self.values[j] for j in sorted(self.values)},
        }


def adversary_witness(
    adversary: Adversary,
    *,
    pair: tuple[Any, Any] | None = None,
    output: Any = None,
    note: str = "",
) -> Witness:
    """Return the witness of a leakage: who, which two secrets, which output.

    Examples
    --------
    >>> adversary_witness(Adversary(0, {1}), pair=(1, 0), output=2).summary
    'aims at record 0, knows record 1; tells 1 from 0; seeing 2'
    """
    words = [adversary.summary]
    details: dict[str, Any] = dict(adversary.to_dict())
    if pair is not None:
        words.append(f"tells {pair[0]} from {pair[1]}")
        details["pair"] = pair
    if output is not None:
        words.append(f"seeing {output}")
        details["output"] = output
    if note:
        words.append(note)
    return Witness("adversary", "; ".join(words), details)


# What a leakage means: how far an attacker's odds can move.

# Covers the rounding of the exponential and of the few operations around it.
_MARGIN = 1e-14


def posterior_odds_interval(
    prior_odds: float, leakage: float | Leakage
) -> tuple[float, float]:
    r"""Return how far the odds of one secret against another can move.

    .. math:: o\,e^{-B} \le o' \le o\,e^{B}

    Parameters
    ----------
    prior_odds : float
        The odds o before the release, given what the attacker knows; non-negative.
    leakage : float or Leakage
        The B; may be infinite.

    Returns
    -------
    tuple of float
        Least and greatest odds after the release, rounded outwards.

    Notes
    -----
    Equation 19 of [1]_: the leakage is the supremum of posterior minus prior log-odds.
    Odds of 0 and infinity stay: no release makes the impossible possible.

    References
    ----------
    .. [1] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> low, high = posterior_odds_interval(1.0, 1.0)
    >>> round(low, 6), round(high, 6)
    (0.367879, 2.718282)
    """
    odds, bound = check_non_negative(prior_odds, "prior_odds"), _read(leakage)
    if odds in (0.0, math.inf):
        return odds, odds
    # The product is split, so that tiny odds and large leakages do not overflow.
    low, high = math.log(odds) - bound, math.log(odds) + bound
    slack = _MARGIN * (1 + abs(math.log(odds)) + (bound if bound < math.inf else 0))
    return _exp(low - slack), _exp(high + slack)


def posterior_probability_interval(
    prior: float, leakage: float | Leakage
) -> tuple[float, float]:
    r"""Return how far the probability of one of two secrets can move.

    .. math:: \frac{p}{p + (1-p)e^{B}} \le p' \le \frac{p}{p + (1-p)e^{-B}}

    Parameters
    ----------
    prior : float
        Probability p of the secret before the release, against one other; in [0, 1].
    leakage : float or Leakage
        The B; may be infinite.

    Returns
    -------
    tuple of float
        Least and greatest probability after the release, rounded outwards.

    Notes
    -----
    :func:`posterior_odds_interval` at odds :math:`p/(1-p)`. With more than two possible
    secrets it holds for the conditional probability given that it is one of the two. A
    leakage of 8, common in plots of the literature, moves even odds to 0.9997: it says
    next to nothing.

    Examples
    --------
    >>> low, high = posterior_probability_interval(0.5, 1.0)
    >>> round(low, 6), round(high, 6)
    (0.268941, 0.731059)
    """
    p, bound = check_probability(prior, "prior"), _read(leakage)
    if p in (0.0, 1.0):
        return p, p
    low = p / (p + (1 - p) * _exp(bound))
    high = p / (p + (1 - p) * _exp(-bound))
    slack = 4 * _MARGIN
    return max(0.0, nudge_down(low * (1 - slack))), min(1.0, inflate(high, slack))


def _read(leakage: float | Leakage) -> float:
    if isinstance(leakage, Leakage):
        return leakage.value
    return check_non_negative(leakage, "leakage")


def _exp(exponent: float) -> float:
    try:
        return math.exp(exponent)
    except OverflowError:
        return math.inf
