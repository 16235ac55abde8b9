r"""Exact figures of a given attack on a number with noise.

An attack that answers by where the output falls sees only the cell: cut at
:math:`\theta_1 < \dots < \theta_k`, the line is a finite channel of k + 1 outputs whose
law is differences of the distribution function.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._arrays import read_floats
from undertow.errors import ModelError
from undertow.risk.channel import Channel
from undertow.risk.decision import AttackRisk, Decision, attack_risk
from undertow.risk.scalar.source import ScalarChannel, as_scalar
from undertow.risk.threat import Threat

__all__ = ["scalar_attack_risk"]

Floats = NDArray[np.float64]


def scalar_attack_risk(
    channel: ScalarChannel, threat: Threat, *, cuts: ArrayLike, decision: Decision
) -> AttackRisk:
    r"""Compute success, correction and advantage of an attack on intervals exactly.

    Parameters
    ----------
    channel : ScalarChannel or mechanism
        Of a Laplace or Gaussian mechanism the records themselves are the answers.
    threat : Threat
        Prior, success rule and knowledge.
    cuts : array_like of shape (k,)
        Ascending; output i is the cell :math:`(\theta_i, \theta_{i+1}]`, the first and
        the last unbounded.
    decision : Decision
        A table of k + 1 outputs for each fibre.

    Returns
    -------
    AttackRisk
        Exact up to rounding, for this attack only: at most
        ``scalar_advantage(channel, threat)``.

    Raises
    ------
    ModelError
        If the cuts are not finite and ascending.
    MismatchError
        If the table does not fit the cuts, the fibres or the guesses.

    Notes
    -----
    Equation 5.5 of [1]_ for the output rounded to its cell, which is all that such an
    attack sees. The best attack is of this kind, with cuts where the best guess
    changes. An atom of clamped noise at a cut belongs to the cell before it; a cut
    just below the upper end makes its atom a cell.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> from undertow.mechanisms import LaplaceMechanism
    >>> from undertow.risk.prior import Prior
    >>> channel = ScalarChannel(LaplaceMechanism(1), [0, 1])
    >>> nearest = Decision([[0], [1]])
    >>> threat = Threat(Prior.uniform(2))
    >>> found = scalar_attack_risk(channel, threat, cuts=[0.5], decision=nearest)
    >>> round(found.advantage, 9)
    0.19673467
    """
    cells = _cells(channel, threat, cuts)
    return attack_risk(cells, threat, decision=decision)


def _cells(channel: ScalarChannel, threat: Threat, cuts: ArrayLike) -> Channel:
    """Return the finite channel of the cell that the output falls into."""
    number = as_scalar(channel, threat.support)
    if number is None:
        raise TypeError(
            "channel must be a ScalarChannel or noise on one number, got "
            f"{type(channel).__name__}; use attack_risk for finitely many outputs."
        )
    places = read_floats(cuts, "cuts", error=ModelError)
    if (
        places.ndim != 1
        or not np.isfinite(places).all()
        or (np.diff(places) <= 0).any()
    ):
        raise ModelError("cuts must be finite numbers in ascending order, got others.")
    below = np.array([number.mechanism.cdf(places, float(a)) for a in number.answers])
    ends = np.zeros((number.size, 1))
    table = np.diff(np.concatenate([ends, below, ends + 1.0], axis=1), axis=1)
    return Channel(table.clip(0.0), threat.support)
