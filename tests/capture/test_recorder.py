"""The recorder: which links, what bytes, when; and the same file on both wires."""

from __future__ import annotations

from pathlib import Path
from struct import unpack_from

import pytest

from emu.capture import Record, read
from emu.capture.recorder import Recorder, chosen
from emu.errors import ScenarioError
from emu.frame import ControlFrame, Frame
from emu.framing.dissect import dissect
from emu.run import Options, run
from emu.run.assembly import Assembly
from emu.scenario import builtin
from emu.topology import reverse_name
from emu.wire.likeness import as_changed
from emu.wire.memory import MemoryWire
from tests.builtins import all_but_long, small
from tests.capture.recording import record
from tests.graphs import graph

ALONE = "fabric.flow_control=none"  # nothing but the traffic's own frames


@pytest.mark.parametrize("name", builtin.names())
def test_what_was_sent_is_what_is_captured(name: str, tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    sent = record(small(name), path)
    captured = list(read(path))
    assert len(captured) == len(sent) > 5
    for seen, each in zip(sent, captured, strict=True):
        data = seen.frame.envelope.framing.encode(seen.frame)
        assert (each.time_ns, each.interface) == (seen.time_ps // 1000, seen.direction)
        if each.link_type == 197:
            (stamp,) = unpack_from("<Q", each.data)
            assert round(stamp * 10**9 / 2**32) == each.time_ns
            if isinstance(seen.frame, ControlFrame):
                continue  # tests/capture/test_lossless.py
            assert each.data[16:] == data[14:]
            assert unpack_from(">BBHHH", each.data, 8) == (21, 4, len(data) + 2, 0, len(data) - 14)
        else:
            assert each.data == data


@pytest.mark.lab
@pytest.mark.parametrize("name", all_but_long("all-to-all-native", "headroom-one-byte-short", "ring-deadlock-native"))
def test_both_wires_write_the_same_file(name: str, tmp_path: Path) -> None:
    paths = {wire: tmp_path / f"{wire}.pcapng" for wire in ("veth", "memory")}
    for wire, path in paths.items():
        run(small(name), Options(wire=wire, captures=(path,)))
    veth, memory = (path.read_bytes() for path in paths.values())
    assert veth == memory
    assert len(veth) > 10_000


@pytest.mark.parametrize("names", [["leaf0-h0"], ["h0-leaf0"], ["h0-leaf0", "leaf0-h0"]])
def test_a_name_means_both_directions(names: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.pcapng"
    record(small("hello", ALONE, f"capture={names}".replace("'", "")), path)
    assert [each.interface for each in read(path)] == ["h0-leaf0", "leaf0-h0"]


class Refusing(MemoryWire):
    """A wire whose end is down."""

    def send(self, frame: Frame) -> bool:
        return False


class Changing(MemoryWire):
    """A wire that flips a bit of every frame's payload."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.in_flight = (None,)  # type: ignore[assignment]  # the port asks for what came out

    def receive(self, frame: Frame) -> Frame:
        data = bytearray(frame.data or b"")
        data[-8] ^= 1
        return as_changed(frame, bytes(data), frame.envelope.framing)


def record_over(wire: type[MemoryWire], path: Path) -> list[Record]:
    """One message over a fabric whose link h0-leaf0 is such a wire; the capture of the first 3 us."""
    assembly = Assembly(small("hello", ALONE, "traffic.0.size=64B"))
    with Recorder(path) as recorder:
        recorder.watch(assembly.taps, assembly.topology.links, native=True, title="test")
        assembly.join(
            lambda link, _: (
                MemoryWire(link.name),
                (wire if link.name == "leaf0-h0" else MemoryWire)(reverse_name(link)),
            )
        )
        assembly.engine.run(3_000_000)
    return list(read(path))


def test_a_lost_frame_shows_where_it_was_sent(tmp_path: Path) -> None:
    (lost,) = record_over(Refusing, tmp_path / "a")
    assert lost.interface == "h0-leaf0"


def test_a_changed_frame_shows_as_it_was_sent_and_then_as_it_came_out(tmp_path: Path) -> None:
    first, *others = record_over(Changing, tmp_path / "a")
    assert [each.interface for each in (first, *others)] == ["h0-leaf0", "leaf0-spine0", "spine0-leaf1", "leaf1-h1"]
    assert dissect(first.link_type, first.data).vcrc == "ok"
    for each in others:
        assert [dissect(each.link_type, each.data).vcrc, dissect(each.link_type, each.data).icrc] == ["bad", "bad"]
        assert sum(a != b for a, b in zip(each.data[16:], first.data[16:], strict=True)) == 1


def test_links_are_chosen_in_their_order() -> None:
    links = graph("a-b b-c").links
    assert [link.name for link in links] == ["a-b", "b-c"]
    assert chosen(links, "all") == chosen(links, ()) == list(links)
    assert chosen(links, ["c-b", "a-b"]) == list(links)
    assert chosen(links, ["c-b"]) == [links[1]]


def test_several_files_and_other_watchers(tmp_path: Path) -> None:
    paths = (tmp_path / "a", tmp_path / "b")
    run(small("hello", ALONE), Options(wire="memory", captures=paths))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert len(list(read(paths[0]))) == 8
    with pytest.raises(ScenarioError, match="exists already"):
        run(small("hello", ALONE), Options(wire="memory", captures=paths))
    run(small("hello", ALONE), Options(wire="memory", captures=paths, replace_captures=True))


def test_nothing_is_encoded_where_nobody_captures() -> None:
    frames = []

    def watch(fabric: object) -> None:
        fabric._taps.frame_sent = lambda _time, _link, frame: frames.append(frame)  # type: ignore[attr-defined]

    run(small("hello", ALONE), Options(wire="memory", before_run=watch))
    assert len(frames) == 8
    assert all(frame.data is None for frame in frames)
