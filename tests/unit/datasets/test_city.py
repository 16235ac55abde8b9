"""The synthetic city: its size, its law, its file."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from undertow.datasets import CITY_TRANSITION, synthetic_city, write_city


def test_the_city_has_two_hundred_thousand_records_of_five_thousand_people():
    city = synthetic_city()
    assert city.events == 200_000
    assert city.zones.shape == (5000, 42)
    assert set(np.unique(city.zones)) == set(range(40))
    assert (city.seen.sum(axis=1) == 40).all()


def test_the_same_seed_gives_the_same_city():
    first, second, other = (synthetic_city(50, seed=s) for s in (3, 3, 4))
    assert (first.zones == second.zones).all()
    assert not (first.zones == other.zones).all()


def test_banks_move_by_the_stated_chain():
    north = synthetic_city().north
    for state, row in enumerate(CITY_TRANSITION):
        left = north[:, :-1] == bool(state)
        moved = north[:, 1:][left].mean()
        # More than 100 000 moves: eight standard errors.
        assert moved == pytest.approx(row[1], abs=8 * 0.5 / np.sqrt(left.sum()))


def test_the_bank_alone_is_a_markov_chain():
    north = synthetic_city().north
    for earlier in (False, True):
        at = (north[:, :-2] == earlier) & north[:, 1:-1]
        stayed = north[:, 2:][at].mean()
        assert stayed == pytest.approx(CITY_TRANSITION[1][1], abs=0.02)


def test_the_file_has_one_line_per_record(tmp_path):
    city, path = synthetic_city(20), tmp_path / "city.csv"
    write_city(city, path)
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == city.events == 800
    assert rows[0].keys() == {"person_id", "ts", "zone", "north"}
    assert all(int(r["north"]) == (int(r["zone"]) < 20) for r in rows)


def test_a_complete_panel_has_every_slot(tmp_path):
    path = tmp_path / "panel.csv"
    write_city(synthetic_city(20), path, complete=True)
    assert len(path.read_text(encoding="utf-8").splitlines()) == 20 * 42 + 1


def test_few_slots_are_refused():
    with pytest.raises(ValueError, match="slots must be a whole number of at least 3"):
        synthetic_city(5, slots=2)
