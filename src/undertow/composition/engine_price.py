"""Which notion to sum in, which claims can be used there, and the sum as a loss."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

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


class Tally(NamedTuple):
    """The charges of a plan in one notion.

    Parameters
    ----------
    notion : str
        The notion of the sum.
    concentrated : str or None
        With approximate sums, what the last coordinate adds: ``"gdp"`` squares,
        ``"zcdp"``, or nothing.
    kinds : Kinds
        For each kind of release the claims that can be used in the notion.
    charges : tuple of Charge
        Kinds that share columns are merged.
    """

    notion: str
    concentrated: str | None
    kinds: Kinds
    charges: tuple[Charge, ...]

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
    bits = np.array(
        [1 << NOTIONS.index(tag_of(loss)) for loss in table.losses], np.int64
    )
    kinds = table.kinds
    held: set[int] = set()
    if len(kinds):
        per_claim = bits[kinds.losses]
        held = set(np.bitwise_or.reduceat(per_claim, kinds.offsets[:-1]).tolist())
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
    kinds = _usable(table, notion, delta)
    tags = {tag_of(table.losses[at]) for at in np.unique(kinds.losses).tolist()}
    concentrated = None
    if notion == "approx" and tags & {"gdp", "zcdp"}:
        concentrated = "zcdp" if "zcdp" in tags else "gdp"
    if notion == "approx":
        _require_chains(table, kinds)
    prices = Prices(table.losses, notion, concentrated)
    return Tally(notion, concentrated, kinds, charges_of(kinds, table.counts, prices))


def _usable(table: ClaimTable, notion: str, delta: Number | None) -> Kinds:
    """Return the kinds with the claims that can be stated in `notion`."""
    kinds = table.kinds
    if not len(kinds):
        return kinds
    tags = [tag_of(loss) for loss in table.losses]
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
    return kinds.keep(fits)


def _require_chains(table: ClaimTable, kinds: Kinds) -> None:
    pairs = set(zip(kinds.columns.tolist(), kinds.losses.tolist(), strict=True))
    for column, at in sorted(pairs):
        unit = table.columns[column].unit
        if tag_of(table.losses[at]) == "approx" and not _is_chained(unit):
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
