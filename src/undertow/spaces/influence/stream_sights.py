"""How all columns see a stream: few shapes, each at many times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from undertow.spaces.change import Column
from undertow.spaces.domain import Stream
from undertow.spaces.influence.layout import Layout, lay_out
from undertow.spaces.influence.reduction import Reduced, reduce_column
from undertow.spaces.influence.run_table import Piece, RunTable, placed
from undertow.spaces.influence.stream_units import StreamSight

__all__ = ["PlainColumns", "Sights", "plain_columns"]


@dataclass(frozen=True, slots=True)
class PlainColumns:
    """Columns brought to plain ones, shape by shape.

    Parameters
    ----------
    shapes : tuple of Reduced
        The first column of each shape.
    layout : Layout
        Which columns share a shape.
    """

    shapes: tuple[Reduced, ...]
    layout: Layout


def plain_columns(columns: Sequence[Column], domain: Stream) -> PlainColumns:
    """Bring the columns of a stream to plain ones.

    Raises
    ------
    MismatchError, ValueError
        If a view does not fit the domain; of several the first.
    """
    layout = lay_out(columns, times=domain.times)
    if layout is None:  # some view does not fit: the first that fails says why
        for column in columns:
            reduce_column(column, domain)
    assert layout is not None
    chosen = [columns[at] for at in layout.firsts]
    plain = tuple(reduce_column(column, domain) for column in chosen)
    # Where only a bound is known the view is replaced by one that does not move.
    own = [p.view is c.view for p, c in zip(plain, chosen, strict=True)]
    return PlainColumns(plain, layout.fixed(own))


@dataclass(frozen=True, slots=True)
class Sights:
    """What the columns see of a stream.

    Parameters
    ----------
    shapes : tuple of StreamSight
        How the first column of each shape sees it.
    layout : Layout
        Which columns share a shape, and how much later they start.
    """

    shapes: tuple[StreamSight, ...]
    layout: Layout

    def each(self) -> list[StreamSight]:
        """Return the columns one by one."""
        places = zip(
            self.layout.shape_of.tolist(), self.layout.shift.tolist(), strict=True
        )
        return [self.shapes[shape].moved_by(shift) for shape, shift in places]

    def only(self, marked: Sequence[bool]) -> Sights:
        """Return the columns whose shape is marked, renumbered in their order."""
        kept = (s for s, keep in zip(self.shapes, marked, strict=True) if keep)
        return Sights(tuple(kept), self.layout.only(marked))

    def runs(
        self, pieces: Sequence[Sequence[Piece]], *, width: int, moves: bool = True
    ) -> RunTable:
        """Give every column the runs of its shape; see :func:`placed`."""
        return placed(pieces, self.layout, width=width, moves=moves)
