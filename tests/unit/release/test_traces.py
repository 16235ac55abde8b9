"""What earlier runs left is seen: lost ledgers, other tables, other releases."""

from __future__ import annotations

import json
import shutil

import pyarrow as pa
import pytest

from support.command import invoke
from support.release_documents import visits_mapping, write_visits
from undertow.errors import BudgetError, PlanError
from undertow.ledger import BudgetLedger
from undertow.privacy import Pure
from undertow.release import from_table, load
from undertow.release.document.release_document import release_from_mapping
from undertow.release.run import protocol as run_module
from undertow.release.run import record as earlier
from undertow.release.run._earlier import require_own_folder
from undertow.release.run.record import former_key, release_key
from undertow.release.source._place import former_place, table_of
from undertow.spaces import Stream, User

LEDGER = "visits.ledger"
TOTAL = {"by": [], "keys": {}}


def folders(tmp_path, *names):
    """Folders with the same release text and another table each."""
    paths = []
    for at, name in enumerate(names):
        (tmp_path / name).mkdir()
        rows = [f"{k},A" for k in range(1 + 500 * at)]
        paths.append(write_visits(tmp_path / name, rows))
    return paths


def shared(tmp_path, epsilon=3):
    return BudgetLedger.create(
        tmp_path / "shared.ledger",
        dataset="visits",
        domain=Stream(10**9, 1),
        budgets={User(): Pure(epsilon)},
    )


def remove(folder):
    for path in folder.glob(f"{LEDGER}*"):
        path.unlink()


def run(path, *words):
    return invoke("release", "run", path, *words)


# A ledger that was there.


def test_a_ledger_that_was_deleted_is_not_made_anew(tmp_path):
    path = write_visits(tmp_path)
    load(path).run()
    remove(tmp_path)
    done = run(path, "--repeat", "2")
    assert done.exit_code == 3
    assert len(done.stderr.splitlines()) == 1
    assert f"{LEDGER} must be there, got none although" in done.stderr
    assert "(entry 1); put it back" in done.stderr
    assert "undertow ledger init" in done.stderr
    assert not (tmp_path / LEDGER).exists()


def test_a_ledger_that_is_put_back_is_used_again(tmp_path):
    path = write_visits(tmp_path)
    load(path).run()
    (tmp_path / LEDGER).rename(tmp_path / "kept")
    with pytest.raises(BudgetError, match="put it back"):
        load(path).run()
    (tmp_path / "kept").rename(tmp_path / LEDGER)
    assert load(path).run().repeated


def test_a_ledger_that_was_deleted_is_not_made_elsewhere_either(tmp_path):
    path = write_visits(tmp_path)
    load(path).create_ledger(tmp_path / "here.ledger").close()
    load(path).run(ledger=tmp_path / "here.ledger")
    done = run(path, "--ledger", tmp_path / "there.ledger", "--repeat", "2")
    assert done.exit_code == 3
    assert "there.ledger must be there, got none although" in done.stderr
    assert not (tmp_path / "there.ledger").exists()
    # Elsewhere it is made by nobody but a person.
    new = ("--ledger", tmp_path / "there.ledger", "--output", tmp_path / "there")
    assert run(path, *new).exit_code == 2
    assert not (tmp_path / "there.ledger").exists()
    load(path).create_ledger(tmp_path / "there.ledger").close()
    assert run(path, *new).exit_code == 0


