"""Which class a frame belongs to: DSCP or PCP to priority and on to a queue for Ethernet, SL to VL for InfiniBand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from emu.errors import ScenarioError

DSCPS = 64
PCPS = 8
PRIORITIES = 8
QUEUES = 8
SLS = 16
DATA_VLS = 15  # VL15 is subnet management's: no SL leads there


def _check(what: str, number: int, limit: int) -> None:
    if not 0 <= number < limit:
        raise ScenarioError(f"{what} {number}: 0 to {limit - 1}")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityMap:
    """Exceptions to the customary maps: priority is DSCP / 8, PCP as it is, queue as the priority."""

    dscp_to_priority: Mapping[int, int] = field(default_factory=dict)
    pcp_to_priority: Mapping[int, int] = field(default_factory=dict)
    priority_to_queue: Mapping[int, int] = field(default_factory=dict)
    lossless: frozenset[int] = frozenset()  # priorities that are paused and never dropped

    def __post_init__(self) -> None:
        maps = (
            ("DSCP", self.dscp_to_priority, DSCPS, "priority", PRIORITIES),
            ("PCP", self.pcp_to_priority, PCPS, "priority", PRIORITIES),
            ("priority", self.priority_to_queue, PRIORITIES, "queue", QUEUES),
        )
        for what, numbers, limit, target, target_limit in maps:
            for number, value in numbers.items():
                _check(what, number, limit)
                _check(f"{what} {number}: {target}", value, target_limit)
        owners: dict[int, int] = {}
        for priority in sorted(self.lossless):
            _check("lossless priority", priority, PRIORITIES)
            other = owners.setdefault(self.queues[priority], priority)
            if other != priority:
                raise ScenarioError(
                    f"lossless priorities {other} and {priority} share queue {self.queues[priority]}:"
                    " a pause of one would hold up the other; give each its own"
                )

    @property
    def by_dscp(self) -> tuple[int, ...]:
        """The priority of each of the 64 DSCPs."""
        return tuple(self.dscp_to_priority.get(dscp, dscp >> 3) for dscp in range(DSCPS))

    @property
    def by_pcp(self) -> tuple[int, ...]:
        """The priority of each of the 8 PCPs."""
        return tuple(self.pcp_to_priority.get(pcp, pcp) for pcp in range(PCPS))

    @property
    def queues(self) -> tuple[int, ...]:
        """The queue of each of the 8 priorities."""
        return tuple(self.priority_to_queue.get(priority, priority) for priority in range(PRIORITIES))


@dataclass(frozen=True, slots=True, kw_only=True)
class SlToVl:
    """The VL of each of the 16 SLs (IBTA vol. 1, 7.6.6), on a port with `vls` data VLs; by default SL modulo that."""

    vls: int
    table: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not 1 <= self.vls <= DATA_VLS:
            raise ScenarioError(f"{self.vls} data VLs: 1 to {DATA_VLS}")
        for sl, vl in self.table.items():
            _check("SL", sl, SLS)
            _check(f"SL {sl}: VL", vl, self.vls)

    @property
    def by_sl(self) -> tuple[int, ...]:
        """The VL of each of the 16 SLs."""
        return tuple(self.table.get(sl, sl % self.vls) for sl in range(SLS))
