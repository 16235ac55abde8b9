"""What is known of the target, as numbered fibres."""

from __future__ import annotations

import numpy as np
import pytest

from undertow.errors import MismatchError, ModelError
from undertow.risk.threat import Knowledge


def test_nothing_is_one_fibre_and_everything_is_one_each():
    assert Knowledge.none().labels("xyz").tolist() == [0, 0, 0]
    assert Knowledge.full().labels("xyz").tolist() == [0, 1, 2]


def test_fibres_are_numbered_as_they_appear():
    known = Knowledge.attributes(str.lower)
    assert known.labels(["B", "a", "b"]).tolist() == [0, 1, 0]
    assert known.values(["B", "a"]) == ("b", "a")


def test_labels_may_be_an_array():
    assert Knowledge.from_labels(np.array([5, 5, 2])).labels("xyz").tolist() == [
        0,
        0,
        1,
    ]


def test_labels_of_another_length_are_refused():
    with pytest.raises(MismatchError, match="one for each of the 2 records"):
        Knowledge.from_labels([1, 2, 3]).labels("xy")


def test_a_list_is_not_a_function():
    with pytest.raises(TypeError, match="from_labels"):
        Knowledge.attributes([1, 2])


def test_trap_r22_knowledge_is_of_one_kind_for_all_records():
    mixed = Knowledge.attributes(lambda r: r if r == "celebrity" else len(r))
    with pytest.raises(ModelError, match="one kind for all records"):
        mixed.labels(["celebrity", "neighbour"])
