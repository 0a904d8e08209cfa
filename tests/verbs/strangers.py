"""Two hosts that have to connect over QP1, and MADs that are not heard."""

from __future__ import annotations

from collections import Counter
from typing import Any

from emu.frame import ControlFrame, Frame
from emu.run.assembly import Assembly
from emu.scenario.load import parse
from emu.transport import cm
from emu.transport.answer import AnyAnswer
from emu.verbs import QP, QPType
from emu.verbs.cm import Accept, CmConfig, Connection, Manager, Managers, NotConnected, Request

SERVICE = 0x0200_0000_0000_0007
QUICK = CmConfig(timeout_code=6, retries=3)  # 262.144 us
TEXT = """
name: cm
fabric: {{profile: {profile}, path_mtu: {mtu}B, topology: {{kind: line, switches: 1}}}}
traffic: [{{kind: write, pairs: [[h0, h1]], size: 1B}}]
"""


class Deaf:
    """A QP1's receive side that does not hear some MADs, by what they are."""

    def __init__(self, manager: Manager, **times: int) -> None:
        self._state = manager.gsi._state
        self._inner = self._state.responder
        self._left = Counter(times)
        self._state.responder = self

    def on_request(self, frame: Frame) -> AnyAnswer | None:
        name = type(cm.decode(bytes(frame.payload)).message).__name__.lower()
        if self._left[name]:
            self._left[name] -= 1
            return None
        return self._inner.on_request(frame)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            object.__setattr__(self, name, value)
        else:
            setattr(self._inner, name, value)


class Two:
    """Two hosts that know nothing of each other yet; h1 may listen."""

    def __init__(self, profile: str = "roce", mtu: int = 1024, qp_type: QPType = QPType.RC) -> None:
        self.assembly = Assembly(parse(TEXT.format(profile=profile, mtu=mtu), "cm.yaml"))
        self.assembly.fabric.join(None)
        self.engine = self.assembly.engine
        self.contexts = self.assembly.fabric.contexts
        managers = Managers()
        self.here, self.there = (managers.of(self.contexts[name]) for name in ("h0", "h1"))
        self.pds = {name: context.alloc_pd() for name, context in self.contexts.items()}
        self.cq = self.contexts["h0"].create_cq()
        self.qp = self.pds["h0"].create_qp(self.cq, qp_type=qp_type)
        self.far_type = qp_type
        self.far: QP | None = None
        self.requests: list[Request] = []
        self.frames: list[Frame] = []
        self.assembly.taps.frame_sent = self._note

    def _note(self, _: int, link: str, frame: Frame) -> None:
        if link in ("h0-s0", "h1-s0") and not isinstance(frame, ControlFrame):
            self.frames.append(frame)

    def accept(self, request: Request) -> Accept:
        self.requests.append(request)
        self.far = self.pds["h1"].create_qp(self.contexts["h1"].create_cq(), qp_type=self.far_type)
        return Accept(qp=self.far, private_data=b"welcome", first_psn=0xFFFFFE)

    def connect(self, config: CmConfig = QUICK, **more: Any) -> Connection:
        """Run until there is a connection, or NotConnected is raised."""
        found: list[Connection | NotConnected] = []

        async def work() -> None:
            try:
                peer = self.contexts["h1"].address
                found.append(
                    await self.here.connect(self.qp, peer, SERVICE, private_data=b"hello", config=config, **more)
                )
            except NotConnected as error:
                found.append(error)

        self.engine.spawn(work())
        self.idle()
        (one,) = found
        if isinstance(one, NotConnected):
            raise one
        return one

    def idle(self) -> None:
        """Until nothing is left to do: a run ends with the last coroutine, whatever else is under way."""
        while self.engine.queue:
            self.engine.run()
        assert self.engine.tasks == 0

    def mads(self) -> list[str]:
        """What was sent so far, by name."""
        return [type(cm.decode(bytes(f.payload)).message).__name__ for f in self.frames if f.opcode == 0x64]
