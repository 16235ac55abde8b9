"""Releases on parts of the data: what one change costs when it touches few of them.

Disjoint inputs are the case everybody knows, and the case most often claimed where it
does not hold. Each function here is one closed form of the composition theorem, with
its hypothesis as an argument: blocks of a compatible partition, disjoint sets of record
values between which a record moves, and overlapping parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

from undertow._validate import check_choice, check_count
from undertow.composition.finite_claim import ApproxProfile, at_distance, one_notion
from undertow.composition.release import Setting
from undertow.composition.sequential import sequential
from undertow.errors import (
    CompositionError,
    IncompatiblePartitionError,
    InfiniteLossError,
)
from undertow.numeric.exact import Exact
from undertow.privacy.loss import Approx, Loss, Pure
from undertow.spaces.base import Metric


class CertificateLike(Protocol):
    """What is known of a partition and a granularity."""

    @property
    def touched(self) -> float | None:
        """The most blocks one change can touch; None where it is not known."""

    @property
    def nonexpansive(self) -> bool | None:
        """Whether a step moves each block by at most one step inside its domain."""

    @property
    def source(self) -> str | None:
        """Where it is proved."""


def parallel_max(
    losses: Sequence[Loss],
    *,
    certificate: CertificateLike | None = None,
    setting: Setting = "view",
) -> Loss:
    r"""Bound releases on the blocks of a compatible partition by the largest loss.

    .. math:: \varepsilon = \max_i \varepsilon_i

    Parameters
    ----------
    losses : sequence of Loss
        One per block, all of one notion and one unit, the target granularity.
    certificate : CertificateLike
        That one change touches at most one block, and in the view setting moves it by
        at most one step.
    setting : {"view", "common"}
        ``"view"``: each mechanism is private on its block; ``"common"``: each is
        private on the whole domain and reads only its block.

    Returns
    -------
    Loss
        Of an `Approx`, the maximum in each coordinate; :func:`parallel_profile` keeps
        the pairs apart.

    Raises
    ------
    IncompatiblePartitionError
        Without a certificate, or if it does not certify what the setting needs.

    Notes
    -----
    Paper, Theorems IV.6, V.4, VI.6, VI.16 and VI.26 (view); IV.12, V.6, A.13, A.15 and
    A.17 (common, where non-expansion is not needed). The printed A.13 and A.15 do not
    state compatibility, but are false without it. No losses cost nothing.
    """
    check_choice(setting, "setting", choices=("view", "common"))
    _require_compatible(certificate, setting)
    return largest(losses)


def parallel_profile(
    losses: Sequence[Approx],
    *,
    certificate: CertificateLike | None = None,
    setting: Setting = "view",
) -> ApproxProfile:
    """Bound approximate releases on a compatible partition, pair by pair.

    The arguments, the refusals and the source are those of :func:`parallel_max`.
    """
    parallel_max(losses, certificate=certificate, setting=setting)
    return ApproxProfile.of(losses)


def _require_compatible(certificate: CertificateLike | None, setting: Setting) -> None:
    if certificate is None:
        raise IncompatiblePartitionError(
            "certificate must show that one change touches one block, got None; "
            "check the partition with undertow.spaces.partition, or add the losses.",
            source="paper, Theorem IV.6",
        )
    if certificate.touched is None or certificate.touched > 1:
        raise IncompatiblePartitionError(
            "certificate must show that one change touches at most one block, got "
            f"{certificate.touched} blocks; use top_m_loss or bounded_parallel.",
            witness=certificate,
            source=certificate.source,
        )
    if setting == "view" and certificate.nonexpansive is not True:
        raise IncompatiblePartitionError(
            "certificate must show that a step moves a block by at most one step, got "
            f"nonexpansive={certificate.nonexpansive}; prove the releases on the whole "
            "domain and use setting='common'.",
            witness=certificate,
            source=certificate.source,
        )


# Releases on disjoint sets of record values, when a record moves between them.


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


# Releases on overlapping parts: the few heaviest that one change can touch.


def top_m_loss(losses: Sequence[Loss], m: int) -> Loss:
    r"""Bound releases of which one change can touch any `m`, each by one step.

    .. math:: \varepsilon = \sum_{j \le m} \varepsilon_{(j)}, \quad
              \rho = \sum_{j \le m} \rho_{(j)}, \quad
              \mu^2 = \sum_{j \le m} \mu_{(j)}^2

    Parameters
    ----------
    losses : sequence of Loss
        One per view, all of one notion.
    m : int
        The most views one change can touch: a constant of the domain or of an enforced
        truncation, never read off the data. Zero costs nothing; from ``len(losses)``
        on the bound is sequential composition.

    Returns
    -------
    Loss
        Of an `Approx`, the `m` largest of each coordinate.

    Notes
    -----
    The closed form behind paper, Example IV.5 (where "at least three" hospitals must
    read "at most three"). Not checkable here: `m`, and that a touched view moves by at
    most one step.

    Examples
    --------
    >>> top_m_loss([Pure("0.2"), Pure("0.5"), Pure("0.1")], 2)
    Pure(epsilon=0.7)
    """
    m = check_count(m, "m", minimum=0)
    notion = one_notion(losses)
    if notion is Approx:
        return _top_approx([x for x in losses if isinstance(x, Approx)], m)
    heaviest = sorted(losses, key=_amount, reverse=True)[:m]
    return sequential(heaviest) if heaviest else notion.zero()


def _top_approx(losses: Sequence[Approx], m: int) -> Approx:
    columns = list(zip(*(loss.exact_parameters() for loss in losses), strict=True))
    sums = [sum(sorted(column, reverse=True)[:m]) for column in columns]
    return Approx.capped(*sums) if sums else Approx.zero()


def _amount(loss: Loss) -> Exact:
    return loss.exact_parameters()[0]


# (target, unit) -> how many views a change touches, as a multiple of m, and the
# distance each of them moves. Bounded units are finite in the common setting only.
_OVERLAP: dict[tuple[str, str], tuple[int, int]] = {
    ("unbounded", "unbounded"): (1, 1),
    ("unbounded", "bounded"): (1, 1),
    ("unbounded", "edit"): (1, 1),
    ("bounded", "unbounded"): (1, 2),
    ("bounded", "bounded"): (2, 1),
    ("bounded", "edit"): (2, 1),
    ("edit", "unbounded"): (1, 2),
    ("edit", "bounded"): (2, 1),
    ("edit", "edit"): (2, 1),
}


def overlap_loss(
    losses: Sequence[Loss],
    m: int,
    *,
    target: Metric | str,
    unit: Metric | str,
    setting: Setting,
) -> Loss:
    """Bound releases on overlapping cohorts, each record being in at most `m` of them.

    Parameters
    ----------
    losses : sequence of Loss
        One per cohort, all of one notion.
    m : int
        The most cohorts a record belongs to; part of the domain.
    target, unit : Granularity or str
        What is protected, and what the losses are stated in: ``"unbounded"``,
        ``"bounded"`` or ``"edit"``, or the granularity of that name.
    setting : {"view", "common"}
        Whether each mechanism is private on its cohort, or on the whole domain while
        reading only its cohort.

    Raises
    ------
    InfiniteLossError
        For bounded units in the view setting: a record that enters a cohort changes
        its size, which bounded privacy does not cover.
    CompositionError
        For another target or unit.

    Notes
    -----
    ========== ============ ====================== ===============
    target     unit         setting                bound
    ========== ============ ====================== ===============
    unbounded  any          bounded: common only   top m
    bounded    bounded      common                 top 2m
    bounded    edit         either                 top 2m
    bounded    unbounded    either                 top m, twice
    ========== ============ ====================== ===============

    An edit target costs what a bounded one costs. Twice the top m is the top m at
    distance two: a replaced record may leave and re-enter the same m cohorts. Bounded
    claims at an unbounded target presume that every cohort leaves some record out.
    Paper, Examples IV.5 and VI.8.

    Examples
    --------
    >>> ambulances = [Pure(1)] * 20
    >>> overlap_loss(
    ...     ambulances, 3, target="bounded", unit="bounded", setting="common"
    ... )
    Pure(epsilon=6)
    """
    check_choice(setting, "setting", choices=("view", "common"))
    m = check_count(m, "m", minimum=0)
    one_notion(losses)
    names = _name(target), _name(unit)
    if names not in _OVERLAP:
        raise CompositionError(
            "target and unit must be unbounded, bounded or edit, got "
            f"{names[0]} and {names[1]}; compose on the domain instead."
        )
    if names[1] == "bounded" and setting == "view":
        raise bounded_views()
    copies, distance = _OVERLAP[names]
    return top_m_loss([at_distance(loss, distance) for loss in losses], copies * m)


def _name(metric: Metric | str) -> str:
    return metric if isinstance(metric, str) else metric.name


def bounded_views() -> InfiniteLossError:
    """Return the refusal of bounded losses proved on parts of the data."""
    return InfiniteLossError(
        "bounded losses on parts of the data must be proved on the whole domain, got "
        "setting='view', whose loss is inf; use setting='common' or unbounded units.",
        witness=(("S", "S", "S"), ("S", "S", "W")),
        source="thesis, Example 2.16; paper, Example II.9",
    )


def largest(losses: Sequence[Loss]) -> Loss:
    """Return the largest loss; of an `Approx`, the maximum in each coordinate."""
    if one_notion(losses) is Approx:
        return ApproxProfile.of(x for x in losses if isinstance(x, Approx)).as_pair()
    return max(losses, key=_amount, default=Pure.zero())
