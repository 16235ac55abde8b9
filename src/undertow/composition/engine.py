"""The scalable engine: the loss of many releases at one granularity.

Releases are compressed to the few different ones, a family of change classes covers
the neighbours of the target, and the loss is the largest total over the classes. No
database is ever looked at or enumerated.

Told from top to bottom: what is asked, what is answered (the loss, the change behind
it, the shares), and which notion the sum is taken in.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.composition._charge import (
    FITS,
    ColumnCharges,
    Prices,
    as_exact,
    charges_of,
    first_notion,
    largest,
    loss_of,
    tag_of,
)
from undertow.composition._claim_table import (
    ClaimTable,
    Kinds,
    encode,
    list_claims,
    read_claims,
)
from undertow.errors import AssumptionError, MismatchError, NotionMismatchError
from undertow.numeric.exact import Exact, Number, round_up
from undertow.privacy.conversion import gdp_to_approx, zcdp_to_approx
from undertow.privacy.loss import GDP, ZCDP, Approx, Loss
from undertow.spaces.base import Domain, Granularity, Metric
from undertow.spaces.change import (
    ChangeFamily,
    Charge,
    Column,
    FrontPoint,
    Row,
    restrict,
    totals,
)
from undertow.spaces.influence import change_family
from undertow.spaces.metric import DiscreteMetric


def compose_columns(
    domain: Domain,
    target: Granularity,
    *,
    columns: Sequence[Column],
    losses: Sequence[Loss],
    releases: Sequence[int] | None = None,
    notion: str | None = None,
    delta: Number | None = None,
) -> EngineResult:
    r"""Compose claims given one by one.

    Parameters
    ----------
    domain : Domain
        The databases the guarantee ranges over.
    target : Granularity
        What one protected unit is.
    columns, losses : sequence of Column, sequence of Loss
        Parallel: one entry per claim.
    releases : sequence of int, optional
        The release each claim belongs to, numbered 0, 1, ...; by default every claim
        is a release of its own. Several claims of one release hold at once: per change
        class the cheapest counts, and for approximate losses one claim is chosen by
        its epsilon, then its delta.
    notion : {"pure", "gdp", "zcdp", "approx"}, optional
        What to sum in; by default the first in which every release has a claim.
    delta : int, float, str, Decimal or Fraction, optional
        Spent once on converting Gaussian and zCDP losses where they meet
        :math:`(\varepsilon, \delta)` ones.

    Returns
    -------
    EngineResult
        With the class that attains the loss.

    Raises
    ------
    NotionMismatchError
        If the losses cannot be stated in one notion.
    VacuousGranularityError
        If `target` has no neighbours in `domain`.
    AssumptionError
        If an (epsilon, delta) claim is stated in a unit without neighbour chains.

    Notes
    -----
    Theorems 4.1, 4.10, 4.16 and 4.18 of [1]_; Theorems IV.1, IV.11, VI.4, VI.7, VI.13,
    VI.14, VI.21 and VI.22 of [2]_. Independent and adaptive releases cost the same.
    Checked: views and units fit the domain. Not checkable here: that each claim is
    true, and in the common setting that the release reads nothing but its view.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] P. Guerra-Balboa, À. Miranda-Pascual, J. Parra-Arnau and T. Strufe,
       *Composition in Differential Privacy for General Granularity Notions*.

    Examples
    --------
    >>> from undertow.privacy.loss import Pure
    >>> from undertow.spaces.domain import Table
    >>> from undertow.spaces.unit import Bounded
    >>> from undertow.spaces.view import Select
    >>> city = Table(("N", "S", "E", "W"))
    >>> result = compose_columns(
    ...     city,
    ...     Bounded(),
    ...     columns=[Column(Select(c), Bounded(), "common") for c in city.cells],
    ...     losses=[Pure("0.5"), Pure("1.0"), Pure("0.3"), Pure("0.8")],
    ... )
    >>> result.loss, result.row.change.summary
    (Pure(epsilon=1.8), "replace a record of cell 'S' by one of cell 'W'")
    """
    if len(columns) != len(losses):
        raise MismatchError(
            "columns and losses must have one entry per claim, got "
            f"{len(columns)} and {len(losses)}."
        )
    _require_notion(notion)
    table = list_claims(columns, losses, releases=releases)
    return compose_table(domain, target, table=table, notion=notion, delta=delta)


def compose_coded(
    domain: Domain,
    target: Granularity,
    *,
    columns: Sequence[Column],
    losses: Sequence[Loss],
    column_codes: ArrayLike,
    loss_codes: ArrayLike,
    release_codes: ArrayLike | None = None,
    notion: str | None = None,
    delta: Number | None = None,
) -> EngineResult:
    """Compose claims given as integer codes, for plans too long for a Python list.

    Parameters
    ----------
    domain, target : Domain, Granularity
        As in :func:`compose_columns`.
    columns, losses : sequence of Column, sequence of Loss
        The different ones.
    column_codes, loss_codes : array_like of int
        One entry per claim: its position in `columns` and in `losses`.
    release_codes : array_like of int, optional
        The release each claim belongs to; by default every claim is one.
    notion, delta : optional
        As in :func:`compose_columns`.

    Notes
    -----
    Linear in the number of claims up to one sort of integers; all exact arithmetic is
    on different columns and losses.
    """
    _require_notion(notion)
    table = read_claims(
        columns,
        losses,
        column_codes=column_codes,
        loss_codes=loss_codes,
        release_codes=release_codes,
    )
    return compose_table(domain, target, table=table, notion=notion, delta=delta)


def _require_notion(notion: str | None) -> None:
    if notion is not None and notion not in NOTIONS:
        raise ValueError(f"notion must be one of {NOTIONS}, got {notion!r}.")


def compose_table(
    domain: Domain,
    target: Granularity,
    *,
    table: ClaimTable,
    notion: str | None = None,
    delta: Number | None = None,
) -> EngineResult:
    """Compose claims that are compressed already.

    Parameters
    ----------
    domain, target : Domain, Granularity
        As in :func:`compose_columns`.
    table : ClaimTable
        Every column and every loss in it is in use.
    notion, delta : optional
        As in :func:`compose_columns`.
    """
    _require_notion(notion)
    _require_one_view(table)
    chosen = notion or choose_notion(table, delta=delta)
    tally = open_tally(table, notion=chosen, delta=delta)
    family = change_family(domain, target, columns=table.columns)
    charges, fixed = _single_claims(family, tally)
    front = family.pareto(charges, coordinates=tally.coordinates)
    return read_front(table, tally, front, family, fixed=fixed, delta=delta)


def loss_at_distance(
    domain: Domain,
    target: Granularity,
    *,
    distance: int,
    columns: Sequence[Column],
    losses: Sequence[Loss],
    releases: Sequence[int] | None = None,
    notion: str | None = None,
    delta: Number | None = None,
) -> EngineResult:
    """Compose at `distance` steps of the target, keeping the distance of every view.

    Group privacy of the composed loss would scale all views alike; here each view
    moves by what `distance` changes can do to it, which for approximate losses is far
    less (paper, Example VI.8).

    Parameters
    ----------
    domain, target, columns, losses, releases, notion, delta
        As in :func:`compose_columns`.
    distance : int
        The number of steps; positive.
    """
    from undertow.spaces.unit import Group

    return compose_columns(
        domain,
        target if distance == 1 else Group(target, distance),
        columns=columns,
        losses=losses,
        releases=releases,
        notion=notion,
        delta=delta,
    )


def price_row(
    row: Row,
    *,
    losses: Sequence[Loss],
    releases: Sequence[int] | None = None,
    notion: str | None = None,
    delta: Number | None = None,
) -> Loss:
    """Return the loss of all releases under one given change.

    Parameters
    ----------
    row : Row
        The change, with the influence of each claim by its position in `losses`.
    losses, releases, notion, delta
        As in :func:`compose_columns`, one entry per claim.
    """
    # Claims keep their own column: the row counts them one by one.
    different, codes = encode(losses)
    table = read_claims(
        [_position(at) for at in range(len(losses))],
        different,
        column_codes=np.arange(len(losses)),
        loss_codes=codes,
        release_codes=releases,
    )
    chosen = notion or choose_notion(table, delta=delta)
    tally = open_tally(table, notion=chosen, delta=delta)
    values = totals(row.price(tally.charges), tally.coordinates)
    return tally.loss(values, delta=delta)


def _position(at: int) -> Column:
    from undertow.spaces.unit import FreeLunch
    from undertow.spaces.view import Identity

    return Column(Identity(), FreeLunch(), "view")


def _require_one_view(table: ClaimTable) -> None:
    """Raise unless the claims of each release are about one view."""
    if table.release_of is None or (table.kinds.lengths() <= 1).all():
        return
    _, codes = encode([column.view for column in table.columns])
    seen, first = codes[table.kinds.columns], table.kinds.offsets[:-1]
    if (np.maximum.reduceat(seen, first) != np.minimum.reduceat(seen, first)).any():
        raise MismatchError(
            "all claims of one release must be about one view, got two views; enter "
            "them as two releases, or state the claims about the same view."
        )


def _single_claims(family: ChangeFamily, tally: Tally) -> tuple[Sequence[Charge], bool]:
    """Fix one claim per charge where the family needs convex prices.

    A fixed choice is valid for every class; the cheapest per class is not convex.
    """
    if not family.mixes or all(len(charge.columns) == 1 for charge in tally.charges):
        return tally.charges, True
    return tuple(_fix(family, charge) for charge in tally.charges), False


def _fix(family: ChangeFamily, charge: Charge) -> Charge:
    options = [restrict(charge, [at]) for at in range(len(charge.columns))]
    return min(options, key=lambda option: family.maximise([option]).value)


# What the scalable engine answers: the loss, the change behind it, the shares.


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
        return self._cost(self.tally.kinds.claims(int(self.table.kind_of[release])))

    def contributions(self) -> NDArray[np.float64]:
        """Return the first coordinate of every release's contribution, rounded up."""
        costs = [round_up(self._cost(claims)[0]) for claims in self.tally.claims]
        return np.array(costs, dtype=np.float64)[self.table.kind_of]

    def shares(self, *, delta: Number | None = None) -> list[Loss]:
        """Return every release's contribution as a loss; `delta` as in the sum."""
        stated: dict[tuple[Exact, ...], Loss] = {}
        kinds = []
        for claims in self.tally.claims:
            cost = self._cost(claims)
            if cost not in stated:
                stated[cost] = self.tally.loss(cost, delta=delta)
            kinds.append(stated[cost])
        return [kinds[kind] for kind in self.table.kind_of.tolist()]

    def influence(self, release: int) -> Exact:
        """Return how far the unit of the release's cheapest claim moves."""
        claims = self.tally.kinds.claims(int(self.table.kind_of[release]))
        moved = self.row.influences
        return moved.get(self.tally.prices.cheapest(claims, moved)[0], 0)

    def _cost(self, claims: Sequence[tuple[int, int]]) -> tuple[Exact, ...]:
        """Return what the cheapest of the claims of a release costs."""
        moved, prices = self.row.influences, self.tally.prices
        column, at = prices.cheapest(claims, moved)
        return prices.claim(at, moved.get(column, 0))


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
    losses = [tally.loss(point.values, delta=delta) for point in front]
    tight = fixed and all(point.tight for point in front)
    worst = max(range(len(front)), key=lambda k: losses[k].exact_parameters())
    return EngineResult(
        loss=largest(losses),
        row=front[worst].row,
        front=tuple(zip(losses, (point.row for point in front), strict=True)),
        tight=tight and family.tight,
        notes=family.notes,
        table=table,
        tally=tally,
    )


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


