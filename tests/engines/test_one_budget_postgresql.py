"""One budget and no password in sight, with tables and ledgers on a real PostgreSQL."""

from __future__ import annotations

import json
import shlex
from urllib.parse import quote

import psycopg
import pytest

from support.command import beside_no_check, run
from support.release_documents import write_visits
from undertow.ledger import BudgetLedger
from undertow.privacy import Pure

TOKEN = "s3cr3t"
PASSWORDS = {
    "plain": (f"my {TOKEN} word", f"my {TOKEN} word"),
    "escaped": (f"p@{TOKEN}/:?#%&='", quote(f"p@{TOKEN}/:?#%&='", safe="")),
}


@pytest.fixture(scope="module")
def tables(postgres):
    """Two databases with a table of one name, and two for ledgers."""
    found = {}
    for name, rows in (("one", 3), ("two", 900)):
        found[name] = postgres.create_database(f"tables_{name}")
        with psycopg.connect(found[name], autocommit=True) as link:
            link.execute("CREATE TABLE visits (person integer, zone text)")
            link.execute(
                "INSERT INTO visits SELECT n, 'A' FROM generate_series(1, %s) n",
                (rows,),
            )
    for name in ("budget", "copy", "empty"):
        found[name] = postgres.create_database(f"ledger_{name}")
    return found


def with_password(url, password, user="postgres"):
    return url.replace("postgres@", f"{user}:{password}@", 1)


def release(folder, table, name="visits", **changes):
    folder.mkdir(exist_ok=True)
    source = {"table": table, "relation": "visits", "unit": "person"}
    return write_visits(folder, name=f"{name}.toml", source=source, **changes)


def made(address, path, epsilon=4):
    """Make a ledger from the shell."""
    words = ("--dataset", "visits", "--granularity", f"user=epsilon:{epsilon}")
    done = run("ledger", "init", address, *words, "--release", path)
    assert done.returncode == 0, done.stderr
    return done


def check_hidden(*outputs):
    for output in outputs:
        text = output if isinstance(output, str) else output.decode("utf-8", "replace")
        assert TOKEN not in text


@pytest.mark.parametrize("kind", PASSWORDS)
def test_no_word_file_or_entry_holds_a_password(tables, postgres, runs, tmp_path, kind):
    meant, written = PASSWORDS[kind]
    table = with_password(tables["one"], written)
    url = postgres.create_database(f"ledger_{kind}")
    ledger = with_password(url, written)
    path = release(tmp_path / "home", table)
    said = [made(ledger, path)]
    for words in (
        ("release", "plan", path.name, "--report", "plan.html"),
        ("release", "plan", path.name, "--json", "--report", "plan.md"),
        ("release", "run", path.name, f"--ledger={ledger}", "--report", "run.html"),
        ("release", "run", path.name, "--ledger", ledger, "--json", "--report", "r.md"),
        *(("ledger", name, ledger) for name in ("show", "history", "verify")),
        ("ledger", "export", ledger, "--output", "dump.json"),
    ):
        done = runs.run(*words, folder=path.parent)
        assert done.status == 0, done.error
        check_hidden(done.output, done.error)
    for words in (
        ("release", "run", ledger),
        ("release", "run", path.name, ledger),
        ("release", "run", path.name, "--ledger", f"{ledger}x"),
        (
            "release",
            "run",
            path.name,
            "--ledger",
            ledger.replace("postgres:", "mysql:"),
        ),
        ("release", "run", path.name, "--ledger", f"{ledger}?x=a@b"),
        ("release", "run", path.name, "--ledger", ledger, "--as-of", ledger),
        ("release", "run", path.name, "--output", ledger, "--repeat", "x"),
        ("ledger", "init", ledger, "--dataset", "x", "--granularity", ledger),
        ("ledger", "show", f"{ledger}/other"),
        ("ledger", "verify", ledger, "--head", ledger),
        ("ledger", ledger),
    ):
        done = runs.run(*words, folder=path.parent)
        assert done.status in (2, 3), (words, done.error)
        check_hidden(done.output, done.error)
    for done in said:
        check_hidden(done.stdout, done.stderr)
    for file in tmp_path.rglob("*"):
        if file.is_file() and file != path:
            check_hidden(file.read_bytes())
    with psycopg.connect(url) as link:
        for part in ("terms", "entries", "outputs", "head"):
            rows = link.execute(f"SELECT * FROM ledger_{part}".encode()).fetchall()
            check_hidden(repr([bytes(x) if isinstance(x, memoryview) else x
                               for row in rows for x in row]))  # fmt: skip
    with BudgetLedger.open(with_password(url, quote(meant, safe=""))) as found:
        assert found.losses() == {"user": Pure(1)}
        assert TOKEN not in found.name


