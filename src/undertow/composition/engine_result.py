"""What the scalable engine answers: the loss, the change behind it, the shares."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from undertow.composition.engine_bulk import ColumnCharges
from undertow.composition.engine_claims import ClaimTable
from undertow.composition.engine_cost import claim_cost
from undertow.composition.engine_price import Tally, front_loss
from undertow.privacy.exact import Exact, Number, round_up
from undertow.privacy.loss import Approx, Loss
from undertow.spaces.change import ChangeFamily, FrontPoint, Row

__all__ = ["EngineResult", "merge_columns", "read_front"]


@dataclass(frozen=True)
class EngineResult:
    """The loss of all releases together at one granularity.

    Parameters
    ----------
    loss : Loss
        Pure, GDP, zCDP or approximate; an approximate one is the coordinatewise
        maximum of `front`. May be infinite: nothing is raised here.
    row : Row
        The change class at the maximum; its influences count columns by their position
        in ``table.columns``.
    front : tuple of (Loss, Row)
        The classes that no other class beats; one, except for approximate losses.
    tight : bool
        Whether a neighbour pair is known that attains the loss bound of the
        composition theorem; otherwise `loss` is an upper bound on it.
    notes : tuple of str
        Assumptions used.
    table : ClaimTable
        The compressed releases.
    """

    loss: Loss
    row: Row
    front: tuple[tuple[Loss, Row], ...]
    tight: bool
    notes: tuple[str, ...]
    table: ClaimTable = field(repr=False)
    tally: Tally = field(repr=False)

    @property
    def notion(self) -> str:
        """The notion of the loss."""
        return self.loss.notion

    def contribution(self, release: int) -> tuple[Exact, ...]:
        """Return what one release adds at :attr:`row`, in the additive parameters.

        One number for pure (epsilon), zCDP (rho) and GDP (mu squared); epsilon and
        delta for approximate losses, followed by the squared mu or rho that is
        converted at the end, where there is one.
        """
        return self._kind_cost(int(self.table.kind_of[release]))

    def contributions(self) -> NDArray[np.float64]:
        """Return the first coordinate of every release's contribution, rounded up."""
        costs = [round_up(self._kind_cost(k)[0]) for k in range(len(self.table.kinds))]
        return np.array(costs, dtype=np.float64)[self.table.kind_of]

    def influence(self, release: int) -> Exact:
        """Return how far the unit of the release's cheapest claim moves."""
        claims = self.tally.kinds.claims(int(self.table.kind_of[release]))
        return self.row.influences.get(self._cheapest(claims)[0], 0)

    def _kind_cost(self, kind: int) -> tuple[Exact, ...]:
        column, at = self._cheapest(self.tally.kinds.claims(kind))
        return self._cost(column, at)

    def _cheapest(self, claims: Sequence[tuple[int, int]]) -> tuple[int, int]:
        return min(claims, key=lambda claim: self._cost(*claim))

    def _cost(self, column: int, at: int) -> tuple[Exact, ...]:
        return claim_cost(
            self.table.losses[at],
            self.row.influences.get(column, 0),
            notion=self.tally.notion,
            concentrated=self.tally.concentrated,
        )


def read_front(
    table: ClaimTable,
    tally: Tally,
    front: tuple[FrontPoint, ...],
    family: ChangeFamily,
    *,
    fixed: bool,
    delta: Number | None,
) -> EngineResult:
    """Turn the front of a family into a result; `fixed`: no claim was given up."""
    losses = [
        front_loss(
            point.values,
            notion=tally.notion,
            concentrated=tally.concentrated,
            delta=delta,
        )
        for point in front
    ]
    tight = fixed and all(point.tight for point in front)
    worst = max(range(len(front)), key=lambda k: losses[k].exact_parameters())
    return EngineResult(
        loss=_joint(losses),
        row=front[worst].row,
        front=tuple(zip(losses, (point.row for point in front), strict=True)),
        tight=tight and family.tight,
        notes=family.notes,
        table=table,
        tally=tally,
    )


def _joint(losses: Sequence[Loss]) -> Loss:
    """Return the coordinatewise maximum."""
    first = losses[0]
    if not isinstance(first, Approx):
        return max(losses, key=lambda loss: loss.exact_parameters())
    parameters = zip(*(loss.exact_parameters() for loss in losses), strict=True)
    epsilon, delta = (max(values) for values in parameters)
    return Approx.capped(epsilon, delta)


def merge_columns(result: EngineResult, groups: NDArray[np.int64]) -> EngineResult:
    """Take the columns of one group as one, for sums in which they cost the same.

    Parameters
    ----------
    result : EngineResult
        With `row` and `front` left as they are: they count the columns one by one.
    groups : ndarray of int
        The group of each column, numbered without gaps.

    Notes
    -----
    Only charges that are sums over columns are merged; others are few, or have several
    claims, of which the one that is used may depend on the order of the columns.
    """
    charges = result.tally.charges
    if not isinstance(charges, ColumnCharges) or len(set(groups.tolist())) == len(
        groups
    ):
        return result
    summed = charges.merged(groups)
    tally = replace(result.tally, table=summed.table, charges=summed)
    return replace(result, table=summed.table, tally=tally)
