"""Pedigrees from plain records."""

from __future__ import annotations

import json

import pytest

from undertow.correlation.pedigree import Pedigree
from undertow.correlation.pedigree.model import nuclear_parents, read_records
from undertow.errors import ModelError

PEOPLE = [
    {"id": "Eve", "father": "Bob", "mother": "Ann"},
    {"id": "Ann"},
    {"id": "Bob", "father": None},
]


def test_people_may_come_in_any_order():
    pedigree = Pedigree.from_records(PEOPLE, frequency=0.5)
    assert pedigree.parents == ((2, 1), (None, None), (None, None))
    assert pedigree.names == ("Eve", "Ann", "Bob")


def test_a_file_may_hold_people_and_the_founder_law():
    text = json.dumps({"people": PEOPLE, "founder": [0.25, 0.5, 0.25]})
    pedigree = Pedigree.from_records(json.loads(text))
    assert pedigree.founder == (0.25, 0.5, 0.25)


def test_numbers_are_ids_too():
    assert read_records([{"id": 7}, {"id": 9, "mother": 7}]).parents[1] == (None, 0)


def test_a_nuclear_family_is_named_by_its_children():
    entry = {"nuclear": {"children": 3, "families": 2, "unrelated": 1}}
    pedigree = Pedigree.from_records(entry, frequency=0.1)
    assert pedigree == Pedigree.nuclear(3, frequency=0.1, families=2, unrelated=1)
    assert len(nuclear_parents(3, families=2, unrelated=1)) == 11


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ("Ann", "list of records"),
        ([{"father": "Ann"}], "record with an 'id'"),
        (["Ann"], "record with an 'id'"),
        ([{"id": ["Ann"]}], "text or a number"),
        ([{"id": "Ann"}, {"id": "Ann"}], "ids must differ, got 'Ann' twice"),
        ([{"id": "Ann", "mother": "Zoe"}], "must be the id of a person, got 'Zoe'"),
        ([{"id": "Ann", "mother": "Ann"}], "must not be their own mother"),
        ([{"id": "Ann", "sex": "f"}], "only, got 'sex'"),
        ({"people": [], "nuclear": {"children": 1}}, "either 'people' or 'nuclear'"),
        ({}, "either 'people' or 'nuclear'"),
        ({"persons": []}, "only, got 'persons'"),
        ({"nuclear": 3}, "number of 'children'"),
        ({"nuclear": {"children": 1, "size": 3}}, "only, got 'size'"),
    ],
)
def test_what_cannot_be_read_is_refused(records, message):
    with pytest.raises(ModelError, match=message):
        Pedigree.from_records(records, frequency=0.5)


def test_no_people_are_no_pedigree():
    with pytest.raises(ModelError, match="at least one person"):
        Pedigree.from_records([], frequency=0.5)


def test_the_founder_law_is_not_given_twice():
    with pytest.raises(ModelError, match="given once"):
        Pedigree.from_records({"people": PEOPLE, "frequency": 0.5}, frequency=0.4)


def test_a_cycle_in_records_is_named():
    loop = [{"id": "a", "father": "b"}, {"id": "b", "father": "a"}]
    with pytest.raises(ModelError, match=r"acyclic, got person '[ab]'"):
        Pedigree.from_records(loop, frequency=0.5)


def test_children_are_counted():
    with pytest.raises(ValueError, match="children must be a whole number"):
        Pedigree.from_records({"nuclear": {"children": 0}})
