"""Scenario files: what is read, what is set, what is filled in, and that a resolved scenario loads again."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
import yaml

from emu.errors import ScenarioError
from emu.scenario.load import build, load, parse
from emu.scenario.model import AllToAll, LeafSpine, Scenario, Write

TEXT = """\
name: two
fabric:
  profile: native
  topology: {kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 2}
  hop_latency: 300ns
traffic:
  - {kind: write, pairs: [[h0, h3]], size: 4KiB, count: 5, start: 1us}
  - {kind: all_to_all, size: 0B}
run: {until: 10ms}
expect:
  - drops.lossless == 0
"""


def test_what_is_written_is_what_is_read() -> None:
    scenario = parse(TEXT)
    assert scenario.name == "two"
    assert isinstance(scenario.fabric.topology, LeafSpine)
    assert scenario.fabric.hop_latency_ps == 300_000
    write, all_to_all = scenario.traffic
    assert isinstance(write, Write)
    assert isinstance(all_to_all, AllToAll)
    assert (write.pairs, write.size_bytes, write.count, write.start_ps) == ((("h0", "h3"),), 4096, 5, 1_000_000)
    assert scenario.run.until_ps == 10**10
    assert [each.text for each in scenario.expect] == ["drops.lossless == 0"]


def test_defaults_and_the_profile_fill_in() -> None:
    scenario = parse(TEXT)
    assert (scenario.run.seed, scenario.host.path, scenario.host.nic.window_packets) == (1, "none", 2048)
    assert scenario.fabric.rate_bps == 400 * 10**9
    assert scenario.fabric.link_defaults.propagation_ps(5000) == 25_000


def test_provenance_says_who_set_a_value() -> None:
    provenance = parse(TEXT).provenance
    assert provenance["fabric.hop_latency"].kind == "scenario"
    assert provenance["fabric.hop_latency"].value == "300ns"
    assert provenance["host.nic.post"].kind == "secondary"
    assert parse(TEXT, settings=["fabric.hop_latency=0.26us"]).provenance["fabric.hop_latency"].kind == "published"


def test_the_given_mapping_is_left_alone() -> None:
    given = yaml.safe_load(TEXT)
    before = json.dumps(given)
    build(given, ["traffic.0.size=1KiB"], seed=3)
    assert json.dumps(given) == before


@pytest.mark.parametrize("profile", ["native", "roce", "roce-63", "ndr"])
def test_resolved_loads_again(profile: str) -> None:
    scenario = parse(TEXT, settings=[f"fabric.profile={profile}"])
    resolved = scenario.resolved()
    for again in (build(resolved), parse(yaml.safe_dump(resolved)), parse(json.dumps(resolved, indent=1))):
        assert again == scenario
        assert again.provenance == scenario.provenance
        assert hash(again) == hash(scenario)
    assert parse(TEXT, settings=["fabric.hop_latency=301ns"]) != scenario


def test_resolved_has_units_and_every_profile_value() -> None:
    resolved = parse(TEXT).resolved()
    assert resolved["fabric"]["rate"] == "400Gbps"
    assert resolved["fabric"]["propagation"] == "5ns/m"
    assert resolved["fabric"]["path_mtu"] == "4KiB"
    assert resolved["host"]["nic"]["ack_turnaround"] == "100ns"
    assert resolved["traffic"][0]["start"] == "1us"
    assert resolved["run"] == {"seed": 1, "until": "10ms"}


@pytest.mark.parametrize(
    ("setting", "path", "value"),
    [
        ("fabric.topology.leaves=3", ("fabric", "topology", "leaves"), 3),
        ("traffic.0.size=1MiB", ("traffic", 0, "size"), "1MiB"),
        ("traffic.0.pairs=[[h1, h2]]", ("traffic", 0, "pairs"), [["h1", "h2"]]),
        ("host.nic.post=1.5us", ("host", "nic", "post"), "1500ns"),
        ("run.until=", ("run",), {"seed": 1}),
        ("expect=[]", ("expect",), []),
        ("name=on", ("name",), "on"),
    ],
)
def test_a_setting_changes_one_value(setting: str, path: tuple[str | int, ...], value: object) -> None:
    found = parse(TEXT, settings=[setting]).resolved()
    for step in path:
        found = found[step]  # type: ignore[index]
    assert found == value


def test_the_later_setting_wins_and_seed_over_all() -> None:
    scenario = parse(TEXT, settings=["run.seed=2", "run.seed=3"])
    assert scenario.run.seed == 3
    assert parse(TEXT, settings=["run.seed=2"], seed=5).run.seed == 5


def test_crlf_and_bom_are_taken(tmp_path: Path) -> None:
    plain = parse(TEXT)
    path = tmp_path / "windows.yaml"
    path.write_bytes(b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    assert load(path) == plain
    assert parse("\ufeff" + TEXT) == plain


def test_words_are_yaml_1_2(tmp_path: Path) -> None:
    for word in ("on", "off", "yes", "no", "2024-01-01", "1:30", "0x", "1_000"):
        assert parse(TEXT, settings=[f"name={word}"]).name == word
    assert parse(TEXT, settings=["traffic.0.count=0o17"]).resolved()["traffic"][0]["count"] == 15
    assert parse(TEXT, settings=["traffic.0.count=010"]).resolved()["traffic"][0]["count"] == 10


def test_a_profile_beside_the_scenario_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.yaml").write_text(
        "name: mine\ndescription: mine\nextends: roce\n"
        "fabric:\n  hop_latency: {value: 1us, source: a guess, kind: assumed}\n"
    )
    (tmp_path / "s.yaml").write_text(
        TEXT.replace("profile: native", "profile: ./mine.yaml").replace("  hop_latency: 300ns\n", "")
    )
    scenario = load(str(tmp_path / "s.yaml"))
    assert scenario.fabric.hop_latency_ps == 1_000_000
    assert scenario.provenance["fabric.hop_latency"].source == "a guess"
    assert build(scenario.resolved()) == scenario
    monkeypatch.chdir(tmp_path)
    assert parse(TEXT, settings=["fabric.profile=./mine.yaml"]).fabric.framing == "rocev2"


def test_a_scenario_can_be_sent_to_another_process() -> None:
    scenario = parse(TEXT)
    copy = pickle.loads(pickle.dumps(scenario))
    assert isinstance(copy, Scenario)
    assert (copy, copy.provenance) == (scenario, scenario.provenance)
    assert str(copy.mistake("no", "expect", 0)) == "scenario:11: expect.0: no"


def test_a_scenario_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        parse(TEXT).name = "other"  # type: ignore[misc]


def test_a_name_that_is_no_file_names_the_nearest_built_in() -> None:
    with pytest.raises(ScenarioError, match=r"no scenario file or built-in 'helo'; did you mean 'hello'\?"):
        load("helo")
