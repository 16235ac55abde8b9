"""A run that is asked to stop leaves no rows behind, and a killed one not long."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from support.release_documents import write_visits
from undertow.ledger import BudgetLedger
from undertow.release import load
from undertow.release.run import _limit as leftovers
from undertow.release.run._limit import private_folder

# The command, with so little memory that DuckDB writes rows to the disk, on and on.
SCRIPT = """
import sys
from undertow.cli import main
from undertow.release.source import _file as source_files
source_files.Limits.of = classmethod(lambda cls, memory, threads: cls(60, 1))
sys.argv = ["undertow", "release", "run", "visits.toml"]
main()
"""
ENDLESS = """
create table rows as select range % 1000 as person, 'A' as zone from range(20_000);
create view visits as
    select a.person, a.zone from rows a, rows b order by hash(a.person, b.person)
"""


@pytest.fixture
def spilling(tmp_path):
    """A function that starts a run and waits until it has written rows to the disk."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    with duckdb.connect(str(tmp_path / "visits.duckdb")) as link:
        link.execute(ENDLESS)
    write_visits(tmp_path, source={"table": "visits.duckdb#visits"})
    started: list[subprocess.Popen[str]] = []

    def start() -> tuple[subprocess.Popen[str], Path]:
        process = subprocess.Popen(
            [sys.executable, "-c", SCRIPT],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        deadline = time.monotonic() + 90
        while not spilled(folder) and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            time.sleep(0.02)
        assert spilled(folder)
        return process, folder

    yield start
    for process in started:
        process.kill()
        process.communicate()


def spilled(folder: Path) -> list[Path]:
    return [*folder.glob("undertow-*/duckdb_temp*")]


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_run_that_is_asked_to_stop_removes_what_it_wrote(spilling, tmp_path, name):
    process, folder = spilling()
    [place] = folder.iterdir()
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    modes = {stat.S_IMODE(file.stat().st_mode) for file in place.iterdir()}
    assert modes == {0o600}
    process.send_signal(getattr(signal, name))
    time.sleep(0.3)
    process.send_signal(getattr(signal, name))  # a terminal that closes sends several
    output, error = process.communicate(timeout=60)
    assert process.returncode == 128 + getattr(signal, name)
    assert (output, error) == ("", f"stopped by {name}; it charged nothing.\n")
    assert [*folder.iterdir()] == []
    assert not (tmp_path / "visits.ledger").exists()


def test_what_a_killed_run_wrote_is_removed_by_the_next(spilling, monkeypatch):
    process, folder = spilling()
    process.kill()
    process.communicate()
    assert spilled(folder)
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    _, closing = private_folder()
    assert spilled(folder) == []
    assert len([*folder.iterdir()]) == 1
    closing()
    assert [*folder.iterdir()] == []


def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    write_visits(tmp_path)
    # As nohup starts it; the signal comes while the table is read.
    script = f"""
import os, signal
from undertow.release.run import protocol as run
signal.signal(signal.SIGHUP, signal.SIG_IGN)
real = run._read
def read(*given):
    os.kill(os.getpid(), signal.SIGHUP)
    return real(*given)
run._read = read
{SCRIPT}"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "release" / "manifest.json").exists()


@pytest.fixture
def place(tmp_path, monkeypatch):
    """An empty temporary folder of the system."""
    folder = tmp_path / "place"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def abandoned(place: Path, name: str = "undertow-abcdefgh") -> Path:
    """A folder as a killed run leaves it."""
    folder = place / name
    folder.mkdir(mode=0o700)
    (folder / "undertow.lock").touch(mode=0o600)
    (folder / "duckdb_temp_1_0_storage_DEFAULT-0.tmp").write_text("rows")
    return folder


def test_folders_of_living_runs_stay(place):
    folders = [private_folder() for _ in range(3)]
    assert all(folder.is_dir() for folder, _ in folders)
    for folder, closing in folders:
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        closing()
    assert [*place.iterdir()] == []


def test_folders_that_are_not_ours_stay(place, tmp_path, monkeypatch):
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o700)
    (precious / "undertow.lock").touch(mode=0o600)
    (precious / "diary").write_text("mine")
    (place / "undertow-linkedxx").symlink_to(precious)
    abandoned(place, "undertow-bench-abcdefgh")
    abandoned(place, "other-abcdefgh")
    (abandoned(place, "undertow-withouta") / "undertow.lock").unlink()
    open_to_all = abandoned(place, "undertow-opentoal")
    open_to_all.chmod(0o755)
    lock = abandoned(place, "undertow-linklock") / "undertow.lock"
    lock.unlink()
    lock.symlink_to(precious / "diary")
    pipe = abandoned(place, "undertow-pipelock") / "undertow.lock"
    pipe.unlink()
    os.mkfifo(pipe, 0o600)
    before = sorted(place.iterdir())
    private_folder()[1]()
    assert sorted(place.iterdir()) == before
    assert (precious / "diary").read_text() == "mine"
    monkeypatch.setattr(leftovers.os, "geteuid", lambda: 12345)
    folder = abandoned(place)
    private_folder()[1]()
    assert folder.exists()


def test_links_in_a_folder_that_was_left_are_removed_and_not_followed(place, tmp_path):
    (tmp_path / "diary").write_text("mine")
    folder = abandoned(place)
    (folder / "link").symlink_to(tmp_path / "diary")
    private_folder()[1]()
    assert [*place.iterdir()] == []
    assert (tmp_path / "diary").read_text() == "mine"


def test_parts_that_are_no_files_stay_and_stop_no_run(tmp_path):
    path, names = write_visits(tmp_path), ("folder", "pipe", "link")
    (tmp_path / "release").mkdir()
    left = [tmp_path / "release" / f".{n}.0123456789ab.part" for n in names]
    left[0].mkdir()
    os.mkfifo(left[1])
    left[2].symlink_to(path)
    assert not load(path).run().repeated
    assert all(os.path.lexists(part) for part in left)
    with BudgetLedger.open(tmp_path / "visits.ledger", read_only=True) as ledger:
        assert ledger.states()["done"] == 1
