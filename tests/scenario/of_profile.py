"""A small scenario of a profile with settings of its fabric, and what is wrong with one."""

from __future__ import annotations

import pytest

from emu.errors import ScenarioError
from emu.scenario.load import parse
from emu.scenario.model import Scenario

TEXT = """\
name: x
fabric:
  profile: {profile}
  topology: {{kind: leaf_spine, leaves: 2, spines: 1, hosts_per_leaf: 2}}
{more}traffic:
  - {{kind: write, pairs: [[h0, h3]], size: 4KiB}}
"""


def scenario(profile: str, *settings: str, more: str = "") -> Scenario:
    """A scenario of that profile with these settings of its fabric."""
    return parse(TEXT.format(profile=profile, more=more), "x.yaml", [f"fabric.{each}" for each in settings])


def refusal(profile: str, *settings: str) -> str:
    """What is wrong with them: one line, which the last setting is blamed for."""
    with pytest.raises(ScenarioError) as caught:
        scenario(profile, *settings)
    line = str(caught.value)
    assert "\n" not in line
    return line
