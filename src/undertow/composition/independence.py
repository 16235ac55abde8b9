"""What correlation does to a guarantee, by brute force on tiny joint tables.

Composition prices one protected unit as if the others said nothing about it. Where
one person spans several units that is an assumption, and the functions here show on
small examples how much it carries.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from undertow._validate import check_index
from undertow.errors import AssumptionError, MismatchError
from undertow.numeric.array import Array

_LARGEST_WORK = 10**8
_SUM_SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Leakage:
    """The largest Bayesian leakage and the adversary who attains it.

    Parameters
    ----------
    value : float
        In nats; zero for a single possible world.
    target : int
        The record that leaks.
    known : tuple of (int, int)
        What the adversary knows: record and value.
    values : tuple of two int
        The two values of the target that are told apart.
    output : int
        The output at which they are.
    """

    value: float
    target: int
    known: tuple[tuple[int, int], ...]
    values: tuple[int, int]
    output: int


def bayesian_leakage(joint: npt.ArrayLike, channel: npt.ArrayLike) -> Leakage:
    r"""Find the Bayesian-DP leakage of a mechanism under a joint law, exhaustively.

    .. math:: \sup_{i, K, x_K, x_i, x_i', y}
              \ln \frac{P(y \mid x_K, x_i)}{P(y \mid x_K, x_i')}

    Parameters
    ----------
    joint : array_like of shape (k,) * n
        The probability of each database of n records with k values each.
    channel : array_like of shape (k,) * n + (outputs,)
        The output law given each database.

    Raises
    ------
    MismatchError
        If the shapes do not fit.
    AssumptionError
        If the tables are too large to search.

    Notes
    -----
    Thesis, Definitions 2.26 and 2.27. Conditions of probability zero are skipped, and
    an output impossible under both values is; one possible under only one of them
    costs infinity. For independent records the value is the pure loss of replacing
    one record. Cost :math:`O(n 2^{n-1} k^n)` conditional laws.

    Examples
    --------
    >>> coin = np.array([[0.5, 0.0], [0.0, 0.5]])  # two records, always equal
    >>> flip = np.array([0.75, 0.25])
    >>> noisy = np.array([[flip, flip], [flip[::-1], flip[::-1]]])  # reads the first
    >>> round(bayesian_leakage(coin, noisy).value / math.log(3), 12)
    1.0
    """
    p, law = _tables(joint, channel)
    best = Leakage(0.0, 0, (), (0, 0), 0)
    for target, known in _adversaries(p.ndim, p.shape[0]):
        laws = _laws(p, law, target=target, known=known)
        for (one, ours), (two, theirs) in itertools.permutations(laws.items(), 2):
            value, output = _log_ratio(ours, theirs)
            if value > best.value:
                best = Leakage(value, target, known, (one, two), output)
    return best


def conditional_law(
    joint: npt.ArrayLike,
    channel: npt.ArrayLike,
    *,
    target: int,
    value: int,
    known: Mapping[int, int] | None = None,
) -> Array:
    """Return the output law an adversary expects if a record has a value.

    Parameters
    ----------
    joint, channel : array_like
        As in :func:`bayesian_leakage`.
    target, value : int
        The record and its value.
    known : mapping from record to value, optional
        What else the adversary knows.

    Raises
    ------
    AssumptionError
        If the condition has probability zero.
    """
    p, law = _tables(joint, channel)
    check_index(target, "target", size=p.ndim)
    check_index(value, "value", size=p.shape[0])
    for record, seen in (known or {}).items():
        check_index(record, "known record", size=p.ndim)
        check_index(seen, "known value", size=p.shape[0])
        if record == target:
            raise ValueError(
                f"known must be about other records, got the target {target} itself."
            )
    laws = _laws(p, law, target=target, known=tuple((known or {}).items()))
    if value not in laws:
        raise AssumptionError(
            "the condition must have positive probability, got a record and value "
            "that never occur together with what is known."
        )
    return laws[value]


def _tables(joint: npt.ArrayLike, channel: npt.ArrayLike) -> tuple[Array, Array]:
    p, law = np.asarray(joint, dtype=float), np.asarray(channel, dtype=float)
    if p.ndim == 0 or len(set(p.shape)) != 1 or law.shape[:-1] != p.shape:
        raise MismatchError(
            "joint must have shape (k,) * n and channel one more axis, got "
            f"{p.shape} and {law.shape}."
        )
    _require_law(p.ravel(), "joint")
    for row in law.reshape(-1, law.shape[-1]):
        _require_law(row, "channel")
    if p.ndim * 2 ** (p.ndim - 1) * law.size > _LARGEST_WORK:
        raise AssumptionError(
            "joint must be small enough to search, got "
            f"{p.ndim} records of {p.shape[0]} values; use a bound of "
            "undertow.correlation."
        )
    return p, law


def _require_law(probabilities: Array, name: str) -> None:
    total = math.fsum(probabilities)
    if not (probabilities >= 0).all() or abs(total - 1) > _SUM_SLACK:
        raise ValueError(
            f"{name} must hold probabilities that sum to 1, got sum {total}."
        )


def _adversaries(
    records: int, values: int
) -> Iterator[tuple[int, tuple[tuple[int, int], ...]]]:
    for target in range(records):
        others = [record for record in range(records) if record != target]
        for size in range(records):
            for known in itertools.combinations(others, size):
                for seen in itertools.product(range(values), repeat=size):
                    yield target, tuple(zip(known, seen, strict=True))


def _laws(
    p: Array, law: Array, *, target: int, known: tuple[tuple[int, int], ...]
) -> dict[int, Array]:
    """Return P[output | known, target = value] for each value that can occur."""
    laws = {}
    for value in range(p.shape[0]):
        index: list[slice | int] = [slice(None)] * p.ndim
        for record, seen in (*known, (target, value)):
            index[record] = seen
        weights = p[tuple(index)]
        total = float(weights.sum())
        if total > 0:
            outputs = law[tuple(index)].reshape(-1, law.shape[-1])
            laws[value] = weights.ravel() @ outputs / total
    return laws


def _log_ratio(ours: Array, theirs: Array) -> tuple[float, int]:
    # An output impossible under both values is inf - inf here, and not looked at.
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(ours > 0, np.log(ours) - np.log(theirs), -math.inf)
    output = int(np.argmax(ratio))
    return float(ratio[output]), output


@dataclass(frozen=True, slots=True)
class Disintegration:
    """A prior split along what the adversary already knows.

    Parameters
    ----------
    weights : mapping from label to float
        The probability of each label; labels of probability zero are left out.
    conditionals : mapping from label to tuple of float
        The prior given the label, over the same points as the prior.
    """

    weights: Mapping[Hashable, float]
    conditionals: Mapping[Hashable, tuple[float, ...]]


def disintegrate(prior: Sequence[float], labels: Sequence[Hashable]) -> Disintegration:
    r"""Split a prior along a function of the data.

    .. math:: \nu(z) = \sum_{a(x) = z} \pi(x), \qquad
              P_z(x) = \pi(x)\, 1[a(x) = z] / \nu(z)

    Parameters
    ----------
    prior : sequence of float
        The probability of each point.
    labels : sequence of hashable
        What the adversary knows at each point.

    Notes
    -----
    Thesis, Theorem 2.28 and Remark 2.29, discrete case.

    Examples
    --------
    >>> split = disintegrate([0.5, 0.3, 0.2], ["a", "a", "b"])
    >>> split.weights["a"], split.conditionals["a"]
    (0.8, (0.625, 0.37499999999999994, 0.0))
    """
    _require_law(np.asarray(prior, dtype=float), "prior")
    if len(labels) != len(prior):
        raise MismatchError(
            f"labels must be one per point, got {len(labels)} for {len(prior)}."
        )
    points = list(zip(prior, labels, strict=True))
    weights = {
        label: math.fsum(p for p, other in points if other == label)
        for label in dict.fromkeys(labels)
    }
    positive = {label: weight for label, weight in weights.items() if weight > 0}
    conditionals = {
        label: tuple(p / weight if other == label else 0.0 for p, other in points)
        for label, weight in positive.items()
    }
    return Disintegration(MappingProxyType(positive), MappingProxyType(conditionals))
