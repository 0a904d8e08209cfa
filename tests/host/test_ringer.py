"""A CPU that rings for a GPU sees what stands in a queue's word when its turn comes, not each word that stood there."""

from __future__ import annotations

from typing import Any, cast

from emu.engine import Engine
from emu.harness.doorbell import Plan, cases_of, measure
from emu.host.cpu import Ringer
from emu.host.queue import HostQueue
from emu.pcie.framing import memory_write
from emu.run import Options
from emu.scenario.load import build

WORD = 0x1000


class Doorbells:
    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.rung: list[tuple[int, Any, int]] = []

    def ring(self, queue: Any, up_to: int) -> None:
        self.rung.append((self.engine.now_ps, queue, up_to))


def test_a_word_that_is_written_anew_is_rung_for_once() -> None:
    topology = {"kind": "line", "switches": 0}
    given = {"name": "x", "fabric": {"profile": "native", "topology": topology}, "host": {"path": "ibgda"}}
    cpu = build({**given, "traffic": []}).host.cpu
    assert cpu is not None
    engine = Engine()
    doorbells, (one, other) = Doorbells(engine), (cast(HostQueue, object()), cast(HostQueue, object()))
    ringer = Ringer(engine, cpu, cast(Any, doorbells))
    for queue, up_to in ((one, 1), (other, 7), (one, 2), (one, 3)):
        ringer.told(queue, memory_write(WORD, up_to.to_bytes(8, "little"), 0))
    engine.run()
    first_ps = cpu.poll_ps + cpu.post_ps
    assert doorbells.rung == [(first_ps, one, 3), (first_ps + cpu.post_ps, other, 7)]


def test_it_holds_up_no_rate() -> None:
    plan = Plan(paths=("ibgda",), warps=(128,), settings=("host.queues.nic_handler=cpu",))
    (row,) = measure(cases_of(plan), Options(wire="memory")).rows
    assert 0.95 < row["messages_per_s"] / row["limit_per_s"] < 1.01
