"""Credits on the links of whole fabrics: their books after every event, what wrong ones lead to, refresh, losses."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.devices.credits import LinkCredits
from emu.errors import InvariantBroken
from emu.frame import ControlFrame, Frame
from emu.framing.control import FCP_INITIALISE, Fcp
from emu.linklayer.credits import MANAGEMENT_VL, CreditReceiver, blocks_of
from tests.laws.stage import Stage, Thief, hold_buffers, hold_credits

MTU = 1024
LARGEST = blocks_of(8 + 12 + 16 + MTU + 4 + 2)  # of LRH to VCRC
FCP_PS = 14 * 20


def scenario(
    traffic: str, *, topology: str = "{kind: line, switches: 1}", blocks: int = 64, vls: int = 1, **credits: str
) -> str:
    """Native frames of up to 1 KiB at 400 Gb/s; no refresh unless given."""
    values = ", ".join(f"{key}: {value}" for key, value in ({"threshold": "16", "refresh": "never"} | credits).items())
    return f"""
name: credits
fabric:
  {{profile: native, flow_control: credits, path_mtu: {MTU}B, credit_blocks: {blocks}, vls: {vls},
   credits: {{{values}}}, topology: {topology}}}
traffic: [{traffic}]
"""


ONE_FRAME = "{kind: write, pairs: [[h0, h1]], size: 1KiB}"
LEAVES = "{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}"

crowds = st.builds(
    scenario,
    st.tuples(st.integers(1, 9000), st.integers(1, 3)).map(
        lambda drawn: ", ".join(
            f"{{kind: all_to_all, size: {drawn[0]}B, priority: {level}}}" for level in range(drawn[1])
        )
    ),
    topology=st.sampled_from(["{kind: line, switches: 2}", LEAVES]),
    blocks=st.integers(LARGEST, 3 * LARGEST),
    vls=st.integers(1, 3),
    threshold=st.integers(1, 60).map(str),
    refresh=st.sampled_from(["never", "100ns", "1us"]),
)


def hold(stage: Stage) -> None:
    """All that is known of credits."""
    hold_credits(stage)
    hold_buffers(stage)


@settings(max_examples=12)
@given(crowds)
def test_the_books_of_every_link_and_vl_agree_after_every_event(text: str) -> None:
    stage = Stage(text).run(each_event=hold)
    assert {message.status for message in stage.messages} == {"SUCCESS"}
    assert not any(receiver.occupied for link in stage.fabric.links for receiver in stage.credits(link).receivers)


last_bit_out, started, fcp_out = CreditReceiver.last_bit_out, LinkCredits.started, CreditReceiver.fcp_out


def frees_one_more(receiver: CreditReceiver, blocks: int) -> bool:
    """More room is given out when a frame leaves than it took."""
    return last_bit_out(receiver, min(blocks + 1, receiver.occupied))


def counts_one_less(end: LinkCredits, frame: Frame) -> None:
    """A frame costs a block less at one end of the link."""
    started(end, frame)
    end.senders[frame.envelope.lane].fctbs -= 1


def counts_nothing(end: LinkCredits, frame: Frame) -> None:
    """What leaves costs nothing."""


def frees_nothing(end: LinkCredits, frame: Frame) -> None:
    """What leaves a buffer gives no room back."""


def grants_one_more(receiver: CreditReceiver) -> int:
    """The limit in each FCP is one block too high."""
    return fcp_out(receiver) + 1


@pytest.mark.parametrize(
    ("what", "name", "broken"),
    [
        (CreditReceiver, "last_bit_out", frees_one_more),
        (CreditReceiver, "fcp_out", grants_one_more),
        (LinkCredits, "started", counts_one_less),
        (LinkCredits, "started", counts_nothing),
        (LinkCredits, "release", frees_nothing),
    ],
)
def test_wrong_books_are_found(what: type, name: str, broken: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(what, name, broken)
    with pytest.raises(InvariantBroken):
        Stage(scenario("{kind: incast, senders: 3, receiver: h3, size: 32KiB}", topology=LEAVES)).run(each_event=hold)


def test_a_link_comes_up_with_one_fcp_a_vl_that_grants_the_whole_buffer() -> None:
    stage = Stage(scenario("", vls=3))
    for link in stage.fabric.links:
        assert stage.port(link).credit_frames == 3
        assert [stage.credits(link).available_blocks(vl) for vl in range(3)] == [0, 0, 0]
    stage.run(0)
    for link in stage.fabric.links:
        assert [stage.credits(link).available_blocks(vl) for vl in range(3)] == [64, 64, 64]


def test_what_was_freed_below_the_threshold_is_told_only_by_a_refresh() -> None:
    silent = Stage(scenario(ONE_FRAME, blocks=256, threshold="64")).run()
    assert silent.credits("h0-s0").available_blocks(0) == 256 - LARGEST
    assert not silent.told
    stage = Stage(scenario(ONE_FRAME, blocks=256, threshold="64", refresh="700ns")).run()
    assert stage.credits("h0-s0").available_blocks(0) == 256
    assert [when_ps for when_ps, _ in stage.told["s0-h0"]] == [700_000]  # after the frame
    assert [when_ps for when_ps, _ in stage.told["h0-s0"]] == [1_400_000]  # after its acknowledgement


@pytest.mark.parametrize("vls", [1, 15])
def test_refreshes_that_would_change_nothing_are_counted_though_not_simulated(vls: int) -> None:
    idle = Stage(scenario(ONE_FRAME, topology=LEAVES, refresh="100ns", vls=vls)).run()
    refreshes = (idle.now_ps - 1) // 100_000
    assert idle.port("spine0-leaf1").credit_frames == vls * (1 + refreshes)
    assert not idle.told["spine0-leaf1"]
    stopped = Stage(scenario(ONE_FRAME, topology=LEAVES, refresh="100ns", vls=vls)).run(1_000_000)
    assert stopped.port("spine0-leaf1").credit_frames == vls * (1 + 9)  # the tenth would leave now


SMALL = scenario("{kind: all_to_all, size: 6KiB}", topology=LEAVES, blocks=2 * LARGEST, threshold="8", refresh="2us")


@settings(max_examples=12)
@given(st.integers(0, 10**9), st.integers(1, 6), st.sampled_from(["FCPs", "frames", "both"]))
def test_lost_fcps_and_lost_frames_heal(seed: int, percent: int, which: str) -> None:
    numbers = Random(seed)

    def takes(frame: Frame) -> bool:
        wanted = which == "both" or isinstance(frame, ControlFrame) == (which == "FCPs")
        return wanted and numbers.randrange(100) < percent

    stage = Stage(SMALL)
    thieves = [Thief(port, takes) for _, port in stage.fabric.links.values()]
    stage.run(each_event=hold)
    assert {message.status for message in stage.messages} == {"SUCCESS"}
    heal_all(stage, thieves)


def heal_all(stage: Stage, thieves: list[Thief]) -> None:
    """Let refreshes go on undisturbed: in the end every sender holds the peer's whole buffer again."""
    for thief in thieves:
        thief.rest()
    stage.assembly.engine.run(stage.now_ps + 20_000_000)
    for link in stage.fabric.links:
        end = stage.credits(link)
        hold_credits(stage)
        assert end.available_blocks(0) == 2 * LARGEST, link
        assert end._unhealed(0) == 0


