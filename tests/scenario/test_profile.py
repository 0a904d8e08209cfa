"""Profiles: complete, sourced, as the design has them; and files of one's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.errors import ScenarioError
from emu.scenario.profile import SECTIONS, load_profile, profile_names

ENTRY = "{value: 1us, source: a guess, kind: assumed}"


def test_the_built_in_profiles() -> None:
    assert profile_names() == ["native", "ndr", "roce", "roce-63"]


@pytest.mark.parametrize("name", ["native", "ndr", "roce", "roce-63"])
def test_every_value_is_given_with_source_and_kind(name: str) -> None:
    profile = load_profile(name)
    assert (profile.name, bool(profile.description)) == (name, True)
    expected = {(*section, key) for section, model in SECTIONS.items() for key in model.written_keys()}
    assert set(profile.entries) == expected
    for entry in profile.entries.values():
        assert len(entry.source) > 4
        assert entry.kind in ("spec", "published", "secondary", "calibrated", "assumed")


@pytest.mark.parametrize(
    ("name", "hop_latency", "kind", "framing", "overhead", "priority", "dscp"),
    [
        ("native", "260ns", "published", "native", "8B", 0, 0),
        ("roce", "600ns", "secondary", "rocev2", "20B", 3, 26),
        ("roce-63", "795ns", "calibrated", "rocev2", "20B", 3, 26),
        ("ndr", "200ns", "secondary", "native", "8B", 0, 0),
    ],
)
def test_the_values_of_the_design(
    name: str, hop_latency: str, kind: str, framing: str, overhead: str, priority: int, dscp: int
) -> None:
    profile = load_profile(name)
    values = profile.values(("fabric",))
    assert values["hop_latency"] == hop_latency
    assert profile.provenance()["fabric.hop_latency"].kind == kind
    assert (values["framing"], values["framing_overhead"]) == (framing, overhead)
    assert (values["priority"], values["dscp"]) == (priority, dscp)
    assert (values["rate"], values["host_cable"], values["fabric_cable"], values["propagation"]) == (
        "400Gbps",
        "3m",
        "5m",
        "5ns/m",
    )
    assert values["switching"] == "cut_through"


def test_fabrics_differ_in_the_fabric_only() -> None:
    nics = [load_profile(name).values(("host", "nic")) for name in profile_names()]
    assert all(nic == nics[0] for nic in nics)


def write(folder: Path, name: str, fabric: str, extends: str = "extends: native\n", more: str = "") -> str:
    path = folder / name
    path.write_text(f"name: mine\ndescription: mine\n{extends}fabric:\n  {fabric}\n{more}")
    return str(path)


def test_a_profile_of_ones_own_extends_another(tmp_path: Path) -> None:
    write(tmp_path, "base.yaml", f"hop_latency: {ENTRY}", "extends: roce\n")
    own = write(
        tmp_path, "own.yaml", "host_cable: {value: 2m, source: measured, kind: published}", "extends: ./base.yaml\n"
    )
    profile = load_profile(own)
    assert profile.values(("fabric",))["hop_latency"] == "1us"
    assert profile.values(("fabric",))["framing"] == "rocev2"
    assert profile.provenance()["fabric.host_cable"].source == "measured"


@pytest.mark.parametrize(
    ("fabric", "more", "part"),
    [
        (
            "hop_latency: 1us",
            "",
            "own.yaml:5: fabric.hop_latency: '1us' is no mapping; its keys are: value, source, kind",
        ),
        ("hop_latency: {value: 1us, kind: assumed}", "", "own.yaml:5: fabric.hop_latency.source: is missing"),
        ("hop_latency: {value: 1us, source: x}", "", "own.yaml:5: fabric.hop_latency.kind: is missing"),
        ("hop_latency: {value: 1us, source: '', kind: assumed}", "", "own.yaml:5: fabric.hop_latency.source: "),
        ("hop_latency: {value: 1us, source: x, kind: guessed}", "", "spec, published, secondary, calibrated, assumed"),
        ("hop_latency: {value: 1us, source: x, kind: scenario}", "", "own.yaml:5: fabric.hop_latency.kind: "),
        ("hop_latency: {value: 1, source: x, kind: assumed}", "", "own.yaml:5: fabric.hop_latency: 1 has no unit"),
        (f"hop_latenci: {ENTRY}", "", "own.yaml:5: fabric.hop_latenci: unknown key 'hop_latenci'; did you mean"),
        (f"allow_reordering: {ENTRY}", "", "own.yaml:5: fabric.allow_reordering: not yet"),
        ("ecn: {value: {kmin: 1KB}, source: x, kind: assumed}", "", "own.yaml:5: fabric.ecn.kmax: is missing"),
        ("pause: {value: 3, source: x, kind: assumed}", "", "own.yaml:5: fabric.pause: 3 is no mapping; its keys are"),
        (f"rate: {ENTRY}", "", "own.yaml:5: fabric.rate: "),
        (f"hop_latency: {ENTRY}", f"host: {{nic: {{posts: {ENTRY}}}}}\n", "own.yaml:6: host.nic.posts: unknown key"),
        (f"hop_latency: {ENTRY}", f"host: {{cpus: {ENTRY}}}\n", "own.yaml:6: host.cpus: unknown key"),
        (f"hop_latency: {ENTRY}", "values: 3\n", "own.yaml:6: values: unknown key"),
    ],
)
def test_a_mistake_in_a_profile_is_named_where_it_is(tmp_path: Path, fabric: str, more: str, part: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        load_profile(write(tmp_path, "own.yaml", fabric, more=more))
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_incomplete_profile_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match=r"own\.yaml: fabric\.rate is missing: give it, or `extends`"):
        load_profile(write(tmp_path, "own.yaml", f"hop_latency: {ENTRY}", extends=""))


def test_profiles_that_extend_each_other_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.yaml", f"hop_latency: {ENTRY}", "extends: ./b.yaml\n")
    name = write(tmp_path, "b.yaml", f"hop_latency: {ENTRY}", "extends: ./a.yaml\n")
    with pytest.raises(ScenarioError, match="extends goes on for more than 8"):
        load_profile(name)


@pytest.mark.parametrize("text", ["", "- a", "3"])
def test_a_file_that_is_no_profile(tmp_path: Path, text: str) -> None:
    (tmp_path / "p.yaml").write_text(text)
    with pytest.raises(ScenarioError, match="is no mapping"):
        load_profile(str(tmp_path / "p.yaml"))
