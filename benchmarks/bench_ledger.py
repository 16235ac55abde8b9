"""Charges a second on a SQLite ledger, against bare commits to the same file."""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

import undertow as ut
from undertow.composition import release_to_document
from undertow.ledger import BudgetLedger
from undertow.ledger._database import Writer
from undertow.ledger.record import loss_to_document

ROUNDS, ROUND = 7, 150
LONG = 100_000
EPSILON = "1/1000000"


def run() -> dict[str, float]:
    """Return charges and bare commits a second, and what a long history costs."""
    with tempfile.TemporaryDirectory() as folder:
        short = _short(Path(folder) / "short")
        long = _long(Path(folder) / "long")
        hours = _hours(Path(folder) / "hours")
    return {
        **short,
        **long,
        "long_over_short_history": long["charges_per_s_after_100000"]
        / short["charges_per_s"],
        "hourly_charges_per_s": hours,
    }


def _create(path: Path, **budgets: ut.privacy.Loss) -> BudgetLedger:
    return BudgetLedger.create(
        path,
        dataset="steps",
        domain=ut.Stream(10**9, 8760),
        budgets={
            ut.parse_granularity(name.replace("_", "-").replace("-24", ":24")): loss
            for name, loss in (budgets or {"user": ut.Pure(1)}).items()
        },
    )


def _release(at: int = 0, unit: ut.Granularity | None = None) -> ut.Release:
    return ut.Release(
        "active by hour",
        ut.Pure(EPSILON),
        unit=unit or ut.User(add_remove=True),
        view=ut.Times([at]),
        setting="view",
    )


def _rate(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    for _ in range(ROUND):
        work()
    return ROUND / (time.perf_counter() - start)


def _short(path: Path) -> dict[str, float]:
    keys, rows, release = count(), count(), _release()
    with _create(path) as ledger, closing(sqlite3.connect(path)) as bare:
        bare.isolation_level = None
        bare.execute("PRAGMA synchronous = FULL")
        bare.execute("CREATE TABLE bare (number INTEGER PRIMARY KEY, body TEXT)")

        def commit() -> None:
            bare.execute("BEGIN IMMEDIATE")
            bare.execute("INSERT INTO bare VALUES (?, ?)", (next(rows), "x" * 600))
            bare.execute("COMMIT")

        def charge() -> None:
            ledger.charge([release], key=f"run {next(keys)}", label="hourly")

        pairs = [(_rate(charge), _rate(commit)) for _ in range(ROUNDS)]
        start = time.process_time()
        _rate(charge)
        cpu = (time.process_time() - start) / ROUND
    charges, commits = (statistics.median(rate) for rate in zip(*pairs, strict=True))
    return {
        "charges_per_s": charges,
        "bare_commits_per_s": commits,
        "charge_over_bare_commit": commits / charges,
        "processor_ms_per_charge": 1000 * cpu,
    }


def _long(path: Path) -> dict[str, float]:
    """Time a process that finds a long history: reading it once, then charging."""
    keys, release = count(), _release()
    with _create(path) as ledger:
        document = release_to_document(release)
        with ledger._place.writing() as link:
            writer = Writer(link)
            for at in range(1, LONG + 1):
                loss = ut.Pure(f"{2 * at}/1000000")
                content = {
                    "label": "",
                    "details": {},
                    "releases": [document],
                    "losses": {"user": loss_to_document(loss)},
                }
                writer.append("charge", f"old {at}", content)
    with BudgetLedger.open(path) as ledger:
        start = time.perf_counter()
        ledger.losses()
        read = time.perf_counter() - start
        rates = [
            _rate(lambda: ledger.charge([release], key=f"run {next(keys)}"))
            for _ in range(3)
        ]
        start = time.perf_counter()
        assert ledger.verify() == []
        verified = time.perf_counter() - start
    return {
        "read_100000_entries_s": read,
        "verify_100000_entries_s": verified,
        "charges_per_s_after_100000": statistics.median(rates),
    }


def _hours(path: Path) -> float:
    """Charge every hour anew, under an event and a day's budget."""
    hours = count()
    budgets = {"event": ut.Pure(1), "w_event_24": ut.Pure(1)}
    with _create(path, **budgets) as ledger:

        def charge() -> None:
            at = next(hours)
            release = _release(at, ut.Event(add_remove=True))
            ledger.charge([release], key=f"hour {at}")

        return statistics.median(_rate(charge) for _ in range(5))
