"""How many rooms a reader enters who follows one number through the house.

``python -m support.journeys`` in the folder of the tests prints, for each journey, how
many modules and functions of the package ran; imports are not counted.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import undertow
from support.release_documents import visits_mapping

ROOT = str(Path(undertow.__file__).parent) + "/"


@dataclass
class Rooms:
    """The modules and functions that ran."""

    modules: set[str] = field(default_factory=set)
    functions: set[tuple[str, str]] = field(default_factory=set)


@contextmanager
def watched() -> Iterator[Rooms]:
    """Note every function of the package that is called, in all threads."""
    rooms = Rooms()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(ROOT):
            if code.co_name != "<module>":
                place = code.co_filename[len(ROOT) :]
                rooms.modules.add(place)
                rooms.functions.add((place, code.co_qualname))

    before = sys.getprofile()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield rooms
    finally:
        sys.setprofile(before)
        threading.setprofile(None)


def release_of_one_count() -> None:
    """Release one count with three keys of a table in memory."""
    import pandas as pd

    import undertow.release as release
    from undertow.ledger import BudgetLedger

    table = pd.DataFrame({"person": [1, 1, 2], "zone": ["A", "B", "A"]})
    visits = release.from_table(table, visits_mapping(), title="visits")
    plan = visits.plan()
    promise = plan.promise
    with tempfile.TemporaryDirectory() as folder:
        with BudgetLedger.create(
            f"{folder}/visits.ledger",
            dataset="visits",
            domain=plan.domain,
            budgets={promise.granularity: promise.total},
        ) as ledger:
            visits.run(ledger=ledger)


def loss_of_a_plan() -> None:
    """Compose two releases at one granularity."""
    import undertow as ut

    first = ut.Release(
        "south", ut.Pure(1), unit=ut.Bounded(), view=ut.Select("S"), setting="common"
    )
    second = ut.Release(
        "north", ut.Pure(2), unit=ut.Bounded(), view=ut.Select("N"), setting="common"
    )
    ut.Plan(ut.Table(["N", "S"]), [first, second]).loss(ut.Bounded())


def leakage_of_a_chain() -> None:
    """Bound the leakage of a release on a chain of two states."""
    from support.command import invoke

    invoke(
        "leak",
        "markov",
        "--transition",
        "[[0.882,0.118],[0.305,0.695]]",
        "--epsilon",
        0.25,
        "--json",
    )


def advantage_of_a_report() -> None:
    """State the advantage against randomised response."""
    from support.command import invoke

    words = ("--mechanism", "grr", "--categories", 100, "--epsilon", 2.5, "--json")
    invoke("risk", "advantage", *words)


JOURNEYS: list[Callable[[], None]] = [
    release_of_one_count,
    loss_of_a_plan,
    leakage_of_a_chain,
    advantage_of_a_report,
]


def rooms_of(journey: Callable[[], None]) -> Rooms:
    """Return what runs on a journey, after everything has been imported once."""
    journey()
    with watched() as rooms:
        journey()
    return rooms


if __name__ == "__main__":
    for journey in JOURNEYS:
        rooms = rooms_of(journey)
        counts = f"{len(rooms.modules):4} modules {len(rooms.functions):5} functions"
        print(f"{counts}  {journey.__doc__}")
