"""Which pairs of secrets a promise covers.

A promise about real-valued records that are clipped holds for secrets inside the clip
interval, or at most its width apart; over the whole real line the clipped mechanism
leaks more (thesis, Theorem 6.14, holds with this restriction only). Every result
therefore carries its scope.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from undertow._validate import check_finite, check_positive

__all__ = ["Scope"]


@dataclass(frozen=True, slots=True)
class Scope:
    """The pairs of secrets (x, x') of the target record that a promise covers.

    Parameters
    ----------
    gap : float
        Largest ``|x - x'|`` covered; infinite for every pair.
    interval : tuple of float, optional
        Both secrets lie in it; None where only the gap matters.

    Examples
    --------
    >>> Scope.inside(60, 80).summary
    'both secrets in [60, 80]'
    >>> Scope.every_pair().summary
    'every pair of secrets'
    """

    gap: float = math.inf
    interval: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.gap != math.inf:
            check_positive(self.gap, "gap")
        if self.interval is not None:
            low, high = self.interval
            if self.gap != high - low:
                raise ValueError(
                    f"gap must be the width of the interval, {high - low}, "
                    f"got {self.gap}; use Scope.inside."
                )

    @classmethod
    def every_pair(cls) -> Scope:
        """Return the scope of all pairs, the whole real line included."""
        return cls()

    @classmethod
    def inside(cls, low: float, high: float) -> Scope:
        """Return the scope of pairs that both lie in ``[low, high]``."""
        low, high = check_finite(low, "low"), check_finite(high, "high")
        if not low < high:
            raise ValueError(f"low must be below high, got [{low}, {high}].")
        return cls(gap=high - low, interval=(low, high))

    @classmethod
    def within(cls, gap: float) -> Scope:
        """Return the scope of pairs at most `gap` apart, wherever they lie."""
        return cls(gap=check_positive(gap, "gap"))

    @property
    def is_every_pair(self) -> bool:
        """Whether no pair is left out."""
        return self.gap == math.inf

    @property
    def summary(self) -> str:
        """The scope in words, for reports."""
        if self.interval is not None:
            low, high = self.interval
            return f"both secrets in [{_number(low)}, {_number(high)}]"
        if self.is_every_pair:
            return "every pair of secrets"
        return f"secrets at most {_number(self.gap)} apart"

    def to_dict(self) -> str:
        """Return the summary, which is what results print."""
        return self.summary


def _number(value: float) -> str:
    """Write a whole number without its point, any other in full."""
    return str(int(value)) if value.is_integer() else repr(value)
