"""The veth wire: a frame's real bytes cross a veth pair, and what comes out is the truth."""

from __future__ import annotations

import errno
import socket
from collections import Counter, deque
from collections.abc import Callable
from time import monotonic

from emu.errors import InvariantBroken, WireError
from emu.frame import Frame, Framing
from emu.wire.likeness import as_changed, decode_either, nearest
from emu.wire.packet_socket import LARGEST_READ_BYTES, dropped_frames, wait_for_frame
from emu.wire.patience import Patience
from emu.wire.refusal import reason_of

ROOM_WAIT_S = 0.001  # how long a send waits for others to come out while more would not surely fit
BURST_FRAMES = 32  # at most so many wait in the kernel
SKB_BYTES = 1024  # an skb's own share of a receive buffer; data counts about twice, in whole pages
KNOWN_MISSING = 4096  # frames given up that are known again if they come: more than a queue pair sends unacknowledged
READS_AT_ONCE = 4096  # so that a flood from outside cannot keep us reading
READ_BUFFER = bytearray(LARGEST_READ_BYTES)  # one for all wires: what is read is looked at before the next read


class VethWire:
    """One direction of one link. Sockets do not block; each is the whole of its end, shared with the way back."""

    __slots__ = (
        "_arrived",
        "_burst",
        "_early",
        "_missing",
        "_patience",
        "_read_into",
        "_send",
        "_warned",
        "changed",
        "crossed",
        "disturbed",
        "foreign",
        "framing",
        "in_flight",
        "late",
        "lost",
        "name",
        "on_foreign",
        "receiver",
        "refusals",
        "refused",
        "sender",
        "sent",
        "slow_calls",
        "warnings",
    )

    def __init__(self, name: str, sender: socket.socket, receiver: socket.socket, framing: Framing) -> None:
        self.name, self.framing = name, framing
        self.sent = 0  # frames the kernel took
        self.refused = 0  # frames it did not take; in `lost` too
        self.refusals: Counter[int] = Counter()  # the same by errno
        self.lost = 0
        self.late = 0  # not there when due, but came
        self.changed = 0
        self.foreign = 0
        self.crossed = 0  # frames that were there at once, as they were sent: one send and one read each
        self.slow_calls = 0  # reads for all others, and sends tried again
        self.disturbed = False
        self.warnings: list[str] = []
        self.on_foreign: Callable[[Frame], object] | None = None  # takes in foreign frames that are frames we know
        self.sender, self.receiver = sender, receiver
        self._send, self._read_into = sender.send, receiver.recv_into
        self.in_flight: deque[Frame] = deque()  # taken by the kernel, and not seen to come out yet
        self._arrived: deque[bytes] = deque()  # read before they were due
        self._early: dict[Frame, Frame | None] = {}  # what became of frames that a younger one was due before
        self._missing: deque[int] = deque(maxlen=KNOWN_MISSING)  # hashes of those given up lately
        self._patience = Patience()
        # A socket of stock size holds 24 to 48 frames of 4 KiB, so never let ours fill more than a quarter.
        buffer_bytes = receiver.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        self._burst = max(1, min(BURST_FRAMES, buffer_bytes // 4 // (2 * LARGEST_READ_BYTES + SKB_BYTES)))
        self._warned: set[str] = set()

    @property
    def system_calls(self) -> int:
        """Sends and reads made so far."""
        return self.sent + self.refused + self.crossed + self.slow_calls

    def send(self, frame: Frame) -> bool:
        """Put the frame's bytes on the wire. False: refused (an end is down or gone), so it is lost now.

        On one CPU a veth delivers before the send returns, so the far end is read at once: what came out is known
        long before it is due. Bytes that are not there yet, or not these, wait for `receive` to look into them.
        """
        data = frame.data
        if data is None:
            data = frame.data = frame.envelope.framing.encode(frame)
        if self.in_flight:
            self._make_room()
        try:
            self._send(data)
        except OSError as error:
            if not self._sent_after_all(data, error):
                return False
        self.sent += 1
        if self.in_flight or self._arrived:
            self.in_flight.append(frame)
            return True
        try:
            size_bytes = self._read_into(READ_BUFFER)
            if size_bytes == len(data) and READ_BUFFER.startswith(data):
                self.crossed += 1
                return True
            self._arrived.append(bytes(READ_BUFFER[:size_bytes]))
        except OSError as error:
            self._nothing_read(error)
        self.slow_calls += 1
        self.in_flight.append(frame)
        return True

    def receive(self, frame: Frame) -> Frame | None:
        """The frame that is due, as its bytes came out: itself, parsed anew if changed, or None if lost.

        A switch acts on a frame a hop latency after its first bit, on flow control at its last bit, so a control frame
        may be due before data that was sent before it: the kernel delivers in order, so the data is looked at first.
        """
        if frame not in self.in_flight:
            return self._early.pop(frame, frame)  # if not early, it came as it was sent
        while frame is not self.in_flight[0]:
            oldest = self.in_flight[0]
            self._early[oldest] = self._resolve(oldest)
        arrived = self._resolve(frame)
        if not self.in_flight:  # what is left is nobody's, and would keep the next frames from crossing at once
            self._judge_strangers()
        return arrived

    def poll(self) -> None:
        """Look for foreign frames while nothing of ours is in flight."""
        if not self.in_flight:
            self._drain()
            self._judge_strangers()

    def finish(self) -> None:
        """After a run: read on, count what nobody sent, check that the kernel dropped nothing.

        Frames in flight are no error. Raises InvariantBroken if the receive buffer overran with our own frames.
        """
        self._drain()
        while self._arrived:
            data = self._arrived.popleft()
            place = self._place(data)
            if place is None:
                self._judge_stranger(data)
            else:
                for _ in range(place + 1):
                    self.in_flight.popleft()
        self.in_flight.clear()
        drops = dropped_frames(self.receiver)
        if drops and not self.foreign:
            raise InvariantBroken(f"wire {self.name}: {drops} frames overran the receive buffer")
        if drops:
            self._note("overrun", f"foreign frames overran the receive buffer, {drops} frames were dropped")

    def _make_room(self) -> None:
        """Before a send while others are in flight: read what has come, so that the kernel's buffer cannot overrun."""
        self._settle()
        if len(self.in_flight) >= self._burst and not self._arrived and self._patience.is_hopeful(self._delivered()):
            wait_for_frame(self.receiver, ROOM_WAIT_S)
            self._settle()

    def _settle(self) -> None:
        """Let go those in flight that have come as they were sent, up to the first that has not."""
        self._drain()
        in_flight, arrived = self.in_flight, self._arrived
        while in_flight and arrived and in_flight[0].data == arrived[0]:
            in_flight.popleft()
            arrived.popleft()

    def _drain(self) -> None:
        """Read what is there into our own queue, which has no limit."""
        for _ in range(READS_AT_ONCE):
            self.slow_calls += 1
            try:
                self._arrived.append(self.receiver.recv(LARGEST_READ_BYTES))
            except BlockingIOError:
                return
            except OSError as error:
                self._nothing_read(error)

    def _nothing_read(self, error: OSError) -> None:
        """Nothing is there; or, told once, the interface went down, and frames may still lie behind that."""
        if isinstance(error, BlockingIOError):
            return
        if error.errno != errno.ENETDOWN:
            raise error
        self._note("down", "the interface at its far end went down")

    def _sent_after_all(self, data: bytes, error: OSError) -> bool:
        """Whether a second try succeeds: a send, too, is told once that the interface went down, though it be up."""
        if error.errno == errno.ENETDOWN:
            self.slow_calls += 1
            try:
                self._send(data)
            except OSError as again:
                error = again
            else:
                self._note("down", "its interface went down")
                return True
        self._note(reason := reason_of(error), f"a frame could not be sent: {reason}")
        self.refusals[error.errno or errno.EAGAIN] += 1
        self.refused += 1
        self.lost += 1
        return False

    def _resolve(self, frame: Frame) -> Frame | None:
        """What became of the oldest in flight: there by now, late, behind foreign ones, changed or lost."""
        patience_s = self._patience.seconds(self._delivered())
        deadline, waited = monotonic() + patience_s, False
        while True:
            self._drain()
            unchanged = frame.data in self._arrived
            while self._arrived:
                data = self._arrived[0]
                place = self._place(data, exactly=unchanged)
                if place:  # a later one came first
                    self._lose(frame)
                    return None
                self._arrived.popleft()
                if place is None:
                    self._judge_stranger(data)
                elif data != frame.data:
                    return self._change(frame, data)
                else:
                    self.in_flight.popleft()
                    if waited:
                        self.late += 1
                        self._patience.paid()
                    return frame
            left_s = deadline - monotonic()
            if left_s <= 0:
                self._patience.was_in_vain(self._delivered(), patience_s)
                self._lose(frame)
                return None
            waited = True
            wait_for_frame(self.receiver, left_s)

    def _place(self, data: bytes, *, exactly: bool = False) -> int | None:
        """Which of the frames in flight came out as `data`, or changed into it unless `exactly`; None: none of them."""
        for place, frame in enumerate(self.in_flight):
            if frame.data == data:
                return place
        if exactly or hash(data) in self._missing:
            return None
        return nearest(self.in_flight, data)

    def _change(self, frame: Frame, data: bytes) -> Frame:
        self.changed += 1
        self.in_flight.popleft()
        changed = as_changed(frame, data, self.framing)
        fate = "its link CRC counts as bad" if changed.bad else "its ICRC is right, so it was read again"
        self._note("changed", f"a frame came out changed; {fate}")
        return changed

    def _lose(self, frame: Frame) -> None:
        self.lost += 1
        self.in_flight.popleft()
        self._missing.append(hash(frame.data))
        self._note("lost", "a frame that went in did not come out")

    def _judge_strangers(self) -> None:
        while self._arrived:
            self._judge_stranger(self._arrived.popleft())

    def _judge_stranger(self, data: bytes) -> None:
        """Bytes of no frame in flight: one that was given up, or a foreign one."""
        if hash(data) in self._missing:
            self._missing.remove(hash(data))
            self.late += 1
            self._patience.paid()
            return
        self.foreign += 1
        self._note("foreign", f"a foreign frame of {len(data)} bytes arrived: nobody in the model sent it")
        if self.on_foreign is None:
            return
        try:
            frame = decode_either(data, self.framing)
        except WireError:
            return
        frame.data = data
        self.on_foreign(frame)

    def _delivered(self) -> int:
        lost_on_the_way = self.lost - self.refused
        return self.sent - lost_on_the_way - len(self.in_flight)

    def _note(self, kind: str, text: str) -> None:
        """Each kind of disturbance is warned of once a wire; the counters say how often it came."""
        self.disturbed = True
        if kind not in self._warned:
            self._warned.add(kind)
            self.warnings.append(f"wire {self.name}: {text}")
