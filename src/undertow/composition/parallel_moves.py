"""Releases on disjoint sets of record values, when a record moves between them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from undertow._validate import check_choice
from undertow.composition.finite_claims import ApproxProfile, at_distance, one_notion
from undertow.composition.parallel_overlap import bounded_views, largest, top_m_loss
from undertow.composition.release import Setting
from undertow.privacy.exact import Exact
from undertow.privacy.loss import Approx, Loss

__all__ = ["bounded_parallel", "bounded_profile", "heaviest_move", "move_cost_matrix"]


def bounded_parallel(
    losses: Sequence[Loss],
    allowed_moves: Iterable[tuple[int, int]] | None = None,
    *,
    unit: Literal["bounded", "unbounded"] = "bounded",
    setting: Setting = "common",
) -> Loss:
    r"""Bound, at bounded granularity, releases on disjoint sets of record values.

    .. math:: \varepsilon = \max_{i \ne j} (\varepsilon_i + \varepsilon_j)

    Parameters
    ----------
    losses : sequence of Loss
        One per block, all of one notion.
    allowed_moves : iterable of pairs of int, optional
        The blocks between which a record may move, by a public constraint; membership
        across any other move is then not protected. None allows every move.
    unit : {"bounded", "unbounded"}
        What the losses are stated in.
    setting : {"view", "common"}
        As in :func:`parallel_max`.

    Returns
    -------
    Loss
        The sum of the two largest; the own loss of a single block; for unbounded units
        the largest loss at distance two. Of an `Approx`, the maximum in each
        coordinate; :func:`bounded_profile` keeps the pairs apart.

    Raises
    ------
    InfiniteLossError
        For bounded units in the view setting.

    Notes
    -----
    Thesis, Corollaries 4.12 and 4.23; paper, Corollaries IV.13 and A.18; the other
    notions follow from paper, Theorems VI.7 and VI.14. Tight for Laplace counts.

    Examples
    --------
    >>> from undertow.privacy.loss import Pure
    >>> bounded_parallel([Pure("0.5"), Pure(1), Pure("0.3"), Pure("0.8")])
    Pure(epsilon=1.8)
    """
    if allowed_moves is None:
        _require_moves(unit, setting)
        if unit == "bounded":
            return top_m_loss(losses, 2)
        # A move between blocks never costs more than twice the heavier of the two.
        return largest([at_distance(loss, 2) for loss in losses])
    costs = _move_costs(losses, allowed_moves, unit=unit, setting=setting)
    return largest(list(costs.values()))


def bounded_profile(
    losses: Sequence[Approx],
    allowed_moves: Iterable[tuple[int, int]] | None = None,
    *,
    unit: Literal["bounded", "unbounded"] = "bounded",
    setting: Setting = "common",
) -> ApproxProfile:
    """Bound approximate releases on disjoint record values, pair by pair.

    The arguments, the refusals and the source are those of :func:`bounded_parallel`.
    """
    kept = _two_layers(losses) if allowed_moves is None else losses
    costs = _move_costs(kept, allowed_moves, unit=unit, setting=setting)
    return ApproxProfile.of(x for x in costs.values() if isinstance(x, Approx))


def _two_layers(losses: Sequence[Approx]) -> list[Approx]:
    """Drop what two others dominate: it is in no sum of two that matters."""
    kept: list[Approx] = []
    largest: list[Exact] = []
    for loss in sorted(losses, key=lambda x: x.exact_parameters(), reverse=True):
        delta = loss.exact_parameters()[1]
        if len(largest) < 2 or delta > largest[-1]:
            kept.append(loss)
            largest = sorted([*largest, delta], reverse=True)[:2]
    return kept


def heaviest_move(
    losses: Sequence[Loss], allowed_moves: Iterable[tuple[int, int]] | None = None
) -> tuple[int, int]:
    """Return the blocks ``(i, j)`` between which moving one record costs most.

    The witness of :func:`bounded_parallel`; ``i == j`` is a change inside one block.
    """
    one_notion(losses)
    if not losses:
        raise ValueError("losses must hold at least one block, got none.")
    if allowed_moves is None:
        order = sorted(range(len(losses)), key=lambda i: losses[i].exact_parameters())
        return min(order[-2:]), max(order[-2:])
    costs = _move_costs(losses, allowed_moves, unit="bounded", setting="common")
    return max(costs, key=lambda move: costs[move].exact_parameters())


def move_cost_matrix(losses: Sequence[Loss]) -> tuple[tuple[Loss, ...], ...]:
    """Return what moving one record from block i to block j costs, for every i and j.

    Bounded claims in the common domain; the diagonal is a change inside the block.

    Examples
    --------
    >>> from undertow.privacy.loss import Pure
    >>> move_cost_matrix([Pure("0.5"), Pure("0.3")])[0]
    (Pure(epsilon=0.5), Pure(epsilon=0.8))
    """
    one_notion(losses)
    return tuple(
        tuple(a if i == j else a + b for j, b in enumerate(losses))
        for i, a in enumerate(losses)
    )


def _move_costs(
    losses: Sequence[Loss],
    allowed_moves: Iterable[tuple[int, int]] | None,
    *,
    unit: str,
    setting: str,
) -> dict[tuple[int, int], Loss]:
    _require_moves(unit, setting)
    one_notion(losses)
    steps = 1 if unit == "bounded" else 2  # a change inside a block, in its unit
    costs = {(i, i): at_distance(loss, steps) for i, loss in enumerate(losses)}
    for i, j in _moves(allowed_moves, len(losses)):
        costs[i, j] = losses[i] + losses[j]
    return costs


def _require_moves(unit: str, setting: str) -> None:
    check_choice(unit, "unit", choices=("bounded", "unbounded"))
    check_choice(setting, "setting", choices=("view", "common"))
    if unit == "bounded" and setting == "view":
        raise bounded_views()


def _moves(
    allowed: Iterable[tuple[int, int]] | None, blocks: int
) -> list[tuple[int, int]]:
    if allowed is None:
        return [(i, j) for j in range(blocks) for i in range(j)]
    moves = {(min(move), max(move)) for move in allowed}
    for i, j in moves:
        if i < 0 or j >= blocks:
            raise ValueError(
                f"allowed_moves must name blocks 0..{blocks - 1}, got {(i, j)}."
            )
    return sorted((i, j) for i, j in moves if i != j)
