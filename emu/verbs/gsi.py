"""QP1: sends and receives management datagrams on a host's port. They are no messages of a workload: nobody measures
them."""

from __future__ import annotations

from collections.abc import Callable

from emu import opcodes
from emu.addresses import IPV4_BASE, Address, address_of
from emu.devices.queue_pair import QueuePairState
from emu.errors import ScenarioError, VerbsError, WireError
from emu.frame import Envelope, Frame, Message
from emu.transport.cm import GSI_QKEY, GSI_QP, MAD_BYTES, Mad, decode, encode
from emu.transport.receive_queue import ReceiveQueue
from emu.transport.received import Received
from emu.transport.unreliable import GRH_BYTES, UdResponder, UnreliableRequester
from emu.transport.work import RecvWqe, Scatter, SendWqe, WROpcode
from emu.verbs.domain import Device
from emu.verbs.posting import Destination

RECEIVES = 1024  # MADs taken and not yet looked at
WAYS = 1024  # peers whose headers are kept: whoever sends a MAD names one, so more are forgotten, oldest first
SENDS = 1024  # MADs that may wait to be sent; those beyond are forgotten, as if lost
ROCE = "rocev2"


class Datagrams(UnreliableRequester):
    """Its frames are of no message: what carries them counts them, and nothing else does."""

    __slots__ = ()

    def next_frame(self, now_ps: int) -> Frame:
        """The next frame; only while `can_send()`."""
        frame = super().next_frame(now_ps)
        frame.message = None
        return frame


class Gsi:
    """A port's QP1. `take` gets each MAD of connection management, and where it came from."""

    def __init__(self, context: Device, take: Callable[[Address, Mad], object]) -> None:
        """Raises VerbsError where the port has one already."""
        if GSI_QP in context.nic.queue_pairs:
            raise VerbsError(f"{context.name} has its QP1 already")
        self._context, self._take = context, take
        self._ways: dict[int, Envelope] = {}  # by LID
        self._buffers = [bytearray(GRH_BYTES + MAD_BYTES) for _ in range(RECEIVES)]
        self._queue = ReceiveQueue(RECEIVES)
        self.sent = self.received = self.refused = 0  # MADs; refused: that are none of connection management
        self._waiting = 0  # of those sent, that no wire has taken yet
        for number in range(RECEIVES):
            self._post_receive(number)
        mtu_bytes = context.config.path_mtu_bytes
        self._state = QueuePairState(
            self._way_to(context.address),
            Datagrams(self._way_of, opcodes.UD, mtu_bytes, source_qp=GSI_QP),
            UdResponder(context.nic.memory, self._queue, GSI_QKEY),
            self._handed_over,
            self._received,
            opcodes.UD,
        )
        context.nic.attach(GSI_QP, self._state)

    @property
    def priority(self) -> int:
        """The SL or 802.1p priority that MADs travel with: the fabric's."""
        return self._state.envelope.priority

    def send(self, to: Address, mad: Mad) -> None:
        """Post a MAD to that port's QP1. Raises WireError for one that does not fit."""
        if self._waiting >= SENDS:
            return
        wqe = SendWqe(
            Message(self, self.sent, MAD_BYTES, self._context.engine.now_ps),
            self.sent,
            encode(mad),
            opcode=WROpcode.SEND,
        )
        wqe.target = Destination(to, None, GSI_QP, GSI_QKEY)
        self.sent += 1
        self._waiting += 1
        self._context.nic.post(self._state, wqe)

    def _handed_over(self, _: object) -> None:
        self._waiting -= 1

    def _way_of(self, wqe: SendWqe) -> Envelope:
        assert wqe.target is not None
        return self._way_to(wqe.target.address)

    def _way_to(self, to: Address) -> Envelope:
        if to.lid not in self._ways:
            if len(self._ways) >= WAYS:
                del self._ways[next(iter(self._ways))]
            context = self._context
            self._ways[to.lid] = context.envelopes(context.address, to, GSI_QP, GSI_QP, None)[0]
        return self._ways[to.lid]

    def _post_receive(self, number: int) -> None:
        self._queue.post(RecvWqe(number, Scatter((memoryview(self._buffers[number]),))))

    def _received(self, received: Received) -> None:
        number, frame = received.wqe.wr_id, received.frame
        data = bytes(self._buffers[number][GRH_BYTES : received.byte_len])
        self._post_receive(number)
        self.received += 1
        try:
            mad = decode(data)
            sender = sender_of(frame) if frame is not None else None
        except (WireError, ScenarioError):
            self.refused += 1
            return
        if sender is not None:
            self._take(sender, mad)


def sender_of(frame: Frame) -> Address:
    """The port that a datagram's headers name as its source. Raises ScenarioError where that is no host's."""
    envelope = frame.envelope
    lid = envelope.source - IPV4_BASE if envelope.framing.name == ROCE else envelope.source
    return address_of(f"LID {lid}", lid - 1)
