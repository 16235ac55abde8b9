"""Dates and times as a release file writes them: ISO, and UTC unless an offset says."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

__all__ = ["EPOCH", "epoch_us", "read_date", "read_moment"]

EPOCH = datetime(1970, 1, 1)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z", re.ASCII)
_MOMENT = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"(?:[T ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?"
    r"(?:Z|[+-][0-9]{2}:[0-9]{2})?)?\Z",
    re.ASCII,
)


def read_date(text: str) -> date | None:
    """Read ``2026-01-31``, or return None.

    Examples
    --------
    >>> read_date("2026-01-31"), read_date("2026-02-31")
    (datetime.date(2026, 1, 31), None)
    """
    if not _DATE.match(text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def read_moment(text: str) -> datetime | None:
    """Read an ISO date or time as UTC without a zone, or return None.

    Examples
    --------
    >>> read_moment("2026-01-31T12:00:00+01:00")
    datetime.datetime(2026, 1, 31, 11, 0)
    """
    if not _MOMENT.match(text):
        return None
    try:
        moment = datetime.fromisoformat(text)
        return in_utc(moment)
    except (OverflowError, ValueError):
        return None


def in_utc(moment: datetime) -> datetime:
    """Return the same moment in UTC without a zone; naive times are UTC already."""
    if moment.tzinfo is None:
        return moment
    return moment.astimezone(UTC).replace(tzinfo=None)


def epoch_us(moment: datetime) -> int:
    """Return the whole microseconds from the Unix epoch to a moment.

    Examples
    --------
    >>> epoch_us(datetime(1970, 1, 2))
    86400000000
    """
    return (in_utc(moment) - EPOCH) // timedelta(microseconds=1)
