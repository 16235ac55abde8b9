"""One ledger for releases of whole users and of windows: whose times, at what price."""

from __future__ import annotations

import tempfile
from fractions import Fraction
from functools import cache
from itertools import combinations, product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import undertow as ut
from undertow.composition import Claim
from undertow.errors import MismatchError
from undertow.ledger import BudgetLedger
from undertow.spaces import parse_granularity

WINDOWS = 3
STREAM = ut.Stream(2, WINDOWS)
LEVELS = (
    "user",
    "user:add-remove",
    "event",
    "event:add-remove",
    "w-event:1",
    "w-event:2",
    "w-event:3",
    "w-event:2:single-user",
    "w-event:4:single-user",
    "l-trajectory:2:periodic",
)
PERSON = {"unit": "person"}
HOURS = {**PERSON, "time": "ts", "window": 3_600_000_000, "start": 0}


def made(path, *, domain=STREAM, levels=LEVELS):
    budgets = {parse_granularity(name): ut.Pure(10**6) for name in levels}
    return BudgetLedger.create(path, dataset="steps", domain=domain, budgets=budgets)


def claimed(loss, swap, *, unit, view):
    claims = [Claim(ut.Pure(loss), unit(add_remove=True), "common")]
    if swap is not None:
        claims.append(Claim(ut.Pure(swap), unit(), "common"))
    return ut.Release.with_claims("r", claims, view=view)


def people(loss=1, swap=None):
    return claimed(loss, swap, unit=ut.User, view=ut.Identity())


def windows(loss=1, swap=None, *, first=0, count=WINDOWS):
    return claimed(loss, swap, unit=ut.Event, view=ut.Window(first, count))


# ------------------------------------------------ the price, by looking at all tables
# Rows of a user: one cell before the windows, three windows, one cell after them. A
# cell is empty, or holds one of two things.
CELLS = (None, "a", "b")
INSIDE = range(1, 1 + WINDOWS)


def told(ours, theirs):
    """What a change of one user's rows is: steps and swaps of it, and of its cells."""
    times = tuple(
        t for t, (x, y) in enumerate(zip(ours, theirs, strict=True)) if x != y
    )
    absent = [all(cell is None for cell in row) for row in (ours, theirs)]
    steps = 0 if not times else 2 - (absent[0] or absent[1])
    cells = tuple(
        0 if ours[t] == theirs[t] else 2 - (ours[t] is None or theirs[t] is None)
        for t in INSIDE
    )
    return times, steps, cells


@cache
def changes():
    rows = list(product(CELLS, repeat=WINDOWS + 2))
    return {told(ours, theirs) for ours in rows for theirs in rows if ours != theirs}


def within(times, w):
    return not times or max(times) - min(times) < w


@cache
def neighbours(name):
    """What the neighbours of a level are: a change for each of the users it touches."""
    level = parse_granularity(name)
    if name == "user":
        return [(one,) for one in changes()]
    if name == "user:add-remove":
        return [(one,) for one in changes() if one[1] == 1]
    if isinstance(level, ut.Event):
        single = [one for one in changes() if len(one[0]) == 1]
        if level.add_remove:
            single = [one for one in single if max(one[2]) <= 1]
        return [(one,) for one in single]
    length = level.length if isinstance(level, ut.LTrajectory) else level.w
    near = [one for one in changes() if within(one[0], length)]
    found = [(one,) for one in near]
    if isinstance(level, ut.WEvent) and not level.single_user:
        found += [
            (one, other)
            for one, other in combinations(near, 2)
            if not {*one[0]} & {*other[0]} and within((*one[0], *other[0]), length)
        ]
    return found


def price(charges, users):
    """What some charges lose about a pair of tables that differ for some users."""
    total = Fraction(0)
    for loss, swap, seen in charges:
        if seen is None:
            steps, swaps = sum(one[1] for one in users), len(users)
        else:
            cells = [one[2][t] for one in users for t in seen]
            steps, swaps = sum(cells), sum(cell > 0 for cell in cells)
        ways = [loss * steps] + ([] if swap is None else [swap * swaps])
        total += min(ways)
    return total


