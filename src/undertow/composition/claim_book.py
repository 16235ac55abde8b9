"""The claims of a plan in columns, written as releases come in.

A plan of a hundred thousand releases has few different views, units and losses. The
book keeps each of them once and two integers per claim, so that composing does not walk
over the releases again.
"""

from __future__ import annotations

from array import array
from copy import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray

from undertow.composition.release import Release
from undertow.privacy.loss import Loss
from undertow.spaces.change import Column

__all__ = ["ClaimBook"]

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
        Up to two releases of each combination of columns: enough to see which views,
        units and settings occur, and which occur more than once.

    Notes
    -----
    Objects met before are recognised by identity, which spares hashing; they are kept
    alive here, so that no other object can take over an identity.
    """

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.losses: list[Loss] = []
        self.representatives: list[Release] = []
        self._column_codes, self._loss_codes = array("q"), array("q")
        self._owners = array("q")
        self._releases = 0
        self._seen_columns: dict[tuple[int, int, str], int] = {}
        self._seen_losses: dict[int, int] = {}
        self._equal_columns: dict[Column, int] = {}
        self._equal_losses: dict[Loss, int] = {}
        self._alike: dict[tuple[int, ...], int] = {}
        self._alive: list[object] = []

    def copy(self) -> Self:
        """Return a book that grows on its own."""
        other = type(self)()
        for name, value in vars(self).items():
            kept = value if isinstance(value, int) else copy(value)
            setattr(other, name, kept)
        return other

    def enter(self, release: Release) -> None:
        """Write down the claims of one more release."""
        written = tuple(self._column(release, at) for at in range(len(release.claims)))
        for code, claim in zip(written, release.claims, strict=True):
            self._column_codes.append(code)
            self._loss_codes.append(self._loss(claim.loss))
            self._owners.append(self._releases)
        self._releases += 1
        alike = self._alike.get(written, 0)
        if alike < _MOST_ALIKE:
            self._alike[written] = alike + 1
            self.representatives.append(release)

    def column_codes(self) -> NDArray[np.int64]:
        """Return the column of each claim."""
        return np.array(self._column_codes, dtype=np.int64)

    def loss_codes(self) -> NDArray[np.int64]:
        """Return the loss of each claim."""
        return np.array(self._loss_codes, dtype=np.int64)

    def release_codes(self) -> NDArray[np.int64] | None:
        """Return the release of each claim; None where each has one claim."""
        if len(self._owners) == self._releases:
            return None
        return np.array(self._owners, dtype=np.int64)

    def _column(self, release: Release, at: int) -> int:
        claim = release.claims[at]
        key = (id(release.view), id(claim.unit), claim.setting)
        code = self._seen_columns.get(key)
        if code is None:
            column = Column(release.view, claim.unit, claim.setting)
            code = self._equal_columns.setdefault(column, len(self.columns))
            if code == len(self.columns):
                self.columns.append(column)
            self._seen_columns[key] = code
            self._alive += [release.view, claim.unit]
        return code

    def _loss(self, loss: Loss) -> int:
        code = self._seen_losses.get(id(loss))
        if code is None:
            code = self._equal_losses.setdefault(loss, len(self.losses))
            if code == len(self.losses):
                self.losses.append(loss)
            self._seen_losses[id(loss)] = code
            self._alive.append(loss)
        return code
