"""A lab is built as described, one process among others, and gone without a trace on every way out."""

from __future__ import annotations

import os
import resource
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from emu.errors import MachineError
from emu.lab import lab as lab_module
from emu.lab.cables import Cables
from emu.lab.interface import IFF_NOARP, IFF_UP, flags_of
from emu.lab.lab import Lab
from emu.topology import PortName, Topology
from tests.lab.fabrics import PAIR, REPOSITORY, SMALL, inside, interfaces_here, processes_of
from tests.wire.stub import StubFraming, make_frame

pytestmark = pytest.mark.lab


def files_open() -> int:
    return len(os.listdir("/proc/self/fd"))


def resident_kib() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() // 1024


@contextmanager
def without_a_trace(run_id: str) -> Iterator[None]:
    """What is here before is all that is here afterwards."""
    before = files_open(), threading.active_count(), interfaces_here(), os.sched_getaffinity(0)
    limit, handler = resource.getrlimit(resource.RLIMIT_NOFILE), signal.getsignal(signal.SIGINT)
    yield
    after = files_open(), threading.active_count(), interfaces_here(), os.sched_getaffinity(0)
    assert after == before
    assert resource.getrlimit(resource.RLIMIT_NOFILE) == limit
    assert signal.getsignal(signal.SIGINT) is handler
    assert processes_of(run_id) == []


def test_a_fabric_as_described() -> None:
    with without_a_trace("emu-described"), Lab(SMALL, run_id="emu-described") as lab:
        assert len(processes_of("emu-described")) == len(SMALL.nodes)
        assert len({os.stat(f"/proc/{pid}/ns/net").st_ino for pid in lab.pids}) == len(SMALL.nodes)
        assert len(os.sched_getaffinity(0)) == 1
        assert lab.build_seconds > 0
        for link in SMALL.links:
            for port in (link.a, link.b):
                flags = flags_of(lab.socket_at(port), port.interface)
                assert flags & (IFF_UP | IFF_NOARP) == IFF_UP | IFF_NOARP
        shown = inside(lab.pid_of("leaf0"), "ip", "-d", "address")
        assert shown.count("mtu 9216") == 4
        assert "inet" not in shown
        assert {f"leaf0-eth{number}" for number in range(1, 5)} == {
            word.partition("@")[0] for word in shown.split() if word.startswith("leaf0")
        }
        assert inside(lab.pid_of("leaf0"), "cat", "/proc/sys/net/ipv4/ip_forward") == "0\n"


def test_every_link_carries_frames_both_ways() -> None:
    framing = StubFraming()
    with Lab(SMALL) as lab:
        wires = [wire for link in SMALL.links for wire in lab.wires(link, framing)]
        for psn, wire in enumerate(wires):
            frame = make_frame(framing, psn)
            assert wire.send(frame)
            assert wire.receive(frame) is frame
        for wire in wires:
            wire.finish()
        assert sum(wire.lost + wire.late + wire.foreign for wire in wires) == 0
        assert [wire.name for wire in wires[-4:]] == ["leaf0-leaf1", "leaf1-leaf0", "leaf0-leaf1#2", "leaf1-leaf0#2"]


def test_mininet_knows_the_nodes_and_starts_their_shells_when_asked() -> None:
    with without_a_trace("emu-shell"), Lab(SMALL, run_id="emu-shell") as lab:
        before = len(processes_of("emu-shell"))
        assert [host.name for host in lab.mininet.hosts] == ["h0", "h1"]
        assert [switch.name for switch in lab.mininet.switches] == ["leaf0", "leaf1", "spine0"]
        assert lab.mininet["leaf0"].cmd("ls /sys/class/net").split()[0] == "leaf0-eth1"
        assert lab.mininet["h0"].pexec("cat", "/sys/class/net/h0-eth0/mtu") == ("9216\n", "", 0)
        assert lab.mininet["h1"].cmd("echo $EMU_RUN").strip() == "emu-shell"
        assert len(processes_of("emu-shell")) >= before + 2
        assert str(lab.mininet.links[0]) == "h0-eth0<->leaf0-eth1"


