"""Runs of the command in forked processes that can be killed at a chosen point."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["Ended", "Nursery", "nursery"]

# The modules are loaded once; each run is a fork that calls the command's own main, or
# a script that a test gives.
# A run may end itself by SIGKILL at its n-th call of a function of the release or the
# ledger, or be killed from outside after some time.
_SCRIPT = r"""
import fcntl, inspect, json, os, resource, signal, sys, time, traceback
import duckdb, ibis, pyarrow, pydantic, sqlalchemy, alembic, rich.console
import alembic.script, alembic.runtime.migration, sqlalchemy.dialects.sqlite
import undertow.cli, undertow.ledger, undertow.release, undertow.report
import undertow.cli.app
import undertow.release.engine.pipeline, undertow.release.source._file
import pandas, ibis.backends.duckdb, ibis.backends.duckdb.converter
from sqlalchemy.dialects.sqlite import pysqlite

ibis.to_sql(ibis.table({"a": "int64"}).a.sum(), dialect="duckdb")

PARTS = ("/undertow/ledger/", "/undertow/release/")
calls, ours = 0, {}

def count(frame, event, argument):
    global calls
    if event != "call":
        return
    file = frame.f_code.co_filename
    if file not in ours:
        ours[file] = any(part in file for part in PARTS)
    calls += ours[file]
    if ours[file] and calls == stop:
        os.kill(os.getpid(), signal.SIGKILL)

def die(*words, **named):
    __import__("os").kill(__import__("os").getpid(), 9)

def plant(place):
    path, name = place.rsplit(".", 1)
    files = {getattr(m, "__file__", None) or "": m for m in sys.modules.values()}
    [function] = [
        vars(module)[name] for file, module in files.items()
        if file.endswith(path + ".py") and any(part in file for part in PARTS)
        and name in vars(module)
    ]
    inspect.unwrap(function).__code__ = die.__code__

def prepare(asked):
    global stop
    stop = asked["call"]
    os.chdir(asked["folder"])
    if asked["nobody"] and os.getuid() == 0:
        os.setgid(65534)
        os.setuid(65534)
    if asked["umask"] is not None:
        os.umask(asked["umask"])
    if asked["room"] is not None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (asked["room"],) * 2)
    if asked["at"]:
        plant(asked["at"])
    sys.argv = ["undertow", *asked["words"]]

def command(asked):
    prepare(asked)
    if asked["counting"] or stop:
        sys.setprofile(count)
    if asked["script"] is None:
        undertow.cli.main()
    else:
        exec(asked["script"], {"__name__": "__main__"})

def child(asked, pipes):
    status = 0
    for handle in (1, 2):
        os.dup2(pipes[handle][1], handle)
    sys.stdout, sys.stderr = (open(at, "w", closefd=False) for at in (1, 2))
    try:
        command(asked)
    except SystemExit as end:
        status = end.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    sys.setprofile(None)
    sys.stdout.flush()
    sys.stderr.flush()
    os.write(pipes[0][1], str(calls).encode())
    os._exit(status)

def begin(asked):
    # Pipes and not files, which the limit of room would cut; they hold all there is.
    pipes = [os.pipe() for _ in range(3)]
    for _, end in pipes:
        fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, 2**20)
    started, pid = time.perf_counter(), os.fork()
    if not pid:
        child(asked, pipes)
    return asked["after"], pipes, started, pid

def finish(after, pipes, started, pid):
    if after is not None:
        time.sleep(after)
        os.kill(pid, signal.SIGKILL)
    _, ended = os.waitpid(pid, 0)
    seconds, texts = time.perf_counter() - started, []
    for start, end in pipes:
        os.close(end)
        with os.fdopen(start, "rb") as said:
            texts.append(said.read().decode())
    return {"status": os.waitstatus_to_exitcode(ended), "calls": int(texts[0] or 0),
            "output": texts[1], "error": texts[2], "seconds": seconds}

for line in sys.stdin:
    begun = [begin(asked) for asked in json.loads(line)]
    print(json.dumps([finish(*each) for each in begun]), flush=True)
"""


_PLAIN: dict[str, Any] = {
    "script": None,
    "counting": False,
    "call": None,
    "at": None,
    "after": None,
    "room": None,
    "umask": None,
    "nobody": False,
}


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

    def run(self, *words: str, folder: Path, **options: Any) -> Ended:
        """Run the command in a folder.

        It is killed at its `call`-th call, on entering the function `at` such as
        ``/run._release``, or `after` so many seconds; `room` is the most bytes of a
        file that it may write, `umask` its mask, and `nobody` takes the rights of root
        away. Calls are counted where it is `counting`. A `script` is run in place of
        the command and finds the words in ``sys.argv[1:]``.
        """
        [ended] = self.run_at_once([words], folder=folder, **options)
        return ended

    def run_at_once(
        self, several: Iterable[Sequence[str]], *, folder: Path, **options: Any
    ) -> list[Ended]:
        """Run the command once with each of the words, all at the same time."""
        assert set(options) <= set(_PLAIN)
        asked = [
            {**_PLAIN, **options, "words": words, "folder": str(folder)}
            for words in several
        ]
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return [Ended(**each) for each in json.loads(self.process.stdout.readline())]


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
