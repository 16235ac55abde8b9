"""Users of a stream, grouped by the views that see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from undertow.spaces.domain import Stream
from undertow.spaces.influence.stream_units import StreamSight

__all__ = ["UserKind", "user_kinds"]


@dataclass(frozen=True, slots=True)
class UserKind:
    """Users that the same columns see.

    Parameters
    ----------
    seen : tuple of bool
        For each column whether it sees them.
    number : int
        How many they are.
    example : int
        One of them.
    words : str
        How a change names them; empty where all users are alike.
    """

    seen: tuple[bool, ...]
    number: int
    example: int
    words: str


def user_kinds(domain: Stream, sights: Sequence[StreamSight]) -> list[UserKind]:
    """Return the kinds of user, in order of their first user.

    Only users that a view names are looked at one by one; all others are of one kind.
    """
    sets = list(dict.fromkeys(s.users for s in sights if s.users is not None))
    of_user: dict[int, list[int]] = {}
    for number, users in enumerate(sets):
        for user in users:
            of_user.setdefault(user, []).append(number)
    groups: dict[tuple[int, ...], list[int]] = {}
    for user in sorted(of_user):
        groups.setdefault(tuple(of_user[user]), []).append(user)
    rest = domain.users - len(of_user)
    found = [(key, len(members), members[0]) for key, members in groups.items()]
    if rest:
        free = next(u for u in range(domain.users) if u not in of_user)
        found.append(((), rest, free))
    position = {users: number for number, users in enumerate(sets)}
    kinds = [
        UserKind(
            tuple(s.users is None or position[s.users] in key for s in sights),
            number,
            example,
            f" of user {example}" if len(found) > 1 else " of one user",
        )
        for key, number, example in sorted(found, key=lambda item: item[2])
    ]
    return kinds
