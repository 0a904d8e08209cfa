"""Building 64 hosts, 8 leaves and 8 spines, against stock Mininet building the same."""

from __future__ import annotations

import subprocess
import sys
import time

from emu.lab.lab import Lab
from emu.run.assembly import topology_of
from emu.scenario.load import parse
from tests.bench.figure import Figure

LIMIT = 0.5
SCENARIO = """
name: build
fabric: {profile: native, topology: {kind: leaf_spine, leaves: 8, spines: 8, hosts_per_leaf: 8}}
traffic: [{kind: write, pairs: [[h0, h63]], size: 1KiB}]
"""
# Stock Mininet gets a network, mount and process namespace of its own, and a private /tmp: it rewrites
# sysctls and, when something fails, cleans up by broad patterns.
ALONE = ["unshare", "-n", "-m", "-p", "-f", "--mount-proc"]
STOCK = """
import subprocess, time
from mininet.net import Mininet
from mininet.node import Node
from topologies.leaf_spine import LeafSpineTopo
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/tmp"], check=True)  # last: the checkout may lie there
class PlainSwitch(Node):
    def __init__(self, name, **params):
        super().__init__(name, inNamespace=True)
    def start(self, controllers):
        pass
    def defaultIntf(self):
        return None
began = time.perf_counter()
net = Mininet(LeafSpineTopo(leaves=8, spines=8, hosts_per_leaf=8), switch=PlainSwitch, controller=None)
print(time.perf_counter() - began, flush=True)
net.stop()
"""


def measure() -> list[Figure]:
    """Ours as a share of stock Mininet's time."""
    began = time.perf_counter()
    with Lab(topology_of(parse(SCENARIO, "build.yaml", ()))):
        ours_s = time.perf_counter() - began
    down_s = time.perf_counter() - began - ours_s
    done = subprocess.run(
        [*ALONE, sys.executable, "-c", STOCK], capture_output=True, text=True, check=False, timeout=300
    )
    if done.returncode:
        raise RuntimeError(f"stock Mininet could not be measured: {done.stderr.strip()[-400:]}")
    stock_s = float(done.stdout.split()[0])
    return [
        Figure(
            "build of 64 hosts, 8 leaves, 8 spines over Mininet's",
            ours_s / stock_s,
            LIMIT,
            f"{ours_s:.2f} s against {stock_s:.2f} s; taken down in {down_s:.2f} s",
        )
    ]
