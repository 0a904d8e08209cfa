"""TLPs of every kind, for tests: what hypothesis draws, and what bytes carry of one."""

from __future__ import annotations

from hypothesis import strategies as st

from emu.pcie.framing import completion, memory_read, memory_write
from emu.pcie.tlp import Tlp, TlpKind
from tests.framing.scapy_headers import bits

CARRIED = ("kind", "length", "requester", "completer", "tag", "remaining", "wire_bytes")


def said(tlp: Tlp) -> tuple[object, ...]:
    """All that its bytes carry, of a completion's address 7 bits."""
    address = tlp.address & 0x7F if tlp.kind is TlpKind.CPLD else tlp.address
    return (*(getattr(tlp, name) for name in CARRIED), address, bytes(tlp.payload))


@st.composite
def extents(draw: st.DrawFn) -> tuple[int, int]:
    """Address and length within 4 KiB; of no bytes only at a whole DW."""
    page = draw(st.one_of(bits(20), bits(52))) << 12
    start = draw(st.one_of(bits(12), st.integers(0, 8)))
    length = draw(st.integers(0, min(4096 - start, draw(st.sampled_from([9, 70, 4096])))))
    return page + (start if length else start & ~3), length


@st.composite
def tlps(draw: st.DrawFn) -> Tlp:
    kind = draw(st.sampled_from(TlpKind))
    address, length = draw(extents())
    requester, tag = draw(bits(16)), draw(bits(10))
    data = draw(st.binary(min_size=length, max_size=length)) if length < 100 else bytes(range(256)) * 16
    data = data[:length]
    if kind is TlpKind.MWR:
        write = memory_write(address, data, requester)
        write.tag = tag
        return write
    read = memory_read(address, length, requester, tag)
    if kind is TlpKind.MRD:
        return read
    begin = draw(st.integers(0, max(0, length - 1)))
    end = draw(st.integers(begin, length))
    end -= (address + end) & 3
    return completion(read, begin, data[begin : end if end > begin else length], draw(bits(16)))
