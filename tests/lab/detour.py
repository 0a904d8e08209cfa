"""A way around a fabric interface: what it sends goes through a spare veth, to a process that changes and forwards it.

`tc` redirects all that leaves the interface into one end of a spare veth pair in the same namespace. A process reads
the other end, changes or delays what it reads, and sends it on by the interface itself, past tc (PACKET_QDISC_BYPASS).
`python -m tests.lab.detour INTERFACE CHANGE DELAY_MS` is that process, to be started inside the namespace.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from emu.framing.control import ETHERTYPE_LINK_CONTROL, ETHERTYPE_MAC_CONTROL
from emu.lab.interface import bring_up, carries
from emu.wire.packet_socket import LARGEST_READ_BYTES, SOL_PACKET, bind_to, open_packet_socket
from tests.lab.fabrics import REPOSITORY
from tests.lab.outside import DATA_FRAME_BYTES

PACKET_QDISC_BYPASS = 20  # linux/if_packet.h
TTL_OFFSET, CHECKSUM_OFFSET = 22, 24  # in a RoCEv2 frame: Ethernet 14, IPv4 8 and 10
IN, OUT = "spare0", "spare1"
PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"


def with_less_ttl(data: bytes) -> bytes:
    """As a router would send it on: the IPv4 checksum adjusted (RFC 1141), the ICRC right as before."""
    changed = bytearray(data)
    changed[TTL_OFFSET] -= 1
    checksum = int.from_bytes(data[CHECKSUM_OFFSET : CHECKSUM_OFFSET + 2], "big") + 0x100
    changed[CHECKSUM_OFFSET : CHECKSUM_OFFSET + 2] = (checksum + (checksum >> 16) & 0xFFFF).to_bytes(2, "big")
    return bytes(changed)


def with_a_flipped_bit(data: bytes) -> bytes:
    """In the middle of the payload."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x10]) + data[middle + 1 :]


def flipping_the_third(frames: Iterator[int]) -> Callable[[bytes], bytes]:
    """A bit of the third data frame."""

    def change(data: bytes) -> bytes:
        return with_a_flipped_bit(data) if len(data) >= DATA_FRAME_BYTES and next(frames) == 3 else data

    return change


def damaging_the_second(frames: Iterator[int]) -> Callable[[bytes], bytes]:
    """A bit of what the second frame of a link's own flow control says."""

    def change(data: bytes) -> bytes:
        is_control = int.from_bytes(data[12:14], "big") in (ETHERTYPE_MAC_CONTROL, ETHERTYPE_LINK_CONTROL)
        return data[:17] + bytes([data[17] ^ 4]) + data[18:] if is_control and next(frames) == 2 else data

    return change


CHANGES: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda data: data,
    "ttl": with_less_ttl,
    "bit": flipping_the_third(iter(range(1, 1 << 30))),
    "control": damaging_the_second(iter(range(1, 1 << 30))),
}


@contextmanager
def detour(pid: int, interface: str, change: str, delay_ms: float) -> Iterator[None]:
    """It lasts as long as this; skips where tc cannot do that. `pid`: a process in the namespace."""
    if shutil.which("tc", path=PATH) is None:
        pytest.skip("tc (iproute2) is missing")
    _at(pid, f"ip link add {IN} type veth peer name {OUT}")
    _at(pid, f"ip link set {IN} mtu 9216")
    _at(pid, f"ip link set {OUT} mtu 9216")
    command = [sys.executable, "-m", "tests.lab.detour", interface, change, str(delay_ms)]
    with subprocess.Popen(
        ["mnexec", "-a", str(pid), *command], cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            _at(pid, f"tc qdisc add dev {interface} clsact")
            redirect = f"u32 match u32 0 0 action mirred egress redirect dev {IN}"
            said = _at(pid, f"tc filter add dev {interface} egress protocol all {redirect} 2>&1 || echo refused")
            if "refused" in said:
                pytest.skip(f"tc cannot redirect here: {said.splitlines()[0]}")
            yield
        finally:
            process.kill()


def _at(pid: int, script: str) -> str:
    done = subprocess.run(
        ["mnexec", "-a", str(pid), "sh", "-c", script],
        env={**os.environ, "PATH": PATH},
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def main(interface: str, change: str, delay_ms: str) -> None:
    """Read, change, wait, send on; until killed."""
    reading, spare, sending = (open_packet_socket() for _ in range(3))
    bring_up(spare, IN)
    bring_up(spare, OUT)
    bind_to(reading, OUT)
    sending.setsockopt(SOL_PACKET, PACKET_QDISC_BYPASS, 1)
    sending.bind((interface, 0))  # to send only
    reading.setblocking(True)
    while not carries(spare, IN) or not carries(spare, OUT):
        time.sleep(0.001)
    os.sched_setaffinity(0, range(os.cpu_count() or 1))  # not on the run's CPU alone, where it would go first
    print("ready", flush=True)
    changed, pause_s = CHANGES[change], float(delay_ms) / 1000
    while True:
        data = changed(reading.recv(LARGEST_READ_BYTES))
        if pause_s:
            time.sleep(pause_s)
        sending.send(data)


if __name__ == "__main__":
    main(*sys.argv[1:])
