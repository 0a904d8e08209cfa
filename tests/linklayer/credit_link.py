"""Both ends of one VL and the two wires between them, moved by hand; the invariants are asked at every step."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from emu.linklayer.credits import CreditConfig, CreditReceiver, CreditSender, check_credits


@dataclass(frozen=True)
class Fcp:
    """What a flow-control packet says."""

    fctbs: int
    fccl: int


class CreditLink:
    """Ends 0 and 1; what is called `side` is the end that acts, or whose wire it is."""

    def __init__(self, config: CreditConfig) -> None:
        self.senders = (CreditSender(), CreditSender())
        self.receivers = (CreditReceiver(config), CreditReceiver(config))
        self.wires: tuple[deque[int | Fcp], deque[int | Fcp]] = (deque(), deque())  # frames as what they cost
        self.buffers: tuple[deque[int], deque[int]] = (deque(), deque())
        self.lost = [0, 0]  # blocks, by who sent them
        self.sent = [0, 0]

    def send(self, side: int, blocks: int) -> bool:
        """A frame starts, if it may."""
        if not self.senders[side].may_send(blocks):
            return False
        self.senders[side].sent(blocks)
        self.wires[side].append(blocks)
        self.sent[side] += blocks
        self.check()
        return True

    def fcp(self, side: int) -> None:
        """An FCP starts, due or not."""
        self.wires[side].append(Fcp(self.senders[side].fctbs, self.receivers[side].fcp_out()))
        self.check()

    def arrive(self, side: int) -> None:
        """What is first on that side's wire comes in at the other end."""
        far, item = 1 - side, self.wires[side].popleft()
        if isinstance(item, Fcp):
            self.receivers[far].on_fcp(item.fctbs)
            self.senders[far].on_fcp(item.fccl)
        else:
            self.receivers[far].first_bit_in(item)
            self.buffers[far].append(item)
        self.check()

    def lose(self, side: int) -> None:
        """What is first on that side's wire is gone."""
        item = self.wires[side].popleft()
        if not isinstance(item, Fcp):
            self.lost[side] += item
        self.check()

    def drain(self, side: int) -> None:
        """The oldest frame leaves that end's buffer."""
        self.receivers[side].last_bit_out(self.buffers[side].popleft())
        self.check()

    def settle(self) -> None:
        """Let everything arrive, leave the buffers, and be told where an FCP is due; losing nothing."""
        busy = True
        while busy:
            busy = False
            for side in (0, 1):
                for things, act in ((self.wires[side], self.arrive), (self.buffers[side], self.drain)):
                    while things:
                        busy = True
                        act(side)
                if self.receivers[side].is_due:
                    busy = True
                    self.fcp(side)

    def check(self) -> None:
        """Both directions add up."""
        for side in (0, 1):
            on_wire = sum(item for item in self.wires[side] if not isinstance(item, Fcp))
            check_credits(self.senders[side], self.receivers[1 - side], on_wire, self.lost[side])
