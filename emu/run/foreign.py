"""The door for frames that nobody in the model sent: `--accept-foreign` takes them in at the present instant."""

from __future__ import annotations

from functools import partial

from emu.devices.port import Port
from emu.fabric import Fabric
from emu.frame import ControlFrame, Frame


class ForeignDoor:
    """Counts what it lets in, for the books; what comes of it depends on wall time, so the run is not repeatable."""

    def __init__(self, fabric: Fabric) -> None:
        self.frames = 0
        self.bytes = 0
        self._wires = fabric.wires
        for _, port in fabric.links.values():
            if port.wire is not None:
                port.wire.on_foreign = partial(self._take_in, port)

    def poll(self) -> None:
        """Look at wires on which nothing of ours is in flight."""
        for wire in self._wires:
            wire.poll()

    def _take_in(self, port: Port, frame: Frame) -> None:
        if not isinstance(frame, ControlFrame):
            self.frames += 1
            self.bytes += frame.wire_bytes
        port.take_in(frame)
