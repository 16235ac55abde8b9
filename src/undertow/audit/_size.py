"""How large an audit is: the least trials that can refute, and stages that may end it.

An audit that stops as soon as it can goes through stages: a choice on a few trials,
then its test on twice as many, four times as large each time as long as all of them
take at most a tenth of the trials; the last stage has the rest. The stages share the
error of the audit, so that the limits of all of them hold together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from undertow.audit.claim import Claim
from undertow.errors import AuditError
from undertow.numeric.rounding import nudge_up
from undertow.numeric.search import greatest_int

TESTS = 2
"""Trials that test a choice, for each one on which it was made."""

# Trials of the first choice, growth of the stages, which part of all trials those
# before the last one may take, and their share of the error.
_FIRST, _GROWTH, _PART, _ERROR = 128, 4, 10, 0.25


@dataclass(frozen=True)
class Stage:
    """Trials for a choice and then for its test, and the confidence of the test.

    Parameters
    ----------
    choice, runs : int
        Trials of a local audit; of a pair, runs of each input.
    confidence : float
        The confidence of the limits of the test.
    last : bool
        Whether all trials that are left belong to it.
    """

    choice: int
    runs: int
    confidence: float
    last: bool = False


def early_sizes(total: int, cost: Callable[[int], int]) -> list[int]:
    """Return the sizes of the choices before the last one.

    Parameters
    ----------
    total : int
        All trials there are.
    cost : callable
        From the size of a choice to the trials of its stage.

    Examples
    --------
    >>> early_sizes(100_000, lambda size: (1 + TESTS) * size)
    [128, 512, 2048]
    """
    sizes: list[int] = []
    size, spent = _FIRST, 0
    while (spent := spent + cost(size)) <= total // _PART:
        sizes.append(size)
        size *= _GROWTH
    return sizes


def early_stages(sizes: Sequence[int], confidence: float) -> list[Stage]:
    """Return the stages of these choices, which share a quarter of the error.

    Examples
    --------
    >>> [(s.runs, round(s.confidence, 6)) for s in early_stages([128, 512], 0.99)]
    [(256, 0.99875), (1024, 0.99875)]
    """
    each = nudge_up(1.0 - _ERROR * (1.0 - confidence) / max(1, len(sizes)))
    return [Stage(size, TESTS * size, each) for size in sizes]


def last_confidence(confidence: float) -> float:
    """Return the confidence of a last stage that has others before it.

    Examples
    --------
    >>> round(last_confidence(0.99), 6)
    0.9925
    """
    return nudge_up(1.0 - (1.0 - _ERROR) * (1.0 - confidence))


def least_trials(reaches: Callable[[int], bool]) -> int:
    """Return the least number of trials that reaches what all larger ones reach.

    Examples
    --------
    >>> least_trials(lambda n: n * n > 50)
    8
    """
    return 1 + greatest_int(lambda n: n == 0 or not reaches(n))


def least_runs(reaches: Callable[[int], bool], claim: Claim, *, most: int) -> int:
    """Return the least number of runs that can refute a claim, up to a largest one.

    Raises
    ------
    AuditError
        If no number up to `most` does.
    """
    needed = least_trials(lambda n: n > most or reaches(n))
    if needed > most:
        raise AuditError(
            f"claim must be refutable with at most {most} runs, got {claim}; no audit "
            "here can be that long."
        )
    return needed


def least_between(low: int, high: int, reaches: Callable[[int], bool]) -> int:
    """Return the least number above `low` that reaches, where `high` is known to.

    Examples
    --------
    >>> least_between(0, 100, lambda n: n * n > 50)
    8
    """
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high
