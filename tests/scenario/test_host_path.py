"""A host's path to its NIC in a scenario: what is taken, `pcie: veth`, and what is refused in one line."""

from __future__ import annotations

from itertools import product

import pytest

from emu.cli import main
from emu.errors import ScenarioError
from emu.scenario.host_path import PATHS
from emu.scenario.load import build, parse
from emu.scenario.model import Scenario

TEXT = """
name: path
fabric: {profile: native, topology: {kind: line, switches: 1}}
HOST
traffic: [{kind: write, pairs: [[h0, h1]], size: 8B}]
"""


def scenario(host: str, *settings: str) -> Scenario:
    return parse(TEXT.replace("HOST", f"host: {host}"), "a.yaml", settings)


@pytest.mark.parametrize(("path", "wire"), [*product(PATHS, ("veth", "memory"))])
def test_pcie_as_a_word_says_its_wire_and_leaves_the_rest(path: str, wire: str) -> None:
    usual = scenario(f"{{path: {path}}}").host.pcie
    assert usual is not None and usual.wire == "memory"
    expected = usual.replace(wire=wire)
    assert scenario(f"{{path: {path}, pcie: {wire}}}").host.pcie == expected
    assert scenario(f"{{path: {path}, pcie: {{wire: {wire}}}}}").host.pcie == expected
    assert scenario(f"{{path: {path}}}", f"host.pcie={wire}").host.pcie == expected
    assert scenario("{}", f"host.path={path}", f"host.pcie={wire}").host.pcie == expected
    one = scenario(f"{{path: {path}, pcie: {wire}}}")
    assert build(one.resolved()) == one


def test_the_word_and_other_keys_go_together() -> None:
    usual = scenario("{path: ibgda}").host.pcie
    assert usual is not None
    expected = usual.replace(wire="veth", mps_bytes=512)
    for host, given in (
        ("{path: ibgda, pcie: {mps: 512B}}", ["host.pcie=veth"]),
        ("{path: ibgda, pcie: veth}", ["host.pcie.mps=512B"]),
        ("{path: ibgda}", ["host.pcie=veth", "host.pcie.mps=512B"]),
        ("{path: ibgda}", ["host.pcie.mps=512B", "host.pcie=veth"]),
    ):
        assert scenario(host, *given).host.pcie == expected


WITH_A_PATH = [
    ("pcie: {mps: 300B}", "host.pcie.mps: '300B' is not allowed; allowed: 128B, 256B, 512B, 1KiB, 2KiB, 4KiB"),
    ("pcie: {mps: 8KiB}", "host.pcie.mps: '8KiB' is not allowed"),
    ("pcie: {mps: 64B}", "host.pcie.mps: '64B' is not allowed"),
    ("pcie: {mrrs: 1000B}", "host.pcie.mrrs: '1000B' is not allowed"),
    ("pcie: {mrrs: 8KiB}", "host.pcie.mrrs: '8KiB' is not allowed"),
    ("pcie: {mrrs: 512}", "host.pcie.mrrs: 512 has no unit"),
    ("pcie: {tags: 0}", "host.pcie.tags: 0 is out of range; allowed: 1 to 1024"),
    ("pcie: {tags: 1025}", "host.pcie.tags: 1025 is out of range"),
    ("pcie: {generation: 6}", "host.pcie.generation: 6 is out of range; allowed: 3 to 5"),
    ("pcie: {width: 12}", "host.pcie.width: 12 is no width of a PCIe link; allowed: 1, 2, 4, 8, 16"),
    ("pcie: {width: 32}", "host.pcie.width: 32 is out of range"),
    ("pcie: {attach: bridge}", "host.pcie.attach: 'bridge' is not allowed; allowed: switch, root_complex"),
    ("pcie: tape", "host.pcie.wire: 'tape' is not allowed; allowed: memory, veth"),
    ("pcie: 3", "host.pcie: 3 is no mapping"),
    ("pcie:", "host.pcie: is empty, and path needs it"),
    ("gpu:", "host.gpu: is empty, and path needs it"),
    ("cpu:", "host.cpu: is empty, and path needs it"),
    ("queues:", "host.queues: is empty, and path needs it"),
    ("nic: {message_rate: }", "host.nic.message_rate: is empty, and path needs it"),
    ("gpu: {warps: 0}", "host.gpu.warps: 0 is out of range; allowed: 1 to 65536"),
    ("gpu: {warps: 1.5}", "host.gpu.warps: 1.5 is no whole number"),
    ("gpu: {warp: 1}", "host.gpu.warp: unknown key 'warp'; did you mean 'warps'?"),
    ("gpu: {post: 400}", "host.gpu.post: 400 has no unit"),
    ("gpu: {post: -1ns}", "host.gpu.post: '-1ns'"),
    ("cpu: {cores: 0}", "host.cpu.cores: 0 is out of range; allowed: 1 to 1024"),
    ("cpu: {batch: 0}", "host.cpu.batch: 0 is out of range"),
    ("cpu: {blueflame: yes}", "host.cpu.blueflame: 'yes' is neither true nor false"),
    ("queues: {qp_depth: 0}", "host.queues.qp_depth: 0 is out of range; allowed: 1 to 32768"),
    ("queues: {qp_depth: 1000}", "host.queues.qp_depth: 1000 is no power of two"),
    ("queues: {qp_depth: 65536}", "host.queues.qp_depth: 65536 is out of range"),
    ("queues: {num_requests_in_batch: 0}", "host.queues.num_requests_in_batch: 0 is out of range"),
    ("queues: {num_requests_in_batch: 1025}", "a doorbell's batch is at most qp_depth, 1024"),
    ("queues: {qp_depth: 16}", "a doorbell's batch is at most qp_depth, 16"),
    ("queues: {nic_handler: dpu}", "host.queues.nic_handler: 'dpu' is not allowed; allowed: gpu, cpu"),
    ("queues: {nic_buf_memtype: hbm}", "host.queues.nic_buf_memtype: 'hbm' is not allowed; allowed: gpumem, hostmem"),
    ("queues: {inline: 221B}", "host.queues.inline: '221B' is too large; a WQE of four blocks holds 220B"),
    (
        "queues: {qp_depth: 2, num_requests_in_batch: 2, inline: 220B}",
        "220B: with so much in it a WQE has 4 blocks, and qp_depth is 2",
    ),
    ("nic: {message_rate: 0/s}", "host.nic.message_rate: '0/s': a rate of zero sends nothing"),
    ("nic: {message_rate: 3}", "host.nic.message_rate: 3 has no unit"),
    ("nic: {context_cache: 0}", "host.nic.context_cache: 0 is out of range"),
]
WITHOUT = "acts on the way to the NIC, and path is none; set path to ibgda, cpu_proxy, cpu_sync"


