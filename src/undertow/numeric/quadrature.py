"""Integrals of smooth functions by the rule of Gauss and Legendre."""

from __future__ import annotations

from functools import cache

import numpy as np

from undertow.numeric.array import Floats


@cache
def unit_rule(size: int) -> tuple[Floats, Floats]:
    """Return nodes and weights on [0, 1], exact for polynomials of degree 2 size - 1.

    Examples
    --------
    >>> nodes, weights = unit_rule(2)
    >>> round(float(weights @ nodes**3), 15)
    0.25
    """
    nodes, weights = np.polynomial.legendre.leggauss(size)
    rule = (nodes + 1.0) / 2.0, weights / 2.0
    for part in rule:
        part.setflags(write=False)
    return rule


def panel_rule(cuts: Floats, size: int) -> tuple[Floats, Floats]:
    """Return the composite rule with `size` nodes on each panel between `cuts`.

    Examples
    --------
    >>> nodes, weights = panel_rule(np.array([0.0, 1.0, 4.0]), 2)
    >>> round(float(weights @ nodes**3), 12)
    64.0
    """
    nodes, weights = unit_rule(size)
    width = np.diff(cuts)[:, None]
    return (cuts[:-1, None] + width * nodes).ravel(), (width * weights).ravel()
