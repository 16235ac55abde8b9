"""A synthetic city: who was in which zone, three times a day for two weeks.

Each person moves between the two banks of a river as a two-state chain; the zone on
either bank is drawn anew, so that the bank is a Markov chain by itself. The
same seed gives the same city on every machine.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count
from undertow.numeric.array import Ints

CITY_TRANSITION = ((0.97, 0.03), (0.03, 0.97))
"""From the south bank (0) and the north bank (1) to either, in a third of a day."""

CITY_START = datetime(2026, 3, 2, tzinfo=UTC)
"""The first third of a day: a Monday at midnight, UTC."""

ZONES, NORTH_ZONES = 40, 20
_SLOT = timedelta(hours=8)
_SLOTS = 42
_SEEN = 40
_SEED = 20260302


@dataclass(frozen=True, eq=False)
class City:
    """Where people were.

    Parameters
    ----------
    zones : ndarray of int, shape (people, slots)
        Zone of each person in each third of a day; zones 0 to 19 lie on the north bank.
    seen : ndarray of bool, shape (people, slots)
        Whether the person was recorded then.
    minutes : ndarray of int, shape (people, slots)
        Minutes into the third of the day at which the record was made.
    """

    zones: Ints
    seen: NDArray[np.bool_]
    minutes: Ints

    @property
    def north(self) -> NDArray[np.bool_]:
        """Whether each person was on the north bank, recorded or not."""
        return np.asarray(self.zones < NORTH_ZONES)

    @property
    def events(self) -> int:
        """The number of records."""
        return int(self.seen.sum())


def synthetic_city(
    people: int = 5000, *, slots: int = _SLOTS, seed: int = _SEED
) -> City:
    """Generate the city; 5000 people and 42 slots give 200,000 records.

    Parameters
    ----------
    people : int, optional
        Number of people.
    slots : int, optional
        Thirds of days; a person is recorded in all but two of them.
    seed : int, optional
        Another seed gives another city of the same law.

    Examples
    --------
    >>> synthetic_city().events
    200000
    """
    n, length = check_count(people, "people"), check_count(slots, "slots", minimum=3)
    rng = np.random.default_rng(check_count(seed, "seed", minimum=0))
    north = _banks(n, length, rng)
    inside = rng.integers(0, NORTH_ZONES, size=(n, length))
    outside = rng.integers(NORTH_ZONES, ZONES, size=(n, length))
    hidden = np.argsort(rng.random((n, length)), axis=1)[:, : _SLOTS - _SEEN]
    seen = np.ones((n, length), dtype=bool)
    np.put_along_axis(seen, hidden, False, axis=1)
    minutes = rng.integers(0, 480, size=(n, length))
    return City(np.where(north, inside, outside), seen, minutes)


def _banks(people: int, slots: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Simulate the bank of everyone, from the stationary start."""
    (_, enter), (leave, stay) = CITY_TRANSITION
    uniform = rng.random((people, slots))
    north = np.empty((people, slots), dtype=bool)
    north[:, 0] = uniform[:, 0] < enter / (enter + leave)
    for t in range(1, slots):
        north[:, t] = uniform[:, t] < np.where(north[:, t - 1], stay, enter)
    return north


def write_city(city: City, path: Path, *, complete: bool = False) -> None:
    """Write the records as a CSV file: person, time, zone, bank.

    Parameters
    ----------
    city : City
        What is written.
    path : Path
        Where; an existing file is replaced.
    complete : bool, optional
        Whether the slots in which people were not recorded are written as well, as in
        a panel that was paid to answer.
    """
    seen = np.ones_like(city.seen) if complete else city.seen
    people, slots = np.nonzero(seen)
    starts = [CITY_START + _SLOT * t for t in range(city.seen.shape[1])]
    zones, minutes = city.zones[people, slots], city.minutes[people, slots]
    rows = zip(
        people.tolist(), slots.tolist(), zones.tolist(), minutes.tolist(), strict=True
    )
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.writer(file)
        table.writerow(["person_id", "ts", "zone", "north"])
        for person, slot, zone, minute in rows:
            moment = starts[slot] + timedelta(minutes=minute)
            shown = moment.strftime("%Y-%m-%d %H:%M:%S")
            table.writerow([person, shown, zone, int(zone < NORTH_ZONES)])
