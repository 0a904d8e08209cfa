"""Our requester against what Linux 6.1's rdma_rxe driver sent, given the answers that it got."""

from __future__ import annotations

import pytest

from emu import opcodes
from emu.addresses import address_of
from emu.transport.psn import expand
from emu.transport.requester import Completion, Requester, RequesterConfig
from emu.transport.syndrome import NAK_PSN_SEQUENCE_ERROR
from emu.transport.unreliable import UnreliableRequester
from emu.transport.wc import WcStatus
from emu.transport.work import FETCHES
from emu.units import MS
from emu.verbs.posting import Destination
from tests.transport.captured import MTU_BYTES, Direction, Seen, encoded, fetched
from tests.transport.cases import ALL_CASES, Case, as_ours, id_of, load, transport_of

JIFFY_PS = 4 * MS  # the driver's timers run in these: CONFIG_HZ is 250
TIMEOUT_GAP_PS = 100 * MS  # so long a silence in these captures is a timeout: it is 134.2 ms, all else below 50 ms


class Replay:
    """Our requester in the captured one's place: posts what it posted, gets what it got, must send the same."""

    def __init__(self, name: str, case: Case, direction: Direction) -> None:
        self.name, self.direction = name, direction
        self.left = list(direction.works)
        self.requester = requester_of(direction, case)
        self.sinks: list[bytearray] = []
        self.done: list[WcStatus] = []
        self.lost = self.ours = self.timeouts = 0
        self.is_nak_unheeded = False  # whether the driver has sent nothing since a NAK 0x60

    def post(self) -> None:
        """The next work request, as the application posted it when the one before was done."""
        work = self.left.pop(0)
        self.sinks.append(bytearray(work.size_bytes if work.opcode in FETCHES else 0))
        wqe = work.wqe(len(self.sinks) - 1, self.sinks[-1])
        extension = self.direction.requests[0].frame.extension
        if transport_of(self.direction) == opcodes.UD and extension is not None:
            qp_num = self.direction.requests[0].frame.envelope.destination_qp
            wqe.target = Destination(address_of("h1", 1), None, qp_num, extension[0])
        self.requester.post(wqe)

    def expect(self, seen: Seen, gap_ps: int) -> None:
        """A request was captured: ours is the same, after those that were lost on the way."""
        number = expand(seen.frame.psn, self.direction.first_psn)
        if gap_ps > TIMEOUT_GAP_PS or (not self.requester.can_send() and self.requester.deadline_ps >= 0):
            self.expire(seen.time_ps)
        while True:
            if not self.requester.can_send():
                assert self.left and self.left[0].first <= number, f"frame {seen.number}: we would not send it"
                self.post()
            frame = self.requester.next_frame(seen.time_ps)
            if frame.psn == seen.frame.psn:
                break
            self.lost += 1
        assert encoded(frame) == as_ours(self.name, seen.wire), f"frame {seen.number}"
        self.is_nak_unheeded = False

    def expire(self, now_ps: int) -> None:
        """What was still to be sent went and was lost; then the time is up."""
        while self.requester.can_send():
            self.requester.next_frame(now_ps)
            self.lost += not self.is_nak_unheeded
            self.ours += self.is_nak_unheeded
        deadline_ps = self.requester.deadline_ps
        assert deadline_ps > 0
        is_wait = isinstance(self.requester, Requester) and self.requester._refused >= 0
        self.timeouts += not is_wait
        if self.name != "rc_loss_data":  # where the driver's timer runs since an earlier message
            assert now_ps >= deadline_ps - (0 if is_wait else JIFFY_PS)
            assert now_ps <= deadline_ps + 2 * JIFFY_PS
        self.finish(self.requester.on_deadline(max(now_ps, deadline_ps)))

    def answered(self, seen: Seen) -> None:
        """An answer was captured: ours takes it."""
        take = self.requester.on_response if seen.frame.opcode in opcodes.RESPONSES else self.requester.on_acknowledge
        self.is_nak_unheeded = seen.frame.aeth is not None and seen.frame.aeth[0] == NAK_PSN_SEQUENCE_ERROR
        self.finish(take(seen.frame, seen.time_ps))

    def finish(self, done: list[Completion]) -> None:
        self.done += [status for _, status in done]


def requester_of(direction: Direction, case: Case) -> Requester | UnreliableRequester:
    transport, envelope = transport_of(direction), direction.requests[0].frame.envelope
    if transport != opcodes.RC:
        extension = direction.requests[0].frame.extension
        source_qp = extension[1] if transport == opcodes.UD and extension is not None else None
        return UnreliableRequester(lambda _: envelope, transport, MTU_BYTES, direction.first_psn, source_qp)
    config = RequesterConfig(
        path_mtu_bytes=MTU_BYTES,
        window_packets=128,
        ack_every_packets=64,
        ack_timeout_code=15,
        retry_cnt=case.retry_cnt,
    )
    return Requester(envelope, config, direction.first_psn)


@pytest.mark.parametrize(("name", "case"), ALL_CASES, ids=id_of)
def test_our_requester_sends_as_the_driver_did(name: str, case: Case) -> None:
    direction = load(name, case)
    replay = Replay(name, case, direction)
    before_ps = direction.seen[0].time_ps
    for seen in direction.seen:
        if seen.is_answer:
            replay.answered(seen)
        else:
            replay.expect(seen, seen.time_ps - before_ps)
        before_ps = seen.time_ps
    assert replay.left == []
    assert (replay.lost, replay.ours, replay.timeouts) == (case.lost, case.ours, case.timeouts)
    if not case.is_answered:
        replay.finish(replay.requester.on_deadline(replay.requester.deadline_ps))
    replay.finish(replay.requester.finished)
    assert replay.done == list(case.statuses or [WcStatus.SUCCESS] * len(direction.works))
    assert replay.requester.failed == bool(case.statuses)
    assert replay.requester.deadline_ps == -1
    for work, sink in zip(direction.works, replay.sinks, strict=True):
        if work.opcode in FETCHES and not case.statuses:
            assert bytes(sink) == fetched(direction, work)
