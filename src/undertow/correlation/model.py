"""How records depend: the laws of data that are not independent.

A :class:`Model` is a law of the records, or a class of laws; it knows how to sample,
to condition on known records, and which theorems may bound the leakage under it
(:class:`~undertow.correlation.theorem.LeakageTheorem`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_index
from undertow.correlation.theorem import LeakageTheorem
from undertow.errors import ModelError

Known = Mapping[int, Any]
"""Values of known records, by index."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What a model takes for granted: what was checked, what must be trusted."""

    checked: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()


class Model(ABC):
    """A law of the records X_0, ..., X_{n-1}: how they depend on each other.

    A model knows how to sample, to condition on known records, which assumptions it
    checked, and which methods bound the leakage under it. Leakage is
    computed by :func:`undertow.correlation.leakage`, noise by
    :func:`undertow.correlation.calibrate`.
    """

    @property
    @abstractmethod
    def size(self) -> int | None:
        """Number of records; None if the model is meant for every length."""

    @property
    @abstractmethod
    def largest_group(self) -> int | None:
        """Most records that depend on each other; None if there is no limit."""

    @property
    def value_range(self) -> tuple[float, float] | None:
        """Least and greatest value of a record; None if unbounded or not numeric."""
        return None

    @property
    @abstractmethod
    def summary(self) -> str:
        """The model in one line of words."""

    @abstractmethod
    def methods(self) -> tuple[LeakageTheorem, ...]:
        """Return the methods that may bound leakage, the strongest first."""

    def assumptions(self) -> Assumptions:
        """Return what was checked of the model and what must be trusted."""
        return Assumptions(unchecked=("the model is the law of the data",))

    @abstractmethod
    def sample(self, count: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `count` databases; one row each, one column a record."""

    @abstractmethod
    def sample_given(
        self, known: Known, count: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Draw `count` databases given the values of the `known` records."""

    def given(self, known: Known) -> Conditional:
        """Return the law of the other records given the `known` ones."""
        return Conditional(self, self.check_known(known))

    def require_size(self, what: str) -> int:
        """Return the number of records, or say that `what` needs one."""
        if self.size is None:
            raise ModelError(
                f"{what} needs a number of records, got None; give the model a length."
            )
        return self.size

    def check_known(self, known: Known) -> dict[int, Any]:
        """Return `known` with its indices checked against the size."""
        size = self.require_size("conditioning on known records")
        return {check_index(j, "known record", size=size): v for j, v in known.items()}


@dataclass(frozen=True)
class Conditional:
    """A model given the values of some records.

    Parameters
    ----------
    model : Model
        The law of all records.
    known : mapping of int to object
        The values of the known records.
    """

    model: Model
    known: Known

    @property
    def unknown(self) -> tuple[int, ...]:
        """Indices of the records that are not known."""
        size = self.model.require_size("conditioning on known records")
        return tuple(j for j in range(size) if j not in self.known)

    def sample(self, count: int, *, rng: np.random.Generator) -> NDArray[Any]:
        """Draw `count` databases; the known columns are constant."""
        return self.model.sample_given(self.known, count, rng=rng)
