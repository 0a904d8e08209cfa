"""How much memory `emu decode` takes at most, as docs/captures.md states it; files as large as its limits."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from struct import pack

import pytest

from emu.capture import summary
from emu.capture.flows import FLOW_LIMIT
from emu.capture.record import INTERFACE_LIMIT, Record
from emu.capture.summary import Summary
from emu.crc import icrc_roce_ipv6
from emu.opcodes import WRITE_ONLY
from tests.capture import files

MESSAGES_A_FLOW = 5
# Runs the command, then says how much memory it took, in KiB (getrusage would count a parent's, from before exec).
PROGRAM = """
import sys
from emu.cli import main
code = main(sys.argv[1:])
print(open("/proc/self/status").read().split("VmHWM:")[1].split()[0], file=sys.stderr)
sys.exit(code)
"""


def stated_mb() -> int:
    """The bound that the documentation states."""
    text = (Path(__file__).parents[2] / "docs" / "captures.md").read_text()
    found = re.search(r"at most ([0-9]+) MB of memory", text)
    assert found is not None
    return int(found[1])


def request(flow: int, psn: int) -> bytes:
    """A WRITE of no bytes between two hosts of its own, over IPv6."""
    bth = pack("!BBHIIQII", WRITE_ONLY, 0x40, 0xFFFF, flow + 1, psn, 0, 0, 0)
    hosts = pack("!QQQQ", 0xFD11 << 48, flow + (1 << 60), 0xFD22 << 48, flow + (1 << 60))
    ip = pack("!IHBB", 6 << 28, 12 + len(bth), 17, 64) + hosts
    data = ip + pack("!HHHH", 49152 + flow % 16384, 4791, 12 + len(bth), 0) + bth
    return bytes(12) + b"\x86\xdd" + data + pack("<I", icrc_roce_ipv6(data))


def blocks(interfaces: int, flows: int) -> Iterator[bytes]:
    """A file of so many interfaces with the longest names there are, and flows of several messages each."""
    yield files.section()
    for number in range(interfaces):
        yield files.interface(name=b"%08d" % number + "\U0001f600".encode() * 56, resolution=b"\x09")
    for place in range(MESSAGES_A_FLOW * flows):
        data = request(place % flows, 5 + place // flows)
        yield files.packet("<", place % flows % interfaces, place, data, len(data))


def peak_mb(path: Path, interfaces: int, flows: int, *options: str) -> float:
    with path.open("wb") as file:
        file.writelines(blocks(interfaces, flows))
    command = [sys.executable, "-c", PROGRAM, "decode", str(path), *options]
    with (path.parent / "out").open("wb") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stderr.splitlines()[-1]) * 1024 / 1e6


@pytest.mark.parametrize("options", [pytest.param(("--json", "--frames"), marks=pytest.mark.long), ("--frames",)])
def test_a_tenth_of_all_limits_takes_little(options: tuple[str, ...], tmp_path: Path) -> None:
    """The fast one: what is listed is some 50 MB of JSON, none of which is held."""
    assert peak_mb(tmp_path / "a", INTERFACE_LIMIT // 10, FLOW_LIMIT // 10, *options) < 40 + stated_mb() / 10 + 40


@pytest.mark.long
@pytest.mark.parametrize("options", [("--json", "--frames"), ("--frames",)])
def test_everything_at_its_limit_stays_below_what_the_documentation_states(
    options: tuple[str, ...], tmp_path: Path
) -> None:
    assert peak_mb(tmp_path / "a", INTERFACE_LIMIT, FLOW_LIMIT, *options) < stated_mb()


def test_interfaces_beyond_the_limit_are_counted_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many sections describe them: the limit of a section alone would not do."""
    monkeypatch.setattr(summary, "INTERFACE_LIMIT", 3)
    decoded = Summary(with_rows=False)
    decoded.add(Record(0, f"if{number % 5}", 1, bytes(14), 14) for number in range(20))
    result = decoded.result()
    assert list(result["interfaces"]) == [{"name": f"if{number}", "frames": 4} for number in range(3)]
    assert result["left_out"]["frames_of_further_interfaces"] == 8
    assert result["frames"] == 20
