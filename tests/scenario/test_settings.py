"""A mistake in what is set on the command line is one line that quotes it."""

from __future__ import annotations

import pytest

from emu.errors import ScenarioError
from emu.scenario.load import parse
from tests.scenario.test_bad_input import GOOD, message


@pytest.mark.parametrize(
    ("setting", "start"),
    [
        ("fabric.hop_latency=260", "--set fabric.hop_latency=260: fabric.hop_latency: 260 has no unit"),
        ("traffic.1.size=1KiB", "--set traffic.1.size=1KiB: traffic: '1' is no place in this list; allowed: 0 to 0"),
        ("traffic.x.size=1KiB", "--set traffic.x.size=1KiB: traffic: 'x' is no place"),
        ("traffic.-1.size=1KiB", "--set traffic.-1.size=1KiB: traffic: '-1' is no place"),
        ("traffic.0.siz=1KiB", "--set traffic.0.siz=1KiB: traffic.0.siz: unknown key 'siz'; did you mean 'size'?"),
        ("name.x=3", "--set name.x=3: name: 'good' has no parts"),
        ("fabric", "--set fabric: write PATH=VALUE"),
        ("=3", "--set =3: write PATH=VALUE"),
        ("fabric..rate=3Gbps", "--set fabric..rate=3Gbps: write PATH=VALUE"),
        ("fabric.rate=[1", "--set fabric.rate=[1: "),
        ("fabric.rate=!!int 3", "--set fabric.rate=!!int 3: "),
        ("fabric=3", "--set fabric=3: fabric: 3 is no mapping"),
        ("run.seed=x", "--set run.seed=x: run.seed: 'x' is no whole number"),
        ("fabric.profile=x", "--set fabric.profile=x: fabric.profile: unknown profile 'x'"),
        ("a\nb=3", "--set a\\nb=3: a"),
    ],
)
def test_a_wrong_setting_is_quoted(setting: str, start: str) -> None:
    assert message(GOOD, [setting]).startswith(start)


def test_a_wrong_seed_is_quoted() -> None:
    with pytest.raises(ScenarioError, match="--seed -3: run.seed: -3 is out of range"):
        parse(GOOD, seed=-3)
