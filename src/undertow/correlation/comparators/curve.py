r"""Families of affine conversions: from a DP level to a leakage, many ways at once.

Several theorems about correlated data have the form "an :math:`\varepsilon`-DP release
leaks at most :math:`a\varepsilon + b`", with a trade-off between the factor and the
offset. A :class:`ConversionCurve` is a list of such pairs with one source and one class
of attackers; it knows the best pair for each target. Curves from elsewhere are entered
through it with their source and attackers named.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from numpy.typing import ArrayLike

from undertow._numeric import inflate
from undertow._validate import check_count, check_non_negative, check_positive
from undertow.correlation.comparators._chain import read_transition, reversed_kernel
from undertow.correlation.comparators._quilt_search import Distances, two_sided
from undertow.correlation.comparators.quilt import SOURCE
from undertow.correlation.comparators.scale import (
    NO_KNOWLEDGE,
    ROUNDING_MARGIN,
    ComparatorScale,
    raised,
)
from undertow.correlation.method import check_level
from undertow.errors import InfeasibleTarget, NotApplicable
from undertow.privacy.exact import exact, round_up_decimal

__all__ = ["ConversionCurve", "quilt_curve"]


@dataclass(frozen=True, slots=True)
class ConversionCurve:
    r"""Proved pairs (a, b): a DP level epsilon leaks at most a epsilon + b.

    Parameters
    ----------
    points : iterable of pair of float
        The pairs; factors at least 1, offsets at least 0.
    source : str
        Where the pairs are proved.
    attackers : str
        The attackers the pairs speak of.
    is_guarantee : bool
        Whether the pairs are proved against every attacker.
    name : str
        Short name, for tables.

    Examples
    --------
    >>> curve = ConversionCurve([(1, 3.0), (4, 0.5)], "a theorem", "everyone", True)
    >>> round(curve.leakage(0.5), 6), round(curve.scale(1.0).noise_scale, 6)
    (2.5, 8.0)
    """

    points: tuple[tuple[float, float], ...]
    source: str
    attackers: str
    is_guarantee: bool
    name: str = "curve"

    def __init__(
        self,
        points: Iterable[tuple[float, float]],
        source: str,
        attackers: str,
        is_guarantee: bool,
        name: str = "curve",
    ) -> None:
        listed = tuple(
            (check_positive(a, "factor"), check_non_negative(b, "offset"))
            for a, b in points
        )
        if not listed:
            raise ValueError("points must hold at least one pair, got none.")
        small = min(a for a, _ in listed)
        if small < 1:
            raise ValueError(
                f"factor must be at least 1 (no release leaks less than its level), "
                f"got {small}."
            )
        for field, value in zip(
            ("points", "source", "attackers", "is_guarantee", "name"),
            (listed, source, attackers, is_guarantee, name),
            strict=True,
        ):
            object.__setattr__(self, field, value)

    def leakage(self, epsilon: float) -> float:
        """Return the least leakage any pair gives at the level `epsilon`."""
        level = exact(check_level(epsilon))
        least = min(exact(a) * level + exact(b) for a, b in self.points)
        return round_up_decimal(least)

    def best_point(self, target: float) -> tuple[float, float]:
        """Return the pair that allows the largest level under `target`.

        Raises
        ------
        InfeasibleTarget
            If every offset is at least the target.
        """
        target = check_positive(target, "target")
        a, b = max(self.points, key=lambda point: (target - point[1]) / point[0])
        if b >= target:
            least = min(offset for _, offset in self.points)
            raise InfeasibleTarget(
                f"target must be above {least:.6g} for {self.name}, got {target}; use "
                "the closed Markov bound or the general bound, which reach every "
                "target.",
                least=least,
            )
        return a, b

    def scale(self, target: float, *, sensitivity: float = 1.0) -> ComparatorScale:
        """Return the Laplace scale ``sensitivity * a / (target - b)`` of the best pair.

        Raises
        ------
        InfeasibleTarget
            If every offset is at least the target.
        """
        change = check_positive(sensitivity, "sensitivity")
        a, b = self.best_point(target)
        return ComparatorScale(
            self.name,
            self.source,
            target,
            raised(change * a / (target - b)),
            self.attackers,
            self.is_guarantee,
            note=f"factor {a:.6g}, offset {b:.6g}",
        )


def quilt_curve(transition: ArrayLike, *, reach: int = 64) -> ConversionCurve:
    r"""Return the Markov quilts of a chain as conversions: its influence by width.

    .. math:: \varepsilon\text{-DP} \implies (a + b - 1)\,\varepsilon + e(a, b)

    for someone who knows no other record, with the least influence e of each width.

    Parameters
    ----------
    transition : array_like of shape (s, s)
        Row-stochastic; the chain is homogeneous and starts at equilibrium.
    reach : int
        Widest window.

    Raises
    ------
    NotApplicable
        If every quilt up to `reach` has infinite influence.

    Notes
    -----
    Stated for Laplace noise by Song, Wang and Chaudhuri (2017); the argument is that
    of any DP mechanism: given the two ends, what is outside the window is independent
    of the record, and what is inside costs the level once for each record. Not a
    guarantee in the sense of Bayesian DP: someone who knows a record is not covered.

    Examples
    --------
    >>> P = [[9713 / 11008, 1295 / 11008], [1295 / 4250, 2955 / 4250]]
    >>> round(quilt_curve(P).scale(1.0).noise_scale, 3)
    14.854
    """
    P, reach = read_transition(transition), check_count(reach, "reach")
    behind, ahead = Distances(reversed_kernel(P)), Distances(P)
    points = []
    for width in range(1, reach + 1):
        least = float(two_sided(behind, ahead, width).min())
        if math.isfinite(least):
            points.append((float(width), inflate(least, ROUNDING_MARGIN)))
    if not points:
        raise NotApplicable(
            f"a quilt curve needs a window of finite influence, got none up to {reach} "
            "records; use the general bound."
        )
    return ConversionCurve(points, SOURCE, NO_KNOWLEDGE, False, "quilt")
