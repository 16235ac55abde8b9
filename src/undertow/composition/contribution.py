"""What each release costs at the worst change, worked out when it is looked at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from undertow.composition.baseline import release_shares
from undertow.composition.engine import EngineResult
from undertow.composition.release import Release
from undertow.privacy.exact import Number
from undertow.privacy.loss import Loss

__all__ = ["Contributions"]


class Contributions(Mapping[str, Loss]):
    """Name of a release -> its loss at the witness; the untouched are left out.

    A plan may have a million releases and a reader who wants one number, so nothing is
    computed before it is asked for.

    Parameters
    ----------
    releases : sequence of Release
        Those composed, in order; a name used twice is numbered.
    result : EngineResult
        Their composition.
    delta : number, optional
        As given to the composition.
    """

    def __init__(
        self,
        releases: Sequence[Release],
        result: EngineResult,
        *,
        delta: Number | None = None,
    ) -> None:
        self._releases, self._result, self._delta = releases, result, delta

    @cached_property
    def _shares(self) -> dict[str, Loss]:
        shares = release_shares(self._result, delta=self._delta)
        names = unique_names([release.name for release in self._releases])
        return {
            name: share.of_continuous_noise(
                any(claim.loss.continuous for claim in release.claims)
            )
            for name, share, release in zip(names, shares, self._releases, strict=True)
            if any(share.exact_parameters())
        }

    def __getitem__(self, name: str) -> Loss:
        return self._shares[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._shares)

    def __len__(self) -> int:
        return len(self._shares)

    def __repr__(self) -> str:
        return repr(self._shares)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (self._shares,)


def unique_names(names: Sequence[str]) -> Sequence[str]:
    """Return names, numbered by position where one is used twice."""
    times = Counter(names)
    if len(times) == len(names):
        return names
    taken = {name for name, count in times.items() if count == 1}
    return [
        name if name in taken else _numbered(name, at, taken)
        for at, name in enumerate(names)
    ]


def _numbered(name: str, at: int, taken: set[str]) -> str:
    numbered = f"{name} #{at + 1}"
    while numbered in taken:
        numbered += "'"
    return numbered