# Which notion to sum in, which claims can be used there, and the sum as a loss.

NOTIONS = tuple(FITS)


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
    prices : Prices
        What the losses cost.
    """

    notion: str
    concentrated: str | None
    table: ClaimTable
    usable: NDArray[np.bool_] | None
    charges: Sequence[Charge]
    prices: Prices

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

    def loss(self, values: tuple[Exact, ...], *, delta: Number | None) -> Loss:
        """Return cost totals as a loss, the concentrated part converted at `delta`."""
        if self.concentrated is None:
            return loss_of(self.notion, *values)
        loss, rest = loss_of("approx", *values[:2]), values[2]
        if rest == 0:
            return loss
        if rest == math.inf:
            return Approx(math.inf, 1)
        assert delta is not None
        if self.concentrated == "gdp":
            return loss + gdp_to_approx(GDP.from_square(as_exact(rest)), delta=delta)
        return loss + zcdp_to_approx(ZCDP(as_exact(rest)), delta=delta)


def choose_notion(table: ClaimTable, *, delta: Number | None) -> str:
    """Return the first notion in which every release has a usable claim.

    Raises
    ------
    NotionMismatchError
        If Gaussian or zCDP losses meet (epsilon, delta) ones and no `delta` is given.
    """
    notion = first_notion(_held(table))
    if notion is not None:
        return notion
    if delta is None:
        raise NotionMismatchError(
            "delta must be given where Gaussian or zCDP losses meet (epsilon, delta) "
            "ones, got none; it is spent once on converting them."
        )
    return "approx"


def _held(table: ClaimTable) -> set[frozenset[str]]:
    """Return the sets of notions that releases have claims in."""
    tags = [tag_of(loss) for loss in table.losses]
    if table.release_of is None:
        return {frozenset({tag}) for tag in tags}
    if not len(table.release_of):
        return set()
    kinds = table.kinds
    bits = np.array([1 << NOTIONS.index(tag) for tag in tags], np.int64)[kinds.losses]
    masks = set(np.bitwise_or.reduceat(bits, kinds.offsets[:-1]).tolist())
    return {
        frozenset(tag for at, tag in enumerate(NOTIONS) if mask >> at & 1)
        for mask in masks
    }


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
    return Tally(notion, concentrated, table, usable, charges, prices)


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
    if all(tag in FITS[notion] for tag in tags):
        return None
    kinds = table.kinds
    fits = np.array([tag in FITS[notion] for tag in tags])[kinds.losses]
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
