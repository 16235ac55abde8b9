"""Addresses of servers: read in one place, and shown without what is secret in them."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote

__all__ = [
    "Address",
    "has_loose_secret",
    "is_address",
    "masked",
    "read_address",
    "shown_address",
]

# A file has a name behind these, and neither user nor password.
_FILES = ("duckdb", "sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgres", "postgresql", "postgresql+psycopg")
_PORTS = {"postgresql": 5432}
_SCHEME = re.compile(r"\w[\w+.-]*://")
# An address in a text begins here; words such as --ledger= may stand before it. Where
# it was taken for a path, one of its slashes is gone.
_START = re.compile(r"\w[\w+.-]*:/+[^/?#:]*")
_NAMES = r"\w*(?:passw|pwd|secret|token)\w*"
_SECRET = re.compile(
    rf"(?i)(?<!\w)({_NAMES})=(?:'[^']*'?|\"[^\"]*\"?|[^&;\s'\"]+)",
)
_SECRET_NAME = re.compile(_NAMES, re.IGNORECASE)
_LOOSE = re.compile(r"(?i)(?<!\w)\w*(?:passw|pwd)\w*\s*=")
# What stands behind a colon and is no port, where the host was forgotten.
_NO_PORT = re.compile(
    r"(\w[\w+.-]*:/+[^/?#:@\s\[]*):(?!\*\*\*@|\d{1,5}(?:[/?#\s'\",;.]|$))[^\s'\"]+"
)
_WAY_OUT = (
    "write the signs @ : / ? # % in a user, password or name as %40 %3A %2F %3F %23 %25"
)


@dataclass(frozen=True, slots=True)
class Address:
    """An address of a server, in its parts.

    Parameters
    ----------
    scheme : str
        What it speaks, in lower case.
    user, password, host : str or None
        Who asks where; `host` is in lower case.
    port : int or None
        As it is stated.
    database : str
        Empty if none is named.
    options : tuple of (str, str)
        What follows the question mark, in order.
    fragment : str
        What follows the #: the name of a table.
    """

    scheme: str
    user: str | None
    password: str | None = field(repr=False)
    host: str | None
    port: int | None
    database: str
    options: tuple[tuple[str, str], ...] = field(repr=False)
    fragment: str

    def identity(self, relation: str | None = None) -> str:
        """Return what tells a table behind an address from every other.

        Everything but the password and other secrets, spellings of one address alike,
        so that a new password is no new table and nothing of it can be guessed.

        Parameters
        ----------
        relation : str, optional
            The table, where it is not named by the address.
        """
        options = [[k, v] for k, v in sorted(self.options) if not _is_secret(k)]
        scheme = "postgresql" if self.scheme in _POSTGRESQL else self.scheme
        port = self.port or _PORTS.get(scheme)
        parts = (scheme, self.user, self.host, port, self.database, options)
        return json.dumps([*parts, relation or self.fragment])

    def __str__(self) -> str:
        """Return the address with *** in the place of what is secret."""
        user = quote(self.user or "", safe="")
        if self.password is not None:
            user += ":***"
        host = f"[{self.host}]" if ":" in (self.host or "") else self.host or ""
        text = f"{self.scheme}://{user}{'@' if user else ''}{host}"
        text += "" if self.port is None else f":{self.port}"
        text += f"/{quote(self.database, safe='/')}" if self.database else ""
        options = (f"{k}={'***' if _is_secret(k) else v}" for k, v in self.options)
        text += f"?{'&'.join(options)}" if self.options else ""
        return text + (f"#{quote(self.fragment, safe='')}" if self.fragment else "")


def is_address(text: str) -> bool:
    """Tell whether a text names a server, and not a file."""
    scheme, sign, _ = text.partition("://")
    return bool(sign) and scheme.lower() not in _FILES


def has_loose_secret(text: str) -> bool:
    """Tell whether a text that is no address states what looks like a secret.

    So do the words of a connection string, where nothing says how far a secret goes:
    such a text is refused, and nothing of it repeated.

    Examples
    --------
    >>> has_loose_secret("host=db password='s3 cret' dbname=city")
    True
    >>> has_loose_secret("city.ledger"), has_loose_secret("postgres://a:b@db/city")
    (False, False)
    """
    return "://" not in text and _LOOSE.search(text) is not None


def read_address(text: str) -> Address:
    """Read the address of a server.

    Parameters
    ----------
    text : str
        ``scheme://user:password@host:port/database?option=value#table``.

    Raises
    ------
    ValueError
        If it is none, or can be read in two ways, as where an @ stands in a password;
        nothing of it is repeated.

    Examples
    --------
    >>> address = read_address("postgres://ann@corp:s3cret@db/city#visits")
    >>> address.user, address.host, str(address)
    ('ann@corp', 'db', 'postgres://ann%40corp:***@db/city#visits')
    """
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError

    whole, _, fragment = text.partition("#")
    try:
        _require_one_reading(whole, fragment)
        url = make_url(whole)
        options = _pairs(whole)
    except (ArgumentError, ValueError):
        raise ValueError(
            f"must be an address that can be read in one way, got another; {_WAY_OUT}"
        ) from None
    return Address(
        scheme=url.drivername.lower(),
        user=url.username,
        password=None if url.password is None else str(url.password),
        host=None if url.host is None else url.host.lower(),
        port=url.port,
        # Versions of the library differ in whether they have unquoted it.
        database=unquote(_path(whole)),
        options=options,
        fragment=unquote(fragment),
    )


def _path(whole: str) -> str:
    rest = whole.partition("://")[2].partition("?")[0]
    return rest.partition("/")[2]


def _pairs(whole: str) -> tuple[tuple[str, str], ...]:
    query = whole.partition("?")[2]
    return tuple(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query)))


def _require_one_reading(whole: str, fragment: str) -> None:
    """Refuse what another reader would cut elsewhere, or a terminal would act on."""
    rest = whole.partition("://")[2]
    authority = re.split(r"[/?]", rest, maxsplit=1)[0]
    user, at, host = authority.rpartition("@")
    later = rest[len(authority) :] + fragment
    fits = (
        _SCHEME.match(whole) is not None
        and whole.isprintable()
        and fragment.isprintable()
        and "@" not in later
        and "@" not in user.partition(":")[2]
        and (not at or bool(user))
        and not any(letter.isspace() for letter in host)
    )
    if not fits:
        raise ValueError(whole[:0])


def shown_address(text: str) -> str:
    """Return an address, or a word that ends with one, without what is secret in it.

    Examples
    --------
    >>> shown_address("--ledger=postgres://ann@corp:my s3cret@db/city?sslpassword=x y")
    '--ledger=postgres://ann%40corp:***@db/city?sslpassword=***'
    >>> shown_address("postgres://ann:s3@cret@db/city")
    'postgres://***'
    """
    found = _SCHEME.search(text)
    if found is None or not is_address(text[found.start() :]):
        return masked(text)
    try:
        shown = str(read_address(text[found.start() :]))
    except (ImportError, ValueError):
        shown = f"{found[0]}***"
    return masked(text[: found.start()]) + shown


def masked(text: str) -> str:
    """Hide the passwords of addresses somewhere in a text.

    Where an address ends in a text is not known, so that everything up to the last @
    is hidden with it: hiding more does no harm.

    Examples
    --------
    >>> masked("got 'postgres://ann:my s3cret@db/city?sslpassword=x'")
    "got 'postgres://ann:***@db/city?sslpassword=***'"
    """
    start, sign, end = text.rpartition("@")
    found = _START.search(start) if sign else None
    if found is not None and found.end() < len(start):
        user = found[0]
        text = f"{start[: found.start()]}{user}:***@{end}"
    return _SECRET.sub(r"\1=***", _NO_PORT.sub(r"\1:***", text))


def _is_secret(name: str) -> bool:
    return _SECRET_NAME.search(name) is not None
