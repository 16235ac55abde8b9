"""Relatives at one locus: the law of genotypes on a pedigree.

Mendel's laws, who is the child of whom, reading a pedigree from plain records, and
exact inference by summing out people one by one.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_finite, check_probability
from undertow.correlation.model import Assumptions, Known, Model
from undertow.correlation.pedigree._factor import (
    Factor,
    eliminate,
    elimination_order,
    read_lattice,
    shift_by_degree,
)
from undertow.correlation.query import Query
from undertow.correlation.theorem import LeakageTheorem, stated_methods
from undertow.errors import ModelError, NotApplicable

Law = NDArray[np.float64]

# How far the entries of a founder law may be from summing to one.
_SUM_TOLERANCE = 1e-9


class Genotype(IntEnum):
    """The two alleles of a person at one locus; the value counts the B alleles.

    Examples
    --------
    >>> Genotype.BB + Genotype.Bb
    3
    """

    bb = 0
    Bb = 1
    BB = 2


def _mendel_table() -> Law:
    transmits = np.array([0.0, 0.5, 1.0])  # probability of passing on B
    first, second = transmits[:, None], transmits[None, :]
    table = np.stack(
        [
            (1 - first) * (1 - second),
            first * (1 - second) + (1 - first) * second,
            first * second,
        ],
        axis=-1,
    )
    table.setflags(write=False)
    return table


MENDEL: Law = _mendel_table()
"""Probability of a child's genotype: ``MENDEL[parent, other parent, child]``."""


def child_law(first: int, second: int) -> tuple[float, float, float]:
    r"""Return the law of a child's genotype given those of both parents.

    With t = (0, 1/2, 1) the probability that bb, Bb, BB pass on a B,

    .. math:: \Pr[BB] = t_a t_c, \quad \Pr[bb] = (1-t_a)(1-t_c).

    Parameters
    ----------
    first, second : int or Genotype
        The parents' genotypes; their order does not matter.

    Returns
    -------
    tuple of float
        Probabilities of bb, Bb and BB; exact in binary.

    Notes
    -----
    Definition 5.1 and Table 3 of [1]_, which prints the order BB, Bb, bb.

    References
    ----------
    .. [1] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> child_law(Genotype.BB, Genotype.Bb)
    (0.0, 0.5, 0.5)
    """
    a, c = (check_genotype(value) for value in (first, second))
    bb, mixed, both = MENDEL[a, c].tolist()
    return bb, mixed, both


def hardy_weinberg_law(frequency: float) -> Law:
    r"""Return the genotype law of a founder whose two alleles are independent.

    .. math:: ((1-p)^2,\; 2p(1-p),\; p^2)

    Parameters
    ----------
    frequency : float
        Frequency p of the B allele, in (0, 1).

    Examples
    --------
    >>> hardy_weinberg_law(0.5).tolist()
    [0.25, 0.5, 0.25]
    """
    p = check_probability(frequency, "frequency", open_interval=True)
    return np.array([(1 - p) ** 2, 2 * p * (1 - p), p * p])


def read_founder_law(founder: Iterable[float]) -> Law:
    """Return a founder law given as probabilities of bb, Bb and BB.

    Raises
    ------
    ModelError
        If they are not three non-negative numbers that sum to one.
    """
    law = [check_finite(value, "founder") for value in founder]
    if len(law) != 3 or min(law) < 0 or abs(math.fsum(law) - 1) > _SUM_TOLERANCE:
        raise ModelError(
            "founder must be the probabilities of bb, Bb and BB, non-negative and "
            f"summing to one, got {tuple(law)}."
        )
    return np.array(law) / math.fsum(law)


def one_parent_law(founder: Law) -> Law:
    """Return the child's law given one parent, the other drawn from the founder law.

    Returns
    -------
    ndarray of shape (3, 3)
        Row: the recorded parent; column: the child.

    Examples
    --------
    >>> one_parent_law(hardy_weinberg_law(0.5))[2].tolist()
    [0.0, 0.5, 0.5]
    """
    law: Law = np.einsum("b,abx->ax", founder, MENDEL)
    return law


def check_genotype(value: int) -> int:
    """Return a genotype as the number of its B alleles: 0, 1 or 2."""
    number = check_count(value, "genotype", minimum=0)
    if number > 2:
        raise ValueError(f"genotype must be 0, 1 or 2 B alleles, got {value!r}.")
    return number


