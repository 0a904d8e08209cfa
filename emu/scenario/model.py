"""The scenario, resolved and frozen: what to build, what to send through it, what to expect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, PlainSerializer, PrivateAttr, WithJsonSchema, model_validator

from emu.errors import ScenarioError
from emu.scenario.capture import Capture, check_capture
from emu.scenario.expect import Expectation
from emu.scenario.fabric import Fabric
from emu.scenario.field import Model, Name, NotYet, Time, refuse, show, whole
from emu.scenario.graph import Graph, GraphLink
from emu.scenario.host import Host, Nic
from emu.scenario.inject import Inject, check_inject
from emu.scenario.origin import Origin
from emu.scenario.parts import check_parts
from emu.scenario.provenance import Provenance
from emu.scenario.topology import LeafSpine, Line
from emu.scenario.traffic import AllToAll, Incast, PauseStorm, Permutation, Poisson, Traffic, Victim, Write
from emu.scenario.traffic_check import check_traffic

__all__ = [
    "AllToAll",
    "Expectation",
    "Fabric",
    "Graph",
    "GraphLink",
    "Host",
    "Incast",
    "LeafSpine",
    "Line",
    "Nic",
    "PauseStorm",
    "Permutation",
    "Poisson",
    "Provenance",
    "Run",
    "Scenario",
    "Traffic",
    "Victim",
    "Write",
]


class Run(Model):
    """`seed` of every random stream; `until`: when to stop at the latest; `fairness_window`: when to compare flows."""

    seed: Annotated[int, *whole(0, 2**63 - 1)] = 1
    until_ps: Time | None = Field(default=None, alias="until")
    fairness_window_ps: tuple[Time, Time] | None = Field(default=None, alias="fairness_window")  # from, to

    @model_validator(mode="after")
    def _check_window(self) -> Self:
        if self.fairness_window_ps is not None:
            start_ps, end_ps = self.fairness_window_ps
            if not 0 <= start_ps < end_ps:
                raise refuse("a window begins before it ends: write it like [20ms, 30ms]", "fairness_window")
            if self.until_ps is not None and end_ps > self.until_ps:
                raise refuse("the window ends after `until`: nothing would be measured", "fairness_window")
        return self


def _read_expectation(value: object) -> Expectation:
    if isinstance(value, Expectation):
        return value
    if not isinstance(value, str):
        raise refuse(f"{show(value)} is no expectation: write text like 'drops.lossless == 0'")
    try:
        return Expectation.parse(value)
    except ScenarioError as error:
        raise refuse(str(error)) from None


ExpectationText = Annotated[
    Expectation,
    BeforeValidator(_read_expectation),
    PlainSerializer(lambda expectation: expectation.text, return_type=str),
    WithJsonSchema({"type": "string", "pattern": r"^.+(==|!=|<=|>=|<|>).+$"}),
]


def _without_none(value: Any) -> Any:
    """Without the keys that were not given; a word such as `none` is no None any more."""
    if isinstance(value, dict):
        return {key: _without_none(part) for key, part in value.items() if part is not None}
    return [_without_none(part) for part in value] if isinstance(value, list) else value


class Scenario(Model):
    """One run, resolved: everything the profile gives filled in."""

    name: Name
    fabric: Fabric
    host: Host
    traffic: tuple[Traffic, ...]
    faults: NotYet = ()
    inject: tuple[Inject, ...] = ()
    run: Run = Run()
    capture: Capture = ()
    expect: tuple[ExpectationText, ...] = ()

    _provenance: Mapping[str, Provenance] = PrivateAttr(default_factory=dict)
    _origin: Origin = PrivateAttr(default_factory=Origin)

    @property
    def provenance(self) -> Mapping[str, Provenance]:
        """Where each of the profile's values comes from, by path such as `fabric.hop_latency`."""
        return self._provenance

    def with_provenance(self, provenance: Mapping[str, Provenance]) -> Self:
        """The same scenario, knowing where its values come from."""
        copy = self.model_copy()
        copy._provenance = dict(provenance)
        return copy

    def with_origin(self, origin: Origin) -> Self:
        """The same scenario, knowing where its parts were written."""
        copy = self.model_copy()
        copy._origin = origin
        return copy

    def mistake(self, reason: str, *place: str | int) -> ScenarioError:
        """What is wrong with a part, such as "expect", 0: one line with file and line, or option, and key."""
        return self._origin.mistake(reason, place)

    def resolved(self) -> dict[str, Any]:
        """As a file would have it, defaults filled in and quantities as text; loads again to an equal scenario."""
        resolved: dict[str, Any] = _without_none(self.model_dump(mode="json", by_alias=True))
        return resolved

    @model_validator(mode="after")
    def _check_links(self) -> Self:
        topology = self.fabric.topology
        check_parts(self.host, topology)
        check_capture(self.capture, topology.link_ends(), topology.host_names(), self.host.path)
        check_inject(self.inject, self.fabric)
        return self

    @model_validator(mode="after")
    def _check_traffic(self) -> Self:
        check_traffic(self.fabric, self.traffic)
        return self
