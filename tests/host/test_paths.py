"""One message alone, by each path: visible and completed after the sum of its legs, to the picosecond."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.frame import Message
from emu.scenario.host_path import PATHS
from emu.verbs import SendWR, WROpcode
from tests.host.legs import Legs
from tests.verbs.ends import Ends

SIZES = (0, 1, 8, 256, 513, 4096, 4097, 65536)
PLAIN = ["fabric.flow_control=none"]  # whose packets others would wait for


def sent(size: int, *given: str) -> tuple[Ends, Message]:
    """One WRITE of so many bytes, done."""
    ends = Ends(profile="native", mtu=4096, length=1 << 17, settings=[*PLAIN, *given])
    (there,) = [ends.there.mr.buffer]
    message = ends.here.qp.post_send(
        SendWR(
            wr_id=1,
            sge=ends.here.sge(0, size),
            opcode=WROpcode.RDMA_WRITE,
            remote_addr=ends.there.mr.addr,
            rkey=ends.there.mr.rkey,
        )
    )
    ends.run()
    assert there[:size] == ends.here.mr.buffer[:size]
    assert message.status == "SUCCESS"
    return ends, message


def check(size: int, *given: str) -> None:
    ends, message = sent(size, *given)
    legs = Legs(ends.assembly.scenario)
    assert message.delivered_ps - message.posted_ps == legs.visible(size), (size, given)
    assert message.completed_ps - message.posted_ps == legs.completed(size), (size, given)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("direct", ["true", "false"])
@pytest.mark.parametrize("attach", ["switch", "root_complex"])
def test_each_path_takes_the_sum_of_its_legs(path: str, direct: str, attach: str) -> None:
    for size in SIZES:
        check(size, f"host.path={path}", f"host.gpu_direct={direct}", f"host.pcie.attach={attach}")


@pytest.mark.parametrize("direct", ["true", "false"])
def test_every_place_and_handler_of_ibgdas_queues(direct: str) -> None:
    for memory, handler, inline in product(("gpumem", "hostmem"), ("gpu", "cpu"), (0, 220)):
        for size in (8, 200, 221):
            check(
                size,
                "host.path=ibgda",
                f"host.gpu_direct={direct}",
                f"host.queues.nic_buf_memtype={memory}",
                f"host.queues.nic_handler={handler}",
                f"host.queues.inline={inline}B",
            )


@pytest.mark.parametrize("path", ["cpu_proxy", "cpu_sync"])
@pytest.mark.parametrize("direct", ["true", "false"])
def test_with_and_without_blueflame_and_inline(path: str, direct: str) -> None:
    for blueflame, inline, mps in product(("true", "false"), (0, 220), (128, 512)):
        for size in (28, 29, 92, 93, 221):
            check(
                size,
                f"host.path={path}",
                f"host.gpu_direct={direct}",
                f"host.cpu.blueflame={blueflame}",
                f"host.queues.inline={inline}B",
                f"host.pcie.mps={mps}B",
            )


TIMES = ("pcie.link", "pcie.switch", "pcie.root_complex", "nic.post", "nic.receive", "nic.ack_turnaround") + tuple(
    f"{part}.{leg}"
    for part, legs in (
        ("gpu", ("post", "ring", "request", "poll", "read", "copy")),
        ("cpu", ("poll", "request", "synchronize", "post", "read")),
    )
    for leg in legs
)


@st.composite
def hosts(draw: st.DrawFn) -> list[str]:
    """Any host: its path, its PCIe tree, every leg."""
    chosen = {
        "path": st.sampled_from(PATHS),
        "gpu_direct": st.sampled_from(["true", "false"]),
        "pcie.attach": st.sampled_from(["switch", "root_complex"]),
        "pcie.generation": st.integers(3, 5),
        "pcie.width": st.sampled_from([1, 4, 8, 16]),
        "pcie.mps": st.sampled_from(["128B", "256B", "1KiB", "4KiB"]),
        "pcie.mrrs": st.sampled_from(["128B", "512B", "4KiB"]),
        "pcie.tags": st.sampled_from([1, 2, 7, 256]),
        "cpu.blueflame": st.sampled_from(["true", "false"]),
        "queues.nic_handler": st.sampled_from(["gpu", "cpu"]),
        "queues.nic_buf_memtype": st.sampled_from(["gpumem", "hostmem"]),
        "queues.inline": st.sampled_from(["0B", "28B", "220B"]),
    }
    found = [f"host.{key}={draw(values)}" for key, values in chosen.items()]
    return found + [f"host.{key}={draw(st.integers(0, 3_000_000))}ps" for key in TIMES]


@settings(max_examples=60)
@given(hosts(), st.one_of(st.sampled_from(SIZES), st.integers(0, 20_000)))
def test_any_host_takes_the_sum_of_its_legs(host: list[str], size: int) -> None:
    check(size, *host)
