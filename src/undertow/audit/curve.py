"""The certificate of an audit as its trials double.

Every point is the certificate of so many trials alone. It holds with the confidence of
the audit for that number fixed beforehand, not for all points at once; the verdict
rests on the last.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from undertow.audit._methods import Method, Pairs, Reconstruct, Single
from undertow.audit._reading import CELLS
from undertow.audit.result import AuditResult
from undertow.audit.runner import Counts
from undertow.errors import UndertowError

__all__ = ["Curve", "recorded_curve", "repeated_curve"]

# Halvings of the trials that are shown.
_STEPS = 6


@dataclass(frozen=True, slots=True)
class Curve:
    """Certificates after more and more trials.

    Parameters
    ----------
    points : tuple of pairs of int and float
        Trials, and the certified parameter after them; rising in the trials.
    how : str
        Where the points come from, in one sentence.
    """

    points: tuple[tuple[int, float], ...]
    how: str

    def to_dict(self) -> dict[str, Any]:
        """Return the points and their origin, ready for JSON."""
        listed = [{"trials": n, "certified": value} for n, value in self.points]
        return {"points": listed, "how": self.how}


def recorded_curve(
    result: AuditResult, looks: Sequence[Counts], *, categories: int
) -> Curve | None:
    """Read the curve of a local audit off the counts that its progress showed.

    Parameters
    ----------
    result : AuditResult
        Of :func:`~undertow.audit.audit_local`.
    looks : sequence of counts
        Handed to its `progress`, in order.
    categories : int
        Number of values.

    Returns
    -------
    Curve, optional
        None if the counts do not lead to the certificate of the result.
    """
    if not looks or "trials" not in looks[-1]:
        return None
    found = _method_of(result, looks[-1], categories)
    if found is None:
        return None
    kept: list[Counts] = []
    for counts in reversed(looks):
        if not kept or int(counts["trials"][0]) <= int(kept[-1]["trials"][0]) // 2:
            kept.append(counts)
    points = tuple(
        (int(counts["trials"][0]), found.certify(found.tally(counts))[0])
        for counts in reversed(kept[: _STEPS + 1])
    )
    return Curve(points, "From the counts of the first certifying trials of this run.")


def repeated_curve(
    audit: Callable[[int], AuditResult], result: AuditResult, *, steps: int = _STEPS
) -> Curve:
    """Run audits of a half, a quarter, ... of the trials; together at most as many.

    Parameters
    ----------
    audit : callable
        From a number of trials to the result of an audit of them.
    result : AuditResult
        Of all trials: the last point.
    steps : int, optional
        Most halvings. It ends earlier where so few trials could not refute the claim.
    """
    points = [(result.trials, result.certified)]
    for step in range(1, steps + 1):
        try:
            smaller = audit(result.trials >> step)
        except (UndertowError, ValueError):
            break  # too few trials for any audit
        if smaller.trials >= points[-1][0]:
            break
        points.append((smaller.trials, smaller.certified))
    how = "From audits of a half, a quarter, ... of the trials."
    return Curve(tuple(reversed(points)), how)


def _method_of(result: AuditResult, counts: Counts, m: int) -> Method | None:
    """Return the method whose certificate on all counts is that of the result."""
    claim, level = result.claim, result.confidence
    methods: list[Method] = []
    if "pooled" in counts:
        methods += [Pairs(claim, level, turned) for turned in (False, True)]
    if "successes" in counts:
        methods.append(Reconstruct(claim, level, m))
    if "roles" in counts:
        methods += [
            Single(claim, level, 0, cell, turned)
            for cell in range(len(CELLS))
            for turned in (False, True)
        ]
    for method in methods:
        if method.certify(method.tally(counts))[0] == result.certified:
            return method
    return None
