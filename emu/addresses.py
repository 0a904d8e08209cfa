"""What a host is called on each kind of network: MAC, IPv4 and LID, all derived from its number."""

from dataclasses import dataclass

from emu.errors import ScenarioError

IPV4_BASE = 0x0A000000  # 10.0.0.0/8
MAC_BASE = 0x02_00_00_00_00_00  # locally administered
LID_LIMIT = 0xBFFF  # IBTA vol. 1, 4.1.3: the last unicast LID
HOST_LIMIT = LID_LIMIT


@dataclass(frozen=True, slots=True)
class Address:
    """One host port. `ipv4` and `mac` are integers; `lid` is the InfiniBand local identifier."""

    name: str
    mac: int
    ipv4: int
    lid: int


def address_of(name: str, number: int) -> Address:
    """The address of host `number` (from 0). Raises ScenarioError past the unicast LIDs."""
    lid = number + 1
    if not 1 <= lid <= HOST_LIMIT:
        raise ScenarioError(f"host {name} is number {number + 1}: at most {HOST_LIMIT} hosts have a unicast LID")
    return Address(name, MAC_BASE + lid, IPV4_BASE + lid, lid)


def mac_text(mac: int) -> str:
    """`02:00:00:00:00:01` for the integer."""
    return mac.to_bytes(6, "big").hex(":")


def ipv4_text(ipv4: int) -> str:
    """`10.0.0.1` for the integer."""
    return ".".join(map(str, ipv4.to_bytes(4, "big")))
