"""Lines that tell people what a captured frame says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from emu.framing.control import FCP_INITIALISE, FCP_NORMAL, PRIORITIES
from emu.opcodes import HAS_PAYLOAD


def transport_line(opcode: int, found: Mapping[str, Any], payload_bytes: int) -> str:
    """`RC RDMA Write Only QP 0x12 PSN 5, 14 B to 0x7f0011223344`; `found` has the fields of a Dissection."""
    name = found["opcode_name"]
    line = f"{name} QP 0x{found['destination_qp']:x} PSN {found['psn']}"
    headers = found["headers"]
    parts = [say(*headers[header]) for header, say in _SAY.items() if header in headers]
    if "reth" in headers:
        way = "from" if "Read" in name else "to"
        parts.insert(0, f"{headers['reth'].dma_length} B {way} 0x{headers['reth'].va:x}")
    elif HAS_PAYLOAD[opcode]:
        parts.insert(0, f"{payload_bytes} B")
    return ", ".join([line, *parts])


def pfc_line(enabled: int, quanta: tuple[int, ...]) -> str:
    """`PFC priority 3: 65535 quanta, priority 4: go on`."""
    parts = [
        f"priority {priority}: {_quanta(quanta[priority])}" for priority in range(PRIORITIES) if enabled >> priority & 1
    ]
    return "PFC " + (", ".join(parts) or "for no priority")


def pause_line(quanta: int) -> str:
    """`PAUSE 65535 quanta`."""
    return f"PAUSE {_quanta(quanta)}"


def fcp_line(op: int, vl: int, fctbs: int, fccl: int) -> str:
    """`FCP VL 0 FCTBS 291 FCCL 1110`."""
    kind = {FCP_NORMAL: "FCP", FCP_INITIALISE: "FCP initialise"}.get(op, f"FCP of reserved op {op}")
    return f"{kind} VL {vl} FCTBS {fctbs} FCCL {fccl}"


def _quanta(quanta: int) -> str:
    return f"{quanta} quanta" if quanta else "go on"


def nak_text(syndrome: int) -> str:
    """`remote access error` of a NAK's syndrome."""
    code = syndrome & 0x1F
    return _NAKS.get(code, f"code {code}")


def _say_aeth(syndrome: int, msn: int) -> str:
    kind, value = syndrome >> 5, syndrome & 0x1F
    said = {0: "ACK", 1: f"RNR NAK timer {value}", 3: f"NAK {nak_text(syndrome)}"}
    return f"{said.get(kind, f'syndrome 0x{syndrome:02x}')} MSN {msn}"


_NAKS = {
    0: "PSN sequence error",
    1: "invalid request",
    2: "remote access error",
    3: "remote operational error",
    4: "invalid RD request",
}
_SAY: dict[str, Callable[..., str]] = {
    "aeth": _say_aeth,
    "immdt": lambda immediate: f"immediate 0x{immediate:08x}",
    "ieth": lambda rkey: f"invalidates 0x{rkey:x}",
    "atomiceth": lambda va, rkey, swap_or_add, compare: f"0x{swap_or_add:x} at 0x{va:x}",
    "atomicacketh": lambda original: f"was 0x{original:x}",
    "deth": lambda qkey, source_qp: f"from QP 0x{source_qp:x}",
    "xrceth": lambda srq: f"SRQ 0x{srq:x}",
}
