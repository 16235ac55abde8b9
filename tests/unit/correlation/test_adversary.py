"""Who attacks."""

from __future__ import annotations

import pickle

import pytest

from undertow.correlation.result import Adversary, adversary_witness


def test_an_adversary_aims_at_a_record_and_knows_others():
    who = Adversary(2, [0, 4])
    assert (who.target, who.known) == (2, frozenset({0, 4}))
    assert who.unknown(6) == (1, 3, 5)


def test_the_informed_adversary_leaves_nothing_unknown():
    assert Adversary(1, {0, 2}).unknown(3) == ()


def test_the_target_is_not_known():
    with pytest.raises(ValueError, match=r"known must not contain the target"):
        Adversary(1, {1, 2})


def test_values_are_of_known_records():
    with pytest.raises(ValueError, match=r"values must be of known records.*record 3"):
        Adversary(0, {1}, {1: 5, 3: 7})


@pytest.mark.parametrize("who", [Adversary(3), Adversary(0, {3})])
def test_records_lie_within_the_size(who):
    assert who.within(4) is who
    with pytest.raises(ValueError, match=r"record must be in 0\.\.2"):
        who.within(3)


def test_a_negative_record_is_refused_where_the_size_is_known():
    with pytest.raises(ValueError, match=r"record must be"):
        Adversary(0, {-1}).within(3)


def test_words_count_known_records_when_there_are_many():
    assert Adversary(9, range(7)).summary == "aims at record 9, knows 7 other records"
    assert Adversary(9, {1}).summary == "aims at record 9, knows record 1"
    assert (
        Adversary(9, {1, 2, 3}, {2: "x"}).summary
        == "aims at record 9, knows record 1, record 2 = x and record 3"
    )


def test_adversaries_are_values_and_travel():
    who = Adversary(0, {2, 1}, {1: 3})
    assert who == Adversary(0, [1, 2], {1: 3})
    assert who != Adversary(0, [1, 2])
    assert hash(who) == hash(Adversary(0, [1, 2], {1: 3}))
    assert pickle.loads(pickle.dumps(who)) == who


def test_known_values_cannot_be_changed_afterwards():
    values = {1: 3}
    who = Adversary(0, {1}, values)
    values[1] = 4
    assert who.values[1] == 3
    with pytest.raises(TypeError):
        who.values[1] = 5


def test_an_adversary_prints_as_plain_values():
    assert Adversary(0, {2, 1}, {2: 1}).to_dict() == {
        "target": 0,
        "known": [1, 2],
        "values": {"2": 1},
    }


def test_a_witness_says_who_which_secrets_which_output_and_why():
    found = adversary_witness(Adversary(0), pair=(1, 0), output=2, note="in the tail")
    assert found.kind == "adversary"
    assert found.summary == (
        "aims at record 0, knows no other record; tells 1 from 0; seeing 2; in the tail"
    )
    assert found.details["pair"] == (1, 0)
    assert found.details["output"] == 2
    assert found.details["target"] == 0


def test_a_witness_without_pair_and_output_has_neither():
    details = adversary_witness(Adversary(0)).details
    assert "pair" not in details
    assert "output" not in details
