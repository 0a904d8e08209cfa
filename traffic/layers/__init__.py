"""Scapy packet classes for RoCEv2, RoCEv1, native InfiniBand, link flow control and PCIe: each frame, bit by bit.

    Ether() / IP(src="10.0.0.1", dst="10.0.0.2") / UDP() / BTH(opcode=WRITE_ONLY) / RETH(dmalen=5) / Payload(b"hello")

builds a whole frame: padding, lengths and ICRC are filled in. Dissected, payload, padding and ICRC are layers.
WQEs, doorbells and CQEs, which TLPs carry, are in `traffic.layers.mlx5`."""

from traffic.layers.binding import bind
from traffic.layers.bth import BTH
from traffic.layers.extensions import (
    AETH,
    DETH,
    FETH,
    IETH,
    RDETH,
    RETH,
    XRCETH,
    AtomicAckETH,
    AtomicETH,
    CNPReserved,
    ImmDt,
)
from traffic.layers.flow_control import FCP, PFC, LinkControl, MACControl, Pause
from traffic.layers.infiniband import GRH, LRH
from traffic.layers.pcie import TLP, CplD, MRd32, MRd64, MWr32, MWr64
from traffic.layers.trailer import ICRC, VCRC, Pad, Payload

__all__ = [
    "AETH",
    "BTH",
    "DETH",
    "FCP",
    "FETH",
    "GRH",
    "ICRC",
    "IETH",
    "LRH",
    "PFC",
    "RDETH",
    "RETH",
    "TLP",
    "VCRC",
    "XRCETH",
    "AtomicAckETH",
    "AtomicETH",
    "CNPReserved",
    "CplD",
    "ImmDt",
    "LinkControl",
    "MACControl",
    "MRd32",
    "MRd64",
    "MWr32",
    "MWr64",
    "Pad",
    "Pause",
    "Payload",
]

bind()
