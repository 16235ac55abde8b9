"""Heads that are kept beside a table: what is needed of them, and that it stays."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.release_documents import write_visits
from undertow.errors import LedgerError
from undertow.release import load
from undertow.release.run import _earlier as heads
from undertow.release.run._earlier import (
    HEADS,
    KeptHead,
    KeptHeads,
    kept_heads,
    needed_heads,
)


@dataclass(frozen=True)
class Chain:
    """A ledger as far as heads know it: the hash of each entry and all before."""

    start: str
    hashes: tuple[str, ...] = ()
    name: str = "the ledger"

    def longer(self, mark: int) -> Chain:
        last = self.hashes[-1] if self.hashes else self.start
        added = hashlib.sha256(f"{last} {mark}".encode()).hexdigest()
        return replace(self, hashes=(*self.hashes, added))

    def holds(self, count: int, digest: str) -> bool:
        return count <= len(self.hashes) and self.hashes[count - 1] == digest


# Which ledger is charged, for which table, from where it was called, for whom.
charges = st.lists(
    st.tuples(*(st.integers(0, 2) for _ in range(3)), st.sampled_from([None, "us"])),
    min_size=1,
    max_size=40,
)


def history(steps):
    """The lines that charges leave, and every state of every ledger."""
    ledgers = [Chain(f"start {at}") for at in range(3)]
    states, lines = [*ledgers], []
    for mark, (at, table, name, people) in enumerate(steps):
        ledgers[at] = ledgers[at].longer(mark).longer(mark)
        states.append(ledgers[at])
        count, digest = len(ledgers[at].hashes), ledgers[at].hashes[-1]
        who = (ledgers[at].start, f"{name}.ledger")
        lines.append(KeptHead(*who, count, digest, f"t{table}", mark, "unit", people))
    return states, lines


def refused(folder: Path, ledger: Chain) -> bool:
    return KeptHeads(folder).missing_in(ledger) is not None


@settings(max_examples=60, deadline=None)
@given(charges, st.integers(0, 4))
def test_a_compacted_file_refuses_every_older_ledger_that_the_whole_one_does(
    steps, few
):
    states, lines = history(steps)
    with tempfile.TemporaryDirectory() as place, pytest.MonkeyPatch.context() as patch:
        whole, small = Path(place, "whole"), Path(place, "small")
        for folder, most in ((whole, 10**9), (small, few)):
            folder.mkdir()
            patch.setattr(heads, "_FEW", most)
            for line in lines:
                heads._append(folder / HEADS, line)
        assert kept_heads(whole) == lines
        kept = kept_heads(small)
        assert len(kept) <= max(few, 2 * len(needed_heads(lines)))
        newest = {state.start: len(state.hashes) for state in states}
        for state in states:
            older = len(state.hashes) < newest[state.start]
            for copy in (state, state.longer(-1), state.longer(-1).longer(-1)):
                assert refused(small, copy) == refused(whole, copy)
            assert refused(small, state) == older
        assert [p.name for p in small.iterdir()] == [HEADS]
    # What else is asked: places of each table and of each people, and the last of each.
    for asked in ("table", "people"):
        assert places(kept, asked) == places(lines, asked)
    assert {line.table: line for line in kept} == {line.table: line for line in lines}


def places(lines, asked):
    return {(getattr(line, asked), line.unit, line.ledger, line.name) for line in lines}


def test_runs_without_end_leave_a_short_file_that_knows_the_last(tmp_path, monkeypatch):
    monkeypatch.setattr(heads, "_FEW", 3)
    path = write_visits(tmp_path, promise={"granularity": "user", "epsilon": "1"})
    place = tmp_path / "visits.ledger"
    load(path).create_ledger(place).close()
    text = path.read_text().replace('epsilon = "1"', 'epsilon = "1/9"')
    path.write_text(text)
    for repeat in range(1, 10):
        if repeat == 9:
            shutil.copy(place, tmp_path / "old")
        load(path).run(repeat=repeat, output=tmp_path / f"out{repeat}")
        assert len(kept_heads(tmp_path)) <= 3
    assert max(head.count for head in kept_heads(tmp_path)) == 18
    assert (tmp_path / HEADS).stat().st_mode & 0o777 == 0o600
    before = (tmp_path / HEADS).read_bytes()
    assert load(path).run(repeat=2, output=tmp_path / "out2").repeated
    assert (tmp_path / HEADS).read_bytes() == before  # it says nothing new
    for at in range(1, 10):
        shutil.rmtree(tmp_path / f"out{at}")
    (tmp_path / "old").rename(place)
    with pytest.raises(LedgerError, match="without entry 18"):
        load(path).run(repeat=9, output=tmp_path / "other")


ADD = """
import sys
from pathlib import Path
from undertow.release.run import _earlier as heads
heads._FEW = 2
for count in range(1, 101):
    ledger = sys.argv[1], f"{sys.argv[1]}.ledger"
    head = heads.KeptHead(*ledger, count, f"h{count}", "t", count, None, None)
    heads._append(Path(heads.HEADS), head)
"""


def test_writers_at_once_lose_no_head(tmp_path, runs):
    names = [(f"s{at}",) for at in range(4)]
    ended = runs.run_at_once(names, folder=tmp_path, script=ADD)
    assert [each.status for each in ended] == [0] * 4, ended
    found = needed_heads(kept_heads(tmp_path))
    assert {(head.ledger, head.count) for head in found} == {(n, 100) for (n,) in names}
    assert os.listdir(tmp_path) == [HEADS]
