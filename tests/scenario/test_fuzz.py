"""Random text, random changes and random settings: a scenario, or a ScenarioError of one line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from emu.errors import ScenarioError
from emu.scenario import builtin
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
