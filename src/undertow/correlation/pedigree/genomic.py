"""Genomic data of which only the family size is known: bounds, witness, accuracy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from undertow._validate import check_count, check_positive, check_probability
from undertow.correlation.floor import accuracy_floor
from undertow.correlation.group import general_budget, general_leakage
from undertow.correlation.level import check_level
from undertow.correlation.pedigree.model import Genotype
from undertow.correlation.result import Adversary, Leakage
from undertow.errors import NotApplicable
from undertow.mechanisms.accuracy import laplace_accuracy, laplace_scale
from undertow.numeric.exact import exact, round_down
from undertow.results import Bound

Database = tuple[Genotype, ...]

# Covers the rounding of the logarithms of the family formula.
_SLACK = 1e-14


@dataclass(frozen=True, slots=True)
class GenomicAccuracy:
    """What a count of genotypes costs when families may be as large as stated.

    Parameters
    ----------
    alpha : float
        Error of Laplace noise at the general bound, reached with probability `beta`.
    beta : float
        That probability.
    floor : float or None
        Every mechanism that keeps the promise on the worst pedigree has an error
        strictly above it; None where `beta` is too large for any claim.
    """

    alpha: float
    beta: float
    floor: float | None

    def to_dict(self) -> dict[str, float | None]:
        """Return the three numbers by name."""
        return {"alpha": self.alpha, "beta": self.beta, "floor": self.floor}


def genomic_bounds(epsilon: float, family: int) -> tuple[Bound, Leakage]:
    r"""Bracket the leakage of a noisy BB-count on the worst pedigree.

    .. math:: (m-1)\,\varepsilon \le \mathrm{BDPL} \le m\,\varepsilon

    Parameters
    ----------
    epsilon : float
        DP level of the count with Laplace noise.
    family : int
        Size m of the largest family; at least 3.

    Returns
    -------
    tuple of Bound and Leakage
        What two parents and m - 2 children leak at least, rounded down, and what no
        pedigree exceeds.

    Raises
    ------
    NotApplicable
        If m is below 3: the lower bound needs a child with two parents.

    Notes
    -----
    Corollary 5.2 and Theorem 4.2 of [1]_. The lower bound needs founders that may be BB
    and may be bb. The source calls the general bound *nearly* tight; for m = 3 it is
    tight as B becomes frequent, and for other small families the worst case over
    founder frequencies lies strictly above the lower bound.

    References
    ----------
    .. [1] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> low, high = genomic_bounds(1.0, 5)
    >>> low.value, high.value
    (4.0, 5.0)
    """
    epsilon, size = check_level(epsilon), _check_family(family)
    low = Bound(
        round_down(exact(epsilon) * (size - 1)),
        "Corollary 5.2",
        unchecked=("a founder may be BB and may be bb",),
        quantity="BDPL lower bound",
    )
    return low, general_leakage(epsilon, size)


def genomic_witness(family: int, size: int) -> tuple[Database, Database, Adversary]:
    """Return the two databases that a parent's genotype alone decides between.

    Parameters
    ----------
    family : int
        Size m of the family: persons 0 and 1 are the parents, 2 to m - 1 the children.
    size : int
        Number of people; those outside the family are unrelated.

    Returns
    -------
    tuple
        The database with a bb second parent, that with a BB one, and the attacker who
        knows the first parent and everybody outside the family.

    Notes
    -----
    Theorem 5.1 of Lange (2024): the first parent is BB, so that every child is Bb in
    the first database and BB in the second, with certainty.

    Examples
    --------
    >>> first, second, who = genomic_witness(3, 4)
    >>> [x.name for x in first], [x.name for x in second], who.summary
    (['BB', 'bb', 'Bb', 'bb'], ['BB', 'BB', 'BB', 'bb'], 'aims at record 1, knows \
record 0 = 2 and record 3 = 0')
    """
    m = _check_family(family)
    n = check_count(size, "size", minimum=m)
    outside = (Genotype.bb,) * (n - m)
    first = (Genotype.BB, Genotype.bb, *(Genotype.Bb,) * (m - 2), *outside)
    second = (Genotype.BB, Genotype.BB, *(Genotype.BB,) * (m - 2), *outside)
    known = (0, *range(m, n))
    who = Adversary(1, known, {j: int(first[j]) for j in known})
    return first, second, who


def genomic_accuracy(target: float, family: int, *, beta: float) -> GenomicAccuracy:
    r"""Return the error of a BB-count that keeps a promise for families of size m.

    .. math:: \alpha = \frac{m}{B}\ln\frac{1}{\beta}, \qquad
        \alpha > \frac{m-1}{2} \text{ for every mechanism if } \beta < \frac{1}{e^B+1}

    Parameters
    ----------
    target : float
        The promise B: largest leakage allowed; positive and finite.
    family : int
        Size m of the largest family; at least 3.
    beta : float
        Probability with which the error may be passed, in (0, 1).

    Notes
    -----
    Corollaries 4.4 and 5.3 of [1]_. The error is that of continuous noise; noise in
    whole numbers errs by at most one more. The premise of the latter is printed with
    :math:`e\varepsilon+1` for :math:`e^{\varepsilon}+1`, as its proof has it; the
    printed form is false.

    References
    ----------
    .. [1] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> found = genomic_accuracy(2.0, 10, beta=0.05)
    >>> round(found.alpha, 9), found.floor
    (14.978661368, 4.5)
    """
    target, m = check_positive(target, "target"), _check_family(family)
    beta = check_probability(beta, "beta", open_interval=True)
    scale = laplace_scale(1, general_budget(target, m))
    floor = accuracy_floor(target, beta, max_change=m - 1)
    return GenomicAccuracy(laplace_accuracy(scale, beta), beta, floor)


def family_conjecture(epsilon: float, children: int, *, frequency: float) -> Bound:
    r"""Return what a noisy BB-count on two parents and their children leaks at least.

    .. math:: \max\{(m-1)\varepsilon,\; \ln N(\varepsilon) - \ln D(\varepsilon),\;
        \ln D(-\varepsilon) - \ln N(-\varepsilon)\}

    with m - 2 = c children, :math:`h_t(q) = 1-q+qe^t` and

    .. math:: N(t) &= e^t[p^2e^{2t}h_t(1)^{c-1} + 2p(1-p)e^th_t(\tfrac12)^{c-1}
        + (1-p)^2h_t(\tfrac14)^{c-1}], \\
        D(t) &= p^2h_t(\tfrac14)^{c-1} + 1 - p^2.

    Parameters
    ----------
    epsilon : float
        DP level of the count with Laplace noise.
    children : int
        Number c of children, at least 1.
    frequency : float
        Frequency p of B among Hardy-Weinberg founders, in (0, 1).

    Returns
    -------
    Bound
        A *lower* bound, rounded down. It is not a method and calibrates nothing.

    Notes
    -----
    Each term is the leakage of one attacker, so the lower bound is proved (first: a
    parent, the other known to be BB; second and third: a child, nobody known, at the
    upper and lower tail). That no attacker does better is a conjecture: equality was
    found in every case that was enumerated, and is not proved. Use
    :func:`pedigree_leakage`, or the general bound.

    Examples
    --------
    >>> round(family_conjecture(0.5, 2, frequency=0.97).value, 9)
    1.833710677
    """
    epsilon, c = check_level(epsilon), check_count(children, "children")
    p = check_probability(frequency, "frequency", open_interval=True)
    above = _log_given_both(epsilon, c, p) - _log_given_none(epsilon, c, p)
    below = _log_given_none(-epsilon, c, p) - _log_given_both(-epsilon, c, p)
    slack = _SLACK * (c + 2) * max(1.0, epsilon)
    return Bound(
        max(round_down(exact(epsilon) * (c + 1)), max(above, below) - slack),
        "family formula: a proved lower bound, conjectured to be exact",
        unchecked=("Hardy-Weinberg founders", "equality is a conjecture"),
        quantity="BDPL lower bound",
    )


def _log_count(t: float, q: float, count: int) -> float:
    """Return the log of h_t(q) to the power `count`, without overflow."""
    each = float(np.logaddexp(math.log1p(-q), math.log(q) + t)) if q < 1 else t
    return count * each


def _log_given_both(t: float, c: int, p: float) -> float:
    """Return ln N(t): the count given a BB child."""
    log_p, log_q = math.log(p), math.log1p(-p)
    terms = [
        2 * log_p + 2 * t + _log_count(t, 1.0, c - 1),
        math.log(2) + log_p + log_q + t + _log_count(t, 0.5, c - 1),
        2 * log_q + _log_count(t, 0.25, c - 1),
    ]
    return t + float(np.logaddexp.reduce(terms))


def _log_given_none(t: float, c: int, p: float) -> float:
    """Return ln D(t): the count given a bb child."""
    some = 2 * math.log(p) + _log_count(t, 0.25, c - 1)
    return float(np.logaddexp(some, math.log1p(-p) + math.log1p(p)))


def _check_family(family: int) -> int:
    size = check_count(family, "family")
    if size < 3:
        raise NotApplicable(
            "family must be at least 3 for Corollary 5.2 (two parents and a child), "
            f"got {size}; the general bound holds for every size."
        )
    return size
