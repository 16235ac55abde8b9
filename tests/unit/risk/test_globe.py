"""Places on the Earth: distances by other formulas, and no pair lost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from undertow.errors import ModelError, NotApplicable
from undertow.risk.success import (
    EARTH_RADIUS,
    STRETCH,
    Success,
    great_circle,
    hits_on_globe,
)
from undertow.risk.threat import Prior, Threat

PORTO, LISBON, BEIJING = (41.1579, -8.6291), (38.7223, -9.1393), (39.9042, 116.4074)
SYDNEY, NEW_YORK = (-33.8688, 151.2093), (40.7128, -74.0060)

# The ellipsoid WGS 84.
AXIS, SQUARE = 6_378_137.0, 0.006_694_379_990_141_316


def by_vectors(one, other):
    """Return the distance by the angle between unit vectors."""

    def place(latitude, longitude):
        north, east = math.radians(latitude), math.radians(longitude)
        return np.array(
            [
                math.cos(north) * math.cos(east),
                math.cos(north) * math.sin(east),
                math.sin(north),
            ]
        )

    a, b = place(*one), place(*other)
    return EARTH_RADIUS * math.atan2(np.linalg.norm(np.cross(a, b)), a @ b)


def meridian(south, north, steps=20_000):
    """Return the length of a meridian of the ellipsoid, by the midpoint rule."""
    width = math.radians(north - south) / steps
    middle = math.radians(south) + width * (np.arange(steps) + 0.5)
    radii = AXIS * (1 - SQUARE) / (1 - SQUARE * np.sin(middle) ** 2) ** 1.5
    return float(radii.sum() * width)


@pytest.mark.parametrize(
    ("one", "other", "kilometres"),
    [
        (PORTO, LISBON, 274.295884606),
        (PORTO, NEW_YORK, 5355.11805525),
        (BEIJING, SYDNEY, 8948.20099369),
        ((0, 0), (0, 180), math.pi * EARTH_RADIUS / 1000),
        ((90, 17), (-90, 3), math.pi * EARTH_RADIUS / 1000),
    ],
)
def test_cities_are_as_far_apart_as_the_law_of_cosines_says(one, other, kilometres):
    """Computed apart, with forty digits."""
    (found,) = great_circle([one], [other])[0]
    assert found == pytest.approx(1000 * kilometres, rel=1e-9)
    assert found == pytest.approx(by_vectors(one, other), rel=1e-9)


def test_distances_agree_with_vectors_everywhere():
    rng = np.random.default_rng(3)
    places = np.stack([rng.uniform(-90, 90, 40), rng.uniform(-180, 180, 40)], axis=1)
    table = great_circle(places, places)
    plain = [[by_vectors(a, b) for b in places] for a in places]
    assert table == pytest.approx(np.array(plain), rel=1e-9, abs=1e-6)


def test_one_place_written_twice_is_one_place():
    assert great_circle([(10, 180)], [(10, -180)])[0, 0] == 0
    assert great_circle([(10, 350)], [(10, -10)])[0, 0] == 0
    assert great_circle([(90, 0)], [(90, 120)])[0, 0] == 0
    assert (
        Success.within("metres", 0).matrix([(10, 180), (10, -180), (10, 0)]).sum() == 5
    )


def test_a_step_of_a_metre_keeps_its_digits():
    step = math.degrees(1.0 / EARTH_RADIUS)
    assert great_circle([(0, 0)], [(step, 0)])[0, 0] == pytest.approx(1.0, rel=1e-12)
    assert great_circle([(0, 179.5)], [(0, -179.5)])[0, 0] == pytest.approx(
        math.radians(1) * EARTH_RADIUS, rel=1e-12
    )


def test_no_pair_within_the_threshold_on_the_ellipsoid_is_lost():
    """At the equator a meridian is 0.56 % shorter than on the sphere."""
    for south, north in ((-0.002, 0.002), (-1, 1), (-20, 20), (40, 41), (88, 90)):
        true = meridian(south, north)
        near = hits_on_globe([(south, 5)], [(north, 5)], eta=true)
        assert near.all()
        assert not hits_on_globe([(south, 5)], [(north, 5)], eta=true / 1.0103).any()
    sphere = great_circle([(-0.002, 5)], [(0.002, 5)])[0, 0]
    assert 1.0056 < sphere / meridian(-0.002, 0.002) < STRETCH


def test_hits_by_blocks_are_those_of_the_distances():
    rng = np.random.default_rng(9)
    places = [tuple(p) for p in rng.uniform((41.0, -8.8), (41.3, -8.4), (1500, 2))]
    hits = Success.within("metres", 2000).matrix(places)
    assert hits.tolist() == (great_circle(places, places) <= 2000 * STRETCH).tolist()
    assert 0.001 < hits.mean() < 0.2
    assert hits_on_globe(places[:3], places, eta=3e7).all()


def test_a_threat_by_metres_says_so_and_takes_further_guesses():
    homes = [(41.1496, -8.6110), (41.1450, -8.6107), (41.1540, -8.6110)]
    threat = Threat.location(Prior.uniform(homes), eta=500, distance="metres")
    assert "within 500 metres" in threat.summary
    assert threat.best_guess == pytest.approx(2 / 3)
    middle = Success.within("metres", 530, guesses=[(41.1497, -8.6110)])
    assert middle.matrix(homes)[3].all()


@pytest.mark.parametrize(
    "places",
    [
        [1.0, 2.0],
        [(91, 0)],
        [(0, 361)],
        [(0, -181)],
        [(math.nan, 0)],
        [(0, 0, 0)],
        [("41", "8")],
        ["41"],
        [(0, 0), (1,)],
    ],
    ids=str,
)
def test_records_that_are_no_places_are_refused(places):
    with pytest.raises(ModelError, match=r"\(latitude, longitude\) in degrees"):
        Success.within("metres", 1).matrix(places)


def test_too_many_places_are_refused_before_any_work():
    many = [(0.0, 0.0)] * 20_001
    with pytest.raises(NotApplicable, match="at most 400000000 pairs"):
        hits_on_globe(many, many, eta=1)
