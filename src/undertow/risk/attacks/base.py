"""What the concrete attacks share: reading batches of outputs, drawing from laws.

An attack has a method ``guess(outputs, known, *, rng)``: a batch of outputs and the
number of the fibre the target lies in, to numbers into ``threat.guesses``. One that
draws its answer from a known law also has ``guess_law(outputs, known)``, a row for each
output; one that never draws says ``deterministic = True``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import MismatchError
from undertow.mechanisms.local.base import LocalProtocol
from undertow.risk._reports import list_reports
from undertow.risk.channel import Channel, as_channel
from undertow.risk.decision import AttackRisk, Decision, attack_risk
from undertow.risk.threat import Threat

__all__ = [
    "attack_figures",
    "one_hot",
    "read_outputs",
    "sample_rows",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def attack_figures(source: Any, threat: Threat, *, attack: Any) -> AttackRisk:
    """Compute success, correction and advantage of an attack on a finite channel.

    Parameters
    ----------
    source : Channel, mechanism or local protocol with finitely many outputs
        The law of the output for each record; outputs are numbers of columns, those of
        a protocol its reports.
    threat : Threat
        Prior, success rule and knowledge.
    attack : attack that states its law or is deterministic
        Asked once per fibre for its answer to every output.

    Returns
    -------
    AttackRisk
        Exact up to rounding: no sampling.

    Raises
    ------
    MismatchError
        If the attack draws and states no law, or answers outside the guesses.
    NotApplicable
        If the outputs are real numbers, or reports too many for a list;
        :func:`~undertow.risk.scalar.scalar_attack_risk` is for attacks on intervals.

    Examples
    --------
    >>> from undertow.mechanisms import RandomizedResponse
    >>> from undertow.risk.attacks.finite import ReportGuess
    >>> from undertow.risk.prior import Prior
    >>> threat = Threat(Prior(2, [0.7, 0.3]))
    >>> response = RandomizedResponse(2, 1)
    >>> figures = attack_figures(response, threat, attack=ReportGuess(threat))
    >>> round(figures.advantage, 6)
    0.194089
    """
    channel = as_channel(source, threat.support)
    if not isinstance(channel, Channel):
        raise MismatchError("source must be a Channel, got a stream of columns.")
    local = isinstance(source, LocalProtocol)
    outputs = list_reports(source) if local else np.arange(channel.outputs)
    columns = [_answers(attack, outputs, z) for z in range(len(threat.fibres))]
    decision = Decision(np.stack(columns, axis=1))
    return attack_risk(channel, threat, decision=decision)


def _answers(attack: Any, outputs: NDArray[Any], known: int) -> NDArray[Any]:
    """Return the guess for every output, or its law."""
    if getattr(attack, "deterministic", False):
        unused = np.random.default_rng(0)
        return np.asarray(attack.guess(outputs, known, rng=unused))
    if not hasattr(attack, "guess_law"):
        raise MismatchError(
            "attack must state the law of its answer for an exact figure, got "
            f"{type(attack).__name__}; use estimate_attack."
        )
    return np.asarray(attack.guess_law(outputs, known), dtype=np.float64)


def read_outputs(outputs: ArrayLike, count: int) -> Indices:
    """Read a batch of numbers of outputs."""
    seen = np.asarray(outputs)
    if seen.ndim != 1 or (seen.size and seen.dtype.kind not in "iu"):
        raise TypeError(
            "outputs must be a one-dimensional array of numbers of outputs, got "
            f"{seen.dtype} of shape {seen.shape}."
        )
    if seen.size and not (seen.min() >= 0 and seen.max() < count):
        raise ValueError(f"outputs must be numbers in 0..{count - 1}.")
    return seen.astype(np.intp)


def one_hot(guesses: Indices, count: int) -> Floats:
    """Return the law of a certain answer; a row of zeros where it declines."""
    law = np.zeros((len(guesses), count))
    rows = np.flatnonzero(guesses >= 0)
    law[rows, guesses[rows]] = 1.0
    return law


def sample_rows(laws: Floats, *, rng: np.random.Generator) -> Indices:
    """Draw one number from each row of probabilities, by inversion."""
    running = np.cumsum(laws, axis=1)
    # Scaled by the last sum, so that rounding never leads past the end.
    level = rng.random(len(laws)) * running[:, -1]
    return np.asarray((running > level[:, None]).argmax(axis=1), dtype=np.intp)
