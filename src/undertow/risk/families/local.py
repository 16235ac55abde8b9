r"""Families of randomised response and of noisy histograms, for arrays of levels.

Under randomised response the risk is a factor of epsilon times a number of the threat,
whatever the threat is.
"""

from __future__ import annotations

import math
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.local import (
    GeneralizedResponse,
    SummationHistogram,
)
from undertow.mechanisms.local.base import read_categories
from undertow.risk.channel import Channel
from undertow.risk.families.base import (
    CELLS,
    Curve,
    Family,
    Structure,
    closed_view,
    uniform_prior,
)
from undertow.risk.families.identity import identity_advantage
from undertow.risk.threat import Threat

__all__ = [
    "HASH_UNCHECKED",
    "LocalFamily",
    "ResponseFamily",
    "SummationFamily",
    "bit_sums",
    "grr",
    "she",
]

Floats = NDArray[np.float64]

HASH_UNCHECKED = "the hash is ideal: independent uniform buckets"
# Records up to which a table of reports is listed.
_TABLE = 500
# Numbers added up in a row by a running sum.
_ROW = 1024


def bit_sums(threat: Threat, noise: Floats, *, full: bool) -> Floats:
    r"""Return the advantage over :math:`p - q` for each rate q of false ones.

    .. math:: \sum_i (1-q)^{m-i-1} \pi_i \bigl[(1-\pi_i) - q \sum_{z<i} \pi_z\bigr],
       \quad \pi_1 \le \dots \le \pi_m

    without knowledge, :math:`1 - \kappa_\pi` with full knowledge. O(m) per rate.
    """
    if full:
        return np.full(noise.shape, threat.ceiling)
    size = len(threat.prior)
    if uniform_prior(threat):
        return (size - 1) / size * _inverse_means(size - 1, noise)
    pi = np.sort(threat.prior.pmf)
    below = np.concatenate([[0.0], _running(pi)[:-1]])
    above = np.concatenate([_running(pi[::-1])[::-1][1:], [0.0]])
    later = np.arange(size - 1, -1, -1) - 1.0
    sums = np.empty(noise.shape)
    step = max(1, CELLS // size)
    for start in range(0, len(noise), step):
        part = slice(start, start + step)
        weights = np.exp(np.log1p(-noise[part])[:, None] * later)
        sums[part] = weights @ (pi * above) + (1 - noise[part]) * (
            weights @ (pi * below)
        )
    return sums


def _running(values: Floats) -> Floats:
    """Return the sums up to each place, by rows: plain ones drift over a million."""
    rows = -(-len(values) // _ROW)
    table = np.zeros(rows * _ROW)
    table[: len(values)] = values
    table = np.cumsum(table.reshape(rows, _ROW), axis=1)
    table[1:] += np.cumsum(table[:-1, -1])[:, None]
    return np.asarray(table.reshape(-1)[: len(values)])


def _inverse_means(count: int, rate: Floats) -> Floats:
    """Return (1 - (1 - q)^n)/(n q), with its limit at 0."""
    safe = np.where(rate > 0, rate, 0.5)
    return np.where(rate > 0, -np.expm1(count * np.log1p(-safe)) / (count * safe), 1.0)


class LocalFamily(Family):
    """What local protocols share: the number of categories."""

    def __init__(self, categories: SupportsIndex) -> None:
        self.records = read_categories(categories)


class ResponseFamily(LocalFamily):
    r"""Generalised randomised response.

    Notes
    -----
    :math:`p(\theta\mid x) - p(\theta) = (p-q)([\theta = x] - \pi_\theta)`, so under
    every threat the advantage is :math:`p - q` times that of the identity.
    """

    name = "grr"

    def mechanism(
        self, parameter: float, *, structure: int | None = None
    ) -> GeneralizedResponse:
        """Return the protocol."""
        return GeneralizedResponse(self.records, parameter)

    def variation(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return p - q."""
        return np.asarray(
            -np.expm1(-levels) / (1.0 + (self.records - 1) * np.exp(-levels))
        )

    def curve(self, threat: Threat) -> Curve:
        """Return the closed form: every prior, success rule and knowledge."""
        room = self._room(threat)

        def inverse(targets: Floats) -> Floats:
            share = targets / room
            return np.asarray(np.log1p(share * (self.records - 1)) - np.log1p(-share))

        return Curve(
            lambda levels, _: self.variation(levels) * room,
            room,
            "Local protocols, Proposition 1 (thesis, Example 5.4)",
            inverse=inverse if room > 0 else None,
        )

    def source(self, level: float, threat: Threat) -> Channel | None:
        """Return the table of reports, for few categories."""
        if self.records > _TABLE:
            return None
        laws = np.full((self.records,) * 2, math.exp(-level))
        np.fill_diagonal(laws, 1.0)
        return Channel(laws / laws.sum(axis=1, keepdims=True), threat.support)

    def _room(self, threat: Threat) -> float:
        if closed_view(threat) is not None:
            return threat.ceiling
        return identity_advantage(threat)


class SummationFamily(LocalFamily):
    """Summation with histogram encoding: the noisy vector itself."""

    name = "she"

    def mechanism(
        self, parameter: float, *, structure: int | None = None
    ) -> SummationHistogram:
        """Return the protocol."""
        return SummationHistogram(self.records, parameter)

    def variation(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return 1 - exp(-e/2)(1 + e/4)."""
        finite = np.minimum(levels, 1e6)
        tail = finite / 4.0 * np.exp(-finite / 2.0)
        return np.asarray(-np.expm1(-finite / 2.0) - tail)

    def curve(self, threat: Threat) -> Curve | None:
        """Return the closed form: uniform prior without knowledge, or two records."""
        view = closed_view(threat)
        if view is not None and self.records == 2:
            return Curve(
                lambda levels, _: self.variation(levels) * threat.ceiling,
                threat.ceiling,
                "thesis, Theorem 5.2, attained by two records",
            )
        if view != "none" or not uniform_prior(threat):
            return None
        return Curve(
            lambda levels, _: self._uniform(levels),
            threat.ceiling,
            "Local protocols, Proposition 5",
            slack=2e-12 + 2e-15 * self.records,
        )

    def _uniform(self, levels: Floats) -> Floats:
        m, finite = self.records, np.minimum(levels, 1400.0)
        a = 0.5 * np.exp(-finite / 2.0)
        j, half = np.arange(1, m - 1), math.ldexp(1.0, -(m - 1))
        rest = finite / 2.0
        step = max(1, CELLS // m)
        for start in range(0, len(levels), step):
            part = slice(start, start + step)
            powers = np.exp(np.log1p(-a[part])[:, None] * j)
            rest[part] += ((np.exp2(-j) - powers) / j).sum(axis=1)
        power = np.exp((m - 1) * np.log1p(-a))
        middle = 0.5 * (power - 2.0 * a * half - a * (m - 1) * rest)
        ends = 0.5 * _inverse_means(m, a) + a * half / m
        return np.asarray(np.maximum(0.0, ends + middle - 1.0 / m))


def grr(categories: SupportsIndex) -> ResponseFamily:
    """Return generalised randomised response.

    Examples
    --------
    >>> from undertow.risk import Prior, Threat
    >>> round(grr(10).risk(1.0, Threat(Prior.uniform(10))).value, 9)
    0.131969317
    """
    return ResponseFamily(categories)


def she(categories: SupportsIndex) -> SummationFamily:
    """Return summation with histogram encoding."""
    return SummationFamily(categories)
