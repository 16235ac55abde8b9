"""Relatives at one locus: the law of genotypes on a pedigree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow._validate import check_count, check_probability
from undertow.correlation.method import Method, stated_methods
from undertow.correlation.model import Assumptions, Known, Model
from undertow.correlation.pedigree._draw import draw_rows
from undertow.correlation.pedigree.kinship import (
    Parents,
    connected_parts,
    read_parents,
    sorted_people,
)
from undertow.correlation.pedigree.mendel import (
    MENDEL,
    check_genotype,
    hardy_weinberg_law,
    one_parent_law,
    read_founder_law,
    read_genotypes,
)
from undertow.correlation.pedigree.records import nuclear_parents, read_records
from undertow.errors import ModelError

__all__ = ["Pedigree"]

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

    def methods(self) -> tuple[Method, ...]:
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
        from undertow.correlation.pedigree.elimination import sample_family

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
