"""Commands are loaded when they are run, and listed without being loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.main import get_command

from undertow.cli.app import COMMANDS, app, load_command


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_the_command_says_of_itself(name: str):
    summary = " ".join(COMMANDS[name][1].split())
    help_text = " ".join(load_command(name).help.split())
    assert help_text.startswith(summary)


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_what_loads_no_command_loads_no_library(option: str):
    code = (
        "import sys; from undertow.cli import app; app([%r], standalone_mode=False); "
        "print([m for m in ('numpy', 'scipy', 'undertow.privacy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code % option],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_mistyped_command_is_refused_in_a_sentence():
    done = subprocess.run(
        [sys.executable, "-m", "undertow", "compos"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("No such command 'compos'")
    assert done.stderr.count("\n") == 1


def test_the_parser_knows_every_name_and_can_say_which_one_was_meant():
    assert list(get_command(app).commands) == list(COMMANDS)
