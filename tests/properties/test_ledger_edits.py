"""A ledger that was edited ends every command with a sentence, never a traceback."""

from __future__ import annotations

import hashlib
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.command import invoke
from support.release_documents import write_visits

COLUMNS = {
    "ledger_terms": ("id", "body", "hash"),
    "ledger_head": ("id", "count", "hash", "time"),
    "ledger_entries": ("number", "kind", "key", "body", "hash"),
    "ledger_outputs": ("charge", "content"),
    "ledger_version": ("version_num",),
}
PLACES = [(table, column) for table, names in COLUMNS.items() for column in names]
TEXTS = ["", "x", "1/0", "9999", "2", "output", "null", "[]", "{}", '{"a":', "[" * 5000]
VALUES = st.one_of(
    st.none(),
    st.sampled_from([0, 1, -1, 2, 7, 2**62, 0.5, float("inf"), b"", b"\xff\x00"]),
    st.sampled_from(TEXTS),
    st.binary(max_size=4),
    # What is there, with a piece of it replaced.
    st.tuples(
        st.sampled_from(
            [
                *('"label"', '"losses"', '"sha256"', '"charge"', '"1"', "exact", "{"),
                *('"releases"', '"claims"', '"budgets"', '"domain"', '"number":1'),
                *('"key"', "pure"),
            ]
        ),
        st.sampled_from(['"x"', "null", "1e999", "[]", "", '"1/0"', "{"]),
    ),
)


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A folder with a ledger in which two runs were charged and stored."""
    folder = tmp_path_factory.mktemp("written")
    path = write_visits(folder)
    again = ("--repeat", "2", "--output", folder / "second")
    terms = ("--dataset", "visits", "--release", path, "--granularity")
    ledger = folder / "visits.ledger"
    assert invoke("ledger", "init", ledger, *terms, "user=epsilon:9").exit_code == 0
    assert invoke("release", "run", path).exit_code == 0
    assert invoke("release", "run", path, *again).exit_code == 0
    return folder


def edit(ledger, table, column, row, value, *, rehash=False):
    """Change one cell, as somebody would who owns the file; tell whether it was."""
    with closing(sqlite3.connect(ledger)) as link:
        for (name,) in link.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            link.execute(f'DROP TRIGGER "{name}"')
        found = link.execute(f"SELECT rowid, {column} FROM {table}").fetchall()
        at, before = found[row % len(found)]
        if isinstance(value, tuple):
            if not isinstance(before, str) or value[0] not in before:
                return False
            value = before.replace(*value)
        if value == before:
            return False
        if value is None:  # no column may be empty; a table made anew has no rules
            link.execute(f"CREATE TABLE copied AS SELECT * FROM {table}")
            link.execute(f"DROP TABLE {table}")
            link.execute(f"ALTER TABLE copied RENAME TO {table}")
        try:
            link.execute(
                f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (value, at)
            )
            if rehash and column == "body" and isinstance(value, str):
                digest = hashlib.sha256(value.encode()).hexdigest()
                link.execute(
                    f"UPDATE {table} SET hash = ? WHERE rowid = ?", (digest, at)
                )
                if at == len(found):
                    link.execute("UPDATE ledger_head SET hash = ?", (digest,))
        except sqlite3.IntegrityError:
            return False
        link.commit()
    return True


def ended(*words):
    """Run a command and return its exit status, once it said no more than it should."""
    done = invoke(*words)
    fault = done.exception
    assert fault is None or isinstance(fault, SystemExit), (words, repr(fault))
    assert done.exit_code in (0, 2, 3), (words, done.stderr)
    assert "Traceback" not in done.stderr
    if done.exit_code:
        assert len(done.stderr.strip().splitlines()) == 1, done.stderr
        assert done.stderr.strip().endswith(".")
    return done.exit_code


@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(st.sampled_from(PLACES), st.integers(0, 3), VALUES, st.booleans())
@example(("ledger_entries", "key"), 0, "x", False)
@example(("ledger_entries", "key"), 1, "x", False)
@example(("ledger_entries", "kind"), 1, "failure", False)
@example(("ledger_entries", "number"), 3, 2**62, False)
@example(("ledger_entries", "number"), 0, None, False)
@example(("ledger_entries", "body"), 3, ('"sha256"', '"x"'), True)
@example(("ledger_entries", "body"), 2, ('"label"', '"x"'), True)
@example(("ledger_terms", "body"), 0, ('"9"', '"1/0"'), True)
@example(("ledger_head", "count"), 0, None, False)
@example(("ledger_head", "count"), 0, b"", False)
@example(("ledger_head", "hash"), 0, 0.5, False)
@example(("ledger_version", "version_num"), 0, "2", False)
def test_an_edited_ledger_ends_every_command_with_a_sentence(
    written, tmp_path_factory, place, row, value, rehash
):
    folder = tmp_path_factory.mktemp("edited") / "folder"
    shutil.copytree(written, folder)
    path, ledger = folder / "visits.toml", folder / "visits.ledger"
    before = output_of(written)
    if not edit(ledger, *place, row, value, rehash=rehash):
        return
    status = {
        name: ended("ledger", name, ledger)
        for name in ("show", "remaining", "history", "verify", "export")
    }
    ended("ledger", "history", ledger, "--json")
    ended("release", "plan", path)
    run = ended("release", "run", path)
    ended("release", "run", path, "--repeat", "3", "--output", folder / "third")
    found = ledger.exists() and status["verify"] == 0
    assert not found, "verify must see an edit"
    if place[0] == "ledger_entries":
        # Where the head was edited as well, what is beside the table tells of it.
        assert run in ((2, 3) if rehash else (2,))
    if run == 0:  # what was stored is what comes back
        assert output_of(folder) == before
    shutil.rmtree(folder.parent)


def output_of(folder: Path) -> str:
    text = (folder / "release" / "manifest.json").read_text()
    return re.findall(r'"[0-9a-f]{64}"', text)[0]
