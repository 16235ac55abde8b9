"""Shared set-up of the tests."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Releases and ledgers need their extra; `make oldest` runs without it.
if find_spec("ibis") is None:
    collect_ignore_glob = [
        "faults/*",
        "security/*",
        "unit/cli/test_demo*.py",
        "unit/cli/test_ledger*.py",
        "unit/cli/test_release*.py",
        "unit/ledger/*",
        "unit/plotting/test_release*.py",
        "unit/release/*",
        "unit/report/test_release*.py",
    ]

# Started by nohup, the tests would hand on that SIGHUP is ignored to what they stop.
if hasattr(signal, "SIGHUP"):
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

# Two cores shared with other workers: no deadline, and a run that can be repeated.
settings.register_profile(
    "undertow",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("undertow")


@pytest.fixture
def tmp_path(tmp_path: Path) -> Path:
    """A folder without neighbours: a release looks at the folders beside its own."""
    own = tmp_path / "own"
    own.mkdir()
    return own


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """A PostgreSQL server of this session's own; each module takes a database of it."""
    from support.postgres import postgres_server

    with postgres_server() as server:
        yield server


@pytest.fixture(scope="session")
def runs() -> Iterator[Any]:
    """A process that has loaded the command and forks runs of it."""
    from support.release_runs import nursery

    with nursery() as made:
        yield made