def test_a_plan_says_that_the_ledger_was_deleted(tmp_path):
    path = write_visits(tmp_path)
    assert invoke("release", "plan", path).stderr == ""
    load(path).run()
    assert invoke("release", "plan", path).stderr == ""
    remove(tmp_path)
    done = invoke("release", "plan", path, "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["granularity"] == "user"
    assert len(done.stderr.splitlines()) == 1
    assert "A run without --ledger would be refused: the ledger" in done.stderr
    assert not (tmp_path / LEDGER).exists()


def test_a_plan_of_a_table_on_a_server_asks_for_no_ledger(tmp_path):
    server = {"table": "postgres://me@127.0.0.1:1/db", "relation": "visits"}
    done = invoke("release", "plan", write_visits(tmp_path, source=server))
    assert (done.exit_code, done.stderr) == (0, "")


def test_a_ledger_made_on_purpose_is_used(tmp_path):
    path = write_visits(tmp_path)
    load(path).run()
    remove(tmp_path)
    words = ("--dataset", "visits", "--granularity", "user=epsilon:1")
    made = invoke("ledger", "init", tmp_path / LEDGER, *words, "--release", path)
    assert made.exit_code == 0, made.stderr
    assert run(path).exit_code == 0


def test_a_ledger_of_another_place_that_is_there_is_used(tmp_path):
    path = write_visits(tmp_path)
    load(path).run()
    remove(tmp_path)
    with shared(tmp_path) as ledger:
        address = ledger.name
    assert not load(path).run(ledger=address).repeated


def test_another_table_is_no_trace(tmp_path):
    path = write_visits(tmp_path)
    load(path).run()
    shutil.copy(tmp_path / "visits.csv", tmp_path / "more.csv")
    source = {"table": "more.csv", "unit": "zone"}
    more = write_visits(tmp_path, name="more.toml", source=source, query=TOTAL)
    assert not load(more).run(output=tmp_path / "more").repeated
    assert (tmp_path / "more.ledger").exists()


@pytest.mark.parametrize("name", ["visits.csv", "./visits.csv", "again.csv"])
def test_another_file_of_the_table_is_told_by_the_folder_of_the_first(tmp_path, name):
    load(write_visits(tmp_path)).run(output=tmp_path / "out")
    remove(tmp_path)
    (tmp_path / "again.csv").symlink_to(tmp_path / "visits.csv")
    other = write_visits(tmp_path, name="other.toml", source={"table": name})
    with pytest.raises(BudgetError, match=r"out/manifest\.json says that releases of"):
        load(other).run(output=tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_runs_of_a_continual_release_are_traces(tmp_path):
    release = hourly(tmp_path)
    load(release).run(as_of="2026-01-01T01:00")
    remove(tmp_path)
    with pytest.raises(BudgetError, match=r"run-\d+/manifest\.json says"):
        load(release).run(as_of="2026-01-01T02:00")


def hourly(folder, name="hourly.toml", query=None):
    rows = ["1,A,2026-01-01T00:05:00", "2,B,2026-01-01T01:05:00"]
    return write_visits(
        folder,
        rows,
        columns="person,zone,ts",
        name=name,
        source={
            "types": {"ts": "timestamp"},
            "time": "ts",
            "per": {"window": "1h"},
            "start": "2026-01-01",
            "horizon": "8h",
        },
        promise={"granularity": "event", "epsilon": "1"},
        query=query or {},
    )


@pytest.mark.parametrize("left", ["-wal", ".schema1.bak"])
def test_what_a_ledger_leaves_beside_it_is_a_trace(tmp_path, left):
    path = write_visits(tmp_path)
    (tmp_path / f"{LEDGER}{left}").write_bytes(b"something")
    with pytest.raises(BudgetError, match=f"although .*{left} is"):
        load(path).run()
    assert not (tmp_path / LEDGER).exists()


def test_a_ledger_that_is_emptied_is_not_made_anew(tmp_path):
    path = write_visits(tmp_path)
    load(path).run()
    (tmp_path / LEDGER).write_bytes(b"")
    with pytest.raises(BudgetError, match="put it back"):
        load(path).run()


def test_a_run_that_ends_meanwhile_is_no_lost_ledger(tmp_path, monkeypatch):
    from undertow.release import release_file

    path, asked = write_visits(tmp_path), []
    real = release_file.has_ledger

    def overtaken(address):
        if not asked:
            asked.append(address)
            load(path).run()
            return False
        return real(address)

    monkeypatch.setattr(release_file, "has_ledger", overtaken)
    assert load(path).run().repeated


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "{}", '{"format": "undertow release 1", "document": 3}']
)
def test_other_manifests_beside_the_file_are_no_traces(tmp_path, text):
    path = write_visits(tmp_path)
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "manifest.json").write_text(text)
    assert not load(path).run().repeated


# One release text, two tables.


