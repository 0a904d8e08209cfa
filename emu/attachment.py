"""How nodes are attached to links under each flow control: lanes, arbiters and marks at egresses; what is at ingresses.

One object for a run; the scenario's values become the machines of emu/linklayer and emu/congestion here.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from emu import lossless
from emu.addresses import MAC_BASE
from emu.congestion import registry
from emu.congestion.notification import MIN_TIME_BETWEEN_CNPS_PS
from emu.devices.credits import CreditLink, LinkCredits
from emu.devices.egress import Arbiter, EgressPort, wire_bytes_of
from emu.devices.ingress import Ingress
from emu.devices.inject import Injection
from emu.devices.lane import Turns
from emu.devices.nic import Nic
from emu.devices.nic_config import Congestion
from emu.devices.pauses import LinkPauses, PauseLink
from emu.devices.port import Called, FarEnd, Port
from emu.devices.switch import Switch
from emu.devices.watch import PauseWatch
from emu.engine import Engine, stream
from emu.errors import ScenarioError
from emu.frame import Frame, Framing
from emu.linklayer.arbiter import QueueArbiter, VlArbiter
from emu.linklayer.buffer import SwitchMemory
from emu.linklayer.classes import PRIORITIES, QUEUES
from emu.linklayer.credits import blocks_of
from emu.linklayer.ecn import Marker
from emu.linklayer.pfc import IngressAccount, IngressConfig
from emu.scenario.inject import OPERATIONS, Inject
from emu.scenario.model import Scenario
from emu.taps import Taps
from emu.topology import Link, reverse_name
from emu.wire.inject import Dice, Rule

SWITCH_MAC_BASE = MAC_BASE | 0x01_00_00_00_00  # of ports that send only to the other end of their link


class Attachments:
    """Makes each node's side of its links, and joins the two sides. Raises ScenarioError for what cannot be."""

    def __init__(self, engine: Engine, scenario: Scenario, framing: Framing, taps: Taps) -> None:
        self._engine, self._scenario, self._framing, self._taps = engine, scenario, framing, taps
        fabric = scenario.fabric
        self.is_native = fabric.framing == "native"
        self.lanes = fabric.vls if self.is_native else QUEUES
        self.overhead_bytes = fabric.framing_overhead_bytes
        self._ecn = lossless.ecn_config(fabric)
        self._watchdog = lossless.watchdog_config(fabric)
        self._lossless = lossless.lossless_priorities(fabric)
        self._ports = 0
        self.memories: dict[str, SwitchMemory] = {}
        self.pairs: list[tuple[Ingress, Ingress]] = []  # both ends of each link that has flow control
        self.watches: list[PauseWatch] = []
        self.injections: list[Injection] = []

    def arbiter(self) -> Arbiter | None:
        """Who sends next at one egress; None where there is one lane only."""
        if self.lanes == 1:
            return None
        fabric = self._scenario.fabric
        if self.is_native:
            return VlArbiter(lossless.vl_arbiter_config(fabric))
        return QueueArbiter(lossless.queue_arbiter_config(fabric, self._framing))

    @property
    def cost(self) -> Callable[[Frame], int]:
        """What a frame costs at the arbiter: blocks among VLs, bytes among queues."""
        overhead_bytes = self.overhead_bytes
        return (lambda frame: blocks_of(frame.wire_bytes - overhead_bytes)) if self.is_native else wire_bytes_of

    def egress(self, name: str, link: Link) -> EgressPort:
        """A switch's port."""
        port = EgressPort(
            self._engine,
            name,
            link.rate_bps,
            self._taps,
            lanes=self.lanes,
            turns=Turns(self._scenario.fabric.arbiter),
            arbiter=self.arbiter(),
            cost=self.cost,
        )
        if self._ecn is not None:
            for lane in sorted(self._data_lanes()):
                port.lanes[lane].marker = Marker(self._ecn, stream(self._scenario.run.seed, f"ecn/{name}/{lane}"))
        return port

    def congestion(self, rate_bps: int) -> Congestion | None:
        """A NIC's part in congestion control; None: it has none."""
        fabric = self._scenario.fabric
        name = fabric.congestion_control
        if name == "none":
            return None
        presets = registry.BY_NAME[name]
        preset = next(iter(presets)) if fabric.cc_preset == "default" else fabric.cc_preset
        make_rate = partial(presets[preset], rate_bps)
        try:
            make_rate()
        except ScenarioError as error:
            raise self._scenario.mistake(str(error), "fabric", "congestion_control") from None
        return Congestion(make_rate, MIN_TIME_BETWEEN_CNPS_PS.get(preset, 0))

    def ingress(self, node: Switch | Nic, number: int, port: Port, link: Link) -> Ingress:
        """Where the link ends at that node, whose egress beside is `port`."""
        self._ports += 1
        flow_control = self._scenario.fabric.flow_control
        mac = node.address.mac if isinstance(node, Nic) else SWITCH_MAC_BASE + self._ports
        if flow_control == "credits":
            return self._credits(node, number, port, mac)
        if flow_control == "pfc":
            return self._pauses(node, number, port, link, mac)
        return Ingress(self._engine, number, port)

    def far_end(self, node: Switch | Nic, ingress: Ingress) -> FarEnd:
        """What the sender's arithmetic needs of that end."""
        if isinstance(node, Nic):
            receive_ps = node.timing.receive_ps
            if isinstance(ingress, LinkCredits):
                return FarEnd(ingress.take, True, 0, receive_ps, ingress, Called.LAST_BIT)
            return FarEnd(node.receive, True, 0, receive_ps, ingress)
        stores, hop_ps = node.waits_for_last_bit, node.hop_latency_ps
        if isinstance(ingress, LinkPauses):
            return FarEnd(ingress.arrive, stores, hop_ps, 0, ingress, Called.FIRST_BIT)
        if isinstance(ingress, LinkCredits):
            return FarEnd(ingress.arrive, stores, hop_ps, 0, ingress)
        return FarEnd(node.receive, stores, hop_ps, 0, ingress)

    def pair(self, one: Ingress, other: Ingress) -> None:
        """The two ends of one link, once its ports are joined; links with credits come up."""
        if isinstance(one, LinkCredits) and isinstance(other, LinkCredits):
            one.peer, other.peer = other, one
            one.initialise()
            other.initialise()
        self.pairs.append((one, other))

    def inject(self, port: Port, link: Link, node: Switch | Nic, ingress: Ingress) -> None:
        """Put what the scenario injects in the way of a joined port's frames to that node; nothing if it is nothing."""
        rules = [
            (place, _rule(each))
            for place, each in enumerate(self._scenario.inject)
            if each.meets(port.name, link.name, reverse_name(link))
        ]
        if rules:
            dice = Dice(self._scenario.run.seed, port.name, rules)
            self.injections.append(Injection(self._engine, port, dice, node, ingress))

    def _credits(self, node: Switch | Nic, number: int, port: Port, mac: int) -> LinkCredits:
        fabric = self._scenario.fabric
        link = CreditLink(
            config=lossless.credit_config(fabric, self._framing),
            vls=fabric.vls,
            framing_overhead_bytes=self.overhead_bytes,
            refresh_ps=fabric.credits.refresh_ps,
            fcp_wire_bytes=fabric.credits.fcp_wire_bytes,
        )
        credits = LinkCredits(self._engine, number, port, link, mac)
        if isinstance(node, Nic):
            credits.end_at(node.receive, node.timing.receive_ps)
        else:
            credits.lead_to(node, node.hop_latency_ps)
        port.flow = credits
        return credits

    def _pauses(self, node: Switch | Nic, number: int, port: Port, link: Link, mac: int) -> LinkPauses:
        fabric = self._scenario.fabric
        config = PauseLink(
            config=lossless.pause_config(fabric, link, self._framing),
            overhead_bytes=self.overhead_bytes,
            response_ps=fabric.pause.response_ps,
            resume_ps=fabric.pause.resume_ps,
        )
        pauses = LinkPauses(self._engine, number, port, config, mac)
        if isinstance(node, Switch):
            pauses.lead_to(node, self._accounts(node, port, link), node.hop_latency_ps, stores=node.waits_for_last_bit)
            if isinstance(port, EgressPort) and self._watchdog is not None:
                self._watch(port, pauses)
        port.flow = pauses
        return pauses

    def _accounts(self, switch: Switch, port: Port, link: Link) -> tuple[IngressAccount, ...]:
        memory = self.memories.get(switch.name)
        if memory is None:
            memory = self.memories[switch.name] = SwitchMemory(self._scenario.fabric.buffer_bytes)
        arriving = reverse_name(link) if port.name == link.name else link.name
        configs: dict[bool, IngressConfig] = {
            kind: lossless.ingress_config(self._scenario.fabric, link, self._framing, kind) for kind in (False, True)
        }
        return tuple(
            IngressAccount(f"{arriving} priority {priority}", configs[priority in self._lossless], memory)
            for priority in range(PRIORITIES)
        )

    def _watch(self, port: EgressPort, pauses: LinkPauses) -> None:
        assert self._watchdog is not None
        queue_of = self._scenario.fabric.queue_of
        watches = tuple(
            PauseWatch(self._engine, self._watchdog, port, port.queues[queue_of(priority)], priority, pauses)
            for priority in self._lossless
        )
        self.watches += watches
        port.watches += watches

        def look() -> None:
            for watch in watches:
                watch.look()

        pauses.on_paused = look

    def _data_lanes(self) -> set[int]:
        fabric = self._scenario.fabric
        levels = {fabric.priority} | {
            traffic.priority for traffic in self._scenario.traffic if traffic.priority is not None
        }
        return {fabric.vl_of(level) if self.is_native else fabric.queue_of(level) for level in levels}


def _rule(inject: Inject) -> Rule:
    match = inject.match
    return Rule(
        kind=match.kind,
        operation=None if match.opcode is None else OPERATIONS[match.opcode],
        qp=match.qp,
        nth=frozenset(match.nth or ()),
        every=match.every or 0,
        drop=inject.drop,
        corrupt=inject.corrupt,
        duplicate=inject.duplicate,
        reorder=inject.reorder,
        delay_ps=inject.delay_ps,
    )
