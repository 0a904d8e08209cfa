"""Runs whose captures hold a link's own frames and congestion's marks: one for each kind of flow control."""

from __future__ import annotations

from emu.scenario.load import parse
from emu.scenario.model import Scenario

TOPOLOGY = "{kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 2}"
INCAST = "{kind: incast, senders: 3, receiver: h3, size: 128KiB}"
PFC = f"""
name: paused
fabric:
  profile: roce
  topology: {TOPOLOGY}
  flow_control: pfc
  xoff: 30KB
  xon: 20KB
  headroom: vendor
  ecn: {{kmin: 10KB, kmax: 40KB, pmax: 50%}}
  congestion_control: dcqcn
traffic: [{INCAST}]
"""
CREDITS = f"""
name: credited
fabric:
  profile: native
  topology: {TOPOLOGY}
  flow_control: credits
  credit_blocks: 130
  vls: 2
  ecn: {{kmin: 5KB, kmax: 20KB, pmax: 50%}}
  congestion_control: ib_cca
traffic:
  - {INCAST}
  - {{kind: write, pairs: [[h1, h2]], size: 65B, count: 5, priority: 1}}
  - {{kind: write, pairs: [[h2, h0]], size: 3KiB, count: 9}}
"""


def pfc(*settings: str) -> Scenario:
    """An incast that is paused, marked and slowed down; `settings` as of `--set`."""
    return parse(PFC, settings=list(settings))


def credits(*settings: str) -> Scenario:
    """One over two VLs of tiny windows, with marks and notifications."""
    return parse(CREDITS, settings=list(settings))
