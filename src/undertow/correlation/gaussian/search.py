"""The worst attacker over all blocks of a model, remembered for the next question."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from undertow.correlation.adversary import Adversary
from undertow.correlation.gaussian.law import Block, GaussianModel
from undertow.correlation.gaussian.shift import ShiftFactor
from undertow.correlation.gaussian.sweep import MAX_BLOCK, Saturation, worst_factor
from undertow.errors import NotApplicable

__all__ = ["searched_factor", "worst_of_blocks"]

Array = NDArray[np.float64]


def worst_of_blocks(
    blocks: Iterable[tuple[Block, Array]],
    factor_of: Callable[[Block, Array], ShiftFactor],
) -> ShiftFactor:
    """Return the largest factor of the blocks, its attacker numbered in the model."""
    best: ShiftFactor | None = None
    for block, weights in blocks:
        found = factor_of(block, weights)
        if best is None or found.value > best.value:
            best = _numbered(found, block)
    assert best is not None, "a model has at least one block"
    return best


def searched_factor(
    model: GaussianModel,
    *,
    weights: Array | None = None,
    signed: bool = False,
    saturation: Saturation | None = None,
) -> ShiftFactor:
    """Return the worst factor over all attackers on every block of a model.

    Parameters
    ----------
    model : GaussianModel
        With blocks of at most `MAX_BLOCK` records.
    weights, signed, saturation
        As in :func:`~undertow.correlation.gaussian.sweep.worst_factor`; the factor is
        relative to the largest weight of all.

    Raises
    ------
    NotApplicable
        If a block is too large or nearly singular.
    """
    if model.largest_group > MAX_BLOCK:
        raise NotApplicable(
            f"the search over attackers needs blocks of at most {MAX_BLOCK} records, "
            f"got {model.largest_group}; use method='structured', 'sharp' or 'general'."
        )
    key = (None if weights is None else weights.tobytes(), signed, saturation)
    known = model.recall(key)
    if known is not None:
        return known
    largest = 1.0 if weights is None else float(np.abs(weights).max())

    def factor_of(block: Block, own: Array) -> ShiftFactor:
        share = float(np.abs(own).max()) / largest
        if share == 0:  # the query does not read this block
            return ShiftFactor(0.0, Adversary(0))
        found = worst_factor(
            block.covariance, weights=own, signed=signed, saturation=saturation
        )
        if share == 1:
            return found
        return replace(found, value=found.value * share * (1 + 2.0**-50))

    return model.remember(key, worst_of_blocks(model.blocks(weights), factor_of))


def _numbered(found: ShiftFactor, block: Block) -> ShiftFactor:
    local, records = found.adversary, block.records
    assert local is not None, "a search names its attacker"
    known = [records[j] for j in local.known]
    return replace(found, adversary=Adversary(records[local.target], known))
