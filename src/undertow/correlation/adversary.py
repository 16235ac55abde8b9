"""Who attacks: the record aimed at, and the records already known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from undertow._validate import check_count, check_index
from undertow.privacy.result import Witness

__all__ = ["Adversary", "adversary_witness"]

# More known records than this are counted instead of listed in words.
_LISTED = 6


@dataclass(frozen=True, slots=True)
class Adversary:
    """An attacker (K, i): knows the records `known`, aims at the record `target`.

    Parameters
    ----------
    target : int
        Index of the record aimed at, from 0.
    known : iterable of int
        Indices of the records known; the target is not among them.
    values : mapping of int to object, optional
        What is known: the value of each known record, where a worst one was found.

    Examples
    --------
    >>> Adversary(2, {0, 4}, {0: 1, 4: 0}).summary
    'aims at record 2, knows record 0 = 1 and record 4 = 0'
    >>> Adversary(0).summary
    'aims at record 0, knows no other record'
    """

    target: int
    known: frozenset[int] = frozenset()
    values: Mapping[int, Any] = field(default_factory=dict, hash=False)

    def __init__(
        self,
        target: int,
        known: Iterable[int] = (),
        values: Mapping[int, Any] | None = None,
    ) -> None:
        listed = frozenset(check_count(j, "known record", minimum=0) for j in known)
        object.__setattr__(self, "target", check_count(target, "target", minimum=0))
        object.__setattr__(self, "known", listed)
        object.__setattr__(self, "values", MappingProxyType(dict(values or {})))
        if self.target in self.known:
            raise ValueError(
                f"known must not contain the target, got record {target} in both."
            )
        if not set(self.values) <= self.known:
            stray = sorted(set(self.values) - self.known)[0]
            raise ValueError(f"values must be of known records, got record {stray}.")

    def __reduce__(self) -> tuple[Any, ...]:
        return Adversary, (self.target, tuple(self.known), dict(self.values))

    def within(self, size: int) -> Adversary:
        """Return the adversary itself, after checking its indices against `size`."""
        for record in (self.target, *self.known):
            check_index(record, "record", size=size)
        return self

    def unknown(self, size: int) -> tuple[int, ...]:
        """Return the records neither known nor aimed at, among `size` records."""
        self.within(size)
        return tuple(j for j in range(size) if j not in self.known and j != self.target)

    @property
    def summary(self) -> str:
        """The adversary in words."""
        return f"aims at record {self.target}, knows {self._known_words()}"

    def _known_words(self) -> str:
        if not self.known:
            return "no other record"
        if len(self.known) > _LISTED:
            return f"{len(self.known)} other records"
        words = [self._record_words(j) for j in sorted(self.known)]
        return (
            words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
        )

    def _record_words(self, record: int) -> str:
        if record in self.values:
            return f"record {record} = {self.values[record]}"
        return f"record {record}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "target": self.target,
            "known": sorted(self.known),
            "values": {str(j): self.values[j] for j in sorted(self.values)},
        }


def adversary_witness(
    adversary: Adversary,
    *,
    pair: tuple[Any, Any] | None = None,
    output: Any = None,
    note: str = "",
) -> Witness:
    """Return the witness of a leakage: who, which two secrets, which output.

    Examples
    --------
    >>> adversary_witness(Adversary(0, {1}), pair=(1, 0), output=2).summary
    'aims at record 0, knows record 1; tells 1 from 0; seeing 2'
    """
    words = [adversary.summary]
    details: dict[str, Any] = dict(adversary.to_dict())
    if pair is not None:
        words.append(f"tells {pair[0]} from {pair[1]}")
        details["pair"] = pair
    if output is not None:
        words.append(f"seeing {output}")
        details["output"] = output
    if note:
        words.append(note)
    return Witness("adversary", "; ".join(words), details)