fractions = st.fractions(Fraction(1, 20), 2, max_denominator=20)
swaps = st.none() | fractions
charges = st.one_of(
    st.tuples(fractions, swaps, st.none()),
    st.tuples(
        fractions,
        swaps,
        st.integers(0, WINDOWS - 1).flatmap(
            lambda first: st.integers(first + 1, WINDOWS).map(
                lambda stop: range(first, stop)
            )
        ),
    ),
)


def release_of(charge):
    loss, swap, seen = charge
    if seen is None:
        return people(loss, swap), PERSON
    return windows(loss, swap, first=seen.start, count=len(seen)), HOURS


def charged(several):
    """Return the losses of a ledger that several charges went to, each by itself."""
    with (
        tempfile.TemporaryDirectory() as folder,
        made(Path(folder) / "steps.ledger") as ledger,
    ):
        for at, charge in enumerate(several):
            release, frame = release_of(charge)
            ledger.charge([release], key=str(at), frame=frame)
        assert ledger.verify() == []
        return ledger.losses()


def number(loss):
    return Fraction(loss.exact_parameters()[0])


@settings(max_examples=12)
@given(st.lists(charges, min_size=1, max_size=4))
@pytest.mark.slow
def test_every_level_costs_what_the_worst_pair_of_tables_does(several):
    # The tables have rows outside of the windows; the ledger's domain has not.
    losses = charged(several)
    for name in LEVELS:
        worst = max(price(several, users) for users in neighbours(name))
        assert number(losses[name]) == worst, name


@settings(max_examples=10)
@given(st.lists(charges, min_size=1, max_size=4), st.randoms())
@pytest.mark.slow
def test_the_order_of_charges_is_nothing_to_the_losses(several, order):
    mixed = list(several)
    order.shuffle(mixed)
    assert charged(several) == charged(mixed)


@settings(max_examples=10)
@given(
    st.lists(fractions, min_size=1, max_size=3),
    st.lists(fractions, min_size=1, max_size=3),
)
def test_users_pay_for_everything_and_events_for_a_window_and_their_user(whole, parts):
    several = [(loss, None, None) for loss in whole]
    several += [(loss, None, range(WINDOWS)) for loss in parts]
    losses = {name: number(loss) for name, loss in charged(several).items()}
    assert losses["user:add-remove"] == sum(whole) + WINDOWS * sum(parts)
    assert losses["user"] == 2 * losses["user:add-remove"]
    assert losses["event"] == 2 * sum(whole) + 2 * sum(parts)
    assert losses["event:add-remove"] == 2 * sum(whole) + sum(parts)
    assert losses["w-event:2:single-user"] == 2 * sum(whole) + 4 * sum(parts)
    assert losses["w-event:2"] == 4 * sum(whole) + 4 * sum(parts)


def longer(level, *, users, margin):
    """Return the loss of both kinds on the windows, and with more times around them."""
    found = []
    for extra in (0, margin):
        stream = ut.Stream(users, WINDOWS + 2 * extra)
        several = [
            people("1/2"),
            windows("1/8", first=extra),
            windows("1/4", first=extra),
        ]
        found.append(number(ut.Plan(stream, several).loss(level).loss))
    return found


@pytest.mark.parametrize("name", [*LEVELS, "l-trajectory:2", "user:max-times=2"])
def test_times_around_the_windows_add_nothing(name):
    few, many = longer(parse_granularity(name), users=9, margin=5)
    assert few == many


def test_more_users_than_windows_would_be_missed_by_a_wider_level():
    few, many = longer(ut.WEvent(WINDOWS + 1), users=9, margin=5)
    assert many - few == 1  # one more user, two steps of a half


def test_with_one_window_a_level_would_miss_rows_outside():
    # A user with rows elsewhere, whose only window fills: two steps, not one.
    alone = ut.Plan(ut.Stream(2, 1), [people()]).loss(ut.Event(add_remove=True))
    assert number(alone.loss) == 1
    several = ut.Plan(ut.Stream(2, 2), [people()]).loss(ut.Event(add_remove=True))
    assert number(several.loss) == 2


# ---------------------------------------------------------------- whose times they are


@pytest.fixture
def ledger(tmp_path):
    with made(tmp_path / "steps.ledger") as found:
        yield found


