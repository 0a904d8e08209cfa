"""A captured connection taken apart: who asked what in which frames, what came back, and the messages that implies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from emu import opcodes
from emu.capture import read
from emu.crc import ICRC_BYTES
from emu.frame import Buffer, Envelope, Frame, Message
from emu.framing import bth
from emu.framing.roce import BTH_OFFSET, RoceFraming
from emu.transport.memory import Access, MemoryRegion, MemoryTable
from emu.transport.place import ATOMIC, ENDS, HAS_IMMEDIATE, INVALIDATES, PLACE, READ, SENDS, STARTS
from emu.transport.psn import expand
from emu.transport.work import ATOMIC_BYTES, Scatter, SendFlags, SendWqe, WROpcode
from emu.units import NS

FRAMING = RoceFraming()
IPV6_BYTES, IPV4_BYTES, ETHERNET_BYTES = 40, 20, 14
ETHERTYPE_IPV6 = b"\x86\xdd"
MTU_BYTES = 1024  # the path MTU of all these captures: the length of their First and Middle packets
ALL = Access.LOCAL_WRITE | Access.REMOTE_WRITE | Access.REMOTE_READ | Access.REMOTE_ATOMIC


class Seen(NamedTuple):
    """One captured frame."""

    number: int  # from 1, as analysers count
    time_ps: int
    source: bytes  # its network address
    frame: Frame
    wire: bytes  # BTH to padding

    @property
    def is_answer(self) -> bool:
        """Whether a responder of a reliable connection sent it."""
        return self.frame.opcode == opcodes.ACKNOWLEDGE or self.frame.opcode in opcodes.RESPONSES

    @property
    def place(self) -> int:
        """The bits of emu.transport.place, of any transport."""
        return PLACE[self.frame.opcode & opcodes.OPERATION_MASK]


@dataclass
class Work:
    """One work request that captured frames imply: `payload` as far as it was captured."""

    opcode: WROpcode
    first: int  # unwrapped PSN
    packets: int
    size_bytes: int
    addr: int = 0
    rkey: int = 0
    payload: bytes = b""
    imm_data: int = 0
    compare_add: int = 0
    swap: int = 0
    solicited: bool = False
    is_whole: bool = True  # whether its last packet was captured

    def wqe(self, number: int, sink: bytearray) -> SendWqe:
        """It, as it would be posted; `sink` gets what it fetches."""
        return SendWqe(
            Message(None, number, self.size_bytes, 0),
            number,
            self.payload,
            self.addr,
            self.rkey,
            opcode=self.opcode,
            sink=Scatter([memoryview(sink)]),
            imm_data=self.imm_data,
            compare_add=self.compare_add,
            swap=self.swap,
            flags=SendFlags.SOLICITED if self.solicited else SendFlags.NONE,
        )


class Direction:
    """One requester, and the responder that answers it: `seen` has the frames of both, in captured order."""

    def __init__(self, source: bytes, seen: list[Seen]) -> None:
        self.source = source
        self.seen = seen
        self.requests = [each for each in seen if not each.is_answer]
        self.answers = [each for each in seen if each.is_answer]
        self.first_psn = self.requests[0].frame.psn
        numbers = {expand(each.frame.psn, self.first_psn): each for each in self.requests}
        self.works = list(_works(dict(sorted(numbers.items()))))

    def name(self) -> str:
        """Its transport and the queue pair it asks."""
        frame = self.requests[0].frame
        return f"{opcodes.NAMES[frame.opcode][:2]} {frame.envelope.destination_qp:#x}"


def directions(path: Path) -> list[Direction]:
    """Every requester of a capture. What is asked on one connection's queue pair is answered by its own peer."""
    groups: dict[tuple[int, bytes, int], list[Seen]] = {}
    for seen in frames(path):
        transport = seen.frame.opcode & opcodes.TRANSPORT_MASK
        asks_of = seen.source if not seen.is_answer else b"".join(_others(seen, groups))
        queue_pair = seen.frame.envelope.destination_qp  # both ends of these connections have the same number
        groups.setdefault((transport, asks_of, queue_pair), []).append(seen)
    return [Direction(source, seen) for (_, source, _), seen in groups.items()]


def _others(answer: Seen, groups: dict[tuple[int, bytes, int], list[Seen]]) -> Iterator[bytes]:
    qp = answer.frame.envelope.destination_qp
    for transport, source, number in groups:
        if transport == opcodes.RC and number == qp and source != answer.source:
            yield source


def frames(path: Path) -> Iterator[Seen]:
    """Every RoCEv2 frame of a capture, over IPv4 or IPv6; their ICRCs are tested with the framing."""
    for number, record in enumerate(read(path), 1):
        data = record.data
        is_v6 = data[12:14] == ETHERTYPE_IPV6
        begin = BTH_OFFSET + (IPV6_BYTES - IPV4_BYTES if is_v6 else 0)
        source = data[22:38] if is_v6 else data[26:30]
        # Our framing reads IPv4 only; behind IPv6 the same headers follow.
        frame = bth.unpack(data, begin, len(data), _envelope) if is_v6 else FRAMING.decode(data)
        yield Seen(number, record.time_ns * NS, source, frame, transport_bytes(data[begin:]))


def transport_bytes(data: bytes) -> bytes:
    """BTH to padding with its M bit cleared, of what begins at BTH and ends with an ICRC: all a peer looks at."""
    return data[:1] + bytes([data[1] & ~bth.MIGRATED]) + data[2:-ICRC_BYTES]


