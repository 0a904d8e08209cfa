"""Fields of the headers after BTH as Scapy's layers call them, and how wide they are."""

from __future__ import annotations

from hypothesis import strategies as st

# Of the headers whose fields a Frame keeps in `extension`, in wire order.
SCAPY_FIELDS: dict[str, tuple[str, ...]] = {
    "ImmDt": ("imm",),
    "IETH": ("rkey",),
    "AtomicETH": ("va", "rkey", "swap_or_add", "compare"),
    "AtomicAckETH": ("original",),
    "DETH": ("qkey", "sqpn"),
    "RDETH": ("eecn",),
    "XRCETH": ("srqn",),
    "FETH": ("selectivity", "placement"),
}
_BITS = {"va": 64, "swap_or_add": 64, "compare": 64, "original": 64, "sqpn": 24, "eecn": 24, "srqn": 24} | {
    "syndrome": 8,
    "msn": 24,
    "selectivity": 2,
    "placement": 4,
}


def bits_of(field: str) -> int:
    """How wide a field is."""
    return _BITS.get(field, 32)


def bits(count: int) -> st.SearchStrategy[int]:
    return st.integers(0, (1 << count) - 1)
