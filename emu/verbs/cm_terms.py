"""What two queue pairs agree on: the numbers in REQ and REP, and what each is told on its way to RTS."""

from __future__ import annotations

from emu.addresses import Address
from emu.transport import cm
from emu.transport.cm_message import Path, Rep, Req
from emu.verbs.cm_connection import Connection, Request
from emu.verbs.domain import Device
from emu.verbs.gsi import ROCE
from emu.verbs.state import QPAttr

IPV4_MAPPED = bytes(10) + b"\xff\xff"  # of a RoCEv2 GID
LINK_LOCAL = bytes.fromhex("fe80000000000000")
PERMISSIVE_LID = 0xFFFF  # where there are no LIDs
DEFAULT_ACK_DELAY = 15


def req_of(
    connection: Connection, context: Device, service_id: int, service: int, level: int, private_data: bytes
) -> Req:
    """What asks for this connection; `level` is the SL or 802.1p priority that its frames will have."""
    config, qp = context.config, connection.qp
    mtu_bytes = qp.attr.path_mtu_bytes or config.path_mtu_bytes
    return Req(
        local_id=connection.local_id,
        service_id=service_id,
        ca_guid=guid_of(context.address),
        qpn=qp.qp_num,
        starting_psn=connection.first_psn,
        responder_resources=_resources(connection, context),
        initiator_depth=_depth(connection, context),
        remote_timeout=connection.config.timeout_code,
        local_timeout=connection.config.timeout_code,
        service=service,
        retry_cnt=_or(qp.attr.retry_cnt, config.retry_cnt),
        mtu_code=cm.MTU_CODES[mtu_bytes],
        rnr_retry=_or(qp.attr.rnr_retry, config.rnr_retry),
        max_cm_retries=connection.config.retries,
        primary=_path(connection, context, level),
        private_data=private_data,
    )


def rep_of(connection: Connection, context: Device, req: Req, private_data: bytes) -> Rep:
    """What grants it."""
    return Rep(
        local_id=connection.local_id,
        remote_id=req.local_id,
        qpn=connection.qp.qp_num,
        starting_psn=connection.first_psn,
        responder_resources=min(_resources(connection, context), req.initiator_depth),
        initiator_depth=min(_depth(connection, context), req.responder_resources),
        ack_delay=DEFAULT_ACK_DELAY,
        rnr_retry=_or(connection.qp.attr.rnr_retry, context.config.rnr_retry),
        ca_guid=guid_of(context.address),
        private_data=private_data,
    )


def attr_of(connection: Connection, context: Device, req: Req | None, rep: Rep) -> QPAttr:
    """What the queue pair is told: the one that was asked (`req`), or the one that asked and has its REP."""
    if req is not None:  # retries and timeouts are those that the other one asks us to have
        return QPAttr(
            dest=connection.peer,
            dest_qp_num=req.qpn,
            rq_psn=req.starting_psn,
            sq_psn=connection.first_psn,
            path_mtu_bytes=cm.MTU_BYTES.get(req.mtu_code),
            max_dest_rd_atomic=rep.responder_resources,
            max_rd_atomic=rep.initiator_depth,
            timeout=req.primary.ack_timeout,
            retry_cnt=req.retry_cnt,
            rnr_retry=req.rnr_retry,
        )
    return QPAttr(
        dest=connection.peer,
        dest_qp_num=rep.qpn,
        rq_psn=rep.starting_psn,
        sq_psn=connection.first_psn,
        max_dest_rd_atomic=min(_resources(connection, context), rep.initiator_depth),
        max_rd_atomic=min(_depth(connection, context), rep.responder_resources),
        rnr_retry=rep.rnr_retry,
    )


def request_of(peer: Address, req: Req) -> Request:
    """What a listener is shown."""
    return Request(
        peer=peer,
        service_id=req.service_id,
        path_mtu_bytes=cm.MTU_BYTES.get(req.mtu_code, 0),
        responder_resources=req.responder_resources,
        initiator_depth=req.initiator_depth,
        private_data=req.private_data,
    )


def guid_of(address: Address) -> bytes:
    """EUI-64 of the port's MAC address."""
    mac = address.mac.to_bytes(6, "big")
    return bytes((mac[0] ^ 2,)) + mac[1:3] + b"\xff\xfe" + mac[3:]


def _path(connection: Connection, context: Device, level: int) -> Path:
    here, there = context.address, connection.peer
    roce = context.envelopes(here, there, cm.GSI_QP, cm.GSI_QP, None)[0].framing.name == ROCE
    timeout = _or(connection.qp.attr.timeout, context.config.ack_timeout_code)
    if roce:
        gids = [IPV4_MAPPED + address.ipv4.to_bytes(4, "big") for address in (here, there)]
        lids = [PERMISSIVE_LID, PERMISSIVE_LID]
    else:
        gids, lids = [LINK_LOCAL + guid_of(address) for address in (here, there)], [here.lid, there.lid]
    return Path(
        local_lid=lids[0],
        remote_lid=lids[1],
        local_gid=gids[0],
        remote_gid=gids[1],
        hop_limit=64 if roce else 0,
        sl=level,
        subnet_local=not roce,
        ack_timeout=timeout,
    )


def _resources(connection: Connection, context: Device) -> int:
    return _or(connection.qp.attr.max_dest_rd_atomic, context.responder.max_dest_rd_atomic)


def _depth(connection: Connection, context: Device) -> int:
    return _or(connection.qp.attr.max_rd_atomic, context.config.max_rd_atomic)


def _or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value
