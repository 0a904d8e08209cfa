"""Lossy links under every verb: each message is done once and in order, memory is right, atomics act once; or it ends.

Every run has a bound. While anything is outstanding a timer runs; it restarts with each packet that is acknowledged
first and with each of the `retry_cnt` tries after that. So without progress a queue pair ends after (retry_cnt + 1)
timeouts, and a run after that many for each of its packets, besides the moments when nothing is outstanding.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import pytest

from emu.devices.inject import Injection
from emu.transport.requester_config import ACK_TIMEOUT_UNIT_PS
from emu.units import US
from emu.verbs import WC, WcStatus, WROpcode
from emu.wire.inject import Dice, Rule
from tests.verbs.ends import Ends

MTU = 1024
TIMEOUT_PS = ACK_TIMEOUT_UNIT_PS << 10  # the profiles'
BESIDES_PS = 10 * US  # posting, delivery and completion, which are a microsecond and a half
SLOT = 8192
COUNTER = 63 * SLOT  # at the far end: what atomics act on
RECOVERIES = ("go_back_n", "selective_repeat")
KINDS = {"data": ("data",), "acks": ("ack",), "both": (None,)}
CYCLE = (WROpcode.SEND, WROpcode.RDMA_WRITE, WROpcode.RDMA_READ, WROpcode.ATOMIC_FETCH_AND_ADD, WROpcode.RDMA_WRITE)


class Exchange:
    """Messages of every verb from one end to the other, each with places of its own at both ends."""

    def __init__(
        self,
        seed: int,
        messages: int,
        profile: str,
        *rules: Rule,
        retry_cnt: int = 7,
        recovery: str = RECOVERIES[0],
        settings: Sequence[str] = (),
    ) -> None:
        self.patience_ps = (retry_cnt + 1) * TIMEOUT_PS
        more = f"retry_cnt: {retry_cnt}, loss_recovery: {recovery}"
        self.ends = ends = Ends(profile=profile, mtu=MTU, length=64 * SLOT, more=more, settings=settings)
        numbers = random.Random(seed)
        self.operations = [CYCLE[number % len(CYCLE)] for number in range(messages)]
        self.sizes = [8 if "ATOMIC" in each.name else numbers.randint(0, 5 * MTU) for each in self.operations]
        self.packets = sum(max(1, -(-size // MTU)) for size in self.sizes)
        self.injections = list(_inject(ends, seed, rules))
        ends.there.mr.buffer[COUNTER : COUNTER + 8] = bytes(8)
        self.here, self.there = bytes(ends.here.mr.buffer), bytes(ends.there.mr.buffer)
        for number, (operation, size) in enumerate(zip(self.operations, self.sizes, strict=True)):
            if operation is WROpcode.SEND:
                ends.there.receive(number * SLOT, size, wr_id=number)
            to = COUNTER if "ATOMIC" in operation.name else number * SLOT
            ends.post(operation, size, number * SLOT, to, wr_id=number, compare_add=1)

    @property
    def bound_ps(self) -> int:
        """When the last message is over at the latest."""
        return self.packets * (self.patience_ps + BESIDES_PS)

    def run(self) -> list[WC]:
        """The completions, all of which must come within the bound."""
        self.ends.engine.run(self.bound_ps)
        done = self.ends.here.cq.poll_cq(999)
        assert [each.wr_id for each in done] == list(range(len(self.operations)))
        return done

    def injected(self, effect: str) -> int:
        """How often that was done."""
        return sum(each.counts[effect] for each in self.injections)

    def hold(self, finished: int) -> None:
        """The first `finished` messages did what they should, once."""
        ends = self.ends
        here, there = bytes(ends.here.mr.buffer), bytes(ends.there.mr.buffer)
        received = [each.wr_id for each in ends.there.recv_cq.poll_cq(999) if each.status is WcStatus.SUCCESS]
        sends = [number for number, each in enumerate(self.operations) if each is WROpcode.SEND]
        assert received == sends[: len(received)]
        assert len(received) >= sum(number < finished for number in sends)
        atomics = 0
        for number in range(finished):
            place = slice(number * SLOT, number * SLOT + self.sizes[number])
            match self.operations[number]:
                case WROpcode.RDMA_READ:
                    assert here[place] == self.there[place]
                case WROpcode.ATOMIC_FETCH_AND_ADD:
                    assert int.from_bytes(here[place], "little") == atomics
                    atomics += 1
                case _:
                    assert there[place] == self.here[place]
        posted = sum("ATOMIC" in each.name for each in self.operations)
        counter = int.from_bytes(there[COUNTER : COUNTER + 8], "little")
        assert atomics <= counter <= (atomics if finished == len(self.operations) else posted)


def _inject(ends: Ends, seed: int, rules: tuple[Rule, ...]) -> Iterator[Injection]:
    """Into both directions of the first link."""
    nodes: dict[str, Any] = {"s0-h0": ends.fabric.nics["h0"], "h0-s0": ends.fabric.switches["s0"]}
    for name, node in nodes.items():
        _, port = ends.fabric.links[name]
        assert port.far_ingress is not None
        dice = Dice(seed, name, list(enumerate(rules)))
        yield Injection(ends.engine, port, dice, node, port.far_ingress)


def lossy(kinds: tuple[str | None, ...], rate: Fraction) -> list[Rule]:
    """Losses of those kinds at a rate; and as many frames of any kind that come twice or late."""
    losses = [Rule(kind=kind, drop=rate) for kind in kinds]
    return [*losses, Rule(duplicate=rate, reorder=rate)]


@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize("rate", [Fraction(1, 1000), Fraction(1, 100), Fraction(1, 20)], ids=["0.1", "1", "5"])
@pytest.mark.parametrize("lost", KINDS)
@pytest.mark.parametrize("recovery", RECOVERIES)
def test_every_message_completes_once_and_in_order(recovery: str, lost: str, rate: Fraction, profile: str) -> None:
    dropped = 0
    for seed in range(3 if rate > Fraction(1, 1000) else 6):
        exchange = Exchange(seed, 60, profile, *lossy(KINDS[lost], rate), recovery=recovery)
        assert {each.status for each in exchange.run()} == {WcStatus.SUCCESS}
        exchange.hold(60)
        dropped += exchange.injected("drop") + exchange.injected("reorder") + exchange.injected("duplicate")
    assert dropped


@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize("recovery", RECOVERIES)
def test_at_thirty_percent_it_does_or_says_so(recovery: str, profile: str) -> None:
    endings = set()
    for seed in range(12):
        retry_cnt, rules = 7 if seed % 2 else 3, lossy(KINDS["both"], Fraction(3, 10))
        exchange = Exchange(seed, 25, profile, *rules, retry_cnt=retry_cnt, recovery=recovery)
        statuses = [each.status for each in exchange.run()]
        finished = statuses.count(WcStatus.SUCCESS)
        rest = [WcStatus.RETRY_EXC_ERR, *[WcStatus.WR_FLUSH_ERR] * 24][: 25 - finished]
        assert statuses == [WcStatus.SUCCESS] * finished + rest
        exchange.hold(finished)
        endings.add(finished == 25)
    if recovery == RECOVERIES[0]:
        assert endings == {True, False}  # both are seen


@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize("lost", KINDS)
@pytest.mark.parametrize("recovery", RECOVERIES)
def test_when_all_is_lost_it_ends_as_the_last_try_is_over(recovery: str, lost: str, profile: str) -> None:
    rules = [Rule(kind=kind, drop=Fraction(1)) for kind in KINDS[lost]]
    exchange = Exchange(1, 25, profile, *rules, retry_cnt=2, recovery=recovery)
    statuses = [each.status for each in exchange.run()]
    finished = 3 if lost == "acks" else 0  # a READ's response, which is data, acknowledges what is before it
    done = [WcStatus.SUCCESS] * finished + [WcStatus.RETRY_EXC_ERR]
    assert statuses == done + [WcStatus.WR_FLUSH_ERR] * (25 - len(done))
    least = 2 if lost == "acks" else 3  # a later answer showed the gap: that cost one try at once
    assert least * TIMEOUT_PS < exchange.ends.engine.now_ps < 3 * TIMEOUT_PS + BESIDES_PS
    exchange.hold(finished)


def test_without_loss_nothing_waits_and_nothing_is_sent_again() -> None:
    exchange = Exchange(1, 60, "roce", Rule(kind="cnp", drop=Fraction(1)))
    exchange.run()
    exchange.hold(60)
    assert sum(flow.retransmitted for flow in exchange.ends.assembly.measurement.flows.values()) == 0
    assert not any(each.counts.total() for each in exchange.injections)


@pytest.mark.long
@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize("rate", [1, 10, 50, 150, 300])
@pytest.mark.parametrize("recovery", RECOVERIES)
def test_many_seeds(recovery: str, rate: int, profile: str) -> None:
    for seed in range(1000, 1100):
        exchange = Exchange(seed, 60, profile, *lossy(KINDS["both"], Fraction(rate, 1000)), recovery=recovery)
        statuses = [each.status for each in exchange.run()]
        finished = statuses.count(WcStatus.SUCCESS)
        assert finished == 60 or (rate > 50 and statuses[finished] is WcStatus.RETRY_EXC_ERR)
        exchange.hold(finished)
