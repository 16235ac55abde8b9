"""The guides on auditing print what their commands print."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from support.command import invoke

GUIDES = Path(__file__).parents[1] / "docs" / "how-to"


@pytest.mark.parametrize("name", ["audit-a-callable.md", "audit-a-command.md"])
def test_the_guides_show_what_their_commands_print(name, tmp_path, monkeypatch):
    text = (GUIDES / name).read_text(encoding="utf-8")
    (file, code), *_ = re.findall(
        r"Save as `(\w+\.py)`:\n+```py\n(.*?)^```$", text, re.M | re.S
    )
    ((command, shown),) = re.findall(
        r"^```sh\n\$ undertow (.*?)\n(.*?)^```$", text, re.M | re.S
    )
    (tmp_path / file).write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(sys, "path", list(sys.path))
    result = invoke(*shlex.split(command))
    sys.modules.pop(file.removesuffix(".py"), None)
    printed = [line.rstrip() for line in (result.stdout + result.stderr).splitlines()]
    assert printed == shown.splitlines()
    assert result.exit_code == 3
