r"""From an advantage back to the level of subset selection, with its subset size.

The size steps down as epsilon grows, so the inverse goes from one range of levels with
the same size to the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_choice, check_probability
from undertow.mechanisms.local.base import (
    Knowledge,
    disagreement,
    never_binds,
    read_categories,
    read_knowledge,
)
from undertow.mechanisms.local.subset_formula import read_subset, subset_advantage
from undertow.privacy.result import Bound, Calibration

__all__ = ["SubsetCalibration", "calibrate_subset", "subset_level"]

# A calibrated level stays this share below a breakpoint.
_GUARD = 1e-9
# The target is lowered by this share, which covers the margin of the closed form.
_SLACK = 4e-12
# Below this target only epsilon 0 is given: products would lose their digits.
_TINY = 1e-300


def subset_level(categories: SupportsIndex, advantage: float, *, subset: int) -> float:
    r"""Return the level at which a subset size has an advantage, rounded to nearest.

    .. math:: \varepsilon = \ln\frac{s(m-\omega)}{1-s\omega}, \quad s = \gamma + 1/m

    Parameters
    ----------
    categories : int
        The m; at least two.
    advantage : float
        The :math:`\gamma`, in [0, 1]; uniform prior, no knowledge.
    subset : int
        The size seen in the reports.

    Returns
    -------
    float
        Infinite where no level attains the advantage. A guarantee needs
        :func:`calibrate_subset`.

    Notes
    -----
    The inverse of :func:`subset_advantage` at one size.

    Examples
    --------
    >>> round(subset_level(10, 0.102304838, subset=2), 6)
    1.0
    """
    m, target = read_categories(categories), check_probability(advantage, "advantage")
    size = read_subset(m, 0.0, subset)
    excess = target * m * size
    share = excess / (m - size)
    if share >= 1.0:
        return math.inf
    return math.log1p(excess / size) - math.log1p(-share)


@dataclass(frozen=True, slots=True)
class SubsetCalibration(Calibration):
    """A level for subset selection with the subset size it was computed for.

    Parameters
    ----------
    parameter, value, achieves, method, alternatives
        As in :class:`~undertow.privacy.Calibration`; the parameter is ``"epsilon"``.
    subset : int
        The size to deploy; recomputing it at `value` may cross a breakpoint.
    """

    subset: int = 1


def calibrate_subset(
    categories: SupportsIndex,
    advantage: float,
    *,
    prior: ArrayLike | None = None,
    knowledge: Knowledge = "none",
    choose: Literal["safe", "largest"] = "safe",
) -> SubsetCalibration:
    r"""Return a level that keeps the advantage of subset selection below a target.

    .. math:: \varepsilon_\omega = \ln\frac{1 + s/\omega}{1 - s/(m-\omega)}, \quad
              s = \gamma m \omega \text{ or } \gamma (m-1)/(1-\kappa_\pi)

    Parameters
    ----------
    categories : int
        The m; at least two.
    advantage : float
        The target, in [0, 1].
    prior : array_like of shape (m,), optional
        Uniform by default; another prior needs full knowledge.
    knowledge : {"none", "full"}
        What the attacker knows of the target.
    choose : {"safe", "largest"}
        ``"safe"``: the largest level up to which the target holds throughout.
        ``"largest"``: the largest level at which it holds.

    Returns
    -------
    SubsetCalibration
        Lowered by a relative 1e-9, together with its subset size; infinite if the
        target never binds.

    Notes
    -----
    Proved on the page *Local protocols*, Proposition 3. Where the size drops the
    advantage jumps, up without knowledge and down with it, so the two choices differ.

    Examples
    --------
    >>> chosen = calibrate_subset(1000, 0.1)
    >>> chosen.subset, round(chosen.value, 6), chosen.achieves.value <= 0.1
    (5, 5.293305, True)
    """
    m, target = read_categories(categories), check_probability(advantage, "advantage")
    check_choice(choose, "choose", choices=("safe", "largest"))
    if read_knowledge(knowledge) == "none" and prior is not None:
        raise ValueError(
            "prior must be omitted (uniform) without knowledge, where there is no "
            "closed inverse; search over subset_advantage between subset_breakpoints."
        )
    sizes = np.arange(max(1, m // 2), 0, -1)
    excess = _target_excess(m, target, sizes, prior, knowledge)
    level, size = _choose(m, sizes, excess, safe=choose == "safe")
    level = level * (1.0 - _GUARD)
    value = subset_advantage(m, level, subset=size, prior=prior, knowledge=knowledge)
    if level == math.inf:  # a target that never binds is itself a bound
        value = min(value, target)
    achieved = Bound(
        value,
        "Local protocols, Proposition 3 (thesis, Example 5.6)",
        unchecked=("the prior is the attacker's", "this subset size is deployed"),
        quantity="advantage",
        tight=True,
    )
    return SubsetCalibration("epsilon", level, achieved, choose, (), size)


def _target_excess(
    m: int,
    target: float,
    sizes: NDArray[np.int64],
    prior: ArrayLike | None,
    knowledge: str,
) -> NDArray[np.float64]:
    lowered = target / (1.0 + _SLACK) if target >= _TINY else 0.0
    if knowledge == "none":
        # Never binding from the limit 1 - 1/m of size 1 on.
        never = never_binds(target, None, m)
        return np.where(never, np.inf, lowered * m * sizes)
    if never_binds(target, prior, m):
        return np.full(sizes.shape, np.inf)
    return np.full(sizes.shape, lowered * (m - 1) / disagreement(prior, m))


def _choose(
    m: int, sizes: NDArray[np.int64], excess: NDArray[np.float64], *, safe: bool
) -> tuple[float, int]:
    """Pick the level and size; `sizes` fall to 1 and cut the levels into ranges."""
    share = excess / (m - sizes)
    solved = np.full(sizes.shape, np.inf)
    inside = share < 1.0
    solved[inside] = np.log1p(excess[inside] / sizes[inside]) - np.log1p(-share[inside])
    ends = np.append(np.log((m - sizes[:-1]) / sizes[:-1]), np.inf)
    starts = np.concatenate([[0.0], ends[:-1]])
    within = (solved >= starts) | (starts == 0.0)
    if safe:
        stop = int(np.argmax((solved < ends) | (ends == np.inf)))
        place = stop if within[stop] else stop - 1
    else:
        place = int(np.flatnonzero(within)[-1])
    return float(min(solved[place], ends[place])), int(sizes[place])
