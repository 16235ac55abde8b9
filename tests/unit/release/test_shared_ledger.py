"""Releases per user and per window of one table are charged to one ledger."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from undertow.cli import app
from undertow.correlation import Blocks, calibrate
from undertow.errors import AssumptionError, BudgetExceeded, MismatchError
from undertow.ledger import BudgetLedger, LeakageBudget
from undertow.privacy import ZCDP, Approx, Pure
from undertow.release import from_table, load
from undertow.spaces import Event, FreeLunch, Stream, User, WEvent, parse_granularity

# Two rows lie in the windows, one before, one after, and one has no time.
VISITS = pa.table(
    {
        "person": [1, 2, 2, 3, 3],
        "ts": [
            dt.datetime(2026, 1, 1, 1, 5),
            dt.datetime(2026, 1, 1, 2, 5),
            dt.datetime(2025, 6, 1),
            dt.datetime(2027, 6, 1),
            None,
        ],
    }
)
HOURS = {
    "unit": "person",
    "time": "ts",
    "per": {"window": "1h"},
    "start": "2026-01-01",
    "horizon": "4h",
}
WINDOWS = Stream(10**9, 4)


def asked(source, granularity="user", select="count_distinct", **promise):
    return {
        "source": source,
        "promise": {"granularity": granularity, **(promise or {"epsilon": "1"})},
        "bounds": {"rows_per_unit": 2},
        "queries": [{"name": "seen", "select": select}],
    }


def total(granularity="user", **promise):
    return from_table(VISITS, asked({"unit": "person"}, granularity, **promise))


def hourly(granularity="event", **promise):
    return from_table(VISITS, asked(HOURS, granularity, **promise))


def made(path, budgets=None, *, domain=WINDOWS, **rest):
    budgets = budgets or {User(): Pure(6), Event(): Pure(3)}
    return BudgetLedger.create(
        path, dataset="visits", domain=domain, budgets=budgets, **rest
    )


@pytest.fixture
def ledger(tmp_path):
    with made(tmp_path / "visits.ledger") as found:
        yield found


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_users_and_windows_add_up_in_one_ledger(ledger, order):
    releases = [total(epsilon="3/4"), hourly(epsilon="1/2")]
    for at in order:
        assert not releases[at].run(ledger=ledger).repeated
    # One number: who changes it at all changes it by one. Four windows at user level.
    assert ledger.losses() == {"user": Pure("11/4"), "event": Pure("5/4")}
    assert ledger.frame["unit"] == "person"
    assert ledger.frame["window"] == 3_600_000_000
    assert ledger.verify() == []
    for at in order:
        assert releases[at].run(ledger=ledger).repeated


def test_runs_of_windows_go_on_beside_releases_of_users(ledger):
    release = hourly(epsilon="1/2")
    for hour in (1, 2, 3):
        release.run(ledger=ledger, as_of=f"2026-01-01T{hour:02d}:00")
        total(epsilon=f"{hour}/10").run(ledger=ledger)
    # The runs make the one claim about windows that come and go: a half at event level.
    assert ledger.losses() == {"user": Pure("2.1"), "event": Pure("1.1")}


def test_the_sum_of_both_is_held_against_the_budget(ledger):
    total(epsilon="2").run(ledger=ledger)
    before = ledger.head
    unread = from_table("no table at all", asked(HOURS, "event", epsilon="1.5"))
    with pytest.raises(BudgetExceeded, match="must fit the user budget"):
        unread.run(ledger=ledger)
    assert ledger.head == before
    hourly(epsilon="1").run(ledger=ledger)
    with pytest.raises(BudgetExceeded):
        total(epsilon="0.1").run(ledger=ledger)


@pytest.mark.parametrize("name", ["user", "user:add-remove"])
def test_rho_and_delta_are_charged_as_planned(name, tmp_path):
    level = parse_granularity(name)
    with made(tmp_path / "a", {level: ZCDP(9), Event(): ZCDP(9)}) as ledger:
        total(name, rho="1/4").run(ledger=ledger)
        assert ledger.losses()[name].within(ZCDP("1/4"))
        hourly(rho="1/4").run(ledger=ledger)
        assert ledger.losses()["event"] == ZCDP("1/2")
    with made(tmp_path / "b", {level: Approx(2, "1e-5")}) as ledger:
        total(name, epsilon="1", delta="1e-6").run(ledger=ledger)
        assert ledger.losses()[name].within(Approx(1, "1e-6"))
        hourly(name, epsilon="1/2", delta="1e-6").run(ledger=ledger)
        assert ledger.losses()[name].within(Approx("3/2", "2e-6"))


UNREAD = {
    "windows, ledger of users": (
        Stream(10**9, 1),
        asked(HOURS, "user"),
        "got one for 1000000000 users as a whole; a ledger that takes releases per "
        "user and per window is made by undertow ledger init with --release and the "
        "file of the windows",
    ),
    "fewer users": (
        WINDOWS,
        asked({"unit": "person", "users": 1000}),
        "must be made for 1000 users as a whole, got one for 1000000000 users in 4 "
        r"windows; state the same source\.users",
    ),
    "fewer users by the hour": (
        WINDOWS,
        asked({**HOURS, "users": 1000}),
        r"got one for 1000000000 users in 4 windows; state the same source\.users",
    ),
    "longer": (
        WINDOWS,
        asked({**HOURS, "horizon": "5h"}),
        r"1000000000 users in 5 windows, got .* state the same source\.horizon",
    ),
    "rows": (
        WINDOWS,
        {
            **asked({"per": "event"}, "event", "count"),
            "bounds": {},
        },
        "must be made for a table of rows, got .* 4 windows; .* rows and of units have "
        "no sum in one ledger",
    ),
    "always recorded": (
        Stream(10**9, 4, regular=True),
        asked({"unit": "person"}),
        r"got one for Stream\(users=1000000000, times=4, regular=True",
    ),
}


@pytest.mark.parametrize("case", UNREAD)
def test_another_domain_is_refused_before_the_data_with_a_way_out(case, tmp_path):
    domain, mapping, said = UNREAD[case]
    with made(tmp_path / "x", {User(): Pure(9)}, domain=domain) as ledger:
        with pytest.raises(MismatchError, match=said):
            from_table("no table at all", mapping).run(ledger=ledger)
        assert ledger.history() == []


def test_another_unit_is_refused_in_either_order(tmp_path):
    others = asked({"unit": "household"})
    with made(tmp_path / "a") as ledger:
        hourly().run(ledger=ledger)
        with pytest.raises(MismatchError, match="another unit"):
            from_table(VISITS, others).run(ledger=ledger)
    homes = pa.table({"household": [1, 2]})
    with made(tmp_path / "b") as ledger:
        from_table(homes, others).run(ledger=ledger)
        with pytest.raises(MismatchError, match="another unit"):
            hourly().run(ledger=ledger)


def test_other_windows_stay_refused_with_a_release_of_users_between(ledger):
    total(epsilon="1/4").run(ledger=ledger)
    hourly(epsilon="1/4").run(ledger=ledger)
    moved = {**HOURS, "start": "2026-01-01T01:00"}
    halves = {**HOURS, "per": {"window": "30m"}, "horizon": "2h"}
    for source, other in ((moved, "start"), (halves, "window")):
        with pytest.raises(MismatchError, match=f"another {other}"):
            from_table(VISITS, asked(source, "event")).run(ledger=ledger)


def test_a_ledger_of_one_window_takes_no_release_of_users(tmp_path):
    hour = asked({**HOURS, "horizon": "1h"})
    with made(tmp_path / "a", {User(): Pure(9)}, domain=Stream(10**9, 1)) as ledger:
        from_table(VISITS, hour).run(ledger=ledger)
        with pytest.raises(MismatchError, match="another start and time and window"):
            total().run(ledger=ledger)


def test_the_promise_of_a_user_needs_a_budget_of_users(tmp_path):
    path = tmp_path / "visits.ledger"
    hourly().create_ledger(path).close()
    hourly().run(ledger=path)
    with pytest.raises(AssumptionError, match="a budget at the promised granularity"):
        total().run(ledger=path)


@pytest.mark.parametrize("name", ["event", "w-event:1"])
def test_an_event_of_a_release_of_users_is_no_event_of_windows(name, ledger):
    with pytest.raises(AssumptionError, match="must be user or user:add-remove where"):
        total(name).run(ledger=ledger)
    assert ledger.history() == []


@pytest.mark.parametrize("level", [WEvent(5), FreeLunch()])
def test_levels_that_do_not_price_rows_outside_are_refused(level, tmp_path):
    with made(tmp_path / "x", {User(): Pure(9), level: Pure(99)}) as ledger:
        with pytest.raises(AssumptionError, match=f"got {level.name}; rows outside"):
            total().run(ledger=ledger)
        assert ledger.history() == []


@pytest.mark.parametrize("level", [WEvent(4), WEvent(5, single_user=True), Event()])
def test_levels_that_do_are_charged(level, tmp_path):
    with made(tmp_path / "x", {User(): Pure(9), level: Pure(99)}) as ledger:
        total().run(ledger=ledger)
        users = 4 if level == WEvent(4) else 1
        assert ledger.losses()[level.name] == Pure(users)


def test_a_model_of_users_goes_on_and_one_of_events_is_refused(tmp_path):
    def model(level):
        found = calibrate(Blocks.of_size(2, groups=10), 8.0)
        return {
            "pairs": LeakageBudget.from_calibration(found, granularity=level, model={})
        }

    with made(tmp_path / "a", models=model(User())) as ledger:
        total().run(ledger=ledger)
        hourly(epsilon="1/4").run(ledger=ledger)
        assert ledger.losses()["model:pairs"] == Pure(2)
    with made(tmp_path / "b", models=model(Event())) as ledger:
        with pytest.raises(AssumptionError, match="got event for 'pairs'; they say"):
            total().run(ledger=ledger)
        hourly(epsilon="1/4").run(ledger=ledger)


TOML = """
[source]
table = "visits.csv"
types = {{ ts = "timestamp" }}
unit = "person"
{windows}
[promise]
granularity = "{granularity}"
epsilon = "{epsilon}"
[bounds]
rows_per_unit = 2
[[queries]]
name = "seen"
select = "count_distinct"
[output]
folder = "{granularity}"
"""
LINES = """time = "ts"
per = { window = "1h" }
start = "2026-01-01"
horizon = "4h"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = ["1,2026-01-01 01:05:00", "2,2026-01-01 02:05:00", "2,2025-06-01 00:00:00"]
    (tmp_path / "visits.csv").write_text("\n".join(["person,ts", *rows]))
    for name, level, epsilon, windows in (
        ("hourly", "event", "1/2", LINES),
        ("total", "user", "3/4", ""),
    ):
        text = TOML.format(windows=windows, granularity=level, epsilon=epsilon)
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


