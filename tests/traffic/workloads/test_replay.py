"""What was captured is posted again: same operations, sizes and order, at the same times, on the hosts asked for."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from emu.capture import operations
from emu.capture.operations import Captured, Conversation, Operation, read_operations
from emu.cli import main
from emu.errors import ScenarioError
from emu.framing import dissect_transport
from emu.run import Options, run
from emu.scenario.load import parse
from emu.scenario.model import Scenario
from emu.units import NS
from tests.traffic.workloads.watched import Watched, watch
from traffic.workloads.replay import Origin, place

CONNECTED = (
    "rc_write",
    "rc_write_imm",
    "rc_send",
    "rc_send_imm",
    "rc_read",
    "rc_atomic",
    "rc_psn_wrap",
    "rc_loss_data",
)
NAMES = {
    "RDMA_WRITE": "RDMA Write",
    "RDMA_WRITE_WITH_IMM": "RDMA Write with Immediate",
    "SEND": "SEND",
    "SEND_WITH_IMM": "SEND with Immediate",
    "RDMA_READ": "RDMA Read Request",
    "ATOMIC_CMP_AND_SWP": "Compare Swap",
    "ATOMIC_FETCH_AND_ADD": "Fetch Add",
}


@pytest.fixture
def captures(shared_data: Path) -> Path:
    return shared_data / "captures"


def replay(file: Path, more: str = "", profile: str = "roce") -> Watched:
    return watch(f"{{kind: replay, file: {file}{more}}}", profile=profile)


def posted(seen: Watched) -> dict[int, list[tuple[str, int, int]]]:
    """By conversation: what was posted, how large, and when in picoseconds."""
    found: dict[int, list[tuple[str, int, int]]] = {}
    for message in seen.messages:
        origin = message.flow.origin
        assert isinstance(origin, Origin)
        operation = (NAMES[message.operation], message.size_bytes, message.posted_ps)
        found.setdefault(origin.number, []).append(operation)
    return found


def scenario_of(file: Path, more: str = "", hosts: str = "{kind: line, switches: 1}", fabric: str = "") -> Scenario:
    text = f"name: r\nfabric: {{profile: roce, topology: {hosts}, {fabric}}}\n"
    return parse(text + f"traffic: [{{kind: replay, file: {file}{more}}}]", "r.yaml")


@pytest.mark.parametrize("profile", ["native", "roce"])
@pytest.mark.parametrize("name", CONNECTED)
def test_every_operation_is_posted_as_captured_and_arrives(name: str, profile: str, captures: Path) -> None:
    file = captures / f"rxe61__{name}.pcap"
    (conversation,) = read_operations(str(file)).conversations
    (messages,) = posted(replay(file, profile=profile)).values()
    assert messages == [(each.name, each.size_bytes, each.posted_ns * NS) for each in conversation.operations]


def test_two_that_ask_each_other_each_have_their_queue_pair(captures: Path) -> None:
    seen = replay(captures / "rxe61__cm_rping.pcap", ", map: {192.0.2.2: h5}")
    found = posted(seen)
    assert [len(found[number]) for number in sorted(found)] == [3, 2, 6, 12]
    assert {name for name, _, _ in found[3]} == {"SEND", "RDMA Write", "RDMA Read Request"}
    ends = {(message.flow.source, message.flow.destination) for message in seen.messages}
    assert ends == {("h0", "h5"), ("h5", "h0"), ("h0", ""), ("h5", "")}


def test_what_nobody_acknowledges_is_waited_for(captures: Path) -> None:
    for name, count in (("uc_send_write", 4), ("ud_send", 4)):
        seen = replay(captures / f"rxe61__{name}.pcap")
        assert len(seen.messages) == count
        assert all(message.delivered_ps > message.posted_ps for message in seen.messages)


def test_speed_divides_the_times_and_start_adds_to_them(captures: Path) -> None:
    file = captures / "rxe61__rc_write.pcap"
    (as_captured,) = posted(replay(file)).values()
    (faster,) = posted(replay(file, ", speed: 4, start: 3us")).values()
    assert [when for *_, when in faster] == [3_000_000 + when // 4 for *_, when in as_captured]


def test_as_fast_as_possible_keeps_as_many_outstanding_as_were(captures: Path) -> None:
    seen = replay(captures / "rxe61__rc_write.pcap", ", speed: max")
    assert seen.messages[0].posted_ps == 0
    for before, after in zip(seen.messages, seen.messages[1:], strict=False):
        assert after.posted_ps == before.completed_ps


def test_several_outstanding_are_seen_in_the_capture_and_kept(tmp_path: Path) -> None:
    file = tmp_path / "deep.pcapng"
    deep = ("--set", "traffic.0.depth=3", "--set", "traffic.0.count=9", "--set", "expect=[]")
    assert main(["run", "hello", *deep, "--wire", "memory", "--quiet", "--capture", str(file)]) == 0
    (conversation,) = read_operations(str(file)).conversations
    assert (conversation.depth, len(conversation.operations)) == (3, 9)
    seen = replay(file, ", speed: max", profile="native")
    assert [message.posted_ps for message in seen.messages][:3] == [0, 0, 0]
    assert seen.messages[3].posted_ps == seen.messages[0].completed_ps


def test_a_capture_of_all_links_is_one_conversation_as_its_source_saw_it(tmp_path: Path) -> None:
    """The run's own posting times: the first bit leaves `post` after posting, always the same."""
    file = tmp_path / "all.pcapng"
    more = ("--set", "traffic.0.count=5", "--set", "traffic.0.size=9000B", "--set", "expect=[]")
    assert main(["run", "hello", *more, "--wire", "memory", "--quiet", "--capture", str(file)]) == 0
    (conversation,) = read_operations(str(file)).conversations
    assert [each.size_bytes for each in conversation.operations] == [9000] * 5
    (first, *rest) = (message.posted_ps for message in replay(file, profile="native").messages)
    assert [when - first for when in rest] == [
        (each.posted_ns - conversation.operations[0].posted_ns) * NS for each in conversation.operations[1:]
    ]


