"""InfiniBand's link-level flow control for one VL in one direction of a link: what may be sent, what was granted.

IBTA vol. 1, 7.9: limits are absolute counts of 64-byte blocks, modulo 4096, so that the next flow-control packet (FCP)
heals the loss of one. At each end of a link and VL stand a sender, for what leaves here, and a receiver, for what comes
in; an FCP carries `sender.fctbs` and `receiver.fcp_out()`, both read as its first bit leaves, and is handed at the far
end to `receiver.on_fcp` and `sender.on_fcp`.
"""

from __future__ import annotations

from dataclasses import dataclass

from emu.errors import InvariantBroken, ScenarioError

BLOCK_BYTES = 64
MODULUS = 4096
WINDOW_BLOCKS = 2048  # no receiver may grant more at once, whatever room it has
MANAGEMENT_VL = 15  # carries subnet management, without credits
_MASK = MODULUS - 1


def blocks_of(size_bytes: int) -> int:
    """What a packet of so many bytes, LRH to VCRC, costs."""
    return -(-size_bytes // BLOCK_BYTES)


def is_credited(vl: int) -> bool:
    """Whether a VL has credits: all but VL15. Raises ScenarioError for what is no VL."""
    if not 0 <= vl <= MANAGEMENT_VL:
        raise ScenarioError(f"VL {vl}: VLs are 0 to {MANAGEMENT_VL}")
    return vl != MANAGEMENT_VL


@dataclass(frozen=True, slots=True, kw_only=True)
class CreditConfig:
    """The buffer of one VL at one port, in blocks; `mtu_blocks` is what the largest frame costs."""

    capacity_blocks: int
    threshold_blocks: int
    mtu_blocks: int

    def __post_init__(self) -> None:
        if self.mtu_blocks < 1:
            raise ScenarioError(f"the largest frame cannot cost {self.mtu_blocks} blocks")
        if self.window_blocks < self.mtu_blocks:
            raise ScenarioError(
                f"a credit window of {self.window_blocks} blocks never lets a frame of {self.mtu_blocks} go;"
                f" give {self.mtu_blocks} to {WINDOW_BLOCKS}"
            )
        if self.threshold_blocks < 1:
            raise ScenarioError(f"a credit threshold of {self.threshold_blocks} blocks: at least 1")

    @property
    def window_blocks(self) -> int:
        """The most that can be granted at once."""
        return min(self.capacity_blocks, WINDOW_BLOCKS)

    @property
    def due_blocks(self) -> int:
        """Freed blocks that are worth an FCP: the threshold, or a quarter of the window where that is less."""
        return min(self.threshold_blocks, -(-self.window_blocks // 4))


class CreditSender:
    """The sending end. It may send nothing until the first FCP has come."""

    __slots__ = ("fccl", "fctbs")

    def __init__(self) -> None:
        self.fccl = 0  # credit limit: the count that may be sent up to
        self.fctbs = 0  # flow control total blocks sent

    def may_send(self, blocks: int) -> bool:
        """Whether a frame of that cost fits, whole."""
        return (self.fccl - self.fctbs - blocks) & _MASK <= WINDOW_BLOCKS

    def sent(self, blocks: int) -> None:
        """The first bit of a frame leaves."""
        self.fctbs = (self.fctbs + blocks) & _MASK

    def on_fcp(self, fccl: int) -> bool:
        """Take the limit that an FCP carries; returns whether it moved, so that what waits should be asked again."""
        moved = fccl != self.fccl
        self.fccl = fccl
        return moved

    def initialise(self) -> None:
        """The link comes up (again): nothing sent, nothing granted."""
        self.fccl = self.fctbs = 0

    @property
    def available_blocks(self) -> int:
        """What may still be sent; negative if the limit was taken back, which only a broken peer does."""
        return _signed(self.fccl - self.fctbs)


class CreditReceiver:
    """The receiving end: a buffer, and what the peer was told of it. Frames count from first bit in to last bit out."""

    __slots__ = ("_capacity", "_due", "_is_window", "_mtu", "abr", "advertised", "healed_blocks", "is_due", "occupied")

    def __init__(self, config: CreditConfig) -> None:
        self._capacity = config.capacity_blocks
        self._due = config.due_blocks
        self._is_window = config.capacity_blocks <= WINDOW_BLOCKS  # all of the room can be granted at once
        self._mtu = config.mtu_blocks
        self.occupied = 0
        self.abr = 0  # adjusted blocks received: what came in, and what the peer says was lost
        self.advertised = 0  # the limit in the last FCP that left
        self.is_due = True  # whether an FCP should leave as soon as it can: the first one is
        self.healed_blocks = 0  # lost on the way, and granted again since

    @property
    def capacity_blocks(self) -> int:
        """The room of the whole buffer."""
        return self._capacity

    @property
    def limit(self) -> int:
        """The FCCL that an FCP would carry now."""
        free = self._capacity - self.occupied
        return (self.abr + (free if free < WINDOW_BLOCKS else WINDOW_BLOCKS)) & _MASK

    @property
    def has_news(self) -> bool:
        """Whether an FCP would tell the peer a limit other than the last one did."""
        return self.limit != self.advertised

    def has_room(self, blocks: int) -> bool:
        """Whether a frame fits: always, unless the peer sends more than it was granted."""
        return self.occupied + blocks <= self._capacity

    def first_bit_in(self, blocks: int) -> bool:
        """A frame comes in; returns whether an FCP has become due by it. Raises InvariantBroken if it has no room."""
        occupied = self.occupied + blocks
        if occupied > self._capacity:
            raise InvariantBroken(f"{blocks} blocks came into a buffer of {self._capacity} that held {self.occupied}")
        self.occupied = occupied
        self.abr = (self.abr + blocks) & _MASK
        # Nothing is freed by coming in (but for a window that moves): only a peer that then holds too little is news.
        if self.is_due or (self._is_window and self.advertised - self.abr & _MASK >= self._mtu):
            return False
        return self._becomes_due()

    def last_bit_out(self, blocks: int) -> bool:
        """A frame has left the buffer; returns whether an FCP has become due by it."""
        occupied = self.occupied = self.occupied - blocks
        if occupied < 0:
            raise InvariantBroken(f"{blocks} blocks left a buffer that held {occupied + blocks}")
        return not self.is_due and self._becomes_due()

    def on_fcp(self, fctbs: int) -> bool:
        """Take the peer's count of what it sent, what was lost included; returns whether an FCP has become due by it.

        Every frame that left before this FCP must have been counted in, and none that left after it.
        """
        if fctbs == self.abr:
            return False
        self.healed_blocks += _signed(fctbs - self.abr)
        self.abr = fctbs
        return not self.is_due and self._becomes_due()

    def fcp_out(self) -> int:
        """The first bit of an FCP leaves, asked for or not: the FCCL it carries."""
        self.is_due = False
        limit = self.advertised = self.limit
        return limit

    def initialise(self) -> None:
        """The link comes up (again): counts start anew, an FCP is due; what the buffer holds it still holds."""
        self.abr = self.advertised = self.healed_blocks = 0
        self.is_due = True

    def _becomes_due(self) -> bool:
        """Enough has been freed; or anything has, and the peer holds less than the largest frame costs."""
        free, granted = self._capacity - self.occupied, self.advertised - self.abr
        freed = (free if free < WINDOW_BLOCKS else WINDOW_BLOCKS) - granted & _MASK
        if freed < self._due and (freed == 0 or granted & _MASK >= self._mtu):
            return False
        self.is_due = True
        return True


def check_credits(sender: CreditSender, receiver: CreditReceiver, on_wire_blocks: int, lost_blocks: int) -> None:
    """Raises InvariantBroken if the two ends of one VL and direction do not add up.

    `on_wire_blocks`: sent, not yet counted in. `lost_blocks`: of all frames lost between them since initialisation.
    """
    available, limit = sender.available_blocks, receiver.limit
    unhealed = lost_blocks - receiver.healed_blocks
    held = available + on_wire_blocks + receiver.occupied
    capacity = receiver.capacity_blocks
    told_all = sender.fccl == limit and unhealed == 0 and capacity - receiver.occupied <= WINDOW_BLOCKS
    holds = (
        0 <= available <= WINDOW_BLOCKS,
        on_wire_blocks >= 0,
        held <= capacity,
        held == capacity or not told_all,
        _signed(sender.fctbs - receiver.abr) == on_wire_blocks + unhealed,
        (limit - receiver.advertised) & _MASK <= WINDOW_BLOCKS,
        (receiver.advertised - sender.fccl) & _MASK <= WINDOW_BLOCKS,
        0 <= receiver.occupied <= capacity,
    )
    if not all(holds):
        raise InvariantBroken(
            f"credits: not so: {LAWS[holds.index(False)]} (FCCL {sender.fccl}, FCTBS {sender.fctbs},"
            f" ABR {receiver.abr}, limit {limit}, advertised {receiver.advertised}, on the wire {on_wire_blocks},"
            f" lost {unhealed}, occupied {receiver.occupied} of {capacity})"
        )


LAWS = (
    "the sender holds 0 to 2048 blocks",
    "on the wire are none or more",
    "available + on the wire + occupied <= capacity",
    "equal, once all was told",
    "FCTBS - ABR = on the wire + lost",
    "the limit never goes back",
    "the sender's limit is none but an older one",
    "occupied <= capacity",
)
"""What `check_credits` holds, in the order in which it does."""


def _signed(difference: int) -> int:
    """The difference of two counts, from -2047 to 2048: the one that is meant, as no window is wider."""
    return (difference + WINDOW_BLOCKS - 1 & _MASK) - WINDOW_BLOCKS + 1
