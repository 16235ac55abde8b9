r"""What no mechanism can do: errors that a Bayesian promise makes unavoidable.

A promise for *every* law whose groups have at most m records makes any two databases
that differ in one group almost indistinguishable, so their answers cannot both be
given well. The statements here are lower bounds on the error; they are rounded down.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import expit

from undertow._validate import (
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from undertow.correlation.general import general_budget
from undertow.correlation.group_change import group_change
from undertow.correlation.method import check_level
from undertow.correlation.model import Model
from undertow.correlation.query import Query
from undertow.mechanisms.accuracy import laplace_accuracy, laplace_scale
from undertow.privacy.exact import exact, round_down

__all__ = [
    "AccuracyGap",
    "accuracy_floor",
    "accuracy_gap",
    "impossibility_beta",
    "model_floor",
    "packing_beta",
    "packing_floor",
]

# Covers the rounding of the logistic function and of its argument.
_MARGIN = 1e-14
# Beyond, no float tells one database more from none.
_LARGEST_EXPONENT = 700.0


def impossibility_beta(target: float) -> float:
    r"""Return the failure probability that errors of half the range cannot go below.

    .. math:: \beta \ge \frac{1}{e^{B} + 1}

    Parameters
    ----------
    target : float
        The promise B under arbitrary correlation; non-negative and finite.

    Notes
    -----
    Theorem 4.6 of [1]_ (Proposition 6.1 of [2]_), read the other way round: an answer
    that is within half of ``max f - min f`` fails at least this often. It cannot be
    raised: the mechanism that tells the truth about two databases with probability
    :math:`e^B/(e^B+1)` attains it. Rounded down.

    References
    ----------
    .. [1] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.
    .. [2] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> round(impossibility_beta(1.0), 6)
    0.268941
    """
    return packing_beta(target, 1)


def packing_beta(target: float, others: int) -> float:
    r"""Return the failure probability forced by ``others + 1`` databases.

    .. math:: \beta \ge \frac{k}{k + e^{B}}

    Parameters
    ----------
    target : float
        The databases are pairwise B-indistinguishable; non-negative and finite.
    others : int
        The k: how many databases there are besides the first.

    Notes
    -----
    For databases whose answers are pairwise at least :math:`2\alpha` apart, and an
    :math:`(\alpha,\beta)`-accurate mechanism; proved on the theory page of the
    impossibility. k = 1 is Theorem 4.6 of Lange (2024). Rounded down.

    Examples
    --------
    >>> round(packing_beta(1.0, 10), 6)
    0.78627
    """
    target, k = check_level(target), check_count(others, "others")
    slack = _MARGIN * (1 + math.log(k) + min(target, _LARGEST_EXPONENT))
    return float(expit(math.log(k) - target)) * (1.0 - slack)


def accuracy_floor(target: float, beta: float, *, max_change: float) -> float | None:
    r"""Return the error that every mechanism passes with probability over `beta`.

    .. math:: \beta < \frac{1}{e^{B}+1} \quad\Longrightarrow\quad
              \alpha > \frac{\max |f(D) - f(D')|}{2}

    Parameters
    ----------
    target : float
        The promise B; non-negative and finite.
    beta : float
        Failure probability, in [0, 1).
    max_change : float
        Most that the answer changes between two databases: over all pairs for a promise
        under arbitrary correlation, over pairs that differ in one group of m records
        for a promise under groups of at most m.

    Returns
    -------
    float or None
        Accurate answers have an error *strictly* above it; None where `beta` is too
        large for any claim.

    Notes
    -----
    Proposition 6.1 of [1]_; for groups proved on the theory page. Sharp: always
    answering the middle has an error of exactly the floor. The text after the
    proposition speaks of B in (0, 4) at confidences from 90 % to 99 %; it holds for
    B below 2.197 at 90 %, 2.944 at 95 % and 4.595 at 99 %.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> accuracy_floor(1.0, 0.05, max_change=100)
    50.0
    >>> accuracy_floor(3.0, 0.05, max_change=100) is None
    True
    """
    k = _databases(check_level(target), _read_beta(beta))
    change = check_non_negative(max_change, "max_change")
    return change / 2 if k == 1 else None


def packing_floor(
    target: float, beta: float, *, max_change: float, step: float | None = None
) -> float | None:
    r"""Return an error floor that speaks for every failure probability.

    .. math:: \alpha > \frac{\max|f(D)-f(D')|}{2k}, \qquad
              k = \left\lfloor \frac{\beta e^{B}}{1-\beta} \right\rfloor + 1

    Parameters
    ----------
    target : float
        The promise B; non-negative and finite.
    beta : float
        Failure probability, in [0, 1).
    max_change : float
        Widest range of answers on databases that differ in one group.
    step : float, optional
        Spacing of the answers attained in that range, 1 for a count; by default every
        value in between is attained.

    Returns
    -------
    float or None
        Accurate answers have an error strictly above it; None where the steps are too
        coarse for the number of databases needed.

    Notes
    -----
    k + 1 evenly spaced answers in the packing bound; proved on the theory page of the
    impossibility. Equals :func:`accuracy_floor` where that speaks.

    Examples
    --------
    >>> packing_floor(3.0, 0.05, max_change=100, step=1)
    25.0
    """
    k = _databases(check_level(target), _read_beta(beta))
    change = exact(check_positive(max_change, "max_change"))
    if k is None:
        return None
    spacing = change / k
    if step is not None:
        stride = exact(check_positive(step, "step"))
        spacing = change // stride // k * stride
    return round_down(spacing / 2) if spacing > 0 else None


@dataclass(frozen=True, slots=True)
class AccuracyGap:
    """What correlation costs in error, between what is reached and what cannot be.

    Parameters
    ----------
    beta : float
        Failure probability of all the errors here.
    dp_alpha : float
        Error of continuous Laplace noise for independent records.
    bdp_alpha : float
        The same at the level of the general bound: m times the former. Noise on a
        lattice errs by at most one step more.
    floor : float, optional
        Error that every mechanism passes; None where nothing is claimed.
    """

    beta: float
    dp_alpha: float
    bdp_alpha: float
    floor: float | None

    @property
    def ratio(self) -> float | None:
        """How far Laplace noise may be from the best mechanism; None without floor."""
        if self.floor is None or self.floor == 0:
            return None
        return self.bdp_alpha / self.floor

    def to_dict(self) -> dict[str, float | None]:
        """Return the numbers by name."""
        return {
            "beta": self.beta,
            "dp_alpha": self.dp_alpha,
            "bdp_alpha": self.bdp_alpha,
            "floor": self.floor,
            "ratio": self.ratio,
        }


def accuracy_gap(
    target: float,
    group: int,
    *,
    sensitivity: float = 1.0,
    max_change: float | None = None,
    beta: float = 0.05,
) -> AccuracyGap:
    r"""Compare the error of Laplace noise under groups with what cannot be avoided.

    .. math:: \alpha_{DP} = \frac{\Delta f}{B}\ln\frac1\beta, \qquad
              \alpha_{BDP} = m\,\alpha_{DP}, \qquad
              \alpha > \tfrac12 \max_{d_H(D,D') \le m} |f(D) - f(D')|

    Parameters
    ----------
    target : float
        The promise B; positive and finite.
    group : int
        Most records in one group, m.
    sensitivity : float
        Most that one record moves the answer.
    max_change : float, optional
        Most that one group moves the answer; m times the sensitivity by default, which
        is right for sums and counts.
    beta : float
        Failure probability, in (0, 1).

    Notes
    -----
    Corollary 6.5 of [1]_ (Corollary 4.4 of [2]_) and Proposition 6.1 of [1]_. For a sum
    the ratio is :math:`2\ln(1/\beta)/B` whatever the group.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> gap = accuracy_gap(1.0, 5)
    >>> round(gap.dp_alpha, 4), round(gap.bdp_alpha, 4), gap.floor
    (2.9957, 14.9787, 2.5)
    """
    target, group = check_positive(target, "target"), check_count(group, "group")
    beta = check_probability(beta, "beta", open_interval=True)
    change = group * sensitivity if max_change is None else max_change
    independent = laplace_scale(sensitivity, target)
    grouped = laplace_scale(sensitivity, general_budget(target, group))
    return AccuracyGap(
        beta=beta,
        dp_alpha=laplace_accuracy(independent, beta),
        bdp_alpha=laplace_accuracy(grouped, beta),
        floor=accuracy_floor(target, beta, max_change=change),
    )


def model_floor(
    model: Model, target: float, *, query: Query, beta: float
) -> float | None:
    """Return the error no mechanism stays below if only the groups are known.

    Parameters
    ----------
    model : Model
        Only its groups are used: the floor is for a promise that holds under *every*
        law with groups of this size. A model that is one known law may be answered
        more accurately.
    target : float
        The promise; non-negative and finite.
    query : Query
        What is released. A group of m records moves a count by m, a weighted sum by
        the weights of the group times the range of a (clipped) record; a finite table
        says how far each record moves the answer. For a query that is not known
        (:class:`AnyQuery`) the floor is that of the hardest query of its sensitivity,
        such as a count.
    beta : float
        Failure probability, in [0, 1].

    Returns
    -------
    float or None
        None where nothing can be said: groups without limit, `beta` too large, or a
        Lipschitz query, of which only an upper limit of the change is known.

    Notes
    -----
    :func:`accuracy_floor` at the most that one group moves the answer, rounded down.
    Taken for granted: a count counts some states and not others.

    Examples
    --------
    >>> from undertow.correlation import Blocks, CountQuery
    >>> model_floor(Blocks.of_size(5, groups=9), 1.0, query=CountQuery(), beta=0.05)
    2.5
    """
    beta = check_probability(beta, "beta")
    change = group_change(model, query)
    if change is None or beta == 1:
        return None
    return accuracy_floor(target, beta, max_change=change)


def _databases(target: float, beta: float) -> int | None:
    """Return the least k with beta certainly below k / (k + e^B), None if too large."""
    if beta == 0:
        return 1
    exponent = target + math.log(beta) - math.log1p(-beta)
    if exponent > _LARGEST_EXPONENT:
        return None
    return math.floor(math.exp(exponent) * (1 + _MARGIN * (1 + abs(exponent)))) + 1


def _read_beta(beta: float) -> float:
    number = check_probability(beta, "beta")
    if number == 1:
        raise ValueError("beta must be below 1, got 1; every answer fails so often.")
    return number
