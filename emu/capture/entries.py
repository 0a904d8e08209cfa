"""Lists of what a capture holds whose entries are made when they are read: memory is not that of all at once."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, overload

Entry = dict[str, Any]
BATCH = 256  # entries packed together
FAST = 1  # zlib's level


class Entries(Sequence[Entry]):
    """`make` of each item, made anew each time."""

    def __init__(self, items: Sequence[Any], make: Callable[[Any], Entry]) -> None:
        self._items, self._make = items, make

    def __len__(self) -> int:
        return len(self._items)

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> list[Entry]: ...
    def __getitem__(self, place: int | slice) -> Entry | list[Entry]:
        if isinstance(place, slice):
            return [self._make(item) for item in self._items[place]]
        return self._make(self._items[place])

    def __iter__(self) -> Iterator[Entry]:
        return map(self._make, self._items)


class PackedEntries(Sequence[Entry]):
    """Entries of JSON's types, kept compressed; meant to be read from first to last."""

    def __init__(self) -> None:
        self._batches: list[bytes] = []
        self._last: list[Entry] = []

    def append(self, entry: Entry) -> None:
        """One more."""
        self._last.append(entry)
        if len(self._last) == BATCH:
            self._batches.append(zlib.compress(json.dumps(self._last).encode(), FAST))
            self._last = []

    def __len__(self) -> int:
        return len(self._batches) * BATCH + len(self._last)

    @overload
    def __getitem__(self, place: int) -> Entry: ...
    @overload
    def __getitem__(self, place: slice) -> list[Entry]: ...
    def __getitem__(self, place: int | slice) -> Entry | list[Entry]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        batch, offset = divmod(range(len(self))[place], BATCH)
        return self._batch(batch)[offset]

    def __iter__(self) -> Iterator[Entry]:
        for number in range(len(self._batches) + 1):
            yield from self._batch(number)

    def _batch(self, number: int) -> list[Entry]:
        if number == len(self._batches):
            return self._last
        entries: list[Entry] = json.loads(zlib.decompress(self._batches[number]))
        return entries
