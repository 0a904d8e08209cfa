"""Somebody outside deletes a link, or kills what holds a namespace: the run ends, says so, and leaves nothing."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator

import pytest

from tests.lab.fabrics import interfaces_here, process_at
from tests.lab.outside import LINK, Outside, told, undisturbed

pytestmark = [pytest.mark.lab, pytest.mark.usefixtures("nothing_is_left")]


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    before = interfaces_here(), threading.active_count(), len(os.listdir("/proc/self/fd"))
    yield
    assert (interfaces_here(), threading.active_count(), len(os.listdir("/proc/self/fd"))) == before
    with pytest.raises(LookupError):
        process_at("leaf0")


def delete(them: Outside) -> None:
    them.at(LINK, "ip", "link", "delete", them.interface(LINK))


@pytest.mark.parametrize("name", ["h0-leaf0", LINK, "leaf1-h3"])
def test_a_deleted_link_ends_the_run_with_the_retries_used_up(name: str) -> None:
    outside = Outside((10, lambda them: them.at(name, "ip", "link", "delete", them.interface(name))))
    result = outside.run()
    assert result["complete"] is result["disturbed"] is True
    assert result["messages"]["statuses"] == {"RETRY_EXC_ERR": 1}
    assert result["frames"]["lost_on_wire"] >= outside.refused() > 0
    assert f"wire {name}: a frame could not be sent: its interface was deleted" in result["warnings"]
    assert result["warnings"][-1] == "1 message failed: 1 RETRY_EXC_ERR"


def test_a_person_deletes_a_link_at_any_time() -> None:
    def meanwhile(them: Outside) -> None:
        def pull() -> None:
            time.sleep(0.1)
            delete(them)

        person.append(threading.Thread(target=pull))
        person[0].start()

    person: list[threading.Thread] = []
    result = Outside((10, meanwhile), traffic="count: 100000").run()
    person[0].join()
    assert result["complete"] is result["disturbed"] is True
    assert result["messages"]["failed"] == 1
    assert any("was deleted" in warning for warning in result["warnings"])


@pytest.mark.parametrize("node", ["h0", "leaf0", "spine0"])
def test_a_holder_killed_costs_nothing(node: str) -> None:
    """Its packet sockets keep the namespace as long as the run needs it."""
    result = Outside((10, lambda _: os.kill(process_at(node), signal.SIGKILL)), on_progress=None).run()
    assert (result["messages"]["completed"], result["messages"]["failed"]) == (8, 0)
    assert told(result) == told(undisturbed())


def test_every_holder_killed_leaves_nothing() -> None:
    def kill_all(_: Outside) -> None:
        for node in ("h0", "h1", "h2", "h3", "leaf0", "leaf1", "spine0"):
            os.kill(process_at(node), signal.SIGKILL)

    assert told(Outside((10, kill_all), on_progress=None).run()) == told(undisturbed())