def test_tables_of_one_name_in_two_folders_have_an_answer_each(tmp_path):
    first, second = folders(tmp_path, "a", "b")
    with shared(tmp_path) as ledger:
        one, two = load(first).run(ledger=ledger), load(second).run(ledger=ledger)
        assert not two.repeated
        assert ledger.remaining(User()) == Pure(1)
        # Noise of scale 4: one visit and 501 are told apart.
        assert one.answers[0]["rows"][0][1] < 250 < two.answers[0]["rows"][0][1]
        for path, done in ((first, one), (second, two)):
            again = load(path).run(ledger=ledger)
            assert again.repeated
            assert again.answers == done.answers
        assert ledger.remaining(User()) == Pure(1)


def test_a_folder_that_is_moved_with_its_ledger_finds_what_was_released(tmp_path):
    (path,) = folders(tmp_path, "a")
    done = load(path).run()
    (tmp_path / "a").rename(tmp_path / "b")
    again = load(tmp_path / "b" / path.name).run()
    assert again.repeated
    assert again.answers == done.answers


def test_aliases_of_a_folder_are_one_table(tmp_path):
    (path,) = folders(tmp_path, "a")
    (tmp_path / "alias").symlink_to(tmp_path / "a")
    with shared(tmp_path) as ledger:
        load(path).run(ledger=ledger)
        assert load(tmp_path / "alias" / path.name).run(ledger=ledger).repeated


def test_no_path_of_the_machine_is_written(tmp_path):
    first, second = folders(tmp_path, "place-of-a", "place-of-b")
    with shared(tmp_path) as ledger:
        for path in (first, second):
            load(path).run(ledger=ledger, output=path.parent / "out")
            text = (path.parent / "out" / "manifest.json").read_text()
            assert "place-of-" not in text
            assert str(tmp_path) not in text
        assert "place-of-" not in json.dumps(ledger.export())


def charged_before(path, ledger, monkeypatch):
    """Run as an earlier version did: a key that knows the name of the table alone."""
    with monkeypatch.context() as patch:
        patch.setattr(earlier, "run_keys", first_keys)
        patch.setattr(run_module, "run_keys", first_keys)
        return load(path).run(ledger=ledger)


def first_keys(plan, _, **which):
    """The key of the first versions."""
    return earlier.RunKeys((former_key(plan, **which),))


def test_what_earlier_versions_stored_is_found_and_said(tmp_path, monkeypatch):
    first, second = folders(tmp_path, "a", "b")
    with shared(tmp_path) as ledger:
        old = charged_before(first, ledger, monkeypatch)
        assert old.charge.key == former_key(load(first).plan())
        for path in (first, second):
            done = load(path).run(ledger=ledger)
            assert done.repeated
            assert done.answers == old.answers
            assert "ask for another repeat if it was another table." in done.story
        assert ledger.remaining(User()) == Pure(2)
        other = load(second).run(ledger=ledger, repeat=2)
        assert not other.repeated
        assert "another table" not in other.story
        assert ledger.remaining(User()) == Pure(1)


def test_what_earlier_versions_charged_is_finished_once(tmp_path, monkeypatch):
    first, second = folders(tmp_path, "a", "b")
    with shared(tmp_path) as ledger:
        plan = load(first).plan()
        ledger.charge(plan.releases, key=former_key(plan))
        done = load(second).run(ledger=ledger)
        assert done.resumed
        assert load(first).run(ledger=ledger).answers == done.answers
        assert ledger.remaining(User()) == Pure(2)


