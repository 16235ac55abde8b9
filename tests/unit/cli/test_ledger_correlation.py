"""`undertow ledger init --correlation`: what may leak under which model."""

from __future__ import annotations

import json
from contextlib import chdir
from fractions import Fraction

import pytest

import undertow as ut
from support.command import invoke
from support.release_documents import write_visits
from undertow.correlation import Blocks, MarkovChain, calibrate
from undertow.errors import BudgetExceeded
from undertow.ledger import BudgetLedger, LeakageBudget
from undertow.release import load

WINDOWS = '{"kind": "stream", "users": 1000, "times": 24}'
FAMILIES = 'families={model="blocks", group=4, leakage=1}'
STEPS = "model = 'markov'\ntransition = [[0.9, 0.1], [0.2, 0.8]]\n"


def init(path, *models, where=("--domain", WINDOWS), rest=()):
    words = [word for model in models for word in ("--correlation", model)]
    given = ("--dataset", "steps", "--granularity", "user=epsilon:3", *where)
    return invoke("ledger", "init", path, *given, *words, *rest)


def models_of(path, *models, **options):
    done = init(path, *models, **options)
    assert done.exit_code == 0, done.stderr
    with BudgetLedger.open(path, read_only=True) as ledger:
        return ledger.models


def test_the_command_makes_what_python_makes(tmp_path):
    found = models_of(tmp_path / "a", FAMILIES)["families"]
    stated = LeakageBudget.from_calibration(
        calibrate(Blocks.of_size(4, groups=1), 1.0),
        granularity=ut.User(),
        model=found.model,
    )
    assert found == LeakageBudget.from_document(stated.to_document())
    assert found.model["model"] == "blocks"
    assert found.model["group"] == 4


def test_the_model_limits_what_is_charged(tmp_path):
    models_of(tmp_path / "a", FAMILIES)
    release = ut.Release(
        "hour", ut.Pure("1/4"), unit=ut.User(), view=ut.At(8), setting="view"
    )
    with BudgetLedger.open(tmp_path / "a") as ledger:
        ledger.charge([release], key="first")
        with pytest.raises(BudgetExceeded, match="model:families budget"):
            ledger.charge([release], key="second")
        assert ledger.remaining(ut.User()) == ut.Pure("11/4")


def test_init_and_show_say_what_may_leak(tmp_path):
    said = "model:families keeps what leaks about one user within 1 by Theorem 6.3"
    assert said in init(tmp_path / "a", FAMILIES).stdout
    assert said in invoke("ledger", "show", tmp_path / "a").stdout
    shown = json.loads(invoke("ledger", "show", tmp_path / "a", "--json").stdout)
    assert shown["models"]["families"]["epsilon"] == "1/4"
    assert shown["models"]["families"]["leakage"] == "1"


def test_several_models_come_from_options_and_from_a_file(tmp_path):
    (tmp_path / "m.toml").write_text(
        f"[steps]\n{STEPS}leakage = '1/2'\ngranularity = 'event'\n"
        "[pairs]\nmodel = 'gaussian'\ncorrelation = 0.3\ngroup = 2\nleakage = 2\n"
    )
    found = models_of(tmp_path / "a", FAMILIES, f"@{tmp_path / 'm.toml'}")
    assert sorted(found) == ["families", "pairs", "steps"]
    chain = MarkovChain([[0.9, 0.1], [0.2, 0.8]], length=24)
    assert found["steps"].granularity == ut.Event()
    assert found["steps"].leakage == Fraction(1, 2)
    level = calibrate(chain, 0.5).value
    assert float(found["steps"].epsilon) == pytest.approx(level, rel=1e-15)
    assert Fraction(found["steps"].epsilon) <= Fraction(level)


def test_a_chain_inside_of_units_leaks_the_level_about_units(tmp_path):
    found = models_of(tmp_path / "a", 'steps={model="markov", gamma=3, leakage="1/3"}')
    assert found["steps"].epsilon == Fraction(1, 3)
    assert "whole units" in found["steps"].theorem


def test_a_chain_is_fitted_to_a_file_beside_the_models(tmp_path):
    series = [f"{k % 7},{'AB'[(k // 3) % 2]}" for k in range(4000)]
    (tmp_path / "public.csv").write_text("\n".join(["who,active", *series, ""]))
    (tmp_path / "m.toml").write_text(
        "[steps]\nmodel = 'markov'\nstates = 'active'\nfit = 'public.csv'\n"
        "unit = 'who'\nleakage = 1\ngranularity = 'event'\n"
    )
    found = models_of(tmp_path / "a", f"@{tmp_path / 'm.toml'}")["steps"]
    assert 0 < found.epsilon < 1
    assert found.model["fit"] == "public.csv"
    (tmp_path / "m.toml").write_text(
        "[steps]\nmodel = 'markov'\nstates = 'active'\nfit = 'none.csv'\nleakage = 1\n"
    )
    done = init(tmp_path / "b", f"@{tmp_path / 'm.toml'}")
    assert done.exit_code == 2
    assert "'steps': fit must be a readable public table, got none.csv" in done.stderr


