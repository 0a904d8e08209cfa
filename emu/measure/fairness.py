"""Fairness: Jain's index over the payload that each flow delivered while all of them were active.

All are active between the last flow's first post and the first flow's completion: when its last expected message is
delivered; of a flow that does not say how many it will post, the last one that was. Where no flow completes, the end
of the run closes the window. What flows have received is read as flows start and complete, not per frame.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from emu.measure.flow import FlowKey

NOT_COUNTED = frozenset(("victim", "pause_storm"))
"""Kinds of traffic that show what others do to them: their share says nothing of fairness."""

UNFAIR_BELOW = 0.95  # an index that calls for an explanation
OWN_SWITCH_LINKS = 2  # sender to switch, switch to receiver


def jain(values: Sequence[int]) -> float | None:
    """(sum of values)^2 / (n x sum of squares): 1 where all are equal, 1/n where one has all; None of nothing."""
    squares = sum(value * value for value in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else None


class Window(NamedTuple):
    """What each flow delivered while all were active, in the order of their starts."""

    start_ps: int
    end_ps: int
    delivered_bytes: dict[FlowKey, int]


class _Reading(NamedTuple):
    now_ps: int
    received_bytes: dict[FlowKey, int]


class Fairness:
    """Told of starts and deliveries; what grows is a number or two a flow."""

    def __init__(self) -> None:
        self.flows: list[FlowKey] = []
        self._first = _Reading(-1, {})  # when the last flow so far started
        self._last: _Reading | None = None  # when the first of those completed that say how many they post
        self._candidates: dict[FlowKey, _Reading] = {}  # the last delivery of each of the others
        self._too_late = False  # a flow started when another had completed
        self._asked: list[_Reading] = []  # where the scenario says when to compare: at the beginning and the end

    def started(self, flow: FlowKey, now_ps: int) -> None:
        """A flow posts its first message."""
        if flow.kind in NOT_COUNTED:
            return
        self.flows.append(flow)
        self._too_late = self._last is not None
        if not self._too_late and now_ps != self._first.now_ps:
            self._first = self._read(now_ps)

    def delivered(self, flow: FlowKey, messages: int, now_ps: int) -> None:
        """A flow's message number `messages`, counted from 1, is visible at its destination."""
        if flow.kind in NOT_COUNTED:
            return
        if self._last is not None:
            self._candidates.pop(flow, None)
        elif not flow.expected:
            self._candidates[flow] = self._read(now_ps)
        elif messages == flow.expected:
            self._last = self._read(now_ps)

    def read(self, now_ps: int) -> None:
        """The window that the scenario asks for begins, or ends, now: it takes the place of the usual one."""
        self._asked.append(self._read(now_ps))

    def window(self, now_ps: int) -> Window | None:
        """At the end of the run: what was delivered while all were active; None if they never were."""
        if len(self._asked) == 2:
            first, last = self._asked
            return _between(first, last, self.flows)
        ends = list(self._candidates.values())
        if self._last is not None:
            ends.append(self._last)
        end = min(ends, key=lambda reading: reading.now_ps) if ends else self._read(now_ps)
        if not self.flows or self._too_late or end.now_ps <= self._first.now_ps:
            return None
        return _between(self._first, end, self.flows)

    def _read(self, now_ps: int) -> _Reading:
        return _Reading(now_ps, {flow: flow.received_bytes for flow in self.flows})


def _between(first: _Reading, last: _Reading, flows: Sequence[FlowKey]) -> Window:
    before, after = first.received_bytes, last.received_bytes
    return Window(first.now_ps, last.now_ps, {flow: after.get(flow, 0) - before.get(flow, 0) for flow in flows})


def extremes(window: Window | None) -> tuple[float | None, float | None]:
    """The least and the largest part that a flow had, as multiples of an equal one; None where there is no window."""
    shares = list(window.delivered_bytes.values()) if window is not None else []
    if not sum(shares):
        return None, None
    equal = sum(shares) / len(shares)
    return min(shares) / equal, max(shares) / equal


def index(window: Window | None, flows: int) -> float | None:
    """Jain's index of the window; 1 for a flow on its own, None where all were never active or nothing came."""
    if flows == 1:
        return 1.0
    return None if window is None else jain(list(window.delivered_bytes.values()))


class Share(NamedTuple):
    """What one flow got of its receiver's link, and the directions of links that it came by."""

    delivered_bytes: int
    path: Sequence[str]


def sentence(window: Window | None, paths: Mapping[FlowKey, Sequence[str]]) -> str:
    """Why an unfair share is unfair, if where flows to one receiver enter the fabric is why; else nothing."""
    if window is None or (jain(list(window.delivered_bytes.values())) or 1) >= UNFAIR_BELOW:
        return ""
    receivers: dict[str, list[Share]] = {}
    for flow, delivered_bytes in window.delivered_bytes.items():
        receivers.setdefault(flow.destination, []).append(Share(delivered_bytes, paths.get(flow, ())))
    told = [(len(shares), text) for name, shares in receivers.items() for text in (_parking_lot(name, shares),) if text]
    return max(told, key=lambda each: each[0])[1] if told else ""


def _parking_lot(receiver: str, shares: Sequence[Share]) -> str:
    """One receiver's senders, near and far: by how much they differ, and whether that is since ports take turns."""
    nearest = min(len(share.path) for share in shares)
    got, by_port = [share.delivered_bytes for share in shares], _by_port(shares)
    is_near = [len(share.path) == nearest for share in shares]
    near, far = _means(got, is_near)
    if not far or near <= far:
        return ""
    ratio, by_distance = near / far, [near if each else far for each in is_near]
    if not _explains(got, by_port) and not _explains(got, by_distance):
        return ""
    who = "Same-leaf senders" if nearest == OWN_SWITCH_LINKS else "Nearer senders"
    text = f"{who} got {ratio:.1f} times a remote sender's share of {receiver}"
    near_by_port, far_by_port = _means(by_port, is_near)
    # Else they are merely nearer, so that their first frames were the first, and the window was a short one.
    if abs(near_by_port / far_by_port - ratio) < (ratio - 1) / 2:
        text += " (the parking lot: ports take turns, not senders)"
    return text


def _means(values: Sequence[float], is_near: Sequence[bool]) -> tuple[float, float]:
    """Of those that are near, and of those that are not: 0 if there are none."""
    near = [value for value, each in zip(values, is_near, strict=True) if each]
    far = [value for value, each in zip(values, is_near, strict=True) if not each]
    return _mean(near), _mean(far) if far else 0


def _by_port(shares: Sequence[Share]) -> list[float]:
    """What each would have got if the ports into the last switch had equal parts, and a port's flows equal parts of it.

    The ports are told by the link before the last of each path.
    """
    ports = Counter(tuple(share.path[-2:-1]) for share in shares)
    total = sum(share.delivered_bytes for share in shares)
    return [total / len(ports) / ports[tuple(share.path[-2:-1])] for share in shares]


def _explains(values: Sequence[float], expected: Sequence[float]) -> bool:
    """Whether what is expected accounts for most of the values' variance."""
    mean = _mean(values)
    rest = sum((value - guess) ** 2 for value, guess in zip(values, expected, strict=True))
    return rest < sum((value - mean) ** 2 for value in values) / 2


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
