"""Records in groups: only who may depend on whom is known, and nothing of how."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from undertow._validate import check_count, check_index
from undertow.correlation.general import GeneralMethod
from undertow.correlation.independent import Lawless
from undertow.correlation.method import Method
from undertow.correlation.model import Assumptions
from undertow.errors import ModelError

__all__ = ["Blocks"]

# One label a record is kept in memory.
_LARGEST = 10**8


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
    :mod:`undertow.correlation.tightness`).

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

    def methods(self) -> tuple[Method, ...]:
        """Return the per-record bound and the general bound."""
        from undertow.correlation.blocks import BlocksMethod

        return (BlocksMethod(), GeneralMethod())

    def assumptions(self) -> Assumptions:
        """Return what was checked, the partition, and what must be trusted."""
        return Assumptions(
            checked=("every record is in exactly one group",),
            unchecked=("the groups are mutually independent",),
        )


def _require_memory(records: int) -> None:
    if records > _LARGEST:
        raise ModelError(
            f"groups must have at most {_LARGEST} records together, got {records}; "
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
