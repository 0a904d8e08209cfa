"""Who sends next at one egress: among Ethernet queues, among InfiniBand VLs, among the sources within one queue.

The caller says which queues may send (bit n: queue n holds a frame, and neither pause nor credits forbid it) and what
each one's first frame costs. The answer is booked as sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from emu.errors import ScenarioError
from emu.linklayer.credits import MANAGEMENT_VL

Item = TypeVar("Item")

NOBODY = -1
MIN_QUANTUM_BYTES = 64
MAX_QUEUES = 16
TABLE_ENTRIES = 64
MAX_VL_WEIGHT = 255
HIGH_LIMIT_BLOCKS = 64  # IBTA vol. 1, 7.6.9: the limit counts 4096 bytes
UNLIMITED = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueArbiterConfig:
    """A weight for each queue, by number; weight 0 is strict priority, and of those the highest number goes first.

    A queue of weight w may send w x `quantum_bytes` each time its turn comes.
    """

    weights: tuple[int, ...]
    quantum_bytes: int

    def __post_init__(self) -> None:
        if not 1 <= len(self.weights) <= MAX_QUEUES or min(self.weights) < 0:
            raise ScenarioError(f"weights {self.weights}: one for each of 1 to {MAX_QUEUES} queues, none below 0")
        if self.quantum_bytes < MIN_QUANTUM_BYTES:
            raise ScenarioError(f"a quantum of {self.quantum_bytes} bytes: at least {MIN_QUANTUM_BYTES}")


class QueueArbiter:
    """Strict priority, then deficit round robin (Shreedhar and Varghese, 1995)."""

    __slots__ = ("_deficits", "_next", "_quanta", "_strict", "_turn", "_weighted")

    def __init__(self, config: QueueArbiterConfig) -> None:
        weighted = [queue for queue, weight in enumerate(config.weights) if weight]
        self._quanta = [weight * config.quantum_bytes for weight in config.weights]
        self._deficits = [0] * len(config.weights)
        self._strict = sum(1 << queue for queue, weight in enumerate(config.weights) if not weight)
        self._weighted = sum(1 << queue for queue in weighted)
        self._next = [0] * len(config.weights)  # whose turn comes after each one's
        for index, queue in enumerate(weighted):
            self._next[queue] = weighted[(index + 1) % len(weighted)]
        self._turn = weighted[-1] if weighted else 0

    def pick(self, ready: int, sizes: Sequence[int]) -> int:
        """The queue whose first frame is sent now, or NOBODY; `sizes` in bytes, read for queues that are ready."""
        strict = ready & self._strict
        if strict:
            return strict.bit_length() - 1
        ready &= self._weighted
        if not ready:
            return NOBODY
        turn, deficits = self._turn, self._deficits
        while True:
            if ready >> turn & 1:
                if sizes[turn] <= deficits[turn]:
                    deficits[turn] -= sizes[turn]
                    self._turn = turn
                    return turn
            else:
                deficits[turn] = 0  # nothing is saved up while empty or paused
            turn = self._next[turn]
            if ready >> turn & 1:
                deficits[turn] += self._quanta[turn]


Entries = tuple[tuple[int, int], ...]
"""VL and weight, in blocks of 64 bytes, of each entry of a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VlArbiterConfig:
    """IBTA vol. 1, 7.6.9: two tables of (VL, weight), and how much the high one may send while low ones wait."""

    high: Entries = ()
    low: Entries
    high_limit: int = 0  # in 4096 bytes; 0: one frame; 255: without end

    def __post_init__(self) -> None:
        if not 0 <= self.high_limit <= UNLIMITED:
            raise ScenarioError(f"a high limit of {self.high_limit}: 0 to {UNLIMITED}")
        for name, table in (("high", self.high), ("low", self.low)):
            if len(table) > TABLE_ENTRIES:
                raise ScenarioError(f"the {name} VL table has {len(table)} entries: at most {TABLE_ENTRIES}")
            for vl, weight in table:
                if not 0 <= vl < MANAGEMENT_VL or not 0 <= weight <= MAX_VL_WEIGHT:
                    raise ScenarioError(
                        f"the {name} VL table has VL {vl} with weight {weight}:"
                        f" VLs are 0 to {MANAGEMENT_VL - 1}, weights 0 to {MAX_VL_WEIGHT}"
                    )
        if not self.vls:
            raise ScenarioError("the VL tables name no VL with a weight: nothing could be sent")

    @property
    def vls(self) -> int:
        """The VLs that ever get a turn (bit n: VL n)."""
        return _mask(self.high) | _mask(self.low)


