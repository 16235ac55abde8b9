r"""Families of unary encodings, and of binary hashing, which is one in disguise.

Bit x of the report of x is 1 with probability p, every other bit with probability q;
the risk is p - q times a sum over the prior that depends on q alone.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from undertow.mechanisms.local import (
    BinaryHashing,
    OptimizedUnary,
    SymmetricUnary,
    ThresholdHistogram,
)
from undertow.risk._finite import finite_advantage
from undertow.risk.channel import Channel
from undertow.risk.families.base import Curve, Structure, closed_view
from undertow.risk.families.local import HASH_UNCHECKED, LocalFamily, bit_sums
from undertow.risk.threat import Threat

__all__ = ["BinaryHashingFamily", "UnaryFamily", "blh", "oue", "sue", "the"]

Floats = NDArray[np.float64]

# Categories up to which all reports are listed.
_BITS = 12


class UnaryFamily(LocalFamily):
    """Unary encodings whose bit probabilities follow from epsilon.

    Parameters
    ----------
    categories : int
        At least two.
    name : str
        On the command line.
    protocol : callable
        From categories and epsilon to the protocol.
    bits : callable
        From levels to the arrays p - q and q.
    limit : float
        The largest p - q.
    """

    def __init__(
        self,
        categories: SupportsIndex,
        *,
        name: str,
        protocol: Callable[[int, float], Any],
        bits: Callable[[Floats], tuple[Floats, Floats]],
        limit: float,
        full_inverse: Callable[[Floats], Floats] | None = None,
    ) -> None:
        super().__init__(categories)
        self.name, self._protocol, self._bits = name, protocol, bits
        self._limit, self._full_inverse = limit, full_inverse

    def mechanism(self, parameter: float, *, structure: int | None = None) -> Any:
        """Return the protocol."""
        return self._protocol(self.records, parameter)

    def variation(self, levels: Floats, structure: Structure | None = None) -> Floats:
        """Return p - q."""
        return self._bits(levels)[0]

    def curve(self, threat: Threat) -> Curve | None:
        """Return the closed form for exact success, knowing nothing or everything."""
        view = closed_view(threat)
        if view is None:
            return None
        full, room, solve = view == "full", threat.ceiling, self._full_inverse

        def values(levels: Floats, _: Structure | None) -> Floats:
            gap, noise = self._bits(levels)
            return gap * bit_sums(threat, noise, full=full)

        return Curve(
            values,
            self._limit * room,
            "Local protocols, Proposition 2 (thesis, Example 5.5)",
            inverse=(lambda g: solve(g / room)) if full and solve is not None else None,
        )

    def supremum(self, threat: Threat) -> float:
        """Return the risk of the bits at infinite epsilon, which all others garble."""
        source = self.source(np.inf, threat)
        if source is None:
            return self._limit * threat.ceiling
        return finite_advantage(source, threat).value

    def source(self, level: float, threat: Threat) -> Channel | None:
        """List all reports, for few categories."""
        if self.records > _BITS:
            return None
        gap, noise = self._bits(np.array([level]))
        keep, false = float(gap[0] + noise[0]), float(noise[0])
        reports = np.array(list(product((0, 1), repeat=self.records)), dtype=bool)
        own = np.where(reports, keep, 1.0 - keep)
        other = np.where(reports, false, 1.0 - false)
        laws = [
            np.prod(np.where(np.arange(self.records) == x, own, other), axis=1)
            for x in range(self.records)
        ]
        return Channel(np.array(laws), threat.support)


class BinaryHashingFamily(UnaryFamily):
    """Binary local hashing: two buckets, so one factor of epsilon."""

    ideal: bool = True

    def curve(self, threat: Threat) -> Curve | None:
        """Return the closed form; its inverse is explicit for every prior."""
        view = closed_view(threat)
        if view is None or not self.ideal:
            return None
        share = float(bit_sums(threat, np.array([0.5]), full=view == "full")[0])
        return Curve(
            lambda levels, _: np.tanh(levels / 2.0) / 2.0 * share,
            share / 2.0,
            "Local protocols, Proposition 4",
            inverse=lambda g: np.asarray(2.0 * np.arctanh(2.0 * g / share)),
            unchecked=(HASH_UNCHECKED,),
        )

    def fallback(self, threat: Threat) -> Curve:
        """Return the bound that holds for every hash."""
        curve = super().fallback(threat)
        return Curve(
            lambda levels, _: np.tanh(levels / 2.0) * threat.ceiling,
            threat.ceiling,
            curve.theorem,
            exact=False,
            reason=curve.reason,
        )

    def source(self, level: float, threat: Threat) -> None:
        """Return nothing: the outputs are all hash functions."""


def sue(categories: SupportsIndex) -> UnaryFamily:
    """Return symmetric unary encoding (basic RAPPOR)."""
    return UnaryFamily(
        categories,
        name="sue",
        protocol=SymmetricUnary,
        bits=lambda e: (np.tanh(e / 4.0), expit(-e / 2.0)),
        limit=1.0,
        full_inverse=lambda g: np.asarray(4.0 * np.arctanh(g)),
    )


def oue(categories: SupportsIndex) -> UnaryFamily:
    """Return optimised unary encoding.

    Examples
    --------
    >>> from undertow.risk import Prior, Threat
    >>> round(oue(10).risk(1.0, Threat(Prior.uniform(10))).value, 9)
    0.080789798
    """
    return UnaryFamily(
        categories,
        name="oue",
        protocol=OptimizedUnary,
        bits=lambda e: (np.tanh(e / 2.0) / 2.0, expit(-e)),
        limit=0.5,
        full_inverse=lambda g: np.asarray(2.0 * np.arctanh(2.0 * g)),
    )


def the(categories: SupportsIndex) -> UnaryFamily:
    r"""Return thresholding with histogram encoding at its best threshold.

    Notes
    -----
    At the threshold of least variance :math:`1-p = (1-q)/(3-4q)`, hence with
    :math:`u = 1 - e^{-\varepsilon/2}` everything is explicit, p grows and q falls with
    epsilon, and the risk is monotone; p never passes 2/3. Proved on the page
    *Calibration in units of risk*.
    """
    return UnaryFamily(
        categories,
        name="the",
        protocol=ThresholdHistogram,
        bits=_threshold_bits,
        limit=2.0 / 3.0,
    )


def _threshold_bits(levels: Floats) -> tuple[Floats, Floats]:
    u, rest = -np.expm1(-levels / 2.0), np.exp(-levels / 2.0)
    root = np.sqrt(rest + u * u)
    odd = u / (root + rest)  # 1 - 2q
    noise = 1.5 * rest / (2.0 - u + root)
    gap = 2.0 * (1.0 - noise) * odd / (3.0 - 4.0 * noise)
    return np.asarray(gap), np.asarray(noise)


def blh(categories: SupportsIndex, *, ideal: bool = True) -> BinaryHashingFamily:
    """Return binary local hashing; `ideal` says whether its hash is taken as ideal."""
    family = BinaryHashingFamily(
        categories,
        name="blh",
        protocol=BinaryHashing,
        bits=lambda e: (np.tanh(e / 2.0) / 2.0, np.full(e.shape, 0.5)),
        limit=0.5,
    )
    family.ideal = ideal
    return family
