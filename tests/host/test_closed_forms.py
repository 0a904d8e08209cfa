"""A device's reads and writes of memory through a root complex, to the picosecond."""

from __future__ import annotations

import pytest

from emu.pcie.bandwidth import read_payload_bps, write_payload_bps
from emu.pcie.split import completion_pieces, request_pieces
from emu.pcie.tlp import TAGS_LIMIT, Tlp
from emu.units import SECOND
from tests.host.bench import BASE, ONE_WAY_PS, READ_PS, SIZE_BYTES, Host, Note

MWR, MRD, CPLD = 24, 24, 20  # bytes beside the payload, addresses being beyond 4 GB
SIZES = [4, 64, 256, 260, 4096]


def write_arrivals(host: Host) -> list[tuple[int, Tlp]]:
    """When what write will have been at the memory."""
    arrivals: list[tuple[int, Tlp]] = []

    def note(tlp: Tlp) -> None:
        arrivals.append((host.engine.now_ps, tlp))
        host.memory.receive(tlp)

    host.to_memory.join(host.memory.far_end()._replace(deliver=note))
    return arrivals


def timed_read(host: Host, address: int, length: int) -> int:
    """When the last byte is here."""
    times: list[int] = []
    host.dma.read(address, length, bytearray(length), lambda _: times.append(host.engine.now_ps))
    host.engine.run()
    return times[-1]


@pytest.mark.parametrize("mps", [128, 256, 4096])
@pytest.mark.parametrize("length", SIZES)
def test_an_unloaded_write(mps: int, length: int) -> None:
    host = Host(mps=mps)
    host.space.map(BASE, bytearray(4096))
    arrivals = write_arrivals(host)
    host.dma.write(BASE, bytes(length))
    host.engine.run()
    pieces = request_pieces(BASE, length, mps)
    sers_ps = [host.ser_ps(MWR + piece_bytes) for _, piece_bytes in pieces]
    assert [when for when, _ in arrivals] == [ONE_WAY_PS + sum(sers_ps[: n + 1]) for n in range(len(pieces))]
    assert host.engine.events_run == 2 * len(pieces)


@pytest.mark.parametrize("mps", [128, 256, 4096])
@pytest.mark.parametrize("length", SIZES)
def test_an_unloaded_read(mps: int, length: int) -> None:
    host = Host(mps=mps, mrrs=4096)
    host.space.map(BASE, bytearray(4096))
    answers = completion_pieces(BASE, length, mps, 64)
    answers_ps = sum(host.ser_ps(CPLD + piece_bytes) for _, piece_bytes in answers)
    assert timed_read(host, BASE, length) == ONE_WAY_PS + host.ser_ps(MRD) + READ_PS + ONE_WAY_PS + answers_ps
    assert host.engine.events_run == 2 + 2 * len(answers)


def test_posted_writes_arrive_in_the_order_they_were_sent() -> None:
    host = Host()
    host.space.allocate(SIZE_BYTES)
    arrivals = write_arrivals(host)
    notes = [Note() for _ in range(100)]
    for number, note in enumerate(notes):
        host.dma.write(BASE + 1000 * number, bytes(1 + number * 37 % 900), note)
    host.engine.run()
    assert all(note.arrivals for note in notes)
    assert [tlp for _, tlp in arrivals] == [tlp for note in notes for tlp in note.arrivals]
    assert [when for when, _ in arrivals] == sorted({when for when, _ in arrivals})


def test_a_read_sees_the_write_before_it() -> None:
    host, into = Host(), bytearray(700)
    host.space.allocate(SIZE_BYTES)
    host.dma.write(BASE + 4000, b"x" * 700)
    host.dma.read(BASE + 4000, 700, into, lambda _: None)
    host.engine.run()
    assert into == b"x" * 700


@pytest.mark.parametrize(("tags", "mrrs"), [(1, 128), (4, 512), (8, 256)])
def test_outstanding_reads_limit_throughput_to_tags_x_mrrs_a_round_trip(tags: int, mrrs: int) -> None:
    rounds = 20
    host = Host(tags=tags, mrrs=mrrs)
    host.space.allocate(SIZE_BYTES)
    answers_ps = sum(host.ser_ps(CPLD + length) for _, length in completion_pieces(BASE, mrrs, 256, 64))
    rtt_ps = ONE_WAY_PS + host.ser_ps(MRD) + READ_PS + ONE_WAY_PS + answers_ps
    assert tags * answers_ps < rtt_ps  # else the link limits it
    end_ps = timed_read(host, BASE, rounds * tags * mrrs)
    assert end_ps == rounds * rtt_ps + (tags - 1) * answers_ps  # the last of a burst waits for the others
    assert (host.dma.reads, host.dma.max_outstanding) == (rounds * tags, tags)


@pytest.mark.parametrize("mps", [128, 256, 512])
@pytest.mark.parametrize("size", [64, 512, 4096])
def test_reads_get_the_links_bandwidth(mps: int, size: int) -> None:
    host = Host(mps=mps, mrrs=4096, tags=TAGS_LIMIT)  # 256 tags are too few for 64 bytes
    host.space.allocate(SIZE_BYTES)
    count = 4000
    times: list[int] = []
    into = bytearray(size)
    for number in range(count):
        host.dma.read(BASE + number % 4096 * 4096, size, into, lambda _: times.append(host.engine.now_ps))
    host.engine.run()
    measured_bps = (count - 1) * size * 8 * SECOND / (times[-1] - times[0])
    assert measured_bps == pytest.approx(read_payload_bps(host.rate_bps, size, mps), rel=0.01)


@pytest.mark.parametrize("mps", [128, 256, 512])
@pytest.mark.parametrize("size", [64, 512, 4096])
def test_writes_get_the_links_bandwidth(mps: int, size: int) -> None:
    host = Host(mps=mps)
    host.space.allocate(SIZE_BYTES)
    count = 2000
    for number in range(count):
        host.dma.write(BASE + number * 4096, bytes(size))
    host.engine.run()
    measured_bps = count * size * 8 * SECOND / (host.engine.now_ps - ONE_WAY_PS)
    assert measured_bps == pytest.approx(write_payload_bps(host.rate_bps, size, mps), rel=0.01)
    assert host.up.payload_bytes == host.to_memory.payload_bytes == count * size
