"""Addresses are read in one way or refused, and shown without their passwords."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from undertow._address import Address, masked, read_address, shown_address
from undertow.errors import LedgerError, PlanError
from undertow.ledger._place import Place, place_of
from undertow.release import open_source
from undertow.release.document.release_document import (
    ReleaseDocument,
    release_from_mapping,
)

TOKEN = "s3cr3t"
NASTY = st.text(alphabet="@:/?#%&=+;,.!$*~^ '\"\\<>[]{}|aZ0é", max_size=6)
PASSWORDS = st.tuples(NASTY, NASTY).map(TOKEN.join)
NAMES = st.text(alphabet="abc@:/?#% é.-_0", min_size=1, max_size=8)
PORTS = st.none() | st.integers(1, 65535)
OPTIONS = st.dictionaries(
    st.sampled_from(["sslmode", "connect_timeout", "options"]), NAMES, max_size=2
)
PARTS = st.tuples(
    NAMES,
    st.sampled_from(["db", "10.0.0.1", "[::1]", "db.example.org"]),
    PORTS,
    NAMES,
    OPTIONS,
    NAMES,
)


def written(parts, password):
    """An address whose parts are written as they should be."""
    user, host, port, database, options, table = parts
    text = f"postgres://{quote(user, safe='')}:{quote(password, safe='')}@{host}"
    text += "" if port is None else f":{port}"
    text += f"/{quote(database, safe='')}"
    text += "?" if options else ""
    text += "&".join(f"{k}={quote(v, safe='')}" for k, v in options.items())
    return f"{text}#{quote(table, safe='')}"


@given(PARTS, PASSWORDS)
def test_what_is_written_as_it_should_be_is_read_as_it_was_meant(parts, password):
    found = read_address(written(parts, password))
    user, host, port, database, options, table = parts
    assert (found.user, found.password) == (user, password)
    assert (found.host, found.port) == (host.strip("[]"), port)
    assert (found.database, found.fragment) == (database, table)
    assert dict(found.options) == options


@given(PARTS, PARTS, PASSWORDS, PASSWORDS)
def test_two_addresses_are_one_table_exactly_if_they_differ_in_passwords_alone(
    one, two, first, second
):
    left, right = (
        read_address(written(parts, password)).identity()
        for parts, password in ((one, first), (two, second))
    )
    ends = [(*parts[:2], parts[2] or 5432, *parts[3:]) for parts in (one, two)]
    assert (left == right) == (ends[0] == ends[1])
    assert TOKEN not in left
    assert read_address(written(one, second)).identity() == left


def result_of(call):
    """What a call returns, or how it refuses."""
    try:
        return call()
    except (LedgerError, PlanError, ValueError) as fault:
        return fault


def raw(user, password, host, rest):
    return f"postgres://{user}:{password}@{host}{rest}"


RAW = st.builds(
    raw,
    NAMES | st.just("ann@corp"),
    PASSWORDS,
    st.sampled_from(["db", "db:5432", "db:port", "[::1]:1"]),
    st.sampled_from(["/city", "/city#visits", "/city?sslmode=x", "/a?b=c@d", ""]),
)


@given(RAW)
@example("postgres://ann@corp:s3cr3t@host/db")
@example("postgres://ann:my s3cr3t word@host/db")
@example("postgres://ann:s3@cr3t s3cr3t@host/db")
@example("postgres://ann:s3cr3t")
@example("postgres://db/city?password='a s3cr3t b'")
@example("postgres://db/city?sslpassword=a s3cr3t b#visits")
def test_no_password_is_shown_however_an_address_is_written(text):
    assert TOKEN not in shown_address(text)
    assert TOKEN not in shown_address(f"--ledger={text}")
    assert shown_address(shown_address(text)) == shown_address(text)
    if not text.startswith("postgres://db/"):  # where words end is known of none
        assert TOKEN not in masked(f"table must be another, got '{text}', not this.")
        assert TOKEN not in masked(f"{Path(text)} must be a release file, got none.")
    found = result_of(lambda: read_address(text))
    said = f"{found} {found!r}"
    assert TOKEN not in said
    if isinstance(found, Address):
        assert TOKEN not in found.identity()


@given(RAW)
def test_documents_ledgers_and_sources_repeat_no_password(text):
    mapping = {
        "source": {"table": text, "unit": "person"},
        "promise": {"epsilon": "1"},
        "bounds": {"rows_per_unit": 1},
        "queries": [{"name": "n", "select": "count"}],
        "ledger": {"url": text, "dataset": "d"},
    }
    document = result_of(lambda: release_from_mapping(mapping))
    assert TOKEN not in f"{document!r} {document}"
    if isinstance(document, ReleaseDocument):
        assert TOKEN not in json.dumps(document.to_dict())
    place = result_of(lambda: place_of(text.removesuffix("#visits")))
    assert TOKEN not in str(place)
    if isinstance(place, Place):
        assert TOKEN not in place.name
        place.close()
    with pytest.raises(PlanError) as caught:
        open_source(text.removesuffix("#visits"))  # names no table
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["", "postgres:", "visits.csv", "postgres://h/db\n#t", "postgres://h:0x1/d"]
)
def test_what_is_no_address_is_refused(text):
    with pytest.raises(ValueError, match="read in one way"):
        read_address(text)
