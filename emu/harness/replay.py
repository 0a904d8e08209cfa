"""A replay's messages as captured and as here, joined while the run goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from emu.capture.operations import Captured
from emu.frame import Message
from emu.scenario.replay import Replay
from emu.units import NS
from traffic.workloads.replay import Origin

Key = tuple[int, int]  # conversation, operation


class Replays:
    """Keeps the times of every message that has finished."""

    def __init__(self, captured: Captured) -> None:
        self._captured = captured
        self._hosts: dict[str, str] = {}
        self._seen: dict[Key, tuple[int, int, int, str]] = {}  # posted, delivered, completed, status

    def add(self, message: Message) -> None:
        """One has finished."""
        origin = message.flow.origin
        if isinstance(origin, Origin):
            self._hosts[origin.conversation.source] = origin.source
            self._hosts[origin.conversation.destination] = origin.destination
            times = (message.posted_ps, message.delivered_ps, message.completed_ps)
            self._seen[origin.number, message.number] = (*times, message.status)

    def result(self, replay: Replay) -> dict[str, Any]:
        """The `replay` key: what was captured, and ours; null where it is not known, or did not finish."""
        return {
            **replay.model_dump(mode="json", include={"file", "speed"}),
            "operations": dict(sorted(self._operations().items())),
            "endpoints": dict(sorted(self._hosts.items())),
            "conversations": [
                {
                    "number": number,
                    "transport": each.transport,
                    "source": each.source,
                    "destination": each.destination,
                    "destination_qp": each.destination_qp,
                    "messages": len(each.operations),
                    "depth": each.depth,
                }
                for number, each in enumerate(self._captured.conversations, 1)
            ],
            "messages": sorted(self._messages(), key=lambda each: (each["captured_start_ns"], each["conversation"])),
        }

    def _operations(self) -> Counter[str]:
        return Counter(
            f"{each.transport} {one.name}" for each in self._captured.conversations for one in each.operations
        )

    def _messages(self) -> Iterator[dict[str, Any]]:
        for number, conversation in enumerate(self._captured.conversations):
            for place, operation in enumerate(conversation.operations):
                posted_ps, delivered_ps, completed_ps, status = self._seen.get((number, place), (-1, -1, -1, ""))
                yield {
                    "conversation": number + 1,
                    "operation": f"{conversation.transport} {operation.name}",
                    "size_bytes": operation.size_bytes,
                    "captured_whole": operation.complete,
                    "captured_start_ns": operation.posted_ns,
                    "captured_ns": operation.answer_ns,
                    "start_ns": posted_ps / NS if posted_ps >= 0 else None,
                    "latency_ns": (delivered_ps - posted_ps) / NS if delivered_ps >= 0 else None,
                    "completion_ns": (completed_ps - posted_ps) / NS if completed_ps >= 0 else None,
                    "status": status,
                }
