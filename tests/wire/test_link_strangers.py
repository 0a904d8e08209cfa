"""Strangers that forge a link's own frames on a veth, and frames changed at random: no run breaks."""

from __future__ import annotations

import random

import pytest

from emu.frame import Frame
from emu.framing.control import FCP_NORMAL, Control, Fcp, Pause, encode, pfc
from emu.opcodes import WRITE_ONLY
from tests.lab.outside import BACK, LINK, Outside, told
from tests.wire.mischief import (
    CREDITS,
    PFC,
    STRANGER,
    all_done,
    forge,
    is_control,
    mangled,
    paused,
    tamper,
    undisturbed,
)

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("little_patience")]

FORGED: dict[str, Control] = {
    "pfc": pfc(STRANGER, {3: 0xFFFF}),
    "pause": Pause(STRANGER, 0xFFFF),
    "fcp": Fcp(FCP_NORMAL, 0, 1, 2000, STRANGER),
}


@pytest.mark.parametrize("text", [CREDITS, PFC], ids=["credits", "pfc"])
@pytest.mark.parametrize("control", FORGED)
def test_a_strangers_control_is_counted_and_not_acted_on(text: str, control: str) -> None:
    outside = Outside((5, lambda them: forge(them, BACK, encode(FORGED[control]))), text=text)
    result = outside.run()
    assert (result["frames"]["foreign"], result["disturbed"], len(result["warnings"])) == (1, True, 1)
    assert f"wire {BACK}: a foreign frame of " in result["warnings"][0]
    assert told(result) == told(undisturbed(text))


@pytest.mark.parametrize("control", ["pfc", "pause"])
def test_a_strangers_pause_is_obeyed_where_strangers_are_let_in(control: str) -> None:
    said = encode(FORGED[control])
    outside = Outside((5, lambda them: forge(them, "h3-leaf1", said)), text=PFC, accept_foreign=True)
    result = outside.run()
    assert all_done(result)
    assert (result["frames"]["foreign"], result["deterministic"]) == (1, False)
    assert paused(undisturbed(PFC), "leaf1-h3") == 0
    priorities = {"pfc": 1, "pause": 8}[control]
    assert paused(result, "leaf1-h3") >= priorities * 0xFFFF * 1.28  # quanta at 400 Gb/s
    assert result["virtual_ns"] > 0xFFFF * 1.28


def test_a_strangers_credits_are_not_taken() -> None:
    """They would say what neither end of the link has counted."""
    outside = Outside((5, lambda them: forge(them, BACK, encode(FORGED["fcp"]))), text=CREDITS, accept_foreign=True)
    result = outside.run()
    assert all_done(result)
    assert result["frames"]["foreign"] == 1
    assert result["virtual_ns"] == undisturbed(CREDITS)["virtual_ns"]


@pytest.mark.parametrize("name", ["h1-leaf0", LINK, "leaf1-h3"])
def test_a_strangers_data_needs_no_credit_and_takes_no_room(name: str) -> None:
    def inject(them: Outside) -> None:
        source, destination = (them.fabric.nics[host].address for host in ("h1", "h3"))
        framing = them.fabric._framing
        envelope = framing.envelope(source, destination, source_qp=0x11, destination_qp=0xBAD)
        frame = Frame(envelope, WRITE_ONLY, 0, bytes(64), reth=(0, 0, 64))
        for _ in range(9):
            forge(them, name, framing.encode(frame))

    outside = Outside((3, inject), text=CREDITS, accept_foreign=True)
    result = outside.run()  # raises InvariantBroken if its books do not agree
    assert all_done(result)
    assert result["frames"]["foreign"] == 9
    assert result["drops"]["by_reason"] == {"unknown_qp": 9}
    assert result["frames"]["delivered"] == result["frames"]["sent"] + 9


@pytest.mark.parametrize("text", [CREDITS, PFC], ids=["credits", "pfc"])
@pytest.mark.parametrize("accept_foreign", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_link_control_changed_at_random_never_breaks_a_run(text: str, accept_foreign: bool, seed: int) -> None:
    numbers = random.Random(seed)
    names = (LINK, BACK, "leaf0-h0", "h3-leaf1", "leaf1-h2")

    def begin(them: Outside) -> None:
        for name in names:
            tamper(them, name, lambda data: is_control(data) and numbers.random() < 0.3, mangled(numbers))

    outside = Outside((1, begin), text=text, accept_foreign=accept_foreign)
    result = outside.run()  # raises InvariantBroken if its books do not agree
    assert result["complete"] and result["disturbed"]
    assert result["messages"]["completed"] + result["messages"]["failed"] == 3


@pytest.mark.parametrize("text", [CREDITS, PFC], ids=["credits", "pfc"])
@pytest.mark.parametrize("seed", range(6))
def test_strangers_that_forge_at_random_never_break_a_run(text: str, seed: int) -> None:
    numbers = random.Random(seed)

    def forged() -> bytes:
        match numbers.randrange(4):
            case 0:
                (op, vl), (fctbs, fccl) = numbers.choices(range(16), k=2), numbers.choices(range(4096), k=2)
                return encode(Fcp(op, vl, fctbs, fccl, STRANGER))
            case 1:
                return encode(Pause(STRANGER, numbers.choice((0, 1, 500, 0xFFFF))))
            case 2:
                priorities = numbers.sample(range(8), numbers.randrange(9))
                return encode(pfc(STRANGER, {each: numbers.choice((0, 1, 900, 0xFFFF)) for each in priorities}))
            case _:
                mangle = mangled(numbers)
                return mangle(encode(FORGED[numbers.choice(list(FORGED))])) or b"\0" * 60

    def some(them: Outside) -> None:
        for name in numbers.sample(list(them.fabric.links), 5):
            forge(them, name, forged())

    deeds = [(when_us, some) for when_us in range(1, 12)]
    outside = Outside(*deeds, text=text, accept_foreign=True)
    result = outside.run()
    assert all_done(result)
    assert result["frames"]["foreign"] <= 5 * len(deeds)
