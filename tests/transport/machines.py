"""Both machines of one direction for any operation, without clock or wire: frames are moved by hand."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from random import Random
from typing import Any

from emu.addresses import address_of
from emu.frame import Frame, Message
from emu.framing.roce import RoceFraming
from emu.transport.answer import AnyAnswer, acknowledge
from emu.transport.memory import Access, MemoryTable
from emu.transport.receive_queue import ReceiveQueue
from emu.transport.received import Received, ResponderConfig
from emu.transport.requester import Completion, Requester, RequesterConfig
from emu.transport.responder import Responder
from emu.transport.selective import SelectiveRequester, SelectiveResponder
from emu.transport.work import ATOMIC_BYTES, ATOMICS, FETCHES, RecvWqe, Scatter, SendFlags, SendWqe, WROpcode

FRAMING = RoceFraming()
HERE, THERE = address_of("h0", 0), address_of("h1", 1)
ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC
NO_CREDIT = 0x1F
USUAL: dict[str, Any] = {"window_packets": 1024, "ack_every_packets": 64, "ack_timeout_code": 14, "retry_cnt": 7}
ROUNDS = 1000  # of an exchange, at most


def digest(data: bytes | bytearray | memoryview) -> str:
    """SHA-256."""
    return sha256(data).hexdigest()


class Machines:
    """A requester, its responder, `target` memory at the responder's, and what has come of all that was posted."""

    def __init__(
        self,
        *,
        mtu: int = 1024,
        first_psn: int = 0,
        target_bytes: int = 1 << 16,
        rights: Access = ALL,
        depth: int = 16,
        dest_depth: int = 16,
        credits: bool = False,
        min_rnr_timer: int = 12,
        selective: bool = False,
        **requester: Any,
    ) -> None:
        """`requester`: more of RequesterConfig."""
        self.mtu = mtu
        self.there = FRAMING.envelope(HERE, THERE, source_qp=1, destination_qp=2)
        self.back = FRAMING.envelope(THERE, HERE, source_qp=2, destination_qp=1)
        more = {"max_rd_atomic": depth, "end_to_end_credits": credits, "selective": selective}
        config = RequesterConfig(path_mtu_bytes=mtu, **(USUAL | more | requester))
        self.requester = (SelectiveRequester if selective else Requester)(self.there, config, first_psn)
        self.memory = MemoryTable()
        self.target = self.memory.register(target_bytes, rights)
        self.target.buffer[:] = Random(target_bytes).randbytes(target_bytes)
        self.queue = ReceiveQueue(4096)
        answers = ResponderConfig(
            path_mtu_bytes=mtu,
            min_rnr_timer=min_rnr_timer,
            max_dest_rd_atomic=dest_depth,
            hold_packets=config.window_packets if selective else 0,
            end_to_end_credits=credits,
        )
        make = SelectiveResponder if selective else Responder
        self.responder = make(self.memory, answers, self.queue, first_psn)
        self.posted = 0
        self.sinks: dict[int, bytearray] = {}  # of what fetches, by wr_id
        self.buffers: list[bytearray] = []  # of receives, by wr_id
        self.done: list[Completion] = []
        self.received: list[Received] = []
        self.whole = 0  # messages that ended at the responder

    def post(self, opcode: WROpcode, data: bytes = b"", *, size: int = 0, offset: int = 0, **more: Any) -> SendWqe:
        """Post an operation on `data`, or of `size` bytes where it fetches, at `offset` of the target."""
        length = ATOMIC_BYTES if opcode in ATOMICS else size if opcode in FETCHES else len(data)
        sink = bytearray(length if opcode in FETCHES else 0)
        number = self.posted
        self.posted += 1
        self.sinks[number] = sink
        fields: dict[str, Any] = {"remote_addr": self.target.addr + offset, "rkey": self.target.rkey}
        fields |= {"flags": SendFlags.NONE, "sink": Scatter([memoryview(sink)])} | more
        wqe = SendWqe(Message(None, number, length, 0), number, memoryview(data), opcode=opcode, **fields)
        self.requester.post(wqe)
        return wqe

    def receive(self, size: int, count: int = 1) -> None:
        """Post places for messages."""
        for _ in range(count):
            self.buffers.append(bytearray(size))
            self.queue.post(RecvWqe(len(self.buffers) - 1, Scatter([memoryview(self.buffers[-1])])))

    def frames(self, now_ps: int = 0, limit: int = 1 << 30) -> list[Frame]:
        """All that the requester would send now, but no more than `limit`."""
        out: list[Frame] = []
        while self.requester.can_send() and len(out) < limit:
            out.append(self.requester.next_frame(now_ps))
        return out

    def answer(self, frame: Frame) -> AnyAnswer | None:
        """What the responder owes for a request."""
        answer = self.responder.on_request(frame)
        self.whole += self.responder.message_done
        self.received += self.responder.completions
        self.responder.completions.clear()
        return answer

    def answers(self, frame: Frame) -> list[Frame]:
        """The frames of that, and of what it was held up for."""
        made = list(self._made(self.answer(frame)))
        if isinstance(self.responder, SelectiveResponder):
            while (held := self.responder.next_held()) is not None:
                made += self._made(self.answer(held))
        return made

    def _made(self, answer: AnyAnswer | None) -> Iterator[Frame]:
        if isinstance(answer, tuple):
            yield acknowledge(self.back, answer)
        elif answer is not None:
            yield answer.next_frame(self.back)
            while not answer.is_done:
                yield answer.next_frame(self.back)

    def take(self, answer: Frame, now_ps: int = 0) -> list[Completion]:
        """The requester takes an answer."""
        is_ack = answer.extension is None and not answer.carries_data
        taken = self.requester.on_acknowledge if is_ack else self.requester.on_response
        done = taken(answer, now_ps)
        if isinstance(self.requester, SelectiveRequester) and not is_ack:
            while (held := self.requester.next_held()) is not None:
                done += taken(held, now_ps)
        self.done += done
        return done

    def ack(self, psn: int, syndrome: int = NO_CREDIT, msn: int = 0, now_ps: int = 0) -> list[Completion]:
        """The requester takes an acknowledgement that says this."""
        return self.take(acknowledge(self.back, (psn, syndrome, msn)), now_ps)

    def exchange(self, now_ps: int = 0) -> None:
        """Move frames, none of them lost, until neither side has more to say."""
        for _ in range(ROUNDS):
            frames = self.frames(now_ps)
            if not frames:
                return
            for frame in frames:
                for answer in self.answers(frame):
                    self.take(answer, now_ps)
        raise AssertionError("it does not end")
