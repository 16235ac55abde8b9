"""Brute force for small chains and trees, without any of the code under test.

`largest_leakage` solves, for every attacker and pair of secrets, the linear program
over all epsilon-DP mechanisms (Definition 2.27 of Guerra-Balboa, 2026, maximised over
mechanisms): the probability g(D) of one output event is any positive function with
``g(D) <= exp(epsilon) g(D')`` for neighbours, the ratio of its two conditional means is
linear-fractional, and one mean is normalised to one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
from scipy.optimize import linprog

Law = np.ndarray


def chain_law(initial: np.ndarray, steps: list[np.ndarray]) -> Law:
    """Return the joint law of a chain as a table with one axis a record."""
    law = np.asarray(initial, dtype=float)
    for step in steps:
        law = law[..., None] * np.asarray(step)
    return law


def tree_law(
    parents: list[int | None], kernels: list[np.ndarray], root: np.ndarray
) -> Law:
    """Return the joint law of a tree whose parents precede their children."""
    size, states = len(parents), len(root)
    law = np.empty((states,) * size)
    for x in itertools.product(range(states), repeat=size):
        edges = iter(kernels)
        law[x] = math.prod(
            root[x[v]] if p is None else next(edges)[x[p], x[v]]
            for v, p in enumerate(parents)
        )
    return law


def random_rows(
    rng: np.random.Generator, states: int, *, skew: float = 1.0
) -> np.ndarray:
    """Return a random row-stochastic matrix; larger `skew`, smaller least entries."""
    raw = rng.random((states, states)) ** (1 + 4 * skew) + 1e-6
    return raw / raw.sum(axis=1, keepdims=True)


def largest_leakage(law: Law, epsilon: float) -> float:
    """Return the largest leakage of any epsilon-DP mechanism, by linear programs."""
    best = 0.0
    for table in _attacks(law):
        for x, other in itertools.permutations(range(len(table)), 2):
            if table[x].sum() > 0 and table[other].sum() > 0:
                best = max(best, _program(table, x, other, epsilon))
    return best


def largest_log_ratio(law: Law) -> float:
    """Return the largest log ratio of two conditional laws of the unknown records."""
    best = 0.0
    for table in _attacks(law):
        rows = [row / row.sum() for row in table if row.sum() > 0]
        for p, q in itertools.permutations(rows, 2):
            met = p > 0
            best = max(best, float(np.log(p[met] / q[met]).max()))
    return best


def _attacks(law: Law) -> Iterator[np.ndarray]:
    """Yield, for each attacker and known values, the table [secret, unknown...]."""
    size = law.ndim
    for target in range(size):
        rest = [j for j in range(size) if j != target]
        for count in range(size):
            for known in itertools.combinations(rest, count):
                yield from _given(np.moveaxis(law, target, 0), target, known)


def _given(law: Law, target: int, known: tuple[int, ...]) -> Iterator[np.ndarray]:
    axes = [j + 1 if j < target else j for j in known]
    for values in itertools.product(range(law.shape[0]), repeat=len(known)):
        index: list[int | slice] = [slice(None)] * law.ndim
        for axis, value in zip(axes, values, strict=True):
            index[axis] = value
        table = law[tuple(index)]
        if table.sum() > 0:
            yield table


def _program(table: np.ndarray, x: int, other: int, epsilon: float) -> float:
    cells = np.arange(table.size).reshape(table.shape)
    top, bottom = np.zeros(table.size), np.zeros(table.size)
    top[cells[x].ravel()] = (table[x] / table[x].sum()).ravel()
    bottom[cells[other].ravel()] = (table[other] / table[other].sum()).ravel()
    rows = []
    for axis in range(table.ndim):
        for a, b in itertools.permutations(range(table.shape[axis]), 2):
            more = np.take(cells, a, axis=axis).ravel()
            less = np.take(cells, b, axis=axis).ravel()
            block = np.zeros((len(more), table.size))
            block[np.arange(len(more)), more] = 1.0
            block[np.arange(len(more)), less] -= math.exp(epsilon)
            rows.append(block)
    limits = np.vstack(rows)
    found = linprog(
        -top, A_ub=limits, b_ub=np.zeros(len(limits)), A_eq=bottom[None], b_eq=[1.0]
    )
    assert found.status == 0
    return math.log(-found.fun)


def parity_laws(flip: float = 0.01) -> np.ndarray:
    """Return an order-2 chain whose k-step bound fails.

    X_t = (S_t, R_t) as 2 S_t + R_t; R_t is fair and S_{t+1} = S_{t-1} xor R_t, flipped
    with probability `flip`.
    """
    laws = np.zeros((4, 4, 4))
    for before, now, after in itertools.product(range(4), repeat=3):
        kept = (after >> 1) == ((before >> 1) ^ (now & 1))
        laws[before, now, after] = 0.5 * (1 - flip if kept else flip)
    return laws


def parity_attack(
    odd_records: int, rank: int, epsilon: float, flip: float = 0.01
) -> float:
    """Return what "all S of odd records are reported as 0" tells about one of them.

    The even records are known, with R = 0: the odd S then form a chain that flips with
    probability `flip`. Each S is released by randomized response.
    """
    keep, lie = 1 / (1 + math.exp(-epsilon)), 1 / (1 + math.exp(epsilon))
    total, weight = [0.0, 0.0], [0.0, 0.0]
    for path in itertools.product((0, 1), repeat=odd_records):
        steps = sum(a != b for a, b in itertools.pairwise(path))
        chance = flip**steps * (1 - flip) ** (odd_records - 1 - steps)
        told = math.prod(lie if s else keep for s in path)
        total[path[rank]] += chance * told
        weight[path[rank]] += chance
    return math.log(total[0] / weight[0] * weight[1] / total[1])
