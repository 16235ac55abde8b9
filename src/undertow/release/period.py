"""The times that the numbers of a run are for, as plain values and in words."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from undertow.release.moments import EPOCH

if TYPE_CHECKING:
    from undertow.release.timeline import Timeline

__all__ = ["period_record", "period_words", "run_fact", "run_words"]


def period_record(timeline: Timeline, *, running: bool = False) -> dict[str, Any]:
    """Return from when until when a run reads, ISO 8601 in UTC; None where no end is.

    Parameters
    ----------
    timeline : Timeline
        Of the run.
    running : bool
        Whether totals run on from the start of the first window.
    """
    part = timeline.slice
    if part is None:
        return {"from": None, "until": None}
    start = timeline.start_us if running else part.start
    return {"from": _moment(start), "until": _moment(part.stop)}


def _moment(microseconds: int) -> str | None:
    # An open end is stated as a time that no calendar has.
    try:
        moment = EPOCH + timedelta(microseconds=microseconds)
    except OverflowError:
        return None
    return moment.replace(tzinfo=UTC).isoformat()


def period_words(times: Mapping[str, Any]) -> str:
    """Say from when until when; empty if nothing is known, as in older records.

    Examples
    --------
    >>> period_words({"from": "2026-01-04T00:00:00+00:00",
    ...               "until": "2026-01-05T00:00:00+00:00"})
    '2026-01-04 00:00 to 2026-01-05 00:00 UTC'
    """
    start, stop = (_shown(times.get(end)) for end in ("from", "until"))
    if start and stop:
        return f"{start} to {stop} UTC"
    if start:
        return f"{start} UTC and later"
    return f"before {stop} UTC" if stop else ""


def _shown(moment: str | None) -> str:
    """Return a moment to the minute, or as exactly as it needs."""
    if moment is None:
        return ""
    found = datetime.fromisoformat(moment).astimezone(UTC).replace(tzinfo=None)
    whole = not found.second and not found.microsecond
    return found.isoformat(" ", "minutes" if whole else "auto")


def run_fact(plan: Mapping[str, Any]) -> tuple[str, str]:
    """Return which run it is and the times it is for, a heading and a text.

    Parameters
    ----------
    plan : mapping
        The record of a plan; those of earlier versions name no times.

    Examples
    --------
    >>> run_fact({"run": 4, "runs": 7, "queries": []})
    ('run', '4 of 7')
    """
    times = period_words(plan)
    if plan["run"] is None:
        return "times read", times
    number = f"{plan['run']:,} of {plan['runs']:,}"
    if not times:
        return "run", number
    begun = {query["from"] for query in plan["queries"]} - {plan["from"]}
    more = "".join(f"; running totals from {_shown(start)} UTC on" for start in begun)
    return "run", f"{number}: {times}{more}"


def run_words(plan: Mapping[str, Any]) -> str:
    """Say which run it is and the times it is for, in one sentence or none.

    Examples
    --------
    >>> run_words({"run": 4, "runs": 7, "queries": []})
    'Run 4 of 7.'
    """
    name, text = run_fact(plan)
    if not text:
        return ""
    return f"Run {text}." if name == "run" else f"Times read: {text}."
