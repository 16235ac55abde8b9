"""Faults of randomised response: the wrong lie, the wrong odds, one report too many."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_non_negative, check_positive
from undertow.audit.claim import Claim
from undertow.audit.faults.base import Code, Fault, code_subject
from undertow.audit.faults.laws import (
    FiniteLaw,
    ResponseLaw,
    binary_number,
    joint_masses,
)

__all__ = [
    "double_report",
    "forgotten_split",
    "raised_truth",
    "value_seeded_response",
    "whole_domain_lie",
]

Ints = NDArray[np.int64]


def whole_domain_lie(categories: int = 8, epsilon: float = 1.0) -> Fault:
    r"""Randomised response whose lie is drawn from the whole domain.

    .. math:: p' = p + \frac{1-p}{m}, \qquad
       \varepsilon' = \ln\Bigl(1 + \frac{m}{m-1} e^\varepsilon\Bigr)

    Parameters
    ----------
    categories : int, optional
        The m; at least two. The trials of every fault are stated for its defaults.
    epsilon : float, optional
        What is claimed; positive.

    Examples
    --------
    >>> round(whole_domain_lie(3052, 1.0).epsilon, 4)
    1.3135
    """
    m, level = _read(categories, epsilon)
    p = _keep(m, level)
    truth = p + (1.0 - p) / m
    return Fault(
        "whole-domain-lie",
        "The lie of randomised response is drawn from all values, the truth included.",
        Claim.pure(level, adjacency="local"),
        Code(
            code_subject(_lie_anywhere, range(m), name="lie_anywhere", m=m, keep=p),
            ResponseLaw(m, truth),
        ),
        _honest(m, p),
        trials=4_000,
        method="local",
        success=truth,
    )


def raised_truth(
    categories: int = 8, epsilon: float = 1.0, *, shift: float = 0.1
) -> Fault:
    r"""Randomised response that tells the truth too often, by a fixed amount.

    Parameters
    ----------
    categories, epsilon
        As for :func:`whole_domain_lie`.
    shift : float, optional
        Added to the probability of the truth; not negative. From a sum of 1 on the
        code always tells the truth: the true epsilon is infinite, and no estimate of it
        from a rate exists.

    Examples
    --------
    >>> round(raised_truth(3052, 1.0).epsilon, 4), raised_truth(3052, 11.0).epsilon
    (5.8359, inf)
    """
    m, level = _read(categories, epsilon)
    p = _keep(m, level)
    truth = min(1.0, p + check_non_negative(shift, "shift"))
    return Fault(
        "raised-truth",
        "The probability of the truth is raised by a constant.",
        Claim.pure(level, adjacency="local"),
        Code(
            code_subject(_respond, range(m), name="raised_truth", m=m, keep=truth),
            ResponseLaw(m, truth),
        ),
        _honest(m, p),
        trials=4_000,
        method="local",
        success=truth,
    )


def double_report(categories: int = 4, epsilon: float = 1.0) -> Fault:
    r"""Randomised response with fresh noise each time a client reports again.

    Two reports together cost :math:`2\varepsilon`; the repair keeps the first one and
    sends it again.

    Parameters
    ----------
    categories, epsilon
        As for :func:`whole_domain_lie`.

    Examples
    --------
    >>> round(double_report().epsilon, 9)
    2.0
    """
    m, level = _read(categories, epsilon)
    p = _keep(m, level)
    single = ResponseLaw(m, p).matrix
    twice = [joint_masses((row, row)) for row in single]
    again = np.zeros((m, m * m))
    again[:, np.arange(m) * (m + 1)] = single

    def column(outputs: Any) -> Ints:
        first, second = np.asarray(outputs, dtype=np.int64).T
        return np.asarray(first * m + second)

    return Fault(
        "double-report",
        "A client who reports again draws new noise, and both reports are kept.",
        Claim.pure(level, adjacency="local"),
        Code(
            code_subject(_respond_twice, range(m), name="fresh_twice", m=m, keep=p),
            FiniteLaw(twice, column),
        ),
        Code(
            code_subject(_respond_once, range(m), name="same_twice", m=m, keep=p),
            FiniteLaw(again, column),
        ),
        trials=6_000,
    )


def forgotten_split(attributes: int = 3, epsilon: float = 1.0) -> Fault:
    r"""Several yes-or-no answers, each with the whole budget.

    The true epsilon is the number of attributes times the claimed one.

    Parameters
    ----------
    attributes : int, optional
        The k, from 2 to 8.
    epsilon : float, optional
        What is claimed for all answers together; positive.

    Examples
    --------
    >>> round(forgotten_split(3, 0.5).epsilon, 9)
    1.5
    """
    k = check_count(attributes, "attributes", minimum=2)
    if k > 8:
        raise ValueError(f"attributes must be at most 8 for a table, got {k}.")
    level = check_positive(epsilon, "epsilon")
    people = list(itertools.product((0, 1), repeat=k))

    def code(share: float, name: str) -> Code:
        p = _keep(2, share)
        rows = [
            joint_masses([np.array([p, 1 - p])[[bit, 1 - bit]] for bit in person])
            for person in people
        ]
        subject = code_subject(_flip_each, people, name=name, keep=p)
        return Code(subject, FiniteLaw(rows, binary_number))

    return Fault(
        "forgotten-split",
        "Each attribute is reported with the whole budget, not with a share.",
        Claim.pure(level, adjacency="local"),
        code(level, "whole_budget_each"),
        code(level / k, "shared_budget"),
        trials=3_000,
        pairs=((0, len(people) - 1),),
    )


def value_seeded_response(categories: int = 8, epsilon: float = 1.0) -> Fault:
    """Randomised response whose generator is seeded with the client's value.

    A report is then a fixed function of the value.

    Parameters
    ----------
    categories, epsilon
        As for :func:`whole_domain_lie`.

    Examples
    --------
    >>> value_seeded_response().epsilon
    inf
    """
    m, level = _read(categories, epsilon)
    p = _keep(m, level)
    table = np.zeros((m, m))
    for value in range(m):
        table[value, _seeded_report(value, m, p)] = 1.0
    return Fault(
        "value-seeded-response",
        "The generator is seeded with the client's value, so equal values report "
        "equally.",
        Claim.pure(level, adjacency="local"),
        Code(
            code_subject(_respond_seeded, range(m), name="value_seeded", m=m, keep=p),
            FiniteLaw(table, np.asarray),
        ),
        _honest(m, p),
        trials=800,
    )


def _read(categories: int, epsilon: float) -> tuple[int, float]:
    m = check_count(categories, "categories", minimum=2)
    return m, check_positive(epsilon, "epsilon")


def _keep(m: int, epsilon: float) -> float:
    return 1.0 / (1.0 + (m - 1) * math.exp(-epsilon))


def _honest(m: int, keep: float) -> Code:
    subject = code_subject(_respond, range(m), name="response", m=m, keep=keep)
    return Code(subject, ResponseLaw(m, keep))


def _respond(values: Any, rng: np.random.Generator, *, m: int, keep: float) -> Ints:
    truths = np.asarray(values, dtype=np.int64)
    lies = (truths + rng.integers(1, m, size=len(truths))) % m
    return np.where(rng.random(len(truths)) < keep, truths, lies)


def _lie_anywhere(
    values: Any, rng: np.random.Generator, *, m: int, keep: float
) -> Ints:
    truths = np.asarray(values, dtype=np.int64)
    lies = rng.integers(m, size=len(truths))  # the bug: may be the truth
    return np.where(rng.random(len(truths)) < keep, truths, lies)


def _respond_twice(
    values: Any, rng: np.random.Generator, *, m: int, keep: float
) -> Ints:
    reports = [_respond(values, rng, m=m, keep=keep) for _ in range(2)]
    return np.stack(reports, axis=1)


def _respond_once(
    values: Any, rng: np.random.Generator, *, m: int, keep: float
) -> Ints:
    first = _respond(values, rng, m=m, keep=keep)
    return np.stack([first, first], axis=1)


def _flip_each(values: Any, rng: np.random.Generator, *, keep: float) -> Ints:
    truths = np.asarray(values, dtype=np.int64)
    return np.where(rng.random(truths.shape) < keep, truths, 1 - truths)


def _seeded_report(value: int, m: int, keep: float) -> int:
    rng = np.random.default_rng(value)  # the bug
    return int(_respond([value], rng, m=m, keep=keep)[0])


def _respond_seeded(
    values: Any, rng: np.random.Generator, *, m: int, keep: float
) -> Ints:
    del rng
    truths, which = np.unique(np.asarray(values, np.int64), return_inverse=True)
    reports = [_seeded_report(value, m, keep) for value in truths.tolist()]
    return np.array(reports, dtype=np.int64)[which]
