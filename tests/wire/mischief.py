"""Two runs with a link that is held up, on credits and with pauses; and what may be done to their links' own frames."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from emu.framing.control import ETHERTYPE_LINK_CONTROL, ETHERTYPE_MAC_CONTROL, Control, decode
from tests.lab.outside import LINK, Outside

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
STRANGER = 0x02_00_00_00_BA_D0

Change = Callable[[bytes], bytes | None]


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


def is_data(data: bytes) -> bool:
    return len(data) > 4096


def paused(result: dict[str, Any], name: str = LINK) -> float:
    """For how long it was paused, the priorities' added up."""
    (found,) = [link["paused_ns"] for link in result["links"] if link["name"] == name]
    return float(found)


def forge(them: Outside, name: str, data: bytes) -> None:
    """A stranger sends it, and somebody looks."""
    them.wire(name).sender.send(data)
    them.wire(name).poll()


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
