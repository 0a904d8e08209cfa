"""Names of a host's parts: refused where a node has them already, or a GPU's interface would be too long."""

from __future__ import annotations

import pytest

from emu.errors import ScenarioError
from emu.lab.gpus import Gpus
from emu.run.assembly import topology_of
from emu.scenario.load import parse
from emu.scenario.model import Scenario
from emu.topology import INTERFACE_NAME_LIMIT


def named(host: str, switch: str = "s0", path: str = "ibgda", pcie: str = "veth") -> Scenario:
    """Two hosts at a switch."""
    links = ", ".join(f"{{a: {each}, b: {switch}}}" for each in (host, "h1"))
    return parse(
        f"""
name: names
fabric:
  profile: native
  topology: {{kind: graph, hosts: [{host}, h1], switches: [{switch}], links: [{links}]}}
host:
  path: {path}
  pcie: {pcie}
traffic: []
""",
        "names.yaml",
    )


@pytest.mark.parametrize("host", ["h0", "h12345", "gpu", "a.b-c", "_0"])
def test_the_gpus_of_these_hosts_have_names(host: str) -> None:
    gpus = Gpus(topology_of(named(host)))
    assert gpus.topology.hosts == (host, "h1", f"{host}.gpu", "h1.gpu")
    (own, other) = gpus.topology.links[2:]
    assert [port.interface for port in (own.a, own.b)] == [f"{host}.gpu-eth0", f"{host}-eth1"]
    assert other.name == "h1.gpu-h1.pcie"
    assert all(len(port.interface) <= INTERFACE_NAME_LIMIT for link in gpus.topology.links for port in (link.a, link.b))


def test_a_name_that_leaves_a_gpu_no_room_is_refused() -> None:
    assert named("h123456", pcie="memory").host.pcie is not None
    with pytest.raises(ScenarioError) as caught:
        named("h123456")
    assert str(caught.value) == (
        "names.yaml:8: host.pcie.wire: the GPU of host 'h123456' would have interface 'h123456.gpu-eth0' of 16"
        " characters: at most 15 are allowed, so shorten the host's name, or set this to memory"
    )


@pytest.mark.parametrize("part", ["gpu", "nic", "cpu", "pcie"])
@pytest.mark.parametrize("pcie", ["veth", "memory"])
def test_a_node_that_is_called_as_a_part_is_refused(part: str, pcie: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        named("h0", switch=f"h0.{part}", pcie=pcie)
    assert str(caught.value) == (
        f"names.yaml:5: fabric.topology: node 'h0.{part}' is called as a part of host h0 is: call it otherwise"
    )


def test_without_a_path_a_node_may_be_called_so() -> None:
    text = "{name: n, fabric: {profile: native, topology: {kind: graph, hosts: [h0, h1], switches: [h0.gpu],"
    text += " links: [{a: h0, b: h0.gpu}, {a: h1, b: h0.gpu}]}}, traffic: []}"
    assert parse(text).host.pcie is None