def test_running_totals_go_on_from_earlier_versions(tmp_path, monkeypatch):
    totals = {"running": True, "by": [], "keys": {}}
    path = hourly(tmp_path, query=totals)
    with monkeypatch.context() as patch:
        patch.setattr(earlier, "run_keys", first_keys)
        patch.setattr(run_module, "run_keys", first_keys)
        for hour in (1, 2):
            load(path).run(as_of=f"2026-01-01T0{hour}:00")
    third = load(path).run(as_of="2026-01-01T03:00")
    assert not third.repeated
    assert not third.by_name


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ({"table": "a/visits.csv"}, "../data/a/visits.csv"),
        ({"table": "a/*.parquet"}, "../data/a/*.parquet"),
        ({"table": "duckdb://city.db", "relation": "x"}, "../data/city.db"),
        ({"table": "spark://local", "relation": "x.parquet"}, "../data/x.parquet"),
        ({"table": "spark://local#y.parquet"}, "../data/y.parquet"),
        ({"table": "spark://local", "relation": "x"}, None),
        ({"table": "postgres://me@host/db", "relation": "x"}, None),
        ({"table": "/data/visits.csv"}, None),
    ],
)
def test_the_place_in_former_keys_is_said_from_the_ledger(tmp_path, source, place):
    (tmp_path / "data").mkdir()
    (tmp_path / "ledgers").mkdir()
    file = write_visits(tmp_path / "data", source=source)
    assert former_place(load(file).document, tmp_path / "ledgers") == place
    whole = former_place(load(file).document, None)
    assert whole == (place and str(tmp_path / place.removeprefix("../")))


def test_a_table_in_memory_has_no_place():
    document = release_from_mapping(visits_mapping(), in_memory=True)
    assert former_place(document, None) is None
    assert table_of(document) is None


# One folder, two releases.


def test_a_folder_of_another_release_is_refused_before_a_charge(tmp_path):
    first = write_visits(tmp_path)
    other = write_visits(tmp_path, name="other.toml", query={"name": "others"})
    with BudgetLedger.create(
        tmp_path / LEDGER,
        dataset="visits",
        domain=Stream(10**9, 1),
        budgets={User(): Pure(2)},
    ) as ledger:
        load(first).run()
        before = {p.name: p.read_bytes() for p in (tmp_path / "release").iterdir()}
        done = run(other)
        assert done.exit_code == 2
        assert len(done.stderr.splitlines()) == 1
        assert "which holds 'visits', for 'other'; name another one" in done.stderr
        assert ledger.remaining(User()) == Pure(1)
        after = {p.name: p.read_bytes() for p in (tmp_path / "release").iterdir()}
        assert after == before
        assert run(other, "--output", tmp_path / "other").exit_code == 0
        assert load(first).run().repeated


def test_a_folder_of_another_release_leaves_no_ledger(tmp_path):
    load(write_visits(tmp_path)).run()
    (tmp_path / "more.csv").write_text("house,zone\n1,A\n")
    source = {"table": "more.csv", "unit": "house"}
    other = write_visits(tmp_path, name="other.toml", source=source)
    with pytest.raises(PlanError, match="a folder of its own for every release"):
        load(other).run()
    assert not (tmp_path / "more.ledger").exists()


def test_the_runs_of_one_release_do_not_mix_with_those_of_another(tmp_path):
    first, other = hourly(tmp_path), hourly(tmp_path, "other.toml")
    load(first).run(as_of="2026-01-01T01:00")
    with pytest.raises(PlanError, match="which holds 'hourly', for 'other'"):
        load(other).run(as_of="2026-01-01T02:00")
    assert not load(first).run(as_of="2026-01-01T02:00").repeated


