"""Links that come up while their first flow-control packets are lost: credits come with the next refresh."""

from __future__ import annotations

import pytest

from emu.frame import ControlFrame, Frame
from emu.run import conservation
from emu.run.assembly import Assembly
from emu.scenario.load import load
from emu.topology import reverse_name
from emu.wire.memory import MemoryWire

REFRESH_PS = 5_243_000


class Deaf(MemoryWire):
    """Refuses its first frames of the link's own."""

    def __init__(self, name: str, refused: int) -> None:
        super().__init__(name)
        self._refused = refused

    def send(self, frame: Frame) -> bool:
        """Whether it went."""
        if isinstance(frame, ControlFrame) and self._refused:
            self._refused -= 1
            return False
        return True


@pytest.mark.parametrize("vls", [1, 3])
@pytest.mark.parametrize("lost_times", [0, 1, 3])
@pytest.mark.parametrize("name", ["leaf0-h0", "h0-leaf0", "spine0-leaf0"])
def test_the_first_credits_are_lost(name: str, lost_times: int, vls: int) -> None:
    settings = ["fabric.flow_control=credits", f"fabric.vls={vls}", "fabric.credits.refresh=5243ns", "expect=[]"]
    assembly = Assembly(load("hello", settings))

    def wire(direction: str) -> MemoryWire:
        return Deaf(direction, vls * lost_times) if direction == name else MemoryWire(direction)

    assembly.join(lambda link, _: (wire(link.name), wire(reverse_name(link))))
    assembly.engine.run(None)
    conservation.check(assembly)
    assert assembly.engine.tasks == 0
    port = assembly.fabric.links[name][1]
    assert port.lost_link_frames == vls * lost_times
    now_ps = assembly.engine.now_ps  # the message, or its ACK, waited for the first that came
    assert lost_times * REFRESH_PS < now_ps < (lost_times + 1) * REFRESH_PS
