"""100,000 mutated and random files: WireError or a verdict; never another error, a hang, or memory without bound."""

from __future__ import annotations

import io
import random
import resource
import time
import tracemalloc
from collections import Counter
from pathlib import Path
from struct import pack

import pytest

from emu.capture import Record, erf, pcapng
from emu.capture.flows import FLOW_LIMIT
from emu.capture.reader import FORMATS, CaptureFile
from emu.capture.source import CutShortError, Source
from emu.capture.summary import Summary
from emu.crc import icrc_roce_ipv4
from emu.errors import WireError
from emu.opcodes import WRITE_FIRST
from tests.capture import files
from tests.golden_frames import GOLDEN, SAMPLE_GLOBAL, SAMPLE_LOCAL

SEED = 20261130
LIMIT_S = 60
MEMORY_LIMIT_BYTES = 16 * 2**20  # of one small file: a record of the longest kind, and what is told of it
MOST_FLOWS_KIB = 400 * 1024  # of a file with more flows than are told apart
FRAMES = [Record(number * 10**9, f"l{number % 2}", 1, data, len(data)) for number, data in enumerate(GOLDEN.values())]
NATIVE = [Record(5, "if0", 247, data, len(data)) for data in (SAMPLE_LOCAL, SAMPLE_GLOBAL)]
GOOD = [
    *(files.pcap(FRAMES[:3], order=order, nanoseconds=True) for order in "<>"),
    *(files.pcapng(FRAMES[3:6], order=order) for order in "<>"),
    files.pcapng(FRAMES[6:8]) + files.pcapng(NATIVE, order=">"),
    files.pcap(NATIVE, link_type=247),
    files.pcap(NATIVE, link_type=147),
    files.erf(NATIVE, kind=21, extension=bytes(8)),
    files.erf(FRAMES[:2], kind=2),
    files.erf([NATIVE[0]._replace(data=bytes.fromhex("100037FFD63E"), original_bytes=6)], kind=25),
]
EDGES = (0, 1, 2, 3, 4, 5, 8, 0x7F, 0x80, 0xFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 262_144, 262_145, 524_288)


def mutated(numbers: random.Random) -> bytes:
    """A good file with a few bytes changed, cut, doubled or put in; now and then nothing but noise."""
    data = bytearray(numbers.choice(GOOD))
    if numbers.random() < 0.02:
        return bytes(data[: numbers.choice((4, 24, 28))]) + numbers.randbytes(numbers.randrange(200))
    for _ in range(numbers.choice((1, 1, 2, 5))):
        at = numbers.randrange(len(data)) if data else 0
        match numbers.randrange(6):
            case 0 | 1:
                data[at : at + 1] = numbers.randbytes(1)
            case 2:
                data[at : at + 4] = pack(numbers.choice("<>") + "I", numbers.choice(EDGES))
            case 3:
                del data[at : at + numbers.randrange(40)]
            case 4:
                data[at:at] = data[at : at + numbers.randrange(40)]
            case _:
                del data[at:]
    return bytes(data)


def outcome(data: bytes, name: str) -> str:
    """What came of reading the file and of summing up what is in it."""
    summary = Summary(with_rows=True, limit=10)
    source = Source(io.BytesIO(data), name)
    start = source.peek(erf.RECOGNIZED_BYTES)
    for module in FORMATS.values():
        if module.recognizes(start):
            break
    else:
        return "no capture"
    try:
        summary.add(module.records(source))
        end = "whole"
    except CutShortError:
        end = "cut short"
    except WireError as error:
        assert str(error).startswith(f"{name}: offset ")
        assert "\n" not in str(error)
        end = "damaged"
    result = summary.result()
    assert result["frames"] == sum(result["networks"].values())
    assert sum(result["icrc"].values()) <= result["frames"]
    return end


@pytest.mark.parametrize("count", [20_000, pytest.param(100_000, marks=pytest.mark.long)])
def test_files_by_the_thousand(count: int) -> None:
    numbers = random.Random(SEED)
    outcomes: Counter[str] = Counter()
    began = time.process_time()
    slowest = 0.0
    for number in range(count):
        data = mutated(numbers)
        before = time.process_time()
        outcomes[outcome(data, f"file {number}")] += 1
        slowest = max(slowest, time.process_time() - before)
    assert set(outcomes) == {"whole", "damaged", "cut short", "no capture"}
    assert min(outcomes.values()) > count / 100
    assert time.process_time() - began < LIMIT_S
    assert slowest < 1


def test_memory_of_hostile_files_has_a_bound() -> None:
    numbers = random.Random(SEED)
    tracemalloc.start()
    try:
        for number in range(2000):
            outcome(mutated(numbers), f"file {number}")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MEMORY_LIMIT_BYTES


HUGE = {
    "pcap frame": files.pcap([]) + pack("<IIII", 0, 0, 2**32 - 1, 2**32 - 1),
    "pcapng packet": files.section() + files.interface() + pack("<II", 6, 2**32 - 4),
    "pcapng unknown block": files.section() + pack("<II", 0xBAD, 2**32 - 4) + bytes(999),
    "pcapng section": pack("<III", pcapng.SECTION, 2**32 - 4, pcapng.ORDER_MARK) + bytes(999),
    "erf": files.erf(NATIVE, kind=21)[:-40] + b"\xff" * 60,
}


@pytest.mark.parametrize("name", HUGE)
def test_a_length_alone_costs_nothing(name: str, tmp_path: Path) -> None:
    (tmp_path / "huge").write_bytes(HUGE[name])
    tracemalloc.start()
    try:
        with pytest.raises((WireError, CutShortError)), CaptureFile(tmp_path / "huge") as capture:
            list(capture)
            raise CutShortError  # warned of, and no more
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**20


@pytest.mark.long
def test_as_many_flows_as_a_file_may_have() -> None:
    """70,000 frames, each of a flow of its own and of a message without an end: what is kept of them stays small."""
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    frame = bytearray(GOLDEN["write_only"])
    frame[42] = WRITE_FIRST
    summary = Summary(with_rows=False, limit=1000)
    for number in range(70_000):
        frame[47:50] = number.to_bytes(3, "big")  # the destination queue pair
        frame[-4:] = icrc_roce_ipv4(frame[14:-4]).to_bytes(4, "little")
        summary.add([Record(number, "if0", 1, bytes(frame), len(frame))])
    result = summary.result()
    assert result["icrc"]["ok"] == result["frames"] == 70_000
    assert len(result["flows"]) == FLOW_LIMIT
    assert len(result["messages"]) == 1000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < MOST_FLOWS_KIB
