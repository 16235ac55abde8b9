"""A row of a CSV file is read by itself, as an independent reader of each byte says."""

from __future__ import annotations

import csv
import gzip
import io
import re
import tempfile
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import example
from hypothesis import strategies as st

from support.examples import given_examples
from undertow.errors import PlanError
from undertow.release.engine.job import Bounding, Grid, Job
from undertow.release.engine.pipeline import run_jobs
from undertow.release.language.expression import parse_expression
from undertow.release.source import _plain_file as source_lines
from undertow.release.source._plain_file import LONGEST_ROW, copy_rows, line_ending
from undertow.release.source.opening import open_source

SPECIAL = [b'"', b'"', b'""', b",", b",", b"\n", b"\n", b"\r\n", b"\r"]
PLAIN = [b"a", b"bc", b" ", b"\xff", "é".encode(), b"\0", b"\x1f", b"\xef\xbb\xbf"]
SOME = st.sampled_from([*SPECIAL, *PLAIN])
WELL = st.sampled_from(
    ["", "a", "b c", ' "', '"', '""', ",", "\n", "\r\n", "\r", "é", "\0", "\x1f", "'"]
)
CELLS = st.lists(WELL, max_size=3).map("".join)


def ending_at(data: bytes, at: int, end: bytes) -> int | None:
    """Return how many bytes end a row at a place; None if none does."""
    if at == len(data):
        return 0
    for some in (end, b"\r\n") if end == b"\n" else (end,):
        if data.startswith(some, at):
            return len(some)
    return 1 if end == b"\n" and data[at:] == b"\r" else None


def strict_row(data: bytes, at: int, end: bytes) -> tuple[list[bytes], int] | None:
    """Return the cells of the row at a place and where it ends; None if it is none."""
    cells = []
    while True:
        cell = bytearray()
        if data[at : at + 1] == b'"':
            at += 1
            while True:
                if at == len(data):
                    return None
                if data[at : at + 2] == b'""':
                    cell += b'"'
                    at += 2
                elif data[at : at + 1] == b'"':
                    at += 1
                    break
                else:
                    cell += data[at : at + 1]
                    at += 1
        else:
            while data[at : at + 1] != b"," and ending_at(data, at, end) is None:
                cell += data[at : at + 1]
                at += 1
        cells.append(bytes(cell))
        if ending_at(data, at, end) is not None:
            return cells, at
        if data[at : at + 1] != b",":
            return None
        at += 1


def text(cell: bytes) -> str | None:
    try:
        return cell.decode() or None
    except UnicodeDecodeError:
        return None


def rows_of(data: bytes, longest: int = LONGEST_ROW) -> list[tuple[str | None, ...]]:
    """Return the rows below the first line of a file as they are to be read."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    head = re.match(rb"[^\r\n]*", data)[0]
    columns = head.count(b",") + 1
    lone = data[len(head) :].startswith(b"\r") and data[len(head) + 1 :][:1] != b"\n"
    end = b"\r" if lone else b"\n"
    at, rows = 0, []
    while at < len(data):
        start, found = at, strict_row(data, at, end)
        if found is None:
            cells = []
            while ending_at(data, at, end) is None:
                at += 1
        else:
            cells, at = found
        good = len(cells) == columns and at - start <= longest
        if at > start or columns == 1:
            some = cells if good else [b""] * columns
            rows.append(tuple(text(cell) for cell in some))
        at += ending_at(data, at, end)
    return rows[1:]


def read_back(data: bytes) -> list[tuple[str | None, ...]]:
    """Write a file, have it made readable, and read it with the reader of Python."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        path.write_bytes(data)
        there = path if line_ending(path) else Path(folder) / "copy.csv"
        if there != path:
            copy_rows(path, there)
        plain = there.read_bytes().removeprefix(b"\xef\xbb\xbf").decode()
    reader = csv.reader(io.StringIO(plain, newline=""), strict=True)
    [first, *found] = [row or [""] for row in reader]
    assert all(len(row) == len(first) for row in found)
    return [tuple(cell or None for cell in row) for row in found]


HEADS = st.sampled_from(
    [
        mark + names + end
        for mark in (b"", b"\xef\xbb\xbf")
        for names in (b"x", b"x,y", b"x,y,z")
        for end in (b"\n", b"\n", b"\r\n", b"\r")
    ]
)


@given_examples(60, 1000, HEADS, st.lists(SOME, max_size=40))
@example(b"x,y\n", [b'"a\n', b'b,"c"\n'])
@example(b"x,y\r\n", [b"a,b\r\n", b'c,"d\ne"\r\n'])
@example(b"x,y\n", [b"a,b\n", b"c,d\r"])
@example(b"x,y\n", [b"a,b\rc,d\n"])
@example(b"x\n", [b"a\r\n", b"\r\n"])
def test_any_bytes_are_the_rows_of_a_reader_of_each_byte(head, pieces):
    data = head + b"".join(pieces)
    assert read_back(data) == rows_of(data)


