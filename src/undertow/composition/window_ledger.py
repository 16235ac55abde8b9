"""A w-event budget on an endless stream, in memory that does not grow."""

from __future__ import annotations

import math
import sys
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

from undertow._validate import check_count
from undertow.composition.release import require_drawn
from undertow.errors import BudgetExceeded, NotionMismatchError
from undertow.privacy.exact import Exact
from undertow.privacy.loss import GDP, ZCDP, Loss, Pure

__all__ = ["WindowLedger"]


@dataclass(frozen=True, slots=True, order=True)
class _Sum:
    """A sum whose infinite terms can be taken away again: how many, and the rest."""

    infinite: int = 0
    finite: Fraction = Fraction(0)

    @classmethod
    def of(cls, value: Exact) -> Self:
        return cls(1) if value == math.inf else cls(0, Fraction(value))

    def __add__(self, other: _Sum) -> _Sum:
        return _Sum(self.infinite + other.infinite, self.finite + other.finite)

    def __sub__(self, other: _Sum) -> _Sum:
        return _Sum(self.infinite - other.infinite, self.finite - other.finite)

    def times(self, count: int) -> _Sum:
        return _Sum(self.infinite * count, self.finite * count)

    def value(self) -> Exact:
        return math.inf if self.infinite else self.finite


class WindowLedger:
    """Keep every window of `w` consecutive times within a budget, forever.

    For releases stated at event level in the view setting, each seeing the present
    time, or the latest few. Remembers ``w - 1`` times plus the longest view; a spend
    takes time in proportion to the longest view, whatever `w`.

    Parameters
    ----------
    w : int
        Length of the protected window.
    budget : Pure, ZCDP or GDP
        The most that may be lost in any window.
    longest_view : int
        The most times one release may see.

    Notes
    -----
    One entry per time may change within a window, so a release on a view moves by the
    number of times the window and the view share. Pure losses add with that number;
    for zCDP and GDP the number is squared, so views of several times are refused there.

    Examples
    --------
    >>> ledger = WindowLedger(3, Pure("0.7"))
    >>> for epsilon in ("0.1", "0.1", "0.5"):
    ...     ledger.spend(Pure(epsilon))
    ...     ledger.advance()
    >>> ledger.fits(Pure("0.2")), ledger.fits(Pure("0.1"))
    (False, True)
    """

    def __init__(self, w: int, budget: Loss, *, longest_view: int = 1) -> None:
        self.w = check_count(w, "w")
        if not isinstance(budget, Pure | ZCDP | GDP):
            raise NotionMismatchError(
                f"budget must be Pure, ZCDP or GDP, got {type(budget).__name__}."
            )
        self.budget = budget
        self.longest_view = check_count(longest_view, "longest_view")
        self._time = 0
        # Per remembered time its charge; per recent time the window that ends there.
        most = min(self.w - 1 + self.longest_view, sys.maxsize)
        self._charges = deque([_Sum()], maxlen=most)
        self._windows = deque([_Sum()], maxlen=self.longest_view)

    @property
    def time(self) -> int:
        """The present time, from 0."""
        return self._time

    def advance(self, steps: int = 1) -> None:
        """Move to a later time; what no window can reach any more is forgotten."""
        steps = check_count(steps, "steps")
        for _ in range(min(steps, self.w + self.longest_view)):
            kept = self._charges
            leaves = kept[-self.w] if len(kept) >= self.w else _Sum()
            kept.append(_Sum())
            self._windows.append(self._windows[-1] - leaves)
        self._time += steps

    def loss(self) -> Loss:
        """Return the largest loss of a window that a release may still add to."""
        return self._as_loss(max(self._windows))

    def fits(self, loss: Loss, *, view_length: int = 1) -> bool:
        """Return whether :meth:`spend` would accept the release."""
        return self._after(loss, view_length)[2].within(self.budget)

    def spend(self, loss: Loss, *, view_length: int = 1) -> None:
        """Charge a release on the latest `view_length` times, or refuse it whole.

        Raises
        ------
        BudgetExceeded
            If a window would pass the budget; nothing is charged then.
        AssumptionError
            If the loss is about continuous noise, which nobody draws.
        """
        charge, windows, after = self._after(loss, view_length)
        if not after.within(self.budget):
            raise BudgetExceeded(
                f"the release must fit every window of {self.w} times, got {after} > "
                f"{self.budget} at time {self._time}; wait, or spend less."
            )
        for back in range(1, view_length + 1):
            self._charges[-back] += charge
            self._windows[-back] = windows[-back]

    def _after(self, loss: Loss, view_length: int) -> tuple[_Sum, list[_Sum], Loss]:
        """Return the charge per time, the windows after it, and the largest of them."""
        if type(loss) is not type(self.budget):
            raise NotionMismatchError(
                f"loss must be {type(self.budget).__name__} like the budget, "
                f"got {type(loss).__name__}."
            )
        require_drawn("the release", (loss,))
        length = check_count(view_length, "view_length")
        if length > self.longest_view or length > self._time + 1:
            most = min(self.longest_view, self._time + 1)
            raise ValueError(f"view_length must be at most {most}, got {view_length}.")
        if length > 1 and not isinstance(loss, Pure):
            raise NotionMismatchError(
                "a view of several times must be charged as Pure, got "
                f"{type(loss).__name__}; use Ledger for other notions."
            )
        charge = _Sum.of(loss.exact_parameters()[0])
        windows = list(self._windows)
        for back in range(1, length + 1):  # a window that ends there shares this many
            shared = min(length - back + 1, self.w)
            windows[-back] += charge.times(shared)
        return charge, windows, self._as_loss(max(windows))

    def _as_loss(self, total: _Sum) -> Loss:
        parameter = total.value()
        if isinstance(self.budget, GDP):
            return GDP.from_square(parameter)
        return Pure(parameter) if isinstance(self.budget, Pure) else ZCDP(parameter)
