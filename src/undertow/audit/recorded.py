"""Recorded inputs and outputs as the subject of an audit; no run is used twice."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_index
from undertow.audit._freshness import order_entropy
from undertow.audit.events import output_labels
from undertow.audit.outputs import read_outputs
from undertow.errors import AuditError, MismatchError

__all__ = ["RecordedSubject", "in_random_order", "require_once"]

# Independent runs look like copies with probability at most exp(-60).
_CHANCE = 60.0


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
        If fewer than two different inputs were recorded, or runs several times; from
        `sample`, if the runs of an input are used up.

    Notes
    -----
    `sample` deals runs out without replacement, so training and test share none. An
    audit deals from a shuffled copy, which also removes an order in time from each
    half. Runs that were written down several times are refused where they show
    (`require_once`). Not checkable: that the runs were independent and none was left
    out because of its output.

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
        for runs in self._runs:
            require_once(self._outputs[runs], name=name)

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


def require_once(outputs: NDArray[Any], *, name: str) -> None:
    r"""Refuse runs of one input that were written down several times.

    Notes
    -----
    Copies of a whole table repeat the outputs of an input in their order (Proposition 6
    of the page *Event audits*); copies of each row make stretches of equal outputs, all
    of even lengths, or of multiples of three, ...; in any order, each of the d
    different outputs occurs so often. Independent runs have s such stretches with
    probability at most :math:`2^{1-s}`, as the length of each but the last is a
    multiple of g > 1 with probability at most a half; and d such numbers with
    probability at most :math:`2^{-d} e \sqrt n`: if n were Poisson, so would be those
    numbers, independently, each being a multiple with probability at most half of
    that of not being 0 (a multiple is no likelier than its neighbours together), and a
    Poisson number of mean n is n with probability at least :math:`1 / (e \sqrt n)`.

    Examples
    --------
    >>> require_once(np.repeat(np.arange(200.0), 2), name="file")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    undertow.errors.AuditError: file must hold every run once, got outputs that ...
    """
    labels = output_labels(outputs)
    numbers = list(Counter(labels).values())
    copies = math.gcd(*numbers)
    if copies < 2 or len(numbers) < 2:  # nothing tells copies of one output
        return
    stretches = [len(list(group)) for _, group in itertools.groupby(labels)]
    in_a_row = (len(stretches) - 1) if math.gcd(*stretches) > 1 else 0
    slack = (1.0 + math.log(len(labels)) / 2.0) / math.log(2.0)
    chance = max(in_a_row, len(numbers) - slack) * math.log(2.0)
    if chance > _CHANCE or _is_tiled(labels, copies):
        raise AuditError(
            f"{name} must hold every run once, got outputs that all occur a multiple "
            f"of {copies} times, beyond chance; remove the copies."
        )


def _is_tiled(labels: list[Any], copies: int) -> bool:
    """Return whether a list is several times another one, beyond chance."""
    periods = (len(labels) // k for k in range(2, copies + 1) if copies % k == 0)
    return any(
        labels[p:] == labels[:-p] and order_entropy(labels[:p]) > _CHANCE
        for p in periods
    )


def in_random_order(subject: Any, seed: int) -> Any:
    """Return a subject, if it is recorded a copy that deals its runs in random order.

    A file is often sorted, and the runs of an audit must not be the first of it.

    Examples
    --------
    >>> runs = RecordedSubject([0, 0, 1, 1], [1, 2, 3, 4])
    >>> in_random_order(runs, 1) is runs, in_random_order("other", 1)
    (False, 'other')
    """
    if not isinstance(subject, RecordedSubject):
        return subject
    return subject.shuffled(np.random.default_rng((seed, 2)))
