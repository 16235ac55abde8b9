"""Transition matrices as the comparators read them: homogeneous, at equilibrium."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.correlation.markov.mixing import stationary_law
from undertow.correlation.markov.ratio import read_kernels
from undertow.errors import ModelError

__all__ = ["Matrix", "read_transition", "reversed_kernel", "visited_law"]

Matrix = NDArray[np.float64]


def read_transition(transition: ArrayLike) -> Matrix:
    """Return one square row-stochastic matrix, or raise ModelError."""
    kernels, _ = read_kernels(transition)
    if kernels.ndim != 2:
        raise ModelError(
            "a comparator needs one transition matrix for all steps, got "
            f"{len(kernels)} of them."
        )
    return kernels


def visited_law(transition: Matrix) -> Matrix:
    """Return the stationary law, or raise ModelError where it leaves a state out."""
    law = stationary_law(transition)
    if law.min() <= 0:
        state = int(np.argmin(law))
        raise ModelError(
            f"transition must visit every state in the long run, got state {state} of "
            "stationary probability 0; leave it out of the model."
        )
    return law


def reversed_kernel(transition: Matrix) -> Matrix:
    """Return the kernel of the chain at equilibrium, run backwards."""
    flow = visited_law(transition)[:, None] * transition
    return np.asarray(flow.T / flow.sum(axis=0)[:, None])
