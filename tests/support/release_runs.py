"""Runs of the command in forked processes that can be killed at a chosen point."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Ended", "Nursery", "nursery"]

# The modules are loaded once; each run is a fork that calls the command's own main.
# A run may end itself by SIGKILL at its n-th call of a function of the release or the
# ledger, or be killed from outside after some time.
_SCRIPT = r"""
import fcntl, json, os, resource, signal, sys, time
import duckdb, ibis, pyarrow, pydantic, sqlalchemy, alembic, rich.console
import alembic.script, alembic.runtime.migration, sqlalchemy.dialects.sqlite
import undertow.cli, undertow.ledger, undertow.release, undertow.report
import undertow.cli.app, undertow.release.engine, undertow.release.source_files
import pandas, ibis.backends.duckdb, ibis.backends.duckdb.converter
from sqlalchemy.dialects.sqlite import pysqlite

ibis.to_sql(ibis.table({"a": "int64"}).a.sum(), dialect="duckdb")

PARTS = ("/undertow/ledger/", "/undertow/release/")
calls = 0

def count(frame, event, argument):
    global calls
    if event == "call" and any(p in frame.f_code.co_filename for p in PARTS):
        calls += 1
        name = frame.f_code.co_filename[:-3] + "." + frame.f_code.co_name
        if calls == stop or name.endswith(asked["at"] or "\\0"):
            os.kill(os.getpid(), signal.SIGKILL)

def child(asked):
    global stop
    os.chdir(asked["folder"])
    for handle in (1, 2):
        os.dup2(pipes[handle][1], handle)
    sys.stdout, sys.stderr = (open(at, "w", closefd=False) for at in (1, 2))
    if asked["nobody"] and os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    if asked["umask"] is not None:
        os.umask(asked["umask"])
    if asked["room"] is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["room"],) * 2)
    sys.argv = ["undertow", *asked["words"]]
    stop, status = asked["call"], 0
    if asked["counting"] or stop or asked["at"]:
        sys.setprofile(count)
    try:
        undertow.cli.main()
    except SystemExit as end:
        status = end.code or 0
    sys.setprofile(None)
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(pipes[0][1], str(calls).encode())
    os._exit(status)

for line in sys.stdin:
    asked = json.loads(line)
    # Pipes and not files, which the limit of room would cut; they hold all there is.
    pipes = [os.pipe() for _ in range(3)]
    for _, end in pipes:
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 2**20)
    started, pid = time.perf_counter(), os.fork()
    if not pid:
        child(asked)
    if asked["after"] is not None:
        time.sleep(asked["after"])
        os.kill(pid, signal.SIGKILL)
    _, ended = os.waitpid(pid, 0)
    texts = []
    for start, end in pipes:
        os.close(end)
        with os.fdopen(start, "rb") as said:
            texts.append(said.read().decode())
    found = {"status": os.waitstatus_to_exitcode(ended), "calls": int(texts[0] or 0),
             "output": texts[1], "error": texts[2],
             "seconds": time.perf_counter() - started}
    print(json.dumps(found), flush=True)
"""


@dataclass(frozen=True)
class Ended:
    """How a run ended: exit status, -9 if killed; its words; how long it was."""

    status: int
    output: str
    error: str
    calls: int
    seconds: float


@dataclass(frozen=True)
class Nursery:
    """A process that forks runs.

    Parameters
    ----------
    process : subprocess.Popen
        Reads orders and answers how runs ended.
    """

    process: subprocess.Popen[str]

    def run(
        self,
        *words: str,
        folder: Path,
        counting: bool = False,
        call: int | None = None,
        at: str | None = None,
        after: float | None = None,
        room: int | None = None,
        umask: int | None = None,
        nobody: bool = False,
    ) -> Ended:
        """Run the command in a folder.

        It is killed at its `call`-th call, on entering the function `at` such as
        ``/run._release``, or `after` so many seconds; `room` is the most bytes of a
        file that it may write, and `nobody` takes the rights of root away. Calls are
        counted where asked for.
        """
        asked: dict[str, Any] = {
            "words": words,
            "folder": str(folder),
            "counting": counting,
            "call": call,
            "at": at,
            "after": after,
            "room": room,
            "umask": umask,
            "nobody": nobody,
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        return Ended(**found)


@contextmanager
def nursery() -> Iterator[Nursery]:
    """Start the process that forks runs, and end it."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield Nursery(process)
    finally:
        process.communicate()
