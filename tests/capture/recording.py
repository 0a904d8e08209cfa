"""Runs a scenario in memory with a recorder, and keeps what the tap saw beside it."""

from __future__ import annotations

from copy import copy
from pathlib import Path
from typing import NamedTuple

from emu.capture.recorder import Recorder, chosen
from emu.frame import Frame
from emu.run.assembly import Assembly
from emu.scenario.model import Scenario


class Sent(NamedTuple):
    """One frame as the tap saw it: it may be marked later."""

    time_ps: int
    direction: str
    frame: Frame


def record(scenario: Scenario, path: Path) -> list[Sent]:
    """Run it; what left on the links that its `capture` names (on all if it names none) is in the file, too."""
    assembly = Assembly(scenario)
    sent: list[Sent] = []
    assembly.taps.frame_sent = lambda time_ps, name, frame: sent.append(Sent(time_ps, name, copy(frame)))
    links = chosen(assembly.topology.links, scenario.capture)
    with Recorder(path) as recorder:
        recorder.watch(assembly.taps, links, native=scenario.fabric.framing == "native", title=scenario.name)
        assembly.join(None)  # now, as links with credits come up before the clock starts
        assembly.engine.run(None)
    names = {name for name, (link, _) in assembly.fabric.links.items() if link in links}
    return [each for each in sent if each.direction in names]
