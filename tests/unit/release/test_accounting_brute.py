"""What a ledger adds up is what enumerating all neighbours gives, exactly."""

from __future__ import annotations

from functools import cache
from itertools import combinations, product
from random import Random

import pytest

import undertow as ut
from support.release_plans import WINDOWED, release_plan
from undertow.composition import Claim
from undertow.ledger import BudgetLedger, verify_ledger

USERS, TIMES = 2, 2
LEVELS = (
    "event",
    "event:add-remove",
    "user",
    "user:add-remove",
    "w-event:2",
    "w-event:2:single-user",
)
PARTS = [set(part) for n in (1, 2) for part in combinations(range(TIMES), n)]
NOTIONS = {"pure": ut.Pure, "zcdp": ut.ZCDP}


def is_neighbour(level, one, other):
    """Tell by definition; a cell holds nothing (0) or one of two contents."""
    cells = [
        (user, time)
        for user, time in product(range(USERS), range(TIMES))
        if one[user][time] != other[user][time]
    ]
    users = {user for user, _ in cells}
    pairs = [(one[user], other[user]) for user in users]
    emptied = all(not any(a) or not any(b) for a, b in pairs)
    apart = len({time for _, time in cells}) == len(cells)
    return {
        "event": len(cells) == 1,
        "event:add-remove": len(cells) == 1
        and any(side[u][t] == 0 for u, t in cells for side in (one, other)),
        "user": len(users) == 1,
        "user:add-remove": len(users) == 1 and emptied,
        "w-event:2": apart and bool(cells),
        "w-event:2:single-user": len(users) == 1,
    }[level]


def steps(one, other, part):
    """How far two tables are apart at some times, in steps of each unit."""
    found = dict.fromkeys(LEVELS[:4], 0)
    for a, b in zip(one, other, strict=True):
        a, b = [a[t] for t in part], [b[t] for t in part]
        for x, y in zip(a, b, strict=True):
            found["event"] += x != y
            found["event:add-remove"] += (x != y) * (2 if x and y else 1)
        found["user"] += a != b
        found["user:add-remove"] += (a != b) * (2 if any(a) and any(b) else 1)
    return tuple(found.items())


@cache
def moves(level):
    """Return, for every pair of neighbours, how far each part of the times moves."""
    tables = list(product(product(range(3), repeat=TIMES), repeat=USERS))
    found = {
        tuple(steps(one, other, part) for part in PARTS)
        for one, other in product(tables, repeat=2)
        if is_neighbour(level, one, other)
    }
    return [[dict(part) for part in move] for move in found]


def enumerated(history, level):
    """Return the largest sum over the neighbours of a level."""

    def cost(loss, distance):
        (value,) = loss.exact_parameters()
        return value * (distance if isinstance(loss, ut.Pure) else distance**2)

    return max(
        sum(
            min(
                cost(claim.loss, move[PARTS.index(part)][claim.unit.name])
                for claim in release.claims
            )
            for part, release in history
        )
        for move in moves(level)
    )


def some_release(random, notion):
    part = random.choice(PARTS)
    view = random.choice([ut.Times(part), ut.Window(min(part), len(part))])
    if len(part) == TIMES and random.random() < 0.5:
        view = ut.Identity()
    units = random.sample(LEVELS[:4], random.choice([1, 2]))
    claims = [
        Claim(
            NOTIONS[notion](f"{random.randint(1, 6)}/{random.randint(1, 7)}"),
            ut.parse_granularity(unit),
            random.choice(["common", "view"]),
        )
        for unit in units
    ]
    return part, ut.Release.with_claims("some", claims, view=view)


def seen(view):
    if isinstance(view, ut.Identity):
        return set(range(TIMES))
    return set(range(view.start, view.start + view.length))


def released(promise, *, measure, by_run):
    """Return what all runs of a release with a count before each release, and where."""
    check = {f"{measure}_at_least": 10**6, "share": "0.05", "tries": 3}
    source = {**WINDOWED, "users": USERS, "per": {"window": "1d"}}
    as_of = "2026-01-02" if by_run else None
    plan = release_plan(promise, source=source, check=check, as_of=as_of)
    assert plan.timeline.runs == (TIMES if by_run else 1)
    parts = [(seen(r.view), r) for r in plan.horizon().releases]
    assert len(parts) == plan.timeline.runs * (3 + len(plan.parts))
    return plan, parts


@pytest.mark.parametrize("measure", ["units", "rows"])
@pytest.mark.parametrize("by_run", [False, True])
@pytest.mark.parametrize("promise", [{"epsilon": "2"}, {"rho": "1/2"}])
@pytest.mark.parametrize("level", LEVELS)
def test_counts_before_releases_keep_the_promise_with_them(
    level, promise, by_run, measure
):
    promise = {**promise, "granularity": level}
    plan, parts = released(promise, measure=measure, by_run=by_run)
    (total,) = plan.promise.total.exact_parameters()
    (stated,) = plan.promise.cost(plan.horizon()).loss.exact_parameters()
    counts = [(part, release) for part, release in parts if release.name == "check"]
    assert enumerated(parts, level) == stated <= total
    assert enumerated(counts, level) <= total * 3 / 20
    assert enumerated(parts, level) > total * 19 / 20


@pytest.mark.parametrize("notion", NOTIONS)
@pytest.mark.parametrize("seed", range(4))
def test_a_ledger_charges_what_the_worst_neighbours_lose(tmp_path, notion, seed):
    random, history = Random(seed), []
    budgets = {ut.parse_granularity(level): NOTIONS[notion](10**6) for level in LEVELS}
    terms = {"dataset": "d", "domain": ut.Stream(USERS, TIMES), "budgets": budgets}
    path = tmp_path / "a.ledger"
    with BudgetLedger.create(path, **terms) as one, BudgetLedger.open(path) as other:
        for at in range(8):
            asked = [some_release(random, notion) for _ in range(random.choice([1, 2]))]
            asked = random.choice([asked, history[:1] or asked])
            history += asked
            ledger = random.choice([one, other])
            paid = ledger.charge([release for _, release in asked], key=str(at))
            for level in LEVELS:
                (found,) = paid.losses[level].exact_parameters()
                assert found == enumerated(history, level), level
        assert one.losses() == other.losses()
    assert verify_ledger(path) == []
