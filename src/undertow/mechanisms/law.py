"""The law of an output given an input: what a mechanism and a local protocol both are.

A :class:`Law` draws outputs, says how likely each is for an input and, where the
outputs are few, lists them in a table with a row for each input. Whatever reads a law
(the risk of a release, an audit, an attack) reads it through this class and asks for
nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from undertow.errors import MismatchError, NotApplicable
from undertow.mechanisms.noise.draw import Draw
from undertow.mechanisms.noise.simulated import SimulatedSource
from undertow.privacy.loss import Loss

Floats = float | NDArray[np.float64]
"""A float for one output, an array for an array of outputs."""

OutputKind = Literal["finite", "integer", "real"]
"""What outputs are: a few that can be listed, integers of a lattice, or reals."""


class Law(ABC):
    """The law of an output for each input.

    Notes
    -----
    An input is what the law is given: an answer, scores or a category, never a
    database. A new law needs `measure`, `loss`, `log_density` and `sample`; if its
    outputs can be listed, also `listed_outputs`, and `table` follows.
    """

    __slots__ = ()

    @property
    @abstractmethod
    def measure(self) -> str:
        """What `log_density` is a density of.

        ``"lebesgue"``, ``"counting"``, or ``"mixed"``: Lebesgue inside an interval,
        counting at its two ends.
        """

    @property
    def output_kind(self) -> OutputKind:
        """What the outputs are: few, integers of a lattice, or reals."""
        return "integer" if self.measure == "counting" else "real"

    @property
    def listed_inputs(self) -> Sequence[Hashable] | None:
        """The inputs in order, if they are finitely many and known."""
        return None

    def inputs_of(self, records: Sequence[Hashable]) -> Sequence[Any]:
        """Return the input that stands for each record: here, the record itself."""
        return records

    @abstractmethod
    def loss(self, *args: Any, **kwargs: Any) -> Loss:
        """Return what it costs to tell two inputs apart."""

    @abstractmethod
    def sample(self, values: Any, *, source: Any = None) -> Draw:
        """Draw outputs; with no `source`, from operating-system entropy."""

    @abstractmethod
    def log_density(self, output: Any, given: Any, /) -> Floats:
        """Return the log density of an output, in the sense of `measure`."""

    def log_pmf(self, output: Any, given: Any, /) -> Floats:
        """Return the log probability of an output; discrete laws only."""
        if self.measure != "counting":
            raise MismatchError(
                "a log_pmf must belong to a discrete law, got the "
                f"{self.measure} law of {type(self).__name__}; use log_density."
            )
        return self.log_density(output, given)

    def log_densities(
        self, outputs: Any, inputs: Sequence[Any] | NDArray[Any]
    ) -> NDArray[np.float64]:
        """Return the log density of each output for each input: (outputs, inputs)."""
        columns = [
            np.asarray(self.log_density(outputs, x), dtype=float) for x in inputs
        ]
        return np.stack(columns, axis=-1)

    def simulate(self, given: Any, size: int, *, rng: np.random.Generator) -> Any:
        """Draw `size` outputs for one input from a seed: never for a release."""
        values: Any = [given] * size
        if isinstance(given, float | np.ndarray):
            values = np.broadcast_to(given, (size, *np.shape(given))).copy()
        return self.sample(values, source=SimulatedSource(rng)).values

    def listed_outputs(self) -> Sequence[Hashable] | NDArray[Any]:
        """Return every output once, in the order of the columns of the table.

        Raises
        ------
        NotApplicable
            If there are infinitely many, or too many.
        """
        raise NotApplicable(
            "a finite channel must be a Channel or a mechanism with finitely many "
            f"outputs, got {type(self).__name__}; tabulate it, or estimate the risk by "
            "simulation."
        )

    def table(self, inputs: Sequence[Any]) -> NDArray[np.float64]:
        """Return the probability of each output for each input: (inputs, outputs).

        Raises
        ------
        NotApplicable
            If there are infinitely many outputs, or too many.
        """
        return np.exp(self.log_densities(self.listed_outputs(), inputs)).T
