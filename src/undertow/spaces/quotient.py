r"""What a guarantee on the whole data says about a mechanism that reads only a view.

If :math:`M` is :math:`d`-private on the domain and reads :math:`f(D)` alone, its output
law is constant on the fibres of :math:`f`. So the loss between two databases is at most
that of the closest pair with the same views, and, chaining such steps, at most the
quotient of :math:`d` by the fibres, which is again a pseudometric.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from undertow.errors import MismatchError, NotionMismatchError
from undertow.spaces.base import Database, Domain, Granularity, Metric, View
from undertow.spaces.dependency import Dependency, require_dependency
from undertow.spaces.domain import Table, require_enumerable, require_members
from undertow.spaces.granularity import Bounded, Edit, Trajectory, Unbounded
from undertow.spaces.metric import SymmetricDifference
from undertow.spaces.metric_matrix import check_pseudometric
from undertow.spaces.view_table import Select

__all__ = [
    "Dependency",
    "canonical_quotient",
    "min_privacy",
    "quotient_distance",
    "quotient_metric",
    "require_dependency",
    "sub_universe_distance",
]

Matrix = npt.NDArray[np.float64]

# A dense matrix of distances beyond this many databases would pass 70 MB.
_MATRIX_LIMIT = 3_000


def min_privacy(matrix: npt.ArrayLike, labels: Sequence[Hashable]) -> Matrix:
    r"""Return the distance of the closest pair with the same views.

    .. math:: d^f(D, D') = \min \{ d(\tilde D, \tilde D') :
              f(\tilde D) = f(D),\ f(\tilde D') = f(D') \}

    Parameters
    ----------
    matrix : array_like of shape (n, n)
        A symmetric matrix of distances, zero on the diagonal; entries may be infinite.
    labels : sequence of hashable, length n
        What the view shows of each database.

    Returns
    -------
    ndarray of shape (n, n)
        Zero for equal labels.

    Notes
    -----
    Thesis, Proposition A.16; paper, Proposition IV.10. It can break the triangle
    inequality: use :func:`quotient_metric`, which is never larger.

    Examples
    --------
    >>> line = abs(np.subtract.outer([0, 1, 11, 12], [0, 1, 11, 12]))
    >>> float(min_privacy(line, "abbc")[0, 3])
    12.0
    """
    classes, between = _class_distances(matrix, labels)
    return between[np.ix_(classes, classes)]


def quotient_metric(
    matrix: npt.ArrayLike,
    labels: Sequence[Hashable],
    *,
    notion: Literal["pure", "gdp", "zcdp", "approx"] = "pure",
) -> Matrix:
    r"""Return the quotient pseudometric: the shortest-path closure of minimum privacy.

    Parameters
    ----------
    matrix : array_like of shape (n, n)
        A symmetric matrix of distances, zero on the diagonal; for zCDP the root of the
        coefficient.
    labels : sequence of hashable, length n
        What the view shows of each database.
    notion : {"pure", "gdp", "zcdp", "approx"}
        What the distances price.

    Returns
    -------
    ndarray of shape (n, n)
        At most :func:`min_privacy`, with the triangle inequality.

    Raises
    ------
    NotionMismatchError
        For approximate losses, whose deltas do not add along a chain.

    Notes
    -----
    Log-ratios add along a chain, and so do Gaussian shifts and roots of zCDP
    coefficients, hence a mechanism that reads only the view is private with the
    closure. Floyd's algorithm on the classes, each sum rounded up, so that the result
    never understates a loss; the triangle inequality therefore holds to rounding.

    Examples
    --------
    >>> line = abs(np.subtract.outer([0, 1, 11, 12], [0, 1, 11, 12]))
    >>> float(quotient_metric(line, "abbc")[0, 3])
    2.0
    """
    if notion == "approx":
        raise NotionMismatchError(
            "notion must be pure, gdp or zcdp for a quotient, got approx; bound each "
            "pair by its closest pair in the fibres instead."
        )
    classes, between = _class_distances(matrix, labels)
    for middle in range(len(between)):
        through = _sum_up(between[:, [middle]], between[[middle], :])
        np.minimum(between, through, out=between)
    return between[np.ix_(classes, classes)]


def canonical_quotient(
    granularity: Granularity, view: View, *, domain: Domain
) -> tuple[dict[Any, int], Matrix]:
    """Return the quotient of a canonical metric on an enumerated domain.

    Returns
    -------
    index : dict
        What the view shows -> row of the matrix.
    matrix : ndarray
        Quotient distances between the classes.

    Notes
    -----
    Each fibre is contracted to one vertex; breadth-first search from every class.
    """
    index, adjacency = _contract(granularity, view, domain)
    matrix = np.full((len(adjacency), len(adjacency)), math.inf)
    for source in range(len(adjacency)):
        for target, steps in _search(adjacency, source).items():
            matrix[source, target] = steps
    return index, matrix


def quotient_distance(
    base: Metric, view: View, *, domain: Domain, first: Database, second: Database
) -> float:
    """Return the quotient distance of two databases.

    Parameters
    ----------
    base : Metric
        A metric on the domain.
    view : View
        Whose fibres are contracted.
    domain : Domain
        Enumerable, unless a closed form is proved: replacement, add/remove and edit
        on a table seen through some of its cells.
    first, second : Database
        Two databases of the domain.
    """
    view.require_domain(domain)
    require_members(domain, first, second)
    ours, theirs = view.apply(first, domain), view.apply(second, domain)
    if ours == theirs:
        return 0.0
    known = _closed_form(base, view, domain, ours, theirs)
    if known is not None:
        return known
    if isinstance(base, Granularity):
        base.require_domain(domain)
        index, adjacency = _contract(base, view, domain)
        return float(_search(adjacency, index[ours]).get(index[theirs], math.inf))
    return _enumerated(base, view, domain, ours, theirs)


def sub_universe_distance(first: Iterable[Hashable], second: Iterable[Hashable]) -> int:
    r"""Return the quotient of replacement by the view of a proper sub-universe.

    .. math:: d^{B,f}(D, D') = \max(|A \setminus B|, |B \setminus A|),
              \quad A = f(D),\ B = f(D')

    Parameters
    ----------
    first, second : iterable of hashable
        The two sub-multisets of records in the sub-universe.

    Notes
    -----
    Thesis, Corollary A.14 and paper, Corollary IV.15 print the minimum of the
    replacement distance and the symmetric difference, which is a valid upper bound
    and can be larger. The value here is exact, and is the edit metric on the
    sub-multisets. Needs a record outside the sub-universe to pad with, and a domain
    that holds the padded databases: all multisets, those up to a size, those of a size.

    Examples
    --------
    >>> sub_universe_distance(["a"], ["b"])
    1
    """
    ours, theirs = Counter(first), Counter(second)
    return max(sum((ours - theirs).values()), sum((theirs - ours).values()))


def _class_distances(
    matrix: npt.ArrayLike, labels: Sequence[Hashable]
) -> tuple[npt.NDArray[np.intp], Matrix]:
    """Return each point's class number and the least distance between classes."""
    values = np.asarray(matrix, dtype=float)
    _require_distances(values, len(labels))
    numbers: dict[Hashable, int] = {}
    classes = np.array(
        [numbers.setdefault(label, len(numbers)) for label in labels], dtype=np.intp
    )
    if not classes.size:
        return classes, values.reshape(0, 0)
    order = np.argsort(classes, kind="stable")
    starts = np.searchsorted(classes[order], np.arange(len(numbers)))
    rows = np.minimum.reduceat(values[order], starts, axis=0)
    between = np.minimum.reduceat(rows[:, order], starts, axis=1)
    return classes, between


def _require_distances(values: Matrix, number: int) -> None:
    if values.shape != (number, number):
        raise MismatchError(
            f"matrix must have one row and column per label, got shape {values.shape} "
            f"and {number} labels."
        )
    plain = (values >= 0).all() and not np.diagonal(values).any()
    if not plain or (values != values.T).any():
        reason = check_pseudometric(values).reason
        raise ValueError(f"matrix must hold distances, but {reason}.")


def _sum_up(first: Matrix, second: Matrix) -> Matrix:
    """Return the sums rounded up, by the exact error of each addition."""
    total = first + second
    with np.errstate(invalid="ignore"):
        back = total - first
        error = (first - (total - back)) + (second - back)
    return np.where(error > 0, np.nextafter(total, np.inf), total)


def _contract(
    granularity: Granularity, view: View, domain: Domain
) -> tuple[dict[Any, int], list[set[int]]]:
    require_enumerable(domain)
    shown = {one: view.apply(one, domain) for one in domain.databases()}
    index: dict[Any, int] = {}
    for value in shown.values():
        index.setdefault(value, len(index))
    adjacency: list[set[int]] = [set() for _ in index]
    for database, value in shown.items():
        for other in granularity.neighbours(database, domain):
            adjacency[index[value]].add(index[shown[other]])
    return index, adjacency


def _search(adjacency: list[set[int]], source: int) -> dict[int, int]:
    steps, queue = {source: 0}, deque([source])
    while queue:
        here = queue.popleft()
        for there in adjacency[here]:
            if there not in steps:
                steps[there] = steps[here] + 1
                queue.append(there)
    return steps


def _closed_form(
    base: Metric, view: View, domain: Domain, ours: Any, theirs: Any
) -> float | None:
    if not isinstance(view, Select) or not isinstance(domain, Table):
        return None
    if view.statistic == "count" or view.covers(domain):
        return None
    if isinstance(base, Trajectory):
        base = base.on(domain)
    if base == Bounded() or (base == Edit() and domain.size is None):
        return float(sub_universe_distance(ours, theirs))
    if base == Unbounded() and domain.size is None:
        return SymmetricDifference().distance(ours, theirs, domain)
    return None


def _enumerated(
    base: Metric, view: View, domain: Domain, ours: Any, theirs: Any
) -> float:
    require_enumerable(domain, _MATRIX_LIMIT)
    listed = list(domain.databases())
    matrix = [[base.distance(one, two, domain) for two in listed] for one in listed]
    labels = [view.apply(one, domain) for one in listed]
    closed = quotient_metric(matrix, labels)
    return float(closed[labels.index(ours), labels.index(theirs)])
