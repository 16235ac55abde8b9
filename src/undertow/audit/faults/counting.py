"""Faults of counts and choices: noise that is fixed, one-sided, missing or small."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_positive
from undertow.audit.claim import Claim
from undertow.audit.faults.base import Code, Fault, code_subject
from undertow.audit.faults.laws import FiniteLaw, geometric_masses, joint_masses

__all__ = ["fixed_noise", "observed_keys", "one_sided_noise", "unhalved_exponent"]

Ints = NDArray[np.int64]

_SEED = 2026
# Columns of a law reach so far on both sides; an absent key has one more.
_REACH = 8
_ABSENT = 2 * _REACH + 1
_KEYS = "ab"
_CANDIDATES = 11


def fixed_noise(epsilon: float = 1.0) -> Fault:
    """Noise from a generator that starts from the same seed at every call.

    The noise is a constant, and whoever knows the count of one release knows all.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed; positive.

    Examples
    --------
    >>> fixed_noise().epsilon
    inf
    """
    level = check_positive(epsilon, "epsilon")
    shift = _constant(level)

    def column(outputs: Any) -> Ints:
        count = np.asarray(outputs, dtype=np.int64) - shift
        return np.where((count == 0) | (count == 1), count, 2)

    return Fault(
        "fixed-noise",
        "The generator is seeded anew at every call, so the noise is a constant.",
        Claim.pure(level),
        Code(
            code_subject(_add_constant, (0, 1), name="fixed_noise", level=level),
            FiniteLaw(np.eye(2, 3), column),
        ),
        _two_sided(level),
        trials=400,
    )


def one_sided_noise(epsilon: float = 1.0) -> Fault:
    """Geometric noise on a count that is never negative.

    An output below a count rules that count out.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed; positive.

    Examples
    --------
    >>> one_sided_noise().epsilon
    inf
    """
    level = check_positive(epsilon, "epsilon")
    rows = [
        geometric_masses(level, count, reach=_REACH, one_sided=True) for count in (0, 1)
    ]
    return Fault(
        "one-sided-noise",
        "The geometric noise is only ever added, never subtracted.",
        Claim.pure(level),
        Code(
            code_subject(_add_geometric, (0, 1), name="one_sided_noise", level=level),
            FiniteLaw(rows, _capped),
        ),
        _two_sided(level),
        trials=600,
    )


def observed_keys(epsilon: float = 1.0) -> Fault:
    """Noisy counts of those keys only that occur in the data.

    A key that nobody has is not in the output: whether one record had it is seen at
    once. The repair lists every key of the domain.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed, for replacing one record; positive.

    Examples
    --------
    >>> observed_keys().epsilon
    inf
    """
    level = check_positive(epsilon, "epsilon")
    people = ["ab", "aa"]

    def code(listed: bool, name: str) -> Code:
        rows = [_histogram_law(keys, level / 2, listed) for keys in people]
        settings = {"level": level / 2, "listed": listed}
        subject = code_subject(_histogram, people, name=name, **settings)
        return Code(subject, FiniteLaw(rows, _histogram_columns))

    return Fault(
        "observed-keys",
        "Only keys that occur in the data are released, each with a noisy count.",
        Claim.pure(level),
        code(False, "observed_keys"),
        code(True, "all_keys"),
        trials=1_000,
    )


def unhalved_exponent(epsilon: float = 1.0) -> Fault:
    r"""Exponential mechanism with odds :math:`e^{\varepsilon u/\Delta}`.

    The factor 1/2 is missing, which scores that move in both directions need. On the
    eleven candidates here the true epsilon is 1.80 instead of 1; it tends to twice the
    claimed one as candidates are added.

    Parameters
    ----------
    epsilon : float, optional
        What is claimed; positive.

    Examples
    --------
    >>> round(unhalved_exponent().epsilon, 4)
    1.7957
    """
    level = check_positive(epsilon, "epsilon")
    others = _CANDIDATES - 1
    scores = [(1, *(0,) * others), (0, *(1,) * others)]

    def code(rate: float, name: str) -> Code:
        odds = np.exp(rate * np.array(scores, dtype=float))
        law = FiniteLaw(odds / odds.sum(axis=1, keepdims=True), np.asarray)
        return Code(code_subject(_noisy_choice, scores, name=name, rate=rate), law)

    return Fault(
        "unhalved-exponent",
        "The exponential mechanism lacks the factor 1/2 in its exponent.",
        Claim.pure(level),
        code(level, "unhalved_exponent"),
        code(level / 2, "exponential"),
        trials=10_000,
    )


def _two_sided(level: float) -> Code:
    rows = [geometric_masses(level, count, reach=_REACH) for count in (0, 1)]
    subject = code_subject(_add_two_sided, (0, 1), name="geometric", level=level)
    return Code(subject, FiniteLaw(rows, _capped))


def _capped(outputs: Any) -> Ints:
    counts = np.asarray(outputs, dtype=np.int64)
    return np.asarray(np.clip(counts, -_REACH, _REACH) + _REACH)


def _geometric(size: Any, rng: np.random.Generator, level: float) -> Ints:
    return np.asarray(rng.geometric(-math.expm1(-level), size=size) - 1)


def _two_sided_noise(size: Any, rng: np.random.Generator, level: float) -> Ints:
    return _geometric(size, rng, level) - _geometric(size, rng, level)


def _add_two_sided(values: Any, rng: np.random.Generator, *, level: float) -> Ints:
    return np.asarray(values, np.int64) + _two_sided_noise(len(values), rng, level)


def _add_geometric(values: Any, rng: np.random.Generator, *, level: float) -> Ints:
    return np.asarray(values, np.int64) + _geometric(len(values), rng, level)


def _constant(level: float) -> int:
    return int(_two_sided_noise(1, np.random.default_rng(_SEED), level)[0])


def _add_constant(values: Any, rng: np.random.Generator, *, level: float) -> Ints:
    del rng
    return np.asarray(values, np.int64) + _constant(level)  # the bug


def _histogram(
    values: Any, rng: np.random.Generator, *, level: float, listed: bool
) -> list[str]:
    noise = _two_sided_noise((len(values), len(_KEYS)), rng, level)
    lines = []
    for keys, row in zip(values, noise.tolist(), strict=True):
        counts = [(key, keys.count(key)) for key in _KEYS]
        lines.append(
            " ".join(
                f"{key}={count + extra}"
                for (key, count), extra in zip(counts, row, strict=True)
                if listed or count > 0  # the bug
            )
        )
    return lines


def _histogram_law(keys: str, level: float, listed: bool) -> NDArray[np.float64]:
    parts = []
    for key in _KEYS:
        masses = np.zeros(_ABSENT + 1)
        if listed or key in keys:
            masses[:_ABSENT] = geometric_masses(level, keys.count(key), reach=_REACH)
        else:
            masses[_ABSENT] = 1.0
        parts.append(masses)
    return joint_masses(parts)


def _histogram_columns(outputs: Any) -> Ints:
    lines, which = np.unique(np.asarray(outputs, dtype=str), return_inverse=True)
    columns = []
    for line in lines.tolist():
        told = dict(item.split("=") for item in line.split())
        places = [
            int(_capped(int(told[key]))) if key in told else _ABSENT for key in _KEYS
        ]
        columns.append(places[0] * (_ABSENT + 1) + places[1])
    return np.array(columns)[which]


def _noisy_choice(values: Any, rng: np.random.Generator, *, rate: float) -> Ints:
    scores = np.asarray(values, dtype=float).reshape(-1, _CANDIDATES)
    noisy = rate * scores + rng.gumbel(size=scores.shape)
    return np.asarray(noisy.argmax(axis=1))
