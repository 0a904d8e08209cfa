"""Where /proc is another PID namespace's, numbers in it are other people's processes: nothing there is touched."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from emu.errors import MachineError
from emu.lab import proc
from emu.lab.holder import Holder, spawn
from emu.lab.lab import Lab
from emu.lab.namespace import entered, in_own_thread
from emu.lab.proc import check_proc
from tests.lab.fabrics import PAIR, REPOSITORY

EMU = f"{sys.executable} -m emu"
SETTING = "cat /proc/sys/net/ipv6/conf/all/disable_ipv6"


def isolated(script: str) -> list[str]:
    """What a shell prints in network, mount and PID namespaces of its own, errors too; skips where they cannot be."""
    unshare = shutil.which("unshare", path="/usr/sbin:/sbin:/usr/bin:/bin")
    command = [unshare or "", "-n", "-m", "-p", "-f", "--mount-proc"]
    if unshare is None or subprocess.run([*command, "true"], capture_output=True, check=False).returncode:
        pytest.skip("namespaces of these kinds cannot be made here")
    done = subprocess.run(
        [*command, "bash", "-c", script],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        timeout=120,
        check=False,
    )
    return done.stdout.splitlines()


@pytest.mark.lab
def test_numbers_of_another_pid_namespace_are_not_followed() -> None:
    """Our holders' numbers would be those of the sleepers, who share the network namespace that we came from."""
    before, refused, code, refused_too, code_too, ill, after = isolated(f"""
        for each in $(seq 40); do sleep 60 & done
        {SETTING}
        unshare -p -f {EMU} run hello --quiet; echo $?
        unshare -p -f {EMU} clean; echo $?
        unshare -p -f {EMU} doctor | grep MISSING
        {SETTING}
    """)
    assert (before, after) == ("0", "0")
    assert (code, code_too) == ("3", "3")
    assert refused.startswith("emu run: /proc shows another PID namespace")
    assert "--mount-proc" in refused
    assert refused.endswith("--wire memory")
    assert refused_too.startswith("emu clean: /proc shows another PID namespace")
    assert "/proc of this PID namespace" in ill


@pytest.mark.lab
def test_a_lab_itself_refuses_too() -> None:
    code = "from emu.lab.lab import Lab; from tests.lab.fabrics import PAIR; Lab(PAIR).__enter__()"
    before, *said, after = isolated(f"""
        for each in $(seq 40); do sleep 60 & done
        {SETTING}
        unshare -p -f {sys.executable} -c '{code}'
        {SETTING}
    """)
    assert (before, after) == ("0", "0")
    assert said[-1].startswith("emu.errors.MachineError: /proc shows another PID namespace")


@pytest.mark.lab
def test_without_proc_the_remedy_is_named() -> None:
    lines = isolated(f"""
        mount -t tmpfs none /proc
        {EMU} run hello --quiet; echo $?
        {EMU} clean; echo $?
        {EMU} doctor | grep -c MISSING
    """)
    assert lines[1::2] == ["3", "3"]
    assert all("/proc does not show this process" in line and "mount -t proc" in line for line in lines[0:3:2])
    assert lines[-1] == "1"


def test_our_own_proc_is_right() -> None:
    check_proc()


@pytest.mark.parametrize(
    ("number", "status", "right"),
    [
        ("{pid}", "NSpid:\t{pid}\n", True),
        ("{pid}", "Name:\tan old kernel's\n", True),
        ("{pid}", "NSpid:\t{pid}\t{pid}\n", False),  # the same number by chance
        ("1", "NSpid:\t1\t{pid}\n", False),
    ],
)
def test_whose_proc_it_is(
    number: str, status: str, right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/status").write_text(status.format(pid=os.getpid()))
    (tmp_path / number.format(pid=os.getpid())).symlink_to("there")
    (tmp_path / "self").symlink_to(number.format(pid=os.getpid()))
    monkeypatch.setattr(proc, "FOLDER", tmp_path)
    if right:
        check_proc()
        return
    with pytest.raises(MachineError, match="another PID namespace"):
        check_proc()


@pytest.fixture
def holder() -> Iterator[Holder]:
    holders: dict[str, Holder] = {}
    try:
        spawn(["h0"], {"EMU_RUN": "emu-proc"}, holders)
        yield holders["h0"]
    finally:
        for each in holders.values():
            each.let_go()
            each.reap()


@pytest.mark.lab
def test_only_another_network_namespace_is_entered(holder: Holder) -> None:
    def where(pid: int) -> str:
        with entered(pid):
            return os.readlink("/proc/thread-self/ns/net")

    home = os.readlink("/proc/self/ns/net")
    assert in_own_thread(lambda: where(holder.pid)) == os.readlink(f"/proc/{holder.pid}/ns/net") != home
    with pytest.raises(MachineError, match="our own network namespace"):
        in_own_thread(lambda: where(os.getpid()))


@pytest.mark.lab
def test_a_number_that_went_to_somebody_else_is_noticed(holder: Holder) -> None:
    def enter() -> None:
        with stranger.entered():
            pytest.fail("entered all the same")

    with subprocess.Popen(["mnexec", "-n", "sleep", "60"], env={**os.environ, "EMU_RUN": "emu-other"}) as other:
        stranger = Holder("h0", other.pid, -1, {"EMU_RUN": "emu-proc", "EMU_NODE": "h0"})
        try:
            with pytest.raises(MachineError, match="is gone"):
                in_own_thread(enter)
        finally:
            other.kill()
    with pytest.raises(MachineError, match="is gone"):
        in_own_thread(enter)
    holder.check()


@pytest.mark.lab
def test_a_shell_starts_only_where_its_holder_is() -> None:
    with Lab(PAIR) as lab:
        node = lab.mininet["h0"]
        node.holder = Holder("h0", os.getpid(), -1, {"EMU_RUN": lab.run_id})
        with pytest.raises(MachineError, match="is gone"):
            node.cmd("true")