def _mask(table: Entries) -> int:
    mask = 0
    for vl, weight in table:
        mask |= 1 << vl if weight else 0
    return mask


class _Table:
    """Weighted round robin: an entry sends while any of its weight is left, so the last frame may exceed it."""

    __slots__ = ("_entries", "_index", "_left", "mask")

    def __init__(self, entries: Entries) -> None:
        self._entries = [(vl, weight) for vl, weight in entries if weight]
        self._index = len(self._entries) - 1
        self._left = 0
        self.mask = _mask(entries)

    def pick(self, ready: int, blocks: Sequence[int]) -> int:
        """The VL whose turn it is; one in `mask` must be ready."""
        entries, index, left = self._entries, self._index, self._left
        vl = entries[index][0]
        if left <= 0 or not ready >> vl & 1:
            while True:
                index = index + 1 if index + 1 < len(entries) else 0
                vl, left = entries[index]
                if ready >> vl & 1:
                    break
            self._index = index
        self._left = left - blocks[vl]
        return vl


class VlArbiter:
    """VL15 first; then the high table, but for one low frame each time its limit is spent; then the low one."""

    __slots__ = ("_high", "_high_limit", "_high_sent", "_low", "_unlimited")

    def __init__(self, config: VlArbiterConfig) -> None:
        self._high = _Table(config.high)
        self._low = _Table(config.low)
        self._high_limit = max(1, config.high_limit * HIGH_LIMIT_BLOCKS)
        self._unlimited = config.high_limit == UNLIMITED
        self._high_sent = 0  # blocks since the low table last had its chance

    def pick(self, ready: int, blocks: Sequence[int]) -> int:
        """The VL whose first frame is sent now, or NOBODY; `blocks` of 64 bytes, read for VLs that are ready."""
        if ready >> MANAGEMENT_VL & 1:
            return MANAGEMENT_VL
        low = ready & self._low.mask
        if ready & self._high.mask:
            if not low or self._unlimited or self._high_sent < self._high_limit:
                vl = self._high.pick(ready, blocks)
                self._high_sent = self._high_sent + blocks[vl] if low else 0
                return vl
        elif not low:
            return NOBODY
        self._high_sent = 0
        return self._low.pick(ready, blocks)


class RoundRobinQueue(Generic[Item]):
    """One egress queue that serves its sources in turn, one frame each: ingress ports, or sending hosts.

    With a single source it is first in, first out.
    """

    __slots__ = ("_queues", "_ring")

    def __init__(self) -> None:
        self._queues: dict[Hashable, deque[Item]] = {}
        self._ring: deque[deque[Item]] = deque()  # those of sources that have frames here, in the order of their turns

    def __len__(self) -> int:
        return sum(len(queue) for queue in self._ring)

    def __bool__(self) -> bool:
        return bool(self._ring)

    def __iter__(self) -> Iterator[Item]:
        """All that wait, source by source."""
        for queue in self._ring:
            yield from queue

    def push(self, source: Hashable, item: Item) -> None:
        """Queue a frame behind those of the same source."""
        queue = self._queues.get(source)
        if queue is None:
            queue = self._queues[source] = deque()
        if not queue:
            self._ring.append(queue)
        queue.append(item)

    def first(self) -> Item:
        """What `pop` would return."""
        return self._ring[0][0]

    def pop(self) -> Item:
        """Take the next frame; IndexError if there is none."""
        ring = self._ring
        queue = ring[0]
        item = queue.popleft()
        if not queue:
            ring.popleft()
        elif len(ring) > 1:
            ring.rotate(-1)
        return item