def read_genotypes(genotypes: ArrayLike, size: int) -> NDArray[np.int64]:
    """Return genotypes as integers: one for each of `size` people along the last axis.

    Raises
    ------
    ValueError
        If the shape or a value is wrong.
    """
    rows = np.asarray(genotypes)
    if rows.ndim == 0 or rows.shape[-1] != size:
        raise ValueError(
            f"genotypes must be one for each of the {size} people, "
            f"got shape {rows.shape}."
        )
    if not np.isin(rows, (0, 1, 2)).all():
        raise ValueError("genotypes must be 0, 1 or 2 B alleles.")
    return rows.astype(np.int64)


# Relatives at one locus: the law of genotypes on a pedigree.

Table = NDArray[np.float64]
Genotypes = NDArray[np.int64]


@dataclass(frozen=True)
class Pedigree(Model):
    r"""Genotypes of relatives at one locus under Mendel's laws.

    .. math:: \Pr[x] = \prod_i \Pr[x_i \mid x_{\mathrm{parents}(i)}]

    A record is a genotype, the number of B alleles: 0 (bb), 1 (Bb) or 2 (BB).

    Parameters
    ----------
    parents : iterable
        For each person None, or the indices of at most two recorded parents (None for
        one who is not recorded).
    frequency : float, optional
        Frequency of the B allele among founders, in (0, 1); their genotypes then
        follow the Hardy-Weinberg law.
    founder : iterable of three floats, optional
        Probabilities of bb, Bb and BB for a founder, instead of `frequency`.
    names : iterable of str, optional
        One name for each person, for messages.

    Raises
    ------
    ModelError
        If the parents are no pedigree: someone is their own ancestor, a parent is
        unknown, or the founder law is no law.

    Notes
    -----
    Definition 5.1 of [1]_, with what it leaves open settled: founders are independent
    and follow one law; a parent who is not recorded is a founder of their own, summed
    out (two half-recorded siblings do not share them); "no common ancestor" counts
    each person among their own ancestors. Without a founder law only the general
    bound, which does not depend on it, is available.

    References
    ----------
    .. [1] M. Lange, *Utility of Semantic Privacy Notions for Correlated Data*,
       master's thesis, KIT, 2024.

    Examples
    --------
    >>> trio = Pedigree([None, None, (0, 1)], frequency=0.5)
    >>> trio.families
    ((0, 1, 2),)
    >>> round(float(np.exp(trio.log_prob([2, 0, 1]))), 6)
    0.0625
    """

    parents: tuple[Parents, ...]
    founder: tuple[float, float, float] | None
    frequency: float | None
    names: tuple[str, ...] | None

    def __init__(
        self,
        parents: Iterable[Sequence[int | None] | None],
        *,
        frequency: float | None = None,
        founder: Iterable[float] | None = None,
        names: Iterable[str] | None = None,
    ) -> None:
        called = None if names is None else tuple(names)
        read = read_parents(parents, called)
        if called is not None and len(called) != len(read):
            raise ModelError(
                f"names must be one for each of the {len(read)} people, "
                f"got {len(called)}."
            )
        object.__setattr__(self, "parents", read)
        object.__setattr__(self, "names", called)
        self._set_founder(frequency, founder)

    def _set_founder(
        self, frequency: float | None, founder: Iterable[float] | None
    ) -> None:
        if frequency is not None and founder is not None:
            raise ModelError("founder must be left out when frequency is given.")
        law = None
        if frequency is not None:
            frequency = check_probability(frequency, "frequency", open_interval=True)
            law = hardy_weinberg_law(frequency)
        elif founder is not None:
            law = read_founder_law(founder)
        object.__setattr__(self, "frequency", frequency)
        told = None if law is None else tuple(law.tolist())
        object.__setattr__(self, "founder", told)

    @classmethod
    def nuclear(
        cls,
        children: int,
        *,
        frequency: float | None = None,
        founder: Iterable[float] | None = None,
        families: int = 1,
        unrelated: int = 0,
    ) -> Pedigree:
        """Return families of two parents and their children, then unrelated people.

        Parameters
        ----------
        children : int
            Children in each family, at least 1.
        frequency, founder
            As for the class.
        families, unrelated : int
            Number of such families, and of people without relatives, listed last.

        Examples
        --------
        >>> Pedigree.nuclear(3, frequency=0.5).largest_group
        5
        """
        listed = nuclear_parents(children, families=families, unrelated=unrelated)
        return cls(listed, frequency=frequency, founder=founder)

    @classmethod
    def from_records(
        cls,
        records: Any,
        *,
        frequency: float | None = None,
        founder: Iterable[float] | None = None,
    ) -> Pedigree:
        """Return the pedigree that plain records describe.

        Parameters
        ----------
        records : sequence of mapping, or mapping
            People ``{"id": ..., "father": ..., "mother": ...}``; or a mapping with
            ``"people"``, or ``"nuclear": {"children": c}``, and optionally
            ``"frequency"`` or ``"founder"``.
        frequency, founder
            As for the class; not both here and in the records.

        Examples
        --------
        >>> people = [{"id": "Ann"}, {"id": "Bob"},
        ...           {"id": "Eve", "father": "Bob", "mother": "Ann"}]
        >>> Pedigree.from_records(people, frequency=0.5).parents[2]
        (1, 0)
        """
        read = read_records(records)
        told = read.frequency is not None or read.founder is not None
        if told and (frequency is not None or founder is not None):
            raise ModelError(
                "frequency or founder must be given once, got it in the records too."
            )
        return cls(
            read.parents,
            frequency=read.frequency if told else frequency,
            founder=read.founder if told else founder,
            names=read.names,
        )

    @property
    def size(self) -> int:
        """Number of people."""
        return len(self.parents)

    @cached_property
    def order(self) -> tuple[int, ...]:
        """All people, parents before children."""
        return sorted_people(self.parents)

    @cached_property
    def families(self) -> tuple[tuple[int, ...], ...]:
        """The groups of relatives: connected components of the pedigree."""
        edges = [(p, c) for c, pair in enumerate(self.parents) for p in pair]
        known = [(p, c) for p, c in edges if p is not None]
        return connected_parts(self.size, known)

    @property
    def largest_group(self) -> int:
        """Size of the largest family."""
        return max(len(family) for family in self.families)

    @property
    def value_range(self) -> tuple[float, float]:
        """A record is a number of alleles from 0 to 2."""
        return 0.0, 2.0

    @property
    def summary(self) -> str:
        """The pedigree in words."""
        people = f"pedigree of {self.size} people, largest family {self.largest_group}"
        if self.frequency is not None:
            return f"{people}, allele frequency {self.frequency:g}"
        if self.founder is not None:
            listed = ", ".join(f"{value:g}" for value in self.founder)
            return f"{people}, founder law ({listed})"
        return f"{people}, founder law not given"

    @property
    def founder_law(self) -> Table:
        """Probabilities of bb, Bb and BB for a founder.

        Raises
        ------
        ModelError
            If the pedigree was built without one.
        """
        if self.founder is None:
            raise ModelError(
                "this needs the law of founders, got a pedigree without; give it "
                "frequency= or founder=."
            )
        return np.array(self.founder)

    def recorded_parents(self, person: int) -> tuple[int, ...]:
        """Return the indices of a person's recorded parents."""
        return tuple(p for p in self.parents[person] if p is not None)

    def inheritance(self, person: int) -> Table:
        """Return the law of a person given their recorded parents.

        Returns
        -------
        ndarray
            One axis for each of :meth:`recorded_parents`, and the last for the person.
        """
        count = len(self.recorded_parents(person))
        if count == 2:
            return MENDEL
        law = self.founder_law
        return one_parent_law(law) if count == 1 else law

    def methods(self) -> tuple[LeakageTheorem, ...]:
        """Return elimination, exact for counts and dosage, then the general bound."""
        return stated_methods(self)

    def assumptions(self) -> Assumptions:
        """Return what was checked of the pedigree and what must be trusted."""
        trusted = [
            "the recorded pedigree is complete and right, without mutation",
            "founders and parents who are not recorded are unrelated",
        ]
        if self.founder is not None:
            kind = "Hardy-Weinberg law" if self.frequency is not None else "given law"
            trusted.append(f"founders follow the {kind}")
        return Assumptions(
            checked=("nobody is their own ancestor", "at most two parents each"),
            unchecked=tuple(trusted),
        )

    def log_prob(self, genotypes: ArrayLike) -> NDArray[np.float64]:
        """Return the log-probability of one database, or of each row of several.

        Genotypes that cannot occur have minus infinity.
        """
        rows = read_genotypes(genotypes, self.size)
        total = np.zeros(rows.shape[:-1])
        for person in range(self.size):
            given = (*self.recorded_parents(person), person)
            law = self.inheritance(person)[tuple(rows[..., j] for j in given)]
            with np.errstate(divide="ignore"):
                total = total + np.log(law)
        return total

    def sample(self, count: int, *, rng: np.random.Generator) -> Genotypes:
        """Draw `count` databases, each generation given the one before.

        Examples
        --------
        >>> trio = Pedigree.nuclear(1, frequency=0.5)
        >>> trio.sample(4, rng=np.random.default_rng(1)).shape
        (4, 3)
        """
        count = check_count(count, "count", minimum=0)
        rows = np.zeros((count, self.size), dtype=np.int64)
        for person in self.order:
            given = tuple(rows[:, j] for j in self.recorded_parents(person))
            law = np.broadcast_to(self.inheritance(person)[given], (count, 3))
            rows[:, person] = draw_rows(law, rng=rng)
        return rows

    def sample_given(
        self, known: Known, count: int, *, rng: np.random.Generator
    ) -> Genotypes:
        """Draw `count` databases given the genotypes of the `known` people; exact.

        Families without a known member are drawn as in :meth:`sample`; in the others
        people are summed out one by one and drawn in the reverse order, so no draw is
        ever rejected.

        Raises
        ------
        ModelError
            If the known genotypes cannot occur together.
        """
        given = self.check_genotypes(known)
        rows = self.sample(count, rng=rng)
        for family in self.families:
            inside = {j: given[j] for j in family if j in given}
            if inside:
                rows[:, family] = sample_family(self, family, inside, count, rng=rng)
        return rows

    def check_genotypes(self, known: Known) -> dict[int, int]:
        """Return the known genotypes as integers, after checking them."""
        return {j: check_genotype(x) for j, x in self.check_known(known).items()}


