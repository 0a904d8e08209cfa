"""An opened device and its protection domains."""

from __future__ import annotations

from collections.abc import Sequence

from emu.addresses import Address
from emu.devices.nic import Nic
from emu.engine import Engine
from emu.errors import ScenarioError, VerbsError
from emu.taps import Taps
from emu.transport.memory import Access, MemoryRegion
from emu.transport.received import ResponderConfig
from emu.transport.requester_config import RequesterConfig
from emu.transport.work import Gather, Payload, Scatter
from emu.verbs.address import AH
from emu.verbs.cq import CQ
from emu.verbs.domain import EnvelopeFactory
from emu.verbs.numbers import coerced, flags
from emu.verbs.qp import QP
from emu.verbs.srq import SRQ
from emu.verbs.state import QPType
from emu.verbs.wr import MAX_SGE, SGE


class Context:
    """An opened device: `ibv_open_device`."""

    def __init__(
        self,
        engine: Engine,
        nic: Nic,
        envelopes: EnvelopeFactory,
        config: RequesterConfig,
        taps: Taps,
        responder: ResponderConfig | None = None,
    ) -> None:
        self.engine = engine
        self.nic = nic
        self.envelopes = envelopes
        self.config = config
        self.responder = responder or ResponderConfig(path_mtu_bytes=config.path_mtu_bytes)
        self.taps = taps

    @property
    def name(self) -> str:
        """The host's name."""
        return self.nic.name

    @property
    def address(self) -> Address:
        """The port's addresses."""
        return self.nic.address

    def alloc_pd(self) -> PD:
        """`ibv_alloc_pd`."""
        return PD(self)

    def create_cq(self, cqe: int = 1024) -> CQ:
        """`ibv_create_cq` with room for `cqe` entries. Raises VerbsError below 1."""
        return CQ(cqe, self.name)


class PD:
    """A protection domain: what regions and queue pairs belong to."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.memory = context.nic.memory.next_domain()

    def reg_mr(self, length: int, access: Access = Access.LOCAL_WRITE) -> MemoryRegion:
        """`ibv_reg_mr` of `length` fresh zero bytes.

        Raises VerbsError for a length that cannot be, and for peers' writes and atomics without LOCAL_WRITE.
        """
        access = flags(Access, access, "access rights")
        if access & (Access.REMOTE_WRITE | Access.REMOTE_ATOMIC) and Access.LOCAL_WRITE not in access:
            raise VerbsError("what peers may write to, or act on, must be LOCAL_WRITE too")
        return self.memory.register(length, access)

    def dereg_mr(self, region: MemoryRegion) -> None:
        """`ibv_dereg_mr`: its keys are known no longer, and nothing that comes is written to it: what was posted fails.

        What was posted to be sent from it is sent still. Raises VerbsError for one that is not registered here.
        """
        self.memory.deregister(region)

    def create_ah(self, address: Address, priority: int | None = None) -> AH:
        """`ibv_create_ah`. Raises VerbsError for a priority that there is not."""
        try:
            self.context.envelopes(self.context.address, address, 0, 0, priority)
        except ScenarioError as error:
            raise VerbsError(str(error)) from None
        return AH(address=address, priority=priority)

    def create_srq(self, max_wr: int = 1024) -> SRQ:
        """`ibv_create_srq`. Raises VerbsError below 0."""
        return SRQ(self.scatter, max_wr, self.context.name)

    def create_qp(
        self,
        send_cq: CQ,
        max_send_wr: int = 1024,
        *,
        recv_cq: CQ | None = None,
        srq: SRQ | None = None,
        max_recv_wr: int = 1024,
        qp_type: QPType = QPType.RC,
        max_inline_data: int = 220,
        kind: str = "write",
        priority: int | None = None,
    ) -> QP:
        """`ibv_create_qp`, in the reset state. Receives are told of in `recv_cq`, the send queue's unless given.

        `kind` is what its traffic is called in results; `priority` is its SL or 802.1p priority, the fabric's unless
        given. Raises VerbsError for numbers that cannot be, and for queues of another host.
        """
        if srq is not None and srq.host != self.context.name:
            raise VerbsError(f"the shared receive queue is {srq.host}'s, the queue pair {self.context.name}'s")
        for cq in (send_cq, recv_cq):
            if cq is not None and cq.host not in ("", self.context.name):
                raise VerbsError(f"the completion queue is {cq.host}'s, the queue pair {self.context.name}'s")
        return QP(
            self,
            send_cq,
            recv_cq or send_cq,
            srq,
            qp_type=coerced(QPType, qp_type, "a type of queue pairs"),
            max_send_wr=max_send_wr,
            max_recv_wr=max_recv_wr,
            max_inline_data=max_inline_data,
            kind=kind,
            priority=priority,
        )

    def gather(self, places: Sequence[SGE]) -> Payload:
        """The bytes of those places. Raises VerbsError where an lkey does not cover one."""
        pieces = [self._region(place, Access(0)).slice(place.addr, place.length) for place in places]
        return pieces[0] if len(pieces) == 1 else Gather(pieces)

    def scatter(self, places: Sequence[SGE]) -> Scatter:
        """Those places to write to. Raises VerbsError where an lkey does not cover one, or may not be written."""
        if len(places) > MAX_SGE:
            raise VerbsError(f"{len(places)} scatter/gather entries: at most {MAX_SGE}")
        regions = [self._region(place, Access.LOCAL_WRITE) for place in places]
        pieces = [region.slice(place.addr, place.length) for region, place in zip(regions, places, strict=True)]
        return Scatter(pieces, [place.addr for place in places], regions)

    def _region(self, place: SGE, access: Access) -> MemoryRegion:
        region = self.memory.find(place.lkey, place.addr, place.length, access)
        if region is None:
            raise VerbsError(f"lkey {place.lkey:#x} does not cover {place.length} bytes at {place.addr:#x}")
        return region
