"""Time series sampled in virtual time: queues, pauses, credits, rates, bytes sent; only what has changed.

A sampler changes nothing that it looks at, and its events change nothing of a run: none comes later than an event of
the run's own that is still to come, and `calls` says how many to take off the run's count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from emu.background import Background
from emu.engine import Engine
from emu.errors import ScenarioError
from emu.units import US

INTERVAL_PS = US
COLUMNS = ("time_ns", "series", "name", "lane", "value")
NO_LANE = -1
UNTOLD = -1  # none of the values: each is told the first time
CONTROL_SERIES = {"pfc": "paused", "credits": "credit_blocks"}


class Sample(NamedTuple):
    """One row. `name` is a direction of a link, or a flow such as `h1-h0/17`; `lane` -1 where there is none."""

    time_ps: int
    series: str
    name: str
    lane: int
    value: int


class LaneView(Protocol):
    """What is looked at of a VL, or priority queue, before a wire."""

    @property
    def number(self) -> int:
        """VL or queue."""

    @property
    def held_bytes(self) -> int:
        """Wire bytes that wait there."""


class PortView(Protocol):
    """What is looked at of one direction of a link."""

    @property
    def lanes(self) -> Sequence[Any]:
        """Its lanes: LaneView."""

    @property
    def flow(self) -> Any:
        """Its flow control: `is_paused(lane, now_ps)` with PFC, `available_blocks(vl)` with credits."""

    @property
    def tx_bytes(self) -> int:
        """Wire bytes started so far."""


Rates = Callable[[], Iterable[tuple[str, int]]]
"""Each flow whose rate is controlled, by name, and its rate in bits per second, now."""

Read = Callable[[int, int], int]
"""From a lane's number and now to what its flow control says of it."""


class _LaneProbe:
    """A lane that is looked at, and what it was."""

    __slots__ = ("control", "held_bytes", "lane")

    def __init__(self, lane: LaneView) -> None:
        self.lane = lane
        self.held_bytes = self.control = UNTOLD


class _PortProbe:
    """A direction of a link that is looked at, and what it was."""

    __slots__ = ("lanes", "name", "port", "read", "tx_bytes")

    def __init__(self, name: str, port: PortView, flow_control: str) -> None:
        self.name, self.port = name, port
        self.lanes = [_LaneProbe(lane) for lane in port.lanes]
        self.tx_bytes = UNTOLD
        self.read: Read | None = _paused(port.flow) if flow_control == "pfc" else None
        if flow_control == "credits":
            self.read = _credits(port.flow)


class Sampler:
    """Looks every `interval_ps`, and tells `sink` of each value that is not what it was."""

    def __init__(
        self,
        engine: Engine,
        ports: Mapping[str, PortView],
        rates: Rates,
        sink: Callable[[Sample], object],
        *,
        flow_control: str,
        interval_ps: int = INTERVAL_PS,
    ) -> None:
        if interval_ps < 1:
            raise ScenarioError(f"samples every {interval_ps} ps: at least 1 ps apart")
        self._engine, self._rates, self._sink, self._interval_ps = engine, rates, sink, interval_ps
        self._background = Background(engine, self._wake)
        self._probes = [_PortProbe(name, port, flow_control) for name, port in ports.items()]
        self._control = CONTROL_SERIES.get(flow_control, "")
        self._last_rates: dict[str, int] = {}

    def start(self) -> None:
        """Look now, and every interval from now on while the run goes on."""
        self._wake()

    def finish(self) -> None:
        """Look once more: the run is over."""
        self._look()

    @property
    def calls(self) -> int:
        """Events of ours that the engine has run."""
        return self._background.calls

    def _wake(self) -> None:
        self._look()
        self._background.after(self._interval_ps)

    def _look(self) -> None:
        now_ps, sink = self._engine.now_ps, self._sink
        for probe in self._probes:
            tx_bytes = probe.port.tx_bytes
            if tx_bytes != probe.tx_bytes:
                probe.tx_bytes = tx_bytes
                sink(Sample(now_ps, "tx_bytes", probe.name, NO_LANE, tx_bytes))
            for each in probe.lanes:
                held_bytes = each.lane.held_bytes
                if held_bytes != each.held_bytes:
                    each.held_bytes = held_bytes
                    sink(Sample(now_ps, "queue_bytes", probe.name, each.lane.number, held_bytes))
            if probe.read is not None:
                self._look_at_control(probe, probe.read, now_ps)
        last = self._last_rates
        for name, rate_bps in self._rates():
            if last.get(name) != rate_bps:
                last[name] = rate_bps
                sink(Sample(now_ps, "rate_bps", name, NO_LANE, rate_bps))

    def _look_at_control(self, probe: _PortProbe, read: Read, now_ps: int) -> None:
        for each in probe.lanes:
            value = read(each.lane.number, now_ps)
            if value != each.control:
                each.control = value
                self._sink(Sample(now_ps, self._control, probe.name, each.lane.number, value))


def _paused(flow: Any) -> Read:
    return lambda lane, now_ps: int(flow.is_paused(lane, now_ps))


def _credits(flow: Any) -> Read:
    return lambda vl, _: int(flow.available_blocks(vl))
