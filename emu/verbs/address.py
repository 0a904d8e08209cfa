"""Address handles: where datagrams go."""

from __future__ import annotations

from dataclasses import dataclass

from emu.addresses import Address


@dataclass(frozen=True, slots=True, kw_only=True)
class AH:
    """`ibv_create_ah`: a host's port, and the SL or 802.1p priority to go there with (None: the fabric's)."""

    address: Address
    priority: int | None = None
