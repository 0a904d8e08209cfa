"""Connections over QP1 that lose messages, are refused, are not answered, or end: always in time, at both ends."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from emu.addresses import Address
from emu.errors import VerbsError
from emu.transport import cm
from emu.transport.cm_message import Reason, Req
from emu.verbs import QPAttr, QPState, QPType
from emu.verbs.cm import NotConnected, Reject, Request
from tests.verbs.strangers import QUICK, SERVICE, Deaf, Two


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("lost", ["req", "rep", "rtu"])
def test_what_is_lost_is_sent_again_when_its_time_is_up(lost: str, times: int) -> None:
    whole = Two()
    whole.there.listen(SERVICE, whole.accept)
    whole.connect()
    two = Two()
    Deaf(two.here if lost == "rep" else two.there, **{lost: times})
    two.there.listen(SERVICE, two.accept)
    connection = two.connect()
    assert two.far is not None
    assert (two.qp.state, two.far.state) == (QPState.RTS, QPState.RTS)
    counts, expected = Counter(two.mads()), Counter(whole.mads())
    if lost == "req":
        assert counts == expected + Counter({"Req": times})
    elif lost == "rtu":
        assert counts == expected + Counter({"Rep": times, "Rtu": times})
    else:  # both ends wait: the REQ comes again as well, and is answered by the REP
        assert counts["Rep"] > expected["Rep"]
    assert connection.sends <= QUICK.retries + 1


@pytest.mark.parametrize("profile", ["native", "roce"])
def test_nobody_answers_and_it_ends_when_it_says(profile: str) -> None:
    two = Two(profile)
    Deaf(two.there, req=1000, rej=1000)
    two.there.listen(SERVICE, two.accept)
    ended: list[int] = []
    two.qp.modify(QPState.INIT)
    original = two.qp.modify

    def modify(state: QPState, attr: QPAttr | None = None) -> None:
        ended.append(two.engine.now_ps)
        original(state, attr)

    two.qp.modify = modify  # type: ignore[method-assign]
    with pytest.raises(NotConnected, match="did not answer") as error:
        two.connect()
    assert ended == [QUICK.limit_ps] == [4 * 4_096_000 << 6]
    assert error.value.reason == Reason.TIMEOUT
    assert two.mads() == ["Req"] * 4 + ["Rej"]
    assert two.qp.state is QPState.ERR


def test_one_that_was_asked_gives_up_too() -> None:
    two = Two()
    Deaf(two.here, rep=1000, rej=1000)
    Deaf(two.there, rej=1000)
    two.there.listen(SERVICE, two.accept)
    with pytest.raises(NotConnected, match="did not answer"):
        two.connect()
    two.idle()
    assert two.far is not None
    assert (two.qp.state, two.far.state) == (QPState.ERR, QPState.ERR)
    assert two.engine.now_ps < 3 * QUICK.limit_ps


def refuse(_: Request) -> Reject:
    return Reject(private_data=b"not today")


@pytest.mark.parametrize(
    ("accept", "mtu", "reason", "private"),
    [
        (refuse, 1024, Reason.CONSUMER, b"not today"),
        (None, 1024, Reason.INVALID_SERVICE_ID, b""),
        (refuse, 4096, Reason.INVALID_PATH_MTU, b""),
    ],
)
def test_refusals_say_why(accept: Callable[[Request], Reject] | None, mtu: int, reason: Reason, private: bytes) -> None:
    two = Two()
    if accept is not None:
        two.there.listen(SERVICE, accept)
    two.qp.modify(QPState.INIT)
    two.qp.attr = QPAttr(path_mtu_bytes=mtu)  # which modify refuses where the fabric's is smaller
    with pytest.raises(NotConnected) as error:
        two.connect()
    assert (error.value.reason, error.value.private_data) == (reason, private.ljust(148, b"\0"))
    assert two.mads() == ["Req", "Rej"]
    assert two.qp.state is QPState.ERR


def test_another_type_of_queue_pair_is_refused() -> None:
    two = Two()
    two.far_type = QPType.UC
    two.there.listen(SERVICE, two.accept)
    with pytest.raises(NotConnected) as error:
        two.connect()
    assert error.value.reason == Reason.INVALID_SERVICE_TYPE


def test_what_cannot_be_connected_is_refused_at_once() -> None:
    two = Two(qp_type=QPType.UD)
    with pytest.raises(VerbsError, match="UD in RESET"):
        two.connect()
    two = Two()
    two.there.listen(SERVICE, two.accept)
    with pytest.raises(VerbsError, match="a listener already"):
        two.there.listen(SERVICE, two.accept)
    two.connect()
    with pytest.raises(VerbsError, match="RC in RTS"):
        two.connect()


@pytest.mark.parametrize("lost", [{}, {"dreq": 2}, {"drep": 2}, {"dreq": 1000}])
def test_an_end_reaches_both_or_is_reached_alone_in_time(lost: dict[str, int]) -> None:
    two = Two()
    two.there.listen(SERVICE, two.accept)
    connection = two.connect()
    Deaf(two.here if "drep" in lost else two.there, **lost)
    began, ended = two.engine.now_ps, list[int]()

    async def work() -> None:
        await two.here.disconnect(connection)
        ended.append(two.engine.now_ps)

    two.engine.spawn(work())
    two.idle()
    assert two.far is not None
    assert two.qp.state is QPState.ERR
    assert two.far.state is (QPState.RTS if lost.get("dreq") == 1000 else QPState.ERR)
    assert ended[0] - began <= QUICK.limit_ps
    assert Counter(two.mads())["Dreq"] == min(4, 1 + sum(lost.values()))


def test_a_request_that_comes_again_gets_the_same_answer_at_once_and_no_second_queue_pair() -> None:
    two = Two()
    Deaf(two.here, rep=1)
    two.there.listen(SERVICE, two.accept)
    asked: list[cm.Mad] = []
    take = two.there._take

    def twice(sender: Address, mad: cm.Mad) -> None:
        take(sender, mad)
        if isinstance(mad.message, Req):
            asked.append(mad)
            take(sender, mad)

    two.there.gsi._take = twice
    two.connect()
    assert len(asked) == len(two.requests) == 1
    assert two.mads() == ["Req", "Rep", "Rep", "Rtu"]
