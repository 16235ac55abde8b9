"""Compose 100 000 stream releases, here and one by one with two peers.

Run ``python benchmarks/bench_compose.py``; one line of JSON comes back. The releases
are event-level counts of single hours with different budgets. Here they are composed at
user level and at w-event level, for 24 and for 1000 times, from integer codes, from
Python lists of claims, and from a plan built before, whole report included. The peers
add up the same budgets without views or granularities, which is the user-level figure:
dp_accounting composes one event after the other, in its Renyi accountant (zCDP events,
its cheapest) and in its privacy-loss accountant (Laplace events, the noise at hand);
OpenDP builds one composed measurement. A peer that needs more than its limit is
measured on fewer releases and scaled in proportion.
"""

from __future__ import annotations

import json
import resource
import time
import tracemalloc
from collections.abc import Callable
from fractions import Fraction
from functools import partial
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
from undertow.spaces.granularity import Event, User, WEvent
from undertow.spaces.view import At

RELEASES, SEED, PEER_LIMIT_S, REPEATS = 100_000, 20260, 10.0, 5
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


def columns(times: int) -> list[Column]:
    return [Column(At(time), Event(), "view") for time in range(times)]


def coded(times: int, target: Granularity, drawn: Codes) -> Loss:
    return compose_coded(
        Stream(1_000_000, times),
        target,
        columns=columns(times),
        losses=[Pure(budget) for budget in BUDGETS],
        column_codes=drawn[0],
        loss_codes=drawn[1],
    ).loss


def median_seconds(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        taken.append(time.perf_counter() - start)
    return sorted(taken)[REPEATS // 2]


def from_lists(times: int, target: Granularity, drawn: Codes) -> float:
    """Return the seconds for claims given one by one as Python objects."""
    seen, losses = columns(times), [Pure(budget) for budget in BUDGETS]
    listed = [seen[at] for at in drawn[0].tolist()]
    budgets = [losses[at] for at in drawn[1].tolist()]
    domain = Stream(1_000_000, times)
    return median_seconds(
        lambda: compose_columns(domain, target, columns=listed, losses=budgets)
    )


def from_plan(times: int, target: Granularity, drawn: Codes) -> float:
    """Return the seconds for a plan whose releases were added one by one."""
    views, losses = [At(t) for t in range(times)], [Pure(b) for b in BUDGETS]
    plan, unit = Plan(Stream(1_000_000, times)), Event()
    for at, (view, loss) in enumerate(zip(*(d.tolist() for d in drawn), strict=True)):
        plan.add(
            Release(f"r{at}", losses[loss], unit=unit, view=views[view], setting="view")
        )
    return median_seconds(lambda: plan.loss(target))


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
    start, done = time.perf_counter(), 0
    for event in events:
        accountant.compose(event)
        done += 1
        if time.perf_counter() - start > PEER_LIMIT_S:
            break
    return _scaled(time.perf_counter() - start, done, len(events))


def opendp_seconds(budgets: list[float]) -> dict[str, Any]:
    """Build one composition of Laplace measurements and ask for its loss."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T=int), dp.absolute_distance(T=int)
    known = {b: dp.m.make_laplace(*space, scale=1 / b) for b in set(budgets)}
    done, taken = 1_000, 0.0
    while True:
        start = time.perf_counter()
        dp.c.make_composition([known[b] for b in budgets[:done]]).map(1)
        taken = time.perf_counter() - start
        if done == len(budgets) or taken * 10 > PEER_LIMIT_S:
            return _scaled(taken, done, len(budgets))
        done = min(10 * done, len(budgets))


def _scaled(seconds: float, done: int, wanted: int) -> dict[str, Any]:
    return {"seconds": seconds * wanted / done, "measured": done}


def peak_megabytes(times: int, target: Granularity, drawn: Codes) -> float:
    tracemalloc.start()
    coded(times, target, drawn)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def run() -> dict[str, Any]:
    """Measure both sides in one run, then growth and memory on this side."""
    # This side first: the peers leave many objects behind, which slows any allocation.
    ours: dict[str, float] = {}
    for times in (24, 1000):
        here = codes(RELEASES, times)
        for name, target in TARGETS:
            call = partial(coded, times, target, here)
            ours[f"{name}_{times}_times"] = median_seconds(call)
    growth = {
        number: median_seconds(partial(coded, 24, WEvent(3), codes(number, 24)))
        for number in (10_000, 100_000, 1_000_000)
    }
    lists = from_lists(24, WEvent(3), codes(RELEASES, 24))
    plan = from_plan(24, WEvent(3), codes(RELEASES, 24))
    drawn = codes(RELEASES, 1000)
    budgets = [float(BUDGETS[at]) for at in drawn[1].tolist()]
    peers = {
        "dp_accounting_rdp": rdp_seconds(budgets),
        "dp_accounting_pld": pld_seconds(budgets),
        "opendp": opendp_seconds(budgets),
    }
    slowest = {n: max(v for k, v in ours.items() if f"_{n}_" in k) for n in (24, 1000)}
    return {
        "releases": RELEASES,
        "seconds": ours,
        "seconds_from_lists": lists,
        "seconds_from_plan": plan,
        "peers": peers,
        "ratio_24_times": _ratios(peers, slowest[24]),
        "ratio_1000_times": _ratios(peers, slowest[1000]),
        "ratio_from_lists": _ratios(peers, lists),
        "ratio_from_plan": _ratios(peers, plan),
        "growth_seconds": growth,
        "growth_10_4_to_10_6": growth[1_000_000] / growth[10_000],
        "peak_mb_10_6": peak_megabytes(1000, WEvent(500), codes(1_000_000, 1000)),
        "process_peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
        "user_loss": str(coded(24, User(), codes(RELEASES, 24))),
        "budgets_added": str(sum(Fraction(BUDGETS[at]) for at in drawn[1].tolist())),
    }


def _ratios(peers: dict[str, dict[str, Any]], seconds: float) -> dict[str, float]:
    return {name: peer["seconds"] / seconds for name, peer in peers.items()}


if __name__ == "__main__":
    print(json.dumps(run()))
