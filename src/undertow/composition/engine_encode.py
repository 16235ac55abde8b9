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
    entries = np.empty(len(held), dtype=np.int32)
    for block in _blocks(len(held)):
        entries[block] = book.read(addresses[block], held[block])
    return list(book.by_value), book.codes(entries)


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

    `entry_of` knows them all. `places` remembers one entry for each of few places, to
    find most of them in arrays; whatever it remembers is compared with the address.
    """

    def __init__(self) -> None:
        self.by_value: dict[Item, int] = {}
        self.entry_of: dict[int, int] = {}
        self.value_of: list[int] = [-1]
        self.known = np.array([-1], dtype=np.int64)  # entry 0: no object
        self.places = np.zeros(_PLACES, dtype=np.int64)

    def read(self, addresses: Integers, held: NDArray[Any]) -> Integers:
        """Return the entry of each object, new ones being entered."""
        place = (addresses >> 4) & (_PLACES - 1)
        entries: Integers = self.places[place]
        missed = np.flatnonzero(self.known[entries] != addresses)
        if len(missed):
            found = self._enter(addresses[missed].tolist(), held[missed].tolist())
            entries[missed] = self.places[place[missed]] = found
        return entries

    def _enter(self, addresses: Sequence[int], items: Sequence[Item]) -> Integers:
        met = dict(zip(addresses, items, strict=True))
        fresh = [address for address in met if address not in self.entry_of]
        for address in fresh:
            item = met[address]
            assert id(item) == address, "addresses tell objects apart"
            self.entry_of[address] = len(self.value_of)
            self.value_of.append(self.by_value.setdefault(item, len(self.by_value)))
        self.known = np.concatenate([self.known, np.array(fresh, dtype=np.int64)])
        found = [self.entry_of[address] for address in addresses]
        return np.array(found, dtype=np.int64)

    def codes(self, entries: Codes) -> Codes:
        """Return the codes of entries; equal objects have one."""
        if len(self.by_value) == len(self.entry_of):
            return np.subtract(entries, 1, out=entries)
        codes: Codes = np.array(self.value_of, dtype=np.int32)[entries]
        return codes
