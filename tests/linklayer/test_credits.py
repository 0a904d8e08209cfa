"""Credits: both ends against each other, as scripts of frames and flow-control packets, with losses of both."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.errors import InvariantBroken, ScenarioError
from emu.linklayer.credits import (
    MODULUS,
    WINDOW_BLOCKS,
    CreditConfig,
    CreditReceiver,
    CreditSender,
    blocks_of,
    check_credits,
    is_credited,
)
from tests.linklayer.credit_link import CreditLink, Fcp

MTU = 65


def config(capacity: int, threshold: int = 64, mtu: int = MTU) -> CreditConfig:
    return CreditConfig(capacity_blocks=capacity, threshold_blocks=threshold, mtu_blocks=mtu)


configs = st.builds(
    lambda mtu, extra, threshold: config(mtu + extra, threshold, mtu),
    st.integers(1, 70),
    st.one_of(st.integers(0, 300), st.integers(1900, 3000)),
    st.integers(1, 400),
)


@pytest.mark.parametrize(("size", "blocks"), [(1, 1), (64, 1), (65, 2), (26 + 4096, 65), (4160, 65), (4161, 66)])
def test_a_frame_costs_whole_blocks(size: int, blocks: int) -> None:
    assert blocks_of(size) == blocks


def test_all_vls_but_the_last_have_credits() -> None:
    assert [vl for vl in range(16) if not is_credited(vl)] == [15]
    for vl in (-1, 16):
        with pytest.raises(ScenarioError, match="VLs are 0 to 15"):
            is_credited(vl)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((64, 64, 65), "window of 64 blocks never lets a frame of 65 go"),
        ((5000, 64, 2049), "window of 2048"),
        ((65, 0, 65), "threshold of 0"),
        ((65, 1, 0), "cost 0 blocks"),
    ],
)
def test_what_could_never_work_is_refused(values: tuple[int, int, int], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        config(*values)


@pytest.mark.parametrize(
    ("capacity", "threshold", "due"), [(1024, 64, 64), (1024, 300, 256), (65, 64, 17), (5000, 4000, 512), (66, 1, 1)]
)
def test_an_fcp_is_worth_the_threshold_or_a_quarter_of_the_window(capacity: int, threshold: int, due: int) -> None:
    assert config(capacity, threshold).due_blocks == due


def test_nothing_is_sent_before_the_first_fcp() -> None:
    sender, receiver = CreditSender(), CreditReceiver(config(100))
    assert not sender.may_send(1)
    assert receiver.is_due
    assert sender.on_fcp(receiver.fcp_out())
    assert sender.fccl == sender.available_blocks == 100
    assert sender.may_send(100)
    assert not sender.may_send(101)
    assert not sender.on_fcp(100)


def test_no_more_than_2048_blocks_are_granted_at_once() -> None:
    receiver = CreditReceiver(config(5000))
    assert receiver.fcp_out() == WINDOW_BLOCKS
    receiver.first_bit_in(MTU)
    assert receiver.limit == WINDOW_BLOCKS + MTU
    for _ in range(4000 // MTU):
        receiver.first_bit_in(MTU)
    assert receiver.limit == 5000 % MODULUS


def test_an_fcp_is_due_once_enough_was_freed_and_once_only() -> None:
    receiver = CreditReceiver(config(1024, threshold=130))
    receiver.fcp_out()
    assert [receiver.first_bit_in(MTU) for _ in range(4)] == [False] * 4
    assert not receiver.has_news
    assert [receiver.last_bit_out(MTU) for _ in range(4)] == [False, True, False, False]
    assert receiver.has_news
    assert receiver.fcp_out() == 1024 + 4 * MTU  # read as it leaves: all four
    assert not receiver.has_news
    assert not receiver.is_due


def test_an_fcp_is_due_when_the_peer_holds_less_than_the_largest_frame() -> None:
    receiver = CreditReceiver(config(4 * MTU, threshold=1000))
    receiver.fcp_out()
    assert [receiver.first_bit_in(MTU) for _ in range(2)] == [False] * 2
    assert not receiver.last_bit_out(1)
    assert not receiver.first_bit_in(MTU)
    assert receiver.first_bit_in(1)  # the peer holds 64: it could not send one of 65, and one block is free


def test_a_buffer_that_overruns_is_a_bug() -> None:
    receiver = CreditReceiver(config(100))
    receiver.first_bit_in(60)
    assert receiver.has_room(40)
    assert not receiver.has_room(41)
    with pytest.raises(InvariantBroken, match="41 blocks came into a buffer of 100 that held 60"):
        receiver.first_bit_in(41)
    with pytest.raises(InvariantBroken, match="61 blocks left a buffer that held 60"):
        receiver.last_bit_out(61)


def test_a_link_that_comes_up_again_starts_anew_with_what_is_still_held() -> None:
    sender, receiver = CreditSender(), CreditReceiver(config(200))
    sender.on_fcp(receiver.fcp_out())
    sender.sent(MTU)
    receiver.first_bit_in(MTU)
    sender.initialise()
    receiver.initialise()
    assert not sender.may_send(1)
    assert receiver.is_due
    sender.on_fcp(receiver.fcp_out())
    assert sender.available_blocks == 200 - MTU
    check_credits(sender, receiver, 0, 0)


def test_a_lost_frame_is_healed_by_the_senders_next_fcp_and_granted_again() -> None:
    link = CreditLink(config(2 * MTU))
    link.settle()
    assert link.send(0, MTU)
    assert link.send(0, MTU)
    link.lose(0)
    link.lose(0)
    assert not link.send(0, MTU)
    link.settle()
    assert not link.send(0, MTU)  # neither end knows
    link.fcp(0)
    link.arrive(0)
    assert link.receivers[1].healed_blocks == 2 * MTU
    assert link.receivers[1].is_due
    link.settle()
    assert link.senders[0].available_blocks == 2 * MTU


def test_a_lost_fcp_is_healed_by_the_next() -> None:
    link = CreditLink(config(4 * MTU, threshold=1))
    link.settle()
    for _ in range(2):
        assert link.send(0, MTU)
        link.arrive(0)
        link.drain(1)
        link.fcp(1)
    assert len(link.wires[1]) == 2
    link.lose(1)
    link.arrive(1)
    assert link.senders[0].available_blocks == 4 * MTU


def _step(link: CreditLink, numbers: random.Random, mtu: int, losses: bool) -> None:
    side = numbers.randrange(2)
    choice = numbers.random()
    if choice < 0.4:
        link.send(side, numbers.choice((1, mtu, numbers.randint(1, mtu))))
    elif choice < 0.7 and link.wires[side]:
        (link.lose if losses and numbers.random() < 0.2 else link.arrive)(side)
    elif choice < 0.9 and link.buffers[side]:
        link.drain(side)
    elif link.receivers[side].is_due or numbers.random() < 0.05:
        link.fcp(side)


@given(configs, st.integers(0, 2**32), st.integers(1, 400))
def test_the_invariants_hold_at_every_step_and_all_heals(cfg: CreditConfig, seed: int, steps: int) -> None:
    numbers = random.Random(seed)
    link = CreditLink(cfg)
    for _ in range(steps):
        _step(link, numbers, cfg.mtu_blocks, losses=True)
    for _ in range(2):  # the refresh: first what was sent, then what is granted for it
        for side in (0, 1):
            link.fcp(side)
        link.settle()
    for side in (0, 1):
        assert link.senders[side].available_blocks == cfg.window_blocks
        assert link.receivers[1 - side].healed_blocks == link.lost[side]


@given(configs, st.integers(0, 2**32), st.integers(1, 400))
def test_without_losses_it_never_stops_for_want_of_a_refresh(cfg: CreditConfig, seed: int, steps: int) -> None:
    numbers = random.Random(seed)
    link = CreditLink(cfg)
    for _ in range(steps):
        _step(link, numbers, cfg.mtu_blocks, losses=False)
    link.settle()
    for side in (0, 1):
        assert link.senders[side].may_send(cfg.mtu_blocks)


@settings(max_examples=12)
@given(configs, st.integers(0, 2**32))
def test_the_counts_wrap(cfg: CreditConfig, seed: int) -> None:
    numbers = random.Random(seed)
    link = CreditLink(cfg)
    link.settle()
    step = cfg.mtu_blocks
    while min(link.sent) <= MODULUS + step:
        for side in (0, 1):
            assert link.send(side, numbers.randint(max(1, step - 3), step))
        for side in (0, 1):
            (link.arrive if numbers.random() < 0.9 else link.lose)(side)
        for side in (0, 1) if numbers.random() < 0.3 else ():
            link.fcp(side)
        link.settle()
        for side in (0, 1):
            if not link.senders[side].may_send(step):
                link.fcp(1 - side)
                link.fcp(side)
                link.settle()
    assert all(sender.fctbs == sent % MODULUS for sender, sent in zip(link.senders, link.sent, strict=True))


@pytest.mark.parametrize(
    ("tamper", "law"),
    [
        (lambda sender, receiver: setattr(sender, "fctbs", 200), "0 to 2048"),
        (lambda sender, receiver: setattr(sender, "fccl", 131), "available"),
        (lambda sender, receiver: setattr(receiver, "abr", 1), "FCTBS - ABR"),
        (lambda sender, receiver: setattr(receiver, "advertised", 196), "never goes back"),
        (lambda sender, receiver: setattr(receiver, "advertised", 129), "older one"),
        (lambda sender, receiver: setattr(receiver, "occupied", -1), "occupied"),
    ],
)
def test_what_does_not_add_up_is_found(tamper: object, law: str) -> None:
    sender, receiver = CreditSender(), CreditReceiver(config(130))
    sender.on_fcp(receiver.fcp_out())
    sender.sent(MTU)
    receiver.first_bit_in(MTU)
    check_credits(sender, receiver, 0, 0)
    assert callable(tamper)
    tamper(sender, receiver)
    with pytest.raises(InvariantBroken, match=law):
        check_credits(sender, receiver, 0, 0)


def test_a_frame_that_nobody_counts_is_found() -> None:
    sender, receiver = CreditSender(), CreditReceiver(config(130))
    sender.on_fcp(receiver.fcp_out())
    sender.sent(MTU)
    check_credits(sender, receiver, MTU, 0)
    check_credits(sender, receiver, 0, MTU)
    for on_wire, law in ((0, "equal, once all was told"), (MTU - 1, "equal"), (MTU + 1, "<= capacity")):
        with pytest.raises(InvariantBroken, match=law):
            check_credits(sender, receiver, on_wire, 0)
    with pytest.raises(InvariantBroken, match="FCTBS - ABR"):
        check_credits(sender, receiver, 0, MTU - 1)


def test_the_frame_that_crosses_an_fcp_counts_after_it() -> None:
    link = CreditLink(config(4 * MTU))
    link.settle()
    assert link.send(0, MTU)
    link.fcp(0)
    assert link.send(0, MTU)
    assert link.wires[0][1] == Fcp(MTU, 4 * MTU)
    link.arrive(0)
    link.arrive(0)
    link.arrive(0)
    assert link.receivers[1].abr == link.senders[0].fctbs == 2 * MTU
