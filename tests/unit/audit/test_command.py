from __future__ import annotations

import os
import signal
import sys
import time

import numpy as np
import pytest

from undertow.audit.claim import Claim
from undertow.audit.pair.fixed import audit_pair
from undertow.audit.program import CommandSubject
from undertow.errors import AuditError

FLIP = """
import json, os, random, sys
coin = random.Random(int(os.environ["UNDERTOW_SEED"]))
for line in sys.stdin:
    bit = json.loads(line)
    print(json.dumps(bit if coin.random() < 0.75 else 1 - bit))
"""


def python(code, **options):
    return CommandSubject([sys.executable, "-c", code], [0, 1], name="p", **options)


def draw(subject, value=1, size=4, seed=1):
    return subject.sample(value, size, rng=np.random.default_rng(seed))


def test_values_go_in_and_out_as_lines_of_json():
    echo = python("import sys; sys.stdout.write(sys.stdin.read())")
    assert draw(echo).tolist() == [1, 1, 1, 1]


def test_lists_of_numbers_are_vectors():
    assert draw(python("import sys\nfor s in sys.stdin: print([1, 0.5])")).shape == (
        4,
        2,
    )


@pytest.mark.parametrize("value", ['{"a": 1}', '["a"]', "[[1, 2]]"])
def test_what_cannot_be_compared_is_to_be_written_as_a_string(value):
    with pytest.raises(AuditError, match=r"string or a list of numbers, got another"):
        draw(python(f"import sys\nfor s in sys.stdin: print('{value}')"))


def test_the_seed_of_the_environment_repeats_a_batch():
    subject = python(FLIP, seeded=True)
    one, two, other = (draw(subject, size=64, seed=s).tolist() for s in (1, 1, 2))
    assert one == two != other


def test_a_program_is_audited_from_end_to_end():
    subject = python(FLIP, seeded=True)
    results = [
        audit_pair(subject, Claim.pure(level), trials=20_000, seed=1)
        for level in (0.8, 1.1)  # it keeps ln 3
    ]
    assert [r.verdict for r in results] == ["violated", "not refuted"]
    assert "runs on" in results[0].witness.summary


def test_a_string_is_split_without_a_shell(tmp_path):
    script = tmp_path / "a b.py"
    script.write_text("import sys\nfor s in sys.stdin: print(sys.argv[1:].__len__())")
    command = f"{sys.executable} '{script}' '$HOME' '*' '|' 'x y'"
    assert draw(CommandSubject(command, [0, 1])).tolist() == [4] * 4


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("print('1')", "one line for each of 3 inputs, got 1"),
        ("print('hello')", "got 'hello' on line 1"),
        ("import sys\nfor s in sys.stdin: print('oops')", "got 'oops' on line 1"),
        ("import sys; sys.exit(3)", "exit with status 0, got 3"),
        ("raise ValueError('bad noise')", r"got 1 \(ValueError: bad noise\)"),
        ("import sys\nfor s in sys.stdin: print('null')", "got None"),
        ("import sys\nfor s in sys.stdin: print('NaN')", "numbers, got nan"),
        (
            "import sys\nn = len(sys.stdin.read()) // 2\n"
            "print('1\\n' * (n - 1) + '\"a\"')",
            "one type of output, got int and str",
        ),
        (
            "import sys\nsys.stdin.read()\nsys.stdout.buffer.write(b'\\xff\\n')",
            "write UTF-8 text",
        ),
    ],
    ids=[
        "short",
        "words",
        "garbage",
        "status",
        "raises",
        "null",
        "nan",
        "mixed",
        "bytes",
    ],
)
def test_bad_programs_are_named(code, said):
    with pytest.raises(AuditError, match=said):
        draw(python(code))


FAILS_ON_ONE = """
import sys, time
for line in sys.stdin:
    if line == "1\\n":
        {}
    print(0)
"""


@pytest.mark.parametrize(
    ("ending", "said"),
    [("sys.exit(7)", "ExitStatusError"), ("time.sleep(60)", "OutOfTimeError")],
)
def test_how_a_run_alone_ends_is_an_outcome(ending, said):
    code = FAILS_ON_ONE.format(ending)
    limits = {"time_limit": 0.4} if "sleep" in ending else {}
    alone = python(code, batch=1, **limits)
    made = alone.outcomes(1, 2, rng=np.random.default_rng(1)).tolist()
    assert [one.kind for one in made] == [said] * 2
    assert alone.outcomes(0, 2, rng=np.random.default_rng(1)).tolist() == [0, 0]
    timed = python(code, **limits).run_timed([0, 1], rng=np.random.default_rng(1))
    assert [str(one)[:3] for one, _ in timed] == ["0", said[:3]]
    with pytest.raises(AuditError):  # of several runs nobody knows which one it was
        python(code, **limits).outcomes(1, 2, rng=np.random.default_rng(1))
    with pytest.raises(AuditError):  # reports of a local protocol are values
        alone.sample(1, 2, rng=np.random.default_rng(1))


def test_a_leak_in_the_exit_status_refutes_a_claim():
    subject = python(FAILS_ON_ONE.format("sys.exit(7)"), batch=1)
    found = audit_pair(subject, Claim.pure(0.5), trials=120, seed=1)
    assert found.verdict == "violated"


def test_a_program_that_hangs_is_ended_with_its_children(tmp_path):
    note = tmp_path / "pid"
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '60'])\n"
        f"open({str(note)!r}, 'w').write(str(child.pid))\n"
        "time.sleep(60)"
    )
    subject = python(code, time_limit=2.0)
    start = time.monotonic()
    with pytest.raises(AuditError, match="p must finish a run within 2 s"):
        draw(subject)
    assert time.monotonic() - start < 15
    child = int(note.read_text())
    for _ in range(100):
        if _gone(child):
            break
        time.sleep(0.05)
    assert _gone(child)


def test_an_interrupted_audit_leaves_no_program_behind(monkeypatch):
    started = []

    def interrupt(thread, *args):
        started.append(thread.process)
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr("undertow.audit.program._Drain.join", interrupt)
    with pytest.raises(KeyboardInterrupt):
        draw(CommandSubject("sleep 60", [0, 1]))
    assert started[0].returncode == -signal.SIGKILL


def _gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    with open(f"/proc/{pid}/stat") as file:
        return file.read().split()[2] == "Z"


def test_a_program_that_is_not_there_is_named():
    with pytest.raises(AuditError, match="can be started, got No such file"):
        draw(CommandSubject("/nowhere/program --flag", [0, 1]))


def test_commands_and_inputs_are_checked():
    with pytest.raises(ValueError, match="must name a program"):
        CommandSubject("", [0, 1])
    with pytest.raises(ValueError, match="must have a JSON form, got object"):
        CommandSubject("cat", [object(), 1])
