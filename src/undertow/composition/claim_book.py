"""The claims of a plan in columns, written as releases come in.

A plan of a hundred thousand releases has few different views, units and losses. The
book keeps each of them once and two integers per claim, so that composing does not walk
over the releases again.
"""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterator, Sequence
from copy import copy
from itertools import islice
from typing import Self, overload

import numpy as np
from numpy.typing import NDArray

from undertow.composition.engine_claims import ClaimTable
from undertow.composition.release import Claim, Release
from undertow.privacy.loss import Loss
from undertow.spaces.base import View
from undertow.spaces.change import Column
from undertow.spaces.influence.layout import movable_form

__all__ = ["ClaimBook", "Snapshot"]

_MOST_ALIKE = 2


class ClaimBook:
    """Columns and losses of a growing list of releases, each kept once.

    Attributes
    ----------
    columns : list of Column
        The different ones, in order of appearance.
    losses : list of Loss
        The different ones, in order of appearance.
    representatives : list of Release
        Up to two releases of each combination of columns, single times and windows of
        one length counting as one: enough to see which kinds of view, units and
        settings occur, and which occur more than once.
    continuous : bool
        Whether a claim is about continuous noise.

    Notes
    -----
    Objects met before are recognised by identity, which spares hashing; they are kept
    alive here, so that no other object can take over an identity.
    """

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.losses: list[Loss] = []
        self.representatives: list[Release] = []
        self._column_codes, self._loss_codes = array("i"), array("i")
        self._owners = array("q")
        self._releases = 0
        self.continuous = False
        self._seen_columns: dict[tuple[int, int, str], int] = {}
        self._seen_losses: dict[int, int] = {}
        self._equal_columns: dict[Column, int] = {}
        self._equal_losses: dict[Loss, int] = {}
        self._shapes: dict[Hashable, int] = {}
        self._shape_of = array("q")
        self._views: set[int] = set()
        self._alike: dict[tuple[int, ...], int] = {}
        self._alive: list[object] = []

    def copy(self) -> Self:
        """Return a book that grows on its own."""
        other = type(self)()
        for name, value in vars(self).items():
            kept = value if isinstance(value, int) else copy(value)
            setattr(other, name, kept)
        return other

    def has_seen(self, view: View) -> bool:
        """Return whether a release entered before has this very view."""
        return id(view) in self._views

    def enter(self, release: Release) -> None:
        """Write down the claims of one more release."""
        written = [self._column(release.view, claim) for claim in release.claims]
        for code, claim in zip(written, release.claims, strict=True):
            self._column_codes.append(code)
            self._loss_codes.append(self._loss(claim.loss))
            self.continuous = self.continuous or claim.loss.continuous
            self._owners.append(self._releases)
        self._releases += 1
        key = tuple([self._shape_of[code] for code in written])
        alike = self._alike.get(key, 0)
        if alike < _MOST_ALIKE:
            self._alike[key] = alike + 1
            self.representatives.append(release)

    def column_codes(self) -> NDArray[np.int64]:
        """Return the column of each claim."""
        return np.array(self._column_codes, dtype=np.int64)

    def loss_codes(self) -> NDArray[np.int64]:
        """Return the loss of each claim."""
        return np.array(self._loss_codes, dtype=np.int64)

    def table(self) -> ClaimTable:
        """Return the claims entered so far."""
        return ClaimTable(
            tuple(self.columns),
            tuple(self.losses),
            np.array(self._column_codes, dtype=np.int32),
            np.array(self._loss_codes, dtype=np.int32),
            self.release_codes(),
        )

    def shape_codes(self) -> NDArray[np.int64]:
        """Return a number for each column, the same if only the starts differ."""
        return np.array(self._shape_of, dtype=np.int64)

    def release_codes(self) -> NDArray[np.int64] | None:
        """Return the release of each claim; None where each has one claim."""
        if len(self._owners) == self._releases:
            return None
        return np.array(self._owners, dtype=np.int64)

    def _column(self, view: View, claim: Claim) -> int:
        key = (id(view), id(claim.unit), claim.setting)
        code = self._seen_columns.get(key)
        if code is None:
            column = Column(view, claim.unit, claim.setting)
            code = self._equal_columns.setdefault(column, len(self.columns))
            if code == len(self.columns):
                self.columns.append(column)
                self._shape_of.append(self._shape(column))
            self._seen_columns[key] = code
            self._views.add(id(view))
            self._alive += [view, claim.unit]
        return code

    def _shape(self, column: Column) -> int:
        form = movable_form(column.view)
        key: Hashable = column
        if form is not None:
            key = (form, column.unit, column.setting)
        return self._shapes.setdefault(key, len(self._shapes))

    def _loss(self, loss: Loss) -> int:
        code = self._seen_losses.get(id(loss))
        if code is None:
            code = self._equal_losses.setdefault(loss, len(self.losses))
            if code == len(self.losses):
                self.losses.append(loss)
            self._seen_losses[id(loss)] = code
            self._alive.append(loss)
        return code


class Snapshot(Sequence[Release]):
    """The releases that a list held at one moment; the list may only grow.

    Parameters
    ----------
    releases : list of Release
        Not copied.
    """

    def __init__(self, releases: list[Release]) -> None:
        self._releases, self._count = releases, len(releases)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> Release: ...

    @overload
    def __getitem__(self, at: slice) -> Sequence[Release]: ...

    def __getitem__(self, at: int | slice) -> Release | Sequence[Release]:
        if isinstance(at, slice):
            return self._releases[: self._count][at]
        return self._releases[range(self._count)[at]]

    def __iter__(self) -> Iterator[Release]:
        return islice(self._releases, self._count)
