"""What a guarantee on the whole data says about a mechanism that reads only a view.

If :math:`M` is :math:`d`-private on the domain and reads :math:`f(D)` alone, its output
law is constant on the fibres of :math:`f`. So the loss between two databases is at most
that of the closest pair with the same views, and, chaining such steps, at most the
quotient of :math:`d` by the fibres, which is again a pseudometric.

That a mechanism reads its view and nothing else is argued, and never a default.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from undertow._validate import check_choice
from undertow.errors import MismatchError, NotionMismatchError, UnprovedDependencyError
from undertow.numeric.array import Matrix
from undertow.spaces.base import Database, Domain, Granularity, Metric, View
from undertow.spaces.canonical import shortest_paths
from undertow.spaces.domain import Table, require_enumerable, require_members
from undertow.spaces.metric import SymmetricDifference, check_pseudometric
from undertow.spaces.unit import Bounded, Edit, Trajectory, Unbounded
from undertow.spaces.view.table import Select

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
    from scipy.sparse.csgraph import shortest_path

    index, adjacency = _contract(granularity, view, domain)
    joined = np.zeros((len(adjacency), len(adjacency)), dtype=np.int8)
    for one, others in enumerate(adjacency):
        joined[one, list(others)] = 1
    return index, np.asarray(shortest_path(joined, unweighted=True), dtype=float)


@dataclass(frozen=True, slots=True)
class Quotient(Metric):
    """The quotient of a metric by the fibres of a view.

    Parameters
    ----------
    base : Metric
        A metric on the domain in which the whole mechanism was proved private.
    view : View
        What the mechanism reads, and nothing else.

    Notes
    -----
    See :func:`quotient_distance`, which computes it.
    """

    base: Metric
    view: View

    @property
    def name(self) -> str:
        """The name used in reports."""
        return f"{self.base.name} modulo {self.view.name}"

    def distance(self, first: Database, second: Database, domain: Domain) -> float:
        """Return the quotient distance."""
        return quotient_distance(
            self.base, self.view, domain=domain, first=first, second=second
        )


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
    known = _closed_quotient(base, view, domain, ours, theirs)
    if known is not None:
        return known
    if isinstance(base, Granularity):
        base.require_domain(domain)
        index, adjacency = _contract(base, view, domain)
        start, goal = index[ours], index[theirs]
        found = shortest_paths(
            lambda here: ((there, 1) for there in adjacency[here]), start, goal=goal
        )
        return float(found.get(goal, math.inf))
    return _enumerated_quotient(base, view, domain, ours, theirs)


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


def _closed_quotient(
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


def _enumerated_quotient(
    base: Metric, view: View, domain: Domain, ours: Any, theirs: Any
) -> float:
    require_enumerable(domain, _MATRIX_LIMIT)
    listed = list(domain.databases())
    matrix = [[base.distance(one, two, domain) for two in listed] for one in listed]
    labels = [view.apply(one, domain) for one in listed]
    closed = quotient_metric(matrix, labels)
    return float(closed[labels.index(ours), labels.index(theirs)])


# Why a mechanism is believed to read only its view.
#
# The common-domain setting divides a metric by the fibres of a view. That needs one
# proof no metric can give: that the mechanism reads the view and nothing else. The
# proof is by construction or by a named person, and it is an argument, never a default.

_DEPENDENCY_SOURCE = "paper, Definition IV.8"


@dataclass(frozen=True, slots=True)
class Dependency:
    """Why a mechanism is believed to read only its view.

    Parameters
    ----------
    view : View or None
        What it reads; None for a statement about several releases at once, each of
        which reads its own view.
    kind : {"construction", "attestation"}
        The mechanism object receives the view and nothing else, or a person says so.
    by : str
        Who attests; needed for an attestation.
    statement : str
        What was built or checked, in a sentence; needed for an attestation and where
        `view` is None.
    also_reads : tuple of str
        What else it reads: a grand total, a global maximum, a grid built on the data.
        Anything here refuses the proof.

    Raises
    ------
    UnprovedDependencyError
        If the attestation is unsigned, nothing says what was built or checked, or
        the mechanism reads something else too.

    Notes
    -----
    Thesis, Definition 4.9; paper, Definition IV.8. Declare the coarsest statistic:
    depending on a count is worth more than depending on the records behind it.

    Examples
    --------
    >>> Dependency(None, "construction", statement="each count gets its block").kind
    'construction'
    """

    view: View | None
    kind: Literal["construction", "attestation"]
    by: str = field(default="", kw_only=True)
    statement: str = field(default="", kw_only=True)
    also_reads: tuple[str, ...] = field(default=(), kw_only=True)

    def __post_init__(self) -> None:
        check_choice(self.kind, "kind", choices=("construction", "attestation"))
        said = self.statement.strip()
        if self.kind == "attestation" and not (self.by.strip() and said):
            raise UnprovedDependencyError(
                "an attestation must say by whom and what was checked, got "
                f"by {self.by!r} and statement {self.statement!r}.",
                source=_DEPENDENCY_SOURCE,
            )
        if self.view is None and not said:
            raise UnprovedDependencyError(
                "statement must say how several releases were built to read only "
                "their views, got ''; say it, or give one proof per view.",
                source=_DEPENDENCY_SOURCE,
            )
        if self.also_reads:
            raise UnprovedDependencyError(
                f"a mechanism must read only {self._shown()}, got one that also reads "
                f"{', '.join(self.also_reads)}; release that on its own.",
                source=_DEPENDENCY_SOURCE,
            )

    def _shown(self) -> str:
        return "its view" if self.view is None else self.view.name


def require_dependency(proof: Dependency | None, view: View) -> Dependency:
    """Return the proof, or raise ``UnprovedDependencyError`` if it does not serve.

    Parameters
    ----------
    proof : Dependency or None
        The proof that came with the release.
    view : View
        The view through which the release is to be composed.
    """
    if not isinstance(proof, Dependency):
        shown = "none" if proof is None else type(proof).__name__
        raise UnprovedDependencyError(
            f"a common-domain release must come with proof that it reads only "
            f"{view.name}, got {shown}; build it on the view, or attest it.",
            source=_DEPENDENCY_SOURCE,
        )
    if proof.view is not None and proof.view != view:
        raise UnprovedDependencyError(
            f"the proof must be about {view.name}, got one about {proof.view.name}.",
            witness=proof,
            source=_DEPENDENCY_SOURCE,
        )
    return proof


def require_dependencies(
    proof: Dependency | Sequence[Dependency] | None, views: Sequence[View | None]
) -> None:
    """Raise ``UnprovedDependencyError`` unless every release has its proof.

    Parameters
    ----------
    proof : Dependency or sequence of Dependency
        One statement for all releases, or one proof per release, in order.
    views : sequence of View or None
        The view of each release; None where the composition does not name it, so that
        only the presence of a proof for it can be checked.

    Notes
    -----
    A single proof about one view serves several releases only if all of them read that
    view, and serves no release whose view is not named.
    """
    if isinstance(proof, Dependency):
        proofs: Sequence[Dependency] = [proof] * len(views)
        if proof.view is not None and None in views:
            raise UnprovedDependencyError(
                "dependency must be about every release, got one about "
                f"{proof.view.name} alone; give one proof per release.",
                witness=proof,
                source=_DEPENDENCY_SOURCE,
            )
    else:
        proofs = _one_proof_each(proof, len(views))
    for one, view in zip(proofs, views, strict=True):
        if view is not None:
            require_dependency(one, view)


def _one_proof_each(given: object, number: int) -> Sequence[Dependency]:
    if given is None:
        shown = "none"
    elif not isinstance(given, list | tuple):
        shown = type(given).__name__
    elif len(given) != number:
        shown = f"{len(given)} for {number} releases"
    elif not all(isinstance(one, Dependency) for one in given):
        shown = "something else among them"
    else:
        return given
    raise UnprovedDependencyError(
        "dependency must show that each release reads only its view, got "
        f"{shown}; give Dependency(None, 'construction', statement=...), or one proof "
        "per release.",
        source=_DEPENDENCY_SOURCE,
    )
