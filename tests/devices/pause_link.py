"""One link with PFC on the bench: two ports, `here` and `there`, each leading to the ingress beside the other."""

from __future__ import annotations

from fractions import Fraction

from emu.addresses import address_of
from emu.devices.egress import EgressPort
from emu.devices.pauses import LinkPauses, PauseLink
from emu.devices.port import Called, FarEnd
from emu.engine import Engine
from emu.frame import ControlFrame, Frame
from emu.framing.control import Control, control_frame
from emu.framing.roce import RoceFraming
from emu.linklayer.arbiter import QueueArbiter, QueueArbiterConfig
from emu.linklayer.buffer import SwitchMemory
from emu.linklayer.classes import PRIORITIES, QUEUES
from emu.linklayer.pause import MAX_QUANTA, PauseConfig
from emu.linklayer.pfc import IngressAccount, IngressConfig
from emu.opcodes import WRITE_MIDDLE
from emu.taps import Taps

GBPS = 10**9
OVERHEAD = 20
FRAMING = RoceFraming(OVERHEAD)
ENDS = address_of("h0", 0), address_of("h1", 1)
ENVELOPES = tuple(
    FRAMING.envelope(*ENDS, source_qp=0x11, destination_qp=0x11, priority=priority) for priority in range(PRIORITIES)
)
PFC_BYTES = 84


def frame(payload: int = 4096, priority: int = 3) -> Frame:
    """A frame of that priority."""
    made = Frame(ENVELOPES[priority], WRITE_MIDDLE, 0, bytes(payload))
    made.carries_data = True
    return made


class Blocked:
    """A switch whose egresses are all blocked: what comes in stays."""

    def __init__(self) -> None:
        self.kept: list[Frame] = []
        self.refused: list[str] = []

    def receive(self, frame: Frame) -> None:
        """Keep it."""
        self.kept.append(frame)

    def refuse(self, frame: Frame, *, lossless: bool, place: str) -> None:
        """Note where there was no room."""
        self.refused.append(f"{place}, lossless" if lossless else place)

    def release(self, count: int = 1) -> None:
        """The last bits of the oldest frames are out."""
        for frame in self.kept[:count]:
            frame.ingress.release(frame)
        del self.kept[:count]


class Pair:
    """Both ports. `starts`: by port, when frames of which priority left; `said`: what they told, and when."""

    def __init__(
        self,
        *,
        rate_gbps: int = 100,
        propagation_ps: int = 500_000,
        response_ps: int = 0,
        resume_ps: int = 0,
        quanta: int = MAX_QUANTA,
        guard_ps: int = 0,
        account: IngressConfig | None = None,
    ) -> None:
        self.engine = Engine()
        self.propagation_ps = propagation_ps
        self.starts: dict[str, list[tuple[int, int]]] = {"here": [], "there": []}
        self.said: dict[str, list[tuple[int, Control]]] = {"here": [], "there": []}
        self.blocked = Blocked()
        taps = Taps()
        taps.frame_sent = self._sent
        link = PauseLink(
            config=PauseConfig(rate_bps=rate_gbps * GBPS, quanta=quanta, guard_ps=guard_ps),
            overhead_bytes=OVERHEAD,
            response_ps=response_ps,
            resume_ps=resume_ps,
        )
        self.ports: list[EgressPort] = []
        self.flows: list[LinkPauses] = []
        for mac, name in enumerate(("here", "there")):
            arbiter = QueueArbiter(QueueArbiterConfig(weights=(1,) * QUEUES, quantum_bytes=16_384))
            port = EgressPort(self.engine, name, rate_gbps * GBPS, taps, lanes=QUEUES, arbiter=arbiter)
            port.flow = flow = LinkPauses(self.engine, 1, port, link, mac)
            self.ports.append(port)
            self.flows.append(flow)
            config = account if account is not None and name == "there" else ROOMY
            memory = SwitchMemory(PRIORITIES * (config.headroom_bytes + config.reserved_bytes) + ROOMY_BYTES)
            accounts = tuple(IngressAccount(f"{name} {each}", config, memory) for each in range(PRIORITIES))
            flow.lead_to(self.blocked if name == "there" else Blocked(), accounts, 0, stores=False)
        for port, far in zip(self.ports, reversed(self.flows), strict=True):
            port.join(FarEnd(far.arrive, False, 0, 0, far, Called.FIRST_BIT), propagation_ps, None)
        self.here, self.there = self.ports
        self.here_flow, self.there_flow = self.flows

    def ser_ps(self, wire_bytes: int) -> int:
        """On this link."""
        return self.here.serialization_ps(wire_bytes)

    def tell(self, when_ps: int, control: Control) -> None:
        """Let `there` say something whose last bit comes in at `here` then."""
        sent_ps = when_ps - self.propagation_ps - self.ser_ps(PFC_BYTES)
        self.engine.at(sent_ps, self.there.start_control, control_frame(control))

    def offer(self, port: EgressPort, *frames: Frame, at_ps: int = 0) -> None:
        """Let frames be ready to leave by a port then."""
        for each in frames:
            self.engine.at(at_ps, port.enqueue, each)

    def started(self, priority: int = 3) -> list[int]:
        """When frames of a priority left by `here`."""
        return [when_ps for when_ps, which in self.starts["here"] if which == priority]

    def _sent(self, when_ps: int, name: str, frame: Frame) -> None:
        if isinstance(frame, ControlFrame):
            self.said[name].append((when_ps, frame.control))
        else:
            self.starts[name].append((when_ps, frame.envelope.priority))


ROOMY_BYTES = 1 << 40
ROOMY = IngressConfig(alpha=Fraction(1), xoff_bytes=ROOMY_BYTES, xon_bytes=0, headroom_bytes=0, lossless=False)
