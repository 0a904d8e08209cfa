"""An opened device and its protection domains."""

from __future__ import annotations

from collections.abc import Sequence

from emu.addresses import Address
from emu.devices.nic import Nic
from emu.engine import Engine
from emu.errors import VerbsError
from emu.taps import Taps
from emu.transport.memory import Access, MemoryRegion
from emu.transport.received import ResponderConfig
from emu.transport.requester_config import RequesterConfig
from emu.transport.work import Gather, Payload, Scatter
from emu.verbs.address import AH
from emu.verbs.cq import CQ
from emu.verbs.domain import EnvelopeFactory
from emu.verbs.qp import QP
from emu.verbs.srq import SRQ
from emu.verbs.state import QPType
from emu.verbs.wr import SGE


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
        return CQ(cqe)


class PD:
    """A protection domain: what regions and queue pairs belong to."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.memory = context.nic.memory.next_domain()

    def reg_mr(self, length: int, access: Access = Access.LOCAL_WRITE) -> MemoryRegion:
        """`ibv_reg_mr` of `length` fresh zero bytes. Raises VerbsError for a negative length."""
        return self.memory.register(length, access)

    def dereg_mr(self, region: MemoryRegion) -> None:
        """`ibv_dereg_mr`: its keys are known no longer."""
        self.memory.invalidate(region.rkey)

    def create_ah(self, address: Address, priority: int | None = None) -> AH:
        """`ibv_create_ah`."""
        return AH(address=address, priority=priority)

    def create_srq(self, max_wr: int = 1024) -> SRQ:
        """`ibv_create_srq`. Raises VerbsError below 0."""
        return SRQ(self.scatter, max_wr)

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
        given.
        """
        return QP(
            self,
            send_cq,
            recv_cq or send_cq,
            srq,
            qp_type=qp_type,
            max_send_wr=max_send_wr,
            max_recv_wr=max_recv_wr,
            max_inline_data=max_inline_data,
            kind=kind,
            priority=priority,
        )

    def gather(self, places: Sequence[SGE]) -> Payload:
        """The bytes of those places. Raises VerbsError where an lkey does not cover one."""
        pieces = [self._piece(place, Access(0)) for place in places]
        return pieces[0] if len(pieces) == 1 else Gather(pieces)

    def scatter(self, places: Sequence[SGE]) -> Scatter:
        """Those places to write to. Raises VerbsError where an lkey does not cover one, or may not be written."""
        return Scatter([self._piece(place, Access.LOCAL_WRITE) for place in places], places[0].addr if places else 0)

    def _piece(self, place: SGE, access: Access) -> memoryview:
        region = self.memory.find(place.lkey, place.addr, place.length, access)
        if region is None:
            raise VerbsError(f"lkey {place.lkey:#x} does not cover {place.length} bytes at {place.addr:#x}")
        return region.slice(place.addr, place.length)
