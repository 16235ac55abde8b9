"""Releases on overlapping parts: the few heaviest that one change can touch."""

from __future__ import annotations

from collections.abc import Sequence

from undertow._validate import check_choice, check_count
from undertow.composition.finite_claims import ApproxProfile, at_distance, one_notion
from undertow.composition.release import Setting
from undertow.composition.sequential import sequential
from undertow.errors import CompositionError, InfiniteLossError
from undertow.privacy.exact import Exact
from undertow.privacy.loss import Approx, Loss, Pure
from undertow.spaces.base import Metric

__all__ = ["bounded_views", "largest", "overlap_loss", "top_m_loss"]


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
