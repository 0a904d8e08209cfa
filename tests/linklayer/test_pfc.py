"""One ingress account: where its bytes go, when it pauses its peer, lets it go on, and drops."""

from __future__ import annotations

import random
from collections import deque
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.errors import InvariantBroken, ScenarioError
from emu.linklayer.buffer import SwitchMemory, check_memory
from emu.linklayer.pfc import IngressAccount, IngressConfig, Signal

NONE, XOFF, XON, DROP, BOTH = Signal.NONE, Signal.XOFF, Signal.XON, Signal.DROP, Signal.XOFF_AND_DROP


def config(**values: Any) -> IngressConfig:
    return IngressConfig(**{"alpha": Fraction(1), "xoff_bytes": 1000, "xon_bytes": 600} | values)


def account(total: int = 100_000, **values: Any) -> IngressAccount:
    return IngressAccount("leaf0-eth1/3", config(**values), SwitchMemory(total))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"alpha": Fraction(0)}, "alpha is 0"),
        ({"alpha": Fraction(-1, 8)}, "alpha is -1/8"),
        ({"xon_bytes": 1001}, "XON at 1001 bytes lies above XOFF at 1000"),
        ({"xon_bytes": -1}, "XON: -1"),
        ({"reserved_bytes": -1}, "reserved: -1"),
        ({"headroom_bytes": -1}, "headroom of -1"),
        ({"headroom_bytes": 1, "lossless": False}, "0 for a lossy priority"),
    ],
)
def test_thresholds_that_make_no_sense_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        config(**values)


def test_headroom_larger_than_the_buffer_is_refused() -> None:
    with pytest.raises(ScenarioError, match=r"leaf0-eth1/3: 1001 bytes .* do not fit .* 1000 of 1000 are left"):
        account(1000, reserved_bytes=1, headroom_bytes=1000)
    account(1000, headroom_bytes=1000)


def test_reserved_then_shared_then_headroom_then_nothing() -> None:
    ingress = account(reserved_bytes=500, headroom_bytes=700)
    assert [ingress.admit(250) for _ in range(2)] == [NONE] * 2
    assert (ingress.main_held_bytes, ingress.shared_held_bytes, ingress.headroom_held_bytes) == (500, 0, 0)
    assert [ingress.admit(250) for _ in range(4)] == [NONE] * 4
    assert (ingress.shared_held_bytes, ingress.held_bytes, ingress.paused) == (1000, 1500, False)
    assert ingress.admit(350) is XOFF
    assert ingress.admit(350) is NONE
    assert ingress.admit(1) is DROP
    assert (ingress.headroom_held_bytes, ingress.max_headroom_bytes, ingress.held_bytes) == (700, 700, 2200)
    assert (ingress.dropped_frames, ingress.dropped_bytes) == (1, 1)


def test_xon_comes_once_headroom_is_empty_and_xon_bytes_are_reached() -> None:
    ingress = account(headroom_bytes=700)
    for size in (500, 500, 300):
        ingress.admit(size)
    assert ingress.paused
    assert ingress.release(500) is NONE  # 300 from headroom, 200 from shared
    assert (ingress.headroom_held_bytes, ingress.shared_held_bytes) == (0, 800)
    assert ingress.release(199) is NONE
    assert ingress.release(1) is XON
    assert not ingress.paused
    assert ingress.release(600) is NONE


def test_xon_comes_with_the_last_byte_whatever_the_hysteresis() -> None:
    ingress = account(1700, headroom_bytes=700, xoff_bytes=5000, xon_bytes=0)
    assert [ingress.admit(300), ingress.admit(300)] == [NONE, NONE]
    assert ingress.admit(401) is XOFF  # free: 400
    assert ingress.release(401) is NONE
    assert ingress.release(300) is NONE
    assert ingress.release(300) is XON


def test_without_headroom_the_first_frame_too_many_pauses_and_is_dropped() -> None:
    ingress = account()
    ingress.admit(1000)
    assert ingress.admit(1) is BOTH
    assert ingress.admit(1) is DROP
    assert ingress.paused
    assert ingress.release(400) is XON


