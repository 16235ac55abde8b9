"""Programs that an audit runs: how their lines are read, and how they are ended."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

from undertow.audit.program import CommandSubject
from undertow.errors import AuditError


def program(code, **options):
    return CommandSubject([sys.executable, "-c", code], [0, 1], **options)


def draw(subject, size=3, value=0):
    return subject.sample(value, size, rng=np.random.default_rng(1))


def test_separators_inside_a_string_do_not_end_a_line():
    code = (
        "import sys\n"
        "for line in sys.stdin:\n"
        "    sys.stdout.buffer.write('\"a\\u2028b\\x85\"\\n'.encode())"
    )
    assert draw(program(code)).tolist() == ["a\u2028b\x85"] * 3
    endings = "import sys\nfor line in sys.stdin: sys.stdout.write('1\\r\\n')"
    assert draw(program(endings)).tolist() == [1, 1, 1]


def test_a_value_nested_too_deeply_is_named():
    with pytest.raises(AuditError, match="one JSON value per line"):
        draw(program("print('[' * 200_000)"), size=1)


def test_a_program_that_never_stops_writing_is_ended_at_once():
    started = time.monotonic()
    with pytest.raises(AuditError, match="write at most 256 MiB in a batch"):
        draw(program("while True: print('y' * 10_000_000)", time_limit=50))
    assert time.monotonic() - started < 30


def test_a_flood_of_errors_is_read_and_its_last_line_kept():
    code = (
        "import sys\n"
        "for line in sys.stdin: print(1)\n"
        "sys.stderr.write('noise\\n' * 300_000)\n"
    )
    assert draw(program(code)).tolist() == [1, 1, 1]
    with pytest.raises(AuditError, match=r"got 3 \(the end\)"):
        draw(program(code + "sys.stderr.write('the end\\n')\nsys.exit(3)"))


def test_a_hanging_program_leaves_no_child_behind(tmp_path):
    told = tmp_path / "pid"
    code = (
        "import subprocess, sys\n"
        "code = 'import time; time.sleep(60)'\n"
        "child = subprocess.Popen([sys.executable, '-c', code])\n"
        f"open({str(told)!r}, 'w').write(str(child.pid))\n"
        "for line in sys.stdin: print(1)\n"
    )
    # The program ends; its child holds the output open.
    with pytest.raises(AuditError, match="within 2 s"):
        draw(program(code, time_limit=2))
    pid = int(told.read_text())
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and not _ended(pid):
        time.sleep(0.05)
    assert _ended(pid)


def _ended(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True
    )
    return state.stdout.strip()[:1] in ("Z", "")


def test_an_open_quote_in_a_command_is_named():
    with pytest.raises(ValueError, match="command must be split as a shell would"):
        CommandSubject("prog 'x", [0, 1])
