"""A transaction layer packet, as PCIe devices pass it (PCI Express Base Specification 5.0, 2.2)."""

from __future__ import annotations

from enum import Enum
from typing import Any

from emu.frame import Buffer, Envelope, Frame

TAGS_LIMIT = 1024  # 10-bit tags


class TlpKind(Enum):
    """The three kinds that carry everything here: writes are posted, each read brings completions with data."""

    MWR = "MWr"
    MRD = "MRd"
    CPLD = "CplD"


class Tlp(Frame):
    """One packet on a PCIe link. Lengths and addresses are in bytes; headers and byte enables follow from them."""

    __slots__ = ("address", "completer", "kind", "length", "note", "remaining", "requester", "tag")

    def __init__(
        self,
        envelope: Envelope,
        kind: TlpKind,
        *,
        address: int,
        length: int,
        wire_bytes: int,
        requester: int,
        completer: int = 0,
        tag: int = 0,
        remaining: int = 0,
        payload: Buffer = b"",
        note: Any = None,
    ) -> None:
        self.envelope = envelope  # of all TLPs: its framing is emu/pcie/framing.py's
        self.kind = kind
        self.address = address  # of its first byte; of a completion: of the byte of memory that it begins with
        self.length = length  # of its data; of a read: of the data that it asks for
        self.requester = requester  # bus, device and function of who asked: completions are routed by it
        self.completer = completer  # of who completes
        self.tag = tag  # of a read, and of its completions
        self.remaining = remaining  # of a completion: bytes of the read still owed, its own included
        self.payload = payload
        self.note = note  # the model's own, on no wire: whose it is, what for
        self.wire_bytes = wire_bytes
        self.message = None
        self.carries_data = False
        self.bad = False
        self.data = None
        self.ser_ps = self.hop = self.parts = self.eligible_ps = self.waits_mark = 0
        self.ingress = None
