"""Who sends next at a real port: strict and weighted queues, InfiniBand's tables, and turns within a queue."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from emu.addresses import address_of
from emu.devices.egress import Arbiter, EgressPort, wire_bytes_of
from emu.devices.ingress import Ingress
from emu.devices.lane import Turns
from emu.devices.port import FarEnd
from emu.engine import Engine
from emu.frame import Frame
from emu.framing.native import NativeFraming
from emu.linklayer.arbiter import QueueArbiter, QueueArbiterConfig, VlArbiter, VlArbiterConfig
from emu.linklayer.credits import blocks_of
from emu.opcodes import WRITE_MIDDLE
from emu.taps import Taps
from tests.devices.bench import Sink
from tests.laws.stage import Stage

GBPS = 10**9
FRAMING = NativeFraming(8, tuple(range(15)) + (0,))
HEAD = 8 + 12 + 4 + 2  # LRH, BTH, ICRC, VCRC


class Egress:
    """A switch's port with some lanes, and what arrived at its far end."""

    def __init__(self, arbiter: Arbiter | None, turns: Turns = Turns.NOBODY, lanes: int = 8, **more: Any) -> None:
        self.engine = Engine()
        self.sink = Sink(self.engine)
        self.port = EgressPort(
            self.engine, "a-b", 100 * GBPS, Taps(), lanes=lanes, turns=turns, arbiter=arbiter, **more
        )
        self.port.join(FarEnd(self.sink.deliver, False, 0, 0), 0, None)

    def offer(self, lane: int, count: int, payload: int = 1024, *, source: int = 0, ingress: int = 0) -> None:
        """Frames that come in at once."""
        ends = address_of(f"h{source}", source), address_of("h99", 99)
        envelope = FRAMING.envelope(*ends, source_qp=0x11, destination_qp=0x11, priority=lane)
        for _ in range(count):
            frame = Frame(envelope, WRITE_MIDDLE, 0, bytes(payload))
            frame.ingress = Ingress(self.engine, ingress, self.port)
            frame.eligible_ps = ingress
            self.port.enqueue(frame)

    def run(self) -> list[Frame]:
        """All that left, in order."""
        self.engine.run()
        return [frame for _, frame in self.sink.arrived]

    def lanes(self) -> str:
        """Their lanes; the first frame started before any other was there."""
        return "".join(str(frame.envelope.lane) for frame in self.run())[1:]


def queues(**weights: int) -> QueueArbiter:
    """Of weight 1 unless given (`q6=0`: strict); a quantum is one frame of 1 KiB."""
    shares = tuple(weights.get(f"q{queue}", 1) for queue in range(8))
    return QueueArbiter(QueueArbiterConfig(weights=shares, quantum_bytes=HEAD + 1024 + 8))


def test_strict_queues_go_first_the_highest_of_them_before_all() -> None:
    egress = Egress(queues(q6=0, q7=0))
    for lane in (0, 0, 6, 7, 6, 0, 7):
        egress.offer(lane, 1)
    assert egress.lanes() == "776600"


def test_a_strict_frame_that_comes_later_waits_for_no_more_than_the_one_on_the_wire() -> None:
    egress = Egress(queues(q6=0))
    egress.offer(0, 10)
    ser_ps = (HEAD + 1024 + 8) * 80
    egress.engine.at(ser_ps * 7 // 2, lambda _: egress.offer(6, 1))
    assert egress.lanes() == "0006000000"


@pytest.mark.parametrize("weights", [(1, 1, 1), (1, 2, 3), (4, 1, 7)])
def test_weighted_queues_share_bytes_as_their_weights_say(weights: tuple[int, int, int]) -> None:
    """Whatever the size of their frames: over any whole rounds, to within one frame."""
    egress = Egress(queues(q0=weights[0], q1=weights[1], q2=weights[2]))
    sizes = (1024, 300, 700)
    for lane, size in enumerate(sizes):
        egress.offer(lane, 4000 * 1024 // size // (sum(weights) // weights[lane]), size)
    sent: Counter[int] = Counter()
    rounds = 40
    quantum = HEAD + 1024 + 8
    for frame in egress.run()[1:]:
        sent[frame.envelope.lane] += frame.wire_bytes
        if sum(sent.values()) >= rounds * sum(weights) * quantum:
            break
    for lane, weight in enumerate(weights):
        assert abs(sent[lane] - rounds * weight * quantum) <= 2 * weight * quantum


def test_a_queue_that_was_empty_has_saved_nothing_up() -> None:
    egress = Egress(queues())
    egress.offer(0, 40)
    egress.engine.at(20 * (HEAD + 1024 + 8) * 80, lambda _: egress.offer(1, 10))
    left = egress.lanes()
    start = left.index("1")
    assert left[start : start + 20] in ("10" * 10, "01" * 10)


def vls(high: tuple[tuple[int, int], ...], low: tuple[tuple[int, int], ...], limit: int = 0) -> Egress:
    """A port with InfiniBand's tables; frames cost blocks."""
    arbiter = VlArbiter(VlArbiterConfig(high=high, low=low, high_limit=limit))
    return Egress(arbiter, cost=lambda frame: blocks_of(frame.wire_bytes - 8))


BLOCKS = blocks_of(HEAD + 1024)  # 17


def test_the_low_table_shares_by_weight() -> None:
    egress = vls((), ((0, BLOCKS), (1, 3 * BLOCKS), (2, 1)))
    for lane in (0, 1, 2):
        egress.offer(lane, 20)
    assert egress.lanes()[:20] == "01112" * 4  # the last frame of a turn may exceed it


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (0, "1010101010"),  # one frame of the high table, then one of the low one
        (1, "1111011110"),  # 4096 bytes: four frames of 17 blocks
        (255, "1111111111"),  # without end
    ],
)
def test_the_high_table_goes_first_up_to_its_limit(limit: int, expected: str) -> None:
    egress = vls(((1, 255),), ((0, 64),), limit)
    egress.offer(0, 30)
    egress.offer(1, 30)
    assert egress.lanes()[: len(expected)] == expected


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        (Turns.NOBODY, [(1, 0)] * 3 + [(1, 1)] * 3 + [(2, 2)] * 3),
        (Turns.PORT, [(1, 0), (2, 2), (1, 0), (2, 2), (1, 0), (2, 2), (1, 1), (1, 1), (1, 1)]),
        (Turns.SOURCE, [(1, 0), (1, 1), (2, 2)] * 3),
    ],
)
def test_turns_within_a_queue(turns: Turns, expected: list[tuple[int, int]]) -> None:
    """Hosts 0 and 1 come in by port 1, host 2 by port 2."""
    egress = Egress(None, turns, lanes=1)
    egress.offer(0, 1, source=50, ingress=7)  # is on the wire while the others come
    waiting = [(1, 0), (1, 1), (2, 2)]
    for ingress, source in waiting:
        egress.offer(0, 3, source=source, ingress=ingress)
    hosts = {address_of(f"h{number}", number).lid: number for number in range(3)}
    ports = {0: 1, 1: 1, 2: 2}
    order = [hosts[frame.envelope.source] for frame in egress.run()[1:]]
    assert [(ports[host], host) for host in order] == expected


