"""Charging, storing, closing: what a ledger promises to whoever releases."""

from __future__ import annotations

import stat
from fractions import Fraction

import pytest

import undertow as ut
from undertow.errors import (
    BudgetError,
    BudgetExceeded,
    LedgerError,
    MismatchError,
    NotionMismatchError,
    PlanError,
)
from undertow.ledger import BudgetLedger, LeakageBudget

DAY = ut.Stream(1000, 24)


def hour(at, epsilon="0.25", *, unit=None, name=None):
    unit = ut.User() if unit is None else unit
    loss = epsilon if isinstance(epsilon, ut.privacy.Loss) else ut.Pure(epsilon)
    return ut.Release(
        name or f"hour {at}", loss, unit=unit, view=ut.At(at), setting="view"
    )


def make(path, budgets=None, **rest):
    return BudgetLedger.create(
        path,
        dataset="steps",
        domain=rest.pop("domain", DAY),
        budgets=budgets or {ut.User(): ut.Pure(1)},
        **rest,
    )


@pytest.fixture
def ledger(tmp_path):
    with make(tmp_path / "steps.ledger") as made:
        yield made


def test_a_new_ledger_is_readable_by_its_owner_alone(tmp_path):
    with make(tmp_path / "a") as ledger:
        ledger.charge([hour(1)], key="a")
        for file in tmp_path.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_it_keeps_its_journal_beside_it_and_waits_for_the_disk(tmp_path):
    with make(tmp_path / "a") as ledger, ledger._place.reading() as link:
        assert link.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert link.exec_driver_sql("PRAGMA synchronous").scalar() == 2


def test_what_was_agreed_is_read_back(tmp_path):
    budgets = {ut.User(): ut.Pure("1/3"), ut.Event(): ut.Pure("0.1")}
    make(tmp_path / "a", budgets).close()
    with BudgetLedger.open(tmp_path / "a") as ledger:
        assert ledger.budgets == budgets
        assert ledger.domain == DAY
        assert ledger.dataset == "steps"
        assert ledger.models == {}
        assert ledger.name == str(tmp_path / "a")


def test_a_charge_takes_its_exact_loss(ledger):
    for at in range(3):
        ledger.charge([hour(at, "0.1")], key=f"k{at}")
    assert ledger.remaining(ut.User()) == ut.Pure("0.7")
    assert ledger.losses() == {"user": ut.Pure("0.3")}


@pytest.mark.parametrize("asks", [0, 1])
def test_the_same_release_charged_again_is_paid_again(ledger, asks):
    release = hour(1, "0.1")
    for at in range(5):
        for _ in range(asks):
            assert ledger.quote([release]) == {"user": ut.Pure(f"{at + 1}/10")}
        assert ledger.losses() == {"user": ut.Pure(f"{at}/10")}
        ledger.charge([release], key=f"k{at}")
    assert ledger.losses() == {"user": ut.Pure("0.5")}
    assert ledger.verify() == []


def test_ten_tenths_are_the_whole_budget(ledger):
    for at in range(10):
        ledger.charge([hour(at, 0.1)], key=f"k{at}")
    assert ledger.remaining(ut.User()) == ut.Pure(0)
    with pytest.raises(BudgetExceeded):
        ledger.charge([hour(11, Fraction(1, 10**30))], key="one more")


def test_a_refusal_names_granularity_spent_asked_and_left(ledger):
    ledger.charge([hour(1, "0.75")], key="a")
    with pytest.raises(
        BudgetExceeded,
        match=r"user budget of Pure\(epsilon=1\), got Pure\(epsilon=0.75\) spent, "
        r"Pure\(epsilon=0.5\) asked and Pure\(epsilon=0.25\) left",
    ):
        ledger.charge([hour(2, "0.5")], key="b")
    assert ledger.head.count == 1
    assert ledger.find("b") is None


