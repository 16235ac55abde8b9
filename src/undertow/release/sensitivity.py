r"""How far one bounded unit can move a table of counts, in whole numbers.

A unit has at most R rows, in at most G cells, at most r of them in one cell. Adding or
removing it moves the row counts by a vector of non-negative whole numbers with these
bounds; what follows is exact, not only an upper bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from undertow.errors import PlanError
from undertow.spaces.base import Metric

__all__ = ["ClaimUnit", "Contribution", "Reach"]


@dataclass(frozen=True, slots=True)
class ClaimUnit:
    """What one step of the claims of a release is.

    Parameters
    ----------
    step : Metric
        Adding or removing one bounded unit.
    swap : Metric or None
        Replacing what one unit has by something else, where a second claim about it
        is made.
    """

    step: Metric
    swap: Metric | None = None


@dataclass(frozen=True, slots=True)
class Reach:
    r"""Most that adding or removing one unit moves a vector of whole numbers.

    Parameters
    ----------
    total : int
        In :math:`\ell_1`.
    square : int
        In squared :math:`\ell_2`.
    touched : int
        Most cells that move.
    swap_total, swap_square : int
        The same for replacing what a unit has by something else; by default twice and
        four times as much, which always holds.

    Examples
    --------
    >>> Reach(5, 13, 2).times(3)
    Reach(total=15, square=117, touched=2)
    """

    total: int
    square: int
    touched: int
    swap_total: int = field(default=0, repr=False)
    swap_square: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        if self.swap_total == 0:
            object.__setattr__(self, "swap_total", 2 * self.total)
            object.__setattr__(self, "swap_square", 4 * self.square)

    def times(self, factor: int) -> Reach:
        """Return the reach where a row counts up to `factor` instead of one."""
        return Reach(
            self.total * factor,
            self.square * factor**2,
            self.touched,
            self.swap_total * factor,
            self.swap_square * factor**2,
        )

    def of_one_sign(self, *, cells: int | None = None, most: int = 1) -> Reach:
        r"""Return the reach of numbers that a unit moves up only.

        Parameters
        ----------
        cells : int, optional
            How many numbers there are, where that is known.
        most : int
            Most that a unit moves one of them.

        Notes
        -----
        For non-negative a and b, :math:`\|a-b\|_2^2 \le \|a\|_2^2 + \|b\|_2^2`
        because their inner product is not negative. No number moves by more than
        `most`, so that m of them move by m times that at most.
        """
        total, square = 2 * self.total, 2 * self.square
        if cells is not None:
            total, square = min(total, cells * most), min(square, cells * most**2)
        return replace(self, swap_total=total, swap_square=square)

    def pure_scale(self, epsilon: Fraction) -> Fraction:
        """Return the scale of Laplace noise that costs `epsilon`."""
        return self.total / epsilon

    def gaussian_variance(self, rho: Fraction) -> Fraction:
        """Return the squared sigma of Gaussian noise that costs `rho` in zCDP."""
        return self.square / (2 * rho)


@dataclass(frozen=True, slots=True)
class Contribution:
    r"""The bounds on one unit's rows in one query.

    Parameters
    ----------
    rows : int or None
        R, most rows of a unit; None if nothing bounds them.
    groups : int or None
        G, most cells that a unit counts in.
    per_group : int or None
        r, most rows of a unit in one cell.
    cells : int or None
        Number of cells there are; None if the keys are discovered.

    Notes
    -----
    With :math:`r' = \min(r, R)` and :math:`G' = \min(G, R, \text{cells})`:

    .. math:: \Delta_1 = \min(R, G' r'), \qquad
              \Delta_2^2 = q r'^2 + s^2,\quad q = \min(G', \lfloor R/r' \rfloor),\;
              s = \min(r', R - q r')\,[q < G'].

    The sum of squares is convex, so it is largest at an extreme point of the allowed
    set: all cells but one full or empty. Proved on the page *Release accounting*.

    Examples
    --------
    >>> Contribution(rows=50, groups=4, per_group=20, cells=24).row_reach()
    Reach(total=50, square=900, touched=4)
    >>> Contribution(rows=50, groups=None, per_group=None, cells=24).unit_reach()
    Reach(total=24, square=24, touched=24)
    """

    rows: int | None
    groups: int | None
    per_group: int | None
    cells: int | None

    @property
    def most_groups(self) -> int | None:
        """Most cells that a unit can count in, all bounds together."""
        return _least(self.groups, self.rows, self.cells)

    def row_reach(self) -> Reach:
        """Return how far the row counts move.

        Raises
        ------
        PlanError
            If the bounds leave the rows of a unit unbounded.
        """
        groups, most = self.most_groups, _least(self.per_group, self.rows)
        if most is None or (groups is None and self.rows is None):
            raise PlanError(
                "bounds.rows_per_unit must be given where rows are counted or added "
                "up, got nothing that bounds the rows of a unit; say for example "
                "rows_per_unit = 50."
            )
        if groups is None:
            groups = self.rows
        assert groups is not None
        total = groups * most if self.rows is None else min(self.rows, groups * most)
        full = min(groups, total // most)
        rest = min(most, total - full * most)
        reach = Reach(total, full * most**2 + rest**2, groups)
        return reach.of_one_sign(cells=self.cells, most=most)

    def unit_reach(self) -> Reach:
        """Return how far the numbers of distinct units move: one in each cell.

        Raises
        ------
        PlanError
            If the bounds leave the cells of a unit unbounded.
        """
        groups = self.most_groups
        if groups is None:
            raise PlanError(
                "bounds.groups_per_unit must be given where keys are discovered, got "
                "nothing that bounds the cells of a unit; say for example "
                "groups_per_unit = 10."
            )
        return Reach(groups, groups, groups).of_one_sign(cells=self.cells)


def _least(*bounds: int | None) -> int | None:
    given = [bound for bound in bounds if bound is not None]
    return min(given) if given else None
