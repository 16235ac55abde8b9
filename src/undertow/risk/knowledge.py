r"""What the attacker knows of the target besides the output: the auxiliary map.

:class:`Knowledge` is a function :math:`a` of the record. The attacker learns
:math:`a(x)` of the *target* x, never of the record inside the mechanism, and the
records that share its value are a *fibre* of the map.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from undertow.errors import MismatchError, ModelError

__all__ = ["Knowledge"]


@dataclass(frozen=True, slots=True)
class Knowledge:
    """A function of the record whose value at the target the attacker knows.

    Build it with :meth:`none`, :meth:`full`, :meth:`attributes` or
    :meth:`from_labels`.

    Parameters
    ----------
    summary : str
        What is known, in words.
    rule : callable
        From the records to one hashable value each.

    Notes
    -----
    The map is of one kind for all records. Knowing different things of different people
    is a different threat for each kind of person, or a map whose values say which kind
    they are of.

    Examples
    --------
    >>> Knowledge.none().labels("abc").tolist(), Knowledge.full().labels("abc").tolist()
    ([0, 0, 0], [0, 1, 2])
    """

    summary: str
    rule: Callable[[Sequence[Any]], Sequence[Hashable]] = field(repr=False)

    @classmethod
    def none(cls) -> Knowledge:
        """Return what is known in reconstruction: nothing of the target."""
        return cls("nothing", _nothing)

    @classmethod
    def full(cls) -> Knowledge:
        """Return what is known in membership inference: the whole record."""
        return cls("the whole record", _everything)

    @classmethod
    def attributes(
        cls, function: Callable[[Any], Hashable], *, summary: str = "some attributes"
    ) -> Knowledge:
        """Return knowledge of a function of the record, such as its public columns.

        Examples
        --------
        >>> records = [("young", 0), ("old", 0), ("young", 1)]
        >>> Knowledge.attributes(lambda record: record[0]).labels(records).tolist()
        [0, 1, 0]
        """
        if not callable(function):
            raise TypeError(
                f"function must be callable, got {type(function).__name__}; use "
                "Knowledge.from_labels for a list of values."
            )
        return cls(summary, lambda support: [function(record) for record in support])

    @classmethod
    def from_labels(
        cls, values: ArrayLike | Sequence[Hashable], *, summary: str = "a label"
    ) -> Knowledge:
        """Return knowledge of a value that is listed here for each record, in order.

        Examples
        --------
        >>> Knowledge.from_labels([7, 7, 1]).labels("abc").tolist()
        [0, 0, 1]
        """
        listed: Any = values.tolist() if isinstance(values, np.ndarray) else values
        if not isinstance(listed, Iterable):
            raise TypeError(
                f"values must be one label per record, got {type(values).__name__}."
            )
        known: tuple[Hashable, ...] = tuple(listed)
        return cls(summary, lambda support: known)

    def labels(self, support: Sequence[Any]) -> NDArray[np.intp]:
        """Return the number of each record's fibre: equal where the same is known.

        Parameters
        ----------
        support : sequence
            The records.

        Returns
        -------
        ndarray of int, of shape (m,)
            From 0, in the order of first appearance.

        Raises
        ------
        MismatchError
            If a list of labels has another length than `support`.
        ModelError
            If the values known are not all of one type, or one of them is nan.
        """
        known = self.values(support)
        numbers: dict[Hashable, int] = {}
        found = [numbers.setdefault(value, len(numbers)) for value in known]
        return np.array(found, dtype=np.intp)

    def values(self, support: Sequence[Any]) -> tuple[Hashable, ...]:
        """Return what is known of each record, after the checks of :meth:`labels`."""
        known = tuple(self.rule(support))
        if len(known) != len(support):
            raise MismatchError(
                f"labels must be one for each of the {len(support)} records, got "
                f"{len(known)}."
            )
        if not all(isinstance(value, Hashable) and value == value for value in known):
            raise ModelError(
                "knowledge must be a hashable value for each record, and never nan: "
                "what differs from itself tells records apart; use None for unknown."
            )
        kinds = {type(value).__name__ for value in known}
        if len(kinds) > 1:
            raise ModelError(
                "knowledge must be of one kind for all records, got values of types "
                f"{', '.join(sorted(kinds))}; use one threat for each kind."
            )
        return known


def _nothing(support: Sequence[Any]) -> Sequence[Hashable]:
    return [0] * len(support)


def _everything(support: Sequence[Any]) -> Sequence[Hashable]:
    return range(len(support))
