"""Hostile files are refused in one sentence, and ours are for their owner alone."""

from __future__ import annotations

import csv
import gzip
import stat

import pytest

from support.release_runs import nursery
from undertow.errors import UndertowError
from undertow.release import load
from undertow.release.source_files import Limits, open_file

RELEASE = """
[source]
table = "visits.csv"
unit = "person"
[promise]
granularity = "user"
epsilon = "1"
delta = "1e-6"
[bounds]
rows_per_unit = 2
[[queries]]
name = "=by zone"
select = "count"
by = ["zone"]
keys = "discover"
"""


@pytest.fixture(scope="module")
def runs():
    with nursery() as made:
        yield made


@pytest.fixture
def folder(tmp_path):
    rows = [f"p{k},A" for k in range(2000)]
    (tmp_path / "visits.csv").write_text("\n".join(["person,zone", *rows]))
    (tmp_path / "visits.toml").write_text(RELEASE)
    return tmp_path


def modes(folder):
    return {
        str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in folder.rglob("*")
        if path.name not in ("visits.csv", "visits.toml")
    }


def test_all_files_are_for_their_owner_alone_whatever_the_umask(folder, runs):
    words = ("release", "run", "visits.toml", "--report", "report.html")
    killed = runs.run(*words, folder=folder, umask=0, at="/outputs._take_names")
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
    rows = [f'p{k},"{formula}"' for k in range(2000)]
    (folder / "visits.csv").write_text("\n".join(["person,zone", *rows]))
    load(folder / "visits.toml").run()
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
def test_a_wrong_encoding_is_one_sentence(folder, runs, name):
    body = b"".join(b"p%d,%s\n" % (k, ZONES[name]) for k in range(300))
    (folder / "visits.csv").write_bytes(b"person,zone\n" + body)
    done = runs.run("release", "run", "visits.toml", folder=folder)
    assert done.status == 2, done.output
    assert done.error.count("\n") == 1
    assert "Traceback" not in done.error


@pytest.mark.parametrize("name", ["utf-16", "utf-32"])
def test_a_whole_file_in_another_encoding_is_one_sentence(folder, runs, name):
    text = (folder / "visits.csv").read_text()
    (folder / "visits.csv").write_bytes(text.encode(name))
    done = runs.run("release", "run", "visits.toml", folder=folder)
    assert done.status == 2, done.output
    assert done.error.count("\n") == 1


def test_a_cell_of_ten_megabytes_is_refused_or_one_cell(folder, runs):
    with (folder / "visits.csv").open("a") as file:
        file.write("\nlong," + "x" * 10_000_000)
    done = runs.run("release", "run", "visits.toml", folder=folder)
    assert done.status in (0, 2)
    assert "xxxx" not in done.output + done.error
    assert done.error.count("\n") == (done.status == 2)


def test_ragged_rows_are_one_sentence(folder, runs):
    with (folder / "visits.csv").open("a") as file:
        file.write('\n"never closed,B\np9,A,B,C,D\n')
    done = runs.run("release", "run", "visits.toml", folder=folder)
    assert done.status in (0, 2)
    assert done.error.count("\n") == (done.status == 2)


def test_a_file_that_unpacks_to_far_more_is_refused(tmp_path):
    bomb = tmp_path / "visits.csv.gz"
    with gzip.open(bomb, "wb") as file:
        file.write(b"person,zone\n")
        for _ in range(50):
            file.write(b"1,A\n" * 250_000)
    assert bomb.stat().st_size < 500_000
    with pytest.raises(UndertowError, match="must unpack to at most 20 MB, got more"):
        open_file(
            bomb.name,
            None,
            root=tmp_path,
            form=None,
            limits=Limits(memory_mb=500, unpacked_mb=20),
        )


@pytest.mark.parametrize("content", [b"", b"\x1f\x8b", b"\x1f\x8b\x08" + b"\0" * 40])
def test_a_packed_file_that_is_none_is_one_sentence(tmp_path, content):
    (tmp_path / "visits.csv.gz").write_bytes(content)
    with pytest.raises(UndertowError) as caught:
        open_file("visits.csv.gz", None, root=tmp_path, form=None, limits=Limits(500))
    assert "\n" not in str(caught.value)


def test_a_name_with_dots_and_slashes_stays_in_the_folder(folder):
    text = RELEASE.replace("=by zone", "../../../etc/passwd")
    (folder / "visits.toml").write_text(text)
    done = load(folder / "visits.toml").run()
    assert sorted(done.files) == ["01-etc-passwd.csv", "manifest.json"]
    assert done.folder == folder / "release"
