"""Addresses of servers: read in one place, and shown without what is secret in them."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, quote, unquote

# A file has a name behind these, and neither user nor password.
_FILES = ("duckdb", "sqlite", "sqlite+pysqlite")
_POSTGRESQL = ("postgres", "postgresql", "postgresql+psycopg")
_PORTS = {"postgresql": 5432}
_SCHEME = re.compile(r"\w[\w+.-]*://")
# An address in a text begins here; words such as --ledger= may stand before it. Where
# it was taken for a path, one of its slashes is gone.
_START = re.compile(r"\w[\w+.-]*:/+[^/?#:]*")
_WORDS = "passw|passphrase|pwd|secret|token|api_?key|credential"
_NAMES = rf"\w*(?:{_WORDS})\w*|pass|pw"
_SECRET = re.compile(
    rf"(?i)(?<!\w)({_NAMES}) *= *(?:'[^']*'?|\"[^\"]*\"?|[^&;\s'\"]+)",
)
_SECRET_NAME = re.compile(rf"(?i).*(?:{_WORDS}).*|pass|pw", re.DOTALL)
# Options whose values are words of a known list or numbers, and may be shown. Of every
# other option that a server knows the value is hidden, and a name that none knows is
# refused: which names mean a password cannot be listed.
_PLAIN_OPTIONS = frozenset(
    "channel_binding connect_timeout gssencmode keepalives keepalives_count "
    "keepalives_idle keepalives_interval load_balance_hosts port sslmode "
    "sslnegotiation sslsni ssl_max_protocol_version ssl_min_protocol_version "
    "statement_timeout_s target_session_attrs tcp_user_timeout".split()
)
_HIDDEN_OPTIONS = frozenset(
    "application_name client_encoding dbname fallback_application_name gssdelegation "
    "gsslib host hostaddr krbsrvname options passfile replication require_auth "
    "requirepeer requiressl service servicefile sslcert sslcertmode sslcompression "
    "sslcrl sslcrldir sslkey sslrootcert user".split()
)
_NUMBERS = frozenset({"connect_timeout", "port", "statement_timeout_s"})
_PLAIN_VALUE = re.compile(r"[\w.-]{1,24}")
_PLAIN_USER = re.compile(r"(?:[\w.+-]+(?:@[\w.-]+)?)?")
_PLAIN_HOST = re.compile(r"[\w.,-]*|[0-9a-f:.]+(?:%\w+)?|\*{3}")
_PLAIN_NAME = re.compile(r"[^:;=&\\]*")
_OPTION = re.compile(r"([?&])([\w.-]+)=([^&\s'\"#,;]*[^&\s'\"#,;.])")
# What tells the parts of an address apart; letters that only look like them do not.
_SIGNS = frozenset("@:/?#%=&;\\")
# A name and a password before a host, wherever the scheme was lost.
_USER = re.compile(r"[:;][^@]*@")
_SAID_USER = re.compile(
    r"(?<=[\w/\\])[:;\uff1a\uff1b](?!/)[^\s@'\",\uff20]+(?=[@\uff20])"
)
_PAIRS = re.compile(r"(?:^|[\s;&])\w+\s*=\s*[^\s/;&]+[\s;&]+\w+\s*=")
_LOOSE = re.compile(
    r"(?i)(?<!\w)(?:\w*(?:passw|passphrase|pwd)\w*|pass|pw)\s*=|\?[\w.-]+="
)
_SCHEMES = (
    "postgres|postgresql|psql|mysql|mariadb|mssql|sqlserver|oracle|sqlite|duckdb|md|"
    "motherduck|spark|jdbc|odbc|mongodb|redis|snowflake|bigquery|redshift|https?|ftp|"
    "s3|gs|abfss?"
)
_SCHEME_START = re.compile(
    rf"(?i)(?:{_SCHEMES})(?:\+\w+)?(?::|;[/\\]|[/\\]{{2}})|\w[\w+.-]+[:;][/\\]{{1,}}"
)
_OWN_FILES = re.compile(r"(?i)(?:duckdb|sqlite(?:\+pysqlite)?)://")
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
        user = _shown(self.user or "", _PLAIN_USER)
        if self.password is not None:
            user += ":***"
        host = self.host or ""
        host = host if _is_plain(host, _PLAIN_HOST) else "***"
        host = f"[{host}]" if ":" in host else host
        text = f"{self.scheme}://{user}{'@' if user else ''}{host}"
        text += "" if self.port is None else f":{self.port}"
        database = _shown(self.database, _PLAIN_NAME, safe="/")
        text += f"/{database}" if self.database else ""
        options = (f"{k}={_shown_option(k, v)}" for k, v in self.options)
        text += f"?{'&'.join(options)}" if self.options else ""
        return text + (
            f"#{_shown(self.fragment, _PLAIN_NAME)}" if self.fragment else ""
        )


def is_address(text: str) -> bool:
    """Tell whether a text names a server, and not a file."""
    scheme, sign, _ = text.partition("://")
    return bool(sign) and scheme.lower() not in _FILES


def may_hold_secret(text: str) -> bool:
    """Tell whether a name of a file may be an address or words with a password.

    An address with a typing mistake would be taken for a file, repeated in messages,
    and made on the disk. Letters that look like the signs of an address count as such.
    Nothing is said against a name that starts with ``./`` or ``../``: that is a file.
    Of a whole path only the first folder counts.

    Examples
    --------
    >>> may_hold_secret("host=db pass=s3cret"), may_hold_secret("postgres//a:b@db/city")
    (True, True)
    >>> may_hold_secret("week=3/trips@home.csv"), may_hold_secret("./a:b@c.csv")
    (False, False)
    """
    if is_address(text):
        return False  # read by itself, or refused
    found = _OWN_FILES.match(text)
    name = text[found.end() :] if found else text
    if found and name.startswith("/") and text.lower().startswith("sqlite"):
        name = name[1:]
    if re.match(r"\.\.?/", name):
        return False
    if name.startswith("/") and not name.startswith("//"):
        name = name[1:].partition("/")[0]
    plain = unicodedata.normalize("NFKC", name)
    return (
        plain.startswith("//")
        or _USER.search(plain) is not None
        or _PAIRS.search(plain) is not None
        or _LOOSE.search(plain) is not None
        or _SCHEME_START.match(plain) is not None
    )


def refused_name(text: str, *, kind: str = "a file or an address") -> str | None:
    """Return why a name is refused, from "must" on; None if it can be used.

    Parameters
    ----------
    text : str
        As somebody gave it.
    kind : str
        What it must be; an address only if that says so.
    """
    if not may_hold_secret(text) and ("address" in kind or not is_address(text)):
        return None
    return (
        f"must be {kind}, got a name that may hold a password and is not repeated; put "
        "./ before a file or folder of that name, or keep the password in PGPASSWORD "
        "and write the rest as postgresql://user@host/name"
    )


def read_address(text: str) -> Address:
    """Read the address of a server.

    Parameters
    ----------
    text : str
        ``scheme://user:password@host:port/database?option=value#table``.

    Raises
    ------
    ValueError
        If it is none, or can be read in two ways, as where an @ stands in a password,
        or has an option that is not known; nothing of it is repeated.

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
    if not all(_is_known(name) for name, _ in options):
        raise ValueError(
            "must be an address with known options such as sslmode, got another; "
            "keep a password in PGPASSWORD or ~/.pgpass"
        )
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
        and not any(map(_looks_like_sign, whole + fragment))
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
    text = _SAID_USER.sub(":***", _NO_PORT.sub(r"\1:***", text))
    return _OPTION.sub(_masked_option, _SECRET.sub(r"\1=***", text))


def _masked_option(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}={_shown_option(found[2], found[3])}"


def _shown_option(name: str, value: str) -> str:
    """Return the value of an option, or *** unless it is known to be no secret."""
    shape = name in _PLAIN_OPTIONS and _PLAIN_VALUE.fullmatch(value)
    return value if shape and (name not in _NUMBERS or value.isdecimal()) else "***"


def _shown(text: str, shape: re.Pattern[str], *, safe: str = "") -> str:
    return quote(text, safe=safe) if _is_plain(text, shape) else "***"


def _is_plain(text: str, shape: re.Pattern[str]) -> bool:
    """Tell whether a part has a shape, also where look-alikes are taken for signs."""
    return shape.fullmatch(unicodedata.normalize("NFKC", text)) is not None


def _is_known(name: str) -> bool:
    return name in _PLAIN_OPTIONS | _HIDDEN_OPTIONS or _is_secret(name)


def _looks_like_sign(letter: str) -> bool:
    return not letter.isascii() and not _SIGNS.isdisjoint(
        unicodedata.normalize("NFKC", letter)
    )


def _is_secret(name: str) -> bool:
    return _SECRET_NAME.fullmatch(name) is not None
