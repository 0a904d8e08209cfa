"""Scenarios of rings: hosts on switches in a circle, each writing to one some switches on, clockwise."""

from __future__ import annotations

from dataclasses import dataclass

from emu.scenario.load import parse
from emu.scenario.model import Scenario

CREDITS = "profile: native, flow_control: credits, credit_blocks: 132"
PFC = "profile: roce, flow_control: pfc, xoff: 20KB, congestion_control: none"


@dataclass(frozen=True, kw_only=True)
class Ring:
    """`hops`: how many switches on each host writes; `idle`: switches whose hosts write nothing."""

    fabric: str = CREDITS
    switches: int = 5
    hosts: int = 1  # on each switch
    hops: int = 2
    idle: tuple[int, ...] = ()
    size: str = "128KiB"
    nic: str = ""
    more: str = ""  # traffic

    def host(self, switch: int, number: int) -> str:
        """The name of a switch's host."""
        return f"h{switch % self.switches * self.hosts + number}"

    def around(self) -> list[str]:
        """The links clockwise."""
        return [f"s{switch}-s{(switch + 1) % self.switches}" for switch in range(self.switches)]

    def scenario(self) -> Scenario:
        """What to run."""
        places = [(switch, number) for switch in range(self.switches) for number in range(self.hosts)]
        hosts = [self.host(*place) for place in places]
        links = [f"{{a: {self.host(*place)}, b: s{place[0]}}}" for place in places]
        links += ["{{a: {}, b: {}}}".format(*name.split("-")) for name in self.around()]
        pairs = [
            f"[{self.host(switch, number)}, {self.host(switch + self.hops, number)}]"
            for switch, number in places
            if switch not in self.idle
        ]
        switches = [f"s{switch}" for switch in range(self.switches)]
        graph = (
            f"kind: graph, hosts: [{', '.join(hosts)}], switches: [{', '.join(switches)}], links: [{', '.join(links)}]"
        )
        return parse(
            f"name: ring\nfabric: {{{self.fabric}, topology: {{{graph}}}}}\nhost: {{nic: {{{self.nic}}}}}\n"
            f"traffic: [{{kind: write, size: {self.size}, pairs: [{', '.join(pairs)}]}}{self.more}]",
            "ring.yaml",
            (),
        )