def test_several_releases_are_charged_together_or_not_at_all(ledger):
    with pytest.raises(BudgetExceeded):
        ledger.charge([hour(1, "0.5"), hour(2, "0.6")], key="a")
    assert ledger.losses() == {"user": ut.Pure(0)}
    charge = ledger.charge([hour(1, "0.5"), hour(2, "0.5")], key="a")
    assert charge.losses == {"user": ut.Pure(1)}


def test_releases_on_other_views_pay_only_where_units_meet(tmp_path):
    budgets = {ut.Event(): ut.Pure("0.5"), ut.WEvent(2): ut.Pure(1)}
    with make(tmp_path / "a", budgets) as ledger:
        for at in range(24):
            ledger.charge([hour(at, "0.5", unit=ut.Event())], key=f"hour {at}")
        assert ledger.losses() == {
            "event": ut.Pure("0.5"),
            "w-event:2": ut.Pure(1),
        }
        with pytest.raises(BudgetExceeded, match="event budget"):
            ledger.charge([hour(3, "0.1", unit=ut.Event())], key="again")


def test_the_same_key_is_charged_once(ledger):
    first = ledger.charge([hour(1)], key="a", label="morning")
    again = ledger.charge([hour(1)], key="a", label="morning")
    assert (again.number, again.hash) == (first.number, first.hash)
    assert (first.repeated, again.repeated) == (False, True)
    assert again.state == "charged"
    assert ledger.losses() == {"user": ut.Pure("0.25")}


def test_a_key_cannot_be_used_for_other_releases(ledger):
    ledger.charge([hour(1)], key="a")
    with pytest.raises(LedgerError, match="other releases than those charged"):
        ledger.charge([hour(2)], key="a")


def test_a_stored_output_is_the_only_one(ledger):
    charge = ledger.charge([hour(1)], key="a")
    assert ledger.output(charge) is None
    assert ledger.store(charge, b"first draw") == b"first draw"
    assert ledger.store(charge, b"second draw") == b"first draw"
    again = ledger.charge([hour(1)], key="a")
    assert again.state == "done"
    assert ledger.output(again) == b"first draw"


def test_a_closed_charge_stays_paid_and_takes_no_output(ledger):
    charge = ledger.charge([hour(1)], key="a")
    closed = ledger.fail(charge, "the engine died")
    assert (closed.state, closed.reason) == ("spoiled", "the engine died")
    assert ledger.fail(charge, "again").reason == "the engine died"
    assert ledger.charge([hour(1)], key="a").state == "spoiled"
    with pytest.raises(BudgetError, match="one that was closed"):
        ledger.store(charge, b"late")
    assert ledger.output(charge) is None
    assert ledger.losses() == {"user": ut.Pure("0.25")}


def test_what_is_done_cannot_be_closed(ledger):
    charge = ledger.charge([hour(1)], key="a")
    ledger.store(charge, b"x")
    with pytest.raises(BudgetError, match="whose output is stored"):
        ledger.fail(charge, "too late")


def test_a_charge_of_another_ledger_is_refused(ledger, tmp_path):
    with make(tmp_path / "b") as other:
        charge = other.charge([hour(1)], key="a")
    with pytest.raises(LedgerError, match="one of this ledger"):
        ledger.store(charge, b"x")


def test_a_quote_takes_nothing(ledger):
    assert ledger.quote([hour(1), hour(2)]) == {"user": ut.Pure("0.5")}
    assert ledger.head.count == 0


