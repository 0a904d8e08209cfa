"""A memory as others on the bus see it: host memory behind the root complex, or a GPU's behind its BAR."""

from __future__ import annotations

from collections.abc import Callable

from emu.errors import ScenarioError
from emu.host.address_space import AddressSpace
from emu.host.link import FarEnd, PcieLink
from emu.pcie.framing import completion
from emu.pcie.layout import DW_BYTES
from emu.pcie.split import check_sizes, completion_pieces
from emu.pcie.tlp import Tlp, TlpKind

MWR, MRD = TlpKind.MWR, TlpKind.MRD


class Memory:
    """An endpoint that takes writes as they arrive, and answers reads with what it holds when their data is ready.

    Of one requester, a read sees all writes sent before it, and may see some that were sent after it: writes may pass
    reads (PCI Express Base Specification 5.0, 2.4.1).
    """

    __slots__ = (
        "_watchers",
        "completer",
        "egress",
        "mps_bytes",
        "name",
        "rcb_bytes",
        "read_ps",
        "reads",
        "received",
        "space",
        "unexpected",
        "unsupported",
        "writes",
    )

    def __init__(
        self,
        name: str,
        space: AddressSpace,
        egress: PcieLink,
        *,
        completer: int,
        mps_bytes: int,
        rcb_bytes: int = 64,
        read_ps: int = 0,
    ) -> None:
        check_sizes(mps_bytes=mps_bytes, rcb_bytes=rcb_bytes)
        self.name = name
        self.space = space
        self.egress = egress  # completions leave by it
        self.completer = completer  # its own bus, device and function
        self.mps_bytes = mps_bytes
        self.rcb_bytes = rcb_bytes
        self.read_ps = read_ps  # from a read's last bit in to its data being there; any number at a time
        self.received = 0
        self.writes = 0
        self.reads = 0
        self.unsupported = 0  # of writes and reads, those of bytes that are not here
        self.unexpected = 0  # completions: a memory asks nothing (2.3.2: dropped)
        self._watchers: dict[int, Callable[[Tlp], object]] = {}

    def far_end(self) -> FarEnd:
        """What the link to it is joined to."""
        return FarEnd(self.receive, read_ps=self.read_ps)

    def watch(self, address: int, action: Callable[[Tlp], object]) -> None:
        """Call `action` after each write that begins at exactly this address, its bytes being there.

        Raises ScenarioError if someone watches it already.
        """
        if address in self._watchers:
            raise ScenarioError(f"{self.name}: {address:#x} is watched already")
        self._watchers[address] = action

    def unwatch(self, address: int) -> None:
        """Nobody needs to know any more."""
        self._watchers.pop(address, None)

    def receive(self, tlp: Tlp) -> None:
        """A packet is here; a read's data is ready."""
        self.received += 1
        if tlp.kind is MWR:
            self.writes += 1
            if not self.space.write(tlp.address, tlp.payload):
                self.unsupported += 1
                return
            if self._watchers:
                action = self._watchers.get(tlp.address)
                if action is not None:
                    action(tlp)
            if tlp.note is not None:
                tlp.note.arrived(tlp)
        elif tlp.kind is MRD:
            self._answer(tlp)
        else:
            self.unexpected += 1

    def _answer(self, read: Tlp) -> None:
        self.reads += 1
        length_bytes = read.length
        data = self.space.read(read.address, length_bytes)
        if data is None:
            # The answer to an unsupported request is a completion without data (2.3.1), of which a host's software
            # sees a read of all ones. That is what we send, so that no requester waits for ever.
            self.unsupported += 1
            data = b"\xff" * length_bytes
        if read.address % DW_BYTES + length_bytes <= self.mps_bytes:
            self.egress.send(completion(read, 0, data, self.completer))
            return
        for address, piece_bytes in completion_pieces(read.address, length_bytes, self.mps_bytes, self.rcb_bytes):
            offset = address - read.address
            self.egress.send(completion(read, offset, data[offset : offset + piece_bytes], self.completer))
