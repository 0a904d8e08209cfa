"""Readers: pcap, pcapng and ERF in every byte order and resolution, cut short, damaged, and what is no capture."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from struct import pack

import pytest

from emu.capture import Record, read
from emu.capture.reader import CaptureFile
from emu.capture.record import BLOCK_LIMIT_BYTES, FRAME_LIMIT_BYTES, NAME_LIMIT
from emu.errors import ScenarioError, WireError
from tests.capture import files
from tests.golden_frames import GOLDEN, SAMPLE_GLOBAL, SAMPLE_LOCAL, captured

TIMES_NS = (0, 1, 999_999_999, 1_700_000_000_123_456_789)
RECORDS = [
    Record(time_ns, "if0", 1, data, len(data))
    for time_ns, data in zip(TIMES_NS, list(GOLDEN.values())[:4], strict=True)
]
NAMED = [each._replace(interface=f"leaf0-h{number % 2}") for number, each in enumerate(RECORDS)]


def written(folder: Path, data: bytes) -> Path:
    path = folder / "capture"
    path.write_bytes(data)
    return path


def in_microseconds(records: list[Record]) -> list[Record]:
    return [each._replace(time_ns=each.time_ns // 1000 * 1000) for each in records]


def test_every_shared_capture(shared_data: Path) -> None:
    paths = sorted((shared_data / "captures").glob("*.pcap"))
    assert len(paths) == 20
    for path in paths:
        records = list(read(path))
        assert [each.data for each in records] == list(captured(path))
        assert all(each.time_ns % 1000 == 0 and each.link_type == 1 for each in records)
        assert all(each.original_bytes == len(each.data) for each in records)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("name", ["rxe61__rc_ipv6", "rxe61__rc_psn_wrap", "constructed__pfc"])
def test_shared_captures_in_every_other_form(shared_data: Path, name: str, order: str, tmp_path: Path) -> None:
    records = list(read(shared_data / "captures" / f"{name}.pcap"))
    assert len(records) > 4
    for data in (
        files.pcap(records, order=order),
        files.pcap(records, order=order, nanoseconds=True),
        files.pcapng(records, order=order),
        files.pcapng(records, order=order, ticks_per_second=10**6),
    ):
        assert list(read(written(tmp_path, data))) == records


@pytest.mark.parametrize("order", "<>")
def test_pcap_resolutions(order: str, tmp_path: Path) -> None:
    assert list(read(written(tmp_path, files.pcap(RECORDS, order=order, nanoseconds=True)))) == RECORDS
    assert list(read(written(tmp_path, files.pcap(RECORDS, order=order)))) == in_microseconds(RECORDS)


@pytest.mark.parametrize("order", "<>")
@pytest.mark.parametrize("ticks_per_second", [10**6, 10**9, 10**12, 1, 2**30, 2**33])
@pytest.mark.parametrize("offset_s", [0, -5, 3])
def test_pcapng_resolutions_and_offsets(order: str, ticks_per_second: int, offset_s: int, tmp_path: Path) -> None:
    later = [each._replace(time_ns=each.time_ns % 10**15 + 10**10) for each in NAMED]  # picoseconds fit in 64 bits
    data = files.pcapng(later, order=order, ticks_per_second=ticks_per_second, offset_s=offset_s)
    ticks = [(each.time_ns - offset_s * 10**9) * ticks_per_second // 10**9 for each in later]
    expected = [tick * 10**9 // ticks_per_second + offset_s * 10**9 for tick in ticks]
    read_back = list(read(written(tmp_path, data)))
    assert [each.time_ns for each in read_back] == expected
    assert [each._replace(time_ns=0) for each in read_back] == [each._replace(time_ns=0) for each in later]


def test_several_sections_have_interfaces_and_byte_orders_of_their_own(tmp_path: Path) -> None:
    other = [each._replace(interface="b", link_type=247, data=SAMPLE_LOCAL, original_bytes=58) for each in RECORDS]
    data = files.pcapng(NAMED) + files.pcapng(other, order=">") + files.pcapng(RECORDS)
    assert list(read(written(tmp_path, data))) == [*NAMED, *other, *RECORDS]


def test_other_blocks_of_pcapng(tmp_path: Path) -> None:
    frame = RECORDS[1].data
    simple = files.block("<", 3, pack("<I", 500) + frame[:32])
    obsolete = files.block("<", 2, pack("<HHIIII", 0, 0, 0, 7, len(frame), len(frame)) + frame)
    unknown = files.block("<", 0x0BAD, bytes(BLOCK_LIMIT_BYTES + 64))
    data = files.section() + files.interface(snap_bytes=32) + unknown + simple + obsolete
    assert list(read(written(tmp_path, data))) == [
        Record(0, "if0", 1, frame[:32], 500),
        Record(7000, "if0", 1, frame, len(frame)),
    ]


@pytest.mark.parametrize("extension", [b"", bytes(8), b"\x80" + bytes(15)])
@pytest.mark.parametrize(
    ("kind", "frame", "before"), [(21, SAMPLE_LOCAL, 0), (21, SAMPLE_GLOBAL, 0), (2, GOLDEN["ack"], 2)]
)
def test_erf(kind: int, frame: bytes, before: int, extension: bytes, tmp_path: Path) -> None:
    records = [Record(time_ns, "if2", 197, frame, len(frame)) for time_ns in TIMES_NS]
    head = 16 + len(extension) + before
    read_back = list(read(written(tmp_path, files.erf(records, kind=kind, port=2, extension=extension))))
    assert [each.data[head:] for each in read_back] == [frame] * len(records)
    assert [each.time_ns for each in read_back] == list(TIMES_NS)
    assert {(each.interface, each.link_type, each.original_bytes) for each in read_back} == {
        ("if2", 197, head + len(frame))
    }


def test_erf_leaves_out_what_is_no_frame(tmp_path: Path) -> None:
    record = Record(5, "if0", 197, SAMPLE_LOCAL, len(SAMPLE_LOCAL))
    data = files.erf([record], kind=27) + files.erf([record], kind=21) + files.erf([record], kind=48)
    assert len(list(read(written(tmp_path, data)))) == 1


def test_a_snap_length_shows(tmp_path: Path) -> None:
    records = [each._replace(data=each.data[:40]) for each in RECORDS]
    for data in (files.pcap(records, nanoseconds=True), files.pcapng(records)):
        assert list(read(written(tmp_path, data))) == records
    erf = files.erf([RECORDS[0]._replace(data=SAMPLE_LOCAL[:20], original_bytes=58)], kind=21)
    (cut,) = read(written(tmp_path, erf))
    assert (len(cut.data), cut.original_bytes) == (36, 74)


@pytest.mark.parametrize(
    ("data", "header_bytes", "whole"),
    [
        (files.pcap(RECORDS, nanoseconds=True), 24, [24]),
        (files.pcapng(NAMED), 28, [28]),
        (files.erf([each._replace(data=SAMPLE_LOCAL, original_bytes=58) for each in RECORDS], kind=21), 0, []),
    ],
    ids=["pcap", "pcapng", "erf"],
)
def test_a_file_cut_anywhere_gives_every_whole_record(
    data: bytes, header_bytes: int, whole: list[int], tmp_path: Path
) -> None:
    path = written(tmp_path, data)
    everything, ends = list(read(path)), list(whole)
    with CaptureFile(path) as capture:
        ends += [capture._source.offset for _ in capture]
    assert len(everything) == 4
    assert ends[-1] == len(data)
    for length in range(1, len(data)):
        path.write_bytes(data[:length])
        warnings: list[str] = []
        try:
            records = list(read(path, warnings.append))
        except WireError:
            assert length < max(header_bytes, 16 + 58)  # not even the file's own header, or one ERF record
            continue
        assert records == everything[: len(records)]
        assert len(records) == sum(end <= length for end in ends[len(whole) :])
        ends_well = length in ends or not warnings
        assert ends_well or warnings == [
            f"{path}: offset {length}: the file ends inside a record; all before it was read"
        ]
        assert not (warnings and length in ends)


DAMAGED = {
    "empty": (b"", "offset 0: it is empty"),
    "text": (b"root:x:0:0:root:/root:/bin/bash\n" * 9, "offset 0: it is no capture: it begins like none of pcap, "),
    "zeros": (bytes(999), "offset 0: it is no capture"),
    "gzip": (b"\x1f\x8b\x08" + bytes(99), "offset 0: it is compressed"),
    "half a header": (files.pcap([])[:20], "offset 20: it ends inside the header of a pcap file"),
    "pcap 9": (pack("<IHHiIII", 0xA1B2C3D4, 9, 4, 0, 0, 65535, 1), "offset 4: pcap version 9: only 2 is known"),
    "long frame": (files.pcap([]) + pack("<IIII", 0, 0, 2**31, 2**31), "offset 24: a frame of 2147483648 B"),
    "byte order": (b"\x0a\x0d\x0d\x0a" + bytes(24), "offset 0: no pcapng section: its byte order mark is 00000000"),
    "pcapng 9": (files.section(major=9), "offset 0: pcapng version 9"),
    "block of 0": (files.section() + bytes(12), "offset 28: a block of 0 B"),
    "odd block": (files.section() + pack("<III", 6, 13, 0), "offset 28: a block of 13 B"),
    "huge packet": (files.section() + pack("<II", 6, 2**32 - 4), f"at most {BLOCK_LIMIT_BYTES} are taken"),
    "two lengths": (files.section() + pack("<III", 99, 12, 16), "offset 28: a block of 12 B ends as one of 16 B"),
    "no interface": (files.section() + files.packet("<", 0, 0, b"", 0), "offset 28: a frame on interface 0, which"),
    "bare interface": (files.section() + files.block("<", 1, b""), "an interface block without its fields"),
    "bare packet": (files.section() + files.interface() + files.block("<", 6, b"abcd"), "offset 48: a packet block"),
    "long option": (
        files.section() + files.block("<", 1, pack("<HHIHH", 1, 0, 0, 2, 999)),
        "offset 28: an option of 999 B in a block with 0 B left",
    ),
    "longer than its block": (
        files.section() + files.interface() + files.block("<", 6, pack("<IIIII", 0, 0, 0, 99, 99)),
        "offset 48: a frame of 99 B in a block with 0 B for it",
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damage_is_named_with_its_place(name: str, tmp_path: Path) -> None:
    data, said = DAMAGED[name]
    path = written(tmp_path, data)
    with pytest.raises(WireError) as caught:
        list(read(path))
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_comes_before_damage_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, files.pcapng(NAMED) + bytes(12))
    found: list[Record] = []
    with pytest.raises(WireError, match="a block of 0 B"):
        for each in read(path):
            found.append(each)  # noqa: PERF402 - `extend` would drop what came before the error
    assert found == NAMED


def test_names_are_kept_short_and_on_one_line(tmp_path: Path) -> None:
    data = files.section() + files.interface(name=b"a\nb\x1b[0m\xff" + b"x" * 999) + files.packet("<", 0, 0, b"abc", 3)
    (record,) = read(written(tmp_path, data))
    assert record.interface == "a?b?[0m\ufffd".ljust(NAME_LIMIT, "x")


def test_the_longest_frame_is_taken(tmp_path: Path) -> None:
    longest = [Record(0, "if0", 1, bytes(FRAME_LIMIT_BYTES), FRAME_LIMIT_BYTES)]
    for data in (files.pcap(longest), files.pcapng(longest)):
        assert list(read(written(tmp_path, data))) == longest


def test_what_cannot_be_read_is_a_mistake_of_ours_to_fix(tmp_path: Path) -> None:
    for path, said in ((tmp_path, "directory"), (tmp_path / "none", "No such file"), (Path("a\0b"), "no file name")):
        with pytest.raises(ScenarioError, match=said):
            list(read(path))


def test_a_pipe_that_gives_a_byte_at_a_time(tmp_path: Path) -> None:
    fifo, data = tmp_path / "fifo", files.pcapng(NAMED)
    os.mkfifo(fifo)

    def feed() -> None:
        with open(fifo, "wb", buffering=0) as file:
            for place in range(0, len(data), 7):
                file.write(data[place : place + 7])

    feeder = threading.Thread(target=feed)
    feeder.start()
    assert list(read(fifo)) == NAMED
    feeder.join()
