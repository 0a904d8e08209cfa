"""Captured TLPs: what the packet says, and what mlx5 means by its data."""

from __future__ import annotations

from dataclasses import replace

from emu.framing.dissection import Dissection
from emu.mlx5.dissect import meaning
from emu.pcie.dissect import dissect


def told(frame: Dissection, *, cut: bool) -> Dissection:
    """The Dissection of a TLP, told as such: of no TLP that we know only why not."""
    seen = dissect(frame.payload, cut=cut)
    header = seen.header
    if header is None:
        return replace(frame, payload=b"", info=seen.line)
    means = meaning(seen.data, writes=header.kind == "MWr") if len(seen.data) == header.length else ""
    return replace(
        frame,
        source=header.completer or header.requester,
        destination=header.requester if header.completer else "",
        headers={"tlp": header},
        payload=seen.data,
        info=f"{seen.line}: {means}" if means else seen.line,
    )
