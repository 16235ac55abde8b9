"""What the studies of Sauer's chapters 4 to 6 share: cities, axes, measured points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from undertow.mechanisms.local import GeneralizedResponse
from undertow.privacy.tradeoff import PiecewiseLinearTradeOff, tradeoff_from_pmfs
from undertow.risk import AttackRisk
from undertow.risk.estimate import AttackEstimate
from undertow.studies.base import (
    Check,
    Curve,
    Inputs,
    Panel,
    Status,
    compare,
    count,
)

__all__ = [
    "EPSILONS",
    "EPSILON_LABEL",
    "PLACES",
    "SOURCE",
    "WHICH",
    "Network",
    "Place",
    "agreement",
    "chance_panel",
    "city_words",
    "claim",
    "figure_curves",
    "nodes_of",
    "prior_check",
    "reports_drawn",
    "response_curve",
    "response_figures",
]

SOURCE = "Sauer (2025)"
EPSILONS = tuple(float(e) for e in range(1, 21))
"""Levels of chapter 6."""
EPSILON_LABEL = "privacy parameter ε"
WHICH = {"all": "all reports", "inside": "reports inside"}
"""Which reports a prior counts, in words."""
_CHANCE_LABEL = "success, advantage"

Values = tuple[float, ...]


class Network(Protocol):
    """What is asked of a road network: its edges, its size, and whether it is real."""

    @property
    def edges(self) -> NDArray[np.int64]:
        """Pairs of nodes, from and to."""

    @property
    def real(self) -> bool:
        """Whether it is the network of the source and no stand-in."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class Place:
    """One city of chapter 6: names of its data, and what is printed of it.

    Parameters
    ----------
    name, roads, walks : str
        Of the city, of its network and of its trips.
    size, diameter : int
        Number of nodes and largest number of hops.
    radii, best_guess : tuple
        The η of Tables 6.4 and 6.5, and the printed κ⁺ of each.
    collision, largest : str
        κ of Table 6.3, and the largest share of Table 6.1, as printed.
    sample : str
        Which part of the trips behind the printed shares is public, if not all.
    """

    name: str
    roads: str
    walks: str
    size: int
    diameter: int
    radii: tuple[int, ...]
    best_guess: tuple[str, ...]
    collision: str
    largest: str
    sample: str = ""


PLACES = (
    Place(
        "Porto",
        "porto",
        "porto-trips",
        3052,
        88,
        (0, 9, 26, 44, 70),
        ("0.10", "0.29", "0.84", "1", "1"),
        "0.03",
        "0.11",
        "1 820 of the 1.71 million trips stand in for all",
    ),
    Place(
        "Beijing",
        "geolife",
        "geolife-stays",
        5356,
        92,
        (0, 9, 28, 46, 74),
        ("0.15", "0.34", "0.71", "0.99", "1"),
        "0.05",
        "0.15",
    ),
)
"""Porto and Beijing."""


def city_words(inputs: Inputs, *, simulated: bool = True) -> str:
    """Say which networks were used."""
    cities = [v for v in inputs.data.values() if hasattr(v, "real")]
    real = all(city.real for city in cities)
    words = (
        "real road networks; visits of Porto from 1 820 of its 1.71 million trips, of "
        "Beijing from 99 % of the reports"
        if real
        else "grids of streets as stand-in cities"
    )
    return f"{words}; simulated reports" if simulated else words


def claim(quantity: str, holds: bool, note: str, *, real: bool = True) -> Check:
    """Return the check of a printed statement about data that may be a stand-in."""
    answer = "yes" if holds else "no"
    status: Status = "match" if holds else "differs"
    if not real:
        status, note = "stand-in", f"on a stand-in city; {note}"
    return Check(quantity, "yes", answer, status, note)


def reports_drawn(runs: int) -> str:
    """Say how many reports the source attacked at a point, and how many are here."""
    return (
        "source: 1 000 targets, five reports each; here: "
        f"{count(runs)} targets, five reports each"
    )


