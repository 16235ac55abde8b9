"""Mutually independent records: the one case in which leakage is the DP level."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count
from undertow.correlation.adversary import Adversary, adversary_witness
from undertow.correlation.method import Method, check_level
from undertow.correlation.model import Assumptions, Known, Model
from undertow.correlation.query import Query
from undertow.correlation.result import Leakage
from undertow.errors import NotApplicable

__all__ = ["Independent", "IndependentMethod", "Lawless"]


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

    def methods(self) -> tuple[Method, ...]:
        """Return the one method: leakage is the DP level."""
        return (IndependentMethod(),)

    def assumptions(self) -> Assumptions:
        """Return what must be trusted: mutual independence."""
        return Assumptions(unchecked=("the records are mutually independent",))


class IndependentMethod(Method):
    """Independent records: the leakage is the DP level, for any query."""

    name: ClassVar[str] = "independent"
    theorem: ClassVar[str] = "Section 2.3.2.1 (BDP is DP for independent records)"

    def leakage(self, model: Independent, epsilon: float, *, query: Query) -> Leakage:
        """Return `epsilon` itself."""
        return Leakage(
            check_level(epsilon),
            self.theorem,
            witness=adversary_witness(Adversary(0)),
            tight=True,
            method=self.name,
            scope=query.scope(),
        )

    def budget(self, model: Independent, target: float, *, query: Query) -> float:
        """Return `target` itself."""
        return check_level(target)
