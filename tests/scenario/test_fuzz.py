"""Random text, random changes and random settings: a scenario, or a ScenarioError of one line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emu.errors import ScenarioError
from emu.scenario import builtin
from emu.scenario.fabric import FabricValues
from emu.scenario.load import build, parse

GOOD = builtin.text("hello")
GRAPH = builtin.text("mixed-rates")
WORDS = st.sampled_from(
    [
        *("name", "fabric", "profile", "native", "topology", "kind", "graph", "hosts", "links", "a", "b", "h0"),
        *("traffic", "write", "pairs", "size", "4KiB", "3", "on", "~", ".nan", "\n", "\t", *"-[]{}:,&*!'#|>?"),
    ]
)


@given(st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=40).map(" ".join)))
def test_random_text_is_a_scenario_or_a_scenario_error(text: str) -> None:
    try:
        parse(text, "fuzz.yaml")
    except ScenarioError as error:
        assert "\n" not in str(error)


@given(st.data())
def test_a_good_scenario_with_a_character_changed(data: st.DataObject) -> None:
    text = data.draw(st.sampled_from([GOOD, GRAPH]))
    at = data.draw(st.integers(0, len(text)))
    text = text[:at] + data.draw(st.text(max_size=3)) + text[at + data.draw(st.integers(0, 3)) :]
    try:
        assert build(parse(text).resolved()) == parse(text)
    except ScenarioError as error:
        assert "\n" not in str(error)


@given(st.text(max_size=30), st.text(max_size=30))
def test_random_settings(path: str, value: str) -> None:
    try:
        parse(GOOD, settings=[f"{path}={value}"])
    except ScenarioError as error:
        assert "\n" not in str(error)


KEYS = [f"fabric.{key}" for key in FabricValues.written_keys()]
KEYS += [
    f"fabric.{group}" for group in ("ecn.kmin", "ecn.pmax", "credits.refresh", "pause.quanta", "cnp.dscp", "sl_to_vl.3")
]
KEYS += [
    "traffic.0.priority",
    "traffic.0.load",
    "traffic.0.senders",
    "traffic.0.pair",
    "traffic.0.kind",
    "traffic.0.stagger",
]
VALUES = st.one_of(
    st.sampled_from(
        ["none", "auto", "dynamic", "1/8", "20%", "-1", "64", "1KB", "9e99", "[]", "{}", "[3, 4]", "{3: 4}", "~"]
    ),
    st.sampled_from(
        ["{kmin: 1KB}", "[[0, 1]]", "pfc", "credits", "rocev2", "ib_cca", "tight", "never", "1us", "true", "{64: 1}"]
    ),
    st.integers().map(str),
    st.text(max_size=12),
)


@given(st.sampled_from(["native", "roce"]), st.lists(st.tuples(st.sampled_from(KEYS), VALUES), min_size=1, max_size=4))
def test_random_values_of_real_keys(profile: str, settings: list[tuple[str, str]]) -> None:
    try:
        scenario = parse(GOOD, settings=[f"fabric.profile={profile}", *(f"{key}={value}" for key, value in settings)])
        assert build(scenario.resolved()) == scenario
        hash(scenario)
    except ScenarioError as error:
        assert "\n" not in str(error)
