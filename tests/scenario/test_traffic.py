"""Each kind of traffic in a scenario: what is filled in, what is chosen, and what is refused."""

from __future__ import annotations

from fractions import Fraction

import pytest
import yaml

from emu.errors import ScenarioError
from emu.report.progress import message_count
from emu.scenario.load import build, parse
from emu.scenario.model import Incast, PauseStorm, Scenario, Victim, Write
from emu.scenario.traffic import LATER_TRAFFIC, TRAFFIC

TEXT = """\
name: x
fabric:
  profile: {profile}
  topology: {topology}
traffic:
{traffic}
"""
FABRIC = "{kind: leaf_spine, leaves: 2, spines: 2, hosts_per_leaf: 3}"
INCAST = "{kind: incast, senders: 5, receiver: h0, size: 1KiB}"
STORM = "{kind: pause_storm, host: h0, duration: 1ms}"


def scenario(*traffic: str, profile: str = "roce", topology: str = FABRIC, settings: tuple[str, ...] = ()) -> Scenario:
    """Two leaves of three hosts, unless said otherwise."""
    lines = "\n".join(f"  - {each}" for each in traffic)
    text = TEXT.format(profile=profile, topology=topology, traffic=lines)
    return parse(text, "x.yaml", [f"fabric.{each}" for each in settings])


