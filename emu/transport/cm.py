"""Connection management datagrams (MADs of class ComMgt): 256 bytes to QP1, IBTA vol. 1, 12.6 and 13.4.3.

Pure codecs. Reserved bits are sent as zero, and ignored; Q_Keys and EE contexts, of reliable datagrams, are zero too.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from emu.errors import WireError
from emu.transport.cm_message import (
    ATTRIBUTE_OF,
    PRIVATE_BYTES,
    Attribute,
    Drep,
    Dreq,
    Message,
    Path,
    Rej,
    Rep,
    Req,
    Rtu,
)

MAD_BYTES = 256
GSI_QP = 1
GSI_QKEY = 0x8001_0000  # IBTA vol. 1, 3.5.3: of QP1 everywhere
BASE_VERSION, MANAGEMENT_CLASS, CLASS_VERSION, METHOD_SEND = 1, 0x07, 2, 0x03
TIMEOUT_UNIT_PS = 4_096_000  # timeouts are 4.096 us x 2^code
MTU_CODES = {256: 1, 512: 2, 1024: 3, 2048: 4, 4096: 5}
MTU_BYTES = {code: mtu_bytes for mtu_bytes, code in MTU_CODES.items()}
LOW_24 = 0xFFFFFF
NO_QKEY = NO_CONTEXT = 0

_HEADER = Struct("!BBBBHHQHHI")
_IDS = Struct("!II")
_REQ = Struct("!I4xQ8s4xIIIIIHBB")  # up to the primary path
_PATH = Struct("!HH16s16sIBBBB")
_REP = Struct("!IIIIIIBBBB8s")
_REJ = Struct("!IIBBH72s")
_DREQ = Struct("!III")
ARI_BYTES = 72


class Mad(NamedTuple):
    """A MAD; what answers another one has its transaction's number."""

    transaction: int
    message: Message


def encode(mad: Mad) -> bytes:
    """Its 256 bytes; private data is padded with zeros. Raises WireError where some does not fit its field."""
    attribute = ATTRIBUTE_OF[type(mad.message)]
    room, private = PRIVATE_BYTES[attribute], mad.message.private_data
    if len(private) > room:
        raise WireError(f"{len(private)} B of private data: a {attribute.name} has room for {room}")
    return b"".join((_header(mad.transaction, attribute), _fields(mad.message), private.ljust(room, b"\0")))


def decode(data: bytes) -> Mad:
    """What those bytes say. Raises WireError for what is no MAD of connection management that we know."""
    if len(data) != MAD_BYTES:
        raise WireError(f"a MAD of {len(data)} B: it has {MAD_BYTES}")
    base, kind, version, method, _, _, transaction, attribute, _, _ = _HEADER.unpack_from(data)
    if (base, kind, version, method) != (BASE_VERSION, MANAGEMENT_CLASS, CLASS_VERSION, METHOD_SEND):
        raise WireError(f"no MAD of connection management: class 0x{kind:02x} version {version} method 0x{method:02x}")
    read = _READ.get(attribute)
    if read is None:
        raise WireError(f"connection management with attribute 0x{attribute:04x}, which we do not know")
    return Mad(transaction, read(data[_HEADER.size :]))


def _header(transaction: int, attribute: Attribute) -> bytes:
    return _HEADER.pack(BASE_VERSION, MANAGEMENT_CLASS, CLASS_VERSION, METHOD_SEND, 0, 0, transaction, attribute, 0, 0)


def _fields(message: Message) -> bytes:
    match message:
        case Req():
            return _req_fields(message)
        case Rep():
            return _rep_fields(message)
        case Rej():
            return _rej_fields(message)
        case Dreq():
            return _DREQ.pack(message.local_id, message.remote_id, _high_24(message.remote_qpn))
        case _:
            return _IDS.pack(message.local_id, message.remote_id)


def _req_fields(req: Req) -> bytes:
    fixed = _REQ.pack(
        req.local_id,
        req.service_id,
        req.ca_guid,
        NO_QKEY,
        _high_24(req.qpn, req.responder_resources),
        _high_24(NO_CONTEXT, req.initiator_depth),
        _high_24(NO_CONTEXT, req.remote_timeout << 3 | req.service << 1 | req.end_to_end_credits),
        _high_24(req.starting_psn, req.local_timeout << 3 | req.retry_cnt),
        req.pkey,
        req.mtu_code << 4 | req.rnr_retry,
        req.max_cm_retries << 4 | req.srq << 3,
    )
    return fixed + _path_fields(req.primary) + _path_fields(req.alternate)


def _path_fields(path: Path) -> bytes:
    return _PATH.pack(
        path.local_lid,
        path.remote_lid,
        path.local_gid,
        path.remote_gid,
        path.flow_label << 12 | path.packet_rate,
        path.traffic_class,
        path.hop_limit,
        path.sl << 4 | path.subnet_local << 3,
        path.ack_timeout << 3,
    )


