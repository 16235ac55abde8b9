"""What a leakage computation hands back.

A :class:`Leakage` is a proved bound on what a Bayesian attacker learns, with the model,
the scope and the class of attackers it speaks of; a verdict without these three means
nothing. A :class:`LeakageEstimate` is a measured lower bound. A
:class:`LeakageCalibration` is the noise that keeps a promise, and its price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from undertow._numeric import nudge_up
from undertow.correlation.adversary import Adversary
from undertow.correlation.scope import Scope
from undertow.errors import NotApplicable
from undertow.mechanisms.accuracy import laplace_accuracy
from undertow.mechanisms.discrete import DiscreteLaplaceMechanism
from undertow.mechanisms.laplace import LaplaceMechanism
from undertow.mechanisms.randomized_response import RandomizedResponse
from undertow.privacy.exact import exact, round_up
from undertow.privacy.loss import Pure
from undertow.privacy.result import Alternative, Bound, Calibration, Estimate, _Shown

__all__ = [
    "Accuracy",
    "CoveredMechanisms",
    "Leakage",
    "LeakageCalibration",
    "LeakageEstimate",
]

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
