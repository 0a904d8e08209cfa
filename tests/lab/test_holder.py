"""What goes wrong with mnexec is said in one line with the remedy, and never hangs."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from emu.errors import MachineError
from emu.lab import holder
from emu.lab.holder import Holder, find_mnexec, spawn

Fake = Callable[[str], None]


@pytest.fixture
def fake_mnexec(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fake]:
    """Puts a script in mnexec's place."""

    def write(script: str) -> None:
        path = tmp_path / "mnexec"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    find_mnexec.cache_clear()
    yield write
    find_mnexec.cache_clear()


def test_a_probe_that_hangs_is_given_up(fake_mnexec: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holder, "PROBE_TIMEOUT_S", 0.2)
    fake_mnexec("exec sleep 60")
    started = time.monotonic()
    with pytest.raises(MachineError, match="does not end.*--wire memory"):
        find_mnexec()
    assert time.monotonic() - started < 5


def test_a_probe_that_fails_says_why(fake_mnexec: Fake) -> None:
    fake_mnexec("echo 'unshare: Operation not permitted' >&2; exit 1")
    with pytest.raises(MachineError, match=r"\(unshare: Operation not permitted\): .*--wire memory"):
        find_mnexec()


def test_a_missing_mnexec_names_the_package(fake_mnexec: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("emu.lab.holder.shutil.which", lambda *_, **__: None)
    with pytest.raises(MachineError, match="apt-get install mininet"):
        find_mnexec()


@pytest.mark.parametrize("script", ['[ "$2" = true ] || { echo "mount: no" >&2; exit 1; }', '[ "$2" = true ]'])
def test_a_holder_that_ends_at_once_is_noticed(fake_mnexec: Fake, script: str) -> None:
    fake_mnexec(script)
    holders: dict[str, Holder] = {}
    try:
        with pytest.raises(MachineError, match="mount: no|ended at once"):
            spawn(["h0", "h1"], {}, holders)
        assert len(holders) == 2
    finally:
        for each in holders.values():
            each.let_go()
            each.reap()


@pytest.mark.lab
def test_holders_inherit_nothing_and_are_alone(tmp_path: Path) -> None:
    holders: dict[str, Holder] = {}
    with (tmp_path / "file").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        try:
            spawn(["h0", "h1"], {"EMU_RUN": "emu-alone"}, holders)
            namespaces = set()
            for each in holders.values():
                assert sorted(os.listdir(f"/proc/{each.pid}/fd")) == ["0", "1", "2"]
                namespaces.add(os.readlink(f"/proc/{each.pid}/ns/net"))
                environment = Path(f"/proc/{each.pid}/environ").read_bytes()
                assert environment == f"EMU_RUN=emu-alone\0EMU_NODE={each.name}\0".encode()
            assert len(namespaces - {os.readlink("/proc/self/ns/net")}) == 2
        finally:
            for each in holders.values():
                each.let_go()
            for each in holders.values():
                each.reap()
    for each in holders.values():
        assert not Path(f"/proc/{each.pid}").exists()
