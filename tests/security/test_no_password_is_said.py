"""No password is repeated, written or made a name, however an address is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from support.command import invoke
from support.release_documents import release_text, visits_mapping, write_visits
from undertow._address import may_hold_secret, shown_address
from undertow.release import load

TOKEN = "S3CR3Tx"
WIDE = {":": "：", "@": "＠", ";": "；", "/": "／"}
SCHEMES = ["postgres", "postgresql", "postgresql+psycopg", "mysql", "POSTGRES", "spark"]
STARTS = ["://", ":", "//", ":/", ";//", "：//", ":\\\\", ":／／", ":///", ": //"]
OPTION_NAMES = (
    "pass pw pwd passwd password auth apikey api_key key credential credentials sig "
    "token PASSWORD sslpassword sslcert options secret_access_key motherduck_token x"
).split()
SECRETS = st.tuples(
    st.text(alphabet="ab1.!$~^*+", max_size=2),
    st.text(alphabet="ab1.!$~^*+", max_size=2),
).map(TOKEN.join)
USERS = st.sampled_from(["u", "ann", "a.b", "ann-1"])
HOSTS = st.sampled_from(["h", "127.0.0.1:1", "localhost:1", "db.example.org"])
TYPOS = st.builds(
    lambda scheme, start, user, colon, secret, at, host: (
        f"{scheme}{start}{user}{colon}{secret}{at}{host}/db"
    ),
    st.sampled_from(SCHEMES),
    st.sampled_from(STARTS),
    USERS,
    st.sampled_from([":", "：", ";", "；"]),
    SECRETS,
    st.sampled_from(["@", "＠"]),
    HOSTS,
)
BARE = st.builds(
    lambda start, user, secret, host: f"{start}{user}:{secret}@{host}/db",
    st.sampled_from(
        ["", "//", "/", "sqlite:///", "duckdb://", "sqlite://", "SQLite:///"]
    ),
    USERS,
    SECRETS,
    HOSTS,
)
OPTIONS = st.builds(
    lambda start, name, secret: f"{start}?{name}={secret}",
    st.sampled_from(
        [
            *("postgres://127.0.0.1:1/db", "postgres://u@127.0.0.1:1/db", "md:db"),
            *("duckdb://x.duckdb", "postgres:/h/db", "mysql://h/db", "https://h/x.csv"),
        ]
    ),
    st.sampled_from(OPTION_NAMES),
    SECRETS,
)
WORDS = st.builds(
    lambda name, sign, secret, rest: f"host=127.0.0.1 {name}{sign}{secret}{rest}",
    st.sampled_from(OPTION_NAMES),
    st.sampled_from(["=", " = ", "= "]),
    SECRETS,
    st.sampled_from(["", " port=1", ";dbname=x"]),
)
NAMES = TYPOS | BARE | OPTIONS | WORDS
ENDS = ("--dataset", "x", "--granularity", "user=epsilon:1", "--release", "visits.toml")


@settings(
    deadline=None,
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(NAMES)
@example(f"postgres:u:{TOKEN}@h/db")
@example(f"postgres//u:{TOKEN}@h/db")
@example(f"//u:{TOKEN}@h/db")
@example(f"u:{TOKEN}@h/db")
@example(f"postgres;//u:{TOKEN}@h/db")
@example(f"postgres：//u:{TOKEN}@h/db")
@example(f"postgres:\\\\u:{TOKEN}@h\\db")
@example(f"postgres://u;{TOKEN}@127.0.0.1:1/db")
@example(f"postgres://u：{TOKEN}@127.0.0.1:1/db")
@example(f"host=127.0.0.1 pass={TOKEN}")
@example(f"host=127.0.0.1 pwd = {TOKEN}")
@example(f"sqlite:///u:{TOKEN}@x")
@example(f"duckdb://u:{TOKEN}@h/x.duckdb")
@example(f"postgres://127.0.0.1:1/db?apikey={TOKEN}")
@example(f"postgres://127.0.0.1:1/db?connect_timeout=x{TOKEN}")
@example(f"postgres://u:{TOKEN}@127.0.0.1:1/db")
@example(f"jdbc:postgresql://127.0.0.1:1/db?user=u&password={TOKEN}")
def test_no_password_is_said_written_or_made_a_name_of(tmp_path_factory, name):
    folder = tmp_path_factory.mktemp("said")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_visits(folder)
        source = {"table": name, "unit": "person"}
        url = {"url": name, "dataset": "x"}
        inputs = {
            "table.toml": visits_mapping(source=source),
            "url.toml": visits_mapping(
                source={"table": "visits.csv", "unit": "person"}, ledger=url
            ),
        }
        for file, mapping in inputs.items():
            Path(file).write_text(release_text(mapping))
        for words in (
            ("release", "plan", "table.toml"),
            ("release", "plan", "table.toml", "--json"),
            ("release", "plan", "url.toml"),
            ("release", "plan", "visits.toml", "--report", f"{name}.html"),
            ("release", "run", "table.toml", "--ledger", "none.ledger"),
            ("release", "run", "url.toml"),
            ("release", "run", "visits.toml", "--ledger", name),
            ("release", "run", "visits.toml", "--output", name),
            ("ledger", "show", name),
            ("ledger", "init", name, *ENDS),
        ):
            done = invoke(*words)
            assert TOKEN not in done.stdout + done.stderr, words
            assert TOKEN not in "".join(map(str, folder.rglob("*"))), words
            if "plan" not in words:  # the plan of a table on a server is made unseen
                assert done.exit_code == 2, words
                assert len(done.stderr.strip().splitlines()) == 1
        for file in folder.rglob("*"):
            if file.is_file() and file.name not in inputs:
                assert TOKEN not in file.read_text(errors="replace"), file


@given(NAMES)
def test_a_name_is_an_address_without_its_password_or_refused(name):
    assert may_hold_secret(name) or TOKEN not in shown_address(name)


@pytest.mark.parametrize(
    "name",
    [
        "data@2026.csv",
        "week=3/trips.csv",
        "a=1/b=2/part.csv",
        "my trips (final).csv",
        "a=b.csv",
        "x=1 y.csv",
        "10:30.csv",
        "ann@corp/trips.csv",
        "spark/trips.csv",
        "postgres/trips.csv",
        "trips;old.csv",
        "key=3/token=4/part.csv",
        "データ.csv",
        "./u:pw@h.csv",
        "./host=h pass=x.csv",
        "../said/./a b.csv",
    ],
)
def test_ordinary_names_of_files_go_on_working(name, tmp_path, monkeypatch):
    folder = tmp_path / "said"
    folder.mkdir()
    monkeypatch.chdir(folder)
    write_visits(folder, name="start.toml")
    for path in (Path(name), Path(f"{name}.ledger")):
        path.parent.mkdir(parents=True, exist_ok=True)
    Path("visits.csv").rename(name)
    mapping = visits_mapping(source={"table": name, "unit": "person"})
    Path("r.toml").write_text(release_text(mapping))
    assert (
        invoke("ledger", "init", f"{name}.ledger", *ENDS[:-1], "r.toml").exit_code == 0
    )
    words = ("--ledger", f"{name}.ledger", "--output", f"{name}.out", "--json")
    done = invoke("release", "run", "r.toml", *words)
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["answers"]
    assert (Path(f"{name}.out") / "manifest.json").is_file()
    assert invoke("ledger", "show", f"{name}.ledger").exit_code == 0
    assert invoke("ledger", "verify", f"{name}.ledger").exit_code == 0


@pytest.mark.parametrize("name", [":memory:", "file:b.ledger", "sqlite:///:memory:"])
def test_no_command_is_said_that_would_make_no_ledger(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_visits(tmp_path)
    done = invoke("release", "run", "visits.toml", "--ledger", name)
    assert done.exit_code == 2
    assert "ledger init" not in done.stderr
    assert load("visits.toml").plan() is not None
