"""What a run that is refused leaves, and what a later file may change of a run."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa
import pytest
from pyarrow import parquet

from support.command import invoke
from support.release_documents import visits_mapping, write_visits
from undertow.errors import EngineError, PlanError
from undertow.ledger import BudgetLedger
from undertow.privacy import Pure
from undertow.release import from_table, load, run_release
from undertow.release.plan.planned_release import plan_release
from undertow.release.run import protocol as run_module
from undertow.release.run._folder import check_folder
from undertow.spaces import User

HOURLY = {
    "source": {
        "unit": "person",
        "time": "ts",
        "per": {"window": "1h"},
        "start": "2026-01-01",
        "horizon": "8h",
    },
    "promise": {"granularity": "event", "epsilon": "1"},
    "bounds": {"rows_per_unit": 1},
    "queries": [{"name": "seen", "select": "count"}],
}
USERS = {"promise": {"granularity": "user", "epsilon": "1"}}
EVENING = "2025-12-31T20:00"
SEEN = pa.table({"person": [1], "ts": [dt.datetime(2026, 1, 1, 1, 5)]})
WRONG = {
    "table": {"source": {"table": "missing.csv"}},
    "column": {"query": {"by": ["zoen"], "keys": {"zoen": ["A"]}}},
    "types": {"source": {"table": "visits.parquet", "types": {"zone": "int"}}},
    "server": {
        "source": {"table": "postgres://me@127.0.0.1:1/db", "relation": "visits"},
        "ledger": {"dataset": "visits"},
    },
}


def set_clock(monkeypatch, moment: dt.datetime) -> None:
    monkeypatch.setattr(run_module, "_now", lambda: moment.replace(tzinfo=dt.UTC))


@pytest.mark.parametrize("wrong", sorted(WRONG))
def test_a_run_that_cannot_read_leaves_no_ledger_for_the_corrected_file(
    tmp_path, wrong
):
    parquet.write_table(pa.table({"zone": ["A"]}), tmp_path / "visits.parquet")
    promise = {"granularity": "user", "epsilon": "5"}
    path = write_visits(tmp_path, promise=promise, **WRONG[wrong])
    before = sorted(tmp_path.iterdir())
    with pytest.raises((EngineError, PlanError)):
        load(path).run()
    assert sorted(tmp_path.iterdir()) == before
    write_visits(tmp_path)
    load(path).run()
    with BudgetLedger.open(tmp_path / "visits.ledger") as ledger:
        assert ledger.budgets == {User(): Pure(1)}


@pytest.mark.parametrize("below", ["", "deep"])
def test_an_output_that_is_a_file_leaves_no_ledger(tmp_path, below):
    path = write_visits(tmp_path)
    taken = tmp_path / "taken"
    taken.write_text("")
    taken.chmod(0o700)
    with pytest.raises(PlanError, match="output must be a folder"):
        check_folder(taken / below)
    with pytest.raises(PlanError, match="output must be a folder"):
        load(path).run(output=taken / below)
    assert not (tmp_path / "visits.ledger").exists()


def test_a_running_total_that_comes_too_early_charges_nothing(tmp_path):
    queries = [{"name": "total", "select": "count", "running": True}]
    release = from_table(SEEN, {**HOURLY, "queries": queries})
    with release.create_ledger(tmp_path / "x.ledger") as ledger:
        with pytest.raises(PlanError, match="must follow its earlier runs"):
            release.run(ledger=ledger, as_of="2026-01-01T03:00")
        assert ledger.history() == []


def test_a_running_total_must_be_run_for_a_time(tmp_path, monkeypatch):
    queries = [{"name": "total", "select": "count", "running": True}]
    release, place = from_table(SEEN, {**HOURLY, "queries": queries}), tmp_path / "x"
    sentence = (
        "as_of must be given for a running total, got nothing; give the time of the "
        "run, such as --as-of 2026-01-02T00:00."
    )
    with pytest.raises(PlanError) as caught:
        release.run(ledger=place)
    assert str(caught.value) == sentence
    assert list(tmp_path.iterdir()) == []
    release.create_ledger(place).close()
    for hour in (1, 2):
        release.run(ledger=place, as_of=f"2026-01-01T0{hour}:00")
    monkeypatch.setattr(run_module, "run_jobs", None)
    with pytest.raises(PlanError, match="as_of must be given"):
        release.run(ledger=place)
    assert release.plan().timeline.run == 1
    whole = from_table(SEEN, HOURLY)
    assert whole.plan().timeline.run is None


def test_the_command_line_asks_for_the_time_of_a_running_total(tmp_path):
    source = {**HOURLY["source"], "types": {"ts": "timestamp"}}
    path = write_visits(
        tmp_path,
        ["1,2026-01-01T00:05:00"],
        columns="person,ts",
        source=source,
        promise=HOURLY["promise"],
        query={"running": True, "by": [], "keys": {}},
    )
    refused = invoke("release", "run", path)
    assert refused.exit_code == 2
    assert "give the time of the run, such as --as-of 2026-" in refused.output
    assert not (tmp_path / "visits.ledger").exists()
    assert invoke("release", "plan", path).exit_code == 0
    first = invoke("release", "run", path, "--as-of", "2026-01-01T01:00")
    assert first.exit_code == 0, first.output


def test_a_table_is_read_once_and_before_its_ledger_is_made(tmp_path, monkeypatch):
    path, real, seen = write_visits(tmp_path), run_module.run_jobs, []

    def reads(*given, **named):
        seen.append((tmp_path / "visits.ledger").exists())
        return real(*given, **named)

    monkeypatch.setattr(run_module, "run_jobs", reads)
    assert not load(path).run().repeated
    assert seen == [False]


def test_a_ledger_that_another_run_makes_meanwhile_is_used(tmp_path, monkeypatch):
    release, real, other = load(write_visits(tmp_path)), run_module.run_jobs, []

    def overtaken(*given, **named):
        if not other:
            other.append(None)
            other[0] = release.run()
        return real(*given, **named)

    monkeypatch.setattr(run_module, "run_jobs", overtaken)
    late = release.run()
    assert late.repeated
    assert late.answers == other[0].answers
    with BudgetLedger.open(tmp_path / "visits.ledger") as ledger:
        assert [entry.kind for entry in ledger.history()] == ["charge", "output"]


def test_what_was_read_does_not_show_in_its_text(tmp_path):
    plan = from_table(SEEN, visits_mapping(query={"by": [], "keys": {}})).plan()
    shown = repr(run_module.read_table(plan, table=SEEN))
    assert shown == "Reading(1 tasks, duckdb)"


def test_a_stored_run_is_written_in_the_format_of_the_file(tmp_path):
    path = write_visits(tmp_path)
    first = load(path).run()
    write_visits(tmp_path, output={"folder": "new", "format": "parquet"})
    second = load(path).run()
    assert second.repeated
    assert sorted(second.files) == ["01-visits.parquet", "manifest.json"]
    table = parquet.read_table(tmp_path / "new" / "01-visits.parquet")
    assert [list(row.values()) for row in table.to_pylist()] == first.answers[0]["rows"]
    manifest = json.loads((tmp_path / "new" / "manifest.json").read_text())
    assert manifest["document"]["output"]["format"] == "parquet"


def test_margins_of_a_stored_run_are_not_settled_anew_without_a_word(tmp_path):
    path = write_visits(tmp_path)
    load(path).run()
    write_visits(tmp_path, output={"consistency": True})
    with pytest.raises(PlanError, match=r"must be false as in the stored.*repeat=2"):
        load(path).run()


@pytest.mark.parametrize(
    ("hour", "minute", "over"), [(2, 0, True), (1, 59, False), (0, 0, False)]
)
def test_a_window_is_released_once_it_is_over(
    tmp_path, monkeypatch, hour, minute, over
):
    set_clock(monkeypatch, dt.datetime(2026, 1, 1, hour, minute))
    release, address = from_table(SEEN, HOURLY), tmp_path / "x.ledger"
    release.create_ledger(address, as_of="2026-01-01T02:00").close()
    if over:
        assert not release.run(ledger=address, as_of="2026-01-01T02:00").repeated
        return
    assert release.plan(as_of="2026-01-01T02:00").timeline.run == 2
    with pytest.raises(PlanError, match="reads up to 2026-01-01T02:00:00; wait"):
        release.run(ledger=address, as_of="2026-01-01T02:00")
    with BudgetLedger.open(address) as ledger:
        assert ledger.history() == []


def test_a_time_to_come_is_refused_for_an_open_ledger_and_whole_units(
    tmp_path, monkeypatch
):
    source = {"unit": "person", "time": "ts"}
    release = from_table(SEEN, {**HOURLY, "source": source, **USERS})
    with BudgetLedger.create(
        tmp_path / "x.ledger",
        dataset="x",
        domain=release.plan().domain,
        budgets={User(): Pure(5)},
    ) as ledger:
        set_clock(monkeypatch, dt.datetime(2026, 1, 2))
        done = release.run(ledger=ledger, as_of="2026-01-02")
        plan = release.plan(as_of="2026-01-03")
        with pytest.raises(PlanError, match="as_of must be a time that is over"):
            run_release(plan, ledger, table=SEEN)
        assert len(ledger.history()) == 2
        # What was charged before is finished and handed out, whatever the clock says.
        set_clock(monkeypatch, dt.datetime(1990, 1, 1))
        again = release.run(ledger=ledger, as_of="2026-01-02")
    assert again.answers == done.answers


def test_a_plain_date_is_its_midnight():
    source = {**HOURLY["source"], "start": EVENING}
    release = from_table(SEEN, {**HOURLY, "source": source})
    plan = release.plan(as_of=dt.date(2026, 1, 1))
    assert plan.timeline == release.plan(as_of="2026-01-01").timeline
    direct = plan_release(release.document, as_of=dt.date(2026, 1, 1))
    assert direct.timeline == plan.timeline


@pytest.mark.parametrize(
    "as_of",
    [
        5,
        0,
        False,
        "",
        b"2026-01-01",
        dt.time(),
        dt.datetime.max.replace(tzinfo=dt.timezone(-dt.timedelta(hours=1))),
    ],
    ids=["number", "zero", "truth", "empty", "bytes", "hour", "far"],
)
def test_what_is_no_time_is_refused_in_one_sentence(as_of):
    with pytest.raises(PlanError, match="as_of must be a time such as"):
        from_table(SEEN, HOURLY).plan(as_of=as_of)


@pytest.mark.parametrize("repeat", [0, -1, 1.5, True, "2"])
def test_a_repeat_that_is_no_count_is_refused_in_one_sentence(tmp_path, repeat):
    release = load(write_visits(tmp_path))
    with pytest.raises(PlanError, match="repeat must be a whole number of at least 1"):
        release.run(repeat=repeat)
    assert not (tmp_path / "visits.ledger").exists()
    release.run()
    with pytest.raises(PlanError, match="repeat must be a whole number of at least 1"):
        release.run(repeat=repeat)


def test_the_manifest_names_the_type_of_every_column(tmp_path):
    release = write_visits(tmp_path)
    load(release).run(output=tmp_path / "out")
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    [table] = manifest["tables"]
    types = dict(zip(table["columns"], table["types"], strict=True))
    assert types["zone"] == "string"
    assert {types["low"], types["high"]} <= {"integer", "number"}


MISSING = {
    "file": ("gone.csv", "got 'gone.csv', which does not exist."),
    "folder": ("nowhere/gone.csv", "got 'nowhere/gone.csv', which does not exist."),
    "pattern": ("weeks/*.csv", "got 'weeks/*.csv', which has none."),
    "database": ("gone.duckdb#t", "got 'gone.duckdb', which does not exist."),
    "address": ("duckdb://gone.duckdb", "got 'gone.duckdb', which does not exist."),
}


@pytest.mark.parametrize("table", sorted(MISSING))
@pytest.mark.parametrize("ledger", ["none", "mistyped", "other", "spent", "beside"])
def test_a_table_that_is_not_there_is_told_before_all_else(tmp_path, table, ledger):
    name, words = MISSING[table]
    first = write_visits(tmp_path)
    other = tmp_path / "visits.ledger"
    if ledger in ("spent", "beside"):
        load(first).run()
    elif ledger == "other":  # of rows that belong to nobody
        by_row = {"source": {"per": "event"}, "bounds": {}}
        promise = {"granularity": "event", "epsilon": "1"}
        event = write_visits(tmp_path, name="e.toml", promise=promise, **by_row)
        load(event).create_ledger(other).close()
    source = {"table": name, "format": "duckdb" if table == "address" else None}
    source = {key: value for key, value in source.items() if value}
    path = write_visits(tmp_path, name="gone.toml", source=source)
    given = {"mistyped": tmp_path / "none.ledger", "other": other, "spent": other}
    extra = ["--ledger", given[ledger]] if ledger in given else []
    before = {p: p.stat().st_size for p in tmp_path.rglob("*")}
    done = invoke("release", "run", path, "--output", tmp_path / "out", *extra)
    assert done.exit_code == 2
    [said] = done.stderr.splitlines()
    assert said.startswith("table must name")
    assert said.endswith(words)
    assert {p: p.stat().st_size for p in tmp_path.rglob("*")} == before
    checked = invoke("release", "check", path)
    assert (checked.exit_code, checked.stderr) == (2, f"{said}\n")
    plan = invoke("release", "plan", path)
    assert plan.exit_code == 0
    assert plan.stderr == f"A run would be refused: {said}\n"


def test_a_limit_of_the_check_that_is_too_low_is_bad_input(tmp_path):
    path = write_visits(tmp_path, check={"units_at_least": 1})
    for command in ("plan", "check", "run"):
        done = invoke("release", command, path)
        assert done.exit_code == 2
        assert "check.units_at_least must be at least" in done.stderr
    assert not (tmp_path / "visits.ledger").exists()


@pytest.mark.parametrize("option", ["password", "PASSWORD", "pgpassword"])
def test_a_password_among_the_options_of_a_url_is_told_where_it_goes(tmp_path, option):
    url = f"postgres://me@127.0.0.1:1/db?{option}=s3cret"
    path = write_visits(tmp_path, source={"table": url, "relation": "visits"})
    load(write_visits(tmp_path, name="here.toml")).create_ledger(
        tmp_path / "x.ledger"
    ).close()
    done = invoke("release", "run", path, "--ledger", tmp_path / "x.ledger")
    assert done.exit_code == 2
    assert "s3cret" not in done.stderr
    assert f"options of the URL must hold no password, got {option!r}" in done.stderr
    for way in ("~/.pgpass", "PGPASSWORD", "after a colon, between the user and the @"):
        assert way in done.stderr
    with BudgetLedger.open(tmp_path / "x.ledger") as ledger:
        assert ledger.history() == []
