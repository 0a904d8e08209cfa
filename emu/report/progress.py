"""A progress bar on stderr while something runs; nothing where stderr is no terminal."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import Self

from tqdm import tqdm

from emu.scenario.model import AllToAll, Incast, PauseStorm, Permutation, Poisson, Scenario, Victim, Write

tqdm.monitor_interval = 0  # no thread beside one that changes namespaces


class Progress:
    """Counts up to `total` things, or without an end if that is None."""

    def __init__(self, total: int | None, unit: str, *, quiet: bool) -> None:
        hidden = quiet or sys.stderr is None or not sys.stderr.isatty()
        self._bar = tqdm(total=total, unit=unit, disable=hidden, leave=False, dynamic_ncols=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._bar.close()

    def reach(self, done: int, what: str = "") -> None:
        """Show that `done` of them are done, and what comes now."""
        if self._bar.disable:
            return
        if what:
            self._bar.set_description(what, refresh=False)
        self._bar.update(done - self._bar.n)


def message_count(scenario: Scenario) -> int | None:
    """How many messages the scenario's traffic posts, or None where that is not known beforehand."""
    hosts = len(scenario.fabric.topology.host_names())
    total = 0
    for traffic in scenario.traffic:
        match traffic:
            case Write() | Poisson():
                total += len(traffic.pairs) * traffic.qps * traffic.count
            case AllToAll():
                total += hosts * (hosts - 1) * traffic.qps * traffic.count
            case Incast():
                senders = traffic.senders if isinstance(traffic.senders, int) else len(traffic.senders)
                total += senders * traffic.qps * traffic.count
            case Permutation():
                total += hosts * traffic.qps * traffic.count
            case Victim():
                total += traffic.count
            case PauseStorm():
                pass
            case _:
                return None
    return total