def test_a_chain_is_not_fitted_to_a_file_whose_times_go_back(tmp_path):
    (tmp_path / "release.toml").write_text(
        "[source]\ntable = 'visits.csv'\nunit = 'who'\ntime = 'ts'\n"
        "per = {window = '1h'}\nstart = '2026-01-01'\nhorizon = '24h'\n"
        "types = {ts = 'timestamp'}\n[promise]\nepsilon = 1\ngranularity = 'event'\n"
        "[bounds]\nrows_per_unit = 1\n[[queries]]\nname = 'n'\nselect = 'count'\n"
    )
    model = (
        'steps={model="markov", states="on", fit="public.csv", unit="who", leakage=1, '
        'granularity="event"}'
    )
    where = ("--release", tmp_path / "release.toml")
    times = [f"2026-01-{day:02d}T{hour:02d}:00" for day in (1, 2) for hour in range(24)]
    for order, status in ((times, 0), (times[::-1], 2)):
        rows = [f"a,{ts},{'NY'[(k // 3) % 2]}" for k, ts in enumerate(order)]
        (tmp_path / "public.csv").write_text("\n".join(["who,ts,on", *rows, ""]))
        with chdir(tmp_path):
            done = init(tmp_path / f"{status}.ledger", model, where=where)
        assert done.exit_code == status, done.stderr
    assert "in which ts goes back" in done.stderr


def test_a_release_is_charged_to_a_ledger_with_a_model(tmp_path):
    path = write_visits(tmp_path)
    models_of(tmp_path / "visits.ledger", FAMILIES, where=("--release", path))
    with pytest.raises(BudgetExceeded, match="model:families"):
        load(path).run()
    write_visits(tmp_path, promise={"granularity": "user", "epsilon": "1/4"})
    assert not load(path).run().repeated


def test_rows_that_are_units_have_no_order(tmp_path):
    path = write_visits(tmp_path)
    path.write_text(
        "[source]\ntable = 'visits.csv'\nper = 'user'\n[promise]\nepsilon = 1\n"
        "[[queries]]\nname = 'n'\nselect = 'count'\n"
    )
    steps = 'steps={model="markov", gamma=3, leakage=1}'
    done = init(tmp_path / "a", steps, where=("--release", path))
    assert done.exit_code == 2
    assert "where every row is a unit, got markov" in done.stderr
    assert init(tmp_path / "a", FAMILIES, where=("--release", path)).exit_code == 0


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("families", "correlation must be one such as families={model="),
        ("families=4", "correlation must be one such as"),
        ("", "correlation must be one such as"),
        ("@none.toml", "none.toml must be a readable file"),
        ('""={model="blocks", group=4, leakage=1}', "1 to 100 printable characters"),
        ('x={model="blocks", group=4}', "'x': leakage must be given as a number"),
        ('x={model="blocks", group=4, leakage=true}', "leakage must be given as"),
        ('x={model="blocks", group=4, leakage="much"}', "leakage must be"),
        ('x={model="blocks", group=4, leakage=-1}', "leakage must be non-negative"),
        ('x={model="blocks", group=4, leakage=0}', "leakage must be positive and"),
        ('x={model="blocks", group=4, leakage="inf"}', "leakage must be positive"),
        ('x={model="blocks", leakage=1}', "'x': must give group, got nothing"),
        ('x={model="block", group=4, leakage=1}', "'x': model must be one of"),
        ('x={model="blocks", groups=4, leakage=1}', "'groups'"),
        (
            'x={model="blocks", group=4, leakage=1, granularity="nobody"}',
            "'x': granularity",
        ),
        (
            'x={model="blocks", group=4, leakage=1, granularity="event:add-remove"}',
            "what one record is, not whether it is there",
        ),
        (
            'x={model="blocks", group=4, leakage=1, granularity=3}',
            "granularity must be bounded, event, user, got '3'",
        ),
        (
            'x={model="markov", gamma=2, length=3, leakage=1, granularity="event"}',
            "'x': length must be at least the 24 windows",
        ),
        ('x={model="markov", gamma=2, leakage=1, unit=3}', "unit must be the name of"),
    ],
)
def test_bad_models_are_one_sentence_and_nothing_is_left(tmp_path, model, words):
    done = init(tmp_path / "a", model)
    assert done.exit_code == 2, done.stdout
    assert words in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_name_comes_once(tmp_path):
    done = init(tmp_path / "a", FAMILIES, FAMILIES)
    assert done.exit_code == 2
    assert "correlation 'families' must be given once, got two." in done.stderr


def test_the_help_says_how_a_model_is_given():
    shown = " ".join(invoke("ledger", "init", "--help").stdout.split())
    assert "--correlation" in shown
    assert "promise.correlation" in shown
