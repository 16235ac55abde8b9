"""No number, name or exit status of a command changes unseen."""

from __future__ import annotations

import os

import pytest

from support.golden import GROUPS, commands, differences, frozen, inputs, outcome

EXACT = os.environ.get("UNDERTOW_GOLDEN") == "exact"
"""On one machine: compare numbers to the last bit."""

CASES = [(group, command) for group in GROUPS for command in commands(group)]


@pytest.mark.parametrize(("group", "command"), CASES)
def test_a_command_prints_what_was_frozen(group, command):
    with inputs() as folder:
        found = outcome(command, folder)
    assert differences(found, frozen(group)[command], exact=EXACT) == []


@pytest.mark.parametrize("group", GROUPS)
def test_what_is_frozen_are_the_commands_of_the_list(group):
    assert list(frozen(group)) == commands(group)


def test_a_change_of_a_number_a_name_or_a_kind_is_told():
    old = {"a": [1, 2.0], "b": "x"}
    same = {"a": [1, 2.0 * (1 + 1e-12)], "b": "x"}
    assert differences(same, old, exact=False) == []
    assert len(differences(same, old, exact=True)) == 1
    for new in ({"a": [1, 2.001], "b": "x"}, {"a": [1.0, 2.0], "b": "x"}, {"b": "x"}):
        assert len(differences(new, old, exact=False)) == 1
