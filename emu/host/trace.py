"""One message's life in a host: who did what, where, and when; from the packets on its PCIe links and its parts' own.

What a packet is for is read from its address: doorbell, WQE, CQE, request and payload all have their places.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from emu import opcodes
from emu.engine import Engine
from emu.frame import ControlFrame, Frame
from emu.host.host import Host
from emu.host.places import CPU_ID, GPU_BYTES, GPU_ID, GPU_START, NIC_ID, UAR_START
from emu.mlx5.doorbell import UAR_BYTES
from emu.pcie.tlp import Tlp, TlpKind
from emu.taps import Taps

LEAVES = {GPU_ID: "gpu", NIC_ID: "nic", CPU_ID: "cpu"}


class Step(NamedTuple):
    """`at_ps`: when a packet's first bit leaves, or a part has done it."""

    at_ps: int
    who: str
    what: str
    where: str


class Trace:
    """Watches from `watch` on; `steps` are in order of time."""

    def __init__(self, engine: Engine, hosts: Mapping[str, Host]) -> None:
        self._engine = engine
        self._hosts = hosts
        self._steps: list[Step] = []
        self._links = {
            host.tree.out(leaf).name: (name, leaf) for name, host in hosts.items() for leaf in ("gpu", "nic", "cpu")
        }

    def watch(self, taps: Taps) -> None:
        """Begin, beside whoever watches already."""
        before = taps.frame_sent

        def sent(when_ps: int, link: str, frame: Frame) -> None:
            if before is not None:
                before(when_ps, link, frame)
            self._sent(when_ps, link, frame)

        taps.frame_sent = sent
        taps.host_step = self._did

    def between(self, start_ps: int, end_ps: int) -> list[Step]:
        """What happened after one instant, up to another."""
        return sorted((step for step in self._steps if start_ps < step.at_ps <= end_ps), key=lambda step: step.at_ps)

    def _did(self, who: str, what: str, where: str) -> None:
        self._steps.append(Step(self._engine.now_ps, who, what, where))

    def _sent(self, when_ps: int, link: str, frame: Frame) -> None:
        if isinstance(frame, ControlFrame):
            return
        if isinstance(frame, Tlp):
            if link in self._links:
                host, leaf = self._links[link]
                purpose = self._hosts[host].describe(frame.address, frame.length)
                where = f"{host}.{self._target(frame)}"
                self._steps.append(
                    Step(when_ps, f"{host}.{leaf}", f"{frame.kind.value} {frame.length} B: {purpose}", where)
                )
            return
        source = link.partition("-")[0]
        if source in self._hosts:
            what = f"{opcodes.NAMES[frame.opcode]}, {frame.wire_bytes} B of wire"
            self._steps.append(Step(when_ps, f"{source}.nic", what, "network"))

    def _target(self, tlp: Tlp) -> str:
        if tlp.kind is TlpKind.CPLD:
            return LEAVES[tlp.requester]
        if UAR_START <= tlp.address < UAR_START + UAR_BYTES:
            return "nic"
        return "gpu" if GPU_START <= tlp.address < GPU_START + GPU_BYTES else "cpu"
