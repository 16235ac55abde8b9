"""Recorded inputs and outputs as the subject of an audit; no run is used twice."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_index
from undertow.audit.outputs import read_outputs
from undertow.errors import AuditError, MismatchError

__all__ = ["RecordedSubject"]


class RecordedSubject:
    """Runs that were made before, each dealt out once.

    Parameters
    ----------
    inputs : sequence of hashable
        The input of each run.
    outputs : sequence
        The output of each run, in the same order.
    name, version : str, optional
        For the report.

    Raises
    ------
    MismatchError
        If there is not one output for each input.
    AuditError
        If fewer than two different inputs were recorded; from `sample`, if the runs of
        an input are used up.

    Notes
    -----
    `sample` deals runs out without replacement, so training and test share none. An
    audit deals from a shuffled copy, which also removes an order in time from each
    half. Not checkable: that the runs were independent and none was left out because of
    its output.

    Examples
    --------
    >>> subject = RecordedSubject([0, 0, 1], [5.0, 6.0, 7.0])
    >>> list(subject.inputs), subject.available(0)
    ([0, 1], 2)
    >>> subject.sample(0, 2, rng=np.random.default_rng(1))
    array([5., 6.])
    """

    seeded = True
    forkable = False

    def __init__(
        self,
        inputs: Sequence[Hashable] | NDArray[Any],
        outputs: Any,
        *,
        name: str = "recorded runs",
        version: str = "",
    ) -> None:
        given = inputs.tolist() if isinstance(inputs, np.ndarray) else list(inputs)
        if len(given) != len(outputs):
            raise MismatchError(
                f"outputs must be one for each of the {len(given)} inputs, got "
                f"{len(outputs)}."
            )
        self.name, self.version = name, version
        self.inputs = tuple(dict.fromkeys(given))
        if len(self.inputs) < 2:
            raise AuditError(
                f"inputs must hold at least two different ones, got {len(self.inputs)}."
            )
        self._outputs = read_outputs(outputs, len(given), name=name)
        place = {value: number for number, value in enumerate(self.inputs)}
        numbers = np.array([place[value] for value in given])
        self._runs = [np.flatnonzero(numbers == k) for k in range(len(self.inputs))]
        self._dealt = [0] * len(self.inputs)

    def available(self, value: int) -> int:
        """Return how many runs of an input are left."""
        number = check_index(value, "value", size=len(self.inputs))
        return len(self._runs[number]) - self._dealt[number]

    def sample(
        self, value: int, size: int, *, rng: np.random.Generator
    ) -> NDArray[Any]:
        """Deal out the next `size` runs of one input; `rng` is not used."""
        number = check_index(value, "value", size=len(self.inputs))
        count = check_count(size, "size", minimum=0)
        left = self.available(number)
        if count > left:
            raise AuditError(
                f"{self.name} must hold {count} more runs of input {number}, got "
                f"{left}; ask for fewer trials."
            )
        start = self._dealt[number]
        self._dealt[number] = start + count
        return np.asarray(self._outputs[self._runs[number][start : start + count]])

    def shuffled(self, rng: np.random.Generator) -> RecordedSubject:
        """Return a copy with every run still to deal, in random order."""
        copy = object.__new__(RecordedSubject)
        copy.name, copy.version, copy.inputs = self.name, self.version, self.inputs
        copy._outputs = self._outputs
        copy._runs = [rng.permutation(runs) for runs in self._runs]
        copy._dealt = [0] * len(self.inputs)
        return copy