def told(*words):
    done = CliRunner().invoke(app, list(words))
    return done.exit_code, done.output


def test_the_whole_story_from_the_command_line(folder):
    init = "ledger init visits.ledger --dataset visits --release hourly.toml"
    budgets = ["--granularity", "user=epsilon:3", "--granularity", "event=epsilon:5/4"]
    assert told(*init.split(), *budgets)[0] == 0
    assert told("release", "run", "total.toml")[0] == 0
    assert told("release", "run", "hourly.toml")[0] == 0
    status, text = told("ledger", "remaining", "visits.ledger", "--json")
    assert status == 0
    left = {b["name"]: b["left"]["exact"] for b in json.loads(text)["budgets"]}
    assert left == {"user": ["1/4"], "event": ["0"]}
    status, text = told("release", "run", "total.toml", "--repeat", "2")
    assert status == 3
    assert "must fit the" in text


def test_a_ledger_that_a_release_of_users_made_says_how_to_make_another(folder):
    assert told("release", "run", "total.toml")[0] == 0
    status, text = told("release", "run", "hourly.toml")
    assert status == 2
    assert (
        "undertow ledger init with --release and the file of the windows"
        in " ".join(text.split())
    )
    assert not (folder / "event").exists()
    assert load(folder / "total.toml").run().repeated
