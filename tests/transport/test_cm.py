"""Connection management's messages: a real connection's, byte by byte; every field; any bytes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.capture import read
from emu.errors import WireError
from emu.transport import cm
from emu.transport.cm_message import PRIVATE_BYTES, Attribute, Drep, Dreq, Message, Reason, Rej, Rejected, Rep, Req, Rtu
from emu.transport.cm_message import Path as PathRecord

ETHERNET_TO_DETH_BYTES = 14 + 20 + 8 + 12 + 8
ICRC_BYTES = 4
GSI = 1


def captured(folder: Path) -> list[bytes]:
    """The MADs of the captured connection, in order."""
    frames = [record.data for record in read(folder / "captures" / "rxe61__cm_rping.pcap")]
    ours = [data for data in frames if data[42] == 0x64 and int.from_bytes(data[47:50], "big") == GSI]
    return [data[ETHERNET_TO_DETH_BYTES:-ICRC_BYTES] for data in ours]


def test_a_real_connections_messages_are_read_and_written_byte_by_byte(shared_data: Path) -> None:
    mads = captured(shared_data)
    assert [type(cm.decode(data).message) for data in mads] == [Req, Rep, Rtu, Dreq, Drep]
    for data in mads:
        assert len(data) == cm.MAD_BYTES
        assert cm.encode(cm.decode(data)) == data


def test_a_real_connections_numbers_are_those_of_its_frames(shared_data: Path) -> None:
    """What REQ and REP say is what its first frames have: queue pairs, PSNs, the port of the flow label."""
    req, rep, rtu, dreq, drep = (cm.decode(data).message for data in captured(shared_data))
    assert isinstance(req, Req)
    assert isinstance(rep, Rep)
    assert isinstance(dreq, Dreq)
    assert isinstance(rtu, Rtu)
    assert isinstance(drep, Drep)
    frames = [record.data for record in read(shared_data / "captures" / "rxe61__cm_rping.pcap")]
    there = next(data for data in frames if data[42] < 0x20 and data[29] == 1)
    back = next(data for data in frames if data[42] < 0x11 and data[29] == 2)
    for data, psn, qpn in ((there, req.starting_psn, rep.qpn), (back, rep.starting_psn, req.qpn)):
        first = (req.starting_psn, rep.starting_psn)
        assert int.from_bytes(data[47:50], "big") == qpn
        assert int.from_bytes(data[51:54], "big") in first
        assert psn in first
        label = req.primary.flow_label
        assert int.from_bytes(data[34:36], "big") == (label & 0x3FFF ^ label >> 14) | 0xC000
    assert (cm.MTU_BYTES[req.mtu_code], req.retry_cnt, req.rnr_retry, rep.rnr_retry) == (1024, 7, 7, 7)
    assert (req.responder_resources, req.initiator_depth, req.max_cm_retries, req.remote_timeout) == (1, 1, 15, 20)
    assert req.primary.local_gid == bytes(10) + b"\xff\xff" + bytes((192, 0, 2, 1))
    assert {(rep.remote_id, rep.local_id)} == {(rtu.local_id, rtu.remote_id), (dreq.local_id, dreq.remote_id)}
    assert (drep.local_id, drep.remote_id, dreq.remote_qpn) == (rep.local_id, rep.remote_id, rep.qpn)


PATHS = st.builds(
    PathRecord,
    local_lid=st.integers(0, 0xFFFF),
    remote_lid=st.integers(0, 0xFFFF),
    local_gid=st.binary(min_size=16, max_size=16),
    remote_gid=st.binary(min_size=16, max_size=16),
    flow_label=st.integers(0, 0xFFFFF),
    packet_rate=st.integers(0, 63),
    traffic_class=st.integers(0, 255),
    hop_limit=st.integers(0, 255),
    sl=st.integers(0, 15),
    subnet_local=st.booleans(),
    ack_timeout=st.integers(0, 31),
)
IDS = {"local_id": st.integers(0, 2**32 - 1), "remote_id": st.integers(0, 2**32 - 1)}
NUMBER, BYTE, CODE = st.integers(0, 2**24 - 1), st.integers(0, 255), st.integers(0, 31)
GUIDS = st.binary(min_size=8, max_size=8)


def private(attribute: int) -> st.SearchStrategy[bytes]:
    return st.binary(min_size=PRIVATE_BYTES[Attribute(attribute)], max_size=PRIVATE_BYTES[Attribute(attribute)])


MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(
        Req,
        local_id=IDS["local_id"],
        service_id=st.integers(0, 2**64 - 1),
        ca_guid=GUIDS,
        qpn=NUMBER,
        starting_psn=NUMBER,
        responder_resources=BYTE,
        initiator_depth=BYTE,
        remote_timeout=CODE,
        local_timeout=CODE,
        service=st.integers(0, 3),
        end_to_end_credits=st.booleans(),
        retry_cnt=st.integers(0, 7),
        pkey=st.integers(0, 0xFFFF),
        mtu_code=st.integers(0, 15),
        rnr_retry=st.integers(0, 7),
        max_cm_retries=st.integers(0, 15),
        srq=st.booleans(),
        primary=PATHS,
        alternate=PATHS,
        private_data=private(0x10),
    ),
    st.builds(
        Rep,
        **IDS,
        qpn=NUMBER,
        starting_psn=NUMBER,
        responder_resources=BYTE,
        initiator_depth=BYTE,
        ack_delay=CODE,
        failover=st.integers(0, 3),
        end_to_end_credits=st.booleans(),
        rnr_retry=st.integers(0, 7),
        srq=st.booleans(),
        ca_guid=GUIDS,
        private_data=private(0x13),
    ),
    st.builds(Rtu, **IDS, private_data=private(0x14)),
    st.builds(
        Rej,
        **IDS,
        rejected=st.integers(0, 3),
        reason=st.integers(0, 0xFFFF),
        info=st.binary(max_size=72),
        private_data=private(0x12),
    ),
    st.builds(Dreq, **IDS, remote_qpn=NUMBER, private_data=private(0x15)),
    st.builds(Drep, **IDS, private_data=private(0x16)),
)


@given(st.integers(0, 2**64 - 1), MESSAGES)
def test_every_field_survives(transaction: int, message: Message) -> None:
    mad = cm.Mad(transaction, message)
    data = cm.encode(mad)
    assert len(data) == cm.MAD_BYTES
    assert cm.decode(data) == mad


@given(st.binary(max_size=300))
def test_noise_is_a_wire_error_or_nothing(data: bytes) -> None:
    with pytest.raises(WireError):
        cm.decode(data)


def test_any_body_is_read(shared_data: Path) -> None:
    numbers = random.Random(5)
    for data in captured(shared_data):
        for _ in range(200):
            damaged = data[:24] + numbers.randbytes(cm.MAD_BYTES - 24)
            assert type(cm.decode(damaged).message) is type(cm.decode(data).message)


@pytest.mark.parametrize(("at", "value"), [(0, 2), (1, 0x03), (2, 1), (3, 1), (17, 0x11), (17, 0xFF)])
def test_other_managements_are_refused(at: int, value: int, shared_data: Path) -> None:
    data = bytearray(captured(shared_data)[0])
    data[at] = value
    with pytest.raises(WireError):
        cm.decode(bytes(data))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(WireError, match="a RTU has room for 224"):
        cm.encode(cm.Mad(1, Rtu(local_id=1, remote_id=2, private_data=bytes(225))))
    rej = Rej(local_id=1, remote_id=2, rejected=Rejected.REQ, reason=Reason.CONSUMER, info=bytes(73))
    with pytest.raises(WireError, match="a REJ has room for 72"):
        cm.encode(cm.Mad(1, rej))