def nodes_of(place: Place) -> str:
    """Name a city and its size."""
    return f"{place.name}, {place.size} nodes"


def prior_check(
    quantity: str,
    published: str,
    ours: float,
    *,
    place: Place,
    visits: str,
    real: bool,
) -> Check:
    """Return the check of a number that depends on which reports a prior counts.

    Parameters
    ----------
    place : Place
        The city; where only a part of its trips is public, the check is a stand-in.
    visits : {"all", "inside"}
        The count of the source, or the honest one.
    real : bool
        Whether the city is real.
    """
    off = (
        "the source puts every report on its nearest node, also those outside the area "
        "(60 % in Porto, 91 % in Beijing), which pile up on its border"
    )
    return compare(
        quantity,
        published,
        ours,
        erratum="AE35" if visits == "inside" else "",
        why=off,
        stand_in=place.sample if real else "a grid of streets stands in for the city",
        note=(off if visits == "inside" else "")
        if place.sample
        else "from 99 % of the reports",
    )


def response_curve(size: int, epsilon: float) -> PiecewiseLinearTradeOff:
    """Return the trade-off function of randomised response on `size` values.

    Examples
    --------
    >>> round(response_curve(4, 1.0).total_variation(), 9)
    0.300489182
    """
    response = GeneralizedResponse(size, epsilon)
    p, q = float(response.keep), float(response.noise)
    rest = (size - 2) * q
    return tradeoff_from_pmfs([p, q, rest], [q, p, rest])


def response_figures(size: int, epsilon: float, *, collision: float) -> AttackRisk:
    r"""Return success, correction and advantage of the report of randomised response.

    .. math:: p, \qquad q + (p-q)\kappa, \qquad (p-q)(1-\kappa)

    Examples
    --------
    >>> figures = response_figures(2, 1.0, collision=0.5)
    >>> round(figures.success, 9), round(figures.advantage, 9)
    (0.731058579, 0.231058579)
    """
    response = GeneralizedResponse(size, epsilon)
    p, q = float(response.keep), float(response.noise)
    return AttackRisk(p, q + (p - q) * collision, (p - q) * (1 - collision))


def figure_curves(
    exact: Sequence[AttackRisk],
    measured: Mapping[float, AttackEstimate] | None = None,
    *,
    suffix: str = "",
) -> list[Curve]:
    """Return lines of success and advantage at all levels, and markers of points."""
    curves = []
    for name in ("success", "advantage"):
        label = f"{name}{suffix}"
        if exact:
            line = tuple(getattr(figures, name) for figures in exact)
            curves.append(Curve(label, EPSILONS, line))
        if measured:
            points = tuple(getattr(found, name).value for found in measured.values())
            shown = f"{label}, measured"
            curves.append(Curve(shown, tuple(measured), points, kind="measured"))
    return curves


def chance_panel(name: str, curves: Sequence[Curve], *, log: bool = False) -> Panel:
    """Return a panel of success and advantage over the level."""
    return Panel(name, tuple(curves), EPSILON_LABEL, _CHANCE_LABEL, y_log=log)


def agreement(
    where: str, exact: Sequence[AttackRisk], measured: Mapping[float, Any]
) -> Check:
    """Return the check that every exact advantage lies in its measured interval."""
    by_level = dict(zip(EPSILONS, exact, strict=True))
    inside = [
        found.advantage.low - 1e-12 <= by_level[e].advantage <= found.advantage.high
        for e, found in measured.items()
    ]
    first = next(iter(measured.values()))
    off = max(
        abs(f.advantage.value - by_level[e].advantage) for e, f in measured.items()
    )
    return Check(
        f"measured points follow the exact curve, {where}",
        "closely match",
        "yes" if all(inside) else "no",
        "match" if all(inside) else "differs",
        f"{first.mechanism_runs} reports at each of {len(inside)} levels; intervals of "
        f"confidence {first.advantage.confidence:g} each; largest deviation "
        f"{np.format_float_positional(off, precision=2, fractional=False)}",
    )