def lose(stage: Stage, link: str, *numbers: int, fcps: bool) -> Thief:
    """Lose the n-th of the FCPs, or of the other frames, that leave there."""
    seen = iter(range(10**6))
    return Thief(stage.port(link), lambda frame: isinstance(frame, ControlFrame) is fcps and next(seen) in numbers)


def test_without_a_refresh_a_lost_fcp_can_stop_a_link_for_good() -> None:
    text = scenario("{kind: write, pairs: [[h0, h1]], size: 4KiB}", blocks=LARGEST, threshold="1")
    stage = Stage(text)
    lose(stage, "s0-h0", 0, fcps=True)
    stage.run()
    assert [message.status for message in stage.messages] == ["RETRY_EXC_ERR"]
    assert len(stage.data["h0-s0"]) == 1
    assert len(Stage(text).run().data["h0-s0"]) == 4


def test_a_lost_fcp_costs_no_more_than_a_refresh() -> None:
    text = scenario("{kind: write, pairs: [[h0, h1]], size: 16KiB}", blocks=LARGEST, threshold="1", refresh="3us")
    whole, stage = Stage(text).run(), Stage(text)
    lose(stage, "s0-h0", 3, fcps=True)
    stage.run()
    assert 0 < stage.now_ps - whole.now_ps <= 3_000_000
    assert stage.port("h0-s0").credit_wait_ps() - whole.port("h0-s0").credit_wait_ps() <= 3_000_000


def test_a_lost_frames_blocks_are_granted_again_at_the_next_fcp_from_its_sender() -> None:
    stage = Stage(scenario("{kind: write, pairs: [[h0, h1]], size: 4KiB}", refresh="1us"))
    lose(stage, "h0-s0", 1, fcps=False)
    stage.run(1_000_000)
    end = stage.credits("h0-s0")
    assert end._unhealed(0) == LARGEST
    told = [when_ps for when_ps, _ in stage.told["h0-s0"]]
    assert told == [1_000_000]
    acted_ps = 1_000_000 + FCP_PS + 15_000 + 260_000  # its last bit, and then as frames are
    stage.assembly.engine.run(acted_ps - 1)
    assert end._unhealed(0) == LARGEST
    stage.assembly.engine.run(acted_ps)
    assert end._unhealed(0) == 0


def test_vl_15_has_no_credits() -> None:
    stage = Stage(scenario(ONE_FRAME, vls=15, refresh="100ns")).run()
    vls = {control.vl for told in stage.told.values() for _, control in told if isinstance(control, Fcp)}
    assert vls == {0}
    end = stage.credits("h0-s0")
    before = [end.available_blocks(vl) for vl in range(15)]
    end.on_control(Fcp(FCP_INITIALISE, MANAGEMENT_VL, 0, 7))
    end.on_control(Fcp(2, 0, 0, 7))  # a reserved op
    assert [end.available_blocks(vl) for vl in range(15)] == before
