"""What callers give and what comes back from the database, checked."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from undertow.composition import Release, release_to_document
from undertow.composition.release import require_drawn
from undertow.errors import LedgerError
from undertow.ledger.record import (
    Entry,
    bits_of,
    canonical,
    digest,
    loss_from_document,
)
from undertow.privacy.loss import Loss

__all__ = [
    "LARGEST_OUTPUT",
    "checked_output",
    "checked_releases",
    "checked_stored",
    "left_of",
    "plain",
    "require_key",
    "require_same",
]

LARGEST_OUTPUT = 512 * 2**20
"""The most bytes one stored output may have."""

_LONGEST_KEY = 500
_MOST_BITS = 1590  # such a fraction is read back; it is written with 1000 characters


def checked_releases(
    releases: Iterable[Release],
) -> tuple[tuple[Release, ...], list[dict[str, Any]]]:
    """Return releases and their documents."""
    asked = tuple(releases)
    if not asked:
        raise ValueError("releases must hold at least one release, got none.")
    for release in asked:
        if not isinstance(release, Release):
            raise TypeError(
                f"releases must hold Release objects, got {type(release).__name__}."
            )
        require_drawn(
            f"release {release.name!r}", (claim.loss for claim in release.claims)
        )
        if any(bits_of(claim.loss) > _MOST_BITS for claim in release.claims):
            raise ValueError(
                f"the loss of release {release.name!r} must be a fraction of at most "
                "480 digits above and below, got a longer one; round it up."
            )
    return asked, [release_to_document(release) for release in asked]


def require_key(key: str) -> None:
    """Refuse a key that is no short text."""
    fits = isinstance(key, str) and 0 < len(key) <= _LONGEST_KEY
    if not fits or not key.isprintable():
        raise ValueError(
            f"key must be a text of 1 to {_LONGEST_KEY} printable characters, got "
            "another value."
        )


def plain(details: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return details as JSON reads them back."""
    try:
        text = canonical(dict(details or {}))
        text.encode("utf-8")
        found: dict[str, Any] = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise ValueError(
            "details must be texts, finite numbers, lists and mappings, got another "
            "value."
        ) from None
    return found


def require_same(entry: Entry, documents: list[dict[str, Any]]) -> None:
    """Refuse a key that was charged for other releases."""
    if canonical(entry.body["releases"]) != canonical(documents):
        raise LedgerError(
            f"key {entry.key!r} must name one charge, got other releases than those "
            f"charged under it in entry {entry.number}; choose another key."
        )


def checked_output(output: bytes) -> bytes:
    """Return an output as bytes of a size that can be kept."""
    if not isinstance(output, bytes | bytearray | memoryview):
        raise TypeError(f"output must be bytes, got {type(output).__name__}.")
    content = bytes(output)
    if len(content) > LARGEST_OUTPUT:
        raise ValueError(
            f"output must have at most {LARGEST_OUTPUT} bytes, got {len(content)}; "
            "release fewer cells at once."
        )
    return content


def checked_stored(content: bytes | None, entry: Entry) -> bytes:
    """Return stored bytes if they are those that were written."""
    if content is None or digest(content) != entry.body["sha256"]:
        raise LedgerError(
            f"the output of charge {entry.key!r} must be as it was stored, got other "
            "bytes; run undertow ledger verify and restore a copy."
        )
    return content


def left_of(budget: Loss, spent: Loss) -> Loss:
    """Return the budget less what is spent, exactly; zero where nothing is left."""
    pairs = zip(budget.exact_parameters(), spent.exact_parameters(), strict=True)
    left = [
        math.inf if total == math.inf else max(Fraction(0), total - used)
        for total, used in pairs
    ]
    return loss_from_document({"notion": budget.notion, "exact": left})
