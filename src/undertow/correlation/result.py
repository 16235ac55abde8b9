"""What a leakage computation hands back.

A :class:`Leakage` is a proved bound on what a Bayesian attacker learns, with the model,
the scope and the class of attackers it speaks of; a verdict without these three means
nothing. A :class:`LeakageEstimate` is a measured lower bound. A
:class:`LeakageCalibration` is the noise that keeps a promise, and its price.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from undertow.correlation.adversary import Adversary
from undertow.correlation.scope import Scope
from undertow.privacy.result import Alternative, Bound, Calibration, Estimate

__all__ = ["Accuracy", "Leakage", "LeakageCalibration", "LeakageEstimate"]


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
    mechanisms: str = "every epsilon-DP mechanism"
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
class Accuracy:
    """How far the noisy answer is from the (clipped) one, for Laplace noise.

    Parameters
    ----------
    alpha : float
        Error that is reached with probability at most `beta`.
    beta : float
        That probability.
    mae : float
        Mean absolute error: the noise scale.
    """

    alpha: float
    beta: float
    mae: float

    def to_dict(self) -> dict[str, float]:
        """Return the three numbers by name."""
        return {"alpha": self.alpha, "beta": self.beta, "mae": self.mae}


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
    """

    target: float = math.inf
    noise_scale: float = math.inf
    sensitivity: float = 1.0
    accuracy: Accuracy | None = None
    floor: float | None = None

    @property
    def epsilon(self) -> float:
        """The DP level."""
        return self.value

    @property
    def cost(self) -> float:
        """How many times more noise than for independent records."""
        return self.target / self.value if self.value > 0 else math.inf
