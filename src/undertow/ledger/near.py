r"""Which charges one more release can meet, on a stream.

A change at event level touches one time, one at w-event level at most `w` consecutive
times. If a new release sees the times :math:`S`, a change that moves it lies within
:math:`w - 1` of a time in :math:`S`, and moves no release whose times are all farther
away. So with :math:`L` the loss before and :math:`N` the releases that are near,

.. math:: \max_\kappa \sum_{i} c_i(\kappa)
          = \max\Bigl(L, \max_\kappa \sum_{i \in N} c_i(\kappa)\Bigr):

a class that does not move the new release costs what it did before, and one that does
is moved by near releases only; the right side has no term that the left has not. The
cost of a charge is then that of its neighbourhood, however long the stream runs.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from undertow.spaces.base import Granularity, View
from undertow.spaces.granularity import Event, WEvent
from undertow.spaces.view import At, Times, Window

__all__ = ["TimeIndex", "reach_of", "times_of"]


def reach_of(target: Granularity) -> int | None:
    """Return how many consecutive times one change can touch; None if unbounded."""
    if isinstance(target, Event):
        return 1
    return target.w if isinstance(target, WEvent) else None


def times_of(view: View) -> frozenset[int] | None:
    """Return the times a view sees; None if it may see all of them."""
    return view.times if isinstance(view, At | Times | Window) else None


class TimeIndex:
    """Keys of releases, found by the times they see."""

    def __init__(self) -> None:
        self._everywhere: set[Hashable] = set()
        self._at: dict[int, set[Hashable]] = {}

    def add(self, key: Hashable, view: View) -> None:
        """Write down a key and what it sees."""
        times = times_of(view)
        if times is None:
            self._everywhere.add(key)
            return
        for time in times:
            self._at.setdefault(time, set()).add(key)

    def near(self, views: Iterable[View], *, reach: int) -> set[Hashable] | None:
        """Return the keys that a change moving one of `views` can move as well.

        Parameters
        ----------
        views : iterable of View
            What the new releases see.
        reach : int
            How many consecutive times one change can touch.

        Returns
        -------
        set or None
            None where that may be all of them.
        """
        found = set(self._everywhere)
        for view in views:
            times = times_of(view)
            if times is None:
                return None
            span = {t + step for t in times for step in range(1 - reach, reach)}
            if len(span) > len(self._at):
                span = {t for t in self._at if t in span}
            for time in span:
                found |= self._at.get(time, set())
        return found
