"""A send queue's ring of WQEBBs: who may write which block, with indices that never wrap; their wire form does."""

from __future__ import annotations

from emu.errors import InvariantBroken, VerbsError
from emu.mlx5.segments import WQEBB_BYTES

MAX_DEPTH_BLOCKS = 32768  # so that 16 bits tell all indices in use apart
COUNTER_MODULUS = 1 << 16


def expand(counter: int, at_least: int) -> int:
    """The first index from `at_least` on whose low 16 bits are `counter`."""
    return at_least + (counter - at_least) % COUNTER_MODULUS


class Ring:
    """Blocks are reserved, then published in order (the producer index), then retired when a CQE says so.

    Always `retired <= published <= reserved <= retired + depth`: nothing is overwritten before it is retired."""

    __slots__ = ("depth", "published", "reserved", "retired")

    def __init__(self, depth_blocks: int) -> None:
        """Raises VerbsError unless the depth is a power of two from 1 to 32768."""
        if not 0 < depth_blocks <= MAX_DEPTH_BLOCKS or depth_blocks & depth_blocks - 1:
            raise VerbsError(f"a send queue of {depth_blocks} WQEBBs: a power of two from 1 to {MAX_DEPTH_BLOCKS}")
        self.depth = depth_blocks
        self.reserved = 0  # index of the next block to give out
        self.published = 0  # blocks before it may be read by the NIC
        self.retired = 0  # blocks before it may be written anew

    @property
    def free(self) -> int:
        """Blocks that can be reserved now."""
        return self.depth - self.reserved + self.retired

    def reserve(self, blocks: int) -> int:
        """Index of the first of so many blocks, or -1 if there is no room yet. Raises VerbsError if there never is."""
        if not 0 < blocks <= self.depth:
            raise VerbsError(f"a WQE of {blocks} WQEBBs in a send queue of {self.depth}")
        index = self.reserved
        if index + blocks > self.retired + self.depth:
            return -1
        self.reserved = index + blocks
        return index

    def publish(self, up_to: int) -> int:
        """All blocks before `up_to` are written; the producer index as the wire has it. Raises InvariantBroken."""
        if not self.published <= up_to <= self.reserved:
            raise InvariantBroken(f"published to {up_to}: it was {self.published}, and {self.reserved} are reserved")
        self.published = up_to
        return up_to % COUNTER_MODULUS

    def retire(self, up_to: int) -> None:
        """The NIC has done with all blocks before `up_to`. Raises InvariantBroken."""
        if not self.retired <= up_to <= self.published:
            raise InvariantBroken(f"retired to {up_to}: it was {self.retired}, and {self.published} are published")
        self.retired = up_to

    def index_of(self, counter: int) -> int:
        """The index that a CQE's WQE counter, or a producer index, means; not before `retired`."""
        return expand(counter, self.retired)

    def offset(self, index: int) -> int:
        """Where that block begins in the ring, in bytes. A WQE may wrap around its end."""
        return (index & self.depth - 1) * WQEBB_BYTES
