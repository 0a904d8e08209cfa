"""What a kind of traffic says of its messages and queue pairs."""

from __future__ import annotations

from typing import Annotated, Literal

from emu.scenario.field import choice, whole

Count = Annotated[int, *whole(1, 10**9)]
QueuePairs = Annotated[int, *whole(1, 65_536)]
Depth = Annotated[int, *whole(1, 32_768, "mlx5's longest send queue")]
OPS = ("write", "read", "send", "write_imm", "fetch_add", "cmp_swp")
ATOMIC_OPS, ATOMIC_BYTES = ("fetch_add", "cmp_swp"), 8
Op = Annotated[Literal["write", "read", "send", "write_imm", "fetch_add", "cmp_swp"], *choice(*OPS)]
SETUPS = ("direct", "cm")
Setup = Annotated[Literal["direct", "cm"], *choice(*SETUPS)]  # connected before the run, or in it, over QP1
Priority = Annotated[int, *whole(0, 15)]  # what of it the framing allows, traffic_check.py says
