"""Whether a scenario's expectations lead anywhere: asked before anything is laid, of the result of an empty run."""

from __future__ import annotations

from typing import Any

from emu.errors import ScenarioError
from emu.measure.measurement import Flow
from emu.measure.result import FlowFacts, flow_entry
from emu.run import conservation, outcome
from emu.run.assembly import Assembly
from emu.scenario.field import nearest
from emu.scenario.model import Expectation, Scenario
from emu.scenario.path import Key


def check(scenario: Scenario) -> None:
    """Raise ScenarioError for a path that leads nowhere in this scenario's result, naming the nearest key.

    Which flows there will be is not known yet, so of a path into `flows` only the keys are looked at.
    """
    if not scenario.expect:
        return
    empty = empty_result(scenario)
    for place, expectation in enumerate(scenario.expect):
        first = expectation.path.steps[0]
        try:
            if isinstance(first, Key) and first.name == "flows":
                _check_flow_keys(expectation)
            else:
                expectation.evaluate(empty)
        except ScenarioError as error:
            raise scenario.mistake(str(error), "expect", place) from None


def empty_result(scenario: Scenario) -> dict[str, Any]:
    """The result of the scenario's fabric without traffic, in memory: every key and every link is there."""
    bare = scenario.model_copy(update={"traffic": (), "expect": ()}).with_provenance(scenario.provenance)
    assembly = Assembly(bare)
    assembly.join(None)
    ending = outcome.Ending(wire="memory", interrupted=False, build_s=0, run_s=0)
    return outcome.build(assembly, conservation.check(assembly), ending)


def _check_flow_keys(expectation: Expectation) -> None:
    known = list(flow_entry("", "", 0, Flow(), FlowFacts()))
    for step in expectation.path.steps[1:]:
        key = step.name if isinstance(step, Key) else step.key
        if key not in known:
            raise ScenarioError(f"{expectation.text}: unknown key {key!r} of a flow{nearest(key, known)}")
