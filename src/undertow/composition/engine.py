r"""The scalable engine: the loss of many releases at one granularity.

Releases are compressed to the few different ones, a family of change classes covers
the neighbours of the target, and the loss is the largest total over the classes. No
database is ever looked at or enumerated.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from undertow.composition.engine_claims import ClaimTable, list_claims, read_claims
from undertow.composition.engine_encode import encode
from undertow.composition.engine_price import (
    NOTIONS,
    Tally,
    choose_notion,
    front_loss,
    open_tally,
)
from undertow.composition.engine_result import EngineResult, read_front
from undertow.errors import MismatchError
from undertow.privacy.exact import Number
from undertow.privacy.loss import Loss
from undertow.spaces.base import Domain, Granularity
from undertow.spaces.change import (
    ChangeFamily,
    Charge,
    Column,
    Row,
    change_family,
    restrict,
    totals,
)

__all__ = [
    "EngineResult",
    "compose_coded",
    "compose_columns",
    "compose_table",
    "loss_at_distance",
    "price_row",
]


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
    >>> from undertow.spaces.granularity import Bounded
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
    from undertow.spaces.granularity import Group

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
    return front_loss(
        values, notion=chosen, concentrated=tally.concentrated, delta=delta
    )


def _position(at: int) -> Column:
    from undertow.spaces.granularity import FreeLunch
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
