"""From long lists of objects to integers: objects are recognised by their identity.

A list of a hundred thousand claims holds few different objects. Looking at every entry
in Python costs more than composing them, so the addresses of the objects are compared
as integers, block by block, with those met before; only objects not met before are
hashed and compared by value.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Codes", "encode"]

Codes = NDArray[np.int32]
"""Positions in a list of different objects, half as wide as an address."""

Integers = NDArray[np.int64]
Item = TypeVar("Item", bound=Hashable)

# Blocks grow, so that few entries are looked up before their object is known.
_FIRST_BLOCK, _LARGEST_BLOCK = 256, 16384
# Places in the table of addresses: few of a thousand objects share one.
_PLACES = 2**16


def encode(items: Sequence[Item]) -> tuple[list[Item], Codes]:
    """Return the different items in order of appearance, and a code for each item.

    Equal items are hashed only when they are different objects.

    Examples
    --------
    >>> encode("abca")[0], encode("abca")[1].tolist()
    (['a', 'b', 'c'], [0, 1, 2, 0])
    """
    if len(items) <= _FIRST_BLOCK:
        different: dict[Item, int] = {}
        walked = [different.setdefault(item, len(different)) for item in items]
        return list(different), np.array(walked, dtype=np.int32)
    held = _held(items if isinstance(items, list) else list(items))
    addresses = _addresses(held)
    book: _AddressBook[Item] = _AddressBook()
    codes = np.empty(len(held), dtype=np.int32)
    for block in _blocks(len(held)):
        codes[block] = book.read(addresses[block], held[block])
    return list(book.by_value), codes


def _held(items: list[Item]) -> NDArray[Any]:
    """Return the objects in an array, which keeps them alive at their addresses."""
    held = np.empty(0, dtype=object)
    # The state of an array of objects is a list; other ways ask each object whether it
    # is a sequence, or go through an iterator.
    state: Any = (1, (len(items),), held.dtype, False, items)
    held.__setstate__(state)
    return held


def _addresses(held: NDArray[Any]) -> Integers:
    """Return the addresses of the objects, read from the array that refers to them."""
    found = np.frombuffer(held, dtype=np.intp).astype(np.int64, copy=False)
    if found[0] == id(held[0]) and found[-1] == id(held[-1]):
        return found
    # An interpreter whose identities are not addresses.
    return np.fromiter(map(id, held), dtype=np.int64, count=len(held))


def _blocks(count: int) -> Iterator[slice]:
    start, size = 0, _FIRST_BLOCK
    while start < count:
        yield slice(start, start + size)
        start, size = start + size, min(2 * size, _LARGEST_BLOCK)


class _AddressBook(Generic[Item]):
    """Objects met before, by address.

    `code_of` knows them all. Two arrays remember one of them for each of few places, to
    find most in one go; whatever is remembered is compared with the address.
    """

    def __init__(self) -> None:
        self.by_value: dict[Item, int] = {}
        self.code_of: dict[int, int] = {}
        self.address_at = np.zeros(_PLACES, dtype=np.int64)  # 0: no object
        self.code_at = np.zeros(_PLACES, dtype=np.int32)

    def read(self, addresses: Integers, held: NDArray[Any]) -> Codes:
        """Return the code of each object, new ones being entered."""
        place = (addresses >> 4) & (_PLACES - 1)
        missed = np.flatnonzero(self.address_at[place] != addresses)
        if len(missed):
            self._enter(addresses[missed], held[missed])
            # What lost its place to another object is looked up one by one.
            missed = np.flatnonzero(self.address_at[place] != addresses)
        codes: Codes = self.code_at[place]
        codes[missed] = [self.code_of[a] for a in addresses[missed].tolist()]
        return codes

    def _enter(self, addresses: Integers, held: NDArray[Any]) -> None:
        met: dict[int, Item]
        met = dict(zip(addresses.tolist(), held.tolist(), strict=True))
        for address in met.keys() & self.code_of.keys():
            del met[address]
        marks, known = list(met), self.by_value
        assert list(map(id, met.values())) == marks, "addresses tell objects apart"
        codes = [known.setdefault(item, len(known)) for item in met.values()]
        self.code_of.update(zip(marks, codes, strict=True))
        entered = np.array(marks, dtype=np.int64)
        place = (entered >> 4) & (_PLACES - 1)
        # Where several share a place, both arrays keep the last of them.
        self.address_at[place], self.code_at[place] = entered, codes