def test_two_databases_are_charged_each_and_a_new_password_is_no_new_table(
    tables, tmp_path
):
    url = tables["budget"]
    paths = [
        release(
            tmp_path / name,
            with_password(tables[name], f"{name} {TOKEN}") + "?sslmode=disable",
        )
        for name in ("one", "two")
    ]
    made(url, paths[0])
    answers = []
    for path in paths:
        done = run("release", "run", path, "--ledger", url, "--json", cwd=path.parent)
        assert done.returncode == 0, done.stderr
        answers.append(json.loads(done.stdout))
    assert [answer["repeated"] for answer in answers] == [False, False]
    counts = [answer["answers"][0]["rows"][0][1] for answer in answers]
    assert counts[0] < 450 < counts[1]
    text = paths[0].read_text().replace(f"one {TOKEN}", "another")
    paths[0].write_text(text)
    done = run("release", "run", paths[0], "--ledger", url, "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["repeated"]
    with BudgetLedger.open(url) as found:
        assert found.losses() == {"user": Pure(2)}


def test_an_older_copy_on_a_server_and_a_database_without_one_are_refused(
    tables, postgres, tmp_path
):
    url = postgres.create_database("ledger_first")
    path = release(tmp_path / "home", tables["one"])
    made(url, path)
    with postgres.connect() as link:
        link.execute("CREATE DATABASE ledger_older TEMPLATE ledger_first")
    assert run("release", "run", path, "--ledger", url, cwd=tmp_path).returncode == 0
    older = url.replace("ledger_first", "ledger_older")
    words = ("--output", tmp_path / "elsewhere")
    done = run("release", "run", path, "--ledger", older, *words, cwd=tmp_path)
    assert done.returncode == 3
    assert b"got an older copy without" in done.stderr
    done = run("release", "run", path, cwd=tmp_path)
    assert b"ledger must be given for a table in memory or on a server" in done.stderr


def test_a_database_without_a_ledger_is_refused_with_the_command_that_makes_one(
    tables, tmp_path
):
    url = with_password(tables["empty"], TOKEN)
    path = release(tmp_path / "home", tables["one"])
    done = run("release", "run", path, "--ledger", url, cwd=tmp_path)
    assert done.returncode == 2
    said = done.stderr.decode()
    assert "must hold a ledger, got none" in said
    check_hidden(done.stderr, done.stdout)
    words = shlex.split(said.partition("with undertow ")[2].rstrip(".\n"))
    assert words[:2] == ["ledger", "init"]
    words[2] = words[2].replace("***", TOKEN)
    assert words[2] == url.replace("postgres://", "postgresql://", 1) or words[2] == url
    assert run(*words, cwd=tmp_path).returncode == 0
    done = run("release", "run", path, "--ledger", url, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_next_weeks_table_is_charged_to_the_ledger_on_the_server(tables, tmp_path):
    # A file of the same people asks for the ledger that the first week named.
    url = tables["copy"]
    (tmp_path / "w1.csv").write_text("person,zone\n1,A\n")
    (tmp_path / "w2.csv").write_text("person,zone\n1,B\n")
    paths = [
        write_visits(
            tmp_path,
            name=f"w{at}.toml",
            source={"table": f"w{at}.csv"},
            output={"folder": f"out{at}"},
        )
        for at in (1, 2)
    ]
    made(url, paths[0])
    assert run("release", "run", paths[0], "--ledger", url).returncode == 0
    done = run("release", "run", paths[1])
    assert done.returncode == 3
    assert b"must have one budget, got a new one at" in done.stderr
    assert b"/ledger_copy, of which" in done.stderr
    assert not list(tmp_path.glob("*.ledger"))
    done = run("release", "run", paths[1], "--ledger", url)
    said = beside_no_check(done.stderr.decode())
    assert (done.returncode, said) == (0, "")  # there is no other ledger
    with BudgetLedger.open(url) as found:
        assert found.losses() == {"user": Pure(2)}
