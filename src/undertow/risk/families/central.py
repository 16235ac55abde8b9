"""Families of mechanisms with a curator, and all families by their names.

Laplace and Gaussian noise on a number: under the uniform prior, exact success and no
knowledge the advantage is a sum over the gaps between neighbouring answers; every other
threat goes to the exact engine for one-dimensional outputs. Channels with finitely many
outputs, such as the exponential mechanism, are given as a function of epsilon.

`FAMILIES` has these and those of local protocols by the names of the command line.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import erf, erfcx, erfinv, ndtr

from undertow._validate import (
    check_choice,
    check_count,
    check_positive,
    check_probability,
)
from undertow.errors import AssumptionError, NotApplicable
from undertow.mechanisms import (
    DiscreteLaplaceMechanism,
    ExponentialMechanism,
    GaussianMechanism,
    LaplaceMechanism,
)
from undertow.mechanisms.local import PROTOCOLS
from undertow.numeric.array import Floats
from undertow.numeric.exact import Number, exact, round_up
from undertow.numeric.rounding import nudge_up
from undertow.privacy.gaussian import gaussian_sigma
from undertow.privacy.loss import GDP, Approx, Loss, Pure
from undertow.risk.channel import Channel
from undertow.risk.exact import advantage
from undertow.risk.families.base import (
    CELLS,
    CoveredFamily,
    Curve,
    Family,
    Structure,
    answers_advantage,
    closed_view,
    uniform_prior,
)
from undertow.risk.families.local import local_family, ss
from undertow.risk.finite import Risk
from undertow.risk.number import ScalarChannel
from undertow.risk.threat import Threat

# The level lies this share below what was solved for, for noise rounded otherwise.
_GUARD = 1e-12
_LAPLACE = (
    "the noise is continuous, or drawn by LaplaceMechanism, whose fine lattice adds at "
    "most 2**-24 to an advantage; noise in whole numbers on the same answers tells "
    "more (step=1)"
)
_GAUSSIAN = (
    "the noise is continuous, or drawn by GaussianMechanism, whose fine lattice adds "
    "at most 2**-24 to an advantage and is priced in zCDP, not GDP; noise in whole "
    "numbers on the same answers tells more"
)
_ROOT8 = math.sqrt(8.0)
_ROOT2 = math.sqrt(2.0)
# Rounding of a ratio of two tails.
_UNITS = 16.0 * 2.0**-53


class AdditiveFamily(Family):
    r"""Laplace or Gaussian noise on a numeric answer, one answer per record.

    Parameters
    ----------
    answers : array_like of shape (m,)
        What would be published without noise, for each record; the other records fixed.
    kind : {"laplace", "gaussian"}
        The noise.
    sensitivity : float, optional
        Most that replacing a record moves the answer; the range of `answers` by
        default, and never less.
    parameter : {"epsilon", "scale", "sigma"}
        What is chosen; noise is the sensitivity over the level.
    delta : float
        Of the Gaussian mechanism chosen by epsilon.
    step : Fraction, optional
        For Laplace noise on a lattice: a power of two of which every answer is a
        multiple. Continuous noise by default.

    Notes
    -----
    Level: :math:`\Delta/b`, which is epsilon, or :math:`\Delta/\sigma`, which is
    :math:`\mu`. More noise is the same noise plus independent noise, so the risk is
    monotone under every threat; on a lattice as well.
    """

    largest = 1e12

    def __init__(
        self,
        answers: ArrayLike,
        *,
        kind: str,
        sensitivity: float | None = None,
        parameter: str = "epsilon",
        delta: float = 0.0,
        name: str | None = None,
        step: Fraction | None = None,
    ) -> None:
        self.answers = _read_answers(answers)
        span = Fraction(self.answers.max()) - Fraction(self.answers.min())
        reach = round_up(span)
        self.sensitivity = check_positive(
            reach if sensitivity is None else sensitivity, "sensitivity"
        )
        if self.sensitivity < span:
            raise AssumptionError(
                f"sensitivity must be at least the range {reach!r} of the answers, got "
                f"{sensitivity}; a replaced record moves the answer that far."
            )
        self.name, self.kind, self.parameter = name or kind, kind, parameter
        self.delta, self.records = delta, len(self.answers)
        self.rises = parameter == "epsilon"
        self.step = step
        self.caveats = (_LAPLACE if kind == "laplace" else _GAUSSIAN,)
        if step is not None:
            self.caveats = (f"the noise is on multiples of {float(step):g}, or finer",)
            _require_multiples(self.answers, step)
        gaps = np.diff(np.sort(self.answers)) / self.sensitivity
        self._gaps, self._counts = np.unique(gaps[gaps > 0], return_counts=True)
        self._reach = reach / self.sensitivity

    @property
    def covers(self) -> CoveredFamily:
        """The noise that the risk is about, and the lattices it may be drawn on."""
        kind = self.kind.capitalize()
        where = f"continuous, or drawn by {kind}Mechanism on its fine lattice"
        if self.step is not None:
            where = f"on multiples of {float(self.step):g}, or finer by powers of two"
        words = f"{kind} noise of the size stated or more on the answer, {where}"
        return CoveredFamily(self.name, words, self.kind, self.step)

    def noise(self, parameter: float) -> float:
        """Return the scale or standard deviation at a parameter, rounded up."""
        value = check_positive(parameter, self.parameter)
        if not self.rises:
            return value
        if self.kind == "gaussian":
            return gaussian_sigma(self.sensitivity, value, delta=self.delta)
        return nudge_up(self.sensitivity / value)

    def mechanism(
        self, parameter: float, *, structure: int | None = None
    ) -> LaplaceMechanism | GaussianMechanism | DiscreteLaplaceMechanism:
        """Return the mechanism; its noise is rounded up."""
        noise = self.noise(parameter)
        if self.step is not None:
            return DiscreteLaplaceMechanism(noise, exponent=_exponent_of(self.step))
        return LaplaceMechanism(noise) if self._laplace else GaussianMechanism(noise)

    def loss(self, parameter: float) -> Loss:
        """Return the guarantee for answers within the sensitivity of each other.

        It is that of continuous noise, which is what the risks are computed for. What a
        mechanism draws is noise on a lattice: see its `released_loss`, which for
        Gaussian noise is in zCDP and never GDP.
        """
        value = check_positive(parameter, self.parameter)
        ratio = Fraction(self.sensitivity) / Fraction(self.noise(value))
        if self._laplace:
            return Pure(ratio)
        if self.rises:
            return Approx(value, self.delta, continuous=True)
        return GDP.from_square(ratio**2).of_continuous_noise()

    def level(self, parameter: float) -> float:
        """Return the sensitivity over the noise, rounded up."""
        return nudge_up(self.sensitivity / self.noise(parameter))

    def parameters(self, levels: Floats) -> Floats:
        """Return the parameter of each level, rounded to the private side."""
        lowered = levels * (1.0 - _GUARD)
        if not self.rises:
            with np.errstate(divide="ignore"):
                return np.asarray(np.nextafter(self.sensitivity / lowered, np.inf))
        return lowered if self._laplace else _epsilons(lowered, self.delta)

    def least(self, curve: Curve) -> float:
        """Return the risk at epsilon 0, which delta leaves."""
        if not self.delta:
            return Family.least(self, curve)
        start = np.array([_ROOT8 * float(erfinv(self.delta))])
        return float(curve.values(start, None)[0])

    def variation(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return the total variation between the two extreme answers."""
        if self.step is None:
            return self._overlap(levels * self._reach)
        # Equal masses lie half-way: q^(m + 1) and q^(n - m) of each tail are shared.
        n = self._steps()[-1]
        rate = levels * (float(self.step) / self.sensitivity)
        near, far = -(-n // 2), n // 2 + 1
        with np.errstate(invalid="ignore"):
            shared = np.exp(-rate * near) + np.exp(-rate * far)
        return np.asarray(1.0 - shared / (1.0 + np.exp(-rate)))

    def _steps(self) -> list[int]:
        """Return the answers in steps above the least, sorted."""
        assert self.step is not None
        counts = sorted(round(Fraction(x) / self.step) for x in self.answers.tolist())
        return [count - counts[0] for count in counts]

    def _lattice_laws(self, level: float) -> Floats:
        assert self.step is not None
        least = Fraction(float(self.answers.min()))
        offsets = [
            int((Fraction(x) - least) / self.step) for x in self.answers.tolist()
        ]
        width = max(offsets)
        if len(offsets) * (width + 1) > CELLS:
            raise NotApplicable(
                f"answers must span at most {CELLS // len(offsets)} steps of "
                f"{float(self.step):g} for {len(offsets)} records, got {width}; take "
                "continuous noise, or a larger step."
            )
        rate = level * (float(self.step) / self.sensitivity)
        away = np.abs(np.arange(width + 1) - np.array(offsets)[:, None])
        laws = np.exp(-rate * away) * math.tanh(rate / 2.0)
        for end in (0, -1):  # what lies beyond, and the end itself
            laws[:, end] = np.exp(-rate * away[:, end]) / (1.0 + math.exp(-rate))
        return np.asarray(laws)

    def curve(self, threat: Threat) -> Curve | None:
        """Return the closed form: uniform prior, exact success, no knowledge."""
        if closed_view(threat) != "none" or not uniform_prior(threat):
            return None
        if self.step is not None:  # the engine is exact for the finite channel
            return None
        single = len(self._gaps) == 1
        total = float(self._counts.sum()) / self.records

        def inverse(targets: Floats) -> Floats:
            return np.asarray(self._undo(targets / total) / self._gaps[0])

        law = "Example 5.7" if self._laplace else "Example 5.8"
        return Curve(
            lambda levels, _: self._sums(levels),
            total,
            f"thesis, {law}, for any gaps",
            inverse=inverse if single else None,
        )

    def supremum(self, threat: Threat) -> float:
        """Return the risk of the answers without noise, which noise only lowers."""
        return answers_advantage(self.answers, threat)

    def source(self, level: float, threat: Threat) -> Any:
        """Return the one-dimensional channel that the exact engine reads.

        On a lattice a finite one: past the least and the greatest answer likelihoods
        are proportional, so each tail is one output.
        """
        if self.step is not None:
            return Channel(self._lattice_laws(level), threat.support)
        noise = self.sensitivity / level
        mechanism = (
            LaplaceMechanism(noise) if self._laplace else GaussianMechanism(noise)
        )
        return ScalarChannel(mechanism, self.answers, threat.support)

    def exact_risk(self, source: Any, threat: Threat) -> Risk:
        """Return what the exact engines find, for finite channels and for numbers."""
        return advantage(source, threat)

    @property
    def _laplace(self) -> bool:
        return self.kind == "laplace"

    def _overlap(self, shifts: Floats) -> Floats:
        """Return the total variation of the noise and the noise moved by shifts."""
        if self._laplace:
            return np.asarray(-np.expm1(-shifts / 2.0))
        return np.asarray(erf(shifts / _ROOT8))

    def _undo(self, shares: Floats) -> Floats:
        if self._laplace:
            return np.asarray(-2.0 * np.log1p(-shares))
        return np.asarray(_ROOT8 * erfinv(shares))

    def _sums(self, levels: Floats) -> Floats:
        sums, step = np.empty(levels.shape), max(1, CELLS // max(1, len(self._gaps)))
        for start in range(0, len(levels), step):
            part = slice(start, start + step)
            shifts = levels[part, None] * self._gaps
            sums[part] = self._overlap(shifts) @ self._counts / self.records
        return sums


def laplace(
    answers: ArrayLike,
    *,
    sensitivity: float | None = None,
    parameter: Literal["epsilon", "scale"] = "epsilon",
    step: Number | None = None,
) -> AdditiveFamily:
    """Return Laplace noise on a number.

    Parameters
    ----------
    answers : array_like of shape (m,)
        The answer for each record.
    sensitivity : float, optional
        The range of the answers by default.
    parameter : {"epsilon", "scale"}
        What is chosen.
    step : int, float, str, Decimal or Fraction, optional
        For noise on a lattice, such as 1 for noise in whole numbers: a power of two of
        which every answer is a multiple. It tells more than continuous noise, which is
        the default.

    Examples
    --------
    >>> from undertow.risk import Prior, Threat
    >>> threat = Threat(Prior.uniform(11))
    >>> round(laplace(range(11)).risk(1.0, threat).value, 6)
    0.044337
    >>> round(laplace(range(11), step=1).risk(1.0, threat).value, 6)
    0.045417
    """
    check_choice(parameter, "parameter", choices=("epsilon", "scale"))
    return AdditiveFamily(
        answers,
        kind="laplace",
        sensitivity=sensitivity,
        parameter=parameter,
        step=None if step is None else _read_step(step),
    )


def gaussian(
    answers: ArrayLike,
    *,
    sensitivity: float | None = None,
    parameter: Literal["epsilon", "sigma"] = "sigma",
    delta: float | None = None,
) -> AdditiveFamily:
    """Return Gaussian noise on a number.

    Parameters
    ----------
    answers : array_like of shape (m,)
        The answer for each record.
    sensitivity : float, optional
        The range of the answers by default.
    parameter : {"epsilon", "sigma"}
        What is chosen; epsilon needs `delta`.
    delta : float, optional
        At which epsilon is stated, in (0, 1); the noise is then the least that has it.

    Examples
    --------
    >>> from undertow.risk import Prior, Threat
    >>> family = gaussian(range(11), parameter="epsilon", delta=1e-5)
    >>> round(family.risk(1.0, Threat(Prior.uniform(11))).value, 6)
    0.009721
    """
    check_choice(parameter, "parameter", choices=("epsilon", "sigma"))
    if (parameter == "epsilon") != (delta is not None):
        raise ValueError(
            "delta must be given for epsilon and only then, got "
            f"{delta!r} with parameter {parameter!r}."
        )
    lost = (
        0.0 if delta is None else check_probability(delta, "delta", open_interval=True)
    )
    return AdditiveFamily(
        answers,
        kind="gaussian",
        sensitivity=sensitivity,
        parameter=parameter,
        delta=lost,
    )


def laplace_sum(
    low: int, high: int, *, parameter: Literal["epsilon", "scale"] = "epsilon"
) -> AdditiveFamily:
    """Return Laplace noise on a sum of integers from `low` to `high`.

    Only the target's own term varies: the answers are the integers themselves.
    """
    family = laplace(_integers(low, high), parameter=parameter)
    family.name = "laplace-sum"
    return family


def gaussian_sum(
    low: int,
    high: int,
    *,
    parameter: Literal["epsilon", "sigma"] = "sigma",
    delta: float | None = None,
) -> AdditiveFamily:
    """Return Gaussian noise on a sum of integers from `low` to `high`."""
    family = gaussian(_integers(low, high), parameter=parameter, delta=delta)
    family.name = "gaussian-sum"
    return family


def _epsilons(mu: Floats, delta: float) -> Floats:
    """Return the least epsilon of each mu at a delta, rounded down; 0 if none.

    With y = epsilon/mu and x = y - mu/2, delta is P(Z > x)(1 - h(x + mu)/h(x)), h being
    tail over density; its rounding is taken off, so that no noise is too small.
    """

    def lost(y: Floats) -> Floats:
        x = y - mu / 2.0
        ratio = erfcx((y + mu / 2.0) / _ROOT2) / erfcx(x / _ROOT2)
        return np.asarray(ndtr(-x) * (1.0 - ratio - _UNITS))

    low, high = np.zeros(mu.shape), mu / 2.0 + 40.0
    for _ in range(100):
        middle = (low + high) / 2.0
        over = lost(middle) > delta
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return np.asarray(mu * low * (1.0 - 1e-10))


def _read_answers(answers: ArrayLike) -> Floats:
    found = np.asarray(list(answers) if isinstance(answers, range) else answers, float)
    if found.ndim != 1 or len(found) < 2 or not np.isfinite(found).all():
        raise ValueError(
            "answers must be at least two finite numbers, one per record, got shape "
            f"{found.shape}."
        )
    if found.max() == found.min():
        raise ValueError("answers must differ, got one value; nothing is disclosed.")
    return found


def _read_step(step: Number) -> Fraction:
    size = Fraction(exact(step, "step", at_most=2**900))
    parts = (size.numerator, size.denominator)
    if not size or any(part & (part - 1) for part in parts):
        raise ValueError(f"step must be a power of two, such as 1 or 0.5, got {step}.")
    return size


def _exponent_of(step: Fraction) -> int:
    """Return the exponent of a power of two."""
    return step.numerator.bit_length() - step.denominator.bit_length()


def _require_multiples(answers: Floats, step: Fraction) -> None:
    """Refuse answers that are not whole multiples of the step of the noise."""
    for answer in answers.tolist():
        if Fraction(answer) % step:
            raise AssumptionError(
                f"answers must be multiples of the step {step}, got {answer!r}; round "
                "them to the lattice first."
            )


def _integers(low: int, high: int) -> NDArray[np.int64]:
    if not (isinstance(low, int) and isinstance(high, int) and low < high):
        raise ValueError(
            f"low and high must be rising integers, got {low!r}, {high!r}."
        )
    return np.arange(low, high + 1)


# Families of channels with finitely many outputs, given as a function of epsilon.

# Intervals of levels looked at before a bound for all levels is given up, by the cells
# of the table, and what covers the rounding of probabilities.
_FEWEST, _MOST, _CELLS = 100, 4000, 1 << 18
_ROUNDING = 1e-12


class FiniteFamily(Family):
    """A channel for each epsilon, given as a function.

    Parameters
    ----------
    channel : callable
        From epsilon to a Channel or a mechanism with finitely many outputs.
    records : int
        Number of records.
    monotone : bool, optional
        Whether you have a proof that the risk never falls as epsilon grows, such as
        that each channel is a post-processing of the next.
    mechanism : callable, optional
        From epsilon to the mechanism to deploy; the channel by default.
    law : callable, optional
        From epsilon, 0 and infinity included, to the matrix of the channel, where each
        row is an exponential family in epsilon: its total variation from the law at one
        level then grows with the distance from that level, so that the risk at all
        levels can be bounded by its values at some.
    """

    def __init__(
        self,
        channel: Callable[[float], Any],
        records: int,
        *,
        name: str = "finite",
        monotone: bool = False,
        mechanism: Callable[[float], Any] | None = None,
        law: Callable[[float], Floats] | None = None,
    ) -> None:
        if not callable(channel):
            raise TypeError(f"channel must be callable, got {type(channel).__name__}.")
        self.name, self.monotone = name, monotone
        self.records = check_count(records, "records", minimum=2)
        self._channel, self._mechanism = channel, mechanism or channel
        self._law = law

    def mechanism(self, parameter: float, *, structure: int | None = None) -> Any:
        """Return what is deployed at an epsilon."""
        return self._mechanism(parameter)

    def loss(self, parameter: float) -> Loss | None:
        """Return nothing: the function only promises to be called with epsilon."""
        return None

    def curve(self, threat: Threat) -> None:
        """Return nothing: every value comes from the engine."""

    def source(self, level: float, threat: Threat) -> Any:
        """Return the channel."""
        return self._channel(level)

    def exact_risk(self, source: Any, threat: Threat) -> Risk:
        """Return what the exact engines find, whatever the function returns."""
        return advantage(source, threat)

    def limit_within(self, threat: Threat, target: float) -> float | None:
        """Return the risk in the limit, if no level passes the target; None if unknown.

        Between two levels the risk is at most that at either plus twice the largest
        total variation of a row between the two: success with the person's record and
        without it each move by no more. Intervals are halved until that fits.
        """
        if self._law is None:
            return None
        ends = [
            (level, *self._risk_at(level, threat)) for level in (0.0, 1.0, math.inf)
        ]
        waiting = [(ends[0], ends[1]), (ends[1], ends[2])]
        if not np.ptp(ends[1][2], axis=0).any():  # one law for all records, everywhere
            return ends[-1][1]
        for _ in range(max(_FEWEST, min(_MOST, _CELLS // ends[1][2].size))):
            if not waiting:
                return ends[-1][1]
            low, high = waiting.pop()
            moved = float(np.abs(low[2] - high[2]).sum(axis=1).max())
            if min(low[1], high[1]) + moved * (1.0 + _ROUNDING) + _ROUNDING <= target:
                continue
            level = _between(low[0], high[0])
            if max(low[1], high[1]) > target or not low[0] < level < high[0]:
                return None
            middle = (level, *self._risk_at(level, threat))
            waiting += [(low, middle), (middle, high)]
        return None

    def _risk_at(self, level: float, threat: Threat) -> tuple[float, Floats]:
        assert self._law is not None
        law = self._law(level)
        return advantage(Channel(law), threat).value, law

    def variation(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return one: nothing is known of the channel as a whole."""
        return np.ones(levels.shape)


def exponential(
    scores: ArrayLike, *, sensitivity: float = 1.0, monotone_scores: bool = False
) -> FiniteFamily:
    """Return the exponential mechanism on given scores.

    Parameters
    ----------
    scores : array_like of shape (m, candidates)
        Score of each candidate for each record.
    sensitivity : float
        Most that replacing a record moves any score.
    monotone_scores : bool
        Whether a change moves all scores the same way.

    Raises
    ------
    AssumptionError
        If the scores of two records differ by more than the sensitivity, or move both
        ways although they are called monotone.

    Notes
    -----
    No smaller epsilon need be a post-processing of a larger one, so the risk is not
    proved monotone and calibration scans. Where no level of the scan passes a target,
    all levels up to infinity are bounded before it is said that any will do.
    """
    table = np.asarray(scores, dtype=float)
    if table.ndim != 2 or len(table) < 2 or not np.isfinite(table).all():
        raise ValueError(
            "scores must be a finite table (records, candidates) with at least two "
            f"records, got shape {table.shape}."
        )
    step = check_positive(sensitivity, "sensitivity")
    _require_moves(table, step, monotone_scores)

    def mechanism(epsilon: float) -> ExponentialMechanism:
        return ExponentialMechanism(
            table.shape[1],
            epsilon=epsilon,
            sensitivity=step,
            monotone=monotone_scores,
        )

    rate = 1.0 if monotone_scores else 2.0

    below = table - table.max(axis=1, keepdims=True)

    def law(epsilon: float) -> Floats:
        factor = epsilon / step / rate
        # In the limit the candidates of the highest score share all probability.
        logs = np.where(below == 0, 0.0, -math.inf) if factor == math.inf else below
        laws = np.exp(logs if factor == math.inf else logs * factor)
        return np.asarray(laws / laws.sum(axis=1, keepdims=True))

    return FiniteFamily(
        lambda epsilon: Channel(law(epsilon)),
        len(table),
        name="exponential",
        mechanism=mechanism,
        law=law,
    )


def _between(low: float, high: float) -> float:
    """Return a level inside, on a logarithmic scale but for the two ends."""
    if high == math.inf:
        return 4.0 * low
    return high / 4.0 if low == 0.0 else math.sqrt(low) * math.sqrt(high)


def _require_moves(table: Floats, step: float, monotone: bool) -> None:
    """Refuse a claim about neighbours that the records themselves contradict."""
    moved = float(np.ptp(table, axis=0).max())
    if moved > step * (1.0 + 1e-12):
        raise AssumptionError(
            f"sensitivity must be at least {moved!r}, by which replacing a record "
            f"moves a score, got {step}."
        )
    ranked = table[np.argsort(table.sum(axis=1), kind="stable")]
    if monotone and (np.diff(ranked, axis=0) < -1e-12 * step).any():
        raise AssumptionError(
            "monotone_scores must be False: replacing a record moves some scores up "
            "and others down."
        )


def finite(
    channel: Callable[[float], Any], records: int, *, monotone: bool = False
) -> FiniteFamily:
    """Return the family of channels that a function of epsilon gives.

    Parameters
    ----------
    channel : callable
        From epsilon to a Channel or a mechanism with finitely many outputs.
    records : int
        Number of records, at least two.
    monotone : bool, optional
        Whether you have a proof that the risk never falls as epsilon grows.

    Examples
    --------
    >>> from undertow.mechanisms import RandomizedResponse
    >>> from undertow.risk import Prior, Threat
    >>> family = finite(lambda epsilon: RandomizedResponse(3, epsilon), 3)
    >>> round(family.risk(1.0, Threat(Prior.uniform(3))).value, 6)
    0.242784
    """
    return FiniteFamily(channel, records, monotone=monotone)


# The families by the names of the command line.
#
# One constructor each; those on categories take their number, those on numbers the
# answers, sums the ends of the range.

subset = ss

_CENTRAL: dict[str, Callable[..., Family]] = {
    "laplace": laplace,
    "gaussian": gaussian,
    "laplace-sum": laplace_sum,
    "gaussian-sum": gaussian_sum,
    "exponential": exponential,
}


class _Families(Mapping[str, Callable[..., Family]]):
    """The local protocols, whoever named them, and the central families."""

    def __getitem__(self, name: str) -> Callable[..., Family]:
        return local_family(name) if name in PROTOCOLS else _CENTRAL[name]

    def __iter__(self) -> Iterator[str]:
        return iter((*PROTOCOLS, *_CENTRAL))

    def __len__(self) -> int:
        return len(PROTOCOLS) + len(_CENTRAL)


FAMILIES: Mapping[str, Callable[..., Family]] = _Families()
"""Constructors of the families, by command-line name."""


def family(name: str, *arguments: Any, **options: Any) -> Family:
    """Return a family by its command-line name.

    Parameters
    ----------
    name : str
        A key of `FAMILIES`.
    *arguments, **options
        What its constructor takes.

    Raises
    ------
    ValueError
        If there is no family of that name.

    Examples
    --------
    >>> family("oue", 10)
    <Family oue: 10 records, by epsilon>
    """
    check_choice(name, "name", choices=tuple(FAMILIES))
    return FAMILIES[name](*arguments, **options)