def refusal(*traffic: str, profile: str = "roce", topology: str = FABRIC, settings: tuple[str, ...] = ()) -> str:
    """What is wrong with it, in one line."""
    with pytest.raises(ScenarioError) as caught:
        scenario(*traffic, profile=profile, topology=topology, settings=settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_no_kind_is_left_for_later() -> None:
    assert not LATER_TRAFFIC
    assert list(TRAFFIC) == [
        *("write", "all_to_all", "incast", "permutation", "poisson", "victim", "pause_storm", "replay"),
    ]


def test_every_kind_loads_again_and_its_messages_are_counted() -> None:
    one = scenario(
        "{kind: write, pairs: [[h0, h1], [h2, h3]], size: 1KiB, count: 2, qps: 3, stagger: 1us, priority: 4}",
        "{kind: all_to_all, size: 1KiB, stagger: 2us}",
        "{kind: incast, senders: [h4, h2], receiver: h0, size: 1KiB, qps: 2, count: 5, depth: 2, stagger: 1us}",
        INCAST,
        "{kind: permutation, size: 1KiB, count: 2}",
        "{kind: poisson, pairs: [[h0, h1]], size: 1KiB, load: 70%, count: 9, qps: 2}",
        "{kind: victim, size: 1KiB, count: 7}",
        STORM,
        settings=("flow_control=pfc",),
    )
    for again in (build(one.resolved()), parse(yaml.safe_dump(one.resolved()))):
        assert again == one
        assert hash(again) == hash(one)
    assert message_count(one) == 12 + 30 + 20 + 5 + 12 + 18 + 7 + 0
    write = one.traffic[0]
    assert isinstance(write, Write)
    assert (write.stagger_ps, write.priority) == (1_000_000, 4)
    assert one.resolved()["traffic"][5]["load"] == "70%"


@pytest.mark.parametrize(
    ("senders", "receiver", "names"),
    [
        ("5", "h0", "h1 h2 h3 h4 h5"),
        ("3", "h0", "h1 h2 h3"),
        ("3", "h1", "h0 h2 h3"),
        ("1", "h5", "h0"),
        ("[h4, h2]", "h0", "h4 h2"),
    ],
)
def test_the_senders_of_an_incast(senders: str, receiver: str, names: str) -> None:
    one = scenario(f"{{kind: incast, senders: {senders}, receiver: {receiver}, size: 1B}}")
    incast = one.traffic[0]
    assert isinstance(incast, Incast)
    assert incast.sender_names(tuple(one.fabric.topology.host_names())) == tuple(names.split())


@pytest.mark.parametrize(
    ("incast", "pair"),
    [
        # h0 h1 h2 at leaf0, h3 h4 h5 at leaf1: senders first come from leaf0, and a host that is none is preferred.
        ("senders: 3, receiver: h0", ("h4", "h1")),
        ("senders: 5, receiver: h0", ("h3", "h1")),
        ("senders: [h3, h1], receiver: h0", ("h4", "h2")),
        ("senders: [h1, h2, h3, h4, h5], receiver: h0", ("h3", "h1")),
        ("senders: [h0], receiver: h5", ("h1", "h3")),
    ],
)
def test_a_victim_is_chosen(incast: str, pair: tuple[str, str]) -> None:
    one = scenario("{kind: victim, size: 1B}", f"{{kind: incast, {incast}, size: 1B}}")
    victim = one.traffic[0]
    assert isinstance(victim, Victim)
    assert victim.pair == pair
    assert one.resolved()["traffic"][0]["pair"] == list(pair)


def test_a_victim_may_be_named() -> None:
    victim = scenario("{kind: victim, pair: [h5, h4], size: 1B}").traffic[0]
    assert isinstance(victim, Victim)
    assert victim.pair == ("h5", "h4")


def test_a_storm_comes_on_the_priority_of_the_data() -> None:
    for settings, priority in ((("flow_control=pfc",), 3), (("flow_control=pfc", "priority=5"), 5)):
        storm = scenario(STORM, settings=settings).traffic[0]
        assert isinstance(storm, PauseStorm)
        assert (storm.priority, storm.duration_ps) == (priority, 10**9)


GRAPH = "{kind: graph, hosts: [h0, h1, h2], switches: [s0, s1], links: [{a: h0, b: s0}, {a: s0, b: s1},"
ALONE = GRAPH + " {a: h1, b: s1}, {a: h2, b: s1}]}"  # h0 is alone at s0
LINE = "{kind: line, switches: 2}"


@pytest.mark.parametrize(
    ("traffic", "more", "said"),
    [
        (
            "{kind: incast, senders: 6, receiver: h0, size: 1B}",
            {},
            "0.senders: 6 senders; hosts besides the receiver: 5",
        ),
        ("{kind: incast, senders: 0, receiver: h0, size: 1B}", {}, "0.senders: 0 is out of range; allowed: 1 to"),
        ("{kind: incast, senders: [], receiver: h0, size: 1B}", {}, "0.senders: []: write how many, like 15, or which"),
        ("{kind: incast, senders: many, receiver: h0, size: 1B}", {}, "0.senders: 'many': write how many"),
        ("{kind: incast, senders: true, receiver: h0, size: 1B}", {}, "0.senders: True: write how many"),
        ("{kind: incast, senders: [h1, h1], receiver: h0, size: 1B}", {}, "0.senders.1: 'h1' appears twice"),
        ("{kind: incast, senders: [h1, 2], receiver: h0, size: 1B}", {}, "0.senders.1: 2 is no name"),
        (
            "{kind: incast, senders: [h1, h0], receiver: h0, size: 1B}",
            {},
            "0.senders.1: 'h0' is the receiver; allowed: ot",
        ),
        (
            "{kind: incast, senders: [h1, h9], receiver: h0, size: 1B}",
            {},
            "0.senders.1: unknown host 'h9'; did you mean",
        ),
        ("{kind: incast, senders: 2, receiver: h9, size: 1B}", {}, "0.receiver: unknown host 'h9'"),
        ("{kind: incast, senders: 2, size: 1B}", {}, "0.receiver: is missing"),
        ("{kind: incast, senders: 2, receiver: h0, size: 1B, stagger: 3}", {}, "0.stagger: 3 has no unit"),
        ("{kind: poisson, pairs: [[h0, h1]], size: 1B}", {}, "0.load: is missing"),
        (
            "{kind: poisson, pairs: [[h0, h1]], size: 1B, load: 0}",
            {},
            "0.load: 0 is out of range; allowed: above 0% to 100%",
        ),
        ("{kind: poisson, pairs: [[h0, h1]], size: 1B, load: 101%}", {}, "0.load: '101%' is out of range"),
        ("{kind: poisson, pairs: [[h0, h9]], size: 1B, load: 70%}", {}, "0.pairs.0.1: unknown host 'h9'"),
        ("{kind: permutation, size: 1B, pairs: [[h0, h1]]}", {}, "0.pairs: unknown key 'pairs'"),
        ("{kind: victim, size: 1B}", {}, "0: there is no incast to be a victim of: add one, or give the pair"),
        ("{kind: victim, pair: [h0, h9], size: 1B}", {}, "0.pair.1: unknown host 'h9'"),
        ("{kind: victim, pair: [h0, h0], size: 1B}", {}, "0.pair: ['h0', 'h0']: a pair is two different hosts"),
        (
            "{kind: pause_storm, host: h9, duration: 1ms}",
            {"settings": ("flow_control=pfc",)},
            "0.host: unknown host 'h9'",
        ),
        (
            STORM,
            {"settings": ("flow_control=none",)},
            "0.kind: a pause_storm takes pause frames, and flow_control is none; allowed with: pfc",
        ),
        (STORM, {"profile": "native"}, "0.kind: a pause_storm takes pause frames, and flow_control is"),
        (
            "{kind: pause_storm, host: h0, duration: 1ms, priority: 4}",
            {"settings": ("flow_control=pfc",)},
            "0.priority: priority 4 is not lossless, so that no switch heeds its pauses; allowed: 3",
        ),
        (
            STORM,
            {"settings": ("flow_control=pfc", "lossless=[4]")},
            "0: priority 3 is not lossless, so that no switch heeds its pauses; allowed: 4",
        ),
        ("{kind: all_to_all, size: 1B, priority: 8}", {}, "0.priority: 8 is out of range; allowed: 0 to 7 (an 802.1p"),
        ("{kind: all_to_all, size: 1B, priority: 16}", {}, "0.priority: 16 is out of range; allowed: 0 to 15"),
        (
            "{kind: all_to_all, size: 1B, priority: 15}",
            {"profile": "native"},
            "0.priority: 15 is out of range; allowed: 0 to 14 (an SL, with framing native)",
        ),
        (
            "{kind: all_to_all, size: 1B, priority: 1}",
            {"profile": "native", "settings": ("vls=2", "vl_arbitration.low=[[0, 64]]")},
            "0.priority: SL 1 travels on VL 1, which vl_arbitration names nowhere with a weight",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(traffic: str, more: dict[str, object], said: str) -> None:
    assert refusal(traffic, **more).startswith(f"x.yaml:6: traffic.{said}")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("topology", "incast", "said"),
    [
        (FABRIC, "senders: [h1, h2], receiver: h0", "every sender of the incast is at leaf0, as its receiver h0 is"),
        (ALONE, "senders: 2, receiver: h0", "no host but the incast's receiver h0 is at s0"),
        (LINE, "senders: 1, receiver: h0", "no host but the incast's receiver h0 is at s0"),
        ("{kind: line, switches: 0}", "senders: 1, receiver: h0", "no host but the incast's receiver h0 is at h1"),
    ],
)
def test_where_nobody_can_be_a_victim_the_reason_is_given(topology: str, incast: str, said: str) -> None:
    line = refusal(f"{{kind: incast, {incast}, size: 1B}}", "{kind: victim, size: 1B}", topology=topology)
    assert line.startswith(f"x.yaml:7: traffic.1: {said}")


def test_a_permutation_needs_two_hosts() -> None:
    one = "{kind: graph, hosts: [h0], switches: [s0], links: [{a: h0, b: s0}]}"
    assert "traffic.0: a permutation needs two hosts" in refusal("{kind: permutation, size: 1B}", topology=one)
    assert "no host besides the receiver" in refusal("{kind: incast, senders: 1, receiver: h0, size: 1B}", topology=one)


def test_a_load_is_exact() -> None:
    traffic = scenario("{kind: poisson, pairs: [[h0, h1]], size: 1B, load: 0.7}").traffic[0]
    assert getattr(traffic, "load", None) == Fraction(7, 10)
