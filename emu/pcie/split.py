"""Where long transfers are cut into packets (PCI Express Base Specification 5.0, 2.2.7 and 2.3.1.1).

A request carries or asks for its limit at most (MPS for writes, MRRS for reads), and never crosses 4 KB. It begins
where the one before ended: cutting at multiples of the limit instead would be allowed too, and takes as many or more.
All limits are on whole DWs: bytes before the first in its DW, which are not meant, count.
"""

from __future__ import annotations

from emu.errors import ScenarioError
from emu.pcie.layout import DW_BYTES, PAGE_BYTES

SIZES_BYTES = (128, 256, 512, 1024, 2048, 4096)  # 7.5.3.4: what MPS and MRRS may be
RCB_CHOICES_BYTES = (64, 128)  # 7.5.3.7: what a root port may say; all others complete at 128

Piece = tuple[int, int]
"""The address of its first byte and its length, in bytes."""


def request_length(address: int, left_bytes: int, limit_bytes: int) -> int:
    """How many of the `left_bytes` at `address` the next request takes."""
    return min(left_bytes, limit_bytes - address % DW_BYTES, PAGE_BYTES - address % PAGE_BYTES)


def request_pieces(address: int, length_bytes: int, limit_bytes: int) -> list[Piece]:
    """The requests that a transfer is made of: writes with MPS as the limit, reads with MRRS. None for no bytes."""
    pieces = []
    end = address + length_bytes
    while address < end:
        piece_bytes = request_length(address, end - address, limit_bytes)
        pieces.append((address, piece_bytes))
        address += piece_bytes
    return pieces


def completion_pieces(address: int, length_bytes: int, mps_bytes: int, rcb_bytes: int) -> list[Piece]:
    """The completions that one read is answered with.

    All but the last end at a multiple of the read completion boundary, and each is as long as MPS and that allow: the
    first one up to the last boundary within MPS, the others MPS.
    """
    pieces = []
    end = address + length_bytes
    while address < end:
        piece_end = address - address % DW_BYTES + mps_bytes
        piece_end = end if piece_end >= end else piece_end - piece_end % rcb_bytes
        pieces.append((address, piece_end - address))
        address = piece_end
    return pieces


def check_sizes(*, mps_bytes: int = 128, mrrs_bytes: int = 128, rcb_bytes: int = 64) -> None:
    """Raises ScenarioError for a size that the specification has no code for."""
    for name, value, choices in (
        ("MPS", mps_bytes, SIZES_BYTES),
        ("MRRS", mrrs_bytes, SIZES_BYTES),
        ("RCB", rcb_bytes, RCB_CHOICES_BYTES),
    ):
        if value not in choices:
            raise ScenarioError(f"{name} of {value} bytes: it is one of {', '.join(map(str, choices))}")
