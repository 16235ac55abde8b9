"""Files are written whole, for their owner alone, and harmless to spreadsheets."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import stat
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from undertow.errors import PlanError
from undertow.release.run._folder import (
    MANIFEST,
    check_folder,
    file_names,
    table_bytes,
    write_files,
)


def read_csv(content: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(content.decode(), newline="")))


def test_a_table_reads_back_as_written():
    rows = [["köln", 3, 0.1, True, date(2026, 1, 2), None]]
    found = read_csv(table_bytes(["a", "b", "c", "d", "e", "f"], rows, kind="csv"))
    assert found[1] == ["köln", "3", "0.1", "true", "2026-01-02", ""]


@given(st.text(max_size=30))
def test_no_cell_starts_a_formula(text):
    content = table_bytes(["x"], [[text, "end"]], kind="csv").decode()
    cell = content.split("\r\n", 1)[1]
    assert not cell.lstrip('"').startswith(("=", "+", "-", "@", "\t", "\r"))


UNSEEN = " \t\r\n\x00\x1f\x85\xa0\xad\u2003\u200b\u2028\u2060\u3000\ufeff"
SIGNS = "=+-@＝＋－＠﹦﹢﹣﹫⁼⁺⁻₌₊₋−﬩⩵"


@given(st.text(UNSEEN, max_size=4), st.sampled_from(SIGNS), st.text(max_size=5))
def test_signs_of_any_width_behind_what_cannot_be_seen_start_no_formula(
    blank, sign, rest
):
    text = blank + sign + rest
    content = table_bytes([text], [[text]], kind="csv").decode()
    assert [cells[0][:2] for cells in read_csv(content.encode())] == ["'" + text[0]] * 2


@pytest.mark.parametrize(
    "text", ["a=b", "north - south", "1+1", "'=1", "köln", " x", ""]
)
def test_other_text_stays_as_it_is(text):
    assert read_csv(table_bytes(["x", "y"], [[text, 1]], kind="csv"))[1][0] == text


def test_negative_numbers_stay_numbers():
    assert read_csv(table_bytes(["n"], [[-3]], kind="csv"))[1] == ["-3"]


def test_parquet_keeps_the_types():
    parquet = pytest.importorskip("pyarrow.parquet")
    content = table_bytes(["k", "n"], [["=a", 3], ["b", -1]], kind="parquet")
    table = parquet.read_table(io.BytesIO(content))
    assert table.to_pylist() == [{"k": "=a", "n": 3}, {"k": "b", "n": -1}]


def test_an_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind must be csv or parquet, got 'xls'"):
        table_bytes(["n"], [], kind="xls")


@given(st.lists(st.text(max_size=80), max_size=5))
def test_file_names_are_plain_and_apart(queries):
    names = file_names(queries, kind="csv")
    assert len(set(names)) == len(queries)
    for name in names:
        assert Path(name).name == name
        assert name.isascii()
        assert len(name) < 80


def test_files_are_for_their_owner_alone(tmp_path):
    folder = tmp_path / "out"
    digests = write_files(folder, {"a.csv": b"1", MANIFEST: b"{}"})
    assert digests["a.csv"] == hashlib.sha256(b"1").hexdigest()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(p.stat().st_mode) for p in folder.iterdir()} == {0o600}
    assert sorted(p.name for p in folder.iterdir()) == ["a.csv", MANIFEST]


def test_a_failure_leaves_the_old_files(tmp_path, monkeypatch):
    write_files(tmp_path, {"a.csv": b"old", MANIFEST: b"{}"})

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(PlanError, match="No space left on device; what was released"):
        write_files(tmp_path, {"a.csv": b"new", "b.csv": b"new", MANIFEST: b"{}"})
    assert (tmp_path / "a.csv").read_bytes() == b"old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.csv", MANIFEST]


def test_a_disk_that_is_really_full_leaves_nothing(tmp_path, runs):
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from undertow.errors import PlanError\n"
        "from undertow.release.run._folder import write_files\n"
        "try:\n"
        "    write_files(Path(sys.argv[1]), {'a.csv': b'x' * 5000})\n"
        "except PlanError as fault:\n"
        "    print(fault)\n"
    )
    folder = tmp_path / "out"
    done = runs.run(str(folder), folder=tmp_path, script=script, room=1000)
    assert done.status == 0, done.error
    assert "output must be a folder that can be written" in done.output
    assert list(folder.iterdir()) == []


def test_the_manifest_takes_its_name_last(tmp_path, monkeypatch):
    order, replace = [], os.replace

    def noted(source, target):
        order.append(Path(target).name)
        replace(source, target)

    monkeypatch.setattr(os, "replace", noted)
    write_files(tmp_path, {MANIFEST: b"{}", "z.csv": b"1", "a.csv": b"2"})
    assert order == ["a.csv", "z.csv", MANIFEST]


def test_a_file_in_the_way_is_refused_early(tmp_path):
    path = tmp_path / "taken"
    path.write_text("x")
    with pytest.raises(PlanError, match="output must be a folder, got the file"):
        check_folder(path)
    check_folder(tmp_path / "new" / "deep")
