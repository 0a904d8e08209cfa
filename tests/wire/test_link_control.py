"""A link's own frames on a veth: eaten, changed and forged; books agree, faults are told of, and links recover."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from emu.devices.credits import LinkCredits
from emu.frame import Frame
from emu.framing.control import (
    ETHERTYPE_LINK_CONTROL,
    ETHERTYPE_MAC_CONTROL,
    FCP_NORMAL,
    Control,
    Fcp,
    Pause,
    Pfc,
    decode,
    encode,
    pfc,
)
from emu.framing.native import NativeFraming
from emu.opcodes import WRITE_ONLY
from emu.wire import patience
from tests.lab.outside import BACK, LINK, Outside, told

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("little_patience")]

TOPOLOGY = "{kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 2}"
TRAFFIC = "traffic: [{kind: incast, senders: 3, receiver: h3, size: 128KiB}]"
CREDITS = f"""
name: credits
fabric: {{profile: native, topology: {TOPOLOGY}, flow_control: credits, credit_blocks: 130}}
{TRAFFIC}
"""
QUANTA = 4000  # 5.12 us at 400 Gb/s
PFC = f"""
name: pfc
fabric:
  profile: roce
  topology: {TOPOLOGY}
  flow_control: pfc
  xoff: 30KB
  xon: 20KB
  headroom: vendor
  pause: {{quanta: {QUANTA}}}
  congestion_control: none
{TRAFFIC}
"""
TEXTS = {ETHERTYPE_LINK_CONTROL: CREDITS, ETHERTYPE_MAC_CONTROL: PFC}
SAID = {ETHERTYPE_LINK_CONTROL: BACK, ETHERTYPE_MAC_CONTROL: BACK}  # where flow control of the busiest link is said
STRANGER = 0x02_00_00_00_BA_D0
PATH = "/usr/sbin:/sbin:/usr/bin:/bin"
EATER = "filter add dev {} egress bpf da bytecode"
EATS = "4,40 0 0 12,21 0 1 {},6 0 0 4,6 0 0 0"  # what is of that EtherType is stolen, all else goes on
needs_tc = pytest.mark.skipif(shutil.which("tc", path=PATH) is None, reason="tc (iproute2) is missing")

Change = Callable[[bytes], bytes | None]


@pytest.fixture
def little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "PATIENCE_S", 0.02)
    monkeypatch.setattr(patience, "SHORT_PATIENCE_S", 0.002)
    monkeypatch.setattr(patience, "IN_VAIN_S", 0.5)


def is_control(data: bytes) -> bool:
    return int.from_bytes(data[12:14], "big") in TEXTS


def says(of: Callable[[Control], bool]) -> Callable[[bytes], bool]:
    """Whether bytes are link control that says so."""
    return lambda data: is_control(data) and of(decode(data))


def tamper(
    them: Outside, name: str, which: Callable[[bytes], bool], change: Change, times: int = 1 << 30
) -> list[bytes]:
    """From now on change what is sent there, or eat it (None); the list will hold what was changed."""
    wire, hit = them.wire(name), list[bytes]()
    send = wire._send

    def send_other(data: bytes) -> int:
        if len(hit) >= times or not which(data):
            return send(data)
        hit.append(data)
        changed = change(data)
        return len(data) if changed is None else send(changed)

    wire._send = send_other  # type: ignore[assignment]
    return hit


def eaten(_: bytes) -> None:
    """Nothing comes out."""


def flipped(data: bytes) -> bytes:
    """A bit of what it says."""
    return data[:17] + bytes([data[17] ^ 0x04]) + data[18:]


def all_done(result: dict[str, Any]) -> bool:
    messages = result["messages"]
    return bool(result["complete"]) and (messages["completed"], messages["posted"], messages["failed"]) == (3, 3, 0)


def undisturbed(text: str) -> dict[str, Any]:
    """The same run with nobody there, but as many events."""
    result = Outside((1, lambda _: None), text=text).run()
    assert all_done(result)
    assert (result["disturbed"], result["warnings"]) == (False, [])
    return result


@needs_tc
@pytest.mark.parametrize("kind", TEXTS)
def test_control_eaten_by_a_program_for_a_while(kind: int) -> None:
    """Credits heal at a refresh; what a lost pause costs is dropped loudly, and a lost XON is waited for."""

    def eat(them: Outside) -> None:
        interface = them.interface(SAID[kind])
        them.at(SAID[kind], "tc", "qdisc", "add", "dev", interface, "clsact")
        them.at(SAID[kind], "tc", *EATER.format(interface).split(), EATS.format(kind))

    def stop(them: Outside) -> None:
        them.at(SAID[kind], "tc", "filter", "del", "dev", them.interface(SAID[kind]), "egress")

    outside = Outside((2, eat), (14, stop), text=TEXTS[kind])
    result = outside.run()
    wire, port = outside.wire(SAID[kind]), outside.fabric.links[SAID[kind]][1]
    assert all_done(result)
    assert result["disturbed"]
    assert wire.lost == port.lost_link_frames > 0
    assert result["warnings"] == [f"wire {SAID[kind]}: a frame that went in did not come out"] + [
        warning for warning in result["warnings"] if "lossless" in warning or "dropped" in warning
    ]
    assert result["frames"]["lost_on_wire"] == 0
    if kind == ETHERTYPE_LINK_CONTROL:
        assert result["drops"]["lossless"] == 0
        assert result["virtual_ns"] > undisturbed(CREDITS)["virtual_ns"]


@pytest.mark.parametrize("change", [eaten, flipped])
@pytest.mark.parametrize("times", [1, 3, 20])
def test_credits_heal_at_the_next_refresh(change: Change, times: int) -> None:
    outside = Outside((3, lambda them: hit.extend([tamper(them, BACK, is_control, change, times)])), text=CREDITS)
    hit: list[list[bytes]] = []
    result = outside.run()
    assert all_done(result)
    assert outside.fabric.links[BACK][1].lost_link_frames == len(hit[0]) == times
    assert (outside.wire(BACK).lost, outside.wire(BACK).changed) == ((times, 0) if change is eaten else (0, times))
    assert result["disturbed"] and len(result["warnings"]) == 1
    assert (result["drops"]["lossless"], result["frames"]["lost_on_wire"]) == (0, 0)
    assert not any(map(unhealed, links_with_credits(outside)))


def links_with_credits(outside: Outside) -> list[LinkCredits]:
    ends = [end for pair in outside.fabric.attachments.pairs for end in pair]
    return [end for end in ends if isinstance(end, LinkCredits)]


def unhealed(end: LinkCredits) -> int:
    return sum(map(end._unhealed, range(len(end.senders))))


@pytest.mark.parametrize("name", [LINK, "h0-leaf0", "leaf1-h3"])
@pytest.mark.parametrize("times", [1, 2, 25])
def test_data_lost_where_credits_are_is_granted_again(name: str, times: int) -> None:
    outside = Outside((3, lambda them: hit.extend([tamper(them, name, is_data, eaten, times)])), text=CREDITS)
    hit: list[list[bytes]] = []
    result = outside.run()
    assert all_done(result)
    assert result["frames"]["lost_on_wire"] == outside.wire(name).lost == len(hit[0]) == times
    assert sum(flow["retransmitted"] for flow in result["flows"]) > 0
    assert result["warnings"] == [f"wire {name}: a frame that went in did not come out"]
    ends = links_with_credits(outside)
    assert sum(end._lost[0] for end in ends) > 0
    assert not any(map(unhealed, ends))


def is_data(data: bytes) -> bool:
    return len(data) > 4096


def test_all_credits_of_a_link_lost_for_good_end_the_run() -> None:
    outside = Outside((3, lambda them: tamper(them, BACK, is_control, eaten)), text=CREDITS)
    result = outside.run()
    assert result["complete"] and result["disturbed"]
    assert result["messages"]["statuses"].keys() >= {"RETRY_EXC_ERR"}


def xoff(control: Control) -> bool:
    return isinstance(control, Pfc) and control.quanta[3] > 0


def xon(control: Control) -> bool:
    return isinstance(control, Pfc) and control.quanta[3] == 0


@pytest.mark.parametrize("change", [eaten, flipped])
def test_a_lost_xon_ends_by_the_pause_running_out(change: Change) -> None:
    hit: list[list[bytes]] = []
    outside = Outside((3, lambda them: hit.extend([tamper(them, BACK, says(xon), change, 1)])), text=PFC)
    result = outside.run()
    assert all_done(result)
    assert len(hit[0]) == outside.fabric.links[BACK][1].lost_link_frames == 1
    assert result["disturbed"]
    assert (result["drops"]["lossless"], result["frames"]["lost_on_wire"]) == (0, 0)
    paused_ns, before_ns = (paused(each) for each in (result, undisturbed(PFC)))
    assert before_ns + 1_000 < paused_ns <= before_ns + 5_120 + 1_000


def paused(result: dict[str, Any], name: str = LINK) -> float:
    """For how long it was paused, the priorities' added up."""
    (found,) = [link["paused_ns"] for link in result["links"] if link["name"] == name]
    return float(found)