# The graph of a pedigree: reading parents, generations, families, who is tied to whom.
#
# Everything here is about indices; no probabilities.

Parents = tuple[int | None, int | None]
"""Indices of a person's recorded parents; None where one is not recorded."""


def read_parents(
    parents: Iterable[Sequence[int | None] | None], names: Sequence[str] | None = None
) -> tuple[Parents, ...]:
    """Return one pair of parents for each person, after checking that it is a pedigree.

    Parameters
    ----------
    parents : iterable
        For each person None, or the indices of at most two recorded parents.
    names : sequence of str, optional
        What to call people in messages.

    Raises
    ------
    ModelError
        If a parent is unknown, a person is their own parent or ancestor, has more than
        two parents or the same one twice.
    """
    listed = [tuple(pair) if pair is not None else () for pair in parents]
    if not listed:
        raise ModelError("parents must name at least one person, got none.")
    checked = tuple(
        _read_pair(pair, child, size=len(listed)) for child, pair in enumerate(listed)
    )
    sorted_people(checked, names)
    return checked


def _read_pair(pair: tuple[int | None, ...], child: int, *, size: int) -> Parents:
    if len(pair) > 2:
        raise ModelError(
            f"parents of person {child} must be at most two, got {len(pair)}."
        )
    first, second = (*pair, None, None)[:2]
    for parent in (first, second):
        if parent is None:
            continue
        if check_count(parent, "parent", minimum=0) >= size:
            raise ModelError(
                f"parents of person {child} must be among the {size} people, "
                f"got {parent}; use None for a parent who is not recorded."
            )
        if parent == child:
            raise ModelError(f"person {child} must not be their own parent.")
    if first is not None and first == second:
        raise ModelError(
            f"parents of person {child} must be two people, got {first} twice."
        )
    return first, second