ORDERS = {
    "users first": [(people(), PERSON), (windows(), HOURS)],
    "windows first": [(windows(), HOURS), (people(), PERSON)],
    "users last": [(windows(), HOURS), (windows(), HOURS), (people(), PERSON)],
}


@pytest.mark.parametrize("order", ORDERS)
def test_frames_of_users_and_of_windows_become_one(order, tmp_path):
    path = tmp_path / "steps.ledger"
    with made(path) as ledger:
        for at, (release, frame) in enumerate(ORDERS[order]):
            ledger.require_frame(frame, [release])
            ledger.charge([release], key=str(at), frame=frame)
        assert ledger.frame == HOURS
    with BudgetLedger.open(path) as again:
        assert again.frame == HOURS
        again.require_frame(PERSON, [people()])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(
    ("release", "frame", "other"),
    [
        (windows(), {**HOURS, "start": 3_600_000_000}, "start"),
        (windows(), {**HOURS, "window": 1_800_000_000}, "window"),
        (windows(), {**HOURS, "time": "seen"}, "time"),
        (windows(), {**HOURS, "unit": "household"}, "unit"),
        (windows(), {**HOURS, "start": 7, "time": "seen"}, "start and time"),
        (people(), {"unit": "household"}, "unit"),
        (people(), {"unit": None}, "unit"),
        (people(), {}, "unit"),
        (people(), {**PERSON, "table": "other"}, "table"),
        (windows(), PERSON, "start and time and window"),
    ],
)
def test_another_unit_or_other_times_stay_refused(order, release, frame, other, ledger):
    for at, (early, said) in enumerate(ORDERS[order]):
        ledger.charge([early], key=str(at), frame=said)
    before = ledger.head
    with pytest.raises(MismatchError, match=f"got another {other};"):
        ledger.charge([release], key="x", frame=frame)
    assert ledger.head == before


def test_a_frame_without_times_is_complete_once_some_times_were_numbered(ledger):
    # Nobody said what time 0 of the first charge is, so it cannot be window 0.
    ledger.charge([windows(count=1)], key="a", frame=PERSON)
    with pytest.raises(MismatchError, match="another start and time and window"):
        ledger.charge([windows(count=1)], key="b", frame=HOURS)
    ledger.charge([people()], key="c", frame=PERSON)


def test_charges_are_looked_at_together(ledger):
    ledger.charge([windows()], key="a", frame=HOURS)
    with pytest.raises(MismatchError, match="another start"):
        ledger.charge([people(), windows(count=1)], key="b", frame=PERSON)


def test_without_releases_nothing_may_be_left_out(ledger):
    ledger.charge([windows()], key="a", frame=HOURS)
    with pytest.raises(MismatchError, match="another start"):
        ledger.require_frame(PERSON)
    ledger.require_frame(HOURS)


@pytest.mark.parametrize("domain", [ut.Stream(2, 1), ut.Table()])
def test_frames_stay_apart_where_there_is_one_time_or_none(domain, tmp_path):
    levels = ("user",) if isinstance(domain, ut.Stream) else ("unbounded",)
    unit = ut.User() if isinstance(domain, ut.Stream) else ut.Unbounded()
    whole = ut.Release("r", ut.Pure(1), unit=unit, view=ut.Identity(), setting="view")
    with made(tmp_path / "one", domain=domain, levels=levels) as ledger:
        ledger.charge([whole], key="a", frame=PERSON)
        with pytest.raises(MismatchError, match="another start and time and window"):
            ledger.charge([whole], key="b", frame=HOURS)
        ledger.charge([whole], key="b", frame=PERSON)


def test_a_writer_who_looked_earlier_sees_the_times_of_another(tmp_path):
    path = tmp_path / "steps.ledger"
    with made(path) as ours:
        ours.charge([people()], key="a", frame=PERSON)
        with BudgetLedger.open(path) as theirs:
            theirs.charge([windows()], key="b", frame=HOURS)
        with pytest.raises(MismatchError, match="another start"):
            ours.charge([windows()], key="c", frame={**HOURS, "start": 60})
        ours.charge([windows()], key="c", frame=HOURS)
        assert ours.frame == HOURS