def shares(text: str, last_link: str) -> Counter[int]:
    """Bytes by lane on a link, while both lanes have frames to send."""
    stage = Stage(text)
    sent: list[tuple[int, int]] = []

    def note(_: int, link: str, frame: Frame) -> None:
        if link == last_link and frame.carries_data:
            sent.append((frame.envelope.lane, wire_bytes_of(frame)))

    stage.assembly.taps.frame_sent = note
    stage.run()
    lanes = [lane for lane, _ in sent]
    first = max(lanes.index(lane) for lane in set(lanes))
    last = min(len(lanes) - 1 - lanes[::-1].index(lane) for lane in set(lanes))
    total: Counter[int] = Counter()
    for lane, size in sent[first : last + 1]:
        total[lane] += size
    return total


STAR = "{kind: leaf_spine, leaves: 1, spines: 1, hosts_per_leaf: 3}"


@pytest.mark.parametrize(("where", "pairs"), [("switch", "[h0, h2]|[h1, h2]"), ("NIC", "[h0, h1]|[h0, h2]")])
@pytest.mark.parametrize(
    ("fabric", "levels", "ratio"),
    [
        ("profile: roce, flow_control: pfc, lossless: [2, 3], queue_weights: {2: 1, 3: 3}", (2, 3), 3),
        ("profile: roce, flow_control: none, queue_weights: {2: 5, 3: 1}", (3, 2), 5),
        ("profile: native, flow_control: credits, vls: 2, vl_arbitration: {low: [[0, 65], [1, 130]]}", (0, 1), 2),
    ],
)
def test_a_scenarios_weights_decide_at_switches_and_nics(
    where: str, pairs: str, fabric: str, levels: tuple[int, int], ratio: int
) -> None:
    traffic = ", ".join(
        f"{{kind: write, pairs: [{pair}], size: 1MiB, priority: {level}}}"
        for pair, level in zip(pairs.split("|"), levels, strict=True)
    )
    text = f"""
name: shares
fabric: {{{fabric}, congestion_control: none, topology: {STAR}}}
traffic: [{traffic}]
"""
    sent = shares(text, "leaf0-h2" if where == "switch" else "h0-leaf0")
    assert sent[levels[1]] / sent[levels[0]] == pytest.approx(ratio, rel=0.05)


@pytest.mark.parametrize(("arbiter", "share"), [("per_port", 1 / 2), ("per_source", 1 / 3), ("fifo", 1 / 2)])
def test_a_scenarios_turns(arbiter: str, share: float) -> None:
    """Two hosts of another leaf and one of the same send to a fourth: what the one of the same leaf gets."""
    text = f"""
name: turns
fabric: {{profile: native, flow_control: none, arbiter: {arbiter},
  topology: {{kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 2}}}}
traffic: [{{kind: incast, senders: 3, receiver: h3, size: 256KiB}}]
"""
    stage, sources = Stage(text), list[int]()

    def note(_: int, link: str, frame: Frame) -> None:
        if link == "leaf1-h3" and frame.carries_data:
            sources.append(frame.envelope.source)

    stage.assembly.taps.frame_sent = note
    stage.run()
    near = stage.fabric.nics["h2"].address.lid
    begun = max(sources.index(source) for source in set(sources))
    assert sources[begun : begun + 60].count(near) / 60 == pytest.approx(share, abs=0.02)