def encoded(frame: Frame) -> bytes:
    """The same of a frame of ours."""
    return transport_bytes(FRAMING.encode(frame)[BTH_OFFSET:])


def _envelope(pkey: int, destination_qp: int) -> Envelope:
    return Envelope(
        FRAMING,
        source=0,
        destination=0,
        source_mac=0,
        destination_mac=0,
        destination_qp=destination_qp,
        pkey=pkey,
    )


def _works(numbers: dict[int, Seen]) -> Iterator[Work]:
    """The work requests, from each first packet on to its last."""
    work: Work | None = None
    for number, seen in numbers.items():
        place, frame = seen.place, seen.frame
        if place & STARTS:
            if work is not None:
                yield _cut_short(work)
            work = _begun(seen, number)
        assert work is not None, f"frame {seen.number} begins nothing"
        work.payload += bytes(frame.payload)
        if not place & (READ | ATOMIC):
            work.packets = number + 1 - work.first
        if place & ENDS:
            _end(work, seen)
            yield work
            work = None
    if work is not None:
        yield _cut_short(work)


def _begun(seen: Seen, number: int) -> Work:
    place, frame = seen.place, seen.frame
    if place & ATOMIC:
        assert frame.extension is not None
        addr, rkey, operand, compare = frame.extension
        swaps = frame.opcode == opcodes.COMPARE_SWAP
        opcode = WROpcode.ATOMIC_CMP_AND_SWP if swaps else WROpcode.ATOMIC_FETCH_AND_ADD
        compare_add, swap = (compare, operand) if swaps else (operand, 0)
        return Work(opcode, number, 1, ATOMIC_BYTES, addr, rkey, compare_add=compare_add, swap=swap)
    if place & SENDS:
        return Work(WROpcode.SEND, number, 1, 0)
    assert frame.reth is not None
    addr, rkey, size = frame.reth
    opcode = WROpcode.RDMA_READ if place & READ else WROpcode.RDMA_WRITE
    return Work(opcode, number, max(1, -(-size // MTU_BYTES)) if place & READ else 1, size, addr, rkey)


def _end(work: Work, seen: Seen) -> None:
    place, frame = seen.place, seen.frame
    work.solicited = frame.solicited
    if place & (HAS_IMMEDIATE | INVALIDATES):
        assert frame.extension is not None
        work.imm_data = frame.extension[-1]
        if place & SENDS:
            work.opcode = WROpcode.SEND_WITH_IMM if place & HAS_IMMEDIATE else WROpcode.SEND_WITH_INV
        else:
            work.opcode = WROpcode.RDMA_WRITE_WITH_IMM
    if work.opcode is not WROpcode.RDMA_READ and not place & ATOMIC:
        if not place & SENDS:
            assert len(work.payload) == work.size_bytes, f"frame {seen.number}: a WRITE of another length"
        work.size_bytes = len(work.payload)


def _cut_short(work: Work) -> Work:
    """Its rest was never sent: what it says it is long, or a byte more than was seen."""
    work.is_whole = False
    work.size_bytes = work.size_bytes or len(work.payload) + 1
    work.payload = work.payload.ljust(work.size_bytes, b"\0")
    work.packets = -(-work.size_bytes // MTU_BYTES)
    return work


class KnownMemory(MemoryTable):
    """Memory whose keys and addresses are given."""

    def place(self, key: int, addr: int, length: int) -> MemoryRegion:
        """Register `length` zero bytes there, with all rights."""
        region = MemoryRegion(bytearray(length), addr, key, ALL)
        self._regions[key] = region
        return region


class Rooms:
    """The regions that a direction's messages reach into, by key: from their lowest to their highest byte."""

    def __init__(self, memory: KnownMemory, works: list[Work], ends_at: int | None = None) -> None:
        """`ends_at`: where they end in truth."""
        self._regions: dict[int, MemoryRegion] = {}
        for key in {work.rkey for work in works if work.rkey}:
            own = [work for work in works if work.rkey == key]
            addr = min(work.addr for work in own)
            end = max(work.addr + work.size_bytes for work in own)
            self._regions[key] = memory.place(key, addr, min(end, ends_at or end) - addr)

    def put(self, work: Work, data: Buffer) -> None:
        """The application writes what a message reads."""
        self._regions[work.rkey].slice(work.addr, len(data))[:] = data

    def get(self, work: Work) -> bytes:
        """What is there now."""
        return bytes(self._regions[work.rkey].slice(work.addr, work.size_bytes))

    def is_untouched(self) -> bool:
        """Whether all of it is zero still."""
        return not any(any(region.buffer) for region in self._regions.values())


def fetched(direction: Direction, work: Work) -> bytes:
    """What captured responses brought back for a READ (or an atomic, as it lies in memory)."""
    parts = {}
    for seen in direction.answers:
        number = expand(seen.frame.psn, work.first)
        if seen.frame.opcode in opcodes.RESPONSES and work.first <= number < work.first + work.packets:
            extension = seen.frame.extension
            is_atomic = seen.frame.opcode == opcodes.ATOMIC_ACKNOWLEDGE
            assert bool(extension) == is_atomic
            parts[number] = extension[0].to_bytes(8, "little") if extension else bytes(seen.frame.payload)
    return b"".join(parts[number] for number in sorted(parts))