@pytest.mark.parametrize("change", [eaten, flipped])
def test_a_lost_xoff_is_said_again_and_what_it_costs_is_loud(change: Change) -> None:
    hit: list[list[bytes]] = []
    outside = Outside((1, lambda them: hit.extend([tamper(them, BACK, says(xoff), change, 1)])), text=PFC)
    result = outside.run()  # raises InvariantBroken if its books do not agree
    assert all_done(result)
    assert len(hit[0]) == outside.fabric.links[BACK][1].lost_link_frames == 1
    assert result["disturbed"]
    dropped = sum(switch.dropped.get("no_room", 0) for switch in outside.fabric.switches.values())
    assert dropped == result["drops"]["lossless"]
    assert (dropped > 0) == any("lossless" in warning for warning in result["warnings"])


def forge(them: Outside, name: str, data: bytes) -> None:
    """A stranger sends it, and somebody looks."""
    them.wire(name).sender.send(data)
    them.wire(name).poll()


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


def on_another_sl(data: bytes) -> bytes:
    """As if it had been sent so: its CRCs are right."""
    framing = NativeFraming(8)
    frame = framing.decode(data)
    frame.envelope.priority = frame.envelope.lane = 1
    frame.envelope.templates.clear()
    return framing.encode(frame)


def test_data_that_changes_its_vl_is_damaged() -> None:
    """Or credits of one VL would be used, and others given back."""
    outside = Outside(
        (3, lambda them: tamper(them, LINK, is_data, on_another_sl, 1)), text=CREDITS.replace("130}", "130, vls: 2}")
    )
    result = outside.run()
    assert all_done(result)
    assert result["drops"]["by_reason"] == {"bad_crc": 1}
    assert result["warnings"] == [f"wire {LINK}: a frame came out changed; its link CRC counts as bad"]


def mangled(numbers: random.Random) -> Change:
    """Anything that may happen to a frame: bits and bytes flipped, cut, made longer, all noise, or nothing left."""

    def change(data: bytes) -> bytes | None:
        other = bytearray(data)
        match numbers.randrange(8):
            case 0 | 1 | 2:
                other[numbers.randrange(len(data))] ^= 1 << numbers.randrange(8)
            case 3:
                place = numbers.randrange(12, len(data))
                other[place:] = numbers.randbytes(len(data) - place)
            case 4:
                del other[numbers.randrange(14, len(data)) :]
            case 5:
                other += numbers.randbytes(numbers.randrange(1, 60))
            case 6:
                other[12:] = numbers.randbytes(numbers.randrange(2, 200))
            case _:
                return None
        return bytes(other)

    return change


@pytest.mark.parametrize("text", [CREDITS, PFC], ids=["credits", "pfc"])
@pytest.mark.parametrize("accept_foreign", [False, True])
@pytest.mark.parametrize("seed", range(6))
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
