"""Compose 100 000 stream releases, here and one by one with two peers.

Run ``python benchmarks/bench_compose.py``; one line of JSON comes back. The releases
are event-level counts of single hours with different budgets. Here they are composed at
user level and at w-event level, for 24 and for 1000 times, from integer codes, from
Python lists of claims, and from a plan built before, whole report included. The peers
add up the same budgets without views or granularities, which is the user-level figure:
dp_accounting composes one event after the other, in its Renyi accountant (zCDP events,
its cheapest) and in its privacy-loss accountant (Laplace events, the noise at hand);
OpenDP builds one composed measurement. On both sides views, losses, events and
measurements exist before the clock starts, and the clock counts the processor time of
this process, so that neighbours on the machine do not. Here the median of fifteen runs
counts, of the slowest granularity; of a peer the fastest of three runs. A
peer that needs more than its limit is measured on fewer releases and scaled in
proportion.
"""

from __future__ import annotations

import json
import resource
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from time import process_time as clock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow.composition.engine import compose_coded, compose_columns
from undertow.composition.plan import Plan
from undertow.composition.release import Release
from undertow.privacy.loss import Loss, Pure
from undertow.spaces.base import Granularity
from undertow.spaces.change import Column
from undertow.spaces.domain import Stream
from undertow.spaces.unit import Event, User, WEvent
from undertow.spaces.view import At

RELEASES, SEED, PEER_LIMIT_S, REPEATS = 100_000, 20260, 10.0, 15
PEER_REPEATS = 3
TIMES = (24, 1000)
BUDGETS = tuple(f"0.{k:03d}" for k in range(1, 100))
TARGETS: tuple[tuple[str, Granularity], ...] = (
    ("user", User()),
    ("w_event_3", WEvent(3)),
    ("w_event_500", WEvent(500)),
)
Codes = tuple[NDArray[np.int64], NDArray[np.int64]]


def codes(releases: int, times: int) -> Codes:
    rng = np.random.default_rng(SEED)
    return rng.integers(0, times, releases), rng.integers(0, len(BUDGETS), releases)


class Inputs:
    """What exists before the clock starts: the stream, its claims, and the codes."""

    def __init__(self, times: int, releases: int = RELEASES) -> None:
        self.domain = Stream(1_000_000, times)
        self.columns = [Column(At(time), Event(), "view") for time in range(times)]
        self.losses = [Pure(budget) for budget in BUDGETS]
        self.column_codes, self.loss_codes = codes(releases, times)

    def claims(self) -> tuple[list[Column], list[Loss]]:
        """Return the claims one by one, as Python objects."""
        listed = [self.columns[at] for at in self.column_codes.tolist()]
        return listed, [self.losses[at] for at in self.loss_codes.tolist()]

    def plan(self) -> Plan:
        """Return a plan whose releases were added one by one."""
        plan = Plan(self.domain)
        for at, (column, loss) in enumerate(zip(*self.claims(), strict=True)):
            release = Release(
                f"r{at}", loss, unit=column.unit, view=column.view, setting="view"
            )
            plan.add(release)
        return plan


def coded(inputs: Inputs, target: Granularity) -> Loss:
    return compose_coded(
        inputs.domain,
        target,
        columns=inputs.columns,
        losses=inputs.losses,
        column_codes=inputs.column_codes,
        loss_codes=inputs.loss_codes,
    ).loss