@pytest.mark.parametrize("error", [MachineError("no more"), KeyboardInterrupt(), RuntimeError("a bug")])
def test_a_build_that_fails_half_way_leaves_nothing(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    lay = Cables.lay
    laid: list[tuple[tuple[str, int, int], ...]] = []

    def fail_at_the_fourth(self: Cables, *ends: tuple[str, int, int]) -> None:
        if len(laid) == 3:
            raise error
        laid.append(ends)
        lay(self, *ends)

    monkeypatch.setattr(Cables, "lay", fail_at_the_fourth)
    with without_a_trace("emu-fails"), pytest.raises(type(error)), Lab(SMALL, run_id="emu-fails"):
        pytest.fail("it was built all the same")
    assert len(laid) == 3


def test_a_socket_that_cannot_be_had_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(opened: socket.socket, interface: str) -> None:
        if interface == "leaf1-eth3":
            raise OSError(12, "no memory")

    monkeypatch.setattr(lab_module, "bind_to", refuse)
    with (
        without_a_trace("emu-socket"),
        pytest.raises(MachineError, match="no memory: free some memory, or use --wire memory"),
        Lab(SMALL, run_id="emu-socket"),
    ):
        pytest.fail("it was built all the same")


@pytest.mark.parametrize("stage", ["spawn", "fabric_net", "one_cpu"])
def test_ctrl_c_during_a_build_waits_for_a_step_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch, stage: str) -> None:
    original = getattr(lab_module, stage)

    def interrupted(*arguments: object) -> object:
        os.kill(os.getpid(), signal.SIGINT)
        return original(*arguments)

    monkeypatch.setattr(lab_module, stage, interrupted)
    with without_a_trace("emu-ctrl-c"), pytest.raises(KeyboardInterrupt), Lab(SMALL, run_id="emu-ctrl-c"):
        pytest.fail("it was built all the same")


def test_an_error_inside_leaves_nothing() -> None:
    with without_a_trace("emu-inside"), pytest.raises(ZeroDivisionError), Lab(PAIR, run_id="emu-inside"):
        1 / 0  # noqa: B018


def test_too_few_files_are_refused_before_anything_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, 70))
    with without_a_trace("emu-files"), pytest.raises(MachineError, match="--wire memory"), Lab(SMALL):
        pytest.fail("it was built all the same")


CHILD = """
    import sys, time
    from emu.lab.lab import Lab
    from tests.lab.fabrics import SMALL
    from tests.wire.stub import StubFraming, make_frame
    framing = StubFraming()
    with Lab(SMALL, run_id=sys.argv[1]) as lab:
        lab.mininet["h0"].cmd("true")
        wires = [wire for link in SMALL.links for wire in lab.wires(link, framing)]
        print("up", flush=True)
        sys.stdin.readline()
        for psn in range(500):
            frame = make_frame(framing, psn)
            for wire in wires:
                assert wire.send(frame) and wire.receive(frame) is frame
        for wire in wires:
            wire.finish()
        print(sum(wire.lost + wire.late + wire.foreign for wire in wires), flush=True)
"""


@contextmanager
def child(run_id: str) -> Iterator[subprocess.Popen[str]]:
    """Another process with a lab of its own, already up."""
    command = [sys.executable, "-c", textwrap.dedent(CHILD), run_id]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "up\n"
            yield process
        finally:
            process.kill()


def test_kill_9_leaves_nothing() -> None:
    with child("emu-killed") as process:
        assert len(processes_of("emu-killed")) == len(SMALL.nodes) + 1
        process.kill()
        process.wait()
        deadline = time.monotonic() + 5
        while processes_of("emu-killed") and time.monotonic() < deadline:
            time.sleep(0.02)
        assert processes_of("emu-killed") == []


def test_ctrl_c_ends_the_run_not_the_holders() -> None:
    with child("emu-session") as process:
        for pid in processes_of("emu-session"):
            assert os.getsid(pid) != os.getsid(process.pid)


def test_two_labs_at_once_do_not_meet() -> None:
    with child("emu-one") as one, child("emu-two") as two:
        out = [process.communicate("go\n", timeout=60)[0] for process in (one, two)]
        assert out == ["0\n", "0\n"]
        assert one.returncode == two.returncode == 0
    assert processes_of("emu-one") == processes_of("emu-two") == []


def build_often(times: int, topology: Topology) -> None:
    for _ in range(3):  # caches and pools fill
        with Lab(topology):
            pass
    before = files_open(), threading.active_count()
    resident_before_kib = resident_kib()
    for _ in range(times):
        with Lab(topology) as lab:
            assert lab.socket_at(PortName("h0", 0)).fileno() >= 0
    assert (files_open(), threading.active_count()) == before
    assert resident_kib() - resident_before_kib < 4096
    assert processes_of(lab.run_id) == []


def test_thirty_builds_cost_no_files_threads_or_memory() -> None:
    build_often(30, PAIR)


@pytest.mark.long
def test_three_hundred_builds_cost_no_files_threads_or_memory() -> None:
    build_often(300, SMALL)
