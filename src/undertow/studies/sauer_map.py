"""Sauer's map of the priors: Figure 5.1."""

from __future__ import annotations

from typing import Any

from undertow.risk import Prior
from undertow.studies.base import (
    Check,
    Curve,
    Inputs,
    Panel,
    Study,
    StudyResult,
    compare,
)
from undertow.studies.sauer_common import (
    PLACES,
    SOURCE,
    WHICH,
    Place,
    city_words,
    prior_check,
)

__all__ = ["SAUER_MAP"]

_HEADER = ("panel", "node", "longitude", "latitude", "share")


def _figure_5_1(inputs: Inputs) -> StudyResult:
    panels, rows, checks = [], [], []
    for place in PLACES:
        city = inputs.data[place.roads]
        checks.append(_nodes(place, city))
        for visits in ("all", "inside") if city.real else ("inside",):
            prior = city.prior(visits)
            panel = _map(_title(place, visits, real=city.real), city, prior)
            panels.append(panel)
            rows += _rows(panel)
            checks += _shares(place, prior, visits=visits, real=city.real)
    return StudyResult(
        FIGURE_5_1.name,
        FIGURE_5_1.title,
        FIGURE_5_1.source,
        tuple(panels),
        _HEADER,
        tuple(rows),
        tuple(checks),
        city_words(inputs, simulated=False),
    )


def _title(place: Place, visits: str, *, real: bool) -> str:
    return f"{place.name}, {WHICH[visits]}" if real else f"{place.name} (stand-in)"


def _map(title: str, city: Any, prior: Prior) -> Panel:
    """Return the nodes where they lie, each as large as its share of the visits."""
    shares = tuple(prior.pmf.tolist())
    nodes = Curve(
        f"share of visits, largest {max(shares):.2g}",
        tuple(city.longitude.tolist()),
        tuple(city.latitude.tolist()),
        kind="measured",
        sizes=shares,
    )
    return Panel(title, (nodes,), "longitude (degrees)", "latitude (degrees)")


def _rows(panel: Panel) -> list[tuple[Any, ...]]:
    (nodes,) = panel.curves
    points = zip(nodes.x, nodes.y, nodes.sizes, strict=True)
    return [(panel.name, node, *point) for node, point in enumerate(points)]


def _nodes(place: Place, city: Any) -> Check:
    return compare(
        f"nodes, {place.name}",
        str(place.size),
        len(city),
        stand_in="" if city.real else "a grid of streets stands in for the city",
        note="printed in Table 5.2; the figure has no numbers",
    )


def _shares(place: Place, prior: Prior, *, visits: str, real: bool) -> list[Check]:
    where = f"{place.name}, {WHICH[visits]}"
    top = float(prior.pmf.max())
    return [
        prior_check(
            f"largest share, {where}",
            place.largest,
            top,
            place=place,
            visits=visits,
            real=real,
        ),
        prior_check(
            f"κ, {where}",
            place.collision,
            prior.collision,
            place=place,
            visits=visits,
            real=real,
        ),
    ]


FIGURE_5_1 = Study(
    "sauer-figure-5.1",
    "visits of the nodes of two cities",
    f"{SOURCE}, Figure 5.1",
    _figure_5_1,
    ("porto", "geolife"),
)
SAUER_MAP = (FIGURE_5_1,)