def test_an_interrupt_after_the_commit_loses_no_charge(tmp_path, monkeypatch):
    from undertow.ledger import _book as book

    budgets = {ut.User(): ut.Pure(1), ut.Event(): ut.ZCDP(1)}
    with make(tmp_path / "a", budgets) as ledger:
        ledger.charge([hour(1, "0.1")], key="a")
        add, calls = book.Tally.add, []

        def interrupted(tally, releases):
            add(tally, releases)
            calls.append(tally)
            if len(calls) == 1:
                raise KeyboardInterrupt

        monkeypatch.setattr(book.Tally, "add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            ledger.charge([hour(1, "0.1")], key="b")
        monkeypatch.undo()
        assert ledger.charge([hour(1, "0.1")], key="b").repeated
        assert ledger.losses()["user"] == ut.Pure("0.2")
        assert ledger.losses()["event"] == ut.ZCDP("0.01")
        ledger.charge([hour(1, "0.1")], key="c")
        assert ledger.verify() == []


def test_another_process_sees_what_was_charged(ledger, tmp_path):
    with BudgetLedger.open(tmp_path / "steps.ledger") as other:
        ledger.charge([hour(1)], key="a")
        other.charge([hour(2)], key="b")
        ledger.charge([hour(3)], key="c")
        assert other.losses() == ledger.losses() == {"user": ut.Pure("0.75")}


@pytest.mark.parametrize(
    ("budget", "losses", "left"),
    [
        (ut.ZCDP(1), ["0.1", "0.4"], ut.ZCDP("0.5")),
        (ut.GDP(2), ["1", "1"], ut.GDP.from_square(2)),
        (ut.Approx(2, "1e-5"), ["0.5", "0.5"], ut.Approx(1, "8e-6")),
    ],
    ids=["zcdp", "gdp", "approx"],
)
def test_every_currency_adds_up(tmp_path, budget, losses, left):
    build = {"zcdp": ut.ZCDP, "gdp": ut.GDP}.get(
        budget.notion, lambda epsilon: ut.Approx(epsilon, "1e-6")
    )
    with make(tmp_path / "a", {ut.User(): budget}) as ledger:
        for at, loss in enumerate(losses):
            ledger.charge([hour(at, build(loss))], key=f"k{at}")
        assert ledger.remaining(ut.User()) == left


def test_a_release_in_a_currency_the_budget_cannot_count_is_refused(ledger):
    with pytest.raises(NotionMismatchError, match="stated in pure, got zcdp only"):
        ledger.charge([hour(1, ut.ZCDP("0.1"))], key="a")


def test_a_leakage_budget_caps_the_summed_level(tmp_path):
    from undertow.correlation import Blocks, calibrate

    found = calibrate(Blocks.of_size(5, groups=200), 1.0)
    families = LeakageBudget.from_calibration(
        found, granularity=ut.User(), model={"kind": "blocks", "size": 5}
    )
    with make(tmp_path / "a", models={"families": families}) as ledger:
        ledger.charge([hour(1, "0.2")], key="a")
        with pytest.raises(BudgetExceeded, match="model:families budget"):
            ledger.charge([hour(2, "0.01")], key="b")
    with BudgetLedger.open(tmp_path / "a") as ledger:
        kept = ledger.models["families"]
        assert kept.epsilon == Fraction(1, 5)
        assert kept.leakage == 1
        assert kept.theorem == found.achieves.theorem
        assert kept.model == {"kind": "blocks", "size": 5}
        assert ledger.losses()["model:families"] == ut.Pure("0.2")


def test_the_number_goes_on_when_the_clock_goes_back(ledger, monkeypatch):
    from datetime import UTC, datetime

    from undertow.ledger import _database as chain

    ledger.charge([hour(1)], key="a")

    class Slow(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime(2001, 1, 1, tzinfo=UTC)

    monkeypatch.setattr(chain, "datetime", Slow)
    ledger.charge([hour(2)], key="b")
    first, second = ledger.history()
    assert (first.number, second.number) == (1, 2)
    assert (first.clock_back, second.clock_back) == (False, True)
    assert second.time < first.time
    assert ledger.verify() == []


def test_history_can_be_read_in_parts(ledger):
    for at in range(4):
        ledger.charge([hour(at, "0.1")], key=f"k{at}", details={"run": at})
    keys = [entry.key for entry in ledger.history(after=1, limit=2)]
    assert keys == ["k1", "k2"]
    assert ledger.history()[3].body["details"] == {"run": 3}
    assert ledger.history()[0].to_dict()["hash"] == ledger.history()[0].hash


def test_details_are_kept_as_json_reads_them(ledger):
    ledger.charge([hour(1)], key="a", details={10: (1, 2), 9: {"ü": None}})
    assert ledger.history()[0].body["details"] == {"10": [1, 2], "9": {"ü": None}}
    assert ledger.verify() == []


def test_an_export_holds_terms_entries_and_head(ledger):
    charge = ledger.charge([hour(1)], key="a")
    ledger.store(charge, b"secret no more")
    record = ledger.export()
    assert [entry["kind"] for entry in record["entries"]] == ["charge", "output"]
    assert record["head"] == {"count": 2, "hash": record["entries"][1]["hash"]}
    assert record["terms"]["budgets"] == {"user": {"notion": "pure", "exact": ["1"]}}
    assert charge.to_dict()["losses"]["user"]["epsilon"] == 0.25


def test_a_long_history_of_one_view_is_one_item(ledger):
    for at in range(20):
        ledger.charge([hour(1, "0.01", name=f"run {at}")], key=f"k{at}")
    with BudgetLedger.open(ledger.name) as again:
        assert again.losses() == {"user": ut.Pure("0.2")}
        assert [len(tally) for tally in again._book._tallies.values()] == [1]


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"releases": [], "key": "a"}, ValueError, "at least one release"),
        ({"releases": ["x"], "key": "a"}, TypeError, "Release objects"),
        ({"releases": [hour(1)], "key": ""}, ValueError, "1 to 500 printable"),
        ({"releases": [hour(1)], "key": "a\0"}, ValueError, "1 to 500 printable"),
        ({"releases": [hour(1)], "key": "a", "label": "\ud800"}, ValueError, "half of"),
        (
            {"releases": [hour(1)], "key": "a", "details": {"x": float("nan")}},
            ValueError,
            "details must be",
        ),
        ({"releases": [hour(99)], "key": "a"}, ValueError, "99"),
    ],
    ids=["none", "other", "key", "control", "label", "details", "view"],
)
def test_bad_charges_are_refused_in_one_sentence(ledger, arguments, error, words):
    releases = arguments["releases"]
    rest = {name: arguments[name] for name in arguments if name != "releases"}
    with pytest.raises(error, match=words):
        ledger.charge(releases, **rest)
    assert ledger.head.count == 0


