r"""An attack on the counts of a city: where was a person, given noisy totals over time.

The attacker knows everyone else, so that each released total is the target's own
indicator plus noise. Someone who takes the slots for independent looks at one total;
someone who knows how people move looks at all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice, check_count, check_positive
from undertow.privacy.result import Estimate
from undertow.risk.intervals import clopper_pearson

__all__ = ["SeriesAttack", "attack_series", "posterior_states"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class SeriesAttack:
    """How well an attacker guesses one slot of a person.

    Parameters
    ----------
    epsilon : float
        Level of each released total.
    knows : {"movement", "one slot"}
        What the attacker uses.
    success : Estimate
        How often the guess is right.
    blind : float
        How often the best guess without the release is right.
    """

    epsilon: float
    knows: str
    success: Estimate
    blind: float

    @property
    def advantage(self) -> float:
        """How much more often the guess is right because of the release."""
        return self.success.value - self.blind

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values."""
        return {
            "epsilon": self.epsilon,
            "knows": self.knows,
            "success": self.success.to_dict(),
            "blind": self.blind,
            "advantage": self.advantage,
        }


def attack_series(
    transition: Sequence[Sequence[float]],
    epsilon: float,
    *,
    slots: int,
    runs: int = 2000,
    knows: str = "movement",
    confidence: float = 0.95,
    seed: int,
) -> SeriesAttack:
    r"""Simulate people, release their indicators, and guess the middle slot.

    Parameters
    ----------
    transition : array_like of shape (2, 2)
        How people move; state 1 is counted.
    epsilon : float
        Each total carries discrete Laplace noise of scale :math:`1/\varepsilon`, drawn
        from a seeded generator: this is a simulation.
    slots : int
        Number of totals.
    runs : int, optional
        Number of people attacked.
    knows : {"movement", "one slot"}
        Whether the attacker uses all totals and the movement, or one total alone.
    confidence : float, optional
        Of the Clopper-Pearson interval of the success.
    seed : int
        Makes it repeatable.

    Notes
    -----
    Both attackers are Bayes-optimal for what they look at, for the start in the
    stationary law. O(runs x slots).

    Examples
    --------
    >>> moves = [[0.9, 0.1], [0.25, 0.75]]
    >>> alone = attack_series(moves, 1.0, slots=42, knows="one slot", seed=1)
    >>> better = attack_series(moves, 1.0, slots=42, seed=1)
    >>> alone.advantage < better.advantage
    True
    """
    level, n = check_positive(epsilon, "epsilon"), check_count(runs, "runs")
    length = check_count(slots, "slots")
    check_choice(knows, "knows", choices=("movement", "one slot"))
    P = np.asarray(transition, dtype=np.float64)
    rng = np.random.default_rng(check_count(seed, "seed", minimum=0))
    start = np.array([P[1, 0], P[0, 1]]) / (P[0, 1] + P[1, 0])
    truth = _walks(P, start, (n, length), rng)
    scores = _scores(truth + _noise(level, truth.shape, rng), level)
    target = length // 2
    if knows == "movement":
        posterior = posterior_states(P, start, scores)[:, target]
    else:
        posterior = np.log(start) + scores[:, target]
    right = int((posterior.argmax(axis=1) == truth[:, target]).sum())
    low, high = clopper_pearson(right, n, confidence=confidence)
    success = Estimate(right / n, low, high, confidence, n, seed, "Clopper-Pearson")
    return SeriesAttack(level, knows, success, float(start.max()))


def posterior_states(
    transition: ArrayLike, start: ArrayLike, scores: ArrayLike
) -> Floats:
    """Return what is known of each state of a chain after noisy looks at all of them.

    Parameters
    ----------
    transition : array_like of shape (s, s)
        Row-stochastic.
    start : array_like of shape (s,)
        Law of the first state.
    scores : array_like of shape (n, T, s)
        Log-likelihood of what was seen at each time under each state.

    Returns
    -------
    ndarray of shape (n, T, s)
        Probabilities. The forward-backward recursion, scaled at each step.
    """
    P, first = np.asarray(transition, dtype=float), np.asarray(start, dtype=float)
    seen = np.asarray(scores, dtype=float)
    weights = np.exp(seen - seen.max(axis=2, keepdims=True))
    forward, backward = np.empty_like(weights), np.ones_like(weights)
    forward[:, 0] = _scaled(first * weights[:, 0])
    for t in range(1, weights.shape[1]):
        forward[:, t] = _scaled(forward[:, t - 1] @ P * weights[:, t])
    for t in range(weights.shape[1] - 2, -1, -1):
        backward[:, t] = _scaled((backward[:, t + 1] * weights[:, t + 1]) @ P.T)
    return _scaled(forward * backward)


def _scaled(rows: Floats) -> Floats:
    return np.asarray(rows / rows.sum(axis=-1, keepdims=True))


def _walks(
    P: Floats, start: Floats, shape: tuple[int, int], rng: np.random.Generator
) -> NDArray[np.int64]:
    uniform = rng.random(shape)
    states = np.empty(shape, dtype=np.int64)
    states[:, 0] = uniform[:, 0] < start[1]
    for t in range(1, shape[1]):
        states[:, t] = uniform[:, t] < P[states[:, t - 1], 1]
    return states


def _noise(
    epsilon: float, shape: tuple[int, int], rng: np.random.Generator
) -> NDArray[np.int64]:
    """Draw discrete Laplace noise as a difference of two geometric numbers."""
    stop = -np.expm1(-epsilon)
    return np.asarray(rng.geometric(stop, shape) - rng.geometric(stop, shape))


def _scores(seen: NDArray[np.int64], epsilon: float) -> Floats:
    """Return the log-likelihood of each noisy indicator under 0 and under 1."""
    return -epsilon * np.abs(seen[..., None] - np.arange(2.0))