def test_an_account_that_holds_nothing_drops_without_a_pause_that_nothing_would_end() -> None:
    ingress = account(xoff_bytes=0, xon_bytes=0)
    assert [ingress.admit(1), ingress.admit(1), ingress.paused] == [DROP, DROP, False]


def test_a_lossy_priority_drops_and_never_pauses() -> None:
    ingress = account(lossless=False)
    ingress.admit(1000)
    assert [ingress.admit(1), ingress.release(1000), ingress.admit(1000)] == [DROP, NONE, NONE]
    assert not ingress.paused


def test_the_threshold_is_alpha_times_what_is_free() -> None:
    memory = SwitchMemory(9000)
    unbound = {"xoff_bytes": 9000, "xon_bytes": 9000, "alpha": Fraction(1, 8)}
    first, second = (IngressAccount(name, config(**unbound), memory) for name in "ab")
    while first.admit(1) is NONE:
        pass
    assert first.held_bytes == 1000  # at x = (9000 - x) / 8, as alpha/(1 + alpha) of the buffer
    while second.admit(1) is NONE:
        pass
    assert second.held_bytes == 8000 // 9 + 1  # the last one came while 8 x 889 <= 8000 - 888
    first.paused = True
    assert first.release(1) is NONE  # over its threshold still, which the other has lowered
    for _ in range(889):
        second.release(1)
    assert first.release(1) is XON


def test_alpha_above_one_takes_no_more_than_there_is() -> None:
    ingress = account(1000, alpha=Fraction(16), xoff_bytes=5000)
    assert ingress.admit(900) is NONE
    assert ingress.admit(101) is BOTH
    assert ingress.admit(100) is NONE


def test_more_leaves_than_came() -> None:
    ingress = account()
    ingress.admit(10)
    with pytest.raises(InvariantBroken, match="11 bytes left an account that held 10"):
        ingress.release(11)


accounts = st.builds(
    lambda alpha, xoff, gap, reserved, headroom: config(
        alpha=alpha, xoff_bytes=xoff, xon_bytes=max(0, xoff - gap), reserved_bytes=reserved, headroom_bytes=headroom
    ),
    st.sampled_from([Fraction(1, 128), Fraction(1, 8), Fraction(1), Fraction(8), Fraction(3, 7)]),
    st.integers(0, 30_000),
    st.integers(0, 30_000),
    st.integers(0, 5000),
    st.integers(0, 9000),
)


@given(st.lists(accounts, min_size=1, max_size=4), st.integers(0, 2**32), st.integers(1, 300))
def test_the_books_agree_at_every_step_and_all_go_on_in_the_end(
    configs: list[IngressConfig], seed: int, steps: int
) -> None:
    numbers, memory = random.Random(seed), SwitchMemory(60_000)
    tenants = [IngressAccount(str(index), each, memory) for index, each in enumerate(configs)]
    queues: list[deque[int]] = [deque() for _ in tenants]
    for _ in range(steps):
        index = numbers.randrange(len(tenants))
        tenant, queue, was_paused = tenants[index], queues[index], tenants[index].paused
        if queue and numbers.random() < 0.4:
            signal = tenant.release(queue.popleft())
            assert signal is (XON if was_paused and not tenant.paused else NONE)
            assert signal is NONE or tenant.headroom_held_bytes == 0
        else:
            size = numbers.choice((64, 4174, numbers.randint(64, 9216)))
            signal = tenant.admit(size)
            if signal in (NONE, XOFF):
                queue.append(size)
            assert (signal in (XOFF, BOTH)) == (tenant.paused and not was_paused)
            assert signal is NONE or tenant.paused or not queue
        check_memory(memory, tenants, sum(map(sum, queues)))
    for tenant, queue in zip(tenants, queues, strict=True):
        while queue:
            tenant.release(queue.popleft())
        assert not tenant.paused
        check_memory(memory, tenants, sum(map(sum, queues)))
    assert memory.used_bytes == 0
