"""What a process may do in its namespaces, and what it is told if that is too little."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

from emu.errors import MachineError
from emu.lab import lab as lab_module
from emu.lab import rights, rootless
from emu.lab.lab import Lab
from emu.lab.namespace import in_own_thread
from tests.lab.fabrics import PAIR, REPOSITORY

RUN = f"{sys.executable} -m emu run hello --quiet"
WITHOUT_NET_RAW = "setpriv --bounding-set=-net_raw --inh-caps=-net_raw"
needs_tools = pytest.mark.skipif(
    not all(shutil.which(name) for name in ("unshare", "setpriv")), reason="unshare or setpriv (util-linux) is missing"
)


def shell(command: str) -> subprocess.CompletedProcess[str]:
    """Run it."""
    return subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=60,
        check=False,
    )


def need_user_namespaces() -> None:
    if shell("unshare -U -r -n true").returncode:
        pytest.skip("user namespaces cannot be made here")


@pytest.mark.lab
@needs_tools
def test_root_of_a_user_namespace_takes_a_network_namespace_of_its_own() -> None:
    need_user_namespaces()
    done = shell(f"unshare -U -r {RUN}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.lab
@needs_tools
def test_root_without_a_right_takes_a_user_namespace_where_it_has_it() -> None:
    need_user_namespaces()
    done = shell(f"unshare -U -r -n {WITHOUT_NET_RAW} {RUN}")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.lab
@needs_tools
def test_root_without_a_right_is_told_which_where_there_are_no_user_namespaces() -> None:
    need_user_namespaces()
    forbid = "echo 0 > /proc/sys/user/max_user_namespaces"  # of that user namespace alone
    done = shell(f"unshare -U -r -n bash -c '{forbid} && {WITHOUT_NET_RAW} {RUN}'")
    assert done.returncode == 3
    assert "lacks CAP_NET_RAW" in done.stderr
    assert "user.max_user_namespaces is 0" in done.stderr
    done = shell(f"unshare -U -r -n bash -c '{forbid} && {WITHOUT_NET_RAW} {sys.executable} -m emu doctor'")
    assert done.returncode == 3
    assert "Error" not in done.stdout + done.stderr
    assert "run as root" not in done.stdout


@pytest.mark.lab
@pytest.mark.parametrize("step", ["open_packet_socket", "switch_offloads_off", "bring_up", "bind_to", "carries"])
@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (PermissionError(1, "Operation not permitted"), "--privileged|run as root"),
        (OSError(24, "Too many open files"), "ulimit -n"),
        (OSError(12, "Cannot allocate memory"), "free some memory"),
        (OSError(19, "No such device"), "emu doctor"),
    ],
)
def test_what_the_machine_refuses_is_its_fault_with_a_remedy(
    step: str, error: OSError, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr(lab_module, step, refuse)
    with (
        pytest.raises(MachineError, match=rf"{error.strerror}: .*({remedy}).*--wire memory"),
        Lab(PAIR),
    ):
        pytest.fail("it was built all the same")


def test_no_thread_more_is_no_bug_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("threading.Thread.start", refuse)
    with pytest.raises(MachineError, match="ulimit -u"):
        in_own_thread(lambda: None)


def test_root_is_not_told_to_become_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(rights, "missing_rights", lambda: ["CAP_NET_RAW"])
    assert "run as root" not in rights.remedy()
    assert "CAP_NET_RAW" in rights.remedy()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "run as root" in rights.remedy()


@pytest.mark.parametrize(
    ("missing", "owns", "privileged"), [([], True, True), ([], False, False), (["X"], True, False)]
)
def test_who_is_privileged(missing: list[str], owns: bool, privileged: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rootless, "missing_rights", lambda: missing)
    monkeypatch.setattr(rootless, "owns_network", lambda: owns)
    assert rootless.is_privileged() is privileged
