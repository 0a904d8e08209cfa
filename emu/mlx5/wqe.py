"""Send WQEs to bytes and back, by struct: control, remote address, atomic, then data segments or inline data.

Left out: address vectors (UD, DC), signatures, and what neither sends nor fetches (UMR, TSO, DUMP, MMO...)."""

from __future__ import annotations

from dataclasses import dataclass
from struct import error

from emu.errors import InvariantBroken, WireError
from emu.frame import Buffer
from emu.mlx5.segments import (
    ATOMIC,
    ATOMICS,
    CE_ALWAYS,
    CONTROL,
    DATA,
    DATA_LIMIT_BYTES,
    DS_LIMIT,
    FENCE_SHIFT,
    FENCES,
    FLAGS,
    INLINE,
    INLINE_FLAG,
    MASKED,
    MASKED_4,
    MAY_INLINE,
    MODELED,
    NO_DATA,
    OPCODES,
    OPMOD_MASKED_4,
    OPMOD_MASKED_8,
    REMOTE,
    SEGMENT_BYTES,
    SOLICITED,
    WITH_REMOTE,
    WQEBB_BYTES,
    Fence,
    WqeOpcode,
    atomic_segments,
    blocks_of,
    inline_segments,
)

__all__ = ["WQEBB_BYTES", "Fence", "Wqe", "WqeOpcode", "blocks_of", "decode", "ds_of", "encode"]

_MASKED_8_MASKS_OFFSET = SEGMENT_BYTES
_OPERAND_BYTES = {OPMOD_MASKED_4: 4, OPMOD_MASKED_8: 8}


@dataclass(slots=True)
class Wqe:
    """One send work request as the NIC reads it; lengths in bytes.

    `data`: (byte count 1 to 2 GiB, lkey, address) of each piece of memory. A message of no bytes has none, nor inline
    data. Masked atomics have operands of 4 or 8 bytes; `compare_mask` is compare-and-swap's, and so is `swap_mask`, in
    whose place fetch-and-add has its field boundary."""

    opcode: WqeOpcode
    index: int  # low 16 bits of the WQEBB it begins in
    qp_num: int
    data: tuple[tuple[int, int, int], ...] = ()
    inline: bytes | None = None
    remote_addr: int = 0
    rkey: int = 0
    imm: int = 0  # or the key to invalidate
    signaled: bool = False
    solicited: bool = False
    fence: Fence = Fence.NONE
    swap_add: int = 0
    compare: int = 0
    swap_mask: int = 0
    compare_mask: int = 0
    operand_bytes: int = 8

    @property
    def length(self) -> int:
        """Bytes of memory, or inline, that it names."""
        if self.inline is not None:
            return len(self.inline)
        return sum([piece[0] for piece in self.data])


def ds_of(wqe: Wqe) -> int:
    """Its segments of 16 bytes, the control segment included."""
    opcode = wqe.opcode
    ds = 1 + len(wqe.data)
    if wqe.inline is not None:
        ds += inline_segments(len(wqe.inline))
    if opcode in WITH_REMOTE:
        ds += 1
        if opcode in ATOMICS:
            ds += atomic_segments(opcode, wqe.operand_bytes)
    return ds


def encode(wqe: Wqe) -> bytes:
    """Whole WQEBBs. Raises InvariantBroken for what has no room in its field, or does not go with the opcode."""
    opcode = wqe.opcode
    ds = ds_of(wqe)
    _check(wqe, ds)
    flags = wqe.fence << FENCE_SHIFT | (CE_ALWAYS if wqe.signaled else 0) | (SOLICITED if wqe.solicited else 0)
    opmod = 0 if opcode not in MASKED else OPMOD_MASKED_4 if wqe.operand_bytes == 4 else OPMOD_MASKED_8
    try:
        parts = [CONTROL.pack(opmod, wqe.index, opcode, wqe.qp_num << 8 | ds, 0, 0, flags, wqe.imm)]
        if opcode in WITH_REMOTE:
            parts.append(REMOTE.pack(wqe.remote_addr, wqe.rkey, 0))
            if opcode in ATOMICS:
                parts.append(_operands(wqe))
        for byte_count, lkey, address in wqe.data:
            parts.append(DATA.pack(byte_count & ~DATA_LIMIT_BYTES, lkey, address))
    except error as reason:
        raise InvariantBroken(f"a number has no room in its field of a WQE: {reason}") from None
    if wqe.inline:
        parts.append(INLINE.pack(len(wqe.inline) | INLINE_FLAG))
        parts.append(wqe.inline)
    return b"".join(parts).ljust(blocks_of(ds) * WQEBB_BYTES, b"\0")


