"""What connection management says (IBTA vol. 1, 12.6): the messages that open and end a connection, field by field."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

NO_GID = bytes(16)


class Attribute(IntEnum):
    """Which message it is (IBTA vol. 1, table 143)."""

    REQ = 0x0010
    REJ = 0x0012
    REP = 0x0013
    RTU = 0x0014
    DREQ = 0x0015
    DREP = 0x0016


class Service(IntEnum):
    """REQ's transport service type."""

    RC = 0
    UC = 1


class Reason(IntEnum):
    """Why a REJ refuses (IBTA vol. 1, 12.6.7.2), as far as we say so."""

    NO_RESOURCES = 3
    TIMEOUT = 4
    INVALID_COMM_ID = 6
    INVALID_SERVICE_ID = 8
    INVALID_SERVICE_TYPE = 9
    INVALID_SL = 14
    INVALID_PATH_MTU = 26
    CONSUMER = 28


class Rejected(IntEnum):
    """Which message a REJ refuses."""

    REQ = 0
    REP = 1
    OTHER = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """A path's record in a REQ. `ack_timeout` is a code."""

    local_lid: int = 0
    remote_lid: int = 0
    local_gid: bytes = NO_GID
    remote_gid: bytes = NO_GID
    flow_label: int = 0
    packet_rate: int = 0
    traffic_class: int = 0
    hop_limit: int = 0
    sl: int = 0
    subnet_local: bool = False
    ack_timeout: int = 0


NO_PATH = Path()


@dataclass(frozen=True, slots=True, kw_only=True)
class Req:
    """Asks for a connection. Timeouts are codes, `mtu_code` is MTU_CODES' value."""

    local_id: int
    service_id: int
    ca_guid: bytes
    qpn: int
    starting_psn: int
    responder_resources: int
    initiator_depth: int
    remote_timeout: int
    local_timeout: int
    service: int = Service.RC
    end_to_end_credits: bool = False
    retry_cnt: int = 7
    pkey: int = 0xFFFF
    mtu_code: int
    rnr_retry: int = 7
    max_cm_retries: int = 15
    srq: bool = False
    primary: Path
    alternate: Path = NO_PATH
    private_data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rep:
    """Grants it."""

    local_id: int
    remote_id: int
    qpn: int
    starting_psn: int
    responder_resources: int
    initiator_depth: int
    ack_delay: int = 15
    failover: int = 0
    end_to_end_credits: bool = False
    rnr_retry: int = 7
    srq: bool = False
    ca_guid: bytes
    private_data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rtu:
    """Both may use it."""

    local_id: int
    remote_id: int
    private_data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rej:
    """Refuses it; `info` says more of the reason."""

    local_id: int
    remote_id: int
    rejected: int
    reason: int
    info: bytes = b""
    private_data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dreq:
    """Asks to end it."""

    local_id: int
    remote_id: int
    remote_qpn: int
    private_data: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drep:
    """Ends it."""

    local_id: int
    remote_id: int
    private_data: bytes = b""


Message = Req | Rep | Rtu | Rej | Dreq | Drep
ATTRIBUTE_OF: dict[type[Message], Attribute] = {
    Req: Attribute.REQ,
    Rep: Attribute.REP,
    Rtu: Attribute.RTU,
    Rej: Attribute.REJ,
    Dreq: Attribute.DREQ,
    Drep: Attribute.DREP,
}
PRIVATE_BYTES = {
    Attribute.REQ: 92,
    Attribute.REP: 196,
    Attribute.RTU: 224,
    Attribute.REJ: 148,
    Attribute.DREQ: 220,
    Attribute.DREP: 224,
}
"""Private data is as long as what the message leaves of the MAD."""
