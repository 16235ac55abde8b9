r"""A small convex solver: the least weighted sum of inverse powers in a polytope.

.. math:: \min_x \sum_i c_i x_i^{-q} \quad\text{subject to}\quad A x \le 1,\; x > 0

by a logarithmic barrier and Newton steps. At a centre of weight :math:`t` the objective
is within :math:`m/t` of the optimum, with :math:`m` the number of rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["inverse_power_minimum"]

Array = NDArray[np.float64]

_RELATIVE_GAP = 1e-11
_NEWTON_STEPS = 60
_FACTOR = 12.0


def inverse_power_minimum(
    rows: Array, costs: Array, *, order: int
) -> tuple[Array, float]:
    """Return a feasible point next to the optimum, and a lower bound on the objective.

    Parameters
    ----------
    rows : ndarray of shape (m, n)
        Non-negative; every column has a positive entry, so that the optimum exists.
    costs : ndarray of shape (n,)
        Positive.
    order : int
        The power q, 1 or 2.

    Notes
    -----
    Each Newton step solves an n by n system; some fifteen centres are visited.
    """
    point = np.full(len(costs), 0.5 / rows.sum(axis=1).max())
    value = _objective(point, costs, order)
    weight = len(rows) / value
    while True:
        point = _centre(point, rows, costs, order=order, weight=weight)
        value, gap = _objective(point, costs, order), len(rows) / weight
        if gap <= _RELATIVE_GAP * value:
            return point, value - gap
        weight *= _FACTOR


def _objective(point: Array, costs: Array, order: int) -> float:
    return float((costs * point**-order).sum())


def _centre(
    point: Array, rows: Array, costs: Array, *, order: int, weight: float
) -> Array:
    """Minimise the barrier function by damped Newton steps."""
    for _ in range(_NEWTON_STEPS):
        slack = 1 - rows @ point
        steep = weight * order * costs * point ** (-order - 1)
        gradient = rows.T @ (1 / slack) - steep
        hessian = rows.T @ (rows / slack[:, None] ** 2)
        hessian[np.diag_indices_from(hessian)] += steep * (order + 1) / point
        step = -np.linalg.solve(hessian, gradient)
        decrement = float(-gradient @ step)
        if decrement < 1e-12:
            break
        # Self-concordant damping keeps the point strictly inside.
        length = 1.0 if decrement < 0.05 else 1 / (1 + np.sqrt(decrement))
        while (rows @ (point + length * step)).max() >= 1 or (
            point + length * step
        ).min() <= 0:
            length /= 2
        point = point + length * step
    return point