def sorted_people(
    parents: Sequence[Parents], names: Sequence[str] | None = None
) -> tuple[int, ...]:
    """Return all people, parents before their children.

    Raises
    ------
    ModelError
        If someone is their own ancestor.
    """
    missing = [sum(p is not None for p in pair) for pair in parents]
    children: list[list[int]] = [[] for _ in parents]
    for child, pair in enumerate(parents):
        for parent in pair:
            if parent is not None:
                children[parent].append(child)
    order = [person for person, count in enumerate(missing) if count == 0]
    for person in order:  # grows while it is read
        for child in children[person]:
            missing[child] -= 1
            if missing[child] == 0:
                order.append(child)
    if len(order) < len(parents):
        stuck = _on_cycle(parents, set(range(len(parents))) - set(order))
        shown = stuck if names is None else names[stuck]
        raise ModelError(
            f"a pedigree must be acyclic, got person {shown!r} as their own ancestor."
        )
    return tuple(order)


def _on_cycle(parents: Sequence[Parents], stuck: set[int]) -> int:
    """Return a person on a cycle: walk up among the people who were never placed."""
    person, seen = min(stuck), set[int]()
    while person not in seen:
        seen.add(person)
        person = next(p for p in parents[person] if p is not None and p in stuck)
    return person


def connected_parts(
    size: int, edges: Iterable[tuple[int, int]]
) -> tuple[tuple[int, ...], ...]:
    """Return the connected components of a graph on ``range(size)``.

    Examples
    --------
    >>> connected_parts(4, [(2, 0)])
    ((0, 2), (1,), (3,))
    """
    root = list(range(size))

    def find(v: int) -> int:
        while root[v] != v:
            root[v] = root[root[v]]
            v = root[v]
        return v

    for a, b in edges:
        low, high = sorted((find(a), find(b)))
        root[high] = low
    parts: dict[int, list[int]] = {}
    for v in range(size):
        parts.setdefault(find(v), []).append(v)
    return tuple(tuple(part) for part in parts.values())


