"""Losses, errors and resets with a host path: each message is over once, nothing of an old connection comes through."""

from __future__ import annotations

from fractions import Fraction

import pytest

from emu.verbs import QPAttr, QPState, SendWR, WcStatus, WROpcode
from tests.host.test_operations import HOSTS, IDS, ON_THE_WAY, check_books
from tests.verbs.ends import Ends
from tests.verbs.test_loss import KINDS, Exchange, lossy


@pytest.mark.parametrize("host", HOSTS, ids=IDS)
@pytest.mark.parametrize("recovery", ["go_back_n", "selective_repeat"])
def test_losses_on_the_network_are_made_up_for(recovery: str, host: list[str]) -> None:
    exchange = Exchange(3, 50, "native", *lossy(KINDS["both"], Fraction(1, 20)), recovery=recovery, settings=host)
    exchange.run()
    exchange.hold(50)
    assert exchange.injected("drop") > 5
    check_books(exchange.ends)


def statuses(ends: Ends) -> list[tuple[int, WcStatus]]:
    return [(each.wr_id, each.status) for each in ends.here.cq.poll_cq(99)]


@pytest.mark.parametrize("host", HOSTS, ids=IDS)
def test_a_queue_pair_in_error_flushes_all_that_is_on_its_way(host: list[str]) -> None:
    for when_ps in range(0, 30_000_000, 1_900_000):
        ends = Ends(settings=host)
        for number in range(6):
            ends.post(WROpcode.RDMA_WRITE, 2000, number * 3000, number * 3000, wr_id=number)
        ends.engine.run(when_ps)
        ends.here.qp.modify(QPState.ERR)
        ends.post(WROpcode.RDMA_WRITE, 8, wr_id=6)
        ends.run()
        done = statuses(ends)
        assert [number for number, _ in done] == list(range(7))
        good = sum(status is WcStatus.SUCCESS for _, status in done)
        assert [status for _, status in done[good:]] == [WcStatus.WR_FLUSH_ERR] * (7 - good)
        check_books(ends)


@pytest.mark.parametrize("host", [*HOSTS, [*HOSTS[0], *ON_THE_WAY]], ids=[*IDS, "by the CPU"])
def test_a_reset_queue_pair_takes_its_requests_along_at_any_instant(host: list[str]) -> None:
    for when_ps in range(0, 36_000_000, 1_700_000):
        ends = Ends(settings=[*host, "host.queues.qp_depth=4", "host.queues.num_requests_in_batch=2"])
        for number in range(6):
            ends.post(WROpcode.RDMA_WRITE, 2000, number * 3000, number * 3000, wr_id=number)
        ends.engine.run(when_ps)
        statuses(ends)
        for end in (ends.here, ends.there):
            end.qp.modify(QPState.RESET)
        ends.here.qp.connect(ends.there.qp, 1 << 22, QPAttr())  # frames of before are on the network still
        for number in range(10, 16):
            ends.post(WROpcode.RDMA_WRITE, 500, number * 3000, number * 3000, wr_id=number)
        ends.run()
        assert statuses(ends) == [(number, WcStatus.SUCCESS) for number in range(10, 16)]
        for number in range(10, 16):
            place = slice(number * 3000, number * 3000 + 500)
            assert ends.there.mr.buffer[place] == ends.here.mr.buffer[place]
        check_books(ends)


@pytest.mark.parametrize("cache", [1, 2, 3, 64])
def test_a_context_that_is_not_kept_costs_a_read(cache: int) -> None:
    """Three queue pairs in turn, one message at a time: with room for fewer each comes back to a miss."""
    ends = Ends(settings=["host.path=ibgda", f"host.nic.context_cache={cache}"])
    here, there = ends.here, ends.there
    pairs = [(here.qp, there.qp)]
    for _ in range(2):
        pair = here.pd.create_qp(here.cq), there.pd.create_qp(there.cq)
        pair[0].connect(pair[1])
        pairs.append(pair)
    took = []
    for number in range(9):
        wr = SendWR(wr_id=number, sge=here.sge(0, 8), remote_addr=there.mr.addr, rkey=there.mr.rkey)
        message = pairs[number % 3][0].post_send(wr)
        ends.run()
        took.append(message.delivered_ps - message.posted_ps)
    front_end = ends.fabric.hosts["h0"].front_end
    misses = 9 if cache < 3 else 3
    assert front_end.context_misses == misses
    miss_ps = took[0] - min(took) if misses == 3 else 0
    assert took == ([took[0]] * 9 if misses == 9 else [took[0]] * 3 + [took[0] - miss_ps] * 6)
    if misses == 3:
        rate = ends.fabric.hosts["h0"].tree.out("nic").rate_bps
        ser = [-(-size * 8 * 10**12 // rate) for size in (24, 256 + 20)]
        assert miss_ps == 2 * (2 * 50_000 + 115_000) + 150_000 + sum(ser)
