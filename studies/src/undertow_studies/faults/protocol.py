"""Faults of local protocols: randomised response and encodings.

The wrong lie, the wrong odds, one report too many; bits that are not reset, sets and
hashes that know the value.
"""

from __future__ import annotations

import itertools
import math
from itertools import combinations
from typing import Any, Literal

import numpy as np

from undertow._validate import (
    check_choice,
    check_count,
    check_non_negative,
    check_positive,
)
from undertow.audit.claim import Claim
from undertow.mechanisms.local import (
    OptimizedUnary,
    SubsetSelection,
    SymmetricUnary,
    hash_bucket,
    hash_buckets,
    subset_size,
    unary_success,
)
from undertow.mechanisms.local._bitset import Words, width
from undertow.numeric.array import Bools, Ints
from undertow_studies.faults.law import (
    BitsLaw,
    Code,
    Fault,
    FiniteLaw,
    ResponseLaw,
    binary_number,
    code_subject,
    joint_masses,
)


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


# Faults of encodings: bits that are not reset, sets and hashes that know the value.


# Hash functions in the public list.
_SEEDS = 16
# Sets that are listed one by one.
_SETS = 20


def missing_reset(
    encoding: Literal["sue", "oue"] = "sue",
    categories: int = 8,
    epsilon: float = 0.5,
) -> Fault:
    r"""Unary encoding that does not reset the true bit before it draws it.

    Noise is drawn for all bits, and the true one is then set with probability p, but
    never cleared: :math:`p' = p + q - pq`.

    Parameters
    ----------
    encoding : {"sue", "oue"}, optional
        Symmetric or optimised unary encoding.
    categories : int, optional
        The m; at least two.
    epsilon : float, optional
        What is claimed; positive.

    Notes
    -----
    This was the unary encoding of pure-LDP 1.1.2 [1]_; repaired in 1.2.0. The relative
    gain is largest at small epsilon. [2]_ finds it by reconstruction at 0.25.

    References
    ----------
    .. [1] S. Maddock, *pure-LDP*, Python package.
    .. [2] A. Sauer, *Measurement of Attack Resilience of Differential Privacy*,
       master's thesis, KIT, 2025, section 10.2.

    Examples
    --------
    >>> round(missing_reset("sue", 3052, 0.25).epsilon, 4)
    1.2288
    """
    kind = check_choice(encoding, "encoding", choices=("sue", "oue"))
    m, level = _read(categories, epsilon)
    p, q = _symmetric(level / 2) if kind == "sue" else (0.5, _symmetric(level)[1])
    kept = p + q - p * q
    protocol = SymmetricUnary if kind == "sue" else OptimizedUnary
    return Fault(
        f"missing-reset-{kind}",
        "The true bit keeps its noise: it is set if drawn, but never cleared.",
        Claim.pure(level, adjacency="local"),
        Code(
            code_subject(_bits_kept, range(m), name=f"unreset_{kind}", m=m, p=p, q=q),
            BitsLaw(m, kept, q),
        ),
        _unary(m, p, q, name=kind),
        trials=3_000,
        method="local",
        reader=protocol(m, level),
        success=unary_success(m, keep=kept, noise=q),
    )


def full_level_flip(categories: int = 8, epsilon: float = 1.0) -> Fault:
    r"""Symmetric unary encoding that spends the whole level on each bit.

    Two bits differ between two values, so that the flip must use
    :math:`e^{\varepsilon/2}`; with :math:`e^\varepsilon` the loss is
    :math:`2\varepsilon`.

    Parameters
    ----------
    categories, epsilon
        As for :func:`missing_reset`.

    Examples
    --------
    >>> round(full_level_flip().epsilon, 9)
    2.0
    """
    m, level = _read(categories, epsilon)
    p, q = _symmetric(level)
    return Fault(
        "full-level-flip",
        "Each bit is flipped with the odds of the whole epsilon instead of half of it.",
        Claim.pure(level, adjacency="local"),
        _unary(m, p, q, name="full_level"),
        _unary(m, *_symmetric(level / 2), name="sue"),
        trials=3_000,
        method="local",
        reader=SymmetricUnary(m, level),
        success=unary_success(m, keep=p, noise=q),
    )


def certain_subset(categories: int = 8, epsilon: float = 1.0) -> Fault:
    """Subset selection that always puts the truth into the set.

    A set without a value then rules that value out.

    Parameters
    ----------
    categories : int, optional
        The m, from 3 to 20.
    epsilon : float, optional
        What is claimed; positive.

    Examples
    --------
    >>> certain_subset().epsilon
    inf
    """
    m, level = _read(categories, epsilon)
    if not 3 <= m <= _SETS:
        raise ValueError(f"categories must be from 3 to {_SETS}, got {m}.")
    size = subset_size(m, level)
    keep = size / (size + (m - size) * math.exp(-level))

    def code(truth: float, name: str) -> Code:
        settings = {"m": m, "size": size, "truth": truth}
        subject = code_subject(_subset, range(m), name=name, **settings)
        return Code(subject, _subset_law(m, size, truth))

    return Fault(
        "certain-subset",
        "The set always holds the truth, not only with the probability of the "
        "protocol.",
        Claim.pure(level, adjacency="local"),
        code(1.0, "certain_subset"),
        code(keep, "subset"),
        trials=800,
        method="local",
        reader=SubsetSelection(m, level),
        success=1.0 / size,
    )


