"""What attacks start from: whole frames of every kind, as bytes and, where they are RoCEv2 or native, as Frames."""

from __future__ import annotations

from functools import cache

from emu.errors import WireError
from emu.frame import Frame
from emu.framing.native import NativeFraming
from emu.framing.roce import RoceFraming
from tests.framing.mangle import seeds
from tests.golden_frames import captured
from tests.tree import ROOT

ROCE, NATIVE = RoceFraming(), NativeFraming(8)
CAPTURES = ROOT / "tests" / "data" / "captures"


@cache
def whole() -> tuple[bytes, ...]:
    """Made frames, and of each capture one of each opcode and length."""
    found = dict.fromkeys(seeds(None))
    for path in sorted(CAPTURES.glob("*.pcap")):
        kinds: dict[tuple[int, int], bytes] = {}
        for data in captured(path):
            kinds.setdefault((data[42] if len(data) > 42 else -1, len(data)), data)
        found.update(dict.fromkeys(kinds.values()))
    return tuple(found)


@cache
def known() -> tuple[Frame, ...]:
    """Those of them that a framing takes."""
    frames = []
    for data in whole():
        for framing in (ROCE, NATIVE):
            try:
                frames.append(framing.decode(data))
            except WireError:
                continue
    return tuple(frames)