# Reading a pedigree from plain records, as a JSON file holds them.

_PERSON_KEYS = {"id", "father", "mother"}
_FILE_KEYS = {"people", "nuclear", "frequency", "founder"}
_NUCLEAR_KEYS = {"children", "families", "unrelated"}


@dataclass(frozen=True, slots=True)
class PedigreeRecords:
    """What records say: parents and names by index, and the founder law if given."""

    parents: tuple[Parents, ...]
    names: tuple[str, ...] | None = None
    frequency: float | None = None
    founder: tuple[float, ...] | None = None


def read_records(records: Any) -> PedigreeRecords:
    """Read a list of people, or a mapping with ``"people"`` or ``"nuclear"``.

    Parameters
    ----------
    records : sequence of mapping, or mapping
        People are ``{"id": ..., "father": ..., "mother": ...}``; a parent who is not
        recorded is None or left out. A mapping may also hold ``"frequency"`` or
        ``"founder"``. Unknown keys are refused.

    Examples
    --------
    >>> read_records([{"id": "Ann"}, {"id": "Eve", "mother": "Ann"}]).parents
    ((None, None), (None, 0))
    >>> read_records({"nuclear": {"children": 1}, "frequency": 0.5}).parents
    ((None, None), (None, None), (0, 1))
    """
    if not isinstance(records, Mapping):
        return _read_people(records)
    _check_keys(records, _FILE_KEYS, "a pedigree")
    if ("people" in records) == ("nuclear" in records):
        raise ModelError("a pedigree must hold either 'people' or 'nuclear'.")
    if "people" in records:
        read = _read_people(records["people"])
    else:
        read = PedigreeRecords(_read_nuclear(records["nuclear"]))
    founder = records.get("founder")
    return PedigreeRecords(
        read.parents,
        read.names,
        records.get("frequency"),
        None if founder is None else tuple(founder),
    )


def nuclear_parents(
    children: int, *, families: int = 1, unrelated: int = 0
) -> tuple[Parents, ...]:
    """Return families of two parents and their children, then unrelated people.

    Examples
    --------
    >>> nuclear_parents(1, unrelated=1)
    ((None, None), (None, None), (0, 1), (None, None))
    """
    children = check_count(children, "children")
    families = check_count(families, "families")
    unrelated = check_count(unrelated, "unrelated", minimum=0)
    people: list[Parents] = []
    for _ in range(families):
        first = len(people)
        people += [(None, None)] * 2 + [(first, first + 1)] * children
    return tuple(people + [(None, None)] * unrelated)


def _read_nuclear(entry: Any) -> tuple[Parents, ...]:
    if not isinstance(entry, Mapping) or "children" not in entry:
        raise ModelError(f"nuclear must hold a number of 'children', got {entry!r}.")
    _check_keys(entry, _NUCLEAR_KEYS, "nuclear")
    return nuclear_parents(
        entry["children"],
        families=entry.get("families", 1),
        unrelated=entry.get("unrelated", 0),
    )