@given_examples(60, 1000, HEADS, st.lists(SOME, max_size=40), st.data())
def test_rows_do_not_depend_on_the_pieces_in_which_they_are_read(head, pieces, data):
    whole = head + b"".join(pieces)
    longest, chunk = data.draw(st.integers(5, 14)), data.draw(st.integers(1, 9))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source_lines, "LONGEST_ROW", longest)
        patch.setattr(source_lines, "_CHUNK", chunk)
        found = read_back(whole)
    assert found == rows_of(whole, longest)


@given_examples(
    40,
    400,
    st.lists(st.tuples(CELLS, CELLS), max_size=6),
    st.tuples(CELLS, CELLS),
    st.integers(0, 6),
    st.sampled_from(["\n", "\r\n"]),
)
def test_one_well_formed_row_more_is_one_row_more(rows, row, place, ending):
    def written(some):
        file = io.StringIO(newline="")
        csv.writer(file, lineterminator=ending).writerows([("x", "y"), *some])
        return Counter(read_back(file.getvalue().encode()))

    before, after = written(rows), written([*rows[:place], row, *rows[place:]])
    assert not before - after
    [read] = (after - before).elements()
    # A carriage return at the end of a line is no part of it, as Python writes it.
    assert read in {
        tuple(cell or None for cell in cells)
        for cells in (row, (row[0], row[1].removesuffix("\r")))
    }


@given_examples(
    40,
    400,
    st.lists(st.sampled_from(["a,b\n", "c,\n", ",d\n"]), max_size=6),
    st.lists(SOME.filter(lambda x: b"\n" not in x and b"\r" not in x), max_size=8),
    st.integers(0, 6),
)
def test_one_line_of_any_bytes_changes_no_other_among_lines_without_quotes(
    rows, pieces, place
):
    line = b"".join(pieces).removeprefix(b"\xef\xbb\xbf") + b"\n"
    plain = [row.encode() for row in rows]
    before = Counter(read_back(b"x,y\n" + b"".join(plain)))
    plain.insert(place, line)
    after = Counter(read_back(b"x,y\n" + b"".join(plain)))
    assert not before - after
    assert (after - before).total() <= 1


@pytest.mark.parametrize("packed", [False, True])
@given_examples(
    6, 60, st.sampled_from(["\n", "\r\n", "\r"]), st.lists(SOME, max_size=30)
)
@example("\r\n", [b",", b"\r", b'"'])
def test_the_engine_reads_the_same_rows(packed, end, pieces):
    data = b"x,y" + end.encode() + b"".join(pieces)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"t.csv{'.gz' if packed else ''}"
        path.write_bytes(gzip.compress(data) if packed else data)
        with open_source(path, threads=1) as source:
            found = source.execute(source.table).to_pylist()
    assert Counter((row["x"], row["y"]) for row in found) == Counter(rows_of(data))


@given_examples(
    4,
    60,
    st.lists(
        st.tuples(st.sampled_from(["\n", "\r\n", "\r"]), st.lists(SOME, max_size=12)),
        min_size=2,
        max_size=4,
    ),
)
@example([("\r\n", [b'a,"\n"\r\n']), ("\n", [b'b,"\r"\n']), ("\r", [b"c,\n\r"])])
@example([("\r\n", [b"a,b\r\n"]), ("\r\n", [b"c\r\n"])])
def test_no_file_decides_how_rows_of_another_end(files):
    rows = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for place, (end, pieces) in enumerate(files):
            data = b"x,y" + end.encode() + b"".join(pieces)
            (Path(folder) / f"{place}.csv").write_bytes(data)
            rows += Counter(rows_of(data))
        with open_source("*.csv", folder=folder, threads=1) as source:
            found = source.execute(source.table).to_pylist()
    assert Counter((row["x"], row["y"]) for row in found) == rows


@pytest.mark.parametrize(
    ("plain", "ending"),
    [
        (b'x,y\n1,"a\nb"\n,\n2,"c"""', b"\n"),
        (b'x,y\r\n1,"a,b"\r\n', b"\r\n"),
        (b"\xef\xbb\xbfx\n\n1\n", b"\n"),
        ("x,y\né,\x1f\n".encode(), b"\n"),
        (b'x,y\n1,"a\r"\n', None),
        (b"x,y\n1,2\r\n", None),
        (b"x,y\r1,2\r", None),
        (b"x,y\n1\n", None),
    ],
)
def test_a_file_that_is_plain_is_read_where_it_is(tmp_path, plain, ending):
    path = tmp_path / "t.csv"
    path.write_bytes(plain)
    assert line_ending(path) == ending
    with open_source(path) as source:
        engine = source.table.get_backend()
        [[spill]] = engine.raw_sql(
            "SELECT current_setting('temp_directory')"
        ).fetchall()
        assert {path.name for path in Path(spill).glob("*.csv")} == (
            set() if ending else {"rows-0.csv"}
        )


