"""Files that people write are read to their end, or refused, in a moment."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

from undertow._text import LARGEST_FILE, parse_toml, read_text_file
from undertow.errors import PlanError

# Releases need their extra.
COMMANDS = [("release", "run"), ("compose",)] if find_spec("ibis") else [("compose",)]


def refused(*words: object) -> str:
    """Run the command, which must refuse in one sentence and in no time."""
    done = subprocess.run(
        [sys.executable, "-m", "undertow", *map(str, words)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    return done.stderr


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_named_pipe_is_refused_and_not_waited_for(tmp_path, words):
    os.mkfifo(tmp_path / "a.toml")
    assert "got a pipe, socket or device" in refused(*words, tmp_path / "a.toml")


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as end:
        end.bind("a.toml")
        with pytest.raises(PlanError, match="must be a plan file, got a pipe, socket"):
            read_text_file(Path("a.toml"), kind="plan")


def test_what_the_shell_hands_over_is_read():
    start, end = os.pipe()
    with os.fdopen(end, "w") as writing:
        writing.write("a = 1")
    assert read_text_file(Path(f"/dev/fd/{start}"), kind="plan") == "a = 1"
    os.close(start)


def test_a_device_without_end_is_refused():
    with pytest.raises(PlanError, match="at most 16 MiB, got a larger file"):
        read_text_file(Path("/dev/zero"), kind="plan")


PARTS = ("a", "'a b'", '"a.b"', "ä-1")


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("text", ["{} = 1", "[{}]", "[[{}]]", "x = {{ {} = 1 }}"])
@pytest.mark.parametrize("dot", [".", " . "])
def test_long_dotted_keys_are_refused_at_once(part, text, dot):
    started = time.process_time()
    with pytest.raises(ValueError, match="more than 64 dotted parts"):
        parse_toml(text.format(dot.join([part] * 50_000)))
    assert time.process_time() - started < 2


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_long_dotted_keys_are_one_sentence(tmp_path, words):
    path = tmp_path / "a.toml"
    path.write_text(".".join(["a"] * 100_000) + " = 1")
    assert "got an error: a key of more than 64 dotted parts" in refused(*words, path)


@pytest.mark.parametrize(
    "text", ["a" * 10**6, '"' * 10**6, "a " * 10**6, "a.b " * 10**5, "'a" * 10**5]
)
def test_text_that_is_no_key_is_looked_through_at_once(text):
    started = time.process_time()
    with pytest.raises(ValueError, match=r"dotted|Expected|Illegal|Invalid|Unterm"):
        parse_toml(text)
    assert time.process_time() - started < 2


@pytest.mark.parametrize("parts", [2, 63])
def test_keys_of_fewer_parts_are_read(parts):
    found = parse_toml(".".join(["a"] * parts) + " = 1")
    for _ in range(parts):
        found = found["a"]
    assert found == 1


def test_a_file_of_the_largest_size_is_read(tmp_path):
    path = tmp_path / "a.toml"
    path.write_bytes(b"#" * LARGEST_FILE)
    assert parse_toml(read_text_file(path, kind="plan")) == {}
