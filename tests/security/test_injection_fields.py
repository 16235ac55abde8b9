"""Every text of a release file, one after the other, is replaced by an attack."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import pytest

import undertow as ut
from support.command import invoke, write_plan
from undertow.errors import UndertowError
from undertow.ledger import BudgetLedger
from undertow.release import load
from undertow.release.document.release_document import release_schema
from undertow.release.run._earlier import HEADS
from undertow.release.run._ledger_place import ledger_address

ATTACKS = [
    "../outside/x'\"); DROP TABLE canary; --",
    "'; DROP TABLE canary; --",
    '"); DELETE FROM canary; --',
    "x' UNION SELECT secret FROM canary --",
    "../outside/x",
    '"; DROP TABLE canary; --',
    "(SELECT max(secret) FROM canary)",
    "\" FROM canary; COPY canary TO '{outside}/x'; --",
    "{outside}/x",
    "zone) || (SELECT secret FROM canary",
    "A' OR '1' = '1",
    "read_csv('{outside}/../city.duckdb')",
    "$$; DROP TABLE canary; $$",
    "\\'; DROP TABLE canary; --",
    "sqlite:///{outside}/x?mode=rwc",
    "file:{outside}/x?mode=rwc&uri=true",
    "duckdb:///{outside}/x",
    "%(secret)s {{secret}} %s ? :secret $1 ~/x",
    "[bold]canary[/bold] \x1b[31m red",
    "a\nb\r\n; DROP TABLE canary",
    "＇； DROP TABLE canary； －－",
]
SECRETS = ("SECRET-7731", "PERSON-4471", "5550199")
# What these places say is a place for files, so files are made there.
PLACES = {"output.folder", "ledger.url"}

DATABASE = {"table": "../city.duckdb", "relation": "visits", "unit": "person"}
HOURS = {
    **DATABASE,
    "time": "ts",
    "per": {"window": "1h"},
    "start": "2026-01-01",
    "horizon": "4h",
}
VISITS = {"name": "visits", "select": "count"}
LEDGER = {"url": "sqlite:///own.ledger", "dataset": "visits"}


def document(source=DATABASE, promise=None, queries=(VISITS,), **parts) -> dict:
    return {
        "source": dict(source),
        "promise": promise or {"granularity": "user", "epsilon": "1"},
        "bounds": {"rows_per_unit": 3},
        "queries": [dict(query) for query in queries],
        "output": {"folder": "out"},
        "ledger": dict(LEDGER),
        **parts,
    }


def correlated(**model) -> dict:
    promise = {"granularity": "event", "epsilon": "1", "correlation": model}
    return document(HOURS, promise)


DOCUMENTS = {
    "windows": document(
        {**HOURS, "format": "duckdb", "users": 1000},
        {
            "granularity": "event",
            "epsilon": "1",
            "confidence": "0.9",
            "correlation": {
                "model": "markov",
                "states": "zone",
                "fit": "../public.csv",
            },
        },
        [
            {
                **VISITS,
                "where": "minutes >= 0 and zone2 != 'Z'",
                "by": ["zone"],
                "keys": {"zone": ["A", "B"]},
                "share": "1/2",
                "consistent": ["non-negative"],
            },
            {**VISITS, "name": "hours", "by": ["hour"], "keys": {"hour": "0..3"}},
        ],
        columns={"zone2": "upper(zone)"},
        output={"folder": "out", "format": "csv", "consistency": True},
    ),
    "file": document(
        {
            "table": "../visits.csv",
            "types": {"minutes": "int"},
            "unit": "person",
            "people": "visitors",
            "per": "user",
        },
        {"granularity": "user", "epsilon": "1", "delta": "1e-6"},
        [
            {**VISITS, "by": ["zone"], "keys": "discover"},
            {
                "name": "minutes",
                "select": "sum",
                "column": "minutes",
                "low": "0",
                "high": "60",
            },
            {
                "name": "cuts",
                "select": "histogram",
                "column": "minutes",
                "bins": ["0", "30", "60"],
            },
            {
                "name": "middle",
                "select": "quantile",
                "column": "minutes",
                "low": 0,
                "high": 60,
                "quantiles": ["1/2"],
                "candidates": ["0", "30", "60"],
            },
        ],
        bounds={"rows_per_unit": 3, "groups_per_unit": 2, "rows_per_group": 2},
    ),
    "attacker": document(
        promise={"granularity": "user", "advantage": "0.3"},
        threat={"categories": ["a", "b"], "prior": ["1", "2"], "knowledge": [0, 0]},
    ),
    "distance": document(
        promise={"granularity": "user", "rho": "1/2"},
        threat={"categories": [1, 2, 3], "tolerance": "1"},
    ),
    "mu": document(
        HOURS,
        {"granularity": "event", "mu": "1"},
        [{**VISITS, "running": True}],
    ),
    "units first": document(
        promise={"granularity": "user", "epsilon": "10000"},
        check={"units_at_least": 1, "share": "1/100", "tries": 3},
    ),
    "rows first": document(
        {
            "table": "../visits.csv",
            "types": {"zone": {"date": "%d/%m/%Y"}},
            "unit": "person",
        },
        {"granularity": "user", "epsilon": "10000"},
        check={"rows_at_least": 1, "share": "1/100", "tries": 1},
    ),
    "chain": correlated(
        model="markov", transition=[["1/2", "1/2"], ["1/4", "3/4"]], initial=["1", "0"]
    ),
    "unknown chain": correlated(model="markov", gamma="2", length=4),
    "normal": correlated(model="gaussian", correlation="0.1", group=2),
    "series": correlated(model="gaussian", phi="0.1", length=4),
}


def entries(name: str) -> int:
    """Return the entries of a run in its ledger: each charge and its output."""
    return 4 if "check" in DOCUMENTS.get(name, {}) else 2


class Leaf(NamedTuple):
    """A value of a document, or the name of one."""

    document: str
    place: tuple[Any, ...]
    what: str  # "value", "name" (an attack is a key of a table) or "more" (one more)

    @property
    def path(self) -> str:
        return ".".join(str(p) for p in self.place if not isinstance(p, int))

    def attacked(self, text: str) -> dict:
        found: Any = deepcopy(DOCUMENTS[self.document])
        inner = found
        for step in self.place[:-1]:
            inner = inner[step]
        last = self.place[-1]
        if self.what == "value":
            inner[last] = text
        elif self.what == "more":
            inner[last][text] = text
        else:
            inner[text] = inner.pop(last)
        return found


def leaves(name: str, node: Any, place: tuple[Any, ...] = ()) -> Iterator[Leaf]:
    """Walk a document: values and their names, and a name more in every table."""
    if isinstance(node, dict | list):
        items = node.items() if isinstance(node, dict) else enumerate(node)
        if place and isinstance(node, dict):
            yield Leaf(name, place, "more")
        for key, item in items:
            if place and isinstance(node, dict):
                yield Leaf(name, (*place, key), "name")
            yield from leaves(name, item, (*place, key))
    else:
        yield Leaf(name, place, "value")


def all_leaves() -> list[Leaf]:
    """Return the leaves of all documents, each place once."""
    found: dict[tuple[str, str], Leaf] = {}
    for name, content in DOCUMENTS.items():
        for leaf in leaves(name, content):
            found.setdefault((leaf.path, leaf.what), leaf)
    return list(found.values())


LEAVES = all_leaves()


def schema_paths(node: dict, parts: dict, path: str = "") -> Iterator[str]:
    """Return the places of values that a release file may have, by its schema."""
    if "$ref" in node:
        node = parts[node["$ref"].rsplit("/", 1)[1]]
    for option in node.get("anyOf", []):
        yield from schema_paths(option, parts, path)
    for name, inner in node.get("properties", {}).items():
        yield from schema_paths(inner, parts, f"{path}.{name}")
    if "items" in node:
        yield from schema_paths(node["items"], parts, path)
    inside = {"anyOf", "items", "properties"} & set(node)
    if not inside and node.get("type") != "null":
        yield path.removeprefix(".")


def test_every_field_of_the_schema_is_attacked():
    schema = release_schema()
    known = {leaf.path for leaf in LEAVES if leaf.what == "value"}
    wanted = set(schema_paths(schema, schema["$defs"]))
    assert len(wanted) > 40
    reached = {
        path
        for path in wanted
        if any(place == path or place.startswith(f"{path}.") for place in known)
    }
    assert wanted - reached == set()


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("city")
    with duckdb.connect(str(folder / "city.duckdb")) as link:
        link.execute("CREATE TABLE canary AS SELECT 'SECRET-7731' AS secret")
        link.execute(
            "CREATE TABLE visits AS SELECT * FROM (VALUES"
            " ('PERSON-4471', 'A', 5550199, TIMESTAMP '2026-01-01 01:05:00'),"
            " ('p2', 'B', 2, TIMESTAMP '2026-01-01 02:05:00'),"
            " ('p3', NULL, NULL, NULL)) AS v(person, zone, minutes, ts)"
        )
    rows = ["person,zone,minutes", "PERSON-4471,A,5550199", "p2,B,2"]
    (folder / "visits.csv").write_text("\n".join(rows))
    states = ["A", "B"] * 20 + ["A", "A", "B", "B"] * 10
    (folder / "public.csv").write_text("\n".join(["zone", *states]))
    (folder / "outside").mkdir()
    return folder


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def at_work(root: Path, name: str) -> Path:
    folder = root / name
    folder.mkdir()
    return folder


def make_ledger(path: Path, as_of: str | None = None) -> None:
    """Make the ledger that a file names, as somebody who planned the release."""
    with suppress(UndertowError, OSError, ValueError):
        release = load(path)
        place, stated = ledger_address(release.document), release.document.ledger
        assert stated is not None
        release.create_ledger(place, dataset=stated.dataset, as_of=as_of).close()


def run_file(path: Path, name: str) -> Any:
    """Run a file made from a document; a running total is run for its first hour."""
    running = any(query.get("running") for query in DOCUMENTS[name]["queries"])
    time = ("--as-of", "2026-01-01T01:00") if running else ()
    make_ledger(path, *time[1:])
    return invoke("release", "run", path, *time)


def charges(folder: Path) -> int:
    """Count the entries of all ledgers in a folder."""
    total = 0
    for path in folder.rglob("*"):
        if path.is_file() and path.read_bytes()[:15] == b"SQLite format 3":
            with BudgetLedger.open(path) as ledger:
                total += len(ledger.history())
    return total


def emptied(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (folder.parent / HEADS).unlink(missing_ok=True)  # beside the table


def check(done: Any, leaf: Leaf, folder: Path) -> None:
    """A refusal is one sentence that costs nothing; a run pays and stays in place."""
    words = done.stdout + done.stderr
    for secret in SECRETS:
        assert secret not in words
    assert "Traceback" not in words
    outside = folder.parent / "outside"
    paid = charges(folder) + charges(outside)
    if done.exit_code == 0:
        assert paid == entries(leaf.document)
    else:
        assert done.exit_code in (2, 3), done.exception
        assert done.stderr.count("\n") == 1
        assert done.stderr.rstrip().endswith((".", "?)"))
        assert all(sign.isprintable() for sign in done.stderr.rstrip("\n"))
        assert paid == 0
    if leaf.path not in PLACES:
        assert not list(outside.iterdir())
        mine = {"release.toml", "own.ledger", "own.ledger-shm", "own.ledger-wal", "out"}
        assert {path.name for path in folder.iterdir()} <= mine


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_documents_run_as_they_are(root, name, monkeypatch):
    folder = at_work(root, "plain")
    monkeypatch.chdir(at_work(root, "elsewhere"))
    try:
        path = write_plan(folder, DOCUMENTS[name], "release.toml")
        done = run_file(path, name)
        assert done.exit_code == 0, done.stderr
        assert charges(folder) == entries(name)
        assert list((folder / "out").rglob("manifest.json"))
    finally:
        for made in (root / "plain", root / "elsewhere"):
            emptied(made)
            made.rmdir()


SEVERAL = pytest.mark.parametrize(
    "attacks",
    [
        pytest.param(ATTACKS[:1], id="one"),
        pytest.param(ATTACKS[1:], id="others", marks=pytest.mark.slow),
    ],
)


@SEVERAL
@pytest.mark.parametrize("leaf", LEAVES, ids=lambda leaf: f"{leaf.path}-{leaf.what}")
def test_an_attack_anywhere_is_refused_for_free_or_changes_nothing(
    root, leaf, attacks, monkeypatch
):
    before = digests(root)
    folder, elsewhere = at_work(root, "attacked"), at_work(root, "elsewhere")
    monkeypatch.chdir(elsewhere)
    for text in attacks:
        said = text.format(outside=root / "outside")
        path = write_plan(folder, leaf.attacked(said), "release.toml")
        check(run_file(path, leaf.document), leaf, folder)
        assert not list(elsewhere.iterdir())
        emptied(folder)
        emptied(root / "outside")
    folder.rmdir()
    elsewhere.rmdir()
    assert digests(root) == before  # the canary is in there, byte by byte


@SEVERAL
def test_an_attack_that_is_a_name_everywhere_is_a_name(root, attacks, monkeypatch):
    before = digests(root)
    folder, elsewhere = at_work(root, "attacked"), at_work(root, "elsewhere")
    monkeypatch.chdir(elsewhere)
    for text in attacks:
        name = text.format(outside=root / "outside")
        quoted, literal = name.replace('"', '""'), name.replace("'", "''")
        mapping = document(
            queries=[
                {
                    **VISITS,
                    "name": name,
                    "where": f"\"{quoted}\" != '{literal}'",
                    "by": [name],
                    "keys": {name: [name, "a"]},
                }
            ],
            columns={name: "lower(zone)"},
            ledger={**LEDGER, "dataset": name},
        )
        path = write_plan(folder, mapping, "release.toml")
        make_ledger(path)
        done = invoke("release", "run", path)
        assert done.exit_code == 0, (text, done.stderr)
        check(done, Leaf("", ("queries", "name"), "value"), folder)
        emptied(folder)
    folder.rmdir()
    elsewhere.rmdir()
    assert digests(root) == before


HOSTILE = "a\x1b]0;x\x07\x1b[2J\r\n\u202eb"


@pytest.mark.parametrize("word", ["show", "history", "remaining"])
def test_a_ledger_drives_no_terminal(tmp_path, word):
    path, domain = tmp_path / "a\x1b[2J.ledger", ut.Stream(9, 2)
    terms = ("--dataset", HOSTILE, "--granularity", "user=epsilon:1")
    shape = '{"kind": "stream", "users": 9, "times": 2}'
    made = invoke("ledger", "init", path, *terms, "--domain", shape)
    with BudgetLedger.open(path) as ledger:
        assert (ledger.dataset, ledger.domain) == (HOSTILE, domain)
        release = ut.Release(
            "r", ut.Pure(1), unit=ut.User(), view=ut.Identity(), setting="view"
        )
        charge = ledger.charge([release], key="k", label=HOSTILE)
        ledger.fail(charge, HOSTILE)
    for done in (made, invoke("ledger", word, path)):
        assert done.exit_code == 0, done.stderr
        assert all(sign.isprintable() for sign in done.stdout.replace("\n", ""))


@pytest.mark.parametrize("word", ["plan", "run"])
def test_a_release_drives_no_terminal(root, word):
    folder = at_work(root, "attacked")
    hostile = {"name": HOSTILE, "by": ["zone"], "keys": {"zone": ["A", HOSTILE]}}
    try:
        file = write_plan(
            folder, document(queries=({**VISITS, **hostile},)), "release.toml"
        )
        make_ledger(file)
        done = invoke("release", word, file)
        assert done.exit_code == 0, done.stderr
        assert all(sign.isprintable() for sign in done.stdout.replace("\n", ""))
    finally:
        emptied(folder)
        folder.rmdir()


@pytest.mark.parametrize(
    "address",
    [
        ":memory:",
        "./:memory:",
        "sqlite:///:memory:",
        "sqlite:///file:x?mode=memory&uri=true",
        "sqlite+pysqlite:///file::memory:?uri=true",
    ],
)
def test_a_budget_that_would_be_forgotten_is_refused(root, address, monkeypatch):
    folder = at_work(root, "attacked")
    monkeypatch.chdir(folder)
    shape = '{"kind": "stream", "users": 9, "times": 2}'
    terms = ("--dataset", "x", "--granularity", "user=epsilon:1", "--domain", shape)
    try:
        done = invoke("ledger", "init", address, *terms)
        assert done.exit_code == 2
        assert "a ledger must be a file that is kept, got" in done.stderr
        assert not list(folder.iterdir())
        stated = document(ledger={**LEDGER, "url": address})
        for words in (
            (write_plan(folder, stated, "release.toml").name,),
            (write_plan(folder, document(), "release.toml"), "--ledger", address),
        ):
            done = invoke("release", "run", *words)
            kept = done.exit_code == 0 and charges(folder) == 2
            assert kept or (done.exit_code == 2 and charges(folder) == 0), done.stderr
            emptied(folder)
    finally:
        emptied(folder)
        folder.rmdir()
