"""What a ledger writes: canonical text, exact losses, entries chained by their hash."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any, Literal

from undertow.errors import LedgerError
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure

__all__ = [
    "Entry",
    "Head",
    "Kind",
    "bits_of",
    "canonical",
    "digest",
    "instant",
    "loss_from_document",
    "loss_to_document",
    "plain_text",
    "read_entry",
    "write_entry",
]

Kind = Literal["charge", "output", "failure"]
"""What an entry says: budget was taken, its output is stored, it has none for good."""

# Python writes and reads numbers of up to 4300 digits.
_MOST_BITS = 13_000
_BUILD: dict[str, Callable[..., Loss]] = {
    "pure": Pure,
    "approx": Approx,
    "zcdp": ZCDP,
    "gdp": GDP.from_square,
}


@dataclass(frozen=True, slots=True)
class Head:
    """Where the chain ends: how many entries there are, and the hash of the last.

    Parameters
    ----------
    count : int
        The number of entries.
    hash : str
        The hash of the last entry; that of the terms where there is none.
    """

    count: int
    hash: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the chain.

    Parameters
    ----------
    number : int
        Its place, from 1; never reused, whatever the clock says.
    kind : {"charge", "output", "failure"}
        What it says.
    key : str
        The name of the charge it is about.
    hash : str
        Over the whole body, which holds the hash of the entry before it.
    time : str
        When it was written, by the writer's clock.
    clock_back : bool
        Whether that clock was behind the entry before it.
    body : mapping
        Everything that was written.
    """

    number: int
    kind: Kind
    key: str
    hash: str
    time: str
    clock_back: bool
    body: Mapping[str, Any] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the body and its hash."""
        return {**self.body, "hash": self.hash}


def canonical(value: Any) -> str:
    """Return the one JSON text of a value: sorted keys, no spaces.

    Examples
    --------
    >>> canonical({"b": [1, 2], "a": "x"})
    '{"a":"x","b":[1,2]}'
    """
    return json.dumps(
        value,
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
        allow_nan=False,
    )


def digest(content: str | bytes) -> str:
    """Return the SHA-256 of a text or of bytes, in hexadecimal."""
    data = content.encode("utf-8") if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()


def plain_text(value: object, name: str) -> str:
    """Return a text that can be written as UTF-8."""
    text = str(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(
            f"{name} must be a text of whole characters, got half of one."
        ) from None
    return text


def instant(now: datetime) -> str:
    """Return a moment as text that sorts like the moments do."""
    return now.astimezone(UTC).isoformat(timespec="microseconds")


def loss_to_document(loss: Loss) -> dict[str, Any]:
    """Return a loss as its notion and exact fractions.

    Examples
    --------
    >>> loss_to_document(Pure("0.1"))
    {'notion': 'pure', 'exact': ['1/10']}

    Raises
    ------
    LedgerError
        If a fraction is longer than can be read back.
    """
    if bits_of(loss) > _MOST_BITS:
        raise LedgerError(
            "losses must add up to fractions of at most 3900 digits, got a longer one; "
            "state losses of fewer digits, or with a common denominator."
        )
    exact = [
        "inf" if value == math.inf else str(Fraction(value))
        for value in loss.exact_parameters()
    ]
    return {"notion": loss.notion, "exact": exact}


def bits_of(loss: Loss) -> int:
    """Return the length of the longest number in the exact fractions of a loss.

    Examples
    --------
    >>> bits_of(Pure("1/256"))
    9
    """
    finite = (Fraction(x) for x in loss.exact_parameters() if x != math.inf)
    ends = (end for x in finite for end in (x.numerator, x.denominator))
    return max((end.bit_length() for end in ends), default=0)


def loss_from_document(document: Mapping[str, Any]) -> Loss:
    """Read a loss back, exactly, however long its fractions have become."""
    exact = (x if x in ("inf", math.inf) else Fraction(x) for x in document["exact"])
    return _BUILD[document["notion"]](*exact)


def write_entry(
    kind: Kind,
    key: str,
    content: Mapping[str, Any],
    *,
    after: Head,
    time: str,
    last: str,
) -> tuple[str, Entry]:
    """Return the text of the next entry, and the entry.

    Parameters
    ----------
    kind, key : str
        What it says, and about which charge.
    content : mapping
        The rest of the body.
    after : Head
        Where the chain ends now.
    time, last : str
        The writer's clock, and the time of the entry before; empty for the first.
    """
    body = {
        **content,
        "number": after.count + 1,
        "kind": kind,
        "key": key,
        "time": time,
        "clock_back": time < last,
        "previous": after.hash,
    }
    text = canonical(body)
    return text, _entry(body, digest(text))


def read_entry(text: str) -> Entry:
    """Read an entry from its text; its hash is computed, not believed.

    Raises
    ------
    LedgerError
        If the text is no entry.
    """
    try:
        if not isinstance(text, str):
            raise TypeError("an entry is a text")
        return _entry(json.loads(text), digest(text))
    except (
        ArithmeticError,
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        RecursionError,
    ):
        raise LedgerError(
            "an entry must be as the ledger wrote it, got another text; run "
            "undertow ledger verify."
        ) from None


def _entry(body: Mapping[str, Any], computed: str) -> Entry:
    # Ledgers of schema 1 knew charges only and did not compare clocks.
    return Entry(
        number=int(body["number"]),
        kind=body.get("kind", "charge"),
        key=str(body["key"]),
        hash=computed,
        time=str(body["time"]),
        clock_back=bool(body.get("clock_back", False)),
        body=body,
    )
