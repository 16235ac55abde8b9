"""`undertow ledger init` refuses budgets that limit nothing or allow nothing."""

from __future__ import annotations

import pytest

import undertow as ut
from support.command import invoke
from undertow.cli.ledger import read_budgets
from undertow.errors import LedgerError
from undertow.ledger.record import Terms

WINDOWS = '{"kind": "stream", "users": 1000, "times": 24}'
WHOLE = '{"kind": "stream", "users": 1000, "times": 1}'


def init(path, budget, domain=WINDOWS):
    return invoke(
        "ledger",
        "init",
        path,
        "--dataset",
        "steps",
        "--granularity",
        budget,
        "--domain",
        domain,
    )


@pytest.mark.parametrize(
    "loss",
    [
        "epsilon:0",
        "epsilon:inf",
        "epsilon:1e-400",
        "epsilon:0,delta:0",
        "epsilon:inf,delta:1e-6",
        "epsilon:1,delta:1e-301",
        "rho:0",
        "rho:inf",
        "mu:0",
        "mu:inf",
        "mu:1e-301",
    ],
)
def test_a_budget_of_nothing_or_everything_is_refused(tmp_path, loss):
    done = init(tmp_path / "a", f"user={loss}")
    assert done.exit_code == 2
    assert "must be positive and finite" in " ".join(done.stderr.split())
    assert list(tmp_path.iterdir()) == []


def test_a_small_budget_is_taken():
    budgets = read_budgets(["user=mu:1e-200", "event=epsilon:0,delta:1e-9"])
    assert budgets == {ut.User(): ut.GDP("1e-200"), ut.Event(): ut.Approx(0, "1e-9")}


@pytest.mark.parametrize("level", ["w-event:24", "l-trajectory:2"])
def test_a_level_of_several_windows_needs_windows(tmp_path, level):
    done = init(tmp_path / "a", f"{level}=epsilon:1", WHOLE)
    assert done.exit_code == 2
    assert f"budget at {level} level must count windows" in " ".join(
        done.stderr.split()
    )
    assert list(tmp_path.iterdir()) == []
    assert init(tmp_path / "b", f"{level}=epsilon:1").exit_code == 0


def test_a_level_of_one_window_needs_none(tmp_path):
    assert init(tmp_path / "a", "w-event:1=epsilon:1", WHOLE).exit_code == 0


def test_terms_that_were_agreed_can_still_be_read():
    given = ("steps", ut.Stream(10, 1), {ut.WEvent(24): ut.Pure(1)}, {}, "2026")
    with pytest.raises(LedgerError, match="must count windows"):
        Terms(*given)
    old = Terms(*given, agreed=True)
    assert Terms.from_text(old.to_text()) == old


@pytest.mark.parametrize("secret", ["s3cr3t", "'s3cr3t PWtail'", "s3cr3t PWtail"])
def test_words_with_a_password_are_refused_and_not_repeated(secret, tmp_path):
    words = f"host=localhost password={secret} port=1"
    (tmp_path / "t.csv").write_text("person\na\n")
    (tmp_path / "t.toml").write_text(
        '[source]\ntable = "t.csv"\nunit = "person"\n[promise]\nepsilon = "1"\n'
        '[bounds]\nrows_per_unit = 1\n[[queries]]\nname = "q"\nselect = "count"\n'
    )
    for command in (
        ("release", "run", str(tmp_path / "t.toml"), "--ledger", words),
        ("ledger", "show", words),
    ):
        done = invoke(*command)
        assert done.exit_code == 2
        assert "as postgresql://user@host/name." in done.stderr
        assert "s3cr3t" not in done.output + done.stderr
        assert "PWtail" not in done.output + done.stderr