@pytest.mark.parametrize(
    "row",
    [
        b'1,"' + b"x" * 2_100_000 + b'"',
        b"1," + b"x\xff" * 1_500_000,
        b'1,"' + b'""\n' * 2_000_000 + b'"',
        b'1,"' + b"x\n" * 10,
        b'"1' + b'""' * 3_000_000,
    ],
    ids=["one", "bytes", "lines", "open", "open and long"],
)
def test_a_very_long_row_is_one_row_whose_cells_are_missing(tmp_path, row):
    path = tmp_path / "t.csv"
    path.write_bytes(b"x,y\n" + b"0,a\n" * 9 + row + b"\n" + b"2,b\n" * 9)
    with open_source(path) as source:
        found = source.execute(source.table).to_pylist()
    counts = Counter((line["x"], line["y"]) for line in found)
    # The lines after a cell that is not closed are rows like any others.
    lines = 9 if row.endswith(b"x\n") else 0
    assert counts == {("0", "a"): 9, ("2", "b"): 9, (None, None): 1 + lines}


@pytest.mark.parametrize(
    "first", [b"", b"\n", b'"x,y', b"x,\xff\n", b"x" * 2_000_000], ids=range(5)
)
def test_a_first_line_without_names_is_refused(tmp_path, first):
    (tmp_path / "t.csv").write_bytes(first)
    with pytest.raises(PlanError, match=r"the first line of t\.csv must name"):
        open_source(tmp_path / "t.csv")


def test_names_are_those_of_the_first_line(tmp_path):
    (tmp_path / "t.csv").write_bytes(
        b'\xef\xbb\xbf a ,"b ""c""",,"d\r\ne"\r\n1,2,3,4\n'
    )
    with open_source(tmp_path / "t.csv") as source:
        assert source.columns == ("a", 'b "c"', "column2", "d\r\ne")
        [row] = source.execute(source.table).to_pylist()
        assert list(row.values()) == ["1", "2", "3", "4"]


def test_a_row_at_the_limit_changes_no_other(tmp_path):
    for size in (LONGEST_ROW - 1, LONGEST_ROW, LONGEST_ROW + 1):
        for ending in (b"\n", b"\r\n"):
            path = tmp_path / "t.csv"
            row = b"1," + b"y" * (size - 2)
            path.write_bytes(ending.join([b"x,y", b"0,a", row, b"2,b", b""]))
            with open_source(path) as source:
                found = source.execute(source.table).to_pydict()
            read = size <= LONGEST_ROW
            assert Counter(found["x"]) == Counter(["0", "2", "1" if read else None])
            assert {len(cell or "") for cell in found["y"]} == {1, (size - 2) * read}


def dated(tmp_path, rows: list[str], types) -> list[int]:
    path = tmp_path / "days.csv"
    path.write_text("person,day\n" + "".join(rows))
    where = parse_expression("month(day) = 2")
    with open_source(str(path), types=types) as source:
        [found] = run_jobs(
            source, [Job("c", ("rows",), where=where)], bounding=Bounding("person", 1)
        )
    return found.measures["rows"].tolist()


def test_one_row_of_a_csv_file_does_not_change_how_others_are_read(tmp_path):
    rows = [f"{k},2026-02-{k % 28 + 1:02d}\n" for k in range(40)]
    types = {"day": "date"}
    before = dated(tmp_path, rows, types)
    assert before == [40]
    for row in ("99,02/13/2026\n", "99,never\n", "99,\n"):
        assert dated(tmp_path, [*rows, row], types) == before


def test_columns_of_a_csv_file_are_text_unless_a_type_is_stated(tmp_path):
    path = tmp_path / "n.csv"
    path.write_text("person,n\n1,7\n2,x\n")
    grid = Grid(("n",), ((7,),))
    job = Job("c", ("rows",), by=("n",), grid=grid)
    with (
        open_source(str(path)) as source,
        pytest.raises(PlanError, match=r"source\.types"),
    ):
        run_jobs(source, [job])
    with open_source(str(path), types={"n": "int"}) as source:
        [found] = run_jobs(source, [job])
    assert found.measures["rows"].tolist() == [1]
    with pytest.raises(PlanError, match=r"source\.types must name columns"):
        open_source(str(path), types={"m": "int"})


def test_lines_of_a_csv_file_are_no_comments(tmp_path):
    path = tmp_path / "people.csv"
    rows = [f"{k},1\n" for k in range(20)] + [f"#{k},1\n" for k in range(20)]
    for more, expected in (([], 40), (["anna,1\n"], 41)):
        path.write_text("person,v\n" + "".join(rows + more))
        with open_source(str(path)) as source:
            [answer] = run_jobs(
                source, [Job("c", ("rows",))], bounding=Bounding("person", 1)
            )
        assert answer.measures["rows"].tolist() == [expected]