def _read_people(people: Any) -> PedigreeRecords:
    listed = _check_people(people)
    index: dict[Hashable, int] = {}
    for position, person in enumerate(listed):
        if person["id"] in index:
            raise ModelError(f"ids must differ, got {person['id']!r} twice.")
        index[person["id"]] = position
    parents = tuple(_find_parents(person, index) for person in listed)
    return PedigreeRecords(parents, tuple(str(person["id"]) for person in listed))


def _check_people(people: Any) -> Sequence[Mapping[str, Any]]:
    if isinstance(people, str | bytes | Mapping) or not isinstance(people, Iterable):
        raise ModelError(f"people must be a list of records, got {people!r}.")
    listed = list(people)
    for person in listed:
        if not isinstance(person, Mapping) or person.get("id") is None:
            raise ModelError(f"a person must be a record with an 'id', got {person!r}.")
        if not isinstance(person["id"], str | int):
            raise ModelError(f"an id must be text or a number, got {person['id']!r}.")
        _check_keys(person, _PERSON_KEYS, f"person {person['id']!r}")
    return listed


def _find_parents(person: Mapping[str, Any], index: Mapping[Hashable, int]) -> Parents:
    found: list[int | None] = []
    for role in ("father", "mother"):
        name = person.get(role)
        if name is not None and name not in index:
            raise ModelError(
                f"{role} of {person['id']!r} must be the id of a person, got {name!r}; "
                "leave out a parent who is not recorded."
            )
        if name is not None and name == person["id"]:
            raise ModelError(f"person {name!r} must not be their own {role}.")
        found.append(None if name is None else index[name])
    return found[0], found[1]


def _check_keys(entry: Mapping[str, Any], known: set[str], what: str) -> None:
    stray = sorted(str(key) for key in set(entry) - known)
    if stray:
        listed = ", ".join(repr(key) for key in sorted(known))
        raise ModelError(f"{what} must hold {listed} only, got {stray[0]!r}.")


# Exact inference on a pedigree: summing out people one by one.
#
# Peeling, in the language of genetics. The tables carry the generating function of the
# query value, so that its law comes out together with the probabilities.

# Largest table that elimination may build: 3^14 entries of a tangled pedigree.
_LARGEST_TABLE = 3**14


@dataclass(frozen=True, slots=True, eq=False)
class QueryLaw:
    """The law of a query value.

    Parameters
    ----------
    support : ndarray
        Values, increasing and equally spaced.
    probability : ndarray
        Their probabilities.
    """

    support: NDArray[np.float64]
    probability: NDArray[np.float64]


def inheritance_factor(pedigree: Pedigree, person: int) -> Factor:
    """Return the law of a person given their recorded parents, as a factor."""
    scope = (*pedigree.recorded_parents(person), person)
    return Factor(scope, pedigree.inheritance(person)[..., None])


def query_law(
    pedigree: Pedigree, query: Query, *, known: Known | None = None
) -> QueryLaw:
    """Return the law of a count or dosage, given the genotypes of `known` people.

    Parameters
    ----------
    pedigree : Pedigree
        With a founder law.
    query : CountQuery or LinearQuery
        What is counted or summed, over everybody.
    known : mapping of int to int, optional
        Genotypes of known people, by index.

    Raises
    ------
    ModelError
        If the known genotypes cannot occur together.
    NotApplicable
        If the pedigree is too tangled, or the query of another kind.

    Notes
    -----
    Exact up to rounding: only products and sums of non-negative numbers. The cost is
    linear in the number of people and exponential in the width of the pedigree's
    loops; families are convolved.

    Examples
    --------
    >>> from undertow.correlation.query import CountQuery
    >>> trio = Pedigree.nuclear(1, frequency=0.5)
    >>> query_law(trio, CountQuery({2}), known={2: 2}).probability.tolist()
    [0.0, 0.25, 0.5, 0.25]
    """
    given = pedigree.check_genotypes(known or {})
    lattice = read_lattice(query, pedigree.size, range(pedigree.size))
    law: NDArray[np.float64] = np.ones(1)
    for family in pedigree.families:
        degrees = {person: lattice.degrees[person] for person in family}
        inside = {person: given[person] for person in family if person in given}
        table = conditional_tables(pedigree, family, degrees=degrees, known=inside)
        law = np.asarray(np.convolve(law, _normalised(table.table)), dtype=np.float64)
    steps = np.arange(law.size, dtype=np.float64)
    return QueryLaw(lattice.offset + lattice.step * steps, law)


