"""Groups of records: who may depend on whom, and nothing of how.

If groups of at most m records are mutually independent, an epsilon-DP release leaks
at most m times epsilon: the general bound. Here are the models that say no more than
this (:class:`Blocks`, :class:`Independent`, :class:`IndependentUnits`), their
theorems, and laws of two bits under which the bound is reached, though nothing looks
correlated.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from undertow._validate import check_choice, check_count, check_index, check_positive
from undertow.correlation.level import check_level, scaled_down
from undertow.correlation.model import Assumptions, Known, Model
from undertow.correlation.query import AnyQuery, LinearQuery, Query, Scope
from undertow.correlation.result import Adversary, Leakage, adversary_witness
from undertow.correlation.theorem import FormulaTheorem, LeakageTheorem, multiple
from undertow.errors import ModelError, NotApplicable
from undertow.numeric.exact import exact
from undertow.numeric.rounding import inflate


def general_leakage(epsilon: float, group: int) -> Leakage:
    r"""Bound the leakage when at most `group` records depend on each other.

    .. math:: \mathrm{BDPL} \le m\,\varepsilon

    Parameters
    ----------
    epsilon : float
        DP level of the mechanism; non-negative and finite.
    group : int
        Most records in one dependent group, m.

    Notes
    -----
    Theorem 6.3 of [1]_ (Theorem 4.2 of [2]_): an average over the unknown members of
    the group lies between its extremes, the group differs in at most m records, and
    group privacy finishes. Tight: some law and some mechanism attain it in the limit.
    Checked: nothing. Not checkable: groups are *mutually* independent.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> general_leakage(0.5, 4).value
    2.0
    """
    return GeneralTheorem().at(check_count(group, "group"), check_level(epsilon))


def general_budget(target: float, group: int) -> float:
    r"""Return the DP level :math:`B/m` that keeps the leakage within `target`.

    Examples
    --------
    >>> general_budget(1.0, 5)
    0.2
    """
    return GeneralTheorem().within(check_count(group, "group"), check_level(target))


class GeneralTheorem(FormulaTheorem):
    """The general bound, for any model that limits its groups."""

    name = "general"
    source = "Theorem 6.3 (general bound)"

    def read(self, model: Model, query: Query) -> int:
        """Return the most records in one group, m."""
        if isinstance(query, LinearQuery) and query.gap is not None:
            raise NotApplicable(
                "the general bound needs a DP release, got an unclipped linear query, "
                "which other records move without limit; give it clip=(low, high)."
            )
        if model.largest_group is None:
            raise NotApplicable(
                "the general bound needs a number of records, got a model of any "
                "length; give the model its length."
            )
        return model.largest_group

    def at(self, given: int, epsilon: float) -> Leakage:
        """Return m times `epsilon`, for any query."""
        return self.stated(
            multiple(epsilon, Fraction(given)),
            unchecked=(f"groups of at most {given} records are mutually independent",),
            witness=adversary_witness(
                Adversary(0), note=f"{given - 1} other records move with it"
            ),
            tight=True if given == 1 else None,
        )

    def within(self, given: int, target: float) -> float:
        """Return `target` over m."""
        return scaled_down(target, given)


# Mutually independent records: the one case in which leakage is the DP level.


class Lawless(Model):
    """A model that says who depends on whom, and nothing of how."""

    def sample(self, count: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Refuse: no law of the records is known."""
        return self.sample_given({}, count, rng=rng)

    def sample_given(
        self, known: Known, count: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Refuse: no law of the records is known."""
        raise NotApplicable(
            f"sampling needs a law of the records, got {self.summary} and no more; use "
            "a joint table, a Gaussian, a Markov chain or a pedigree."
        )


class Independent(Lawless):
    """Mutually independent records, of any law.

    Parameters
    ----------
    size : int, optional
        Number of records; None for any number.

    Notes
    -----
    *Mutually*: pairwise independence is not enough. With ``X3 = X1 xor X2`` of two fair
    bits every pair of records is independent, and an attacker who knows one of them
    learns twice the DP level about another.

    Examples
    --------
    >>> from undertow.correlation.leak import leakage
    >>> leakage(Independent(100), 0.5).value
    0.5
    """

    def __init__(self, size: int | None = None) -> None:
        self._size = None if size is None else check_count(size, "size")

    @property
    def size(self) -> int | None:
        """Number of records; None for any number."""
        return self._size

    @property
    def largest_group(self) -> int:
        """The number 1: no record depends on another."""
        return 1

    @property
    def summary(self) -> str:
        """The model in words."""
        count = "any number of" if self._size is None else f"{self._size}"
        return f"{count} mutually independent records"

    def __repr__(self) -> str:
        return f"Independent({'' if self._size is None else self._size})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Independent):
            return NotImplemented
        return self._size == other._size

    def __hash__(self) -> int:
        return hash((Independent, self._size))

    def methods(self) -> tuple[LeakageTheorem, ...]:
        """Return the one method: leakage is the DP level."""
        return (IndependentTheorem(),)

    def assumptions(self) -> Assumptions:
        """Return what must be trusted: mutual independence."""
        return Assumptions(unchecked=("the records are mutually independent",))


class IndependentTheorem(FormulaTheorem):
    """Independent records: the leakage is the DP level, for any query."""

    name = "independent"
    source = "Section 2.3.2.1 (BDP is DP for independent records)"

    def read(self, model: Independent, query: Query) -> Scope:
        """Return the pairs of secrets that the query covers."""
        return query.scope()

    def at(self, given: Scope, epsilon: float) -> Leakage:
        """Return `epsilon` itself."""
        witness = adversary_witness(Adversary(0))
        return self.stated(epsilon, witness=witness, tight=True, scope=given)

    def within(self, given: Scope, target: float) -> float:
        """Return `target` itself."""
        return target


# Records in groups: only who may depend on whom is known, and nothing of how.

# One label a record is kept in memory.
_MOST_LABELS = 10**8


class Blocks(Lawless):
    r"""Records in mutually independent groups; inside a group anything may happen.

    Parameters
    ----------
    sizes : sequence of int
        Sizes of consecutive groups: ``Blocks([2, 3])`` has the groups
        ``{0, 1}`` and ``{2, 3, 4}``.

    Notes
    -----
    Definition 6.2 of [1]_ (Definition 4.1 of [2]_): at most m records are correlated if
    some partition into groups of at most m has *mutually* independent groups. A group
    holds everyone who may depend on each other: all siblings with both parents, all
    rows of one person. Groups are declared from knowledge of the data; tests of pairs
    cannot find them, nor can small Pearson coefficients (see
    :mod:`undertow.correlation.group`).

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> Blocks.from_labels(["ada", "bob", "ada", "ada"]).group_of(2)
    (0, 2, 3)
    >>> Blocks([2, 3]).summary
    '5 records in 2 independent groups of at most 3'
    """

    def __init__(self, sizes: Sequence[int] | NDArray[np.integer[Any]]) -> None:
        listed = _read_integers(sizes, "sizes")
        if listed.size == 0 or listed.min() < 1:
            raise ModelError(
                "sizes must be at least one size of at least 1 each, "
                f"got {'none' if listed.size == 0 else int(listed.min())}."
            )
        _require_memory(int(listed.max()))
        _require_memory(int(listed.sum()))
        self._set(np.repeat(np.arange(listed.size), listed), listed)

    @classmethod
    def of_size(cls, size: int, *, groups: int = 1) -> Self:
        """Return `groups` groups of `size` records each."""
        size, groups = check_count(size, "size"), check_count(groups, "groups")
        _require_memory(size * groups)
        return cls(np.full(groups, size))

    @classmethod
    def from_partition(cls, groups: Iterable[Iterable[int]]) -> Self:
        """Return the groups listed by their records, which cover ``0..n-1`` once.

        Raises
        ------
        ModelError
            If a group is empty, or a record is missing, repeated or out of range.

        Examples
        --------
        >>> Blocks.from_partition([[0, 3], [1], [2]]).sizes.tolist()
        [2, 1, 1]
        """
        listed = [_read_integers(list(group), "groups") for group in groups]
        if not listed or not all(group.size for group in listed):
            raise ModelError("groups must be one or more and none of them empty.")
        members = np.concatenate(listed)
        _require_cover(members)
        sizes = np.array([group.size for group in listed])
        labels = np.empty(members.size, dtype=np.intp)
        labels[members] = np.repeat(np.arange(sizes.size), sizes)
        return cls._of(labels, sizes)

    @classmethod
    def from_labels(cls, labels: Iterable[Hashable]) -> Self:
        """Return one group for each distinct label; groups in order of appearance.

        Parameters
        ----------
        labels : iterable of hashable
            One for each record, such as a household or family number.

        Raises
        ------
        ModelError
            If a label is missing (None, NaN or blank): whose group the record belongs
            to is then not known, and any guess may break the promise.

        Notes
        -----
        O(n).

        Examples
        --------
        >>> Blocks.from_labels([7, 7, 9]).labels.tolist()
        [0, 0, 1]
        """
        listed = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
        distinct = list(dict.fromkeys(listed))
        if not distinct:
            raise ModelError("labels must be one for each record, got none.")
        if any(map(_is_missing, distinct)):
            record = next(j for j, label in enumerate(listed) if _is_missing(label))
            raise ModelError(
                f"labels must name a group for every record, got none for record "
                f"{record}; give it the label of everyone it may depend on."
            )
        code = {label: index for index, label in enumerate(distinct)}
        codes = np.fromiter(map(code.__getitem__, listed), np.intp, len(listed))
        return cls._of(codes, np.bincount(codes))

    @classmethod
    def from_families(cls, labels: Iterable[Hashable]) -> Self:
        """Return one group for each family: :meth:`from_labels` for a family column.

        The column must hold whole families: parents with all their children, and
        families that share a member under one label.
        """
        return cls.from_labels(labels)

    @classmethod
    def from_graph(cls, size: int, edges: Iterable[tuple[int, int]]) -> Self:
        """Return the connected components of a declared dependence graph.

        Parameters
        ----------
        size : int
            Number of records.
        edges : iterable of pair of int
            Records that may depend on each other directly.

        Notes
        -----
        The graph is declared from knowledge of the data. Do not infer it from tests of
        pairs: with ``X3 = X1 xor X2`` all pairs pass, and the group is all three.
        O(size + edges).

        Examples
        --------
        >>> Blocks.from_graph(4, [(0, 2), (2, 3)]).sizes.tolist()
        [3, 1]
        """
        size = check_count(size, "size")
        _require_memory(size)
        pairs = _read_integers(list(edges), "edges").reshape(-1, 2)
        if pairs.size and not (pairs.min() >= 0 and pairs.max() < size):
            stray = pairs[((pairs < 0) | (pairs >= size)).any(axis=1)][0].tolist()
            raise ModelError(
                f"edges must join records in 0..{size - 1}, got {tuple(stray)}."
            )
        codes = _components(size, pairs)
        return cls._of(codes, np.bincount(codes))

    @classmethod
    def _of(cls, labels: NDArray[np.intp], sizes: NDArray[np.intp]) -> Self:
        made = cls.__new__(cls)
        made._set(labels, sizes)
        return made

    def _set(self, labels: NDArray[np.intp], sizes: NDArray[np.intp]) -> None:
        for array in (labels, sizes):
            array.setflags(write=False)
        self._labels, self._sizes = labels, sizes

    @property
    def size(self) -> int:
        """Number of records."""
        return self._labels.size

    @property
    def labels(self) -> NDArray[np.intp]:
        """Index of each record's group, read-only."""
        return self._labels

    @property
    def sizes(self) -> NDArray[np.intp]:
        """Number of records of each group, read-only."""
        return self._sizes

    @property
    def largest_group(self) -> int:
        """Size of the largest group: the m of the theorem."""
        return int(self._sizes.max())

    @property
    def summary(self) -> str:
        """The model in words."""
        count, largest = self._sizes.size, self.largest_group
        groups = "group" if count == 1 else "independent groups"
        limit = "" if count == 1 else f" of at most {largest}"
        records = "record" if self.size == 1 else "records"
        return f"{self.size} {records} in {count} {groups}{limit}"

    def __repr__(self) -> str:
        return f"<Blocks: {self.summary}>"

    def __eq__(self, other: object) -> bool:
        """Whether the same records are grouped together, however groups are named."""
        if not isinstance(other, Blocks):
            return NotImplemented
        if self.size != other.size or self._sizes.size != other._sizes.size:
            return False
        renamed = np.empty(self._sizes.size, dtype=np.intp)
        renamed[self._labels] = other._labels
        return bool(np.array_equal(renamed[self._labels], other._labels))

    def __hash__(self) -> int:
        return hash((Blocks, self.size, tuple(np.bincount(self._sizes).tolist())))

    def group_of(self, record: int) -> tuple[int, ...]:
        """Return the records of the group of `record`, itself included; O(n)."""
        record = check_index(record, "record", size=self.size)
        same = np.flatnonzero(self._labels == self._labels[record])
        return tuple(same.tolist())

    def methods(self) -> tuple[LeakageTheorem, ...]:
        """Return the per-record bound and the general bound."""
        return (BlocksTheorem(), GeneralTheorem())

    def assumptions(self) -> Assumptions:
        """Return what was checked, the partition, and what must be trusted."""
        return Assumptions(
            checked=("every record is in exactly one group",),
            unchecked=("the groups are mutually independent",),
        )


def _require_memory(records: int) -> None:
    if records > _MOST_LABELS:
        raise ModelError(
            f"groups must have at most {_MOST_LABELS} records together, got {records}; "
            "general_leakage and general_budget need the largest group only."
        )


def _read_integers(values: Any, name: str) -> NDArray[np.intp]:
    listed = np.asarray(values)
    if listed.size == 0:
        return np.empty(0, dtype=np.intp)
    if listed.dtype.kind not in "iu":
        raise ModelError(f"{name} must be whole numbers, got {listed.dtype} values.")
    return listed.astype(np.intp)


def _require_cover(members: NDArray[np.intp]) -> None:
    size = members.size
    if members.min() < 0 or members.max() >= size:
        stray = int(members.max() if members.max() >= size else members.min())
        raise ModelError(
            f"groups must cover the records 0..{size - 1} once each, got {stray}."
        )
    counts = np.bincount(members, minlength=size)
    if counts.max() > 1:
        raise ModelError(
            "groups must not overlap, got record "
            f"{int(np.argmax(counts > 1))} in several; merge the groups that share it."
        )


def _components(size: int, pairs: NDArray[np.intp]) -> NDArray[np.intp]:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # An edge given twice is one edge: counts would be added, and could wrap to none.
    first, second = np.unique(np.sort(pairs, axis=1), axis=0).T
    ones = np.ones(len(first))
    graph = coo_array((ones, (first, second)), shape=(size, size))
    found = connected_components(graph.tocsr(), directed=False)[1]
    return np.asarray(found, dtype=np.intp)


def _is_missing(label: Hashable) -> bool:
    if label is None or type(label).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(label, str):
        return not label.strip()
    return isinstance(label, float) and math.isnan(label)


# What a release leaks when only the groups of records are known.

_ADDITIVE = "additive Laplace noise of scale max(sensitivities)/epsilon"


def block_leakage(
    blocks: Blocks,
    epsilon: float,
    *,
    adversary: Adversary | None = None,
    sensitivities: ArrayLike | None = None,
) -> Leakage:
    r"""Bound the leakage to one attacker, or to the worst, by the target's own group.

    .. math:: \mathrm{BDPL}_{(K,i)} \le \varepsilon \sum_{j \in C(i) \setminus K}
              \frac{\Delta_j}{\max_l \Delta_l}

    which is :math:`|C(i) \setminus K|\,\varepsilon` if nothing is known of the
    single sensitivities.

    Parameters
    ----------
    blocks : Blocks
        The groups; C(i) is that of the target.
    epsilon : float
        DP level of the mechanism; non-negative and finite.
    adversary : Adversary, optional
        Target i and known records K; by default the worst.
    sensitivities : array_like of shape (n,), optional
        Most that each record moves the answer, for additive Laplace noise of scale
        ``max(sensitivities) / epsilon`` (in :math:`\ell_1` for a vector). Without them
        the bound holds for every epsilon-DP mechanism.

    Returns
    -------
    Leakage
        Tight over the laws with these groups: records of the group that all move
        together attain it.

    Raises
    ------
    ModelError
        If the sensitivities are negative, all zero, or not one for each record.

    Notes
    -----
    Refines Theorem 6.3 of [1]_; proved on the theory page of the general bound. The sum
    is raised by a relative margin that covers its rounding. O(n).

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.

    Examples
    --------
    >>> families = Blocks([3, 1])
    >>> block_leakage(families, 1.0, adversary=Adversary(0, {2})).value
    2.0
    >>> shared = block_leakage(families, 1.0, sensitivities=[1.0, 0.5, 0.25, 1.0])
    >>> round(shared.value, 12)
    1.75
    """
    epsilon = check_level(epsilon)
    shares = _read_shares(sensitivities, blocks.size)
    who = None if adversary is None else adversary.within(blocks.size)
    return BlocksTheorem().at(_Heaviest(blocks, shares, who), epsilon)


@dataclass(frozen=True, slots=True, eq=False)
class _Heaviest:
    """Who attacks which groups, and what each record moves; None for the worst."""

    blocks: Blocks
    shares: NDArray[np.float64] | None
    adversary: Adversary | None = None
    scope: Scope = field(default_factory=Scope)

    @property
    def factor(self) -> Fraction:
        return Fraction(exact(_factor(self.blocks, self.shares, self.adversary)))


class BlocksTheorem(FormulaTheorem):
    """The general bound record by record, for Laplace noise on a weighted sum.

    A group whose weights are small leaks less than its size says. Proved on the theory
    page of the general bound.
    """

    name = "per-record"
    source = "Theorem 6.3, per group and record (general bound)"
    published = False
    checked = ("every record is in exactly one group",)
    unchecked = ("the groups are mutually independent",)

    def read(self, model: Blocks, query: Query) -> _Heaviest:
        """Return the groups and what each record moves the sum."""
        if not isinstance(query, LinearQuery) or query.gap is not None:
            raise NotApplicable(
                "the per-record bound needs a clipped or bounded linear query, got "
                f"{'an unclipped one' if query.name == 'linear' else query.name!r}; "
                "the general bound holds for every DP mechanism."
            )
        query.sensitivity(model)  # refuses records without bounds
        weights = np.abs(np.asarray(query.weights_for(model.size), dtype=np.float64))
        shares = _read_shares(weights, model.size)
        return _Heaviest(model, shares, scope=query.scope())

    def at(self, given: _Heaviest, epsilon: float) -> Leakage:
        """Return `epsilon` times the heaviest group over the heaviest record."""
        blocks, shares = given.blocks, given.shares
        who = given.adversary or Adversary(_worst_target(blocks, shares))
        moving = len(set(blocks.group_of(who.target)) - who.known)
        note = f"{moving} unknown records move together"
        found = self.stated(
            multiple(epsilon, given.factor),
            witness=adversary_witness(who, note=note),
            tight=True,
            method="general" if shares is None else self.name,
            model=blocks.summary,
            scope=given.scope,
        )
        if shares is not None:
            found = replace(found, mechanisms=_ADDITIVE)
        return (
            found if given.adversary is None else replace(found, attackers=who.summary)
        )

    def within(self, given: _Heaviest, target: float) -> float:
        """Return the level whose leakage is at most `target`."""
        return scaled_down(target, given.factor)


def _factor(
    blocks: Blocks, shares: NDArray[np.float64] | None, adversary: Adversary | None
) -> float:
    """Return the bound over epsilon, raised by what covers the rounding of sums."""
    if adversary is not None:
        moving = [
            j for j in blocks.group_of(adversary.target) if j not in adversary.known
        ]
        total = len(moving) if shares is None else math.fsum(shares[moving])
        return min(inflate(total, _margin(len(moving))), float(len(moving)))
    if shares is None:
        return float(blocks.largest_group)
    sums = np.bincount(blocks.labels, weights=shares)
    raised = sums * (1.0 + _margin(blocks.largest_group))
    return float(np.minimum(raised, blocks.sizes).max())


def _margin(count: int) -> float:
    """Cover the rounding of `count` quotients and of their sum, in any order."""
    return (count + 4) * 2.0**-52


def _worst_target(blocks: Blocks, shares: NDArray[np.float64] | None) -> int:
    """Return the first record of the heaviest group."""
    weights = np.bincount(blocks.labels, weights=shares)
    return int(np.argmax(blocks.labels == np.argmax(weights)))


def _read_shares(
    sensitivities: ArrayLike | None, size: int
) -> NDArray[np.float64] | None:
    """Return each sensitivity over the largest."""
    if sensitivities is None:
        return None
    changes = np.asarray(sensitivities, dtype=np.float64)
    if changes.shape != (size,):
        raise ModelError(
            f"sensitivities must be one for each of the {size} records, "
            f"got shape {changes.shape}."
        )
    if not (np.isfinite(changes).all() and changes.min() >= 0 and changes.max() > 0):
        raise ModelError(
            "sensitivities must be finite and non-negative, and one positive, got "
            f"values from {changes.min()} to {changes.max()}."
        )
    return np.asarray(changes / changes.max())


# Records of units that are independent of each other, whatever happens inside of one.
#
# Where a mechanism is private about *all* records of a unit at once, it does not matter
# how these depend on each other: the leakage is the DP level.

_UNITS = "units are mutually independent: records depend inside of a unit only"


class IndependentUnits(Lawless):
    """Units with several records each: independent units, any dependence inside.

    DP levels given to this model are about replacing *all* records of a unit, as at
    user level. The leakage is then the level, about one record, several or all of a
    unit, to everyone who knows any of the other records: those of the same unit too.

    Parameters
    ----------
    inside : Model, optional
        How the records of one unit depend on each other; any law if not given. It is
        named in results and changes no number.

    Notes
    -----
    Theorem 1 of the theory page *Release accounting*. Not checkable: the units are
    mutually independent. A family whose members depend on each other is one unit here,
    or a group of :class:`Blocks`.

    Examples
    --------
    >>> from undertow.correlation import MarkovChain, leakage
    >>> steps = MarkovChain([[0.9, 0.1], [0.2, 0.8]], length=24)
    >>> round(leakage(steps, 1.0).value, 3), leakage(IndependentUnits(steps), 1.0).value
    (4.322, 1.0)
    """

    def __init__(self, inside: Model | None = None) -> None:
        if inside is not None and not isinstance(inside, Model):
            raise ModelError(f"inside must be a model, got {type(inside).__name__}.")
        self._inside = inside

    @property
    def inside(self) -> Model | None:
        """The model of the records of one unit; None for any law."""
        return self._inside

    @property
    def size(self) -> None:
        """None: there may be any number of units, each with any number of records."""
        return None

    @property
    def largest_group(self) -> int:
        """The number 1: no unit depends on another."""
        return 1

    @property
    def summary(self) -> str:
        """The model in words."""
        words = "independent units with any dependence inside of each"
        return words + ("" if self._inside is None else f": {self._inside.summary}")

    def __repr__(self) -> str:
        return f"IndependentUnits({'' if self._inside is None else repr(self._inside)})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IndependentUnits):
            return NotImplemented
        return self._inside == other._inside

    def __hash__(self) -> int:
        return hash((IndependentUnits, self._inside))

    def methods(self) -> tuple[LeakageTheorem, ...]:
        """Return the one method: leakage is the DP level about whole units."""
        return (WholeUnitsTheorem(),)

    def assumptions(self) -> Assumptions:
        """Return what must be trusted: that units are independent of each other."""
        return Assumptions(unchecked=(_UNITS,))


class WholeUnitsTheorem(FormulaTheorem):
    """Independent units: the leakage is the DP level about all records of a unit.

    Proved on the theory page of release accounting. The level must be one about whole
    units, so that a query of single records is refused: how far it moves with a unit is
    not in the model.
    """

    name = "whole-units"
    source = "Theorem 1 of release accounting (whole units)"
    published = False

    def read(self, model: IndependentUnits, query: Query) -> Scope:
        """Return the pairs of secrets covered: a query of single records is refused."""
        if not isinstance(query, AnyQuery):
            raise NotApplicable(
                "the whole-units bound needs a level about all records of a unit, got "
                f"a {query.name} query of single records; leave the query out, and "
                "scale the noise by what a unit moves."
            )
        return query.scope()

    def at(self, given: Scope, epsilon: float) -> Leakage:
        """Return `epsilon` itself."""
        return self.stated(
            epsilon,
            tight=True,
            mechanisms="every mechanism that is epsilon-DP for replacing all records "
            "of a unit",
            attackers="anyone who knows any subset of the other records, those of the "
            "same unit included",
            scope=given,
        )

    def within(self, given: Scope, target: float) -> float:
        """Return `target` itself."""
        return target


# Laws under which the general bound is reached, though nothing looks correlated.
#
# Two families of laws of two bits, indexed by r: as r grows the Pearson coefficient
# tends to 0, while the leakage of an :math:`\varepsilon`-DP mechanism tends to
# :math:`2\varepsilon`, all that the general bound allows. A small coefficient is
# therefore no protection, and no reason to choose smaller groups.

FAMILIES = ("positive", "sparse")
"""Table 6.1 of the thesis (no zero cell), Table 2 of the master's thesis (one)."""

# Covers the rounding of the logarithms of four sums.
_MARGIN = 1e-13
_SMALLEST_R = 2.0
_LARGEST_R = 1e6
_LARGEST_LEVEL = 300.0


def tightness_law(r: float, *, family: str = "positive") -> NDArray[np.float64]:
    r"""Return the law :math:`\Pi_r` of two bits; axis 0 is the first record.

    ===========  =====================  ==========================
    positive     X1 = 0                 X1 = 1
    ===========  =====================  ==========================
    X2 = 0       :math:`1/r^2`          :math:`(r-1)/r^2`
    X2 = 1       :math:`1/r^3`          :math:`(r^3-r^2-1)/r^3`
    ===========  =====================  ==========================

    ===========  =====================  ==========================
    sparse       X1 = 0                 X1 = 1
    ===========  =====================  ==========================
    X2 = 0       :math:`1/r^2`          :math:`1/r - 1/r^2`
    X2 = 1       0                      :math:`(r-1)/r`
    ===========  =====================  ==========================

    Parameters
    ----------
    r : float
        From 2 to a million; whole in the sources, any real number works.
    family : {"positive", "sparse"}
        Table 6.1 of [1]_ or Table 2 of [2]_.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> tightness_law(2).tolist()
    [[0.25, 0.125], [0.25, 0.375]]
    """
    r = _read_r(r)
    if check_choice(family, "family", choices=FAMILIES) == "positive":
        return np.array(
            [[1 / r**2, 1 / r**3], [(r - 1) / r**2, (r**3 - r**2 - 1) / r**3]]
        )
    return np.array([[1 / r**2, 0.0], [(r - 1) / r**2, (r - 1) / r]])


def tightness_pearson(r: float, *, family: str = "positive") -> float:
    r"""Return the Pearson coefficient of :math:`\Pi_r`, which tends to 0 with r.

    .. math:: \frac{r^2 - r - 1}{r^4 \sqrt{p(1-p)\,q(1-q)}},\quad
              p = \frac{1+r}{r^3},\ q = \frac1r \qquad\text{or}\qquad
              \frac{1}{\sqrt{r+1}}

    Examples
    --------
    >>> round(tightness_pearson(10), 6), round(tightness_pearson(8, family="sparse"), 6)
    (0.284429, 0.333333)
    """
    r = _read_r(r)
    if check_choice(family, "family", choices=FAMILIES) == "sparse":
        return 1 / math.sqrt(r + 1)
    p, q = (1 + r) / r**3, 1 / r
    return (r**2 - r - 1) / (r**4 * math.sqrt(p * (1 - p) * q * (1 - q)))


def tightness_lower_bound(
    r: float, epsilon: float, *, family: str = "positive"
) -> float:
    r"""Return what a mechanism that spends all of its level leaks under the law.

    .. math::
       \ln \frac{e^{2\varepsilon}\frac{r}{r+1} + e^{\varepsilon}\frac{1}{r+1}}
       {e^{\varepsilon}\frac{r^2-r}{r^3-r-1} + \frac{r^3-r^2-1}{r^3-r-1}}
       \qquad\text{or}\qquad 2\varepsilon + \ln\frac{r+1}{r+e^{\varepsilon}}

    Parameters
    ----------
    r : float
        From 2 to a million.
    epsilon : float
        Level of a mechanism and an event that lose it at every change: randomized
        response for each record and the output (0, 0), or a noisy sum far below 0.
    family : {"positive", "sparse"}
        As in :func:`tightness_law`.

    Notes
    -----
    Example 6.4 of [1]_, whose limit is printed with factors moved into exponents and
    whose event is printed as {(1, 1)}; both are corrected here. Equation 51 of [2]_.
    The attacker knows nothing and aims at the first record. Both tend to
    :math:`2\varepsilon`.

    References
    ----------
    .. [1] P. Guerra-Balboa, *A Formal Study of Differential Privacy in Complex and
       Correlated Data*, PhD thesis, KIT, 2026.
    .. [2] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> round(tightness_lower_bound(10, 1.0), 6)
    1.795535
    >>> round(tightness_lower_bound(10, 1.0, family="sparse"), 6)
    1.854855
    """
    r, t = _read_r(r), check_level(epsilon)
    if check_choice(family, "family", choices=FAMILIES) == "sparse":
        return float(2 * t + math.log1p(r) - np.logaddexp(math.log(r), t))
    above = np.logaddexp(2 * t + math.log(r), t) - math.log1p(r)
    below = np.logaddexp(t + math.log(r**2 - r), math.log(r**3 - r**2 - 1))
    return float(above - below + math.log(r**3 - r - 1))


def tightness_leakage(r: float, epsilon: float, *, family: str = "positive") -> Leakage:
    r"""Return the exact leakage of the noisy sum of the two bits.

    For the sparse family it is :math:`\varepsilon + \ln\frac{1+re^{\varepsilon}}{1+r}`.

    Parameters
    ----------
    r : float
        From 2 to a million.
    epsilon : float
        The sum has Laplace, or two-sided geometric, noise of scale 1/epsilon.
    family : {"positive", "sparse"}
        As in :func:`tightness_law`.

    Notes
    -----
    The ratio of two Laplace mixtures is greatest at one of the possible sums, so twelve
    ratios, one for each target, ordered pair of values and sum 0, 1 or 2, and the
    informed attacker's :math:`\varepsilon` are the supremum; raised by 1e-13.

    Examples
    --------
    >>> round(tightness_leakage(10, 1.0, family="sparse").value, 9)
    1.940817239
    """
    law, t = tightness_law(r, family=family), check_level(epsilon)
    best, target, pair, output = t, 0, (0, 1), 0
    for axis, y in product((0, 1), (0, 1, 2)):
        logs = [_log_density(np.moveaxis(law, axis, 0)[x], x, y, t) for x in (0, 1)]
        for x in (0, 1):
            if logs[x] - logs[1 - x] > best:
                best = logs[x] - logs[1 - x]
                target, pair, output = axis, (x, 1 - x), y
    return Leakage(
        inflate(best, _MARGIN),
        "Theorem 4.3 (tightness)" if family == "sparse" else "Example 6.4 (tightness)",
        checked=("the law is that of the family",),
        witness=adversary_witness(Adversary(target), pair=pair, output=output),
        tight=True,
        method="closed form",
        model=f"two bits of the {family} family with r = {r:g}",
        mechanisms="Laplace noise of scale 1/epsilon on the sum",
    )


def tightness_parameter(pearson: float, epsilon: float, *, slack: float) -> int:
    r"""Return an r with a Pearson coefficient and a distance to twice the level.

    .. math:: r = \left\lceil \max\left\{\hat\rho^{-2} - 1,\
              \frac{e^{\varepsilon} - e^{\delta}}{e^{\delta} - 1},\ 2
              \right\} \right\rceil

    Parameters
    ----------
    pearson : float
        The coefficient of the sparse family is at most this; positive.
    epsilon : float
        DP level; non-negative and finite.
    slack : float
        The lower bound is at least ``2 epsilon - slack``; positive.

    Notes
    -----
    Theorem 4.3 of Lange (2024), made constructive: solve both conditions for r.

    Examples
    --------
    >>> tightness_parameter(0.1, 1.0, slack=0.01)
    170
    """
    rho, delta = check_positive(pearson, "pearson"), check_positive(slack, "slack")
    t = check_level(epsilon)
    if t > _LARGEST_LEVEL:
        raise ValueError(f"epsilon must be at most {_LARGEST_LEVEL:g}, got {epsilon}.")
    needed = math.expm1(t - delta) / -math.expm1(-delta)
    found = max(1 / rho / rho - 1, needed, _SMALLEST_R)
    if found == math.inf:
        raise ValueError(
            "pearson and slack must be reached by a finite r, got "
            f"{pearson} and {slack}."
        )
    return math.ceil(found)


def _log_density(row: NDArray[np.float64], x: int, y: int, t: float) -> float:
    """Return the log density at y, but for its constant, given this record's value."""
    distances = np.abs(y - x - np.arange(2))
    return float(logsumexp(-t * distances, b=row) - math.log(row.sum()))


def _read_r(r: float) -> float:
    number = check_positive(r, "r")
    if not _SMALLEST_R <= number <= _LARGEST_R:
        raise ValueError(f"r must be between 2 and {_LARGEST_R:g}, got {r}.")
    return number
