"""Connections made over QP1: what both ends agree on, what of it is on the wire, and that nobody else can interfere."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from emu import opcodes
from emu.addresses import address_of
from emu.capture.recorder import Recorder, chosen
from emu.errors import VerbsError
from emu.run.assembly import Assembly
from emu.scenario.load import parse
from emu.transport import cm
from emu.transport.cm_message import Dreq, Reason, Rej, Rejected, Rep, Req, Rtu
from emu.verbs import QP, SGE, Access, QPAttr, QPState, QPType, SendWR, WcStatus
from emu.verbs.cm import Accept, Connection, Manager, Reject, Request
from emu.verbs.gsi import SENDS, WAYS
from tests.verbs.strangers import SERVICE, TEXT, Two


def refuse(_: Request) -> Reject:
    return Reject(private_data=b"not today")


@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize("qp_type", [QPType.RC, QPType.UC])
def test_both_become_ready_and_carry_data(qp_type: QPType, profile: str) -> None:
    two = Two(profile, qp_type=qp_type)
    listener = two.there.listen(SERVICE, two.accept)
    made: list[Connection] = []

    async def serve() -> None:
        made.append(await listener.next())

    two.engine.spawn(serve())
    connection = two.connect(first_psn=0xABCDEF)
    far = two.far
    assert far is not None
    assert (two.qp.state, far.state) == (QPState.RTS, QPState.RTS)
    (request,) = two.requests
    assert (request.path_mtu_bytes, request.peer.lid) == (1024, two.contexts["h0"].address.lid)
    assert request.private_data == b"hello".ljust(92, b"\0")
    assert connection.private_data == b"welcome".ljust(196, b"\0")
    assert [each.qp for each in made] == [far]
    assert two.mads() == ["Req", "Rep", "Rtu"]
    assert two.assembly.measurement.posted == two.assembly.measurement.delivered == 0  # it is in nobody's figures
    source = two.pds["h0"].reg_mr(3000)
    source.buffer[:] = random.Random(3).randbytes(3000)
    target = two.pds["h1"].reg_mr(3000, Access.LOCAL_WRITE | Access.REMOTE_WRITE)
    sge = SGE(addr=source.addr, length=3000, lkey=source.lkey)
    two.frames.clear()
    two.qp.post_send(SendWR(wr_id=1, sge=sge, remote_addr=target.addr, rkey=target.rkey))
    two.idle()
    assert target.buffer == source.buffer
    assert [each.status for each in two.cq.poll_cq(9)] == [WcStatus.SUCCESS]
    assert [frame.psn for frame in two.frames][:3] == [0xABCDEF, 0xABCDF0, 0xABCDF1]
    assert (two.qp.destination, far.destination) == ("h1", "h0")


def test_mads_are_datagrams_to_qp1_and_qp1_is_there_only_then() -> None:
    two = Two()
    other = Assembly(parse(TEXT.format(profile="roce", mtu=1024), "cm.yaml"))
    assert all(1 not in nic.queue_pairs for nic in other.fabric.nics.values())
    two.there.listen(SERVICE, two.accept)
    two.connect()
    for frame in two.frames:
        assert (frame.opcode, frame.envelope.destination_qp) == (opcodes.UD | opcodes.SEND_ONLY, 1)
        assert (frame.extension, len(frame.payload)) == ((0x8001_0000, 1), 256)
    with pytest.raises(VerbsError, match="QP1 already"):
        Manager(two.contexts["h0"], {})


def test_depths_timeouts_and_retries_are_those_agreed() -> None:
    two = Two()
    two.qp.modify(QPState.INIT, QPAttr(max_rd_atomic=9, max_dest_rd_atomic=2, rnr_retry=3, retry_cnt=4, timeout=11))

    def accept(request: Request) -> Accept:
        answer = two.accept(request)
        answer.qp.modify(QPState.INIT, QPAttr(max_rd_atomic=5, max_dest_rd_atomic=4, rnr_retry=6))
        return answer

    two.there.listen(SERVICE, accept)
    two.connect()
    here, far = two.qp.attr, two.far.attr if two.far is not None else None
    assert far is not None
    assert (two.requests[0].responder_resources, two.requests[0].initiator_depth) == (2, 9)
    assert (here.max_rd_atomic, here.max_dest_rd_atomic) == (4, 2)
    assert (far.max_rd_atomic, far.max_dest_rd_atomic) == (2, 4)
    assert (far.rnr_retry, far.retry_cnt, far.timeout) == (3, 4, 11)
    assert here.rnr_retry == 6
    assert (here.sq_psn, here.rq_psn, far.sq_psn, far.rq_psn) == (0, 0xFFFFFE, 0xFFFFFE, 0)


def test_many_at_once_from_both_sides_find_their_own() -> None:
    two = Two()
    ends: dict[bytes, QP] = {}

    def accept_at(host: str) -> Callable[[Request], Accept]:
        def accept(request: Request) -> Accept:
            qp = two.pds[host].create_qp(two.contexts[host].create_cq())
            ends[request.private_data.rstrip(b"\0")] = qp
            return Accept(qp=qp)

        return accept

    two.here.listen(SERVICE, accept_at("h0"))
    two.there.listen(SERVICE, accept_at("h1"))
    made: dict[bytes, Connection] = {}

    async def work(manager: Manager, host: str, peer: str, name: bytes) -> None:
        qp = two.pds[host].create_qp(two.contexts[host].create_cq())
        made[name] = await manager.connect(qp, two.contexts[peer].address, SERVICE, private_data=name)

    for number in range(50):
        two.engine.spawn(work(two.here, "h0", "h1", b"there %d" % number))
        two.engine.spawn(work(two.there, "h1", "h0", b"back %d" % number))
    two.idle()
    assert len(made) == len(ends) == 100
    for name, connection in made.items():
        assert connection.remote_qpn == ends[name].qp_num
        assert ends[name].state is connection.qp.state is QPState.RTS
        assert ends[name].attr.dest_qp_num == connection.qp.qp_num


def test_nobodys_mads_change_anything(shared_data: Path) -> None:
    """Bodies of noise, and messages about connections that are not there, in every state of one that is."""
    two = Two()
    two.there.listen(SERVICE, refuse)
    numbers = random.Random(7)
    stranger = two.contexts["h0"].address
    header = {
        each: cm.encode(cm.Mad(1, Rtu(local_id=0, remote_id=0)))[:16] + each.to_bytes(2, "big") for each in cm._READ
    }
    for attribute in list(cm._READ) * 200:
        data = header[attribute] + bytes(6) + numbers.randbytes(232)
        two.there._take(stranger, cm.decode(data))
    two.idle()
    assert not two.there._connections
    assert not two.there._asked
    two = Two()
    two.there.listen(SERVICE, two.accept)
    connection = two.connect()
    wrong = connection.remote_id + 1
    for message in (
        Rtu(local_id=wrong, remote_id=connection.local_id),
        Dreq(local_id=wrong, remote_id=connection.local_id, remote_qpn=connection.qp.qp_num),
        Rej(local_id=wrong, remote_id=connection.local_id, rejected=Rejected.REP, reason=Reason.CONSUMER),
    ):
        two.here._take(stranger, cm.Mad(1, message))
    two.idle()
    assert two.qp.state is QPState.RTS
    assert isinstance(connection.asked, (Req, type(None)))
    assert Rep in (type(cm.decode(bytes(frame.payload)).message) for frame in two.frames)


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_however_many_peers_are_named_few_are_kept(profile: str) -> None:
    two = Two(profile)
    two.there.listen(SERVICE, two.accept)
    gsi, peers, at_once = two.there.gsi, 3 * WAYS, SENDS // 2
    for number in range(2, peers + 2):
        dreq = Dreq(local_id=number, remote_id=5, remote_qpn=0)
        two.there._take(address_of(f"LID {number + 1}", number), cm.Mad(number, dreq))  # each is answered
        if number % at_once == 0:
            two.idle()
    two.idle()
    assert gsi.sent == peers
    assert len(gsi._ways) == WAYS
    assert two.connect().qp.state is QPState.RTS


TSHARK = shutil.which("tshark")


@pytest.mark.skipif(TSHARK is None, reason="tshark is not installed (Debian package tshark)")
def test_tshark_reads_what_is_sent(tmp_path: Path) -> None:
    two = Two()
    recorder = Recorder(tmp_path / "cm.pcapng")
    with recorder:
        recorder.watch(two.assembly.taps, chosen(two.assembly.topology.links, ("h0-s0",)), native=False, title="cm")
        two.there.listen(SERVICE, two.accept)
        connection = two.connect(first_psn=0x123456)
        two.engine.spawn(two.here.disconnect(connection))
        two.idle()
    fields = ("_ws.col.Info", "infiniband.cm.req.localqpn", "infiniband.cm.req.startpsn", "_ws.malformed")
    options = [option for field in fields for option in ("-e", field)]
    done = subprocess.run(
        [TSHARK or "tshark", "-n", "-r", str(tmp_path / "cm.pcapng"), "-T", "fields", "-E", "separator=|", *options],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    rows = [line.split("|") for line in done.stdout.splitlines()]
    names = ["ConnectRequest", "ConnectReply", "ReadyToUse", "DisconnectRequest", "DisconnectReply"]
    assert [row[0] for row in rows] == [f"CM: {name}" for name in names]
    assert all(row[3] == "" for row in rows)
    assert [int(text, 0) for text in rows[0][1:3]] == [two.qp.qp_num, 0x123456]