def test_outputs_must_be_bytes(ledger):
    charge = ledger.charge([hour(1)], key="a")
    with pytest.raises(TypeError, match="output must be bytes, got str"):
        ledger.store(charge, "text")


def test_remaining_needs_a_granularity_with_a_budget(ledger):
    with pytest.raises(MismatchError, match="budgets are for user"):
        ledger.remaining(ut.Event())


@pytest.mark.parametrize(
    ("rest", "error", "words"),
    [
        ({"budgets": {}}, ValueError, "at least one granularity"),
        ({"budgets": {"user": ut.Pure(1)}}, TypeError, "keyed by granularities"),
        ({"budgets": {ut.User(): 1}}, TypeError, "must be a loss"),
        ({"budgets": {ut.User(): ut.Pure(1)}, "dataset": ""}, ValueError, "dataset"),
        (
            {"budgets": {ut.User(): ut.Pure(1)}, "models": {"m": 1}},
            TypeError,
            "LeakageBudget",
        ),
    ],
    ids=["none", "text", "number", "dataset", "model"],
)
def test_bad_terms_leave_no_file(tmp_path, rest, error, words):
    arguments = {"dataset": "steps", "domain": DAY, **rest}
    with pytest.raises(error, match=words):
        BudgetLedger.create(tmp_path / "a", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_a_domain_that_is_only_python_is_refused(tmp_path):
    domain = ut.Table([(1, 2)])
    with pytest.raises(PlanError):
        make(tmp_path / "a", {ut.Unbounded(): ut.Pure(1)}, domain=domain)
    assert list(tmp_path.iterdir()) == []