def value_seeded_hash(categories: int = 8, epsilon: float = 1.0) -> Fault:
    r"""Local hashing whose hash function is chosen by the value.

    The report names the hash function, hence the value. A function that is fixed for
    all clients would do no harm to privacy: the report is then randomised response on
    a public function of the value.

    Parameters
    ----------
    categories : int, optional
        The m, from 2 to 16.
    epsilon : float, optional
        What is claimed; positive.

    Notes
    -----
    The report is a pair of a number into a public list of 16 hash functions and a
    bucket.

    Examples
    --------
    >>> value_seeded_hash().epsilon
    inf
    """
    m, level = _read(categories, epsilon)
    if m > _SEEDS:
        raise ValueError(f"categories must be at most {_SEEDS}, got {m}.")
    g = hash_buckets(level)
    keep = 1.0 / (1.0 + (g - 1) * math.exp(-level))

    def code(by_value: bool, name: str) -> Code:
        settings = {"g": g, "keep": keep, "by_value": by_value}
        subject = code_subject(_hashed, range(m), name=name, **settings)
        return Code(subject, _hash_law(m, g, keep, by_value))

    return Fault(
        "value-seeded-hash",
        "The hash function is chosen by the value, and the report names it.",
        Claim.pure(level, adjacency="local"),
        code(True, "value_seeded_hash"),
        code(False, "random_hash"),
        trials=1_000,
        pairs=((0, 1), (2, 3)),
    )


def _symmetric(level: float) -> tuple[float, float]:
    p = 1.0 / (1.0 + math.exp(-level))
    return p, 1.0 / (1.0 + math.exp(level))


def _unary(m: int, p: float, q: float, *, name: str) -> Code:
    subject = code_subject(_bits, range(m), name=name, m=m, p=p, q=q)
    return Code(subject, BitsLaw(m, p, q))


def _bits(
    values: Any, rng: np.random.Generator, *, m: int, p: float, q: float
) -> Words:
    table, truths, coins = _noise(values, rng, m, p, q)
    table[np.arange(len(truths)), truths] = coins
    return _pack(table)


def _bits_kept(
    values: Any, rng: np.random.Generator, *, m: int, p: float, q: float
) -> Words:
    table, truths, coins = _noise(values, rng, m, p, q)
    table[np.arange(len(truths)), truths] |= coins  # the bug: never cleared
    return _pack(table)


def _noise(
    values: Any, rng: np.random.Generator, m: int, p: float, q: float
) -> tuple[Bools, Ints, Bools]:
    truths = np.asarray(values, dtype=np.int64)
    table = rng.random((len(truths), m)) < q
    return table, truths, rng.random(len(truths)) < p


def _pack(table: Bools) -> Words:
    padded = np.zeros((len(table), 32 * width(table.shape[1])), dtype=bool)
    padded[:, : table.shape[1]] = table
    return np.packbits(padded, axis=1, bitorder="little").view("<u4")


def _subset(
    values: Any, rng: np.random.Generator, *, m: int, size: int, truth: float
) -> Words:
    truths = np.asarray(values, dtype=np.int64)
    rows, held = np.arange(len(truths)), rng.random(len(truths)) < truth
    keys = rng.random((len(truths), m))
    keys[rows, truths] = np.where(held, -1.0, 2.0)  # first or last in the order
    chosen = np.argsort(keys, axis=1)[:, :size]
    table = np.zeros((len(truths), m), dtype=bool)
    table[rows[:, None], chosen] = True
    return _pack(table)


def _subset_law(m: int, size: int, truth: float) -> FiniteLaw:
    sets = sorted(sum(1 << k for k in held) for held in combinations(range(m), size))
    words = np.array(sets)
    holds = (words[None, :] >> np.arange(m)[:, None] & 1).astype(bool)
    inside = truth / math.comb(m - 1, size - 1)
    outside = (1.0 - truth) / math.comb(m - 1, size)
    return FiniteLaw(
        np.where(holds, inside, outside),
        lambda outputs: np.searchsorted(words, np.asarray(outputs)[:, 0]),
    )


def _hashed(
    values: Any, rng: np.random.Generator, *, g: int, keep: float, by_value: bool
) -> Ints:
    truths = np.asarray(values, dtype=np.int64)
    seeds = truths if by_value else rng.integers(_SEEDS, size=len(truths))
    homes = hash_bucket(seeds, truths, buckets=g) if len(truths) else truths
    lies = (homes + rng.integers(1, g, size=len(truths))) % g
    told = np.where(rng.random(len(truths)) < keep, homes, lies)
    return np.stack([seeds, told], axis=1)


def _hash_law(m: int, g: int, keep: float, by_value: bool) -> FiniteLaw:
    table = np.zeros((m, _SEEDS, g))
    for value in range(m):
        for seed in [value] if by_value else range(_SEEDS):
            share = 1.0 if by_value else 1.0 / _SEEDS
            home = int(hash_bucket([seed], [value], buckets=g)[0])
            table[value, seed] = share * (1.0 - keep) / (g - 1)
            table[value, seed, home] = share * keep
    return FiniteLaw(
        table.reshape(m, -1),
        lambda outputs: np.asarray(outputs)[:, 0] * g + np.asarray(outputs)[:, 1],
    )
