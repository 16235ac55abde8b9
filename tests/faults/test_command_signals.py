"""A command that is asked to stop says so in one sentence, at whatever moment."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import duckdb
import pytest

from support.release_documents import write_visits

COMMAND = [sys.executable, "-m", "undertow"]
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ENDLESS = """
create view visits as
    with recursive e(n) as (select 1 union all select n from e)
    select n % 7 as person, 'A' as zone from e
"""


def answers(process: subprocess.Popen[str]) -> bool:
    """Whether the process answers SIGTERM by itself: Python alone does not."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    caught = re.search(r"SigCgt:\s*(\w+)", text)
    return caught is not None and bool(int(caught[1], 16) >> signal.SIGTERM - 1 & 1)


def stopped(words, folder, number, after) -> subprocess.CompletedProcess[str]:
    """Start a command and stop it so many seconds after it can answer at all."""
    env = {**os.environ, "TMPDIR": str(folder)}
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        while not answers(process):
            time.sleep(0.001)
        time.sleep(after)
        process.send_signal(number)
        output, error = process.communicate(timeout=60)
    finally:
        process.kill()
    return subprocess.CompletedProcess(words, process.returncode, output, error)


@pytest.fixture
def endless(tmp_path):
    with duckdb.connect(str(tmp_path / "visits.duckdb")) as link:
        link.execute(ENDLESS)
    write_visits(tmp_path, source={"table": "visits.duckdb#visits"})
    return tmp_path


def check(done, number, *, left):
    assert done.returncode == 128 + number, done
    begin = f"stopped by {signal.Signals(number).name}"
    early = " before it began; nothing was read or charged"
    rests = (early, "", " before it was done", left)
    assert done.stderr in {f"{begin}{rest}.\n" for rest in rests}


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(
    "part", [0, 1, *(pytest.param(k, marks=pytest.mark.slow) for k in range(2, 8))]
)
def test_a_release_that_is_stopped_says_so_at_any_moment(endless, number, part):
    after = part and random.Random(f"{number} {part}").uniform(0, 2)
    done = stopped(["release", "run", "visits.toml"], endless, number, after)
    check(done, number, left="; it charged nothing")
    assert sorted(p.name for p in endless.iterdir()) == [
        "visits.csv",
        "visits.duckdb",
        "visits.toml",
    ]


def test_an_engine_that_looks_for_no_signal_is_stopped_all_the_same(endless):
    # The endless view is read by then, in one step that does not come back.
    number = signal.SIGTERM
    done = stopped(["release", "run", "visits.toml"], endless, number, 8)
    assert done.stderr == "stopped by SIGTERM; it charged nothing.\n"
    assert done.returncode == 143
    assert not [*endless.glob("undertow-*")]


@pytest.mark.parametrize("number", SIGNALS)
def test_any_command_that_is_stopped_says_so_at_any_moment(tmp_path, number):
    after = random.Random(number).uniform(0, 2)
    done = stopped(["demo", "--output", "demo"], tmp_path, number, after)
    check(done, number, left=" before it was done")


# What is swallowed, as where an object ends, must not be lost.
DEAF = """
import importlib, signal, sys, time
module = importlib.import_module("undertow.cli.app")
class Deaf:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)
        time.sleep(0)
def schema():
    Deaf()
    time.sleep(60)
importlib.import_module("undertow.cli.schema").schema = schema
sys.argv = ["undertow", "schema"]
module.main()
"""


def test_a_signal_that_is_swallowed_stops_the_command_all_the_same():
    done = subprocess.run(
        [sys.executable, "-c", DEAF],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 143
    assert done.stderr == "stopped by SIGTERM before it was done.\n"
