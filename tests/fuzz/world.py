"""A fabric of two hosts and a switch under attack: queue pairs of every transport at work, and a door for strangers.

What comes through the door takes the same way as frames that a wire finds to be nobody's (`--accept-foreign`)."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import cache

from emu import opcodes
from emu.devices.queue_pair import QueuePairState
from emu.devices.transmit import NOTICES_LIMIT
from emu.engine import LOOK_EVERY_EVENTS
from emu.errors import WireError
from emu.fabric import framing_of
from emu.frame import ControlFrame, Frame
from emu.run.assembly import Assembly
from emu.scenario.load import parse
from emu.scenario.model import Scenario
from emu.transport.memory import MemoryRegion
from emu.transport.psn import PSN_MASK
from emu.transport.requester import Requester
from emu.transport.responder import Responder
from emu.transport.selective import SelectiveRequester, SelectiveResponder
from emu.transport.unreliable import UcResponder, UnreliableRequester
from emu.units import US
from emu.verbs import CQ, QP, SGE, Context, QPAttr, QPState, QPType, RecvWR, SendWR, WROpcode
from emu.wire.likeness import decode_either
from tests.fuzz.aim import Aim
from tests.fuzz.machines import amid
from tests.fuzz.store import SLOTS, Store

QKEY = 0x11111111
DEPTH, WINDOW, RECEIVES, SENDS = 4, 32, 16, 24
MTUS = (256, 1024)
KINDS = (
    "profile: roce",
    "profile: roce, flow_control: none, congestion_control: none",
    "profile: native",
    "profile: native, congestion_control: ib_cca, ecn: {kmin: 8KB, kmax: 32KB, pmax: 20%}",
)
MOST_EVENTS = 400_000  # after the last frame of an attack
ATTR = QPAttr(timeout=6, retry_cnt=3, rnr_retry=3, min_rnr_timer=1, max_rd_atomic=DEPTH, max_dest_rd_atomic=DEPTH)
OF_TYPE = {QPType.RC: opcodes.RC, QPType.UC: opcodes.UC, QPType.UD: opcodes.UD}


class Host:
    """A context with memory, queues and receives."""

    def __init__(self, context: Context, numbers: random.Random, *, selective: bool) -> None:
        credits = numbers.random() < 0.5
        context.config = replace(context.config, window_packets=WINDOW, end_to_end_credits=credits, selective=selective)
        context.responder = replace(context.responder, hold_packets=WINDOW if selective else 0)
        self.context = context
        self.pd = context.alloc_pd()
        self.store = Store(self.pd.memory, numbers)
        self.cq: CQ = context.create_cq(1 << 16)
        self.recv_cq: CQ = context.create_cq(1 << 16)
        self.srq = self.pd.create_srq(RECEIVES)
        self.posted = self.completed = 0

    def queue_pair(self, qp_type: QPType, *, shared: bool = False) -> QP:
        """A new one, not connected."""
        srq = self.srq if shared else None
        return self.pd.create_qp(
            self.cq, SENDS, recv_cq=self.recv_cq, srq=srq, max_recv_wr=RECEIVES, qp_type=qp_type, max_inline_data=64
        )

    def sge(self, region: MemoryRegion, number: int, length: int) -> SGE:
        """A slot of a region."""
        return SGE(addr=self.store.slot(region, number)[0], length=length, lkey=region.lkey)

    def poll(self) -> None:
        """Take what has completed."""
        self.completed += len(self.cq.poll_cq(1 << 16))
        self.recv_cq.poll_cq(1 << 16)


class World:
    """`h0` is the victim, `h1` the peer of its connections."""

    def __init__(self, numbers: random.Random, kind: str | None = None, *, selective: bool | None = None) -> None:
        self.numbers = numbers
        self.selective = numbers.random() < 0.5 if selective is None else selective
        self.mtu_bytes = numbers.choice(MTUS)
        assembly = Assembly(scenario_of(kind or numbers.choice(KINDS), self.mtu_bytes))
        self.engine, self.fabric = assembly.engine, assembly.fabric
        self.fabric.join(None)
        self.framing = framing_of(assembly.scenario)
        self.doors = [self.fabric.links["s0-h0"][1], self.fabric.links["h1-s0"][1]]
        self.victim, self.peer = (
            Host(self.fabric.contexts[name], numbers, selective=self.selective) for name in ("h0", "h1")
        )
        self.nic = self.victim.context.nic
        self.pairs: list[tuple[QP, QP]] = []
        self.connect(QPType.RC)
        self.connect(QPType.RC, shared=True)
        self.connect(QPType.UC)
        self.connect(QPType.UD)
        self.tally: Counter[str] = Counter()
        assembly.taps.frame_sent = self._sent
        self._looks = 0  # of the engine, once the attack is over

    def connect(self, qp_type: QPType, *, shared: bool = False) -> None:
        """A queue pair at each host, at work."""
        here, there = self.victim.queue_pair(qp_type, shared=shared), self.peer.queue_pair(qp_type)
        if qp_type is QPType.UD:
            for qp in (here, there):
                for state in (QPState.INIT, QPState.RTR, QPState.RTS):
                    qp.modify(state, QPAttr(qkey=QKEY))
        else:
            here.connect(there, self.numbers.choice((0, 9, PSN_MASK - 2)), ATTR)
        self.pairs.append((here, there))

    def work(self) -> None:
        """Each queue pair, sometimes, gets something to do and somewhere to put things."""
        numbers = self.numbers
        for pair in self.pairs:
            for host, other, qp, to in ((self.victim, self.peer, *pair), (self.peer, self.victim, *pair[::-1])):
                wanted = numbers.randrange(4)
                while not qp._receives.is_shared and len(qp._receives) < wanted and qp.state is not QPState.ERR:
                    qp.post_recv(RecvWR(wr_id=0, sg_list=(host.sge(host.store.inbox, numbers.randrange(SLOTS), 700),)))
                while len(host.srq.queue) < wanted:
                    host.srq.post_recv(RecvWR(wr_id=0, sg_list=(host.sge(host.store.inbox, 0, 700),)))
                if qp.state is QPState.RTS and qp._outstanding < SENDS // 4:
                    self._post(host, other, qp, to)

    def _post(self, host: Host, other: Host, qp: QP, to: QP) -> None:
        numbers, store, there = self.numbers, host.store, other.store
        choices = [WROpcode.SEND, WROpcode.SEND_WITH_IMM]
        if qp.qp_type is not QPType.UD:
            choices += [WROpcode.RDMA_WRITE, WROpcode.RDMA_WRITE_WITH_IMM]
        if qp.qp_type is QPType.RC:
            choices += [WROpcode.RDMA_READ, WROpcode.ATOMIC_CMP_AND_SWP, WROpcode.ATOMIC_FETCH_AND_ADD]
        opcode = numbers.choice(choices)
        size = numbers.choice((0, 1, 8, 256)) if qp.qp_type is QPType.UD else numbers.choice((0, 1, 256, 257, 700))
        source, target = store.source, there.writable
        place = SGE(addr=source.addr, length=size, lkey=source.lkey)
        if opcode is WROpcode.RDMA_READ:
            place, target = host.sge(store.fetched, numbers.randrange(SLOTS), size), there.readable
        elif opcode in (WROpcode.ATOMIC_CMP_AND_SWP, WROpcode.ATOMIC_FETCH_AND_ADD):
            place, target = host.sge(store.fetched, numbers.randrange(SLOTS), 8), there.atomic
        ah = host.pd.create_ah(other.context.address) if qp.qp_type is QPType.UD else None
        qp.post_send(
            SendWR(
                wr_id=1,
                sge=place,
                opcode=opcode,
                remote_addr=target.addr,
                rkey=target.rkey,
                ah=ah,
                remote_qpn=to.qp_num,
                remote_qkey=QKEY,
            )
        )
        host.posted += 1

    def aim(self) -> Aim:
        """A queue pair of the victim."""
        here, there = self.numbers.choice(self.pairs)
        state = here._attached()
        envelope = self.peer.context.envelopes(
            self.peer.context.address, self.victim.context.address, there.qp_num, here.qp_num, None
        )[0]
        return Aim(
            envelope,
            OF_TYPE[here.qp_type],
            self.mtu_bytes,
            QKEY,
            self.victim.store.regions,
            lambda: expected(state),
            lambda: asked(state),
            lambda: amid(state.responder),
        )

    def take(self, data: bytes, *, roundabout: bool = False) -> None:
        """A stranger's bytes come in at the victim, or at the switch. AssertionError if they do harm."""
        try:
            frame = decode_either(data, self.framing)
        except WireError:
            return
        door = self.doors[roundabout]
        store, before, waiting = self.victim.store, self.victim.store.look(), len(self.engine.queue)
        most = 8 + sum(qp._outstanding + len(qp._receives) for qp, _ in self.pairs)
        held = () if isinstance(frame, ControlFrame) else self._held(frame)
        door.take_in(frame)
        store.check(None if isinstance(frame, ControlFrame) else frame.opcode, before, *held)
        assert len(self.engine.queue) - waiting <= most, f"{len(self.engine.queue) - waiting} events by one frame"
        answers = 4 * DEPTH + 1 + (WINDOW if self.selective else 0)
        for state in self.nic.queue_pairs.values():
            assert len(state.answers) <= answers, f"{len(state.answers)} answers are owed"
        for lane in self.nic._transmit.lanes:
            assert len(lane.notices) <= NOTICES_LIMIT, f"{len(lane.notices)} congestion notifications wait"

    def _held(self, frame: Frame) -> tuple[int, ...]:
        """Opcodes of the early frames that this one may be what they wait for."""
        state = self.nic.queue_pairs.get(frame.envelope.destination_qp)
        if state is None or not isinstance(state.requester, SelectiveRequester):
            return ()
        assert isinstance(state.responder, SelectiveResponder)
        early = (*state.responder._held.values(), *state.requester._held_back.values())
        assert len(early) <= 2 * WINDOW, f"{len(early)} early frames are kept"
        return tuple(each.opcode for each in early)

    def go_on(self, duration_ps: int) -> None:
        """Time passes, and both hosts see what has completed."""
        self.engine.run(self.engine.now_ps + duration_ps)
        for host in (self.victim, self.peer):
            host.poll()

    def settle(self) -> None:
        """The attack is over: everything ends, every work request has completed once, nothing forbidden changed."""
        self.engine.on_progress = self._watch
        self.engine.run()
        for host in (self.victim, self.peer):
            host.poll()
            host.store.check_all()
            assert host.completed == host.posted, f"{host.posted} posted, {host.completed} completed"

    def _watch(self) -> None:
        self._looks += 1
        assert self._looks < MOST_EVENTS // LOOK_EVERY_EVENTS, "it does not end"

    def _sent(self, _: int, link: str, frame: Frame) -> None:
        if link != "h0-s0" or isinstance(frame, ControlFrame):
            return
        self.tally["sent"] += 1
        base = frame.opcode & opcodes.OPERATION_MASK
        if frame.opcode in opcodes.RESPONSES and base != opcodes.ATOMIC_ACKNOWLEDGE:
            readable = self.victim.store.readable.buffer
            assert not frame.payload or bytes(frame.payload) in readable, "what may not be read was read"
        elif frame.opcode == opcodes.ACKNOWLEDGE and frame.aeth is not None and frame.aeth[0] >= 0x20:
            self.tally["NAKs"] += frame.aeth[0] >= 0x60
            self.tally["RNR NAKs"] += frame.aeth[0] < 0x60


@cache
def scenario_of(kind: str, mtu_bytes: int) -> Scenario:
    """The scenario of one kind of fabric."""
    text = f"""
name: attack
fabric: {{{kind}, path_mtu: {mtu_bytes}B, topology: {{kind: line, switches: 1}}}}
traffic: [{{kind: write, pairs: [[h0, h1]], size: 1B}}]
"""
    return parse(text, "attack.yaml", ())


def expected(state: QueuePairState) -> int:
    """The PSN that its responder waits for."""
    responder = state.responder
    return responder._expected if isinstance(responder, Responder | UcResponder) else 0


def asked(state: QueuePairState) -> tuple[int, int]:
    """From which PSN to which its requester waits for answers."""
    requester = state.requester
    if isinstance(requester, Requester):
        return requester._acked, max(requester._acked, requester._highest - 1)
    assert isinstance(requester, UnreliableRequester)
    return requester._next, requester._next


PASSING_PS = (0, 0, 50_000, US, 5 * US, 40 * US)
"""How much time may lie between two strangers' frames."""
