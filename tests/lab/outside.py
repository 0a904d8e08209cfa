"""A run over veth pairs with somebody outside who does things to its links."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from emu.fabric import Fabric
from emu.lab.interface import IFF_UP, carries, flags_of, set_flags
from emu.measure.result import comparable
from emu.run import Options, run
from emu.scenario.load import parse
from emu.units import US
from emu.wire.veth import VethWire
from tests.lab.fabrics import inside, process_at

LINK, BACK = "leaf0-spine0", "spine0-leaf0"
DATA_FRAME_BYTES = 4096  # and headers

Deed = Callable[["Outside"], object]


class Outside:
    """A run with somebody at its links. `deeds`: (virtual time in us, what is done then); `text`: another scenario."""

    def __init__(
        self, *deeds: tuple[int, Deed], traffic: str = "count: 8", more: str = "", text: str = "", **options: Any
    ) -> None:
        self.deeds = deeds
        text = (
            text
            or f"""
name: faults
fabric: {{profile: roce, topology: {{kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 2}}{more}}}
traffic: [{{kind: write, pairs: [[h0, h3]], size: 64KiB, {traffic}}}]
"""
        )
        self.scenario = parse(text, "faults.yaml", ())
        self.dropped: list[int] = []
        self.options = {"before_run": self._begin, "on_progress": lambda *_: self._look(), **options}

    def run(self) -> dict[str, Any]:
        """Its result."""
        return run(self.scenario, Options(**self.options))

    def _begin(self, fabric: Fabric) -> None:
        self.fabric = fabric
        self._look()
        for when_us, deed in self.deeds:
            fabric._engine.at(when_us * US, partial(self._do, deed))

    def _do(self, deed: Deed, _: None) -> None:
        deed(self)

    def _look(self) -> None:
        self.dropped.append(sum(self.dropped_at(name) for name in (LINK, BACK)))

    def wire(self, name: str) -> VethWire:
        """One direction of a link."""
        wire = self.fabric.links[name][1].wire
        assert isinstance(wire, VethWire)
        return wire

    def interface(self, name: str) -> str:
        """Where it begins."""
        return str(self.wire(name).sender.getsockname()[0])

    def at(self, name: str, *command: str) -> str:
        """What a command prints where it begins."""
        return inside(process_at(name.partition("-")[0]), *command)

    def dropped_at(self, name: str) -> int:
        """tx_dropped of the interface where it begins."""
        text = Path(f"/proc/{process_at(name.partition('-')[0])}/net/dev").read_text()
        numbers = text.partition(f"{self.interface(name)}:")[2].split()
        return int(numbers[11])

    def refused(self) -> int:
        """Sends that the kernel did not take."""
        return sum(self.wire(name).refused for name in self.fabric.links)

    def accounted(self) -> int:
        """What the kernel says that it did not carry.

        What a veth itself could not deliver, its far end being down, it both counts in tx_dropped and reports as
        ENOBUFS: a send refused so is not to be counted again.
        """
        uncounted = self.refused() - sum(self.wire(name).refusals[errno.ENOBUFS] for name in self.fabric.links)
        return uncounted + self.dropped[-1] - self.dropped[0]

    def set_down(self, name: str) -> None:
        """Set the interface down where that direction begins."""
        sender, interface = self.wire(name).sender, self.interface(name)
        set_flags(sender, interface, flags_of(sender, interface) & ~IFF_UP)

    def set_up(self, name: str) -> None:
        """Set it up and wait until both ends carry frames."""
        set_flags(
            self.wire(name).sender,
            self.interface(name),
            flags_of(self.wire(name).sender, self.interface(name)) | IFF_UP,
        )
        deadline = time.monotonic() + 5
        for end in (LINK, BACK):
            while not carries(self.wire(end).sender, self.interface(end)):
                assert time.monotonic() < deadline
                time.sleep(0.001)

    def change_one(self, name: str, change: Callable[[bytes], bytes]) -> None:
        """Change the bytes of the next data frame there."""
        wire = self.wire(name)
        send = wire._send

        def send_changed(data: bytes) -> int:
            if len(data) < DATA_FRAME_BYTES:
                return send(data)
            wire._send = send
            return send(change(data))

        wire._send = send_changed  # type: ignore[assignment]


def steer(them: Outside) -> None:
    """Let another CPU deliver all frames: receive packet steering."""
    (ours,) = os.sched_getaffinity(0)
    for name in them.fabric.links:
        file = f"/sys/class/net/{them.interface(name)}/queues/rx-0/rps_cpus"
        if "refused" in them.at(name, "sh", "-c", f"echo {1 << (ours == 0):x} > {file} || echo refused"):
            pytest.skip("steering may not be set here")


def undisturbed(**options: Any) -> dict[str, Any]:
    """The same run with nobody there, but as many events."""
    result = Outside((10, lambda _: None), **options).run()
    assert not result["disturbed"]
    assert result["warnings"] == []
    return result


def told(result: dict[str, Any]) -> dict[str, Any]:
    """The result without what a disturbance adds that harms nobody."""
    rest = comparable(result)
    for key in ("disturbed", "warnings"):
        del rest[key]
    rest["frames"] = {key: value for key, value in rest["frames"].items() if key != "foreign"}
    return rest