@pytest.mark.parametrize(("host", "message"), WITH_A_PATH)
def test_what_cannot_be_is_refused_in_one_line(host: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(f"{{path: ibgda, {host}}}")
    assert str(caught.value).startswith("a.yaml:4: host.")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "place"),
    [
        ("pcie: veth", "pcie"),
        ("pcie: {mps: 512B}", "pcie"),
        ("gpu: {warps: 3}", "gpu"),
        ("cpu: {cores: 3}", "cpu"),
        ("queues: {qp_depth: 8}", "queues"),
        ("gpu_direct: false", "gpu_direct"),
        ("nic: {message_rate: 3M/s}", "nic.message_rate"),
        ("nic: {qp_message_rate: 3M/s}", "nic.qp_message_rate"),
        ("nic: {context_cache: 3}", "nic.context_cache"),
    ],
)
@pytest.mark.parametrize("path", ["path: none, ", ""])
def test_without_a_path_what_acts_on_one_is_refused(host: str, place: str, path: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        scenario(f"{{{path}{host}}}")
    assert str(caught.value) == f"a.yaml:4: host.{place}: {WITHOUT}"


@pytest.mark.parametrize("path", ["dma", "IBGDA", "cpu-proxy", "3"])
def test_an_unknown_path_is_refused(path: str) -> None:
    with pytest.raises(ScenarioError, match=r"a.yaml:4: host.path: .* is not allowed; allowed: none, ibgda, cpu_proxy"):
        scenario(f"{{path: {path}}}")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["run", "hello", "--set", "host.path=ibgda", "--set", "host.gpu.warps=0"], "--set host.gpu.warps=0: "),
        (["run", "hello", "--set", "host.path=dma"], "--set host.path=dma: host.path: 'dma' is not allowed"),
        (["run", "hello", "--set", "host.pcie=veth"], f"--set host.pcie=veth: host.pcie: {WITHOUT}"),
        (["doorbell", "--path", "dma"], "--path: 'dma' is unknown; known: ibgda, cpu_proxy, cpu_sync"),
        (["doorbell", "--path", "none"], "--path: 'none' is unknown"),
        (["doorbell", "--warps", "0"], "--warps: '0': a whole number from 1 to 65536"),
        (["doorbell", "--set", "host.queues.num_requests_in_batch=2048"], "a doorbell's batch is at most qp_depth"),
        (["doorbell", "--set", "host.pcie.mps=3B"], "--set host.pcie.mps=3B: host.pcie.mps: '3B' is not allowed"),
    ],
)
def test_commands_say_so_and_exit_with_two(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main([*options, "--wire", "memory"])
    except SystemExit as stopped:  # argparse's own
        code = int(stopped.code or 0)
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert message in said.err
    assert said.err.count("\n") == 1
