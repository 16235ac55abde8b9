"""A real PostgreSQL on the loopback interface, from the binaries of the wheel."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psycopg

__all__ = ["PostgresServer", "postgres_server"]

_NOBODY = 65534
_INITIAL = "-U postgres -A trust --locale=C -E UTF8 --no-sync".split()
_QUICK = ["-h", "127.0.0.1", "-F"]


@dataclass(frozen=True)
class PostgresServer:
    """A running server.

    Parameters
    ----------
    port : int
        Its port on 127.0.0.1.
    process : subprocess.Popen
        Its first process.
    """

    port: int
    process: subprocess.Popen[bytes]

    def url(self, database: str = "postgres") -> str:
        return f"postgres://postgres@127.0.0.1:{self.port}/{database}"

    def connect(self, database: str = "postgres") -> psycopg.Connection[Any]:
        return psycopg.connect(self.url(database), autocommit=True)

    def create_database(self, name: str) -> str:
        """Create an empty database and return its URL."""
        with self.connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}"'.encode())
        return self.url(name)


def _binaries() -> Path:
    spec = find_spec("pgserver")
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent / "pginstall" / "bin"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _as_other() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return {}
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}


def _wait(server: PostgresServer, log: Path) -> None:
    for _ in range(300):
        assert server.process.poll() is None, log.read_text()
        try:
            server.connect().close()
        except psycopg.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise AssertionError(log.read_text())


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Start a server on a free port and stop it, by its id, at the end."""
    folder = Path(tempfile.mkdtemp(prefix="undertow-postgres-"))
    other, binaries, log = _as_other(), _binaries(), folder / "log"
    if other:
        os.chown(folder, _NOBODY, _NOBODY)
    data, port = folder / "data", _free_port()
    try:
        subprocess.run(
            [binaries / "initdb", "-D", data, *_INITIAL],
            check=True,
            capture_output=True,
            cwd=folder,
            **other,
        )
        with log.open("wb") as output:
            process = subprocess.Popen(
                [
                    binaries / "postgres",
                    "-D",
                    data,
                    "-k",
                    folder,
                    "-p",
                    str(port),
                    *_QUICK,
                ],
                stdout=output,
                stderr=output,
                cwd=folder,
                **other,
            )
        server = PostgresServer(port, process)
        try:
            _wait(server, log)
            yield server
        finally:
            process.send_signal(signal.SIGQUIT)  # at once: nothing of it is kept
            process.wait(timeout=30)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
