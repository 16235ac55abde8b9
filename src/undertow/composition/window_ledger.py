"""A w-event budget on an endless stream, in memory that does not grow."""

from __future__ import annotations

from collections import deque
from fractions import Fraction

from undertow._validate import check_count
from undertow.errors import BudgetExceeded, NotionMismatchError
from undertow.privacy.exact import Exact
from undertow.privacy.loss import GDP, ZCDP, Loss, Pure

__all__ = ["WindowLedger"]


class WindowLedger:
    """Keep every window of `w` consecutive times within a budget, forever.

    For releases stated at event level in the view setting, each seeing the present
    time, or the latest few. Remembers ``w - 1`` times plus the longest view; a spend on
    one time costs O(1).

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
        self._charges: deque[Exact] = deque([Fraction(0)])

    @property
    def time(self) -> int:
        """The present time, from 0."""
        return self._time

    def advance(self, steps: int = 1) -> None:
        """Move to a later time; what no window can reach any more is forgotten."""
        steps = check_count(steps, "steps")
        keep = self.w - 1 + self.longest_view
        self._time += steps
        for _ in range(min(steps, keep)):
            self._charges.append(Fraction(0))
        while len(self._charges) > keep:
            self._charges.popleft()

    def loss(self) -> Loss:
        """Return the largest loss of a window that ends at the present or is whole."""
        return self._as_loss(self._worst(list(self._charges)))

    def fits(self, loss: Loss, *, view_length: int = 1) -> bool:
        """Return whether :meth:`spend` would accept the release."""
        return self._after(loss, view_length)[1].within(self.budget)

    def spend(self, loss: Loss, *, view_length: int = 1) -> None:
        """Charge a release on the latest `view_length` times, or refuse it whole.

        Raises
        ------
        BudgetExceeded
            If a window would pass the budget; nothing is charged then.
        """
        charges, after = self._after(loss, view_length)
        if not after.within(self.budget):
            raise BudgetExceeded(
                f"the release must fit every window of {self.w} times, got {after} > "
                f"{self.budget} at time {self._time}; wait, or spend less."
            )
        self._charges = deque(charges)

    def _after(self, loss: Loss, view_length: int) -> tuple[list[Exact], Loss]:
        if type(loss) is not type(self.budget):
            raise NotionMismatchError(
                f"loss must be {type(self.budget).__name__} like the budget, "
                f"got {type(loss).__name__}."
            )
        length = check_count(view_length, "view_length")
        if length > self.longest_view or length > self._time + 1:
            most = min(self.longest_view, self._time + 1)
            raise ValueError(f"view_length must be at most {most}, got {view_length}.")
        if length > 1 and not isinstance(loss, Pure):
            raise NotionMismatchError(
                "a view of several times must be charged as Pure, got "
                f"{type(loss).__name__}; use Ledger for other notions."
            )
        charges = list(self._charges)
        for at in range(len(charges) - length, len(charges)):
            charges[at] = charges[at] + loss.exact_parameters()[0]
        return charges, self._as_loss(self._worst(charges))

    def _worst(self, charges: list[Exact]) -> Exact:
        """Return the largest sum over windows of the times still remembered."""
        total: Exact = sum(charges[: self.w], start=Fraction(0))
        best = total
        for at in range(self.w, len(charges)):
            total = total + charges[at] - charges[at - self.w]
            best = max(best, total)
        return best

    def _as_loss(self, parameter: Exact) -> Loss:
        if isinstance(self.budget, GDP):
            return GDP.from_square(parameter)
        return Pure(parameter) if isinstance(self.budget, Pure) else ZCDP(parameter)
