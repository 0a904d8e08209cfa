"""What a captured frame says, and the bytes it is read from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Network = Literal["rocev2", "rocev1", "native", "fcp", "pfc", "pause", "tlp", "other"]
Verdict = Literal["ok", "bad", "unchecked", "none"]
"""Of a check sum; `unchecked`: a snap length cut the frame; `none`: there is no such check sum."""

Header = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Dissection:
    """One captured frame. None: it does not say, or what would say it is cut off."""

    network: Network
    source: str = ""  # IPv4, IPv6, GID, LID or MAC address
    destination: str = ""
    source_port: int | None = None
    destination_port: int | None = None
    vlan: tuple[tuple[int, int], ...] = ()  # priority and VLAN identifier of each tag, the outer one first
    dscp: int | None = None
    ecn: int | None = None
    service_level: int | None = None
    virtual_lane: int | None = None
    opcode: int | None = None
    opcode_name: str = ""
    destination_qp: int | None = None
    psn: int | None = None
    ack_request: bool = False
    solicited: bool = False
    migreq: bool = False
    pad_bytes: int = 0
    pkey: int | None = None
    fecn: bool = False
    becn: bool = False
    headers: Mapping[str, Header] = field(default_factory=dict)
    """Named tuples of `emu.framing.extension` by lower-case name: reth, aeth, immdt, ..."""
    payload: bytes = b""  # without padding; of a frame cut short, what is there; of a TLP: the packet
    icrc: Verdict = "none"
    vcrc: Verdict = "none"  # of an FCP: its LPCRC
    frame_bytes: int = 0  # link header to ICRC or VCRC, on the wire; no FCS, no Ethernet padding
    problem: str = ""  # how the frame contradicts itself, if it does
    info: str = ""  # one line for people


@dataclass(slots=True)
class Subject:
    """The bytes of one frame while they are dissected, and the fields of its Dissection found so far."""

    data: bytes
    original_bytes: int
    found: dict[str, Any] = field(default_factory=dict)

    @property
    def cut(self) -> bool:
        """Whether a snap length cut the frame."""
        return self.original_bytes > len(self.data)

    def end(self, **more: Any) -> Dissection:
        """The Dissection; what is said here gives way to what was found."""
        return Dissection(**{**more, **self.found})

    def other(self, info: str) -> Dissection:
        """The Dissection of what is none of the networks we know."""
        return self.end(network="other", frame_bytes=self.original_bytes, info=info)