def median_seconds(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(REPEATS):
        start = clock()
        call()
        taken.append(clock() - start)
    return sorted(taken)[REPEATS // 2]


def from_codes(times: int) -> dict[str, float]:
    inputs = Inputs(times)
    return {
        f"{name}_{times}_times": median_seconds(partial(coded, inputs, target))
        for name, target in TARGETS
    }


def from_lists(times: int) -> dict[str, float]:
    inputs = Inputs(times)
    columns, losses = inputs.claims()
    call = partial(compose_columns, columns=columns, losses=losses)
    return {
        f"{name}_{times}_times": median_seconds(partial(call, inputs.domain, target))
        for name, target in TARGETS
    }


def from_plan(times: int) -> dict[str, float]:
    plan = Inputs(times).plan()
    return {
        f"{name}_{times}_times": median_seconds(partial(plan.loss, target))
        for name, target in TARGETS
    }


def building_seconds(times: int) -> float:
    start = clock()
    Inputs(times).plan()
    return clock() - start


def rdp_seconds(budgets: list[float]) -> dict[str, Any]:
    from dp_accounting import dp_event
    from dp_accounting.rdp import RdpAccountant

    events = [dp_event.ZCDpEvent(budget) for budget in budgets]
    return _one_by_one(RdpAccountant(), events)


def pld_seconds(budgets: list[float]) -> dict[str, Any]:
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant

    events = [dp_event.LaplaceDpEvent(1 / budget) for budget in budgets]
    return _one_by_one(PLDAccountant(), events)


def _one_by_one(accountant: Any, events: list[Any]) -> dict[str, Any]:
    start, done = clock(), 0
    for event in events:
        accountant.compose(event)
        done += 1
        if clock() - start > PEER_LIMIT_S:
            break
    return _scaled(clock() - start, done, len(events))


def opendp_seconds(budgets: list[float]) -> dict[str, Any]:
    """Build one composition of Laplace measurements and ask for its loss."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    known = {b: dp.m.make_laplace(*space, scale=1 / b) for b in set(budgets)}
    done, taken = 1_000, 0.0
    while True:
        start = clock()
        dp.c.make_composition([known[b] for b in budgets[:done]]).map(1)
        taken = clock() - start
        if done == len(budgets) or taken * 10 > PEER_LIMIT_S:
            return _scaled(taken, done, len(budgets))
        done = min(10 * done, len(budgets))


def _scaled(seconds: float, done: int, wanted: int) -> dict[str, Any]:
    return {"seconds": seconds * wanted / done, "measured": done}


def peak_megabytes(times: int, target: Granularity, releases: int) -> float:
    inputs = Inputs(times, releases)
    tracemalloc.start()
    coded(inputs, target)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def peer_seconds(budgets: list[float]) -> dict[str, dict[str, Any]]:
    """Return the fastest of several runs; the slowest peer runs once."""
    peers = {"dp_accounting_pld": pld_seconds(budgets)}
    for name, measure in (
        ("dp_accounting_rdp", rdp_seconds),
        ("opendp", opendp_seconds),
    ):
        runs = [measure(budgets) for _ in range(PEER_REPEATS)]
        peers[name] = min(runs, key=lambda run: run["seconds"])
    return peers


def growth_seconds() -> dict[int, float]:
    return {
        number: median_seconds(partial(coded, Inputs(24, number), WEvent(3)))
        for number in (10_000, 100_000, 1_000_000)
    }


def run() -> dict[str, Any]:
    """Measure both sides in one run, then growth and memory on this side."""
    # This side first: the peers leave many objects behind, which slows any allocation.
    ours = {
        "codes": from_codes(24) | from_codes(1000),
        "lists": from_lists(24) | from_lists(1000),
        "plan": from_plan(24) | from_plan(1000),
    }
    growth, building = growth_seconds(), building_seconds(1000)
    drawn = codes(RELEASES, 1000)[1].tolist()
    peers = peer_seconds([float(BUDGETS[at]) for at in drawn])
    ratios = {
        f"ratio_from_{way}_{times}_times": _ratios(
            peers, max(s for name, s in taken.items() if f"_{times}_" in name)
        )
        for way, taken in ours.items()
        for times in TIMES
    }
    return {
        "releases": RELEASES,
        "seconds": ours,
        "seconds_to_build_plan": building,
        "peers": peers,
        **ratios,
        "growth_seconds": growth,
        "growth_10_4_to_10_6": growth[1_000_000] / growth[10_000],
        "peak_mb_10_6": peak_megabytes(1000, WEvent(500), 1_000_000),
        "process_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "user_loss": str(coded(Inputs(1000), User())),
        "budgets_added": str(sum(Fraction(BUDGETS[at]) for at in drawn)),
    }


def _ratios(peers: dict[str, dict[str, Any]], seconds: float) -> dict[str, float]:
    return {name: peer["seconds"] / seconds for name, peer in peers.items()}


if __name__ == "__main__":
    print(json.dumps(run()))