CHANGES = {
    "another budget": {"promise": {"granularity": "user", "epsilon": "2"}},
    "another bound": {"bounds": {"rows_per_unit": 1}},
    "other keys": {"query": {"keys": {"zone": ["A"]}}},
    "another name": {"query": {"name": "stays"}},
    "another condition": {"query": {"where": "zone != 'C'"}},
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_release_whose_file_was_changed_needs_another_folder(tmp_path, name):
    path = write_visits(tmp_path)
    with shared(tmp_path) as ledger:
        load(path).run(ledger=ledger)
        folder = tmp_path / "release"
        before = {p.name: p.read_bytes() for p in folder.iterdir()}
        write_visits(tmp_path, **CHANGES[name])
        done = run(path, "--ledger", ledger.name)
        assert done.exit_code == 3
        assert len(done.stderr.splitlines()) == 1
        assert "which holds 'visits' as its file was before it was chang" in done.stderr
        assert "--output" in done.stderr
        assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
        assert ledger.remaining(User()) == Pure(2)
        # Elsewhere it is a release like others, and the folder is there for the first.
        words = ("--ledger", ledger.name, "--output", tmp_path / "other")
        assert run(path, *words).exit_code == 0
        write_visits(tmp_path)
        assert load(path).run(ledger=ledger).repeated


def test_a_file_that_says_the_same_in_other_words_keeps_its_folder(tmp_path):
    path = write_visits(tmp_path)
    load(path).run()
    write_visits(
        tmp_path,
        promise={"epsilon": "1.00", "confidence": "0.95"},
        output={"format": "parquet"},
    )
    assert load(path).run().repeated


def test_the_runs_of_a_release_whose_file_was_changed_need_another_folder(tmp_path):
    load(hourly(tmp_path)).run(as_of="2026-01-01T01:00")
    changed = hourly(tmp_path, query={"keys": {"zone": ["A"]}})
    with pytest.raises(BudgetError, match="run-000001, which holds 'hourly' as its"):
        load(changed).run(as_of="2026-01-01T02:00")


def test_a_folder_holds_the_tables_of_its_manifest_alone(tmp_path):
    path, folder = write_visits(tmp_path), tmp_path / "release"
    load(path).run()
    (folder / "notes.txt").write_text("mine")
    write_visits(tmp_path, output={"format": "parquet"})
    load(path).run()
    named = {"01-visits.parquet", "manifest.json", "notes.txt"}
    assert {p.name for p in folder.iterdir()} == named
    (folder / "01-visits.parquet").write_bytes(b"edited")
    write_visits(tmp_path)
    load(path).run()
    assert {p.name for p in folder.iterdir()} == {*named, "01-visits.csv"}


def test_a_manifest_of_something_else_is_not_overwritten(tmp_path):
    path = write_visits(tmp_path)
    (tmp_path / "release").mkdir()
    manifest = tmp_path / "release" / "manifest.json"
    manifest.write_text('{"name": "an app"}')
    with pytest.raises(PlanError, match=r"whose manifest\.json is of something else"):
        load(path).run()
    assert manifest.read_text() == '{"name": "an app"}'
    assert not (tmp_path / LEDGER).exists()


def test_an_absent_folder_is_free(tmp_path):
    asked = load(write_visits(tmp_path)).document
    require_own_folder(tmp_path / "new", "visits", asked)
    require_own_folder(tmp_path / "new" / "run-000001", "visits", asked)


# Two runs at once.


VISITS = pa.table({"person": [1, 2], "zone": ["A", "B"]})


def race(ledger, monkeypatch, method):
    """Let another run go first when this one is about to call a method."""
    release, other = from_table(VISITS, visits_mapping()), []
    real = getattr(ledger, method)

    def second_is_faster(*given, **named):
        if not other:
            other.append(None)
            monkeypatch.setattr(ledger, method, real)
            other[0] = release.run(ledger=ledger)
        return real(*given, **named)

    monkeypatch.setattr(ledger, method, second_is_faster)
    return release.run(ledger=ledger), other[0]


def test_who_finds_the_charge_of_another_run_does_not_say_it_charged(
    tmp_path, monkeypatch
):
    with shared(tmp_path) as ledger:
        slower, faster = race(ledger, monkeypatch, "charge")
        assert "Charged as entry 1" in faster.story
        assert slower.repeated
        assert not slower.resumed
        assert "released before (entry 1 of the ledger)" in slower.story
        assert slower.answers == faster.answers


def test_who_charged_says_so_whoever_stored(tmp_path, monkeypatch):
    with shared(tmp_path) as ledger:
        slower, faster = race(ledger, monkeypatch, "store")
        assert slower.story == "Charged as entry 1 of the ledger."
        assert faster.resumed
        assert "was charged (entry 1) and had no output yet" in faster.story
        assert slower.answers == faster.answers
        assert ledger.remaining(User()) == Pure(2)


def test_who_resumes_and_is_overtaken_returns_what_was_stored(tmp_path, monkeypatch):
    with shared(tmp_path) as ledger:
        plan = from_table(VISITS, visits_mapping()).plan()
        ledger.charge(plan.releases, key=release_key(plan))
        slower, faster = race(ledger, monkeypatch, "store")
        assert (faster.resumed, faster.repeated) == (True, False)
        assert (slower.resumed, slower.repeated) == (False, True)
        assert slower.answers == faster.answers
