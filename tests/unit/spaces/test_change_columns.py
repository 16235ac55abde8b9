"""Columns are hashed once, and a copy in another process is hashed anew."""

from __future__ import annotations

import pickle
import subprocess
import sys

import pytest

from undertow.spaces import At, Event, User
from undertow.spaces.change import Column

LOOKUP = """
import pickle, sys
from undertow.spaces import At, Event
from undertow.spaces.change import Column
column = pickle.loads(sys.stdin.buffer.read())
print({Column(At(3), Event(), "view"): "found"}.get(column))
"""


def test_equal_columns_are_one_key_and_others_are_not():
    column = Column(At(3), Event(), "view")
    assert {column: 1}[Column(At(3), Event(), "view")] == 1
    assert Column(At(3), User(), "view") not in {column: 1}
    assert Column(At(3), Event(), "common") != column
    assert pickle.loads(pickle.dumps(column)) == column


@pytest.mark.parametrize("seed", ["1", "2"])
def test_a_pickled_column_is_found_in_a_process_with_another_hash_seed(seed):
    sent = pickle.dumps(Column(At(3), Event(), "view"))
    found = subprocess.run(
        [sys.executable, "-c", LOOKUP],
        input=sent,
        capture_output=True,
        check=True,
        env={"PYTHONHASHSEED": seed},
    )
    assert found.stdout.strip() == b"found"