def captured(*ends: str) -> Captured:
    operation = Operation("SEND", 1, None, 0, None, True)
    return Captured("rocev2", ends, (Conversation("RC", ends[0], ends[1], 17, (operation,), 1),))


def test_endpoints_take_the_hosts_they_are_given_and_the_others_what_is_left() -> None:
    hosts = ("h0", "h1", "h2")
    assert place(captured("a", "b", "c"), {"b": "h0"}, hosts) == {"a": "h1", "b": "h0", "c": "h2"}
    with pytest.raises(ScenarioError, match="no endpoint 'd'; it has a, b, c"):
        place(captured("a", "b", "c"), {"d": "h0"}, hosts)
    with pytest.raises(ScenarioError, match="3 endpoints in the capture, and 2 hosts"):
        place(captured("a", "b", "c"), {}, hosts[:2])


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (", map: {192.0.2.1: h7}", "unknown host 'h7'"),
        (", map: {192.0.2.1: h0, 192.0.2.2: h0}", "given to several endpoints"),
        (", map: 5", "no mapping from a capture's endpoints"),
        (", speed: 0", "out of range; allowed: above 0"),
        (", speed: fast", "no speed: write 1, 0.5 or 10, or max"),
        (", sped: 1", "unknown key 'sped'; did you mean 'speed'"),
    ],
)
def test_mistakes_are_one_line_at_load(more: str, reason: str, captures: Path) -> None:
    with pytest.raises(ScenarioError, match=reason) as error:
        scenario_of(captures / "rxe61__rc_send.pcap", more)
    assert str(error.value).startswith("r.yaml:3: traffic.0.")
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_found_out_at_load(tmp_path: Path) -> None:
    for file, reason in ((tmp_path / "none", "no such file"), (tmp_path, "no regular file")):
        with pytest.raises(ScenarioError, match=f"traffic.0.file: .*{reason}"):
            scenario_of(file)


@pytest.mark.parametrize("content", [b"", b"no capture", b"\xd4\xc3\xb2\xa1", bytes(100)])
def test_what_is_no_capture_is_refused_before_anything_is_built(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(ScenarioError, match="^r.yaml:3: traffic.0: "):
        run(scenario_of(tmp_path / "a"), Options(wire="memory"))


def test_a_datagram_fits_the_path_mtu_or_is_refused(captures: Path) -> None:
    with pytest.raises(ScenarioError, match="a datagram of 1000B does not fit path_mtu, 256B"):
        run(scenario_of(captures / "rxe61__ud_send.pcap", fabric="path_mtu: 256B"), Options(wire="memory"))


def test_what_a_host_sends_to_itself_is_left_out(captures: Path, tmp_path: Path) -> None:
    """As captures of a loopback interface have it: nothing is left of this one."""
    data = (captures / "rxe61__rc_send.pcap").read_bytes()
    (tmp_path / "lo").write_bytes(data.replace(bytes((192, 0, 2, 2)), bytes((192, 0, 2, 1))))
    with pytest.raises(ScenarioError, match="no RDMA message in it that could be posted again"):
        read_operations(str(tmp_path / "lo"))


def test_damaged_captures_are_replayed_or_refused(
    captures: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the bytes say, a run ends, or one line says why there is none. ICRCs are not looked at here."""
    monkeypatch.setattr(operations, "MAX_MESSAGE_BYTES", 1 << 18)
    monkeypatch.setattr(dissect_transport, "_icrc_verdict", lambda *_: "ok")
    numbers, ran = random.Random(11), 0
    for round_number in range(80):
        names = ("cm_rping", "rc_loss_data", "rc_atomic", "ud_send", "uc_send_write", "rc_read", "rc_psn_wrap")
        data = bytearray((captures / f"rxe61__{names[round_number % len(names)]}.pcap").read_bytes())
        for _ in range(numbers.choice((1, 3, 30))):
            data[numbers.randrange(40, len(data))] = numbers.randrange(256)
        (tmp_path / "a").write_bytes(data)
        try:
            hosts = "{kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 6}"
            scenario = scenario_of(tmp_path / "a", ", speed: max", hosts)
            ran += run(scenario, Options(wire="memory"))["complete"]
        except ScenarioError as error:
            assert "\n" not in str(error)
    assert ran > 25


def test_a_resolved_scenario_loads_again(captures: Path) -> None:
    scenario = scenario_of(captures / "rxe61__rc_send.pcap", ", map: {192.0.2.2: h0}, speed: 1/3")
    resolved = scenario.resolved()
    assert resolved["traffic"][0]["map"] == {"192.0.2.2": "h0"}
    assert resolved["traffic"][0]["speed"] == "1/3"
    result = run(scenario, Options(wire="memory"))
    assert result["flows"][0]["src"] == "h1"
    assert hash(scenario.traffic[0]) is not None


def test_a_capture_is_looked_for_beside_the_scenario(captures: Path, tmp_path: Path) -> None:
    (tmp_path / "a.pcap").write_bytes((captures / "rxe61__rc_send.pcap").read_bytes())
    text = "name: r\nfabric: {profile: roce, topology: {kind: line, switches: 1}}\n"
    (tmp_path / "r.yaml").write_text(text + "traffic: [{kind: replay, file: a.pcap}]\n")
    assert main(["run", str(tmp_path / "r.yaml"), "--wire", "memory", "--quiet"]) == 0