def conditional_tables(
    pedigree: Pedigree,
    family: Sequence[int],
    *,
    degrees: Mapping[int, Sequence[int]] | None = None,
    known: Mapping[int, int] | None = None,
    free: Iterable[int] = (),
) -> Factor:
    """Sum out all of a family but the `free` people, counting the query value.

    Parameters
    ----------
    pedigree : Pedigree
        With a founder law.
    family : sequence of int
        One of its families.
    degrees : mapping, optional
        Degrees of the counted people; see :func:`read_lattice`.
    known : mapping of int to int, optional
        Genotypes of known members; known members are counted too.
    free : iterable of int
        Members whose genotypes stay open.

    Returns
    -------
    Factor
        Over `free`, in that order: joint weight of the known and the free genotypes,
        by query value, up to a common factor.
    """
    counted, given, left = degrees or {}, known or {}, tuple(free)
    factors = [inheritance_factor(pedigree, person) for person in family]
    factors += [Factor((person,), _point(value)) for person, value in given.items()]
    order = _affordable_order(factors, [j for j in family if j not in left])
    result = eliminate(factors, order, degrees=counted)
    for person in left:
        if person in counted:
            result = shift_by_degree(result, person, counted[person])
    return Factor(left, result.aligned(left))


def sample_family(
    pedigree: Pedigree,
    family: Sequence[int],
    known: Mapping[int, int],
    count: int,
    *,
    rng: np.random.Generator,
) -> NDArray[np.int64]:
    """Draw the genotypes of a family given those of its `known` members.

    Parameters
    ----------
    pedigree : Pedigree
        With a founder law.
    family : sequence of int
        One of its families.
    known : mapping of int to int
        Known genotypes.
    count : int
        Number of draws.
    rng : numpy.random.Generator
        Source of randomness.

    Returns
    -------
    ndarray of shape (count, len(family))
        Draws from the exact conditional law.

    Notes
    -----
    Each table just before a person is summed out is, up to a factor, their law given
    the people summed out later; so people are drawn in the reverse order.
    """
    factors = [inheritance_factor(pedigree, person) for person in family]
    factors += [Factor((person,), _point(value)) for person, value in known.items()]
    order = _affordable_order(factors, family)
    tables: list[Factor] = []
    total = eliminate(factors, order, keep=tables)
    require_possible(float(total.table.sum()))
    rows = np.zeros((count, max(family) + 1), dtype=np.int64)
    for person, factor in reversed(list(zip(order, tables, strict=True))):
        others = tuple(v for v in factor.scope if v != person)
        table = factor.aligned((*others, person))[..., 0]
        weights = np.broadcast_to(table[tuple(rows[:, v] for v in others)], (count, 3))
        rows[:, person] = draw_rows(weights, rng=rng)
    return rows[:, list(family)]


def _affordable_order(factors: Sequence[Factor], people: Iterable[int]) -> list[int]:
    order, largest = elimination_order([f.scope for f in factors], people)
    if largest > _LARGEST_TABLE:
        raise NotApplicable(
            f"elimination needs tables of at most {_LARGEST_TABLE} entries, got "
            f"{largest:.3g} for this pedigree; the general bound has no such limit."
        )
    return order


def _point(value: int) -> NDArray[np.float64]:
    point = np.zeros((3, 1))
    point[value] = 1.0
    return point


def _normalised(weights: NDArray[np.float64]) -> NDArray[np.float64]:
    total = float(weights.sum())
    require_possible(total)
    return weights / total


def require_possible(total: float) -> None:
    """Refuse known genotypes of total weight zero."""
    if not total > 0:
        raise ModelError(
            "known genotypes must be able to occur together under Mendel's laws, "
            "got a combination of probability zero."
        )


# Drawing from many small laws at once.


def draw_rows(weights: Table, *, rng: np.random.Generator) -> Genotypes:
    """Draw one index for each row of non-negative weights, in proportion to them."""
    edges = np.cumsum(weights, axis=-1)
    # A draw below the total never lands on a value of weight zero.
    points = rng.random(weights.shape[0]) * edges[:, -1]
    drawn: Genotypes = (points[:, None] >= edges).sum(axis=-1)
    return np.minimum(drawn, _last_positive(weights))


def _last_positive(weights: Table) -> Genotypes:
    """Return the last index of positive weight: what rounding up may not pass."""
    last: Genotypes = weights.shape[-1] - 1 - np.argmax(weights[:, ::-1] > 0, axis=-1)
    return last
