"""A PCI Express switch or root complex: requests go by their address, completions by who asked.

Peer-to-peer requests between its links are forwarded as any other.
"""

from __future__ import annotations

from bisect import bisect_right

from emu.errors import ScenarioError
from emu.host.link import FarEnd, PcieLink
from emu.pcie.layout import PAGE_BYTES
from emu.pcie.tlp import Tlp, TlpKind

CPLD = TlpKind.CPLD


class Forwarder:
    """Cut-through, and never the bottleneck: what waits, waits for the link that it leaves by. All links of one rate.

    What nobody claims goes up, and is dropped where there is no up.
    """

    __slots__ = (
        "_by_requester",
        "_egresses",
        "_ends",
        "_starts",
        "latency_ps",
        "name",
        "received",
        "unsupported",
        "up",
    )

    def __init__(self, name: str, latency_ps: int, up: PcieLink | None = None) -> None:
        self.name = name
        self.latency_ps = latency_ps  # from a header's arrival to its first bit out
        self.up = up  # a switch's upstream port; None: a root complex
        self.received = 0
        self.unsupported = 0  # of them, for an address or a requester that nobody claims (2.3.1: unsupported request)
        self._starts: list[int] = []  # in order; each claim's end and link at the same place
        self._ends: list[int] = []
        self._egresses: list[PcieLink] = []
        self._by_requester: dict[int, PcieLink] = {}

    def far_end(self) -> FarEnd:
        """What a link that ends here is joined to."""
        return FarEnd(self.receive, forwards=True, delay_ps=self.latency_ps)

    def claim(self, start: int, length_bytes: int, egress: PcieLink) -> None:
        """Requests for these addresses leave by this link: they are a BAR's, or host memory's.

        Raises ScenarioError unless start and length are whole 4 KB pages (so that no request lies in two ranges; a
        bridge's windows are coarser still, 7.5.1.3) and nobody else has claimed any of them.
        """
        end = start + length_bytes
        if start % PAGE_BYTES or length_bytes % PAGE_BYTES or length_bytes < 1:
            raise ScenarioError(f"{self.name}: {start:#x} to {end:#x} is no whole number of 4 KB pages")
        place = bisect_right(self._starts, start)
        if (place and start < self._ends[place - 1]) or (place < len(self._starts) and self._starts[place] < end):
            raise ScenarioError(f"{self.name}: some of {start:#x} to {end:#x} is claimed already")
        self._starts.insert(place, start)
        self._ends.insert(place, end)
        self._egresses.insert(place, egress)

    def claim_requester(self, requester: int, egress: PcieLink) -> None:
        """Completions for this bus, device and function leave by this link. Raises ScenarioError if claimed before."""
        if requester in self._by_requester:
            raise ScenarioError(f"{self.name}: requester {requester:#06x} is claimed already")
        self._by_requester[requester] = egress

    def receive(self, tlp: Tlp) -> None:
        """Pass it on."""
        self.received += 1
        if tlp.kind is CPLD:
            egress = self._by_requester.get(tlp.requester, self.up)
        else:
            address = tlp.address
            place = bisect_right(self._starts, address) - 1
            egress = self._egresses[place] if place >= 0 and address < self._ends[place] else self.up
        if egress is None:
            self.unsupported += 1
        else:
            egress.send(tlp)
