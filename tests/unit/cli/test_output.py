"""The contract of the command: help, version, streams and exit status."""

from __future__ import annotations

import json
import math
import re
import shlex
import sys
from importlib import resources
from importlib.util import find_spec

import pytest
import typer

import undertow as ut
from support.command import invoke, run
from undertow import errors
from undertow.cli import main
from undertow.cli._output import complain, print_json, status_of, working
from undertow.cli.compose import print_bars, print_reports
from undertow.privacy.loss import shown_loss


def call_main(monkeypatch, *words):
    """Run the command in this process as the installed script does."""
    monkeypatch.setattr(sys, "argv", ["undertow", *words])
    with pytest.raises(SystemExit) as stopped:
        main()
    return stopped.value.code or 0


def test_version_is_one_line(monkeypatch, capfd):
    assert call_main(monkeypatch, "--version") == 0
    assert capfd.readouterr() == (f"undertow {ut.__version__}\n", "")


def test_without_arguments_the_help_is_shown():
    done = run()
    assert done.returncode == 0
    assert b"compose" in done.stdout
    assert done.stderr == b""


@pytest.mark.parametrize(
    "words",
    [["compose"], ["nope"], ["compose", "--nope"], ["schema"], ["demo", "a", "b"]],
)
def test_wrong_usage_is_one_sentence_and_status_2(words, monkeypatch, capfd):
    assert call_main(monkeypatch, *words) == 2
    captured = capfd.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1


def test_wrong_usage_of_a_real_process_has_no_traceback():
    done = run("compose", "--nope")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"No such option: --nope\n"


def test_an_unexpected_fault_is_not_hidden(monkeypatch):
    def broken(**options):
        raise ZeroDivisionError("a mistake of ours")

    monkeypatch.setattr(sys.modules["undertow.cli.app"], "app", broken)
    with pytest.raises(ZeroDivisionError):
        main()


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (errors.BudgetExceeded("spent."), 3),
        (errors.PlanError("wrong."), 2),
        (typer.Abort(), 130),
    ],
    ids=lambda item: type(item).__name__,
)
def test_faults_outside_a_command_keep_the_contract(fault, status, monkeypatch):
    def failing(**options):
        raise fault

    monkeypatch.setattr(sys.modules["undertow.cli.app"], "app", failing)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == status


DEMO = pytest.param("demo", marks=pytest.mark.slow)
WITH_EXTRA = [DEMO] if find_spec("ibis") else []


@pytest.mark.parametrize("command", ["compose", "schema", *WITH_EXTRA])
def test_the_example_in_every_help_runs(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    hourly = resources.files("undertow.cli") / "plans" / "hourly.toml"
    (tmp_path / "plan.toml").write_text(hourly.read_text(encoding="utf-8"))
    shown = invoke(command, "--help").stdout
    example = re.search(r"Example: undertow (.*?) *$", shown, re.M)
    assert example, shown
    words = shlex.split(example[1].split(">")[0])
    assert words[0] == command
    assert invoke(*words).exit_code == 0


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        (errors.PlanError("x"), 2),
        (errors.MismatchError("x"), 2),
        (errors.NotionMismatchError("x"), 2),
        (errors.CompositionError("x"), 2),
        (FileNotFoundError("x"), 2),
        (errors.InfiniteLossError("x"), 3),
        (errors.VacuousGranularityError("x"), 3),
        (errors.AssumptionError("x"), 3),
        (errors.BudgetExceeded("x"), 3),
        (ZeroDivisionError("x"), None),
    ],
    ids=lambda item: type(item).__name__,
)
def test_each_fault_has_its_exit_status(fault, status):
    assert status_of(fault) == status


def test_a_complaint_is_one_printable_line(capsys):
    complain("a\nb\t c \x1b[31m\udce9")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "a b c \\x1b[31m\\udce9\n"


def test_json_has_full_precision_and_refuses_nan(capsys):
    print_json({"x": 0.1 + 0.2, "ε": 1e-300})
    assert json.loads(capsys.readouterr().out) == {"x": 0.1 + 0.2, "ε": 1e-300}
    with pytest.raises(ValueError, match="JSON"):
        print_json({"x": math.nan})


def test_nothing_is_said_of_progress_off_a_terminal(capsys):
    with working("thinking"):
        pass
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (ut.Pure("1/3"), "ε = 0.333334"),
        (ut.Pure("inf"), "ε = ∞"),
        (ut.Approx(1, "1e-7"), "ε = 1, δ = 1e-7"),
        (ut.ZCDP("0.5"), "ρ = 0.5"),
        (ut.GDP.from_square(2), "μ = 1.41422"),
        (ut.Pure("9e399"), "ε = 9e399"),
    ],
)
def test_losses_are_shown_rounded_up(loss, text):
    assert shown_loss(loss).replace("1E-7", "1e-7").replace("0.0000001", "1e-7") == text


def report(loss, name="bounded", **rest):
    return ut.Report(name, loss, None, {}, loss, (), **rest)


def test_bars_are_dotted_where_nothing_is_promised(capsys):
    print_bars([report(ut.Pure(1)), report(ut.Pure("inf")), report(ut.Pure(0))])
    one, infinite, zero = capsys.readouterr().out.splitlines()
    assert one.count("█") == 40
    assert infinite.endswith("· ∞")
    assert zero.count("█") == 0
    print_bars([report(ut.Approx(1, 1))])
    assert "∞" in capsys.readouterr().out


def test_remarks_are_said_once_for_all_granularities_they_hold_for(capsys):
    rest = {"unprotected": ("the size",), "warnings": ("beware [of] this",)}
    print_reports([report(ut.Pure(1), "a", **rest), report(ut.Pure(1), "b", **rest)])
    out = capsys.readouterr().out
    assert "a, b: the size" in out
    assert "a, b: beware [of] this" in out
