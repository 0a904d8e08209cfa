"""Where a NIC writes CQEs: over and over to one place, or round a ring, with the owner bit of each round."""

from __future__ import annotations

import pytest

from emu.fabric import Fabric
from emu.mlx5.cqe import CQE_BYTES, decode, is_written
from emu.pcie.tlp import Tlp, TlpKind
from emu.run import Options, run
from emu.scenario.load import parse

DEPTH = 8


def cqes(path: str, *, collapsed: bool, messages: int) -> tuple[list[Tlp], int]:
    """The sender's CQEs in order, and the scenario's completed messages."""
    text = f"""
name: cqes
fabric: {{profile: native, topology: {{kind: leaf_spine, leaves: 1, spines: 1, hosts_per_leaf: 2}}}}
host: {{path: {path}, queues: {{qp_depth: {DEPTH}, num_requests_in_batch: 4, collapsed_cq: {str(collapsed).lower()}}}}}
traffic: [{{kind: write, pairs: [[h0, h1]], size: 8B, count: {messages}, depth: {DEPTH}}}]
"""
    seen: list[Tlp] = []

    def watch(fabric: Fabric) -> None:
        def sent(_: int, link: str, frame: object) -> None:
            is_cqe = isinstance(frame, Tlp) and frame.kind is TlpKind.MWR and len(frame.payload) == CQE_BYTES
            if is_cqe and link.startswith("h0.nic-"):
                assert isinstance(frame, Tlp)
                seen.append(frame)

        fabric.hosts["h0"].taps.frame_sent = sent

    result = run(parse(text, "cqes.yaml", ()), Options(wire="memory", before_run=watch))
    return seen, result["messages"]["completed"]


def test_a_collapsed_cq_is_one_place() -> None:
    seen, completed = cqes("ibgda", collapsed=True, messages=20)
    assert completed == len(seen) == 20
    assert len({tlp.address for tlp in seen}) == 1
    assert [decode(bytes(tlp.payload)).wqe_counter for tlp in seen] == [*range(20)]


@pytest.mark.parametrize(("path", "collapsed"), [("ibgda", False), ("cpu_proxy", True), ("cpu_sync", True)])
def test_a_ring_goes_round(path: str, collapsed: bool) -> None:
    """CPUs poll a ring whatever the GPU would: it has an entry for each WQE, so it cannot overrun."""
    seen, completed = cqes(path, collapsed=collapsed, messages=20)
    assert completed == len(seen) == 20
    start = seen[0].address
    assert [tlp.address - start for tlp in seen] == [number % DEPTH * CQE_BYTES for number in range(20)]
    for number, tlp in enumerate(seen):
        data = bytes(tlp.payload)
        assert is_written(data, number, DEPTH)
        assert not is_written(data, number + DEPTH, DEPTH)
