"""Messages over links that copy and reorder: each is booked once, by what brought it, wherever a run ends."""

from __future__ import annotations

from typing import Any

import pytest

from emu.errors import InvariantBroken
from emu.frame import Message
from emu.run import Options, run
from emu.scenario.load import parse
from emu.units import NS, US
from emu.verbs import AH, QPType, WcOpcode, WROpcode
from emu.wire.inject import Rule
from tests.run.test_inject import CREDITS, FABRICS, NONE, PAUSES, text
from tests.verbs.ends import QKEY, Ends
from tests.verbs.test_loss import _inject

BOTH = "[[h0, h1], [h1, h0]]"
FLIGHT_PS = 200 * NS  # at least, over two cables and a switch


def seen(*rules: str, **given: Any) -> list[Message]:
    """Each message of a run in memory, which keeps its books, or InvariantBroken."""
    told: list[Message] = []
    run(parse(text(*rules, **given), "injected.yaml"), Options(wire="memory", on_message=told.append))
    return told


@pytest.mark.parametrize("recovery", ["go_back_n", "selective_repeat"])
@pytest.mark.parametrize("rule", ["duplicate: 50%", "duplicate: 30%, reorder: 30%", "drop: 20%, duplicate: 30%"])
@pytest.mark.parametrize(("op", "size"), [("read", "5000B"), ("read", "8B"), ("fetch_add", "8B"), ("write", "3000B")])
@pytest.mark.parametrize("fabric", ["credits", "none"])
def test_a_message_of_many_copies_has_one_first_bit_and_it_left_before_the_last_came(
    fabric: str, op: str, size: str, rule: str, recovery: str
) -> None:
    """A READ's copy that came as its answer was on its way gave the message a new first bit, after its last."""
    more = f"host: {{nic: {{ack_timeout_code: 3, loss_recovery: {recovery}}}}}"
    traffic = f"{{kind: write, pairs: {BOTH}, size: {size}, count: 12, depth: 4, qps: 2, op: {op}}}"
    told = seen(f"link: all, {rule}", fabric=FABRICS[fabric], traffic=traffic, more=more, seed=1)
    assert len(told) == 48 or any(message.status != "SUCCESS" for message in told)
    for message in told:
        if message.status == "SUCCESS":
            assert message.posted_ps < message.first_bit_ps <= message.last_bit_ps - FLIGHT_PS


@pytest.mark.parametrize("op", ["read", "fetch_add"])
def test_the_first_bit_is_of_the_data_and_not_of_what_asks_for_it(op: str) -> None:
    traffic = f"{{kind: write, pairs: [[h0, h1]], size: 8B, op: {op}}}"
    (plain,) = seen("link: all, drop: 100%, match: {qp: 99}", traffic=traffic)
    (copied,) = seen("link: h0-s0, duplicate: 100%, match: {nth: 1}", traffic=traffic)
    (late,) = seen("link: h0-s0, direction: h0-s0, delay: 3us", traffic=traffic)
    assert plain.first_bit_ps > 500 * NS  # the request's left at 300 ns
    assert (copied.first_bit_ps, copied.last_bit_ps) == (plain.first_bit_ps, plain.last_bit_ps)
    assert late.last_bit_ps - late.first_bit_ps == plain.last_bit_ps - plain.first_bit_ps


def test_a_first_bit_that_left_after_the_last_came_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emu.opcodes.ASKS", frozenset(range(256)))  # nothing is ever a first bit
    with pytest.raises(InvariantBroken, match="its first bit left at -1 ps"):
        seen("link: all, duplicate: 1%")


HELD = ("delay: 3us", "reorder: 30%", "reorder: 20%, duplicate: 20%, drop: 5%")


@pytest.mark.parametrize("rule", HELD)
@pytest.mark.parametrize("fabric", [CREDITS, PAUSES, NONE], ids=["credits", "pauses", "none"])
def test_books_agree_wherever_a_run_ends_though_an_injection_holds_frames(fabric: str, rule: str) -> None:
    """What it holds is in the buffer that it came into: that was counted by the credits, and missing in the books."""
    held = 0
    for until_ns in range(700, 12_000, 791):
        more = text(
            f"link: all, {rule}",
            fabric=fabric,
            traffic="{kind: write, pairs: [[h0, h1]], size: 64KiB, count: 20, depth: 4}",
            topology="{kind: line, switches: 2}",
        )
        result = run(parse(more, "held.yaml", (f"run.until={until_ns}ns",)), Options(wire="memory"))
        assert result["virtual_ns"] == until_ns
        held += result["frames"]["on_the_way"]
    assert held > 50


@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize("qp_type", [QPType.UC, QPType.UD])
@pytest.mark.parametrize("size", [0, 200])
def test_a_copy_of_an_unreliable_message_is_received_again_but_arrives_once(
    size: int, qp_type: QPType, profile: str
) -> None:
    ends = Ends(profile=profile, qp_type=qp_type)
    assert all(_inject(ends, 1, (Rule(nth=frozenset((1,)), kind="data", duplicate=1),)))  # type: ignore[arg-type]
    where: dict[str, Any] = {}
    if qp_type is QPType.UD:
        where = {"ah": AH(address=ends.there.context.address), "remote_qpn": ends.there.qp.qp_num}
        where["remote_qkey"] = QKEY
    for number in range(3):
        ends.there.receive(1000 * number, 1000, wr_id=number)
    for number in range(2):
        ends.post(WROpcode.SEND, size, wr_id=number, **where)
    ends.run()
    measured = ends.assembly.measurement
    assert (measured.posted, measured.delivered, measured.completed) == (2, 2, 2)
    received = ends.there.recv_cq.poll_cq(9)
    assert [each.opcode for each in received] == [WcOpcode.RECV] * len(received)
    assert [each.wr_id for each in received] == [0, 1, 2]  # an Only of whatever number begins anew, on UC too
    assert ends.engine.now_ps < 10 * US
