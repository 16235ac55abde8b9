"""Which notion to sum in, which claims can be used there, and the sum as a loss."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from undertow.composition.engine_bulk import ColumnCharges
from undertow.composition.engine_charge import Prices, charges_of
from undertow.composition.engine_claims import ClaimTable, Kinds
from undertow.composition.engine_cost import as_exact, claim_cost, tag_of
from undertow.errors import AssumptionError, NotionMismatchError
from undertow.privacy.conversion import gdp_to_approx, zcdp_to_approx
from undertow.privacy.exact import Exact, Number
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss, Pure
from undertow.spaces.base import Metric
from undertow.spaces.change import Charge
from undertow.spaces.metric import DiscreteMetric

__all__ = [
    "NOTIONS",
    "Tally",
    "choose_notion",
    "claim_cost",
    "front_loss",
    "open_tally",
]

NOTIONS = ("pure", "gdp", "zcdp", "approx")
"""The notions a sum can be taken in, the first that fits is taken."""

_FITS: dict[str, frozenset[str]] = {
    "pure": frozenset({"pure"}),
    "gdp": frozenset({"pure", "gdp"}),
    "zcdp": frozenset({"pure", "gdp", "zcdp"}),
    "approx": frozenset({"pure", "approx"}),
}


@dataclass(frozen=True)
class Tally:
    """The charges of a plan in one notion.

    Parameters
    ----------
    notion : str
        The notion of the sum.
    concentrated : str or None
        With approximate sums, what the last coordinate adds: ``"gdp"`` squares,
        ``"zcdp"``, or nothing.
    table : ClaimTable
        The releases.
    usable : ndarray of bool or None
        Which claims of the kinds can be used in the notion; None: all.
    charges : sequence of Charge
        Kinds that share columns are merged.
    """

    notion: str
    concentrated: str | None
    table: ClaimTable
    usable: NDArray[np.bool_] | None
    charges: Sequence[Charge]

    @cached_property
    def kinds(self) -> Kinds:
        """For each kind of release the claims that can be used in the notion."""
        return _kept(self.table, self.usable)

    @property
    def claims(self) -> Iterator[list[tuple[int, int]]]:
        """The claims of each kind in turn, as (column, loss) positions."""
        return (self.kinds.claims(kind) for kind in range(len(self.kinds)))

    @property
    def coordinates(self) -> int:
        """The number of cost coordinates."""
        return 1 if self.notion != "approx" else 2 + (self.concentrated is not None)


def choose_notion(table: ClaimTable, *, delta: Number | None) -> str:
    """Return the first notion in which every release has a usable claim.

    Raises
    ------
    NotionMismatchError
        If Gaussian or zCDP losses meet (epsilon, delta) ones and no `delta` is given.
    """
    held = _held(table)
    for notion in NOTIONS:
        fits = sum(1 << NOTIONS.index(tag) for tag in _FITS[notion])
        if all(mask & fits for mask in held):
            return notion
    if delta is None:
        raise NotionMismatchError(
            "delta must be given where Gaussian or zCDP losses meet (epsilon, delta) "
            "ones, got none; it is spent once on converting them."
        )
    return "approx"


def _held(table: ClaimTable) -> set[int]:
    """Return the sets of notions that releases have claims in, as bits."""
    bits = [1 << NOTIONS.index(tag_of(loss)) for loss in table.losses]
    if table.release_of is None:
        return set(bits)
    if not len(table.release_of):
        return set()
    kinds = table.kinds
    per_claim = np.array(bits, np.int64)[kinds.losses]
    return set(np.bitwise_or.reduceat(per_claim, kinds.offsets[:-1]).tolist())


def open_tally(table: ClaimTable, *, notion: str, delta: Number | None) -> Tally:
    """Turn compressed claims into charges of one notion.

    Raises
    ------
    NotionMismatchError
        If a release has no claim that can be stated in `notion`.
    AssumptionError
        If an (epsilon, delta) claim is stated in a unit that no neighbour relation
        generates.
    """
    tags = [tag_of(loss) for loss in table.losses]
    usable = _usable(table, tags, notion=notion, delta=delta)
    used = set(tags)
    if usable is not None:
        used = {tags[at] for at in np.unique(table.kinds.losses[usable]).tolist()}
    concentrated = None
    if notion == "approx" and used & {"gdp", "zcdp"}:
        concentrated = "zcdp" if "zcdp" in used else "gdp"
    if notion == "approx":
        _require_chains(table, usable)
    prices = Prices(table.losses, notion, concentrated)
    charges = _charges(table, usable, prices)
    return Tally(notion, concentrated, table, usable, charges)


def _charges(
    table: ClaimTable, usable: NDArray[np.bool_] | None, prices: Prices
) -> Sequence[Charge]:
    if usable is None and table.release_of is None:
        return ColumnCharges(table, prices)
    return charges_of(_kept(table, usable), table.counts, prices)


def _kept(table: ClaimTable, usable: NDArray[np.bool_] | None) -> Kinds:
    return table.kinds if usable is None else table.kinds.keep(usable)


def _usable(
    table: ClaimTable, tags: Sequence[str], *, notion: str, delta: Number | None
) -> NDArray[np.bool_] | None:
    """Return which claims can be stated in `notion`; None if all."""
    if all(tag in _FITS[notion] for tag in tags):
        return None
    kinds = table.kinds
    fits = np.array([tag in _FITS[notion] for tag in tags])[kinds.losses]
    some = np.logical_or.reduceat(fits, kinds.offsets[:-1])
    for kind in np.flatnonzero(~some).tolist():
        if notion != "approx" or delta is None:
            held = sorted({table.losses[at].notion for _, at in kinds.claims(kind)})
            raise NotionMismatchError(
                f"every release must have a claim that can be stated in {notion}, got "
                f"one with {', '.join(held)} only; choose another notion, or give "
                "delta for the approximate one."
            )
        # One claim of concentrated privacy only: a minimum over two would compare
        # numbers of different notions.
        claims = [at for _, at in kinds.claims(kind)]
        first = next((i for i, at in enumerate(claims) if tags[at] == "gdp"), 0)
        fits[kinds.offsets[kind] + first] = True
    return fits


def _require_chains(table: ClaimTable, usable: NDArray[np.bool_] | None) -> None:
    loose = np.array([not _is_chained(column.unit) for column in table.columns], bool)
    if not loose.any():
        return
    kinds = _kept(table, usable)
    seen = loose[kinds.columns]
    claims = zip(kinds.columns[seen].tolist(), kinds.losses[seen].tolist(), strict=True)
    for column, at in sorted(set(claims)):
        if tag_of(table.losses[at]) == "approx":
            unit = table.columns[column].unit
            raise AssumptionError(
                "an (epsilon, delta) loss must be stated in a unit generated by "
                f"neighbours, got {unit.name!r}; delta is not implied at fractional "
                "distances.",
                source="paper, Theorem VI.3",
            )


def _is_chained(unit: Metric) -> bool:
    return unit.canonical or isinstance(unit, DiscreteMetric)


def front_loss(
    values: tuple[Exact, ...],
    *,
    notion: str,
    concentrated: str | None = None,
    delta: Number | None = None,
) -> Loss:
    """Return cost totals as a loss, the concentrated part converted at `delta`."""
    if notion == "pure":
        return Pure(as_exact(values[0]))
    if notion == "zcdp":
        return ZCDP(as_exact(values[0]))
    if notion == "gdp":
        return GDP.from_square(as_exact(values[0]))
    loss = Approx.capped(as_exact(values[0]), as_exact(values[1]))
    if concentrated is None or values[2] == 0:
        return loss
    assert delta is not None
    rest = as_exact(values[2])
    if rest == math.inf:
        return Approx(math.inf, 1)
    if concentrated == "gdp":
        return loss + gdp_to_approx(GDP.from_square(rest), delta=delta)
    return loss + zcdp_to_approx(ZCDP(rest), delta=delta)
