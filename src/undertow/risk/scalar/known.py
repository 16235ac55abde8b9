r"""A known record and Gaussian noise: the record is in where its law exceeds the mean.

The attacker only says whether the target took part, so its gain is
:math:`\pi_x \int (p(\theta\mid x) - p(\theta))_+`. With distances in standard
deviations from the answer of x,

.. math:: r_x(t) = \frac{p(\theta)}{p(\theta\mid x)}
   = \sum_y \pi_y \, e^{t d_y - d_y^2/2}

is convex, as a sum of exponentials of lines, and at most 1 at 0. So the answer is yes
on an interval around 0: two roots, each bracketed, and normal probabilities.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from undertow.risk.scalar.enclosure import Enclosure
from undertow.risk.scalar.laws import ScalarLaw

__all__ = ["enclose_known"]

Floats = NDArray[np.float64]

_REACH = 9.0
_TAIL = 3e-19
_WIDTH = 2.0**-40
_ROUNDS = 200
_ENTRIES = 1 << 20
_PEAK = 1 / math.sqrt(2 * math.pi)
_UNIT = 2.0**-53
_STANDARD = ScalarLaw("gaussian", 1.0)


def enclose_known(
    weights: Floats, masses: Floats, centres: Floats, law: ScalarLaw
) -> Enclosure:
    r"""Enclose the gain of an attacker who knows the record.

    .. math:: \sum_x w_x \int (p(\theta\mid x) - p(\theta))_+\, d\theta

    Parameters
    ----------
    weights : ndarray of shape (answers,)
        Probability of the known records with each answer.
    masses : ndarray of shape (answers,)
        Probability of all records with each answer.
    centres : ndarray of shape (answers,)
        Distinct answers.
    law : ScalarLaw
        Of Gaussian noise, plain or clamped.

    Returns
    -------
    Enclosure
        What the intervals found attain, and that plus what they can miss.

    Notes
    -----
    O(answers squared) for each of about ten rounds. With an error e of r, a root
    bracketed in [l, h] misses at most e where the interval is too long,
    :math:`e\,\varphi(l)/|l|` where it is too short, and the peak of the density times
    the width between; proved on the page *Risk of a noisy number*.

    Examples
    --------
    >>> half = np.array([0.5, 0.5])
    >>> noise = ScalarLaw("gaussian", 1.0)
    >>> found = enclose_known(half, half, np.array([0.0, 1.0]), noise)
    >>> round(found.upper, 9), found.upper - found.lower < 1e-11
    (0.191462461, True)
    """
    atoms = law.atoms(centres)
    fixed = float((weights @ np.maximum(0.0, atoms - masses @ atoms)).sum())
    lower, lost = [fixed], [0.0]
    used = np.flatnonzero(weights > 0)
    step = max(1, _ENTRIES // len(centres))
    for start in range(0, len(used), step):
        part = used[start : start + step]
        value, missed = _rows(part, masses, centres, law)
        lower += (weights[part] * value).tolist()
        lost += (weights[part] * missed).tolist()
    attained = math.fsum(lower)
    return Enclosure(attained, attained + math.fsum(lost))


def _rows(
    part: NDArray[np.intp], masses: Floats, centres: Floats, law: ScalarLaw
) -> tuple[Floats, Floats]:
    """Return what the intervals of some answers attain, and what they can miss."""
    apart = (centres - centres[part, None]) / law.scale
    right, missed = _left_ends(-apart, masses)
    left, more = _left_ends(apart, masses)
    start = np.maximum(left, (law.low - centres[part]) / law.scale)
    stop = np.maximum(start, np.minimum(-right, (law.high - centres[part]) / law.scale))
    inside = np.empty(len(part))
    for row, far in enumerate(apart):
        ends = start[row : row + 1], stop[row : row + 1]
        inside[row] = masses @ _STANDARD.masses(*ends, far)[:, 0]
    own = _STANDARD.masses(start, stop, np.zeros(1))[0]
    return own - inside, missed + more


def _left_ends(apart: Floats, masses: Floats) -> tuple[Floats, Floats]:
    """Return the left ends of the intervals, and what they can miss."""
    error = (2 * len(masses) + 4096) * _UNIT
    low, high = np.full(len(apart), -_REACH), np.zeros(len(apart))
    ratio, slope = _ratio(apart, masses, low)
    high[ratio < 1] = -_REACH  # the rest of the law is negligible
    for round_ in range(_ROUNDS):
        wide = np.flatnonzero(high - low > _WIDTH)
        if not wide.size:
            break
        place = (low[wide] + high[wide]) / 2
        if round_ % 3 < 2:
            # ln r is convex: the step of Newton from the left never passes the root.
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                jump = -np.log(ratio[wide]) * ratio[wide] / slope[wide]
                near = low[wide] + jump * (1 + jump) + _WIDTH / 2
            place = np.where((near > low[wide]) & (near < high[wide]), near, place)
        found, steep = _ratio(apart[wide], masses, place)
        outside = found >= 1
        low[wide[outside]], high[wide[~outside]] = place[outside], place[~outside]
        ratio[wide[outside]], slope[wide[outside]] = found[outside], steep[outside]
    reach = np.abs(apart).max(axis=1)
    with np.errstate(divide="ignore", over="ignore"):
        # Close answers have like laws, whatever the ends.
        short = np.minimum(_PEAK * error / -low, _PEAK * reach + reach**2 / 2)
    return high, error + short + _PEAK * (high - low) + _TAIL


def _ratio(apart: Floats, masses: Floats, place: Floats) -> tuple[Floats, Floats]:
    """Return p(theta) / p(theta | x) and its slope; infinite where it overflows."""
    with np.errstate(over="ignore", invalid="ignore"):
        terms = np.exp(apart * (place[:, None] - apart / 2))
        ratio = terms @ masses
        slope = (terms * apart) @ masses
    return np.asarray(ratio), np.asarray(slope)
