"""Any WQE and CQE that may exist, for hypothesis."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hypothesis import strategies as st

from emu.mlx5.cqe import ERRORS, Cqe, CqeOpcode, Syndrome
from emu.mlx5.segments import ATOMICS, MASKED, MAY_INLINE, MODELED, WITH_REMOTE
from emu.mlx5.wqe import Fence, Wqe, WqeOpcode
from tests.framing.scapy_headers import bits

PIECES = st.lists(st.tuples(st.integers(1, 1 << 31), bits(32), bits(64)), max_size=20).map(tuple)


@st.composite
def wqes(draw: st.DrawFn) -> Wqe:
    opcode = draw(st.sampled_from(sorted(MODELED)))
    wqe = Wqe(opcode, draw(bits(16)), draw(bits(24)), imm=draw(bits(32)), fence=draw(st.sampled_from(Fence)))
    wqe.signaled, wqe.solicited = draw(st.booleans()), draw(st.booleans())
    if opcode is not WqeOpcode.NOP:
        wqe.data = draw(PIECES)
    if opcode in MAY_INLINE and draw(st.booleans()):
        wqe.data, wqe.inline = (), draw(st.binary(min_size=1, max_size=300))
    if opcode in WITH_REMOTE:
        wqe.remote_addr, wqe.rkey = draw(bits(64)), draw(bits(32))
    if opcode in ATOMICS:
        wqe.operand_bytes = draw(st.sampled_from([4, 8])) if opcode in MASKED else 8
        operand = bits(wqe.operand_bytes * 8)
        wqe.swap_add = draw(operand)
        if opcode is not WqeOpcode.ATOMIC_MASKED_FA:
            wqe.compare = draw(operand)
    if opcode in MASKED:
        wqe.swap_mask = draw(operand)
        if opcode is WqeOpcode.ATOMIC_MASKED_CS:
            wqe.compare_mask = draw(operand)
    return wqe


@st.composite
def cqes(draw: st.DrawFn) -> Cqe:
    widths = {"wqe_counter": 16, "qp_num": 24, "owner": 1, "send_opcode": 8, "srqn": 32}
    opcode = draw(st.sampled_from(CqeOpcode))
    if opcode in ERRORS:
        widths |= {"vendor_syndrome": 8}
    else:
        widths |= {"byte_count": 32, "imm": 32, "remote_qp": 24, "timestamp": 64}
    numbers: dict[str, Any] = {name: draw(bits(width)) for name, width in widths.items()}
    cqe = Cqe(opcode, **numbers, solicited=draw(st.booleans()))
    if opcode in ERRORS:
        cqe.syndrome = draw(st.sampled_from([syndrome for syndrome in Syndrome if syndrome]))
    assert len(fields(cqe)) == 13  # each is drawn above
    return cqe
