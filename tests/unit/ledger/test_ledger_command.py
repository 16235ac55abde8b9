"""`undertow ledger`: sentences, JSON and exit statuses."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from contextlib import closing
from fractions import Fraction

import pytest

import undertow as ut
from support.command import invoke, run
from support.release_documents import write_visits
from undertow.cli import ledger as ledger_inputs
from undertow.cli.ledger import read_budgets
from undertow.composition import Claim
from undertow.errors import LedgerError
from undertow.ledger import BudgetLedger

DOMAIN = '{"kind": "stream", "users": 1000, "times": 24}'


def hour(at, epsilon="0.25"):
    return ut.Release(
        f"hour {at}",
        ut.Pure(epsilon),
        unit=ut.User(),
        view=ut.At(at),
        setting="view",
    )


def init(path, *rest):
    return invoke(
        "ledger",
        "init",
        path,
        "--dataset",
        "steps",
        "--granularity",
        "user=epsilon:1/3",
        "--granularity",
        "w-event:2=epsilon:1",
        *(rest or ("--domain", DOMAIN)),
    )


@pytest.fixture
def path(tmp_path):
    where = tmp_path / "steps.ledger"
    assert init(where).exit_code == 0
    with BudgetLedger.open(where) as ledger:
        charge = ledger.charge([hour(1, "0.1")], key="a", label="[bold]one[/bold]")
        ledger.store(charge, b"42")
        ledger.charge([hour(2, "0.1")], key="b")
        ledger.fail(ledger.charge([hour(3, "0.1")], key="c"), "no engine")
    return where


def record(*words):
    done = invoke("ledger", *words, "--json")
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_init_makes_a_ledger_for_its_owner(tmp_path):
    done = init(tmp_path / "a")
    assert done.exit_code == 0
    assert "holds the budget of steps" in done.stdout
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert record("show", tmp_path / "a")["domain"] == json.loads(DOMAIN)


def test_init_takes_the_domain_of_a_file(tmp_path):
    (tmp_path / "d.json").write_text(DOMAIN)
    (tmp_path / "p.toml").write_text(
        '[domain]\nkind = "stream"\nusers = 1000\ntimes = 24\n'
    )
    for at, name in enumerate(("d.json", "p.toml")):
        done = init(tmp_path / f"{at}", "--domain", f"@{tmp_path / name}", "--json")
        assert json.loads(done.stdout)["domain"] == json.loads(DOMAIN)


@pytest.mark.parametrize(
    ("rest", "words"),
    [
        (("--domain", "{{"), "domain must be JSON text"),
        (("--domain", '{{"kind": "sphere"}}'), "kind of domain must be one of"),
        (("--domain", "@none.toml"), "none.toml must be a readable file"),
        (("--domain", "@none.json"), "none.json"),
        (("--domain", "@{folder}/broken.toml"), "must be a TOML file, got another"),
        (("--domain", "@{folder}/large.toml"), "must be a plan file, got a larger"),
        (("--release", "none.toml"), "none.toml"),
        (("--json",), "--domain or --release, got both or neither"),
        (("--domain", '{{"kind": "graph", "vertices": 4}}'), "user"),
    ],
)
def test_init_refuses_bad_domains_and_leaves_nothing(
    tmp_path, tmp_path_factory, monkeypatch, rest, words
):
    other = tmp_path_factory.mktemp("inputs")
    (other / "broken.toml").write_text("kind = ")
    (other / "large.toml").write_text("# " + "x" * 200)
    monkeypatch.setattr(ledger_inputs, "LARGEST_FILE", 100)
    done = init(tmp_path / "a", *(word.format(folder=other) for word in rest))
    assert done.exit_code == 2
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_budgets_are_read_in_every_currency():
    assert read_budgets(
        ["user=epsilon:1,delta:1e-6", "event=rho:0.5", "w-event:3=mu:2"]
    ) == {
        ut.User(): ut.Approx(1, "1e-6"),
        ut.Event(): ut.ZCDP("0.5"),
        ut.WEvent(3): ut.GDP(2),
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["user"], "must be given with its budget"),
        (["user=1"], "a budget must be epsilon"),
        (["user=epsilon:-1"], "non-negative"),
        (["nobody=epsilon:1"], "nobody"),
        (["user=epsilon:1", "user=rho:1"], "one budget, got two"),
    ],
)
def test_bad_budgets_are_refused_in_one_sentence(words, message):
    with pytest.raises(LedgerError, match=message):
        read_budgets(words)


def test_show_says_what_is_left_and_what_waits(path):
    done = invoke("ledger", "show", path)
    assert "3 charges: 1 with output, 1 waiting for it, 1 closed" in done.stdout
    assert "5 entries" in done.stdout
    shown = record("show", path)
    assert shown["charges"] == {"charged": 1, "done": 1, "spoiled": 1}
    assert shown["dataset"] == "steps"


def test_remaining_rounds_what_is_left_down(path):
    budgets = {b["name"]: b for b in record("remaining", path)["budgets"]}
    assert budgets["user"]["left"]["exact"] == ["1/30"]
    assert Fraction(budgets["user"]["left"]["epsilon"]) <= Fraction(1, 30)
    assert budgets["user"]["spent"]["exact"] == ["3/10"]
    assert Fraction(budgets["user"]["spent"]["epsilon"]) >= Fraction(3, 10)
    shown = invoke("ledger", "remaining", path).stdout
    assert "ε = 0.333334" in shown
    assert "ε = 0.0333333" in shown
    assert "w-event:2" in invoke("ledger", "remaining", path).stdout


def test_other_currencies_are_shown_rounded_to_the_safe_side(tmp_path):
    where = tmp_path / "a"
    words = ["user=mu:1", "w-event:2=epsilon:1,delta:1e-6"]
    budgets = {**read_budgets(words), ut.Event(): ut.Pure("inf")}
    BudgetLedger.create(
        where, dataset="d", domain=ut.Stream(1000, 24), budgets=budgets
    ).close()
    assert "ε = ∞" in invoke("ledger", "show", where).stdout
    claims = [
        Claim(ut.GDP("0.1"), ut.User(), "view"),
        Claim(ut.Pure("0.1"), ut.User(), "view"),
    ]
    with BudgetLedger.open(where) as ledger:
        release = ut.Release.with_claims("r", claims, view=ut.At(1))
        ledger.charge([release], key="a")
    budgets = {b["name"]: b for b in record("remaining", where)["budgets"]}
    (spent,) = map(Fraction, budgets["user"]["spent"]["exact"])
    assert 0 < spent <= Fraction(1, 100)
    left = Fraction(budgets["user"]["left"]["mu"])
    assert left**2 <= 1 - spent
    assert budgets["event"]["left"]["epsilon"] == "inf"
    assert budgets["w-event:2"]["left"]["exact"] == ["9/10", "1/1000000"]


def test_init_takes_the_domain_of_a_release_file(tmp_path):
    done = invoke(
        "ledger",
        "init",
        tmp_path / "a",
        "--dataset",
        "steps",
        "--granularity",
        "user=epsilon:3",
        "--release",
        write_visits(tmp_path),
        "--json",
    )
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["domain"]["kind"] == "stream"


def test_init_refuses_terms_that_do_not_fit(tmp_path):
    done = invoke(
        "ledger",
        "init",
        tmp_path / "a",
        "--dataset",
        "",
        "--granularity",
        "user=epsilon:1",
        "--domain",
        DOMAIN,
    )
    assert done.exit_code == 2
    assert "dataset must be a non-empty text" in done.stderr


def test_history_lists_entries_and_shows_labels_as_they_are(path):
    assert [e["kind"] for e in record("history", path)["entries"]] == [
        "charge",
        "output",
        "charge",
        "charge",
        "failure",
    ]
    part = record("history", path, "--after", "2", "--limit", "1")["entries"]
    assert [entry["key"] for entry in part] == ["b"]
    assert "[bold]one[/bold]" in invoke("ledger", "history", path).stdout


def test_verify_accepts_what_was_written_and_a_head_kept_elsewhere(path):
    head = record("show", path)["head"]["hash"]
    assert record("verify", path, "--head", head) == {"sound": True, "faults": []}
    assert "as it was written" in invoke("ledger", "verify", path).stdout
    done = invoke("ledger", "verify", path, "--head", "0" * 64)
    assert done.exit_code == 3
    assert "replaced or rewritten" in done.stderr


def test_verify_refuses_an_edited_ledger_with_status_3(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as link:
        link.execute("DROP TRIGGER ledger_entries_update")
        link.execute("UPDATE ledger_entries SET body = replace(body, '1/10', '1/9')")
    done = invoke("ledger", "verify", path)
    assert done.exit_code == 3
    assert "entry 1 must be as written, got an edited one" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    found = json.loads(invoke("ledger", "verify", path, "--json").stdout)
    assert not found["sound"]
    assert found["faults"][0]["number"] == 1


def test_verify_refuses_unreadable_terms_with_status_3(path):
    with closing(sqlite3.connect(path, isolation_level=None)) as link:
        link.execute("DROP TRIGGER ledger_terms_update")
        link.execute("UPDATE ledger_terms SET body = 'x'")
    assert invoke("ledger", "verify", path).exit_code == 3
    assert invoke("ledger", "show", path).exit_code == 2


def test_export_writes_a_new_file_for_its_owner(path, tmp_path):
    target = tmp_path / "out.json"
    assert invoke("ledger", "export", path, "--output", target).exit_code == 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert json.loads(target.read_text()) == json.loads(
        invoke("ledger", "export", path).stdout
    )
    again = invoke("ledger", "export", path, "--output", target)
    assert again.exit_code == 2
    assert "must be a new file" in again.stderr
    other = record("export", path, "--output", tmp_path / "b.json")
    assert other["head"]["count"] == 5


@pytest.mark.parametrize(
    "command", ["show", "history", "remaining", "verify", "export"]
)
def test_no_ledger_is_one_sentence_and_status_2(tmp_path, command):
    done = invoke("ledger", command, tmp_path / "none")
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "got no such file" in done.stderr


def test_a_missing_extra_is_one_sentence(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(
        "import importlib.util as u\n"
        "found = u.find_spec\n"
        "def find_spec(name, package=None):\n"
        "    return None if name == 'alembic' else found(name, package)\n"
        "u.find_spec = find_spec\n"
    )
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = run("ledger", "show", "x", env=environment)
    assert done.returncode == 2
    assert done.stderr.decode() == (
        "alembic must be installed for a ledger, got no such module; run pip install "
        "'undertow[ledger]'.\n"
    )