def _rep_fields(rep: Rep) -> bytes:
    return _REP.pack(
        rep.local_id,
        rep.remote_id,
        NO_QKEY,
        _high_24(rep.qpn),
        _high_24(NO_CONTEXT),
        _high_24(rep.starting_psn),
        rep.responder_resources,
        rep.initiator_depth,
        rep.ack_delay << 3 | rep.failover << 1 | rep.end_to_end_credits,
        rep.rnr_retry << 5 | rep.srq << 4,
        rep.ca_guid,
    )


def _rej_fields(rej: Rej) -> bytes:
    if len(rej.info) > ARI_BYTES:
        raise WireError(f"{len(rej.info)} B of further information: a REJ has room for {ARI_BYTES}")
    return _REJ.pack(rej.local_id, rej.remote_id, rej.rejected << 6, len(rej.info) << 1, rej.reason, rej.info)


def _high_24(number: int, low_8: int = 0) -> int:
    return (number & LOW_24) << 8 | low_8


def _read_req(data: bytes) -> Req:
    local_id, service_id, guid, _, qpn, depth, remote, psn, pkey, mtu, retries = _REQ.unpack_from(data)
    primary = _REQ.size
    alternate = primary + _PATH.size
    return Req(
        local_id=local_id,
        service_id=service_id,
        ca_guid=guid,
        qpn=qpn >> 8,
        starting_psn=psn >> 8,
        responder_resources=qpn & 0xFF,
        initiator_depth=depth & 0xFF,
        remote_timeout=remote >> 3 & 31,
        local_timeout=psn >> 3 & 31,
        service=remote >> 1 & 3,
        end_to_end_credits=remote & 1 == 1,
        retry_cnt=psn & 7,
        pkey=pkey,
        mtu_code=mtu >> 4,
        rnr_retry=mtu & 7,
        max_cm_retries=retries >> 4,
        srq=retries >> 3 & 1 == 1,
        primary=_read_path(data, primary),
        alternate=_read_path(data, alternate),
        private_data=data[alternate + _PATH.size :],
    )


def _read_path(data: bytes, at: int) -> Path:
    local_lid, remote_lid, local, remote, flow, traffic_class, hop_limit, level, timeout = _PATH.unpack_from(data, at)
    return Path(
        local_lid=local_lid,
        remote_lid=remote_lid,
        local_gid=local,
        remote_gid=remote,
        flow_label=flow >> 12,
        packet_rate=flow & 0x3F,
        traffic_class=traffic_class,
        hop_limit=hop_limit,
        sl=level >> 4,
        subnet_local=level >> 3 & 1 == 1,
        ack_timeout=timeout >> 3,
    )


def _read_rep(data: bytes) -> Rep:
    local_id, remote_id, _, qpn, _, psn, resources, depth, delay, retry, guid = _REP.unpack_from(data)
    return Rep(
        local_id=local_id,
        remote_id=remote_id,
        qpn=qpn >> 8,
        starting_psn=psn >> 8,
        responder_resources=resources,
        initiator_depth=depth,
        ack_delay=delay >> 3,
        failover=delay >> 1 & 3,
        end_to_end_credits=delay & 1 == 1,
        rnr_retry=retry >> 5,
        srq=retry >> 4 & 1 == 1,
        ca_guid=guid,
        private_data=data[_REP.size :],
    )


def _read_rej(data: bytes) -> Rej:
    local_id, remote_id, rejected, length, reason, info = _REJ.unpack_from(data)
    return Rej(
        local_id=local_id,
        remote_id=remote_id,
        rejected=rejected >> 6,
        reason=reason,
        info=info[: length >> 1],
        private_data=data[_REJ.size :],
    )


def _read_dreq(data: bytes) -> Dreq:
    local_id, remote_id, qpn = _DREQ.unpack_from(data)
    return Dreq(local_id=local_id, remote_id=remote_id, remote_qpn=qpn >> 8, private_data=data[_DREQ.size :])


def _read_rtu(data: bytes) -> Rtu:
    local_id, remote_id = _IDS.unpack_from(data)
    return Rtu(local_id=local_id, remote_id=remote_id, private_data=data[_IDS.size :])


def _read_drep(data: bytes) -> Drep:
    local_id, remote_id = _IDS.unpack_from(data)
    return Drep(local_id=local_id, remote_id=remote_id, private_data=data[_IDS.size :])


_READ: dict[int, Callable[[bytes], Message]] = {
    Attribute.REQ: _read_req,
    Attribute.REP: _read_rep,
    Attribute.RTU: _read_rtu,
    Attribute.REJ: _read_rej,
    Attribute.DREQ: _read_dreq,
    Attribute.DREP: _read_drep,
}
