"""Both ends of a connection in one place, without clock or wire: frames are moved by hand."""

from __future__ import annotations

from emu.addresses import address_of
from emu.frame import Frame, Message
from emu.framing.roce import RoceFraming
from emu.transport.memory import Access, MemoryRegion, MemoryTable
from emu.transport.receive_queue import ReceiveQueue
from emu.transport.received import ResponderConfig
from emu.transport.requester import Completion, Requester, RequesterConfig, SendWqe
from emu.transport.responder import AnyAnswer, Responder, acknowledge

FRAMING = RoceFraming()
HERE, THERE = address_of("h0", 0), address_of("h1", 1)


class Pair:
    """A requester, its responder, and memory at both."""

    def __init__(
        self,
        *,
        mtu: int = 1024,
        window: int = 1024,
        ack_every: int = 64,
        timeout_code: int = 10,
        retry_cnt: int = 7,
        first_psn: int = 0,
        target_bytes: int = 1 << 16,
    ) -> None:
        self.there = FRAMING.envelope(HERE, THERE, source_qp=1, destination_qp=2)
        self.back = FRAMING.envelope(THERE, HERE, source_qp=2, destination_qp=1)
        self.config = RequesterConfig(
            path_mtu_bytes=mtu,
            window_packets=window,
            ack_every_packets=ack_every,
            ack_timeout_code=timeout_code,
            retry_cnt=retry_cnt,
        )
        self.requester = Requester(self.there, self.config, first_psn)
        self.memory = MemoryTable()
        self.target: MemoryRegion = self.memory.register(target_bytes, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
        self.receives = ReceiveQueue(1024)
        self.responder = Responder(self.memory, ResponderConfig(path_mtu_bytes=mtu), self.receives, first_psn)
        self.posted = 0

    def post(self, data: bytes, offset: int = 0, rkey: int | None = None) -> SendWqe:
        """Post a WRITE of `data` to `offset` of the target."""
        message = Message(None, self.posted, len(data), 0)
        key = self.target.rkey if rkey is None else rkey
        wqe = SendWqe(message, self.posted, memoryview(data), self.target.addr + offset, key, True)
        self.requester.post(wqe)
        self.posted += 1
        return wqe

    def frames(self, now_ps: int = 0) -> list[Frame]:
        """All that the requester would send now."""
        out = []
        while self.requester.can_send():
            out.append(self.requester.next_frame(now_ps))
        return out

    def answer(self, answer: AnyAnswer | None, now_ps: int = 0) -> list[Completion]:
        """Bring an answer back to the requester."""
        assert isinstance(answer, tuple)
        return self.requester.on_acknowledge(acknowledge(self.back, answer), now_ps)
