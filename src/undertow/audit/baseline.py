r"""LDP-Auditor, the audit of two fixed values that others are compared with.

Its population value for a symmetric protocol is that of Corollary 5.16; what it loses,
it loses to two confidence limits and a rare false positive.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, SupportsIndex

from undertow._validate import (
    check_choice,
    check_count,
    check_index,
    check_probability,
)
from undertow.audit._chunks import Campaign
from undertow.audit._trials import FixedTrials, Source
from undertow.audit.recorded import in_random_order
from undertow.privacy.result import _Shown
from undertow.risk.intervals import clopper_pearson

__all__ = ["Baseline", "Tail", "ldp_auditor", "ldp_auditor_epsilon"]

Tail = Literal["quarter", "half", "whole"]
"""Share of the error level in each of the two tails: the code's, the paper's, all."""

_SHARES = {"quarter": 4, "half": 2, "whole": 1}


@dataclass(frozen=True, slots=True)
class Baseline(_Shown):
    """What LDP-Auditor reports.

    Parameters
    ----------
    epsilon : float
        Log of the ratio of its two limits, at least 0.
    true_positives, false_positives, trials : int
        Its counts; trials are for each of the two values.
    values : tuple of int
        The value looked for, and the other one.
    alpha : float
        Its error level.
    tail : {"quarter", "half", "whole"}
        Share of it in each tail.
    """

    epsilon: float
    true_positives: int
    false_positives: int
    trials: int
    values: tuple[int, int]
    alpha: float
    tail: Tail


def ldp_auditor_epsilon(
    true_positives: SupportsIndex,
    false_positives: SupportsIndex,
    *,
    trials: SupportsIndex,
    alpha: float = 0.01,
    delta: float = 0.0,
    tail: Tail = "quarter",
) -> float:
    r"""Return what LDP-Auditor makes of its counts.

    .. math:: \ln\frac{L(\mathrm{TP}) - \delta}{U(\mathrm{FP})}

    Parameters
    ----------
    true_positives, false_positives : int
        How often the attack names the value, on it and on the other value.
    trials : int
        On each of the two values.
    alpha : float, optional
        Error level.
    delta : float, optional
        At which epsilon is asked for.
    tail : {"quarter", "half", "whole"}, optional
        Share of alpha in each tail: the published code passes alpha/2 to a two-sided
        routine, its paper means alpha/2; ``"whole"`` is not valid for both at once.

    Returns
    -------
    float
        Signed; minus infinity where the limit does not pass delta.

    Notes
    -----
    The ceiling at a million trials is 12.0252, 12.1481 or 12.2883 by the tail; the
    12.25 of the thesis and of Sauer is none of them.

    Examples
    --------
    >>> round(ldp_auditor_epsilon(10**6, 0, trials=10**6), 6)
    12.025172
    """
    n, share = check_count(trials, "trials"), _SHARES[_read_tail(tail)]
    alpha = check_probability(alpha, "alpha", open_interval=True)
    each = 1.0 - alpha / share
    low = clopper_pearson(true_positives, n, confidence=each, side="lower")[0]
    high = clopper_pearson(false_positives, n, confidence=each, side="upper")[1]
    kept = low - check_probability(delta, "delta")
    return math.log(kept / high) if kept > 0 else -math.inf


def ldp_auditor(
    subject: Any,
    *,
    trials: SupportsIndex,
    values: tuple[int, int] | None = None,
    reader: Any = None,
    alpha: float = 0.01,
    delta: float = 0.0,
    tail: Tail = "quarter",
    seed: SupportsIndex,
    chunk: SupportsIndex = 1 << 14,
) -> Baseline:
    """Run LDP-Auditor on a protocol or subject.

    Parameters
    ----------
    subject, reader
        As in :func:`~undertow.audit.local.audit_local`.
    trials : int
        On each of the two values.
    values : tuple of int, optional
        The value looked for and the other one; by default the first and the last.
    alpha, delta, tail
        As in :func:`ldp_auditor_epsilon`.
    seed : int
        The two values have independent streams; the published code uses one seed for
        both, which makes its two counts dependent.
    chunk : int, optional
        Trials held in memory at a time.

    Returns
    -------
    Baseline
        For comparison; no verdict rests on it.

    Examples
    --------
    >>> from undertow.mechanisms.local import GeneralizedResponse
    >>> found = ldp_auditor(GeneralizedResponse(10, 2), trials=20_000, seed=1)
    >>> 1.7 < found.epsilon < 2.1
    True
    """
    root, n = check_count(seed, "seed", minimum=0), check_count(trials, "trials")
    source = Source(in_random_order(subject, root), reader)
    m = source.categories
    pair = (0, m - 1) if values is None else values
    first, second = (check_index(value, "values", size=m) for value in pair)
    if first == second:
        raise ValueError(f"values must differ, got {first} twice.")
    campaign = Campaign(root, check_count(chunk, "chunk"))
    hits = [
        int(
            campaign.run(
                FixedTrials(source, value, first), n, phase=phase, job="LDP-Auditor"
            )["hits"][0]
        )
        for phase, value in ((2, first), (3, second))
    ]
    epsilon = ldp_auditor_epsilon(
        hits[0], hits[1], trials=n, alpha=alpha, delta=delta, tail=tail
    )
    found = max(0.0, epsilon)
    return Baseline(found, hits[0], hits[1], n, (first, second), alpha, tail)


def _read_tail(tail: str) -> str:
    return check_choice(tail, "tail", choices=tuple(_SHARES))