def decode(block: Buffer) -> Wqe:
    """The WQE that begins there; bytes after its segments are nobody's. Raises WireError."""
    if len(block) < CONTROL.size:
        raise WireError(f"{len(block)} B are no control segment")
    opmod, index, code, qpn_ds, signature, stream, flags, imm = CONTROL.unpack_from(block)
    ds = qpn_ds & 0xFF
    opcode = OPCODES.get(code)
    if opcode is None:
        raise WireError(f"WQE opcode 0x{code:02x} is unknown")
    if opcode not in MODELED:
        raise WireError(f"WQE opcode {opcode.name} (0x{code:02x}) is not modeled")
    if not 0 < ds < DS_LIMIT:
        raise WireError(f"DS {ds} of a WQE: it has 1 to {DS_LIMIT - 1} segments")
    end = ds * SEGMENT_BYTES
    if end > len(block):
        raise WireError(f"DS {ds} exceeds the block: {end} B of {len(block)}")
    fence = FENCES.get(flags >> FENCE_SHIFT)
    if signature or stream or flags & ~FLAGS or fence is None:
        raise WireError(f"a WQE's signature 0x{signature:02x}, stream {stream} or flags 0x{flags:02x} are not modeled")
    wqe = Wqe(opcode, index, qpn_ds >> 8, imm=imm)
    wqe.signaled, wqe.solicited, wqe.fence = flags & CE_ALWAYS != 0, flags & SOLICITED != 0, fence
    start = CONTROL.size
    if opcode in MASKED:
        if opmod not in _OPERAND_BYTES:
            raise WireError(f"opmod 0x{opmod:02x} of {opcode.name}: 0x08 (4 B) and 0x09 (8 B) are known")
        wqe.operand_bytes = _OPERAND_BYTES[opmod]
    elif opmod:
        raise WireError(f"opmod 0x{opmod:02x} of {opcode.name}: it has none")
    if opcode in WITH_REMOTE:
        start = _read_remote(wqe, block, ds)
    _read_data(wqe, block, start, end)
    return wqe


def _check(wqe: Wqe, ds: int) -> None:
    """Raise InvariantBroken unless its parts go together."""
    opcode = wqe.opcode
    if opcode not in MODELED:
        raise InvariantBroken(f"no WQE of {opcode.name} is encoded here")
    if ds >= DS_LIMIT:
        raise InvariantBroken(f"a WQE of {ds} segments: at most {DS_LIMIT - 1}")
    if wqe.inline is not None and (wqe.data or opcode not in MAY_INLINE):
        raise InvariantBroken(f"{opcode.name} may not have inline data, or has data segments too")
    if wqe.data and opcode in NO_DATA:
        raise InvariantBroken(f"{opcode.name} has no data")
    for byte_count, _, _ in wqe.data:
        if not 0 < byte_count <= DATA_LIMIT_BYTES:
            raise InvariantBroken(f"a data segment of {byte_count} B: 1 to {DATA_LIMIT_BYTES}")


def _operands(wqe: Wqe) -> bytes:
    """An atomic's segments after the remote address."""
    if wqe.opcode not in MASKED:
        return ATOMIC.pack(wqe.swap_add, wqe.compare)
    swaps = wqe.opcode is WqeOpcode.ATOMIC_MASKED_CS
    if wqe.operand_bytes == 4:
        fields = (wqe.compare, wqe.swap_mask, wqe.compare_mask) if swaps else (wqe.swap_mask, 0, 0)
        return MASKED_4.pack(wqe.swap_add, *fields)
    if not swaps:
        return ATOMIC.pack(wqe.swap_add, wqe.swap_mask)
    return ATOMIC.pack(wqe.swap_add, wqe.compare) + ATOMIC.pack(wqe.swap_mask, wqe.compare_mask)


def _read_remote(wqe: Wqe, block: Buffer, ds: int) -> int:
    """Read remote address and operands; where they end. Raises WireError."""
    opcode = wqe.opcode
    least = 2 + (atomic_segments(opcode, wqe.operand_bytes) if opcode in ATOMICS else 0)
    if ds < least:
        raise WireError(f"DS {ds} of {opcode.name}: it has at least {least} segments")
    wqe.remote_addr, wqe.rkey, _ = REMOTE.unpack_from(block, CONTROL.size)
    start = CONTROL.size + REMOTE.size
    if opcode not in ATOMICS:
        return start
    if opcode not in MASKED:
        wqe.swap_add, wqe.compare = ATOMIC.unpack_from(block, start)
    elif opcode is WqeOpcode.ATOMIC_MASKED_FA:
        layout = MASKED_4 if wqe.operand_bytes == 4 else ATOMIC
        wqe.swap_add, wqe.swap_mask, *_ = layout.unpack_from(block, start)
    elif wqe.operand_bytes == 4:
        wqe.swap_add, wqe.compare, wqe.swap_mask, wqe.compare_mask = MASKED_4.unpack_from(block, start)
    else:
        wqe.swap_add, wqe.compare = ATOMIC.unpack_from(block, start)
        wqe.swap_mask, wqe.compare_mask = ATOMIC.unpack_from(block, start + _MASKED_8_MASKS_OFFSET)
    return least * SEGMENT_BYTES


def _read_data(wqe: Wqe, block: Buffer, start: int, end: int) -> None:
    """Read what is left of the segments: one of inline data, or data segments. Raises WireError."""
    opcode = wqe.opcode
    if start == end:
        return
    if opcode in NO_DATA:
        raise WireError(f"DS {end // SEGMENT_BYTES} of {opcode.name}: it has no data")
    (byte_count,) = INLINE.unpack_from(block, start)
    if not byte_count & INLINE_FLAG:
        pieces = []
        for offset in range(start, end, DATA.size):
            byte_count, lkey, address = DATA.unpack_from(block, offset)
            if byte_count & INLINE_FLAG:
                raise WireError("inline data after a data segment is not modeled")
            pieces.append((byte_count or DATA_LIMIT_BYTES, lkey, address))
        wqe.data = tuple(pieces)
        return
    length = byte_count & ~INLINE_FLAG
    if opcode not in MAY_INLINE:
        raise WireError(f"{opcode.name} may not have inline data")
    if start + inline_segments(length) * SEGMENT_BYTES != end:
        raise WireError(f"{length} B of inline data do not fill DS {end // SEGMENT_BYTES} of {opcode.name}")
    start += INLINE.size
    wqe.inline = bytes(block[start : start + length])
