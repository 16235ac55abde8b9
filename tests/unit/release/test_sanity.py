"""A small paid count stops a release that finds too little, and costs what it says."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from random import Random

import pyarrow as pa
import pytest

from support.release_documents import visits_mapping, write_visits
from undertow.errors import AssumptionError, BudgetExceeded, LimitReached, PlanError
from undertow.ledger import BudgetLedger, verify_ledger
from undertow.privacy.loss import GDP, ZCDP, Approx, Pure
from undertow.release import load, open_source, plan_release, release_from_mapping
from undertow.release.engine.pipeline import run_jobs
from undertow.release.plan._budget import calibrate_rho, restate
from undertow.release.run._ledger_place import open_ledger
from undertow.release.run.protocol import with_charge
from undertow.report import ReleaseReport

PROMISES = (
    {"epsilon": "2"},
    {"epsilon": "2", "granularity": "user:add-remove"},
    {"rho": "1/2"},
    {"mu": "3/2"},
    {"epsilon": "2", "delta": "1e-6"},
)
WINDOWS = {"per": {"window": "1d"}, "start": "2026-01-01", "horizon": "5d"}
KEY = b"the same rows are kept of a unit in both tables"


def planned(promise, check, *, source=None, as_of=None, bounds=None, queries=None):
    by = {"by": ["zone"], "keys": {"zone": ["A", "B"]}}
    several = queries or [
        {"name": "visits", "select": "count", **by},
        {"name": "length", "select": "mean", "column": "n", "low": 0, "high": 9},
    ]
    document = release_from_mapping(
        {
            "source": {"table": "a.csv", "unit": "person", "time": "ts"}
            | (source or {}),
            "promise": promise,
            "bounds": {"rows_per_unit": 3} | (bounds or {}),
            "check": check,
            "queries": several,
        }
    )
    return plan_release(document, as_of=as_of)


def counted(plan, rows):
    """Return the count without noise."""
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], []]
    types = pa.int64(), pa.string(), pa.int64()
    names = "person", "zone", "n"
    arrays = [pa.array(c, t) for c, t in zip(columns, types, strict=True)]
    with open_source(pa.table(arrays, names=names)) as source:
        found = run_jobs(source, plan.check.jobs, bounding=plan.bounding, key=KEY)
    return min(int(part.measures[plan.check.measure][0]) for part in found)


SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 8))]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("measure", ["units", "rows"])
def test_one_unit_moves_the_count_by_no_more_than_its_noise_is_made_for(measure, seed):
    random, moves = Random(f"{measure} {seed}"), set()
    for _ in range(2):
        bounds = {"rows_per_unit": random.randint(1, 4)}
        bounds |= random.choice([{}, {"groups_per_unit": 1}, {"rows_per_group": 1}])
        plan = planned({"epsilon": "1"}, {f"{measure}_at_least": 10**5}, bounds=bounds)
        noise, (claim, *_) = plan.check.share.noise, plan.check.releases[0].claims
        reach = noise.parameter * claim.loss.exact_parameters()[0]
        rows = [
            (random.randrange(5), random.choice("ABC"), random.choice([None, 1, 20]))
            for _ in range(20)
        ]
        whole = counted(plan, rows)
        others = [row for row in rows if row[0] != 0]
        replaced = others + [(0, random.choice("AB"), 1)] * random.randint(0, 6)
        for other in (others, replaced):
            moves.add((abs(counted(plan, other) - whole), reach))
    assert all(move <= reach for move, reach in moves)


@pytest.mark.parametrize(("measure", "most"), [("units", 1), ("rows", 3)])
def test_some_unit_moves_the_count_by_all_that_its_noise_is_made_for(measure, most):
    queries = [{"name": "all", "select": "count"}]
    check = {f"{measure}_at_least": 10**5}
    plan = planned({"epsilon": "1"}, check, queries=queries)
    rows = [(1, "A", 1)] * 9
    assert counted(plan, [*rows, *[(2, "A", 1)] * 9]) - counted(plan, rows) == most
    assert plan.check.share.need.reach.total == most


def test_the_count_is_of_the_query_that_finds_least():
    plan = planned({"epsilon": "1"}, {"units_at_least": 10**5})
    rows = [(at, "A", None if at > 2 else 1) for at in range(9)]
    assert counted(plan, rows) == 3
    assert counted(plan, [(at, "a", 1) for at in range(9)]) == 0


def test_units_in_several_cells_are_counted_once():
    plan = planned({"epsilon": "1"}, {"units_at_least": 10**5})
    assert counted(plan, [(1, "A", 1), (1, "B", 1), (2, "B", 1)]) == 2


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize(
    ("source", "as_of"), [({}, None), (WINDOWS, None), (WINDOWS, "2026-01-03")]
)
def test_all_counts_and_all_runs_keep_the_promise_at_its_granularity(
    promise, source, as_of
):
    check = {"units_at_least": 10**5, "share": "0.02", "tries": 4}
    plan = planned(promise, check, source=source, as_of=as_of)
    whole = plan.promise.cost(plan.horizon()).loss
    assert whole.within(plan.promise.total)
    assert len(plan.check.covered) == 4 * plan.timeline.runs
    rest = plan.promise.cost(plan.composition()).loss
    assert rest.within(plan.promise.total)
    if plan.timeline.runs == 1:
        assert not whole.within(rest)


@pytest.mark.parametrize("promise", PROMISES)
@pytest.mark.parametrize("source", [{}, WINDOWS])
def test_a_ledger_with_the_promise_has_room_for_all_tries_of_all_runs(
    promise, source, tmp_path
):
    check = {"units_at_least": 10**5, "share": "0.05", "tries": 2}
    times = [f"2026-01-0{day}" for day in range(2, 7)] if source else [None]
    plans = [planned(promise, check, source=source, as_of=at) for at in times]
    with open_ledger(plans[0], str(tmp_path / "a.ledger")) as ledger:
        for run, plan in enumerate(plans):
            for attempt in range(2):
                ledger.charge(plan.check.releases, key=f"count {run} {attempt}")
            ledger.charge(plan.releases, key=f"run {run}")
        if not source:
            with pytest.raises(BudgetExceeded):
                ledger.charge(plans[0].releases, key="another")


@pytest.mark.parametrize("runs", [1, 30])
def test_a_divided_promise_adds_up_to_no_more_than_the_whole(runs):
    from undertow.release.plan._sanity_count import split_promise

    random = Random(runs)
    for _ in range(40):
        stated = random.choice(PROMISES)
        promise = planned(stated, {"units_at_least": 10**5}).promise
        part = Fraction(random.randint(1, 99), 100)
        counts, rest = split_promise(promise, part, runs=runs)
        total = promise.total
        if not isinstance(total, Approx):
            assert (counts.total + rest.total).within(total)
            assert total.within(counts.total + rest.total)
        elif runs == 1:
            assert restate(counts.total, Fraction(0)) + rest.total == total
        else:  # runs are charged in zCDP, and so is the budget of their ledger
            epsilon, delta = total.exact_parameters()
            spent = calibrate_rho(Fraction(rest.total.exact_parameters()[0]), delta)
            whole = ZCDP(calibrate_rho(Fraction(epsilon), delta))
            assert isinstance(counts.total, ZCDP)
            assert (counts.total + ZCDP(spent)).within(whole)


def test_the_stated_chances_are_those_of_the_noise():
    plan = planned({"epsilon": "1"}, {"units_at_least": 120, "share": "0.05"})
    scale = float(plan.check.share.noise.parameter)
    ratio = math.exp(-1 / scale)
    tail = [ratio**k / (1 + ratio) for k in (120, 121)]
    assert plan.check.empty_passes == pytest.approx(tail[0], rel=1e-6)
    assert plan.check.double_stops == pytest.approx(tail[1], rel=1e-6)
    assert plan.check.empty_passes >= tail[0]


@pytest.mark.parametrize("promise", PROMISES)
def test_a_limit_that_nothing_often_passes_is_refused_and_the_named_one_is_not(promise):
    with pytest.raises(PlanError, match=r"check\.units_at_least") as refused:
        planned(promise, {"units_at_least": 1})
    least = int(str(refused.value).partition("at least ")[2].partition(" ")[0])
    assert planned(promise, {"units_at_least": least}).check.empty_passes <= 0.05
    with pytest.raises(PlanError):
        planned(promise, {"units_at_least": least - 1})


@pytest.mark.parametrize(
    ("check", "words"),
    [
        ({}, "check must give units_at_least or rows_at_least, got nothing."),
        (
            {"units_at_least": 5, "rows_at_least": 5},
            "check must give units_at_least or rows_at_least, got both.",
        ),
        (
            {"units_at_least": 5, "share": "0.4", "tries": 3},
            "check.share must leave a budget after all tries, got 0.4 and 3.",
        ),
        ({"units_at_least": 0}, "check.units_at_least must be at least 1, got 0."),
        ({"least": 5}, "check.least must be a key of the format"),
    ],
)
def test_a_count_that_is_stated_wrongly_is_refused_in_one_sentence(check, words):
    with pytest.raises(PlanError) as refused:
        planned({"epsilon": "1"}, check)
    assert str(refused.value).startswith(words)


def test_rows_are_counted_where_each_row_counts_by_itself():
    mapping = visits_mapping(
        source={"unit": "person", "per": "event"},
        promise={"granularity": "event", "epsilon": "1"},
        check={"units_at_least": 10**5},
    )
    del mapping["bounds"]
    with pytest.raises(PlanError, match="must be rows_at_least where each row"):
        release_from_mapping(mapping, in_memory=True)
    mapping["check"] = {"rows_at_least": 10**5}
    plan = plan_release(release_from_mapping(mapping, in_memory=True))
    assert plan.check.share.need.reach.total == 1


def test_a_release_without_a_count_is_named_and_charged_as_before():
    plain = release_from_mapping(visits_mapping(), in_memory=True)
    assert "check" not in plain.to_dict()
    other = release_from_mapping(
        visits_mapping(check={"units_at_least": 10**5}), in_memory=True
    )
    assert plain.fingerprint() != other.fingerprint()


def write(folder, zone="A", **changes):
    rows = [f"{at},{zone}" for at in range(4000)]
    check = {"units_at_least": 2500, "share": "0.01", "tries": 3}
    return write_visits(folder, rows, check=check, **changes)


def charges(path):
    """Return the labels of all charges of a ledger that verifies."""
    assert verify_ledger(path) == []
    with BudgetLedger.open(path, read_only=True) as ledger:
        entries = ledger.history()
    return [e.body["label"] for e in entries if e.kind == "charge"]


def test_a_run_that_finds_too_little_is_stopped_before_its_charge(tmp_path):
    file = write(tmp_path, zone="a")
    with pytest.raises(
        AssumptionError, match="must find at least 2,500 units"
    ) as first:
        load(file).run()
    assert charges(tmp_path / "visits.ledger") == ["visits (count)"]
    assert not (tmp_path / "release").exists()
    (tmp_path / "visits.csv").unlink()  # the stored count is told, nothing is read
    with pytest.raises(AssumptionError) as second:
        load(file).run()
    assert str(second.value) == str(first.value)
    assert charges(tmp_path / "visits.ledger") == ["visits (count)"]


def test_a_repaired_file_is_counted_anew_and_goes_through(tmp_path):
    file = write(tmp_path, zone="a")
    with pytest.raises(AssumptionError):
        load(file).run()
    file.write_text(file.read_text().replace('"A"', '"a"'))
    done = load(file).run()
    assert charges(tmp_path / "visits.ledger") == [
        "visits (count)",
        "visits (count)",
        "visits",
    ]
    assert done.record["check"]["count"] > 2500
    assert "A count with noise found " in done.story
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert manifest["check"] == done.record["check"]
    ReleaseReport(done.record).write(tmp_path / "report.md")
    assert "A count with noise found " in (tmp_path / "report.md").read_text()
    again = load(file).run()
    assert again.repeated
    assert again.answers == done.answers
    assert len(charges(tmp_path / "visits.ledger")) == 3


def test_a_repaired_table_is_counted_anew_where_that_is_asked_for(tmp_path):
    file = write(tmp_path, zone="a")
    with pytest.raises(AssumptionError, match="count anew with --recount 2"):
        load(file).run()
    write(tmp_path, zone="A")
    with pytest.raises(AssumptionError):
        load(file).run()
    done = load(file).run(recount=2)
    assert done.record["check"]["entry"] == 3
    assert load(file).run().answers == done.answers  # whichever count it was
    with pytest.raises(PlanError, match="recount must be"):
        load(file).run(recount=0)


def test_a_running_total_goes_on_after_a_run_that_was_stopped(tmp_path):
    source = {"time": "ts", "types": {"ts": "date"}, **WINDOWS}
    about = {
        "columns": "person,zone,ts",
        "source": source,
        "query": {"running": True},
        "check": {"units_at_least": 4000, "share": "0.05", "tries": 2},
    }
    rows = [f"{at},A,2026-01-0{1 + at % 3}" for at in range(24_000)]
    file = write_visits(tmp_path, [r for r in rows if r[-1] != "2"], **about)
    load(file).run(as_of="2026-01-02")
    with pytest.raises(AssumptionError, match="recount 2"):
        load(file).run(as_of="2026-01-03")
    write_visits(tmp_path, rows, **about)
    load(file).run(as_of="2026-01-03", recount=2)
    done = load(file).run(as_of="2026-01-04")
    assert abs(done.answers[0]["rows"][0][1] - 24_000) < 5000


def test_tries_that_the_budget_has_no_room_for_are_refused(tmp_path):
    file = write(tmp_path, zone="a")
    for recount in (1, 2, 3):
        with pytest.raises(AssumptionError):
            load(file).run(recount=recount)
    with pytest.raises(BudgetExceeded):
        load(file).run(recount=4)
    assert len(charges(tmp_path / "visits.ledger")) == 3
    write(tmp_path, zone="A")
    with pytest.raises(BudgetExceeded):
        load(file).run(repeat=2)


def test_a_count_that_was_charged_and_killed_is_finished_without_a_charge(
    tmp_path, runs
):
    file = write(tmp_path)
    killed = runs.run(
        "release", "run", file.name, folder=tmp_path, at="/record.check_bytes"
    )
    assert killed.status == -9
    assert charges(tmp_path / "visits.ledger") == ["visits (count)"]
    done = load(file).run()
    assert charges(tmp_path / "visits.ledger") == ["visits (count)", "visits"]
    assert not done.repeated


def test_runs_at_once_share_one_count_and_one_output(tmp_path, runs):
    file = write(tmp_path)
    words = ["release", "run", file.name, "--json"]
    ended = runs.run_at_once([words] * 3, folder=tmp_path)
    assert [run.status for run in ended] == [0, 0, 0]
    assert len({json.dumps(json.loads(run.output)["check"]) for run in ended}) == 1
    assert charges(tmp_path / "visits.ledger") == ["visits (count)", "visits"]


def test_each_run_of_a_continual_release_is_counted_by_itself(tmp_path):
    rows = [f"{at},A,2026-01-0{1 + at % 2}" for at in range(16_000)]
    source = {"time": "ts", "types": {"ts": "date"}, **WINDOWS}
    check = {"units_at_least": 4000, "share": "0.05", "tries": 2}
    file = write_visits(
        tmp_path, rows, columns="person,zone,ts", source=source, check=check
    )
    for day in (2, 3):
        done = load(file).run(as_of=f"2026-01-0{day}")
        assert abs(done.record["check"]["count"] - 8000) < 4000
    with pytest.raises(AssumptionError, match="must find at least 4,000 units"):
        load(file).run(as_of="2026-01-04")
    assert charges(tmp_path / "visits.ledger")[-1] == "visits (count)"
    assert len(charges(tmp_path / "visits.ledger")) == 5


def test_units_of_all_windows_cost_a_user_no_more_than_an_event():
    check = {"units_at_least": 10**5, "share": "0.01"}
    noises = {
        name: planned(
            {"epsilon": "1", "granularity": name}, check, source=WINDOWS
        ).check.share.noise
        for name in ("event:add-remove", "user:add-remove", "user")
    }
    assert len({noise.parameter for noise in noises.values()}) == 1


def test_windows_are_repaired_after_their_times_were_read_in_a_wrong_format(tmp_path):
    rows = [f"{at},A,{1 + at % 5}.1.2026" for at in range(4000)]
    source = {"time": "ts", **WINDOWS}
    about = {
        "columns": "person,zone,ts",
        "check": {"units_at_least": 2500, "share": "0.02"},
    }
    wrong = {**source, "types": {"ts": "date"}}
    file = write_visits(tmp_path, rows, source=wrong, **about)
    with pytest.raises(AssumptionError, match="must find at least 2,500 units"):
        load(file).run()
    right = {**source, "types": {"ts": {"date": "%d.%m.%Y"}}}
    file = write_visits(tmp_path, rows, source=right, **about)
    assert load(file).run().record["check"]["count"] > 2500
    assert len(charges(tmp_path / "visits.ledger")) == 3


def test_discovered_keys_are_counted_before_too(tmp_path):
    query = {
        "name": "z",
        "select": "count_distinct",
        "by": ["zone"],
        "keys": "discover",
    }
    promise = {"epsilon": "1", "delta": "1e-6"}
    check = {"units_at_least": 3000, "share": "0.02"}
    plan = planned(promise, check, queries=[query], source={"table": "visits.csv"})
    assert isinstance(plan.check.share.loss, Pure)
    assert plan.promise.cost(plan.horizon()).loss.within(plan.promise.total)
    rows = [(at, "AB"[at % 2], 1) for at in range(50)]
    assert counted(plan, rows) == 50


def test_gaussian_dp_divides_the_square_of_its_parameter():
    plan = planned({"mu": 1}, {"units_at_least": 10**5, "share": "1/10", "tries": 1})
    cost = plan.check_costs()["user"].loss
    assert isinstance(cost, GDP)
    assert cost.mu == pytest.approx(math.sqrt(1 / 10), rel=1e-6)


def test_a_plan_shows_the_price_and_the_chances_of_its_count():
    plan = planned({"epsilon": "1"}, {"units_at_least": 1500})
    text = plan.__rich__()
    assert "costs ε = 0.01 at user level; stops below 1,500 units" in text
    record = plan.to_dict()["check"]
    assert record["costs"]["user"] == {"notion": "pure", "epsilon": 0.01}
    assert 0 < record["empty_passes"] < 1e-6
    assert planned({"epsilon": "1"}, None).to_dict()["check"] is None


@pytest.mark.parametrize("recount", [1, 2, 3])
def test_a_release_that_is_charged_is_finished_whatever_count_is_asked_for(
    tmp_path, runs, recount
):
    file = write(tmp_path, zone="a")
    with pytest.raises(AssumptionError, match="entry 1; the release itself is not"):
        load(file).run()
    write(tmp_path)
    words = ["release", "run", file.name, "--recount", "2"]
    killed = runs.run(*words, folder=tmp_path, at="/record.run_record")
    assert killed.status == -9
    before = charges(tmp_path / "visits.ledger")
    assert before == ["visits (count)", "visits (count)", "visits"]
    done = load(file).run(recount=recount)
    assert done.resumed
    assert done.record["check"]["entry"] == 3
    assert charges(tmp_path / "visits.ledger") == before


@pytest.mark.parametrize("zone", ["a", "A"])
def test_a_release_that_a_limit_has_charged_is_finished_without_a_count(tmp_path, zone):
    file = write(tmp_path, zone=zone)
    plan = load(file).plan()
    with open_ledger(plan, str(tmp_path / "visits.ledger")) as ledger:
        with_charge(LimitReached("met"), plan, ledger, title="visits")
    done = load(file).run()
    assert done.resumed
    assert done.record["check"] is None
    assert charges(tmp_path / "visits.ledger") == ["visits"]
